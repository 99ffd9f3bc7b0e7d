"""Matchers against the reference after any history, and bad arguments that change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from numpy.typing import NDArray

from grammaton._core import Constraint, Matcher, TermStore, TokenIndex
from grammaton.errors import VocabularyError
from tests.index.pairs import Pair, drawn_pair, walk
from tests.reference import ReferenceMatcher, ReferenceTooHardError, mask_to_ids
from tests.strategies import ALPHABET


class MatcherMachine(RuleBasedStateMachine):
    """Accepts, rollbacks, forks and resets in any order, beside the reference.

    The reference keeps the text of every point of its history; besides, each compiled matcher must
    equal a fresh one that replays what is left of its history.
    """

    histories = Bundle("histories")

    @initialize(data=st.data(), target=histories)
    def start(self, data: st.DataObject) -> int:
        self.pair: Pair = self._pair(data)
        matcher, expected = self.pair.matchers()
        self.matchers: list[tuple[Matcher, ReferenceMatcher, list[int | bytes]]] = [
            (matcher, expected, [])
        ]
        self.checked = [False]
        return 0

    def _pair(self, data: st.DataObject) -> Pair:
        try:
            return drawn_pair(data)
        except ReferenceTooHardError:
            pytest.skip("too hard for the reference")

    @rule(at=histories, data=st.data())
    def accept_allowed(self, at: int, data: st.DataObject) -> None:
        matcher, expected, history = self.matchers[at]
        allowed = sorted(expected.allowed())
        if allowed:
            token_id = data.draw(st.sampled_from(allowed))
            assert matcher.accept(token_id)
            assert expected.accept(token_id)
            history.append(token_id)
            self.checked[at] = False

    @rule(at=histories, token=st.integers(0, 100))
    def accept_any(self, at: int, token: int) -> None:
        matcher, expected, history = self.matchers[at]
        token_id = token % self.pair.vocabulary.mask_bits
        accepted = expected.accept(token_id)
        assert matcher.accept(token_id) == accepted
        if accepted:
            history.append(token_id)
        self.checked[at] = False

    @rule(at=histories, data=st.data())
    def accept_bytes(self, at: int, data: st.DataObject) -> None:
        matcher, expected, history = self.matchers[at]
        if expected.text is None:
            return
        completion = self.pair.expected.language.completion(expected.text)
        near = st.integers(1, 4).map(lambda n: completion[:n])
        text = data.draw(near | st.text(ALPHABET, min_size=1, max_size=2).map(str.encode))
        if text:
            accepted = expected.accept_bytes(text)
            assert matcher.accept_bytes(text) == accepted
            if accepted:
                history.append(text)
            self.checked[at] = False

    @rule(at=histories, share=st.floats(0, 1))
    def rollback(self, at: int, share: float) -> None:
        matcher, expected, history = self.matchers[at]
        n = round(share * len(history))
        matcher.rollback(n)
        expected.rollback(n)
        del history[len(history) - n :]
        self.checked[at] = False

    @rule(at=histories, extra=st.integers(1, 3))
    def rollback_too_far(self, at: int, extra: int) -> None:
        matcher, _, history = self.matchers[at]
        for n in (len(history) + extra, -extra):
            with pytest.raises(VocabularyError):
                matcher.rollback(n)
        self.checked[at] = False

    @rule(at=histories, target=histories)
    def fork(self, at: int) -> int:
        matcher, expected, history = self.matchers[at]
        self.matchers.append((matcher.fork(), expected.fork(), list(history)))
        self.checked.append(False)
        return len(self.matchers) - 1

    @rule(at=histories)
    def reset(self, at: int) -> None:
        matcher, expected, history = self.matchers[at]
        matcher.reset()
        expected.reset()
        history.clear()
        self.checked[at] = False

    @rule(at=histories, tokens=st.lists(st.integers(0, 100), max_size=4), walk_first=st.booleans())
    def validate(self, at: int, tokens: list[int], walk_first: bool) -> None:
        matcher, expected, _ = self.matchers[at]
        ids = [token % self.pair.vocabulary.mask_bits for token in tokens]
        if walk_first:
            trial = expected.fork()
            for _ in range(3):
                allowed = sorted(trial.allowed())
                if not allowed:
                    break
                ids.insert(0, allowed[len(ids) % len(allowed)])
                trial.accept(ids[0])
        assert matcher.validate(ids) == expected.validate(ids)
        self.checked[at] = False

    @invariant()
    def nothing_else_changed(self) -> None:
        """Every matcher shows the reference's state; those a step touched also equal a replay."""
        for at, (matcher, expected, history) in enumerate(getattr(self, "matchers", [])):
            assert mask_to_ids(matcher.mask()) == expected.allowed()
            assert matcher.is_complete == expected.is_complete
            assert matcher.is_finished == expected.is_finished
            if not self.checked[at]:
                self.checked[at] = True
                again = self.pair.constraint.matcher()
                for step in history:
                    assert (
                        again.accept_bytes(step) if isinstance(step, bytes) else again.accept(step)
                    )
                assert np.array_equal(again.mask(), matcher.mask())


