"""The slow, obviously right counterpart of `grammaton._core`, for tests to compare with.

Same names and signatures with `Reference` in front: `ReferenceStore`, `ReferenceRecognizer`,
`ReferenceIndex`, `ReferenceConstraint`, `ReferenceMatcher`. Membership comes from `reference_terms`
(spans in a text), what may follow a prefix from `reference_language` (Earley over characters).

What a vocabulary can spell (docs/machine.md): S1 is the code points each of whose UTF-8
bytes is an ordinary token, S2 those that are ordinary tokens themselves. The language becomes its
texts over both, and a token may end in mid-character only if a code point of S1 that the grammar
permits completes it. A mask tries every token. The end-of-sequence ids are allowed exactly where
the text may end; they, other special ids and tokens without bytes never match text.

Cost: a mask is one Earley column for every whole-character prefix of a token, a millisecond or so
a token on small grammars. Left recursion is accepted here, through templates too (the core refuses
those). Limits are taken for the signatures' sake and not enforced.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grammaton.errors import UnsatisfiableGrammar, VocabularyError
from grammaton.limits import Limits
from tests.reference_derivatives import Spelling, split_characters
from tests.reference_language import Language, ReferenceTooHardError
from tests.reference_terms import (
    LAST_CODE_POINT,
    TermTable,
    decode_json_contents,
    is_utf8,
    normal_ranges,
)

__all__ = [
    "ReferenceConstraint",
    "ReferenceIndex",
    "ReferenceMatcher",
    "ReferenceRecognizer",
    "ReferenceStore",
    "ReferenceTooHardError",
    "allowed_tokens",
    "decode_json_contents",
    "enumerate_language",
    "is_utf8",
    "mask_to_ids",
    "reference_mask",
    "spelling_of",
]


class ReferenceStore(TermTable):
    """`grammaton._core.TermStore` by brute force; it has `accepts(term, text)` besides."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__()
        self.limits = limits or Limits()
        self._residuals: dict[int, Language] = {}

    def is_empty(self, term: int) -> bool:
        base, prefix = self._base(term)
        return not self._goes_on(base, prefix)

    def derivative(self, term: int, byte: int) -> int:
        """A node ("residual", base, prefix): the texts w with prefix·w in the base's language."""
        self._check([term], regular=True)
        base, prefix = self._base(term)
        prefix += bytes([byte])
        if not self._goes_on(base, prefix):
            return self.NOTHING
        return self.intern(("residual", base, prefix))

    def _goes_on(self, base: int, prefix: bytes) -> bool:
        if not self.is_regular(base):
            return Language(self, base).viable(prefix)
        if base not in self._residuals:
            self._residuals[base] = Language(self, base)
        return self._residuals[base].viable(prefix)

    def _base(self, term: int) -> tuple[int, bytes]:
        match self.nodes[term]:
            case ("residual", int(base), bytes(prefix)):
                return base, prefix
        return term, b""


def enumerate_language(
    store: ReferenceStore, term: int, max_len: int, alphabet: Sequence[bytes]
) -> list[bytes]:
    """The texts of at most `max_len` pieces of `alphabet` in the language, shortest first.

    Tries all len(alphabet) ** max_len of them.
    """
    texts = (b"".join(t) for n in range(max_len + 1) for t in product(alphabet, repeat=n))
    return [text for text in dict.fromkeys(texts) if store.accepts(term, text)]


