"""A cursor over the text of a grammar, with the errors that every notation shares."""

from __future__ import annotations

import re
from collections.abc import Callable

from grammaton.errors import GrammarError, PlacedError
from grammaton.grammar.ebnf_nodes import MAX_NESTING, MAX_REPEAT, Node, Repeat, Source
from grammaton.grammar.regex.ranges import Ranges, invert, normalize
from grammaton.grammar.utf8 import check_utf8

_DIGITS = re.compile("[0-9]+")
_WORD = re.compile(r"\w[\w-]*|\S", re.ASCII)


class Reader:
    """Reads a text from left to right.

    Args:
        text: the grammar.
        what: what it is, for messages: "a GBNF grammar".
        file: where the text was read, for messages.

    Raises:
        GrammarError: not a str, or a lone surrogate in it.
    """

    def __init__(self, text: str, what: str, *, file: str = "") -> None:
        self.text = check_utf8(text, what)
        self.source = Source(self.text, file)
        self.at = 0

    def error(
        self,
        message: str,
        position: int,
        end: int | None = None,
        *,
        kind: type[PlacedError] = GrammarError,
    ) -> PlacedError:
        """The error for a span; it is for the caller to raise."""
        return self.source.error(message, position, end, kind=kind)

    def expected(self, what: str) -> PlacedError:
        """The error for something else than what must come next."""
        found = _WORD.match(self.text, self.at)
        if found is not None:
            shown = found[0] if found[0].isprintable() else f"U+{ord(found[0][0]):04X}"
            return self.error(f"expected {what}, found {shown}", self.at, self.at + len(found[0]))
        shown = "the end of the line" if self.at < len(self.text) else "the end of the grammar"
        return self.error(f"expected {what}, found {shown}", self.at)

    def sees(self, symbol: str) -> bool:
        """Whether `symbol` comes next."""
        return self.text.startswith(symbol, self.at)

    def take(self, symbol: str) -> bool:
        """Steps over `symbol` when it comes next."""
        found = self.sees(symbol)
        self.at += len(symbol) if found else 0
        return found

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Steps over a match of `pattern` at the cursor, if there is one."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def class_ranges(
        self, start: int, class_char: Callable[[int], int], *, hint: str = ""
    ) -> Ranges:
        """The characters of `[…]` or `[^…]`, opened at `start` and now behind the bracket.

        `class_char(start)` reads one character of it.
        """
        negated = self.take("^")
        found: list[tuple[int, int]] = []
        while not self.take("]"):
            here = self.at
            low = high = class_char(start)
            if self.sees("-") and not self.sees("-]"):
                self.at += 1
                high = class_char(start)
            if high < low:
                raise self.error("this range ends before its start", here, self.at)
            found.append((low, high))
        if not found:
            raise self.error(f"an empty class; expected characters{hint}", start, self.at)
        ranges = normalize(found)
        return invert(ranges) if negated else ranges

    def count(self, what: str) -> int:
        """Reads a number of repetitions."""
        start = self.at
        digits = self.match(_DIGITS)
        if digits is None:
            raise self.expected(what)
        # Long digit strings are refused by length: int() is quadratic, and limited by Python.
        if len(digits[0].lstrip("0")) > 10 or int(digits[0]) > MAX_REPEAT:
            raise self.error(
                f"the repetition count is too large; expected at most {MAX_REPEAT}", start, self.at
            )
        return int(digits[0])

    def repeated(self, node: Node, low: int, high: int | None, start: int) -> Repeat:
        """A node with a quantifier, whose place is from `start` to here; it may have others."""
        inner: Node = node
        for _ in range(MAX_NESTING):
            if not isinstance(inner, Repeat):
                return Repeat(node, low, high)
            inner = inner.body
        raise self.error(f"more than {MAX_NESTING} quantifiers in a row", start, self.at)

    def hexadecimal(self, digits: str, start: int) -> int:
        """The code point that hexadecimal digits name; the span of errors begins at `start`."""
        value = int(digits, 16) if len(digits.lstrip("0")) <= 6 else 0x110000
        if value > 0x10FFFF:
            raise self.error("expected a code point up to U+10FFFF", start, self.at)
        if 0xD800 <= value <= 0xDFFF:
            raise self.error("a surrogate is no character", start, self.at)
        return value
