"""`tokenizer.json`: tokenizers of every family that hypothesis puts together.

The property is that the joined bytes of an encoded text are the text, with the spaces that the
tokenizer itself puts before it; the tokenizers library encodes, and decodes each token as a second
word. Damaged files are refused with `VocabularyError`, whatever was damaged.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from grammaton.errors import VocabularyError
from grammaton.index.tokenizer_json import read_tokenizer_json
from grammaton.index.vocabulary import Vocabulary

# Few characters, so that merges and added tokens are met; some of 2, 3 and 4 bytes, one combining.
LETTERS = "ab<> é\u0301中😀\n"
WORDS = st.text(LETTERS, min_size=1, max_size=4)
# No piece of a model has an `s` in it: a special token with the id of a piece would silence it.
SPECIAL = ["<s>", "</s> ", "s中"]
TEXTS = st.lists(WORDS | st.sampled_from(SPECIAL), max_size=4).map("".join) | st.text(
    max_size=6
).filter(lambda text: "▁" not in text)
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


@st.composite
def added_tokens(draw: st.DrawFn, *, normalized: bool = True) -> list[AddedToken]:
    """Distinct added tokens, special ones among them."""
    plain = st.lists(WORDS | st.sampled_from(["▁▁", "Ġ", " a"]), max_size=3, unique=True)
    special = st.lists(st.sampled_from(SPECIAL), max_size=2, unique=True)
    return [
        *(
            AddedToken(content, normalized=normalized and draw(st.booleans()))
            for content in draw(plain)
        ),
        *(AddedToken(content, special=True, normalized=False) for content in draw(special)),
    ]


@st.composite
def merged(draw: st.DrawFn, alphabet: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """A vocabulary grown from single characters by merges, as BPE has it."""
    pieces, merges = list(alphabet), []
    for _ in range(draw(st.integers(0, 8))):
        pair = draw(st.sampled_from(pieces)), draw(st.sampled_from(pieces))
        if pair[0] + pair[1] not in pieces:
            merges.append(pair)
            pieces.append(pair[0] + pair[1])
    return pieces, merges


@st.composite
def byte_level(draw: st.DrawFn) -> Tokenizer:
    """Byte-level BPE: GPT-2's family."""
    table = pre_tokenizers.ByteLevel.alphabet()
    frequent = [
        character
        for letter in LETTERS
        for character in pre_tokenizers.ByteLevel(
            add_prefix_space=False, use_regex=False
        ).pre_tokenize_str(letter)[0][0]
    ]
    pieces, merges = draw(merged(frequent))
    pieces = list(dict.fromkeys([*pieces, *table]))
    tokenizer = Tokenizer(
        models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=draw(st.booleans())
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@st.composite
def byte_fallback(draw: st.DrawFn) -> Tokenizer:
    """BPE or Unigram over characters, `▁` for a space and bytes for what has no piece."""
    pieces, merges = draw(merged(["▁", "a", "b", "<", "é"]))
    vocab = ["<unk>", *BYTE_TOKENS, *pieces]
    model: Any
    if draw(st.booleans()):
        model = models.BPE(
            vocab={piece: i for i, piece in enumerate(vocab)},
            merges=merges,
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    else:
        model = models.Unigram(
            [(piece, -float(len(vocab) - i)) for i, piece in enumerate(vocab)],
            unk_id=0,
            byte_fallback=True,
        )
    return Tokenizer(model)


def encoded(tokenizer: Tokenizer, text: str) -> bytes:
    vocabulary = Vocabulary.from_tokenizers(tokenizer, eos_token_ids=0)
    # Id 0 may stand for text; only here is it read although it ends a sequence.
    tokens = read_tokenizer_json(tokenizer.to_str()).tokens
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert vocabulary.decode(ids) == b"".join(tokens[i] for i in ids if i != 0)
    return b"".join(tokens[i] for i in ids)


def cut_at(text: str, tokens: list[AddedToken]) -> list[str]:
    """A text cut around the contents of added tokens: leftmost first, then longest."""
    contents = sorted((token.content for token in tokens), key=len, reverse=True)
    if not contents:
        return [text]
    return re.split(f"({'|'.join(map(re.escape, contents))})", text)


def plain_cuts(text: str, added: list[AddedToken]) -> list[tuple[str, bool]]:
    """The pieces of a text whose special tokens are read as text, and whether each is a token.

    A special token still takes its place from shorter ones, as the library has it.
    """
    plain = {token.content for token in added if not token.special}
    pieces = [(piece, piece in plain) for piece in cut_at(text, added)]
    return [
        ("".join(piece for piece, _ in run), is_token)
        for is_token, runs in itertools.groupby(pieces, key=lambda piece: piece[1])
        for run in ([[piece] for piece in runs] if is_token else [list(runs)])
    ]


@given(tokenizer=byte_level(), added=added_tokens(), text=TEXTS)
def test_byte_level(tokenizer: Tokenizer, added: list[AddedToken], text: str) -> None:
    # "é" is also how the byte 0xE9 is written: such a token would share that byte's id.
    added = [token for token in added if tokenizer.token_to_id(token.content) is None]
    tokenizer.add_tokens(added)
    tokenizer.encode_special_tokens = True
    assert encoded(tokenizer, text) == text.encode()
    # Special tokens that the encoder recognises have no text.
    tokenizer.encode_special_tokens = False
    special = {token.content for token in added if token.special}
    rest = "".join(piece for piece in cut_at(text, added) if piece not in special)
    assert encoded(tokenizer, text) == rest.encode()


@given(tokenizer=byte_fallback(), added=added_tokens(), text=TEXTS)
def test_byte_fallback_without_a_prefix(
    tokenizer: Tokenizer, added: list[AddedToken], text: str
) -> None:
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_tokens(added)
    tokenizer.encode_special_tokens = True
    assert encoded(tokenizer, text) == text.encode()
    assert not read_tokenizer_json(tokenizer.to_str()).drops_leading_space


@given(tokenizer=byte_fallback(), added=added_tokens(normalized=False), text=TEXTS)
def test_byte_fallback_with_a_prefix(
    tokenizer: Tokenizer, added: list[AddedToken], text: str
) -> None:
    """Every piece between added tokens gets a space of its own, as in Llama 2's tokenizer."""
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_tokens(added)
    tokenizer.encode_special_tokens = True
    expected = "".join(
        piece if is_token or piece == "" else f" {piece}"
        for piece, is_token in plain_cuts(text, added)
    )
    assert encoded(tokenizer, text) == expected.encode()
    assert read_tokenizer_json(tokenizer.to_str()).drops_leading_space


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
@given(tokenizer=byte_fallback(), added=added_tokens(normalized=False), text=TEXTS)
def test_metaspace(scheme: Any, tokenizer: Tokenizer, added: list[AddedToken], text: str) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)]
    )
    tokenizer.add_tokens(added)
    tokenizer.encode_special_tokens = True
    expected, begins = "", True
    for piece, is_token in plain_cuts(text, added):
        wanted = scheme == "always" or (scheme == "first" and begins)
        if piece and not is_token and wanted and not piece.startswith(" "):
            expected += " "
        expected += piece
        begins = begins and piece == ""
    assert encoded(tokenizer, text) == expected.encode()
    drops = read_tokenizer_json(tokenizer.to_str()).drops_leading_space
    assert drops is (scheme != "never")


