"""Types and their texts: pydantic is the judge of both directions.

Every text of a type's grammar validates and is read as the value that pydantic reads; what pydantic
writes for a value is in the grammar, and is read as the value.
"""

from __future__ import annotations

import re
from typing import Any

import pydantic
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grammaton import Grammar
from grammaton.fuzz import sentences
from tests.grammar.python_types import DRAWN, MODELS, PLAIN, Amounts


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or repr(kind)


@pytest.mark.parametrize("kind", [*PLAIN, *MODELS, Amounts], ids=_name)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_every_text_is_a_value_and_its_dump_is_a_text(kind: Any, data: st.DataObject) -> None:
    grammar = Grammar.from_type(kind, whitespace="compact")
    adapter: Any = pydantic.TypeAdapter(kind)
    text = data.draw(sentences(grammar))
    value = grammar.value(text)
    judged = adapter.validate_json(text)
    assert same(value, judged)
    dumped = adapter.dump_json(judged, by_alias=True).decode()
    assume(same_or_error(adapter, dumped, judged))
    assert grammar.accepts(dumped), dumped
    assert same(grammar.value(dumped), judged)


@pytest.mark.parametrize("kind", DRAWN, ids=_name)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_what_pydantic_writes_is_a_text(kind: Any, data: st.DataObject) -> None:
    grammar = Grammar.from_type(kind, key_order="any")
    adapter: Any = pydantic.TypeAdapter(kind)
    value = data.draw(st.from_type(kind) if kind is not None else st.none())
    try:
        dumped = adapter.dump_json(value).decode()
    except ValueError:
        assume(False)
    assume(same_or_error(adapter, dumped, value))
    assume(not re.search("P27[0-9]{5}Y", dumped))  # durations that the grammar leaves out
    assert grammar.accepts(dumped), dumped
    assert same(grammar.value(dumped), value)


def same(a: object, b: object) -> bool:
    """Equal, and of one type; NaN does not occur."""
    return type(a) is type(b) and a == b


def same_or_error(adapter: Any, text: str, value: object) -> bool:
    """Whether pydantic itself reads what it wrote: infinities, seconds of offsets are lost."""
    try:
        return bool(adapter.validate_json(text) == value)
    except ValueError:
        return False
