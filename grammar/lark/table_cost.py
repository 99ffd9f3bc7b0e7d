"""What it takes Lark to make its LALR(1) tables, estimated before it begins.

Lark's analysis is written in Python and is quadratic, or worse, in some sizes of a grammar: minutes
for ten thousand rules that refer to each other, and gigabytes for thousands of alternatives in a
loop. It can't be interrupted. So a grammar of any size is measured first, by what the analysis goes
over: the rounds of its fixpoint (`calculate_sets`, of which this runs the same rounds on sets of
bits), the items of its states, and the entries of its table. The unit is a microsecond or so, on
one core. Python's grammar takes half a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lark.grammar import Rule, Symbol

MAX_COST = 8_000_000
"""Some seconds for the analysis."""

MAX_UNIONS = 500_000
"""Unions of sets that the estimate may take."""

# Microseconds of Lark's: a symbol of a rule in a round (thrice, as the estimate takes as long), an
# item of a state, a pair of an item and a transition, an item of the state behind a transition, a
# terminal that is told to a rule, and one that is an entry of the table; and 1 / those of a symbol
# of a slice, and of an element of a set that is copied.
_VISIT = 3
_ITEM = 4
_PAIR = 0.5
_READ = 2
_TOLD = 0.2
_ENTRY = 8
_SLICED = 5
_COPIED = 50


class TooCostly(Exception):
    """Lark would take too long."""


def check_cost(rules: Sequence[Rule], start: str) -> None:
    """Estimates the analysis of rules that Lark has written out.

    Raises:
        TooCostly: it is above `MAX_COST`.
    """
    estimate = _Estimate(rules, start)
    estimate.sets()
    estimate.states()


class _Estimate:
    def __init__(self, rules: Sequence[Rule], start: str) -> None:
        self._cost = 0.0
        self._numbers: dict[str, int] = {start: 0}
        for rule in rules:
            self._numbers.setdefault(rule.origin.name, len(self._numbers))
        count = len(self._numbers)
        terminals: dict[str, int] = {"$END": 0}

        def number(symbol: Symbol) -> int:
            """That of a nonterminal, or for a terminal one below zero."""
            if symbol.is_term:
                return ~terminals.setdefault(symbol.name, len(terminals))
            return self._numbers[symbol.name]

        self._rules = [
            (self._numbers[rule.origin.name], [number(symbol) for symbol in rule.expansion])
            for rule in rules
        ]
        self._nullable = [False] * count
        self._first = [0] * count
        self._follow = [0] * count
        self._follow[0] = 1

    def _spend(self, cost: float) -> None:
        self._cost += cost
        if self._cost > MAX_COST:
            raise TooCostly(f"over {MAX_COST / 1e6:.0f} seconds by estimate")

    def _first_of(self, symbol: int) -> int:
        return self._first[symbol] if symbol >= 0 else 1 << ~symbol

    def _is_nullable(self, symbol: int) -> bool:
        return symbol >= 0 and self._nullable[symbol]

    # Rounds of the fixpoint, in Lark's order, on which their number depends

    def sets(self) -> None:
        """What may begin a rule and what may follow it, counted as Lark finds it."""
        while self._round_of_firsts():
            pass
        while self._round_of_follows():
            pass

    def _round_of_firsts(self) -> bool:
        changed = False
        for origin, expansion in self._rules:
            if not self._nullable[origin] and all(map(self._is_nullable, expansion)):
                self._nullable[origin] = changed = True
            for symbol in expansion:
                changed |= self._add(self._first, origin, self._first_of(symbol))
                if not self._is_nullable(symbol):
                    break
        return changed

    def _round_of_follows(self) -> bool:
        changed = False
        for origin, expansion in self._rules:
            size = len(expansion)
            self._spend(size * size / 2 * _VISIT + size**3 / 6 / _SLICED)
            for at, symbol in enumerate(expansion):
                if symbol < 0:
                    continue
                for after in expansion[at + 1 :]:
                    changed |= self._add(self._follow, symbol, self._first_of(after))
                    if not self._is_nullable(after):
                        break
                else:
                    changed |= self._add(self._follow, symbol, self._follow[origin])
        return changed

    def _add(self, sets: list[int], at: int, more: int) -> bool:
        known = sets[at]
        sets[at] = known | more
        self._spend(_VISIT + known.bit_count() / _COPIED)
        return sets[at] != known

    # States and their look-ahead

    def states(self) -> None:
        """The items, transitions and look-ahead of the states, one for each way to begin the rules
        of a nonterminal."""
        corners = self._corners()
        followed = [self._follow[origin].bit_count() for origin, _ in self._rules]
        sizes = [each.bit_count() for each in corners]
        next_items = [
            sizes[rest[0]] if symbol and symbol[0] >= 0 and rest and rest[0] >= 0 else 0
            for symbol, rest in ((expansion[:1], expansion[1:]) for _, expansion in self._rules)
        ]
        self._spend(sum(followed) * _ENTRY)
        known: dict[int, float] = {}
        for state in self._begun(corners):
            if state not in known:
                self._spend(state.bit_count() * _ITEM)
                rules = list(_bits(state))
                origins = {self._rules[rule][0] for rule in rules}
                known[state] = (
                    len(rules) * _ITEM
                    + len(rules) * len(origins) * _PAIR
                    + sum(next_items[rule] for rule in rules) * _READ
                    + sum(followed[rule] for rule in rules) * _TOLD
                )
            self._spend(known[state])

    def _begun(self, corners: list[int]) -> Iterable[int]:
        """The rules that begin in each state."""
        nodes: dict[tuple[int, int], int] = {}
        begun: dict[int, int] = {0: corners[0]}  # the state before the text
        for origin, expansion in self._rules:
            at = -1 - origin
            for symbol, after in pairwise(expansion):
                at = nodes.setdefault((at, symbol), len(nodes) + 1)
                if after >= 0:
                    begun[at] = begun.get(at, 0) | corners[after]
        return begun.values()

    def _corners(self) -> list[int]:
        """For each nonterminal, the rules by which something in its place may begin."""
        corners = [0] * len(self._numbers)
        users: list[set[int]] = [set() for _ in corners]
        for index, (origin, expansion) in enumerate(self._rules):
            corners[origin] |= 1 << index
            if expansion and expansion[0] >= 0:
                users[expansion[0]].add(origin)
        pending = list(range(len(corners)))
        unions = 0
        while pending:
            top = pending.pop()
            unions += len(users[top])
            if unions > MAX_UNIONS:
                raise TooCostly(f"over {MAX_UNIONS} ways from rule to rule")
            for user in users[top]:
                more = corners[user] | corners[top]
                if more != corners[user]:
                    corners[user] = more
                    pending.append(user)
        return corners


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
