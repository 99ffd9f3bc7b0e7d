"""Saved vocabularies: what is loaded is what was saved, and nothing else is."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton import Grammar, VocabularyError, compile
from grammaton.index.saved_vocabulary import MAGIC, VERSION, pack, unpack
from grammaton.index.vocabulary import Vocabulary

TOKENS = st.lists(st.binary(max_size=6), min_size=1, max_size=12)
NAMES = st.text(max_size=4) | st.sampled_from(["</s>", "\ud800", "é"])


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    tokens = draw(TOKENS)
    ids = st.integers(0, len(tokens) - 1)
    vocabulary = Vocabulary(
        tokens,
        eos_token_ids=draw(st.lists(ids, min_size=1, max_size=3)),
        special_tokens=draw(st.dictionaries(NAMES, ids, max_size=3)),
        logits_size=len(tokens) + draw(st.integers(0, 70)),
    )
    vocabulary._drops_leading_space = draw(st.booleans())
    return vocabulary


def packed(vocabulary: Vocabulary) -> bytes:
    return pack(
        [vocabulary.token_bytes(i) for i in range(len(vocabulary))],
        vocabulary.eos_token_ids,
        vocabulary.special_tokens,
        vocabulary.logits_size,
        drops_leading_space=vocabulary.drops_leading_space,
    )


def contents(vocabulary: Vocabulary) -> Any:
    return (
        [vocabulary.token_bytes(i) for i in range(vocabulary.logits_size)],
        len(vocabulary),
        vocabulary.eos_token_ids,
        list(vocabulary.special_tokens.items()),
        vocabulary.drops_leading_space,
    )


def signed(body: bytes) -> bytes:
    """A file with a right checksum, as someone who means harm would make it."""
    return body + hashlib.sha256(body).digest()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved") / "model.vocabulary"


@given(vocabulary=vocabularies())
def test_what_is_loaded_is_what_was_saved(vocabulary: Vocabulary, place: Path) -> None:
    vocabulary.save(place)
    assert place.read_bytes() == packed(vocabulary)
    loaded = Vocabulary.load(place)
    assert contents(loaded) == contents(vocabulary)
    assert os.listdir(place.parent) == [place.name]


def test_a_loaded_vocabulary_gives_masks(tmp_path: Path) -> None:
    vocabulary = Vocabulary([b"a", b"ab", b"b", b""], eos_token_ids=3, logits_size=40)
    vocabulary.save(str(tmp_path / "small"))
    grammar = Grammar.from_regex("(ab)+")
    masks = [
        compile(grammar, v).matcher().mask().tolist()
        for v in (vocabulary, Vocabulary.load(str(tmp_path / "small")))
    ]
    assert masks[0] == masks[1] == [0b0011, 0]


@given(vocabularies(), st.data())
def test_every_cut_is_refused(vocabulary: Vocabulary, data: st.DataObject) -> None:
    file = packed(vocabulary)
    for at in (0, 1, len(file) - 1, data.draw(st.integers(0, len(file) - 1))):
        with pytest.raises(VocabularyError):
            unpack(file[:at])
    with pytest.raises(VocabularyError, match="cut short or damaged"):
        unpack(file + data.draw(st.binary(min_size=1, max_size=9)))


@given(vocabularies(), st.data())
def test_every_flipped_bit_is_refused(vocabulary: Vocabulary, data: st.DataObject) -> None:
    file = bytearray(packed(vocabulary))
    bits = st.integers(0, len(file) * 8 - 1)
    for bit in data.draw(st.lists(bits, min_size=1, max_size=4, unique=True)):
        file[bit // 8] ^= 1 << bit % 8
    with pytest.raises(VocabularyError):
        unpack(bytes(file))


def load_bytes(place: Path, data: bytes) -> Vocabulary | None:
    """The vocabulary in a file of these bytes, None when it is refused."""
    place.write_bytes(data)
    try:
        return Vocabulary.load(place)
    except VocabularyError:
        return None


@given(vocabulary=vocabularies(), data=st.data())
def test_damage_under_a_right_checksum_is_harmless(
    vocabulary: Vocabulary, data: st.DataObject, place: Path
) -> None:
    body = bytearray(packed(vocabulary)[:-32])
    words = len(body) // 4
    for _ in range(data.draw(st.integers(1, 3))):
        at = 4 * data.draw(st.integers(2, words - 1))
        value = data.draw(st.sampled_from([0, 1, 2, 3, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 24]))
        body[at : at + 4] = struct.pack("<I", value)
    loaded = load_bytes(place, signed(bytes(body)))
    if loaded is not None:
        assert contents(Vocabulary.load(place)) == contents(loaded)
        assert loaded.index.mask_words == loaded.mask_words


@given(data=st.binary(max_size=80))
def test_other_bytes_are_refused(data: bytes, place: Path) -> None:
    for start in (b"", MAGIC, MAGIC + struct.pack("<I", VERSION)):
        assert load_bytes(place, signed(start + data)) is None


def header(*numbers: int, version: int = VERSION, flags: int = 0) -> bytes:
    return struct.pack("<8sIIIIIIQQ", MAGIC, version, flags, *numbers)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (header(1, 1, 1, 0, 0, 0, version=2), "version 2; this grammaton reads version 1"),
        (header(1, 1, 1, 0, 0, 0, flags=2) + bytes(8), "never writes"),
        (header(1, 1 << 25, 1, 0, 0, 0) + bytes(8), "never writes"),
        (header(1, 1, 0, 0, 0, 0) + bytes(4), "no text could ever end"),
        (header(1, 1, 1, 0, 0, 0) + struct.pack("<II", 1, 0), "eos_token_ids: 1 is not a token id"),
        (header(1, 0, 1, 0, 0, 0) + bytes(8), "has no room"),
        (header(1, 1, 1, 0, 1, 0) + struct.pack("<II", 0, 2) + b"a", "don't add up"),
        (header(2, 2, 1, 0, 1, 0) + struct.pack("<III", 0, 1 << 31, 1 << 31) + b"a", "add up"),
        (header(1, 1, 1, 2, 0, 2) + struct.pack("<6I", 0, 0, 0, 1, 1, 0) + b"aa", "of one name"),
        (header(1, 1, 1, 1, 0, 1) + struct.pack("<4I", 0, 0, 1, 0) + b"\xff", "not UTF-8"),
        (header(1 << 24, 1 << 24, 1, 0, 1 << 60, 0), "cut short or damaged"),
    ],
)
def test_what_a_file_may_not_say(body: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(signed(body))
    with pytest.raises(VocabularyError, match=reason):
        Vocabulary.load(tmp_path / "bad")


def test_files_that_cant_be_read_or_written(tmp_path: Path) -> None:
    vocabulary = Vocabulary([b"a", b""], eos_token_ids=1)
    for path in (tmp_path / "absent", tmp_path, "nul\0"):
        with pytest.raises(VocabularyError, match="can't read the saved vocabulary"):
            Vocabulary.load(path)
    for path in (tmp_path / "no" / "folder", tmp_path, "nul\0"):
        with pytest.raises(VocabularyError, match="can't write the vocabulary"):
            vocabulary.save(path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(VocabularyError, match=r"no vocabulary that Vocabulary\.save wrote"):
        Vocabulary.load(__file__)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    Vocabulary([b"a", b""], eos_token_ids=1).save(path)
    Vocabulary([b"b", b""], eos_token_ids=1).save(path)
    assert Vocabulary.load(path).token_bytes(0) == b"b"
    assert list(tmp_path.iterdir()) == [path]
