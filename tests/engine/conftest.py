"""A tiny random model with a byte-level tokenizer, small enough to generate with in milliseconds.

The tokenizer has every byte and a few merges; the model's logits are wider than the tokenizer, so
that a tail that must never be sampled is always there.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the engine needs grammaton[transformers]")
pytest.importorskip("transformers", reason="the engine needs grammaton[transformers]")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402

from grammaton.engine import Engine, load_demo_model  # noqa: E402
from grammaton.engine.models import missing_for_demo  # noqa: E402

# More threads than free cores make every torch operation wait for the slowest of them.
torch.set_num_threads(1)

MERGES = [("a", "b"), ("ab", "c"), ("t", "r"), ("u", "e"), ("tr", "ue"), ("1", "2"), ('"', ":")]
TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }}:{{ m['content'] }}</s>{% endfor %}<s>"
TAIL = 24
"""Logits past the tokenizer's ids."""


def byte_characters() -> list[str]:
    """GPT-2's character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    return [chr(byte if byte in plain else next(extra)) for byte in range(256)]


def make_tokenizer() -> PreTrainedTokenizerFast:
    tokens = [*byte_characters(), *("".join(pair) for pair in MERGES)]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    make: Any = PreTrainedTokenizerFast
    fast: PreTrainedTokenizerFast = make(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>"
    )
    fast.chat_template = TEMPLATE
    return fast


def make_model(size: int, *, seed: int = 0, **settings: Any) -> LlamaForCausalLM:
    config = LlamaConfig(
        **{
            "vocab_size": size,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 256,
            "initializer_range": 0.3,
            "tie_word_embeddings": False,
            **settings,
        }
    )
    torch.manual_seed(seed)
    model: Any = LlamaForCausalLM(config)
    model.eval()
    model.generation_config.eos_token_id = None
    made: LlamaForCausalLM = model
    return made


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer()


@pytest.fixture(scope="session")
def engine(tokenizer: PreTrainedTokenizerFast) -> Engine:
    return Engine(make_model(len(tokenizer) + TAIL), tokenizer)


@pytest.fixture(scope="session")
def real_engine() -> Engine:
    """The demo's model; tests that use it are marked `model`."""
    missing = missing_for_demo()
    if missing:
        message = f"NO REAL MODEL: {', '.join(missing)} missing; pip install 'grammaton[demo]'"
        if os.environ.get("GRAMMATON_REQUIRE_MODEL") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return load_demo_model()


def biased(engine: Engine, bias: dict[int, float]) -> LlamaForCausalLM:
    """A copy of the engine's model that adds to some logits."""
    model = make_model(engine.model.config.vocab_size)
    added = torch.zeros(model.config.vocab_size)
    for token, value in bias.items():
        added[token] = value
    model.lm_head.register_forward_hook(lambda _module, _inputs, output: output + added)
    return model
