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
from grammaton.index import Vocabulary


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
        CommandError: no such file.
        VocabularyError: it can't be used.
    """
    if path is None:
        return Vocabulary([*(bytes([i]) for i in range(256)), b""], eos_token_ids=256)
    file = _tokenizer_file(path)
    if not file.is_file():
        raise CommandError(f"there is no tokenizer at {file}", status=Status.USAGE)
    return Vocabulary.from_tokenizers(file, eos_token_ids=eos_token_ids or None)


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
    return file / "tokenizer.json" if file.is_dir() else file


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
