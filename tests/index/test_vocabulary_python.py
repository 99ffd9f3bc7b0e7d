"""`Vocabulary.from_transformers` on tokenizers that transformers runs in Python, and fast ones.

Each is the class that transformers has for its kind, or one made like those that come with a
model's own code.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AddedToken, PreTrainedTokenizer, PreTrainedTokenizerFast
from transformers.models.gpt_sw3 import GPTSw3Tokenizer
from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

from grammaton.errors import VocabularyError
from grammaton.index.token_texts import BYTE_DECODER
from grammaton.index.vocabulary import Vocabulary
from tests.index.corpus import TEXTS


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SentencePiece model with byte fallback and a user-defined piece."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "a cat, a hat; a bat"] * 20),
        model_writer=model,
        model_type="bpe",
        vocab_size=320,
        hard_vocab_limit=False,
        byte_fallback=True,
        user_defined_symbols=["▁▁"],
        pad_id=3,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    path = tmp_path_factory.mktemp("sentencepiece") / "tokenizer.model"
    path.write_bytes(model.getvalue())
    return path


ADDED = [
    AddedToken("<think>", special=False, normalized=False),
    AddedToken("▁▁", special=False, normalized=False),
    AddedToken("<|turn|>", special=True, normalized=False),
]


@pytest.mark.parametrize("kind", [SentencePieceBackend, GPTSw3Tokenizer])
def test_sentencepiece(kind: Any, model_file: Path) -> None:
    tokenizer = kind(
        vocab_file=str(model_file),
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
    )
    processor = SentencePieceProcessor(model_file=str(model_file))
    base = Vocabulary.from_sentencepiece(model_file)
    assert processor.get_piece_size() == len(base)
    tokenizer.add_tokens(ADDED)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.eos_token_ids == (processor.eos_id(),)
    assert vocabulary.drops_leading_space
    assert len(vocabulary) == len(tokenizer) == len(base) + 2
    for token_id in range(len(base)):
        assert vocabulary.token_bytes(token_id) == base.token_bytes(token_id)
    turn = tokenizer.convert_tokens_to_ids("<|turn|>")
    assert vocabulary.special_tokens["<|turn|>"] == turn
    assert set(base.special_tokens) <= set(vocabulary.special_tokens)
    assert vocabulary.token_bytes(tokenizer.convert_tokens_to_ids("<think>")) == b"<think>"
    # The model's own piece, though it was added too.
    assert vocabulary.token_bytes(processor.piece_to_id("▁▁")) == b"  "
    for text in TEXTS:
        assert vocabulary.decode(processor.encode(text)) == (text and " " + text).encode()


class TiktokenTokenizer(PreTrainedTokenizer):
    """As Qwen's first tokenizers and Kimi's have it: an encoding inside, special tokens in it."""

    def __init__(self, encoding: tiktoken.Encoding, **options: Any) -> None:
        self.encoding = encoding
        super().__init__(**options)  # type: ignore[no-untyped-call]

    @property
    def vocab_size(self) -> int:
        return self.encoding.n_vocab

    def get_vocab(self) -> dict[Any, int]:
        ids = range(self.vocab_size)
        return {self.encoding.decode_single_token_bytes(i): i for i in ids} | (
            self.added_tokens_encoder
        )

    def _tokenize(self, text: str, **_: Any) -> list[Any]:
        return [
            self.encoding.decode_single_token_bytes(i) for i in self.encoding.encode_ordinary(text)
        ]

    def _convert_token_to_id(self, token: Any) -> int:
        return self.encoding.encode_single_token(token)

    def _convert_id_to_token(self, index: int) -> Any:
        return self.encoding.decode_single_token_bytes(index)


def test_tiktoken() -> None:
    ranks = {bytes((byte,)): byte for byte in range(256)} | {b"he": 256, "é".encode(): 257}
    special = {"<|endoftext|>": 258, "<|im_end|>": 259}
    encoding = tiktoken.Encoding(
        "made", pat_str=r"\s+|\S+", mergeable_ranks=ranks, special_tokens=special
    )
    tokenizer = TiktokenTokenizer(encoding)
    tokenizer.add_tokens([AddedToken("<think>", special=False), AddedToken("<x>", special=True)])
    vocabulary = Vocabulary.from_transformers(tokenizer, logits_size=300)
    assert vocabulary.special_tokens == {**special, "<x>": 261}
    assert vocabulary.eos_token_ids == (258,)
    assert vocabulary.token_bytes(260) == b"<think>"
    for text in TEXTS:
        assert vocabulary.decode(encoding.encode_ordinary(text)) == text.encode()
    several = Vocabulary.from_transformers(tokenizer, eos_token_ids=[258, 259])
    assert several.eos_token_ids == (258, 259)


class ByteLevelTokenizer(PreTrainedTokenizer):
    """As GPT-2's first tokenizer has it, without its merges."""

    def __init__(self, **options: Any) -> None:
        self.encoder = {character: byte for byte, character in enumerate(BYTE_DECODER)}
        self.encoder |= {"naïf": 256, "Ġ<|end|>": 257}
        self.byte_decoder = dict(BYTE_DECODER)
        super().__init__(**options)  # type: ignore[no-untyped-call]

    @property
    def vocab_size(self) -> int:
        return len(self.encoder)

    def get_vocab(self) -> dict[str, int]:
        return self.encoder | self.added_tokens_encoder

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return list(text)

    def _convert_token_to_id(self, token: str) -> int:
        return self.encoder[token]

    def _convert_id_to_token(self, index: int) -> str:
        return next(token for token, i in self.encoder.items() if i == index)


