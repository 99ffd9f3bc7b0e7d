"""`fill_masks` against `Matcher.fill_mask`, row by row, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from grammaton import Grammar, Limits, Vocabulary, compile, fill_masks
from grammaton._core import Matcher, TokenIndex
from grammaton.errors import BatchLimitExceeded, LimitExceeded, VocabularyError
from tests.index.pairs import pair_of
from tests.strategies import Plan, plans, vocabularies, within_budget

TOKENS = [bytes([byte]) for byte in range(256)]
TOKENS += [bytes([first, second]) for first in b'abc"{}[],: 01' for second in b'abc"{}[],: 01']
VOCABULARY = Vocabulary([*TOKENS, b""], eos_token_ids=len(TOKENS), logits_size=len(TOKENS) + 40)
WORDS = VOCABULARY.mask_words

GRAMMARS = [
    Grammar.from_json_schema({"type": "object"}),
    Grammar.from_json_schema({"enum": ["a", "ab", "cc", [0, 1]]}),
    Grammar.from_regex(r"(ab?c){2,9}"),
]


def matchers_of(texts: list[bytes]) -> list[Matcher | None]:
    """Matchers of the grammars in turn, each after one of the texts as far as it goes."""
    found: list[Matcher | None] = []
    for i, text in enumerate(texts):
        matcher = compile(GRAMMARS[i % len(GRAMMARS)], VOCABULARY).matcher()
        for byte in text:
            matcher.accept(byte)
        found.append(matcher)
    return found


def one_by_one(matchers: list[Matcher | None], out: NDArray[np.int32]) -> NDArray[np.int32]:
    """What `fill_masks` is to leave in `out`."""
    expected: NDArray[np.int32] = out.copy()
    for row, matcher in enumerate(matchers):
        if matcher is not None:
            matcher.fill_mask(expected, row)
    return expected


@given(st.data())
@within_budget
def test_rows_are_those_of_fill_mask(data: st.DataObject) -> None:
    """Random grammars on one vocabulary, random positions, repeated and absent rows."""
    shared = data.draw(st.lists(plans(), min_size=1, max_size=3), label="plans")
    texts = tuple(text for plan in shared for text in plan.texts())
    vocabulary = data.draw(vocabularies(Plan(("texts", texts)) if texts else None))
    index = TokenIndex(*vocabulary.arguments())
    pairs = [pair for plan in shared if (pair := pair_of(plan, vocabulary, index))]
    rows: list[Matcher | None] = [None]
    for pair in pairs:
        matcher = pair.constraint.matcher()
        for _ in range(data.draw(st.integers(0, 5), label="steps")):
            rows.append(matcher.fork())
            mask = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(mask)
            if not len(allowed):
                break
            assert matcher.accept(int(allowed[data.draw(st.integers(0, len(allowed) - 1))]))
        rows.append(matcher)
    order = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=12), label="rows")
    batch = [rows[i] for i in order]
    before = np.full((len(batch), index.mask_words), 0x5A5A5A5A, dtype=np.int32)
    out = before.copy()
    threads = data.draw(st.sampled_from([1, 2, 5, None]), label="threads")
    written = fill_masks(batch, out, threads=threads)
    assert written.tolist() == [i for i, matcher in enumerate(batch) if matcher is not None]
    assert np.array_equal(out, one_by_one(batch, before))

    present = [i for i, matcher in enumerate(batch) if matcher is not None]
    spoiled = data.draw(st.sets(st.sampled_from(present)) if present else st.just(set()))
    for row in spoiled:
        out[row, data.draw(st.integers(0, index.mask_words - 1))] ^= 1
    changed = fill_masks(batch, out, threads=threads, changed_only=True)
    assert set(changed.tolist()) == spoiled
    assert np.array_equal(out, one_by_one(batch, before))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_changed_rows_are_those_whose_words_changed(threads: int) -> None:
    matchers = matchers_of([b""] * 300)
    out = np.zeros((300, WORDS), dtype=np.int32)
    assert len(fill_masks(matchers, out, threads=threads, changed_only=True)) == 300
    for step in range(4):
        before = out.copy()
        for row in range(step, 300, 7):
            matcher = matchers[row]
            assert matcher is not None
            matcher.accept((b"{", b'"', b"a")[row % 3][0])
        changed = fill_masks(matchers, out, threads=threads, changed_only=True)
        assert np.array_equal(changed, np.flatnonzero((out != before).any(axis=1)))
        assert np.array_equal(out, one_by_one(matchers, before))


def test_one_matcher_in_several_rows_and_finished_ones() -> None:
    (first, second, third) = matchers_of([b"{", b'"a"', b"abc"])
    assert second is not None
    assert second.accept(len(TOKENS))
    batch = [first, second, first, None, third, first]
    out = np.full((6, WORDS), -1, dtype=np.int32)
    assert fill_masks(batch, out).tolist() == [0, 1, 2, 4, 5]
    assert not out[1].any()
    assert (out[3] == -1).all()
    assert np.array_equal(out[0], out[2])
    assert np.array_equal(out, one_by_one(batch, out))


def test_no_rows() -> None:
    out = np.full((2, 3), 7, dtype=np.int32)
    assert fill_masks([], out[:0]).dtype == np.int64
    assert fill_masks([None, None], out).tolist() == []
    assert (out == 7).all()


def test_rows_may_lie_apart_and_backwards() -> None:
    matchers = matchers_of([b"", b"{", b"a"])
    wide = np.full((3, WORDS + 5), 9, dtype=np.int32)
    fill_masks(matchers, wide[::-1, 2 : 2 + WORDS])
    assert np.array_equal(
        wide[::-1, 2 : 2 + WORDS], one_by_one(matchers, np.zeros_like(wide[:, 5:]))
    )
    assert (wide[:, :2] == 9).all()
    assert (wide[:, 2 + WORDS :] == 9).all()


def test_torch_tensors_are_filled() -> None:
    torch = pytest.importorskip("torch")
    matchers = matchers_of([b"", b"{"])
    out = torch.zeros((2, WORDS), dtype=torch.int32)
    fill_masks(matchers, out)
    assert np.array_equal(out.numpy(), one_by_one(matchers, out.numpy()))


def test_limits_are_reported_for_their_rows() -> None:
    """The rows of a grammar that needs more than it may; the others are filled."""
    narrow = compile(Grammar.from_regex(".*z"), VOCABULARY, limits=Limits(max_walk_nodes=20))
    with pytest.raises(LimitExceeded):
        narrow.matcher().mask()
    (fine, other) = matchers_of([b"{", b""])
    batch = [fine, narrow.matcher(), None, other, narrow.matcher()]
    for threads in (1, 2):
        out = np.full((5, WORDS), -1, dtype=np.int32)
        with pytest.raises(
            BatchLimitExceeded, match=r"row 1: .*max_walk_nodes = 20.*1 more"
        ) as caught:
            fill_masks(batch, out, threads=threads)
        assert list(caught.value.errors) == [1, 4]
        assert "max_walk_nodes" in caught.value.errors[4]
        assert caught.value.written.tolist() == [0, 1, 3, 4]
        assert not out[[1, 4]].any()
        assert (out[2] == -1).all()
        good = [batch[0], None, None, batch[3], None]
        assert np.array_equal(out, one_by_one(good, out))
    assert isinstance(caught.value, LimitExceeded)


def read_only() -> NDArray[np.int32]:
    """A buffer that can't be written."""
    buffer = np.zeros((1, WORDS), dtype=np.int32)
    buffer.flags.writeable = False
    return buffer


