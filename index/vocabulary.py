"""`Vocabulary`: what a model can say, as the bytes of each token id.

Nouns:

- *token*: an id a model may emit, and its *text*, a byte string. A text need not be whole
  characters: byte-level vocabularies split them anywhere. Several ids may share one text, and an
  id may have none; it is then never allowed.
- *special token*: an id that stands for a control signal (start of text, a role, padding). It never
  matches text, however it is spelled. *End-of-sequence* ids are special too; they are allowed
  exactly where a text may end.
- *logits size*: how many numbers the model puts out a step, often more than there are tokens (rows
  of the embedding rounded up). A mask has that many bits, and those past the tokens are 0.

Every `from_*` reads one kind of source by a module of its own beside this one, which says what is
read, what is refused, and why; it is imported when it is first used, since a program has one kind.
`save` and `load` keep a vocabulary as a file.

Cost: reading 129,000 tokens from a `tokenizer.json` takes about a third of a second, loading them
saved a tenth of that, and the token trie, made by `prepare` or the first constraint on a
vocabulary, another twentieth of a second. So a vocabulary is built once for each tokenizer and
shared by all grammars, requests and threads.
"""

from __future__ import annotations

import json
import operator
import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from grammaton._core import TokenIndex
from grammaton.errors import UnsatisfiableGrammar, VocabularyError
from grammaton.index.token_texts import TokenTexts, read_source, write_source
from grammaton.limits import MAX_TOKEN_IDS, Limits

if TYPE_CHECKING:
    from grammaton.index.sentencepiece_model import Processor
    from grammaton.index.tiktoken_ranks import Encoding

_ANY_JSON = b'{"a": ["\xc3\xa9\\n", -1.5e+3, 12, true, false, null, {"b": {}}], "c": []}'
"""A bit of everything that JSON has, for `Vocabulary.prepare`."""


class _Tokenizer(Protocol):
    """The part of `tokenizers.Tokenizer` that is used."""

    def to_str(self, pretty: bool = False) -> str: ...


