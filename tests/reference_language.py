"""Which texts can still become texts of a language: slow, over characters, without stacks.

- Regular terms go on by derivatives by a character; one is *live* when some text over the spelling
  ends it, found by search with one character out of each class that the term tells apart.
- Recursion is Earley's algorithm: a *column* is what may be going on after a prefix, as items
  (terms still to come, the call they belong to, the column where that call began). Items whose
  terms cannot all end are dropped, so a prefix is *viable* exactly when its column is not empty.
  Any grammar will do: left-recursive, nullable, unproductive, ambiguous.

None of this is shared with the spans of `reference_terms`, which decide membership; the tests
compare the two. Cost: a column is at worst linear in its position, its closure cubic; liveness is
one graph search a derivative, at worst exponential in the size of `&`/`~` terms. `MAX_SEARCH`
bounds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tests.reference_derivatives import (
    Derivatives,
    Spelling,
    completions,
    first_in,
    split_characters,
)
from tests.reference_terms import LAST_CODE_POINT, CallKey, TermTable

MAX_SEARCH = 5_000


class ReferenceTooHardError(Exception):
    """A term has more derivatives than the reference is willing to search."""


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
        self._shortest: dict[int, str] = {}
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
        """Breadth first over derivatives, a character a class, until one is nullable or live."""
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

    # Completions

    def completion(self, data: bytes) -> bytes:
        """A text that completes the viable prefix `data`, as short as can be to within a character
        of each regular term."""
        split = split_characters(data)
        if split is None:
            raise ValueError(f"not a prefix of UTF-8 text: {data!r}")
        text, begun = split
        if not begun:
            return self._finish(self.column(text)).encode()
        low, high = completions(begun)
        characters = {
            chr(code_point)
            for terms, _, _ in self.column(text).items
            if terms and self.table.is_regular(terms[0])
            for code_point in self._representatives(terms[0], self.spelling.bytewise, low, high)
        }
        whole = (text + char for char in sorted(characters))
        best = min(
            (
                after[-1] + self._finish(self.column(after))
                for after in whole
                if self.column(after).items
            ),
            key=len,
        )
        return best.encode()[len(begun) :]

    def _finish(self, column: Column) -> str:
        """The shortest text that ends some item of the column and all that wait for it."""
        ends: dict[tuple[CallKey | None, int], str] = {(None, 0): ""}
        owners = {(owner, origin) for _, owner, origin in column.items}
        pending = list(owners)
        while pending:
            owner, origin = pending.pop()
            for _, above, begun in column.back[origin].waiting.get(owner, ()) if owner else ():
                if (key := (above, begun)) not in owners:
                    owners.add(key)
                    pending.append(key)
        changed = True
        while changed:
            changed = False
            for owner, origin in owners:
                for terms, above, begun in (
                    column.back[origin].waiting.get(owner, ()) if owner else ()
                ):
                    tail = ends.get((above, begun))
                    if tail is not None:
                        candidate = self._shortest_sequence(terms[1:]) + tail
                        if len(candidate) < len(ends.get((owner, origin), candidate + " ")):
                            ends[owner, origin] = candidate
                            changed = True
        return min(
            (
                self._shortest_sequence(terms) + ends[owner, origin]
                for terms, owner, origin in column.items
            ),
            key=len,
        )

    def _shortest_sequence(self, terms: Sequence[int]) -> str:
        return "".join(self._shortest_text(term) for term in terms)

    def _shortest_text(self, term: int) -> str:
        if term not in self._shortest:
            if self.table.is_regular(term):
                self._shortest[term] = self._shortest_regular(term)
            else:
                self._shortest_recursive(term)
        return self._shortest[term]

    def _shortest_regular(self, term: int) -> str:
        reached = {term: ""}
        queue = [term]
        for current in queue:
            if self._derivatives.nullable(current):
                return reached[current]
            for code in self._representatives(current, self.spelling.whole, 0, LAST_CODE_POINT):
                following = self._derivatives.step(current, chr(code))
                if following not in reached and self.live(following):
                    reached[following] = reached[current] + chr(code)
                    queue.append(following)
        raise AssertionError(f"not live: {self.table.nodes[term]!r}")

    def _shortest_recursive(self, term: int) -> None:
        reached = [term]
        for current in reached:
            below = [part for way in self._below(current) for part in way]
            reached += [part for part in dict.fromkeys(below) if part not in reached]
        found: dict[int, str] = {}
        changed = True
        while changed:
            changed = False
            for current in reached:
                if self.table.is_regular(current):
                    ways = [self._shortest_text(current)] if self.live(current) else []
                else:
                    ways = [
                        "".join(found[part] for part in way)
                        for way in self._below(current)
                        if all(part in found for part in way)
                    ]
                best = min(ways, key=len, default=None)
                if best is not None and (current not in found or len(best) < len(found[current])):
                    found[current] = best
                    changed = True
        self._shortest.update(found)

    def _below(self, term: int) -> list[tuple[int, ...]]:
        """Sequences of terms that a term can stand for, enough for its shortest text."""
        match self.table.nodes[term]:
            case ("call", int(rule), int(param)):
                return self.table.bodies(rule, param)
            case ("concat", (*parts,)):
                return [tuple(parts)]
            case ("union", (*parts,)):
                return [(part,) for part in parts]
            case ("repeat", int(inner), int(low), _):
                return [(inner,) * low]
        return []
