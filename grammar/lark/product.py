"""The product of a grammar's rules with an automaton whose states are those of places of a text.

What a part of a text may be can depend on the *state* of the place where it begins, and then leads
to other states: what has been looked ahead for, say, or whether a line's indentation is still to
come. A rule from one state to another is a rule of its own; only those that can be reached are made
(Bar-Hillel's construction). So rules are multiplied by at most the square of the number of states,
which is two or three in real grammars. Who derives from `Product` says where a *leaf* leads, a
part without rules inside, and from which state to which a rule is *entered* and left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from grammaton._core import TermStore
from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import (
    Alt,
    Literal,
    Node,
    Ref,
    Repeat,
    Rule,
    Rules,
    Seq,
    Term,
    alt,
)

MAX_ROUNDS = 64
"""Rounds of a counted repetition whose body changes the state."""

S = TypeVar("S")


@dataclass(frozen=True)
class Entry(Generic[S]):
    """How a part that holds a rule is entered.

    Attributes:
        ref: the mention of the rule.
        state: where the rule begins.
        wrap: the part, for a mention of the rule from one state to another.
        leave: the state after the part, by that at the end of the rule.
    """

    ref: Ref
    state: S
    wrap: Callable[[Ref], Node]
    leave: Callable[[S], S]


class Product(ABC, Generic[S]):
    """Rules by state. The names of those that are made have `_sign` in them.

    Args:
        rules: the rules of the grammar.
        first: the state at the start of a text.
    """

    _sign = "#"

    def __init__(self, rules: Rules, first: S) -> None:
        self._old = rules.by_name
        self._first = first
        self._exits: dict[tuple[str, S], set[S]] = {}
        self._users: dict[tuple[str, S], set[tuple[str, S]]] = {}
        self._numbers: dict[S, int] = {first: 0}
        self._made: dict[tuple[object, ...], dict[S, str]] = {}
        self._asked: dict[S, dict[int, Node]] = {}
        """By state, the leaves and entered parts that are met in it, by their identity."""
        self._rules = Rules()

    @abstractmethod
    def _leaf(self, node: Node, state: S) -> Mapping[S, Node] | None:
        """Where a part without rules leads; None when it is none."""

    def _entered(self, node: Node, state: S) -> Entry[S] | None:
        """How a part that holds a rule is entered; None when it is none."""
        if isinstance(node, Ref):
            return Entry(node, state, lambda ref: ref, lambda out: out)
        return None

    @abstractmethod
    def _may_end(self, state: S) -> bool:
        """Whether a text may end in a state."""

    def _merge_states(self) -> bool:
        """Whether some states stand for others from now on; those met are in `_asked`."""
        return False

    def _make_whole(self, start: str) -> str:
        """Makes the rules that `start` needs, and returns the name of the one for whole texts."""
        self._find_exits(start)
        if self._merge_states():
            self._exits.clear()
            self._users.clear()
            self._find_exits(start)
        for (name, state), exits in self._exits.items():
            rule = self._old[name]
            ways = self._build(rule.body, state, rule)
            for out in exits:
                body = ways[out]
                self._rules.add(replace(rule, name=self._name(name, state, out), body=body))
        rule = self._old[start]
        ends = [
            Ref(self._name(start, self._first, out), rule.source, rule.position, rule.end)
            for out in self._exits[start, self._first]
            if self._may_end(out)
        ]
        name = f"{start}{self._sign}whole"
        self._add(name, alt([*ends]) if ends else Term(TermStore.NOTHING, 0), rule)
        return name

    def _add(self, name: str, body: Node, rule: Rule) -> None:
        self._rules.add(Rule(name, body, rule.source, rule.position, rule.end))

    def _name(self, name: str, state: S, out: S) -> str:
        if state == out == self._first:
            return name
        numbers = (self._numbers.setdefault(each, len(self._numbers)) for each in (state, out))
        return self._sign.join([name, *map(str, numbers)])

    # Which states a rule leads to

    def _find_exits(self, start: str) -> None:
        self._exits[start, self._first] = set()
        queue = [(start, self._first)]
        waiting = {(start, self._first)}
        while queue:
            key = queue.pop()
            waiting.discard(key)
            new: list[tuple[str, S]] = []
            found = self._reach(self._old[key[0]].body, {key[1]}, key, new)
            more = list(new)
            if found != self._exits[key]:
                self._exits[key] = found
                more += self._users.get(key, ())
            for each in more:
                if each not in waiting:
                    waiting.add(each)
                    queue.append(each)

    def _reach(
        self, node: Node, states: set[S], user: tuple[str, S], new: list[tuple[str, S]]
    ) -> set[S]:
        """The states that a node leads to, as far as is known; rules not met before are `new`."""
        found: set[S] = set()
        others: set[S] = set()
        for state in states:
            leaf = self._leaf(node, state)
            if leaf is not None:
                self._asked.setdefault(state, {})[id(node)] = node
                found |= set(leaf)
                continue
            entry = self._entered(node, state)
            if entry is None:
                others.add(state)
                continue
            if entry.ref is not node:
                self._asked.setdefault(state, {})[id(node)] = node
            key = entry.ref.name, entry.state
            if key not in self._exits:
                self._exits[key] = set()
                new.append(key)
            self._users.setdefault(key, set()).add(user)
            found |= set(map(entry.leave, self._exits[key]))
        return found | self._reach_parts(node, others, user, new) if others else found

    def _reach_parts(
        self, node: Node, states: set[S], user: tuple[str, S], new: list[tuple[str, S]]
    ) -> set[S]:
        match node:
            case Seq(parts):
                for part in parts:
                    states = self._reach(part, states, user, new)
                return states
            case Alt(branches):
                several = [self._reach(branch, states, user, new) for branch in branches]
                return set().union(*several)
            case Repeat(body, low, high):
                found = set(states) if low == 0 else set()
                seen: list[set[S]] = []
                count = 0
                while count != high and states not in seen:
                    seen.append(states)
                    states = self._reach(body, states, user, new)
                    count += 1
                    if count >= low or states == seen[-1]:
                        found |= states
                return found
        raise AssertionError(node)

    # Rules by state

    def _build(self, node: Node, state: S, rule: Rule) -> dict[S, Node]:
        leaf = self._leaf(node, state)
        if leaf is not None:
            return dict(leaf)
        entry = self._entered(node, state)
        if entry is not None:
            ref = entry.ref
            several = [
                {
                    entry.leave(out): entry.wrap(
                        Ref(
                            self._name(ref.name, entry.state, out),
                            ref.source,
                            ref.position,
                            ref.end,
                        )
                    )
                }
                for out in self._exits[ref.name, entry.state]
            ]
            return _either(several)
        match node:
            case Seq(parts):
                return self._sequence(parts, state, rule)
            case Alt(branches):
                several = [self._build(branch, state, rule) for branch in branches]
                return _either(several)
            case Repeat(body, low, high):
                ways = self._build(body, state, rule)
                if set(ways) <= {state}:
                    once = ways.get(state)
                    if once is None:
                        return {state: Literal("")} if low == 0 else {}
                    return {state: Repeat(once, low, high)}
                if max(low, high or 0) > MAX_ROUNDS:
                    raise rule.error(
                        f"counting to more than {MAX_ROUNDS} around terminals that look beyond "
                        "themselves, or around lines of a block, is not supported",
                        kind=UnsupportedKeyword,
                    )
                return self._rounds(body, low, high, state, rule)
        raise AssertionError(node)

    def _sequence(self, parts: Sequence[Node], state: S, rule: Rule) -> dict[S, Node]:
        # Forwards for the states between the parts, backwards for what is left from each: a rule of
        # its own where several ways lead on, so that nothing is written out twice.
        steps: list[dict[S, dict[S, Node]]] = []
        states = {state}
        for part in parts:
            steps.append({each: self._build(part, each, rule) for each in states})
            states = {out for ways in steps[-1].values() for out in ways}
        rest: dict[S, dict[S, Node]] = {each: {each: Literal("")} for each in states}
        for index in reversed(range(len(parts))):
            many = len(steps[index]) > 1 or any(len(ways) > 1 for ways in steps[index].values())
            here: dict[S, dict[S, Node]] = {}
            for each, ways in steps[index].items():
                here[each] = _either(
                    {out: _then(node, tail) for out, tail in rest[between].items()}
                    for between, node in ways.items()
                )
                if many and index:
                    key = (id(parts), index, each)
                    here[each] = self._as_rules(key, here[each], rule)
            rest = here
        return rest[state]

    def _rounds(
        self, body: Node, low: int, high: int | None, state: S, rule: Rule
    ) -> dict[S, Node]:
        """A repetition whose body changes the state: rules that go on to themselves."""
        key = (id(body), low, high, state)
        if key not in self._made:
            outs = self._reach(Repeat(body, low, high), {state}, (rule.name, state), [])
            self._made[key] = {out: self._part_name(rule, index) for index, out in enumerate(outs)}
            ways: list[Mapping[S, Node]] = [{state: Literal("")}] if low == 0 else []
            if high != 0:
                more = None if high is None else high - 1
                for between, node in self._build(body, state, rule).items():
                    rest = self._rounds(body, max(low - 1, 0), more, between, rule)
                    ways.append({out: _then(node, tail) for out, tail in rest.items()})
            bodies = _either(ways)
            for out, name in self._made[key].items():
                self._add(name, bodies.get(out, Term(TermStore.NOTHING, 0)), rule)
        return self._mentions(self._made[key], rule)

    def _part_name(self, rule: Rule, index: int) -> str:
        return f"{rule.name}{self._sign}{len(self._made)}-{index}"

    def _as_rules(self, key: tuple[object, ...], ways: dict[S, Node], rule: Rule) -> dict[S, Node]:
        if key not in self._made:
            self._made[key] = {out: self._part_name(rule, index) for index, out in enumerate(ways)}
            for out, name in self._made[key].items():
                self._add(name, ways[out], rule)
        return self._mentions(self._made[key], rule)

    @staticmethod
    def _mentions(names: dict[S, str], rule: Rule) -> dict[S, Node]:
        return {out: Ref(name, rule.source, rule.position, rule.end) for out, name in names.items()}


def _then(node: Node, rest: Node) -> Node:
    if rest == Literal(""):
        return node
    return Seq((node, rest))


def _either(several: Iterable[Mapping[S, Node]]) -> dict[S, Node]:
    found: dict[S, list[Node]] = {}
    for ways in several:
        for out, node in ways.items():
            found.setdefault(out, []).append(node)
    return {out: alt(nodes) for out, nodes in found.items()}
