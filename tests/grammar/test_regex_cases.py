"""The corpora of tests/cases/regex: patterns with texts inside and outside, and errors.

python.json lists what `re.fullmatch` says, ecma.json what a JavaScript engine's `RegExp.test` says;
errors.json has the span of each refusal and the beginning of its message.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from grammaton import Grammar, GrammarError
from grammaton._core import TermStore
from grammaton.grammar.regex import pattern_term

CASES = Path(__file__).parent.parent / "cases" / "regex"


def load(name: str) -> list[dict[str, Any]]:
    """The entries of a corpus."""
    entries: list[dict[str, Any]] = json.loads((CASES / name).read_text(encoding="utf-8"))
    return entries


def check(grammar: Grammar, case: dict[str, Any]) -> None:
    for text in case["inside"]:
        assert grammar.accepts(text), text
        assert all(grammar.accepts_prefix(text[:n]) for n in range(len(text)))
    for text in case["outside"]:
        assert not grammar.accepts(text), text


@pytest.mark.parametrize("case", load("python.json"), ids=lambda case: case["pattern"])
def test_python(case: dict[str, Any]) -> None:
    check(Grammar.from_regex(case["pattern"]), case)


@pytest.mark.parametrize("case", load("python.json"), ids=lambda case: case["pattern"])
def test_the_corpus_says_what_python_says(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pattern = re.compile(case["pattern"])
    assert all(pattern.fullmatch(text) for text in case["inside"])
    assert not any(pattern.fullmatch(text) for text in case["outside"])


@pytest.mark.parametrize("case", load("ecma.json"), ids=lambda case: case["pattern"])
def test_ecma(case: dict[str, Any]) -> None:
    store = TermStore()
    check(Grammar(store, pattern_term(store, case["pattern"])), case)


@pytest.mark.parametrize(
    "case", load("errors.json"), ids=lambda case: f"{case['dialect']}-{case['pattern'][:20]}"
)
def test_errors(case: dict[str, Any]) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_regex(case["pattern"], dialect=case["dialect"])
    error = caught.value
    assert error.message.startswith(case["message"])
    assert error.position == case["position"]
    assert (error.end or case["position"] + 1) == case["end"]
    assert "^" in str(error).splitlines()[-1]
