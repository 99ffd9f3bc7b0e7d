"""`Grammar`: making, combining and asking, against sets of texts."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton import Grammar, GrammarError, GrammatonError
from grammaton._core import TermStore
from tests.grammar.patterns import examples
from tests.reference import ReferenceStore
from tests.reference_language import Language
from tests.strategies import Plan, plans, regular_plans, texts_near, within_budget

UNTYPED: Any = Grammar
"""`Grammar`, for calls that a type checker would refuse too."""

BALANCED = 'start ::= "(" start ")" start | ""'


def grammar_of(plan: Plan) -> Grammar:
    """A plan in a store of its own."""
    store = TermStore()
    return Grammar(store, plan.build(store))


@given(plans(), st.data())
@within_budget
def test_questions_are_answered_as_the_reference_does(plan: Plan, data: st.DataObject) -> None:
    grammar = grammar_of(plan)
    reference = ReferenceStore()
    start = plan.build(reference)
    language = Language(reference, start)
    for _ in range(3):
        text = data.draw(texts_near(language))
        assert grammar.accepts(text) == language.accepts(text)
        assert grammar.accepts_prefix(text) == language.viable(text)


@given(regular_plans(4), regular_plans(4), st.data())
@examples(2)
@within_budget
def test_operators_are_those_of_sets(left: Plan, right: Plan, data: st.DataObject) -> None:
    a, b = grammar_of(left), grammar_of(right)
    reference = ReferenceStore()
    x, y = left.build(reference), right.build(reference)
    text = data.draw(texts_near(Language(reference, data.draw(st.sampled_from([x, y])))))
    in_a, in_b = reference.accepts(x, text), reference.accepts(y, text)
    assert (a | b).accepts(text) == (in_a or in_b)
    assert (a & b).accepts(text) == (in_a and in_b)
    assert (~a).accepts(text) == (not in_a and is_utf8(text))
    assert (a & ~b).accepts(text) == (in_a and not in_b)
    splits = range(len(text) + 1)
    assert (a + b).accepts(text) == any(
        reference.accepts(x, text[:n]) and reference.accepts(y, text[n:]) for n in splits
    )
    assert a.optional().accepts(text) == (in_a or not text)
    assert a.repeat(2, 2).accepts(text) == any(
        reference.accepts(x, text[:n]) and reference.accepts(x, text[n:]) for n in splits
    )


def is_utf8(text: bytes) -> bool:
    """Whether bytes are a text."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(st.lists(st.text(max_size=6), min_size=1, max_size=20), st.text(max_size=6))
def test_choices(texts: list[str], other: str) -> None:
    grammar = Grammar.from_choices(texts)
    assert all(grammar.accepts(text) for text in texts)
    assert grammar.accepts(other) == (other in texts)
    assert grammar.accepts_prefix(other) == any(text.startswith(other) for text in texts)


def test_many_choices_are_quick() -> None:
    texts = [f"choice number {n * 7919 % 10_007}" for n in range(10_000)]
    grammar = Grammar.from_choices(texts)
    assert grammar.accepts(texts[1234])
    assert not grammar.accepts("choice number 10007")


@given(st.text(max_size=10), st.text(max_size=10))
def test_literal(text: str, other: str) -> None:
    grammar = Grammar.literal(text)
    assert grammar.accepts(text)
    assert grammar.accepts(text.encode())
    assert grammar.accepts(other) == (text == other)


def test_prefixes_may_end_inside_a_character() -> None:
    grammar = Grammar.literal("é!")
    assert grammar.accepts_prefix(b"\xc3")
    assert not grammar.accepts_prefix(b"\xc4")
    assert not grammar.accepts(b"\xc3")


def test_recursion() -> None:
    grammar = Grammar.from_text(BALANCED)
    assert grammar.accepts("(()())" * 50)
    assert not grammar.accepts("(()")
    assert grammar.accepts_prefix("(((")
    assert not grammar.accepts_prefix("())")
    both = Grammar.literal("<") + grammar + Grammar.literal(">") | grammar.repeat(0, 3)
    assert both.accepts("<()>")
    assert both.accepts("()()")
    assert not both.accepts("<()")


