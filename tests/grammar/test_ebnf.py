"""W3C EBNF: acceptance against a naive matcher, errors, sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grammaton import Grammar, GrammarError, UnsatisfiableGrammar
from tests.grammar.notations import LETTERS, Expression, grammars, language, texts_of, to_ebnf

CASES = Path(__file__).parent.parent / "cases" / "ebnf"


def load(name: str) -> list[dict[str, Any]]:
    """The entries of a corpus."""
    entries: list[dict[str, Any]] = json.loads((CASES / name).read_text(encoding="utf-8"))
    return entries


@given(grammars(), st.integers(0, 5), st.data())
@settings(max_examples=30)
def test_acceptance_is_a_naive_matchers(
    rules: list[Expression], layout: int, data: st.DataObject
) -> None:
    try:
        grammar = Grammar.from_ebnf(to_ebnf(rules, layout))
        grammar.accepts("")
    except UnsatisfiableGrammar:
        assume(False)
    texts = [data.draw(texts_of(rules)) for _ in range(2)]
    texts += data.draw(st.lists(st.text(LETTERS, max_size=4), max_size=3))
    for text in texts:
        assert grammar.accepts(text) == language(rules, text), text


@pytest.mark.parametrize("case", load("texts.json"), ids=lambda case: case["about"])
def test_cases(case: dict[str, Any]) -> None:
    grammar = Grammar.from_ebnf(case["grammar"])
    for text in case["inside"]:
        assert grammar.accepts(text), text
    for text in case["outside"]:
        assert not grammar.accepts(text), text


@pytest.mark.parametrize("case", load("errors.json"), ids=lambda case: case["grammar"][:30])
def test_errors(case: dict[str, Any]) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_ebnf(case["grammar"])
    error = caught.value
    assert case["message"] in error.message
    assert error.position is not None
    end = error.position + 1 if error.end is None else error.end
    assert case["grammar"][error.position : end] == case["at"]
    assert "^" in str(error).splitlines()[-1]


def test_the_start_is_the_first_rule_or_any() -> None:
    text = "a ::= 'x' b\nb ::= 'y'"
    assert Grammar.from_ebnf(text).accepts("xy")
    assert Grammar.from_ebnf(text, start="b").accepts("y")
    with pytest.raises(GrammarError, match="no rule is named c, the start; the rules are: a, b"):
        Grammar.from_ebnf(text, start="c")


def test_taking_away_sees_through_rules() -> None:
    grammar = Grammar.from_ebnf(
        "name ::= word - keyword\nword ::= letter+\nletter ::= [a-z]\nkeyword ::= 'if' | loop\n"
        "loop ::= 'while' | 'for'"
    )
    assert all(map(grammar.accepts, ("iff", "fo")))
    assert not any(map(grammar.accepts, ("if", "while", "for")))


def test_large_grammars() -> None:
    many = "a ::= " + " | ".join(f"b{i} - 'x'" for i in range(10_000))
    many += "".join(f"\nb{i} ::= 'k{i}' b{(i + 1) % 10_000}? [a-z]" for i in range(9_999))
    with pytest.raises(GrammarError, match="not defined"):
        Grammar.from_ebnf(many)