@given(st.data())
def test_each_token_is_what_the_library_decodes_it_to(data: st.DataObject) -> None:
    tokenizer = data.draw(byte_level() | byte_fallback())
    if tokenizer.decoder is None:
        tokenizer.decoder = data.draw(
            st.sampled_from(
                [
                    decoders.Sequence(
                        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
                    ),
                    decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]),
                ]
            )
        )
    tokens = read_tokenizer_json(tokenizer.to_str()).tokens
    before = tokenizer.token_to_id("a")
    assert before is not None
    for token_id, text in enumerate(tokens):
        if text and token_id != before:
            shown = tokenizer.decode([before, token_id])
            # A token that begins in the middle of a character shows as a mark for each byte.
            assert shown == "a" + text.decode(errors="replace") or "�" in shown


def word_piece(decoder: Any) -> Tokenizer:
    vocab = ["[UNK]", "a", "##b", "##", "#", "b", "é", "##,", ",", "[SEP]"]
    tokenizer = Tokenizer(
        models.WordPiece(vocab={piece: i for i, piece in enumerate(vocab)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens(["[SEP]"])
    return tokenizer


def test_word_piece_without_clean_up_is_read() -> None:
    tokenizer = word_piece(decoders.WordPiece(prefix="##", cleanup=False))
    vocabulary = Vocabulary.from_tokenizers(tokenizer, eos_token_ids=9)
    texts = [vocabulary.token_bytes(i) for i in range(10)]
    assert texts == [b"", b" a", b"b", b"", b" #", b" b", " é".encode(), b",", b" ,", b""]
    assert vocabulary.drops_leading_space
    assert vocabulary.special_tokens == {"[UNK]": 0, "[SEP]": 9}
    for text in ("ab a, é b", "a", "a ,"):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert vocabulary.decode(ids) == b" " + text.encode()
        assert vocabulary.decode(ids)[1:].decode() == tokenizer.decode(ids)
    for token_id in range(1, 9):
        shown = tokenizer.decode([1, token_id])
        assert shown == "a" + vocabulary.token_bytes(token_id).decode()


def test_word_piece_marks_must_be_taken_away() -> None:
    for decoder, reason in (
        (decoders.WordPiece(prefix="##", cleanup=True), "with clean-up"),
        (decoders.WordPiece(prefix="@@", cleanup=False), "'##' and its decoder takes away '@@'"),
        (decoders.ByteLevel(), "its decoder doesn't take the mark away"),
        (None, "no decoder"),
    ):
        with pytest.raises(VocabularyError, match=reason):
            read_tokenizer_json(word_piece(decoder).to_str())


def test_word_piece_without_marks_is_a_vocabulary_like_any_other() -> None:
    document = json.loads(word_piece(decoders.ByteLevel()).to_str())
    document["model"]["continuing_subword_prefix"] = ""
    assert read_tokenizer_json(json.dumps(document)).tokens[1:3] == [b"a", b"##b"]
    document["decoder"] = {"type": "WordPiece", "prefix": "", "cleanup": False}
    texts = read_tokenizer_json(json.dumps(document))
    assert texts.tokens[1:3] == [b"a", b"##b"]
    assert not texts.drops_leading_space


def test_two_texts_for_an_id_and_two_ids_for_a_text() -> None:
    model: dict[str, Any] = {"type": "BPE", "vocab": {"a": 0, "b": 0}}
    document = {"model": model, "decoder": {"type": "ByteLevel"}}
    with pytest.raises(VocabularyError, match="id 0 stands for both 'a' and 'b'"):
        read_tokenizer_json(json.dumps(document))
    document["model"] = {"type": "Unigram", "vocab": [["a", -1], ["a", -2]]}
    assert read_tokenizer_json(json.dumps(document)).tokens == [b"a", b"a"]


@pytest.mark.parametrize("token_id", [-1, 1 << 24, 1 << 80])
def test_ids_out_of_proportion(token_id: int) -> None:
    document = {"model": {"vocab": {"a": token_id}}, "decoder": {"type": "ByteLevel"}}
    with pytest.raises(VocabularyError, match=f"token id {token_id} is not from 0 to 16777215"):
        read_tokenizer_json(json.dumps(document))


def test_lone_surrogates_stand_for_no_bytes() -> None:
    document = {"model": {"vocab": {"\ud800": 0}}, "decoder": {"type": "ByteLevel"}}
    with pytest.raises(VocabularyError, match=r"'\\ud800' holds a lone surrogate"):
        read_tokenizer_json(json.dumps(document))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to every part of a JSON document."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def small_document() -> Any:
    tokenizer = Tokenizer(models.BPE({"a": 0, "▁": 1, "<0x41>": 2}, [], unk_token="a"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_tokens([AddedToken("b", special=True), AddedToken("▁▁", normalized=True)])
    return json.loads(tokenizer.to_str())


def small_documents() -> list[Any]:
    unigram = small_document()
    unigram["model"] = {"type": "Unigram", "vocab": [["a", 0.0], ["b", -1.0]], "unk_id": 0}
    unigram["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}
    words = json.loads(word_piece(decoders.WordPiece(cleanup=False)).to_str())
    return [small_document(), unigram, words]


DOCUMENTS = small_documents()
WRONG: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1 << 70, 1.5, "", "x", "\ud800", [], [[]], {}, {"type": []}]
)


@given(st.sampled_from(DOCUMENTS), st.data())
def test_a_damaged_file_is_read_or_refused(original: Any, data: st.DataObject) -> None:
    document = copy.deepcopy(original)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(document)))
        wrong = copy.deepcopy(data.draw(WRONG))
        if path == ():
            document = wrong
            break
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = wrong
    try:
        texts = read_tokenizer_json(json.dumps(document))
    except VocabularyError:
        return
    assert set(map(type, texts.tokens)) <= {bytes}


@given(st.binary(max_size=20) | st.integers(0, 400).map(lambda n: b"[" * n * 100))
def test_what_is_no_json_is_refused(source: bytes) -> None:
    with pytest.raises(VocabularyError):
        read_tokenizer_json(source)
