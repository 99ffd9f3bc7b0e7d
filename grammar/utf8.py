"""Python text that has no UTF-8 form is refused before it reaches a grammar."""

from __future__ import annotations

import re

from grammaton.errors import GrammarError

_SURROGATE = re.compile("[\ud800-\udfff]")


def check_utf8(text: object, what: str) -> str:
    """`text` itself, when it is a str that UTF-8 can spell.

    Args:
        text: the value to check.
        what: what it is, for the message: "a literal".

    Raises:
        GrammarError: not a str; or a lone surrogate, with its place.
    """
    if not isinstance(text, str):
        raise GrammarError(f"{what} must be a str, not {type(text).__name__}")
    lone = _SURROGATE.search(text)
    if lone is None:
        return text
    raise GrammarError(
        f"{what} holds a lone surrogate (U+{ord(lone[0]):04X}), which has no UTF-8 form",
        source=_SURROGATE.sub("\ufffd", text),  # the message must be printable itself
        position=lone.start(),
    )
