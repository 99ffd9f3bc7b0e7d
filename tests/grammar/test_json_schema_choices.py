"""Choices about objects that are kept as clauses: random ones, against `jsonschema`."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from grammaton._core import Recognizer
from grammaton.errors import LimitExceeded, UnsatisfiableGrammar, UnsupportedKeyword
from grammaton.grammar.json_schema import branches, grammar_from_json_schema

KEYS = "abcd"
VALUES: list[Any] = [1, 2, "x", {}, {"a": 1}, {"a": "x"}]
MEMBERS = st.sampled_from(
    [
        *({"const": 1}, {"type": "integer"}, {"enum": [2, "x"]}, {"type": "string"}, True, False),
        *({"type": "object"}, {"type": "object", "required": ["a"]}),
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    ]
)


def _parts(inner: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    keys = st.lists(st.sampled_from(KEYS), max_size=2, unique=True)
    optional: dict[str, st.SearchStrategy[Any]] = {
        "required": keys,
        "properties": st.dictionaries(st.sampled_from(KEYS), MEMBERS, max_size=3),
        "additionalProperties": st.sampled_from([False, False, {"type": "integer"}]),
        "patternProperties": st.dictionaries(st.sampled_from(["^[ab]$", "c"]), MEMBERS, max_size=1),
    }
    if inner is not None:
        optional["not"] = inner
        optional["anyOf"] = st.lists(inner, min_size=1, max_size=3)
        optional["dependentSchemas"] = st.dictionaries(st.sampled_from(KEYS), inner, max_size=2)
    return st.fixed_dictionaries({}, optional=optional)


PLAIN = _parts()
NESTED = _parts(PLAIN)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "oneOf": st.lists(NESTED, min_size=2, max_size=4),
        "anyOf": st.lists(NESTED, min_size=2, max_size=3),
        "allOf": st.lists(NESTED, min_size=1, max_size=3),
        "dependentRequired": st.dictionaries(
            st.sampled_from(KEYS), st.lists(st.sampled_from(KEYS), max_size=2, unique=True)
        ),
        "properties": st.dictionaries(st.sampled_from(KEYS), MEMBERS, max_size=3),
        "additionalProperties": st.just(False),
    },
)


@pytest.mark.parametrize("order", ["any", "schema"])
@given(SCHEMAS, st.data())
def test_kept_choices(order: Any, schema: dict[str, Any], data: st.DataObject) -> None:
    note(json.dumps(schema))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branches, "KEPT_FROM", -1)
        try:
            language: Recognizer | None = Recognizer(
                *grammar_from_json_schema(schema, key_order=order)
            )
        except UnsatisfiableGrammar:
            language = None
        except (UnsupportedKeyword, LimitExceeded):
            return
    validator = Draft202012Validator(schema)
    choices = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(VALUES), max_size=4)
    for value in data.draw(st.lists(choices, min_size=12, max_size=12)):
        orders = [list(value.items())]
        if order == "schema":
            orders = [list(some) for some in itertools.permutations(value.items())]
        texts = [json.dumps(dict(some)).encode() for some in orders]
        accepted = language is not None and any(language.accepts(text) for text in texts)
        assert accepted == validator.is_valid(value), texts
        if language is not None:
            _check_ahead(language, texts[0])


STRINGS = st.sampled_from(
    [
        *({"pattern": "^a"}, {"pattern": "b"}, {"pattern": "^[^c]*$"}, {"minLength": 2}),
        *({"maxLength": 2}, {"enum": ["", "ab", "c"]}, {"const": "ba"}, {"not": {"pattern": "a"}}),
        *({"type": "string"}, {"format": "date"}, {"type": "null"}, True, False),
    ]
)
STRING_CHOICES = st.recursive(
    STRINGS,
    lambda inner: st.builds(
        lambda keyword, options: {keyword: options if keyword != "not" else options[0]},
        st.sampled_from(["anyOf", "oneOf", "allOf", "not"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=12,
)


@given(st.lists(STRING_CHOICES, min_size=1, max_size=4), st.data())
def test_choices_about_strings(choices: list[Any], data: st.DataObject) -> None:
    schema = {"type": "string", "allOf": choices}
    note(json.dumps(schema))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branches, "FEW_WAYS", 0)
        try:
            language: Recognizer | None = _language(schema)
        except UnsatisfiableGrammar:
            language = None
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    texts = data.draw(st.lists(st.text("abc", max_size=4), max_size=10))
    for text in ["", "a", "b", "c", "ab", "ba", "2024-02-29", *texts]:
        accepted = language is not None and language.accepts(json.dumps(text).encode())
        assert accepted == validator.is_valid(text), text


def test_many_choices_about_strings_stay_one_term() -> None:
    """Three patterns in each of eight choices, which multiply to 6,561."""
    some = [[f"^.{{{i}}}{letter}" for letter in "abc"] for i in range(8)]
    schema = {
        "type": "string",
        "maxLength": 200,
        "allOf": [{"anyOf": [{"pattern": pattern} for pattern in each]} for each in some],
    }
    store, start = grammar_from_json_schema(schema)
    assert len(store) < 20_000
    language = Recognizer(store, start)
    assert language.accepts(b'"abcabccbd"')
    assert not language.accepts(b'"abcabcdb"')
    assert not language.accepts(b'"abcabcc"')


def test_one_of_with_nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "KEPT_FROM", -1)
    language = _language(
        {"type": "object", "oneOf": [{"not": {"required": ["a"]}}, {"required": ["b"]}, {}]}
    )
    assert language.accepts(b'{"a":1}')
    assert not language.accepts(b'{"a":1,"b":1}')


def _check_ahead(language: Recognizer, text: bytes) -> None:
    """Wherever a prefix ends, some text goes on: no dead end after a comma or a brace."""
    length = language.longest_prefix(text)
    for end in range(1, length + 1):
        if text[end - 1 : end] in (b",", b"{", b"}"):
            assert language.accepts(text[:end]) or any(
                language.accepts_prefix(text[:end] + bytes([byte])) for byte in range(32, 127)
            )


def _language(schema: dict[str, Any]) -> Recognizer:
    return Recognizer(*grammar_from_json_schema(schema, key_order="any"))


def test_many_dependencies_stay_one_shape() -> None:
    """Twenty choices, which multiply to a million."""
    keys = [f"k{i}" for i in range(20)]
    schema = {
        "type": "object",
        "properties": {"type": {"type": "string"}, **{key: {"type": "integer"} for key in keys}},
        "dependentSchemas": {
            key: {"properties": {"type": {"enum": ["all", f"t{i}"]}}} for i, key in enumerate(keys)
        },
    }
    language = _language(schema)
    assert language.accepts(b'{"k3":1,"k4":1,"type":"all"}')
    assert language.accepts(b'{"type":"t3","k3":1,"x":1}')
    assert not language.accepts(b'{"type":"t3","k4":1}')
    assert not language.accepts_prefix(b'{"k3":1,"k4":1,"type":"t')


def test_overlapping_one_of_with_an_optional_tag() -> None:
    """Without the tag all schemas hold, or none does."""
    schema = {
        "type": "object",
        "oneOf": [
            {
                "properties": {
                    "tag": {"const": f"t{i}"},
                    **{f"p{j}": {"maximum": i} for j in range(3)},
                },
            }
            for i in range(12)
        ],
    }
    language = _language(schema)
    assert language.accepts(b'{"tag":"t3","p0":2}')
    assert language.accepts(b'{"p0":11,"p1":1}')
    assert language.accepts(b'{"p1":1,"p0":11}')
    assert not language.accepts(b'{"p0":10}')
    assert not language.accepts(b"{}")
    assert not language.accepts(b'{"tag":"t3","p0":4}')


def test_all_of_many_any_of() -> None:
    schema = {
        "type": "object",
        "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(14)],
        "additionalProperties": {"type": "integer"},
    }
    language = _language(schema)
    members = [f'"{"ab"[i % 2]}{i}":{i}' for i in range(14)]
    assert language.accepts(("{" + ",".join(reversed(members)) + "}").encode())
    assert not language.accepts(("{" + ",".join(members[:-1]) + "}").encode())
