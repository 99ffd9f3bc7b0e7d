"""What a tokenizer says about its ids, however it is stored: `TokenTexts`.

A *reader* takes one kind of file or object and gives `TokenTexts`; `Vocabulary.from_*` makes a
vocabulary of it. The kinds spell a token's bytes in one of these ways, which are decoded here:

- *byte-level*: every character of a string stands for one byte, by GPT-2's table, in which
  printable Latin-1 is itself and the other bytes are shifted to U+0100 and up (`Ġ` is a space);
- *space mark*: the string is the text, and `▁` (U+2581) in it is a space;
- *byte token*: the string `<0xNN>` is one byte.

Strings that no UTF-8 text can hold (lone surrogates), ids out of proportion and ids that stand for
two texts are refused here, once for every reader.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from grammaton.errors import VocabularyError
from grammaton.limits import MAX_TOKEN_IDS

SPACE_MARK = "\u2581"


def _byte_level_table() -> dict[str, int]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + n): byte for n, byte in enumerate(shifted)
    }


BYTE_DECODER = _byte_level_table()
"""GPT-2's table: the byte that each character of a byte-level token stands for."""

_BYTE_LEVEL = str.maketrans(BYTE_DECODER)
_BYTE_LEVEL_CHARACTERS = frozenset(BYTE_DECODER)

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class TokenTexts:
    """The tokens of a tokenizer.

    Attributes:
        tokens: the bytes of each id, `b""` for special tokens and for ids without text.
        special_tokens: the id of each special token, by name; the unknown token is one of them.
        drops_leading_space: whether the tokenizer's decoder removes one space at the start of a
            whole text.
        eos_token_ids: the ids that end a sequence, as far as the source says.
    """

    tokens: list[bytes]
    special_tokens: dict[str, int]
    drops_leading_space: bool = False
    eos_token_ids: tuple[int, ...] = ()


def token_texts(
    texts: Mapping[int, bytes],
    special_tokens: Mapping[str, int],
    *,
    size: int = 0,
    drops_leading_space: bool = False,
    eos_token_ids: Iterable[int] = (),
) -> TokenTexts:
    """Lays the texts out by id, without those of special tokens; other ids have none.

    Args:
        texts: the bytes of ids that stand for text.
        special_tokens: ids by name that don't.
        size: how many ids there are, if more than these.
        drops_leading_space, eos_token_ids: as in `TokenTexts`.

    Raises:
        VocabularyError: an id that is no integer, negative, or not below `MAX_TOKEN_IDS`.
    """
    for ids in (texts.keys(), special_tokens.values()):
        for kind in set(map(type, ids)):
            if kind is not int:
                wrong = next(token_id for token_id in ids if type(token_id) is kind)
                raise VocabularyError(f"{wrong!r} is no token id; ids are integers from 0")
        if ids and (min(ids) < 0 or max(ids) >= MAX_TOKEN_IDS):
            wrong = min(ids) if min(ids) < 0 else max(ids)
            raise VocabularyError(
                f"token id {wrong} is not from 0 to {MAX_TOKEN_IDS - 1}, the ids that a "
                "vocabulary may have"
            )
        size = max(size, max(ids, default=-1) + 1)
    tokens = [b""] * size
    for token_id, text in texts.items():
        tokens[token_id] = text
    for token_id in special_tokens.values():
        tokens[token_id] = b""
    return TokenTexts(tokens, dict(special_tokens), drops_leading_space, tuple(eos_token_ids))


def utf8(text: str) -> bytes:
    """The bytes of a text.

    Raises:
        VocabularyError: a lone surrogate in it, which stands for no bytes.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise VocabularyError(
            f"the token {text!a} holds a lone surrogate, which stands for no bytes"
        ) from None


def byte_level(text: str) -> bytes:
    """The bytes that a string of a byte-level tokenizer stands for.

    A string with any character outside GPT-2's table stands for itself, as the tokenizers library
    decodes it.
    """
    if _BYTE_LEVEL_CHARACTERS.issuperset(text):
        return text.translate(_BYTE_LEVEL).encode("latin-1")
    return utf8(text)


def byte_token(text: str) -> bytes | None:
    """The byte that `<0xNN>` stands for; None for any other string."""
    match = _BYTE_TOKEN.fullmatch(text)
    return bytes((int(match[1], 16),)) if match else None


def read_source(path: str | PathLike[str], what: str) -> bytes:
    """The bytes of a file; `what` names it in the error.

    Raises:
        VocabularyError: it can't be read.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise VocabularyError(f"can't read the {what}: {error}") from error


def write_source(path: str | PathLike[str], data: bytes, what: str) -> None:
    """Writes a file beside its place and moves it there, so that no reader meets half of it.

    Raises:
        VocabularyError: it can't be written.
    """
    try:
        place = Path(path)
        fresh = place.with_name(f".{place.name}-{os.urandom(8).hex()}")
        try:
            with open(fresh, "xb") as file:
                file.write(data)
            os.replace(fresh, place)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise VocabularyError(f"can't write the {what}: {error}") from error
