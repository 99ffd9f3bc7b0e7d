"""What a vocabulary can spell: masks over partial vocabularies and characters cut by tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton._core import Constraint, TermStore, TokenIndex
from grammaton.errors import UnsatisfiableGrammar
from tests.index.pairs import pair_of, walk
from tests.reference import mask_to_ids
from tests.strategies import ALL, Plan, VocabularyPlan, plans, within_budget

TWO = "éê"
THREE = "漢字"
FOUR = "😀😁"


@st.composite
def cut_vocabularies(draw: st.DrawFn) -> VocabularyPlan:
    """Tokens that are mostly pieces of multi-byte characters."""
    characters = [char.encode() for char in TWO + THREE + FOUR + "a"]
    lone = sorted({bytes([byte]) for char in characters for byte in char})
    single = draw(st.lists(st.sampled_from(lone), max_size=12, unique=True))
    runs = st.lists(st.sampled_from(characters), min_size=1, max_size=3).map(b"".join)
    cuts = st.builds(lambda run, a, b: run[a : len(run) - b], runs, *[st.integers(0, 3)] * 2)
    tokens = [*single, *draw(st.lists(cuts | st.sampled_from(characters), min_size=1, max_size=8))]
    return VocabularyPlan(
        (*tokens, b"</s>"), (True,) * len(tokens) + (False,), (len(tokens),), len(tokens) + 1
    )


def wide_plans() -> st.SearchStrategy[Plan]:
    """Grammars over multi-byte characters, in classes that share leading bytes."""
    ranges = [
        ((0xE9, 0xE9),),
        ((0xE9, 0xEA),),
        ((0x80, 0x7FF),),
        ((0x6F22, 0x6F22), (0x5B57, 0x5B57)),
        ((0x1F600, 0x1F601),),
        ((0x61, 0x61), (0x1F600, 0x1F600)),
        ((0, 0x10FFFF),),
    ]
    leaf = st.tuples(st.just("chars"), st.sampled_from(ranges)) | st.tuples(
        st.just("text"), st.text(TWO + THREE + FOUR + "a", min_size=1, max_size=2)
    )

    def grown(
        inner: st.SearchStrategy[tuple[object, ...]],
    ) -> st.SearchStrategy[tuple[object, ...]]:
        parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
        kinds = st.sampled_from(["concat", "union", "intersect"])
        repeats = st.sampled_from([(0, None), (1, 2), (0, 1)])
        return st.one_of(
            st.tuples(kinds, parts),
            st.builds(lambda part, count: ("repeat", part, *count), inner, repeats),
            st.tuples(st.just("complement"), inner),
        )

    expressions = st.recursive(leaf, grown, max_leaves=5)
    called = expressions.map(lambda e: Plan(("repeat", ("call", 0, (), ()), 1, 3), (e,)))
    return expressions.map(Plan) | called


@given(wide_plans(), cut_vocabularies(), st.data())
@within_budget
def test_cut_characters(plan: Plan, vocabulary: VocabularyPlan, data: st.DataObject) -> None:
    pair = pair_of(plan, vocabulary)
    if pair is not None:
        matcher, expected = walk(data, pair)
        assert mask_to_ids(matcher.mask()) == expected.allowed(), expected.text


@given(plans(), cut_vocabularies(), st.data())
@within_budget
def test_cut_characters_in_any_grammar(
    plan: Plan, vocabulary: VocabularyPlan, data: st.DataObject
) -> None:
    pair = pair_of(plan, vocabulary)
    if pair is not None:
        matcher, expected = walk(data, pair)
        assert mask_to_ids(matcher.mask()) == expected.allowed(), expected.text


@pytest.mark.parametrize(
    ("tokens", "texts", "prefix", "allowed"),
    [
        ([b"ab", b"b"], ["ab"], [], None),
        ([b"ab", b"b"], ["b", "ab"], [], {1}),
        ([b"ab", b"a", b"b"], ["ab"], [], {0, 1}),
        (["é".encode(), b"\xc3"], ["é"], [], {0}),
        ([b"\xc3", b"\xa9"], ["é"], [], {0}),
        ([b"\xc3", b"\xa9"], ["é"], [0], {1}),
        ([b"\xc3", b"\xa9b"], ["éb"], [], None),
        ([b"\xc3", b"\xa9", b"\xa9b"], ["éb"], [], None),
        ([b"\xc3", b"\xa9", b"\xa9b", b"b"], ["éb"], [0], {1, 2}),
        (["é".encode(), b"\xc3", b"\xaa", b"\xa9a", b"a"], ["éa", "êa"], [], {0, 1}),
        (["é".encode(), b"\xc3", b"\xaa", b"\xa9a", b"a"], ["éa", "êa"], [1], {2, 3}),
        (["é".encode(), b"\xc3", b"\xaa", b"\xa9a", b"a"], ["éa"], [], {0}),
        ([b"\xf0\x9f", b"\x98\x80", b"\xf0", b"\x9f", b"\x98", b"\x80"], ["😀"], [0], {1, 4}),
        ([b"\xf0\x9f", b"\x98\x80", "😀".encode()], ["😀"], [], {2}),
        (["a漢".encode(), b"a", "漢".encode(), b"a\xe6"], ["a漢"], [], {0, 1}),
        ([b"", b"a", b"\xff", b"a\xff"], ["a"], [], {1}),
    ],
)
def test_awkward_vocabularies(
    tokens: list[bytes], texts: list[str], prefix: list[int], allowed: set[int] | None
) -> None:
    store = TermStore()
    start = store.literals([text.encode() for text in texts])
    end = len(tokens)
    index = TokenIndex([*tokens, b"</s>"], [True] * end + [False], [end], end + 1)
    if allowed is None:
        with pytest.raises(UnsatisfiableGrammar):
            Constraint(store, start, index)
        return
    matcher = Constraint(store, start, index).matcher()
    assert all(matcher.accept(token_id) for token_id in prefix)
    assert mask_to_ids(matcher.mask()) == allowed


def test_what_cannot_be_spelled_is_cut_out_of_the_middle() -> None:
    """`a` may not be followed by what would then need a character that no token has."""
    store = TermStore()
    rule = store.rule("tail")
    store.define(rule, store.union([store.literal(b"x"), store.literal("yé".encode())]))
    start = store.concat([store.literal(b"a"), store.call(rule)])
    index = TokenIndex([b"a", b"ay", b"x", b"y", b"ax", b"</s>"], [True] * 5 + [False], [5], 6)
    matcher = Constraint(store, start, index).matcher()
    assert mask_to_ids(matcher.mask()) == {0, 4}
    assert matcher.accept(0)
    assert mask_to_ids(matcher.mask()) == {2}


def test_json_escapes_spell_what_bytes_cannot() -> None:
    """Without the bytes of é, a JSON string can still say it."""
    store = TermStore()
    start = store.concat([store.json(store.literal("é".encode())), store.literal(b'"')])
    tokens = [*(bytes([c]) for c in b'\\u0e9"'), b"\xc3", b"\\u00", b"</s>"]
    index = TokenIndex(tokens, [True] * 8 + [False], [8], 9)
    matcher = Constraint(store, start, index).matcher()
    assert mask_to_ids(matcher.mask()) == {0, 7}
    assert matcher.accept(7)
    assert mask_to_ids(matcher.mask()) == {3}
    assert matcher.forced_bytes() == b'e9"'


def test_only_the_outer_text_is_spelled() -> None:
    """A character named by an escape needs no token of its own, at any depth of lifts."""
    store = TermStore()
    index = TokenIndex([b"\\", b"u", b"a", b"</s>"], [True] * 3 + [False], [3], 4)
    term = store.chars(ALL)
    for _ in range(3):
        term = store.json(term)
        matcher = Constraint(store, term, index).matcher()
        assert matcher.accept_bytes(b"\\uaaaa")
        assert matcher.is_complete
