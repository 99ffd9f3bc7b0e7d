"""Terms of nodes that assert nothing, and what is known of them without asking the store.

Every answer takes time linear in the node; what is asked of the same node again is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grammaton.errors import LimitExceeded
from grammaton.grammar.regex.alphabet import Alphabet
from grammaton.grammar.regex.contexts import Contexts
from grammaton.grammar.regex.nodes import Alt, Cat, Chars, Empty, Node, Repeat
from grammaton.grammar.regex.ranges import ANY

if TYPE_CHECKING:
    from grammaton._core import TermStore


class Terms:
    """Makes terms in one store, of the classes of an alphabet."""

    def __init__(self, store: TermStore, alphabet: Alphabet) -> None:
        self.store = store
        self.alphabet = alphabet
        self.anything = store.repeat(store.chars(ANY), 0, None)

    def plain(self, node: Node) -> int:
        """The texts of a node that asserts nothing."""
        store = self.store
        if isinstance(node, Empty):
            return store.EMPTY
        if isinstance(node, Chars):
            return store.chars(node.ranges)
        if isinstance(node, Repeat):
            return store.repeat(self.plain(node.body), node.min, node.max)
        if isinstance(node, Cat):
            return self.sequence(node.parts)
        assert isinstance(node, Alt), "only a node without assertions has a term of its own"
        words = [word for branch in node.branches if (word := _literal(branch)) is not None]
        others = [self.plain(branch) for branch in node.branches if _literal(branch) is None]
        return store.union([*([store.literals(words)] if words else []), *others])

    def sequence(self, parts: Sequence[Node]) -> int:
        """A concatenation, runs of single characters as one literal."""
        store = self.store
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
            terms.append(self.plain(part))
        if run:
            terms.append(store.literal(run.encode()))
        return store.concat(terms)

    def both(self, first: int, second: int) -> int:
        """The intersection, at once where one side is the empty text."""
        store = self.store
        for one, other in ((first, second), (second, first)):
            if one == store.EMPTY:
                return one if store.is_nullable(other) else store.NOTHING
        return store.intersect([first, second])

    def is_empty(self, term: int) -> bool:
        """Whether the language is known to be empty; not when that takes more than the limits."""
        try:
            return self.store.is_empty(term)
        except LimitExceeded:
            return False

    def nonempty(self, term: int) -> int:
        """The texts of a term but the empty one."""
        store = self.store
        if not store.is_nullable(term):
            return term
        if term == store.EMPTY:
            return store.NOTHING
        node = store.node(term)
        if node[0] == "repeat":
            _, body, low, high = node
            assert isinstance(body, int)
            assert high is None or isinstance(high, int)
            if low == 0 and not store.is_nullable(body):
                return store.repeat(body, 1, high)
        return store.intersect([term, store.complement(store.EMPTY)])

    def restricted(
        self,
        term: int,
        edge: int,
        nullable: bool,
        contexts: Contexts,
        start: int,
        targets: frozenset[int],
    ) -> int:
        """The texts of a term that lead from one context to any of some others.

        Args:
            edge: the mask of characters that hold the one of each text that `contexts` reads last.
            nullable: whether the term may have the empty text.
        """
        store = self.store
        if not targets or term == store.NOTHING:
            return store.NOTHING
        if len(targets) == len(contexts):
            return term
        deciding = contexts.deciding(targets)
        if deciding is not None and edge & deciding == edge:
            return term if start in targets or not nullable else self.nonempty(term)
        if deciding is not None and not edge & deciding:
            stays = start in targets and store.is_nullable(term)
            return store.EMPTY if stays else store.NOTHING
        return self.both(term, contexts.between(start, targets))

    def first(self, node: Node) -> tuple[int, bool]:
        """A mask that holds the first character of every text, and whether there is the empty
        text."""
        return self._edge(node, last=False)

    def last(self, node: Node) -> tuple[int, bool]:
        """A mask that holds the last character of every text, and whether there is the empty
        text."""
        return self._edge(node, last=True)

    def _edge(self, node: Node, *, last: bool) -> tuple[int, bool]:
        if isinstance(node, Chars):
            return self.alphabet.mask(node.ranges), False
        if isinstance(node, Repeat):
            if node.max == 0:
                return 0, True
            mask, nullable = self._edge(node.body, last=last)
            return mask, nullable or node.min == 0
        found = 0
        if isinstance(node, Alt):
            edges = [self._edge(branch, last=last) for branch in node.branches]
            for mask, _ in edges:
                found |= mask
            return found, any(nullable for _, nullable in edges)
        if isinstance(node, Cat):
            for part in reversed(node.parts) if last else node.parts:
                mask, nullable = self._edge(part, last=last)
                found |= mask
                if not nullable:
                    return found, False
        return found, True


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
