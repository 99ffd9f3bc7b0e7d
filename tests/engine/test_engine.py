"""Answers of a tiny model, against a loop without cache or worker, and at every way to end."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import PreTrainedTokenizerFast  # noqa: E402

from grammaton.engine import (  # noqa: E402
    Engine,
    EngineError,
    IncompleteOutput,
    InvalidOption,
    Sampling,
)
from grammaton.engine.sampling import Sampler  # noqa: E402
from grammaton.errors import VocabularyError  # noqa: E402
from grammaton.grammar.grammar import Grammar  # noqa: E402
from grammaton.index import Vocabulary  # noqa: E402
from tests.engine.conftest import TAIL, biased, make_model  # noqa: E402

RECORD = r'\{"abc":(true|false),"x":[0-9]{1,4},"s":"[a-z]{0,6}"\}'
PROMPTS: list[Any] = ["hi", "what is the abc of 12?", [5, 6, 7], [{"role": "user", "content": "x"}]]


def naive(
    engine: Engine, prompt: list[int], grammar: Grammar | None, *, max_tokens: int, **sampling: Any
) -> list[int]:
    """The whole sequence through the model for every token; masks applied a token at a time."""
    vocabulary = engine.vocabulary
    matcher = None if grammar is None else engine.compile(grammar).matcher()
    options = Sampling(**sampling)
    sampler = Sampler(options, prompt=prompt)
    tokens: list[int] = []
    while len(tokens) < max_tokens:
        with torch.no_grad():
            logits = engine.model(torch.tensor([prompt + tokens])).logits[0, -1]
        logits = sampler.penalized(logits).clone()
        allowed = list(range(len(vocabulary)))
        if matcher is not None:
            out = np.zeros(vocabulary.mask_words, dtype=np.int32)
            matcher.fill_mask(out)
            allowed = [i for i in allowed if int(out[i // 32]) >> (i % 32) & 1]
            if matcher.is_complete and set(allowed) <= set(vocabulary.eos_token_ids):
                break
        forbidden = sorted(set(range(logits.shape[0])) - set(allowed))
        logits[forbidden] = -math.inf
        token = sampler.choose(logits)
        tokens.append(token)
        if token in vocabulary.eos_token_ids:
            break
        sampler.record(token)
        if matcher is not None:
            assert matcher.accept(token)
    return tokens


@pytest.mark.parametrize("forced", ["off", "exact"])
@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 0},
        {"seed": 1},
        {"seed": 2, "temperature": 1.5, "top_k": 20, "min_p": 0.01, "top_p": 0.9},
        {"seed": 3, "repetition_penalty": 1.3, "frequency_penalty": 0.4, "presence_penalty": 0.2},
    ],
)
@pytest.mark.parametrize("pattern", [RECORD, "(12|true|abc){2,5}", None])
def test_equals_the_naive_loop(
    engine: Engine, pattern: str | None, sampling: dict[str, Any], forced: Any
) -> None:
    grammar = None if pattern is None else Grammar.from_regex(pattern)
    prompt = engine.tokenizer("say abc")["input_ids"]
    result = engine.generate(prompt, grammar, max_tokens=24, forced=forced, **sampling)
    assert result.token_ids == naive(engine, prompt, grammar, max_tokens=24, **sampling)
    if pattern is not None and result.is_complete:
        assert re.fullmatch(pattern, result.text)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_json_answer(engine: Engine, prompt: Any) -> None:
    result = engine.generate(prompt, Grammar.from_regex(RECORD), seed=4)
    assert result.finish_reason == "grammar"
    assert result.is_complete
    assert re.fullmatch(RECORD, result.text)
    assert result.value == json.loads(result.text)
    assert result.text.encode() == engine.vocabulary.decode(result.token_ids)


def test_messages_go_through_the_template(engine: Engine) -> None:
    messages = [{"role": "user", "content": "hi"}]
    spelled = engine.tokenizer("<s>user:hi</s><s>", add_special_tokens=False)["input_ids"]
    assert (
        engine.generate(messages, max_tokens=8, seed=1).token_ids
        == engine.generate(spelled, max_tokens=8, seed=1).token_ids
    )


def test_messages_without_a_template(engine: Engine, tokenizer: PreTrainedTokenizerFast) -> None:
    bare = Engine(engine.model, tokenizer, vocabulary=engine.vocabulary)
    template, tokenizer.chat_template = tokenizer.chat_template, None
    try:
        with pytest.raises(EngineError, match="no chat template"):
            bare.generate([{"role": "user", "content": "hi"}])
    finally:
        tokenizer.chat_template = template


def test_seeds(engine: Engine) -> None:
    grammar = Grammar.from_regex("[a-z]{20}")

    def text(seed: int | None) -> str:
        return engine.generate("hi", grammar, seed=seed).text

    assert text(1) == text(1)
    assert text(1) != text(2)
    assert text(None) != text(None)


@pytest.mark.parametrize("forced", ["exact", "canonical"])
def test_forced_text_costs_fewer_passes(engine: Engine, forced: Any) -> None:
    grammar = Grammar.from_regex(r"(yes|no), said the \(very\) old man\.")
    plain = engine.generate("hi", grammar, temperature=0, forced="off")
    result = engine.generate("hi", grammar, temperature=0, forced=forced)
    assert result.finish_reason == plain.finish_reason == "grammar"
    assert re.fullmatch(r"(yes|no), said the \(very\) old man\.", result.text)
    assert result.text.encode() == engine.vocabulary.decode(result.token_ids)
    assert plain.metrics.forced_tokens == 0
    assert result.metrics.forced_tokens > 20
    assert result.metrics.sampled_tokens + result.metrics.forced_tokens == len(result.token_ids)
    assert result.metrics.forward_passes <= 4 < 20 < plain.metrics.forward_passes
    if forced == "exact":
        assert result.token_ids == plain.token_ids


@pytest.mark.parametrize("forced", ["off", "exact", "canonical"])
def test_wholly_forced_text(engine: Engine, forced: Any) -> None:
    result = engine.generate("hi", Grammar.literal("abctrue12é"), forced=forced)
    assert (result.text, result.finish_reason) == ("abctrue12é", "grammar")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("x</s>y", "a special token's name, which the tokenizer would not spell out"),
        ("ab(é|è)true", "forced bytes that end inside a character"),
        ("(a|b)c?12(é|ê|è)?", "a forced run of one token, whose last is left to the model"),
    ],
)
def test_forced_text_that_the_tokenizer_spells_otherwise(
    engine: Engine, pattern: str, why: str
) -> None:
    for seed in range(4):
        result = engine.generate("hi", Grammar.from_regex(pattern), seed=seed, forced="canonical")
        assert result.finish_reason in ("grammar", "eos"), why
        assert re.fullmatch(pattern, result.text), why
        ids = [i for i in result.token_ids if i not in engine.vocabulary.eos_token_ids]
        assert result.text.encode() == engine.vocabulary.decode(ids), why


def test_canonical_tokens_are_the_tokenizers(engine: Engine) -> None:
    text = "abctrue12, abc is true 12"
    result = engine.generate("hi", Grammar.literal(text), forced="canonical")
    assert result.token_ids == engine.tokenizer(text)["input_ids"]
    assert result.metrics.sampled_tokens == 0
    assert result.metrics.forward_passes <= 1


@pytest.mark.parametrize("forced", ["off", "exact", "canonical"])
def test_the_empty_text(engine: Engine, forced: Any) -> None:
    result = engine.generate("hi", Grammar.literal(""), forced=forced)
    assert (result.text, result.token_ids, result.finish_reason) == ("", [], "grammar")
    assert result.is_complete
    assert result.metrics.ttft is None
    assert result.metrics.tpot is None


@pytest.mark.parametrize("forced", ["off", "exact", "canonical"])
@pytest.mark.parametrize("limit", range(1, 12))
def test_a_limit_that_cuts_is_told(engine: Engine, forced: Any, limit: int) -> None:
    grammar = Grammar.from_regex("(x|y)qwrtqwrt")
    result = engine.generate("hi", grammar, max_tokens=limit, forced=forced, seed=1)
    assert len(result.token_ids) == min(limit, 9)
    assert result.metrics.completion_tokens == len(result.token_ids)
    if limit < 9:
        assert (result.finish_reason, result.is_complete) == ("length", False)
        with pytest.raises(IncompleteOutput, match=f"after {limit} tokens.*raise max_tokens"):
            _ = result.value
    else:
        assert (result.finish_reason, result.is_complete) == ("grammar", True)


def test_a_limit_where_the_text_could_go_on(engine: Engine) -> None:
    result = engine.generate("hi", Grammar.from_regex("[0-9]{1,50}"), max_tokens=3, min_p=0, seed=7)
    if result.finish_reason == "length":
        assert result.is_complete
        assert isinstance(result.value, int) or result.text.startswith("0")


def test_eos(engine: Engine, tokenizer: PreTrainedTokenizerFast) -> None:
    eos = tokenizer.eos_token_id
    eager = Engine(biased(engine, {eos: 1000.0}), tokenizer)
    result = eager.generate("hi", Grammar.from_regex("[0-9]{2,50}"), seed=1)
    assert result.finish_reason == "eos"
    assert result.token_ids[-1] == eos
    assert re.fullmatch("[0-9]{2,3}", result.text), "12 is one token"
    free = eager.generate("hi")
    assert (free.text, free.token_ids, free.finish_reason) == ("", [eos], "eos")
    assert free.is_complete


def test_the_generation_config_names_more_ends(tokenizer: PreTrainedTokenizerFast) -> None:
    model = make_model(len(tokenizer))
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, 97]
    assert set(Engine(model, tokenizer).vocabulary.eos_token_ids) == {tokenizer.eos_token_id, 97}


@pytest.mark.parametrize("pattern", [None, "[a-z]{40}"])
def test_ids_past_the_tokenizer_are_never_chosen(
    engine: Engine, tokenizer: PreTrainedTokenizerFast, pattern: str | None
) -> None:
    size = len(tokenizer)
    pushed = Engine(biased(engine, {size + i: 1000.0 for i in range(TAIL)}), tokenizer)
    grammar = None if pattern is None else Grammar.from_regex(pattern)
    for options in ({"temperature": 0}, {"seed": 1}, {"seed": 1, "top_k": 3}):
        result = pushed.generate("hi", grammar, max_tokens=10, **options)  # type: ignore[arg-type]
        assert result.token_ids
        assert max(result.token_ids) < size


def test_stop_strings(engine: Engine) -> None:
    grammar = Grammar.from_regex("ab(12){30}")
    result = engine.generate("hi", grammar, stop="121", seed=1)
    assert (result.text, result.finish_reason, result.stopped_by) == ("ab", "stop", "121")
    assert not result.is_complete
    with pytest.raises(IncompleteOutput):
        _ = result.value
    cut = engine.generate("hi", Grammar.from_regex("12(x12)*"), stop=["zz", "x"], seed=1)
    if cut.finish_reason == "stop":
        assert (cut.text, cut.is_complete, cut.value) == ("12", True, 12)


def test_value_of_a_type(engine: Engine) -> None:
    grammar = Grammar.from_type(tuple[Literal["a", "b"], bool])
    for result in (
        engine.generate("hi", grammar, seed=1),
        *engine.generate_batch(["hi", "x"], grammar, seeds=[1, 2]),
    ):
        assert type(result.value) is tuple
        assert list(result.value) == json.loads(result.text)
    compiled = engine.generate("hi", engine.compile(grammar), seed=1)
    assert compiled.value == json.loads(compiled.text)


def test_value_of_what_is_not_json(engine: Engine) -> None:
    result = engine.generate("hi", Grammar.literal("abc"))
    with pytest.raises(EngineError, match="not JSON"):
        _ = result.value


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("stop", [(), "é", ["12", "€"]])
def test_stream_equals_generate(engine: Engine, prompt: Any, stop: Any) -> None:
    grammar = Grammar.from_regex("([a-z]|12|é|€|😀){4,30}")
    whole = engine.generate(prompt, grammar, max_tokens=40, stop=stop, seed=9)
    stream = engine.stream(prompt, grammar, max_tokens=40, stop=stop, seed=9)
    pieces = list(stream)
    assert "".join(pieces) == whole.text == stream.result.text
    assert all(pieces)
    assert stream.result.token_ids == whole.token_ids
    assert stream.result.finish_reason == whole.finish_reason
    assert list(stream) == []


def test_a_stream_has_no_result_before_its_end(engine: Engine) -> None:
    with engine.stream("hi", Grammar.from_regex("[a-z]{9}"), seed=1) as stream:
        next(stream)
        with pytest.raises(EngineError, match="still being written"):
            _ = stream.result


def test_leaving_a_stream_cancels(engine: Engine) -> None:
    with engine.stream("hi", Grammar.from_regex("[a-z]{90}"), max_tokens=90, seed=1) as stream:
        first = next(stream)
    assert stream.result.finish_reason == "cancelled"
    assert stream.result.text == first
    assert not stream.result.is_complete
    assert list(stream) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "grammaton-mask"]


def test_a_stream_closed_before_it_began(engine: Engine) -> None:
    stream = engine.stream("hi", Grammar.literal("abc"))
    stream.close()
    assert (stream.result.finish_reason, stream.result.text) == ("cancelled", "")


def test_cancel_event(engine: Engine) -> None:
    cancel = threading.Event()
    stream = engine.stream("hi", Grammar.from_regex("[a-z]{90}"), cancel=cancel, seed=1)
    pieces = [next(stream), next(stream)]
    cancel.set()
    pieces += list(stream)
    assert stream.result.finish_reason == "cancelled"
    assert stream.result.text == "".join(pieces)
    assert len(stream.result.token_ids) <= 3
    assert engine.generate("hi", cancel=cancel).token_ids == []


@pytest.mark.parametrize("forced", ["off", "exact", "canonical"])
def test_a_batch_gives_what_single_runs_give(engine: Engine, forced: Any) -> None:
    patterns = [RECORD, "(yes|no), said the old man", None, "[a-z]{3}"]
    grammars = [None if p is None else Grammar.from_regex(p) for p in patterns]
    options: dict[str, Any] = {"max_tokens": 40, "forced": forced}
    batch = engine.generate_batch(PROMPTS, grammars, seeds=[1, 2, 3, 4], **options)
    for i, result in enumerate(batch):
        single = engine.generate(PROMPTS[i], grammars[i], seed=i + 1, **options)
        assert result.error is None
        assert result.token_ids == single.token_ids
        assert (result.text, result.finish_reason) == (single.text, single.finish_reason)


def test_a_batch_under_one_constraint(engine: Engine) -> None:
    constraint = engine.compile(Grammar.from_regex("[a-z]{3,9}"))
    results = engine.generate_batch(["a", "bcd"], constraint, temperature=0)
    assert [r.text for r in results] == [
        engine.generate(p, constraint, temperature=0).text for p in ("a", "bcd")
    ]


def test_metrics(engine: Engine) -> None:
    result = engine.generate("hi there", Grammar.from_regex(RECORD), seed=1, forced="off")
    metrics = result.metrics
    count = len(result.token_ids)
    assert metrics.prompt_tokens == len(engine.tokenizer("hi there")["input_ids"])
    assert metrics.completion_tokens == metrics.sampled_tokens == count
    assert metrics.forced_tokens == 0
    assert count <= metrics.forward_passes <= count + 1
    assert len(metrics.itls) == count - 1
    assert all(latency >= 0 for latency in metrics.itls)
    assert metrics.ttft is not None
    assert metrics.tpot is not None
    assert 0 < metrics.compile_time < metrics.ttft
    assert metrics.ttft + sum(metrics.itls) <= metrics.end_to_end
    assert metrics.tpot == pytest.approx(sum(metrics.itls) / (count - 1))
    assert metrics.tokens_per_second == pytest.approx(count / metrics.end_to_end)
    assert len(metrics.mask_times) == len(metrics.mask_waits) == count + 1
    assert 0 <= metrics.mask_hidden <= metrics.mask_time
    assert metrics.hidden_share is not None
    assert 0 <= metrics.hidden_share <= 1
    assert len(metrics.mask_cpu_times) == len(metrics.mask_times)
    assert metrics.mask_percentile(0) == min(metrics.mask_cpu_times)
    assert metrics.mask_percentile(100) == max(metrics.mask_cpu_times)


def test_metrics_without_a_constraint(engine: Engine) -> None:
    metrics = engine.generate("hi", max_tokens=3, seed=1).metrics
    assert (metrics.mask_times, metrics.hidden_share, metrics.mask_percentile(50)) == (
        [],
        None,
        None,
    )


def test_a_grammar_is_compiled_once(engine: Engine) -> None:
    grammar = Grammar.from_regex("[a-z]{3}")
    assert engine.compile(grammar) is engine.compile(grammar)
    others = [Grammar.from_regex(f"x{i}") for i in range(40)]
    for other in others:
        engine.compile(other)
    assert engine.generate("hi", grammar, seed=1).finish_reason == "grammar"


def test_several_threads(engine: Engine) -> None:
    grammar = Grammar.from_regex(RECORD)
    expected = [engine.generate("hi", grammar, seed=seed).text for seed in range(4)]
    got: dict[int, str] = {}

    def work(seed: int) -> None:
        got[seed] = engine.generate("hi", grammar, seed=seed).text

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [got[seed] for seed in range(4)] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 2.5}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": 3}, "stop"),
        ({"forced": "always"}, "forced"),
        ({"cancel": True}, "cancel"),
        ({"temprature": 1}, "unknown option 'temprature'"),
    ],
)
def test_bad_options(engine: Engine, options: dict[str, Any], message: str) -> None:
    for call in (engine.generate, engine.stream, engine.generate_batch):
        with pytest.raises(InvalidOption, match=message):
            call("hi", **options)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("", "empty"),
        ([], "a prompt is"),
        (b"hi", "a prompt is"),
        (None, "a prompt is"),
        ([1, 100_000], "100000"),
        ([1, -1], "-1"),
        ([1, "a"], "'a'"),
        ([{"content": "no role"}], "role"),
        ([{"role": "user"}], "content"),
        ([7] * 256, "shorten"),
    ],
)
def test_bad_prompts(engine: Engine, prompt: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        engine.generate(prompt)


def test_the_context_is_a_limit_too(engine: Engine) -> None:
    result = engine.generate([7] * 250, Grammar.from_regex("[a-z]{90}"), seed=1)
    assert (result.finish_reason, len(result.token_ids)) == ("length", 6)


@pytest.mark.parametrize("constraint", ["[a-z]", {"type": "object"}, 3])
def test_what_is_no_constraint(engine: Engine, constraint: Any) -> None:
    with pytest.raises(InvalidOption, match=r"Grammar\.from_json_schema"):
        engine.generate("hi", constraint)


def test_batches_that_do_not_fit(engine: Engine) -> None:
    grammar = Grammar.literal("abc")
    with pytest.raises(InvalidOption, match="at least one"):
        engine.generate_batch([])
    with pytest.raises(InvalidOption, match="2 prompts need 2"):
        engine.generate_batch(["a", "b"], [grammar])
    with pytest.raises(InvalidOption, match="2 prompts need 2"):
        engine.generate_batch(["a", "b"], grammar, seeds=[1])


def test_a_vocabulary_of_another_model(engine: Engine) -> None:
    tokens: Sequence[bytes] = [bytes([i % 256]) for i in range(1000)]
    wide = Vocabulary(tokens, eos_token_ids=0)
    with pytest.raises(VocabularyError, match="belong together"):
        Engine(engine.model, engine.tokenizer, vocabulary=wide)


def test_a_model_of_another_kind(engine: Engine) -> None:
    with pytest.raises(InvalidOption, match="decoder-only"):
        Engine(object(), engine.tokenizer)
