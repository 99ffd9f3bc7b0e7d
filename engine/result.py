"""What a generation gives back: the text, why it ended, and where the time went.

Nouns (all times are wall-clock seconds, by `time.perf_counter`):
  TTFT         time to first token: from the call, compiling and prefill included, to the first
               token of the answer.
  ITL          inter-token latency: the time between two tokens. Tokens appended in one pass
               because they were forced have latencies of about 0.
  TPOT         time per output token: the mean ITL.
  mask time    what the worker thread spent on a step: taking the token and filling the next mask,
               waits for the interpreter lock included; the CPU time is the work alone.
  mask wait    how long the decode loop stood still for the worker.
  hidden       mask time behind the device's work: per step, mask time less wait, at least 0.

A stream's times include those in which its reader kept it waiting.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from grammaton.engine.errors import EngineError, IncompleteOutput
from grammaton.errors import GrammarError

if TYPE_CHECKING:
    from grammaton.grammar.grammar import Grammar

FinishReason = Literal["grammar", "eos", "stop", "length", "cancelled", "error"]
"""`grammar`: the text is complete and could only end; `eos`: the model ended it where it may;
`stop`: a stop string appeared; `length`: a token limit cut it; `cancelled`; `error`."""


@dataclass(kw_only=True)
class Metrics:
    """Counts and times of one generation.

    Attributes:
        prompt_tokens: tokens in the prompt.
        completion_tokens: tokens in the answer; an eos that was sampled counts.
        sampled_tokens: those that were drawn.
        forced_tokens: those appended without a draw, the grammar leaving no choice.
        forward_passes: runs of the model, prefill included.
        compile_time: seconds spent making the constraint out of a grammar.
        ttft: seconds to the first token; None when there is none.
        itls: seconds between tokens, one fewer than there are tokens.
        end_to_end: seconds from the call to the end.
        mask_times: seconds of the worker, one entry a mask; the first was filled during prefill.
        mask_waits: seconds the loop waited, parallel to `mask_times`.
        mask_cpu_times: seconds of CPU that the matcher's work took, parallel to `mask_times`; the
            rest of a mask time is the handover between threads and waits for the interpreter lock.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    sampled_tokens: int = 0
    forced_tokens: int = 0
    forward_passes: int = 0
    compile_time: float = 0.0
    ttft: float | None = None
    itls: list[float] = field(default_factory=list)
    end_to_end: float = 0.0
    mask_times: list[float] = field(default_factory=list)
    mask_waits: list[float] = field(default_factory=list)
    mask_cpu_times: list[float] = field(default_factory=list)

    @property
    def tpot(self) -> float | None:
        """Seconds per output token after the first; None with fewer than two tokens."""
        return sum(self.itls) / len(self.itls) if self.itls else None

    @property
    def tokens_per_second(self) -> float:
        """Tokens of the answer by the end-to-end time."""
        return self.completion_tokens / self.end_to_end if self.end_to_end > 0 else 0.0

    @property
    def mask_time(self) -> float:
        """Seconds of the worker, all masks together."""
        return sum(self.mask_times)

    @property
    def mask_wait(self) -> float:
        """Seconds the loop waited for masks, all together."""
        return sum(self.mask_waits)

    @property
    def mask_hidden(self) -> float:
        """Seconds of mask time that ran behind the device's work."""
        pairs = zip(self.mask_times, self.mask_waits, strict=True)
        return sum(max(0.0, spent - waited) for spent, waited in pairs)

    @property
    def hidden_share(self) -> float | None:
        """`mask_hidden / mask_time`; None without masks."""
        return self.mask_hidden / self.mask_time if self.mask_time > 0 else None

    def mask_percentile(self, percent: float) -> float | None:
        """The CPU time of a mask, in seconds, that `percent` (0 to 100) of them did not exceed."""
        if not self.mask_cpu_times:
            return None
        ordered = sorted(self.mask_cpu_times)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


@dataclass(kw_only=True)
class Generation:
    """An answer.

    Attributes:
        text: what was written, without special tokens and without the stop string.
        token_ids: the tokens of the answer; for `stop` they may spell more than `text`.
        finish_reason: see `FinishReason`.
        is_complete: whether `text` is an answer and no fragment: with a constraint, whether it is
            in the language; without one, whether the model or a stop string ended it.
        stopped_by: the stop string that ended it.
        error: what went wrong, for the finish reason `error`.
        metrics: counts and times.
        grammar: what the answer was to satisfy, where that was given as a grammar.
        captures: what the grammar's captured rules matched, by name, in order.
    """

    text: str
    token_ids: list[int]
    finish_reason: FinishReason
    is_complete: bool
    stopped_by: str | None = None
    error: Exception | None = None
    metrics: Metrics
    grammar: Grammar | None = field(default=None, repr=False)
    captures: dict[str, list[bytes]] = field(default_factory=dict)

    @property
    def value(self) -> Any:
        """What the text stands for: a value of the type that `Grammar.from_type` was given, or
        the text parsed as JSON.

        Raises:
            IncompleteOutput: the text was cut short.
            EngineError: the text is whole but not JSON, or its value could not be built.
        """
        if not self.is_complete:
            tokens = self.metrics.completion_tokens
            advice = "; raise max_tokens" if self.finish_reason == "length" else ""
            raise IncompleteOutput(
                f"the answer is cut short after {tokens} tokens (finish_reason "
                f"{self.finish_reason!r}){advice}. Its text so far is in `text`"
            )
        try:
            if self.grammar is not None:
                return self.grammar.value(self.text)
            return json.loads(self.text)
        except GrammarError as error:
            raise EngineError(f"the answer has no value: {error}; use `text`") from error
        except ValueError as error:
            raise EngineError(f"the answer is not JSON: {error}; use `text`") from error
