"""Bit masks on logits: torch and Triton against a loop over tokens."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from grammaton.engine import InvalidOption, apply_mask, unpack_mask  # noqa: E402
from grammaton.engine.lent_memory import LentMemory  # noqa: E402
from grammaton.engine.masking import (  # noqa: E402
    _apply_on_device,
    _unpack_on_device,
    bits_of_minus_inf,
)
from grammaton.errors import VocabularyError  # noqa: E402


def allowed(mask: list[int], token: int) -> bool:
    """The definition: bit i % 32 of word i // 32, words being two's complement."""
    word = token // 32
    return word < len(mask) and bool((mask[word] % 2**32) >> (token % 32) & 1)


WORDS = st.lists(
    st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, -1, 1, -(2**31)]), min_size=1, max_size=4
)


@given(mask=WORDS, size=st.integers(1, 150))
def test_unpack_and_apply(mask: list[int], size: int) -> None:
    packed = torch.tensor(mask, dtype=torch.int32)
    expected = [allowed(mask, token) for token in range(size)]
    assert unpack_mask(packed, size).tolist() == expected
    assert torch.equal(_unpack_on_device(packed), unpack_mask(packed, 32 * len(mask)))
    logits = torch.arange(size, dtype=torch.float32)
    wanted = [float(i) if good else -math.inf for i, good in enumerate(expected)]
    assert apply_mask(logits, packed).tolist() == wanted
    assert _apply_on_device(logits, packed, None).tolist() == wanted
    assert _apply_on_device(logits, packed, torch.empty(size)).tolist() == wanted
    assert logits.tolist() == list(range(size)), "out of place by default"
    assert apply_mask(logits, packed, out=logits) is logits
    assert logits.tolist() == wanted


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_a_batch(dtype: str) -> None:
    generator = np.random.default_rng(0)
    mask = generator.integers(-(2**31), 2**31, (3, 5), dtype=np.int32)
    logits = torch.randn(3, 140).to(getattr(torch, dtype))
    got = apply_mask(logits, torch.from_numpy(mask))
    assert got.dtype == logits.dtype
    for row in range(3):
        for token in range(140):
            good = allowed(mask[row].tolist(), token)
            assert got[row, token].item() == (logits[row, token].item() if good else -math.inf)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_what_is_no_number(dtype: str) -> None:
    """Allowed logits are kept bit by bit, forbidden ones are -inf whatever they were."""
    values = [math.nan, math.inf, -math.inf, -0.0]
    logits = torch.tensor([values * 10] * 2, dtype=getattr(torch, dtype))
    got = apply_mask(logits, torch.tensor([[0b1111], [0b1111]], dtype=torch.int32))
    assert got[1, 0].isnan()
    assert got[:, 1:4].tolist() == [values[1:]] * 2
    assert str(got[0, 3].item()) == "-0.0"
    assert got[:, 4:].eq(-math.inf).all(), "past the mask's words too"


@pytest.mark.parametrize(
    ("logits", "mask", "message"),
    [
        (torch.zeros(40), torch.zeros(2, dtype=torch.int64), "int32"),
        (torch.zeros(40, dtype=torch.long), torch.zeros(2, dtype=torch.int32), "floating"),
        (torch.zeros(2, 40), torch.zeros(2, dtype=torch.int32), "one B"),
        (torch.zeros(2, 40), torch.zeros(3, 2, dtype=torch.int32), "one B"),
        (torch.zeros(1, 2, 40), torch.zeros(1, 2, 2, dtype=torch.int32), "one B"),
    ],
)
def test_what_does_not_fit(logits: Tensor, mask: Tensor, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        apply_mask(logits, mask)


def test_out_that_does_not_fit() -> None:
    with pytest.raises(InvalidOption, match="out"):
        apply_mask(torch.zeros(40), torch.zeros(2, dtype=torch.int32), out=torch.zeros(41))


KERNEL_CHECK = """
import torch
from grammaton.engine.masking import apply_mask
from grammaton.engine.triton_mask import launch
torch.manual_seed(0)
for rows, size, words in ((1, 1, 1), (3, 5000, 157), (2, 4096, 128), (2, 9000, 200), (1, 40, 9)):
    for dtype in (torch.float32, torch.float16):
        logits = torch.randn(rows, size).to(dtype)
        mask = torch.randint(-(2**31), 2**31, (rows, words), dtype=torch.int32)
        out = torch.empty_like(logits)
        launch(logits, mask, out)
        assert torch.equal(out, apply_mask(logits, mask)), (rows, size, words, dtype)
        launch(logits, mask, logits)
        assert torch.equal(out, logits), "in place"
print("kernel is right")
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_triton_kernel_under_its_interpreter() -> None:
    # In a process of its own: the interpreter is chosen when Triton is imported.
    done = subprocess.run(
        [sys.executable, "-c", KERNEL_CHECK],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "kernel is right" in done.stdout, done.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_gpu() -> None:
    logits = torch.randn(4, 50_000)
    mask = torch.randint(-(2**31), 2**31, (4, 1600), dtype=torch.int32)
    got = apply_mask(logits.cuda(), mask.cuda())
    assert torch.equal(got.cpu(), apply_mask(logits, mask))


CPU_CASES = [(1, 1, 1), (3, 5000, 157), (2, 4096, 128), (2, 9000, 200), (1, 40, 9), (0, 40, 2)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_the_core_applies_masks_as_torch_does(dtype: str) -> None:
    generator = np.random.default_rng(0)
    for rows, size, words in CPU_CASES:
        mask = generator.integers(-(2**31), 2**31, (rows, words), dtype=np.int32)
        mask[:, ::3], mask[:, 1::3] = 0, -1
        packed = torch.from_numpy(mask)
        logits = torch.randn(rows, 2 * size).to(getattr(torch, dtype))[:, size:]
        wanted = _apply_on_device(logits, packed, None)
        assert torch.equal(apply_mask(logits, packed), wanted)
        in_place = logits.clone()
        assert apply_mask(in_place, packed, out=in_place) is in_place
        assert torch.equal(in_place, wanted)
        assert torch.equal(apply_mask(logits.T.contiguous().T, packed), wanted), "no rows"


def test_rows_on_several_threads() -> None:
    logits, mask = torch.randn(16, 50_000), torch.randint(-(2**31), 2**31, (16, 1563))
    packed, wanted, threads = mask.to(torch.int32), [], torch.get_num_threads()
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            wanted.append(apply_mask(logits, packed))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*wanted)


def test_out_may_be_the_logits_but_not_beside_them() -> None:
    memory = torch.zeros(2, 100)
    mask = torch.zeros(2, 2, dtype=torch.int32)
    with pytest.raises(VocabularyError, match="the scores themselves"):
        apply_mask(memory[:, :50], mask, out=memory[:, 10:60])


def test_lent_memory_is_used_again_when_nobody_has_it() -> None:
    memory = LentMemory(torch.Size((2, 50)), torch.float32)
    bits, first = memory.take()
    bits[:] = bits_of_minus_inf(torch.float32)
    assert first.eq(-math.inf).all()
    address, view = first.data_ptr(), first[1]
    del first
    _, second = memory.take()
    assert second.data_ptr() != address, "a view holds it"
    del view
    assert memory.take()[1].data_ptr() == address


def test_no_two_tensors_have_the_same_memory() -> None:
    memory = LentMemory(torch.Size((3, 7)), torch.bfloat16)
    held = [memory.take()[1] for _ in range(9)]
    for number, tensor in enumerate(held):
        tensor.fill_(number)
    assert [set(tensor.flatten().tolist()) for tensor in held] == [{float(n)} for n in range(9)]
