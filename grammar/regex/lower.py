"""From the nodes of a regular expression to a term of a store.

A node that asserts nothing denotes a set of texts, and becomes a term at once. What an assertion
means depends on where it stands, so a node that asserts is lowered *together with what follows it
to the end of the text*: a `Tail` holds the texts that may follow a place, one language for each
left context (see `contexts`). In those terms

    (?<=X) before T     is T in the contexts whose texts end with one of X, nothing elsewhere
    (?=X) before T      is (X .*) & T, and (?!X) before T is ~(X .*) & T
    R before T          is R where it leads to a context, and then T in that context

and a concatenation is lowered from its end. `^` is a look-behind for the start of the text, `$` a
look-ahead for its end, `\\b` one of each. Each node is visited a bounded number of times, so the
work and the number of terms are linear in the pattern; counted repetition is never unrolled.

Repeating something that asserts is the work of `loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError
from grammaton.grammar.regex.alphabet import Alphabet
from grammaton.grammar.regex.atomic import Settling
from grammaton.grammar.regex.contexts import Contexts, TooManyContexts, left_contexts
from grammaton.grammar.regex.loops import repeat_before
from grammaton.grammar.regex.nodes import (
    Alt,
    Anchor,
    Atomic,
    Cat,
    Chars,
    Look,
    Node,
    Repeat,
    cat,
    children,
    classes,
    length,
    looks_behind,
    repeat,
)
from grammaton.grammar.regex.ranges import ANY
from grammaton.grammar.regex.terms import Terms

if TYPE_CHECKING:
    from grammaton._core import TermStore


@dataclass(frozen=True)
class Tail:
    """What may follow a place, up to the end of the text, by the left context of the place.

    Attributes:
        terms: a language for each context.
        first: a mask that holds the first character of every text of the language; None when it
            may have the empty text or nothing is known.
    """

    terms: tuple[int, ...]
    first: tuple[int | None, ...]


class Lowering:
    """Lowers one pattern into one store.

    Args:
        store: where terms are made.
        pattern: the source, for errors.
        node: what it says.
        alphabet: of its characters, when there is one already.

    Raises:
        GrammarError: a construct that is not regular or not supported, with its span.
    """

    def __init__(
        self, store: TermStore, pattern: str, node: Node, alphabet: Alphabet | None = None
    ) -> None:
        self.store = store
        self.pattern = pattern
        if alphabet is None:
            alphabet = Alphabet(store, classes(node) if node.asserts else ())
        self.alphabet = alphabet
        self.terms = Terms(store, alphabet)
        self.anything = self.terms.anything
        self.node = Settling(self.terms, self.error).settled(node)
        behind: list[Look | Anchor] = []
        _collect_behind(self.node, behind)
        self._facts = {look: number for number, look in enumerate(dict.fromkeys(behind))}
        self.left = self._left_contexts()
        self.copies = 0

    def error(self, message: str, node: Repeat | Look | Atomic) -> GrammarError:
        """The error for a node's span; it is for the caller to raise."""
        return GrammarError(message, source=self.pattern, position=node.position, end=node.end)

    def whole(self) -> int:
        """The texts that the pattern matches from end to end."""
        if not self.node.asserts:
            return self.terms.plain(self.node)
        return self.before(self.node, self.uniform(self.store.EMPTY)).terms[0]

    def search(self) -> int:
        """The texts that contain a match of the pattern."""
        if not self.node.asserts:
            middle = self.terms.plain(self.node)
            return self.store.concat([self.anything, middle, self.anything])
        anything = repeat(Chars(ANY), 0, None)
        found = self.before(self.node, self.uniform(self.anything))
        return self._run_before([anything], found).terms[0]

    def uniform(self, term: int) -> Tail:
        """A tail that is the same everywhere."""
        return Tail((term,) * len(self.left), (None,) * len(self.left))

    def holds(self, look: Look | Anchor, context: int) -> bool:
        """Whether something that looks behind holds in a left context."""
        negative = isinstance(look, Look) and look.negative
        return self.left.facts[context][self._facts[look]] != negative

    def ahead(self, look: Look | Anchor) -> tuple[int, ...]:
        """The texts that may follow where something that looks ahead holds, by left context."""
        store = self.store
        if isinstance(look, Anchor):
            newline = store.repeat(store.literal(b"\n"), 0, 1)
            term = store.EMPTY if look.kind == "end" else newline
            return (term,) * len(self.left)
        terms = self.before(look.body, self.uniform(self.anything)).terms
        return tuple(map(store.complement, terms)) if look.negative else terms

    def before(self, node: Node, tail: Tail) -> Tail:
        """The texts of a node and then of a tail, by the context in which the node stands."""
        if not node.asserts:
            return self._run_before([node], tail)
        if isinstance(node, Cat):
            return self._cat_before(node, tail)
        if isinstance(node, Alt):
            return self.union([self.before(branch, tail) for branch in node.branches])
        if isinstance(node, Repeat):
            return repeat_before(self, node, tail)
        assert isinstance(node, Look | Anchor), "atomic groups are settled before"
        if looks_behind(node):
            nothing = self.store.NOTHING
            held = [self.holds(node, context) for context in range(len(self.left))]
            terms = zip(held, tail.terms, strict=True)
            return Tail(tuple(term if here else nothing for here, term in terms), tail.first)
        return self._ahead_before(node, tail)

    def union(self, tails: Sequence[Tail]) -> Tail:
        """The texts of any of the tails."""
        terms = zip(*(tail.terms for tail in tails), strict=True)
        firsts = zip(*(tail.first for tail in tails), strict=True)
        return Tail(
            tuple(self.store.union(list(each)) for each in terms),
            tuple(
                None if None in each else reduce(or_, (first for first in each if first), 0)
                for each in firsts
            ),
        )

    def _ahead_before(self, node: Look | Anchor, tail: Tail) -> Tail:
        if isinstance(node, Look) and isinstance(node.body, Chars):
            allowed = self.alphabet.mask(node.body.ranges)
            if node.negative:
                allowed ^= self.alphabet.all
            firsts = [first for first in tail.first if first is not None]
            if len(firsts) == len(self.left) and all(
                first & allowed in (0, first) for first in firsts
            ):
                pairs = zip(firsts, tail.terms, strict=True)
                terms = [term if first & allowed else self.store.NOTHING for first, term in pairs]
                return Tail(tuple(terms), tail.first)
        pairs = zip(self.ahead(node), tail.terms, strict=True)
        return Tail(tuple(self.terms.both(ahead, term) for ahead, term in pairs), tail.first)

    def _cat_before(self, node: Cat, tail: Tail) -> Tail:
        stop = len(node.parts)
        while stop:
            start = stop - 1
            if node.parts[start].asserts:
                tail = self.before(node.parts[start], tail)
            else:
                while start and not node.parts[start - 1].asserts:
                    start -= 1
                tail = self._run_before(node.parts[start:stop], tail)
            stop = start
        return tail

    def _run_before(self, parts: Sequence[Node], tail: Tail) -> Tail:
        """Parts that assert nothing and then a tail: one by one from the end, until the tail no
        longer depends on the context, then the rest at once."""
        for at in range(len(parts), 0, -1):
            if len(set(tail.terms)) == 1:
                term = self.store.concat([self.terms.sequence(parts[:at]), tail.terms[0]])
                first, nullable = self.terms.first(cat(parts[:at]))
                return Tail(
                    (term,) * len(self.left),
                    tuple(_first(first, nullable, after) for after in tail.first),
                )
            part = parts[at - 1]
            if isinstance(part, Alt):
                tail = self.union([self._run_before([branch], tail) for branch in part.branches])
            elif isinstance(part, Cat):
                tail = self._run_before(part.parts, tail)
            else:
                tail = self._plain_before(part, tail)
        return tail

    def _plain_before(self, node: Node, tail: Tail) -> Tail:
        store = self.store
        goals: dict[int, set[int]] = {}
        for context, term in enumerate(tail.terms):
            if term != store.NOTHING:
                goals.setdefault(term, set()).add(context)
        first, nullable = self.terms.first(node)
        terms = []
        for context in range(len(self.left)):
            ways = [
                store.concat([self.restricted(node, context, frozenset(goal)), term])
                for term, goal in goals.items()
            ]
            terms.append(store.union(ways))
        return Tail(tuple(terms), tuple(_first(first, nullable, after) for after in tail.first))

    def restricted(self, node: Node, context: int, targets: frozenset[int]) -> int:
        """The texts of a node that asserts nothing which lead from a left context to others."""
        terms = self.terms
        if isinstance(node, Chars):
            row = zip(self.left.parts, self.left.steps[context], strict=True)
            hit = sum(part for part, to in row if to in targets)
            return self.alphabet.term(self.alphabet.mask(node.ranges) & hit)
        last, nullable = terms.last(node)
        return terms.restricted(terms.plain(node), last, nullable, self.left, context, targets)

    # Contexts

    def _left_contexts(self) -> Contexts:
        store = self.store
        looks = list(self._facts)
        languages = [self._behind(look) for look in looks]
        try:
            return left_contexts(store, languages, self.alphabet)
        except TooManyContexts:
            look = next(look for look in looks if isinstance(look, Look))
            raise self.error(
                "look-behind is not supported where it tells so many texts apart; this is the "
                "first of the pattern",
                look,
            ) from None

    def _behind(self, look: Look | Anchor) -> int:
        """The texts at whose end a look-behind holds, negation aside."""
        if isinstance(look, Anchor):
            return self.store.EMPTY
        ahead = _unsettled(look.body, 0)
        if ahead is not None:
            raise self.error(
                "a look-behind that looks ahead beyond its own end is not supported", look
            )
        anything = repeat(Chars(ANY), 0, None)
        node = cat([anything, look.body])
        return Lowering(self.store, self.pattern, node, self.alphabet).whole()


