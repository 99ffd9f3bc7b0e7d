"""Which texts can still become texts of a language: slow, over characters, without stacks.

- A *spelling* is the set of characters that texts may use. `whole` may stand in a text, `bytewise` may
  also be cut in the middle of its bytes (CONSTRUCTIONS, section 6: S1 ∪ S2, and S1).
- Regular terms go on by *derivatives by a character*; one is *live* when some text over the spelling
  ends it, found by search with one character out of each class that the term distinguishes.
- Recursion is Earley's algorithm: a *column* is what may be going on after a prefix, as items (terms
  still to come, the call they belong to, the column where that call began). Items whose terms cannot all
  end are dropped, so a prefix is *viable* exactly when its column is not empty. Any grammar will do:
  left-recursive, nullable, unproductive, ambiguous.

None of this is shared with `reference_terms.spans`, which decides membership; the tests compare the two.
Cost: a column is at worst linear in its position, its closure cubic; liveness is one graph search a
derivative, at worst exponential in the size of `&`/`~` terms. `MAX_SEARCH` bounds it.
"""

from __future__ import annotations

import bisect
import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from grammaton.errors import GrammarError
from tests.reference_terms import LAST_CODE_POINT, CallKey, TermTable, normal_ranges

MAX_SEARCH = 30_000
ALL_CHARACTERS = normal_ranges([(0, LAST_CODE_POINT)])
HEX = "0123456789abcdefABCDEF"
JSON_SPECIALS = sorted({ord(char) for char in '"\\/bfnrtu' + HEX})
SHORT_ESCAPES = dict(zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True))


class ReferenceTooHardError(Exception):
    """A term has more derivatives than the reference is willing to search."""


@dataclass(frozen=True)
class Spelling:
    """The characters that a text may be made of: sorted disjoint code point ranges."""

    bytewise: tuple[tuple[int, int], ...] = ALL_CHARACTERS
    whole: tuple[tuple[int, int], ...] = ALL_CHARACTERS

    def __contains__(self, code_point: int) -> bool:
        return first_in(self.whole, code_point, code_point) is not None


def first_in(ranges: Sequence[tuple[int, int]], low: int, high: int) -> int | None:
    """The first code point of `ranges` that lies in low..high."""
    at = bisect.bisect_right(ranges, (low, LAST_CODE_POINT + 1))
    for begin, end in ranges[max(at - 1, 0) : at + 1]:
        if begin <= high and end >= low:
            return max(begin, low)
    return None


