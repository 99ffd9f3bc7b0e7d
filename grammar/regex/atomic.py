"""Atomic groups and possessive quantifiers, rewritten as negative look-ahead.

`(?>X)` matches the one text that `X` prefers where it stands, whatever comes after. A node is
*single* when it has at most one match at any place: it is then atomic as it is. The rewritings, C
being single, each true of ordered choice with backtracking:

    (?>X)           is X          when no text of X begins another
    (?>A|B)         is (?>A) | (?!A)(?>B)
    (?>C{m,n})      is C{n} | C{m,n-1}(?!C), and (?>C{m,n}?) is C{m}
    (?>X{m,n})      is the same with (?>X) for C, when m is 0 or 1: an iteration is never taken
                    back, since stopping after it succeeds
    (?>CX)          is C(?>X)
    (?>XY)          is (?>X)(?>Y) when Y always matches, as it may be empty
    (?>C{m,n}X)     is C{m,n}(?>X) when nothing starts with one of C and with one of X: the number
                    of iterations is then settled by the text

What fits none of them is refused. Whether a text begins another is asked of nodes without their
assertions, which match more, so an answer of no holds for them as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError
from grammaton.grammar.regex.nodes import (
    Alt,
    Atomic,
    Cat,
    Chars,
    Empty,
    Look,
    Node,
    Repeat,
    alt,
    cat,
    length,
    not_followed_by,
    plain,
    repeat,
)
from grammaton.grammar.regex.ranges import ANY

if TYPE_CHECKING:
    from grammaton.grammar.regex.terms import Terms

MAX_REWRITTEN = 200
"""Atomic groups in a pattern, each counted as often as rewriting copies it."""


class Settling:
    """Takes the atomic groups out of the nodes of a pattern.

    Args:
        terms: what makes terms, to ask which texts begin others.
        refuse: makes the error for an atomic group.
    """

    def __init__(self, terms: Terms, refuse: Callable[[str, Atomic], GrammarError]) -> None:
        self._terms = terms
        self._refuse = refuse
        self._rewritten = 0

    def settled(self, node: Node) -> Node:
        """A node without atomic groups that matches the same texts.

        Raises:
            GrammarError: an atomic group that no rewriting fits.
        """
        if not node.asserts:
            return node
        if isinstance(node, Cat):
            return cat([self.settled(part) for part in node.parts])
        if isinstance(node, Alt):
            return alt([self.settled(branch) for branch in node.branches])
        if isinstance(node, Repeat):
            body = self.settled(node.body)
            return Repeat(body, node.min, node.max, node.position, node.end, body.asserts)
        if isinstance(node, Look):
            body = self.settled(node.body)
            return Look(node.behind, node.negative, body, node.position, node.end)
        return self._atomic(node) if isinstance(node, Atomic) else node

    def _atomic(self, node: Atomic) -> Node:
        self._rewritten += 1
        if self._rewritten > MAX_REWRITTEN:
            raise self._refuse("atomic groups and possessive quantifiers are nested too deep", node)
        rewritten = _Atomics(self._terms, node).rewrite(node.body)
        if rewritten is None:
            raise self._refuse(
                "which match this atomic group or possessive quantifier keeps is not settled by a "
                "look ahead, so it is not supported",
                node,
            )
        return self.settled(rewritten)


class _Atomics:
    """Rewrites one atomic group."""

    def __init__(self, terms: Terms, group: Atomic) -> None:
        self._terms = terms
        self._store = terms.store
        self._span = (group.position, group.end)

    def rewrite(self, node: Node) -> Node | None:
        """A node that matches the preferred match of `node`; None when no rewriting fits."""
        if self._single(node):
            return node
        if isinstance(node, Alt):
            return self._choice(node)
        if isinstance(node, Repeat):
            return self._repetition(node)
        return self._sequence(node.parts) if isinstance(node, Cat) else None

    def _choice(self, node: Alt) -> Node | None:
        branches: list[Node] = []
        for number, branch in enumerate(node.branches):
            atomic = self.rewrite(branch)
            if atomic is None:
                return None
            failed = [not_followed_by(other, *self._span) for other in node.branches[:number]]
            branches.append(cat([*failed, atomic]))
        return alt(branches)

    def _repetition(self, node: Repeat) -> Node | None:
        low, high = node.min, node.max
        if node.lazy and low == 0:
            return Empty()
        if not length(node.body)[0]:
            return None  # an empty round may be tried, and no look ahead tells where
        body: Node | None = node.body
        if not self._single(node.body):
            body = self.rewrite(node.body) if low <= 1 and not node.lazy else None
        if body is None:
            return None
        if node.lazy:
            return repeat(body, low, low)
        more = not_followed_by(node.body, *self._span)
        if high is None:
            return cat([repeat(body, low, None), more])
        if low == high:
            return repeat(body, low, low)
        return alt([repeat(body, high, high), cat([repeat(body, low, high - 1), more])])

    def _sequence(self, parts: tuple[Node, ...]) -> Node | None:
        head, rest = parts[0], cat(parts[1:])
        if self._single(head):
            first: Node | None = head
        elif self._always(rest):
            first = self.rewrite(head)
        elif (
            isinstance(head, Repeat)
            and self._single(head.body)
            and self._disjoint(plain(head.body), plain(rest))
        ):
            first = head
        else:
            return None
        after = self.rewrite(rest)
        return None if first is None or after is None else cat([first, after])

    def _always(self, node: Node) -> bool:
        """Whether a node matches at any place, whatever comes after."""
        return not node.asserts and self._store.is_nullable(self._terms.plain(node))

    def _single(self, node: Node) -> bool:
        if isinstance(node, Chars | Empty | Atomic) or length(node) == (0, 0):
            return True
        if isinstance(node, Cat) and all(map(self._single, node.parts)):
            return True
        if isinstance(node, Repeat) and node.min == node.max and self._single(node.body):
            return True
        low, high = length(node)
        if low == high:
            return True
        text = self._terms.plain(plain(node))
        some = self._store.chars(ANY)
        longer = self._store.concat([text, some, self._terms.anything])
        return self._terms.is_empty(self._store.intersect([text, longer]))

    def _disjoint(self, one: Node, other: Node) -> bool:
        """Whether no text starts with one of `one` and with one of `other`."""
        starts = [
            self._store.concat([self._terms.plain(each), self._terms.anything])
            for each in (one, other)
        ]
        return self._terms.is_empty(self._store.intersect(starts))
