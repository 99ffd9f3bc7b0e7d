"""The logits processor on the real model, once in every mode; answers checked by `jsonschema`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
jsonschema = pytest.importorskip("jsonschema")

from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

from grammaton.engine import Engine, GrammatonLogitsProcessor, JumpForward  # noqa: E402
from grammaton.grammar.grammar import Grammar  # noqa: E402

pytestmark = pytest.mark.model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["n"],
    "additionalProperties": False,
}
# Not from the schema, whose texts may spell "n" as an escape: short answers are enough here.
RECORD, COLOUR = r'\{"n":[1-9][0-9]?\}', "red|green|blue"
PROMPTS = ["The colour of grass is", 'As JSON: {"n":12} {"n":7} {"n":']


def drafts(engine: Engine) -> LlamaForCausalLM:
    """A model that has learnt nothing, as an assistant."""
    torch.manual_seed(0)
    made: Any = LlamaForCausalLM
    model: LlamaForCausalLM = made(
        LlamaConfig(
            vocab_size=engine.model.config.vocab_size,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
        )
    )
    model.generation_config.num_assistant_tokens = 4
    return model


MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "num_return_sequences": 2},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "unique beams": {"num_beams": 4, "num_return_sequences": 2, "unique_beams": 4},
    "beam sampling": {"num_beams": 3, "do_sample": True},
    "static cache": {"cache_implementation": "static"},
    "jump": {"custom_generate": JumpForward()},
    "assisted": {"assistant_model": drafts},
    "prompt lookup": {"prompt_lookup_num_tokens": 4},
    "canonical jump": {"custom_generate": "canonical"},
}
ALONE = ("assisted", "prompt lookup", "canonical jump")


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_on_the_real_model(real_engine: Engine, mode: str) -> None:
    model: Any = real_engine.model
    tokenizer = real_engine.tokenizer
    options = {"do_sample": False, "max_new_tokens": 12, **MODES[mode]}
    if mode == "assisted":
        options["assistant_model"] = drafts(real_engine)
    if mode == "canonical jump":
        options["custom_generate"] = JumpForward(tokenizer)
    patterns, prompts = [COLOUR, RECORD], PROMPTS
    if mode in ALONE:
        patterns, prompts = patterns[1:], prompts[1:]
    processor = GrammatonLogitsProcessor(
        [Grammar.from_regex(pattern) for pattern in patterns],
        real_engine.vocabulary,
        unique_beams=options.pop("unique_beams", None),
    )
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    torch.manual_seed(3)
    sequences = model.generate(**inputs, logits_processor=[processor], **options)
    answers = processor.answers(sequences)
    each = options.get("num_return_sequences", 1)
    assert len(answers) == len(prompts) * each
    assert all(answer.is_complete for answer in answers), answers
    for answer in answers[:-each]:
        assert re.fullmatch(COLOUR, answer.text)
    for answer in answers[-each:]:
        jsonschema.validate(json.loads(answer.text), SCHEMA)
    if mode == "unique beams":
        assert len({answer.text for answer in answers}) == len(answers)
