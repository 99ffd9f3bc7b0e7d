"""`ConstraintCache`: constraints that a server keeps between requests.

Requests bring grammars as text, mostly the same few over and over. A *key* is everything that
decides the constraint: the kind of the source, its text, the front end's options, the limits, and
the vocabulary (the object, not what is in it). A *miss* compiles; requests for the same key that
come meanwhile wait for that one compile (*single flight*), and get its error if it fails. Errors
are not kept: the next request tries again.

Constraints grow while they are used, so the bytes they hold are counted when something is added,
and every 64 hits. When they are more than the bound, the constraints that were asked for the
longest time ago are dropped. Matchers that still run on a dropped one keep it alive until they are
done.

Cost: a hit takes some 4 us for a schema of a kilobyte, most of it for the spelling of the key.
What a vocabulary shares between constraints is bounded by `Limits.frame_cache_bytes` and not
counted here.
"""

from __future__ import annotations

import json
import marshal
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

from grammaton._core import Constraint
from grammaton.errors import GrammarError, VocabularyError
from grammaton.grammar.grammar import Grammar
from grammaton.index.compile import compile
from grammaton.index.vocabulary import Vocabulary
from grammaton.limits import Limits

SourceKind = Literal["json_schema", "regex", "lark", "gbnf", "ebnf", "choices", "text"]
"""What a source is: the name of the `Grammar.from_…` function that reads it."""

_KINDS = get_args(SourceKind)

_Key: TypeAlias = tuple[SourceKind, bytes, Limits, Vocabulary]

_DEFAULT_LIMITS = Limits()
_CHECK_EVERY = 64
_PLAIN = frozenset({str, int, float, bool, type(None)})
_KEY_BYTES = 600  # of an entry beside its constraint and its spelling


class ConstraintCache:
    """Constraints by source, options and vocabulary. Safe to use from any number of threads.

    Args:
        max_bytes: the most that kept constraints may hold, as `Constraint.memory_bytes` counts it;
            at least 1. A larger one is handed out and not kept.

    Raises:
        GrammarError: `max_bytes` is no number of bytes.
    """

    def __init__(self, *, max_bytes: int = 2**30) -> None:
        if type(max_bytes) is not int or max_bytes < 1:
            raise GrammarError(f"max_bytes is a number of bytes from 1 up, not {max_bytes!r}")
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, Constraint] = OrderedDict()
        self._flights: dict[_Key, _Flight] = {}
        self._hits = self._misses = self._waits = self._errors = self._evictions = 0

    def get(
        self,
        kind: SourceKind,
        source: object,
        vocabulary: Vocabulary,
        *,
        limits: Limits | None = None,
        **options: object,
    ) -> Constraint:
        """The constraint of a source on a vocabulary, compiled unless it is kept.

        Args:
            kind: what the source is: "json_schema" is read by `Grammar.from_json_schema`, and so
                on.
            source: what that function takes first. Data is not copied, so don't change it while
                this runs.
            vocabulary: the tokens of the model.
            limits: bounds on work and memory; `Limits()` by default.
            **options: the keyword arguments of that function. They are taken as they are written:
                an option left out and its default given are two keys.

        Raises:
            GrammarError, VocabularyError, LimitExceeded: as that function and `compile` raise them,
                to every caller that waited for the same compile.
            GrammarError: an unknown kind, or a source or option that is not text or JSON data.
            TypeError: an option that the function doesn't have.
        """
        if kind not in _KINDS:
            raise GrammarError(f"no sources of kind {kind!r}; there are {_KINDS}")
        if not isinstance(vocabulary, Vocabulary):
            raise VocabularyError(
                f"a Vocabulary is needed, not {type(vocabulary).__name__}; "
                "Vocabulary.from_transformers(tokenizer) makes one"
            )
        bounds = limits or _DEFAULT_LIMITS
        key: _Key = (kind, _spelled(source, options), bounds, vocabulary)
        if key not in self._kept and not _is_plain(source, options):
            key = (kind, _spelled_as_json(source, options), bounds, vocabulary)
        read: Callable[..., Grammar] = getattr(Grammar, f"from_{kind}")

        while True:
            with self._lock:
                if (kept := self._kept.get(key)) is not None:
                    self._kept.move_to_end(key)
                    self._hits += 1
                    if self._hits % _CHECK_EVERY == 0:
                        self._evict()
                    return kept
                flight = self._flights.get(key)
                if flight is None:
                    own = self._flights[key] = _Flight()
                    self._misses += 1
                    break
                self._waits += 1
            flight.ended.wait()
            if flight.error is not None:
                raise flight.error
            if flight.constraint is not None:
                return flight.constraint
            # The thread that compiled was interrupted, which is no answer.
        return self._compile(
            key, own, lambda: compile(read(source, **options), vocabulary, limits=bounds)
        )

    def _compile(self, key: _Key, flight: _Flight, make: Callable[[], Constraint]) -> Constraint:
        try:
            constraint = make()
        except BaseException as error:
            with self._lock:
                del self._flights[key]
                self._errors += 1
            flight.error = error if isinstance(error, Exception) else None
            flight.ended.set()
            raise
        with self._lock:
            del self._flights[key]
            self._kept[key] = constraint
            self._evict()
        flight.constraint = constraint
        flight.ended.set()
        return constraint

    def _evict(self) -> None:
        total = self._bytes()
        while total > self._max_bytes and self._kept:
            key, dropped = self._kept.popitem(last=False)
            total -= _held(key, dropped)
            self._evictions += 1

    def _bytes(self) -> int:
        return sum(_held(key, constraint) for key, constraint in self._kept.items())

    def clear(self) -> None:
        """Drops everything that is kept. Counts of `stats` go on."""
        with self._lock:
            self._kept.clear()

    def __len__(self) -> int:
        """How many constraints are kept."""
        return len(self._kept)

    def stats(self) -> dict[str, int]:
        """What happened so far, and what is kept now.

        `hits`, `misses` (each is one compile), `waits` (requests that waited for another's
        compile), `errors` (compiles that failed), `evictions`; `entries`, `bytes`, `max_bytes`.
        """
        with self._lock:
            return {
                "hits": self._hits,
                "misses": self._misses,
                "waits": self._waits,
                "errors": self._errors,
                "evictions": self._evictions,
                "entries": len(self._kept),
                "bytes": self._bytes(),
                "max_bytes": self._max_bytes,
            }

    def __repr__(self) -> str:
        return f"ConstraintCache({len(self)} constraints, at most {self._max_bytes} bytes)"


