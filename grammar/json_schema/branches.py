"""The branches of a position: its references and choices resolved.

A *branch* is a conjunction of nodes with plain keywords. `$ref`, `allOf`, `anyOf` and `oneOf` are
resolved in place, one choice after the other, so n choices between two make up to 2**n branches;
before there are many, options that clash with what is said already are left out. Where an object
has more than `KEPT_FROM` branches, its choices are kept as clauses (clauses.py); those of a string
are left to the algebra of its texts (merge.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from math import prod

from grammaton.errors import GrammarError, LimitExceeded
from grammaton.grammar.json_schema.clauses import Clause, ClauseReader
from grammaton.grammar.json_schema.disjoint import Disjointness
from grammaton.grammar.json_schema.nodes import ANYTHING, OBJECT, STRING, Node, Nodes
from grammaton.grammar.json_schema.numbers import exact
from grammaton.grammar.json_schema.positions import Position
from grammaton.grammar.json_schema.pruning import Pruner, Said
from grammaton.grammar.json_schema.unevaluated import broken_member, loose_arrays, loose_objects
from grammaton.grammar.json_schema.values import Checker

MAX_BRANCHES = 4096
"""Branches one position may have when its choices are multiplied out."""
KEPT_FROM = 64
"""From so many branches on the choices about objects are kept, as far as they are clauses."""
FEW_WAYS = 8
"""From more ways on to make the choices about a string they are left to the algebra of texts."""
MAX_RELAXED = 64
"""Branches after which a relaxed normal form leaves the other choices out."""
FEW_BRANCHES = 64
"""From so many branches on it pays to look which choices must be multiplied out."""
MAX_LOOKED_AT = 20_000
"""Options of choices that are looked at for that."""
MAX_REFERENCES = 500
"""Schemas within each other that may hold of one value by `$ref`, `allOf` and choices."""
MAX_TOGETHER = 6
"""Schemas of one anyOf that evaluate members where unevaluated ones matter."""


_Path = tuple[Node, ...]
_Step = tuple[Node, _Path, _Path]
"""A schema to be taken in, those it stands in, those whose unevaluated* sees what it evaluates."""
_Choice = tuple[str, list[Node], Node, _Path, _Path]
"""A keyword, the schemas that it lets choose from, the one it stands in; the rest as of a step."""


class Branch:
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
        choices: list[_Choice],
        seen: dict[Node, tuple[Node, ...]],
    ) -> None:
        self.flat = flat
        self.kinds = kinds
        self.todo = todo
        self.choices = choices
        self.clauses: list[Clause] = []
        self.seen = seen


class TooManyBranches(Exception):
    """There are so many branches that choices are better kept."""


class Branches:
    """Makes the branches of one document's positions.

    Args:
        nodes: the document's.
        checker: tells whether listed values satisfy a schema.
        disjoint: tells whether schemas have values in common.
        parse: parses a node; False for one that is left out.
        closed, relaxed: as of the normal form (normal.py).
        plain_integers: whether integers have a spelling of their own.
    """

    def __init__(
        self,
        nodes: Nodes,
        checker: Checker,
        disjoint: Disjointness,
        parse: Callable[[Node], bool],
        *,
        closed: bool,
        relaxed: bool,
        plain_integers: bool,
    ) -> None:
        self.nodes = nodes
        self.closed = closed
        self.relaxed = relaxed
        self.plain_integers = plain_integers
        self._disjoint = disjoint
        self._parse = parse
        self._pruner = Pruner(nodes, checker)
        self._clauses = ClauseReader(nodes)
        self._merged: dict[int, list[Node]] = {}
        self._conjunctions: dict[tuple[int, bool], list[Node]] = {}

    def all(self, position: Position) -> list[Branch]:
        """The branches of a position; where there are many, objects apart, their choices kept."""
        try:
            return list(self.of(position, ANYTHING))
        except TooManyBranches:
            del position.reasons[:]
            others = list(self.of(position, ANYTHING & ~OBJECT, split=True))
            return [*others, *self.of(position, OBJECT, split=True)]

    def _keep(self, branch: Branch) -> bool:
        """Turns the choices of a branch into clauses, if all can be; else the first to be taken is
        one that can't."""
        facts = [node.objects for node in branch.flat if node.objects is not None]
        needed = {key for each in facts for key in each.required}
        if any(each.max is not None or each.some or each.min > len(needed) for each in facts):
            return False  # what is counted or must be found is no clause
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

    def of(self, position: Position, kinds: int, *, split: bool = False) -> Iterator[Branch]:
        """The branches of a position.

        Args:
            kinds: of the values that are looked at.
            split: objects or all but objects are, and the choices about objects are kept.

        Raises:
            TooManyBranches: it is better to split.
        """
        todo: list[_Step] = [(node, (), ()) for node in reversed(position.nodes)]
        start = Branch({}, kinds, todo, [], {})
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
            if branch.kinds == STRING and not branch.seen and _ways(branch) > FEW_WAYS:
                branch.choices = [self._exclusive(branch, choice) for choice in branch.choices]
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
            keyword, options, owner, path, owners = self._exclusive(branch, branch.choices[0])
            if owners and keyword == "anyOf":
                exact = any(each.broken is not None for each in owners)
                options = self._together(options, owner, exact=exact)
            if not pruned:  # pruned lists do not last, which it goes by
                options = self._merge_values(options)
            made += len(options)
            if may_split and made > KEPT_FROM:
                raise TooManyBranches
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
                    Branch(dict(branch.flat), branch.kinds, [step], list(rest), dict(branch.seen))
                )

    def _exclusive(self, branch: Branch, choice: _Choice) -> _Choice:
        """A choice whose options, of a oneOf, have no value in common."""
        keyword, options, owner, path, owners = choice
        if keyword == "oneOf" and not self.relaxed:
            options = self._disjoint.exclusive(branch.flat, branch.kinds, options)
        return keyword, options, owner, path, owners

    def _lists_values(self, branch: Branch) -> bool:
        """Whether a branch lists its values, so that its choices need only be checked.

        Where integers have a spelling of their own, numbers must know whether they are ones.
        """
        return any(
            not (self.plain_integers and any(exact(value) is not None for value in values))
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

    def _resolve(self, branch: Branch, position: Position) -> bool:
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
        self, branch: Branch, node: Node, path: _Path, owners: _Path, position: Position
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

    def _prune(self, branch: Branch) -> object:
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

    def loose(self, branch: Branch) -> list[Node] | None:
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


def _ways(branch: Branch) -> int:
    """In how many ways the choices of a branch can be made, those within them not counted."""
    return prod(len(options) for _, options, *_ in branch.choices)


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
