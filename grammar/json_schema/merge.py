"""A branch, merged: what a conjunction of plain schemas leaves of each kind of value.

Lengths and bounds are intersected, patterns and formats gathered, properties and items merged
member by member into positions, and listed values filtered by everything else that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from grammaton.errors import LimitExceeded, UnsupportedKeyword
from grammaton.grammar.json_schema.clauses import Clause
from grammaton.grammar.json_schema.formats import IRREGULAR_FORMATS
from grammaton.grammar.json_schema.merge_objects import Members, ObjectMerger
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
    Contains,
    Node,
    Nodes,
    unsupported,
)
from grammaton.grammar.json_schema.number_texts import NumberTexts, Sort
from grammaton.grammar.json_schema.numbers import Bounds, exact
from grammaton.grammar.json_schema.positions import (
    FEW_DUTIES,
    MAX_DUTIES,
    ArrayShape,
    Duty,
    Position,
    subsets,
)
from grammaton.grammar.json_schema.strings import StringFacts, StringTexts, encode
from grammaton.grammar.json_schema.values import (
    Checker,
    canonical,
    kind_of,
    plain_number,
    string_facts,
)

MAX_LISTED = 256
"""Integers within bounds that are taken as a list of values."""


Choice = tuple[str, list[Node]]
"""A keyword and the schemas that it lets choose from."""


class Positions(Members, Protocol):
    """Where the positions of members come from."""

    any_array: ArrayShape


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
        self._positions = positions
        self._position = positions.position
        self._of = positions.of
        self._nothing = positions.nothing
        self._any_array = positions.any_array
        self._any_object = positions.any_object
        self._objects = ObjectMerger(positions, nodes, strings, closed=closed, relaxed=relaxed)
        self.null = strings.pieces.null
        self.booleans = strings.pieces.booleans

    def add(
        self,
        position: Position,
        flat: list[Node],
        kinds: int,
        pending: Sequence[Choice],
        clauses: list[Clause],
    ) -> None:
        """Adds what a branch can hold to its position.

        Args:
            flat, kinds: the conjunction.
            pending: choices that it stands before; only where it lists values or holds of strings.
            clauses: choices that are kept; only of objects.
        """
        for node in flat:
            if node.values is not None:
                self._add_values(position, flat, kinds, pending)
                return
        if not self.relaxed:
            _refuse(flat, kinds)
        if kinds & ~(NULL | BOOLEAN | INTEGER):
            position.finite = None
        elif position.finite is not None:
            self._list(position, position.finite, flat, kinds)
        if kinds & NULL:
            position.scalars[self.null] = None
        if kinds & BOOLEAN:
            position.scalars[self.booleans] = None
        if kinds & STRING:
            self._add_strings(position, flat, pending)
        if kinds & NUMBER:
            self._add_numbers(position, flat, kinds)
        if kinds & ARRAY:
            position.arrays.append(self._array(flat))
        if kinds & OBJECT:
            position.objects.append(self._objects.shape(flat, clauses))

    def _add_values(
        self, position: Position, flat: list[Node], kinds: int, pending: Sequence[Choice]
    ) -> None:
        """The values of enum and const that satisfy the whole branch."""
        owner, keyword, candidates = self._candidates(flat)
        texts: dict[str, None] = {}
        numbers: dict[Any, None] = {}
        containers: dict[Any, Any] = {}
        filters = [node for node in flat if _filters(node, owner)]
        found = False
        for value in candidates:
            kind = kind_of(value, "")
            if not kind & kinds or not self._fits(value, filters, pending):
                continue
            found = True
            if position.finite is not None:
                position.finite.append(value)
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
        if found and not containers:
            return
        of_document = owner.id > 0 and owner.raw is not True
        pointer = f"{owner.pointer}/{keyword}" if of_document else owner.pointer
        for value in containers.values():
            node = self.nodes.constant(value, pointer)
            if isinstance(value, list):
                position.arrays.append(self._array([node]))
            else:
                position.objects.append(self._objects.shape([node], []))
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

    def _add_strings(self, position: Position, flat: list[Node], pending: Sequence[Choice]) -> None:
        said = [node.strings for node in flat if node.strings is not None]
        if not said and not pending:
            position.scalars[self.strings.any_string] = None
            return
        merged = string_facts(said, self.strings)._replace(within=self._chosen(pending))
        merged = self._regular(merged, flat, alone=not pending)
        term = self.strings.string(merged)
        position.scalars[term] = None
        if term == self.strings.store.NOTHING:
            owner = next((node for node in flat if node.strings is not None), flat[0])
            if merged.max is not None and merged.max < merged.min:
                reason = f"minLength {merged.min} is above maxLength {merged.max}"
            else:
                reason = "no string satisfies the pattern, format and lengths together"
            position.reasons.append((owner.pointer, reason))

    def _chosen(self, pending: Sequence[Choice]) -> tuple[int, ...]:
        """The decoded texts that each of some choices lets through."""
        store, texts = self.strings.store, self._positions.texts
        return tuple(
            int(store.union([texts((option,)) for option in options])) for _, options in pending
        )

    def _regular(self, facts: StringFacts, flat: list[Node], *, alone: bool) -> StringFacts:
        """Facts that a term can have; `alone` if the format that has none may stand by itself."""
        name = facts.irregular
        if name is None or (alone and facts.alone is not None):
            return facts
        if not self.relaxed:
            owner = next(node for node in flat if node.strings and name in node.strings.formats)
            keyword = "format" if name == "regex" else "contentMediaType"
            raise unsupported(
                owner, keyword, f"{name!r} is enforced only where nothing else is said"
            )
        formats = tuple(each for each in facts.formats if each not in IRREGULAR_FORMATS)
        return facts._replace(formats=formats)

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

    def _list(self, position: Position, finite: list[Any], flat: list[Node], kinds: int) -> None:
        """Keeps the list of a position's values, or gives it up."""
        if kinds & NULL:
            finite.append(None)
        if kinds & BOOLEAN:
            finite.extend((False, True))
        if kinds & INTEGER:
            bounds = _ANY_NUMBER
            for node in flat:
                bounds = bounds if node.numbers is None else bounds.meet(node.numbers)
            low, high = bounds.low, bounds.high
            if low is not None and high is not None and high - low < MAX_LISTED:
                whole = range(int(low) - 1, int(high) + 2)
                finite.extend(number for number in whole if bounds.holds(number))
            else:
                position.finite = None

    def texts(self, flat: list[Node], kinds: int, pending: Sequence[Choice]) -> int:
        """The decoded texts of the strings of a branch."""
        store = self.strings.store
        if not kinds & STRING:
            return int(store.NOTHING)
        if not any(node.values is not None for node in flat):
            said = [node.strings for node in flat if node.strings is not None]
            facts = string_facts(said, self.strings)._replace(within=self._chosen(pending))
            return self.strings.text(self._regular(facts, flat, alone=False))
        _, _, candidates = self._candidates(flat)
        fitting = [
            encoded
            for value in candidates
            if isinstance(value, str)
            and self._fits(value, flat, pending)
            and (encoded := encode(value)) is not None
        ]
        return int(store.literals(fitting)) if fitting else int(store.NOTHING)

    def _candidates(self, flat: list[Node]) -> tuple[Node, str, list[Any]]:
        """The shortest list of values in a conjunction, with its owner and keyword."""
        return min(
            (
                (node, keyword, values)
                for node in flat
                if node.values is not None
                for keyword, values in node.values
            ),
            key=lambda entry: len(entry[2]),
        )

    def _array(self, flat: list[Node]) -> ArrayShape:
        """The shape of arrays."""
        said = [node.arrays for node in flat if node.arrays is not None]
        if not said:
            return self._any_array
        least, most, length = 0, None, 0
        some: dict[Contains, None] = {}
        unique = None
        for node in flat:
            facts = node.arrays
            if facts is None:
                continue
            least = max(least, facts.min)
            if facts.max is not None and (most is None or facts.max < most):
                most = facts.max
            length = max(length, len(facts.prefix))
            some.update((each, None) for each in facts.some if each.counts)
            unique = node if facts.unique else unique
        length = max([length, *(each.start for each in some)])
        items = [self._items(said, i) for i in range(length)]
        rest = [facts.rest for facts in said if facts.rest is not None]
        prefix = [self._position(nodes) for nodes in items]
        shape = ArrayShape(prefix, self._position(rest), least, most)
        if unique is not None and (most is None or most > 1) and not self.relaxed:
            if self._list_unique(shape, list(some), f"{unique.pointer}/uniqueItems"):
                return shape
            shape.unique = f"{unique.pointer}/uniqueItems"
        if some:
            self._make_claims(shape, [*items, rest], list(some))
        return shape

    def _make_claims(
        self, shape: ArrayShape, items: list[list[Node]], some: list[Contains]
    ) -> None:
        """Variants of the items by what they are claimed to be."""
        if self.relaxed and len(some) > FEW_DUTIES:
            return
        if len(some) > MAX_DUTIES:
            raise LimitExceeded(
                f"an array must contain items of over {MAX_DUTIES} sorts "
                f"(at {some[0].node.pointer})"
            )
        shape.duties = [Duty(each.least, each.most) for each in some]
        shape.variants = []
        for i, nodes in enumerate(items):
            free = [j for j, each in enumerate(some) if each.start <= i]
            for claimed in subsets(free):
                # Where there may not be too many, what is not claimed must not be one.
                said = [*nodes, *(some[j].node for j in claimed)]
                said += [
                    self.nodes.negation(some[j].node, some[j].node.pointer)
                    for j in free
                    if j not in claimed and some[j].most is not None
                ]
                index = i if i < len(shape.prefix) else None
                shape.variants.append((index, self._position(said), claimed, None))

    def _list_unique(self, shape: ArrayShape, some: list[Contains], pointer: str) -> bool:
        """Variants of the items by their value; False where not all are listed."""
        places = shape.prefix if shape.rest is None else [*shape.prefix, shape.rest]
        if shape.max is not None:
            places = places[: shape.max]
        for position in places:
            self._positions.expand(position)
        if any(position.finite is None for position in places):
            return False
        shape.duties = [Duty(each.least, each.most) for each in some]
        shape.variants = []
        numbers: dict[Any, int] = {}
        for i, position in enumerate(places):
            listed = position.finite or ()
            for key, value in {canonical(value): value for value in listed}.items():
                claimed = tuple(
                    j
                    for j, each in enumerate(some)
                    if each.start <= i and self.checker.satisfies(value, each.node)
                )
                number = numbers.setdefault(key, len(numbers))
                place = self._position((self.nodes.literal(value, pointer),))
                index = i if i < len(shape.prefix) else None
                shape.variants.append((index, place, claimed, number))
        if shape.min > len(numbers):
            shape.max = min(len(numbers), shape.min - 1)
        return True

    def _items(self, said: list[Arrays], i: int) -> list[Node]:
        """The schemas that hold of item i."""
        nodes = []
        for facts in said:
            if i < len(facts.prefix):
                nodes.append(facts.prefix[i])
            elif facts.rest is not None:
                nodes.append(facts.rest)
        return nodes


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
        for wanted, keyword, _ in node.refused or ():
            if wanted & kinds:
                raise unsupported(node, keyword)