TestMatcherMachine = MatcherMachine.TestCase


@given(st.data())
def test_mask_is_accept_for_every_id(data: st.DataObject) -> None:
    try:
        pair = drawn_pair(data)
        matcher, expected = walk(data, pair)
    except ReferenceTooHardError:
        return
    allowed = mask_to_ids(matcher.mask())
    for token_id in range(pair.vocabulary.mask_bits):
        accepted = matcher.accept(token_id)
        assert accepted == (token_id in allowed), token_id
        if accepted:
            assert token_id not in pair.vocabulary.eos_ids or matcher.is_finished
            matcher.rollback(1)
        assert mask_to_ids(matcher.mask()) == allowed
    for token_id in (-1, pair.vocabulary.mask_bits, pair.vocabulary.mask_bits + 31, 2**31, 2**40):
        with pytest.raises((VocabularyError, TypeError)):
            matcher.accept(token_id)
        assert mask_to_ids(matcher.mask()) == allowed
    assert expected.allowed() == allowed


@given(st.data())
def test_forced_bytes_are_forced(data: st.DataObject) -> None:
    """What the matcher says is forced is what every completion begins with, and no less."""
    try:
        pair = drawn_pair(data)
        matcher, expected = walk(data, pair)
    except ReferenceTooHardError:
        return
    assert matcher.forced_bytes() == expected.forced_bytes()
    assert mask_to_ids(matcher.mask()) == expected.allowed()


@given(st.data())
def test_forced_tokens_are_allowed_in_turn(data: st.DataObject) -> None:
    """In exact mode each forced id is the only one of its mask, until there is a choice."""
    try:
        pair = drawn_pair(data)
        matcher, _ = walk(data, pair)
    except ReferenceTooHardError:
        return
    forced = matcher.forced_tokens()
    for token_id in forced:
        assert mask_to_ids(matcher.mask()) == {token_id}
        assert matcher.accept(token_id)
    assert len(mask_to_ids(matcher.mask())) != 1 or matcher.is_complete


@pytest.mark.parametrize(
    ("out", "row"),
    [
        (np.zeros(3, np.int64), 0),
        (np.zeros(3, np.uint32), 0),
        (np.zeros(3, np.float32), 0),
        (np.zeros(3, ">i4"), 0),
        (np.zeros(2, np.int32), 0),
        (np.zeros(4, np.int32), 0),
        (np.zeros(0, np.int32), 0),
        (np.zeros((2, 4), np.int32), 0),
        (np.zeros((3, 2), np.int32), 0),
        (np.zeros((3, 2), np.int32).T, 0),
        (np.zeros((1, 2, 3), np.int32), 0),
        (np.zeros((), np.int32), 0),
        (np.zeros(6, np.int32)[::2], 0),
        (np.zeros((2, 6), np.int32)[:, ::2], 0),
        (np.zeros((2, 3), np.int32)[:, ::-1], 0),
        (np.zeros(3, np.int32), 1),
        (np.zeros((2, 3), np.int32), 2),
        (np.zeros((2, 3), np.int32), -1),
        (np.zeros((0, 3), np.int32), 0),
        (np.zeros((2, 3), np.int32), 2**31),
    ],
)
def test_bad_buffers_change_nothing(matcher: Matcher, out: NDArray[Any], row: int) -> None:
    before = out.copy()
    mask = matcher.mask()
    with pytest.raises(VocabularyError):
        matcher.fill_mask(out, row)
    assert np.array_equal(out, before)
    assert np.array_equal(matcher.mask(), mask)
    assert matcher.accept(3)


