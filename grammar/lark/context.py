"""Look-around that reaches beyond a terminal: rules by the surroundings in which they stand.

A *state* is what matters of the surroundings at a place of a text: which of the sets that some
terminal looks back for hold the character before, and what terminals before the place need of the
text after it. A rule from one state to another is a rule of its own; only those that can be reached
are made. A terminal leads from a state to the states in which its texts, split accordingly, leave
it. This is the product of the grammar with an automaton (Bar-Hillel), so it is exact; rules are
multiplied by at most the square of the number of states, which is two or three in real grammars.

Needs that no text follows are settled by the end: only negative ones hold there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import (
    Alt,
    Chars,
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
from grammaton.grammar.lark.needs import NO_NEEDS, After, Pieces, Settling
from grammaton.grammar.regex.ranges import Ranges

if TYPE_CHECKING:
    from grammaton._core import TermStore

MAX_ROUNDS = 64
"""Rounds of a counted repetition whose body changes the state."""


@dataclass(frozen=True)
class State:
    """The surroundings of a place.

    Attributes:
        last: the sets, of those looked back for, that hold the character before.
        after: what must follow.
    """

    last: frozenset[Ranges]
    after: frozenset[After]


Ways = dict[State, Node]
"""For each state that can be reached, the texts that lead there."""

FIRST = State(frozenset(), frozenset())


def in_context(
    settling: Settling, rules: Rules, start: str, pieces: dict[str, Pieces]
) -> tuple[Rules, str]:
    """The rules by state, and the name of the start among them.

    Args:
        settling: of the store that the terms are in.
        rules: the rules of the grammar.
        start: the rule that is the whole text.
        pieces: the terminals among the rules, and what they need.

    Raises:
        UnsupportedKeyword: a part with calls in it (a schema) where something is needed of it.
    """
    return _Context(settling, rules, pieces).whole(start)


class _Context:
    def __init__(self, settling: Settling, rules: Rules, pieces: dict[str, Pieces]) -> None:
        self._settling = settling
        self._store: TermStore = settling.store
        self._old = rules.by_name
        self._pieces = pieces
        self._looked_back_for = sorted(
            {need.ranges for states in pieces.values() for before, _ in states for need in before}
        )
        self._steps: dict[tuple[object, State], Ways] = {}
        self._exits: dict[tuple[str, State], set[State]] = {}
        self._users: dict[tuple[str, State], set[tuple[str, State]]] = {}
        self._numbers: dict[State, int] = {FIRST: 0}
        self._made: dict[tuple[object, ...], dict[State, str]] = {}
        self._rules = Rules()

    def whole(self, start: str) -> tuple[Rules, str]:
        self._find_exits(start)
        for (name, state), exits in self._exits.items():
            rule = self._old[name]
            ways = self._build(rule.body, state, rule)
            for out in exits:
                self._add(self._name(name, state, out), ways[out], rule)
        rule = self._old[start]
        ends = [
            Ref(self._name(start, FIRST, out), rule.source, rule.position, rule.end)
            for out in self._exits[start, FIRST]
            if all(need.negative for need in out.after)
        ]
        name = f"{start}#whole"
        self._add(name, alt([*ends]) if ends else Term(self._store.NOTHING, 0), rule)
        return self._rules, name

    def _add(self, name: str, body: Node, rule: Rule) -> None:
        self._rules.add(Rule(name, body, rule.source, rule.position, rule.end))

    def _name(self, name: str, state: State, out: State) -> str:
        if state == out == FIRST:
            return name
        numbers = (self._numbers.setdefault(each, len(self._numbers)) for each in (state, out))
        return "#".join([name, *map(str, numbers)])

    # Terminals

    def _atom(self, node: Node) -> tuple[object, Pieces] | None:
        """What a node matches as a terminal, with a key for it; None when it is no terminal."""
        match node:
            case Literal(text):
                return text, {NO_NEEDS: self._store.literal(text.encode())}
            case Chars(ranges):
                return ranges, {NO_NEEDS: self._store.chars(ranges)}
            case Term(term):
                return term, {NO_NEEDS: term}
            case Ref(name) if name in self._pieces:
                return (name,), self._pieces[name]
            case Ref(name) if isinstance(body := self._old[name].body, Term):
                return body.term, {NO_NEEDS: body.term}
        return None

    def _step(self, node: Node, key: object, pieces: Pieces, state: State) -> Ways:
        """Where a terminal leads from a state."""
        if (key, state) not in self._steps:
            self._steps[key, state] = self._make_step(node, pieces, state)
        return self._steps[key, state]

    def _make_step(self, node: Node, pieces: Pieces, state: State) -> Ways:
        found: dict[State, list[int]] = {}
        for (before, after), term in pieces.items():
            if not self._store.is_regular(term):
                if self._looked_back_for or state.after:
                    rule = next(iter(self._old.values()))
                    raise rule.error(
                        "a schema beside terminals that look beyond themselves is not supported",
                        kind=UnsupportedKeyword,
                    )
                return self._as_it_is(node, state)
            if any((need.ranges in state.last) == need.negative for need in before):
                continue
            for piece, left in self._settling.settle(term, state.after):
                for last, part in self._by_last(piece, state.last):
                    found.setdefault(State(last, left | after), []).append(part)
        if list(found) == [state] and found[state] == list(pieces.values()):
            return self._as_it_is(node, state)
        return {
            out: Term(self._store.union(terms), None)
            for out, terms in found.items()
            if not self._store.is_empty(self._store.union(terms))
        }

    def _as_it_is(self, node: Node, state: State) -> Ways:
        if isinstance(node, Ref) and node.name not in self._rules.by_name:
            self._rules.add(self._old[node.name])
        return {state: node}

    def _by_last(
        self, term: int, last: frozenset[Ranges]
    ) -> Iterable[tuple[frozenset[Ranges], int]]:
        """The texts of a term by which sets their last character is in."""
        if not self._looked_back_for:
            return [(last, term)]
        found = [(frozenset[Ranges](), self._settling.some(term))]
        for ranges in self._looked_back_for:
            ending = self._settling.ending_in(ranges)
            found = [
                split
                for held, part in found
                for split in (
                    (held | {ranges}, self._settling.meet(part, ending)),
                    (held, self._settling.without(part, ending)),
                )
                if split[1] != self._store.NOTHING
            ]
        if self._store.is_nullable(term):
            found.append((last, self._store.EMPTY))
        return found

    # Which states a rule leads to

    def _find_exits(self, start: str) -> None:
        self._exits[start, FIRST] = set()
        queue = [(start, FIRST)]
        waiting = {(start, FIRST)}
        while queue:
            key = queue.pop()
            waiting.discard(key)
            new: list[tuple[str, State]] = []
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
        self, node: Node, states: set[State], user: tuple[str, State], new: list[tuple[str, State]]
    ) -> set[State]:
        """The states that a node leads to, as far as is known; rules not met before are `new`."""
        atom = self._atom(node)
        if atom is not None:
            return {out for state in states for out in self._step(node, *atom, state)}
        match node:
            case Ref(name):
                found: set[State] = set()
                for state in states:
                    key = name, state
                    if key not in self._exits:
                        self._exits[key] = set()
                        new.append(key)
                    self._users.setdefault(key, set()).add(user)
                    found |= self._exits[key]
                return found
            case Seq(parts):
                for part in parts:
                    states = self._reach(part, states, user, new)
                return states
            case Alt(branches):
                several = [self._reach(branch, states, user, new) for branch in branches]
                return set().union(*several)
            case Repeat(body, low, high):
                found = set(states) if low == 0 else set()
                seen: list[set[State]] = []
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

    def _build(self, node: Node, state: State, rule: Rule) -> Ways:
        atom = self._atom(node)
        if atom is not None:
            return self._step(node, *atom, state)
        match node:
            case Ref(name, source, position, end):
                return {
                    out: Ref(self._name(name, state, out), source, position, end)
                    for out in self._exits[name, state]
                }
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
                        "themselves is not supported",
                        kind=UnsupportedKeyword,
                    )
                return self._rounds(body, low, high, state, rule)
        raise AssertionError(node)

    def _sequence(self, parts: Sequence[Node], state: State, rule: Rule) -> Ways:
        # Forwards for the states between the parts, backwards for what is left from each: a rule of
        # its own where several ways lead on, so that nothing is written out twice.
        steps: list[dict[State, Ways]] = []
        states = {state}
        for part in parts:
            steps.append({each: self._build(part, each, rule) for each in states})
            states = {out for ways in steps[-1].values() for out in ways}
        rest: dict[State, Ways] = {each: {each: Literal("")} for each in states}
        for index in reversed(range(len(parts))):
            many = len(steps[index]) > 1 or any(len(ways) > 1 for ways in steps[index].values())
            here: dict[State, Ways] = {}
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

    def _rounds(self, body: Node, low: int, high: int | None, state: State, rule: Rule) -> Ways:
        """A repetition whose body changes the state: rules that go on to themselves."""
        key = (id(body), low, high, state)
        if key not in self._made:
            outs = self._reach(Repeat(body, low, high), {state}, (rule.name, state), [])
            self._made[key] = {
                out: f"{rule.name}#{len(self._made)}-{index}" for index, out in enumerate(outs)
            }
            ways: list[Ways] = [{state: Literal("")}] if low == 0 else []
            if high != 0:
                more = None if high is None else high - 1
                for between, node in self._build(body, state, rule).items():
                    rest = self._rounds(body, max(low - 1, 0), more, between, rule)
                    ways.append({out: _then(node, tail) for out, tail in rest.items()})
            bodies = _either(ways)
            for out, name in self._made[key].items():
                self._add(name, bodies.get(out, Term(self._store.NOTHING, 0)), rule)
        return self._mentions(self._made[key], rule)

    def _as_rules(self, key: tuple[object, ...], ways: Ways, rule: Rule) -> Ways:
        if key not in self._made:
            number = len(self._made)
            self._made[key] = {
                out: f"{rule.name}#{number}-{index}" for index, out in enumerate(ways)
            }
            for out, name in self._made[key].items():
                self._add(name, ways[out], rule)
        return self._mentions(self._made[key], rule)

    @staticmethod
    def _mentions(names: dict[State, str], rule: Rule) -> Ways:
        return {out: Ref(name, rule.source, rule.position, rule.end) for out, name in names.items()}


def _then(node: Node, rest: Node) -> Node:
    if rest == Literal(""):
        return node
    return Seq((node, rest))


def _either(several: Iterable[Ways]) -> Ways:
    found: dict[State, list[Node]] = {}
    for ways in several:
        for out, node in ways.items():
            found.setdefault(out, []).append(node)
    return {out: alt(nodes) for out, nodes in found.items()}
