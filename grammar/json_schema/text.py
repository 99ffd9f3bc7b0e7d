"""Pieces of JSON text: white space between tokens, braces and commas, strings' frames.

The text language, fixed here for every schema:

- `"flexible"`: between two tokens up to `MAX_WHITESPACE` of JSON's white space characters (RFC
  8259, section 2), none before the first token or after the last one. The bound keeps a model
  from looping on spaces.
- `"compact"`: none.
- an integer n: exactly the line breaks and spaces of `json.dumps(value, indent=n)`. Indentation
  depends on the depth, so values nest at most `MAX_INDENTED_DEPTH` deep in this form.

A *frame* is a rule of its own that the compiled core can share between grammars: a string's body
with its closing quote, a number, a run of white space. Everything here is made once a store.
"""

from __future__ import annotations

from typing import Any, Literal

from grammaton.errors import GrammatonError
from grammaton.grammar.json_schema.spelling import Escapes, Spelling

MAX_WHITESPACE = 40
"""White space characters allowed in a row between two tokens under "flexible"."""

MAX_INDENTED_DEPTH = 24
"""Arrays and objects within each other that an indented text may have."""

Whitespace = Literal["flexible", "compact"] | int
Store = Any
"""A `grammaton._core.TermStore`, or anything with its building methods."""


class TextPieces:
    """The terms that every JSON grammar is put together from.

    Args:
        store: the term store to build in.
        whitespace: see the module's docstring; checked.
        escapes, ensure_ascii: see `spelling`; checked.
    """

    def __init__(
        self,
        store: Store,
        whitespace: Whitespace,
        *,
        escapes: Escapes = "any",
        ensure_ascii: bool = False,
    ) -> None:
        self.store = store
        self.indent: int | None = None
        self.space: int = store.EMPTY
        if isinstance(whitespace, int):
            self.indent = whitespace
        elif whitespace == "flexible":
            blank = store.chars([(9, 10), (13, 13), (32, 32)])
            run = self.frame("WS", store.repeat(blank, 1, MAX_WHITESPACE))
            self.space = store.union([store.EMPTY, run])
        self.quote: int = store.literal(b'"')
        self.any_char: int = store.chars([(0, 0x10FFFF)])
        self.spelling = Spelling(store, escapes, ensure_ascii)
        self.lift = self.spelling.lift
        self.json_char: int = self.spelling.character()
        self.close_brace: int = store.literal(b"}")
        self.close_bracket: int = store.literal(b"]")
        colon = store.literal(b":") if self.indent is None else store.literal(b": ")
        self.colon: int = store.concat([self.space, colon, self.space])
        self.quote_colon: int = store.concat([self.quote, self.colon])
        self._comma: int = store.literal(b",")
        self._open_brace: int = store.concat([store.literal(b"{"), self.space])
        self._open_bracket: int = store.concat([store.literal(b"["), self.space])
        self._flat_comma: int = store.concat([self._comma, self.space])
        self._string: int | None = None
        self.null: int = store.literal(b"null")
        self.booleans: int = store.union([store.literal(b"true"), store.literal(b"false")])

    def on(self, store: Store) -> TextPieces:
        """These pieces in a copy of their store."""
        pieces = object.__new__(TextPieces)
        pieces.__dict__.update(self.__dict__)
        pieces.store, pieces.spelling = store, self.spelling.on(store)
        pieces.lift = pieces.spelling.lift
        return pieces

    def frame(self, name: str, body: int) -> int:
        """A call of a new rule with this body."""
        rule = self.store.rule(name)
        self.store.define(rule, body)
        call: int = self.store.call(rule)
        return call

    def string_frame(self, name: str, body: int) -> int:
        """A string value: the quote, then a frame of the (lifted) body and the closing quote."""
        call: int = self.frame(name, self.store.concat([body, self.quote]))
        return call

    @property
    def any_string_rest(self) -> int:
        """The frame of any string's body and closing quote."""
        if self._string is None:
            anything = self.lift(self.store.repeat(self.any_char, 0, None))
            self._string = self.string_frame("STRING", anything)
        return self._string

    def literal(self, text: str) -> int:
        """The JSON spellings of one text, without quotes."""
        return self.spelling.texts([text])

    def open(self, bracket: Literal["{", "["]) -> int:
        """The opening bracket, with the space that may follow it."""
        return self._open_brace if bracket == "{" else self._open_bracket

    def first_lead(self, depth: int) -> int:
        """What stands between the opening bracket and the first member."""
        return int(self.store.EMPTY) if self.indent is None else self._line(depth + 1)

    def comma(self, depth: int) -> int:
        """The comma between two members of a container at `depth`."""
        if self.indent is None:
            return self._flat_comma
        return int(self.store.concat([self._comma, self._line(depth + 1)]))

    def close(self, bracket: Literal["}", "]"], depth: int) -> int:
        """The closing bracket after at least one member."""
        term = self.close_brace if bracket == "}" else self.close_bracket
        if self.indent is None:
            return term
        return int(self.store.concat([self._line(depth), term]))

    def _line(self, depth: int) -> int:
        assert self.indent is not None
        return int(self.store.literal(b"\n" + b" " * (self.indent * depth)))


def copied(builder: object) -> dict[str, Any]:
    """What a builder of terms knows, for another one in a copy of its store."""
    known = builder.__dict__
    return {name: each.copy() if isinstance(each, dict) else each for name, each in known.items()}


def check_whitespace(value: object) -> None:
    """Refuses what is no white space option.

    Raises:
        GrammatonError: it is none.
    """
    if value in ("flexible", "compact") and isinstance(value, str):
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise GrammatonError(
            f'whitespace is "flexible", "compact" or an indent width of at least 0, not {value!r}'
        )
