"""The patterns that real schemas contain: all of JSONSchemaBench's, `pattern`s and the names of
`patternProperties`.

Texts come from the kit (`grammaton.fuzz`), inside a pattern's language and just outside of it, and
are judged by node, by `re` where the two dialects agree, or by both.
"""

from __future__ import annotations

import json
import lzma
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest

from grammaton import Grammar, GrammarError, LimitExceeded, UnsatisfiableGrammar
from grammaton._core import TermStore
from grammaton.fuzz.draw import Drawn, NearMisses, draw_sentence
from grammaton.fuzz.ecma_patterns import Node
from grammaton.fuzz.paths import Paths
from grammaton.grammar.regex import pattern_term

TOP = 300
LOOK_AROUND = re.compile(r"\(\?<?[=!]")
ANOTHER_MEANING = re.compile(r"\[\^?\]|\\[cpPuZA]|\\.-|\{,|\[\[|\n")
"""What the dialects do not read alike, flag `a` or not; too much of it does no harm."""

Judge = Callable[[str], bool | None]
"""What another implementation says of a text; None when it is not to be asked."""


def patterns_in(schema: Any) -> Iterator[str]:
    """Those of a schema, with as many as there are."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), dict):
            yield from schema["patternProperties"]
    if isinstance(schema, dict | list):
        parts = schema.values() if isinstance(schema, dict) else schema
        yield from chain.from_iterable(map(patterns_in, parts))


@pytest.fixture(scope="module")
def counted(data_path: Path) -> Counter[str]:
    """How often each pattern occurs."""
    path = data_path / "jsonschemabench-dev.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return Counter(
            chain.from_iterable(patterns_in(json.loads(line)["schema"]) for line in lines)
        )


def grammar_of(pattern: str) -> Grammar:
    """What JSON Schema's `pattern` means."""
    store = TermStore()
    return Grammar(store, pattern_term(store, pattern))


def judged_by_re(pattern: str) -> Judge:
    """`re`, for texts of ASCII without line breaks."""
    if ANOTHER_MEANING.search(pattern):
        return lambda text: None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            asked = re.compile(pattern, re.ASCII)
        except re.error:
            return lambda text: None

    def judge(text: str) -> bool | None:
        return asked.search(text) is not None if text.isascii() and text.isprintable() else None

    return judge


def texts_of(grammar: Grammar, rng: Random) -> list[str]:
    """Some inside the language, some just outside, and some of any kind."""
    texts = ["", "a", "1", "a-b.c_1", "/é漢😀", "\n", "docs.example.org", "a://b", "-a.b", "a.1"]
    with suppress(LimitExceeded):  # the shortest ways through a pattern may be too many to know
        paths = Paths(grammar)
        longest = paths.shortest(paths.start) + 12
        texts += [draw_sentence(paths, Drawn(rng), max_size=longest) for _ in range(10)]
        with suppress(UnsatisfiableGrammar):  # every text is inside
            misses = NearMisses(paths, max_size=longest)
            texts += [text for _ in range(8) if (text := misses.draw(Drawn(rng))) is not None]
    return list(dict.fromkeys(texts))


def test_all_compile_or_say_why_not(counted: Counter[str]) -> None:
    refused: dict[str, str] = {}
    for pattern in counted:
        try:
            grammar_of(pattern)
        except GrammarError as error:
            refused[pattern] = error.message
    assert len(counted) > 1500
    assert refused == {}


def test_the_most_frequent_and_those_with_look_around_mean_what_they_say(
    counted: Counter[str],
) -> None:
    chosen = [pattern for pattern, _ in counted.most_common(TOP)]
    chosen += [p for p in counted if LOOK_AROUND.search(p) and p not in chosen]
    assert sum(LOOK_AROUND.search(pattern) is not None for pattern in chosen) >= 10
    node = Node() if Node.is_there() else None
    inside = outside = unjudged = 0
    for number, pattern in enumerate(chosen):
        grammar = grammar_of(pattern)
        texts = texts_of(grammar, Random(f"pattern {number}"))
        ours = [grammar.accepts(text) for text in texts]
        by_re = [judged_by_re(pattern)(text) for text in texts]
        judgements: list[tuple[bool | None, ...]] = [(each,) for each in by_re]
        if node is not None:
            answers = node.answers(pattern, texts)
            if isinstance(answers, str):  # a form of Annex B
                answers = node.answers(pattern, texts, unicode=False)
            assert not isinstance(answers, str), (pattern, answers)
            judgements = list(zip(by_re, answers, strict=True))
        for text, mine, others in zip(texts, ours, judgements, strict=True):
            assert {mine, None} >= set(others), (pattern, text)
            unjudged += others == (None,) * len(others)
        inside += sum(ours)
        outside += len(ours) - sum(ours)
    assert inside >= 0.3 * (inside + outside)
    assert outside >= 0.3 * (inside + outside)
    assert unjudged <= (0.35 * (inside + outside) if node is None else 0)
