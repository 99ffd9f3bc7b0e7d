"""Types of arguments that the benches share; argparse reports what they refuse."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path


def positive(text: str) -> int:
    """A number of repetitions, schemas or tokens: at least 1."""
    try:
        number = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < 1:
        raise ArgumentTypeError(f"{number} is not at least 1")
    return number


def existing(text: str) -> Path:
    """A data set or a folder of them."""
    path = Path(text)
    if not path.exists():
        raise ArgumentTypeError(f"there is no {text}")
    return path
