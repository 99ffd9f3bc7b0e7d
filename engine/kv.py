"""A transformers model with the KV cache of a batch.

*Prefill* runs the prompts in one pass; *extend* runs the next tokens of every row, one or several,
on the cache that the passes before left. Prompts of different lengths are padded on the left: the
padding is masked out of attention and every row keeps its own positions, so that a row computes
what it would compute alone, up to rounding. *keep* drops the rows that are finished.

Only the last position's logits are asked for: a prompt costs one row of V logits, not one a token.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from grammaton.engine.errors import EngineError, InvalidOption


class CachedModel:
    """One batch's passes through a model; made anew for every generation.

    Args:
        model: a causal language model of transformers that keeps a KV cache.

    Attributes:
        device: where it computes.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.device: torch.device = model.device
        parameters = inspect.signature(model.forward).parameters
        # transformers 5 renamed the argument; both spellings are in use.
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._takes_positions = "position_ids" in parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        self._cache: Any = DynamicCache(config=model.config)
        self._attended: Tensor | None = None
        self._positions = torch.empty(0, dtype=torch.long)

    def prefill(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Runs the prompts; logits of their last tokens, `(B, V)`."""
        lengths = [len(prompt) for prompt in prompts]
        longest = max(lengths)
        self._positions = torch.tensor(lengths, device=self.device)
        if min(lengths) == longest:
            return self._forward(self._tensor(prompts), positions=None)
        if not self._takes_positions:
            raise InvalidOption(
                f"{type(self._model).__name__} takes no position_ids, so prompts of different "
                "lengths cannot share a batch; generate them one by one"
            )
        padding = [longest - length for length in lengths]
        ids = self._tensor(
            [[0] * gap + list(prompt) for gap, prompt in zip(padding, prompts, strict=True)]
        )
        slots = torch.arange(longest, device=self.device)
        gaps = torch.tensor(padding, device=self.device).unsqueeze(1)
        self._attended = (slots >= gaps).long()
        return self._forward(ids, positions=(slots - gaps).clamp(min=0))

    def extend(self, chunk: Sequence[Sequence[int]]) -> Tensor:
        """Runs the next tokens, as many for each row; logits of the last ones, `(B, V)`."""
        ids = self._tensor(chunk)
        positions = None
        if self._attended is not None:
            self._attended = torch.cat([self._attended, torch.ones_like(ids)], dim=1)
            offsets = torch.arange(ids.shape[1], device=self.device)
            positions = self._positions.unsqueeze(1) + offsets
        self._positions = self._positions + ids.shape[1]
        return self._forward(ids, positions=positions)

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all rows but these, given by their places in the batch, ascending."""
        if len(rows) == self._positions.shape[0]:
            return
        index = torch.tensor(rows, device=self.device)
        with torch.inference_mode():
            self._cache.batch_select_indices(index)
            self._positions = self._positions[index]
            if self._attended is not None:
                self._attended = self._attended[index]

    def _tensor(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor([list(row) for row in ids], dtype=torch.long, device=self.device)

    def _forward(self, ids: Tensor, *, positions: Tensor | None) -> Tensor:
        arguments: dict[str, Any] = {
            "input_ids": ids,
            self._cache_name: self._cache,
            "use_cache": True,
            **self._last_only,
        }
        if self._attended is not None:
            arguments |= {"attention_mask": self._attended, "position_ids": positions}
        try:
            with torch.inference_mode():
                logits: Tensor = self._model(**arguments).logits
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            raise EngineError(f"the model's forward pass failed: {error}") from error
        return logits[:, -1]
