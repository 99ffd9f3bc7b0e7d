"""The normal form: what is said of a value at one place, by kind.

A *position* is a set of schemas (nodes) that hold of the same value, in the order the schema
mentions them; unions of positions are taken where the schema offers a choice. `expand` resolves
`$ref`, `allOf`, `anyOf` and `oneOf` in place, which leaves *branches*: conjunctions of nodes with
plain keywords. Each branch is merged kind by kind:

- values of `enum` and `const` are filtered by the whole branch (values.py),
- strings, numbers, null and booleans become terms at once,
- arrays and objects become *shapes*, whose members are positions again, not expanded yet.

So a conjunction of recursive schemas merges lazily and stays finite: a position is interned by its
nodes, and a document has finitely many. What a position can hold at all is a least fixpoint over
the members it requires (positions.py).

`oneOf` is a union when no two branches have a value in common, which is the emptiness of the
position that holds both; it is decided on a *relaxed* normal form that leaves out what is not
enforced and takes inner `oneOf` for `anyOf`, so that it never claims too much. Other `oneOf`s are
refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any

from grammaton.errors import GrammarError, LimitExceeded, UnsupportedKeyword
from grammaton.grammar.json_schema.keywords import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    FRACTION,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Node,
    Nodes,
    Objects,
    unsupported,
)
from grammaton.grammar.json_schema.numbers import Bounds, NumberTexts, exact
from grammaton.grammar.json_schema.positions import (
    INFINITE,
    ArrayShape,
    ObjectShape,
    Position,
    required_members,
    settle,
)
from grammaton.grammar.json_schema.strings import KeySort, StringFacts, StringTexts, encode
from grammaton.grammar.json_schema.values import Checker, canonical, kind_of, plain_number

MAX_BRANCHES = 4096
"""Branches one position may have when its choices are multiplied out."""
MAX_POSITIONS = 200_000
"""Positions one schema may have."""
MAX_KEY_SORTS = 256
"""Sorts of undeclared keys that the patternProperties of one object may make."""
MAX_PROOF_POSITIONS = 500
"""Positions that may be looked at to show two branches of a oneOf disjoint."""


class _Branch:
    """A conjunction while its references and choices are being resolved."""

    __slots__ = ("choices", "flat", "kinds", "todo")

    def __init__(
        self,
        flat: dict[Node, None],
        kinds: int,
        todo: list[tuple[Node, tuple[Node, ...]]],
        choices: list[tuple[str, list[Node], Node, tuple[Node, ...]]],
    ) -> None:
        self.flat = flat
        self.kinds = kinds
        self.todo = todo
        self.choices = choices


class Normaliser:
    """Makes the positions of one document.

    Args:
        nodes, strings, numbers: the document's nodes and the builders of its scalar terms.
        closed: objects that declare properties and do not speak of others have no others.
        relaxed: leave out what is not enforced instead of raising.
    """

    def __init__(
        self,
        nodes: Nodes,
        strings: StringTexts,
        numbers: NumberTexts,
        *,
        closed: bool,
        relaxed: bool = False,
    ) -> None:
        self.nodes = nodes
        self.strings = strings
        self.numbers = numbers
        self.closed = closed
        self.relaxed = relaxed
        self.checker = Checker(nodes, strings)
        store = strings.store
        self.null: int = store.literal(b"null")
        self.booleans: int = store.union([store.literal(b"true"), store.literal(b"false")])
        self._positions: dict[tuple[int, ...], Position] = {}
        self.order: list[Position] = []
        self.nothing = Position(())
        self.nothing.expanded = True
        self._relaxed_twin: Normaliser | None = None
        self._plains: dict[Node, Node] = {}
        self._summaries: dict[Node, tuple[int, dict[str, frozenset[Hashable]]]] = {}
        self._proofs: dict[Position, bool | None] = {}
        self._merged: dict[int, list[Node]] = {}
        self._pairs: dict[int, list[tuple[Node, Node, int]]] = {}

    def position(self, nodes: Sequence[Node]) -> Position:
        """The position of a conjunction of nodes."""
        said = []
        for node in nodes:
            if not node.parsed:
                self.nodes.parse(node)
            if node.never:
                return self._never(node)
            if not node.trivial:
                said.append(node)
        if len(said) > 1:
            said = list(dict.fromkeys(said))
        key = tuple([node.id for node in said])
        position = self._positions.get(key)
        if position is None:
            if len(self._positions) >= MAX_POSITIONS:
                raise LimitExceeded(f"the schema has over {MAX_POSITIONS} different positions")
            position = self._positions[key] = Position(tuple(said))
            self.order.append(position)
        return position

    def _never(self, node: Node) -> Position:
        position = Position((node,))
        position.expanded = True
        position.reasons.append((node.pointer, "the schema is false"))
        return position

    def expand(self, position: Position) -> None:
        """Fills in the scalars and shapes, once."""
        if position.expanded:
            return
        position.expanded = True
        store = self.strings.store
        for branch in self._branches(position):
            self._add_branch(position, list(branch.flat), branch.kinds)
        position.scalars.pop(store.NOTHING, None)
        if position.scalars:
            position.height = 0

    def reach(self, root: Position) -> list[Position]:
        """Expands everything that can be reached, and decides what can hold a value."""
        self.expand(root)
        found = {root: None}
        todo = [root]
        while todo:
            position = todo.pop()
            for shape in position.shapes:
                for member in shape.members():
                    if member not in found:
                        found[member] = None
                        self.expand(member)
                        todo.append(member)
        order = list(found)
        order.reverse()
        settle(order)
        return order

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
                for member in required_members(shape):
                    if member is not None and member not in found:
                        if len(found) >= MAX_PROOF_POSITIONS:
                            return None
                        found[member] = None
                        self.expand(member)
                        todo.append(member)
        settle(list(found)[::-1])
        return position.height >= INFINITE

    def _branches(self, position: Position) -> Iterator[_Branch]:
        start = _Branch({}, ANYTHING, [(node, ()) for node in reversed(position.nodes)], [])
        stack, made = [start], 0
        while stack:
            branch = stack.pop()
            if not self._resolve(branch, position):
                continue
            if not branch.choices:
                yield branch
                continue
            keyword, options, owner, path = branch.choices[0]
            if keyword == "oneOf" and not self.relaxed:
                self._check_disjoint(branch, options, owner)
            options = self._merge_values(options)
            made += len(options)
            if made > MAX_BRANCHES:
                raise LimitExceeded(
                    f"the choices at {owner.pointer or 'the root'} multiply to over {MAX_BRANCHES}"
                )
            rest = branch.choices[1:]
            if not options:
                position.reasons.append((f"{owner.pointer}/{keyword}", f"{keyword!r} is empty"))
            for option in reversed(options):
                stack.append(_Branch(dict(branch.flat), branch.kinds, [(option, path)], list(rest)))

    def _merge_values(self, options: list[Node]) -> list[Node]:
        """The options of a choice, those that only list values taken as one list."""
        merged = self._merged.get(id(options))
        if merged is None:
            merged, listed = [], []
            for option in options:
                if len(options) > 2 and _only_lists(self.nodes.parse(option)):
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
            node, path = todo.pop()
            if node in path:
                raise GrammarError(
                    "the schema refers to itself without an object or array in between",
                    pointer=path[path.index(node)].pointer,
                )
            self.nodes.parse(node)
            if node in flat:
                continue
            inner = (*path, node)
            before, after = node.around()
            if before:
                waiting, branch.todo = todo, [(other, inner) for other in reversed(before)]
                alive = self._resolve(branch, position)
                branch.todo = waiting
                if not alive:
                    return False
            if not self._take(branch, node, inner, position):
                return False
            todo.extend([(other, inner) for other in reversed(after)])
        return True

    def _take(
        self, branch: _Branch, node: Node, path: tuple[Node, ...], position: Position
    ) -> bool:
        """Takes a node's own keywords into a branch."""
        branch.flat[node] = None
        before = branch.kinds
        branch.kinds &= node.kinds
        if not branch.kinds:
            reason = "the schema is false"
            if not node.never:
                reason = "no type is left: the types required here exclude each other"
                reason = reason if before != ANYTHING else "'type' is empty"
            position.reasons.append(
                (node.pointer if node.never else f"{node.pointer}/type", reason)
            )
            return False
        for keyword, options in node.choices or ():
            branch.choices.append((keyword, options, node, path))
        return True

    def _check_disjoint(self, branch: _Branch, options: list[Node], owner: Node) -> None:
        """Raises unless no two of the options can hold of the same value in this branch."""
        for one, other, kinds in self._overlaps(options):
            if not kinds & branch.kinds:
                continue
            if branch.flat:
                beside = [self._plain(node) for node in branch.flat]
                if self._twin().is_empty(self._twin().position([*beside, one, other])):
                    continue
            raise unsupported(
                owner,
                "oneOf",
                "is enforced only where no two of its schemas can hold of the same value yet; "
                f"{one.pointer} and {other.pointer} may",
            )

    def _overlaps(self, options: list[Node]) -> list[tuple[Node, Node, int]]:
        """The pairs of schemas that may hold of the same value, and the kinds of such values."""
        pairs = self._pairs.get(id(options))
        if pairs is not None:
            return pairs
        twin = self._twin()
        pairs = self._pairs[id(options)] = []
        facts = [(option, *self._summary(option)) for option in options]
        for i, (one, kinds, tags) in enumerate(facts):
            for other, other_kinds, other_tags in facts[i + 1 :]:
                common = kinds & other_kinds
                if not common or (common == OBJECT and _tell_apart(tags, other_tags)):
                    continue
                if not twin.is_empty(twin.position([one, other])):
                    pairs.append((one, other, common))
        return pairs

    def _plain(self, node: Node) -> Node:
        plain = self._plains.get(node)
        if plain is None:
            plain = self._plains[node] = node.plain()
        return plain

    def _summary(self, node: Node) -> tuple[int, dict[str, frozenset[Hashable]]]:
        """What is cheaply known of a schema's values: kinds, and tags of objects.

        A tag is a required property with finitely many values.
        """
        known = self._summaries.get(node)
        if known is not None:
            return known
        # Until it is known it may be anything, which also ends a circle.
        self._summaries[node] = (ANYTHING, {})
        self.nodes.parse(node)
        kinds = node.kinds
        tags: dict[str, frozenset[Hashable]] = {}
        for _, values in node.values or ():
            kinds &= reduce(or_, (kind_of(value, node.pointer) for value in values), 0)
        if node.objects is not None:
            for key in node.objects.required:
                child = node.objects.properties.get(key)
                listed = None if child is None else self.nodes.parse(child).values
                if listed is not None:
                    tags[key] = frozenset(canonical(value) for value in listed[0][1])
        for other in node.same or ():
            if other is not None:
                other_kinds, other_tags = self._summary(other)
                kinds &= other_kinds
                tags.update(other_tags)
        for _, options in node.choices or ():
            kinds &= reduce(or_, (self._summary(option)[0] for option in options), 0)
        self._summaries[node] = (kinds, tags)
        return kinds, tags

    def _twin(self) -> Normaliser:
        if self._relaxed_twin is None:
            self._relaxed_twin = Normaliser(
                self.nodes, self.strings, self.numbers, closed=self.closed, relaxed=True
            )
        return self._relaxed_twin

    def _add_branch(self, position: Position, flat: list[Node], kinds: int) -> None:
        if any(node.values is not None for node in flat):
            self._add_values(position, flat, kinds)
            return
        if not self.relaxed:
            _refuse(flat, kinds)
        if kinds & NULL:
            position.scalars[self.null] = None
        if kinds & BOOLEAN:
            position.scalars[self.booleans] = None
        if kinds & STRING:
            self._add_strings(position, flat)
        if kinds & NUMBER:
            self._add_numbers(position, flat, kinds)
        if kinds & ARRAY:
            position.arrays.append(self._array(flat))
        if kinds & OBJECT:
            position.objects.append(self._object(flat))

    def _add_values(self, position: Position, flat: list[Node], kinds: int) -> None:
        """The values of enum and const that satisfy the whole branch."""
        owner, keyword, candidates = min(
            (
                (node, keyword, values)
                for node in flat
                if node.values is not None
                for keyword, values in node.values
            ),
            key=lambda entry: len(entry[2]),
        )
        pointer = (
            f"{owner.pointer}/{keyword}"
            if owner.id > 0 and owner.raw is not True
            else owner.pointer
        )
        texts: dict[str, None] = {}
        numbers: dict[Any, None] = {}
        containers: dict[Any, Any] = {}
        filters = [node for node in flat if _filters(node, owner)]
        found = False
        for value in candidates:
            kind = kind_of(value, pointer)
            if not kind & kinds or not self._fits(value, filters, owner):
                continue
            found = True
            if kind == STRING:
                texts[value] = None
            elif kind & NUMBER:
                number = exact(value)
                assert number is not None
                numbers[plain_number(number)] = None
            elif kind == NULL:
                position.scalars[self.null] = None
            elif kind == BOOLEAN:
                word = b"true" if value else b"false"
                position.scalars[self.strings.store.literal(word)] = None
            else:
                containers[canonical(value)] = value
        if texts:
            position.scalars[self.strings.values(tuple(texts))] = None
        if numbers:
            position.scalars[self.numbers.values(tuple(numbers), integer=not kinds & FRACTION)] = (
                None
            )
        for value in containers.values():
            node = self.nodes.constant(value, pointer)
            if isinstance(value, list):
                position.arrays.append(self._array([node]))
            else:
                position.objects.append(self._object([node]))
        if not found:
            position.reasons.append(
                (pointer, f"no value of {keyword!r} satisfies the other keywords")
                if candidates
                else (pointer, f"{keyword!r} has no values")
            )

    def _fits(self, value: Any, filters: list[Node], owner: Node) -> bool:
        for node in filters:
            try:
                if not self.checker.satisfies_plain(value, node):
                    return False
            except UnsupportedKeyword:
                if not self.relaxed:
                    raise
        return True

    def _add_strings(self, position: Position, flat: list[Node]) -> None:
        said = [node.strings for node in flat if node.strings is not None]
        if not said:
            position.scalars[self.strings.string(_ANY_STRING)] = None
            return
        least, most = 0, None
        patterns: dict[str, None] = {}
        formats: dict[str, None] = {}
        for facts in said:
            least = max(least, facts.min)
            if facts.max is not None and (most is None or facts.max < most):
                most = facts.max
            for pattern, pointer in facts.patterns:
                self.strings.pattern_at(pattern, pointer)
                patterns[pattern] = None
            for name in facts.formats:
                formats[name] = None
        merged = StringFacts(least, most, tuple(patterns), tuple(formats))
        term = self.strings.string(merged)
        position.scalars[term] = None
        if term == self.strings.store.NOTHING:
            owner = next(node for node in flat if node.strings is not None)
            if most is not None and most < least:
                reason = f"minLength {least} is above maxLength {most}"
            else:
                reason = "no string satisfies the pattern, format and lengths together"
            position.reasons.append((owner.pointer, reason))

    def _add_numbers(self, position: Position, flat: list[Node], kinds: int) -> None:
        bounds = _ANY_NUMBER
        owner = None
        for node in flat:
            if node.numbers is not None:
                bounds = node.numbers if owner is None else bounds.meet(node.numbers)
                owner = node
        term = self.numbers.number(bounds, integer=not kinds & FRACTION)
        position.scalars[term] = None
        if term == self.strings.store.NOTHING and owner is not None:
            what = "number" if kinds & FRACTION else "integer"
            position.reasons.append((owner.pointer, f"no {what} is {bounds.describe()}"))

    def _array(self, flat: list[Node]) -> ArrayShape:
        said = [node.arrays for node in flat if node.arrays is not None]
        least, most, length = 0, None, 0
        for facts in said:
            least = max(least, facts.min)
            if facts.max is not None and (most is None or facts.max < most):
                most = facts.max
            length = max(length, len(facts.prefix))
        prefix = []
        for i in range(length):
            item = []
            for facts in said:
                if i < len(facts.prefix):
                    item.append(facts.prefix[i])
                elif facts.rest is not None:
                    item.append(facts.rest)
            prefix.append(self.position(item))
        rest = self.position([facts.rest for facts in said if facts.rest is not None])
        return ArrayShape(prefix, rest, least, most)

    def _object(self, flat: list[Node]) -> ObjectShape:
        said = [(node, node.objects) for node in flat if node.objects is not None]
        facts = [each for _, each in said]
        found: list[str] = []
        for each in facts:
            for pattern, pointer, _ in each.patterns:
                self.strings.pattern_at(pattern, pointer)
                if pattern not in found:
                    found.append(pattern)
        position = self.position
        properties: dict[str, Position] = {}
        if len(facts) == 1 and not found:
            properties = {key: position((node,)) for key, node in facts[0].properties.items()}
        else:
            for each in facts:
                for key in each.properties:
                    if key not in properties:
                        properties[key] = position(self._members(facts, found, key))
        closed = (
            self.closed
            and all(each.other is None for each in facts)
            and any(each.declared for each in facts)
        )
        required: dict[str, str] = {}
        for node, each in said:
            for key in each.required:
                required.setdefault(key, node.pointer)
                if key not in properties:
                    members = self._members(facts, found, key)
                    patterned = any(self.strings.found(pattern, key) for pattern in found)
                    if not closed or patterned:
                        properties[key] = position(members)
        for key in properties:
            if not key.isascii() and encode(key) is None:
                properties[key] = self.nothing
        others = [
            (sort, position(_nodes_for(facts, None, sort.found)))
            for sort in self._sorts(frozenset(properties), found)
            if sort.found or not closed
        ]
        return ObjectShape(properties, required, others)

    def _members(self, facts: list[Objects], patterns: list[str], key: str) -> list[Node]:
        """The schemas that hold of the property with this key."""
        found = tuple(pattern for pattern in patterns if self.strings.found(pattern, key))
        return _nodes_for(facts, key, found)

    def _sorts(self, excluded: frozenset[str], patterns: list[str]) -> list[KeySort]:
        """The sorts of undeclared keys, by the patterns found in them; empty sorts are left out."""
        sorts = [KeySort(excluded)]
        for pattern in patterns:
            split = []
            for sort in sorts:
                split.append(KeySort(excluded, (*sort.found, pattern), sort.missing))
                split.append(KeySort(excluded, sort.found, (*sort.missing, pattern)))
            sorts = [sort for sort in split if self.strings.has_keys(sort)]
            if len(sorts) > MAX_KEY_SORTS:
                raise LimitExceeded(f"patternProperties overlap in over {MAX_KEY_SORTS} ways")
        return sorts


