"""`Vocabulary` built from bytes and from small tokenizers made here, one of each family.

The independent word on what a token means is the tokenizers library's own `decode`, and the
property that matters is that the joined bytes of an encoded text are the text.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from grammaton.errors import GrammarError, VocabularyError
from grammaton.grammar.grammar import Grammar
from grammaton.index import compile
from grammaton.index.tokenizer_json import read_tokenizer_json
from grammaton.index.vocabulary import Vocabulary

CORPUS = [
    "the cat sat on the mat, and the other cat sat on the hat",
    "def fibonacci(n):\n    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n",
    '{"name": "Zoë", "tags": ["café", "naïve"], "n": 12.5e-3}',
    "日本語のテキスト 日本語 中文 한국어 😀😀 👩‍👩‍👧",
]


def byte_level() -> Tokenizer:
    """A trained byte-level BPE, with special and plain added tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        CORPUS * 20,
        trainers.BpeTrainer(
            vocab_size=420,
            special_tokens=["<|end|>", "<|start|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer.add_tokens(["    ", "<think>", "naïveté"])
    tokenizer.encode_special_tokens = True
    return tokenizer


def byte_fallback(*, prefix: bool) -> Tokenizer:
    """A trained SentencePiece-like BPE: `▁` for spaces, `<0xNN>` for what it doesn't know."""
    alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.train_from_iterator(
        [*CORPUS[:3]] * 20, trainers.BpeTrainer(vocab_size=200, show_progress=False)
    )
    model = json.loads(trained.to_str())["model"]
    pieces = ["<unk>", "</s>", *alphabet, *model["vocab"], "▁▁"]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: token_id for token_id, piece in enumerate(pieces)},
            merges=[*map(tuple, model["merges"]), ("▁", "▁")],
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [*([normalizers.Prepend("▁")] if prefix else []), normalizers.Replace(" ", "▁")]
    )
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(
        [*steps, *([decoders.Strip(" ", 1, 0)] if prefix else [])]
    )
    tokenizer.add_special_tokens(["</s>"])
    # As in Gemma's vocabulary: a run of spaces that is also an added token.
    tokenizer.add_tokens([AddedToken("▁▁", normalized=False)])
    return tokenizer


def document(decoder: Any = None, **model: Any) -> str:
    """A tokenizer.json with these parts."""
    return json.dumps({"added_tokens": [], "decoder": decoder, "model": {"type": "BPE", **model}})


BYTE_LEVEL = byte_level()
FALLBACK = {prefix: byte_fallback(prefix=prefix) for prefix in (True, False)}

TEXTS = st.text() | st.lists(
    st.sampled_from(
        ["    ", " ", "<think>", "naïveté", "<|end|>", "</s>", "<0x41>", "e\u0301", "😀", "the cat"]
    )
).map("".join)


@given(TEXTS)
def test_bytes_of_an_encoded_text_are_the_text_in_a_byte_level_vocabulary(text: str) -> None:
    vocabulary = Vocabulary.from_tokenizers(BYTE_LEVEL, eos_token_ids=0)
    ids = BYTE_LEVEL.encode(text, add_special_tokens=False).ids
    assert vocabulary.decode(ids) == text.encode()


@pytest.mark.parametrize("prefix", [True, False])
@given(text=TEXTS.filter(lambda text: "▁" not in text))
def test_bytes_of_an_encoded_text_are_the_text_in_a_byte_fallback_vocabulary(
    prefix: bool, text: str
) -> None:
    tokenizer = FALLBACK[prefix]
    vocabulary = Vocabulary.from_tokenizers(tokenizer, eos_token_ids=1)
    tokenizer.encode_special_tokens = True
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert vocabulary.drops_leading_space is prefix
    assert vocabulary.decode(ids) == (" " * (prefix and text != "") + text).encode()


@pytest.mark.parametrize(
    "tokenizer", [BYTE_LEVEL, *FALLBACK.values()], ids=["byte-level", "prefixed", "fallback"]
)
def test_each_token_is_what_the_library_decodes_it_to(tokenizer: Tokenizer) -> None:
    # The library reads this one through the byte table when it decodes, though not when it encodes.
    odd = tokenizer.token_to_id("naïveté")
    vocabulary = Vocabulary.from_tokenizers(tokenizer, eos_token_ids=1)
    before = tokenizer.encode("t", add_special_tokens=False).ids
    shown = tokenizer.decode(before)
    for token_id in range(tokenizer.get_vocab_size()):
        if (text := vocabulary.token_bytes(token_id)) and token_id != odd:
            expected = shown + text.decode(errors="replace")
            assert tokenizer.decode([*before, token_id]) == expected


