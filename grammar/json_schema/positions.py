"""Positions and shapes: what may stand at one place, and whether anything may.

A *position* is a conjunction of schemas that hold of the same value; once expanded (normal.py) it
has terms of scalars, and a *shape* for each way to be an array or an object. The members of a
shape are positions in their turn. The *height* of a position is the least nesting of a value of
it, a least fixpoint over the members that shapes require, and INFINITE where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

from grammaton.errors import UnsatisfiableGrammar
from grammaton.grammar.json_schema.kept import Kept
from grammaton.grammar.json_schema.nodes import Node
from grammaton.grammar.json_schema.strings import KeySort

INFINITE = 1 << 30
MAX_DUTIES = 6
"""Members of different sorts that one array or object may have to contain."""
FEW_DUTIES = 2
"""So many of them are looked at in a relaxed normal form."""


class Duty(NamedTuple):
    """So many members must be claimed for it, and no more may be; None is any number."""

    least: int
    most: int | None


def subsets(numbers: list[int]) -> list[tuple[int, ...]]:
    """All subsets, the empty one first."""
    return [some for size in range(len(numbers) + 1) for some in combinations(numbers, size)]


class ArrayShape:
    """Arrays: positions of the first items, of the rest (None: no more items), how many.

    Where there are `duties`, or no two items may be equal and their values are listed, every item
    is one of some `variants` (index or None for the rest, position, duties that it is claimed for,
    number of its value). Where no two may be equal and not all are listed, `unique` is the pointer
    of the keyword that says so.
    """

    __slots__ = ("duties", "max", "min", "prefix", "rest", "term", "unique", "variants")

    def __init__(
        self,
        prefix: list[Position],
        rest: Position | None,
        least: int,
        most: int | None,
        duties: list[Duty] | None = None,
        variants: list[tuple[int | None, Position, tuple[int, ...], int | None]] | None = None,
    ) -> None:
        self.prefix = prefix
        self.rest = rest
        self.min = least
        self.max = most
        self.duties = duties or []
        self.variants = variants
        self.term: int | None = None
        self.unique: str | None = None

    def item(self, i: int) -> Position | None:
        """The position of item i; None when there can be none."""
        if self.max is not None and i >= self.max:
            return None
        return self.prefix[i] if i < len(self.prefix) else self.rest

    @property
    def is_free(self) -> bool:
        """Whether an array needs no items."""
        return not self.min and not self.duties

    def required(self) -> Iterator[Position | None]:
        """The positions that every array of this shape has."""
        for i in range(min(self.min, len(self.prefix) + 1)):
            yield self.item(i)
        if self.max is not None and self.max < self.min:
            yield None

    def members(self) -> Collection[Position]:
        """All positions inside."""
        members = [*self.prefix] if self.rest is None else [*self.prefix, self.rest]
        members += [position for _, position, _, _ in self.variants or ()]
        return members

    def claims(self) -> Iterator[tuple[Position, tuple[int, ...]]]:
        """What can be claimed for duties."""
        for _, position, duties, _ in self.variants or ():
            yield position, duties


class ObjectShape:
    """Objects: positions of declared properties in order, of the others by the sort of their key.

    `required` holds the keys that must be there, each with the schema that says so; undeclared ones
    are properties too, after the declared, if they can be there at all. `min` and `max` count
    properties; `counted` is the pointer of the keyword that sets the least. Each of the `duties`
    needs a property that is claimed for it: `claimed` are (declared key or sort of another,
    position, duties). `kept` are choices that are not multiplied out. `found` is true where a
    property that is not declared must be found by its value; then, and where several are counted,
    the keys of undeclared properties must differ.
    """

    __slots__ = (
        *("claimed", "counted", "duties", "found", "kept", "max", "min", "others"),
        *("properties", "required", "term"),
    )

    def __init__(
        self,
        properties: dict[str, Position],
        required: dict[str, Node],
        others: list[tuple[KeySort, Position]],
        least: int,
        most: int | None,
        counted: str,
        duties: list[Duty] | None = None,
        claimed: list[tuple[str | KeySort, Position, tuple[int, ...]]] | None = None,
    ) -> None:
        self.properties = properties
        self.required = required
        self.others = others
        self.min = least
        self.max = most
        self.counted = counted
        self.duties = duties or []
        self.claimed = claimed or []
        self.kept: Kept | None = None
        self.term: int | None = None
        self.found = False

    @property
    def counts_others(self) -> bool:
        """Whether it matters which undeclared properties there are."""
        return self.found or self.min - len(self.required) > 1

    @property
    def is_free(self) -> bool:
        """Whether an object needs no properties, and there is nothing else to it."""
        return not (self.required or self.min or self.duties) and self.kept is None

    def members(self) -> Collection[Position]:
        """All positions inside."""
        properties = self.properties.values()
        if not self.others and not self.claimed and self.kept is None:
            return properties
        members = [*properties, *[position for _, position in self.others]]
        members += [position for _, position, _ in self.claimed]
        return members if self.kept is None else [*members, *self.kept.positions()]

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more than the required properties."""
        return self.max is not None and self.max <= len(self.required)

    def claims(self) -> Iterator[tuple[Position, tuple[int, ...]]]:
        """What can be claimed for duties."""
        for place, position, duties in self.claimed:
            if not self.is_full or place in self.required:
                yield position, duties


