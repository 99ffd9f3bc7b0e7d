"""What a translation is made of.

    shape     a JSON Schema and the function that turns an instance of it, read as `read_json`
              reads it, into the Python value
    path      where in the types something stands: `Order.lines.item.price`
    mismatch  the instance is none of the shape's; how a union finds its member

Numbers with a fraction or exponent are read as `Decimal`, so that nothing is rounded before the
type is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

Schema = dict[str, Any]
Build = Callable[[Any], Any]


class Mismatch(ValueError):
    """The instance is none of the shape's."""


class Key(NamedTuple):
    """How a type's values name the keys of an object.

    Attributes:
        pattern: the language of the keys, in ECMA-262 without anchors.
        build: the value of a key; raises `Mismatch` when it is outside the language.
    """

    pattern: str
    build: Build


@dataclass(frozen=True)
class Shape:
    """A type's JSON.

    Attributes:
        schema: the JSON Schema, in draft 4's words (see `python_types`).
        build: the value of an instance; raises `Mismatch` when it is none of the schema's.
        key: for types whose values may name an object's keys.
    """

    schema: Schema
    build: Build
    key: Key | None = None


def read_json(text: str) -> Any:
    """JSON text as Python values, numbers that are no plain integers as `Decimal`.

    Raises:
        ValueError: not JSON; `NaN` and `Infinity` are not.
    """
    return json.loads(text, parse_float=_number, parse_constant=_no_constant)


def _number(text: str) -> Decimal | float:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond 10**18; no double is near it but 0 and infinity
        return float(text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def natural(value: Any) -> Any:
    """What `json.loads` gives for an instance that `read_json` read: floats for decimals."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [natural(item) for item in value]
    if isinstance(value, dict):
        return {key: natural(item) for key, item in value.items()}
    return value


def is_integer(value: Any) -> bool:
    """Whether an instance is an integer as draft 4 has it: `1.0` is none, nor is `true`."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether an instance is a number, and no boolean."""
    return isinstance(value, int | Decimal | float) and not isinstance(value, bool)
