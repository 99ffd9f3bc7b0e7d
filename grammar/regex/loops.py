"""Repeating what asserts: `(\\bx\\b )*`, `((?!x).)*`, `((?!-)[a-z-]+(?<!-)\\.)+`.

Inside a repetition what follows an iteration is more of the same, so nothing can be lowered from
the end. Instead a place has a *context of both sides*: its left context, and a context of the right
that tells which of the look-aheads in the body hold there. A node is then a matrix of languages:
the texts of the node that lead from one context to another, each left context being stepped
forwards and each right context backwards over them. Concatenation is the product of matrices, union
their sum, and `body*` before a tail is the least solution of `Z = tail | M · Z`.

Contexts that the matrix does not tell apart are merged before. What is left is mostly one, and then
the repetition is an ordinary one, counted or not, of the only language left in the matrix; if not,
elimination solves it, and a count is unrolled as long as that stays small.

A body that is a negative look-ahead and one character, as in `((?!x).)*`, has a form of its own
where the tail cannot be confused with more iterations: `.*` less what has an x in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from grammaton.grammar.regex.contexts import (
    System,
    TooManyContexts,
    right_contexts,
)
from grammaton.grammar.regex.nodes import (
    Alt,
    Anchor,
    Cat,
    Chars,
    Look,
    Node,
    Repeat,
    cat,
    looks_behind,
    not_empty,
    takes_nothing,
)

if TYPE_CHECKING:
    from grammaton.grammar.regex.lower import Lowering, Tail

MAX_CELLS = 1_024
"""Of a matrix: contexts of both sides, squared, that a repetition may need."""
MAX_UNKNOWNS = 10
"""Of a system of equations: what is left of the contexts after merging. Elimination can make terms
of a size exponential in them; patterns in use leave one or two."""
MAX_COPIES = 1_000
"""How often what asserts is copied to unroll a counted repetition of it."""

Place = tuple[int, int]
"""A context of both sides: the numbers of the left and of the right one."""
Matrix = dict[Place, dict[Place, int]]
"""The texts, by where they lead from and to; what is missing is nothing."""


def repeat_before(lowering: Lowering, node: Repeat, tail: Tail) -> Tail:
    """The texts of a repetition whose body asserts, and then of a tail.

    Raises:
        GrammarError: the assertions in the body, or the count, are more than can be carried.
    """
    if node.max == 0:
        return tail
    if node.max == 1:
        once = lowering.before(node.body, tail)
        return once if node.min else lowering.union([tail, once])
    tempered = _tempered(lowering, node, tail)
    if tempered is not None:
        return tempered
    loop: _Loop | None
    try:
        loop = _Loop(lowering, node.body)
    except TooManyContexts:
        loop = None
    if loop is not None and (closed := loop.counted(node.min, node.max, tail)) is not None:
        return closed
    if node.max is None and (loop is None or not loop.solvable):
        raise lowering.error(
            "repeating a group with look-around inside that tells so many texts apart is not "
            "supported",
            node,
        )
    result = tail if loop is None or node.max is not None else loop.star(tail)
    # A round of no text adds nothing to fewer rounds, which each of these has beside it anyway:
    # written out, it would be one more way to read every text of every round after it.
    least = 0 if takes_nothing(node.body) else node.min
    some = not_empty(node.body)
    for _ in range(0 if node.max is None else node.max - least):
        following = lowering.union([tail, _copy(lowering, node, some, result)])
        if following == result:
            break
        result = following
    for _ in range(least):
        following = _copy(lowering, node, node.body, result)
        if following == result:
            break
        result = following
    return result


def _copy(lowering: Lowering, node: Repeat, body: Node, tail: Tail) -> Tail:
    """The body of a repetition once, and a tail; a copy more in the count of the pattern's."""
    lowering.copies += 1
    if lowering.copies > MAX_COPIES:
        raise lowering.error(
            f"counting more than {MAX_COPIES} rounds of a group with look-around inside is not "
            "supported here; a repetition without end is",
            node,
        )
    return lowering.before(body, tail)


