"""The files of other tokenizers: tiktoken ranks, tekken, SentencePiece models, GGUF.

Small ones are made here, by the libraries that own the formats or by hand, with what real files
have and what they had better not have.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from grammaton.errors import VocabularyError
from grammaton.index.gguf_vocabulary import read_gguf
from grammaton.index.sentencepiece_model import read_sentencepiece
from grammaton.index.tekken import read_tekken
from grammaton.index.tiktoken_ranks import read_ranks
from grammaton.index.vocabulary import Vocabulary
from tests.index.corpus import MARKED, TEXTS

BYTES = [bytes((byte,)) for byte in range(256)]


def rank_file(texts: list[bytes], first: int = 0) -> bytes:
    return b"".join(b"%s %d\n" % (base64.b64encode(t), i) for i, t in enumerate(texts, first))


# tiktoken


def test_tiktoken_file_and_encoding_agree(tmp_path: Path) -> None:
    ranks = {text: i for i, text in enumerate([*BYTES, b"he", b"ll", b"hell", "é".encode()])}
    special = {"<|endoftext|>": 300, "<|x|>": 262}
    encoding = tiktoken.Encoding(
        "small", pat_str=r"\s+|\S+", mergeable_ranks=ranks, special_tokens=special
    )
    path = tmp_path / "small.tiktoken"
    path.write_bytes(rank_file(list(ranks)))
    for vocabulary in (
        Vocabulary.from_tiktoken(encoding, logits_size=320),
        Vocabulary.from_tiktoken(path, special_tokens=special, logits_size=320),
        Vocabulary.from_tiktoken(str(path), special_tokens=special, logits_size=320),
    ):
        assert (len(vocabulary), vocabulary.eos_token_ids) == (301, (300,))
        assert vocabulary.special_tokens == special
        assert vocabulary.token_bytes(258) == b"hell"
        # Ids between the ranks and the special tokens stand for nothing.
        assert all(vocabulary.token_bytes(i) == b"" for i in range(260, 320))
        for text in [*TEXTS, *MARKED, "hello hell <|x|>"]:
            assert vocabulary.decode(encoding.encode_ordinary(text)) == text.encode()
        assert vocabulary.decode(encoding.encode("h<|x|>i", allowed_special="all")) == b"hi"


def test_tiktoken_ends(tmp_path: Path) -> None:
    path = tmp_path / "ranks"
    path.write_bytes(rank_file(BYTES))
    with pytest.raises(VocabularyError, match=r"pass eos_token_ids.*special tokens: <\|im_end\|>$"):
        Vocabulary.from_tiktoken(path, special_tokens={"<|im_end|>": 256})
    vocabulary = Vocabulary.from_tiktoken(
        path, special_tokens={"<|im_end|>": 257, "<|endoftext|>": 256}, eos_token_ids=[256, 257]
    )
    assert vocabulary.eos_token_ids == (256, 257)
    with pytest.raises(
        VocabularyError, match="'<x>' has the id 65, which stands for the text b'A'"
    ):
        Vocabulary.from_tiktoken(path, special_tokens={"<x>": 65}, eos_token_ids=0)
    with pytest.raises(VocabularyError, match="'<x>' has the id '300', no integer"):
        Vocabulary.from_tiktoken(path, special_tokens={"<x>": "300"})  # type: ignore[dict-item]
    numpys = Vocabulary.from_tiktoken(path, special_tokens={"<|endoftext|>": np.int64(300)})
    assert numpys.eos_token_ids == (300,)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"IQ== 0\nIg==\n", "line 2"),
        (b"IQ== 0\nIg== 1 2\n", "line 2"),
        (b"IQ== -1\n", "line 1"),
        (b"IQ== 1_0\n", "line 1"),
        (b"IQ= 0\n", "line 1"),
        (b"I*Q== 0\n", "line 1"),
        (b"IQ== 0\nIg== 0\n", "line 2 .* rank 0 again"),
        (b"IQ== 16777216\n", "token id 16777216 is not from 0"),
        (b"IQ== " + b"9" * 5000, "line 1"),
        (b"\x89PNG\r\n\x1a\n", "line 1"),
    ],
)
def test_bad_rank_files(source: bytes, reason: str) -> None:
    with pytest.raises(VocabularyError, match=reason):
        read_ranks(source)


def test_equal_texts_under_two_ranks() -> None:
    assert read_ranks(b"IQ== 0\nIQ== 1\n").tokens == [b"!", b"!"]


# tekken


def tekken(**changes: Any) -> bytes:
    """A tekken.json of 3 special tokens and 256 + 2 texts, of which the model has 257."""
    texts = [*BYTES, b"ab", b"left out"]
    document: dict[str, Any] = {
        "config": {
            "pattern": ".",
            "default_vocab_size": 260,
            "default_num_special_tokens": 3,
            "version": "v13",
        },
        "vocab": [
            {"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None}
            for i, t in enumerate(texts)
        ],
        "special_tokens": [
            {"rank": 0, "token_str": "<unk>", "is_control": True},
            {"rank": 1, "token_str": "</s>", "is_control": True},
        ],
    }
    document["config"] |= changes.pop("config", {})
    return json.dumps(document | changes).encode()


def test_tekken(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_bytes(tekken())
    vocabulary = Vocabulary.from_tekken(path, logits_size=300)
    assert repr(vocabulary) == "Vocabulary(260 tokens, 3 special, eos 1, 300 logits)"
    assert vocabulary.special_tokens == {"<unk>": 0, "</s>": 1, "<SPECIAL_2>": 2}
    assert vocabulary.decode([0, 1, 2, 3, 258, 259]) == b"\x00\xffab"


def test_tekken_of_old_versions_leaves_special_tokens_unnamed() -> None:
    sizes = {"default_vocab_size": 280, "default_num_special_tokens": 24}
    texts = read_tekken(tekken(config={**sizes, "version": "v3"}, special_tokens=None))
    names = list(texts.special_tokens)
    assert names[:4] == ["<unk>", "<s>", "</s>", "[INST]"]
    assert names[19:] == [
        *("[TOOL_CONTENT]", "<SPECIAL_20>", "<SPECIAL_21>", "<SPECIAL_22>", "<SPECIAL_23>")
    ]
    assert texts.eos_token_ids == (2,)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"{", "must be JSON"),
        (b"[]", "a JSON object, not list"),
        (b"{}", 'a "config" and a "vocab"'),
        (tekken(config={"default_vocab_size": 1 << 30}), "no number of tokens"),
        (tekken(config={"default_vocab_size": 400}), "258 texts for a vocabulary of 400 ids"),
        (tekken(config={"default_num_special_tokens": 261}), "for a vocabulary of 260 ids"),
        (tekken(vocab=[{}] * 257), "text 0 .* can't be read"),
        (tekken(vocab=[{"rank": 1}] * 257), "its rank is 1"),
        (tekken(vocab=[{"rank": 0, "token_bytes": "*"}] * 257), "text 0 .* can't be read"),
        (tekken(vocab=[7] * 257), "text 0 .* can't be read"),
        (tekken(special_tokens=None), 'no list of "special_tokens"'),
        (tekken(special_tokens=[{"rank": 3, "token_str": "x"}]), "a rank below 3"),
        (tekken(special_tokens=[{"rank": [], "token_str": "x"}]), "a rank below 3"),
        (tekken(special_tokens=["x"]), "a name and a rank"),
        (tekken(special_tokens=[{"rank": 0, "token_str": "<SPECIAL_2>"}]), "have the same name"),
    ],
)
def test_bad_tekken_files(source: bytes, reason: str) -> None:
    with pytest.raises(VocabularyError, match=reason):
        read_tekken(source)


# SentencePiece


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text: str | bytes, kind: int | None = None) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    score = varint(2 << 3 | 5) + struct.pack("<f", -1.5)
    return field(1, field(1, data) + score + (b"" if kind is None else field(3, kind)))


def test_sentencepiece_types() -> None:
    texts = read_sentencepiece(
        piece("<unk>", 2)
        + piece("</s>", 3)
        + piece("▁a▁")
        + piece("▁▁", 4)
        + piece("<0x0A>", 6)
        + piece("<0x0A>")
        + piece("gone", 5)
        + field(3, field(3, 0) + field(4, 0))
        + field(99, b"unknown fields are passed over")
    )
    assert texts.tokens == [b"", b"", b" a ", b"  ", b"\n", b"<0x0A>", b""]
    assert texts.special_tokens == {"<unk>": 0, "</s>": 1}
    assert texts.eos_token_ids == (1,)
    assert not texts.drops_leading_space


def test_sentencepiece_names_its_end() -> None:
    model = piece("</s>") + piece("<end>", 3) + piece("<pad>", 3)
    assert read_sentencepiece(model).eos_token_ids == ()
    assert read_sentencepiece(model + field(2, field(47, b"<end>"))).eos_token_ids == (1,)
    with pytest.raises(VocabularyError, match="pass eos_token_ids"):
        Vocabulary.from_sentencepiece(model)
    # Left unsaid, the library puts a space before a text.
    assert Vocabulary.from_sentencepiece(model, eos_token_ids=2).drops_leading_space


@functools.cache
def trained(**options: Any) -> bytes:
    """A model that the library trains on a few lines."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "a cat, a hat; a bat"] * 20),
        model_writer=model,
        vocab_size=330,
        hard_vocab_limit=False,
        byte_fallback=True,
        user_defined_symbols=["<think>", "▁▁"],
        control_symbols=["<start>"],
        minloglevel=2,
        **options,
    )
    return model.getvalue()


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize("prefix", [True, False])
@given(text=st.text() | st.lists(st.sampled_from([*TEXTS, "<think>", "the ", "  "])).map("".join))
@example(text="  the cat <start></s><think> 中")
def test_sentencepiece_texts(model_type: str, prefix: bool, text: str) -> None:
    model = trained(
        model_type=model_type,
        add_dummy_prefix=prefix,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    )
    processor = SentencePieceProcessor(model_proto=model)
    vocabulary = Vocabulary.from_sentencepiece(processor)
    assert vocabulary.drops_leading_space is prefix
    text = text.replace("▁", "").replace("\0", "")  # the trainer's end of a string
    ids = processor.encode(text)
    joined = vocabulary.decode(ids)
    assert joined == (" " * (prefix and text != "") + text).encode()
    assert joined[int(vocabulary.drops_leading_space) :].decode() == processor.decode(ids)


