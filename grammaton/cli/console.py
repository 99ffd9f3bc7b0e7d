"""What commands print with, and the statuses they end with.

Colours are rich's: none when the output is not a terminal, when `NO_COLOR` is set or the terminal
is dumb; `FORCE_COLOR` brings them back. Texts are never cut or wrapped in the middle of what a
script may read, and nothing in them is taken for markup.
"""

from __future__ import annotations

import json
import math
import sys
from enum import IntEnum
from typing import Any

import click
from rich.console import Console
from rich.text import Text


class Status(IntEnum):
    """Exit statuses; see `grammaton.cli`."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    GRAMMAR = 3
    MISSING = 4
    INTERRUPTED = 130
    PIPE = 141


class CommandError(Exception):
    """A message for the person at the terminal, and the status to end with."""

    def __init__(self, message: str, *, status: Status) -> None:
        super().__init__(message)
        self.status = status


class Finite(click.FloatRange):
    """A number between bounds; `nan` and `inf` are none."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number; click reports the failure."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def output() -> Console:
    """Standard output."""
    return _console(stderr=False)


def messages() -> Console:
    """Standard error."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value on standard output, indented, with characters as they are."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def caret_lines(shown: str, column: int, width: int = 1) -> Text:
    """A line of a text with a caret under `width` cells from `column` (0-based) on."""
    return Text.assemble("    ", shown, "\n    ", " " * column, ("^" * width, "bold red"))