def _tempered(lowering: Lowering, node: Repeat, tail: Tail) -> Tail | None:
    """`((?!x)C)*` before a tail: C* and the tail, less the texts where some character of the run
    has an x ahead. Right where a text is cut into run and tail in one way at most."""
    store = lowering.store
    body = node.body
    if not (isinstance(body, Cat) and isinstance(char := body.parts[-1], Chars)):
        return None
    looks = body.parts[:-1]
    if not all(isinstance(look, Look) and look.negative and not look.behind for look in looks):
        return None
    if len(set(tail.terms)) > 1:
        return None
    after = tail.terms[0]
    found: list[int] = []
    for look in looks:
        assert isinstance(look, Look)
        ahead = set(lowering.before(look.body, lowering.uniform(lowering.anything)).terms)
        if len(ahead) > 1:
            return None
        found.extend(ahead)
    one = store.chars(char.ranges)
    run = store.repeat(one, 0, None)
    longer = store.concat([one, run, after])
    if not lowering.terms.is_empty(lowering.terms.both(longer, after)):
        return None
    if after == store.EMPTY and not any(store.is_nullable(term) for term in found):
        wrong = store.concat([lowering.anything, store.union(found)])
    else:
        wrong = store.concat([run, store.intersect([store.union(found), longer])])
    counted = store.concat([store.repeat(one, node.min, node.max), after])
    return lowering.uniform(store.intersect([counted, store.complement(wrong)]))


