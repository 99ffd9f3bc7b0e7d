"""Tokens of a GGUF model file, from its metadata.

A GGUF file begins with named values, `tokenizer.ggml.*` among them: which kind of tokenizer it is,
the string of each token and its type. What a token stands for, by the kind:

| type | `gpt2` | `llama`, `t5` |
|---|---|---|
| normal | byte-level: a character is a byte | the string, `▁` is a space |
| user-defined | the string itself | the string, `▁` is a space |
| byte | `<0xNN>` is that byte | likewise |
| control, unknown | none; special | likewise |
| unused | none (padding) | likewise |

The ids that end a sequence are those of `eos_token_id`, `eot_token_id` (the end of a turn) and
`eom_token_id` (the end of a message), where the file has them.

Only the metadata is read, through a memory map: 0.1 s for 49,152 tokens and as many merges. The
library `gguf` makes an array of every string and takes fifty times as long, and would be one more
thing to install.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from os import PathLike
from typing import Any

from grammaton.errors import VocabularyError
from grammaton.index.sentencepiece_model import piece_text
from grammaton.index.token_texts import TokenTexts, byte_level, token_texts, utf8

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_BYTE_LEVEL_KIND = "gpt2"
_SPACE_MARK_KINDS = ("llama", "t5")

_PREFIX = "tokenizer.ggml."
_ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")
_WANTED = frozenset(
    _PREFIX + key for key in ("model", "tokens", "token_type", "add_space_prefix", *_ENDS)
)

# The types of values, by their numbers in the file.
_SCALARS = {
    number: struct.Struct("<" + code)
    for number, code in zip((*range(8), *range(10, 13)), "BbHhIif?Qqd", strict=True)
}
_STRING, _ARRAY = 8, 9
_U32, _U64, _LENGTH_OF_ARRAY = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<IQ")
_HEADER = struct.Struct("<4sIQQ")
_DEEPEST = 8  # arrays of arrays; files have none


def read_gguf(path: str | PathLike[str]) -> TokenTexts:
    """Reads the tokenizer of a GGUF file.

    Raises:
        VocabularyError: the file can't be read, is no GGUF file, has no tokenizer, or one whose
            tokens have no exact bytes.
    """
    try:
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            metadata = _metadata(data)
    except (OSError, ValueError) as error:
        raise VocabularyError(f"can't read the GGUF file: {error}") from error
    except (struct.error, IndexError) as error:
        raise VocabularyError("the GGUF file is cut short, or is none") from error
    return _texts({key.removeprefix(_PREFIX): value for key, value in metadata.items()})


def _texts(values: Mapping[str, Any]) -> TokenTexts:
    kind: Any = values.get("model")
    strings: Any = values.get("tokens")
    types: Any = values.get("token_type")
    if not isinstance(kind, str) or not _is_list_of(strings, str):
        raise VocabularyError("the GGUF file has no tokenizer in it")
    if not _is_list_of(types, int) or len(types) != len(strings):
        raise VocabularyError(
            "the GGUF file doesn't say of what type each token is, and so not which are special"
        )
    if kind != _BYTE_LEVEL_KIND and kind not in _SPACE_MARK_KINDS:
        raise VocabularyError(
            f"the GGUF file has a tokenizer of the kind {kind!r}, whose tokens are not known to "
            f"have exact bytes; {_BYTE_LEVEL_KIND!r} and {_SPACE_MARK_KINDS} can be read"
        )
    texts: dict[int, bytes] = {}
    special: dict[str, int] = {}
    for token_id, (string, token_type) in enumerate(zip(strings, types, strict=True)):
        if token_type in (_CONTROL, _UNKNOWN):
            special[string] = token_id
        elif token_type == _BYTE:
            texts[token_id] = piece_text(string, is_byte=True)
        elif kind in _SPACE_MARK_KINDS and token_type in (_NORMAL, _USER_DEFINED):
            texts[token_id] = piece_text(string, is_byte=False)
        elif token_type == _NORMAL:
            texts[token_id] = byte_level(string)
        elif token_type == _USER_DEFINED:
            texts[token_id] = utf8(string)
        elif token_type != _UNUSED:
            raise VocabularyError(f"token {token_id} of the GGUF file has the type {token_type}")
    ends = [values[key] for key in _ENDS if key in values]
    if not _is_list_of(ends, int):
        raise VocabularyError(f"the GGUF file ends sequences with {ends!r:.200}, which are no ids")
    return token_texts(
        texts,
        special,
        size=len(strings),
        # Left unsaid, SentencePiece's own default holds.
        drops_leading_space=kind in _SPACE_MARK_KINDS
        and bool(values.get("add_space_prefix", True)),
        eos_token_ids=dict.fromkeys(ends),
    )


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and set(map(type, value)) <= {kind}


def _metadata(data: mmap.mmap) -> dict[str, Any]:
    """The values of the file that a vocabulary needs."""
    magic, version, _, count = _HEADER.unpack_from(data)
    if magic != b"GGUF":
        raise VocabularyError("no GGUF file: it doesn't begin with GGUF")
    if version not in (2, 3):
        raise VocabularyError(
            f"the GGUF file has version {version:#x}; versions 2 and 3, little-endian, can be read"
        )
    at = _HEADER.size
    found: dict[str, Any] = {}
    for _ in range(count):
        key, at = _string(data, at)
        (value_type,) = _U32.unpack_from(data, at)
        name = key.decode(errors="replace")
        value, at = _value(data, at + 4, value_type, keep=name in _WANTED)
        if name in _WANTED:
            found[name] = value
            if len(found) == len(_WANTED):
                break
    return found


def _string(data: mmap.mmap, at: int) -> tuple[bytes, int]:
    (size,) = _U64.unpack_from(data, at)
    at += 8
    if size > len(data) - at:
        raise IndexError
    return data[at : at + size], at + size


def _value(data: mmap.mmap, at: int, type: int, *, keep: bool, depth: int = 0) -> tuple[Any, int]:
    """The value at an offset, or None when it isn't to be kept, and where it ends."""
    if type in _SCALARS:
        scalar = _SCALARS[type]
        return scalar.unpack_from(data, at)[0], at + scalar.size
    if type == _STRING:
        text, at = _string(data, at)
        return _text(text) if keep else None, at
    if type != _ARRAY or depth == _DEEPEST:
        raise VocabularyError(f"the GGUF file has a value of the unknown type {type}")
    inner, count = _LENGTH_OF_ARRAY.unpack_from(data, at)
    at += _LENGTH_OF_ARRAY.size
    if inner in _SCALARS:
        end = at + count * _SCALARS[inner].size
        if end > len(data):
            raise IndexError
        if not keep:
            return None, end
        return [value for (value,) in _SCALARS[inner].iter_unpack(data[at:end])], end
    values = []
    for _ in range(count):
        value, at = _value(data, at, inner, keep=keep, depth=depth + 1)
        if keep:
            values.append(value)
    return values if keep else None, at


def _text(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise VocabularyError(
            f"the GGUF file has a string that is not UTF-8: {text[:80]!r}"
        ) from None
