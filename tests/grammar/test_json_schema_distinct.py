"""uniqueItems, and keys that must differ, against `jsonschema`: random values, random spellings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from grammaton import Grammar
from grammaton._core import Recognizer
from grammaton.fuzz import sentences

Draw = Callable[[st.SearchStrategy[Any]], Any]

SCALARS: dict[str, list[Any]] = {
    "string": ["", "a", "b", "ab", "1", "true", "\n", "/", '"', "\\", "é", "😀", "\u0000"],
    "integer": [0, 1, 2, 10, 100, -1, 10**16],
    "number": [0.5, 1.5, 0.25, -0.5, 1e-7, 1e22],
    "boolean": [True, False],
    "null": [None],
}
ITEMS = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 2},
    {"type": "string", "pattern": "^(a|b|1)"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "integer", "minimum": 0, "maximum": 1000},
    {"type": ["string", "integer", "boolean", "null"]},
    {"type": ["string", "number"]},
    {"anyOf": [{"type": "string", "maxLength": 1}, {"const": 1}, {"type": "boolean"}]},
    {"type": "string", "enum": ["a", "b", "ab"]},
]


def spelled(draw: Draw, value: Any) -> str:
    """One of the texts of a value."""
    if isinstance(value, str):
        return '"' + "".join(_character(draw, char) for char in value) + '"'
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, list):
        return "[" + ", ".join(spelled(draw, item) for item in value) + "]"
    if isinstance(value, dict):
        members = (f"{spelled(draw, key)}: {spelled(draw, item)}" for key, item in value.items())
        return "{" + ", ".join(members) + "}"
    text = json.dumps(value)
    zeros = "0" * draw(st.integers(0, 2))
    if "e" in text or not zeros:
        return "-0" if text == "0" and draw(st.booleans()) else text
    return text + zeros if "." in text else f"{text}.{zeros}"


def _character(draw: Draw, char: str) -> str:
    if draw(st.integers(0, 4)) == 0:
        return "".join(f"\\u{unit:04x}" for unit in memoryview(char.encode("utf-16-le")).cast("H"))
    if char == "/" and draw(st.booleans()):
        return "\\/"
    return json.dumps(char, ensure_ascii=draw(st.booleans()))[1:-1]


def recognizer(schema: Any, **options: Any) -> Recognizer:
    grammar = Grammar.from_json_schema(schema, **options)
    return Recognizer(grammar.store, grammar.start)


@pytest.mark.parametrize("number", range(len(ITEMS)))
def test_arrays(number: int) -> None:
    schemas = [
        {"type": "array", "items": ITEMS[number], "uniqueItems": True},
        {"type": "array", "items": ITEMS[number], "uniqueItems": True, "minItems": 2},
        {"type": "array", "prefixItems": [{}], "items": ITEMS[number], "maxItems": 3},
    ]
    schemas[2] |= {"prefixItems": [{"type": "string", "minLength": 3}], "uniqueItems": True}
    languages = [recognizer(schema) for schema in schemas]
    validators = [Draft202012Validator(schema) for schema in schemas]
    values = st.sampled_from([value for some in SCALARS.values() for value in some])
    few = st.sampled_from(["a", "b", "ab", 1, 2, "1", True, "abc", 1.5])

    @given(st.data())
    def check(data: st.DataObject) -> None:
        items = data.draw(st.lists(data.draw(st.sampled_from([values, few])), max_size=5))
        text = spelled(data.draw, items)
        for language, validator in zip(languages, validators, strict=True):
            assert language.accepts(text.encode()) == validator.is_valid(items), text

    check()


OBJECTS: list[dict[str, Any]] = [
    {"type": "object", "minProperties": 2},
    {"minProperties": 2, "maxProperties": 3, "properties": {"a": {"type": "integer"}}},
    {"minProperties": 3, "required": ["a"], "properties": {"a": {}, "b": {}}},
    {"minProperties": 2, "patternProperties": {"^a": {"type": "integer"}}},
    {"type": "object", "not": {"additionalProperties": {"type": "integer"}}},
    {"properties": {"b": {}}, "not": {"additionalProperties": {"type": "string"}}},
]


@pytest.mark.parametrize("order", ["any", "schema"])
@pytest.mark.parametrize("number", range(len(OBJECTS)))
def test_objects(number: int, order: Any) -> None:
    schema: dict[str, Any] = {"type": "object", **OBJECTS[number]}
    language = recognizer(schema, key_order=order)
    validator = Draft202012Validator(schema)
    keys = st.sampled_from(["a", "b", "c", "ab", "a/", "é"])

    @given(st.data())
    def check(data: st.DataObject) -> None:
        pairs = data.draw(st.lists(st.tuples(keys, st.sampled_from([1, "x", None])), max_size=5))
        if order == "schema":
            declared = list(schema.get("properties", {}))
            pairs.sort(key=lambda pair: declared.index(pair[0]) if pair[0] in declared else 9)
        text = "{" + ",".join(f"{spelled(data.draw, k)}:{json.dumps(v)}" for k, v in pairs) + "}"
        valid = len(dict(pairs)) == len(pairs) and validator.is_valid(dict(pairs))
        assert language.accepts(text.encode()) == valid, text

    check()


@given(st.data())
def test_what_is_written_is_valid(data: st.DataObject) -> None:
    schema = {"type": "array", "items": data.draw(st.sampled_from(ITEMS[:9])), "uniqueItems": True}
    schema["minItems"] = data.draw(st.integers(0, 3))
    text = data.draw(sentences(Grammar.from_json_schema(schema, whitespace="compact"), max_size=40))
    assert Draft202012Validator(schema).is_valid(json.loads(text)), text
