"""Masks against brute force: every token tried, over random grammars and vocabularies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammaton._core import Constraint, TermStore, TokenIndex
from grammaton.errors import GrammarError, UnsatisfiableGrammar, VocabularyError
from tests.index.pairs import constrain, drawn_pair, pair_of, walk
from tests.reference import ReferenceStore, mask_to_ids, reference_mask
from tests.strategies import (
    ALL,
    Plan,
    VocabularyPlan,
    framed_plans,
    plans,
    recursive_plans,
    regular_plans,
    studied_plans,
    template_plans,
    vocabularies,
    wide_vocabularies,
    within_budget,
)


@given(st.data())
@within_budget
def test_masks_of_regular_terms(data: st.DataObject) -> None:
    pair = drawn_pair(data, regular_plans())
    matcher, expected = walk(data, pair)
    assert mask_to_ids(matcher.mask()) == expected.allowed()


@given(st.data())
@within_budget
def test_masks_of_recursive_grammars(data: st.DataObject) -> None:
    pair = drawn_pair(data, recursive_plans())
    matcher, expected = walk(data, pair)
    assert mask_to_ids(matcher.mask()) == expected.allowed()


@given(st.data())
@within_budget
def test_masks_of_template_rules(data: st.DataObject) -> None:
    pair = drawn_pair(data, template_plans())
    matcher, expected = walk(data, pair)
    assert mask_to_ids(matcher.mask()) == expected.allowed()


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(
    framed_plans() | studied_plans() | recursive_plans() | template_plans(),
    wide_vocabularies(),
    st.data(),
)
@within_budget
def test_masks_of_frames(plan: Plan, vocabulary: VocabularyPlan, data: st.DataObject) -> None:
    """Vocabularies large enough for frame masks, remainders, counts and pair walks."""
    pair = pair_of(plan, vocabulary)
    if pair is not None:
        matcher, expected = walk(data, pair, 5)
        assert mask_to_ids(matcher.mask()) == expected.allowed(), expected.text


@given(st.data())
@within_budget
def test_masks_by_the_plain_definition(data: st.DataObject) -> None:
    """The same through `reference_mask`, which keeps nothing between calls."""
    pair = drawn_pair(data)
    tokens, ordinary, eos_ids, _ = pair.vocabulary.arguments()
    store = ReferenceStore()
    start = pair.plan.build(store)
    matcher = pair.constraint.matcher()
    prefix: list[int] = []
    for _ in range(3):
        allowed = reference_mask(store, start, tokens, ordinary, eos_ids, prefix)
        assert mask_to_ids(matcher.mask()) == allowed
        if not allowed:
            break
        prefix.append(data.draw(st.sampled_from(sorted(allowed))))
        assert matcher.accept(prefix[-1])


@given(st.data())
@within_budget
def test_every_state_can_be_completed(data: st.DataObject) -> None:
    """No dead ends: after a random walk, a shortest completion, spelled in single tokens."""
    pair = drawn_pair(data)
    matcher, expected = walk(data, pair, 12)
    text = expected.text
    assert text is not None
    completion = pair.expected.language.completion(text)
    tokens, ordinary, eos_ids, _ = pair.vocabulary.arguments()
    known = {t: i for i, t in enumerate(tokens) if ordinary[i] and i not in eos_ids}
    begun = next(k for k in range(4) if is_character_boundary(text[: len(text) - k]))
    pieces = [
        bytes([byte]) for byte in completion[: continuation_bytes(completion) if begun else 0]
    ]
    for char in completion[len(pieces) :].decode():
        whole = char.encode()
        pieces += [whole] if whole in known else [bytes([byte]) for byte in whole]
    for piece in pieces:
        assert known[piece] in mask_to_ids(matcher.mask()), (text, completion, piece)
        assert matcher.accept(known[piece])
    assert matcher.is_complete
    assert set(eos_ids) <= mask_to_ids(matcher.mask())
    assert matcher.accept(eos_ids[0])


def is_character_boundary(text: bytes) -> bool:
    """Whether the text is whole characters."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def continuation_bytes(text: bytes) -> int:
    """How many continuation bytes the text begins with."""
    return next((n for n, byte in enumerate(text) if byte & 0xC0 != 0x80), len(text))


@given(st.data())
@within_budget
def test_constraints_on_one_index_do_not_disturb_each_other(data: st.DataObject) -> None:
    """Shared frame masks: several grammars on one index, visited in turn, as if each were alone."""
    shared = data.draw(st.lists(plans(), min_size=2, max_size=3), label="plans")
    texts = tuple(text for plan in shared for text in plan.texts())
    vocabulary = data.draw(vocabularies(Plan(("texts", texts)) if texts else None))
    index = TokenIndex(*vocabulary.arguments())
    pairs = [pair for plan in shared if (pair := pair_of(plan, vocabulary, index))]
    for _ in range(2):
        for pair in pairs:
            matcher, expected = walk(data, pair, 4)
            assert mask_to_ids(matcher.mask()) == expected.allowed()
            alone = constrain(pair.plan, TokenIndex(*vocabulary.arguments())).matcher()
            assert alone.accept_bytes(expected.text or b"")
            assert np.array_equal(alone.mask(), matcher.mask())


