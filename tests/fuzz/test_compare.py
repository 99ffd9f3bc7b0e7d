"""Questions about languages, against brute force over small alphabets."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import product
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from grammaton._core import TermStore
from grammaton.errors import GrammarError, LimitExceeded
from grammaton.fuzz import Counterexample, Undecided, counterexample, is_empty, is_subset, size
from grammaton.fuzz.compare import _Comparison
from grammaton.grammar.grammar import Grammar
from tests.reference import ReferenceStore
from tests.strategies import Plan, plans, recursive_plans, regular_plans, within_budget

LETTERS = "abé"
LONGEST = 3
TEXTS = ["".join(text) for n in range(LONGEST + 1) for text in product(LETTERS, repeat=n)]
_LETTERS = ("chars", tuple((ord(char), ord(char)) for char in LETTERS))
BALANCED = 'start ::= "(" start ")" start | ""'


def narrow(expression: Any) -> Any:
    """The expression with nothing but texts of `LETTERS` in it, so that brute force sees all."""
    kind = expression[0]
    if kind in ("none", "call"):
        return expression
    if kind == "repeat":
        return (kind, narrow(expression[1]), *expression[2:])
    if kind in ("concat", "union", "intersect"):
        return (kind, tuple(narrow(part) for part in expression[1]))
    return ("intersect", (expression, ("repeat", _LETTERS, 0, None)))


def narrowed(plan: Plan) -> Plan:
    return Plan(narrow(plan.start), tuple(narrow(rule) for rule in plan.rules))


class Sides:
    """One plan as a grammar and as the list of its short texts over `LETTERS`, by brute force."""

    def __init__(self, plan: Plan) -> None:
        store, reference = TermStore(), ReferenceStore()
        self.grammar = Grammar(store, plan.build(store))
        self._reference, self._start = reference, plan.build(reference)
        self.texts = {text for text in TEXTS if self.accepts(text)}

    def accepts(self, text: str) -> bool:
        return self._reference.accepts(self._start, text.encode())


def check_counterexample(a: Sides, b: Sides, found: Counterexample | None, longest: int) -> None:
    different = [text for text in TEXTS if (text in a.texts) != (text in b.texts)]
    if found is None:
        assert not [text for text in different if len(text) <= longest]
        return
    assert (a.accepts(found.text), b.accepts(found.text)) == (found.in_first, not found.in_first)
    assert found.is_shortest
    assert len(found.text) <= min([longest, *(len(text) for text in different)])


def within_limits(test: Callable[..., None]) -> Callable[..., None]:
    """Passes over pairs whose product is too large to be decided about: it is refused, in time."""

    @wraps(test)
    def checked(*args: Any, **kwargs: Any) -> None:
        try:
            test(*args, **kwargs)
        except LimitExceeded:
            reject()

    return within_budget(checked)


@given(regular_plans(), regular_plans())
@within_limits
def test_regular_grammars(first: Plan, second: Plan) -> None:
    a, b = Sides(first), Sides(second)
    found = counterexample(a.grammar, b.grammar)
    check_counterexample(a, b, found, 10**9)
    assert (found is None) == (is_subset(a.grammar, b.grammar) and is_subset(b.grammar, a.grammar))
    assert not is_subset(a.grammar, b.grammar) or a.texts <= b.texts
    assert counterexample(a.grammar, a.grammar | a.grammar) is None
    # The search over pairs of states, which grammars with rules have, comes to the same.
    searched = _Comparison(a.grammar, b.grammar, one_way=False).search(None, 100_000)
    assert (searched is None) == (found is None)
    assert searched is None or found is None or len(searched.text) == len(found.text)


@given(regular_plans(), regular_plans(), st.integers(0, LONGEST))
@within_limits
def test_regular_grammars_up_to_a_size(first: Plan, second: Plan, longest: int) -> None:
    a, b = Sides(narrowed(first)), Sides(narrowed(second))
    found = counterexample(a.grammar, b.grammar, max_size=longest)
    check_counterexample(a, b, found, longest)
    within = {text for text in a.texts if len(text) <= longest}
    assert is_subset(a.grammar, b.grammar, max_size=longest) == (within <= b.texts)


@given(recursive_plans(), recursive_plans(), st.integers(0, LONGEST))
@within_limits
def test_recursive_grammars_up_to_a_size(first: Plan, second: Plan, longest: int) -> None:
    """Narrowed, so that brute force sees every text of the size."""
    a, b = Sides(narrowed(first)), Sides(narrowed(second))
    found = counterexample(a.grammar, b.grammar, max_size=longest)
    check_counterexample(a, b, found, longest)
    short = {text for text in a.texts if len(text) <= longest}
    assert is_subset(a.grammar, b.grammar, max_size=longest) == (short <= b.texts)


@given(st.one_of(regular_plans(), recursive_plans()), st.integers(0, LONGEST))
@within_limits
def test_sizes(plan: Plan, n: int) -> None:
    sides = Sides(narrowed(plan))
    assert size(sides.grammar, n) == sum(len(text) <= n for text in sides.texts)
    assert size(sides.grammar, n, exactly=True) == sum(len(text) == n for text in sides.texts)


@given(plans())
@within_limits
def test_emptiness(plan: Plan) -> None:
    sides = Sides(plan)
    empty = is_empty(sides.grammar)
    assert not empty or not sides.texts
    nothing = Grammar.from_text("start ::= nothing")
    found = counterexample(sides.grammar, nothing, max_size=30)
    assert found is None if empty else found is not None and sides.accepts(found.text)


def test_sizes_that_are_known() -> None:
    balanced = Grammar.from_text(BALANCED)
    catalan = [size(balanced, 2 * n, exactly=True) for n in range(12)]
    assert catalan == [1, 1, 2, 5, 14, 42, 132, 429, 1430, 4862, 16796, 58786]
    ambiguous = Grammar.from_text('start ::= "a" start "a" | "a" start | "a"')
    assert size(ambiguous, 50) == 50
    assert size(Grammar.from_regex("[ab]{0,300}"), 1000) == 2**301 - 1
    assert size(Grammar.from_regex(r"[\s\S]"), 1) == 0x110000 - 0x800
    assert size(Grammar.from_text("start ::= nothing"), 5) == 0
    assert size(Grammar.from_regex("abc"), 2) == 0


def test_shortest_and_simplest() -> None:
    def text(a: str, b: str) -> str:
        found = counterexample(Grammar.from_regex(a), Grammar.from_regex(b))
        assert found is not None
        return found.text

    assert text("[a-z]{3,}", "[a-y]{3,}") == "aaz" or text("[a-z]{3,}", "[a-y]{3,}") == "zaa"
    assert text("(?:ab)*", "(?:ab)+") == ""
    assert text("a{0,999}", "a{0,998}") == "a" * 999
    assert text(r"[^\n]*x", "[a-z]*x") in ("0x", "Ax")
    assert text(r".*a.{9}", r".*a.{8}") == "a" + "a" * 8
    first = counterexample(Grammar.from_regex("a|b"), Grammar.from_regex("a"))
    assert first == Counterexample("b", in_first=True)


def test_equal_languages_by_other_words() -> None:
    for a, b in [
        ("(?:a|b)*", "(?:a*b*)*"),
        ("(?:aa|aaa)*", "(?:a{2,})?"),
        ("(?:ab)*a", "a(?:ba)*"),
        ("[0-9]{2,4}", "[0-9][0-9](?:[0-9][0-9]?)?"),
    ]:
        assert counterexample(Grammar.from_regex(a), Grammar.from_regex(b)) is None
        assert is_subset(Grammar.from_regex(a), Grammar.from_regex(b))


def test_grammars_with_rules() -> None:
    balanced = Grammar.from_text(BALANCED)
    other = Grammar.from_text('start ::= ("(" start ")")*')
    with pytest.raises(Undecided, match="max_pairs = 500 pairs") as undecided:
        counterexample(balanced, other, max_pairs=500)
    assert undecided.value.size > 10
    with pytest.raises(Undecided):
        is_subset(balanced, other, max_pairs=500)
    assert counterexample(balanced, other, max_size=14) is None
    assert counterexample(balanced, Grammar.from_text(BALANCED)) is None
    lacking = Grammar.from_text('start ::= "(" ("" | "(" start ")") ")" start | ""')
    found = counterexample(balanced, lacking)
    assert found == Counterexample("(()())", in_first=True)
    assert is_subset(lacking, balanced, max_size=12)
    assert not is_subset(balanced, lacking)
    # Rules without stacks have finitely many states, so that the search ends.
    looped = Grammar.from_text('start ::= "ab" start | ""')
    assert counterexample(looped, Grammar.from_regex("(?:ab)*")) is None
    nothing = Grammar.from_text("start ::= nothing")
    assert counterexample(nothing, nothing & nothing) is None
    assert counterexample(nothing, balanced) == Counterexample("", in_first=False)


def test_a_difference_that_may_not_be_the_shortest() -> None:
    """`max_pairs` runs out while a long difference is known and a shorter one may be left."""
    deep = 'start ::= "(" start ")" | "[" start "]" | "x"'
    a = Grammar.from_text(deep + ' | "y" [a]{60}')
    found = counterexample(a, Grammar.from_text(deep), max_pairs=40)
    assert found is not None
    assert found.text == "y" + "a" * 60
    assert found.in_first
    assert not found.is_shortest


def test_bad_arguments() -> None:
    grammar = Grammar.from_regex("a*")
    for question in (counterexample, is_subset):
        with pytest.raises(GrammarError, match="a Grammar is needed, not str"):
            question(grammar, "a*")  # type: ignore[arg-type]
        with pytest.raises(GrammarError, match="max_size must be an int from 0, not -1"):
            question(grammar, grammar, max_size=-1)
        with pytest.raises(GrammarError, match="max_pairs must be"):
            question(grammar, grammar, max_pairs=None)  # type: ignore[arg-type]
    for n in (-1, 1.0, True, "1"):
        with pytest.raises(GrammarError, match="n must be an int from 0"):
            size(grammar, n)  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="a Grammar is needed"):
        is_empty("a*")  # type: ignore[arg-type]
    with pytest.raises(LimitExceeded, match="more than max_states = 50 states"):
        size(Grammar.from_text('start ::= "(" start ")" | "[" start "]" | "x"'), 40, max_states=50)
