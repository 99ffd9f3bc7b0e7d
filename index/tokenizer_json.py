"""The bytes behind each token id of a `tokenizer.json`, the format of the `tokenizers` library.

Such a file names tokens by *strings*, and its *decoder* says what text a string stands for. What is
read are the decoders under which each token has one text wherever it stands:

- **Byte-level**: every character of a token's string stands for one byte.
- **Byte fallback** (SentencePiece): the string is the text, `▁` is a space, `<0xNN>` is a byte.
- **WordPiece without clean-up**: `##` goes on with a word, any other token begins one, and so
  begins with a space. With clean-up, as BERT's has it, spaces beside punctuation depend on what
  stands there, and the file is refused.

A decoder that takes away the first space of a whole text is reported by `drops_leading_space`.

*Added* tokens stand beside the model's own. Those marked special never match text. The others do,
and their content is the text itself, in every family, unless the model's own vocabulary holds
the same string under the same id: then the model may emit it for ordinary text, and the
decoder's reading applies (in Gemma's vocabulary `▁▁` is such a token, and means two spaces). The
content of a *normalized* token meets text whose spaces the normalizer has made `▁`, and so `▁` in
it is a space too.

Everything else is refused with the reason, because a mask over guessed bytes would be wrong
without anyone noticing.

Reading costs about 0.3 s for 129,000 tokens, half of it `json.loads`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from grammaton.errors import VocabularyError
from grammaton.index.token_texts import (
    SPACE_MARK,
    TokenTexts,
    byte_level,
    byte_token,
    token_texts,
    utf8,
)

# A decoder step takes a token's string, or its bytes once a step has made them final.
_Step = Callable[[str], str | bytes]


def read_tokenizer_json(source: str | bytes) -> TokenTexts:
    """Reads the text of a `tokenizer.json`.

    Raises:
        VocabularyError: the text is no such file, or its tokens have no exact bytes.
    """
    document = parse_json(source, "tokenizer.json")
    model = document.get("model")
    if not isinstance(model, dict):
        raise VocabularyError('a tokenizer.json must be an object with a "model" in it')
    strings = _model_strings(model)
    decode, drops_leading_space = _decoder(document.get("decoder"), model)
    marks_spaces = any(
        step.get("type") == "Replace"
        and step.get("pattern") == {"String": " "}
        and step.get("content") == SPACE_MARK
        for step in _flatten(document.get("normalizer"), "normalizers")
    )

    special = _unknown_token(model, strings)
    literal: dict[int, bytes] = {}
    added = document.get("added_tokens") or []
    if not isinstance(added, list):
        raise VocabularyError("the added_tokens of a tokenizer.json must be a list")
    for token in added:
        content, token_id = _added_token(token)
        if token.get("special"):
            special[content] = token_id
        elif strings.get(token_id) != content:
            if marks_spaces and token.get("normalized"):
                content = content.replace(SPACE_MARK, " ")
            literal[token_id] = utf8(content)

    texts = {token_id: decode(text) for token_id, text in strings.items()}
    return token_texts(texts | literal, special, drops_leading_space=drops_leading_space)


def parse_json(source: str | bytes, what: str) -> dict[str, Any]:
    """A JSON object out of a file of the kind `what`.

    Raises:
        VocabularyError: it isn't one.
    """
    try:
        document = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"a {what} must be JSON: {error}") from error
    if not isinstance(document, dict):
        raise VocabularyError(f"a {what} must be a JSON object, not {type(document).__name__}")
    return document


def _model_strings(model: Mapping[str, Any]) -> dict[int, str]:
    """The string of each id in the model's own vocabulary."""
    kind, vocab = model.get("type"), model.get("vocab")
    if kind is None and isinstance(vocab, dict):
        kind = "BPE"  # files from before the type was written
    if kind == "Unigram" and isinstance(vocab, list):
        if all(isinstance(piece, list) and piece and isinstance(piece[0], str) for piece in vocab):
            return {token_id: piece[0] for token_id, piece in enumerate(vocab)}
        raise VocabularyError("a Unigram vocabulary must be a list of pairs [piece, score]")
    if kind not in ("BPE", "WordLevel", "WordPiece") or not isinstance(vocab, dict):
        raise VocabularyError(
            f"a tokenizer model of the type {kind!r} is not known; byte-level BPE, byte-fallback "
            "BPE, Unigram, WordLevel and WordPiece are"
        )
    if model.get("end_of_word_suffix"):
        raise VocabularyError(
            f"the tokenizer ends words with {model['end_of_word_suffix']!r}, which is a space "
            "except at the end of a text, so its tokens have no exact bytes"
        )
    strings: dict[int, str] = {}
    for text, token_id in vocab.items():
        if not isinstance(token_id, int) or isinstance(token_id, bool):
            raise VocabularyError(f"the token {text!r} has the id {token_id!r}, not an integer")
        if token_id in strings:
            raise VocabularyError(
                f"token id {token_id} stands for both {strings[token_id]!r} and {text!r}"
            )
        strings[token_id] = text
    return strings


