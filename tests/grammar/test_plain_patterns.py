"""Patterns that the core reads by itself against the same ones read in Python.

What it reads must come to the same term; what it does not read, Python decides.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grammaton._core import TermStore
from grammaton.errors import GrammarError
from grammaton.grammar.regex.ecma import EcmaParser
from grammaton.grammar.regex.lower import Lowering, edge_term

PIECES = [
    *("a", "b", "ab", "-", ".", "]", "}", " ", "/", ":", "0"),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\.", r"\-", r"\/", r"\t"),
    *(r"\x41", r"\u00e9", r"\u{1F600}", r"\u{00061}"),
    *("[a-z]", "[^a-z]", "[a]", "[a-]", "[-a]", r"[\w-]", r"[\w.-z]", "[a-zA-Z0-9_]", r"[^\s]"),
    *("(", "(?:", ")", ")", "|", "^", "$", "*", "+", "?", "{2}", "{1,3}", "{0,}", "*?", "{1,2}?"),
    *("{", "{,2}", "{3,1}", "[z-a]", "[]", "[^]", r"\b", r"\B", r"\1", r"\Z", r"\k", r"\u{}"),
    *("(?=", "(?!", "(?<=", "(?<n>", r"\ud83d", r"[\b]", "é", "[é]", "\\", "["),
    *(r"\u{110000}", r"\u{61"),
]


def read_in_python(store: TermStore, pattern: str) -> int:
    node = EcmaParser(pattern, lenient=True).parse()
    term = edge_term(store, node, search=True)
    return Lowering(store, pattern, node).search() if term is None else term


def agree(pattern: str) -> bool:
    """Whether the core reads a pattern; if so, as Python does."""
    store = TermStore()
    plain = store.plain_pattern(pattern)
    if plain is None:
        return False
    assert plain == read_in_python(store, pattern), pattern
    return True


@pytest.mark.parametrize("seed", range(4))
def test_drawn_patterns(seed: int) -> None:
    source = random.Random(seed)
    read = 0
    for _ in range(2_000):
        pattern = "".join(source.choices(PIECES[:-14], k=source.randint(0, 7)))
        read += agree(source.choice(["", "^"]) + pattern + source.choice(["", "$"]))
        agree("".join(source.choices(PIECES, k=source.randint(0, 9))))
    assert read > 400


def patterns_in(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        if isinstance(keys := part.get("patternProperties"), dict):
            yield from keys
        for value in part.values():
            yield from patterns_in(value)
    elif isinstance(part, list):
        for value in part:
            yield from patterns_in(value)


def test_real_patterns(data_path: Path) -> None:
    found: dict[str, None] = {}
    with lzma.open(data_path / "jsonschemabench-dev.jsonl.xz", "rt", encoding="utf-8") as file:
        for i, line in enumerate(file):
            if i % 3 == 0 and "attern" in line:
                found.update(dict.fromkeys(patterns_in(json.loads(line)["schema"])))
    read = 0
    for pattern in found:
        if not pattern.isascii() or len(pattern) > 300:
            continue
        try:
            read_in_python(TermStore(), pattern)
        except GrammarError:
            assert TermStore().plain_pattern(pattern) is None
            continue
        read += agree(pattern)
    assert read > 0.8 * len(found) > 80


@pytest.mark.parametrize(
    "pattern", ["(" * 100_000, "(a)" * 60, "(" * 50 + "a" + ")" * 50, "(" * 51 + "a" + ")" * 51]
)
def test_nesting(pattern: str) -> None:
    assert agree(pattern) == (pattern.count("(") in (50, 60))
