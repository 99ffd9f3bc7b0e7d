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

_MOST = 3
"""Blocks that are kept: a loop holds the result of the step before, and at times one more."""


class LentMemory:
    """Blocks of CPU memory; each is lent to one tensor at a time."""

    def __init__(self) -> None:
        self._blocks: list[tuple[NDArray[np.uint8], weakref.ref[Any]]] = []

    def take(self, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """A tensor whose values are to be written first; of fresh memory when no block of its size
        is free."""
        size = shape.numel() * dtype.itemsize
        free = (memory for memory, lent in self._blocks if lent() is None)
        memory = next((block for block in free if block.nbytes == size), None)
        if memory is None:
            memory = np.empty(size, dtype=np.uint8)
        array = memory[:]
        others = [block for block in self._blocks if block[0] is not memory]
        self._blocks = [*others[1 - _MOST :], (memory, weakref.ref(array))]
        return torch.from_numpy(array).view(dtype).view(shape)
