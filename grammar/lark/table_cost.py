"""What it takes Lark to make its LALR(1) tables, estimated before it begins.

Lark's analysis is written in Python and is quadratic, or worse, in some sizes of a grammar: minutes
for ten thousand rules that refer to each other, and gigabytes for thousands of alternatives in a
loop. It can't be interrupted. So a grammar of any size is measured first, by what the analysis goes
over: the rounds of its fixpoint (`calculate_sets`, whose rounds are followed on sets of
bits), the items of its states, and the entries of its table. The unit is a microsecond or so, on
one core. Python's grammar takes half a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from grammaton.grammar.lark.loader import resolve
from grammaton.grammar.lark.nodes import Alt, Definition, Name, Node, Repeat, Seq

if TYPE_CHECKING:
    from lark.grammar import Rule, Symbol

MAX_COST = 8_000_000
"""Some seconds for the analysis; Python's grammar takes 0.7 of a million."""

MAX_UNIONS = 500_000
"""Unions of sets that the estimate may take."""

# Microseconds of Lark's: a symbol of a rule in a round, an item of a state, a pair of an item and a
# transition, an item of the state behind a transition, a terminal that is told to a rule, and one
# that is an entry of the table; and 1 / those of a symbol of a slice, and of an element of a set
# that is copied.
_VISIT = 2
_ITEM = 6
_PAIR = 0.8
_READ = 3
_TOLD = 0.2
_ENTRY = 4
_SLICED = 3
_COPIED = 100


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


def check_beginning(start: Definition) -> None:
    """Estimates from below, before Lark reads anything, what its first state takes: pairs of the
    rules by which the start may begin.

    Raises:
        TooCostly: it is above `MAX_COST`.
    """
    rules = {id(start)}
    nodes: list[Node] = [] if start.body is None else [start.body]
    while nodes:
        node = nodes.pop()
        match node:
            case Name() if not node.is_terminal:
                rule = resolve(node, (), arguments=None)
                if rule is not None and not rule.params and id(rule) not in rules:
                    rules.add(id(rule))
                    nodes += [] if rule.body is None else [rule.body]
            case Alt(branches):
                nodes += branches
            case Repeat(body, _, high) if high != 0:
                nodes.append(body)
            case Seq(parts):
                for part in parts:
                    nodes.append(part)
                    if not isinstance(part, Repeat) or part.min > 0:
                        break
    if len(rules) ** 2 * _PAIR > MAX_COST:
        raise TooCostly(f"it may begin with any of {len(rules)} rules")


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
        """What may begin a rule and what may follow it, counted as Lark finds it.

        Lark goes over all rules in each round; here only those are visited of which something has
        changed since, and all are paid for: a chain of ten thousand rules takes as many rounds.
        """
        self._firsts()
        self._follows()

    def _firsts(self) -> None:
        users: list[list[int]] = [[] for _ in self._first]
        for index, (_, expansion) in enumerate(self._rules):
            for symbol in expansion:
                if symbol >= 0:
                    users[symbol].append(index)
        visited = [0] * len(self._rules)
        unions = _Unions(self._first)
        due = bytearray(b"\1") * len(self._rules)
        while 1 in due:
            for index in _each_due(due):
                origin, expansion = self._rules[index]
                more = 0
                count = 0
                for symbol in expansion:
                    count += 1
                    more |= self._first_of(symbol)
                    if not self._is_nullable(symbol):
                        break
                unions.weigh(origin, count - visited[index])
                visited[index] = count
                learned = unions.add(origin, more)
                if not self._nullable[origin] and all(map(self._is_nullable, expansion)):
                    self._nullable[origin] = learned = True
                if learned:
                    for user in users[origin]:
                        due[user] = 1
            self._spend(unions.cost)
        self._spend(unions.cost)  # the round that finds nothing new

    def _follows(self) -> None:
        unions = _Unions(self._follow)
        slices = 0.0
        inherits: list[list[int]] = []
        """Of each rule the symbols that its own follow."""
        own: list[list[int]] = [[] for _ in self._follow]
        for index, (origin, expansion) in enumerate(self._rules):
            size = len(expansion)
            sliced = size * size / 2 * _VISIT + size**3 / 6 / _SLICED
            self._spend(sliced)
            slices += sliced
            inherits.append([])
            own[origin].append(index)
            for at, symbol in enumerate(expansion):
                if symbol < 0:
                    continue
                for after in expansion[at + 1 :]:
                    unions.weigh(symbol, 1)
                    unions.add(symbol, self._first_of(after))
                    if not self._is_nullable(after):
                        break
                else:
                    unions.weigh(symbol, 1)
                    inherits[index].append(symbol)
        due = bytearray(b"\1") * len(self._rules)
        while 1 in due:
            for index in _each_due(due):
                origin = self._rules[index][0]
                for symbol in inherits[index]:
                    if unions.add(symbol, self._follow[origin]):
                        for user in own[symbol]:
                            due[user] = 1
            self._spend(unions.cost)
            self._spend(slices)

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


class _Unions:
    """Sets of bits, and what a round of unions with them costs Lark.

    Attributes:
        cost: of a round in which each set is the target of as many unions as were weighed.
    """

    def __init__(self, sets: list[int]) -> None:
        self.cost = 0.0
        self._sets = sets
        self._weights = [0] * len(sets)

    def weigh(self, at: int, count: int) -> None:
        self._weights[at] += count
        self.cost += count * (_VISIT + self._sets[at].bit_count() / _COPIED)

    def add(self, at: int, more: int) -> bool:
        """Adds to a set; whether it has grown."""
        known = self._sets[at]
        if known | more == known:
            return False
        self._sets[at] = known | more
        grown = (known | more).bit_count() - known.bit_count()
        self.cost += self._weights[at] * grown / _COPIED
        return True


def _each_due(due: bytearray) -> Iterator[int]:
    """The places of those that are due, which they are then no more; more may become so."""
    at = due.find(1)
    while at >= 0:
        due[at] = 0
        yield at
        at = due.find(1, at + 1)


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
