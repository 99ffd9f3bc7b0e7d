"""A branch, merged: what a conjunction of plain schemas leaves of each kind of value.

Lengths and bounds are intersected, patterns and formats gathered, properties and items merged
member by member into positions, and listed values filtered by everything else that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from grammaton.errors import LimitExceeded, UnsupportedKeyword
from grammaton.grammar.json_schema.nodes import (
    ARRAY,
    BOOLEAN,
    FRACTION,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Node,
    Nodes,
    Objects,
    unsupported,
)
from grammaton.grammar.json_schema.numbers import Bounds, NumberTexts, Sort, exact
from grammaton.grammar.json_schema.positions import ArrayShape, ObjectShape, Position
from grammaton.grammar.json_schema.strings import KeySort, StringFacts, StringTexts, encode
from grammaton.grammar.json_schema.values import (
    Checker,
    canonical,
    kind_of,
    plain_number,
    string_facts,
)

MAX_KEY_SORTS = 256
"""Sorts of undeclared keys that the patternProperties of one object may make."""


Choice = tuple[str, list[Node]]
"""A keyword and the schemas that it lets choose from."""


class Positions(Protocol):
    """Where the positions of members come from."""

    nothing: Position

    def position(self, nodes: Sequence[Node]) -> Position: ...


class Merger:
    """Merges the branches of one document's positions.

    Args:
        positions: the normal form that members belong to.
        nodes, strings, numbers: the document's nodes and the builders of its scalar terms.
        closed: objects that declare properties and do not speak of others have no others.
        relaxed: leave out what is not enforced instead of raising.
    """

    def __init__(
        self,
        positions: Positions,
        nodes: Nodes,
        strings: StringTexts,
        numbers: NumberTexts,
        *,
        closed: bool,
        relaxed: bool,
    ) -> None:
        self.nodes = nodes
        self.strings = strings
        self.numbers = numbers
        self.closed = closed
        self.relaxed = relaxed
        self.checker = Checker(nodes, strings)
        self._position = positions.position
        self._nothing = positions.nothing
        store = strings.store
        self.null: int = store.literal(b"null")
        self.booleans: int = store.union([store.literal(b"true"), store.literal(b"false")])

    def add(
        self, position: Position, flat: list[Node], kinds: int, pending: Sequence[Choice]
    ) -> None:
        """Adds what a branch can hold to its position.

        Args:
            flat, kinds: the conjunction.
            pending: choices that it stands before; only where it lists values.
        """
        if any(node.values is not None for node in flat):
            self._add_values(position, flat, kinds, pending)
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

    def _add_values(
        self, position: Position, flat: list[Node], kinds: int, pending: Sequence[Choice]
    ) -> None:
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
            if not kind & kinds or not self._fits(value, filters, pending):
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

    def _fits(self, value: Any, filters: list[Node], pending: Sequence[Choice]) -> bool:
        try:
            for node in filters:
                if not self.checker.satisfies_plain(value, node):
                    return False
            for keyword, options in pending:
                if not self.checker.satisfies_choice(value, keyword, options):
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
        merged = string_facts(said, self.strings)
        term = self.strings.string(merged)
        position.scalars[term] = None
        if term == self.strings.store.NOTHING:
            owner = next(node for node in flat if node.strings is not None)
            if merged.max is not None and merged.max < merged.min:
                reason = f"minLength {merged.min} is above maxLength {merged.max}"
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
        sort: Sort = "integer" if kinds & INTEGER else "fraction"
        if kinds & NUMBER == NUMBER:
            sort = "number"
        term = self.numbers.number(bounds, sort)
        position.scalars[term] = None
        if term == self.strings.store.NOTHING and owner is not None:
            position.reasons.append((owner.pointer, f"no {sort} is {bounds.describe()}"))

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
            prefix.append(self._position(item))
        rest = self._position([facts.rest for facts in said if facts.rest is not None])
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
        position = self._position
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
                properties[key] = self._nothing
        least, most, counted = 0, None, ""
        for node, each in said:
            if each.min > least:
                least, counted = each.min, f"{node.pointer}/minProperties"
            if each.max is not None and (most is None or each.max < most):
                most = each.max
        others = [
            (sort, position(_nodes_for(facts, None, sort.found)))
            for sort in self._sorts(frozenset(properties), found)
            if sort.found or not closed
        ]
        return ObjectShape(properties, required, others, least, most, counted)

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
        or (node.values is not None and (node is not owner or len(node.values) > 1))
    )


def _refuse(flat: list[Node], kinds: int) -> None:
    """Raises for what is said of these kinds and not enforced."""
    for node in flat:
        for wanted, keyword, value in node.refused or ():
            if wanted & kinds:
                if keyword == "format":
                    raise unsupported(node, "format", f"{value!r} is not enforced yet")
                raise unsupported(node, keyword)
