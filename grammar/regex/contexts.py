"""What can be told about the text on one side of a place, as a finite automaton over characters.

Whether an assertion holds at a place depends on the text before it, the text after it, or both. A
*context* is a class of texts on one side that no assertion of the pattern tells apart, now or after
more characters: the state of a deterministic automaton that has read that side towards the place.
Contexts of the left read forwards, contexts of the right read backwards from the end of the text.

`Contexts.between` gives the texts that lead from one context to others as a term. Where the last
few characters decide (as for `\\b` or a look-behind of fixed width) that is `.*` and those
characters; else it is found by elimination, as for any automaton.

A number of contexts above `MAX_CONTEXTS` is refused, and so are automata of more than `MAX_STATES`
states on the way there. Time and terms are quadratic in the contexts at worst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from grammaton.grammar.regex.alphabet import Alphabet

if TYPE_CHECKING:
    from grammaton._core import TermStore

MAX_CONTEXTS = 48
"""On one side of a place; patterns in use need two to five."""
MAX_STATES = 256
_MAX_DECIDING = 8
"""How many characters next to the place may decide before elimination is used."""

_Key = TypeVar("_Key", bound=Hashable)


class TooManyContexts(Exception):
    """The assertions tell more texts apart than this construction can carry."""


class System:
    """Linear equations between languages: `Z(i) = constant(i) | coefficient(i, j) · Z(j) | …`.

    Their least solution is found by elimination, `Z = A · Z | B` being `A* · B`. With `backwards`,
    concatenations are the other way round.
    """

    def __init__(self, store: TermStore, *, backwards: bool = False) -> None:
        self._store = store
        self._backwards = backwards

    def then(self, first: int, second: int) -> int:
        """The concatenation, in the direction of the system."""
        return self._store.concat([second, first] if self._backwards else [first, second])

    def solve(
        self,
        rows: dict[_Key, dict[_Key, int]],
        constants: dict[_Key, int],
        wanted: dict[_Key, int],
    ) -> dict[_Key, int]:
        """The solution at the keys of `wanted`, which must be no coefficient's column; the values
        are their constants."""
        store = self._store
        rows = {key: dict(row) for key, row in rows.items()}
        constants = {**constants, **wanted}
        # How many rows have a column: those in few, with few columns of their own, go first.
        # To count them anew each time was half of a solution in 48 unknowns.
        users = Counter(column for row in rows.values() for column in row)
        unknown = set(users)
        while unknown:
            key = min(unknown, key=lambda each: users[each] * len(rows.get(each, ())))
            unknown.remove(key)
            row = rows.pop(key, {})
            users.subtract(row.keys())
            constant = constants.pop(key, store.NOTHING)
            if (loop := row.pop(key, None)) is not None:
                star = store.repeat(loop, 0, None)
                row = {column: self.then(star, term) for column, term in row.items()}
                constant = self.then(star, constant)
            for other, line in rows.items():
                coefficient = line.pop(key, None)
                if coefficient is None:
                    continue
                for column, term in row.items():
                    more = self.then(coefficient, term)
                    if column in line:
                        line[column] = store.union([line[column], more])
                    else:
                        line[column] = more
                        users[column] += 1
                constants[other] = store.union(
                    [constants.get(other, store.NOTHING), self.then(coefficient, constant)]
                )
        return {key: constants[key] for key in wanted}


class Contexts:
    """The contexts of one side; they are numbered, and number 0 is the empty text's.

    Attributes:
        parts: the masks of characters that are read alike.
        steps: the context after one more character, by context and part.
        facts: what holds in a context, one truth value a question.
    """

    def __init__(
        self,
        store: TermStore,
        alphabet: Alphabet,
        steps: Sequence[Sequence[int]],
        facts: Sequence[tuple[bool, ...]],
        *,
        backwards: bool,
    ) -> None:
        self._store = store
        self._alphabet = alphabet
        self._anything = store.repeat(alphabet.term(alphabet.all), 0, None)
        self._system = System(store, backwards=backwards)
        masks: dict[tuple[int, ...], int] = {}
        for number, column in enumerate(zip(*steps, strict=True)):
            masks[column] = masks.get(column, 0) | 1 << number
        self.parts = list(masks.values())
        self.steps = list(zip(*masks, strict=True))
        self.facts = facts
        self._between: dict[tuple[int, frozenset[int]], int] = {}
        self._reaches: dict[int, frozenset[int]] = {}
        self._deciding: dict[frozenset[int], int | None] = {}

    def __len__(self) -> int:
        return len(self.steps)

    def deciding(self, targets: frozenset[int]) -> int | None:
        """The mask of the characters after which the context is one of `targets` whatever it was,
        if every other character leads elsewhere whatever it was; else None."""
        if targets not in self._deciding:
            self._deciding[targets] = self._find_deciding(targets)
        return self._deciding[targets]

    def _find_deciding(self, targets: frozenset[int]) -> int | None:
        found = 0
        for number, part in enumerate(self.parts):
            hits = sum(row[number] in targets for row in self.steps)
            if hits not in (0, len(self)):
                return None
            found |= part if hits else 0
        return found

    def between(self, start: int, targets: frozenset[int]) -> int:
        """The texts, the empty one too, that lead from one context to any of `targets`."""
        key = (start, targets)
        if key not in self._between:
            self._between[key] = self._find_between(start, targets)
        return self._between[key]

    def _find_between(self, start: int, targets: frozenset[int]) -> int:
        reached = self._reached(start)
        if reached <= targets:
            return self._anything
        if not reached & targets:
            return self._store.NOTHING
        if 2 * len(reached & targets) > len(reached) and len(reached) > 2:
            others = self.between(start, reached - targets)
            return self._store.complement(others)
        count = self._deciding_count(reached, targets)
        if count is None:
            # For all starts at once that this is asked of in the same way: they reach each other.
            starts = [state for state in reached if self._reached(state) == reached]
            solved = self._eliminated(reached, targets, starts)
            self._between.update({(state, targets): solved[state] for state in starts})
            return solved[start]
        memo: dict[tuple[frozenset[int], int], int] = {}
        ends = self._exactly(reached, count, targets, memo)
        short = [self._exactly(frozenset((start,)), size, targets, memo) for size in range(count)]
        return self._store.union([self._system.then(self._anything, ends), *short])

    def _reached(self, start: int) -> frozenset[int]:
        if start not in self._reaches:
            reached = {start}
            todo = [start]
            while todo:
                new = set(self.steps[todo.pop()]) - reached
                reached |= new
                todo.extend(new)
            self._reaches[start] = frozenset(reached)
        return self._reaches[start]

    def _eliminated(
        self, states: frozenset[int], targets: frozenset[int], starts: Iterable[int]
    ) -> dict[int, int]:
        rows: dict[int, dict[int, int]] = {}
        for state in states:
            edges = self._edges(frozenset((state,)))
            rows[state] = {next(iter(to)): term for to, term in edges.items()}
        names = {state: -1 - state for state in starts}  # no state's number
        rows.update({name: {state: self._store.EMPTY} for state, name in names.items()})
        constants = dict.fromkeys(states & targets, self._store.EMPTY)
        wanted = dict.fromkeys(names.values(), self._store.NOTHING)
        solved = self._system.solve(rows, constants, wanted)
        return {state: solved[name] for state, name in names.items()}

    def _deciding_count(self, states: frozenset[int], targets: frozenset[int]) -> int | None:
        """How many last characters tell if one of `targets` is reached; None when no few do."""
        level = {states}
        for count in range(_MAX_DECIDING + 1):
            if all(each <= targets or not each & targets for each in level):
                return count
            level = {
                frozenset(self.steps[state][number] for state in each)
                for each in level
                for number in range(len(self.parts))
            }
            if len(level) > MAX_CONTEXTS:
                return None
        return None

    def _exactly(
        self,
        states: frozenset[int],
        size: int,
        targets: frozenset[int],
        memo: dict[tuple[frozenset[int], int], int],
    ) -> int:
        """The texts of `size` characters that lead from all of `states` into `targets`."""
        store = self._store
        if not size:
            return store.EMPTY if states <= targets else store.NOTHING
        key = (states, size)
        if key not in memo:
            following = self._edges(states)
            memo[key] = store.union(
                [
                    self._system.then(term, self._exactly(to, size - 1, targets, memo))
                    for to, term in following.items()
                ]
            )
        return memo[key]

    def _edges(self, states: frozenset[int]) -> dict[frozenset[int], int]:
        """Where one character leads from all of `states`, and by which characters."""
        found: dict[frozenset[int], int] = {}
        for number, part in enumerate(self.parts):
            to = frozenset(self.steps[state][number] for state in states)
            found[to] = found.get(to, 0) | part
        return {to: self._alphabet.term(mask) for to, mask in found.items()}


def _after(store: TermStore, term: int, char: bytes) -> int:
    for byte in char:
        term = store.derivative(term, byte)
    return term


def left_contexts(store: TermStore, languages: Sequence[int], alphabet: Alphabet) -> Contexts:
    """The contexts that tell in which of some languages the text before a place is.

    Args:
        languages: regular terms; fact n of a context is whether its texts are in language n.
        alphabet: of characters that the languages do not tell apart.

    Raises:
        TooManyContexts: see `MAX_CONTEXTS`.
    """
    states, steps = _explored(
        [tuple(languages)],
        lambda state: (
            tuple(_after(store, term, char) for term in state) for char in alphabet.samples
        ),
        most=MAX_STATES,
    )
    facts = [tuple(store.is_nullable(term) for term in state) for state in states]
    # States that no question and no further character tells apart are one context.
    classes = _numbered(facts)
    while True:
        refined = _numbered(
            [(classes[state], *(classes[to] for to in row)) for state, row in enumerate(steps)]
        )
        if max(refined) == max(classes):
            break
        classes = refined
    if max(classes) >= MAX_CONTEXTS:
        raise TooManyContexts
    members = [classes.index(number) for number in range(max(classes) + 1)]
    rows = [[classes[to] for to in steps[member]] for member in members]
    return Contexts(store, alphabet, rows, [facts[member] for member in members], backwards=False)


def _explored(
    first: Iterable[_Key], following: Callable[[_Key], Iterable[_Key]], *, most: int
) -> tuple[list[_Key], list[list[int]]]:
    """The states that can be reached, breadth first, and for each the numbers of those that follow
    it.

    Raises:
        TooManyContexts: there are more than `most`.
    """
    numbers = {state: number for number, state in enumerate(dict.fromkeys(first))}
    states = list(numbers)
    rows: list[list[int]] = []
    for state in states:
        row = [numbers.setdefault(to, len(numbers)) for to in following(state)]
        states += islice(numbers, len(states), None)
        if len(states) > most:
            raise TooManyContexts
        rows.append(row)
    return states, rows


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def right_contexts(store: TermStore, languages: Sequence[int], alphabet: Alphabet) -> Contexts:
    """As `left_contexts`, for the text after a place."""
    terms, forwards = _explored(
        languages,
        lambda term: (_after(store, term, char) for char in alphabet.samples),
        most=MAX_STATES,
    )
    # A context is the set of residuals that contain what follows; a character before it leads to
    # those residuals that the character takes into the set.
    columns = [[row[number] for row in forwards] for number in range(len(alphabet.samples))]
    sets, steps = _explored(
        [frozenset(number for number, term in enumerate(terms) if store.is_nullable(term))],
        lambda each: (
            frozenset(number for number, to in enumerate(column) if to in each)
            for column in columns
        ),
        most=MAX_CONTEXTS,
    )
    numbers = {term: number for number, term in enumerate(terms)}
    asked = [numbers[term] for term in languages]
    facts = [tuple(number in each for number in asked) for each in sets]
    return Contexts(store, alphabet, steps, facts, backwards=True)