def split_characters(data: bytes) -> tuple[str, bytes] | None:
    """Whole characters and the begun one at the end; None when `data` begins no UTF-8 text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None
    return text, bytes(decoder.getstate()[0])


def completions(begun: bytes) -> tuple[int, int]:
    """The lowest and highest code point whose UTF-8 begins with `begun` (surrogates not cut out)."""
    lead = begun[0]
    length, bits = (
        (2, lead & 0x1F) if lead < 0xE0 else (3, lead & 15) if lead < 0xF0 else (4, lead & 7)
    )
    for byte in begun[1:]:
        bits = bits << 6 | byte & 0x3F
    free = 6 * (length - len(begun))
    first, last = {2: (0x80, 0x7FF), 3: (0x800, 0xFFFF), 4: (0x10000, LAST_CODE_POINT)}[length]
    return max(bits << free, first), min((bits + 1 << free) - 1, last)


class Derivatives:
    """Derivatives of regular terms by characters, with just enough normal form to be finitely many."""

    def __init__(self, table: TermTable) -> None:
        self.table = table
        self._steps: dict[tuple[int, str], int] = {}
        self._nullable: dict[int, bool] = {}
        self._boundaries: dict[int, tuple[int, ...]] = {}

    def nullable(self, term: int) -> bool:
        if term not in self._nullable:
            self._nullable[term] = self._is_nullable(term)
        return self._nullable[term]

    def _is_nullable(self, term: int) -> bool:
        match self.table.nodes[term]:
            case ("empty",):
                return True
            case ("concat" | "intersect", (*parts,)):
                return all(self.nullable(part) for part in parts)
            case ("union", (*parts,)):
                return any(self.nullable(part) for part in parts)
            case ("complement", int(inner)):
                return not self.nullable(inner)
            case ("repeat", int(inner), low, _):
                return low == 0 or self.nullable(inner)
            case ("json", int(inner)):
                return self.nullable(inner)
        return False

    def boundaries(self, term: int) -> tuple[int, ...]:
        """Code points where the term may begin to treat characters differently; 0 is one."""
        if term not in self._boundaries:
            node = self.table.nodes[term]
            points = {0, 0xD800, 0xE000, 0x10000}
            match node:
                case ("chars", (*ranges,)):
                    points.update(edge for low, high in ranges for edge in (low, high + 1))
                case ("json" | "escape", int(inner), *_):
                    points.update(self.boundaries(inner), [0x20])
                    points.update(edge for code in JSON_SPECIALS for edge in (code, code + 1))
                case _:
                    for child in self.table.children(node):
                        points.update(self.boundaries(child))
            self._boundaries[term] = tuple(sorted(points))
        return self._boundaries[term]

    def step(self, term: int, char: str) -> int:
        """The term for what may follow `char`."""
        key = (term, char)
        if key not in self._steps:
            self._steps[key] = self._step(term, char)
        return self._steps[key]

    def _step(self, term: int, char: str) -> int:
        table = self.table
        match table.nodes[term]:
            case ("nothing",) | ("empty",):
                return table.NOTHING
            case ("chars", (*ranges,)):
                inside = any(low <= ord(char) <= high for low, high in ranges)
                return table.EMPTY if inside else table.NOTHING
            case ("concat", (*parts,)):
                ways = []
                for index, part in enumerate(parts):
                    ways.append(self._concat([self.step(part, char), *parts[index + 1 :]]))
                    if not self.nullable(part):
                        break
                return self._union(ways)
            case ("union", (*parts,)):
                return self._union([self.step(part, char) for part in parts])
            case ("intersect", (*parts,)):
                return self._intersect([self.step(part, char) for part in parts])
            case ("complement", int(inner)):
                return self._complement(self.step(inner, char))
            case ("repeat", int(inner), int(low), high):
                if high == 0:
                    return table.NOTHING
                rest = table.repeat(
                    inner, max(low - 1, 0), high - 1 if isinstance(high, int) else None
                )
                return self._concat([self.step(inner, char), rest])
            case ("json", int(inner)):
                if char == "\\":
                    return self._escape(inner, "")
                if char == '"' or char < " ":
                    return table.NOTHING
                return self._json(self.step(inner, char))
            case ("escape", int(inner), str(read)):
                return self._escaped(inner, read, char)
        raise GrammarError(f"no derivative by a character: {table.nodes[term]!r}")

    # Escapes: `read` is what followed the backslash. `uXXXX` with a high surrogate goes on `\uXXXX`.

    def _escaped(self, inner: int, read: str, char: str) -> int:
        if read == "" and char in SHORT_ESCAPES:
            return self._json(self.step(inner, SHORT_ESCAPES[char]))
        at = len(read) % 6
        if not (char == "u" if at == 0 else char == "\\" if at == 5 else char in HEX):
            return self.table.NOTHING
        read += char.lower()
        if len(read) == 5:
            unit = int(read[1:], 16)
            if 0xDC00 <= unit <= 0xDFFF:
                return self.table.NOTHING
            if not 0xD800 <= unit <= 0xDBFF:
                return self._json(self.step(inner, chr(unit)))
        if len(read) == 11:
            pair = [int(read[1:5], 16), int(read[7:], 16)]
            if not 0xDC00 <= pair[1] <= 0xDFFF:
                return self.table.NOTHING
            return self._json(self.step(inner, chr(code_of_pair(*pair))))
        return self._escape(inner, self._merge(inner, read))

    def _merge(self, inner: int, read: str) -> str:
        """One `read` for all that end in the same class of characters, or the search would be long."""
        span = characters_of_escape(read)
        if span is None:
            return read
        bounds = self.boundaries(inner)
        index = bisect.bisect_right(bounds, span[0])
        if index < len(bounds) and bounds[index] <= span[1]:
            return read
        size = span[1] - span[0] + 1
        begin = -(-bounds[index - 1] // size) * size
        return escape_prefix(begin, len(read))

    def _escape(self, inner: int, read: str) -> int:
        return (
            self.table.NOTHING
            if inner == self.table.NOTHING
            else self.table.intern(("escape", inner, read))
        )

    def _json(self, inner: int) -> int:
        return self.table.NOTHING if inner == self.table.NOTHING else self.table.json(inner)

    # Normal forms: flat, without units and zeros, unions and intersections as sets.

    def _flat(self, kind: str, parts: Sequence[int]) -> list[int]:
        flat: list[int] = []
        for part in parts:
            node = self.table.nodes[part]
            flat += self._flat(kind, self.table.children(node)) if node[0] == kind else [part]
        return flat

    def _concat(self, parts: Sequence[int]) -> int:
        flat = [part for part in self._flat("concat", parts) if part != self.table.EMPTY]
        if self.table.NOTHING in flat:
            return self.table.NOTHING
        return self.table.concat(flat)

    def _union(self, parts: Sequence[int]) -> int:
        return self.table.union(sorted(set(self._flat("union", parts)) - {self.table.NOTHING}))

    def _intersect(self, parts: Sequence[int]) -> int:
        flat = sorted(set(self._flat("intersect", parts)))
        return self.table.NOTHING if self.table.NOTHING in flat else self.table.intersect(flat)

    def _complement(self, inner: int) -> int:
        node = self.table.nodes[inner]
        return (
            self.table.children(node)[0]
            if node[0] == "complement"
            else self.table.complement(inner)
        )


def code_of_pair(high: int, low: int) -> int:
    """The code point of a surrogate pair."""
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)


def characters_of_escape(read: str) -> tuple[int, int] | None:
    """The characters that an unfinished `uXXXX` (or pair) can become, when they are one aligned range."""
    if len(read) <= 5:
        free = 4 * (5 - len(read))
        low = (int(read[1:], 16) if len(read) > 1 else 0) << free
        high = low + (1 << free) - 1
        if high < 0xD800 or low >= 0xE000:
            return low, high
        if low >= 0xD800 and high < 0xDC00:
            return code_of_pair(low, 0xDC00), code_of_pair(high, 0xDFFF)
        return None
    unit = int(read[1:5], 16)
    digits = read[7:]
    free = 4 * (4 - len(digits))
    low = (int(digits, 16) if digits else 0) << free
    high = low + (1 << free) - 1
    if len(digits) < 2:
        return (
            (code_of_pair(unit, 0xDC00), code_of_pair(unit, 0xDFFF))
            if digits in ("", "d")
            else None
        )
    return (code_of_pair(unit, low), code_of_pair(unit, high)) if 0xDC00 <= low <= 0xDFFF else None


def escape_prefix(code_point: int, length: int) -> str:
    """The first `length` characters of `uXXXX` or `uXXXX\\uXXXX` for a character."""
    if code_point < 0x10000:
        return f"u{code_point:04x}"[:length]
    above = code_point - 0x10000
    return f"u{0xD800 + (above >> 10):04x}\\u{0xDC00 + (above & 0x3FF):04x}"[:length]


Item = tuple[tuple[int, ...], CallKey | None, int]


@dataclass
class Column:
    """What may be going on at one position: items, and who waits there for a call to end."""

    position: int
    items: set[Item] = field(default_factory=set)
    waiting: dict[CallKey, set[Item]] = field(default_factory=dict)
    ended: set[CallKey] = field(default_factory=set)
    accepting: bool = False
    back: tuple[Column, ...] = ()


class Language:
    """A term's texts over a spelling, by Earley's algorithm. Prefixes are remembered."""

    def __init__(self, table: TermTable, start: int, spelling: Spelling | None = None) -> None:
        self.table = table
        self.start = start
        self.spelling = spelling or Spelling()
        self._derivatives = Derivatives(table)
        self._live: dict[int, bool] = {}
        self._columns: dict[str, Column] = {}

    def accepts(self, text: bytes) -> bool:
        """Whether `text` is in the language and every character of it in the spelling."""
        split = split_characters(text)
        return split is not None and not split[1] and self.column(split[0]).accepting

    def viable(self, data: bytes, *, bytewise: bool = True) -> bool:
        """Whether some text of the language begins with `data`. A character that `data` cuts must
        be completed by one that is spelled byte by byte (with `bytewise`), or by any."""
        split = split_characters(data)
        if split is None:
            return False
        text, begun = split
        column = self.column(text)
        if not begun:
            return bool(column.items)
        low, high = completions(begun)
        ranges = self.spelling.bytewise if bytewise else self.spelling.whole
        return any(
            self.live(self._derivatives.step(terms[0], chr(code_point)))
            for terms, _, _ in column.items
            if terms and self.table.is_regular(terms[0])
            for code_point in self._representatives(terms[0], ranges, low, high)
        )

    @cached_property
    def is_empty(self) -> bool:
        return not self.column("").items

    def column(self, text: str) -> Column:
        """The column after `text`."""
        known = len(text)
        while known and text[:known] not in self._columns:
            known -= 1
        if text[:known] not in self._columns:
            first = Column(0)
            first.back = (first,)
            self._add(first, {((self.start,), None, 0)})
            self._columns[""] = first
        column = self._columns[text[:known]]
        for end in range(known + 1, len(text) + 1):
            column = self._columns[text[:end]] = self._advance(column, text[end - 1])
        return column

    def _advance(self, column: Column, char: str) -> Column:
        following = Column(column.position + 1)
        following.back = (*column.back, following)
        if ord(char) in self.spelling:
            seeds: set[Item] = set()
            for terms, owner, origin in column.items:
                if terms and self.table.is_regular(terms[0]):
                    rest = self._derivatives.step(terms[0], char)
                    seeds.add(((rest, *terms[1:]), owner, origin))
            self._add(following, seeds)
        return following

    def _add(self, column: Column, seeds: set[Item]) -> None:
        """Adds items and all that follows from them without reading on."""
        pending = list(seeds)
        while pending:
            item = pending.pop()
            terms, owner, origin = item
            if item in column.items or not all(self.live(term) for term in terms):
                continue
            column.items.add(item)
            if not terms:
                if owner is None:
                    column.accepting = True
                else:
                    if origin == column.position:
                        column.ended.add(owner)
                    for waiter in column.back[origin].waiting.get(owner, ()):
                        pending.append((waiter[0][1:], waiter[1], waiter[2]))
                continue
            pending += [(way, owner, origin) for way in self._ways(terms)]
            node = self.table.nodes[terms[0]]
            if node[0] == "call":
                call = self._call(terms[0])
                column.waiting.setdefault(call, set()).add(item)
                if call in column.ended:
                    pending.append((terms[1:], owner, origin))
                pending += [(body, call, column.position) for body in self.table.bodies(*call)]

    def _ways(self, terms: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The sequences that `terms` stands for, one level deeper."""
        first, rest = terms[0], terms[1:]
        if self.table.is_regular(first):
            if self._derivatives.nullable(first):
                yield rest
            return
        match self.table.nodes[first]:
            case ("concat", (*parts,)):
                yield (*parts, *rest)
            case ("union", (*parts,)):
                for part in parts:
                    yield (part, *rest)
            case ("repeat", int(inner), int(low), high):
                if low == 0:
                    yield rest
                if isinstance(high, int):
                    if high > 0:
                        yield (inner, self.table.repeat(inner, max(low - 1, 0), high - 1), *rest)
                else:
                    yield (inner, self.table.repeat(inner, max(low - 1, 0), None), *rest)

    def _call(self, term: int) -> CallKey:
        match self.table.nodes[term]:
            case ("call", int(rule), int(param)):
                return rule, param
        raise AssertionError(term)

    # Liveness

    def live(self, term: int) -> bool:
        """Whether some text over the spelling is in the term's language."""
        if term not in self._live:
            if self.table.is_regular(term):
                self._search(term)
            else:
                self._produce(term)
        return self._live[term]

    def _representatives(
        self, term: int, ranges: Sequence[tuple[int, int]], low: int, high: int
    ) -> Iterator[int]:
        bounds = self._derivatives.boundaries(term)
        for begin, after in zip(bounds, (*bounds[1:], LAST_CODE_POINT + 1), strict=True):
            if begin <= high and after > low:
                found = first_in(ranges, max(begin, low), min(after - 1, high))
                if found is not None:
                    yield found

    def _search(self, term: int) -> None:
        """Breadth first over derivatives, one character a class, until one is nullable or known live."""
        reached_from: dict[int, int | None] = {term: None}
        queue = [term]
        for current in queue:
            if self._derivatives.nullable(current) or self._live.get(current, False):
                on_path: int | None = current
                while on_path is not None:
                    self._live[on_path] = True
                    on_path = reached_from[on_path]
                return
            if self._live.get(current) is False:
                continue
            for code_point in self._representatives(
                current, self.spelling.whole, 0, LAST_CODE_POINT
            ):
                following = self._derivatives.step(current, chr(code_point))
                if following not in reached_from:
                    reached_from[following] = current
                    queue.append(following)
            if len(queue) > MAX_SEARCH:
                raise ReferenceTooHardError(f"over {MAX_SEARCH} derivatives")
        self._live.update(dict.fromkeys(queue, False))

    def _produce(self, term: int) -> None:
        """The calls reached from `term` that can end: a least fixpoint over all of them."""
        reached = {term}
        pending = [term]
        while pending:
            node = self.table.nodes[pending.pop()]
            below = list(self.table.children(node))
            match node:
                case ("call", int(rule), int(param)):
                    below += [part for body in self.table.bodies(rule, param) for part in body]
            pending += [part for part in below if part not in reached]
            reached.update(below)
        productive: set[int] = set()
        changed = True
        while changed:
            changed = False
            for candidate in reached - productive:
                if self._can_end(candidate, productive):
                    productive.add(candidate)
                    changed = True
        self._live.update({candidate: candidate in productive for candidate in reached})

    def _can_end(self, term: int, productive: set[int]) -> bool:
        if self.table.is_regular(term):
            return self.live(term)
        match self.table.nodes[term]:
            case ("concat", (*parts,)):
                return productive.issuperset(parts)
            case ("union", (*parts,)):
                return not productive.isdisjoint(parts)
            case ("repeat", int(inner), low, _):
                return low == 0 or inner in productive
            case ("call", int(rule), int(param)):
                bodies = self.table.bodies(rule, param)
                return any(productive.issuperset(body) for body in bodies)
        raise AssertionError(self.table.nodes[term])
