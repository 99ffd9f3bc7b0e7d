"""Objects whose choices can lead to no end: whatever was begun can be finished, and only that.

Schemas small enough that all their instances are listed, in every order of the keys and checked by
`jsonschema`, are compared on every prefix of every text. Larger ones ask what a search that looks
at one key after the other would not answer in time.
"""

from __future__ import annotations

import itertools
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from grammaton import Grammar
from grammaton._core import Recognizer
from grammaton.errors import LimitExceeded, UnsatisfiableGrammar
from grammaton.grammar.json_schema import branches, grammar_from_json_schema

KEYS = "abc"
VALUES = (0, 1)


@cache
def _texts(order: str) -> list[str]:
    """The texts of all objects of these keys and values, with repeated keys too."""
    texts = []
    for size in range(len(KEYS) + 1):
        for keys in itertools.product(KEYS, repeat=size):
            if order == "schema" and list(keys) != sorted(set(keys)):
                continue
            for values in itertools.product(VALUES, repeat=size):
                members = (f'"{key}":{value}' for key, value in zip(keys, values, strict=True))
                texts.append("{" + ",".join(members) + "}")
    return texts


def _repeats(text: str) -> bool:
    return any(text.count(f'"{key}"') > 1 for key in KEYS)


def _literals() -> st.SearchStrategy[dict[str, Any]]:
    key, value = st.sampled_from(KEYS), st.sampled_from(VALUES)
    pattern = st.sampled_from(["^[ab]", "^[bc]", "c"])
    plain = st.one_of(
        st.builds(lambda k: {"required": [k]}, key),
        st.builds(lambda k, v: {"properties": {k: {"const": v}}}, key, value),
        st.builds(lambda k, v: {"properties": {k: {"const": v}}, "required": [k]}, key, value),
        st.builds(lambda p, v: {"patternProperties": {p: {"const": v}}}, pattern, value),
        st.builds(lambda n: {"minProperties": n}, st.integers(1, 2)),
    )
    return plain | plain.map(lambda literal: {"not": literal})


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "multiplied"])
@pytest.mark.parametrize("order", ["any", "schema"])
@given(st.lists(st.lists(_literals(), min_size=1, max_size=3), max_size=6))
def test_all_prefixes(order: Any, kept: bool, choices: list[list[Any]]) -> None:
    schema = {
        "type": "object",
        "properties": {key: {"enum": list(VALUES)} for key in KEYS},
        "additionalProperties": False,
        "allOf": [{"anyOf": options} for options in choices],
    }
    note(json.dumps(schema))
    validator = Draft202012Validator(schema)
    texts = _texts(order)
    valid = {text for text in texts if not _repeats(text) and validator.is_valid(json.loads(text))}
    prefixes = {text[:end] for text in valid for end in range(len(text) + 1)}
    with pytest.MonkeyPatch.context() as patch:
        if kept:
            patch.setattr(branches, "KEPT_FROM", -1)
        try:
            language = Recognizer(
                *grammar_from_json_schema(schema, key_order=order, whitespace="compact")
            )
        except UnsatisfiableGrammar:
            assert not valid
            return
        except LimitExceeded:  # counts beside kept choices
            assume(False)
            raise
    for text in texts:
        assert language.accepts(text.encode()) == (text in valid), text
        longest = max(end for end in range(len(text) + 1) if text[:end] in prefixes)
        assert language.longest_prefix(text.encode()) == longest, text


MANY = [f"k{i:02}" for i in range(40)]


def _closed(**more: Any) -> Recognizer:
    schema = {"type": "object", "properties": {key: {} for key in MANY}, **more}
    schema["additionalProperties"] = False
    return Recognizer(*grammar_from_json_schema(schema, key_order="any", whitespace="compact"))


def test_one_of_forty_keys_has_to_be_wrong() -> None:
    wrong = {"patternProperties": {"^k05": {"type": "integer"}}}
    language = _closed(**{"not": wrong})
    assert language.accepts(b'{"k05":"x"}')
    assert language.accepts(b'{"k07":1,"k05":1.5,"k06":1}')
    assert language.longest_prefix(b'{"k05":1}') == len(b'{"k05":1')  # 1.5 goes on
    assert not language.accepts_prefix(b'{"k07":1,"k05":1,')


def test_choices_that_want_the_same_key_differently() -> None:
    """Each can be fulfilled until the key that the other is left with is written."""
    pairs = [
        {"anyOf": [{"required": [key]}, {"required": [other]}]}
        for key, other in zip(MANY[4::2], MANY[5::2], strict=True)
    ]

    def value(key: str, constant: int) -> dict[str, Any]:
        return {"required": [key], "properties": {key: {"const": constant}}}

    ways = [{"anyOf": [value("k00", i), value("k01", i), value("k02", i)]} for i in range(3)]
    language = _closed(allOf=[*pairs, *ways])
    members = b",".join(f'"{key}":0'.encode() for key in MANY[4::2])
    assert language.accepts(b'{"k00":2,"k01":0,"k02":1,' + members + b"}")
    assert not language.accepts_prefix(b'{"k00":1,"k01":1')
    assert not language.accepts_prefix(b'{"k00":3')


def test_a_printed_grammar_finds_ends_as_soon() -> None:
    schema = {
        "type": "object",
        "properties": {key: {"type": ["null", "integer"]} for key in MANY},
        "additionalProperties": False,
        "not": {"patternProperties": {"^k05": {"type": "integer"}}},
    }
    grammar = Grammar.from_json_schema(schema, key_order="any", whitespace="compact")
    again = Grammar.from_text(str(grammar))
    assert again == grammar
    for language in (grammar, again):
        assert language.accepts('{"k01":null,"k05":null}')
        assert not language.accepts_prefix('{"k05":1,"k01')
