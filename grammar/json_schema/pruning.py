"""Choices that need not be multiplied out.

Where many choices meet, as in a `oneOf` whose schemas overlap, most combinations hold of nothing,
and many choices are made already by what else is said. Both are seen here from keywords alone,
without expanding anything: types, required and forbidden properties, properties with listed values.
What is called a clash holds of no value, and what is called implied holds of every value of the
branch; in doubt it is neither. Cost: microseconds an option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grammaton.errors import GrammatonError
from grammaton.grammar.json_schema.nodes import OBJECT, Node, Nodes, Objects
from grammaton.grammar.json_schema.values import Checker

MOST_VALUES = 16
"""Listed values of a property that are tried."""


class Said:
    """What a conjunction says of objects' properties: required keys, nodes by key, closed sets."""

    __slots__ = ("closed", "properties", "required")

    def __init__(self, flat: Iterable[Node], nodes: Nodes) -> None:
        self.required: set[str] = set()
        self.properties: dict[str, list[Node]] = {}
        self.closed: list[Objects] = []
        for node in flat:
            facts = node.objects
            if facts is None:
                continue
            self.required.update(facts.required)
            for key, value in facts.properties.items():
                self.properties.setdefault(key, []).append(value)
            if facts.other is not None and not facts.patterns and nodes.parse(facts.other).never:
                self.closed.append(facts)

    def forbids(self, key: str, nodes: Nodes) -> bool:
        """Whether no object has the property."""
        return any(nodes.parse(node).never for node in self.properties.get(key, ())) or any(
            key not in facts.properties for facts in self.closed
        )


class Pruner:
    """Looks at the options of choices beside what a branch says already.

    Args:
        nodes, checker: of the document.
    """

    def __init__(self, nodes: Nodes, checker: Checker) -> None:
        self.nodes = nodes
        self.checker = checker

    def clashes(self, said: Said, kinds: int, option: Node) -> bool:
        """Whether an option holds of no value of the branch."""
        parts = list(self._parts(option))
        for part in parts:
            kinds &= part.kinds
        if not kinds:
            return True
        if kinds != OBJECT:
            return False
        required = said.required.union(*(part.objects.required for part in parts if part.objects))
        return any(
            part.objects is not None and self._objects_clash(said, required, part.objects)
            for part in parts
        )

    def _parts(self, node: Node) -> Iterator[Node]:
        """Schemas that all hold where a node does, as far as they are parsed or parsed easily."""
        todo, seen = [node], {node}
        while todo:
            part = todo.pop()
            try:
                yield self.nodes.parse(part)
            except GrammatonError:
                continue
            for other in part.same or ():
                if other is not None and other not in seen:
                    seen.add(other)
                    todo.append(other)

    def _objects_clash(self, said: Said, required: set[str], facts: Objects) -> bool:
        nodes = self.nodes
        if any(said.forbids(key, nodes) for key in facts.required):
            return True
        for key, node in facts.properties.items():
            if key in required and (
                nodes.parse(node).never or self._members_clash(said.properties.get(key, ()), node)
            ):
                return True
        if facts.other is None or facts.patterns or not nodes.parse(facts.other).never:
            return False
        return any(key not in facts.properties for key in required)

    def _members_clash(self, others: Iterable[Node], node: Node) -> bool:
        """Whether no value satisfies schemas of one property."""
        every = [node, *others]
        kinds = node.kinds
        for other in others:
            kinds &= self.nodes.parse(other).kinds
        if not kinds:
            return True
        listed = [values for each in every for _, values in each.values or ()]
        if not listed or len(every) < 2:
            return False
        values = min(listed, key=len)
        if len(values) > MOST_VALUES:
            return False
        try:
            return not any(
                all(self.checker.satisfies(value, each) for each in every) for value in values
            )
        except GrammatonError:
            return False

    def is_implied(self, said: Said, kinds: int, option: Node) -> bool:
        """Whether an option holds of every value of the branch."""
        node = self.nodes.parse(option)
        if kinds & ~node.kinds or (node.same is not None and any(node.same)) or node.is_loose:
            return False
        if node.values or node.choices or node.strings or node.numbers or node.arrays:
            return False
        facts = node.objects
        if facts is None or not kinds & OBJECT:
            return True
        if facts.other or facts.patterns or facts.names or facts.some or facts.min:
            return False
        if facts.max is not None or not said.required.issuperset(facts.required):
            return False
        return all(
            self.nodes.parse(value).never and said.forbids(key, self.nodes)
            for key, value in facts.properties.items()
        )