@given(st.data())
@within_budget
def test_one_store_serves_several_constraints(data: st.DataObject) -> None:
    """Constraints made from one store at different times, used side by side."""
    plan = data.draw(plans(), label="plan")
    vocabulary = data.draw(vocabularies(plan))
    pair = pair_of(plan, vocabulary)
    store = TermStore()
    start = plan.build(store)
    if pair is None:
        return
    first = Constraint(store, start, pair.index)
    before = first.matcher().mask()
    wrapped = store.concat([start, store.repeat(store.chars(ALL), 0, None)])
    second = Constraint(store, wrapped, pair.index)
    assert np.array_equal(first.matcher().mask(), before)
    assert mask_to_ids(before) <= mask_to_ids(second.matcher().mask())
    matcher, expected = first.matcher(), pair.expected.matcher()
    assert mask_to_ids(matcher.mask()) == expected.allowed()


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(("low", "high"), [(2, 3), (0, 2), (1, 1), (3, None), (0, 40)])
def test_counted_frames_in_a_row(low: int, high: int | None, complete: bool) -> None:
    """A token that has too many items for the first frame may go on in the second."""
    store = TermStore()
    rule = store.rule("run")
    store.define(rule, store.repeat(store.chars([(0x61, 0x7A)]), low, high))
    tokens = [bytes(run) for n in range(1, 6) for run in product(b"abcd", repeat=n)]
    tokens += [bytes([byte]) for byte in range(256)] if complete else []
    end = len(tokens)
    index = TokenIndex([*tokens, b""], [True] * end + [False], [end], end + 1)
    call = store.call(rule)
    for start in (store.concat([call, call]), store.concat([call, store.literal(b"b"), call])):
        constraint = Constraint(store, start, index)
        for prefix in (b"", b"a", b"ab", b"aba"):
            matcher = constraint.matcher()
            if not matcher.accept_bytes(prefix):
                continue
            allowed = mask_to_ids(matcher.mask()) - {end}
            assert allowed == {t for t in range(end) if matcher.validate([t])}, prefix


@pytest.mark.parametrize("bits", [5, 32, 33, 64, 70])
def test_masks_are_as_wide_as_the_logits(bits: int) -> None:
    store = TermStore()
    index = TokenIndex([b"a", b"b", b"", b"a", b"</s>"], [True] * 4 + [False], [4], bits)
    constraint = Constraint(store, store.literal(b"a"), index)
    matcher = constraint.matcher()
    assert index.mask_words == -(-bits // 32)
    mask = matcher.mask()
    assert mask.dtype == np.int32
    assert mask.shape == (index.mask_words,)
    assert mask_to_ids(mask) == {0, 3}
    assert matcher.accept(3)
    assert mask_to_ids(matcher.mask()) == {4}


def test_the_highest_bit_of_a_word_is_used() -> None:
    store = TermStore()
    tokens = [b"b"] * 31 + [b"a"] + [b"b"] * 31 + [b"a", b""]
    index = TokenIndex(tokens, [True] * 64 + [False], [64], 65)
    mask = Constraint(store, store.literal(b"a"), index).matcher().mask()
    assert mask.tolist() == [-(2**31), -(2**31), 0]


def test_several_ends() -> None:
    store = TermStore()
    tokens = [b"a", b"<1>", b"<2>", b"<3>"]
    index = TokenIndex(tokens, [True, False, False, False], [1, 3], 4)
    constraint = Constraint(store, store.repeat(store.literal(b"a"), 0, None), index)
    for end in (1, 3):
        matcher = constraint.matcher()
        assert mask_to_ids(matcher.mask()) == {0, 1, 3}
        assert matcher.accept(end)
        assert matcher.is_finished
        assert mask_to_ids(matcher.mask()) == set()


def test_an_end_is_not_text() -> None:
    """An end that has bytes ends the text; it does not stand for its bytes."""
    index = TokenIndex([b"a", b"b"], [True, True], [1], 2)
    store = TermStore()
    with pytest.raises(UnsatisfiableGrammar):
        Constraint(store, store.literal(b"ab"), index)
    matcher = Constraint(store, store.literals([b"a", b"ab"]), index).matcher()
    assert mask_to_ids(matcher.mask()) == {0}
    assert matcher.accept(0)
    assert mask_to_ids(matcher.mask()) == {1}
    assert matcher.accept(1)
    assert matcher.is_finished


def test_special_tokens_match_no_text() -> None:
    """A special token is not its text, even where the grammar asks for that very text."""
    store = TermStore()
    tokens = [b"<s>", b"<", b"s", b">", b"</s>", b"<s>"]
    index = TokenIndex(tokens, [False, True, True, True, False, True], [4], 6)
    matcher = Constraint(store, store.literal(b"<s>"), index).matcher()
    assert mask_to_ids(matcher.mask()) == {1, 5}
    assert not matcher.accept(0)


@pytest.mark.parametrize(
    ("tokens", "ordinary", "eos_ids", "bits"),
    [
        ([b"a", b"b"], [True], [1], 2),
        ([b"a", b"b"], [True, False], [1], 1),
        ([b"a", b"b"], [True, False], [2], 2),
        ([b"a", b"b"], [True, False], [-1], 2),
    ],
)
def test_malformed_vocabularies(
    tokens: list[bytes], ordinary: list[bool], eos_ids: list[int], bits: int
) -> None:
    with pytest.raises(VocabularyError):
        TokenIndex(tokens, ordinary, eos_ids, bits)


def test_grammars_that_cannot_be_constrained() -> None:
    index = TokenIndex([b"a", b"</s>"], [True, False], [1], 2)
    store = TermStore()
    undefined = store.rule("undefined")
    with pytest.raises(GrammarError):
        Constraint(store, store.call(undefined), index)
    with pytest.raises(UnsatisfiableGrammar):
        Constraint(store, store.NOTHING, index)
    with pytest.raises(UnsatisfiableGrammar):
        Constraint(store, store.literal(b"b"), index)
