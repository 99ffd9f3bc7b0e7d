"""GBNF: acceptance against a naive matcher, round trips through the printer, errors, sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.grammars import load_all
from grammaton import Grammar, GrammarError, UnsatisfiableGrammar, UnsupportedKeyword
from tests.grammar.notations import (
    LETTERS,
    Expression,
    grammars,
    language,
    texts_of,
    to_gbnf,
)

CASES = Path(__file__).parent.parent / "cases" / "gbnf"


def load(name: str) -> list[dict[str, Any]]:
    """The entries of a corpus."""
    entries: list[dict[str, Any]] = json.loads((CASES / name).read_text(encoding="utf-8"))
    return entries


def read(text: str) -> Grammar:
    """The grammar, when it has texts."""
    try:
        grammar = Grammar.from_gbnf(text)
        grammar.accepts("")
    except UnsatisfiableGrammar:
        assume(False)
    return grammar


@given(grammars(), st.integers(0, 5), st.data())
@settings(max_examples=40)
def test_acceptance_is_a_naive_matchers(
    rules: list[Expression], layout: int, data: st.DataObject
) -> None:
    grammar = read(to_gbnf(rules, layout))
    again = Grammar.from_gbnf(grammar.to_gbnf())
    texts = [data.draw(texts_of(rules)) for _ in range(2)]
    texts += data.draw(st.lists(st.text(LETTERS, max_size=4), max_size=3))
    for text in texts:
        inside = language(rules, text)
        assert grammar.accepts(text) == inside, text
        assert again.accepts(text) == inside, text
        if inside:
            assert all(grammar.accepts_prefix(text[:n]) for n in range(len(text)))


@pytest.mark.parametrize("case", load("texts.json"), ids=lambda case: case["about"])
def test_cases(case: dict[str, Any]) -> None:
    grammar = Grammar.from_gbnf(case["grammar"])
    for text in case["inside"]:
        assert grammar.accepts(text), text
    for text in case["outside"]:
        assert not grammar.accepts(text), text


@pytest.mark.parametrize("case", load("errors.json"), ids=lambda case: case["grammar"][:30])
def test_errors(case: dict[str, Any]) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_gbnf(case["grammar"])
    error = caught.value
    assert case["message"] in error.message
    assert error.position is not None
    end = error.position + 1 if error.end is None else error.end
    assert case["grammar"][error.position : end] == case["at"]
    assert "^" in str(error).splitlines()[-1]


def test_the_start_can_be_any_rule() -> None:
    text = 'root ::= a | b\na ::= "a"\nb ::= "b"'
    assert Grammar.from_gbnf(text, start="b").accepts("b")
    with pytest.raises(GrammarError, match="no rule is named c, the start; the rules are: root"):
        Grammar.from_gbnf(text, start="c")


@pytest.mark.parametrize(
    "form",
    [
        r'start ::= "a\"\\\n\r\t-^[]é\u{0}\u{7F}\u{10FFFF}"',
        r"start ::= [\-\^\]\[a-c\"\u{0}-\u{1F}]+",
        "start ::= [^]{2,5} [^a] ([b-d] | x)* \nx ::= start?",
        'start ::= ""',
    ],
)
def test_printing_keeps_the_language(form: str) -> None:
    grammar = Grammar.from_text(form)
    again = Grammar.from_gbnf(grammar.to_gbnf())
    for text in (
        "",
        "a",
        "abc",
        'a"\\\n\r\t-^[]é\0\x7f\U0010ffff',
        '-^][abc"\0\x1f',
        "zzzzbbzz",
        "é",
    ):
        assert again.accepts(text) == grammar.accepts(text), text


def test_rules_with_like_names_stay_apart() -> None:
    grammar = Grammar.from_text(
        'start ::= a_b a__b root\na_b ::= "1" a_b "1" | "x"\n'
        'a__b ::= "2" a__b "2" | "y"\nroot ::= "3" root "3" | "z"'
    )
    text = grammar.to_gbnf()
    assert text.startswith("root ::= a-b a-b-2 root-2\n")
    assert Grammar.from_gbnf(text).accepts("1x12y23z3")


@pytest.mark.parametrize(
    ("form", "what"),
    [
        ('start ::= [a-z]+ & ~"if"', "&"),
        ('start ::= ~"if"', "[&~]"),
        ("start ::= json([a-z]{2})", "json"),
        ('start ::= template { if unseen #0: "a" -> start(see #0); "b"; }', "memory"),
    ],
)
def test_what_gbnf_cannot_say_is_refused(form: str, what: str) -> None:
    with pytest.raises(UnsupportedKeyword, match=what):
        Grammar.from_text(form).to_gbnf()


def test_large_grammars() -> None:
    rules = 2_000
    many = "root ::= r0\n" + "".join(
        f'r{i} ::= "k{i}" r{(i + 1) % rules}? [a-z]+ ("a" | "b{i}" c)*\n' for i in range(rules)
    )
    assert Grammar.from_gbnf(many + 'c ::= "c" c | "d"').accepts("k0k1abb1cdx")
    chain = "root ::= r0\n" + "".join(f'r{i} ::= "k" r{i + 1}\n' for i in range(rules))
    assert Grammar.from_gbnf(chain + f'r{rules} ::= "z"').accepts("k" * rules + "z")
    counted = Grammar.from_gbnf('root ::= ("a" x){100000}\nx ::= "(" x ")" | "b"')
    assert counted.accepts_prefix("a(b)ab")
    assert not counted.accepts("ab")
    with pytest.raises(GrammarError, match="nested deeper than 50"):
        Grammar.from_gbnf("root ::= " + "(" * 500_000 + '"a"' + ")" * 500_000)


def test_indentation_has_no_gbnf() -> None:
    python = next(sample for sample in load_all() if sample.name == "python")
    with pytest.raises(UnsupportedKeyword, match="a rule with parameters"):
        python.grammar().to_gbnf()