def test_added_tokens_are_literal_unless_the_model_has_them() -> None:
    vocabulary = Vocabulary.from_tokenizers(BYTE_LEVEL, eos_token_ids=0)
    by_text = {vocabulary.token_bytes(i): i for i in range(len(vocabulary))}
    # "ï" and "é" are in GPT-2's table, where they stand for single bytes: not in an added token.
    assert by_text["naïveté".encode()] == BYTE_LEVEL.token_to_id("naïveté")
    assert by_text[b"    "] == BYTE_LEVEL.token_to_id("    ")
    gemma = Vocabulary.from_tokenizers(FALLBACK[False], eos_token_ids=1)
    spaces = FALLBACK[False].token_to_id("▁▁")
    assert spaces is not None
    assert gemma.token_bytes(spaces) == b"  "


def test_special_tokens_have_no_text() -> None:
    vocabulary = Vocabulary.from_tokenizers(BYTE_LEVEL, eos_token_ids=0)
    assert vocabulary.special_tokens == {"<|end|>": 0, "<|start|>": 1}
    assert vocabulary.decode([0, 1]) == b""
    # Spelled in ordinary tokens they are text like any other.
    ids = BYTE_LEVEL.encode("<|end|>", add_special_tokens=False).ids
    assert vocabulary.decode(ids) == b"<|end|>"


def test_unknown_token_has_no_text() -> None:
    vocabulary = Vocabulary.from_tokenizers(FALLBACK[True], eos_token_ids=1)
    assert vocabulary.special_tokens == {"<unk>": 0, "</s>": 1}
    assert vocabulary.token_bytes(0) == b""


def test_unigram_with_metaspace() -> None:
    tokenizer = Tokenizer(
        models.Unigram([("<unk>", 0.0), ("▁the", -1.0), ("▁", -2.0), ("x", -3.0)], unk_id=0)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    vocabulary = Vocabulary.from_tokenizers(tokenizer, eos_token_ids=0)
    assert [vocabulary.token_bytes(i) for i in range(4)] == [b"", b" the", b" ", b"x"]
    assert vocabulary.drops_leading_space


def test_holes_and_equal_tokens() -> None:
    texts = read_tokenizer_json(
        document({"type": "ByteFallback"}, vocab={"</s>": 0, "A": 2, "<0x41>": 5})
    )
    assert texts.tokens == [b"</s>", b"", b"A", b"", b"", b"A"]
    vocabulary = Vocabulary(texts.tokens, eos_token_ids=0)
    assert [vocabulary.token_bytes(i) for i in range(3)] == [b"", b"", b"A"]


def test_a_path_reads_the_end_of_sequence_from_the_file_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    BYTE_LEVEL.save(str(path))
    with pytest.raises(VocabularyError, match=r"pass eos_token_ids.*<\|end\|>"):
        Vocabulary.from_tokenizers(path)
    for name in ("<|start|>", {"content": "<|start|>"}):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": name}))
        assert Vocabulary.from_tokenizers(path).eos_token_ids == (1,)
    assert Vocabulary.from_tokenizers(str(path), eos_token_ids=[0]).eos_token_ids == (0,)


def test_wider_logits_have_an_empty_tail() -> None:
    vocabulary = Vocabulary([b"a", b"b", b""], eos_token_ids=2, logits_size=65)
    assert (len(vocabulary), vocabulary.logits_size, vocabulary.mask_words) == (3, 65, 3)
    assert vocabulary.token_bytes(64) == b""
    assert repr(vocabulary) == "Vocabulary(3 tokens, 0 special, eos 2, 65 logits)"


def test_narrower_logits_may_only_cut_ids_without_text() -> None:
    vocabulary = Vocabulary(
        [b"a", b"", b"<image>"], eos_token_ids=1, special_tokens={"<image>": 2}, logits_size=2
    )
    assert (len(vocabulary), vocabulary.special_tokens) == (2, {})
    for size in (1, 0, -5):
        with pytest.raises(VocabularyError, match="has no room for token"):
            Vocabulary([b"a", b"", b"b"], eos_token_ids=1, logits_size=size)


def test_end_of_sequence_ids_may_be_several_and_have_no_text() -> None:
    vocabulary = Vocabulary([b"a", b"</s>", b"end"], eos_token_ids=[np.int64(2), 1, 2])
    assert vocabulary.eos_token_ids == (1, 2)
    assert vocabulary.decode(np.array([0, 1, 2, 0])) == b"aa"


@pytest.mark.parametrize("ends", [[], 3, -1, [0, 3], ["a"], [1.5]])
def test_bad_end_of_sequence_ids(ends: Any) -> None:
    with pytest.raises(VocabularyError, match="eos_token_ids"):
        Vocabulary([b"a", b"b", b"c"], eos_token_ids=ends)


def test_bad_arguments() -> None:
    with pytest.raises(VocabularyError, match="token 1 is str, not bytes"):
        Vocabulary([b"a", "b"], eos_token_ids=0)  # type: ignore[list-item]
    with pytest.raises(VocabularyError, match="special_tokens: 9 is not a token id"):
        Vocabulary([b"a"], eos_token_ids=0, special_tokens={"x": 9})
    vocabulary = Vocabulary([b"a", b""], eos_token_ids=1)
    for token_id in (-1, 2):
        with pytest.raises(VocabularyError, match=f"token id {token_id} is outside"):
            vocabulary.token_bytes(token_id)
    with pytest.raises(VocabularyError, match="can't read the tokenizer"):
        Vocabulary.from_tokenizers("no/such/tokenizer.json")
    makers: list[tuple[Any, str]] = [
        (Vocabulary.from_tokenizers, "from_tokenizers needs a tokenizers.Tokenizer or the path"),
        (Vocabulary.from_tiktoken, "from_tiktoken needs a tiktoken.Encoding or the path"),
        (Vocabulary.from_sentencepiece, "from_sentencepiece needs a SentencePieceProcessor, bytes"),
    ]
    for made, reason in makers:
        with pytest.raises(VocabularyError, match=reason):
            made(None)
    with pytest.raises(VocabularyError, match="logits_size=16777217 is more than"):
        Vocabulary([b"a"], eos_token_ids=0, logits_size=(1 << 24) + 1)
    with pytest.raises(VocabularyError, match="neither backed by the tokenizers library"):
        Vocabulary.from_transformers(object())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{", "must be JSON"),
        ("[]", "a JSON object, not list"),
        ("{}", 'an object with a "model"'),
        (document({"type": "WordPiece"}, type="WordPiece", vocab={"a": 0}), "WordPiece"),
        (document({"type": "ByteLevel"}, vocab={"a": 0}, end_of_word_suffix="</w>"), "</w>"),
        (document({"type": "BPEDecoder"}, vocab={"a": 0}), "BPEDecoder"),
        (document(None, vocab={"a": 0}), "no decoder"),
        (document({"type": "Strip", "content": " ", "start": 1}, vocab={"a": 0}), "Strip"),
        (
            document({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "a"}, vocab={}),
            "only plain strings",
        ),
    ],
)
def test_what_is_not_lossless_is_refused(source: str, reason: str) -> None:
    with pytest.raises(VocabularyError, match=reason):
        read_tokenizer_json(source)


