r"""What a terminal needs of the text around it.

A terminal is matched *in place*: `/if(?!\w)/` looks beyond its own text. Such a terminal is a set
of *pieces*: a term, with needs that the character before it must meet, and needs of the text after
it. All other terminals are one piece without needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammaton.grammar.lark.split import split
from grammaton.grammar.regex.ranges import ANY, Ranges, intersect, invert

if TYPE_CHECKING:
    from grammaton._core import TermStore

Sets = tuple[Ranges, ...]
"""A text, each character being one of a set."""


@dataclass(frozen=True)
class Before:
    """The character before is one of `ranges` (or, negative, is none of them, or there is none)."""

    negative: bool
    ranges: Ranges


@dataclass(frozen=True)
class After:
    """What follows begins with one character of each set (or, negative, does not)."""

    negative: bool
    chars: Sets


Key = tuple[frozenset[Before], frozenset[After]]
Pieces = dict[Key, int]
"""Terms by what they need; none is without texts."""

NO_NEEDS: Key = (frozenset(), frozenset())


class Settling:
    """Splits terms by the needs of others, in one store."""

    def __init__(self, store: TermStore) -> None:
        self.store = store
        self._anything = store.repeat(store.chars(ANY), 0, None)

    def settle(self, term: int, needs: Iterable[After]) -> list[tuple[int, frozenset[After]]]:
        """Splits the texts of a term by what they leave of needs that they begin under."""
        found = [(term, frozenset[After]())]
        for need in needs:
            found = [
                (piece, left | rest)
                for whole, left in found
                for piece, rest in self._settle_one(whole, need)
            ]
        return found

    def by_last(self, term: int, ranges: Ranges) -> tuple[int, int]:
        """The texts whose last character is one of a set, and those where it is another."""
        return split(self.store, term, ranges, first=False)

    def meet(self, term: int, other: int) -> int:
        """The texts of both terms; NOTHING when there are none."""
        found = self.store.intersect([term, other])
        return self.store.NOTHING if self.store.is_empty(found) else found

    def without(self, term: int, removed: int) -> int:
        """The texts of a term that are none of another; NOTHING when there are none."""
        return self.meet(term, self.store.complement(removed))

    def _settle_one(self, term: int, need: After) -> list[tuple[int, frozenset[After]]]:
        store = self.store
        single = self._single(term)
        if single is not None:
            return self._settle_character(single, need)
        if len(need.chars) == 1:
            inside, outside = split(store, term, need.chars[0], first=True)
            settled = outside if need.negative else inside
            empty = store.EMPTY if store.is_nullable(term) else store.NOTHING
            found = [(settled, frozenset[After]()), (empty, frozenset({need}))]
            return [(piece, left) for piece, left in found if piece != store.NOTHING]
        # along[k]: the texts of k characters that go along with the need so far.
        along = [
            store.concat([store.chars(ranges) for ranges in need.chars[:count]])
            for count in range(len(need.chars) + 1)
        ]
        met = store.concat([along[-1], self._anything])
        settled = (
            self.without(term, store.union([met, *along[:-1]]))
            if need.negative
            else self.meet(term, met)
        )
        found = [(settled, frozenset[After]())]
        for count, begun in enumerate(along[:-1]):
            left = After(need.negative, need.chars[count:])
            found.append((self.meet(term, begun), frozenset({left})))
        return [(piece, left) for piece, left in found if piece != store.NOTHING]

    def _single(self, term: int) -> Ranges | None:
        """The set of a term that is one character."""
        match self.store.node(term):
            case ("chars", tuple(ranges)):
                return ranges
            case ("bytes", tuple(ranges)) if all(high < 0x80 for _, high in ranges):
                return ranges
        return None

    def _settle_character(self, single: Ranges, need: After) -> list[tuple[int, frozenset[After]]]:
        left = frozenset({After(need.negative, need.chars[1:])} if need.chars[1:] else ())
        found: list[tuple[Ranges, frozenset[After]]] = []
        if need.negative:
            found.append((intersect(single, invert(need.chars[0])), frozenset()))
        if left or not need.negative:
            found.append((intersect(single, need.chars[0]), left))
        return [(self.store.chars(ranges), rest) for ranges, rest in found if ranges]
