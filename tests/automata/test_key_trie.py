"""Unions of lifted literals, each with its own continuation: the declared keys of an object.

The oracle is Python's json module: a text is in the union when it is a spelling of some key,
followed by that key's own mark.
"""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from grammaton._core import Recognizer, TermStore

CHARACTERS = 'ab/"\\\n\x01é\u0800漢\uffff😀\U0010ffff'
KEYS = st.lists(st.text(CHARACTERS, max_size=4), min_size=1, max_size=6, unique=True)
SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\n": "\\n"}


def mark(index: int) -> str:
    return "0123456789"[index]


def union_of(keys: list[str]) -> Recognizer:
    store = TermStore()
    branches = [
        store.concat([store.json(store.literal(key.encode())), store.literal(mark(i).encode())])
        for i, key in enumerate(keys)
    ]
    return Recognizer(store, store.union(branches))


def is_inside(keys: list[str], text: str) -> bool:
    try:
        value = json.loads(f'"{text[:-1]}"')
    except json.JSONDecodeError:
        return False
    return value in keys and text.endswith(mark(keys.index(value)))


def spelled(draw: st.DrawFn, key: str) -> str:
    """A spelling of a key: each character raw, by its short escape or in hexadecimal."""
    pieces = []
    for character in key:
        units = character.encode("utf-16-be")
        form = draw(st.sampled_from(["{:04x}", "{:04X}"]))
        hexadecimal = "".join(
            "\\u" + form.format(int.from_bytes(units[i : i + 2], "big"))
            for i in range(0, len(units), 2)
        )
        choices = [hexadecimal, SHORT.get(character, hexadecimal)]
        if character >= " " and character not in '"\\':
            choices.append(character)
        pieces.append(draw(st.sampled_from(choices)))
    return "".join(pieces)


@st.composite
def keys_and_text(draw: st.DrawFn) -> tuple[list[str], str]:
    keys = draw(KEYS)
    index = draw(st.integers(0, len(keys) - 1))
    text = spelled(draw, keys[index]) + mark(draw(st.sampled_from([index, index, 0])))
    if draw(st.booleans()):  # a near miss, or another spelling
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.sampled_from([*'ab\\u0dD"', ""])) + text[at + 1 :]
    return keys, text


@given(keys_and_text())
def test_a_key_in_any_spelling_goes_on_as_that_key(drawn: tuple[list[str], str]) -> None:
    keys, text = drawn
    assert union_of(keys).accepts(text.encode("utf-8", "surrogatepass")) == is_inside(keys, text)


@given(keys_and_text())
def test_every_beginning_of_a_spelling_is_viable(drawn: tuple[list[str], str]) -> None:
    keys, text = drawn
    recognizer = union_of(keys)
    data = text.encode("utf-8", "surrogatepass")
    if is_inside(keys, text):
        assert all(recognizer.accepts_prefix(data[:n]) for n in range(len(data) + 1))
        assert not recognizer.accepts_prefix(data + b"0")
