"""Places of JSON Pointers: what stands there is what the pointer names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton.cli.pointers import find, located
from grammaton.errors import UnsupportedKeyword

KEYS = st.text(st.sampled_from('ab/~"\\é0'), max_size=3)
VALUES = st.recursive(
    st.none() | st.integers() | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


def places(value: Any, pointer: str = "") -> list[tuple[str, Any, str | None]]:
    """Every pointer into a value, what it names, and the key if that is a member."""
    found: list[tuple[str, Any, str | None]] = [(pointer, value, None)]
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += places(item, f"{pointer}/{i}")
    elif isinstance(value, dict):
        for key, item in value.items():
            name = key.replace("~", "~0").replace("/", "~1")
            (_, whole, _), *inner = places(item, f"{pointer}/{name}")
            found += [(f"{pointer}/{name}", whole, key), *inner]
    return found


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_every_pointer_leads_to_its_place(value: Any, indent: int | None, ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    for pointer, named, key in places(value):
        start, end = find(text, pointer)
        assert json.loads(text[start:end]) == (named if key is None else key)


@pytest.mark.parametrize("pointer", ["/b", "/a/2", "/a/x", "/a/0/c", "/c"])
def test_pointers_that_lead_nowhere(pointer: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        find('{"a": [1, 2]}', pointer)


def test_errors_keep_their_kind_and_pointer() -> None:
    text = b'{"a":\n  {"b": 1}}'
    found = located(UnsupportedKeyword("no b", pointer="/a/b"), text)
    assert type(found) is UnsupportedKeyword
    assert (found.line, found.column, found.pointer) == (2, 4, "/a/b")
    assert '    {"b": 1}' in str(found)
    nowhere = UnsupportedKeyword("no c", pointer="/c")
    assert located(nowhere, text) is nowhere
    assert located(nowhere, b"\xff") is nowhere