@pytest.mark.parametrize(
    "options",
    [
        {"normalization_rule_name": "nmt_nfkc"},
        {"treat_whitespace_as_suffix": True, "normalization_rule_name": "identity"},
    ],
)
def test_sentencepiece_pieces_are_what_the_library_decodes(options: dict[str, Any]) -> None:
    processor = SentencePieceProcessor(model_proto=trained(model_type="unigram", **options))
    vocabulary = Vocabulary.from_sentencepiece(processor.serialized_model_proto())
    before = processor.piece_to_id("a")
    for token_id in range(processor.get_piece_size()):
        text = vocabulary.token_bytes(token_id)
        if processor.is_control(token_id) or processor.is_unknown(token_id):
            assert text == b""
        else:
            assert processor.decode([before, token_id]) == "a" + text.decode(errors="replace")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"", "has no pieces"),
        (field(2, b""), "has no pieces"),
        (b"\x0a\x7f", "cut short"),
        (b"\x0a", "cut short"),
        (b"\xff" * 20, "cut short"),
        (b"\x0b", "wire type 3"),
        (piece(b"\xff"), "not UTF-8"),
        (piece("a", 9), "piece 0 .* type 9"),
        (piece("<0x0G>", 6), "byte piece '<0x0G>'"),
        (field(1, 7), "an integer stands where a message belongs"),
        (field(1, field(1, 7)), "an integer stands"),
        (field(1, field(3, b"x")), "type b'x'"),
        (piece("a") + field(5, field(2, b"map")), "has a denormalizer"),
        (piece("a") + field(2, field(47, 3)), "an integer stands"),
    ],
)
def test_bad_sentencepiece_models(source: bytes, reason: str) -> None:
    with pytest.raises(VocabularyError, match=reason):
        read_sentencepiece(source)