class _Loop:
    """The matrix of a body.

    Raises:
        TooManyContexts: see `MAX_CELLS`.
    """

    def __init__(self, lowering: Lowering, body: Node) -> None:
        self._lowering = lowering
        self._store = lowering.store
        self._left = lowering.left
        aheads: list[Look | Anchor] = []
        _collect_ahead(body, aheads)
        self._asked: dict[tuple[Look | Anchor, int], int] = {}
        languages: list[int] = []
        for look in dict.fromkeys(aheads):
            for context, term in enumerate(lowering.ahead(look)):
                self._asked[look, context] = len(languages)
                languages.append(term)
        self._right = right_contexts(self._store, languages, lowering.alphabet)
        self._places = [
            (left, right) for left in range(len(self._left)) for right in range(len(self._right))
        ]
        if len(self._places) ** 2 > MAX_CELLS:
            raise TooManyContexts
        self._one_decides = all(
            side.deciding(frozenset((context,))) is not None
            for side in (self._left, self._right)
            for context in range(len(side))
            if len(side) > 1
        )
        self._system = System(self._store)
        self._merge(self._matrix(body))

    # Matrices

    def _matrix(self, node: Node) -> Matrix:
        if isinstance(node, Chars):
            return self._character(node)
        whole = self._one_decides or not isinstance(node, Cat | Alt)
        if not node.asserts and whole:
            return self._cells(node)
        if isinstance(node, Cat):
            parts = _runs(node.parts) if self._one_decides else node.parts
            return self._product([self._matrix(part) for part in parts])
        if isinstance(node, Alt):
            return self._sum(self._matrix(branch) for branch in node.branches)
        if isinstance(node, Repeat):
            return self._power(node)
        assert isinstance(node, Look | Anchor), "atomic groups are settled before"
        return {
            place: {place: self._store.EMPTY} for place in self._places if self._on(node, place)
        }

    def _on(self, node: Look | Anchor, place: Place) -> bool:
        left, right = place
        number = self._asked.get((node, left))
        if number is None:
            return self._lowering.holds(node, left)
        return self._right.facts[right][number]

    def _character(self, node: Chars) -> Matrix:
        alphabet = self._lowering.alphabet
        masks: dict[Place, dict[Place, int]] = {}
        for at, part in enumerate(self._left.parts):
            for number, other in enumerate(self._right.parts):
                mask = alphabet.mask(node.ranges) & part & other
                if not mask:
                    continue
                for left, row in enumerate(self._left.steps):
                    for to, line in enumerate(self._right.steps):
                        found = masks.setdefault((left, line[number]), {})
                        found[row[at], to] = found.get((row[at], to), 0) | mask
        return {
            place: {to: alphabet.term(mask) for to, mask in row.items()}
            for place, row in masks.items()
        }

    def _cells(self, node: Node) -> Matrix:
        """The matrix of a node that asserts nothing, by what is known of its texts' ends."""
        terms = self._lowering.terms
        first, nullable = terms.first(node)
        matrix: Matrix = {}
        for left in range(len(self._left)):
            for to_left in range(len(self._left)):
                way = self._lowering.restricted(node, left, frozenset((to_left,)))
                if way == self._store.NOTHING:
                    continue
                for right in range(len(self._right)):
                    for to_right in range(len(self._right)):
                        both = terms.restricted(
                            way, first, nullable, self._right, to_right, frozenset((right,))
                        )
                        if both != self._store.NOTHING and not (
                            self._one_decides and terms.is_empty(both)
                        ):
                            matrix.setdefault((left, right), {})[to_left, to_right] = both
        return matrix

    def _product(self, matrices: Sequence[Matrix]) -> Matrix:
        result = matrices[-1]
        for matrix in reversed(matrices[:-1]):
            product: Matrix = {}
            for place, row in matrix.items():
                sums: dict[Place, list[int]] = {}
                for middle, term in row.items():
                    for to, other in result.get(middle, {}).items():
                        sums.setdefault(to, []).append(self._store.concat([term, other]))
                if sums:
                    product[place] = {to: self._store.union(ways) for to, ways in sums.items()}
            result = product
        return result

    def _sum(self, matrices: Iterable[Matrix]) -> Matrix:
        result: Matrix = {}
        for matrix in matrices:
            for place, row in matrix.items():
                line = result.setdefault(place, {})
                for to, term in row.items():
                    line[to] = self._store.union([line[to], term]) if to in line else term
        return result

    def _identity(self) -> Matrix:
        return {place: {place: self._store.EMPTY} for place in self._places}

    def _power(self, node: Repeat) -> Matrix:
        """The matrix of a repetition inside the body."""
        once = self._matrix(node.body)
        copies = node.min if node.max is None else node.max
        if copies > MAX_COPIES // 10:
            raise TooManyContexts
        result = self._identity()
        if node.max is None:
            result = self._closure(once)
        else:
            for _ in range(node.max - node.min):
                result = self._sum([self._identity(), self._product([once, result])])
        for _ in range(node.min):
            result = self._product([once, result])
        return result

    def _closure(self, matrix: Matrix) -> Matrix:
        """Any number of rounds: for each place they may end at, one system, whose unknowns are
        what leads there from each place. What is asked for has keys of its own, marked 1."""
        store = self._store
        if len(matrix) > MAX_UNKNOWNS:
            raise TooManyContexts
        rows: dict[tuple[int, Place], dict[tuple[int, Place], int]] = {
            (mark, place): {(0, to): term for to, term in row.items()}
            for place, row in matrix.items()
            for mark in (0, 1)
        }
        result: Matrix = self._identity()
        for to in self._places:
            wanted = {(1, place): store.EMPTY if place == to else store.NOTHING for place in matrix}
            solved = self._system.solve(rows, {(0, to): store.EMPTY}, wanted)
            for (_, place), term in solved.items():
                if term != store.NOTHING:
                    result[place][to] = term
        return result

    # Equations

    def _merge(self, matrix: Matrix) -> None:
        """Keeps the matrix by groups of places to which all rows lead in the same way."""
        columns: dict[tuple[tuple[Place, int], ...], list[Place]] = {}
        for to in self._places:
            column = tuple((place, row[to]) for place, row in matrix.items() if to in row)
            if column:
                columns.setdefault(column, []).append(to)
        self._groups = list(columns.values())
        self._ways = [
            [self._row(matrix, group, targets) for targets in self._groups]
            for group in self._groups
        ]
        self._entries = [
            [
                self._row(matrix, [(left, right) for right in range(len(self._right))], targets)
                for targets in self._groups
            ]
            for left in range(len(self._left))
        ]

    def _row(self, matrix: Matrix, places: Sequence[Place], targets: Sequence[Place]) -> int:
        """The texts that lead from any of some places to a group."""
        rows = [matrix.get(place, {}) for place in places]
        return self._store.union([row[targets[0]] for row in rows if targets[0] in row])

    def _constant(self, tail: Tail, places: Sequence[Place]) -> int:
        """The texts of the tail in any of some places."""
        sides: dict[int, set[int]] = {}
        for left, right in places:
            sides.setdefault(left, set()).add(right)
        ways = []
        for left, rights in sides.items():
            term = tail.terms[left]
            if len(rights) < len(self._right):
                term = self._lowering.terms.both(term, self._right.between(0, frozenset(rights)))
            ways.append(term)
        return self._store.union(ways)

    @property
    def solvable(self) -> bool:
        """Whether `star` may be asked."""
        return len(self._groups) <= MAX_UNKNOWNS

    def counted(self, low: int, high: int | None, tail: Tail) -> Tail | None:
        """The repetition and a tail, when every round leads to the same group; else None."""
        store = self._store
        if len(self._groups) > 1:
            return None
        if not self._groups:  # no round ever ends
            return tail if low == 0 else self._lowering.uniform(store.NOTHING)
        rounds = store.repeat(self._ways[0][0], max(low - 1, 0), None if high is None else high - 1)
        following = store.concat([rounds, self._constant(tail, self._groups[0])])
        return self._tail(
            [
                store.union(
                    [
                        *([tail.terms[left]] if low == 0 else []),
                        store.concat([self._entries[left][0], following]),
                    ]
                )
                for left in range(len(self._left))
            ]
        )

    def star(self, tail: Tail) -> Tail:
        """Any number of rounds and then a tail."""
        numbered = range(len(self._groups))
        rows = {group: self._line(self._ways[group]) for group in numbered}
        constants = {group: self._constant(tail, self._groups[group]) for group in numbered}
        wanted = {}
        for left in range(len(self._left)):
            rows[-1 - left] = self._line(self._entries[left])
            wanted[-1 - left] = tail.terms[left]
        solved = self._system.solve(rows, constants, wanted)
        return self._tail([solved[-1 - left] for left in range(len(self._left))])

    def _line(self, terms: Sequence[int]) -> dict[int, int]:
        return {to: term for to, term in enumerate(terms) if term != self._store.NOTHING}

    def _tail(self, terms: Sequence[int]) -> Tail:
        uniform = self._lowering.uniform(self._store.NOTHING)
        return type(uniform)(tuple(terms), uniform.first)


def _collect_ahead(node: Node, found: list[Look | Anchor]) -> None:
    """What looks ahead in a node, but not what stands in another assertion."""
    if isinstance(node, Look | Anchor):
        if not looks_behind(node):
            found.append(node)
    elif isinstance(node, Cat):
        for part in node.parts:
            _collect_ahead(part, found)
    elif isinstance(node, Alt):
        for branch in node.branches:
            _collect_ahead(branch, found)
    elif isinstance(node, Repeat):
        _collect_ahead(node.body, found)


def _runs(parts: Sequence[Node]) -> list[Node]:
    """The parts, those in a row that assert nothing as one."""
    out: list[Node] = []
    run: list[Node] = []
    for part in parts:
        if part.asserts:
            if run:
                out.append(cat(run))
                run = []
            out.append(part)
        else:
            run.append(part)
    return [*out, cat(run)] if run else out
