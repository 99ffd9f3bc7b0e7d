"""The normal form: what is said of a value at one place, by kind.

A *position* is a set of schemas (nodes) that hold of the same value, in the order the schema
mentions them; unions of positions are taken where the schema offers a choice. `expand` resolves
`$ref`, `allOf`, `anyOf` and `oneOf` in place, which leaves *branches*: conjunctions of nodes with
plain keywords. Each branch is merged kind by kind (merge.py):

- values of `enum` and `const` are filtered by the whole branch (values.py),
- strings, numbers, null and booleans become terms at once,
- arrays and objects become *shapes*, whose members are positions again, not expanded yet.

So a conjunction of recursive schemas merges lazily and stays finite: a position is interned by its
nodes, and a document has finitely many. What a position can hold at all is a least fixpoint over
the members it requires (positions.py).

Where an object has more than `KEPT_FROM` branches, its choices are kept as clauses (clauses.py).

A `oneOf` is a union when no two of its schemas have a value in common (disjoint.py); otherwise, and
for `not` and `if`, schemas are negated (negation.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from grammaton.errors import GrammarError, LimitExceeded, UnsupportedKeyword
from grammaton.grammar.json_schema.clauses import Clause, ClauseReader
from grammaton.grammar.json_schema.disjoint import Disjointness
from grammaton.grammar.json_schema.merge import Merger
from grammaton.grammar.json_schema.nodes import ANYTHING, OBJECT, STRING, Node, Nodes
from grammaton.grammar.json_schema.number_texts import NumberTexts
from grammaton.grammar.json_schema.numbers import exact
from grammaton.grammar.json_schema.positions import (
    INFINITE,
    ArrayShape,
    ObjectShape,
    Position,
    deciding_members,
    settle,
)
from grammaton.grammar.json_schema.pruning import Pruner, Said
from grammaton.grammar.json_schema.strings import ANY_KEY, StringTexts
from grammaton.grammar.json_schema.unevaluated import broken_member, loose_arrays, loose_objects

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.simple import SimplePositions

MAX_BRANCHES = 4096
"""Branches one position may have when its choices are multiplied out."""
KEPT_FROM = 64
"""From so many branches on the choices about objects are kept, as far as they are clauses."""
MAX_RELAXED = 64
"""Branches after which a relaxed normal form leaves the other choices out."""
MAX_MADE = 4_000
"""Branches that may be made to see which classes of values are empty."""
FEW_BRANCHES = 64
"""From so many branches on it pays to look which choices must be multiplied out."""
MAX_LOOKED_AT = 20_000
"""Options of choices that are looked at for that."""
MAX_REFERENCES = 500
"""Schemas within each other that may hold of one value by `$ref`, `allOf` and choices."""
MAX_TOGETHER = 6
"""Schemas of one anyOf that evaluate members where unevaluated ones matter."""
MAX_POSITIONS = 50_000
"""Positions one schema may have."""
MAX_PROOF_POSITIONS = 500
"""Positions that may be looked at to show two branches of a oneOf disjoint."""


_Path = tuple[Node, ...]
_Step = tuple[Node, _Path, _Path]
"""A schema to be taken in, those it stands in, those whose unevaluated* sees what it evaluates."""


class _Branch:
    """A conjunction while its references and choices are being resolved.

    `clauses` are choices that are kept. `seen` holds, for each schema with unevaluatedProperties or
    unevaluatedItems, the schemas that evaluate for it.
    """

    __slots__ = ("choices", "clauses", "flat", "kinds", "seen", "todo")

    def __init__(
        self,
        flat: dict[Node, None],
        kinds: int,
        todo: list[_Step],
        choices: list[tuple[str, list[Node], Node, _Path, _Path]],
        seen: dict[Node, tuple[Node, ...]],
    ) -> None:
        self.flat = flat
        self.kinds = kinds
        self.todo = todo
        self.choices = choices
        self.clauses: list[Clause] = []
        self.seen = seen


class _TooManyBranches(Exception):
    """There are so many branches that choices are better kept."""


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
        self._pruner = Pruner(nodes, self._merger.checker)
        self._clauses = ClauseReader(nodes)
        self.made = 0
        self._proofs: dict[Position, bool | None] = {}
        self._merged: dict[int, list[Node]] = {}
        self._conjunctions: dict[tuple[int, bool], list[Node]] = {}

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
        position = Position((node,))
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
        for branch in self._all_branches(position):
            pending = [(keyword, options) for keyword, options, *_ in branch.choices]
            flat = list(branch.flat)
            if branch.seen:
                loose = self._loose(branch)
                if loose is None:
                    continue
                flat += loose
            self.made += 1
            self._merger.add(position, flat, branch.kinds, pending, branch.clauses)

    def texts(self, nodes: Sequence[Node]) -> int:
        """The decoded texts of the strings that satisfy a conjunction."""
        parts = []
        position = Position(tuple(nodes))
        for branch in self._branches(position, STRING):
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

    def _all_branches(self, position: Position) -> list[_Branch]:
        """The branches of a position; where there are many, objects apart, their choices kept."""
        try:
            return list(self._branches(position, ANYTHING))
        except _TooManyBranches:
            del position.reasons[:]
            others = list(self._branches(position, ANYTHING & ~OBJECT, split=True))
            return [*others, *self._branches(position, OBJECT, split=True)]

    def _keep(self, branch: _Branch) -> bool:
        """Turns the choices of a branch into clauses, if all can be; else the first to be taken is
        one that can't."""
        found: list[Clause] = []
        for i, (keyword, options, *_) in enumerate(branch.choices):
            clauses = None
            if (keyword != "oneOf" and len(options) > 1) and not branch.seen:
                clauses = self._clauses.choice(options)
            if clauses is None:
                branch.choices.insert(0, branch.choices.pop(i))
                return False
            found.extend(clauses)
        branch.clauses = list(dict.fromkeys(found))
        branch.choices = []
        return frozenset() not in branch.clauses

    def _branches(
        self, position: Position, kinds: int, *, split: bool = False
    ) -> Iterator[_Branch]:
        """The branches of a position.

        Args:
            kinds: of the values that are looked at.
            split: objects or all but objects are, and the choices about objects are kept.

        Raises:
            _TooManyBranches: it is better to split.
        """
        todo: list[_Step] = [(node, (), ()) for node in reversed(position.nodes)]
        start = _Branch({}, kinds, todo, [], {})
        may_split = not split and kinds & OBJECT and not self.closed and not self.relaxed
        stack, made, looked_at = [start], 0, 0
        done: set[object] = set()
        while stack:
            branch = stack.pop()
            if not self._resolve(branch, position):
                continue
            if not branch.choices or (not branch.seen and self._lists_values(branch)):
                yield branch
                continue
            pruned = (made > FEW_BRANCHES or split) and not branch.seen
            if pruned:
                looked_at += sum(len(choice[1]) for choice in branch.choices)
                if looked_at > MAX_LOOKED_AT:
                    raise LimitExceeded(
                        f"the choices at {branch.choices[0][2].pointer or 'the root'} multiply to "
                        "too many to look at"
                    )
                key = self._prune(branch)
                if key is None or key in done:
                    continue
                done.add(key)
                if not branch.choices:
                    yield branch
                    continue
                if split and kinds == OBJECT and self._keep(branch):
                    yield branch
                    continue
                if not branch.choices:
                    continue
            keyword, options, owner, path, owners = branch.choices[0]
            if keyword == "oneOf" and not self.relaxed:
                options = self._disjoint.exclusive(branch.flat, branch.kinds, options)
            if owners and keyword == "anyOf":
                exact = any(each.broken is not None for each in owners)
                options = self._together(options, owner, exact=exact)
            if not pruned:  # pruned lists do not last, which it goes by
                options = self._merge_values(options)
            made += len(options)
            if may_split and made > KEPT_FROM:
                raise _TooManyBranches
            if self.relaxed and made > MAX_RELAXED:
                branch.choices = []
                yield branch
                continue
            if made > MAX_BRANCHES:
                raise LimitExceeded(
                    f"the choices at {owner.pointer or 'the root'} multiply to over {MAX_BRANCHES}"
                )
            rest = branch.choices[1:]
            if not options:
                position.reasons.append((f"{owner.pointer}/{keyword}", f"{keyword!r} is empty"))
            for option in reversed(options):
                step = (option, path, owners)
                stack.append(
                    _Branch(dict(branch.flat), branch.kinds, [step], list(rest), dict(branch.seen))
                )

    def _lists_values(self, branch: _Branch) -> bool:
        """Whether a branch lists its values, so that its choices need only be checked.

        Where integers have a spelling of their own, numbers must know whether they are ones.
        """
        return any(
            not (self.numbers.plain_integers and any(exact(value) is not None for value in values))
            for node in branch.flat
            for _, values in node.values or ()
        )

    def _merge_values(self, options: list[Node]) -> list[Node]:
        """The options of a choice, those that only list values taken as one list."""
        merged = self._merged.get(id(options))
        if merged is None:
            merged, listed = [], []
            for option in options:
                if len(options) > 2 and self._parse(option) and _only_lists(option):
                    listed.append(option)
                else:
                    merged.append(option)
            if listed:
                merged.insert(0, self.nodes.listed(listed))
            self._merged[id(options)] = merged
        return merged

    def _resolve(self, branch: _Branch, position: Position) -> bool:
        """Takes everything that holds without a choice into a branch; False if it is empty."""
        todo, flat = branch.todo, branch.flat
        while todo:
            node, path, owners = todo.pop()
            if node in path:
                raise GrammarError(
                    "the schema refers to itself without an object or array in between",
                    pointer=path[path.index(node)].pointer,
                )
            if not self._parse(node):
                continue
            if node.negates is not None or self.relaxed:
                owners = ()
            elif node.is_loose:
                owners = (*owners, node)
            if node in flat and all(node in branch.seen.get(owner, ()) for owner in owners):
                continue
            if len(path) >= MAX_REFERENCES:
                raise LimitExceeded(
                    f"over {MAX_REFERENCES} references or combinations lead to one place"
                )
            inner = (*path, node)
            before, after = node.around()
            if before:
                first: list[_Step] = [(other, inner, owners) for other in reversed(before)]
                waiting, branch.todo = todo, first
                alive = self._resolve(branch, position)
                branch.todo = waiting
                if not alive:
                    return False
            if not self._take(branch, node, inner, owners, position):
                return False
            todo.extend([(other, inner, owners) for other in reversed(after)])
        return True

    def _take(
        self, branch: _Branch, node: Node, path: _Path, owners: _Path, position: Position
    ) -> bool:
        """Takes a node's own keywords into a branch."""
        branch.flat[node] = None
        for owner in owners:
            branch.seen[owner] = (*branch.seen.get(owner, ()), node)
        before = branch.kinds
        branch.kinds &= node.kinds
        if not branch.kinds:
            reason = "nothing is allowed there"
            if not node.never:
                reason = "no type is left: the types required here exclude each other"
                reason = reason if before != ANYTHING else "'type' is empty"
            position.reasons.append(
                (node.pointer if node.never else f"{node.pointer}/type", reason)
            )
            return False
        for keyword, options in node.choices or ():
            branch.choices.append((keyword, options, node, path, owners))
        return True

    def _prune(self, branch: _Branch) -> object:
        """Leaves out the choices that are made, and the options that hold of nothing; the choice
        with the fewest is to be taken first. None when the branch holds of nothing, else a key that
        equal branches share."""
        said = Said(branch.flat, self.nodes)
        left = []
        for keyword, options, owner, path, owners in branch.choices:
            if keyword != "oneOf" or self.relaxed:
                flat = self._flattened(options)
                if any(self._pruner.is_implied(said, branch.kinds, option) for option in flat):
                    continue
                options = [
                    option
                    for option in flat
                    if not self._pruner.clashes(said, branch.kinds, option)
                ]
                if not options:
                    return None
            left.append((keyword, options, owner, path, owners))
        # Under the schema's key order, properties of a choice that is taken first stand first.
        left.sort(key=lambda choice: len(choice[1]))
        branch.choices = left
        flat_key = frozenset(node.id for node in branch.flat)
        choices = tuple(tuple(option.id for option in options) for _, options, *_ in left)
        return flat_key, branch.kinds, choices

    def _flattened(self, options: list[Node]) -> list[Node]:
        """Options that only choose between others, as those."""
        found: list[Node] = []
        for option in options:
            if option.negates is not None and self._parse(option) and not option.trivial:
                inner = option.choices
                if inner is not None and len(inner) == 1 and option.kinds == ANYTHING:
                    found.extend(self._flattened(inner[0][1]))
                    continue
            found.append(option)
        return found

    def _together(self, options: list[Node], owner: Node, *, exact: bool) -> list[Node]:
        """The options of an anyOf under unevaluated*: those that hold together evaluate more than
        each of them. If `exact`, the others do not hold."""
        key = (id(options), exact)
        together = self._conjunctions.get(key)
        if together is None:
            speaking = [option for option in options if exact or self._evaluates(option, ())]
            if len(speaking) > MAX_TOGETHER:
                raise LimitExceeded(
                    f"over {MAX_TOGETHER} schemas of an anyOf evaluate members beside unevaluated "
                    f"ones (at {owner.pointer}/anyOf)"
                )
            together = [] if exact else list(options)
            for size in range(1 if exact else 2, len(speaking) + 1):
                for some in combinations(speaking, size):
                    others = [each for each in speaking if exact and each not in some]
                    failed = [self.nodes.negation(each, each.pointer) for each in others]
                    together.append(self.nodes.all_of([*some, *failed], some[0].pointer))
            self._conjunctions[key] = together
        return together

    def _evaluates(self, node: Node, path: _Path) -> bool:
        """Whether a schema may evaluate members of an object or array."""
        if node in path or not self._parse(node) or node.negates is not None:
            return False
        if node.arrays is not None or node.objects is not None or node.is_loose:
            return True
        inside = [other for other in node.same or () if other is not None]
        inside.extend(option for _, options in node.choices or () for option in options)
        return any(self._evaluates(other, (*path, node)) for other in inside)

    def _loose(self, branch: _Branch) -> list[Node] | None:
        """What unevaluatedProperties and unevaluatedItems say where all choices are made; None if
        nothing is left."""
        made: list[Node | None] = []
        for owner, seen in branch.seen.items():
            if owner.loose_properties is not None:
                made.append(loose_objects(self.nodes, owner, owner.loose_properties, seen))
            if owner.loose_items is not None:
                made.append(loose_arrays(self.nodes, owner, owner.loose_items, seen))
            if owner.broken is not None:
                broken = broken_member(self.nodes, owner, owner.broken, seen)
                if broken is None:
                    return None
                made.append(broken)
        return [node for node in made if node is not None]


def _only_lists(node: Node) -> bool:
    """Whether a node says nothing but one list of values."""
    return (
        node.values is not None
        and len(node.values) == 1
        and node.kinds == ANYTHING
        and node.same is None
        and node.choices is None
        and node.strings is None
        and node.numbers is None
        and node.arrays is None
        and node.objects is None
        and node.refused is None
        and node.negates is None
        and not node.is_loose
    )