def edge_term(store: TermStore, node: Node, *, search: bool) -> int | None:
    """The texts that a pattern matches, or (`search`) in which it is found, where all that its
    branches assert is that they start at the start or end at the end; None for other patterns.

    Most patterns are such. They need no contexts, which are most of the work otherwise.
    """
    terms = Terms(store, Alphabet(store, ()))
    ways = []
    for branch in node.branches if isinstance(node, Alt) else [node]:
        parts = branch.parts if isinstance(branch, Cat) else (branch,)
        first, last = 0, len(parts)
        while first < last and isinstance(parts[first], Anchor) and parts[first] == _START:
            first += 1
        while last > first and isinstance(parts[last - 1], Anchor) and parts[last - 1] == _END:
            last -= 1
        if any(part.asserts for part in parts[first:last]):
            return None
        way = [terms.sequence(parts[first:last])]
        if search and not first:
            way.insert(0, terms.anything)
        if search and last == len(parts):
            way.append(terms.anything)
        ways.append(store.concat(way))
    return store.union(ways)


_START, _END = Anchor("start"), Anchor("end")


def _collect_behind(node: Node, found: list[Look | Anchor]) -> None:
    """What looks behind in a node, but not what stands in another look-behind."""
    if isinstance(node, Look | Anchor) and looks_behind(node):
        found.append(node)
    elif node.asserts:
        for child in children(node):
            _collect_behind(child, found)


def _unsettled(node: Node, following: int) -> Node | None:
    """Something in a node that looks ahead further than the node goes on, `following` characters
    at least coming after it."""
    if isinstance(node, Cat):
        for part in reversed(node.parts):
            if (found := _unsettled(part, following)) is not None:
                return found
            following += length(part)[0]
        return None
    if isinstance(node, Look):
        sight = length(node.body)[1]
        if not node.behind and (sight is None or sight > following):
            return node
        return None if node.behind else _unsettled(node.body, 0)
    if isinstance(node, Anchor):
        needed = {"start": 0, "end": 1, "end_or_newline": 2}[node.kind]
        return node if needed > following else None
    for child in children(node):
        if (found := _unsettled(child, following)) is not None:
            return found
    return None


def _first(first: int, nullable: bool, after: int | None) -> int | None:
    if not nullable:
        return first
    return None if after is None else first | after
