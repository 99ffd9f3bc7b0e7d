"""From the nodes of a regular expression to a term of a store.

A node that asserts nothing denotes a set of texts, and becomes a term at once. What an anchor or a
look-ahead means depends on where it stands, so a node that asserts is lowered *together with what
follows it to the end of the text*: a `Tail` holds two languages, the rest of the text after a place
that is the start of the text and after any other place. In those terms

    ^ before T          is T at the start, nothing elsewhere
    $ before T          is the empty text, if T has it
    (?=X) before T      is (X .*) & T, and (?!X) before T is ~(X .*) & T

and a concatenation is lowered from its end. Each node is visited a bounded number of times, so the
work and the number of terms are linear in the pattern; counted repetition is never unrolled.

Repeating something that asserts is a fixpoint. With anchors alone it is reached in a few rounds,
since an anchor leaves next to nothing on one side of it; `((?!x).)*` at the end of the text has a
closed form. Other look-ahead under a repetition is refused, and so are repetitions of anchors that
are nested or counted (`?` is no repetition in this sense).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError
from grammaton.grammar.regex.nodes import (
    Alt,
    Anchor,
    Cat,
    Chars,
    Empty,
    LookAhead,
    Node,
    Repeat,
    alt,
    cat,
)
from grammaton.grammar.regex.ranges import ANY

if TYPE_CHECKING:
    from grammaton._core import TermStore


@dataclass(frozen=True)
class Tail:
    """What may follow a place, up to the end of the text, as terms.

    Attributes:
        inside: when at least one character stands before the place.
        at_start: when none does; it may hold texts that `inside` does not (`^`) and lack some
            that it holds (`(?!^)`).
    """

    inside: int
    at_start: int


class Lowering:
    """Lowers the nodes of one pattern into one store."""

    def __init__(self, store: TermStore, pattern: str) -> None:
        self._store = store
        self._pattern = pattern
        self._anything = store.repeat(store.chars(ANY), 0, None)

    def whole(self, node: Node) -> int:
        """The texts that the pattern matches from end to end."""
        if not node.asserts:
            return self._plain(node)
        end = Tail(self._store.EMPTY, self._store.EMPTY)
        return self._before(node, end).at_start

    def search(self, node: Node) -> int:
        """The texts that contain a match of the pattern."""
        if not node.asserts:
            return self._store.concat([self._anything, self._plain(node), self._anything])
        found = self._before(node, Tail(self._anything, self._anything))
        return self._plain_before(self._anything, found).at_start

    def _plain(self, node: Node) -> int:
        store = self._store
        if isinstance(node, Empty):
            return store.EMPTY
        if isinstance(node, Chars):
            return store.chars(node.ranges)
        if isinstance(node, Repeat):
            return store.repeat(self._plain(node.body), node.min, node.max)
        if isinstance(node, Cat):
            return self._sequence(node.parts)
        assert isinstance(node, Alt)
        words = [word for branch in node.branches if (word := _literal(branch)) is not None]
        others = [self._plain(branch) for branch in node.branches if _literal(branch) is None]
        return store.union([*([store.literals(words)] if words else []), *others])

    def _sequence(self, parts: Sequence[Node]) -> int:
        """A concatenation, runs of single characters as one literal."""
        store = self._store
        terms: list[int] = []
        run = ""
        for part in parts:
            char = _single(part)
            if char is not None:
                run += char
                continue
            if run:
                terms.append(store.literal(run.encode()))
                run = ""
            terms.append(self._plain(part))
        if run:
            terms.append(store.literal(run.encode()))
        return store.concat(terms)

    def _before(self, node: Node, tail: Tail) -> Tail:
        """The texts of a node and then of a tail, by where the node stands."""
        store = self._store
        if not node.asserts:
            return self._plain_before(self._plain(node), tail)
        if isinstance(node, Cat):
            return self._cat_before(node, tail)
        if isinstance(node, Alt):
            return self._union([self._before(branch, tail) for branch in node.branches])
        if isinstance(node, Repeat):
            return self._repeat_before(node, tail)
        if isinstance(node, LookAhead):
            ahead = self._before(node.body, Tail(self._anything, self._anything))
            inside, at_start = ahead.inside, ahead.at_start
            if node.negative:
                inside, at_start = store.complement(inside), store.complement(at_start)
            return Tail(
                store.intersect([inside, tail.inside]),
                store.intersect([at_start, tail.at_start]),
            )
        assert isinstance(node, Anchor)
        if node.kind == "start":
            return Tail(store.NOTHING, tail.at_start)
        newline = node.kind == "end_or_newline"
        return Tail(self._ended(tail.inside, newline), self._ended(tail.at_start, newline))

    def _ended(self, tail: int, newline: bool) -> int:
        """The texts of a tail that are empty, or a newline when that counts as the end."""
        store = self._store
        if not newline or tail == store.EMPTY:
            return store.EMPTY if store.is_nullable(tail) else store.NOTHING
        return store.intersect([tail, store.repeat(store.literal(b"\n"), 0, 1)])

    def _plain_before(self, term: int, tail: Tail) -> Tail:
        store = self._store
        inside = store.concat([term, tail.inside])
        if tail.inside == tail.at_start:
            return Tail(inside, inside)
        if not store.is_nullable(term):
            return Tail(inside, inside)
        # Only the empty text of `term` leaves the place at the start, where less may be allowed
        # than elsewhere: the two ways are kept apart.
        consumed = store.intersect([term, store.complement(store.EMPTY)])
        return Tail(inside, store.union([store.concat([consumed, tail.inside]), tail.at_start]))

    def _cat_before(self, node: Cat, tail: Tail) -> Tail:
        stop = len(node.parts)
        while stop:
            start = stop - 1
            if node.parts[start].asserts:
                tail = self._before(node.parts[start], tail)
            else:
                while start and not node.parts[start - 1].asserts:
                    start -= 1
                tail = self._plain_before(self._sequence(node.parts[start:stop]), tail)
            stop = start
        return tail

    def _repeat_before(self, node: Repeat, tail: Tail) -> Tail:
        if node.max == 0:
            return tail
        if node.max == 1:
            once = self._before(node.body, tail)
            return once if node.min else self._union([tail, once])
        if node.max is not None or node.min > 1:
            raise self._refusal("counting", node)
        plain = _without_anchors(node.body)
        if plain is not None:
            many = self._anchored_star(node.body, self._plain(plain), tail)
            return self._before(node.body, many) if node.min else many
        return self._tempered(node, tail)

    def _anchored_star(self, body: Node, plain: int, tail: Tail) -> Tail:
        """`body*` and then a tail; `plain` is `body` where no anchor holds.

        Inside the text an iteration is plain until an anchor at the end holds. At most two such
        iterations matter, one before a final newline and one after it: any others take nothing. At
        the start of the text the first iteration that takes something is the only one that can be
        unlike the rest.
        """
        store = self._store
        star = store.repeat(plain, 0, None)
        inside = store.concat([star, tail.inside])
        for _ in range(2):
            once = self._before(body, Tail(inside, inside)).inside
            inside = store.concat([star, store.union([tail.inside, once])])
        first = self._before(body, Tail(inside, tail.at_start)).at_start
        return Tail(inside, store.union([tail.at_start, first]))

    def _tempered(self, node: Repeat, tail: Tail) -> Tail:
        """`((?!x).)*` up to the end of the text: nowhere does what is left start with x."""
        store = self._store
        body = node.body
        if (
            isinstance(body, Cat)
            and len(body.parts) == 2
            and isinstance(look := body.parts[0], LookAhead)
            and look.negative
            and isinstance(char := body.parts[1], Chars)
            and tail == Tail(store.EMPTY, store.EMPTY)
        ):
            ahead = self._before(look.body, Tail(self._anything, self._anything))
            if ahead.inside == ahead.at_start and not store.is_nullable(ahead.inside):
                found = store.concat([self._anything, ahead.inside])
                run = store.repeat(store.chars(char.ranges), node.min, None)
                term = store.intersect([run, store.complement(found)])
                return Tail(term, term)
        raise self._refusal("repeating", node)

    def _refusal(self, doing: str, node: Repeat) -> GrammarError:
        return GrammarError(
            f"{doing} a group with an anchor or a look-ahead inside is not supported here",
            source=self._pattern,
            position=node.position,
            end=node.end,
        )

    def _union(self, tails: Sequence[Tail]) -> Tail:
        return Tail(
            self._store.union([tail.inside for tail in tails]),
            self._store.union([tail.at_start for tail in tails]),
        )


def _without_anchors(node: Node) -> Node | None:
    """What a node matches where no anchor holds; None when a look-ahead or a loop asserts in it."""
    if not node.asserts:
        return node
    if isinstance(node, Anchor):
        return Chars(())
    if isinstance(node, Repeat) and node.max == 1:
        body = _without_anchors(node.body)
        return None if body is None else Repeat(body, node.min, 1, node.position, node.end, False)
    if isinstance(node, Cat | Alt):
        parts = node.parts if isinstance(node, Cat) else node.branches
        changed = [_without_anchors(part) for part in parts]
        whole = [part for part in changed if part is not None]
        if len(whole) < len(parts):
            return None
        return cat(whole) if isinstance(node, Cat) else alt(whole)
    return None


def _single(node: Node) -> str | None:
    """The one character that a node matches, if that is all it does."""
    if isinstance(node, Chars) and len(node.ranges) == 1:
        low, high = node.ranges[0]
        if low == high and not 0xD800 <= low <= 0xDFFF:
            return chr(low)
    return None


def _literal(node: Node) -> bytes | None:
    """The one text that a node matches, if that is all it does."""
    if isinstance(node, Cat):
        chars = [_single(part) for part in node.parts]
        if any(char is None for char in chars):
            return None
        return "".join(char for char in chars if char is not None).encode()
    char = _single(node)
    return None if char is None else char.encode()
