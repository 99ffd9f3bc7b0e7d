"""Frames on one line: what is still to be said, in the notation of the text form, cut short.

Terms of a running constraint are residuals, shared and possibly large, so a sketch reads no further
than it prints. `…` stands for what was left out, and for residuals that have no text form (a JSON
escape half written, say).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grammaton._core import Constraint
from grammaton.grammar.text_printer import character_class, escape, token_set

_DEPTH = 6
_MOST_KEYS = 5
_UNION, _CONCAT, _PREFIX, _ATOM = range(4)
_QUANTIFIERS = {(0, 1): "?", (0, None): "*", (1, None): "+"}


def sketch(constraint: Constraint, term: int, *, width: int = 48) -> str:
    """A term that `Matcher.stacks` names, in at most `width` characters."""
    shown = ""
    for piece in _pieces(constraint, term, _UNION, _DEPTH):
        shown += piece
        if len(shown) > width:
            return shown[: width - 1] + "…"
    return shown


def _pieces(constraint: Constraint, term: int, level: int, depth: int) -> Iterator[str]:
    if depth == 0:
        yield "…"
        return
    match constraint.node(term):
        case ("empty",):
            yield '""'
        case ("chars" | "bytes", ranges):
            yield character_class(ranges)
        case ("call", int(rule), int(param)):
            yield _call(constraint, rule, param)
        case ("json" | "distinct" | "distinct_text" as name, int(inner)):
            yield from (f"{name}(", *_pieces(constraint, inner, _UNION, depth - 1), ")")
        case ("multiples", divisor, places):
            yield f"multiples({divisor}, {places})"
        case ("tokens", tuple(names), tuple(ids), bool(negated)):
            yield token_set(names, ids, negated=negated)
        case ("keys", edges):
            yield from _keys(constraint, edges, depth)
        case ("members", tuple(texts)):
            keys = ['"' + _shown(text) + '"' for text in texts]
            yield f"{_lifted(keys)} …"
        case ("metered", int(inner), *_):
            yield from _pieces(constraint, inner, level, depth)
        case ("complement", int(inner)):
            yield "~"
            yield from _pieces(constraint, inner, _PREFIX, depth - 1)
        case ("repeat", int(inner), int(low), high):
            yield from _pieces(constraint, inner, _ATOM, depth - 1)
            assert high is None or isinstance(high, int)
            yield _quantifier(low, high)
        case ("concat", parts):
            assert isinstance(parts, tuple)
            yield from _grouped(_concat(constraint, parts, depth), level > _CONCAT)
        case ("union", parts):
            assert isinstance(parts, tuple)
            yield from _union(constraint, parts, level, depth)
        case ("intersect", parts):
            assert isinstance(parts, tuple)
            yield from _intersection(constraint, parts, level, depth)
        case ("without", int(whole), int(seen)):
            yield from _pieces(constraint, whole, _CONCAT, depth - 1)
            yield " & ~"
            yield from _pieces(constraint, seen, _PREFIX, depth - 1)
        case _:
            yield "…"


def _concat(constraint: Constraint, parts: tuple[int, ...], depth: int) -> Iterator[str]:
    literal = ""
    separator = ""
    for part in parts:
        char = _single(constraint, part)
        if char is not None:
            literal += char
            continue
        if literal:
            yield f'{separator}"{literal}"'
            literal, separator = "", " "
        yield separator
        yield from _pieces(constraint, part, _PREFIX, depth - 1)
        separator = " "
    if literal:
        yield f'{separator}"{literal}"'


def _single(constraint: Constraint, term: int) -> str | None:
    """The character that a term consists of, escaped for a literal."""
    match constraint.node(term):
        case ("chars", ((int(low), int(high)),)) if low == high:
            return escape(low, '"\\')
    return None


def _union(constraint: Constraint, parts: tuple[int, ...], level: int, depth: int) -> Iterator[str]:
    some = tuple(part for part in parts if constraint.node(part)[0] != "empty")
    if len(some) == len(parts):
        yield from _grouped(_joined(" | ", constraint, some, _CONCAT, depth), level > _UNION)
    elif len(some) == 1:
        yield from _pieces(constraint, some[0], _ATOM, depth - 1)
        yield "?"
    else:
        yield from _grouped(_joined(" | ", constraint, some, _CONCAT, depth), True)
        yield "?"


def _keys(constraint: Constraint, edges: object, depth: int) -> Iterator[str]:
    """The texts of a trie, and what follows if there is but one of them."""
    assert isinstance(edges, tuple)
    todo: list[tuple[bytes, int]] = [(bytes([byte]), term) for byte, term in reversed(edges)]
    texts: list[tuple[str, tuple[int, ...]]] = []
    while todo and len(texts) <= _MOST_KEYS:
        text, term = todo.pop()
        node = constraint.node(term)
        if node[0] == "keys":
            assert isinstance(node[1], tuple)
            todo += [(text + bytes([byte]), term) for byte, term in reversed(node[1])]
        elif node[0] == "members":
            assert isinstance(node[1], tuple)
            texts += [(f'"{_shown(text + rest)}"', ()) for rest in node[1]]
        else:
            tail, after = _tail(constraint, term)
            texts.append((f'"{_shown(text)}{tail}"', after))
    yield f"{_lifted([text for text, _ in texts])} "
    if len(texts) == 1:
        yield from _concat(constraint, texts[0][1], depth - 1)
    else:
        yield "…"


def _lifted(names: list[str]) -> str:
    shown = " | ".join(names[:_MOST_KEYS])
    return f"json({shown}{' | …' if len(names) > _MOST_KEYS else ''})"


def _shown(text: bytes) -> str:
    return "".join(escape(ord(char), '"\\') for char in text.decode(errors="replace"))


def _intersection(
    constraint: Constraint, parts: tuple[int, ...], level: int, depth: int
) -> Iterator[str]:
    if any(constraint.node(part)[0] == "complement" for part in parts):
        # `~x` is "any text, and not x"; `~` alone says both.
        parts = tuple(part for part in parts if sketch(constraint, part, width=5) != "[^]*")
    if len(parts) == 1:
        yield from _pieces(constraint, parts[0], level, depth - 1)
    else:
        yield from _grouped(_joined(" & ", constraint, parts, _CONCAT, depth), level > _UNION)


def _tail(constraint: Constraint, term: int) -> tuple[str, tuple[int, ...]]:
    """What is left of a text after the last branch of its trie, escaped, and the terms after it."""
    node = constraint.node(term)
    parts = node[1] if node[0] == "concat" else (term,)
    assert isinstance(parts, tuple)
    match constraint.node(parts[0]):
        case ("json", int(lifted)):
            inner = constraint.node(lifted)
            characters = inner[1] if inner[0] == "concat" else (lifted,)
            assert isinstance(characters, tuple)
            text = [_single(constraint, character) for character in characters]
            if None not in text:
                return "".join(filter(None, text)), parts[1:]
    return "", parts


def _joined(
    separator: str, constraint: Constraint, parts: tuple[int, ...], level: int, depth: int
) -> Iterator[str]:
    for i, part in enumerate(parts):
        if i:
            yield separator
        yield from _pieces(constraint, part, level, depth - 1)


def _grouped(pieces: Iterator[str], grouped: bool) -> Iterator[str]:
    if grouped:
        yield "("
    yield from pieces
    if grouped:
        yield ")"


def _call(constraint: Constraint, rule: int, param: int) -> str:
    name = re.sub(r"\W", "_", constraint.rule_name(rule), flags=re.ASCII)
    bits, counters = constraint.param_value(param)
    items = [f"#{bit}" for bit in bits]
    items += [f"${index} = {value}" for index, value in enumerate(counters) if value]
    return f"{name}({', '.join(items)})" if items else name


def _quantifier(low: int, high: int | None) -> str:
    simple = _QUANTIFIERS.get((low, high))
    if simple is not None:
        return simple
    if low == high:
        return f"{{{low}}}"
    return f"{{{low},{'' if high is None else high}}}"
