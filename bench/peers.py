"""The engines of the benchmarks behind one small interface, grammaton among them.

Every engine gets the same bytes for each token, the same special ids and the same end of sequence,
one thread, and the options that bring the languages as near to each other as they go: keys in the
schema's order, additional properties as the schema says, whitespace flexible where the engine has
that (`whitespace_of` says what each writes). Caches across grammars are on, except in XGrammar
when it computes all masks at once.

A *constraint* is a schema compiled by one engine; making one is what `compile` costs, and what an
engine puts off until its first mask is in the first mask. Engines are imported when they are made.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bench.walks import EOS_TOKEN_ID

Mask = NDArray[np.int32]


Whitespace = Literal["flexible", "spaced", "compact"]
"""Between JSON tokens: any, exactly what `json.dumps` writes, or none."""


class Refused(Exception):
    """An engine doesn't take a schema."""


class Driven:
    """A position in a text, as two functions, so that no wrapper's time is measured.

    Attributes:
        accept: takes a token; False when it is not allowed.
        fill: writes the mask of allowed tokens into the buffer that `Peer.start` was given.
    """

    __slots__ = ("accept", "fill")

    def __init__(self, accept: Callable[[int], bool], fill: Callable[[], object]) -> None:
        self.accept = accept
        self.fill = fill


class Peer(Protocol):
    """One engine, with its vocabulary built."""

    @property
    def lookup(self) -> Callable[[Any], Any] | None:
        """`compile` by the engine's own cache of whole schemas; None where it has none."""

    def compile(self, schema: Any) -> Any:
        """Makes a fresh constraint; raises `Refused`."""

    def start(self, constraint: Any, out: Mask) -> Driven:
        """A sequence at the beginning, with masks going to `out` of shape (W,)."""

    def counters(self, constraint: Any) -> dict[str, int]:
        """What a constraint has done so far, or nothing when the engine doesn't tell.

        `mask_misses`, the masks that had to be computed, is always among what is told.
        """


class Grammaton:
    """This library."""

    def __init__(self, tokens: list[bytes], special: dict[str, int], compact: bool) -> None:
        from grammaton import ConstraintCache, Grammar, Vocabulary, compile

        self._compile = compile
        self._cache = ConstraintCache()
        self._looked_up: Any = None
        self._parse = Grammar.from_json_schema
        self._whitespace: Literal["compact", "flexible"] = "compact" if compact else "flexible"
        self._vocabulary = Vocabulary(tokens, eos_token_ids=EOS_TOKEN_ID, special_tokens=special)
        self._vocabulary.prepare()

    def compile(self, schema: Any) -> Any:
        from grammaton.errors import GrammatonError

        try:
            grammar = self._parse(schema, whitespace=self._whitespace)
            return self._compile(grammar, self._vocabulary)
        except GrammatonError as error:
            raise Refused(str(error)) from error

    def lookup(self, schema: Any) -> Any:
        if schema is not self._looked_up:  # kept alone, since memory is measured as well
            self._cache.clear()
            self._looked_up = schema
        return self._cache.get("json_schema", schema, self._vocabulary, whitespace=self._whitespace)

    def start(self, constraint: Any, out: Mask) -> Driven:
        matcher = constraint.matcher()
        fill_mask = matcher.fill_mask
        return Driven(matcher.accept, lambda: fill_mask(out))

    def counters(self, constraint: Any) -> dict[str, int]:
        counters: dict[str, int] = constraint.stats()
        return counters


class LLGuidance:
    """llguidance through its own buffer-filling call."""

    lookup = None

    def __init__(self, tokens: list[bytes], special: dict[str, int], compact: bool) -> None:
        import llguidance

        # What its tokenizer wrapper asks for. Instances come as tokens, so nothing is tokenized
        # in a walk, and the greedy stand-in below serves only its constructor.
        class Tokens:
            eos_token_id = EOS_TOKEN_ID
            bos_token_id = None
            special_token_ids = sorted(special.values())

            def __init__(self) -> None:
                names = {token_id: name for name, token_id in special.items()}
                self.tokens = [
                    names[i].encode() if i in names else text for i, text in enumerate(tokens)
                ]
                self._single = {text: i for i, text in enumerate(tokens) if len(text) == 1}

            def __call__(self, text: bytes) -> list[int]:
                return [self._single[text[i : i + 1]] for i in range(len(text))]

        self._matcher = llguidance.LLMatcher
        self._tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))
        self._options: Any = {"whitespace_flexible": not compact}

    def compile(self, schema: Any) -> Any:
        grammar = self._matcher.grammar_from_json_schema(schema, overrides=self._options)
        matcher = self._matcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise Refused(matcher.get_error())
        return matcher

    def start(self, constraint: Any, out: Mask) -> Driven:
        constraint.reset()
        fill, pointer, size = constraint.unsafe_compute_mask_ptr, out.ctypes.data, out.nbytes
        return Driven(constraint.consume_token, lambda: fill(pointer, size))

    def counters(self, constraint: Any) -> dict[str, int]:
        del constraint
        return {}


