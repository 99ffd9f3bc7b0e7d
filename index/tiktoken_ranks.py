"""Tokens of tiktoken: rank files, and `tiktoken.Encoding` objects.

A rank file has a line for each token: its bytes in base64 and its rank, which is its id. Nothing is
lost in it. It doesn't name special tokens; those are the caller's to give, and an `Encoding`
carries them. An id may have neither.

Reading a file of 200,000 tokens costs about 0.1 s.
"""

from __future__ import annotations

import base64
import operator
from collections.abc import Mapping
from typing import Protocol

from grammaton.errors import VocabularyError
from grammaton.index.token_texts import TokenTexts, token_texts

END_OF_TEXT = "<|endoftext|>"
"""The special token that ends a text in every encoding that OpenAI published."""


class Encoding(Protocol):
    """The part of `tiktoken.Encoding` that is used."""

    @property
    def n_vocab(self) -> int: ...
    @property
    def special_tokens_set(self) -> set[str]: ...
    def encode_single_token(self, text_or_bytes: str | bytes) -> int: ...
    def decode_single_token_bytes(self, token: int) -> bytes: ...
    def is_special_token(self, token: int) -> bool: ...


def is_encoding(value: object) -> bool:
    """Whether this is a `tiktoken.Encoding`, or can be read like one."""
    names = [name for name in vars(Encoding) if not name.startswith("_")]
    return all(hasattr(value, name) for name in names)


def read_encoding(encoding: Encoding, special_tokens: Mapping[str, int] = {}) -> TokenTexts:
    """The tokens of an `Encoding`; `special_tokens` are further ones.

    Raises:
        VocabularyError: a special token takes the id of a text.
    """
    special = {name: encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    texts = {}
    for token_id in range(encoding.n_vocab):
        if not encoding.is_special_token(token_id):
            try:
                texts[token_id] = encoding.decode_single_token_bytes(token_id)
            except KeyError:
                continue  # ids may have gaps
    return _with_specials(texts, special | dict(special_tokens))


def read_ranks(source: bytes, special_tokens: Mapping[str, int] = {}) -> TokenTexts:
    """The tokens of a rank file, and the special tokens beside it.

    Raises:
        VocabularyError: a line that isn't base64 and a rank, a rank twice, an empty file, or a
            special token that takes the id of a text.
    """
    texts: dict[int, bytes] = {}
    for number, line in enumerate(source.splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = line.split()
            token_id = _rank(rank)
            text = base64.b64decode(token, validate=True)
        except ValueError:
            raise VocabularyError(
                f"line {number} of the tiktoken file is no base64 text and rank: {line[:80]!r}"
            ) from None
        if token_id in texts:
            raise VocabularyError(f"line {number} of the tiktoken file has rank {token_id} again")
        texts[token_id] = text
    if not texts:
        raise VocabularyError("the tiktoken file is empty")
    return _with_specials(texts, special_tokens)


def _rank(digits: bytes) -> int:
    # int() would read signs and underscores too, and the length bounds the time it takes.
    if not digits.isdigit() or len(digits) > 20:
        raise ValueError
    return int(digits)


def _with_specials(texts: Mapping[int, bytes], special_tokens: Mapping[str, int]) -> TokenTexts:
    special = {}
    for name, token_id in special_tokens.items():
        if not hasattr(token_id, "__index__"):
            raise VocabularyError(f"the special token {name!r} has the id {token_id!r}, no integer")
        special[name] = operator.index(token_id)  # numpy's integers too
        if token_id in texts:
            raise VocabularyError(
                f"the special token {name!r} has the id {token_id}, which stands for the text "
                f"{texts[token_id]!r}"
            )
    end = special.get(END_OF_TEXT)
    return token_texts(texts, special, eos_token_ids=() if end is None else (end,))
