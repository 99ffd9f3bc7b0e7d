"""The sampler against a slow reference written from the definitions, one token at a time."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from grammaton.engine import EngineError, InvalidOption, Sampling  # noqa: E402
from grammaton.engine.sampling import Sampler, filtered, penalize  # noqa: E402

# Halves, so that every sum and quotient below is exact in float32 and ties are common.
LOGITS = st.lists(st.integers(-12, 12).map(lambda n: n / 2), min_size=1, max_size=12)


def reference_penalties(
    logits: list[float], prompt: list[int], answer: list[int], options: Sampling
) -> list[float]:
    result = []
    for token, logit in enumerate(logits):
        if token in prompt or token in answer:
            if logit > 0:
                logit = logit / options.repetition_penalty
            else:
                logit = logit * options.repetition_penalty
        occurrences = answer.count(token)
        logit -= options.frequency_penalty * occurrences
        if occurrences:
            logit -= options.presence_penalty
        result.append(logit)
    return result


def softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(x - top) if x > -math.inf else 0.0 for x in logits]
    return [weight / sum(weights) for weight in weights]


def reference_filters(logits: list[float], options: Sampling) -> tuple[list[float], float]:
    """The distribution sampled from, and how near top-p's sum came to its bound."""
    logits = [x / options.temperature for x in logits]
    if options.top_k:
        bound = sorted(logits, reverse=True)[: options.top_k][-1]
        logits = [x if x >= bound else -math.inf for x in logits]
    probabilities = softmax(logits)
    floor = options.min_p * max(probabilities)
    logits = [
        x if p >= floor * (1 - 1e-12) else -math.inf
        for x, p in zip(logits, probabilities, strict=True)
    ]
    probabilities = softmax(logits)
    kept: set[int] = set()
    mass, margin = 0.0, math.inf
    if options.top_p < 1:
        for token in sorted(range(len(logits)), key=lambda i: (-probabilities[i], i)):
            margin = min(margin, abs(mass - options.top_p))
            if mass >= options.top_p:
                break
            kept.add(token)
            mass += probabilities[token]
        logits = [x if i in kept else -math.inf for i, x in enumerate(logits)]
    return softmax(logits), margin


@given(
    logits=LOGITS,
    data=st.data(),
    repetition=st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    frequency=st.sampled_from([-1.0, 0.0, 0.5, 2.0]),
    presence=st.sampled_from([-0.5, 0.0, 1.0]),
)
def test_penalties(
    logits: list[float], data: Any, repetition: float, frequency: float, presence: float
) -> None:
    ids = st.lists(st.integers(0, len(logits) - 1), max_size=8)
    prompt, answer = data.draw(ids), data.draw(ids)
    options = Sampling(
        repetition_penalty=repetition, frequency_penalty=frequency, presence_penalty=presence
    )
    given_logits = torch.tensor(logits)
    got = penalize(given_logits, options, prompt=prompt, counts=Counter(answer))
    assert got.tolist() == reference_penalties(logits, prompt, answer, options)
    assert given_logits.tolist() == logits, "the input must stay as it was"


@given(
    logits=LOGITS,
    data=st.data(),
    temperature=st.sampled_from([0.25, 0.5, 1.0, 2.0]),
    top_k=st.integers(0, 14),
    min_p=st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.7, 1.0]),
    top_p=st.floats(0.01, 1.0),
)
def test_filters(
    logits: list[float], data: Any, temperature: float, top_k: int, min_p: float, top_p: float
) -> None:
    masked = data.draw(st.sets(st.integers(0, len(logits) - 1), max_size=len(logits) - 1))
    logits = [-math.inf if i in masked else x for i, x in enumerate(logits)]
    options = Sampling(temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p)
    expected, margin = reference_filters(logits, options)
    assume(margin > 1e-6)  # whether 0.1 + 0.2 reaches 0.3 is not what is tested
    got = torch.softmax(filtered(torch.tensor(logits), options).double(), dim=0).numpy()
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert (got > 0).tolist() == [p > 0 for p in expected]


def test_top_k_keeps_ties_and_the_mask_comes_first() -> None:
    logits = torch.tensor([-math.inf, 3.0, 2.0, 2.0, 1.0])
    kept = filtered(logits, Sampling(top_k=2)) > -math.inf
    assert kept.tolist() == [False, True, True, True, False]


def test_top_p_takes_the_lowest_ids_among_equals() -> None:
    kept = filtered(torch.zeros(4), Sampling(top_p=0.4)) > -math.inf
    assert kept.tolist() == [True, True, False, False]


def test_draws_follow_the_distribution() -> None:
    logits = torch.tensor([0.0, math.log(2), -math.inf, math.log(5), math.log(2)])
    sampler = Sampler(Sampling(seed=3), prompt=[])
    counts = Counter(sampler.choose(logits) for _ in range(4000))
    assert set(counts) == {0, 1, 3, 4}
    for token, share in ((0, 0.1), (1, 0.2), (3, 0.5), (4, 0.2)):
        assert abs(counts[token] / 4000 - share) < 0.03


def test_seed_decides() -> None:
    logits = torch.zeros(1000)

    def draws(seed: int | None) -> list[int]:
        sampler = Sampler(Sampling(seed=seed), prompt=[])
        return [sampler.choose(logits) for _ in range(20)]

    assert draws(5) == draws(5)
    assert draws(5) != draws(6)
    assert draws(None) != draws(None)


def test_greedy_takes_the_lowest_id_among_equals() -> None:
    sampler = Sampler(Sampling(temperature=0), prompt=[])
    assert sampler.choose(torch.tensor([1.0, 4.0, 4.0, -math.inf])) == 1


@pytest.mark.parametrize("temperature", [1e-30, 1e-300, 1e300])
def test_extreme_temperatures_are_numbers_still(temperature: float) -> None:
    sampler = Sampler(Sampling(temperature=temperature, seed=1), prompt=[])
    token = sampler.choose(torch.tensor([-3e38, 2.0, 30.0, -math.inf]))
    assert token in {0, 1, 2}
    if temperature < 1:
        assert token == 2


def test_penalties_remember_forced_and_sampled_tokens() -> None:
    sampler = Sampler(Sampling(frequency_penalty=1.0), prompt=[0])
    for token in (1, 1, 2):
        sampler.record(token)
    assert sampler.penalized(torch.zeros(4)).tolist() == [0.0, -2.0, -1.0, 0.0]


def test_half_precision_logits_are_widened() -> None:
    sampler = Sampler(Sampling(), prompt=[])
    assert sampler.penalized(torch.zeros(4, dtype=torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_broken_model_is_named(bad: float) -> None:
    sampler = Sampler(Sampling(), prompt=[])
    with pytest.raises(EngineError, match="NaN or infinity"):
        sampler.choose(torch.tensor([1.0, bad]))


def test_an_empty_mask_is_an_error() -> None:
    sampler = Sampler(Sampling(), prompt=[])
    with pytest.raises(EngineError, match="no token is allowed"):
        sampler.choose(torch.full((4,), -math.inf))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", "warm"),
        ("top_k", -1),
        ("top_k", 1.5),
        ("top_k", True),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("min_p", -0.01),
        ("min_p", 2.0),
        ("repetition_penalty", 0.0),
        ("frequency_penalty", math.inf),
        ("presence_penalty", None),
        ("seed", -1),
        ("seed", 2**63),
        ("seed", 1.0),
    ],
)
def test_values_out_of_range(name: str, value: object) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(InvalidOption, match=name):
        Sampling(**options)
