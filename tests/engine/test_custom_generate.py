"""`JumpForward`: the answers of plain `generate`, in fewer passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import GenerationMixin, LlamaForCausalLM, StopStringCriteria  # noqa: E402

from grammaton.engine import (  # noqa: E402
    Engine,
    EngineError,
    GrammatonLogitsProcessor,
    InvalidOption,
    JumpForward,
)
from grammaton.grammar.grammar import Grammar  # noqa: E402
from tests.engine.conftest import make_model  # noqa: E402
from tests.engine.test_processor import (  # noqa: E402
    BOS,
    EOS,
    PROMPTS,
    SIZE,
    TOKENIZER,
    TWO_ENDS,
    VOCABULARY,
    generate,
)

FORCED = [r'\{"abc":(true|12),"x":[0-9]{1,3}\}', r"truetrue(a|b)", r"(abc|12){2}-{9}"]
GRAMMARS = [Grammar.from_regex(pattern) for pattern in FORCED]
CANONICAL = JumpForward(TOKENIZER)


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    return make_model(SIZE)


@contextmanager
def passes(model: LlamaForCausalLM) -> Iterator[list[int]]:
    """The widths of the forward passes that are made meanwhile."""
    widths: list[int] = []

    def note(_module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        ids = named["input_ids"] if "input_ids" in named else arguments[0]
        widths.append(ids.shape[1])

    hook = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield widths
    finally:
        hook.remove()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_cache": False},
        {"cache_implementation": "static"},
        {"repetition_penalty": 1.4},
        {"max_new_tokens": 5},
        {"stopping_criteria": [StopStringCriteria(TOKENIZER, ["e", "12-"])]},
        {"return_dict_in_generate": True},
    ],
    ids=lambda options: "".join(options) or "plain",
)
@pytest.mark.parametrize("ends", [1, 2])
def test_greedy_answers_are_those_of_generate(
    model: LlamaForCausalLM, options: dict[str, Any], ends: int
) -> None:
    vocabulary, eos = (VOCABULARY, EOS) if ends == 1 else (TWO_ENDS, [BOS, EOS])
    processor = GrammatonLogitsProcessor(GRAMMARS, vocabulary, pad_token_id=EOS)
    options = {"do_sample": False, "max_new_tokens": 40, "eos_token_id": eos, **options}
    with passes(model) as plain:
        wanted = generate(model, processor, PROMPTS, **options)
    with passes(model) as jumping:
        found = generate(model, processor, PROMPTS, **options, custom_generate=JumpForward())
    if options.get("return_dict_in_generate"):
        wanted, found = wanted.sequences, found.sequences
    assert torch.equal(found, wanted)
    assert len(jumping) <= len(plain)
    with passes(model) as canonical:
        found = generate(model, processor, PROMPTS, **options, custom_generate=CANONICAL)
    for row, answer in enumerate(processor.answers(getattr(found, "sequences", found))):
        if answer.is_complete:
            assert re.fullmatch(FORCED[row], answer.text)
    assert len(canonical) <= len(plain)


def test_one_row_takes_all_that_is_forced_in_one_pass(model: LlamaForCausalLM) -> None:
    processor = GrammatonLogitsProcessor(Grammar.from_regex("(c|d)-{9}"), VOCABULARY)
    with passes(model) as widths:
        found = generate(
            model, processor, PROMPTS[:1], do_sample=False, custom_generate=JumpForward()
        )
    (answer,) = processor.answers(found)
    assert re.fullmatch("[cd]-{9}", answer.text)
    assert len(widths) == 1, "the rest is forced, the end too"
    assert found[0, -1] == EOS


def test_canonical_text_is_in_the_tokens_of_the_tokenizer(model: LlamaForCausalLM) -> None:
    text = '{"abc":true,"x":12}'
    processor = GrammatonLogitsProcessor(Grammar.from_choices([f"a{text}", f"b{text}"]), VOCABULARY)
    with passes(model) as widths:
        found = generate(model, processor, PROMPTS[:1], do_sample=False, custom_generate=CANONICAL)
    (answer,) = processor.answers(found)
    assert answer.token_ids[1:] == TOKENIZER.encode(text)
    assert len(widths) == 1


def test_sampled_answers(model: LlamaForCausalLM) -> None:
    """Choices are drawn with the model's probabilities, wherever forced text stands around them."""
    processor = GrammatonLogitsProcessor(Grammar.from_regex("--(a|b|c)--"), VOCABULARY)
    options = {"do_sample": True, "top_k": 0, "num_return_sequences": 400, "max_new_tokens": 8}
    counts = []
    for jump in ({}, {"custom_generate": JumpForward()}):
        found = generate(model, processor, PROMPTS[:1], **options, **jump)
        texts = [answer.text for answer in processor.answers(found)]
        assert all(re.fullmatch("--(a|b|c)--", text) for text in texts)
        counts.append([texts.count(f"--{letter}--") / len(texts) for letter in "abc"])
    # Six standard deviations of the difference of two such shares.
    assert counts[0] == pytest.approx(counts[1], abs=6 * (2 * 0.25 / 400) ** 0.5)
    with pytest.raises(AssertionError):
        assert counts[0] == pytest.approx([1.0, 0.0, 0.0], abs=0.2)


def test_free_rows_and_rows_of_a_compiled_constraint(model: LlamaForCausalLM) -> None:
    constraint = Engine(model, TOKENIZER, vocabulary=VOCABULARY).compile(GRAMMARS[1])
    processor: Any = GrammatonLogitsProcessor([constraint, None, GRAMMARS[0]], VOCABULARY)  # type: ignore[list-item]
    wanted = generate(model, processor, PROMPTS, do_sample=False)
    found = generate(model, processor, PROMPTS, do_sample=False, custom_generate=JumpForward())
    assert torch.equal(found, wanted)


def test_what_it_refuses(model: LlamaForCausalLM) -> None:
    processor = GrammatonLogitsProcessor(GRAMMARS[0], VOCABULARY)
    other = GrammatonLogitsProcessor(GRAMMARS[1], VOCABULARY)
    for processors, options, message in (
        ([], {}, "there must be one, not 0"),
        ([processor, other], {}, "not 2"),
        ([processor], {"num_beams": 2}, "beam search"),
        ([processor], {"prompt_lookup_num_tokens": 2}, "prompt lookup"),
        ([processor], {"output_scores": True, "return_dict_in_generate": True}, "output_scores"),
    ):
        with pytest.raises(InvalidOption, match=message):
            generate(
                model, processors, PROMPTS[:1], **options, custom_generate=JumpForward(TOKENIZER)
            )
    with pytest.raises(InvalidOption, match="fast tokenizer"):
        JumpForward("tokenizer")


def test_an_older_transformers(model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    processor = GrammatonLogitsProcessor(GRAMMARS[0], VOCABULARY)
    monkeypatch.setattr(GenerationMixin, "_prefill", lambda self, input_ids: None)
    with pytest.raises(EngineError, match="newer transformers"):
        generate(model, processor, PROMPTS[:1], custom_generate=JumpForward())
