"""The product of a grammar's rules with an automaton whose states are those of places of a text.

What a part of a text may be can depend on the *state* of the place where it begins, and then leads
to other states: what has been looked ahead for, say, or whether a line's indentation is still to
come. A rule from one state to another is a rule of its own; only those that can be reached are made
(Bar-Hillel's construction). So rules are multiplied by at most the square of the number of states,
which is two or three in real grammars. Who derives from `Product` says where a *leaf* leads, a
part without rules inside, and from which state to which a rule is *entered* and left.

Which states a part leads to is a least fixpoint, found by telling each fact, once, to whoever waits
for it (`_Waiting`). Making the rules then goes over each part and state once. Cost: linear in the
facts (a part, the state before it, one after it), up to `MAX_WORK` of them, some ten microseconds
each. A rule that is entered in a new state waits until all that is known has been told, and what it
will take at least counts as spent already: so thousands of states are refused at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from grammaton._core import TermStore
from grammaton.errors import PlacedError, UnsupportedKeyword
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

MAX_WORK = 500_000
"""Facts that are told, and parts that are made, for one grammar: some seconds."""

S = TypeVar("S", bound=Hashable)


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


@dataclass
class _Waiting(Generic[S]):
    """A part and the state before it: the states after it, as far as they are known, and who is
    to be told of more."""

    outs: dict[S, None] = field(default_factory=dict)
    told: list[Callable[[S], None]] = field(default_factory=list)


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
        self._entered_rules: dict[tuple[str, S], _Waiting[S]] = {}
        self._parts: dict[tuple[int, int, S], _Waiting[S]] = {}
        """By the identity of a node, which the rules keep alive, and where in it."""
        self._queue: list[Callable[[], None]] = []
        self._bodies: deque[tuple[str, S]] = deque()
        """The rules, by the states in which they are entered, that are still to be followed."""
        self._least: dict[str, int] = {}
        self._owed = 0
        """Facts that following these will take at least."""
        self._numbers: dict[S, int] = {first: 0}
        self._built: dict[tuple[int, S], dict[S, Node]] = {}
        self._rests: dict[tuple[int, int, S], dict[S, Node]] = {}
        """What is left of a sequence from a part and a state on."""
        self._made: dict[tuple[object, ...], dict[S, str]] = {}
        self._unmade: list[Callable[[], None]] = []
        """Makes the bodies of rules that have their names, so that rounds need no recursion."""
        self._asked: dict[S, dict[int, Node]] = {}
        """By state, the leaves and entered parts that are met in it, by their identity."""
        self._rules = Rules()
        self._work = 0

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

    @abstractmethod
    def _too_much(self) -> PlacedError:
        """The error when there is more to make than `MAX_WORK`; it is for the caller to raise."""

    def _merge_states(self) -> bool:
        """Whether some states stand for others from now on; those met are in `_asked`."""
        return False

    def _spend(self, work: int = 1) -> None:
        self._work += work
        if self._work + self._owed > MAX_WORK:
            raise self._too_much()

    def _make_whole(self, start: str) -> str:
        """Makes the rules that `start` needs, and returns the name of the one for whole texts."""
        whole = self._find_exits(start)
        if self._merge_states():
            self._entered_rules.clear()
            self._parts.clear()
            whole = self._find_exits(start)
        for (name, state), exits in self._entered_rules.items():
            rule = self._old[name]
            ways = self._build(rule.body, state, rule)
            for out in exits.outs:
                body = ways.get(out, Term(TermStore.NOTHING, 0))
                self._rules.add(replace(rule, name=self._name(name, state, out), body=body))
        while self._unmade:
            self._unmade.pop()()
        rule = self._old[start]
        ends = [
            Ref(self._name(start, self._first, out), rule.source, rule.position, rule.end)
            for out in whole.outs
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

    # Which states a part leads to

    def _find_exits(self, start: str) -> _Waiting[S]:
        whole = self._rule_from(start, self._first)
        while self._queue or self._bodies:
            if self._queue:
                self._queue.pop()()
            else:
                self._follow(*self._bodies.popleft())
        return whole

    def _follow(self, name: str, state: S) -> None:
        found = self._entered_rules[name, state]
        self._owed -= self._least[name]
        self._reach(self._old[name].body, state, lambda out: self._tell(found, out))

    def _tell(self, part: _Waiting[S], out: S) -> None:
        """Notes that a part leads to a state."""
        if out in part.outs:
            return
        part.outs[out] = None
        for tell in part.told:
            self._later(tell, out)

    def _later(self, tell: Callable[[S], None], out: S) -> None:
        self._spend()
        self._queue.append(lambda: tell(out))

    def _wait(self, part: _Waiting[S], tell: Callable[[S], None]) -> None:
        part.told.append(tell)
        for out in part.outs:
            self._later(tell, out)

    def _rule_from(self, name: str, state: S) -> _Waiting[S]:
        key = name, state
        if key not in self._entered_rules:
            self._entered_rules[key] = _Waiting()
            if name not in self._least:
                self._least[name] = _first_parts(self._old[name].body)
            self._owed += self._least[name]
            self._bodies.append(key)
        return self._entered_rules[key]

    def _reach(self, node: Node, state: S, tell: Callable[[S], None]) -> None:
        """Has the states told that a part leads to from another, now or later."""
        self._spend()
        leaf = self._leaf(node, state)
        if leaf is not None:
            self._asked.setdefault(state, {})[id(node)] = node
            for out in leaf:
                self._later(tell, out)
            return
        entry = self._entered(node, state)
        if entry is not None:
            if entry.ref is not node:
                self._asked.setdefault(state, {})[id(node)] = node
            leave = entry.leave
            self._wait(self._rule_from(entry.ref.name, entry.state), lambda out: tell(leave(out)))
            return
        self._reach_part(node, 0, state, tell)

    def _reach_part(self, node: Node, at: int, state: S, tell: Callable[[S], None]) -> None:
        """The same for a sequence from its part `at` on, a choice or a repetition."""
        key = id(node), at, state
        known = self._parts.get(key)
        if known is not None:
            self._wait(known, tell)
            return
        part = self._parts[key] = _Waiting(told=[tell])
        match node:
            case Seq(parts) if at == len(parts):
                self._tell(part, state)
            case Seq(parts):
                self._reach(
                    parts[at],
                    state,
                    lambda between: self._reach_part(
                        node, at + 1, between, lambda out: self._tell(part, out)
                    ),
                )
            case Alt(branches):
                for branch in branches:
                    self._reach(branch, state, lambda out: self._tell(part, out))
            case Repeat(body, low, high):
                if at >= min(low, _last_round(node)):
                    self._tell(part, state)
                if at != high:
                    self._reach(
                        body,
                        state,
                        lambda between: self._reach_part(
                            node, _following(node, at), between, lambda out: self._tell(part, out)
                        ),
                    )
            case _:
                raise AssertionError(node)

    # Rules by state

    def _build(self, node: Node, state: S, rule: Rule) -> dict[S, Node]:
        """The texts of a part by the state that they lead to."""
        key = id(node), state
        if key not in self._built:
            self._built[key] = self._make(node, state, rule)
            self._spend(1 + len(self._built[key]))
        return self._built[key]

    def _make(self, node: Node, state: S, rule: Rule) -> dict[S, Node]:
        leaf = self._leaf(node, state)
        if leaf is not None:
            return dict(leaf)
        entry = self._entered(node, state)
        if entry is not None:
            ref = entry.ref
            exits = self._entered_rules.get((ref.name, entry.state), _Waiting[S]()).outs
            return _either(
                {entry.leave(out): entry.wrap(replace(ref, name=name))}
                for out in exits
                for name in [self._name(ref.name, entry.state, out)]
            )
        match node:
            case Seq():
                return self._sequence(node, state, rule)
            case Alt(branches):
                return _either(self._build(branch, state, rule) for branch in branches)
            case Repeat():
                return self._rounds(node, 0, state, rule)
        raise AssertionError(node)

    def _sequence(self, node: Seq, state: S, rule: Rule) -> dict[S, Node]:
        """A run of parts that lead on in one way each stands as it is. Where one leads on in
        several, what is from there on is a rule for each state at the end, so that nothing is
        written out twice."""
        runs: dict[tuple[int, S], tuple[list[Node], int, S]] = {}
        queue = [(0, state)]
        for at, begun in queue:  # which grows meanwhile
            if (at, begun) in runs or (id(node), at, begun) in self._rests:
                continue
            runs[at, begun] = _, end, here = self._run(node, at, begun, rule)
            if end < len(node.parts):
                queue += [(end + 1, out) for out in self._build(node.parts[end], here, rule)]
        for (at, begun), (run, end, here) in sorted(runs.items(), key=lambda each: -each[0][0]):
            ways = self._fork(node, end, here, rule, inline=end == 0)
            self._rests[id(node), at, begun] = {out: _then(run, rest) for out, rest in ways.items()}
        return self._rests[id(node), 0, state]

    def _run(self, node: Seq, at: int, state: S, rule: Rule) -> tuple[list[Node], int, S]:
        """The parts from a place on that lead on in one way, and the place where they end."""
        run: list[Node] = []
        while at < len(node.parts):
            self._spend()
            ways = self._build(node.parts[at], state, rule)
            if len(ways) != 1:
                break
            ((state, part),) = ways.items()
            run.append(part)
            at += 1
        return run, at, state

    def _fork(self, node: Seq, at: int, state: S, rule: Rule, *, inline: bool) -> Mapping[S, Node]:
        """What is from a place on that leads on in several ways, or is the end."""
        if at == len(node.parts):
            return {state: Literal("")}
        key = id(node), at, state
        if key in self._made:
            return self._mentions(self._made[key], rule)
        ways = _either(
            {out: _then([part], rest)}
            for between, part in self._build(node.parts[at], state, rule).items()
            for out, rest in self._rests[id(node), at + 1, between].items()
        )
        self._spend(len(ways))
        if inline:
            return ways
        self._made[key] = {out: self._part_name(rule, index) for index, out in enumerate(ways)}
        for out, name in self._made[key].items():
            self._add(name, ways[out], rule)
        return self._mentions(self._made[key], rule)

    def _rounds(self, node: Repeat, at: int, state: S, rule: Rule) -> dict[S, Node]:
        """A repetition after some rounds; where its body changes the state, rules that go on to
        themselves."""
        low = max(node.min - at, 0)
        high = None if node.max is None else node.max - at
        if high == 0:
            return {state: Literal("")}
        ways = self._build(node.body, state, rule)
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
        key = id(node), at, state
        if key not in self._made:
            outs = self._parts[key].outs
            self._made[key] = {out: self._part_name(rule, index) for index, out in enumerate(outs)}
            self._unmade.append(lambda: self._make_rounds(node, at, state, rule))
        return self._mentions(self._made[key], rule)

    def _make_rounds(self, node: Repeat, at: int, state: S, rule: Rule) -> None:
        several: list[Mapping[S, Node]] = [{state: Literal("")}] if at >= node.min else []
        for between, part in self._build(node.body, state, rule).items():
            rest = self._rounds(node, _following(node, at), between, rule)
            several.append({out: _then([part], tail) for out, tail in rest.items()})
        bodies = _either(several)
        self._spend(len(bodies))
        for out, name in self._made[id(node), at, state].items():
            self._add(name, bodies[out], rule)

    def _part_name(self, rule: Rule, index: int) -> str:
        return f"{rule.name}{self._sign}{len(self._made)}-{index}"

    @staticmethod
    def _mentions(names: dict[S, str], rule: Rule) -> dict[S, Node]:
        return {out: Ref(name, rule.source, rule.position, rule.end) for out, name in names.items()}


def _first_parts(node: Node) -> int:
    """The parts that are reached from the beginning of one at least, itself counted."""
    match node:
        case Alt(branches):
            return 1 + sum(map(_first_parts, branches))
        case Seq((first, *_)):
            return 1 + _first_parts(first)
        case Repeat(body, _, high) if high != 0:
            return 1 + _first_parts(body)
    return 1


def _last_round(node: Repeat) -> int:
    """How many rounds are told apart; where counts are too large for that, only one from none."""
    rounds = node.min if node.max is None else node.max
    return rounds if rounds <= MAX_ROUNDS else 1


def _following(node: Repeat, at: int) -> int:
    """The rounds after one more, as far as they are told apart."""
    return min(at + 1, _last_round(node))


def _then(parts: list[Node], rest: Node) -> Node:
    if not parts or rest != Literal(""):
        parts = [*parts, rest]
    return parts[0] if len(parts) == 1 else Seq(tuple(parts))


def _either(several: Iterable[Mapping[S, Node]]) -> dict[S, Node]:
    found: dict[S, list[Node]] = {}
    for ways in several:
        for out, node in ways.items():
            found.setdefault(out, []).append(node)
    return {out: alt(nodes) for out, nodes in found.items()}