class _Flight:
    """A compile under way. Once `ended`, one of the others is set; none if it was interrupted."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.constraint: Constraint | None = None
        self.error: Exception | None = None


def _held(key: _Key, constraint: Constraint) -> int:
    return constraint.memory_bytes + _KEY_BYTES + len(key[1])


def _spelled(source: object, options: dict[str, object]) -> bytes:
    """A source and its options as bytes, different ones for different data that is plain.

    The order of keys in data counts. marshal's version 0 writes equal data as equal bytes (later
    ones write what is one object in memory as such), and takes half of the time of JSON; it takes
    Python's own types alone, and JSON takes what derives from them. But it also takes whatever has
    a buffer, as the bytes that are there: those of NumPy's arrays ["ab"] and ["a", "b"] are the
    same. So nothing is kept under what marshal says of data that is not plain.
    """
    data: Any = (source, sorted(options.items()))
    try:
        return marshal.dumps(data, 0)
    except ValueError:
        return _spelled_as_json(source, options)


def _spelled_as_json(source: object, options: dict[str, object]) -> bytes:
    try:
        return json.dumps((source, sorted(options.items())), default=_as_text).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise GrammarError(
            f"sources and options that a cache can compare are text or JSON data: {error}"
        ) from None


def _is_plain(source: object, options: dict[str, object]) -> bool:
    """Whether data is of Python's own types for JSON, which marshal tells apart."""
    pending: list[Any] = [source, *options.values()]
    while pending:
        value = pending.pop()
        kind = type(value)
        if kind is dict:
            pending += value.keys()
            pending += value.values()
        elif kind is list or kind is tuple:
            pending += value
        elif kind not in _PLAIN:
            return False
    return True


def _as_text(value: object) -> str:
    """Bytes as a text that is no source of any kind."""
    if isinstance(value, bytes):
        return "\0bytes " + value.hex()
    raise TypeError(f"{type(value).__name__} is neither")
