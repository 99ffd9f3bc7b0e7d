"""Bounds: evictions change no mask; a limit that is met is a typed error and moves no state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammaton import Grammar
from grammaton._core import Constraint, Recognizer, TermStore, TokenIndex
from grammaton.errors import LimitExceeded
from grammaton.limits import Limits
from tests.index.pairs import pair_of, walk
from tests.reference import mask_to_ids
from tests.strategies import (
    ALL,
    Expression,
    Plan,
    VocabularyPlan,
    framed_plans,
    studied_plans,
    wide_vocabularies,
    within_budget,
)

ANY = ("chars", ALL)
ANY_TEXT = ("repeat", ANY, 0, None)


@settings(max_examples=max(settings().max_examples // 3, 1))
@given(framed_plans() | studied_plans(), wide_vocabularies(), st.integers(1, 4000), st.data())
@within_budget
def test_evictions_change_no_mask(
    plan: Plan, vocabulary: VocabularyPlan, room: int, data: st.DataObject
) -> None:
    limits = Limits(mask_cache_bytes=room, frame_cache_bytes=room)
    index = TokenIndex(*vocabulary.arguments(), limits)
    pair = pair_of(plan, vocabulary, index)
    if pair is None:
        return
    store = TermStore(limits)
    constraint = Constraint(store, plan.build(store), index, limits)
    for _ in range(2):
        matcher, expected = walk(data, pair, 3)
        tight = constraint.matcher()
        assert tight.accept_bytes(expected.text or b"")
        for _ in range(2):
            assert mask_to_ids(tight.mask()) == expected.allowed()
            assert mask_to_ids(matcher.mask()) == expected.allowed()


def every_byte(extra: list[bytes]) -> TokenIndex:
    """An index with all single bytes, some more tokens, and an end."""
    tokens = [bytes([byte]) for byte in range(256)] + extra
    return TokenIndex(
        [*tokens, b""], [True] * len(tokens) + [False], [len(tokens)], len(tokens) + 1
    )


def test_walks_are_bounded() -> None:
    extra = [bytes([a, b]) for a in range(97, 123) for b in range(97, 123)]
    store = TermStore()
    # In pairs, and not every pair: a run of letters that all stay inside would be one step.
    letter: Expression = ("chars", ((97, 122),))
    second: Expression = ("chars", ((97, 121),))
    text = Plan(("repeat", ("concat", (letter, second)), 0, None)).build(store)
    limits = Limits(max_walk_nodes=100)
    index = every_byte(extra)
    matcher = Constraint(store, text, index, limits).matcher()
    out = np.full(index.mask_words, 7, np.int32)
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="max_walk_nodes"):
            matcher.fill_mask(out)
    assert matcher.is_complete
    matcher.rollback(0)
    assert matcher.accept(97)
    assert matcher.accept_bytes(b"bc")
    matcher.rollback(2)
    generous = Constraint(store, text, index).matcher()
    assert len(mask_to_ids(generous.mask())) > 600


def test_terms_are_bounded() -> None:
    store = TermStore(Limits(max_terms=200))
    with pytest.raises(LimitExceeded, match="max_terms"):
        store.literal(b"a" * 1000)
    assert len(store) <= 201
    assert store.is_nullable(store.EMPTY)


@pytest.mark.parametrize(
    "expression",
    [
        ("repeat", ("repeat", ("text", "a"), 1, 1000), 1, 1000),
        ("repeat", ("concat", (ANY_TEXT, ("text", "a"))), 50, 50),
        ("repeat", ("repeat", ("repeat", ANY, 0, 900), 0, 900), 0, 900),
        ("intersect", tuple(("repeat", ("repeat", ("text", "a"), n, n), 1, None) for n in
                            (2, 3, 5, 7, 11, 13, 17, 19))),
        ("complement", ("concat", (ANY_TEXT, ("text", "a"), ("repeat", ANY, 40, 40)))),
        ("json", ("concat", (ANY_TEXT, ("text", "a"), ("repeat", ANY, 40, 40)))),
    ],
)  # fmt: skip
def test_hostile_expressions_end_or_meet_a_limit(expression: tuple[object, ...]) -> None:
    """Neither hang nor grow: small budgets, so that what does not finish is refused."""
    limits = Limits(max_terms=60_000, max_step_terms=5_000, max_frames=20_000)
    try:
        store = TermStore(limits)
        term = Plan(expression).build(store)
        Recognizer(store, term, limits).accepts_prefix(b"a" * 60)
        matcher = Constraint(store, term, every_byte([b"aa", b"aaaa"]), limits).matcher()
        for _ in range(30):
            matcher.mask()
            matcher.accept(97)
    except LimitExceeded as refusal:
        message = str(refusal)
    else:
        message = "max_terms was enough"
    assert "max_" in message


def test_frames_are_bounded() -> None:
    """An ambiguous grammar that needs ever more stacks meets max_frames; it can be rolled back."""
    store = TermStore()
    rule = store.rule("s")
    call, a = store.call(rule), store.literal(b"a")
    store.define(rule, store.union([a, store.concat([a, call]), store.concat([a, call, call])]))
    limits = Limits(max_frames=500)
    matcher = Constraint(store, call, every_byte([]), limits).matcher()
    taken = 0
    try:
        while taken < 500:
            assert matcher.accept(97)
            taken += 1
    except LimitExceeded:
        pass
    assert 5 < taken < 500
    matcher.rollback(taken)
    assert mask_to_ids(matcher.mask()) == {97}


def test_tails_that_many_heads_share_are_joined_once() -> None:
    """Every round may begin in three ways and go on as the next one or end: 3**rounds ways down."""
    pattern = r"( .{1,2}(?<=a)|\w|(|#.|b|[aé])){1,%d}(|x+y)a"
    joined = []
    for rounds in (10, 20):
        grammar = Grammar.from_regex(pattern % rounds, search=True)
        constraint = Constraint(grammar.store, grammar.start, every_byte([b"ab", b" a"]))
        matcher = constraint.matcher()
        for byte in b"a b":
            matcher.mask()
            assert matcher.accept(byte)
        joined.append(constraint.stats()["operands_joined"])
    assert joined[1] < 4 * joined[0] < 200_000
