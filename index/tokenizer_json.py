"""The bytes behind each token id of a `tokenizer.json`, the format of the `tokenizers` library.

Such a file names tokens by *strings*, and its *decoder* says what text a string stands for. Two
families lose nothing on the way, and only they are read:

- **Byte-level**: every character of a token's string stands for one byte, by GPT-2's table, in
  which printable Latin-1 is itself and the other bytes are shifted to U+0100 and up (`Ġ` is a
  space).
- **Byte fallback** (SentencePiece): the string is the text, `▁` is a space, and `<0xNN>` is a
  byte.

*Added* tokens stand beside the model's own. Those marked special never match text. The others do,
and their content is the text itself, in either family, unless the model's own vocabulary holds
the same string under the same id: then the model may emit it for ordinary text, and the
decoder's reading applies (in Gemma's vocabulary `▁▁` is such a token, and means two spaces).

Everything else is refused with the reason, because a mask over guessed bytes would be wrong
without anyone noticing: WordPiece and its like glue words together by rules about what stands
beside them, and lower-cased or stripped text can't be recovered from a token alone.

Reading costs about 0.3 s for 129,000 tokens, nearly all of it `json.loads`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grammaton.errors import VocabularyError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE_MARK = "\u2581"

# A decoder step takes a token's string, or its bytes once a step has made them final.
_Step = Callable[[str], str | bytes]


@dataclass(frozen=True)
class TokenizerTexts:
    """What a tokenizer file says about its ids.

    Attributes:
        tokens: the bytes of each id, `b""` for special tokens and for ids the file skips.
        special_tokens: the id of each special token, by content; the unknown token is one of them.
        drops_leading_space: whether the decoder removes one space at the start of a whole text.
    """

    tokens: list[bytes]
    special_tokens: dict[str, int]
    drops_leading_space: bool


def read_tokenizer_json(source: str | bytes) -> TokenizerTexts:
    """Reads the text of a `tokenizer.json`.

    Raises:
        VocabularyError: the text is no such file, or its tokens have no exact bytes.
    """
    try:
        document = json.loads(source)
    except ValueError as error:
        raise VocabularyError(f"a tokenizer.json must be JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("model"), dict):
        raise VocabularyError('a tokenizer.json must be an object with a "model" in it')
    model = document["model"]
    ids = _model_ids(model)
    decode, drops_leading_space = _decoder(document.get("decoder"))

    special = {}
    if (unknown := _unknown_token(model)) in ids:
        special[unknown] = ids[unknown]
    literal: dict[int, bytes] = {}
    for token in document.get("added_tokens") or ():
        content, token_id = token["content"], token["id"]
        if token.get("special"):
            special[content] = token_id
        elif ids.get(content) != token_id:
            literal[token_id] = content.encode()

    highest = max((*ids.values(), *literal, *special.values()), default=-1)
    tokens = [b""] * (highest + 1)
    for text, token_id in ids.items():
        tokens[token_id] = decode(text)
    for token_id, data in literal.items():
        tokens[token_id] = data
    for token_id in special.values():
        tokens[token_id] = b""
    return TokenizerTexts(tokens, special, drops_leading_space)


def _model_ids(model: Mapping[str, Any]) -> dict[str, int]:
    """The id of each string in the model's own vocabulary."""
    kind, vocab = model.get("type"), model.get("vocab")
    if kind is None and isinstance(vocab, dict):
        kind = "BPE"  # files from before the type was written
    if kind == "Unigram" and isinstance(vocab, list):
        return {text: token_id for token_id, (text, _) in enumerate(vocab)}
    if kind not in ("BPE", "WordLevel") or not isinstance(vocab, dict):
        raise VocabularyError(
            f"a {kind} tokenizer gives its tokens no exact bytes (its text depends on the tokens "
            "around them); byte-level BPE, byte-fallback BPE and Unigram can be read"
        )
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(affix):
            raise VocabularyError(
                f"the tokenizer marks word parts with {affix}={model[affix]!r}, so the spaces of "
                "its texts can't be recovered from tokens"
            )
    return vocab


def _unknown_token(model: Mapping[str, Any]) -> str | None:
    """The token that stands for text outside the vocabulary, and so for no text in particular."""
    if model.get("type") == "Unigram":
        unknown_id = model.get("unk_id")
        return None if unknown_id is None else model["vocab"][unknown_id][0]
    return model.get("unk_token")


def _decoder(spec: Mapping[str, Any] | None) -> tuple[Callable[[str], bytes], bool]:
    """The bytes of one model token as a function, and whether texts lose their first space."""
    steps: list[_Step] = []
    drops_leading_space = fused = False
    for step in _flatten(spec):
        kind = step.get("type")
        if kind == "ByteLevel":
            steps.append(_byte_level)
        elif kind == "ByteFallback":
            steps.append(_byte_fallback)
        elif kind == "Fuse":
            fused = True
        elif kind == "Metaspace":
            steps.append(_replacement(step.get("replacement", _SPACE_MARK), " "))
            # Files from before `prepend_scheme` say it with a flag.
            scheme = step.get("prepend_scheme")
            drops_leading_space |= (
                step.get("add_prefix_space", True) if scheme is None else scheme != "never"
            )
        elif kind == "Replace" and isinstance(step.get("pattern"), dict) and not fused:
            pattern = step["pattern"].get("String")
            if not pattern:
                raise VocabularyError(
                    f"the tokenizer's decoder replaces by the pattern {step['pattern']}, which "
                    "is not known to keep a token's text; only plain strings can be read"
                )
            steps.append(_replacement(pattern, step.get("content", "")))
        elif kind == "Strip" and fused and step.get("content") == " " and not step.get("stop"):
            drops_leading_space |= step.get("start", 0) > 0
        else:
            raise VocabularyError(
                f"the tokenizer's decoder has a step {kind!r} that doesn't tell the bytes of a "
                "token by itself; byte-level and byte-fallback decoders can be read"
            )
    if not steps:
        raise VocabularyError(
            "the tokenizer has no decoder that tells which text its tokens stand for (it would "
            "put a space between any two); pass the tokens' bytes to Vocabulary(...) yourself"
        )

    def decode(text: str) -> bytes:
        value: str | bytes = text
        for step in steps:
            if isinstance(value, bytes):
                break
            value = step(value)
        return value if isinstance(value, bytes) else value.encode()

    return decode, drops_leading_space


def _flatten(spec: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    if spec is None:
        return ()
    if spec.get("type") == "Sequence":
        return [step for part in spec.get("decoders", ()) for step in _flatten(part)]
    return (spec,)


def _byte_level_table() -> dict[int, int]:
    """GPT-2's table inverted: the code point of each character to the byte it stands for."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [byte for byte in range(256) if byte not in set(printable)]
    return {byte: byte for byte in printable} | {256 + n: b for n, b in enumerate(shifted)}


_BYTE_LEVEL = _byte_level_table()
_BYTE_LEVEL_CHARACTERS = frozenset(map(chr, _BYTE_LEVEL))


def _byte_level(text: str) -> bytes:
    # A string with any other character in it stands for itself, as the library decodes it.
    if _BYTE_LEVEL_CHARACTERS.issuperset(text):
        return text.translate(_BYTE_LEVEL).encode("latin-1")
    return text.encode()


def _byte_fallback(text: str) -> str | bytes:
    match = _BYTE_TOKEN.fullmatch(text)
    return bytes((int(match[1], 16),)) if match else text


def _replacement(old: str, new: str) -> _Step:
    return lambda text: text.replace(old, new)
