"""oneOf: which of its schemas can hold of the same value.

Those that cannot are a union; of the others, each is taken without the rest. Most are told apart
by the kinds of their values or by a *tag*, a required property with finitely many values; the rest
by the emptiness of the position that holds two of them. That is asked of a relaxed normal form,
which leaves out what is not enforced and takes an inner oneOf for anyOf, so that what it calls
empty is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Protocol

from grammaton.grammar.json_schema.nodes import ANYTHING, OBJECT, Node, Nodes
from grammaton.grammar.json_schema.positions import Position
from grammaton.grammar.json_schema.values import canonical, kind_of

Tags = dict[str, frozenset[Hashable]]


class Emptiness(Protocol):
    """What is asked of a relaxed normal form."""

    made: int

    def position(self, nodes: Sequence[Node]) -> Position: ...
    def is_empty(self, position: Position) -> bool | None: ...


class Disjointness:
    """Proofs that schemas exclude each other; each pair is looked at once.

    Args:
        nodes: the document's nodes.
        relax: makes the relaxed normal form when it is first needed.
    """

    def __init__(self, nodes: Nodes, relax: Callable[[], Emptiness]) -> None:
        self.nodes = nodes
        self._relax = relax
        self._made: Emptiness | None = None
        self._plains: dict[Node, Node] = {}
        self._summaries: dict[Node, tuple[int, Tags]] = {}
        self._pairs: dict[int, list[tuple[Node, Node, int]]] = {}
        self._exclusive: dict[tuple[int, tuple[tuple[int, int], ...]], list[Node]] = {}

    @property
    def twin(self) -> Emptiness:
        """The relaxed normal form."""
        if self._made is None:
            self._made = self._relax()
        return self._made

    def exclusive(self, flat: Iterable[Node], kinds: int, options: list[Node]) -> list[Node]:
        """The options of a oneOf, each without those that it may overlap with.

        Args:
            flat, kinds: the conjunction that the choice stands in.
        """
        pairs = []
        for one, other, common in self._overlaps(options):
            if not common & kinds:
                continue
            beside = [self._plain(node) for node in flat]
            twin = self.twin
            if beside and twin.is_empty(twin.position([*beside, one, other])):
                continue
            pairs.append((one, other))
        if not pairs:
            return options
        key = (id(options), tuple((one.id, other.id) for one, other in pairs))
        if key not in self._exclusive:
            self._exclusive[key] = self._without(options, pairs)
        return self._exclusive[key]

    def _without(self, options: list[Node], pairs: list[tuple[Node, Node]]) -> list[Node]:
        """The options, each without the others that it is paired with."""
        against: dict[Node, list[Node]] = {}
        for one, other in pairs:
            against.setdefault(one, []).append(other)
            against.setdefault(other, []).append(one)
        alone = []
        for option in options:
            place = option.pointer
            others = [self.nodes.negation(other, place) for other in against.get(option, ())]
            alone.append(self.nodes.all_of([option, *others], place) if others else option)
        return alone

    def _overlaps(self, options: list[Node]) -> list[tuple[Node, Node, int]]:
        """The pairs of schemas that may hold of the same value, and the kinds of such values."""
        pairs = self._pairs.get(id(options))
        if pairs is not None:
            return pairs
        twin = self.twin
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

    def _summary(self, node: Node) -> tuple[int, Tags]:
        """What is cheaply known of a schema's values: kinds, and tags of objects.

        A tag is a required property with finitely many values.
        """
        known = self._summaries.get(node)
        if known is not None:
            return known
        if node.negates is not None:
            return (ANYTHING, {})
        # Until it is known it may be anything, which also ends a circle.
        self._summaries[node] = (ANYTHING, {})
        self.nodes.parse(node)
        kinds = node.kinds
        tags: Tags = {}
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


def _tell_apart(tags: Tags, others: Tags) -> bool:
    """Whether some tag of two sorts of objects has no value in common."""
    return any(key in others and values.isdisjoint(others[key]) for key, values in tags.items())
