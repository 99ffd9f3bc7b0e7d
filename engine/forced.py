"""Forced text: what a grammar leaves no choice about, and the tokens to write it in.

*Exact* forced tokens are those that are the only one their mask allows; taking them changes no
answer. *Canonical* ones are the tokens that the tokenizer itself would write for the forced bytes:
many more, and what the model was trained on. Both are found without the model.

Cost: a walk over the forced bytes, and one call of the tokenizer for canonical tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Spell: TypeAlias = Callable[[bytes], "list[int]"]
"""The tokenizer's tokens of a text, empty when they do not spell it exactly."""


class SupportsMatching(Protocol):
    """What the engine needs of a matcher; `grammaton.index.Matcher` is one."""

    def fill_mask(self, out: NDArray[np.int32], row: int = 0) -> None: ...
    def accept(self, token_id: int) -> bool: ...
    def accept_bytes(self, data: bytes) -> bool: ...
    def rollback(self, n: int) -> None: ...
    def forced_bytes(self) -> bytes: ...
    def forced_tokens(self) -> list[int]: ...
    @property
    def is_complete(self) -> bool: ...


class SupportsDecode(Protocol):
    """What spelling needs of a vocabulary; `grammaton.index.Vocabulary` is one."""

    def decode(self, token_ids: list[int]) -> bytes: ...


def speller(tokenizer: Any, vocabulary: SupportsDecode) -> Spell:
    """How a tokenizer writes a text, without half a character at its end.

    Args:
        tokenizer: a fast tokenizer of transformers.
        vocabulary: its tokens.
    """
    # The backend, not the tokenizer: it keeps no padding state that threads could trip over.
    backend = tokenizer.backend_tokenizer

    def spell(text: bytes) -> list[int]:
        whole = text.decode(errors="ignore")
        ids: list[int] = backend.encode(whole, add_special_tokens=False).ids
        # A space put in front or a special token's name in the text would spell something else.
        return ids if vocabulary.decode(ids) == whole.encode() else []

    return spell


def take_canonical(matcher: SupportsMatching, spell: Spell, *, room: int) -> list[int]:
    """Takes the tokenizer's tokens of the forced text, at most `room` of them.

    The last one is left to the model unless the text may end with it: what comes after might have
    been one token with it.
    """
    text = matcher.forced_bytes() if room > 0 else b""
    tokens = spell(text) if text else []
    for taken, token in enumerate(tokens):
        if not matcher.accept(token):
            # Another spelling of this text can't be finished with this vocabulary.
            matcher.rollback(taken)
            return []
    if tokens and not matcher.is_complete:
        matcher.rollback(1)
        del tokens[-1]
    if len(tokens) > room:
        matcher.rollback(len(tokens) - room)
        del tokens[room:]
    return tokens