def test_read_only_buffers(matcher: Matcher) -> None:
    for shape in (3, (2, 3)):
        out = np.zeros(shape, np.int32)
        out.flags.writeable = False
        with pytest.raises(VocabularyError):
            matcher.fill_mask(out)
        assert not out.any()


@pytest.mark.parametrize("row", [0, 1, 3])
def test_one_row_is_written(matcher: Matcher, row: int) -> None:
    out = np.full((4, 3), -1, np.int32)
    matcher.fill_mask(out, row)
    assert out[row].tolist() == [0b1101, 0, 0]
    assert (np.delete(out, row, axis=0) == -1).all()


def test_rows_of_a_larger_array(matcher: Matcher) -> None:
    """Rows may be apart: what is contiguous is each row."""
    whole = np.full((6, 3), -1, np.int32)
    matcher.fill_mask(whole[::2], 1)
    assert whole[2].tolist() == [0b1101, 0, 0]
    assert (np.delete(whole, 2, axis=0) == -1).all()


@pytest.mark.parametrize("n", [-1, 2, 2**31])
def test_rollback_beyond_the_start(matcher: Matcher, n: int) -> None:
    mask = matcher.mask()
    with pytest.raises(VocabularyError):
        matcher.rollback(n)
    assert np.array_equal(matcher.mask(), mask)
    matcher.rollback(1)
    assert mask_to_ids(matcher.mask()) == {0, 2}


def test_one_accept_bytes_is_one_accept(matcher: Matcher) -> None:
    assert matcher.accept_bytes(b"aba")
    assert mask_to_ids(matcher.mask()) == {1}
    assert not matcher.accept_bytes(b"bb")
    assert mask_to_ids(matcher.mask()) == {1}
    matcher.rollback(1)
    assert mask_to_ids(matcher.mask()) == {0, 2, 3}


def test_the_end(matcher: Matcher) -> None:
    assert (matcher.is_complete, matcher.is_finished) == (True, False)
    assert matcher.accept(3)
    assert (matcher.is_complete, matcher.is_finished) == (True, True)
    assert mask_to_ids(matcher.mask()) == set()
    assert not any(matcher.accept(token_id) for token_id in range(70))
    assert not matcher.accept_bytes(b"ab")
    assert matcher.validate([2, 3]) == 0
    assert matcher.forced_bytes() == b""
    assert matcher.forced_tokens() == []
    other = matcher.fork()
    other.rollback(1)
    assert (other.is_finished, matcher.is_finished) == (False, True)
    assert mask_to_ids(other.mask()) == {0, 2, 3}
    matcher.reset()
    assert mask_to_ids(matcher.mask()) == {0, 2}


def test_matchers_outlive_what_made_them() -> None:
    """A matcher keeps its constraint, index and store alive."""

    def make() -> Matcher:
        store = TermStore()
        index = TokenIndex([b"a", b"</s>"], [True, False], [1], 2)
        return Constraint(store, store.repeat(store.literal(b"a"), 0, None), index).matcher()

    matchers = [make() for _ in range(3)]
    for matcher in matchers:
        for _ in range(100):
            assert matcher.accept(0)
            assert mask_to_ids(matcher.fork().mask()) == {0, 1}
