"""Tokens as Lark and GBNF texts write them: `<|name|>`, `<[12,20-30]>`, `<[^12]>`, `<[*]>`.

A token form stands for one token out of a set, taken whole, whatever it spells. A name is kept with
its angle brackets; which ids it has is for a vocabulary to say. `^` and `*` mean every token but
those listed, and but those that end a sequence.
"""

from __future__ import annotations

import re

from grammaton.grammar.ebnf_nodes import Tokens
from grammaton.grammar.reader import Reader

MAX_TOKEN_ID = 2**32 - 2
"""The largest id that can be written."""

_NAME = re.compile(r"<[^<>\[\]\s][^<>\s]*>")
_IDS = re.compile(r"<\[([^\]<>\n]*)\]>")
_ITEM = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?")


def read_tokens(reader: Reader, start: int, *, negated: bool = False) -> Tokens:
    """Reads the token form at the cursor.

    Args:
        reader: stands at `<`.
        start: where the span of the form begins.
        negated: whether a `!` stood before it.

    Raises:
        GrammarError: no token form, or a bad range, with its place.
    """
    name = reader.match(_NAME)
    if name is not None:
        return Tokens((name[0],), (), negated, reader.source, start, reader.at)
    opening = reader.at
    listed = reader.match(_IDS)
    if listed is None:
        raise reader.error(
            "expected the name of a token, as <|end|>, or ids, as <[12,20-30]>", opening
        )
    text = listed[1]
    at = len(text) - len(text.lstrip())
    if text.strip() == "*":
        if negated:
            raise reader.error("no token is left: <[*]> is all of them", start, reader.at)
        return Tokens((), (), True, reader.source, start, reader.at)
    if text.startswith("^", at):
        if negated:
            raise reader.error("either ! or ^, not both", start, reader.at)
        negated = True
        at += 1
    ids = _ranges(reader, text, at, listed.start(1))
    return Tokens((), ids, negated, reader.source, start, reader.at)


def _ranges(reader: Reader, text: str, at: int, offset: int) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    while True:
        found = _ITEM.match(text, at)
        if found is None:
            raise reader.error("expected a token id", offset + at, offset + at + 1)
        low = _token_id(reader, found[1], offset + found.start(1))
        high = low if found[2] is None else _token_id(reader, found[2], offset + found.start(2))
        if high < low:
            raise reader.error(
                "this range ends before its start", offset + found.start(1), offset + found.end()
            )
        ranges.append((low, high))
        at = found.end()
        if at == len(text):
            return tuple(ranges)
        if text[at] != ",":
            raise reader.error("expected , or ]", offset + at, offset + at + 1)
        at += 1


def _token_id(reader: Reader, digits: str, position: int) -> int:
    if len(digits.lstrip("0")) > 10 or int(digits) > MAX_TOKEN_ID:
        raise reader.error(
            f"a token id is at most {MAX_TOKEN_ID}", position, position + len(digits)
        )
    return int(digits)