class XGrammar:
    """XGrammar, compiling on one thread: all masks at once, or each when it is needed ("JIT")."""

    def __init__(
        self, tokens: list[bytes], special: dict[str, int], compact: bool, *, jit: bool = False
    ) -> None:
        del special  # no text in `tokens`, which is what XGrammar goes by
        import xgrammar

        self._matcher = xgrammar.GrammarMatcher
        self._options: dict[str, Any] = (
            {"any_whitespace": False, "separators": (",", ":")} if compact else {}
        )
        self.lookup = self.compile if jit else None
        info = xgrammar.TokenizerInfo(tokens, vocab_size=len(tokens), stop_token_ids=[EOS_TOKEN_ID])
        # Its cache also keeps whole grammars: with it, a schema is fresh once a vocabulary.
        self._compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_enabled=jit, enable_dynamic_compilation=jit
        )

    def compile(self, schema: Any) -> Any:
        try:
            return self._compiler.compile_json_schema(schema, strict_mode=False, **self._options)
        except RuntimeError as error:
            raise Refused(str(error)) from error

    def start(self, constraint: Any, out: Mask) -> Driven:
        matcher = self._matcher(constraint)
        fill, row = matcher.fill_next_token_bitmask, out.reshape(1, -1)

        def fill_row() -> None:
            # It leaves the buffer alone, and says so, when every token is allowed.
            if not fill(row):
                row.fill(-1)

        return Driven(matcher.accept_token, fill_row)

    def counters(self, constraint: Any) -> dict[str, int]:
        del constraint
        return {}


class GLRMask:
    """GLRMask. It knows one spelling of whitespace, that of `json.dumps`.

    It compiles on a thread of its own, so that only the CPU time of the whole process tells what it
    costs.
    """

    lookup = None

    def __init__(self, tokens: list[bytes], special: dict[str, int], compact: bool) -> None:
        del special  # no text in `tokens`; an id without text never matches
        if compact:
            raise ValueError("GLRMask has no JSON without whitespace")
        os.environ["RAYON_NUM_THREADS"] = "1"  # read at the first compile
        import glrmask

        texts = {i: text for i, text in enumerate(tokens) if text}
        self._vocabulary = glrmask.Vocab.from_id_to_bytes(texts)
        self._grammar = glrmask.Grammar
        self._sequence = glrmask.Expr.sequence
        self._end = glrmask.TokenSet([EOS_TOKEN_ID])

    def compile(self, schema: Any) -> Any:
        try:
            grammar = self._grammar.from_json_schema(schema)
            whole = self._grammar.from_expr(self._sequence(grammar, self._end))
            return whole.compile(self._vocabulary)
        except ValueError as error:
            raise Refused(str(error)) from error

    def start(self, constraint: Any, out: Mask) -> Driven:
        state = constraint.start()
        fill = state.fill_mask
        return Driven(state.commit_token, lambda: fill(out))

    def counters(self, constraint: Any) -> dict[str, int]:
        del constraint
        return {}


class Outlines:
    """outlines-core: a schema becomes a regex, the regex an automaton over all tokens."""

    lookup = None

    def __init__(self, tokens: list[bytes], special: dict[str, int], compact: bool) -> None:
        del special  # no text in `tokens`
        import outlines_core

        ids: dict[bytes, list[int]] = {}
        for i, text in enumerate(tokens):
            if text:
                ids.setdefault(text, []).append(i)
        self._blank = "" if compact else "[ ]?"
        self._vocabulary = outlines_core.Vocabulary(EOS_TOKEN_ID, ids)
        self._index = outlines_core.Index
        self._guide = outlines_core.Guide
        self._regex = outlines_core.json_schema.build_regex_from_schema

    def compile(self, schema: Any) -> Any:
        try:
            return self._index(self._regex(json.dumps(schema), self._blank), self._vocabulary)
        except (ValueError, RuntimeError) as error:
            raise Refused(str(error)) from error

    def start(self, constraint: Any, out: Mask) -> Driven:
        guide = self._guide(constraint)
        advance, write = guide.advance, guide.write_mask_into
        pointer, words, width = out.ctypes.data, out.size, out.itemsize

        def accept(token_id: int) -> bool:
            try:
                advance(token_id, False)
            except ValueError:
                return False
            return True

        return Driven(accept, lambda: write(pointer, words, width))

    def counters(self, constraint: Any) -> dict[str, int]:
        del constraint
        return {}


PEERS: dict[str, Callable[[list[bytes], dict[str, int], bool], Peer]] = {
    "grammaton": Grammaton,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
    "xgrammar-jit": partial(XGrammar, jit=True),
    "glrmask": GLRMask,
    "outlines-core": Outlines,
}

PACKAGES = {
    "grammaton": "grammaton",
    "llguidance": "llguidance",
    "xgrammar": "xgrammar",
    "xgrammar-jit": "xgrammar",
    "glrmask": "glrmask",
    "outlines-core": "outlines-core",
}
"""The distribution that each engine comes in."""


def whitespace_of(engine: str, *, compact: bool) -> Whitespace:
    """What the masks of an engine allow between JSON tokens."""
    if engine == "glrmask":
        return "spaced"
    return "compact" if compact else "flexible"


def timed_steps(sequence: Driven, token_ids: Sequence[int]) -> list[float]:
    """Process CPU seconds of each step: an accept and the mask after it.

    Raises:
        Refused: a token was rejected.
    """
    accept, fill, clock = sequence.accept, sequence.fill, time.process_time
    times = []
    for i, token_id in enumerate(token_ids):
        start = clock()
        taken = accept(token_id)
        fill()
        times.append(clock() - start)
        if not taken:
            raise Refused(f"token {i} of the valid instance was rejected")
    return times