def test_a_repeated_grammar() -> None:
    digit = Grammar.from_regex("[0-9]")
    assert digit.some().accepts("123")
    assert not digit.some().accepts("")
    assert digit.many().accepts("")
    assert digit.repeat(2).accepts("123")
    assert not digit.repeat(2, 3).accepts("1234")
    assert digit.repeat(0, 0).accepts("")


def test_boolean_operators_refuse_recursion() -> None:
    recursive, regular = Grammar.from_text(BALANCED), Grammar.literal("()")
    with pytest.raises(GrammarError, match="the left operand has some"):
        recursive & regular
    with pytest.raises(GrammarError, match="the right operand has some"):
        regular & recursive
    with pytest.raises(GrammarError, match="recursive languages are not closed under it"):
        recursive.__invert__()


def test_an_empty_language_accepts_nothing() -> None:
    grammar = Grammar.literal("a") & Grammar.literal("b")
    assert not grammar.accepts("a")
    assert not grammar.accepts_prefix("")


def test_values() -> None:
    a = Grammar.from_regex("[a-c]+")
    assert a == Grammar.from_regex("[abc]{1,}")
    assert a != Grammar.from_regex("[a-d]+")
    assert a != "start ::= [a-c]+\n"
    assert len({a, Grammar.from_regex("(?:[a-c])+")}) == 1
    assert pickle.loads(pickle.dumps(a)) == a
    assert copy.deepcopy(a) == a
    assert repr(a) == "<Grammar [a-c]+>"
    assert len(repr(Grammar.literal("x" * 1000))) < 80


def test_a_grammar_is_immutable() -> None:
    grammar = Grammar.literal("a")
    with pytest.raises(AttributeError, match="immutable"):
        grammar.start = 0
    with pytest.raises(AttributeError, match="immutable"):
        del grammar.store
    other = grammar | Grammar.literal("b")
    assert not grammar.accepts("b")
    assert other.accepts("b")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: UNTYPED("a", 0), "use Grammar.from_regex"),
        (lambda: UNTYPED.literal(b"a"), "a literal must be a str, not bytes"),
        (lambda: UNTYPED.literal("a\udc80"), "a literal holds a lone surrogate (U+DC80)"),
        (lambda: UNTYPED.from_choices("abc"), "from_choices takes a list of str, not str"),
        (lambda: UNTYPED.from_choices(3), "from_choices takes a list of str, not int"),
        (lambda: UNTYPED.from_choices([]), "at least one text"),
        (lambda: UNTYPED.from_choices(["a", 1]), "a choice must be a str, not int"),
        (lambda: UNTYPED.from_choices(["\ud800"]), "a choice holds a lone surrogate"),
        (lambda: UNTYPED.from_text(b""), "the text form must be a str, not bytes"),
        (lambda: UNTYPED.from_regex(None), "a pattern must be a str, not NoneType"),
        (lambda: UNTYPED.literal("a").repeat("2"), "min must be an int, not str"),
        (lambda: UNTYPED.literal("a").repeat(True), "min must be an int, not bool"),
        (lambda: UNTYPED.literal("a").repeat(0, 1.5), "max must be an int, not float"),
        (lambda: UNTYPED.literal("a").repeat(-1), "min must be between 0 and"),
        (lambda: UNTYPED.literal("a").repeat(0, 2**32), "max must be between 0 and"),
        (lambda: UNTYPED.literal("a").repeat(3, 2), "min = 3 is above max = 2"),
        (lambda: UNTYPED.literal("a").accepts(1), "a text must be str or bytes, not int"),
        (lambda: UNTYPED.literal("a").accepts_prefix(None), "a text must be str or bytes"),
    ],
)
def test_bad_arguments(call: Callable[[], object], message: str) -> None:
    with pytest.raises(GrammatonError, match=re.escape(message)):
        call()


def test_operators_take_grammars_only() -> None:
    for operate in ("__add__", "__or__", "__and__"):
        assert getattr(Grammar.literal("a"), operate)("b") is NotImplemented


def test_a_text_with_a_lone_surrogate_is_in_no_language() -> None:
    anything = Grammar.from_regex(r"[\s\S]*")
    assert not anything.accepts("\ud800")
    assert not anything.accepts_prefix("\ud800")
