"""The worker: masks beside the forward pass, equal to masks worked out directly; its failures."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import PreTrainedTokenizerFast  # noqa: E402

from grammaton.engine import Engine, EngineError  # noqa: E402
from grammaton.engine.decode import SupportsConstraint  # noqa: E402
from grammaton.engine.forced import SupportsMatching  # noqa: E402
from grammaton.errors import GrammatonError, LimitExceeded, TokenRejected, VocabularyError  # noqa: E402
from grammaton.grammar.grammar import Grammar  # noqa: E402
from grammaton.index import Vocabulary, compile  # noqa: E402
from tests.engine.conftest import TAIL, make_model  # noqa: E402


class Spy:
    """A constraint whose matchers note what is asked of them and can be told to fail."""

    def __init__(
        self, inner: SupportsConstraint, *, fail_at: int = -1, refuse: bool = False
    ) -> None:
        self.inner = inner
        self.fail_at = fail_at
        self.refuse = refuse
        self.masks: list[NDArray[np.int32]] = []
        self.threads: set[str] = set()
        self.before_mask: Any = None

    def matcher(self) -> SpyMatcher:
        return SpyMatcher(self, self.inner.matcher())


class SpyMatcher:
    def __init__(self, spy: Spy, inner: SupportsMatching) -> None:
        self.spy = spy
        self.inner = inner

    def fill_mask(self, out: NDArray[np.int32], row: int = 0) -> None:
        if self.spy.before_mask is not None:
            self.spy.before_mask()
        if len(self.spy.masks) == self.spy.fail_at:
            raise LimitExceeded("max_walk_nodes (20000000) is reached")
        self.inner.fill_mask(out, row)
        self.spy.threads.add(threading.current_thread().name)
        self.spy.masks.append(np.array(out[row]))

    def accept(self, token_id: int) -> bool:
        return not self.spy.refuse and self.inner.accept(token_id)

    def accept_bytes(self, data: bytes) -> bool:
        return self.inner.accept_bytes(data)

    def rollback(self, n: int) -> None:
        self.inner.rollback(n)

    def forced_bytes(self) -> bytes:
        return self.inner.forced_bytes()

    def forced_tokens(self) -> list[int]:
        return self.inner.forced_tokens()

    @property
    def is_complete(self) -> bool:
        return self.inner.is_complete


@pytest.mark.parametrize("forced", ["off", "exact", "canonical"])
def test_masks_of_the_worker_equal_direct_ones(engine: Engine, forced: Any) -> None:
    constraint = engine.compile(Grammar.from_regex(r'\{"abc":(true|12|[a-f]{2,8}),"[^"]{0,9}"\}'))
    spy = Spy(constraint)
    result = engine.generate("hi", spy, seed=5, forced=forced)
    assert spy.threads == {"grammaton-mask"}
    direct = constraint.matcher()
    seen = [direct_mask(direct, engine)]
    for token in result.token_ids:
        assert direct.accept(token)
        seen.append(direct_mask(direct, engine))
    wanted = {mask.tobytes() for mask in seen}
    assert all(mask.tobytes() in wanted for mask in spy.masks)
    assert spy.masks[-1].tobytes() == seen[-1].tobytes()
    if forced == "off":
        assert [m.tobytes() for m in spy.masks] == [m.tobytes() for m in seen]


def direct_mask(matcher: SupportsMatching, engine: Engine) -> NDArray[np.int32]:
    out = np.zeros(engine.vocabulary.mask_words, dtype=np.int32)
    matcher.fill_mask(out)
    return out


def test_masks_are_filled_during_the_pass(tokenizer: PreTrainedTokenizerFast) -> None:
    """Every mask waits for a forward pass to be under way, and every pass for a mask."""
    model = make_model(len(tokenizer) + TAIL)
    engine = Engine(model, tokenizer)
    pass_began, mask_filled = threading.Semaphore(0), threading.Semaphore(0)
    met = []

    def during_pass(*_: Any) -> None:
        pass_began.release()
        met.append(mask_filled.acquire(timeout=20))

    def before_mask() -> None:
        met.append(pass_began.acquire(timeout=20))
        mask_filled.release()

    model.model.register_forward_pre_hook(during_pass)
    spy = Spy(engine.compile(Grammar.from_regex("[a-z]{5}")))
    spy.before_mask = before_mask
    result = engine.generate("hi", spy, seed=1)
    assert result.finish_reason == "grammar"
    assert len(met) == 2 * (len(result.token_ids) + 1)
    assert all(met)


def test_a_slow_mask_is_waited_for_and_counted(engine: Engine) -> None:
    spy = Spy(engine.compile(Grammar.from_regex("[a-z]{3}")))
    spy.before_mask = lambda: threading.Event().wait(0.1)
    metrics = engine.generate("hi", spy, seed=1, forced="off").metrics
    assert all(spent >= 0.09 for spent in metrics.mask_times)
    assert metrics.mask_wait > 0.1
    assert metrics.mask_hidden <= metrics.mask_time - metrics.mask_wait + 0.01
    assert metrics.hidden_share is not None
    assert metrics.hidden_share < 0.9


@pytest.mark.parametrize("forced", ["off", "exact", "canonical"])
@pytest.mark.parametrize("fail_at", [0, 2])
def test_what_a_matcher_raises_reaches_the_caller(
    engine: Engine, forced: Any, fail_at: int
) -> None:
    grammar = Grammar.from_regex("[a-z]{9}")
    with pytest.raises(LimitExceeded, match="max_walk_nodes"):
        engine.generate("hi", Spy(engine.compile(grammar), fail_at=fail_at), forced=forced, seed=1)
    stream = engine.stream(
        "hi", Spy(engine.compile(grammar), fail_at=fail_at), forced=forced, seed=1
    )
    pieces: list[str] = []
    with pytest.raises(LimitExceeded):
        pieces.extend(stream)
    result = stream.result
    assert result.finish_reason == "error"
    assert isinstance(result.error, LimitExceeded)
    assert result.text == "".join(pieces)
    assert len(result.token_ids) == fail_at
    assert not result.is_complete


def test_a_refused_token(engine: Engine) -> None:
    spy = Spy(engine.compile(Grammar.from_regex("[a-z]{9}")), refuse=True)
    with pytest.raises(TokenRejected, match="forbidden"):
        engine.generate("hi", spy, seed=1)


def test_one_row_fails_alone(engine: Engine) -> None:
    good = engine.compile(Grammar.from_regex("[a-z]{9}"))
    bad = Spy(good, fail_at=3)
    first, second, third = engine.generate_batch(["a", "bc", "d"], [good, bad, None], max_tokens=12)
    assert first.finish_reason == "grammar"
    assert second.finish_reason == "error"
    assert isinstance(second.error, LimitExceeded)
    assert third.finish_reason in ("length", "eos")


def test_a_mask_of_another_vocabulary(engine: Engine) -> None:
    other = Vocabulary([b"a", b"b", b""], eos_token_ids=2)
    constraint = compile(Grammar.from_regex("[ab]{3}"), other)
    with pytest.raises(VocabularyError):
        engine.generate("hi", constraint)


@pytest.mark.parametrize("fail_at", [0, 2])
def test_a_model_that_fails(tokenizer: PreTrainedTokenizerFast, fail_at: int) -> None:
    model = make_model(len(tokenizer))
    passes: list[int] = []

    def fail(*_: Any) -> None:
        if len(passes) == fail_at:
            raise RuntimeError("out of memory")
        passes.append(1)

    model.model.register_forward_pre_hook(fail)
    engine = Engine(model, tokenizer)
    with pytest.raises(EngineError, match="forward pass failed: out of memory") as caught:
        engine.generate("hi", Grammar.from_regex("[a-z]{9}"), seed=1)
    assert isinstance(caught.value, GrammatonError)
    passes.clear()
    results = engine.generate_batch(["hi", "you"], max_tokens=9)
    assert [result.finish_reason for result in results] == ["error", "error"]


def test_no_thread_stays_behind(engine: Engine) -> None:
    for _ in range(3):
        engine.generate("hi", Grammar.literal("abc"))
    assert not [thread for thread in threading.enumerate() if thread.name == "grammaton-mask"]
