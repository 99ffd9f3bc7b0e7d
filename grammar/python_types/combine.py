"""Shapes of shapes: the primitives, and what containers, unions and records make of others.

A *record* is an object with named fields, a *vector* an array with named places, a *mapping* an
object with any keys of a language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from grammaton.errors import UnsupportedType
from grammaton.grammar.python_types.constraints import (
    Constraints,
    exact_bounds,
    float_bounds,
    holds,
    lengths,
)
from grammaton.grammar.python_types.scalars import INTEGER, anchored, decimal_number
from grammaton.grammar.python_types.shape import (
    Build,
    Key,
    Mismatch,
    Schema,
    Shape,
    is_integer,
    is_number,
    natural,
)

_ANY_CHARACTER = "[\\s\\S]"
_ANY_TEXT = f"{_ANY_CHARACTER}*"
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")


@dataclass(frozen=True)
class Field:
    """A property of a record.

    Attributes:
        name: of the attribute, parameter or key.
        shape: its value's.
        required: whether the property must be there.
    """

    name: str
    shape: Shape
    required: bool


# Primitives


def _null(value: Any) -> None:
    if value is not None:
        raise Mismatch


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Mismatch
    return value


def _int(value: Any) -> int:
    if not is_integer(value):
        raise Mismatch
    made: int = value
    return made


def _int_key(text: str) -> int:
    value = int(text)
    if str(value) != text:
        raise Mismatch
    return value


def _float(value: Any) -> float:
    if not is_number(value):
        raise Mismatch
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Mismatch
    return value


NULL = Shape({"type": "null"}, _null)
BOOLEAN = Shape({"type": "boolean"}, _boolean)
INT = Shape({"type": "integer"}, _int, Key(INTEGER, _int_key))
FLOAT = Shape({"type": "number"}, _float)
TEXT = Shape({"type": "string"}, _text, Key(_ANY_TEXT, _text))
ANY = Shape({}, natural)


def _checked(build: Build, fits: Callable[[Any], bool]) -> Build:
    def checked(value: Any) -> Any:
        made = build(value)
        if not fits(made):
            raise Mismatch
        return made

    return checked


def number(kind: Any, found: Constraints, path: str) -> Shape:
    """An int, float or Decimal within bounds."""
    builds: dict[Any, Build] = {int: _int, float: _float, Decimal: decimal_number}
    bounds = (float_bounds if kind is float else exact_bounds)(found.bounds, path)
    schema = {"type": "integer" if kind is int else "number", **bounds}
    # Whether a float is a multiple is a matter of its text, not of its rounded value.
    asked = [each for each in found.bounds if kind is not float or each[0] != "multiple_of"]
    return Shape(schema, _checked(builds[kind], lambda value: holds(value, asked)))


def text(found: Constraints) -> Shape:
    """A str whose length is bounded, in code points."""
    bounds, low, high = lengths(found.lengths, "minLength", "maxLength")
    build = _checked(_text, lambda value: low <= len(value) <= high)
    pattern = text_pattern(low, None if high == math.inf else int(high))
    return Shape({"type": "string", **bounds}, build, Key(pattern, build))


def text_pattern(low: int, high: int | None) -> str:
    """The pattern of texts with so many code points."""
    return f"{_ANY_CHARACTER}{{{low},{'' if high is None else high}}}"


def values(pairs: Sequence[tuple[Any, Any]], path: str) -> Shape:
    """Some JSON scalars, each with what it stands for.

    Raises:
        UnsupportedType: there are none, or one is no JSON scalar.
    """
    known: dict[Any, Any] = {}
    integers: list[int] = []
    others: list[Any] = []
    for raw, value in pairs:
        scalar = getattr(raw, "value", raw) if hasattr(type(raw), "__members__") else raw
        if not (scalar is None or isinstance(scalar, str | int | float)) or (
            isinstance(scalar, float) and not math.isfinite(scalar)
        ):
            raise UnsupportedType(f"{value!r} has no JSON form", path=path)
        if isinstance(scalar, str):
            scalar = str.__str__(scalar)
        plain = isinstance(scalar, int) and not isinstance(scalar, bool)
        if _identity(scalar) not in known:
            known[_identity(scalar)] = value
            (integers if plain else others).append(int(scalar) if plain else scalar)
    if not known:
        raise UnsupportedType("it has no values", path=path)
    parts: list[Schema] = []
    if integers:
        parts.append({"type": "integer", "enum": integers})
    if others:
        parts.append({"enum": others})

    def build(value: Any) -> Any:
        if isinstance(value, list | dict):
            raise Mismatch
        found = known.get(_identity(value), known)
        if found is known:
            raise Mismatch
        return found

    texts = [each for each in others if isinstance(each, str)]
    key = Key("|".join(map(_escaped, texts)), build) if len(texts) == len(known) else None
    return Shape(parts[0] if len(parts) == 1 else {"anyOf": parts}, build, key)


def _identity(value: Any) -> tuple[str, Any]:
    """What makes two JSON scalars the same: 1 is 1.0, and not true."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, float):
        return ("number", Decimal(repr(value)))
    return ("number" if is_number(value) else type(value).__name__, value)


