"""Where in a JSON text a JSON Pointer points, for carets under what an error names.

The text is one that a JSON reader has taken; where it isn't, or the pointer leads nowhere, there
is no place and the error keeps its pointer alone. One pass over the text up to the place.
"""

from __future__ import annotations

import json
import re
from json.decoder import JSONDecoder

from grammaton.errors import GrammarError

_BLANKS = re.compile(r"[ \t\n\r]*")


def located(error: GrammarError, text: bytes) -> GrammarError:
    """The same error with the place in `text` that its pointer names, if it names one."""
    if error.pointer is None or error.source is not None:
        return error
    try:
        source = text.decode(json.detect_encoding(text))
        position, end = find(source, error.pointer)
    except (ValueError, IndexError):
        return error
    message = f"{error.message} (at {error.pointer or 'the root of the schema'})"
    found = type(error)(message, source=source, position=position, end=end)
    found.pointer = error.pointer
    return found


def find(text: str, pointer: str) -> tuple[int, int]:
    """The span of what a pointer names: a member's key, an array's item, or the whole value.

    Raises:
        ValueError, IndexError: the text is not JSON up to there, or has no such place.
    """
    decoder = JSONDecoder()
    at = _skip(text, 0)
    span: tuple[int, int] | None = None
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if text[at] == "{":
            span, at = _member(decoder, text, at, name)
        elif text[at] == "[":
            at = _item(decoder, text, at, int(name))
            span = None
        else:
            raise ValueError(f"nothing is inside a scalar at {at}")
    return span or (at, decoder.raw_decode(text, at)[1])


def _member(decoder: JSONDecoder, text: str, at: int, name: str) -> tuple[tuple[int, int], int]:
    """The span of a member's key, and where its value begins."""
    at = _skip(text, at + 1)
    while text[at] == '"':
        key, end = decoder.raw_decode(text, at)
        value = _skip(text, _skip(text, end) + 1)
        if key == name:
            return (at, end), value
        at = _next(decoder, text, value)
    raise ValueError(f"no member {name!r}")


def _item(decoder: JSONDecoder, text: str, at: int, index: int) -> int:
    at = _skip(text, at + 1)
    for _ in range(index):
        at = _next(decoder, text, at)
    return at


def _next(decoder: JSONDecoder, text: str, at: int) -> int:
    """Where the member or item after the value at `at` begins."""
    at = _skip(text, decoder.raw_decode(text, at)[1])
    if text[at] != ",":
        raise ValueError(f"no more after {at}")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
