"""`JumpForward`: forced text in one pass, inside `transformers.generate`.

    model.generate(**inputs, logits_processor=[processor], custom_generate=JumpForward(tokenizer))

*Jump-forward* appends what the grammar leaves no choice about without sampling it, several tokens
in one forward pass (see `grammaton.engine.forced`). `generate` prepares everything as usual,
caches, criteria and processors, and hands the decoding to this loop instead of its own: greedy or
sampling, any batch. Rows that have more forced tokens than others keep theirs for the next passes,
so a pass is as long as its shortest row.

What `generate` cannot pass on to a loop of this kind: a streamer, an assistant.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationMixin
from transformers.generation.utils import GenerateDecoderOnlyOutput

from grammaton.engine.errors import EngineError, InvalidOption
from grammaton.engine.forced import Spell, speller
from grammaton.engine.processor import GrammatonLogitsProcessor

_REFUSED = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")


class JumpForward:
    """A decoding loop for the argument `custom_generate` of transformers' `generate`.

    It needs a `GrammatonLogitsProcessor` among the logits processors. One object may serve any
    number of calls.

    Args:
        tokenizer: the model's fast tokenizer, to write forced text in the tokens it would use. This
            saves the most passes, and leaves the last token of a forced text to the model. Without
            it, tokens that are the only one allowed are taken, which changes no greedy answer.
    """

    def __init__(self, tokenizer: Any | None = None) -> None:
        if tokenizer is not None and not hasattr(tokenizer, "backend_tokenizer"):
            raise InvalidOption(
                f"{type(tokenizer).__name__} is not a fast tokenizer of transformers; leave it out "
                "to append only tokens that are the only one allowed"
            )
        self._tokenizer = tokenizer

    def __call__(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **model_kwargs: Any,
    ) -> Any:
        """Called by `generate`; returns what it returns: ids `(B, L)` or its output object.

        Raises:
            InvalidOption: a mode or an output that this loop has not.
            EngineError: transformers is too old.
            TokenRejected, LimitExceeded: from the processor.
        """
        processor = _processor_among(logits_processor)
        _check(model, generation_config)
        loop = _Loop(
            model, input_ids, processor, logits_processor, stopping_criteria, generation_config
        )
        if self._tokenizer is not None:
            loop.spell = speller(self._tokenizer, processor.vocabulary)
        kwargs = loop.run(model_kwargs)
        if not generation_config.return_dict_in_generate:
            return loop.ids
        sequences: Any = loop.ids
        return GenerateDecoderOnlyOutput(sequences=sequences, cache=kwargs.get("cache"))


class _Loop:
    """One call's rows: what is in `ids`, and what is chosen and still to be put there."""

    def __init__(
        self,
        model: Any,
        ids: Tensor,
        processor: GrammatonLogitsProcessor,
        processors: Any,
        criteria: Any,
        config: Any,
    ) -> None:
        self.ids = ids
        self.spell: Spell | None = None
        self._model = model
        self._processor = processor
        self._processors = processors
        self._criteria = criteria
        self._config = config
        self._chosen: list[list[int]] = [[] for _ in range(ids.shape[0])]
        self._unfinished = torch.ones(ids.shape[0], dtype=torch.long, device=ids.device)
        pad = config._pad_token_tensor
        self._pad = processor.pad_token_id if pad is None else int(pad)

    def run(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Decodes to the end; the model's arguments as they are then."""
        model = self._model
        outputs = model._prefill(self.ids, self._config, kwargs, is_first_iteration=True)
        while True:
            logits = outputs.logits[:, -1].to(
                copy=True, dtype=torch.float32, device=self.ids.device
            )
            self._choose(logits)
            count = self._append()
            kwargs = model._update_model_kwargs_for_generation(
                outputs, kwargs, num_new_tokens=count
            )
            if not self._unfinished.any():
                return kwargs
            inputs = model.prepare_inputs_for_generation(
                self.ids, next_sequence_length=count if kwargs["use_cache"] else None, **kwargs
            )
            outputs = model(**inputs, return_dict=True)

    def _choose(self, logits: Tensor) -> None:
        """Gives a token, and what it forces, to each row that has none waiting."""
        scores = self._processors(self.ids, logits)
        rows = [row for row, chosen in enumerate(self._chosen) if not chosen]
        rows = [row for row in rows if self._unfinished[row]]
        if not rows:
            return
        if self._config.do_sample:
            probabilities = torch.softmax(scores[rows], dim=-1)
            tokens = torch.multinomial(probabilities, num_samples=1)[:, 0].tolist()
        else:
            tokens = scores[rows].argmax(dim=-1).tolist()
        room = self._config.max_length - self.ids.shape[1] - 1
        for row, token in zip(rows, tokens, strict=True):
            forced = self._processor.forced_after(row, token, room=room, spell=self.spell)
            self._chosen[row] = [token, *forced]

    def _append(self) -> int:
        """Puts into `ids` as many tokens as every unfinished row has; how many those were."""
        live = [row for row, left in enumerate(self._unfinished.tolist()) if left]
        size = min(len(self._chosen[row]) for row in live)
        for done in range(size):
            column = [
                self._chosen[row].pop(0) if left else self._pad
                for row, left in enumerate(self._unfinished.tolist())
            ]
            added = torch.tensor(column, dtype=self.ids.dtype, device=self.ids.device)
            self.ids = torch.cat([self.ids, added[:, None]], dim=-1)
            self._unfinished = self._unfinished & ~self._criteria(self.ids, None)
            if not self._unfinished.any():
                return done + 1
        return size


def _processor_among(processors: Any) -> GrammatonLogitsProcessor:
    found = [item for item in processors if isinstance(item, GrammatonLogitsProcessor)]
    if len(found) != 1:
        raise InvalidOption(
            f"JumpForward takes forced text from the GrammatonLogitsProcessor in logits_processor; "
            f"there must be one, not {len(found)}"
        )
    return found[0]


def _check(model: Any, config: Any) -> None:
    if model.config.is_encoder_decoder:
        raise InvalidOption("JumpForward decodes decoder-only models")
    if config.num_beams > 1 or config.prompt_lookup_num_tokens is not None:
        raise InvalidOption(
            "JumpForward decodes greedily or by sampling; beam search and prompt lookup are "
            "generate's own: leave custom_generate out"
        )
    for name in _REFUSED:
        if getattr(config, name, False):
            raise InvalidOption(
                f"{name} is not available: forced tokens have no scores of their own"
            )
    # transformers offers these steps to loops of this kind, but they have changed within 5.
    prefill = getattr(GenerationMixin, "_prefill", None)
    if prefill is None or "is_first_iteration" not in inspect.signature(prefill).parameters:
        raise EngineError("JumpForward needs a newer transformers; 5.24 has all it uses")
