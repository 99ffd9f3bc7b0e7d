"""What the core does to whole rows: masks applied to scores, ids compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grammaton._core import apply_masks, same_rows
from grammaton.errors import VocabularyError

SHAPES = [
    (1, 1, 1),
    (3, 5000, 157),
    (2, 4096, 128),
    (2, 900, 20),
    (1, 40, 9),
    (0, 40, 2),
    (2, 0, 1),
]


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("threads", [1, 3])
def test_masks_are_applied_as_defined(kind: Any, threads: int) -> None:
    rng = np.random.default_rng(0)
    for rows, size, words in SHAPES:
        masks = rng.integers(-(2**31), 2**31, (rows, words), dtype=np.int32)
        masks[:, ::3], masks[:, 1::3] = 0, -1
        octets = masks.astype("<i4").view(np.uint8)
        allowed = np.zeros((rows, size), dtype=bool)
        bits = np.unpackbits(octets, axis=1, bitorder="little")[:, :size]
        allowed[:, : bits.shape[1]] = bits
        scores = rng.integers(-100, 100, (rows, 2 * size)).astype(kind)[:, size:]
        out = np.zeros((rows, size + 3), dtype=kind)[:, 3:]
        apply_masks(scores, masks, out, excluded=-128, threads=threads)
        assert np.array_equal(out, np.where(allowed, scores, -128))
        apply_masks(scores, masks, scores, excluded=-128, threads=threads)
        assert np.array_equal(out, scores), "in place"


def test_large_batches_are_shared_out() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(-100, 100, (8, 100_000)).astype(np.int32)
    masks = rng.integers(-(2**31), 2**31, (8, 3125), dtype=np.int32)
    alone, together = np.empty_like(scores), np.empty_like(scores)
    apply_masks(scores, masks, alone, excluded=-1000)
    apply_masks(scores, masks, together, excluded=-1000, threads=4)
    assert np.array_equal(alone, together)


def integers(*shape: int, kind: Any = np.int32) -> Any:
    return np.zeros(shape, dtype=kind)


@pytest.mark.parametrize(
    ("scores", "out", "rows", "threads", "message"),
    [
        (integers(2, 9), integers(2, 8), 2, 1, r"\(B, V\)"),
        (integers(2, 9), integers(2, 9), 3, 1, r"\(B, W\)"),
        (integers(2, 9), integers(2, 9, kind=np.int64), 2, 1, "one dtype"),
        (integers(2, 9, kind=np.int8), integers(2, 9, kind=np.int8), 2, 1, "16, 32 or 64"),
        (integers(2, 9, kind=np.float32), integers(2, 9, kind=np.float32), 2, 1, "integers"),
        (integers(9, 2).T, integers(2, 9), 2, 1, "contiguous"),
        (integers(2, 9), integers(2, 9), 2, 0, "1 to 256"),
        (
            integers(2, 9),
            np.lib.stride_tricks.as_strided(integers(9), (2, 9), (0, 4)),
            2,
            1,
            "over one",
        ),
    ],
)
def test_arrays_that_do_not_fit_the_core(
    scores: Any, out: Any, rows: int, threads: int, message: str
) -> None:
    with pytest.raises(VocabularyError, match=message):
        apply_masks(scores, integers(rows, 1), out, excluded=0, threads=threads)


def test_rows_that_are_the_same() -> None:
    ids = np.arange(30, dtype=np.int64).reshape(3, 10)
    others = ids.copy()
    others[2, 7] = 0
    assert [same_rows(ids, others[:, :9], n) for n in (0, 7, 8, 9)] == [True, True, False, False]
    for count in (-1, 10):
        with pytest.raises(VocabularyError, match="that many columns"):
            same_rows(ids, others[:, :9], count)
    with pytest.raises(VocabularyError, match="that many columns"):
        same_rows(ids, others[:2], 1)
    with pytest.raises(VocabularyError, match="contiguous"):
        same_rows(ids, np.asfortranarray(others), 2)