class Position:
    """What is said of the value at one place; `nodes` is empty where nothing is.

    Attributes:
        scalars: terms of the strings, numbers, literals and scalar constants.
        arrays, objects: the shapes, one for each branch that has any.
        height: least nesting of a value, INFINITE for none.
        finite: all its values, while they are few and listed; None otherwise.
        reasons: (pointer, explanation) of branches and kinds that turned out empty.
        term: what it is lowered to, once it is; not where texts are indented. Shapes have one, too.
        simple: the number of a schema that the core lowers by itself (simple.py), if it is one.
    """

    __slots__ = (
        *("arrays", "expanded", "finite", "height", "nodes", "objects", "reasons", "scalars"),
        *("simple", "term"),
    )

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self.expanded = False
        self.scalars: dict[int, None] = {}
        self.arrays: list[ArrayShape] = []
        self.objects: list[ObjectShape] = []
        self.height = INFINITE
        self.finite: list[Any] | None = []
        self.reasons: list[tuple[str, str]] = []
        self.term: int | None = None
        self.simple: int | None = None

    @property
    def shapes(self) -> list[Shape]:
        return [*self.arrays, *self.objects]

    @property
    def pointer(self) -> str:
        return self.nodes[0].pointer if self.nodes else ""


Shape = ArrayShape | ObjectShape


def required_members(shape: Shape) -> Iterable[Position | None]:
    """The members that every value of a shape has; None for one that cannot be."""
    if isinstance(shape, ArrayShape):
        return shape.required()
    return map(shape.properties.get, shape.required)


def deciding_members(shape: Shape) -> Iterable[Position | None]:
    """The members that decide whether a shape holds any value."""
    if shape.duties or (
        isinstance(shape, ObjectShape)
        and (shape.kept is not None or shape.min > len(shape.required))
    ):
        return shape.members()
    return required_members(shape)


def shape_height(shape: Shape) -> int:
    """Least nesting of a value of a shape: one more than the members that it needs."""
    if shape.is_free:
        return 1
    inner = 0
    for member in required_members(shape):
        inner = max(inner, INFINITE if member is None else member.height)
    if isinstance(shape, ObjectShape) and inner < INFINITE:
        inner = max(inner, _optional_height(shape))
        if shape.kept is not None and inner < INFINITE:
            inner = max(inner, shape.kept.least_height(shape.required, INFINITE))
    if shape.duties:
        heights = [0 if duty.least == 0 else INFINITE for duty in shape.duties]
        for position, duties in shape.claims():
            for duty in duties:
                heights[duty] = min(heights[duty], position.height)
        inner = max(inner, *heights)
    return min(inner + 1, INFINITE)


def _optional_height(shape: ObjectShape) -> int:
    """The nesting that an object needs to have as many properties as it must."""
    count = len(shape.required)
    if shape.max is not None and shape.max < max(count, shape.min):
        return INFINITE
    missing = shape.min - count
    if missing <= 0:
        return 0
    heights = sorted(
        position.height for key, position in shape.properties.items() if key not in shape.required
    )
    fewest = heights[missing - 1] if missing <= len(heights) else INFINITE
    return min([fewest, *(position.height for _, position in shape.others)])


def settle(positions: Iterable[Position]) -> None:
    """Computes the least heights; members first is the fastest order."""
    open_still = [position for position in positions if position.height > 1]
    changed = True
    while changed:
        changed = False
        for position in open_still:
            best = position.height
            for shape in position.shapes:
                best = min(best, shape_height(shape))
            if best < position.height:
                position.height = best
                changed = True


def contradiction(root: Position, expand: Callable[[Position], None]) -> UnsatisfiableGrammar:
    """Why a position holds no value, told at the place where it goes wrong."""
    position, seen = root, {root}
    while True:
        expand(position)
        shapes = position.shapes
        for each in shapes:
            for inside in each.members():
                expand(inside)
        if not shapes:
            if position.reasons:
                pointer, reason = position.reasons[0]
                return UnsatisfiableGrammar(
                    f"no value can satisfy the schema: {reason}", pointer=pointer
                )
            reason = (
                ": nothing is allowed there" if position.nodes and position.nodes[0].never else ""
            )
            return UnsatisfiableGrammar(
                f"no value can satisfy the schema{reason}", pointer=position.pointer
            )
        shape = shapes[0]
        culprit = None
        for member in required_members(shape):
            if member is None or member.height >= INFINITE:
                culprit = member
                break
        if culprit is None or (not culprit.nodes and not culprit.arrays):
            return _missing(position, shape)
        if culprit in seen:
            return UnsatisfiableGrammar(
                "no value can satisfy the schema: it requires itself without end",
                pointer=culprit.pointer,
            )
        seen.add(culprit)
        position = culprit


def _missing(position: Position, shape: Shape) -> UnsatisfiableGrammar:
    if isinstance(shape, ArrayShape):
        reason = f"minItems {shape.min} is above the number of items that there can be"
        if shape.duties:
            reason = "no item can be what 'contains' asks for"
        return UnsatisfiableGrammar(
            f"no value can satisfy the schema: {reason}", pointer=position.pointer
        )
    if shape.max is not None and shape.max < max(len(shape.required), shape.min):
        return UnsatisfiableGrammar(
            f"no value can satisfy the schema: no more than {shape.max} properties may be there, "
            f"and at least {max(len(shape.required), shape.min)} must",
            pointer=position.pointer,
        )
    for key, owner in shape.required.items():
        member = shape.properties.get(key)
        if member is None or member.height >= INFINITE:
            return UnsatisfiableGrammar(
                f"no value can satisfy the schema: {key!r} is required and can't be there",
                pointer=f"{owner.pointer}/required",
            )
    if shape.duties:
        return UnsatisfiableGrammar(
            "no value can satisfy the schema: no property can be as one must",
            pointer=position.pointer,
        )
    return UnsatisfiableGrammar(
        f"no value can satisfy the schema: there can't be {shape.min} properties",
        pointer=shape.counted,
    )
