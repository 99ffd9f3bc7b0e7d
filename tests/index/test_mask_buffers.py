"""What masks can be written into, read through Python's buffers or DLPack, and what is refused."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grammaton._core import Matcher, fill_masks
from grammaton.errors import VocabularyError

WORDS = 3
MASK = [0b1101, 0, 0]


def misaligned() -> Any:
    """Words that begin at odd addresses."""
    return np.zeros(4 * WORDS + 1, np.uint8)[1:].view(np.int32)


def packed() -> Any:
    """Rows of words in records of 13 bytes."""
    return np.zeros(2, np.dtype([("mask", np.int32, (WORDS,)), ("flag", np.uint8)]))["mask"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.full(WORDS, -1, np.int32),
        lambda: np.full(WORDS, -1, "=i4"),
        lambda: np.full(WORDS, -1, np.intc),
        lambda: array.array("i", [-1] * WORDS),
        lambda: memoryview(array.array("i", [-1] * WORDS)),
        lambda: (ctypes.c_int32 * WORDS)(*[-1] * WORDS),
    ],
)
def test_one_row(matcher: Matcher, make: Callable[[], Any]) -> None:
    out = make()
    matcher.fill_mask(out)
    assert list(out) == MASK


@pytest.mark.parametrize("step", [1, 2, -1])
def test_rows(matcher: Matcher, step: int) -> None:
    out = np.full((6, WORDS), -1, np.int32)
    rows = out[::step]
    matcher.fill_mask(rows, 1)
    assert rows[1].tolist() == MASK
    assert (np.delete(rows, 1, axis=0) == -1).all()
    assert fill_masks([matcher] * len(rows), rows).tolist() == list(range(len(rows)))
    assert rows.tolist() == [MASK] * len(rows)


def test_tensors(matcher: Matcher) -> None:
    torch = pytest.importorskip("torch")
    for out in (torch.full((WORDS,), -1, dtype=torch.int32), torch.zeros(2, 4, dtype=torch.int32)):
        row = out[..., :WORDS]
        matcher.fill_mask(row, 0)
        assert row.reshape(-1, WORDS)[0].tolist() == MASK
    parameter = torch.nn.Parameter(torch.zeros(WORDS, dtype=torch.int32), requires_grad=False)
    matcher.fill_mask(parameter)
    assert parameter.tolist() == MASK


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (misaligned, "multiples of 4 bytes"),
        (packed, "multiples of 4 bytes"),
        (lambda: np.zeros(WORDS, np.dtype(np.int32).newbyteorder()), "dtype"),
        (lambda: np.zeros(WORDS, "datetime64[s]"), "must be a writable int32 array"),
        (lambda: np.zeros(WORDS, object), "dtype"),
        (lambda: np.zeros(2 * WORDS, np.int32)[::2], "stride of 8 bytes"),
        (lambda: np.broadcast_to(np.int32(0), WORDS), "read-only"),
        (lambda: memoryview(array.array("i", [0] * WORDS)).toreadonly(), "read-only"),
        (lambda: array.array("I", [0] * WORDS), "dtype"),
        (lambda: array.array("f", [0] * WORDS), "dtype"),
        (lambda: bytes(4 * WORDS), "read-only"),
        (lambda: bytearray(4 * WORDS), "dtype"),
        (lambda: array.array("i", [0] * (WORDS + 1)), f"rows of {WORDS + 1} words"),
        (lambda: [0] * WORDS, "must be a writable int32 array"),
        (lambda: None, "must be a writable int32 array"),
    ],
)
def test_refusals(matcher: Matcher, make: Callable[[], Any], message: str) -> None:
    out = make()
    with pytest.raises(VocabularyError, match=message):
        matcher.fill_mask(out)
    assert matcher.mask().tolist() == MASK


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int64"}, "dtype"),
        ({"dtype": "float32", "requires_grad": True}, "dtype|must be a writable int32 array"),
        ({"dtype": "int32", "device": "meta"}, "CPU memory"),
    ],
)
def test_refused_tensors(matcher: Matcher, options: dict[str, Any], message: str) -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(WORDS, **{**options, "dtype": getattr(torch, options["dtype"])})
    with pytest.raises(VocabularyError, match=message):
        matcher.fill_mask(out)
    sparse = torch.zeros(WORDS, dtype=torch.int32).to_sparse()
    with pytest.raises(VocabularyError, match="must be a writable int32 array"):
        matcher.fill_mask(sparse)


def test_buffers_are_let_go(matcher: Matcher) -> None:
    """An array that somebody has a buffer of can't grow."""
    out: Any = array.array("i", [0] * WORDS)
    matcher.fill_mask(out)
    out.append(0)
    with pytest.raises(VocabularyError):
        matcher.fill_mask(out)
    with pytest.raises(VocabularyError):
        fill_masks([matcher], out)
    out.append(0)
    del out[WORDS:]
    with pytest.raises(VocabularyError, match="row 1 is out of range"):
        matcher.fill_mask(out, 1)
    out.append(0)


def test_steps_and_masks_are_the_same_when_they_are_known(matcher: Matcher) -> None:
    out = np.zeros(WORDS, np.int32)
    for known in (False, True):
        for token, taken, mask in ((0, True, [2, 0, 0]), (1, True, MASK), (3, True, [0, 0, 0])):
            before = matcher.is_finished
            assert not before
            assert matcher.accept(1) is (token == 1), known
            if token == 1:
                matcher.rollback(1)
            assert matcher.accept(token) is taken, known
            matcher.fill_mask(out)
            assert out.tolist() == mask, known
        assert not matcher.accept(0)
        with pytest.raises(VocabularyError):
            matcher.accept(70)
        with pytest.raises(VocabularyError):
            matcher.accept(2**32 - 1)
        matcher.rollback(3)
