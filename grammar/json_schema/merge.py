"""A branch, merged: what a conjunction of plain schemas leaves of each kind of value.

Lengths and bounds are intersected, patterns and formats gathered, properties and items merged
member by member into positions, and listed values filtered by everything else that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    Arrays,
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
MAX_SHAPES = 512
"""Cases that the properties which must be found somewhere may make of one object."""


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
            position.arrays.extend(self._arrays(flat))
        if kinds & OBJECT:
            position.objects.extend(self._objects(flat))

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
                position.arrays.extend(self._arrays([node]))
            else:
                position.objects.extend(self._objects([node]))
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

    def _arrays(self, flat: list[Node]) -> Iterator[ArrayShape]:
        """The shapes of arrays; several where an item must be found at one place or another."""
        said = [node.arrays for node in flat if node.arrays is not None]
        least, most, length = 0, None, 0
        some: list[tuple[int, Node]] = []
        for facts in said:
            least = max(least, facts.min)
            if facts.max is not None and (most is None or facts.max < most):
                most = facts.max
            length = max(length, len(facts.prefix))
            some.extend(facts.some)
        items = [self._items(said, i) for i in range(max([length, *(start for start, _ in some)]))]
        rest = [facts.rest for facts in said if facts.rest is not None]
        yield from self._found(items, rest, least, most, some)

    def _items(self, said: list[Arrays], i: int) -> list[Node]:
        """The schemas that hold of item i."""
        nodes = []
        for facts in said:
            if i < len(facts.prefix):
                nodes.append(facts.prefix[i])
            elif facts.rest is not None:
                nodes.append(facts.rest)
        return nodes

    def _found(
        self,
        items: list[list[Node]],
        rest: list[Node],
        least: int,
        most: int | None,
        some: list[tuple[int, Node]],
    ) -> Iterator[ArrayShape]:
        """The shapes with what must be found put at each place where it can be."""
        if not some:
            prefix = [self._position(nodes) for nodes in items]
            yield ArrayShape(prefix, self._position(rest), least, most)
            return
        (start, node), others = some[0], some[1:]
        for i in range(start, len(items)):
            placed = [*items[:i], [*items[i], node], *items[i + 1 :]]
            yield from self._found(placed, rest, max(least, i + 1), most, others)
        if others and not self.relaxed:
            raise UnsupportedKeyword(
                "two items would have to be found; that is not enforced yet", pointer=node.pointer
            )
        prefix = [self._position(nodes) for nodes in items]
        least = max(least, len(items) + 1)
        found = self._position([*rest, node])
        yield ArrayShape(prefix, self._position(rest), least, most, found)

    def _objects(self, flat: list[Node]) -> Iterator[ObjectShape]:
        """The shapes of objects; several where a property must be found under some key."""
        said = [(node, node.objects) for node in flat if node.objects is not None]
        some = [entry for _, facts in said for entry in facts.some]
        if not some:
            yield self._object(flat, None)
            return
        for sort, node in some:
            for pattern in (*sort.found, *sort.missing):
                self.strings.pattern_at(pattern, node.pointer)
        plain = [node for node in flat if node.objects is None or not node.objects.some]
        for count, shape in enumerate(self._placed(plain, some, [])):
            if count >= MAX_SHAPES:
                raise LimitExceeded(f"the schema at {some[0][1].pointer} has too many cases")
            yield shape

    def _placed(
        self, flat: list[Node], some: list[tuple[KeySort, Node]], left: list[tuple[KeySort, Node]]
    ) -> Iterator[ObjectShape]:
        """The shapes with what must be found put under each declared key, or left to the others."""
        if some:
            (sort, wanted), rest = some[0], some[1:]
            facts = [node.objects for node in flat if node.objects is not None]
            keys = [key for each in facts for key in (*each.properties, *each.required)]
            for key in dict.fromkeys(keys):
                if self.strings.is_of(sort, key):
                    having = self.nodes.having([key], wanted.pointer)
                    assert having.objects is not None
                    having.objects.properties[key] = wanted
                    yield from self._placed([*flat, having], rest, left)
            yield from self._placed(flat, rest, [*left, some[0]])
        elif not left:
            yield self._object(flat, None)
        elif not self._is_closed(flat):
            if len(left) > 1 and not self.relaxed:
                raise UnsupportedKeyword(
                    "two properties that are not declared would have to be found; "
                    "that is not enforced yet",
                    pointer=left[0][1].pointer,
                )
            wanted = left[0][1]
            if not self.nodes.parse(wanted).trivial and not self.relaxed:
                # A text may repeat an undeclared key, and a reader takes the last value only.
                raise UnsupportedKeyword(
                    "a property that is not declared would have to be found by its value; "
                    "that is not enforced yet",
                    pointer=wanted.pointer,
                )
            yield self._object(flat, left[0])

    def _is_closed(self, flat: list[Node]) -> bool:
        """Whether a schema of a conjunction allows declared properties only."""
        return any(
            not facts.patterns and self.nodes.parse(facts.other).never
            for node in flat
            if (facts := node.objects) is not None and facts.other is not None
        )

    def _object(self, flat: list[Node], some: tuple[KeySort, Node] | None) -> ObjectShape:
        """The shape of objects, one undeclared property being `some`."""
        said = [(node, node.objects) for node in flat if node.objects is not None]
        facts = [each for _, each in said]
        found: list[str] = []
        for each in facts:
            for pattern, pointer, _ in each.patterns:
                self.strings.pattern_at(pattern, pointer)
                if pattern not in found:
                    found.append(pattern)
        for pattern in () if some is None else (*some[0].found, *some[0].missing):
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
                    patterned = any(
                        self.strings.found(pattern, key)
                        for each_facts in facts
                        for pattern, _, _ in each_facts.patterns
                    )
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
        declared = {pattern for each in facts for pattern, _, _ in each.patterns}
        sorts = [
            sort
            for sort in self._sorts(frozenset(properties), found)
            if not closed or not declared.isdisjoint(sort.found)
        ]
        others = [(sort, position(_nodes_for(facts, None, sort.found))) for sort in sorts]
        marked = None
        if some is not None:
            wanted, node = some
            if most is not None and not self.relaxed:
                raise UnsupportedKeyword(
                    "a property that is not declared would have to be found beside maxProperties; "
                    "that is not enforced yet",
                    pointer=node.pointer,
                )
            marked = [
                (
                    KeySort(sort.excluded | wanted.excluded, sort.found, sort.missing),
                    position([*_nodes_for(facts, None, sort.found), node]),
                )
                for sort in sorts
                if set(wanted.found) <= set(sort.found) and set(wanted.missing) <= set(sort.missing)
            ]
            marked = [(sort, place) for sort, place in marked if self.strings.has_keys(sort)]
        return ObjectShape(properties, required, others, least, most, counted, marked)

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
