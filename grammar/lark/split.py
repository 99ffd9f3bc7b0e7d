"""Splits the texts of a term by their first or last character.

`term & .*[a-z]` says the same, but an intersection hides from the index what a term is made of: the
masks of a run of blanks are found by counting, those of blanks that end in a blank were not, and
took up to 30 ms. So the split goes down the term itself, where it can. Costs a call of the store
for each part of the term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammaton.grammar.regex.ranges import ANY, Ranges, intersect, invert

if TYPE_CHECKING:
    from grammaton._core import TermStore

Halves = tuple[int, int]
"""The texts with the character in the set, and those with it outside; NOTHING for none."""


def split(store: TermStore, term: int, ranges: Ranges, *, first: bool) -> Halves:
    """The texts of a regular term, but the empty one, by whether a character is in a set.

    Args:
        store: of the term.
        term: without calls.
        ranges: the set.
        first: whether it is the first character that counts, or the last.
    """
    return _Split(store, ranges, first=first).of(term)


class _Split:
    def __init__(self, store: TermStore, ranges: Ranges, *, first: bool) -> None:
        self._store = store
        self._inside = ranges
        self._outside = invert(ranges)
        self._first = first
        self._known: dict[int, Halves] = {}

    def of(self, term: int) -> Halves:
        if term not in self._known:
            halves = self._structural(term)
            if halves is None:
                halves = self._intersected(term)
            if self._store.NOTHING in halves and not self._store.is_nullable(term):
                # The same texts in other words would make other rules.
                halves = self._whole(term, halves[0]), self._whole(term, halves[1])
            self._known[term] = halves
        return self._known[term]

    def _whole(self, term: int, half: int) -> int:
        return half if half == self._store.NOTHING else term

    def _structural(self, term: int) -> Halves | None:
        """By the parts of the term; None where they don't tell."""
        store = self._store
        match store.node(term):
            case ("nothing",) | ("empty",):
                return store.NOTHING, store.NOTHING
            case ("chars", tuple(own)):
                return self._characters(own)
            case ("bytes", tuple(own)) if all(high < 0x80 for _, high in own):
                return self._characters(own)
            case ("concat", tuple(parts)):
                return self._sequence(parts)
            case ("union", tuple(branches)):
                several = [self.of(branch) for branch in branches]
                inside, outside = zip(*several, strict=True)
                return self._either(inside), self._either(outside)
            case ("repeat", int(body), int(low), high):
                assert high is None or isinstance(high, int)
                return self._repeated(body, low, high)
            case ("intersect", tuple(operands)):
                return self._of_one(term, operands)
        return None

    def _characters(self, own: Ranges) -> Halves:
        chars = self._store.chars
        inside, outside = (intersect(own, other) for other in (self._inside, self._outside))
        nothing = self._store.NOTHING
        return chars(inside) if inside else nothing, chars(outside) if outside else nothing

    def _sequence(self, parts: tuple[int, ...]) -> Halves | None:
        store = self._store
        found: tuple[list[int], list[int]] = ([], [])
        order = range(len(parts)) if self._first else reversed(range(len(parts)))
        for at in order:
            # A byte of a character that has several tells nothing by itself.
            match store.node(parts[at]):
                case ("bytes", tuple(own)) if any(high >= 0x80 for _, high in own):
                    return None
            for half, kept in zip(self.of(parts[at]), found, strict=True):
                if half == store.NOTHING:
                    continue
                whole = (half, *parts[at + 1 :]) if self._first else (*parts[:at], half)
                kept.append(store.concat(whole))
            if not store.is_nullable(parts[at]):
                break
        return self._either(found[0]), self._either(found[1])

    def _repeated(self, body: int, low: int, high: int | None) -> Halves:
        store = self._store
        halves = self.of(body)
        if high == 0:
            return store.NOTHING, store.NOTHING
        if store.is_nullable(body):
            body, low = self._either(halves), 0
        some = store.repeat(body, max(low, 1), high)
        if store.NOTHING in halves:
            inside, outside = (half if half == store.NOTHING else some for half in halves)
            return inside, outside
        others = store.repeat(body, max(low - 1, 0), None if high is None else high - 1)
        inside, outside = (
            store.concat((half, others) if self._first else (others, half)) for half in halves
        )
        return inside, outside

    def _of_one(self, term: int, operands: tuple[int, ...]) -> Halves | None:
        """Of an intersection, by one of its parts."""
        store = self._store
        known = [(operand, self._structural(operand)) for operand in operands]
        several = [(operand, halves) for operand, halves in known if halves is not None]
        if not several:
            return None
        operand, halves = min(several, key=lambda each: store.NOTHING not in each[1])
        found = []
        for half in halves:
            if half != store.NOTHING and store.NOTHING in halves and not store.is_nullable(term):
                half = term
            elif half != store.NOTHING:
                half = store.intersect([half, *(each for each in operands if each != operand)])
            found.append(store.NOTHING if store.is_empty(half) else half)
        return found[0], found[1]

    def _intersected(self, term: int) -> Halves:
        store = self._store
        anything = store.repeat(store.chars(ANY), 0, None)
        found = []
        for ranges in (self._inside, self._outside):
            one = store.chars(ranges) if ranges else store.NOTHING
            parts = (one, anything) if self._first else (anything, one)
            half = store.intersect([term, store.concat(parts)])
            found.append(store.NOTHING if store.is_empty(half) else half)
        return found[0], found[1]

    def _either(self, terms: list[int] | tuple[int, ...]) -> int:
        """The union; NOTHING of none."""
        some = [term for term in terms if term != self._store.NOTHING]
        return self._store.union(some) if some else self._store.NOTHING
