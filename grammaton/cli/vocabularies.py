"""Vocabularies for `grammaton explain`, and how a text is cut into their tokens.

Without a file, every byte is a token: enough to see what a grammar does. With one, a text is cut as
the tokenizer itself would (when the `tokenizers` library is there and gives back exactly the text),
or else by always taking the longest token that fits.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammaton.cli.console import CommandError, Status
from grammaton.errors import VocabularyError
from grammaton.index import Vocabulary
from grammaton.index.saved_vocabulary import MAGIC

_NAMES = ("tokenizer.json", "tekken.json", "tokenizer.model")
"""What a model's folder calls its tokenizer; the first that is there is read."""


@dataclass(frozen=True)
class Tokens:
    """A text in tokens.

    Attributes:
        ids: the tokens, in order.
        how: who cut it so, as a phrase.
    """

    ids: tuple[int, ...]
    how: str


def read_vocabulary(path: str | None, eos_token_ids: tuple[int, ...]) -> Vocabulary:
    """The vocabulary in a file or a model's folder; the 256 bytes for None.

    Raises:
        CommandError: no such file, or the file doesn't say which token ends a text.
        VocabularyError: it can't be used.
    """
    if path is None:
        return Vocabulary([*(bytes([i]) for i in range(256)), b""], eos_token_ids=256)
    file = _tokenizer_file(path)
    if not file.is_file():
        raise CommandError(f"there is no tokenizer at {file}", status=Status.USAGE)
    try:
        return _read(file, eos_token_ids)
    except VocabularyError as error:
        if eos_token_ids or "eos_token_ids" not in str(error):
            raise VocabularyError(f"{file}: {error}") from error
        message = (
            f"{file}: {error}\n"
            "Here that is --eos ID; when the text is all that matters, any unused id"
        )
        raise CommandError(message, status=Status.GRAMMAR) from error


def _read(file: Path, ends: tuple[int, ...]) -> Vocabulary:
    """Reads a file by what it begins with, and where that says nothing, by its name."""
    with file.open("rb") as stream:
        head = stream.read(8)
    eos = ends or None
    if head == MAGIC:
        return Vocabulary.load(file)
    if head[:4] == b"GGUF":
        return Vocabulary.from_gguf(file, eos_token_ids=eos)
    if head.lstrip()[:1] == b"{":
        if file.name.startswith("tekken"):
            return Vocabulary.from_tekken(file, eos_token_ids=eos)
        return Vocabulary.from_tokenizers(file, eos_token_ids=eos)
    if ".model" in file.name:
        return Vocabulary.from_sentencepiece(file, eos_token_ids=eos)
    # A rank file has no special tokens; what ends a text must be one.
    special = {f"<end {token_id}>": token_id for token_id in ends}
    return Vocabulary.from_tiktoken(file, special_tokens=special, eos_token_ids=eos)


def cut(text: bytes, vocabulary: Vocabulary, path: str | None) -> Tokens:
    """A text in tokens of a vocabulary, joined exactly the text.

    Raises:
        CommandError: no token begins with one of its bytes.
    """
    if path is not None:
        ids = _encoded(text, _tokenizer_file(path))
        if ids is not None and vocabulary.decode(ids) == text:
            return Tokens(tuple(ids), "the tokenizer's own")
    return Tokens(tuple(_longest(text, vocabulary)), "the longest that fit")


def _tokenizer_file(path: str) -> Path:
    file = Path(path)
    if not file.is_dir():
        return file
    there = [file / name for name in _NAMES if (file / name).is_file()]
    return there[0] if there else file / _NAMES[0]


def _encoded(text: bytes, file: Path) -> list[int] | None:
    if importlib.util.find_spec("tokenizers") is None:
        return None
    from tokenizers import Tokenizer

    try:
        tokenizer: Any = Tokenizer.from_file(str(file))
        ids: list[int] = tokenizer.encode(text.decode(), add_special_tokens=False).ids
    except Exception:  # not its format, or no UTF-8: the library raises bare exceptions
        return None
    return ids


def _longest(text: bytes, vocabulary: Vocabulary) -> Iterator[int]:
    ids: dict[bytes, int] = {}
    for token_id in range(len(vocabulary)):
        ids.setdefault(vocabulary.token_bytes(token_id), token_id)
    ids.pop(b"", None)
    longest = max(map(len, ids), default=0)
    at = 0
    while at < len(text):
        sizes = range(min(longest, len(text) - at), 0, -1)
        size = next((size for size in sizes if text[at : at + size] in ids), 0)
        if not size:
            raise CommandError(
                f"the vocabulary has no token for byte {at} of the text, 0x{text[at]:02X}",
                status=Status.GRAMMAR,
            )
        yield ids[text[at : at + size]]
        at += size
