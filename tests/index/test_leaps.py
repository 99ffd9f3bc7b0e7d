"""Pieces of keys and counted strings taken at once: as byte by byte, however a text is cut.

`Grammar.accepts_prefix` steps single bytes through rows and knows no leaps; a matcher leaps over
what a piece of text says of a key or of a counted string.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import grammaton
from grammaton import Constraint, Grammar, Vocabulary
from tests.reference import mask_to_ids

KEYS = ["a", "ab", "abc", "abd", "b", "ba", "é", "éa", "x y", 'q"', "back\\slash", "name", "names"]
SCHEMAS: list[dict[str, Any]] = [
    {"properties": {key: {"type": "integer"} for key in KEYS}, "additionalProperties": False},
    {"properties": {key: {"type": "integer"} for key in KEYS}},
    {"properties": {"abc": {"const": 1}}, "required": ["name"], "additionalProperties": True},
    {"properties": {"abc": {"maxLength": 3}}, "patternProperties": {"^ab": {"minLength": 2}}},
    {"additionalProperties": {"type": "string", "pattern": "^[a-c]{2,4}é?$"}},
    {"propertyNames": {"maxLength": 3}, "minProperties": 1},
    {"enum": ["a", "ab", "abab", {"abc": "ab"}, "é", "aé"]},
    {"type": "string", "minLength": 2, "maxLength": 5},
    {"type": "array", "items": {"type": "string", "pattern": "^(ab){1,2}c{0,3}$|^d{2}"}},
]
VOCABULARY = Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos_token_ids=[256])
GRAMMARS = [Grammar.from_json_schema({"type": ["object", "array", "string"]} | s) for s in SCHEMAS]
CONSTRAINTS: list[Constraint] = [grammaton.compile(grammar, VOCABULARY) for grammar in GRAMMARS]

pieces = st.one_of(
    st.sampled_from(KEYS), st.text("abcdé", max_size=6), st.sampled_from(["\\u0061", "\\n", '"'])
)
strings = st.lists(pieces, max_size=3).map("".join)
texts = st.one_of(
    st.dictionaries(strings, strings | st.integers(0, 20), max_size=3).map(
        lambda value: json.dumps(value, ensure_ascii=False)
    ),
    st.lists(strings, max_size=2).map(json.dumps),
    strings.map('"{}"'.format),
    strings.map('{{"{}'.format),
)


@given(st.sampled_from(range(len(SCHEMAS))), texts, st.lists(st.integers(0, 40), max_size=4))
def test_cuts_change_nothing(i: int, text: str, cuts: list[int]) -> None:
    data = text.encode()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    matcher = CONSTRAINTS[i].matcher()
    for begin, end in itertools.pairwise(places):
        expected = GRAMMARS[i].accepts_prefix(data[:end])
        assert matcher.accept_bytes(data[begin:end]) == expected, data[:end]
        if not expected:
            return
    assert matcher.is_complete == GRAMMARS[i].accepts(data)
    allowed = mask_to_ids(matcher.mask())
    for byte in range(256):
        assert (byte in allowed) == GRAMMARS[i].accepts_prefix(data + bytes([byte]))


MANY = [*KEYS, "", "nam", "😀", "😁", "😀a", "Ā", "ā", "x", "xy", "\x01"]
CLOSED = [
    grammaton.compile(
        Grammar.from_json_schema(
            {
                "type": "object",
                "properties": {key: {"const": i} for i, key in enumerate(MANY)},
                "additionalProperties": False,
            },
            key_order=order,
        ),
        VOCABULARY,
    )
    for order in ("schema", "any")
]


@given(
    st.sampled_from(MANY) | st.text("abxy é😀😁Āā\x01", max_size=3),
    st.integers(0, len(MANY)),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.sampled_from(range(2)),
)
def test_declared_keys_in_any_spelling(key: str, value: int, escaped: list[bool], i: int) -> None:
    spelled = "".join(
        json.dumps(char)[1:-1] if escape else json.dumps(char, ensure_ascii=False)[1:-1]
        for char, escape in itertools.zip_longest(key, escaped[: len(key)], fillvalue=False)
        if char
    )
    matcher = CLOSED[i].matcher()
    valid = value < len(MANY) and MANY[value] == key
    text = f'{{"{spelled}": {value}}}'
    assert matcher.accept_bytes(text.encode()) == valid, text
    if valid:
        assert matcher.is_complete
    bytewise = CLOSED[i].matcher()
    assert all(bytewise.accept_bytes(bytes([byte])) for byte in text.encode()) == valid
