"""The errors grammaton raises.

Everything a user can meet derives from `GrammatonError`, so one `except` clause catches the
library and nothing else. An error about a grammar says *where*: a span in the source text (regex
and the text forms) or a JSON Pointer (schemas). Nothing is printed instead of raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MAX_MESSAGE = 1_000


class GrammatonError(Exception):
    """Base class of every error raised by grammaton."""


class PlacedError(GrammatonError):
    """An error about a place of a grammar, which its text shows with a caret.

    Args:
        message: one sentence a person can act on.
        source: the text the error is about, when there is one.
        position: 0-based code-point offset of the first offending character in `source`.
        end: offset one past the last offending character; `position + 1` by default.
        pointer: JSON Pointer (RFC 6901) to the offending place of a schema, `""` for the root.

    Attributes `line` and `column` (both 1-based) are derived from `source` and `position`.
    """

    part: str = ""
    """The rule or terminal at fault, as the core names it: whoever knows its place adds that."""

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        position: int | None = None,
        end: int | None = None,
        pointer: str | None = None,
    ) -> None:
        self.message = _shortened(message)
        self.source = source
        self.position = position
        self.end = end
        self.pointer = pointer
        self.line: int | None = None
        self.column: int | None = None
        if source is not None and position is not None:
            self.line = source.count("\n", 0, position) + 1
            self.column = position - (source.rfind("\n", 0, position) + 1) + 1
        super().__init__(self._render())

    def _render(self) -> str:
        if self.pointer is not None:
            return f"{self.message} (at {self.pointer or 'the root of the schema'})"
        if self.source is None or self.position is None or self.line is None or self.column is None:
            return self.message
        start = self.position - (self.column - 1)
        stop = self.source.find("\n", start)
        text = self.source[start : stop if stop >= 0 else len(self.source)].removesuffix("\r")
        shown, caret = _window(text, self.column - 1)
        width = 1 if self.end is None else max(1, min(self.end - self.position, len(shown) - caret))
        before, marked = _columns(shown[:caret]), max(1, _columns(shown[caret : caret + width]))
        return (
            f"{self.message} (line {self.line}, column {self.column})\n"
            f"    {shown}\n    {' ' * before}{'^' * marked}"
        )


def _shortened(message: str) -> str:
    """A message without the middle, where a name in it fills pages."""
    if len(message) <= _MAX_MESSAGE:
        return message
    half = _MAX_MESSAGE // 2
    return f"{message[:half]} … {message[-half:]}"


def _window(text: str, column: int, width: int = 96) -> tuple[str, int]:
    """The part of a long line around `column`, and where the caret stands in it."""
    start = 0 if len(text) <= width else max(0, min(column - width // 2, len(text) - width))
    return visible(text[start : start + width]), column - start


def visible(text: str) -> str:
    """A text with a stand-in for each character that a terminal would not show, or would obey."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _stand_in(char) for char in text)


def _stand_in(char: str) -> str:
    if char == "\t":
        return " "
    return chr(0x2400 + ord(char)) if char < " " else "\N{REPLACEMENT CHARACTER}"


def _columns(text: str) -> int:
    """The columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(combining(char) != 0 for char in text)


class GrammarError(PlacedError):
    """A grammar cannot be read or means nothing. Its arguments and attributes are
    `PlacedError`'s."""


class UnsupportedKeyword(GrammarError):
    """A construct that grammaton does not enforce yet. It is refused, never dropped."""


class UnsupportedType(GrammarError):
    """A Python type, or a part of one, that no grammar stands for exactly.

    Args:
        message: one sentence a person can act on.
        path: where it stands in the types, as in `Order.lines.item.price`; "" where there is none.
    """

    def __init__(self, message: str, *, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: {message}" if path else message)


class UnsatisfiableGrammar(GrammarError):
    """No text satisfies the grammar, or none that the vocabulary can spell."""


class VocabularyError(GrammatonError):
    """A vocabulary is malformed, or a token id or mask buffer does not fit it."""


class TokenRejected(GrammatonError):
    """The engine was handed a token that the mask forbids.

    Args:
        message: one sentence a person can act on.
        row: the row of the batch, when there is one.
        position: 0-based place of the token in the row's answer, the prompt not counted.
        token_id: the token.
    """

    def __init__(
        self,
        message: str,
        *,
        row: int | None = None,
        position: int | None = None,
        token_id: int | None = None,
    ) -> None:
        self.row = row
        self.position = position
        self.token_id = token_id
        super().__init__(message)


class LimitExceeded(PlacedError):
    """A bound of `grammaton.Limits` was met, or of what a grammar's notation may hold. The message
    names the limit and its value; it has a place where a part of the grammar is at fault."""


class BatchLimitExceeded(LimitExceeded):
    """A bound was met in some rows of a batch; all other rows are filled.

    Args:
        message: one sentence a person can act on.
        errors: the message of each row that failed, ascending by row. Their masks are empty.
        written: the rows whose masks were written, as `fill_masks` would have returned them.
    """

    def __init__(self, message: str, *, errors: dict[int, str], written: NDArray[np.int64]) -> None:
        self.errors = errors
        self.written = written
        super().__init__(message)