def _unknown_token(model: Mapping[str, Any], strings: Mapping[int, str]) -> dict[str, int]:
    """The token that stands for text outside the vocabulary, and so for no text in particular."""
    if model.get("type") == "Unigram":
        unknown_id = model.get("unk_id")
        if isinstance(unknown_id, int) and unknown_id in strings:
            return {strings[unknown_id]: unknown_id}
        return {}
    unknown = model.get("unk_token")
    token_id = model["vocab"].get(unknown) if isinstance(unknown, str) else None
    return {} if token_id is None else {str(unknown): token_id}


def _added_token(token: Any) -> tuple[str, int]:
    """The content and the id of an entry of `added_tokens`."""
    content = token.get("content") if isinstance(token, dict) else None
    token_id = token.get("id") if isinstance(token, dict) else None
    if not isinstance(content, str) or not isinstance(token_id, int) or isinstance(token_id, bool):
        raise VocabularyError(f"an added token needs a content and an id: {token!r:.200}")
    return content, token_id


def _decoder(
    spec: Mapping[str, Any] | None, model: Mapping[str, Any]
) -> tuple[Callable[[str], bytes], bool]:
    """The bytes of one model token as a function, and whether texts lose their first space."""
    steps: list[_Step] = []
    drops_leading_space = fused = False
    word_part = model.get("continuing_subword_prefix") or ""
    for step in _flatten(spec, "decoders"):
        kind = step.get("type")
        # Once the tokens are one string, a step no longer tells the text of a single token.
        if kind == "ByteLevel":
            steps.append(byte_level)
            fused = True
        elif kind == "Fuse":
            fused = True
        elif kind == "ByteFallback" and not fused:
            steps.append(_byte_fallback)
        elif kind == "Metaspace" and not fused:
            steps.append(_replacement(step.get("replacement", SPACE_MARK), " "))
            # Files from before `prepend_scheme` say it with a flag.
            scheme = step.get("prepend_scheme")
            drops_leading_space |= (
                step.get("add_prefix_space", True) if scheme is None else scheme != "never"
            )
        elif kind == "Replace" and isinstance(step.get("pattern"), dict) and not fused:
            pattern, content = step["pattern"].get("String"), step.get("content", "")
            if not pattern or not isinstance(content, str):
                raise VocabularyError(
                    f"the tokenizer's decoder replaces by the pattern {step['pattern']}, which "
                    "is not known to keep a token's text; only plain strings can be read"
                )
            steps.append(_replacement(pattern, content))
        elif (
            kind == "Strip"
            and fused
            and step.get("content") == " "
            and step.get("start") in (0, 1)
            and not step.get("stop")
        ):
            drops_leading_space |= step["start"] == 1
        elif kind == "WordPiece" and not steps and not fused:
            if step.get("cleanup", True):
                raise VocabularyError(
                    "the tokenizer is WordPiece with clean-up: whether there is a space beside "
                    "punctuation depends on the tokens around it, so no token has exact bytes. "
                    "Vocabulary(...) takes the tokens' bytes if you know better"
                )
            prefix = _same_prefix(step.get("prefix", "##"), word_part)
            steps.append(_word_piece(prefix))
            word_part, drops_leading_space = "", prefix != ""
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
    if word_part:
        raise VocabularyError(
            f"the tokenizer marks the parts of a word with {word_part!r}, and its decoder doesn't "
            "take the mark away"
        )

    def decode(text: str) -> bytes:
        value: str | bytes = text
        for step in steps:
            if isinstance(value, bytes):
                break
            value = step(value)
        return value if isinstance(value, bytes) else utf8(value)

    return decode, drops_leading_space


def _flatten(spec: Any, parts: str) -> Iterator[Mapping[str, Any]]:
    """The steps of a decoder or normalizer, sequences within sequences laid out."""
    if spec is None:
        return
    if not isinstance(spec, dict):
        raise VocabularyError(f"a tokenizer's {parts} are objects, not {spec!r:.100}")
    if spec.get("type") != "Sequence":
        yield spec
        return
    inner = spec.get(parts)
    for part in inner if isinstance(inner, list) else ():
        yield from _flatten(part, parts)


def _same_prefix(decoders: Any, models: str) -> str:
    if not isinstance(decoders, str) or (models and decoders != models):
        raise VocabularyError(
            f"the tokenizer marks the parts of a word with {models!r} and its decoder takes away "
            f"{decoders!r}"
        )
    return decoders


def _word_piece(prefix: str) -> _Step:
    def step(text: str) -> str:
        return text[len(prefix) :] if text.startswith(prefix) else f" {text}"

    return step


def _byte_fallback(text: str) -> str | bytes:
    byte = byte_token(text)
    return text if byte is None else byte


def _replacement(old: Any, new: str) -> _Step:
    if not isinstance(old, str) or not old:
        raise VocabularyError(f"the tokenizer's decoder replaces {old!r}, which is no string")
    return lambda text: text.replace(old, new)
