"""Random schemas: what the grammar accepts is what `jsonschema` calls valid, and nothing else."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from grammaton._core import Recognizer
from grammaton.errors import UnsatisfiableGrammar, UnsupportedKeyword
from grammaton.grammar.json_schema import branches, grammar_from_json_schema

Draw = Callable[[st.SearchStrategy[Any]], Any]

Schema = dict[str, Any] | bool
REFUSED = (
    *("minProperties", "contains", "const", "enum", "not", "if", "oneOf", "uniqueItems"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
"""Keywords of the schemas below that are refused in some places."""


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """ECMA-262's `$` stands at the very end, Python's before a last line break too."""
    if isinstance(instance, str) and not re.search(pattern.replace("$", r"\Z"), instance):
        yield ValidationError("no match")


Validator = extend(Draft202012Validator, {"pattern": _pattern})
SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 2, -3, 1.5, 1.0, "", "a", "ab", "\n", "\u00e9b"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcdx"), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "string", "integer", "number", "array", "object"])


PROPERTY_NAMES = st.sampled_from(
    [{"enum": ["a", "c", "x"]}, {"pattern": "^[a-b]"}, {"maxLength": 1}, {"not": {"const": "b"}}]
)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3, combine: bool = True) -> Schema:
    """Schemas of the enforced keywords; every keyword with some probability, beside any type."""
    if depth == 0 or draw(st.integers(0, 9)) == 0:
        plain: list[Schema] = [True, False, {}, {"type": "integer"}, {"type": "string"}]
        return draw(st.sampled_from(plain))
    inner = schemas(depth - 1, combine)
    size = st.integers(0, 3)
    schema: dict[str, Any] = {}

    def maybe(keyword: str, values: st.SearchStrategy[Any], odds: int = 5) -> None:
        if draw(st.integers(1, odds)) == 1:
            schema[keyword] = draw(values)

    maybe("type", st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True)), 2)
    maybe("enum", st.lists(VALUES, min_size=1, max_size=4), 12)
    maybe("const", VALUES, 20)
    maybe("minLength", size)
    maybe("maxLength", size)
    maybe("pattern", st.sampled_from(["^a", "b$", "^[a-c]*$", "a|\\n", "^.{1,2}$"]), 8)
    maybe("minimum", st.sampled_from([-3, 0, 1, 1.5]))
    maybe("exclusiveMaximum", st.sampled_from([0, 2, 1.75]))
    maybe("minItems", size)
    maybe("maxItems", size)
    maybe("prefixItems", st.lists(inner, min_size=1, max_size=2), 8)
    maybe("items", inner)
    maybe("contains", inner, 10)
    if "contains" in schema:
        maybe("minContains", size, 3)
        maybe("maxContains", size, 4)
    maybe("uniqueItems", st.booleans(), 12)
    maybe("unevaluatedItems", inner, 14)
    maybe("multipleOf", st.sampled_from([1, 2, 3, 0.5]), 12)
    names = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(sorted)
    if draw(st.booleans()):
        schema["properties"] = {name: draw(inner) for name in draw(names)}
    maybe("required", st.lists(st.sampled_from("abcd"), max_size=2, unique=True), 3)
    maybe("additionalProperties", inner, 4)
    maybe("patternProperties", st.dictionaries(st.sampled_from(["a", "^[bc]$", "x"]), inner), 10)
    maybe("propertyNames", inner | PROPERTY_NAMES, 12)
    maybe("unevaluatedProperties", inner, 12)
    maybe("minProperties", size, 10)
    maybe("maxProperties", size, 10)
    keys = st.lists(st.sampled_from("abcd"), max_size=2, unique=True)
    maybe("dependentRequired", st.dictionaries(st.sampled_from("abx"), keys, max_size=1), 12)
    maybe("dependentSchemas", st.dictionaries(st.sampled_from("ab"), inner, max_size=1), 14)
    if combine:
        maybe("anyOf", st.lists(inner, min_size=1, max_size=3), 6)
        maybe("allOf", st.lists(inner, min_size=1, max_size=2), 6)
        maybe("oneOf", st.lists(inner, min_size=1, max_size=3), 8)
        maybe("not", inner, 10)
        maybe("if", inner, 10)
        maybe("then", inner, 6)
        maybe("else", inner, 6)
        maybe("$ref", st.sampled_from(["#/$defs/r", "#/$defs/s"]), 10)
    return schema


def rooted(schema: Schema, recursive: Schema) -> Schema:
    if isinstance(schema, bool):
        return schema
    tree = {
        "type": ["object", "integer"],
        "properties": {"a": {"$ref": "#/$defs/r"}, "b": recursive},
        "additionalProperties": False,
    }
    return {**schema, "$defs": {"r": tree, "s": {"type": ["string", "array"], "maxLength": 2}}}


def compiled(schema: Schema, **options: Any) -> tuple[bool, Recognizer | None]:
    """Whether a schema is not refused, and its language."""
    try:
        return True, language_of(schema, **options)
    except UnsupportedKeyword as refusal:
        if not any(f"/{keyword}" in f"{refusal.pointer}" for keyword in REFUSED):
            raise
        return False, None


def language_of(schema: Schema, **options: Any) -> Recognizer | None:
    try:
        return Recognizer(*grammar_from_json_schema(schema, **options))
    except UnsatisfiableGrammar:
        return None


def nearby(value: Any, schema: Schema, draw: Draw) -> Any:
    """A value with one thing changed somewhere."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        if draw(st.booleans()):
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: nearby(value[key], schema, draw)}
    if isinstance(value, list) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        if draw(st.booleans()):
            return value[:at] + value[at + 1 :]
        return [*value[:at], nearby(value[at], schema, draw), *value[at + 1 :]]
    if isinstance(value, str) and draw(st.booleans()):
        return value + draw(st.sampled_from(["", "a", "b", "\n"]))
    if isinstance(value, dict):
        return {**value, draw(st.sampled_from("abcdx")): draw(VALUES)}
    if isinstance(value, list):
        return [*value, draw(VALUES)]
    return draw(VALUES)


