"""From a row of logits to a token.

Nouns:
  logits     one float a token id, unnormalised log probabilities, `(V,)`.
  penalties  changes to the logits of tokens seen before. *Repetition* (Keskar et al. 2019, CTRL)
             divides a positive logit by the penalty and multiplies a negative one, for every token
             of the prompt or the answer. *Frequency* subtracts `penalty * count` and *presence*
             `penalty * [count > 0]`, counts being over the answer alone (the OpenAI API's meaning).
  mask       True where the grammar allows the token.
  filters    after division by the temperature, *top-k* keeps the k largest logits (and ties with
             the k-th), *min-p* (Nguyen et al. 2024) keeps tokens with at least `min_p` times the
             largest probability, *top-p* (Holtzman et al. 2020, nucleus) keeps the smallest set of
             most probable tokens whose mass reaches `top_p`; equal probabilities by ascending id.

The order is fixed: repetition, frequency and presence, mask, temperature (0 means the largest
logit, the lowest id among equals), top-k, min-p, top-p. Each filter sees the distribution that the
one before it left, renormalised, so the mask comes before all of them: a filter applied first could
keep no allowed token.

A draw is the inverse of the cumulative distribution in float64 at one uniform number from a CPU
generator: one number a token that there was a choice about, whatever the device, and never a token
of probability zero. Cost: a few passes over V, about a millisecond for 50,000 tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from grammaton.engine.errors import EngineError, InvalidOption

# Temperatures past these choose the same tokens, and float32 can still divide by these.
_COLDEST, _HOTTEST = 1e-30, 1e30


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are chosen; the defaults sample from the model's masked distribution.

    Attributes:
        temperature: divides the logits; 0 is greedy decoding.
        top_k: tokens kept by top-k; 0 keeps all.
        top_p: mass kept by top-p, in (0, 1].
        min_p: share of the largest probability that a token needs, in [0, 1].
        repetition_penalty: more than 0; 1 changes nothing.
        frequency_penalty: subtracted once for every earlier occurrence in the answer.
        presence_penalty: subtracted once for a token that occurs in the answer.
        seed: seed of the draw; None takes a fresh one from the operating system.

    Raises:
        InvalidOption: a value is out of its range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        def check(good: bool, name: str, expected: str) -> None:
            if not good:
                raise InvalidOption(f"{name} must be {expected}, not {getattr(self, name)!r}")

        for name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            check(_is_finite(getattr(self, name)), name, "a finite number")
        for name in ("frequency_penalty", "presence_penalty"):
            check(_is_finite(getattr(self, name)), name, "a finite number")
        check(self.temperature >= 0, "temperature", "at least 0")
        check(_is_int(self.top_k) and self.top_k >= 0, "top_k", "an integer of at least 0")
        check(0 < self.top_p <= 1, "top_p", "in (0, 1]")
        check(0 <= self.min_p <= 1, "min_p", "in [0, 1]")
        check(self.repetition_penalty > 0, "repetition_penalty", "more than 0")
        in_range = self.seed is None or (_is_int(self.seed) and 0 <= self.seed < 2**63)
        check(in_range, "seed", "an integer in [0, 2**63) or None")

    @property
    def has_penalties(self) -> bool:
        """Whether any penalty changes a logit."""
        return (
            self.repetition_penalty != 1.0
            or self.frequency_penalty != 0.0
            or self.presence_penalty != 0.0
        )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def penalize(
    logits: Tensor, options: Sampling, *, prompt: Iterable[int], counts: Counter[int]
) -> Tensor:
    """The logits after the three penalties, a new tensor.

    Args:
        logits: floats, shape `(V,)`.
        prompt: ids of the prompt.
        counts: how often each id occurs in the answer so far.
    """
    result = logits.clone()
    if options.repetition_penalty != 1.0:
        seen = torch.tensor(
            sorted({i for i in (*prompt, *counts) if i < result.shape[0]}), dtype=torch.long
        ).to(result.device)
        values = result[seen]
        penalty = options.repetition_penalty
        result[seen] = torch.where(values > 0, values / penalty, values * penalty)
    if counts and (options.frequency_penalty != 0.0 or options.presence_penalty != 0.0):
        ids = torch.tensor(list(counts), dtype=torch.long).to(result.device)
        times = torch.tensor(list(counts.values()), dtype=result.dtype).to(result.device)
        result[ids] -= options.frequency_penalty * times + options.presence_penalty
    return result


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Logits `(V,)` with -inf below the k-th largest."""
    kth = torch.topk(logits, min(k, logits.shape[0])).values[-1]
    return logits.masked_fill(logits < kth, -math.inf)


