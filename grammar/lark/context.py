"""Look-around that reaches beyond a terminal: rules by the surroundings in which they stand.

A *state* is what matters of the surroundings at a place of a text: which of the sets that some
terminal looks back for hold the character before, and what terminals before the place need of the
text after it. A terminal leads from a state to the states in which its texts, split accordingly,
leave it (product.py has the rest). States are one that nothing which can follow tells apart: a
state fewer is up to half of the rules, and of the stacks to follow.

Needs that no text follows are settled by the end: only negative ones hold there. A token that
stands for itself is no text, so the same goes before it, and nothing stands before what follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError, LimitExceeded, PlacedError, UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import (
    Chars,
    Indent,
    Literal,
    Margin,
    Node,
    Ref,
    Rules,
    Term,
    Tokens,
    alt,
)
from grammaton.grammar.lark.needs import NO_NEEDS, After, Pieces, Settling
from grammaton.grammar.lark.product import MAX_WORK, Entry, Product
from grammaton.grammar.regex.ranges import Ranges

if TYPE_CHECKING:
    from grammaton._core import TermStore


@dataclass(frozen=True)
class State:
    """The surroundings of a place.

    Attributes:
        last: the sets, of those looked back for, that hold the character before.
        after: what must follow.
    """

    last: frozenset[Ranges]
    after: frozenset[After]


MAX_COMPARED = 12
"""So many states are compared with each other."""

MAX_PARTS_COMPARED = 20_000
"""And so many parts that are met in them, in each pair of states."""

Ways = dict[State, Node]
"""For each state that can be reached, the texts that lead there."""

SPLIT_WORK = 5
"""What splitting a terminal once by what is needed of it counts as, beside `MAX_WORK`."""

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


class _Context(Product[State]):
    def __init__(self, settling: Settling, rules: Rules, pieces: dict[str, Pieces]) -> None:
        super().__init__(rules, FIRST)
        self._settling = settling
        self._store: TermStore = settling.store
        self._pieces = pieces
        self._looked_back_for = sorted(
            {need.ranges for states in pieces.values() for before, _ in states for need in before}
        )
        self._steps: dict[tuple[object, State], Ways] = {}
        self._stands_for: dict[State, State] = {}

    def whole(self, start: str) -> tuple[Rules, str]:
        name = self._make_whole(start)
        return self._rules, name

    def _too_much(self) -> PlacedError:
        name = next(name for name, some in self._pieces.items() if any(k != NO_NEEDS for k in some))
        return self._old[name].error(
            "terminals that look beyond themselves, as this one does, stand in too many different "
            f"surroundings: telling them apart takes over {MAX_WORK} steps",
            kind=LimitExceeded,
        )

    def _may_end(self, state: State) -> bool:
        return all(need.negative for need in state.after)

    # A name leaves the next keyword without a word boundary, a keyword needs one after it: where
    # nothing but punctuation can follow, one state is as good as the other.

    def _merge_states(self) -> bool:
        states = list(self._asked)
        parts = sum(len(asked) for asked in self._asked.values())
        if len(states) > MAX_COMPARED or parts > MAX_PARTS_COMPARED:
            return False
        for state in states:
            for other in states:
                if state != self._first and self._stand_in(state) != self._stand_in(other):
                    self._try_merge(self._stand_in(state), self._stand_in(other))
        return bool(self._stands_for)

    def _stand_in(self, state: State) -> State:
        while state in self._stands_for:
            state = self._stands_for[state]
        return state

    def _try_merge(self, state: State, other: State) -> None:
        if state == self._first or self._may_end(state) != self._may_end(other):
            return
        self._stands_for[state] = other
        try:
            alike = all(self._alike(node, state, other) for node in self._asked[state].values())
        except UnsupportedKeyword:
            alike = False
        if alike:
            self._asked[other] = {**self._asked[other], **self._asked[state]}
        else:
            del self._stands_for[state]

    def _alike(self, node: Node, state: State, other: State) -> bool:
        """Whether a part that is met in a state leads to the same places from another one."""
        if isinstance(node, Indent):
            return bool(state.after) == bool(other.after)
        return _said(self._leaf(node, state)) == _said(self._leaf(node, other))

    def _leaf(self, node: Node, state: State) -> Mapping[State, Node] | None:
        ways = self._ways(node, state)
        if ways is None or not self._stands_for:
            return ways
        merged: dict[State, list[Node]] = {}
        for out, part in ways.items():
            merged.setdefault(self._stand_in(out), []).append(part)
        return {out: alt(parts) for out, parts in merged.items()}

    def _ways(self, node: Node, state: State) -> Mapping[State, Node] | None:
        if isinstance(node, Tokens):
            return {FIRST: node} if self._may_end(state) else {}
        if isinstance(node, Margin):
            return self._margin(node, state)
        atom = self._atom(node)
        return None if atom is None else self._step(node, *atom, state)

    def _entered(self, node: Node, state: State) -> Entry[State] | None:
        if not isinstance(node, Indent):
            return super()._entered(node, state)
        self._check_open(state)
        blank = State(frozenset(s for s in self._looked_back_for if _holds_blanks(s)), frozenset())
        tab, most = node.tab, node.most
        return Entry(node.block, blank, lambda ref: Indent(ref, tab, most), lambda out: out)

    def _margin(self, node: Margin, state: State) -> Ways:
        """A margin leaves what is before it in sight where it is empty."""
        self._check_open(state)
        blank = State(frozenset(s for s in self._looked_back_for if _holds_blanks(s)), frozenset())
        if blank == state:
            return {state: node}
        if node.some:
            return {blank: node}
        raise UnsupportedKeyword(
            "terminals that look back at blanks or line breaks are not supported beside an indenter"
        )

    def _check_open(self, state: State) -> None:
        if state.after:
            raise UnsupportedKeyword(
                "terminals that look beyond a line break, beside an indenter, are not supported"
            )

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
                self._spend(SPLIT_WORK * (1 + len(self._looked_back_for)))
                for last, part in self._by_last(piece, state.last):
                    found.setdefault(State(last, left | after), []).append(part)
        if len(found) == 1:
            [(out, whole)] = found.items()
            if whole == list(pieces.values()):
                return self._as_it_is(node, out)
        return {
            out: self._part(node, self._store.union(terms))
            for out, terms in found.items()
            if not self._store.is_empty(self._store.union(terms))
        }

    def _part(self, node: Node, term: int) -> Node:
        """A part of a terminal, which says of its texts what the whole one does."""
        piece = Term(term, None)
        rule = self._old[node.name] if isinstance(node, Ref) else None
        if rule is None or rule.attributes is None:
            return piece
        name = f"{rule.name}{self._sign}part{len(self._rules.by_name)}"
        self._rules.add(replace(rule, name=name, body=piece))
        return Ref(name, rule.source, rule.position, rule.end)

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
        found = [(frozenset[Ranges](), term)]
        for ranges in self._looked_back_for:
            found = [
                (held | {ranges} if inside else held, half)
                for held, part in found
                for inside, half in zip(
                    (True, False), self._settling.by_last(part, ranges), strict=True
                )
                if half != self._store.NOTHING
            ]
        if self._store.is_nullable(term):
            found.append((last, self._store.EMPTY))
        return found


def _said(ways: Mapping[State, Node] | None) -> dict[State, object] | None:
    """Ways without the places where they are written."""
    if ways is None:
        return None
    return {out: part.name if isinstance(part, Ref) else part for out, part in ways.items()}


def _holds_blanks(ranges: Ranges) -> bool:
    """Whether a set holds both blanks that indent, rather than none of them."""
    held = {any(low <= code <= high for low, high in ranges) for code in (0x09, 0x20)}
    if len(held) == 2:
        raise GrammarError("a terminal looks back for one of tab and space, beside an indenter")
    return held.pop()
