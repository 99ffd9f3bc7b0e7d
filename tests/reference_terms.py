"""Terms as plain tuples, and membership of a text straight from the definitions.

A *term* is an index into a list of tuples; equal tuples have equal indices, and nothing is
rewritten. A *span* of a term in a text is a pair i <= j such that `text[i:j]` belongs to the term's
language; `_Spans` computes, for one i, every j. Calls are solved by a least fixpoint over (rule,
parameter, i), so left recursion, nullable and unproductive rules need no care. Positions are byte
offsets.

Cost: about (terms reached) x (length of the text)^2 set operations for each round of the fixpoint.
Meant for texts of some tens of bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from grammaton.errors import GrammarError

Node = tuple[Any, ...]
Alternative = tuple[int, int, int, Sequence[tuple[object, ...]], Sequence[tuple[object, ...]]]
Param = tuple[tuple[int, ...], tuple[int, ...]]
CallKey = tuple[int, int]

SURROGATES = (0xD800, 0xDFFF)
LAST_CODE_POINT = 0x10FFFF


def is_multiple(data: bytes, divisor: int, places: int) -> bool:
    """Whether data is digits, a point among them or not, of a multiple of divisor / 10**places."""
    if re.fullmatch(rb"[0-9]*\.?[0-9]*", data) is None:
        return False
    whole, _, fraction = data.decode().partition(".")
    value = Fraction(int(whole + fraction or "0"), 10 ** len(fraction))
    return bool(value * 10**places % divisor == 0)


def decode_json_contents(data: bytes) -> str | None:
    """The text that `data` spells between the quotes of a JSON string, None when it spells none."""
    try:
        text = json.loads(b'"' + data + b'"')
    except ValueError:
        return None
    if not isinstance(text, str) or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        return None
    return text


def is_utf8(data: bytes) -> bool:
    """Whether `data` is a whole number of well-formed characters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def normal_ranges(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted, disjoint, not touching, without surrogates."""
    cut: list[tuple[int, int]] = []
    for low, high in ranges:
        if not 0 <= low <= high <= LAST_CODE_POINT:
            raise GrammarError(f"not a range of code points: ({low}, {high})")
        if low < SURROGATES[0]:
            cut.append((low, min(high, SURROGATES[0] - 1)))
        if high > SURROGATES[1]:
            cut.append((max(low, SURROGATES[1] + 1), high))
    merged: list[tuple[int, int]] = []
    for low, high in sorted(cut):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def condition_holds(condition: Sequence[object], param: Param) -> bool:
    """Whether one condition of a template alternative holds for a parameter value."""
    bits, counters = param
    match tuple(condition):
        case ("unseen", bit):
            return bit not in bits
        case ("all_seen", (*wanted,)):
            return all(bit in bits for bit in wanted)
        case ("between", int(index), int(low), int(high)):
            return low <= (counters[index] if index < len(counters) else 0) <= high
    raise GrammarError(f"not a condition: {condition!r}")


def apply_update(update: Sequence[object], param: Param) -> Param:
    """The parameter value after one update of a template alternative."""
    bits, counters = param
    match tuple(update):
        case ("see", int(bit)):
            return tuple(sorted({*bits, bit})), counters
        case ("set", int(index), int(value)):
            pass
        case ("add", int(index), int(amount), int(cap)):
            value = min((counters[index] if index < len(counters) else 0) + amount, cap)
        case _:
            raise GrammarError(f"not an update: {update!r}")
    grown = list(counters) + [0] * (index + 1 - len(counters))
    grown[index] = value
    return bits, tuple(grown)


class TermTable:
    """The builders of `grammaton._core.TermStore`, and membership of texts."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._ids: dict[Node, int] = {}
        self._regular: list[bool] = []
        self._rule_names: list[str] = []
        self._rule_bodies: list[int | list[Alternative] | None] = []
        self._params: list[Param] = [((), ())]
        self._param_ids: dict[Param, int] = {((), ()): 0}
        self._accepted: dict[tuple[int, bytes], bool] = {}
        self.NOTHING = self.intern(("nothing",))
        self.EMPTY = self.intern(("empty",))

    # Building

    def intern(self, node: Node) -> int:
        """The id of a node; ids of children must come from this table."""
        known = self._ids.get(node)
        if known is not None:
            return known
        self.nodes.append(node)
        self._ids[node] = len(self.nodes) - 1
        self._regular.append(
            node[0] != "call" and all(self._regular[child] for child in self.children(node))
        )
        return len(self.nodes) - 1

    @staticmethod
    def children(node: Node) -> tuple[int, ...]:
        """The terms directly inside a node."""
        match node:
            case ("concat" | "union" | "intersect", (*parts,)):
                return tuple(parts)
            case ("complement" | "json" | "repeat", int(inner), *_):
                return (inner,)
        return ()

    def chars(self, ranges: Sequence[tuple[int, int]]) -> int:
        normal = normal_ranges(ranges)
        return self.intern(("chars", normal)) if normal else self.NOTHING

    def literal(self, text: bytes) -> int:
        try:
            decoded = text.decode()
        except UnicodeDecodeError as error:
            raise GrammarError(f"a literal must be valid UTF-8: {error}") from error
        return self.concat([self.chars([(ord(char), ord(char))]) for char in decoded])

    def literals(self, texts: Sequence[bytes]) -> int:
        return self.union([self.literal(text) for text in texts])

    def concat(self, terms: Sequence[int]) -> int:
        self._check(terms)
        if not terms:
            return self.EMPTY
        return terms[0] if len(terms) == 1 else self.intern(("concat", tuple(terms)))

    def union(self, terms: Sequence[int]) -> int:
        self._check(terms)
        if not terms:
            return self.NOTHING
        return terms[0] if len(terms) == 1 else self.intern(("union", tuple(terms)))

    def intersect(self, terms: Sequence[int]) -> int:
        self._check(terms, regular=True)
        if not terms:
            return self.complement(self.NOTHING)
        return terms[0] if len(terms) == 1 else self.intern(("intersect", tuple(terms)))

    def complement(self, term: int) -> int:
        self._check([term], regular=True)
        return self.intern(("complement", term))

    def repeat(self, term: int, min: int, max: int | None) -> int:
        self._check([term])
        if min < 0 or (max is not None and max < min):
            raise GrammarError(f"not a repetition: {{{min},{max}}}")
        return self.intern(("repeat", term, min, max))

    def json(self, term: int) -> int:
        self._check([term], regular=True)
        return self.intern(("json", term))

    def multiples(self, divisor: int, places: int = 0) -> int:
        return self.intern(("multiples", divisor, places))

    def rule(self, name: str) -> int:
        self._rule_names.append(name)
        self._rule_bodies.append(None)
        return len(self._rule_names) - 1

    def define(self, rule: int, body: int) -> None:
        self._check([body])
        self._set_body(rule, body)

    def define_template(self, rule: int, alternatives: Sequence[Alternative]) -> None:
        for head, next_rule, tail, conditions, updates in alternatives:
            self._check([head, tail])
            if self.is_nullable(head):
                raise GrammarError("the head of a template alternative may not be nullable")
            if next_rule == -1 and updates:
                raise GrammarError("an alternative without a next rule has no updates")
            for condition in conditions:
                condition_holds(condition, ((), ()))
            for update in updates:
                apply_update(update, ((), ()))
        self._set_body(rule, list(alternatives))

    def param(self, bits: Sequence[int] = (), counters: Sequence[int] = ()) -> int:
        value = (tuple(sorted(set(bits))), tuple(counters))
        if value not in self._param_ids:
            self._param_ids[value] = len(self._params)
            self._params.append(value)
        return self._param_ids[value]

    def call(self, rule: int, param: int = 0) -> int:
        if not 0 <= rule < len(self._rule_names) or not 0 <= param < len(self._params):
            raise GrammarError(f"no such rule or parameter: {rule}, {param}")
        return self.intern(("call", rule, param))

    def import_term(self, other: TermTable, term: int) -> int:
        rules: dict[int, int] = {}
        done: dict[int, int] = {}

        def copy(old: int) -> int:
            if old not in done:
                done[old] = self.intern(moved(other.nodes[old]))
            return done[old]

        def moved(node: Node) -> Node:
            match node:
                case ("concat" | "union" | "intersect" as kind, (*parts,)):
                    return (kind, tuple(copy(part) for part in parts))
                case ("complement" | "json" | "repeat" as kind, int(inner), *rest):
                    return (kind, copy(inner), *rest)
                case ("call", int(rule), int(param)):
                    return ("call", copy_rule(rule), self.param(*other.param_value(param)))
            return node

        def copy_rule(old: int) -> int:
            if old in rules:
                return rules[old]
            new = rules[old] = self.rule(other.rule_name(old))
            body = other.rule_body(old)
            if isinstance(body, int):
                self._set_body(new, copy(body))
            elif body is not None:
                self._set_body(
                    new,
                    [
                        (copy(head), -1 if rule < 0 else copy_rule(rule), copy(tail), when, then)
                        for head, rule, tail, when, then in body
                    ],
                )
            return new

        return copy(term)

    # Looking

    def is_regular(self, term: int) -> bool:
        return self._regular[term]

    def node(self, term: int) -> Node:
        return self.nodes[term]

    def rule_name(self, rule: int) -> str:
        return self._rule_names[rule]

    def rule_body(self, rule: int) -> int | list[Alternative] | None:
        return self._rule_bodies[rule]

    def param_value(self, param: int) -> Param:
        return self._params[param]

    def __len__(self) -> int:
        return len(self.nodes)

    def is_nullable(self, term: int) -> bool:
        return self.accepts(term, b"")

    def bodies(self, rule: int, param: int) -> list[tuple[int, ...]]:
        """The alternatives of a rule for a parameter, each a sequence of terms."""
        body = self._rule_bodies[rule]
        if body is None:
            raise GrammarError(f"the rule {self._rule_names[rule]!r} is never defined")
        if isinstance(body, int):
            return [(body,)]
        value = self._params[param]
        sequences: list[tuple[int, ...]] = []
        for head, next_rule, tail, conditions, updates in body:
            if not all(condition_holds(condition, value) for condition in conditions):
                continue
            if next_rule < 0:
                sequences.append((head, tail))
                continue
            after = value
            for update in updates:
                after = apply_update(update, after)
            sequences.append((head, self.call(next_rule, self.param(*after)), tail))
        return sequences

    # Membership

    def accepts(self, term: int, text: bytes) -> bool:
        """Whether `text` belongs to the language of `term`."""
        key = (term, text)
        if key not in self._accepted:
            self._accepted[key] = len(text) in _Spans(self, text).solve(term, 0)
        return self._accepted[key]

    def _check(self, terms: Sequence[int], *, regular: bool = False) -> None:
        for term in terms:
            if not 0 <= term < len(self.nodes):
                raise GrammarError(f"not a term of this store: {term}")
            if regular and not self._regular[term]:
                raise GrammarError("&, ~ and json() apply to regular terms: no call inside")

    def _set_body(self, rule: int, body: int | list[Alternative]) -> None:
        if not 0 <= rule < len(self._rule_bodies):
            raise GrammarError(f"no such rule: {rule}")
        if self._rule_bodies[rule] is not None:
            raise GrammarError(f"the rule {self._rule_names[rule]!r} is defined twice")
        self._rule_bodies[rule] = body
        self._accepted.clear()


class _Spans:
    """The spans of terms in one text."""

    def __init__(self, table: TermTable, text: bytes) -> None:
        self._table = table
        self._text = text
        self._calls: dict[tuple[int, int, int], frozenset[int]] = {}
        self._round: dict[tuple[int, int], frozenset[int]] = {}

    def solve(self, term: int, start: int) -> frozenset[int]:
        """Every end of a span of `term` that begins at `start`: the least fixpoint."""
        while True:
            self._round.clear()
            ends = self.ends(term, start)
            before = dict(self._calls)
            for rule, param, position in before:
                found: frozenset[int] = frozenset()
                for sequence in self._table.bodies(rule, param):
                    found |= self._sequence(sequence, position)
                self._calls[rule, param, position] = found
            if self._calls == before:
                return ends

    def ends(self, term: int, start: int) -> frozenset[int]:
        key = (term, start)
        if key not in self._round:
            self._round[key] = self._ends(term, start)
        return self._round[key]

    def _ends(self, term: int, start: int) -> frozenset[int]:
        text = self._text
        stops = range(start, len(text) + 1)
        match self._table.nodes[term]:
            case ("nothing",):
                return frozenset()
            case ("empty",):
                return frozenset({start})
            case ("chars", (*ranges,)):
                for stop in range(start + 1, min(start + 4, len(text)) + 1):
                    if is_utf8(text[start:stop]):
                        code_point = ord(text[start:stop].decode())
                        inside = any(low <= code_point <= high for low, high in ranges)
                        return frozenset({stop} if inside else ())
                return frozenset()
            case ("concat", (*parts,)):
                return self._sequence(tuple(parts), start)
            case ("union", (*parts,)):
                return frozenset().union(*(self.ends(part, start) for part in parts))
            case ("intersect", (*parts,)):
                return frozenset(stops).intersection(*(self.ends(part, start) for part in parts))
            case ("complement", int(inner)):
                valid = frozenset(stop for stop in stops if is_utf8(text[start:stop]))
                return valid - self.ends(inner, start)
            case ("repeat", int(inner), int(low), high):
                return self._repeat(inner, low, high if isinstance(high, int) else None, start)
            case ("json", int(inner)):
                decoded = ((stop, decode_json_contents(text[start:stop])) for stop in stops)
                return frozenset(
                    stop
                    for stop, content in decoded
                    if content is not None and self._table.accepts(inner, content.encode())
                )
            case ("multiples", int(divisor), int(places)):
                return frozenset(
                    stop for stop in stops if is_multiple(text[start:stop], divisor, places)
                )
            case ("residual", int(base), bytes(prefix)):
                return frozenset(
                    stop for stop in stops if self._table.accepts(base, prefix + text[start:stop])
                )
            case ("call", int(rule), int(param)):
                return self._calls.setdefault((rule, param, start), frozenset())
        raise AssertionError(self._table.nodes[term])

    def _sequence(self, parts: tuple[int, ...], start: int) -> frozenset[int]:
        reached = frozenset({start})
        for part in parts:
            reached = self._after(part, reached)
        return reached

    def _after(self, part: int, starts: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(self.ends(part, start) for start in starts))

    def _repeat(self, inner: int, low: int, high: int | None, start: int) -> frozenset[int]:
        current = frozenset({start})
        for _ in range(low):
            following = self._after(inner, current)
            if following == current:
                break
            current = following
        reached, count = current, low
        while high is None or count < high:
            current = self._after(inner, current)
            if current <= reached:
                break
            reached |= current
            count += 1
        return reached
