"""Texts a person gives, and places in them.

A *place* is where in a text something happened, as a byte, a line and a column (1-based, in
characters), with that line as a terminal can show it: control characters and bytes that are no
UTF-8 are escaped, and a long line is cut around the place.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.text import Text

from grammaton.cli.console import CommandError, Status, caret_lines
from grammaton.cli.expected import quoted
from grammaton.grammar.text_printer import escape

_WIDTH = 88

MAX_FILE = 256 * 2**20
"""Bytes of a file; a device may have no end."""


def read_file(path: str, what: str) -> bytes:
    """The bytes of a file, of standard input for `-`.

    Raises:
        CommandError: it can't be read; `what` names it in the message.
    """
    if path == "-" and sys.stdin is None:
        raise CommandError(f"can't read {what}: standard input is closed", status=Status.USAGE)
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as stream:
            data = stream.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise CommandError(f"can't read {what}, {path}: {reason}", status=Status.USAGE) from error
    if len(data) > MAX_FILE:
        size = f"larger than {MAX_FILE >> 20} MiB"
        raise CommandError(f"can't read {what}, {path}: it is {size}", status=Status.USAGE)
    return data


@dataclass(frozen=True)
class Place:
    """A place in a text.

    Attributes:
        byte: its offset in bytes, 0-based.
        line, column: 1-based, the column in characters.
        found: what stands there, as a phrase.
        shown: the line, for a terminal.
        caret: the cell of `shown` that the place begins at.
        width: the cells it takes, at least 1.
    """

    byte: int
    line: int
    column: int
    found: str
    shown: str
    caret: int
    width: int

    @property
    def name(self) -> str:
        """`byte 12 (line 1, column 13)`."""
        return f"byte {self.byte} (line {self.line}, column {self.column})"

    def excerpt(self) -> Text:
        """The line, with a caret under the place."""
        return caret_lines(self.shown, self.caret, self.width)


def place(text: bytes, byte: int) -> Place:
    """The place of a byte in a text; `byte` may be its length, for the end."""
    here = byte
    while 0 < here < len(text) and byte - here < 3 and text[here] & 0xC0 == 0x80:
        here -= 1
    start = text.rfind(b"\n", 0, here) + 1
    stop = text.find(b"\n", here)
    before = text[start:here].decode(errors="surrogateescape")
    after = text[here : stop if stop >= 0 else len(text)].decode(errors="surrogateescape")
    shown_before, shown_after = (list(map(show_character, part)) for part in (before, after))
    left = _fit(list(reversed(shown_before)), _WIDTH // 2)
    right = _fit(shown_after, _WIDTH - cell_len("".join(left)))
    head = "".join(reversed(left))
    if len(left) < len(shown_before):
        head = "…" + head
    tail = "".join(right) + ("…" if len(right) < len(shown_after) else "")
    if here == len(text):
        found = "the end of the text"
    elif not after:
        found = "a newline"
    else:
        found = quoted(after[0]) if after[0].isprintable() else shown_after[0]
    return Place(
        byte=byte,
        line=text.count(b"\n", 0, here) + 1,
        column=len(before) + 1,
        found=found,
        shown=head + tail,
        caret=cell_len(head),
        width=max(1, cell_len(shown_after[0])) if shown_after else 1,
    )


def show_character(char: str) -> str:
    """A character for a terminal; one that stands for a byte that is no UTF-8 as `\\xNN`."""
    code = ord(char)
    return f"\\x{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else escape(code, "")


def show_text(text: bytes) -> str:
    """A text for one line of a terminal."""
    return "".join(map(show_character, text.decode(errors="surrogateescape")))


def _fit(pieces: list[str], width: int) -> list[str]:
    """As many pieces from the front as fit."""
    used = 0
    for i, piece in enumerate(pieces):
        used += cell_len(piece)
        if used > width:
            return pieces[:i]
    return pieces