class ReferenceRecognizer:
    """`grammaton._core.Recognizer`: a machine over bytes without a vocabulary."""

    def __init__(self, store: ReferenceStore, start: int, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._store = store
        self._start = start
        self._language = Language(store, start)
        if self._language.is_empty:
            raise UnsatisfiableGrammar("no text satisfies the grammar")

    def accepts(self, text: bytes) -> bool:
        return self._store.accepts(self._start, text)

    def accepts_prefix(self, text: bytes) -> bool:
        return self._language.viable(text)

    def longest_prefix(self, text: bytes) -> int:
        return next(n for n in range(len(text), -1, -1) if self._language.viable(text[:n]))


def spelling_of(tokens: Sequence[bytes], ordinary: Sequence[bool]) -> Spelling:
    """What the ordinary tokens can spell: S1 as `bytewise`, with S2 as `whole`."""
    texts = {token for token, is_ordinary in zip(tokens, ordinary, strict=True) if is_ordinary}
    single = {token[0] for token in texts if len(token) == 1}
    tails = [byte for byte in range(0x80, 0xC0) if byte in single]
    bytewise: list[tuple[int, int]] = [(byte, byte) for byte in single if byte < 0x80]
    for lead in single:
        length = 2 if 0xC2 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4
        if not 0xC2 <= lead <= 0xF4:
            continue
        if len(tails) == 64:
            bits = (lead & (0xFF >> (length + 1))) << 6 * (length - 1)
            floor = {2: 0x80, 3: 0x800, 4: 0x10000}[length]
            ceiling = min(bits + (1 << 6 * (length - 1)) - 1, LAST_CODE_POINT)
            bytewise.append((max(bits, floor), ceiling))
            continue
        for tail in product(tails, repeat=length - 1):
            character = bytes([lead, *tail])
            if is_utf8(character):
                bytewise.append((ord(character.decode()), ord(character.decode())))
    whole = list(bytewise)
    for text in texts:
        if is_utf8(text) and len(text.decode()) == 1:
            whole.append((ord(text.decode()), ord(text.decode())))
    return Spelling(bytewise=normal_ranges(bytewise), whole=normal_ranges(whole))


def plain_text(ordinary: Sequence[bool], eos_ids: Sequence[int]) -> list[bool]:
    """Which ids match text: the ordinary ones that do not end it."""
    return [flag and token_id not in eos_ids for token_id, flag in enumerate(ordinary)]


def allowed_tokens(
    language: Language,
    tokens: Sequence[bytes],
    ordinary: Sequence[bool],
    eos_ids: Sequence[int],
    prefix: bytes,
) -> set[int]:
    """The ids that may follow `prefix`, by trying each; `language` has the tokens' spelling."""
    allowed = {
        token_id
        for token_id, token in enumerate(tokens)
        if ordinary[token_id] and token
        if language.viable(prefix + token)
    }
    return allowed | set(eos_ids) if language.accepts(prefix) else allowed


def reference_mask(
    store: ReferenceStore,
    start: int,
    tokens: Sequence[bytes],
    ordinary: Sequence[bool],
    eos_ids: Sequence[int],
    prefix_tokens: Sequence[int] = (),
) -> set[int]:
    """The ids allowed after the ids `prefix_tokens`, which must be allowed themselves."""
    if any(token_id in eos_ids for token_id in prefix_tokens):
        return set()
    prefix = b"".join(tokens[token_id] for token_id in prefix_tokens)
    ordinary = plain_text(ordinary, eos_ids)
    language = Language(store, start, spelling_of(tokens, ordinary))
    return allowed_tokens(language, tokens, ordinary, eos_ids, prefix)


def mask_to_ids(mask: NDArray[np.int32]) -> set[int]:
    """The ids whose bits are set in one row of a mask."""
    bits = np.unpackbits(mask.astype("<i4").view(np.uint8), bitorder="little")
    return {int(token_id) for token_id in np.flatnonzero(bits)}


class ReferenceIndex:
    """`grammaton._core.TokenIndex`: just the lists."""

    def __init__(
        self,
        tokens: Sequence[bytes],
        ordinary: Sequence[bool],
        eos_token_ids: Sequence[int],
        mask_bits: int,
        limits: Limits | None = None,
    ) -> None:
        if len(tokens) != len(ordinary) or mask_bits < len(tokens):
            raise VocabularyError("tokens, ordinary and mask_bits do not fit each other")
        if not all(0 <= token_id < mask_bits for token_id in eos_token_ids):
            raise VocabularyError("an end-of-sequence id is out of range")
        self.tokens = list(tokens)
        self.ordinary = plain_text(ordinary, eos_token_ids)
        self.eos_token_ids = list(eos_token_ids)
        self.mask_bits = mask_bits
        self.limits = limits or Limits()
        self.spelling = spelling_of(tokens, self.ordinary)

    @property
    def mask_words(self) -> int:
        return -(-self.mask_bits // 32)

    def stats(self) -> dict[str, int]:
        return {}


class ReferenceConstraint:
    """`grammaton._core.Constraint`."""

    def __init__(
        self, store: ReferenceStore, start: int, index: ReferenceIndex, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.index = index
        self.language = Language(store, start, index.spelling)
        if self.language.is_empty:
            raise UnsatisfiableGrammar("the vocabulary can spell no text of the grammar")
        self.masks: dict[bytes, set[int]] = {}

    def matcher(self) -> ReferenceMatcher:
        return ReferenceMatcher(self)

    def stats(self) -> dict[str, int]:
        return {}

    def allowed(self, text: bytes) -> set[int]:
        """The ids allowed after `text`."""
        if text not in self.masks:
            index = self.index
            self.masks[text] = allowed_tokens(
                self.language, index.tokens, index.ordinary, index.eos_token_ids, text
            )
        return self.masks[text]


class ReferenceMatcher:
    """`grammaton._core.Matcher`: the text so far after each accept, None after the end."""

    def __init__(self, constraint: ReferenceConstraint) -> None:
        self._constraint = constraint
        self._history: list[bytes | None] = [b""]

    @property
    def text(self) -> bytes | None:
        """What was accepted so far; None once the end was."""
        return self._history[-1]

    def allowed(self) -> set[int]:
        """The mask as a set of ids."""
        return set() if self.text is None else self._constraint.allowed(self.text)

    def mask(self) -> NDArray[np.int32]:
        out = np.zeros(self._constraint.index.mask_words, dtype=np.int32)
        self.fill_mask(out)
        return out

    def fill_mask(self, out: NDArray[np.int32], row: int = 0) -> None:
        words = self._constraint.index.mask_words
        if out.dtype != np.int32 or not out.flags.writeable:
            raise VocabularyError("a mask is written to a writable int32 array")
        if out.ndim not in (1, 2) or out.shape[-1] != words or out.strides[-1] != 4:
            raise VocabularyError(f"a mask row is {words} contiguous words")
        rows = 1 if out.ndim == 1 else len(out)
        if not 0 <= row < rows:
            raise VocabularyError(f"row {row} of {rows}")
        bits = np.zeros(words * 32, dtype=np.uint8)
        bits[sorted(self.allowed())] = 1
        target = out if out.ndim == 1 else out[row]
        target[:] = np.packbits(bits, bitorder="little").view("<i4")

    def accept(self, token_id: int) -> bool:
        index = self._constraint.index
        if not 0 <= token_id < index.mask_bits:
            raise VocabularyError(f"token id {token_id} is not in 0..{index.mask_bits - 1}")
        if self.text is None or token_id not in self.allowed():
            return False
        is_end = token_id in index.eos_token_ids
        self._history.append(None if is_end else self.text + index.tokens[token_id])
        return True

    def accept_bytes(self, data: bytes) -> bool:
        if self.text is None or not self._constraint.language.viable(self.text + data):
            return False
        self._history.append(self.text + data)
        return True

    def validate(self, tokens: Sequence[int]) -> int:
        trial = self.fork()
        for count, token_id in enumerate(tokens):
            if not trial.accept(token_id):
                return count
        return len(tokens)

    def rollback(self, n: int) -> None:
        if not 0 <= n < len(self._history):
            raise VocabularyError(f"cannot undo {n} of {len(self._history) - 1} accepts")
        del self._history[len(self._history) - n :]

    def fork(self) -> ReferenceMatcher:
        other = ReferenceMatcher(self._constraint)
        other._history = list(self._history)
        return other

    def reset(self) -> None:
        self._history = [b""]

    @property
    def is_complete(self) -> bool:
        return self.text is None or self._constraint.language.accepts(self.text)

    @property
    def is_finished(self) -> bool:
        return self.text is None

    def forced_bytes(self) -> bytes:
        """What every text of the language that begins with the text so far goes on with."""
        language = self._constraint.language
        forced = b""
        while self.text is not None and not language.accepts(self.text + forced):
            text = self.text + forced
            following = [
                byte for byte in range(256) if language.viable(text + bytes([byte]), bytewise=False)
            ]
            if len(following) != 1:
                break
            forced += bytes(following)
        return forced

    def forced_tokens(
        self,
        *,
        mode: Literal["exact", "canonical"] = "exact",
    ) -> list[int]:
        """The ids that the masks leave no choice about, up to the end, whatever the mode."""
        trial = self.fork()
        ids: list[int] = []
        while not trial.is_complete and len(allowed := trial.allowed()) == 1:
            ids += allowed
            trial.accept(ids[-1])
        return ids


def whole_characters(text: bytes) -> bool:
    """Whether `text` ends at the end of a character."""
    split = split_characters(text)
    return split is not None and not split[1]