def aimed(schema: Schema, root: Schema, draw: Draw, depth: int = 5) -> Any:
    """A value that tries to be valid: it follows some of what the schema says."""
    if isinstance(schema, bool) or isinstance(root, bool) or depth == 0:
        return draw(SCALARS)
    branches = [*schema.get("anyOf", []), *schema.get("allOf", []), *schema.get("oneOf", [])]
    if "$ref" in schema:
        branches.append(root["$defs"][schema["$ref"][-1]])
    if branches and draw(st.booleans()):
        return aimed(draw(st.sampled_from(branches)), root, draw, depth - 1)
    listed = [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]
    if listed:
        return draw(st.sampled_from(listed))
    kinds = schema.get("type", ["object", "array", "string", "number"])
    kind = draw(st.sampled_from([kinds] if isinstance(kinds, str) else kinds))
    if kind == "object":
        properties = schema.get("properties", {})
        value = {}
        for key in dict.fromkeys([*properties, *schema.get("required", []), "x"]):
            if key in schema.get("required", []) or draw(st.booleans()):
                inner = properties.get(key, schema.get("additionalProperties", True))
                value[key] = aimed(inner, root, draw, depth - 1)
        return value
    if kind == "array":
        least = schema.get("minItems", 0)
        prefix = schema.get("prefixItems", [])
        size = draw(st.integers(least, max(least, schema.get("maxItems", 3))))
        rest = schema.get("items", True)
        return [
            aimed(prefix[i] if i < len(prefix) else rest, root, draw, depth - 1)
            for i in range(size)
        ]
    if kind == "string":
        return draw(st.text("abc\n\u00e9\U0001f600", max_size=3))
    if kind in ("integer", "number"):
        return draw(st.sampled_from([-4, -3, -1, 0, 1, 2.0, 3] + [1.5, 1.74] * (kind == "number")))
    return draw(st.sampled_from([None, True, False]))


def texts_of(value: Any) -> list[bytes]:
    return [
        json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode()
        for ascii_only in (True, False)
        for separators in (None, (",", ":"))
    ]


