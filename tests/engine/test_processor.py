"""The logits processor in every mode of `generate`, against one that works everything out anew."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import Tensor  # noqa: E402
from transformers import (  # noqa: E402
    LlamaForCausalLM,
    LogitsProcessor,
    PreTrainedTokenizerFast,
)

from grammaton.engine import GrammatonLogitsProcessor, InvalidOption  # noqa: E402
from grammaton.errors import TokenRejected, UnsatisfiableGrammar, VocabularyError  # noqa: E402
from grammaton.grammar.grammar import Grammar  # noqa: E402
from grammaton.index import Vocabulary, compile  # noqa: E402
from tests.engine.conftest import TAIL, make_model, make_tokenizer  # noqa: E402

TOKENIZER = make_tokenizer()
SIZE = len(TOKENIZER) + TAIL
VOCABULARY = Vocabulary.from_transformers(TOKENIZER, logits_size=SIZE)
BOS, EOS = VOCABULARY.special_tokens["<s>"], VOCABULARY.special_tokens["</s>"]
TWO_ENDS = Vocabulary.from_transformers(TOKENIZER, eos_token_ids=[BOS, EOS], logits_size=SIZE)
PATTERNS = [r'\{"abc":(true|12|"[abc]{1,4}")\}', r"(12|true|abc){2,4}", r"[a-c]{3}(é|x\d{2})?"]
GRAMMARS = [Grammar.from_regex(pattern) for pattern in PATTERNS]
ANYTHING = ".*"
PROMPTS = ["what is abc?", "12", "truetrue abcabc true12"]
REPEATING = "abctrue12 abctrue12 abctrue"


class Slow(LogitsProcessor):
    """The definition: every token of every row is tried on the grammar's own recogniser."""

    def __init__(
        self, grammars: list[Grammar | None], vocabulary: Vocabulary, *, pad: int, prompt: int
    ) -> None:
        self.grammars = grammars
        self.vocabulary = vocabulary
        self.pad = pad
        self.prompt = prompt
        self.known: dict[tuple[int, bytes], list[int]] = {}

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        result: Tensor = torch.full_like(scores, -math.inf)
        group = scores.shape[0] // len(self.grammars)
        for row, ids in enumerate(input_ids.tolist()):
            good = self.allowed(row // group, ids[self.prompt :])
            result[row, good] = scores[row, good]
        return result

    def allowed(self, which: int, answer: list[int]) -> list[int]:
        grammar, words = self.grammars[which], self.vocabulary
        ends = words.eos_token_ids
        if grammar is None:
            return [self.pad] if set(ends) & set(answer) else list(range(len(words)))
        text = words.decode(answer)
        if {*ends, self.pad} & set(answer) or not grammar.accepts_prefix(text):
            return [self.pad]
        key = which, text
        if key not in self.known:
            good = [i for i in range(len(words)) if words.token_bytes(i)]
            good = [i for i in good if grammar.accepts_prefix(text + words.token_bytes(i))]
            self.known[key] = good + (list(ends) if grammar.accepts(text) else [])
        return self.known[key]


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    return make_model(SIZE)


@pytest.fixture(scope="module")
def assistant() -> LlamaForCausalLM:
    """Nearly the model, so that it is right about as often as not."""
    made = make_model(SIZE)
    torch.manual_seed(1)
    with torch.no_grad():
        made.lm_head.weight += 0.05 * torch.randn_like(made.lm_head.weight)
    return made


def batch(prompts: list[str]) -> dict[str, Tensor]:
    """Prompts padded on the left with the end of sequence."""
    rows = [TOKENIZER.encode(prompt) for prompt in prompts]
    longest = max(map(len, rows))
    return {
        "input_ids": torch.tensor([[EOS] * (longest - len(row)) + row for row in rows]),
        "attention_mask": torch.tensor(
            [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
        ),
    }


def generate(model: LlamaForCausalLM, processor: Any, prompts: list[str], **options: Any) -> Any:
    torch.manual_seed(options.pop("seed", 0))
    options = {"max_new_tokens": 24, "eos_token_id": EOS, "pad_token_id": EOS, **options}
    processors = processor if isinstance(processor, list) else [processor]
    run: Any = model.generate
    return run(**batch(prompts), logits_processor=processors, **options)


MODES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "temperature": 1.5, "top_k": 40, "top_p": 0.95},
    "several": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "beams, renormalised": {"num_beams": 4, "renormalize_logits": True, "length_penalty": 0.5},
    "beams, early": {"num_beams": 2, "early_stopping": True, "repetition_penalty": 1.2},
    "beam sampling": {"num_beams": 4, "do_sample": True, "num_return_sequences": 4},
    "static cache": {"do_sample": True, "cache_implementation": "static"},
    "no cache": {"do_sample": False, "use_cache": False},
    "penalties": {"do_sample": False, "repetition_penalty": 1.5},
    "prompt in chunks": {"do_sample": False, "prefill_chunk_size": 3},
    "cut short": {"do_sample": False, "max_new_tokens": 3},
}
ALONE: dict[str, dict[str, Any]] = {
    "assisted": {"do_sample": False, "assistant_model": True},
    "assisted sampling": {"do_sample": True, "assistant_model": True},
    "prompt lookup": {"do_sample": False, "prompt_lookup_num_tokens": 4},
    "prompt lookup sampling": {"do_sample": True, "prompt_lookup_num_tokens": 4},
}


