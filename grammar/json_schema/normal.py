"""The normal form: what is said of a value at one place, by kind.

A *position* is a set of schemas (nodes) that hold of the same value, in the order the schema
mentions them; unions of positions are taken where the schema offers a choice. `expand` resolves
`$ref`, `allOf`, `anyOf` and `oneOf` in place, which leaves *branches*: conjunctions of nodes with
plain keywords (branches.py). Each branch is merged kind by kind (merge.py):

- values of `enum` and `const` are filtered by the whole branch (values.py),
- strings, numbers, null and booleans become terms at once,
- arrays and objects become *shapes*, whose members are positions again, not expanded yet.

So a conjunction of recursive schemas merges lazily and stays finite: a position is interned by its
nodes, and a document has finitely many. What a position can hold at all is a least fixpoint over
the members it requires (positions.py).

A `oneOf` is a union when no two of its schemas have a value in common (disjoint.py); otherwise, and
for `not` and `if`, schemas are negated (negation.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grammaton.errors import LimitExceeded, UnsupportedKeyword
from grammaton.grammar.json_schema.branches import Branches
from grammaton.grammar.json_schema.disjoint import Disjointness
from grammaton.grammar.json_schema.merge import Merger
from grammaton.grammar.json_schema.nodes import ANYTHING, STRING, Node, Nodes
from grammaton.grammar.json_schema.number_texts import NumberTexts
from grammaton.grammar.json_schema.positions import (
    INFINITE,
    ArrayShape,
    ObjectShape,
    Position,
    deciding_members,
    settle,
)
from grammaton.grammar.json_schema.strings import ANY_KEY, StringTexts

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.simple import SimplePositions

MAX_MADE = 4_000
"""Branches that may be made to see which classes of values are empty."""
MAX_POSITIONS = 50_000
"""Positions one schema may have."""
MAX_CONJUNCTIONS = 10_000
"""Positions at which several schemas of a document meet: n of them may meet in 2**n ways."""
MAX_PROOF_POSITIONS = 500
"""Positions that may be looked at to show two branches of a oneOf disjoint."""


class Normaliser:
    """Makes the positions of one document.

    Args:
        nodes, strings, numbers: the document's nodes and the builders of its scalar terms.
        closed: objects that declare properties and do not speak of others have no others.
        relaxed: leave out what is not enforced instead of raising.
        ready: positions of all values of some kinds that are settled and lowered (ready.py).
        simple: the simple schemas of the document (simple.py).
    """

    def __init__(
        self,
        nodes: Nodes,
        strings: StringTexts,
        numbers: NumberTexts,
        *,
        closed: bool,
        relaxed: bool = False,
        ready: Mapping[int, Position] | None = None,
        simple: SimplePositions | None = None,
    ) -> None:
        self.simple = simple
        self.nodes = nodes
        self.strings = strings
        self.numbers = numbers
        self.closed = closed
        self.relaxed = relaxed
        self._ready = ready
        self._of: dict[Node, Position] = {}
        self._nevers: dict[Node, Position] = {}
        self._of_kinds: dict[int, Position] = {}
        if ready:
            self._of_kinds.update(ready)
            anything = ready[ANYTHING]
            self.any_array, self.any_object = anything.arrays[0], anything.objects[0]
        else:
            anything = Position(())
            self.any_array = ArrayShape([], anything, 0, None)
            self.any_object = ObjectShape({}, {}, [(ANY_KEY, anything)], 0, None, "")
        self._positions: dict[tuple[int, ...], Position] = {(): anything}
        self.nothing = Position(())
        self.nothing.expanded = True
        self._merger = Merger(self, nodes, strings, numbers, closed=closed, relaxed=relaxed)
        self._disjoint = Disjointness(nodes, self._relax)
        self._branches = Branches(
            nodes,
            self._merger.checker,
            self._disjoint,
            self._parse,
            closed=closed,
            relaxed=relaxed,
            plain_integers=numbers.plain_integers,
        )
        self.made = 0
        self._conjunctions = 0
        self._proofs: dict[Position, bool | None] = {}

    def _relax(self) -> Normaliser:
        return Normaliser(
            self.nodes,
            self.strings,
            self.numbers,
            closed=self.closed,
            relaxed=True,
            ready=self._ready,
        )

    def of(self, node: Node) -> Position:
        """The position of one node.

        Nodes that say only which kinds of values there are share one for each set of kinds, and a
        node that only refers to another has that one's.
        """
        position = self._of.get(node)
        if position is None:
            position = self.simple.of(node) if self.simple is not None else None
            if position is None:
                target = self._referred(node)
                if target.only_kinds:
                    position = self._of_kinds.get(target.kinds)
                    if position is None:
                        position = self._of_kinds[target.kinds] = self._interned([target])
                else:
                    position = self._interned([target])
            self._of[node] = position
        return position

    def _referred(self, node: Node) -> Node:
        """The node that a node refers to, over others that only refer; itself if it does not."""
        path: list[Node] = []
        target = node
        while (target.parsed or self._parse(target)) and (further := target.only_same):
            path.append(target)
            target = further
            if target in path:  # `expand` says that it leads nowhere
                break
        return target

    def position(self, nodes: Sequence[Node]) -> Position:
        """The position of a conjunction of nodes."""
        return self.of(nodes[0]) if len(nodes) == 1 else self._interned(nodes)

    def _interned(self, nodes: Sequence[Node]) -> Position:
        said = []
        for node in nodes:
            if not node.parsed and not self._parse(node):
                continue
            if node.never:
                return self._never(node)
            if not node.trivial:
                said.append(node)
        if len(said) > 1:
            said = list(dict.fromkeys(said))
        if self.simple is not None and len(said) == 1:
            single = self.simple.of(said[0])
            if single is not None:
                return single
        key = tuple([node.id for node in said])
        position = self._positions.get(key)
        if position is None:
            if len(self._positions) >= MAX_POSITIONS:
                raise LimitExceeded(f"the schema has over {MAX_POSITIONS} different positions")
            if len(said) > 1:
                self._conjunctions += 1
                if self._conjunctions > MAX_CONJUNCTIONS:
                    raise LimitExceeded(
                        f"schemas meet in over {MAX_CONJUNCTIONS} different ways, the last of them "
                        f"at {said[-1].pointer or 'the root'}"
                    )
            position = self._positions[key] = Position(tuple(said))
        return position

    def _parse(self, node: Node) -> bool:
        """Parses a node; False, when relaxed, for one that says what is not enforced."""
        try:
            self.nodes.parse(node)
        except UnsupportedKeyword:
            if not self.relaxed:
                raise
            return False
        return True

    def _never(self, node: Node) -> Position:
        position = self._nevers.get(node)
        if position is None:
            position = self._nevers[node] = Position((node,))
            position.expanded = True
        return position

    def expand(self, position: Position) -> None:
        """Fills in the scalars and shapes, once."""
        if position.expanded:
            return
        position.expanded = True
        store = self.strings.store
        if position.simple is not None:
            position.nodes = (self._referred(position.nodes[0]),)
        nodes = position.nodes
        if len(nodes) == 1 and nodes[0].is_plain and nodes[0].kinds:
            self.made += 1
            self._merger.add(position, list(nodes), nodes[0].kinds, (), [])
        else:
            self._expand_branches(position)
        position.scalars.pop(store.NOTHING, None)
        if position.scalars:
            position.height = 0
            return
        for shape in position.shapes:
            if shape.is_free:
                position.height = 1
                return

    def _expand_branches(self, position: Position) -> None:
        for branch in self._branches.all(position):
            pending = [(keyword, options) for keyword, options, *_ in branch.choices]
            flat = list(branch.flat)
            if branch.seen:
                loose = self._branches.loose(branch)
                if loose is None:
                    continue
                flat += loose
            self.made += 1
            self._merger.add(position, flat, branch.kinds, pending, branch.clauses)

    def texts(self, nodes: Sequence[Node]) -> int:
        """The decoded texts of the strings that satisfy a conjunction."""
        parts = []
        position = Position(tuple(nodes))
        for branch in self._branches.of(position, STRING):
            pending = [(keyword, options) for keyword, options, *_ in branch.choices]
            parts.append(self._merger.texts(list(branch.flat), branch.kinds, pending))
        return int(self.strings.store.union(parts))

    def reach(self, root: Position) -> None:
        """Expands everything that can be reached, and decides what can hold a value."""
        found: dict[Position, None] = {}
        todo: list[Position] = []

        def meet(position: Position) -> None:
            found[position] = None
            if position.simple is not None:
                todo.append(position)
                return
            self.expand(position)
            if position.arrays or position.objects:
                todo.append(position)

        def meet_raw(raw: Any, pointer: str) -> Position:
            position = self.of(self.nodes.node(raw, pointer, self.nodes.document.resource))
            if position.term is None and position not in found:
                meet(position)
            return position

        meet(root)
        while todo:
            position = todo.pop()
            if position.simple is not None:
                assert self.simple is not None
                self.simple.reach(position.simple, meet_raw)
                continue
            for shape in position.shapes:
                for member in shape.members():
                    if member.term is None and member not in found:
                        meet(member)
        settle(reversed(found))
        if self.simple is not None:
            self.simple.settle(found)

    def is_empty(self, position: Position) -> bool | None:
        """Whether no value fits, looking at required members only; None when it takes too long."""
        if position not in self._proofs:
            self._proofs[position] = self._prove_empty(position)
        return self._proofs[position]

    def _prove_empty(self, position: Position) -> bool | None:
        self.expand(position)
        found = {position: None}
        todo = [position]
        while todo:
            here = todo.pop()
            if here.scalars:
                continue
            for shape in here.shapes:
                for member in deciding_members(shape):
                    if member is not None and member not in found:
                        if len(found) >= MAX_PROOF_POSITIONS:
                            return None
                        found[member] = None
                        self.expand(member)
                        todo.append(member)
        settle(reversed(found))
        return position.height >= INFINITE

    def is_void(self, nodes: Sequence[Node]) -> bool:
        """Whether it is seen without much work that no value satisfies a conjunction.

        Raises:
            LimitExceeded: that has been much work before.
        """
        twin = self._disjoint.twin
        if twin.made > MAX_MADE:
            raise LimitExceeded(
                f"the choices at {nodes[-1].pointer} overlap in too many ways to look at"
            )
        return bool(twin.is_empty(twin.position(nodes)))