class Vocabulary:
    """The tokens of a model. Immutable, and safe to share between threads.

    Args:
        tokens: the text of each id, `tokens[i]` for id i; `b""` where there is none.
        eos_token_ids: the id or ids that end a sequence; at least one. Their text is ignored.
        special_tokens: ids by name that never match text, whatever `tokens` says of them.
        logits_size: how many logits the model puts out; `len(tokens)` by default. It may be
            smaller only by ids without text, which are then left out.

    Raises:
        VocabularyError: no end-of-sequence id, an id out of range, a token that is not bytes.
    """

    __slots__ = (
        "_drops_leading_space",
        "_eos_token_ids",
        "_fingerprint",
        "_index",
        "_limits",
        "_lock",
        "_logits_size",
        "_special_tokens",
        "_tokens",
    )

    def __init__(
        self,
        tokens: Sequence[bytes],
        *,
        eos_token_ids: int | Sequence[int],
        special_tokens: Mapping[str, int] = {},
        logits_size: int | None = None,
    ) -> None:
        texts = list(tokens)
        for kind in set(map(type, texts)):
            if kind is not bytes:
                token_id = next(i for i, text in enumerate(texts) if type(text) is kind)
                raise VocabularyError(
                    f"token {token_id} is {kind.__name__}, not bytes; a vocabulary is made of the "
                    "exact bytes of its tokens"
                )
        ends = _ids(eos_token_ids, len(texts), "eos_token_ids")
        if not ends:
            raise VocabularyError("eos_token_ids is empty: no text could ever end")
        _ids(special_tokens.values(), len(texts), "special_tokens")
        for token_id in (*special_tokens.values(), *ends):
            texts[token_id] = b""
        size = len(texts) if logits_size is None else _logits_size(logits_size, texts, ends)
        del texts[size:]

        self._tokens = tuple(texts)
        self._eos_token_ids = ends
        self._special_tokens = {name: i for name, i in special_tokens.items() if i < size}
        self._logits_size = size
        self._drops_leading_space = False
        self._index: TokenIndex | None = None
        self._fingerprint: bytes | None = None
        self._limits = Limits()
        self._lock = threading.Lock()

    @classmethod
    def from_transformers(
        cls,
        tokenizer: Any,
        *,
        eos_token_ids: int | Sequence[int] | None = None,
        logits_size: int | None = None,
    ) -> Vocabulary:
        """From a tokenizer of the transformers library, fast or run in Python.

        Args:
            tokenizer: a `PreTrainedTokenizerFast` (what `AutoTokenizer.from_pretrained` gives for
                nearly every model), or one made of SentencePiece, tiktoken or mistral-common.
            eos_token_ids: the ids that end a sequence; the tokenizer's own by default. Chat
                models often have more: `model.generation_config.eos_token_id`.
            logits_size: `model.config.vocab_size`, when it differs from `len(tokenizer)`.

        Raises:
            VocabularyError: a tokenizer whose tokens have no exact bytes, or no end of sequence.
        """
        from grammaton.index.python_tokenizer import read_python_tokenizer
        from grammaton.index.tokenizer_json import read_tokenizer_json

        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None or not hasattr(backend, "to_str"):
            texts = read_python_tokenizer(tokenizer)
        else:
            texts = read_tokenizer_json(backend.to_str())
        if eos_token_ids is None:
            eos_token_ids = getattr(tokenizer, "eos_token_id", None)
        return cls._from_texts(texts, eos_token_ids, logits_size)

    @classmethod
    def from_tokenizers(
        cls,
        tokenizer: _Tokenizer | str | PathLike[str],
        *,
        eos_token_ids: int | Sequence[int] | None = None,
        logits_size: int | None = None,
    ) -> Vocabulary:
        """From a tokenizer of the tokenizers library, or the path of a `tokenizer.json`.

        Args:
            tokenizer: a `tokenizers.Tokenizer`, or a path. Reading a path needs no library.
            eos_token_ids: the ids that end a sequence. For a path, a `tokenizer_config.json`
                beside the file is asked by default; otherwise they have to be given.
            logits_size: how many logits the model puts out, when that differs from the tokens.

        Raises:
            VocabularyError: a file that is no tokenizer, tokens without exact bytes, or no
                end of sequence.
        """
        from grammaton.index.tokenizer_json import read_tokenizer_json

        if isinstance(tokenizer, (str, PathLike)):
            texts = read_tokenizer_json(read_source(tokenizer, "tokenizer"))
            if eos_token_ids is None:
                config = Path(tokenizer).with_name("tokenizer_config.json")
                eos_token_ids = _configured_eos(config, texts)
        else:
            _expect(tokenizer, "to_str", "from_tokenizers", "a tokenizers.Tokenizer")
            texts = read_tokenizer_json(tokenizer.to_str())
        return cls._from_texts(texts, eos_token_ids, logits_size)

    @classmethod
    def from_tiktoken(
        cls,
        encoding: Encoding | str | PathLike[str],
        *,
        special_tokens: Mapping[str, int] = {},
        eos_token_ids: int | Sequence[int] | None = None,
        logits_size: int | None = None,
    ) -> Vocabulary:
        """From a `tiktoken.Encoding`, or the path of a rank file.

        Args:
            encoding: an encoding, or the path of a file with a base64 text and a rank on each
                line. Reading a path needs no library.
            special_tokens: ids by name. A rank file names none; those of an encoding are known.
            eos_token_ids: the ids that end a sequence; `<|endoftext|>` by default.
            logits_size: how many logits the model puts out, when that differs from the tokens.

        Raises:
            VocabularyError: a file that is none, a special token with the id of a text, or no
                end of sequence.
        """
        from grammaton.index.tiktoken_ranks import read_encoding, read_ranks

        if isinstance(encoding, (str, PathLike)):
            texts = read_ranks(read_source(encoding, "tiktoken file"), special_tokens)
        else:
            _expect(encoding, "encode_single_token", "from_tiktoken", "a tiktoken.Encoding")
            texts = read_encoding(encoding, special_tokens)
        return cls._from_texts(texts, eos_token_ids, logits_size)

    @classmethod
    def from_sentencepiece(
        cls,
        model: Processor | bytes | str | PathLike[str],
        *,
        eos_token_ids: int | Sequence[int] | None = None,
        logits_size: int | None = None,
    ) -> Vocabulary:
        """From a SentencePiece model: the path of a `.model` file, its bytes, or a processor.

        A space that the processor would put before a text is part of the first token's text here;
        see `drops_leading_space`.

        Args:
            model: a path, a serialized model, or a `sentencepiece.SentencePieceProcessor`.
                Reading a path or bytes needs no library.
            eos_token_ids: the ids that end a sequence; the model's own (`</s>`) by default.
            logits_size: how many logits the model puts out, when that differs from the pieces.

        Raises:
            VocabularyError: a file that is none, pieces without exact bytes, or no end of
                sequence.
        """
        from grammaton.index.sentencepiece_model import read_sentencepiece

        if isinstance(model, bytes):
            source = model
        elif isinstance(model, (str, PathLike)):
            source = read_source(model, "SentencePiece model")
        else:
            method = "serialized_model_proto"
            _expect(model, method, "from_sentencepiece", "a SentencePieceProcessor, bytes")
            source = model.serialized_model_proto()
        return cls._from_texts(read_sentencepiece(source), eos_token_ids, logits_size)

    @classmethod
    def from_tekken(
        cls,
        tokenizer: Any,
        *,
        eos_token_ids: int | Sequence[int] | None = None,
        logits_size: int | None = None,
    ) -> Vocabulary:
        """From Mistral's `tekken.json`: its path, or mistral-common's `Tekkenizer`.

        Args:
            tokenizer: a path, which needs no library, or a tokenizer of mistral-common.
            eos_token_ids: the ids that end a sequence; `</s>` by default.
            logits_size: how many logits the model puts out, when that differs from the tokens.

        Raises:
            VocabularyError: a file that is none, or no end of sequence.
        """
        from grammaton.index.python_tokenizer import read_python_tokenizer
        from grammaton.index.tekken import read_tekken

        if isinstance(tokenizer, (str, PathLike)):
            texts = read_tekken(read_source(tokenizer, "tekken.json"))
        else:
            texts = read_python_tokenizer(tokenizer)
        return cls._from_texts(texts, eos_token_ids, logits_size)

    @classmethod
    def from_gguf(
        cls,
        path: str | PathLike[str],
        *,
        eos_token_ids: int | Sequence[int] | None = None,
        logits_size: int | None = None,
    ) -> Vocabulary:
        """From the metadata of a GGUF model file; the weights are not read.

        Args:
            path: the file. A model split over several files has its tokenizer in the first.
            eos_token_ids: the ids that end a sequence. By default those that the file names: end
                of sequence, of a turn and of a message.
            logits_size: how many logits the model puts out, when that differs from the tokens.

        Raises:
            VocabularyError: a file that is none, tokens without exact bytes, or no end of
                sequence.
        """
        from grammaton.index.gguf_vocabulary import read_gguf

        return cls._from_texts(read_gguf(path), eos_token_ids, logits_size)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Vocabulary:
        """Reads a vocabulary that `save` wrote, ten times as fast as a tokenizer is read.

        Raises:
            VocabularyError: the file can't be read, is of another kind or version, cut short or
                damaged.
        """
        from grammaton.index.saved_vocabulary import unpack

        saved = unpack(read_source(path, "saved vocabulary"))
        vocabulary = cls(
            saved.tokens,
            eos_token_ids=saved.eos_token_ids,
            special_tokens=saved.special_tokens,
            logits_size=saved.logits_size,
        )
        vocabulary._drops_leading_space = saved.drops_leading_space
        return vocabulary

    @property
    def fingerprint(self) -> bytes:
        """32 bytes that tell this vocabulary from any other: equal for equal tokens, ends of
        sequence, special tokens and logits size. 10 ms for 129,000 tokens, the first time."""
        if self._fingerprint is None:
            from hashlib import blake2b  # OpenSSL takes 4 ms to load, which only this needs

            digest = blake2b(digest_size=32)
            names = sorted(self._special_tokens.items())
            digest.update(repr((self._eos_token_ids, names, self._logits_size)).encode())
            digest.update(array("I", map(len, self._tokens)).tobytes())
            digest.update(b"".join(self._tokens))
            self._fingerprint = digest.digest()
        return self._fingerprint

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the vocabulary to a file: 1.4 MB for 129,000 tokens.

        An existing file is replaced once the new one is complete.

        Raises:
            VocabularyError: the file can't be written.
        """
        from grammaton.index.saved_vocabulary import pack

        data = pack(
            self._tokens,
            self._eos_token_ids,
            self._special_tokens,
            self._logits_size,
            drops_leading_space=self._drops_leading_space,
        )
        write_source(path, data, "vocabulary")

    @classmethod
    def _from_texts(
        cls,
        texts: TokenTexts,
        eos_token_ids: int | Sequence[int] | None,
        logits_size: int | None,
    ) -> Vocabulary:
        if eos_token_ids is None:
            if not texts.eos_token_ids:
                raise VocabularyError(
                    "the tokenizer doesn't say which token ends a sequence; pass eos_token_ids. "
                    f"Its special tokens: {_some(texts.special_tokens)}"
                )
            eos_token_ids = texts.eos_token_ids
        vocabulary = cls(
            texts.tokens,
            eos_token_ids=eos_token_ids,
            special_tokens=texts.special_tokens,
            logits_size=logits_size,
        )
        vocabulary._drops_leading_space = texts.drops_leading_space
        return vocabulary

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The ids that end a sequence, ascending."""
        return self._eos_token_ids

    @property
    def special_tokens(self) -> dict[str, int]:
        """The ids of special tokens by name; a copy."""
        return dict(self._special_tokens)

    @property
    def logits_size(self) -> int:
        """How many logits the model puts out a step: the bits of a mask."""
        return self._logits_size

    @property
    def mask_words(self) -> int:
        """The int32 words of one mask: ceil(logits_size / 32)."""
        return (self._logits_size + 31) // 32

    @property
    def drops_leading_space(self) -> bool:
        """Whether the tokenizer's own decoder drops one space at the start of a text.

        SentencePiece tokenizers put a space before a text and take it away again when they decode.
        Masks and `decode` speak of the tokens as they are, the space included.
        """
        return self._drops_leading_space

    @property
    def index(self) -> TokenIndex:
        """The token trie and the masks shared by every constraint; built when first used."""
        if self._index is None:
            with self._lock:
                if self._index is None:
                    self._index = TokenIndex(
                        self._tokens,
                        [bool(text) for text in self._tokens],
                        self._eos_token_ids,
                        self._logits_size,
                        self._limits,
                    )
        return self._index

    def prepare(self) -> None:
        """Does now what the first requests would wait for, for a server that starts.

        Some 50 ms of CPU for the trie of 129,000 tokens, and 4 for masks that nearly all JSON
        Schemas share.
        """
        from grammaton.grammar.grammar import Grammar
        from grammaton.index.compile import compile

        walks: list[tuple[Literal["flexible", "compact"], bytes]] = [
            ("flexible", _ANY_JSON),
            ("compact", _ANY_JSON.replace(b" ", b"")),
        ]
        for whitespace, text in walks:
            grammar = Grammar.from_json_schema({"type": "object"}, whitespace=whitespace)
            try:
                matcher = compile(grammar, self).matcher()
            except UnsatisfiableGrammar:
                return  # these tokens can't write JSON
            matcher.mask()
            for byte in text:
                matcher.accept_bytes(bytes([byte]))
                matcher.mask()

    def with_limits(self, limits: Limits) -> Vocabulary:
        """The same tokens with a trie and masks of their own, under other bounds than `Limits()`:
        `frame_cache_bytes` says how much of masks the vocabulary keeps for all its constraints."""
        other = object.__new__(Vocabulary)
        for name in Vocabulary.__slots__:
            setattr(other, name, getattr(self, name))
        other._index = None
        other._lock = threading.Lock()
        other._limits = limits
        return other

    def token_bytes(self, token_id: int) -> bytes:
        """The text of a token; `b""` for special tokens and ids that have none.

        Raises:
            VocabularyError: the id is not below `logits_size`.
        """
        if not 0 <= token_id < self._logits_size:
            raise VocabularyError(
                f"token id {token_id} is outside this vocabulary of {self._logits_size} ids"
            )
        return self._tokens[token_id] if token_id < len(self._tokens) else b""

    def token_ids(self, name: str) -> tuple[int, ...]:
        """The ids that a special token's name stands for, or else of the ordinary tokens with
        exactly this text, ascending; none if there are no such tokens."""
        if name in self._special_tokens:
            return (self._special_tokens[name],)
        text = name.encode(errors="surrogatepass")
        return tuple(i for i, each in enumerate(self._tokens) if text and each == text)

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """The text of a sequence of tokens: their bytes joined, special tokens left out.

        Raises:
            VocabularyError: an id is not below `logits_size`.
        """
        return b"".join(map(self.token_bytes, token_ids))

    def __len__(self) -> int:
        """The number of token ids, those without text included."""
        return len(self._tokens)

    def __repr__(self) -> str:
        extra = f", {self._logits_size} logits" if self._logits_size > len(self) else ""
        return (
            f"Vocabulary({len(self)} tokens, {len(self._special_tokens)} special, "
            f"eos {', '.join(map(str, self._eos_token_ids))}{extra})"
        )


