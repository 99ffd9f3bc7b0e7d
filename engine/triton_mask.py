"""The Triton kernel behind `grammaton.engine.masking.apply_mask`.

One program a block of logits of one row. It loads the block's mask words (each word once, spread
over its 32 lanes by the cache) and writes the logit or -inf. Memory traffic is the logits once in,
once out, and 1/32 of that for the mask; nothing is unpacked into memory. Runs on any tensor under
`TRITON_INTERPRET=1`, which is how the tests run it without a GPU.
"""

from __future__ import annotations

from typing import Any

import triton  # type: ignore[import-untyped,import-not-found,unused-ignore]
import triton.language as tl  # type: ignore[import-untyped,import-not-found,unused-ignore]
from torch import Tensor

_BLOCK = 4096


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _mask_kernel(  # type: ignore[no-untyped-def]
    logits, mask, out, size, words, logits_stride, mask_stride, out_stride, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    ids = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = ids < size
    word = tl.load(mask + row * mask_stride + ids // 32, mask=ids // 32 < words, other=0)
    allowed = ((word >> (ids % 32)) & 1) != 0
    value = tl.load(logits + row * logits_stride + ids, mask=inside & allowed, other=-float("inf"))
    tl.store(out + row * out_stride + ids, value, mask=inside)


def launch(logits: Tensor, mask: Tensor, out: Tensor) -> None:
    """Writes the masked logits into `out`.

    Args:
        logits: floats `(B, V)`, contiguous in the last dimension.
        mask: int32 `(B, W)`, contiguous in the last dimension, on the same device.
        out: as `logits`, which it may be.
    """
    rows, size = logits.shape
    grid: Any = (rows, triton.cdiv(size, _BLOCK))
    _mask_kernel[grid](
        logits,
        mask,
        out,
        size,
        mask.shape[1],
        logits.stride(0),
        mask.stride(0),
        out.stride(0),
        BLOCK=_BLOCK,
    )