def _escaped(text: str) -> str:
    return "".join("\\" + each if each in _SYNTAX else each for each in text)


# Combinations


def any_of(shapes: Sequence[Shape]) -> Shape:
    """A union: the value is that of the first shape that fits, an int's before all others'."""
    if len(shapes) == 1:
        return shapes[0]
    tried = sorted(shapes, key=lambda shape: shape.schema.get("type") != "integer")

    def build(value: Any) -> Any:
        for shape in tried:
            try:
                return shape.build(value)
            except Mismatch:
                continue
        raise Mismatch

    return Shape({"anyOf": [shape.schema for shape in shapes]}, build)


def array(item: Shape, make: Callable[[list[Any]], Any], found: Constraints) -> Shape:
    """An array of any length, or one that is bounded."""
    bounds, low, high = lengths(found.lengths, "minItems", "maxItems")

    def build(value: Any) -> Any:
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise Mismatch
        return make([item.build(each) for each in value])

    return Shape({"type": "array", "items": item.schema, **bounds}, build)


def unique(item: Shape, make: Callable[[list[Any]], Any], found: Constraints, path: str) -> Shape:
    """A set. Items are written once where they have finitely many values; where they have more,
    an item that is written again is the same item.

    Raises:
        UnsupportedType: a minimal length, which repeated items might not reach.
    """
    shape = array(item, make, found)
    if is_finite(item.schema):
        return Shape({**shape.schema, "uniqueItems": True}, shape.build)
    if any(word == "min_length" and length > 1 for word, length in found.lengths):
        raise UnsupportedType(
            "min_length above 1 can't be enforced on sets whose items have many values", path=path
        )
    return shape


def is_finite(schema: Schema) -> bool:
    """Whether a schema names its values."""
    if "anyOf" in schema:
        return all(map(is_finite, schema["anyOf"]))
    return "enum" in schema or schema.get("type") in ("boolean", "null")


def vector(places: Sequence[Shape], least: int, make: Callable[[list[Any]], Any]) -> Shape:
    """An array with a shape for each place, of which the first `least` must be there."""
    schema: Schema = {"type": "array", "minItems": least, "maxItems": len(places)}
    if places:
        schema |= {"items": [place.schema for place in places], "additionalItems": False}

    def build(value: Any) -> Any:
        if not isinstance(value, list) or not least <= len(value) <= len(places):
            raise Mismatch
        return make([place.build(each) for place, each in zip(places, value, strict=False)])

    return Shape(schema, build)


def mapping(
    key: Shape,
    value: Shape,
    make: Callable[[dict[Any, Any]], Any],
    found: Constraints,
    path: str,
) -> Shape:
    """An object whose keys stand for values of a type.

    Raises:
        UnsupportedType: the keys' type has no form as the text of a key.
    """
    if key.key is None:
        raise UnsupportedType(
            "its values can't be written as keys of an object", path=f"{path}.key"
        )
    pattern, build_key = key.key
    bounds, low, high = lengths(found.lengths, "minProperties", "maxProperties")
    schema = {"type": "object", **keyed(pattern, value.schema), **bounds}

    def build(instance: Any) -> Any:
        if not isinstance(instance, dict) or not low <= len(instance) <= high:
            raise Mismatch
        return make({build_key(name): value.build(each) for name, each in instance.items()})

    return Shape(schema, build)


def keyed(pattern: str, value: Schema) -> Schema:
    """The keywords for keys of a language, all with values of one schema."""
    if pattern == _ANY_TEXT:
        return {"additionalProperties": value}
    return {"patternProperties": {anchored(pattern): value}, "additionalProperties": False}


def record(
    fields: Sequence[Field],
    make: Callable[[dict[str, Any]], Any],
    *,
    open: bool,
    rest: Shape | None = None,
) -> Shape:
    """An object with declared properties; others have the shape `rest`, or are dropped where the
    record is open, or are forbidden."""
    by_name = {each.name: each for each in fields}
    required = [each.name for each in fields if each.required]
    schema: Schema = {
        "type": "object",
        "properties": {each.name: each.shape.schema for each in fields},
        "additionalProperties": open if rest is None else rest.schema,
    }
    if required:
        schema["required"] = required

    def build(value: Any) -> Any:
        if not isinstance(value, dict) or not all(name in value for name in required):
            raise Mismatch
        made = {}
        for name, each in value.items():
            field = by_name.get(name)
            if field is not None:
                made[name] = field.shape.build(each)
            elif rest is not None:
                made[name] = rest.build(each)
            elif not open:
                raise Mismatch
        return make(made)

    return Shape(schema, build)
