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
from grammaton.grammar.json_schema import grammar_from_json_schema, normal

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
        patch.setattr(normal, "KEPT_FROM", -1)
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


def test_one_of_with_nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal, "KEPT_FROM", -1)
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
