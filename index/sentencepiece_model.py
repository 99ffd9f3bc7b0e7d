"""Tokens of a SentencePiece `.model` file, read from its protobuf.

The file is a `ModelProto`: the pieces in the order of their ids, each with a string, a score and a
type, then how it was trained and how it normalises. What a piece stands for, by its type:

| type | text |
|---|---|
| normal, user-defined | the string, in which `▁` is a space |
| byte | `<0xNN>` is that byte |
| control, unknown | none; special |
| unused | none: the encoder never writes it |

The encoder may put a space before a text or drop spaces at its start, and the decoder then takes
the first space away (`drops_leading_space`). A normaliser changes a text before it is cut into
pieces, never what a piece stands for. A *de*normaliser would change joined pieces, and is refused.

Reading 32,000 pieces costs about 0.1 s. No protobuf library is needed: the wire format is tags,
variable-length integers and lengths.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from grammaton.errors import VocabularyError
from grammaton.index.token_texts import TokenTexts, byte_token, token_texts

# Field numbers of sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER, _DENORMALIZER = 1, 2, 3, 5
_PIECE, _TYPE = 1, 3
_EOS_PIECE = 47
_CHARSMAP, _DUMMY_PREFIX, _EXTRA_WHITESPACES = 2, 3, 4
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)

_SPACE_MARK = "\u2581".encode()
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

_Fields = dict[int, int | bytes]


class Processor(Protocol):
    """The part of `sentencepiece.SentencePieceProcessor` that is used."""

    def serialized_model_proto(self) -> bytes: ...


def read_sentencepiece(source: bytes) -> TokenTexts:
    """Reads a serialized `ModelProto`, the contents of a `.model` file.

    Raises:
        VocabularyError: the bytes are no such message, or joined pieces would be rewritten.
    """
    texts: dict[int, bytes] = {}
    special: dict[str, int] = {}
    controls: dict[str, int] = {}
    parts = {_TRAINER: b"", _NORMALIZER: b"", _DENORMALIZER: b""}
    token_id = 0
    for number, value in _fields(source):
        if number == _PIECES:
            name, kind = _piece(value, token_id)
            if kind in (_CONTROL, _UNKNOWN):
                special[name] = token_id
                if kind == _CONTROL:
                    controls[name] = token_id
            elif kind != _UNUSED:
                texts[token_id] = piece_text(name, is_byte=kind == _BYTE)
            token_id += 1
        elif number in parts:
            # Of a message given twice the fields are merged, which is what joining them does.
            parts[number] += _bytes(value)
    if token_id == 0:
        raise VocabularyError("the SentencePiece model has no pieces; is it a .model file?")
    if dict(_fields(parts[_DENORMALIZER])).get(_CHARSMAP):
        raise VocabularyError(
            "the SentencePiece model rewrites the text of joined pieces (it has a denormalizer), "
            "so its pieces have no exact bytes"
        )
    normalizer = dict(_fields(parts[_NORMALIZER]))
    end = dict(_fields(parts[_TRAINER])).get(_EOS_PIECE, b"</s>")
    end_id = controls.get(_string(end))
    return token_texts(
        texts,
        special,
        size=token_id,
        drops_leading_space=bool(
            normalizer.get(_DUMMY_PREFIX, True) or normalizer.get(_EXTRA_WHITESPACES, True)
        ),
        eos_token_ids=() if end_id is None else (end_id,),
    )


def piece_text(piece: str, *, is_byte: bool) -> bytes:
    """The bytes of a piece that stands for text.

    Raises:
        VocabularyError: a byte piece that names no byte.
    """
    if not is_byte:
        return piece.encode().replace(_SPACE_MARK, b" ")
    byte = byte_token(piece)
    if byte is None:
        raise VocabularyError(f"the byte piece {piece!r} is not <0x00> to <0xFF>")
    return byte


def _piece(message: int | bytes, token_id: int) -> tuple[str, int]:
    fields = dict(_fields(_bytes(message)))
    kind = fields.get(_TYPE, _NORMAL)
    if kind not in range(_NORMAL, _BYTE + 1):
        raise VocabularyError(f"piece {token_id} of the SentencePiece model has type {kind!r}")
    return _string(fields.get(_PIECE, b"")), int(kind)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message: number, and the integer or the bytes."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        wire = tag & 7
        value: int | bytes
        if wire == _VARINT:
            value, at = _varint(message, at)
        else:
            if wire == _LENGTH:
                size, at = _varint(message, at)
            elif wire in (_FIXED32, _FIXED64):
                size = 4 if wire == _FIXED32 else 8
            else:
                raise VocabularyError(f"no SentencePiece model: wire type {wire} at byte {at}")
            value = message[at : at + size]
            at += size
            if at > end:
                raise VocabularyError("the SentencePiece model is cut short")
        yield tag >> 3, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer of at most 64 bits, and where it ends."""
    value = shift = 0
    for byte in message[at : at + 10]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise VocabularyError("no SentencePiece model, or one that is cut short")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise VocabularyError("no SentencePiece model: an integer stands where a message belongs")
    return value


def _string(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise VocabularyError(
            f"the SentencePiece model names a piece {value!r}, not UTF-8"
        ) from None
