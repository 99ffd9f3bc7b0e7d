"""Regular expressions against Python's own engine, over drawn patterns and texts."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammaton import Grammar, GrammarError
from grammaton._core import TermStore
from grammaton.fuzz.patterns import Patterns, asks_re
from grammaton.grammar.regex import pattern_term
from tests.grammar.patterns import (
    ASCII_NAMED,
    Render,
    examples,
    near,
    trees,
)

REFUSED = "not supported"
"""In the message about a construct that is beyond what can be lowered."""


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


@pytest.mark.parametrize("anchors", ["", "^$AZbB"])
@pytest.mark.parametrize("search", [False, True])
def test_acceptance_equals_that_of_re(anchors: str, search: bool) -> None:
    inside = outside = refused = 0

    @examples(2)
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        nonlocal inside, outside, refused
        python = bool(anchors)
        tree = data.draw(trees(anchors=anchors, look=python, python=python))
        if search and data.draw(st.booleans()):
            tree = ("cat", [("anchor", "^"), ("group", "(?:", tree), ("anchor", "$")])
        pattern = Render("python")(tree)
        flags = data.draw(st.sampled_from(["", "", "i", "m", "s", "a", "im"]))
        asked = asks_re(pattern, flags=flags, search=search)
        make = partial(Grammar.from_regex, search=search, flags=flags)
        grammar = attempt(make, pattern)
        if isinstance(grammar, GrammarError):
            assert anchors
            assert REFUSED in grammar.message
            refused += 1
            return
        for _ in range(3):
            text = data.draw(near(tree))
            match = asked(text)
            assert grammar.accepts(text) == match, (pattern, text)
            inside += match
            outside += not match

    compare()
    total = inside + outside
    assert inside >= 0.3 * total
    assert outside >= (0.2 if search else 0.3) * total
    assert refused <= 0.1 * total


CONSTRUCTS = {
    *("(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?#", "(?i:", "(?a:", "(?m:", "(?s:", "(?x:"),
    *("(?u:", "(?-i:", "(?m-s:", "(?i)", "(?m)", "(?s)", "(?a)", "(?x)", "(?u)"),
    *("|", "[", "[^", ".", "^", "$", "\\A", "\\Z", "\\b", "\\B"),
    *("\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\U"),
    *("?", "*", "+", "{2}", "{1,2}", "{2,}", "??", "*?", "+?", "?+", "*+", "++", "{2}+", "{2,}?"),
}


def test_every_construct_agrees_with_re() -> None:
    """Cases of the fuzz target, with a look at what they cover."""
    inside = outside = refused = taken = 0
    covered: set[str] = set()
    for number in range(1000):
        case = Patterns().draw(Random(f"constructs {number}"))
        pattern, flags, search = case["pattern"], case["flags"], case["search"]
        try:
            grammar = Grammar.from_regex(pattern, flags=flags, search=search)
        except GrammarError as error:
            refused += REFUSED in error.message
            continue
        taken += 1
        covered |= {construct for construct in CONSTRUCTS if construct in pattern}
        asked = asks_re(pattern, flags=flags, search=search)
        for text in case["texts"][::10]:
            match = asked(text)
            assert grammar.accepts(text) == match, (pattern, flags, search, text)
            inside += match
            outside += not match
    assert covered == CONSTRUCTS
    assert inside >= 0.3 * (inside + outside)
    assert outside >= 0.3 * (inside + outside)
    assert refused <= 0.1 * taken


def test_ecma_search_equals_the_same_in_python() -> None:
    inside = outside = 0

    @examples(2)
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        nonlocal inside, outside
        tree = data.draw(trees(anchors="^$", look=True))
        if data.draw(st.booleans()):
            tree = ("cat", [("anchor", "^"), ("group", "(?:", tree), ("anchor", "$")])
        pattern = Render("ecma")(tree)
        asked = asks_re(Render("ecma", for_re=True)(tree), search=True)
        grammar = search_grammar(pattern)
        for _ in range(3):
            text = data.draw(near(tree, ASCII_NAMED))
            match = asked(text)
            assert grammar.accepts(text) == match, (pattern, text)
            inside += match
            outside += not match

    compare()
    total = inside + outside
    assert inside >= 0.3 * total
    assert outside >= 0.2 * total


@given(st.text("aab1(|)[]{}*+?^$\\-,.:P<>=!#dDwbBnxuiN0 ", max_size=12), st.data())
@examples(10)
def test_what_python_refuses_is_refused_and_the_rest_agrees(
    pattern: str, data: st.DataObject
) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = re.compile(pattern)
    except (re.error, OverflowError, ValueError):
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
