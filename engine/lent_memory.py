"""Memory for tensors that are given away, used again once nobody has them.

A tensor of some megabytes made afresh at every step costs more in page faults than in writing it.
Whoever holds a lent tensor, or a view of one, keeps its memory lent: what is lent is an array, and
a tensor over it keeps that array alive, which a weak reference tells.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

INTEGERS: dict[int, np.dtype[Any]] = {
    2: np.dtype(np.int16),
    4: np.dtype(np.int32),
    8: np.dtype(np.int64),
}
"""The integers of as many bytes as a float has."""

_MOST = 3
"""Blocks that are kept: a loop holds the result of the step before, and at times one more."""


class LentMemory:
    """Blocks of CPU memory of one shape, each lent to one tensor at a time.

    Args:
        shape: of the tensors.
        dtype: of the tensors, a float of 2, 4 or 8 bytes.
    """

    def __init__(self, shape: torch.Size, dtype: torch.dtype) -> None:
        self.shape = shape
        self.dtype = dtype
        self._blocks: list[tuple[NDArray[Any], weakref.ref[Any]]] = []

    def take(self) -> tuple[NDArray[Any], Tensor]:
        """A tensor whose values are to be written first, and its bits as integers."""
        for place in range(len(self._blocks) - 1, -1, -1):
            if self._blocks[place][1]() is None:
                bits = self._blocks.pop(place)[0]  # the one used last is likeliest in a cache
                break
        else:
            bits = np.empty(self.shape, dtype=INTEGERS[self.dtype.itemsize])
            del self._blocks[: 1 - _MOST]
        lent = bits[:]
        self._blocks.append((bits, weakref.ref(lent)))
        return bits, torch.from_numpy(lent).view(self.dtype)