def check(processor: GrammatonLogitsProcessor, sequences: Tensor, patterns: list[str]) -> None:
    """Every finished answer matches its pattern, by Python's `re`; the others were cut."""
    answers = processor.answers(sequences)
    assert answers
    for row, answer in enumerate(answers):
        pattern = patterns[row // (len(answers) // len(patterns))]
        found = re.fullmatch(pattern, answer.text, re.DOTALL)
        assert (found is not None) if answer.is_complete else len(answer.token_ids) >= 3
        if pattern != ANYTHING:
            assert processor.vocabulary.decode(answer.token_ids).decode() == answer.text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("each", [False, True], ids=["one", "each"])
def test_a_batch_in_every_mode(model: LlamaForCausalLM, mode: str, each: bool) -> None:
    grammars = GRAMMARS if each else GRAMMARS[:1]
    processor = GrammatonLogitsProcessor(grammars if each else grammars[0], VOCABULARY)
    width = batch(PROMPTS)["input_ids"].shape[1]
    slow = Slow([*grammars], VOCABULARY, pad=EOS, prompt=width)
    found = generate(model, processor, PROMPTS, **MODES[mode])
    assert torch.equal(found, generate(model, slow, PROMPTS, **MODES[mode]))
    check(processor, found, [*PATTERNS] if each else PATTERNS[:1])


@pytest.mark.parametrize("mode", [*MODES, *ALONE])
@pytest.mark.parametrize("which", range(len(PATTERNS)))
def test_one_prompt_in_every_mode(
    model: LlamaForCausalLM, assistant: LlamaForCausalLM, mode: str, which: int
) -> None:
    options = {**MODES, **ALONE}[mode]
    if "assistant_model" in options:
        options = {**options, "assistant_model": assistant}
    processor = GrammatonLogitsProcessor(GRAMMARS[which], VOCABULARY)
    slow = Slow([GRAMMARS[which]], VOCABULARY, pad=EOS, prompt=len(REPEATING_IDS))
    found = generate(model, processor, [REPEATING], **options)
    assert torch.equal(found, generate(model, slow, [REPEATING], **options))
    check(processor, found, [PATTERNS[which]])
    if mode.startswith(("assisted", "prompt")) and not options["do_sample"]:
        plain = generate(model, processor, [REPEATING], do_sample=False)
        assert torch.equal(found, plain), "drafts change no greedy answer"


REPEATING_IDS = TOKENIZER.encode(REPEATING)


@pytest.mark.parametrize("mode", ["greedy", "several", "beams", "beam sampling"])
def test_two_ends_and_padding_of_its_own(model: LlamaForCausalLM, mode: str) -> None:
    pad = SIZE - 1
    grammars = [GRAMMARS[1], None, GRAMMARS[2]]
    processor = GrammatonLogitsProcessor(grammars, TWO_ENDS, pad_token_id=pad)
    options = {**MODES[mode], "eos_token_id": [BOS, EOS], "pad_token_id": pad}
    width = batch(PROMPTS)["input_ids"].shape[1]
    slow = Slow(grammars, TWO_ENDS, pad=pad, prompt=width)
    found = generate(model, processor, PROMPTS, **options)
    assert torch.equal(found, generate(model, slow, PROMPTS, **options))
    rows = found.shape[0] // 3
    check(processor, found, [PATTERNS[1], ANYTHING, PATTERNS[2]])
    assert (
        found[rows : 2 * rows, width:]
        .lt(len(TOKENIZER))
        .logical_or(found[rows : 2 * rows, width:].eq(pad))
        .all()
    ), "the tail is never written, constrained or not"


def test_rows_that_a_stop_string_ends_are_padded(model: LlamaForCausalLM) -> None:
    for pad in (EOS, SIZE - 1):
        processor = GrammatonLogitsProcessor(
            [Grammar.from_regex("[ab]{4}"), Grammar.from_regex("[cd]{9}")],
            VOCABULARY,
            pad_token_id=pad,
        )
        found = generate(
            model,
            processor,
            PROMPTS[:2],
            stop_strings=["a", "b"],
            tokenizer=TOKENIZER,
            pad_token_id=pad,
        )
        short, full = processor.answers(found)
        assert re.fullmatch("[ab]{1,2}", short.text)
        assert not short.is_complete
        assert re.fullmatch("[cd]{9}", full.text)
        assert full.is_complete
    plain = GrammatonLogitsProcessor(
        [Grammar.from_regex("[ab]{4}"), Grammar.from_regex("[cd]{9}")], VOCABULARY
    )
    with pytest.raises(TokenRejected, match="pad_token_id"):
        generate(
            model,
            plain,
            PROMPTS[:2],
            stop_strings=["a", "b"],
            tokenizer=TOKENIZER,
            pad_token_id=SIZE - 1,
        )


def spellings(text: bytes) -> Iterator[list[int]]:
    """All token sequences of a text."""
    if not text:
        yield []
    for token in range(len(VOCABULARY)):
        piece = VOCABULARY.token_bytes(token)
        if piece and text.startswith(piece):
            yield from ([token, *rest] for rest in spellings(text[len(piece) :]))


def log_probability(model: LlamaForCausalLM, prompt: list[int], answer: list[int]) -> float:
    """Of an answer, by one pass without a cache."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + answer])).logits[0].double()
    steps = torch.log_softmax(logits[len(prompt) - 1 : -1], dim=-1)
    return float(steps[torch.arange(len(answer)), answer].sum())


TEXTS = ["abc", "12", "true12", "abab"]


def test_wide_beams_find_the_best_spellings_of_all(model: LlamaForCausalLM) -> None:
    """Of all token sequences of a finite language, the most probable, with their probabilities."""
    prompt = TOKENIZER.encode(PROMPTS[0])
    every = [
        (log_probability(model, prompt, [*spelling, EOS]), [*spelling, EOS])
        for text in TEXTS
        for spelling in spellings(text.encode())
    ]
    best = sorted(every, reverse=True)[:6]
    processor = GrammatonLogitsProcessor(Grammar.from_choices(TEXTS), VOCABULARY)
    found = generate(
        model,
        processor,
        PROMPTS[:1],
        num_beams=len(every),
        num_return_sequences=len(best),
        length_penalty=0.0,
        output_scores=True,
        return_dict_in_generate=True,
    )
    answers = [row[len(prompt) :].tolist() for row in found.sequences]
    wanted = [answer for _, answer in best]
    assert [answer[: len(good)] for answer, good in zip(answers, wanted, strict=True)] == wanted
    assert found.sequences_scores.tolist() == pytest.approx([score for score, _ in best], abs=1e-4)


@pytest.mark.parametrize("do_sample", [False, True])
@pytest.mark.parametrize("vocabulary", [VOCABULARY, TWO_ENDS], ids=["one end", "two ends"])
def test_unique_beams(model: LlamaForCausalLM, vocabulary: Vocabulary, do_sample: bool) -> None:
    beams, grammar = 6, Grammar.from_choices(TEXTS)
    options = {
        "num_beams": beams,
        "num_return_sequences": beams,
        "do_sample": do_sample,
        "eos_token_id": list(vocabulary.eos_token_ids),
    }
    plain = GrammatonLogitsProcessor(grammar, vocabulary)
    unique = GrammatonLogitsProcessor(grammar, vocabulary, unique_beams=beams)
    for seed in range(3):
        plain_texts, unique_texts = (
            by_prompt(processor, generate(model, processor, PROMPTS[:2], seed=seed, **options))
            for processor in (plain, unique)
        )
        assert any(len(set(texts)) < len(texts) for texts in plain_texts)
        for texts, before in zip(unique_texts, plain_texts, strict=True):
            assert len(set(texts)) == len(texts) >= 2
            assert set(texts) <= set(TEXTS)
            assert set(before) <= set(TEXTS)


def by_prompt(processor: GrammatonLogitsProcessor, sequences: Tensor) -> list[list[str]]:
    """The texts that ended, of each of two prompts."""
    texts = [answer.text if answer.is_complete else "" for answer in processor.answers(sequences)]
    half = len(texts) // 2
    return [[text for text in part if text] for part in (texts[:half], texts[half:])]


ANSWERS = [
    [*spelling, EOS, EOS]
    for text in ("12true", "abc12", "truetrue", "1212abc")
    for spelling in spellings(text.encode())
]


@settings(max_examples=60)
@given(data=st.data())
def test_rows_in_any_order(data: st.DataObject) -> None:
    """Every call is answered as if it were the only one."""
    size, prompt = data.draw(st.sampled_from([1, 2, 4])), [[7, 8, 9]]
    fast = GrammatonLogitsProcessor(GRAMMARS[1], VOCABULARY)
    slow = Slow([GRAMMARS[1]], VOCABULARY, pad=EOS, prompt=3)
    fast(torch.tensor(prompt * size), torch.zeros(size, SIZE))
    length = 0
    for _ in range(data.draw(st.integers(2, 8))):
        length = data.draw(st.sampled_from([length + 1, length + 1, length, 0]) | st.integers(0, 7))
        long = [answer[:length] for answer in ANSWERS if len(answer) >= length]
        rows = data.draw(st.lists(st.sampled_from(long), min_size=size, max_size=size))
        ids = torch.tensor([prompt[0] + row for row in rows])
        scores = torch.randn(size, SIZE + data.draw(st.sampled_from([0, 40])))
        before = scores.clone()
        assert torch.equal(fast(ids, scores), slow(ids, scores))
        assert torch.equal(scores, before), "scores are not changed in place"
    if size > 1 and length:
        with pytest.raises(InvalidOption, match="reset"):
            fast(ids[:1], scores[:1])


def test_answers_that_begin_inside_the_prompt(model: LlamaForCausalLM) -> None:
    prompt = len(TOKENIZER.encode("ab"))
    processor = GrammatonLogitsProcessor(GRAMMARS[0], VOCABULARY, prompt_length=prompt)
    found = generate(model, processor, ['ab{"abc":t'], do_sample=False)
    (answer,) = processor.answers(found)
    assert answer.text == '{"abc":true}'
    with pytest.raises(InvalidOption, match="prompt_length is 1"):
        GrammatonLogitsProcessor(GRAMMARS[0], VOCABULARY, prompt_length=1)(
            torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, SIZE)
        )
    # Told where answers start, a processor takes other prompts without a reset.
    found = generate(model, processor, ["ab"], do_sample=False)
    check(processor, found, PATTERNS[:1])


def ids_of(*rows: str) -> Tensor:
    ids: Tensor = torch.tensor([[1, 2, *TOKENIZER.encode(row)] for row in rows])
    return ids


def started(**options: Any) -> GrammatonLogitsProcessor:
    processor = GrammatonLogitsProcessor(Grammar.from_regex("[ab]+"), VOCABULARY, **options)
    processor(torch.tensor([[1, 2], [1, 2]]), torch.zeros(2, SIZE))
    return processor


@pytest.mark.parametrize(
    ("rows", "ends", "message"),
    [
        (("aaaa", "abca"), [], r"b'c'.*row 1, token 2 of the answer, after b'ab'"),
        (("a", "b"), [[EOS, 5, 5, 6], [EOS] * 4], r"row 0, token 4 of the answer, after b'a'"),
        (("a", "b"), [[SIZE + 5], [98]], f"token {SIZE + 5} is forbidden"),
        (("a", "b"), [[97], [-3]], "token -3 is forbidden.*row 1"),
    ],
)
def test_a_forbidden_token_is_an_error_with_its_place(
    rows: tuple[str, str], ends: list[list[int]], message: str
) -> None:
    ids = torch.tensor(
        [
            [1, 2, *spelled, *tail]
            for spelled, tail in zip(
                [next(spellings(row.encode())) for row in rows], ends or [[], []], strict=True
            )
        ]
    )
    for ask in (started().answers, lambda ids: started()(ids, torch.zeros(2, SIZE))):
        with pytest.raises(TokenRejected, match=message) as e:
            ask(ids)
        place = re.search(r"token (-?\d+).*row (\d), token (\d)", str(e.value))
        assert place is not None
        assert [e.value.token_id, e.value.row, e.value.position] == [*map(int, place.groups())]


def test_what_to_do_about_forbidden_tokens() -> None:
    ids, scores = ids_of("a", "c"), torch.randn(2, SIZE)
    beams = torch.log_softmax(scores, dim=-1)
    with pytest.raises(TokenRejected):
        started()(ids, scores)
    with pytest.raises(TokenRejected):
        started(on_rejected="raise")(ids, beams)
    for masked in (
        started()(ids, beams),
        started(on_rejected="drop")(ids, scores),
        started(unique_beams=2)(ids, scores),
    ):
        assert masked[1].isfinite().nonzero().flatten().tolist() == [EOS]
        assert masked[0].isfinite().sum() > 2
    # Tried and taken back: what counts is what the row is now.
    processor = started(on_rejected="drop")
    processor(ids_of("aa", "ca"), scores)
    assert processor(ids_of("a", "b"), scores)[1].isfinite().sum() > 2


class Nothing(LogitsProcessor):
    """Leaves no token at one place, as processors at odds with each other do."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        nothing: Tensor = scores - math.inf
        return nothing if input_ids.shape[1] == self.length else scores


def test_a_processor_that_leaves_nothing(model: LlamaForCausalLM) -> None:
    length = len(TOKENIZER.encode(PROMPTS[0])) + 2
    processor = GrammatonLogitsProcessor(GRAMMARS[0], VOCABULARY)
    with pytest.raises(TokenRejected, match="another logits processor") as e:
        generate(model, [processor, Nothing(length)], PROMPTS[:1], do_sample=False)
    assert e.value.position == 2


def test_another_prompt_needs_a_reset(model: LlamaForCausalLM) -> None:
    processor = GrammatonLogitsProcessor(GRAMMARS[1], VOCABULARY)
    first = generate(model, processor, PROMPTS[:1], do_sample=False)
    assert torch.equal(first, generate(model, processor, PROMPTS[:1], do_sample=False))
    with pytest.raises(InvalidOption, match="reset"):
        generate(model, processor, PROMPTS[1:2], do_sample=False)
    # The conversation goes on: what was an answer is now a part of the prompt.
    ids = torch.cat([first, torch.tensor([TOKENIZER.encode("and now?")])], dim=1)
    with pytest.raises(TokenRejected, match="reset"):
        processor(ids, torch.zeros(1, SIZE))
    processor.reset()
    generate(model, processor, PROMPTS[1:2], do_sample=False)


def test_an_assistant_with_another_tokenizer_is_refused(model: LlamaForCausalLM) -> None:
    other = make_tokenizer()
    other.add_tokens(["what is", "abc?"])
    processor = GrammatonLogitsProcessor(GRAMMARS[1], VOCABULARY)
    with pytest.raises((InvalidOption, VocabularyError)):
        generate(
            model,
            processor,
            PROMPTS[:1],
            do_sample=False,
            assistant_model=make_model(len(other) + TAIL),
            tokenizer=TOKENIZER,
            assistant_tokenizer=other,
        )


def test_what_cannot_be_given(tokenizer: PreTrainedTokenizerFast) -> None:
    make: Any = GrammatonLogitsProcessor
    for arguments, message in (
        ({"vocabulary": tokenizer}, "from_transformers"),
        ({"constraint": []}, "empty list"),
        ({"constraint": ["[ab]"]}, "from_regex"),
        ({"constraint": 3}, "not int"),
        ({"pad_token_id": SIZE}, f"below {SIZE}"),
        ({"pad_token_id": -1}, "at least 0"),
        ({"prompt_length": 1.5}, "prompt_length"),
        ({"unique_beams": 0}, "unique_beams"),
        ({"on_rejected": "ignore"}, "'drop'"),
    ):
        with pytest.raises(InvalidOption, match=message):
            make(**{"constraint": GRAMMARS[0], "vocabulary": VOCABULARY, **arguments})
    with pytest.raises(UnsatisfiableGrammar):
        make(Grammar.from_regex("a") & Grammar.from_regex("b"), VOCABULARY)


def test_rows_that_do_not_fit() -> None:
    ids, scores = torch.tensor([[1, 2]] * 3), torch.zeros(3, SIZE)
    compiled = compile(GRAMMARS[0], VOCABULARY)
    for bad_fit in (
        GrammatonLogitsProcessor([compiled] * 2, VOCABULARY),
        GrammatonLogitsProcessor(compiled, VOCABULARY, unique_beams=2),
    ):
        with pytest.raises(InvalidOption, match="3 rows"):
            bad_fit(ids, scores)
    processor = GrammatonLogitsProcessor(compiled, VOCABULARY)
    with pytest.raises(VocabularyError, match="scores"):
        processor(ids, scores[:, :100])
    for bad in (scores[:2], scores[None], scores[0]):
        with pytest.raises(InvalidOption, match=r"\(B, V\)"):
            processor(ids, bad)
    with pytest.raises(InvalidOption, match="prompt_length"):
        processor.answers(ids)
    processor(ids, scores)
    with pytest.raises(InvalidOption, match="columns"):
        processor.answers(ids[:, :1])