@pytest.mark.parametrize("few", [branches.FEW_BRANCHES, -1], ids=["multiplied", "pruned"])
@given(data=st.data())
def test_any_order_accepts_the_valid_and_stops_the_rest(few: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branches, "FEW_BRANCHES", few)
        _check_any_order(data)


def _check_any_order(data: st.DataObject) -> None:
    schema = rooted(data.draw(schemas()), data.draw(schemas(depth=1)))
    note(json.dumps(schema))
    supported, language = compiled(schema, key_order="any")
    if not supported:
        return
    validator = Validator(schema)
    values = data.draw(st.lists(VALUES, min_size=2, max_size=6))
    values += [aimed(schema, schema, data.draw) for _ in range(4)]
    if language is not None:
        values += [nearby(value, schema, data.draw) for value in values]
        values += _made_by(language, data)
    for value in values:
        valid = validator.is_valid(value)
        for text in texts_of(value):
            accepted = language is not None and language.accepts(text)
            assert accepted == valid, text


def _made_by(language: Recognizer, data: st.DataObject) -> list[Any]:
    """Values of texts that a random walk through the language writes."""
    letters = [letter.encode() for letter in '{}[],:"abcd\\nultrefs0123456789.-']
    chooser = random.Random(data.draw(st.integers(0, 2**32)))
    made = []
    for _ in range(4):
        text = b""
        for _ in range(60):
            if language.accepts(text) and chooser.random() < 0.5:
                break
            ahead = [letter for letter in letters if language.accepts_prefix(text + letter)]
            if not ahead:
                break
            text += chooser.choice(ahead)
        if language.accepts(text):
            value = json.loads(text)
            # A number too large for a float is valid, but Python can't write it again.
            if not _repeats(text) and "Infinity" not in json.dumps(value):
                made.append(value)
    return made


def _repeats(text: bytes) -> bool:
    """Whether an object of the text has a key twice, which Python's reader would hide."""
    found = False

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found = found or len(dict(members)) < len(members)
        return dict(members)

    json.loads(text, object_pairs_hook=pairs)
    return found


@given(st.data())
def test_schema_order(data: st.DataObject) -> None:
    """Without combinations the order is: declared (here a, b, c), then d, then others."""
    schema = data.draw(schemas(combine=False))
    note(json.dumps(schema))
    supported, language = compiled(schema)
    if not supported:
        return
    validator = Validator(schema)
    values = data.draw(st.lists(VALUES, min_size=2, max_size=6))
    for value in [*values, *(aimed(schema, schema, data.draw) for _ in range(4))]:
        valid = validator.is_valid(value)
        in_order = json.dumps(value, sort_keys=True).encode()
        accepted = language is not None and language.accepts(in_order)
        assert accepted <= valid
        if not _undeclared_first(schema, value):
            assert accepted == valid, in_order


def _undeclared_first(schema: Schema, value: Any) -> bool:
    """Whether sorting may put an undeclared key before a declared or required one."""
    text = json.dumps(schema)
    return (
        "equired" in text
        or '"enum"' in text
        or '"const"' in text
        or "dependentS" in text
        or _mixed(schema, value)
    )


def _mixed(schema: Any, value: Any) -> bool:
    if isinstance(value, list):
        return any(_mixed(schema, item) for item in value)
    if not isinstance(value, dict):
        return False
    declared = json.dumps(schema).count('"properties"')
    return bool(declared) and (declared > 1 or not set(value) <= set(schema.get("properties", {})))


@given(st.data())
def test_indented_texts(data: st.DataObject) -> None:
    schema = data.draw(schemas(combine=False))
    width = data.draw(st.integers(0, 3))
    supported, language = compiled(schema, key_order="any", whitespace=width)
    if not supported:
        return
    validator = Validator(schema)
    for value in [aimed(schema, schema, data.draw) for _ in range(5)]:
        text = json.dumps(value, indent=width).encode()
        accepted = language is not None and language.accepts(text)
        assert accepted == validator.is_valid(value), text
