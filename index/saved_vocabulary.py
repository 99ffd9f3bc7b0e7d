"""Vocabularies as files: `pack` and `unpack`.

The format, little-endian, version 1:

| part | type | what |
|---|---|---|
| magic | 8 bytes | `\\x93GRAMV\\r\\n`: no text, and broken by whatever changes line ends |
| version | u32 | 1 |
| flags | u32 | bit 0: the tokenizer's decoder drops a leading space |
| counts | 4 u32 | token ids; logits; ends of sequence; special tokens |
| sizes | 2 u64 | bytes of all texts; bytes of all special tokens' names |
| ends | u32 each | ids that end a sequence, ascending |
| specials | u32 each | the id of each special token |
| lengths | u32 each | bytes of each special token's name, then of each token's text |
| names | bytes | UTF-8, lone surrogates let through |
| texts | bytes | the texts of all ids, joined |
| digest | 32 bytes | SHA-256 of everything before |

The counts fix the size of the file, so that one cut short or grown is refused before anything is
made of it, and nothing larger than the file is ever allocated for what it claims. The digest finds
damage; someone who means harm can make a right one, and so everything else is checked as well. The
trie isn't in the file: it would have to be verified node by node, which takes longer than
building it.

Unpacking 129,000 tokens (1.4 MB) takes about 25 ms.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grammaton.errors import VocabularyError
from grammaton.limits import MAX_TOKEN_IDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"\x93GRAMV\r\n"
VERSION = 1

_HEADER = struct.Struct("<8sIIIIIIQQ")
_DIGEST_SIZE = 32
_DROPS_LEADING_SPACE = 1


class Saved(NamedTuple):
    """What a file holds; the arguments of `Vocabulary`, not yet checked against one another."""

    tokens: list[bytes]
    eos_token_ids: list[int]
    special_tokens: dict[str, int]
    logits_size: int
    drops_leading_space: bool


def pack(
    tokens: Sequence[bytes],
    eos_token_ids: Sequence[int],
    special_tokens: Mapping[str, int],
    logits_size: int,
    *,
    drops_leading_space: bool,
) -> bytes:
    """A vocabulary as the bytes of a file."""
    names = [name.encode("utf-8", "surrogatepass") for name in special_tokens]
    texts = b"".join(tokens)
    joined_names = b"".join(names)
    header = _HEADER.pack(
        MAGIC,
        VERSION,
        _DROPS_LEADING_SPACE if drops_leading_space else 0,
        len(tokens),
        logits_size,
        len(eos_token_ids),
        len(names),
        len(texts),
        len(joined_names),
    )
    numbers = [*eos_token_ids, *special_tokens.values(), *map(len, names), *map(len, tokens)]
    body = b"".join((header, np.array(numbers, dtype="<u4").tobytes(), joined_names, texts))
    return body + _digest(body)


def unpack(data: bytes) -> Saved:
    """The vocabulary in the bytes of a file.

    Raises:
        VocabularyError: the bytes are of another kind, of a later version, incomplete or damaged.
    """
    if not data.startswith(MAGIC[: len(data)]) or not data:
        raise VocabularyError("this is no vocabulary that Vocabulary.save wrote")
    if len(data) < _HEADER.size + _DIGEST_SIZE:
        raise VocabularyError("the saved vocabulary is cut short")
    _, version, flags, count, logits_size, ends, specials, text_bytes, name_bytes = (
        _HEADER.unpack_from(data)
    )
    if version != VERSION:
        raise VocabularyError(
            f"the saved vocabulary has version {version}; this grammaton reads version {VERSION}. "
            "Make it again from the tokenizer"
        )
    numbers = ends + 2 * specials + count
    size = _HEADER.size + 4 * numbers + text_bytes + name_bytes + _DIGEST_SIZE
    if len(data) != size:
        raise VocabularyError(
            f"the saved vocabulary has {len(data)} bytes where its header means {size}: it was "
            "cut short or damaged"
        )
    body = memoryview(data)[:-_DIGEST_SIZE]
    if _digest(body) != data[-_DIGEST_SIZE:]:
        raise VocabularyError("the saved vocabulary is damaged: its checksum doesn't fit")
    if flags & ~_DROPS_LEADING_SPACE or max(count, logits_size) > MAX_TOKEN_IDS:
        raise VocabularyError("the saved vocabulary has a header that grammaton never writes")

    table = np.frombuffer(body, dtype="<u4", count=numbers, offset=_HEADER.size)
    end_ids, special_ids, name_lengths, text_lengths = np.split(
        table, np.cumsum([ends, specials, specials])
    )
    start = _HEADER.size + 4 * numbers
    names = _pieces(data, start, name_lengths, name_bytes)
    tokens = _pieces(data, start + name_bytes, text_lengths, text_bytes)
    try:
        decoded = [name.decode("utf-8", "surrogatepass") for name in names]
    except UnicodeDecodeError as error:
        raise VocabularyError(f"a name in the saved vocabulary is not UTF-8: {error}") from None
    special_tokens = dict(zip(decoded, special_ids.tolist(), strict=True))
    if len(special_tokens) < specials:
        raise VocabularyError("the saved vocabulary has two special tokens of one name")
    return Saved(
        tokens, end_ids.tolist(), special_tokens, logits_size, bool(flags & _DROPS_LEADING_SPACE)
    )


def _digest(body: bytes | memoryview) -> bytes:
    from hashlib import sha256  # OpenSSL takes 4 ms to load, which only this needs

    return sha256(body).digest()


def _pieces(data: bytes, start: int, lengths: NDArray[np.uint32], total: int) -> list[bytes]:
    """The `total` bytes from `start`, cut into pieces of these lengths."""
    stops = np.cumsum(lengths, dtype=np.uint64)
    if (int(stops[-1]) if len(stops) else 0) != total:
        raise VocabularyError("the lengths in the saved vocabulary don't add up")
    bounds = [start, *(stops + np.uint64(start)).tolist()]
    return [data[a:b] for a, b in pairwise(bounds)]
