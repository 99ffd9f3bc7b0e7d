"""Applying a token mask to logits.

A mask row is `ceil(n / 32)` int32 words, little-endian in bits: bit `i % 32` of word `i // 32` is
token i. Logits may be wider than the mask's words; every token past them is forbidden. The result
is the logits with -inf where the bit is clear, either a new tensor or, with `out=logits`, in place.

On a CUDA device a Triton kernel reads the words directly: one pass, a load of one word for 32
logits. On a CPU the compiled core does the same on as many threads as torch has, 10 to 20 us for
50,000 floats: what the memory takes. Elsewhere, and where the logits of a row lie apart, the words
are unpacked into booleans for `masked_fill`.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grammaton._core import apply_masks
from grammaton.engine.errors import InvalidOption
from grammaton.engine.lent_memory import INTEGERS

_WORD_BITS = 32


def mask_of(token_ids: Iterable[int], words: int) -> NDArray[np.int32]:
    """A mask of `words` words with the bits of these ids."""
    bits = np.zeros(words * _WORD_BITS, dtype=np.uint8)
    bits[list(token_ids)] = 1
    return np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)


def unpack_mask(mask: Tensor, size: int) -> Tensor:
    """The mask as booleans.

    Args:
        mask: int32, shape `(..., W)`.
        size: tokens wanted; those past `32 * W` are False.

    Returns:
        bool, shape `(..., size)`, on the mask's device.
    """
    if mask.device.type == "cpu":
        octets = mask.contiguous().numpy().astype("<i4", copy=False).view(np.uint8)
        bits = torch.from_numpy(np.unpackbits(octets, axis=-1, bitorder="little").view(np.bool_))
    else:
        bits = _unpack_on_device(mask)
    missing = size - bits.shape[-1]
    if missing > 0:
        return torch.nn.functional.pad(bits, (0, missing), value=False)
    return bits[..., :size]


def _unpack_on_device(mask: Tensor) -> Tensor:
    shifts = torch.arange(_WORD_BITS, dtype=torch.int32, device=mask.device)
    return ((mask.unsqueeze(-1) >> shifts) & 1).to(torch.bool).flatten(-2)


def apply_mask(logits: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logits with -inf at every token that the mask forbids.

    Args:
        logits: floats, shape `(V,)` or `(B, V)`.
        mask: int32, shape `(W,)` or `(B, W)`, on the same device.
        out: where to write, shape and dtype of `logits`; `logits` itself masks in place. A new
            tensor by default.

    Raises:
        InvalidOption: dtypes, shapes or devices do not fit each other.
        VocabularyError: `out` overlaps the logits without being them.
    """
    if mask.dtype != torch.int32:
        raise InvalidOption(f"a mask has dtype int32, not {mask.dtype}")
    if not logits.is_floating_point():
        raise InvalidOption(f"logits have a floating dtype, not {logits.dtype}")
    if logits.dim() not in (1, 2) or logits.shape[:-1] != mask.shape[:-1]:
        raise InvalidOption(
            f"logits {tuple(logits.shape)} and mask {tuple(mask.shape)} must be (V,) and (W,), or "
            "(B, V) and (B, W) with one B"
        )
    if mask.device != logits.device:
        raise InvalidOption(f"the mask is on {mask.device}, the logits are on {logits.device}")
    if out is not None and (out.shape != logits.shape or out.dtype != logits.dtype):
        raise InvalidOption("out must have the shape and dtype of the logits")
    plain = all(tensor.stride(-1) == 1 for tensor in (logits, mask, out) if tensor is not None)
    if logits.is_cuda and plain and _has_triton():
        from grammaton.engine.triton_mask import launch

        out = torch.empty_like(logits) if out is None else out
        launch(_rows(logits), _rows(mask), _rows(out))
        return out
    if logits.device.type == "cpu" and plain and logits.element_size() in INTEGERS:
        out = torch.empty_like(logits) if out is None else out
        apply_masks(
            bits_of(_rows(logits)),
            _rows(mask).numpy(),
            bits_of(_rows(out)),
            excluded=bits_of_minus_inf(logits.dtype),
            threads=torch.get_num_threads(),
        )
        return out
    return _apply_on_device(logits, mask, out)


def _apply_on_device(logits: Tensor, mask: Tensor, out: Tensor | None) -> Tensor:
    forbidden = ~unpack_mask(mask, logits.shape[-1])
    if out is None:
        return logits.masked_fill(forbidden, -math.inf)
    if out is not logits:
        out.copy_(logits)
    return out.masked_fill_(forbidden, -math.inf)


def bits_of(tensor: Tensor) -> NDArray[Any]:
    """The bits of floats of 2, 4 or 8 bytes in CPU memory as integers, in the same memory."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy()
    array: NDArray[Any] = tensor.numpy()
    return array.view(INTEGERS[array.itemsize])


@cache
def bits_of_minus_inf(dtype: torch.dtype) -> int:
    """The bits of minus infinity as a signed integer."""
    return int(bits_of(torch.tensor([-math.inf], dtype=dtype))[0])


def _rows(tensor: Tensor) -> Tensor:
    return tensor.unsqueeze(0) if tensor.dim() == 1 else tensor


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
