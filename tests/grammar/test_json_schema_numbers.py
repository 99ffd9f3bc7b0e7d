"""Number languages against arithmetic: every text of a grid, and random bounds."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton._core import Recognizer
from grammaton.errors import UnsatisfiableGrammar
from grammaton.grammar.json_schema import grammar_from_json_schema

PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
SCIENTIFIC = re.compile(r"-?[1-9](\.[0-9]+)?e([+-])([0-9]{1,3})")

GRID = [
    f"{sign}{whole}{fraction}{power}"
    for sign in ("", "-")
    for whole in ("0", "1", "2", "9", "10", "12", "99", "100", "101", "123", "00", "01")
    for fraction in ("", ".", ".0", ".00", ".5", ".25", ".250", ".09", ".99", ".10")
    for power in ("", "e+16", "e-05", "e-5", "e+20", "e5", "e-04", "e+308")
]


def recognizer(schema: dict[str, Any]) -> Recognizer | None:
    try:
        return Recognizer(*grammar_from_json_schema(schema))
    except UnsatisfiableGrammar:
        return None


def spelled(text: str, *, integer: bool) -> bool:
    """Whether the documented text language of constrained numbers has this text."""
    if PLAIN.fullmatch(text):
        return True
    match = SCIENTIFIC.fullmatch(text)
    if match is None:
        return False
    fraction, sign, digits = match.groups()
    if len(digits) == 2 and digits[0] == "0" and digits[1] == "0":
        return False
    if len(digits) == 3 and digits[0] == "0":
        return False
    exponent = int(sign + digits)
    if integer and (exponent < 16 or len(fraction or "") > 17):
        return False
    return -324 <= exponent <= -5 or 16 <= exponent <= 308


def holds(schema: dict[str, Any], text: str) -> bool:
    integer = schema["type"] == "integer"
    if not spelled(text, integer=integer):
        return False
    value = Decimal(text)
    if integer and value != value.to_integral_value():
        return False

    def exact(keyword: str) -> Decimal:
        return Decimal(repr(schema[keyword]))

    return not (
        ("minimum" in schema and value < exact("minimum"))
        or ("maximum" in schema and value > exact("maximum"))
        or ("exclusiveMinimum" in schema and value <= exact("exclusiveMinimum"))
        or ("exclusiveMaximum" in schema and value >= exact("exclusiveMaximum"))
    )


def check(schema: dict[str, Any], texts: list[str]) -> None:
    language = recognizer(schema)
    for text in texts:
        accepted = language is not None and language.accepts(text.encode())
        assert accepted == holds(schema, text), (schema, text)


BOUNDS = [0.25, -0.25, 1, 9, 10, 12.5, 99, 100, 100.09, -10, -99.5, 1e16, 2.5e20, 1e-5, 3e-7, 123]


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("strict", [False, True])
def test_grid(kind: str, strict: bool) -> None:
    low, high = ("exclusiveMinimum", "exclusiveMaximum") if strict else ("minimum", "maximum")
    for bound in BOUNDS:
        check({"type": kind, low: bound}, GRID)
        check({"type": kind, high: bound}, GRID)
    for one in BOUNDS:
        for other in BOUNDS:
            check({"type": kind, low: one, high: other}, GRID[::7])


numbers = st.one_of(
    st.integers(-2000, 2000),
    st.integers(-(10**20), 10**20),
    st.decimals(-1000, 1000, places=3).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.data())
def test_random_bounds(data: st.DataObject) -> None:
    schema: dict[str, Any] = {"type": data.draw(st.sampled_from(["integer", "number"]))}
    for keyword in ("minimum", "exclusiveMaximum", "maximum", "exclusiveMinimum"):
        if data.draw(st.booleans()):
            schema[keyword] = data.draw(numbers)
    if len(schema) == 1 or set(schema.values()) & {0}:
        schema["minimum"] = schema["maximum"] = data.draw(st.integers(1, 9))
    near = [value for key, value in schema.items() if key != "type"]
    values = data.draw(st.lists(numbers, max_size=8)) + near + [-value for value in near]
    values += [value + step for value in near for step in (-1, 1, 0.5)]
    values = [value for value in values if abs(value) < 1e300]
    check(schema, [json.dumps(value) for value in values])


STEPS = [1, 2, 3, 7, 12, 64, 1000, 86400, 999983, 2**32 - 1, 0.1, 0.25, 0.3, 1.5, 1e-8, 0.123456789]


@given(st.data())
def test_multiples(data: st.DataObject) -> None:
    step = data.draw(st.sampled_from(STEPS))
    schema: dict[str, Any] = {"type": data.draw(st.sampled_from(["integer", "number"]))}
    negated = data.draw(st.booleans())
    schema |= {"not": {"multipleOf": step}} if negated else {"multipleOf": step}
    for keyword, bounds in (("minimum", [0, 1, -7.5, 1e6, 1e17]), ("maximum", [99.5, 5e6, 1e18])):
        if data.draw(st.booleans()):
            schema[keyword] = data.draw(st.sampled_from(bounds))
    language = recognizer(schema)
    counts = data.draw(st.lists(st.integers(-60, 60) | numbers, min_size=1, max_size=8))
    values = [count * step for count in counts] + counts
    for value in values:
        if abs(value) >= 1e300:
            continue
        exact = Fraction(repr(value))
        within = (
            (schema["type"] == "number" or exact.denominator == 1)
            and ("minimum" not in schema or exact >= Fraction(schema["minimum"]))
            and ("maximum" not in schema or exact <= Fraction(schema["maximum"]))
        )
        multiple = (exact / Fraction(repr(step))).denominator == 1
        text = json.dumps(value).encode()
        accepted = language is not None and language.accepts(text)
        assert accepted == (within and multiple != negated), (schema, text)


SMALL_STEPS = [2, 3, 5, 8, 24, 30, 100, 0.5, 0.25, 1.5, 0.3]


@given(st.data())
def test_several_multiples(data: st.DataObject) -> None:
    """Steps that must and must not divide a number, on one another's multiples."""
    steps = st.sampled_from(SMALL_STEPS)
    wanted = data.draw(st.lists(steps, max_size=2))
    unwanted = data.draw(st.lists(steps, min_size=not wanted, max_size=3))
    integer = data.draw(st.booleans())
    schema: dict[str, Any] = {"type": "integer" if integer else "number"}
    schema["allOf"] = [{"multipleOf": step} for step in wanted]
    schema["allOf"] += [{"not": {"multipleOf": step}} for step in unwanted]
    language = recognizer(schema)
    whole = [Fraction(repr(step)) for step in wanted]
    skipped = [Fraction(repr(step)) for step in unwanted]
    counts = data.draw(st.lists(st.integers(-60, 60), min_size=1, max_size=8))
    powers = data.draw(st.lists(st.sampled_from([1, 10, 10**17, 10**20]), min_size=1, max_size=2))
    values = [c * step * p for c in counts for step in [*wanted, *unwanted, 1] for p in powers]
    for value in values:
        exact = Fraction(repr(value))
        valid = (
            (not integer or exact.denominator == 1)
            and all((exact / step).denominator == 1 for step in whole)
            and not any((exact / step).denominator == 1 for step in skipped)
        )
        text = json.dumps(value).encode()
        accepted = language is not None and language.accepts(text)
        assert accepted == valid, (schema, text)


@given(numbers, st.lists(numbers, max_size=5))
def test_constants(constant: float, others: list[float]) -> None:
    language = recognizer({"const": constant})
    assert language is not None
    assert language.accepts(json.dumps(constant).encode())
    for other in others:
        same = Decimal(repr(other)) == Decimal(repr(constant))
        assert language.accepts(json.dumps(other).encode()) == same
