"""Tokens of tokenizers that transformers runs in Python, without the tokenizers library.

They are of these kinds, told apart by what they hold, since many come with a model's own code:

- a SentencePiece processor, `tokenizer.sp_model`: the type of a piece is in the processor's model,
  its id is the tokenizer's word (some shift ids, or take them from a second file);
- a `tiktoken.Encoding` in any attribute (Qwen's first tokenizers, GLM, Kimi);
- a tokenizer of mistral-common behind `tokenizer.instruct_tokenizer`;
- byte-level BPE in the way of GPT-2's first tokenizer: `tokenizer.encoder` and `byte_decoder`.

In each the *added* tokens of transformers come on top: special ones match no text, the others are
their content, unless the same string is the model's own under that id.
"""

from __future__ import annotations

from typing import Any

from grammaton.errors import VocabularyError
from grammaton.index.sentencepiece_model import read_sentencepiece
from grammaton.index.tekken import END_OF_SEQUENCE
from grammaton.index.tiktoken_ranks import is_encoding, read_encoding
from grammaton.index.token_texts import BYTE_DECODER, TokenTexts, byte_level, token_texts, utf8


def read_python_tokenizer(tokenizer: Any) -> TokenTexts:
    """The tokens of a `PreTrainedTokenizer`, or of mistral-common's tokenizer.

    Raises:
        VocabularyError: a kind that isn't known to keep exact bytes.
    """
    if (inner := _mistral(tokenizer)) is not None:
        return read_mistral(inner)
    pieces: Any = getattr(tokenizer, "sp_model", None)
    if hasattr(pieces, "serialized_model_proto"):
        return _read_pieces(tokenizer, pieces)
    encodings = [
        value for value in getattr(tokenizer, "__dict__", {}).values() if is_encoding(value)
    ]
    if len(encodings) == 1:
        return _with_added(tokenizer, read_encoding(encodings[0]), {})
    encoder = getattr(tokenizer, "encoder", None)
    if isinstance(encoder, dict) and getattr(tokenizer, "byte_decoder", None) == BYTE_DECODER:
        strings = {token_id: string for string, token_id in encoder.items()}
        texts = token_texts({i: byte_level(string) for i, string in strings.items()}, {})
        return _with_added(tokenizer, texts, strings)
    raise VocabularyError(
        f"{type(tokenizer).__name__} is neither backed by the tokenizers library nor made of "
        "SentencePiece, tiktoken or byte-level BPE, so the bytes of its tokens are not known. "
        "AutoTokenizer.from_pretrained may have another class for it; Vocabulary(...) takes the "
        "tokens' bytes"
    )


def read_mistral(tokenizer: Any) -> TokenTexts:
    """The tokens of a `Tekkenizer` or `SentencePieceTokenizer` of mistral-common."""
    model: Any = getattr(tokenizer, "_model", None)
    if hasattr(model, "serialized_model_proto"):
        return read_sentencepiece(model.serialized_model_proto())
    texts: dict[int, bytes] = {}
    special: dict[str, int] = {}
    for token_id in range(tokenizer.n_words):
        if tokenizer.is_special(token_id):
            special[tokenizer.id_to_piece(token_id)] = token_id
        else:
            texts[token_id] = tokenizer.id_to_byte_piece(token_id)
    end = special.get(END_OF_SEQUENCE)
    return token_texts(texts, special, eos_token_ids=() if end is None else (end,))


def _mistral(tokenizer: Any) -> Any:
    """The tokenizer of mistral-common in one of its wrappers, or None."""
    for path in (
        ("tokenizer", "instruct_tokenizer", "tokenizer"),
        ("instruct_tokenizer", "tokenizer"),
        (),
    ):
        inner = tokenizer
        for name in path:
            inner = getattr(inner, name, None)
        if hasattr(inner, "n_words") and hasattr(inner, "is_special"):
            return inner
    return None


def _read_pieces(tokenizer: Any, pieces: Any) -> TokenTexts:
    """The tokens of a SentencePiece processor under the ids that transformers gives them."""
    model = read_sentencepiece(pieces.serialized_model_proto())
    texts: dict[int, bytes] = {}
    special: dict[str, int] = {}
    strings = _strings(tokenizer)
    for token_id, string in strings.items():
        piece_id = pieces.piece_to_id(string)
        if pieces.id_to_piece(piece_id) != string:
            continue  # not the model's: an added token, or an id without text
        if string in model.special_tokens:
            special[string] = token_id
        else:
            texts[token_id] = model.tokens[piece_id]
    base = token_texts(texts, special, drops_leading_space=model.drops_leading_space)
    return _with_added(tokenizer, base, strings)


def _strings(tokenizer: Any) -> dict[int, str]:
    """The string of each id, without the ids that have none."""
    strings = {}
    for token_id in range(len(tokenizer)):
        try:
            string = tokenizer.convert_ids_to_tokens(token_id)
        except (LookupError, ValueError):
            continue
        if isinstance(string, str):
            strings[token_id] = string
    return strings


def _with_added(tokenizer: Any, base: TokenTexts, strings: dict[int, str]) -> TokenTexts:
    """`base` with the added tokens of transformers; `strings` are the strings of its own ids."""
    texts = {token_id: text for token_id, text in enumerate(base.tokens) if text}
    special = dict(base.special_tokens)
    for token_id, token in getattr(tokenizer, "added_tokens_decoder", {}).items():
        if token.special:
            special[token.content] = token_id
        elif token_id not in texts or strings.get(token_id) != token.content:
            texts[token_id] = utf8(token.content)
    return token_texts(
        texts,
        special,
        size=len(base.tokens),
        drops_leading_space=base.drops_leading_space,
        eos_token_ids=base.eos_token_ids,
    )
