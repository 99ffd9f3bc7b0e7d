"""The engines of the mask benchmark behind one small interface, grammaton among them.

Every engine gets the same bytes for each token, the same special ids and the same end of sequence,
one thread, and the options that bring the languages as near to each other as they go: keys in the
schema's order, additional properties as the schema says, whitespace flexible or none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bench.walks import EOS_TOKEN_ID

Mask = NDArray[np.int32]


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

    def compile(self, schema: Any) -> Any:
        """Makes a fresh constraint; raises `Refused`."""

    def start(self, constraint: Any, out: Mask) -> Driven:
        """A sequence at the beginning, with masks going to `out` of shape (W,)."""

    def states(self, constraint: Any) -> int:
        """How many different masks a constraint has computed, or 0 when the engine doesn't tell."""


class Grammaton:
    """This library."""

    def __init__(self, tokens: list[bytes], special: dict[str, int], compact: bool) -> None:
        from grammaton import Grammar, Vocabulary, compile

        self._compile = compile
        self._parse = Grammar.from_json_schema
        self._whitespace: Literal["compact", "flexible"] = "compact" if compact else "flexible"
        self._vocabulary = Vocabulary(tokens, eos_token_ids=EOS_TOKEN_ID, special_tokens=special)
        _ = self._vocabulary.index

    def compile(self, schema: Any) -> Any:
        from grammaton.errors import GrammatonError

        try:
            grammar = self._parse(schema, whitespace=self._whitespace)
            return self._compile(grammar, self._vocabulary)
        except GrammatonError as error:
            raise Refused(str(error)) from error

    def start(self, constraint: Any, out: Mask) -> Driven:
        matcher = constraint.matcher()
        fill_mask = matcher.fill_mask
        return Driven(matcher.accept, lambda: fill_mask(out))

    def states(self, constraint: Any) -> int:
        return int(constraint.stats()["mask_misses"])


class LLGuidance:
    """llguidance through its own buffer-filling call."""

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

    def states(self, constraint: Any) -> int:
        del constraint
        return 0


class XGrammar:
    """XGrammar, compiling on one thread."""

    def __init__(self, tokens: list[bytes], special: dict[str, int], compact: bool) -> None:
        del special  # no text in `tokens`, which is what XGrammar goes by
        import xgrammar

        self._matcher = xgrammar.GrammarMatcher
        self._options: dict[str, Any] = (
            {"any_whitespace": False, "separators": (",", ":")} if compact else {}
        )
        info = xgrammar.TokenizerInfo(tokens, vocab_size=len(tokens), stop_token_ids=[EOS_TOKEN_ID])
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

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

    def states(self, constraint: Any) -> int:
        del constraint
        return 0


PEERS: dict[str, Callable[[list[bytes], dict[str, int], bool], Peer]] = {
    "grammaton": Grammaton,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
}