def test_byte_level() -> None:
    tokenizer = ByteLevelTokenizer(eos_token="<|end|>")
    tokenizer.add_tokens([AddedToken("é", special=False), AddedToken("Ġ", special=False)])
    vocabulary = Vocabulary.from_transformers(tokenizer)
    texts = [vocabulary.token_bytes(i) for i in range(len(vocabulary))]
    assert texts[:256] == [bytes((byte,)) for byte in BYTE_DECODER.values()]
    assert texts[256:] == [b"na\xeff", b" <|end|>", b""]
    assert vocabulary.special_tokens == {"<|end|>": 258}
    tokenizer.byte_decoder["a"] = 7
    with pytest.raises(VocabularyError, match="neither backed by the tokenizers library nor"):
        Vocabulary.from_transformers(tokenizer)


def test_fast() -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0, "Ġ": 1, "<unk>": 2}, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)  # type: ignore[no-untyped-call]
    with pytest.raises(VocabularyError, match="pass eos_token_ids"):
        Vocabulary.from_transformers(fast)
    fast.add_special_tokens({"eos_token": "</s>"})
    vocabulary = Vocabulary.from_transformers(fast, logits_size=8)
    assert repr(vocabulary) == "Vocabulary(4 tokens, 2 special, eos 3, 8 logits)"
    assert vocabulary.decode([1, 0, 2, 3]) == b" a"


def test_mistral_common(model_file: Path) -> None:
    pytest.importorskip("mistral_common", reason="the package mistral_common is not installed")
    tekken = pytest.importorskip(
        "mistral_common.tokens.tokenizers.tekken", reason="mistral_common can't be imported"
    )
    data = Path(tekken.__file__).parents[2] / "data"
    path = data / "tekken_240911.json"
    vocabulary = Vocabulary.from_tekken(path)
    from transformers.tokenization_mistral_common import MistralCommonBackend

    wrapped = MistralCommonBackend(str(path))
    inner = wrapped.tokenizer.instruct_tokenizer.tokenizer
    assert isinstance(inner, tekken.Tekkenizer)
    for same in (Vocabulary.from_tekken(inner), Vocabulary.from_transformers(wrapped)):
        assert repr(same) == repr(vocabulary)
        assert same.special_tokens == vocabulary.special_tokens
        assert all(same.token_bytes(i) == vocabulary.token_bytes(i) for i in range(len(same)))
    for text in TEXTS:
        assert vocabulary.decode(inner.encode(text, bos=False, eos=True)) == text.encode()
    path = data / "mistral_instruct_tokenizer_241114.model.v7"
    pieces = Vocabulary.from_sentencepiece(path)
    same = Vocabulary.from_transformers(MistralCommonBackend(str(path)))
    assert repr(same) == repr(pieces)
    assert all(same.token_bytes(i) == pieces.token_bytes(i) for i in range(len(same)))


def test_other_kinds_are_refused() -> None:
    for other in (object(), None, [b"a"], SentencePieceProcessor()):
        with pytest.raises(VocabularyError, match="so the bytes of its tokens are not known"):
            Vocabulary.from_transformers(other)
