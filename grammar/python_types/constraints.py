"""Constraints: what `Annotated` adds to a type, in the words of the package annotated_types.

The package is recognised by its objects and never imported. As PEP 593 asks, metadata of other
libraries is passed over; pydantic's is read by pydantic (models.py).

Bounds of floats are moved to the nearest float that is inside: a text is rounded when it becomes
a float, and 0.99999999999999999 would else pass `Lt(1)` and be 1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from grammaton.errors import UnsupportedType

_LENGTHS = ("min_length", "max_length")
_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of")


@dataclass
class Constraints:
    """What one `Annotated` says.

    Attributes:
        bounds: (word, value), the word one of ge, gt, le, lt and multiple_of.
        lengths: (word, value), the word one of min_length and max_length.
    """

    bounds: list[tuple[str, Any]] = field(default_factory=list)
    lengths: list[tuple[str, int]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.bounds or self.lengths)


def is_pydantic(metadata: object) -> bool:
    """Whether a piece of metadata is pydantic's."""
    kind = type(metadata)
    module = metadata.__module__ if isinstance(metadata, type) else kind.__module__
    return module.partition(".")[0] == "pydantic" or hasattr(
        metadata, "__get_pydantic_core_schema__"
    )


def collect(metadata: Iterable[Any], path: str) -> Constraints:
    """Reads the metadata of an `Annotated`.

    Raises:
        UnsupportedType: a constraint that no grammar enforces (`Predicate`, `Timezone`).
    """
    found = Constraints()
    for item in _flat(metadata):
        if type(item).__module__ != "annotated_types":
            continue
        name = type(item).__name__
        if name in ("Predicate", "Not", "Timezone"):
            raise UnsupportedType(f"{item!r} is not enforced by a grammar", path=path)
        for word in _BOUNDS:
            value = getattr(item, word, None)
            if value is not None:
                found.bounds.append((word, value))
        for word in _LENGTHS:
            value = getattr(item, word, None)
            if value is not None and (word, value) != ("min_length", 0):
                found.lengths.append((word, value))
    return found


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    """The pieces of `Interval`, `Len` and the like."""
    package = sys.modules.get("annotated_types")
    for item in metadata:
        if package is not None and isinstance(item, package.GroupedMetadata):
            yield from _flat(item)
        else:
            yield item


def exact_bounds(bounds: Iterable[tuple[str, Any]], path: str) -> dict[str, Any]:
    """The keywords for bounds of exact numbers.

    Raises:
        UnsupportedType: a bound is no finite number, or two divisors are set.
    """
    made: dict[str, Any] = {}
    for word, value in bounds:
        value = _number(word, value, path)
        if word == "multiple_of":
            if "multipleOf" in made:
                raise UnsupportedType("two multiple_of at once are not supported", path=path)
            made["multipleOf"] = value
            continue
        low = word in ("ge", "gt")
        keyword = "minimum" if low else "maximum"
        opened = "exclusiveMinimum" if low else "exclusiveMaximum"
        mine = opened if word in ("gt", "lt") else keyword
        known = [each for each in (keyword, opened) if each in made]
        if known:
            other = made[known[0]]
            tighter = value > other if low else value < other
            if not (tighter or (value == other and mine == opened)):
                continue
            del made[known[0]]
        made[mine] = value
    return made


def float_bounds(
    bounds: Iterable[tuple[str, Any]], path: str, *, finite: bool = False
) -> dict[str, Any]:
    """The keywords for bounds of floats, such that they hold after rounding.

    Raises:
        UnsupportedType: as `exact_bounds`; or no float is within the bounds.
    """
    made = exact_bounds(bounds, path)
    for keyword, opened, towards in (
        ("minimum", "exclusiveMinimum", math.inf),
        ("maximum", "exclusiveMaximum", -math.inf),
    ):
        if keyword not in made and opened not in made:
            if finite:
                made[keyword] = math.copysign(sys.float_info.max, -towards)
            continue
        strict = opened in made
        bound = Decimal(made.pop(opened, None) if strict else made.pop(keyword))
        try:
            near = float(bound)
        except OverflowError:
            near = math.copysign(math.inf, bound)
        while not _inside(near, bound, strict, towards):
            near = math.nextafter(near, towards)
            if math.isinf(near):
                raise UnsupportedType(f"no float is beyond {bound}", path=path)
        if math.isinf(near):
            near = math.copysign(sys.float_info.max, near)
        made[keyword] = near
    return made


def _inside(near: float, bound: Decimal, strict: bool, towards: float) -> bool:
    """Whether the shortest text of a float is within a bound."""
    if math.isinf(near):
        return near != towards
    written = Decimal(repr(near))
    if written == bound:
        return not strict
    return written > bound if towards > 0 else written < bound


def _number(word: str, value: Any, path: str) -> int | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise UnsupportedType(f"{word}={value!r} is no number", path=path)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UnsupportedType(f"{word}={value!r} is not finite", path=path)
        return int(value) if value.is_integer() and abs(value) < 2**53 else Decimal(repr(value))
    if isinstance(value, Decimal) and not value.is_finite():
        raise UnsupportedType(f"{word}={value!r} is not finite", path=path)
    return value


def holds(value: int | float | Decimal, bounds: Iterable[tuple[str, Any]]) -> bool:
    """Whether a number is within bounds; how a union tells its members apart."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    for word, raw in bounds:
        bound = Decimal(_number(word, raw, ""))
        if not (
            exact >= bound
            if word == "ge"
            else exact > bound
            if word == "gt"
            else exact <= bound
            if word == "le"
            else exact < bound
            if word == "lt"
            else Fraction(exact) % Fraction(bound) == 0
        ):
            return False
    return True


def lengths(
    found: Iterable[tuple[str, int]], least: str, most: str
) -> tuple[dict[str, Any], int, float]:
    """The keywords for lengths, and the least and greatest themselves."""
    low, high = 0, math.inf
    for word, value in found:
        if word == "min_length":
            low = max(low, value)
        else:
            high = min(high, value)
    made: dict[str, Any] = {}
    if low:
        made[least] = low
    if high != math.inf:
        made[most] = int(high)
    return made, low, high