def overlapping() -> NDArray[np.int32]:
    """Two rows on the same words."""
    return np.lib.stride_tricks.as_strided(
        np.zeros(2 * WORDS, dtype=np.int32), (2, WORDS), (4 * (WORDS - 1), 4)
    )


@pytest.mark.parametrize(
    ("count", "out", "message"),
    [
        (1, np.zeros((1, WORDS), dtype=np.int64), "dtype"),
        (1, np.zeros((1, WORDS + 1), dtype=np.int32), f"rows of {WORDS + 1} words"),
        (1, np.zeros(WORDS, dtype=np.int32), "shape \\(B, "),
        (2, np.zeros((1, WORDS), dtype=np.int32), "1 rows for 2 matchers"),
        (1, np.zeros((2, WORDS), dtype=np.int32), "2 rows for 1 matchers"),
        (1, np.zeros((1, 2, WORDS), dtype=np.int32), "3 dimensions"),
        (1, np.zeros((WORDS, 1), dtype=np.int32).T[:, ::-1], "stride"),
        (2, overlapping(), "over one another"),
        (1, read_only(), "read-only"),
        (1, None, "must be a writable int32 array"),
        (1, [[0] * WORDS], "must be a writable int32 array"),
    ],
)
def test_wrong_buffers_are_refused(count: int, out: Any, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        fill_masks(matchers_of([b""] * count), out)


def test_wrong_rows_are_refused() -> None:
    out = np.full((2, WORDS), 3, dtype=np.int32)
    wrong: Any = [*matchers_of([b""]), "b"]
    with pytest.raises(VocabularyError, match=r"row 1: .*not str"):
        fill_masks(wrong, out)
    small = compile(GRAMMARS[2], Vocabulary([b"a", b"b", b"c", b""], eos_token_ids=3)).matcher()
    with pytest.raises(VocabularyError, match="row 1: masks of this matcher have 1 words"):
        fill_masks([*matchers_of([b""]), small], out)
    for threads in (0, -1, 257):
        with pytest.raises(VocabularyError, match=f"threads={threads}"):
            fill_masks(matchers_of([b"", b""]), out, threads=threads)
    assert (out == 3).all()


def test_many_threads_fill_batches_of_the_same_constraints() -> None:
    constraints = [compile(grammar, VOCABULARY) for grammar in GRAMMARS]
    failures: list[str] = []

    def fill(seed: int) -> None:
        random = np.random.default_rng(seed)
        rows = [constraints[i % 3].matcher() for i in range(30)]
        out = np.zeros((30, WORDS), dtype=np.int32)
        for _ in range(12):
            fill_masks(rows, out, threads=3)
            if not np.array_equal(out, one_by_one(list(rows), out)):
                failures.append(f"seed {seed}")
            for row, matcher in enumerate(rows):
                bits = np.unpackbits(out[row].view(np.uint8), bitorder="little")
                if bits.any():
                    matcher.accept(int(random.choice(np.flatnonzero(bits))))

    threads = [threading.Thread(target=fill, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


_PROGRAM = """
import os, sys
import numpy as np
from grammaton import Grammar, Vocabulary, compile, fill_masks

vocabulary = Vocabulary([b"a", b"b", b""], eos_token_ids=2)
def filled():
    rows = [compile(Grammar.literal("ab" * i), vocabulary).matcher() for i in range(1, 9)]
    out = np.zeros((8, 1), dtype=np.int32)
    fill_masks(rows, out, threads=4)
    return (out == 1).all()

assert filled()
"""


def run(code: str) -> None:
    """Runs a program that has to end by itself, with status 0."""
    subprocess.run([sys.executable, "-c", _PROGRAM + code], check=True, timeout=60)


@pytest.mark.forks
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    run(
        "child = os.fork()\n"
        "assert filled()\n"
        "if child == 0: sys.exit(0)\n"  # through the interpreter's own end, threads and all
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "assert filled()\n"
    )


def test_the_process_ends_with_threads_asleep_and_after_work() -> None:
    run("")
    run(
        "import threading\n"
        "def work():\n"
        "    for _ in range(200): filled()\n"
        "for _ in range(3): threading.Thread(target=work).start()\n"  # the end waits for them
    )


def test_constraints_are_made_without_the_gil() -> None:
    """Threads that compile one grammar at the same time, while others read and extend it."""
    grammar = Grammar.from_json_schema(
        {"type": "object", "properties": {f"key{i}": {"type": "integer"} for i in range(60)}}
    )
    expected = compile(grammar, VOCABULARY).matcher().mask()
    failures: list[int] = []

    def work(number: int) -> None:
        for _ in range(8):
            if number % 2 == 0:
                mask = compile(grammar, VOCABULARY).matcher().mask()
                if not np.array_equal(mask, expected):
                    failures.append(number)
            else:
                assert (grammar | Grammar.literal("a")).accepts("{}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
