"""Random schemas with instances that hypothesis-jsonschema draws for them, and texts of our own.

What `jsonschema` calls valid is accepted in any order of the keys, and in the schema's order when
it is written in it; what it calls invalid, here instances with one thing changed, is stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import utils
from hypothesis_jsonschema import from_schema

from grammaton import Grammar
from grammaton.errors import UnsatisfiableGrammar, UnsupportedKeyword
from grammaton.fuzz import sentences
from tests.grammar.test_json_schema_properties import Validator, nearby, texts_of

NAMES = st.lists(st.sampled_from(["a", "b", "c", "\u00e9", "x y"]), max_size=3, unique=True)
LENGTHS = st.integers(0, 3)


class _Elements(utils.many):
    """Hypothesis's collections with the method that hypothesis-jsonschema 0.23 still calls."""

    _steps: Iterator[None]

    def more(self) -> bool:
        if self._depth is None:
            self.__enter__()
            self._steps = iter(self)
        found = next(self._steps, False) is None
        if not found:
            self.__exit__(None)
        return found


@pytest.fixture(autouse=True)
def _drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "many", _Elements)


def _scalars() -> st.SearchStrategy[dict[str, Any]]:
    numbers = st.sampled_from([-3, 0, 1, 2, 10, 0.5])
    return st.one_of(
        st.sampled_from(
            [{"type": "null"}, {"type": "boolean"}, {"const": "x"}, {"enum": [1, "é"]}]
        ),
        st.fixed_dictionaries(
            {"type": st.just("string")},
            optional={
                "minLength": LENGTHS,
                "maxLength": st.integers(3, 6),
                "pattern": st.sampled_from(["^[a-c]", "[0-9]$", "^[^x]*$"]),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["integer", "number"])},
            optional={
                "minimum": numbers,
                "exclusiveMaximum": st.integers(20, 30),
                "multipleOf": st.sampled_from([1, 3, 0.5]),
            },
        ),
    )


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": st.integers(0, 2), "maxItems": st.integers(2, 4)},
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(st.sampled_from(["a", "b", "c", "\u00e9"]), inner),
            "required": NAMES,
            "additionalProperties": st.one_of(st.just(False), inner),
            "patternProperties": st.dictionaries(st.just("^k"), inner, max_size=1),
            "maxProperties": st.integers(3, 5),
        },
    )
    choices = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        arrays,
        objects,
        objects,
        st.fixed_dictionaries({"anyOf": choices}),
        st.fixed_dictionaries({"oneOf": choices}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
    )


SCHEMAS = st.recursive(_scalars(), _containers, max_leaves=5)


def _in_order(value: Any, schema: Any) -> Any:
    """A value with its keys in the order of a schema without choices."""
    if not isinstance(schema, dict) or not isinstance(value, (dict, list)):
        return value
    if isinstance(value, list):
        return [_in_order(item, schema.get("items", True)) for item in value]
    declared = schema.get("properties", {})
    keys = [*declared, *schema.get("required", []), *value]
    ordered = {}
    for key in dict.fromkeys(keys):
        if key in value:
            inner = declared.get(key, schema.get("additionalProperties", True))
            if key not in declared and key.startswith("k") and "patternProperties" in schema:
                inner = schema["patternProperties"].get("^k", inner)
            ordered[key] = _in_order(value[key], inner)
    return ordered


def _chooses(schema: Any) -> bool:
    """Whether some part of a schema has no order of its own."""
    return any(f'"{word}"' in json.dumps(schema) for word in ("anyOf", "oneOf", "allOf"))


def _grammar(schema: Any, **options: Any) -> Grammar | None:
    try:
        return Grammar.from_json_schema(schema, **options)
    except UnsatisfiableGrammar:
        return None
    except UnsupportedKeyword:
        assume(False)
        raise


@settings(suppress_health_check=list(HealthCheck))
@given(SCHEMAS, st.data())
def test_instances(schema: dict[str, Any], data: st.DataObject) -> None:
    note(json.dumps(schema))
    grammar = _grammar(schema, key_order="any")
    validator = Validator(schema)
    value = data.draw(from_schema(schema))
    values = [value, *(nearby(value, schema, data.draw) for _ in range(4))]
    if grammar is None:
        assert not any(map(validator.is_valid, values))
        return
    for each in values:
        for text in texts_of(each):
            assert grammar.accepts(text.decode()) == validator.is_valid(each), text
    if not _chooses(schema):
        ordered = _grammar(schema, key_order="schema")
        assert ordered is not None
        for each in values:
            written = json.dumps(_in_order(each, schema), ensure_ascii=False)
            assert ordered.accepts(written) == validator.is_valid(each), written


def _exact(text: str) -> int | float | None:
    """A number that `jsonschema` takes for what it is: whole ones as such, since as a float 3e+40
    is no multiple of 3; none for other numbers that a float would round."""
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return None
    if abs(number.adjusted()) < 1000 and number == number.to_integral_value():
        return int(number)
    return float(text) if Decimal(repr(float(text))) == number else None


@settings(suppress_health_check=list(HealthCheck))
@given(SCHEMAS, st.sampled_from(["any", "schema"]), st.data())
def test_our_texts_are_valid(schema: dict[str, Any], order: str, data: st.DataObject) -> None:
    note(json.dumps(schema))
    grammar = _grammar(schema, key_order=order, whitespace="compact")
    assume(grammar is not None)
    assert grammar is not None
    text = data.draw(sentences(grammar, max_size=120))
    members: list[list[str]] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        members.append([key for key, _ in found])
        return dict(found)

    inexact: list[str] = []

    def exact(number: str) -> int | float | None:
        found = _exact(number)
        if found is None:
            inexact.append(number)
        return found

    value = json.loads(text, object_pairs_hook=pairs, parse_float=exact)
    assume(not inexact)
    # No state remembers undeclared keys; a text that repeats one is not JSON's best.
    if all(len(set(keys)) == len(keys) for keys in members):
        assert Validator(schema).is_valid(value), text
