"""Regular expressions against Python's own engine, over drawn patterns and texts."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammaton import Grammar, GrammarError
from grammaton._core import TermStore
from grammaton.grammar.regex import pattern_term
from tests.grammar.patterns import ASCII_NAMED, Render, examples, near, trees

LOOPED = "is not supported here"
"""In the message about repeating an anchor or a look-ahead."""


def search_grammar(pattern: str) -> Grammar:
    """What JSON Schema's `pattern` means."""
    store = TermStore()
    return Grammar(store, pattern_term(store, pattern))


def attempt(make: Callable[[str], Grammar], pattern: str) -> Grammar | GrammarError:
    """The grammar, or the error that says why there is none."""
    try:
        return make(pattern)
    except GrammarError as error:
        return error


@pytest.mark.parametrize("anchors", [False, True])
def test_acceptance_equals_fullmatch(anchors: bool) -> None:
    inside = outside = refused = 0

    @examples(4)
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        nonlocal inside, outside, refused
        tree = data.draw(trees(anchors=anchors))
        pattern = Render("python")(tree)
        expected = re.compile(pattern)
        grammar = attempt(Grammar.from_regex, pattern)
        if isinstance(grammar, GrammarError):
            assert anchors
            assert LOOPED in grammar.message
            refused += 1
            return
        for _ in range(3):
            text = data.draw(near(tree))
            match = expected.fullmatch(text) is not None
            assert grammar.accepts(text) == match, (pattern, text)
            inside += match
            outside += not match

    compare()
    total = inside + outside
    assert inside >= 0.3 * total
    assert outside >= 0.3 * total
    assert refused <= 0.1 * total


def test_ecma_search_equals_the_same_in_python() -> None:
    inside = outside = refused = 0

    @examples(4)
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        nonlocal inside, outside, refused
        tree = data.draw(trees(anchors=True, look=True))
        if data.draw(st.booleans()):
            tree = ("cat", [("anchor", "^"), ("group", "(?:", tree), ("anchor", "$")])
        pattern = Render("ecma")(tree)
        expected = re.compile(Render("ecma", for_re=True)(tree))
        grammar = attempt(search_grammar, pattern)
        if isinstance(grammar, GrammarError):
            assert LOOPED in grammar.message
            refused += 1
            return
        for _ in range(3):
            text = data.draw(near(tree, ASCII_NAMED))
            match = expected.search(text) is not None
            assert grammar.accepts(text) == match, (pattern, text)
            inside += match
            outside += not match

    compare()
    total = inside + outside
    assert inside >= 0.3 * total
    assert outside >= 0.2 * total
    assert refused <= 0.3 * total


@given(st.text("aab1(|)[]{}*+?^$\\-,.:P<>=!#dDwnxuN0 ", max_size=12), st.data())
@examples(10)
def test_what_python_refuses_is_refused_and_the_rest_agrees(
    pattern: str, data: st.DataObject
) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = re.compile(pattern)
    except (re.error, OverflowError):
        expected = None
    grammar = attempt(Grammar.from_regex, pattern)
    if isinstance(grammar, GrammarError):
        assert grammar.position is not None
        assert 0 <= grammar.position <= len(pattern)
        assert expected is None or "not supported" in grammar.message, grammar
        return
    assert expected is not None, "Python refuses it"
    text = data.draw(st.text("ab1{},-]^ \\", max_size=5))
    assert grammar.accepts(text) == (expected.fullmatch(text) is not None)


@given(st.text("ab1(|)[]{}*+?^$\\-,.:<>=!dDwnxupc0/ ", max_size=16))
@examples(10)
def test_any_text_is_an_ecma_pattern_or_an_error_with_its_place(pattern: str) -> None:
    found = attempt(search_grammar, pattern)
    if isinstance(found, GrammarError):
        assert found.position is not None
        assert found.source == pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "(a{1,1000}){1,1000}",
        "(.*a){50}",
        "((((a?){1000}){1000}){1000}){1000}",
        "(?:a|b|c){1000000}",
        r"(\w{1,1000},){1,1000}",
        "(" * 90 + "a" + ")*" * 90,
        "x*" * 1000,
        "(x+x+)+y",
    ],
)
def test_counts_are_not_unrolled(pattern: str) -> None:
    grammar = Grammar.from_regex(pattern)
    assert len(grammar.store) < 10_000


def test_counts_as_large_as_python_takes_them() -> None:
    for pattern in ("a{4294967294}", "a{0,4294967294}", "a{4294967294,}"):
        Grammar.from_regex(pattern)
    with pytest.raises(GrammarError, match="at most 4294967294"):
        Grammar.from_regex("a{4294967295}")
    with pytest.raises(GrammarError, match="at most 4294967294"):
        Grammar.from_regex("a{" + "9" * 10_000 + "}")


@given(st.data())
def test_any_text_goes_through_escape(data: st.DataObject) -> None:
    text = data.draw(st.text(max_size=20))
    other = data.draw(st.text(max_size=3))
    grammar = Grammar.from_regex(re.escape(text))
    assert grammar.accepts(text)
    assume(other != text)
    assert not grammar.accepts(other)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(GrammarError, match="lone surrogate") as caught:
        Grammar.from_regex("ab\udc80")
    assert caught.value.position == 2
    str(caught.value).encode()


def test_surrogates_in_classes_are_no_characters() -> None:
    grammar = Grammar.from_regex(r"[\ud700-\ue000]+")
    assert grammar.accepts("\ud7ff\ue000")
    assert not grammar.accepts("\ue001")


def test_wrong_types_and_dialects() -> None:
    with pytest.raises(GrammarError, match="must be a str, not bytes"):
        Grammar.from_regex(b"a")  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="unknown regex dialect 'perl'"):
        Grammar.from_regex("a", dialect="perl")  # type: ignore[arg-type]