def keep_min_p(logits: Tensor, min_p: float) -> Tensor:
    """Logits `(V,)` with -inf where the probability is under `min_p` times the largest one.

    Compared in log space, where the normaliser drops out.
    """
    return logits.masked_fill(logits < logits.max() + math.log(min_p), -math.inf)


def keep_top_p(logits: Tensor, top_p: float) -> Tensor:
    """Logits `(V,)` with -inf outside the smallest most probable set of mass `top_p`."""
    probabilities = torch.softmax(logits.double(), dim=0)
    # All tokens under this floor weigh less than 1 - top_p together, so the kept set is reached
    # without them, and a sort of V numbers becomes one of some hundred.
    floor = (1 - top_p) / logits.shape[0]
    alive = torch.nonzero(probabilities >= floor).flatten()
    ordered, order = torch.sort(probabilities[alive], descending=True, stable=True)
    before = torch.cumsum(ordered, dim=0) - ordered
    result = torch.full_like(logits, -math.inf)
    kept = alive[order[before < top_p]]
    result[kept] = logits[kept]
    return result


def filtered(logits: Tensor, options: Sampling) -> Tensor:
    """Masked logits `(V,)` after temperature, top-k, min-p and top-p; the temperature is over 0.

    With the largest logit at 0 no temperature makes 0 / 0 or an infinity of them.
    """
    result = logits / min(max(options.temperature, _COLDEST), _HOTTEST)
    if options.top_k:
        result = keep_top_k(result, options.top_k)
    if options.min_p > 0:
        result = keep_min_p(result, options.min_p)
    if options.top_p < 1:
        result = keep_top_p(result, options.top_p)
    return result


class Sampler:
    """Chooses the tokens of one sequence and remembers them for the penalties.

    Args:
        options: how to choose.
        prompt: the prompt's token ids.
    """

    def __init__(self, options: Sampling, *, prompt: Sequence[int]) -> None:
        self.options = options
        self._prompt = frozenset(prompt)
        self._counts: Counter[int] = Counter()
        self._generator = torch.Generator()
        if options.seed is None:
            self._generator.seed()
        else:
            self._generator.manual_seed(options.seed)

    def record(self, token_id: int) -> None:
        """Counts a token of the answer, sampled or forced, for the penalties."""
        self._counts[token_id] += 1

    def penalized(self, logits: Tensor) -> Tensor:
        """The logits `(V,)` after the penalties, as float32."""
        logits = logits.float()
        if not self.options.has_penalties:
            return logits
        return penalize(logits, self.options, prompt=self._prompt, counts=self._counts)

    def choose(self, logits: Tensor, *, temperature: float | None = None) -> int:
        """A token id out of penalised and masked logits `(V,)`.

        Args:
            logits: the logits.
            temperature: for this token, instead of that of the options.

        Raises:
            EngineError: the model's logits are not numbers, or no token is allowed.
        """
        largest = logits.max().item()
        if math.isnan(largest) or largest == math.inf:
            raise EngineError("the model's logits contain NaN or infinity; try dtype=float32")
        if largest == -math.inf:
            raise EngineError("no token is allowed here: the mask is empty")
        options = self.options
        if temperature is not None:
            options = replace(options, temperature=temperature)
        if options.temperature == 0 or torch.count_nonzero(logits > -math.inf) == 1:
            return int(torch.argmax(logits).item())
        probabilities = torch.softmax(filtered(logits - largest, options), dim=0)
        weights = torch.cumsum(probabilities, dim=0, dtype=torch.float64)
        draw = torch.rand((), generator=self._generator, dtype=torch.float64)
        target = draw.to(weights.device) * weights[-1]
        return int(torch.searchsorted(weights, target, right=True).item())
