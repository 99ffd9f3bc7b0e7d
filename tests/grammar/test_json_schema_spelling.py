"""The options about escapes: texts are those of `json.dumps`, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton import Grammar
from grammaton._core import Recognizer
from grammaton.errors import GrammatonError
from grammaton.grammar.json_schema import grammar_from_json_schema

TEXTS = st.text(
    st.sampled_from('ab/"\\\n\t\x08\x0c\r\x00\x1f\x7f\x80\xe9\u2028\ud7ff\ue000\uffff\U0001f600'),
    max_size=4,
)
OPTIONS = [
    (ascii_only, escapes) for ascii_only in (False, True) for escapes in ("any", "canonical")
]
SHORT = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
SHORT |= {each: "\\" + each for each in '"\\/'}


def _spellings(char: str) -> list[str]:
    """Some JSON spellings of a character."""
    units = char.encode("utf-16-be")
    escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    found = [escaped, escaped[:2] + escaped[2:].replace("\\u", "!").upper().replace("!", "\\u")]
    if char in SHORT:
        found.append(SHORT[char])
    if char >= " " and char not in '"\\':
        found.append(char)
    return found


def _languages(ascii_only: bool, escapes: Any, text: str) -> list[tuple[Recognizer, str]]:
    """Languages that allow a text as a value or a key, with what stands around it."""
    schemas: list[tuple[Any, str]] = [
        ({"type": "string"}, "{}"),
        ({"type": "string", "maxLength": 4}, "{}"),
        ({"type": "string", "pattern": "^[^]*$"}, "{}"),
        ({"const": text}, "{}"),
        ({"enum": [text, "x", "y"]}, "{}"),
        ({"additionalProperties": {"const": 1}}, "{{{}:1}}"),
        ({"properties": {text: {"const": 1}}, "additionalProperties": False}, "{{{}:1}}"),
        ({"properties": {"zz": {}}, "patternProperties": {"^[^]?": {}}}, "{{{}:1}}"),
    ]
    return [
        (
            Recognizer(*grammar_from_json_schema(schema, ensure_ascii=ascii_only, escapes=escapes)),
            around,
        )
        for schema, around in schemas
    ]


@pytest.mark.parametrize(("ascii_only", "escapes"), OPTIONS)
@given(st.data())
def test_spellings(ascii_only: bool, escapes: str, data: st.DataObject) -> None:
    text = data.draw(TEXTS)
    spelled = '"' + "".join(data.draw(st.sampled_from(_spellings(c))) for c in text) + '"'
    assert json.loads(spelled) == text
    for language, around in _languages(ascii_only, escapes, text):
        dumped = around.format(json.dumps(text, ensure_ascii=ascii_only)).encode()
        assert language.accepts(dumped)
        allowed = spelled.isascii() or not ascii_only
        if escapes == "canonical":
            allowed = spelled == json.dumps(text, ensure_ascii=ascii_only)
        assert language.accepts(around.format(spelled).encode()) == allowed


def test_options_are_checked() -> None:
    with pytest.raises(GrammatonError, match="escapes"):
        grammar_from_json_schema({}, escapes="few")  # type: ignore[arg-type]
    with pytest.raises(GrammatonError, match="ensure_ascii"):
        grammar_from_json_schema({}, ensure_ascii=1)  # type: ignore[arg-type]


def test_types_take_the_options() -> None:
    grammar = Grammar.from_type(dict[str, str], ensure_ascii=True, escapes="canonical")
    assert grammar.accepts('{"\\u00e9": "a"}')
    assert not grammar.accepts('{"é": "a"}')
    assert not grammar.accepts('{"\\u00e9": "\\u0061"}')
    assert grammar.value('{"\\u00e9": "a"}') == {"é": "a"}
