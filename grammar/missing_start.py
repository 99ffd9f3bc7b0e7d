"""The error for a start that is none of a grammar's rules, in every notation.

It names the rules there are. A misspelt start is told from one that is missing by its likeness to
one of them, which is where the error points then, and otherwise at the first rule, or at the end of
a text without any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from grammaton.errors import PlacedError
from grammaton.grammar.ebnf_nodes import Source

SHOWN = 10
"""Rules that are named."""

MAX_COMPARED = 500
"""Names that are compared with the start, which costs some 10 us each."""

MAX_NAME = 60
"""Characters of the names that are."""


def missing_start(
    start: str, rules: Mapping[str, Callable[[str], PlacedError]], source: Source
) -> PlacedError:
    """The error for a start that is not among the rules; it is for the caller to raise.

    Args:
        start: the name that was asked for.
        rules: by the name of a rule, in the order of the text, what makes an error of its place.
        source: the text, in case that there are none.
    """
    if not rules:
        message = f"no rule is named {_short(start)}, the start; the grammar has no rules"
        return source.error(message, len(source.text))
    names = [name for name in rules if len(name) <= MAX_NAME][:MAX_COMPARED]
    alike = get_close_matches(start, names, n=1) if len(start) <= MAX_NAME else []
    hint = f" (did you mean {alike[0]}?)" if alike else ""
    shown = ", ".join(_short(name) for name in list(rules)[:SHOWN])
    more = f" and {len(rules) - SHOWN} more" if len(rules) > SHOWN else ""
    placed = rules[alike[0]] if alike else next(iter(rules.values()))
    return placed(
        f"no rule is named {_short(start)}, the start{hint}; the rules are: {shown}{more}"
    )


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
