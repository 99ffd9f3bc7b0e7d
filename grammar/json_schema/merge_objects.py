"""Objects of a branch, merged: what a conjunction says of each property, declared or not.

Undeclared keys fall into *sorts* by the patterns found in them, at most 2**n for n patterns; each
sort that has keys has a position of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from grammaton.errors import LimitExceeded
from grammaton.grammar.json_schema.clauses import Clause
from grammaton.grammar.json_schema.keeper import Keeper
from grammaton.grammar.json_schema.nodes import Node, Nodes, Objects
from grammaton.grammar.json_schema.positions import (
    FEW_DUTIES,
    MAX_DUTIES,
    Duty,
    ObjectShape,
    Position,
    subsets,
)
from grammaton.grammar.json_schema.strings import KeySort, StringTexts, encode
from grammaton.grammar.json_schema.values import string_facts

MAX_KEY_SORTS = 256
"""Sorts of undeclared keys that the patternProperties of one object may make."""


class Members(Protocol):
    """Where the positions of properties come from."""

    nothing: Position
    any_object: ObjectShape

    def of(self, node: Node) -> Position: ...
    def position(self, nodes: Sequence[Node]) -> Position: ...
    def expand(self, position: Position) -> None: ...
    def texts(self, nodes: Sequence[Node]) -> int: ...
    def is_void(self, nodes: Sequence[Node]) -> bool: ...


class ObjectMerger:
    """Merges what the branches of one document say of objects.

    Args:
        positions: the normal form that properties belong to.
        nodes, strings, closed, relaxed: as of `Merger` (merge.py).
    """

    def __init__(
        self,
        positions: Members,
        nodes: Nodes,
        strings: StringTexts,
        *,
        closed: bool,
        relaxed: bool,
    ) -> None:
        self.nodes = nodes
        self.strings = strings
        self.closed = closed
        self.relaxed = relaxed
        self._positions = positions
        self._position = positions.position
        self._of = positions.of
        self._nothing = positions.nothing
        self._any_object = positions.any_object

    def shape(self, flat: list[Node], clauses: list[Clause]) -> ObjectShape:
        """The shape of objects."""
        said = [(node, node.objects) for node in flat if node.objects is not None]
        if not said and not clauses:
            return self._any_object
        some: dict[tuple[KeySort, Node], None] = {}
        for _, facts in said:
            for sort, wanted in facts.some:
                for pattern in (*sort.found, *sort.missing):
                    self.strings.pattern_at(pattern, wanted.pointer)
                some[self._named(sort), wanted] = None
        return self._object_with(said, list(some), clauses)

    def _named(self, sort: KeySort) -> KeySort:
        """A sort of keys with the schemas of its keys as terms."""
        if not sort.named:
            return sort
        within = (*sort.within, *(self._positions.texts((node,)) for node in sort.named))
        return sort._replace(within=within, named=())

    def _object_with(
        self,
        said: list[tuple[Node, Objects]],
        some: list[tuple[KeySort, Node]],
        clauses: list[Clause],
    ) -> ObjectShape:
        """The shape of objects that have a property of each sort and node in `some`."""
        facts = [each for _, each in said]
        found: list[str] = []
        for each in facts:
            for pattern, pointer, _ in each.patterns:
                self.strings.pattern_at(pattern, pointer)
                if pattern not in found:
                    found.append(pattern)
        declared = set(found)
        for sort, _ in some:
            found.extend(
                pattern for pattern in (*sort.found, *sort.missing) if pattern not in found
            )
        keeper = Keeper(clauses, self.strings, self._positions, self.nodes) if clauses else None
        if keeper is not None:
            found.extend(pattern for pattern in keeper.patterns() if pattern not in found)
        position, of = self._position, self._of
        properties: dict[str, Position] = {}
        needed = None
        if self.relaxed and not some and keeper is None:
            needed = self._deciding(facts)
        if needed is not None:
            for key in needed:
                if any(key in each.properties for each in facts):
                    properties[key] = position(self._members(facts, found, key))
        elif len(facts) == 1 and not found:
            properties = {key: of(node) for key, node in facts[0].properties.items()}
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
        required: dict[str, Node] = {}
        for node, each in said:
            for key in each.required:
                required.setdefault(key, node)
                if key not in properties:
                    patterned = any(self.strings.found(pattern, key) for pattern in declared)
                    if not closed or patterned:
                        properties[key] = position(self._members(facts, found, key))
        if keeper is not None:
            for key in keeper.named_keys():
                if key not in properties:
                    properties[key] = position(self._members(facts, found, key))
        names = [names for each in facts for names in each.names]
        keys = KeySort(frozenset())
        if names:
            keys = self._name(facts, found, names, properties)
        if not "".join(properties).isascii():
            for key in properties:
                if encode(key) is None:
                    properties[key] = self._nothing
        least, most, counted = 0, None, ""
        for node, each in said:
            if each.min > least:
                least, counted = each.min, f"{node.pointer}/minProperties"
            if each.max is not None and (most is None or each.max < most):
                most = each.max
        sorts: list[KeySort] = []
        if needed is None and (found or not (closed or (len(facts) == 1 and facts[0].is_closed))):
            sorts = [
                sort
                for sort in self._sorts(keys._replace(excluded=frozenset(properties)), found)
                if not closed or not declared.isdisjoint(sort.found)
            ]
        others = [(sort, position(_nodes_for(facts, None, sort.found))) for sort in sorts]
        shape = ObjectShape(properties, required, others, least, most, counted)
        if some:
            self._claim(shape, facts, found, some)
        if keeper is not None:
            keeper.keep(
                shape,
                {key: self._members(facts, found, key) for key in properties},
                [_nodes_for(facts, None, sort.found) for sort in sorts],
            )
        return shape

    def _deciding(self, facts: list[Objects]) -> list[str] | None:
        """The keys whose properties decide whether there is any object, if no others do."""
        needed = list(dict.fromkeys(key for each in facts for key in each.required))
        return needed if all(each.min <= len(needed) for each in facts) else None

    def _name(
        self,
        facts: list[Objects],
        found: list[str],
        names: list[Node],
        properties: dict[str, Position],
    ) -> KeySort:
        """Leaves out the declared properties with the wrong names; what holds of the other keys.
        Keys that are listed are declared ones."""
        irregular = self._irregular_names(names)
        if irregular is not None and not properties and not found:
            return KeySort(frozenset(), irregular=irregular)
        place = self._position(names)
        self._positions.expand(place)
        strings = self._positions.texts(names)
        keys = place.finite
        for key in keys or ():
            if isinstance(key, str) and key not in properties:
                properties[key] = self._position(self._members(facts, found, key))
        for key in properties:
            if not self.strings.is_of(KeySort(frozenset(), within=(strings,)), key):
                properties[key] = self._nothing
        none = int(self.strings.store.NOTHING)
        return KeySort(frozenset(), within=(strings if keys is None else none,))

    def _irregular_names(self, names: list[Node]) -> str | None:
        """The format without a term that all keys have, if that is all that is said of them."""
        node = self.nodes.parse(names[0])
        if len(names) > 1 or node.strings is None or node.same or node.choices or node.values:
            return None
        facts = string_facts([node.strings], self.strings)
        return facts.irregular and facts.alone

    def _claim(
        self,
        shape: ObjectShape,
        facts: list[Objects],
        found: list[str],
        some: list[tuple[KeySort, Node]],
    ) -> None:
        """Adds the properties that can be claimed to be what one must be."""
        if self.relaxed and len(some) > FEW_DUTIES:
            return
        if len(some) > MAX_DUTIES:
            raise LimitExceeded(
                f"an object must have properties of over {MAX_DUTIES} sorts "
                f"(at {some[0][1].pointer})"
            )
        shape.duties = [Duty(1, None) for _ in some]
        for key, place in shape.properties.items():
            fitting = [j for j, (sort, _) in enumerate(some) if self.strings.is_of(sort, key)]
            if place is self._nothing or not fitting:
                continue
            members = self._members(facts, found, key)
            for claimed in subsets(fitting)[1:]:
                wanted = self._position([*members, *(some[j][1] for j in claimed)])
                shape.claimed.append((key, wanted, claimed))
        for sort, place in shape.others:
            if place.nodes and place.nodes[0].never:
                continue
            fitting = [
                j
                for j, (wanted, _) in enumerate(some)
                if set(wanted.found) <= set(sort.found) and set(wanted.missing) <= set(sort.missing)
            ]
            members = _nodes_for(facts, None, sort.found)
            for claimed in subsets(fitting)[1:]:
                kinds = [some[j][0] for j in claimed]
                narrow = sort._replace(
                    excluded=sort.excluded.union(*(kind.excluded for kind in kinds)),
                    within=(*sort.within, *(term for kind in kinds for term in kind.within)),
                )
                if not self.strings.has_keys(narrow):
                    continue
                nodes = [some[j][1] for j in claimed]
                wanted = self._position([*members, *nodes])
                if any(not self.nodes.parse(node).trivial for node in nodes):
                    # A reader takes the last value of a key only, so it must not be repeated.
                    shape.found = True
                    shape.counted = shape.counted or nodes[0].pointer
                shape.claimed.append((narrow, wanted, claimed))

    def _members(self, facts: list[Objects], patterns: list[str], key: str) -> list[Node]:
        """The schemas that hold of the property with this key."""
        found: tuple[str, ...] = ()
        if patterns:
            found = tuple([pattern for pattern in patterns if self.strings.found(pattern, key)])
        return _nodes_for(facts, key, found)

    def _sorts(self, keys: KeySort, patterns: list[str]) -> list[KeySort]:
        """The sorts of undeclared keys, by the patterns found in them; empty sorts are left out."""
        if int(self.strings.store.NOTHING) in keys.within:
            return []
        sorts = [keys]
        if keys.within and not self.strings.has_keys(keys):
            return []
        for pattern in patterns:
            split = []
            for sort in sorts:
                split.append(sort._replace(found=(*sort.found, pattern)))
                split.append(sort._replace(missing=(*sort.missing, pattern)))
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
        if found and each.patterns:
            nodes.extend([node for pattern, _, node in each.patterns if pattern in found])
        if each.other is not None and len(nodes) == count:
            nodes.append(each.other)
    return nodes
