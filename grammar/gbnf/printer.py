r"""Writes a grammar as GBNF, where GBNF can say it.

GBNF has characters, literals, sequences, choices, repetitions and rules. It can't say `&`, `~`,
JSON's escapes (`json(…)`), or rules with a memory, which JSON Schema's objects are: those raise
`UnsupportedKeyword`. A left-recursive rule prints too, though llama.cpp refuses to load it. Each
term is visited once; `MAX_TEXT` characters bound one expression.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError, LimitExceeded, UnsatisfiableGrammar, UnsupportedKeyword
from grammaton.grammar.regex.ranges import ANY, Ranges, invert, normalize

if TYPE_CHECKING:
    from grammaton._core import TermStore

MAX_TEXT = 20_000_000
MAX_TOKENS = 1000
"""Tokens of a set, which are written out one by one."""

_SURROGATES = (0xD800, 0xDFFF)
_CHOICE, _SEQUENCE, _ITEM = range(3)
_ESCAPES = {0x09: r"\t", 0x0A: r"\n", 0x0D: r"\r", 0x22: r"\"", 0x5C: r"\\"}
_CLASS_ESCAPES = {**_ESCAPES, 0x5B: r"\[", 0x5D: r"\]", 0x2D: r"\x2D", 0x5E: r"\x5E"}
_REFUSED = {
    "intersect": "an intersection (&)",
    "complement": "a complement (~)",
    "json": "json(…)",
    "bytes": "parts of characters",
    "call": "a rule with parameters, as of indentation",
    "residual": "a derivative",
}


def to_gbnf(store: TermStore, start: int) -> str:
    """The GBNF text of the grammar that starts at a term.

    Raises:
        UnsupportedKeyword: GBNF cannot say it; the message names what.
        UnsatisfiableGrammar: the grammar has no texts.
        GrammarError: a rule is not defined.
        LimitExceeded: an expression is longer than `MAX_TEXT` characters.
    """
    return _Printer(store).grammar(start)


class _Printer:
    def __init__(self, store: TermStore) -> None:
        self._store = store
        self._texts: dict[int, tuple[str, int]] = {}
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._queue: list[int] = []

    def grammar(self, start: int) -> str:
        head = self._store.node(start)
        lines = []
        if head[0] == "call" and isinstance(rule := head[1], int):
            self._names[rule] = "root"
            self._taken.add("root")
            self._queue.append(rule)
        else:
            self._taken.add("root")
            lines.append("root ::= " + self._expression(start))
        for rule in self._queue:  # which grows meanwhile
            body = self._store.rule_body(rule)
            name = self._store.rule_name(rule)
            if self._store.attributes(rule) != ("", "", 0, None, None):
                raise UnsupportedKeyword(f"GBNF cannot say attributes of rules, as {name} has")
            if body is None:
                raise GrammarError(f"rule {name} is not defined")
            if not isinstance(body, int):
                raise UnsupportedKeyword(f"GBNF cannot say a rule with a memory, as {name} is")
            lines.append(f"{self._names[rule]} ::= {self._expression(body)}")
        return "\n".join(lines) + "\n"

    def _name(self, rule: int) -> str:
        if rule not in self._names:
            wanted = re.sub("[^A-Za-z0-9]+", "-", self._store.rule_name(rule)).strip("-") or "rule"
            name, count = wanted, self._counts.get(wanted, 1)
            while name in self._taken:
                count += 1
                name = f"{wanted}-{count}"
            self._counts[wanted] = count
            self._taken.add(name)
            self._names[rule] = name
            self._queue.append(rule)
        return self._names[rule]

    def _expression(self, term: int) -> str:
        stack = [term]
        while stack:
            top = stack[-1]
            if top in self._texts:
                stack.pop()
                continue
            parts = self._parts(top)
            missing = [part for part in parts if part not in self._texts]
            if missing:
                stack.extend(reversed(missing))
                continue
            text, level = self._render(top, parts)
            if len(text) > MAX_TEXT:
                raise LimitExceeded(f"the GBNF text is longer than {MAX_TEXT} characters")
            self._texts[top] = text, level
            stack.pop()
        return self._texts[term][0]

    def _parts(self, term: int) -> list[int]:
        """The operands of a term; those of a concatenation without another one inside."""
        match self._store.node(term):
            case ("union", tuple(parts)):
                return list(parts)
            case ("repeat", int(inner), *_):
                return [inner]
            case ("concat", *_):
                return self._in_turn(term)
        return []

    def _in_turn(self, term: int) -> list[int]:
        found: list[int] = []
        stack = [term]
        while stack:
            top = stack.pop()
            match self._store.node(top):
                case ("concat", tuple(parts)):
                    stack.extend(reversed(parts))
                case _:
                    found.append(top)
        return found

    def _operand(self, term: int, level: int) -> str:
        text, own = self._texts[term]
        return text if own >= level else f"({text})"

    def _render(self, term: int, parts: list[int]) -> tuple[str, int]:
        match self._store.node(term):
            case ("empty",):
                return '""', _ITEM
            case ("chars", tuple(ranges)):
                return _class(ranges), _ITEM
            case ("bytes", tuple(ranges)) if all(high < 0x80 for _, high in ranges):
                return _class(ranges), _ITEM
            case ("call", int(rule), int()):
                return self._name(rule), _ITEM
            case ("union", *_):
                return " | ".join(sorted(self._operand(part, _SEQUENCE) for part in parts)), _CHOICE
            case ("repeat", _, int(low), int() | None as high):
                return self._operand(parts[0], _ITEM) + _quantifier(low, high), _ITEM
            case ("concat", *_):
                return self._sequence(parts), _SEQUENCE
            case ("tokens", tuple(names), tuple(ids), bool(negated)):
                return _tokens(names, ids, negated)
            case ("nothing",):
                raise UnsatisfiableGrammar("no text satisfies the grammar; GBNF cannot say that")
            case (str(kind), *_):
                raise UnsupportedKeyword(f"GBNF cannot say {_REFUSED[kind]}")
        raise AssertionError(term)

    def _sequence(self, parts: list[int]) -> str:
        items: list[str] = []
        inside: list[str] = []  # of literals in a row, which are one
        for text in [*(self._operand(part, _SEQUENCE) for part in parts), " "]:
            if text[0] == '"' == text[-1]:
                inside.append(text[1:-1])
                continue
            if inside:
                items.append('"' + "".join(inside) + '"')
                inside = []
            items.append(text)
        return " ".join(items[:-1])


def _tokens(
    names: tuple[str, ...], ids: tuple[tuple[int, int], ...], negated: bool
) -> tuple[str, int]:
    """One token of a set; GBNF has tokens one by one, and all but one."""
    if any(re.fullmatch(r"<[^<>\[\]\s][^<>\s]*>", name) is None for name in names):
        raise UnsupportedKeyword("GBNF cannot say a token whose name is not in angle brackets")
    count = len(names) + sum(high - low + 1 for low, high in ids)
    if count > MAX_TOKENS or (negated and count != 1):
        raise UnsupportedKeyword("GBNF cannot say so many tokens, or all but several")
    forms = [*names, *(f"<[{each}]>" for low, high in ids for each in range(low, high + 1))]
    if negated:
        return "!" + forms[0], _ITEM
    return " | ".join(forms), _ITEM if count == 1 else _CHOICE


def _class(found: Ranges) -> str:
    outside = invert(normalize((*found, _SURROGATES)))
    ranges = invert(normalize((*outside, _SURROGATES)))
    if not outside or invert(outside) == ANY:
        return "."
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f'"{_escape(ranges[0][0], _ESCAPES)}"'
    if len(outside) < len(ranges):
        return f"[^{_class_items(outside)}]"
    return f"[{_class_items(ranges)}]"


def _class_items(ranges: Ranges) -> str:
    items = []
    for low, high in ranges:
        first, last = _escape(low, _CLASS_ESCAPES), _escape(high, _CLASS_ESCAPES)
        items.append(first if low == high else f"{first}-{last}")
    return "".join(items)


def _escape(code: int, escapes: dict[int, str]) -> str:
    if code in escapes:
        return escapes[code]
    if chr(code).isprintable():
        return chr(code)
    if code < 0x100:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _quantifier(low: int, high: int | None) -> str:
    simple = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high))
    if simple is not None:
        return simple
    if low == high:
        return f"{{{low}}}"
    return f"{{{low},}}" if high is None else f"{{{low},{high}}}"