def _nodes_for(facts: list[Objects], key: str | None, found: tuple[str, ...]) -> list[Node]:
    """The schemas for a property with a declared key, or an undeclared one with these patterns."""
    nodes: list[Node] = []
    for each in facts:
        count = len(nodes)
        if key is not None and key in each.properties:
            nodes.append(each.properties[key])
        nodes.extend(node for pattern, _, node in each.patterns if pattern in found)
        if len(nodes) == count and each.other is not None:
            nodes.append(each.other)
    return nodes


_ANY_STRING = StringFacts()
_ANY_NUMBER = Bounds()


def _filters(node: Node, owner: Node) -> bool:
    """Whether a node says more of the owner's values than their kind and that they are listed."""
    return (
        node.strings is not None
        or node.numbers is not None
        or node.arrays is not None
        or node.objects is not None
        or node.refused is not None
        or node.denied is not None
        or node.conditions is not None
        or (node.values is not None and (node is not owner or len(node.values) > 1))
    )


def _tell_apart(
    tags: dict[str, frozenset[Hashable]], others: dict[str, frozenset[Hashable]]
) -> bool:
    """Whether some tag of two sorts of objects has no value in common."""
    return any(key in others and values.isdisjoint(others[key]) for key, values in tags.items())


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
        and node.denied is None
        and node.conditions is None
    )


def _refuse(flat: list[Node], kinds: int) -> None:
    """Raises for what is said of these kinds and not enforced."""
    for node in flat:
        if node.denied is not None:
            raise unsupported(node, "not")
        if node.conditions is not None:
            raise unsupported(node, "if")
        for wanted, keyword, value in node.refused or ():
            if wanted & kinds:
                if keyword == "format":
                    raise unsupported(node, "format", f"{value!r} is not enforced yet")
                raise unsupported(node, keyword)
