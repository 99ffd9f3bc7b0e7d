"""Kept clauses: what the properties of an object do to them, and whether they can all hold.

A clause (clauses.py) has *supports*: keys whose absence fulfils it, keys whose property may, and
sorts of keys all of whose properties must satisfy something (*universals*). A property that is
written has an *effect*: it fulfils clauses for good, and takes supports from others. A clause that
is not fulfilled holds at the end if one of the absences or universals is left; while it is not
fulfilled, it may not lose its last support.

The counters of one clause: the absences and universals lost, and all supports lost. They start at
as many as there are, and being fulfilled sets them to 0, from where the rest can't reach the
double. Cost: two counters a clause; satisfiability is searched for with a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from grammaton.errors import LimitExceeded

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.positions import Position
    from grammaton.grammar.json_schema.strings import KeySort

MAX_TRIES = 20_000
"""Properties that are tried to find an object that fulfils all clauses."""


class Effect(NamedTuple):
    """What a property does.

    Attributes:
        fulfils: the clauses that it fulfils.
        present: those that its absence would have fulfilled.
        missed: those that another value of it would have fulfilled, while its absence would not.
        breaks: the universals that it breaks.
    """

    fulfils: frozenset[int]
    present: frozenset[int]
    missed: frozenset[int]
    breaks: frozenset[int]


class Supports(NamedTuple):
    """What may fulfil one clause.

    Attributes:
        absent: keys that fulfil it while they are not there.
        present: other keys that fulfil it by some of their values.
        universals: numbers of universals.
        open: whether an undeclared property may fulfil it.
    """

    absent: frozenset[str]
    present: frozenset[str]
    universals: frozenset[int]
    open: bool


class Kept(NamedTuple):
    """The kept clauses of an object shape.

    Attributes:
        clauses: what supports each.
        members: the classes of each key that matters, with what they do.
        others: the same of undeclared properties, all of them.
    """

    clauses: list[Supports]
    members: dict[str, list[tuple[Position, Effect]]]
    others: list[tuple[KeySort, Position, Effect]]

    def positions(self) -> Iterator[Position]:
        """The positions of all classes."""
        for classes in self.members.values():
            for position, _ in classes:
                yield position
        for _, position, _ in self.others:
            yield position

    def supports(self, alive: Callable[[Position], bool]) -> list[Supports]:
        """What supports each clause by properties that can be written."""
        hopes: list[set[str]] = [set() for _ in self.clauses]
        for key, classes in self.members.items():
            for position, effect in classes:
                if alive(position):
                    for number in effect.fulfils:
                        hopes[number].add(key)
        is_open = {
            number
            for _, position, effect in self.others
            if alive(position)
            for number in effect.fulfils
        }
        return [
            supports._replace(present=supports.present & hopes[number], open=number in is_open)
            for number, supports in enumerate(self.clauses)
        ]

    def least_height(self, required: Mapping[str, object], infinite: int) -> int:
        """The least nesting of members with which all clauses can hold."""
        for height in sorted({position.height for position in self.positions()} | {0}):
            if height >= infinite:
                break
            if _Search(self, required, height).succeeds():
                return height
        return infinite


class _Search:
    """A search for an object that fulfils all clauses, by what could fulfil one after the other.

    Args:
        height: how deep its members may nest.
    """

    def __init__(self, kept: Kept, required: Mapping[str, object], height: int) -> None:
        self.clauses = kept.clauses
        self.required = [key for key in kept.members if key in required]
        self.effects = {
            key: [effect for position, effect in classes if position.height <= height]
            for key, classes in kept.members.items()
        }
        self.others = [effect for _, position, effect in kept.others if position.height <= height]
        self.chosen: dict[str, Effect | None] = {}
        self.written: list[Effect] = []
        self.relied: list[int] = []
        self.tries = 0

    def succeeds(self) -> bool:
        """Whether there is one."""
        self.tries += 1
        if self.tries > MAX_TRIES:
            raise LimitExceeded(f"the choices about an object took over {MAX_TRIES} tries")
        for number, supports in enumerate(self.clauses):
            if not self._holds(number, supports):
                return self._fulfil(number, supports)
        for key in self.required:
            if key not in self.chosen:
                return any(self._try(key, effect) for effect in self.effects[key])
        return True

    def _holds(self, number: int, supports: Supports) -> bool:
        return (
            any(number in effect.fulfils for effect in self.written)
            or any(key in self.chosen and self.chosen[key] is None for key in supports.absent)
            or any(universal in self.relied for universal in supports.universals)
        )

    def _fulfil(self, number: int, supports: Supports) -> bool:
        for key in supports.absent:
            if key not in self.chosen and key not in self.required and self._try(key, None):
                return True
        for key in (*supports.absent, *supports.present):
            if key not in self.chosen:
                for effect in self.effects[key]:
                    if number in effect.fulfils and self._try(key, effect):
                        return True
        for universal in supports.universals:
            if not any(universal in effect.breaks for effect in self.written):
                self.relied.append(universal)
                if self.succeeds():
                    return True
                self.relied.pop()
        for effect in self.others:
            if number in effect.fulfils and effect.breaks.isdisjoint(self.relied):
                self.written.append(effect)
                if self.succeeds():
                    return True
                self.written.pop()
        return False

    def _try(self, key: str, effect: Effect | None) -> bool:
        if effect is not None and not effect.breaks.isdisjoint(self.relied):
            return False
        self.chosen[key] = effect
        if effect is not None:
            self.written.append(effect)
        if self.succeeds():
            return True
        if effect is not None:
            self.written.pop()
        del self.chosen[key]
        return False


class ClauseCounters:
    """The conditions and updates of a template that keep count of clauses.

    Args:
        first: the counter of the first clause; each has two.
        first_bit: the bit of the first universal.
    """

    def __init__(self, clauses: Sequence[Supports], first: int, first_bit: int) -> None:
        self.clauses = clauses
        self.first = first
        self.first_bit = first_bit

    def start(self) -> list[int]:
        """The counters before anything is written."""
        counters = []
        for supports in self.clauses:
            staying = _staying(supports)
            counters += [max(1, staying), staying + len(supports.present)]
        return counters

    @property
    def holds_at_first(self) -> bool:
        """Whether all clauses hold of the empty object."""
        return all(_staying(supports) for supports in self.clauses)

    def ended(self) -> list[Any]:
        """All clauses hold."""
        return [
            ("between", self.first + 2 * number, 0, max(0, 2 * _staying(supports) - 1))
            for number, supports in enumerate(self.clauses)
        ]

    def passed(self, keys: Sequence[str]) -> list[list[Any]]:
        """In schema order: for each key, and for the others after the last, the conditions that the
        clauses hold all of whose properties are then behind.

        Without them the search for an end would look at all that can follow to see that it is none.
        """
        place = {key: i for i, key in enumerate(keys)}
        behind: list[list[Any]] = [[] for _ in range(len(keys) + 1)]
        for condition, supports in zip(self.ended(), self.clauses, strict=True):
            if supports.present and not supports.open:
                last = max(place[key] for key in supports.present)
                for i in range(last + 1, len(keys) + 1):
                    behind[i].append(condition)
        return behind

    def written(self, key: str | None, effect: Effect) -> Iterator[tuple[list[Any], list[Any]]]:
        """The conditions and updates of a property (None: an undeclared one); one pair for each
        set of the universals that it breaks which may be broken already."""
        breaks = sorted(effect.breaks)
        for size in range(len(breaks) + 1):
            for broken in combinations(breaks, size):
                yield self._written(key, effect, broken, [u for u in breaks if u not in broken])

    def _written(
        self, key: str | None, effect: Effect, broken: tuple[int, ...], breaking: list[int]
    ) -> tuple[list[Any], list[Any]]:
        conditions: list[Any] = [("unseen", self.first_bit + each) for each in breaking]
        if broken:
            conditions.append(("all_seen", tuple(self.first_bit + each for each in broken)))
        updates: list[Any] = [("see", self.first_bit + each) for each in breaking]
        for number, supports in enumerate(self.clauses):
            held, hoped = self.first + 2 * number, self.first + 2 * number + 1
            if number in effect.fulfils:
                updates += [("set", held, 0), ("set", hoped, 0)]
                continue
            staying = _staying(supports)
            gone = (number in effect.present) + sum(u in supports.universals for u in breaking)
            lost = gone + (number in effect.missed and key in supports.present)
            if gone:
                updates.append(("add", held, gone, 2 * staying))
            if not lost or supports.open:
                continue
            counter, most = held, 2 * staying
            if supports.present:
                counter, most = hoped, 2 * (staying + len(supports.present))
                updates.append(("add", hoped, lost, most))
            conditions.append(("between", counter, 0, most - 1 - lost))
        return conditions, updates


def _staying(supports: Supports) -> int:
    """How many supports a clause has that nothing needs to be written for."""
    return len(supports.absent) + len(supports.universals)