@given(st.data())
def test_damaged_sentencepiece_models_are_read_or_refused(data: st.DataObject) -> None:
    model = bytearray(trained(model_type="bpe")[:4000])
    for _ in range(data.draw(st.integers(0, 4))):
        model[data.draw(st.integers(0, len(model) - 1))] = data.draw(st.integers(0, 255))
    try:
        texts = read_sentencepiece(bytes(model[: data.draw(st.integers(0, len(model)))]))
    except VocabularyError:
        return
    assert set(map(type, texts.tokens)) == {bytes}


# GGUF


def gguf_file(
    path: Path,
    kind: str,
    tokens: list[str],
    types: list[int],
    *,
    ends: dict[str, int] | None = None,
    space_prefix: bool | None = None,
) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("some.nested", [[1, 2], [3]])
    writer.add_tokenizer_model(kind)
    writer.add_token_merges(["a b", "c d"])
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    for key, value in (ends or {}).items():
        writer.add_uint32(f"tokenizer.ggml.{key}", value)
    if space_prefix is not None:
        writer.add_add_space_prefix(space_prefix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_gguf_byte_level(tmp_path: Path) -> None:
    path = gguf_file(
        tmp_path / "m.gguf",
        "gpt2",
        ["Ġa", "Ċ", "naïf", "naïf", "<|x|>", "<think>", "[PAD]", "<unk>", "<0x41>"],
        [1, 1, 1, 4, 3, 4, 5, 2, 6],
        ends={"eos_token_id": 4, "eot_token_id": 7},
    )
    vocabulary = Vocabulary.from_gguf(path, logits_size=12)
    texts = [vocabulary.token_bytes(i) for i in range(12)]
    assert texts == [
        *(b" a", b"\n", b"na\xeff", "naïf".encode(), b"", b"<think>", b"", b"", b"A"),
        *(b"", b"", b""),
    ]
    assert vocabulary.eos_token_ids == (4, 7)
    assert vocabulary.special_tokens == {"<|x|>": 4, "<unk>": 7}
    assert not vocabulary.drops_leading_space
    assert Vocabulary.from_gguf(str(path), eos_token_ids=1).eos_token_ids == (1,)


@pytest.mark.parametrize("space_prefix", [None, True, False])
def test_gguf_space_marks(space_prefix: bool | None, tmp_path: Path) -> None:
    path = gguf_file(
        tmp_path / "m.gguf",
        "llama",
        ["<unk>", "</s>", "<0xE2>", "▁a", "▁▁", "a", "pad"],
        [2, 3, 6, 1, 4, 4, 5],
        ends={"eos_token_id": 1},
        space_prefix=space_prefix,
    )
    texts = read_gguf(path)
    assert texts.tokens == [b"", b"", b"\xe2", b" a", b"  ", b"a", b""]
    assert texts.eos_token_ids == (1,)
    assert texts.drops_leading_space is (space_prefix is not False)


def test_gguf_that_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for kind, tokens, types, reason in (
        ("bert", ["a"], [1], "of the kind 'bert'"),
        ("gpt2", ["a", "b"], [1], "of what type each token is"),
        ("gpt2", ["a"], [9], "token 0 of the GGUF file has the type 9"),
        ("llama", ["a"], [6], "byte piece 'a'"),
        ("gpt2", ["a"], [1], "pass eos_token_ids"),
    ):
        gguf_file(path, kind, tokens, types)
        with pytest.raises(VocabularyError, match=reason):
            Vocabulary.from_gguf(path)
    gguf_file(path, "gpt2", ["a"], [1], ends={"eos_token_id": 0xFFFFFFFF})
    with pytest.raises(VocabularyError, match="eos_token_ids: 4294967295 is not a token id"):
        Vocabulary.from_gguf(path)


def gguf_bytes(*values: bytes, version: int = 3, count: int | None = None) -> bytes:
    number = len(values) if count is None else count
    return struct.pack("<4sIQQ", b"GGUF", version, 0, number) + b"".join(values)


def named(key: str, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value


TOKENS_KEY = "tokenizer.ggml.tokens"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"", "can't read the GGUF file"),
        (b"GGUF", "cut short"),
        (b"GGML" + bytes(20), "doesn't begin with GGUF"),
        (gguf_bytes(version=1), "version 0x1"),
        (gguf_bytes(version=3 << 24), "version 0x3000000"),
        (gguf_bytes(), "no tokenizer in it"),
        (gguf_bytes(count=1 << 60), "cut short"),
        (gguf_bytes(struct.pack("<Q", 1 << 62)), "cut short"),
        (gguf_bytes(named("x", 99, b"")), "unknown type 99"),
        (gguf_bytes(named("x", 9, struct.pack("<IQ", 4, 1 << 61))), "cut short"),
        (gguf_bytes(named("x", 9, struct.pack("<IQ", 8, 1 << 61))), "cut short"),
        (gguf_bytes(named("x", 9, struct.pack("<IQ", 9, 1) * 40)), "unknown type 9"),
        (gguf_bytes(named("tokenizer.ggml.model", 4, bytes(4))), "no tokenizer in it"),
        (
            gguf_bytes(named("tokenizer.ggml.model", 8, struct.pack("<Q", 1) + b"\xff")),
            "not UTF-8",
        ),
        (
            gguf_bytes(
                named("tokenizer.ggml.model", 8, struct.pack("<Q", 4) + b"gpt2"),
                named(TOKENS_KEY, 9, struct.pack("<IQ", 4, 2) + bytes(8)),
            ),
            "no tokenizer in it",
        ),
    ],
)
def test_bad_gguf_files(source: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(source)
    with pytest.raises(VocabularyError, match=reason):
        read_gguf(tmp_path / "m.gguf")


def test_gguf_path(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path, "nul\0"):
        with pytest.raises(VocabularyError, match="can't read the GGUF file"):
            Vocabulary.from_gguf(path)


@given(data=st.data())
def test_damaged_gguf_files_are_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    ends = {"eos_token_id": 1}
    gguf_file(path, "llama", ["<unk>", "</s>", "<0xE2>", "▁a"], [2, 3, 6, 1], ends=ends)
    source = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        source[data.draw(st.integers(0, len(source) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(source[: data.draw(st.integers(0, len(source)))])
    try:
        texts = read_gguf(path)
    except VocabularyError:
        return
    assert set(map(type, texts.tokens)) <= {bytes}