def _expect(value: object, method: str, function: str, kinds: str) -> None:
    if not hasattr(value, method):
        raise VocabularyError(
            f"{function} needs {kinds} or the path of a file, not {type(value).__name__}"
        )


def _ids(values: int | Iterable[int], size: int, name: str) -> tuple[int, ...]:
    """Ids in range, ascending and once each."""
    ids = set()
    for value in (values,) if isinstance(values, int) else values:
        if not hasattr(value, "__index__") or operator.index(value) not in range(size):
            raise VocabularyError(f"{name}: {value!r} is not a token id from 0 to {size - 1}")
        ids.add(operator.index(value))
    return tuple(sorted(ids))


def _logits_size(size: int, texts: Sequence[bytes], ends: Sequence[int]) -> int:
    if size > MAX_TOKEN_IDS:
        raise VocabularyError(f"logits_size={size} is more than {MAX_TOKEN_IDS}")
    lost = [i for i in range(size, len(texts)) if texts[i] or i in ends] if size >= 1 else [0]
    if lost:
        raise VocabularyError(
            f"logits_size={size} has no room for token {lost[0]}: the tokenizer has {len(texts)} "
            "ids. Pass the model's own number of logits, and the tokenizer that belongs to it"
        )
    return size


def _configured_eos(path: Path, texts: TokenTexts) -> int | None:
    """The id of the end-of-sequence token that a tokenizer_config.json names."""
    try:
        name = json.loads(path.read_bytes()).get("eos_token")
    except (OSError, ValueError, AttributeError):
        return None
    content = name.get("content") if isinstance(name, dict) else name
    return texts.special_tokens.get(content) if isinstance(content, str) else None


def _some(names: Iterable[str], limit: int = 8) -> str:
    listed = list(names)
    return ", ".join(listed[:limit]) + (", …" if len(listed) > limit else "") or "none"
