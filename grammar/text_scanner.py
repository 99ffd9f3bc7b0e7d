"""The tokens of the text form: names, numbers, literals, classes, symbols.

White space and comments (`//` to the end of the line) stand between tokens and mean nothing. The
scanner has decoded every escape; linear in the text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from grammaton.errors import GrammarError
from grammaton.grammar.regex.ranges import MAX_CODE_POINT, Ranges, invert, normalize
from grammaton.grammar.utf8 import check_utf8

_SPACE = re.compile(r"(?:\s|//[^\n]*)*")
_WORD = re.compile(r"(?P<name>[A-Za-z_]\w*)|(?P<number>[0-9]+)", re.ASCII)
_SYMBOL = re.compile(r"::=|->|\+=|\.\.|[|&~?*+(){},;:#$=<-]")
_PLAIN = re.compile(r'[^"\\\n]+')
_CODE_POINT = re.compile(r"u\{([0-9A-Fa-f]{1,6})\}")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPED_ITSELF = '\\"[]^-'


class Token(NamedTuple):
    """A token and its span; a class has `ranges`, the others their (decoded) text as `value`."""

    kind: Literal["name", "number", "literal", "class", "symbol", "end"]
    value: str
    start: int
    end: int
    ranges: Ranges = ()

    @property
    def shown(self) -> str:
        """The token as error messages name it."""
        if self.kind in ("literal", "class"):
            return f"a {self.kind}"
        return "the end of the text" if self.kind == "end" else self.value


def scan(text: str) -> list[Token]:
    """All tokens, the last of kind "end".

    Raises:
        GrammarError: not a str, a lone surrogate, a character that begins no token, a bad escape,
            something unclosed.
    """
    return _Scanner(check_utf8(text, "the text form")).tokens()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while True:
            space = _SPACE.match(self._text, self._at)
            assert space is not None
            self._at = space.end()
            if self._at == len(self._text):
                found.append(Token("end", "", self._at, self._at + 1))
                return found
            found.append(self._token())

    def _token(self) -> Token:
        start = self._at
        char = self._text[start]
        if char == '"':
            value = self._literal()
            return Token("literal", value, start, self._at)
        if char == "[":
            ranges = self._class()
            return Token("class", "", start, self._at, ranges)
        word = _WORD.match(self._text, start)
        if word is not None:
            self._at = word.end()
            return Token("name" if word["name"] else "number", word[0], start, self._at)
        symbol = _SYMBOL.match(self._text, start)
        if symbol is None:
            raise self._error(f"{char!r} means nothing here", start, start + 1)
        self._at = symbol.end()
        return Token("symbol", symbol[0], start, self._at)

    def _literal(self) -> str:
        start = self._at
        self._at += 1
        pieces: list[str] = []
        while True:
            plain = _PLAIN.match(self._text, self._at)
            if plain is not None:
                pieces.append(plain[0])
                self._at = plain.end()
            if self._at >= len(self._text) or self._text[self._at] == "\n":
                raise self._error('this literal is never closed; expected "', start, start + 1)
            if self._text[self._at] == '"':
                self._at += 1
                return "".join(pieces)
            pieces.append(self._escape())

    def _class(self) -> Ranges:
        start = self._at
        self._at += 1
        negated = self._text.startswith("^", self._at)
        self._at += negated
        found: list[tuple[int, int]] = []
        while not self._text.startswith("]", self._at):
            here = self._at
            low = high = self._class_char(start)
            if self._text.startswith("-", self._at):
                self._at += 1
                high = self._class_char(start)
            if low > high:
                raise self._error("this range ends before its start", here, self._at)
            found.append((low, high))
        self._at += 1
        ranges = normalize(found)
        return invert(ranges) if negated else ranges

    def _class_char(self, start: int) -> int:
        if self._at >= len(self._text) or self._text[self._at] == "\n":
            raise self._error("this class is never closed; expected ]", start, start + 1)
        char = self._text[self._at]
        if char == "\\":
            return ord(self._escape())
        if char in "[]-":
            raise self._error(
                f"{char} must be escaped in a class: \\{char}", self._at, self._at + 1
            )
        self._at += 1
        return ord(char)

    def _escape(self) -> str:
        here = self._at
        char = self._text[here + 1 : here + 2]
        if char in _ESCAPES:
            self._at += 2
            return _ESCAPES[char]
        if char and char in _ESCAPED_ITSELF:
            self._at += 2
            return char
        match = _CODE_POINT.match(self._text, here + 1)
        if match is None:
            raise self._error(
                "bad escape; expected \\n, \\r, \\t, \\u{HEX} or an escaped character of "
                + " ".join(_ESCAPED_ITSELF),
                here,
                here + 2,
            )
        self._at = match.end()
        value = int(match[1], 16)
        if value > MAX_CODE_POINT or 0xD800 <= value <= 0xDFFF:
            raise self._error("this is no Unicode character", here, self._at)
        return chr(value)

    def _error(self, message: str, start: int, end: int) -> GrammarError:
        return GrammarError(message, source=self._text, position=start, end=end)