def test_threads_share_one_index() -> None:
    vocabulary = Vocabulary.from_tokenizers(BYTE_LEVEL, eos_token_ids=0)
    with ThreadPoolExecutor(4) as pool:
        indices = list(pool.map(lambda _: vocabulary.index, range(16)))
    assert all(index is indices[0] for index in indices)
    assert indices[0].mask_words == vocabulary.mask_words


def test_compile_names_what_it_needs() -> None:
    vocabulary = Vocabulary([b"a", b""], eos_token_ids=1)
    with pytest.raises(GrammarError, match=r"needs a Grammar, not str; Grammar\.from_json_schema"):
        compile("a+", vocabulary)  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="needs a Vocabulary, not list"):
        compile(Grammar.literal("a"), [b"a"])  # type: ignore[arg-type]
    matcher = compile(Grammar.literal("aa"), vocabulary).matcher()
    assert all(map(matcher.accept, [0, 0, 1]))
    assert matcher.is_finished


def test_prepare_makes_what_schemas_share() -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [b'{"', b'": "', b'"}', b'", "', b"true", b"12", b"ab", b"abc", "é".encode(), b"\\n"]
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    vocabulary.prepare()
    made = vocabulary.index.stats()["frame_masks_made"]
    assert made > 0
    schema = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "number"}}}
    matcher = compile(Grammar.from_json_schema(schema), vocabulary).matcher()
    for byte in '{"x": "é\\n", "y": -1.5e3}'.encode():
        matcher.mask()
        assert matcher.accept_bytes(bytes([byte]))
    assert matcher.is_complete
    plain = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    other = compile(Grammar.from_json_schema(schema), plain).matcher()
    for byte in '{"x": "é\\n", "y": -1.5e3}'.encode():
        other.mask()
        other.accept_bytes(bytes([byte]))
    with_all_to_make = plain.index.stats()["frame_masks_made"]
    assert vocabulary.index.stats()["frame_masks_made"] - made < with_all_to_make

    Vocabulary([b"a", b""], eos_token_ids=1).prepare()  # can't write JSON, and need not
