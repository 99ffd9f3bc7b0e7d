"""What targets share: the loop that draws and checks cases, and shrinking.

A *kind* names the way in which a case fails, in a few words that do not depend on the case. While a
case shrinks its kind must stay, or a finding would slip into another, more trivial one.
"""

from __future__ import annotations

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, TypeVar

SHRINK_SECONDS = 15.0
SLOW_SECONDS = 10.0
"""CPU time from which a case is a finding of its own: no input may keep the library busy."""

Case = Any
"""A JSON value: None, bool, int, float, str, and lists and dicts of them."""

_Pieces = TypeVar("_Pieces", str, list[Any])


class Fault(Exception):
    """Something that must hold did not.

    Args:
        kind: what, in words that are the same for every case.
        detail: where and how, for the person who reads the finding.
    """

    def __init__(self, kind: str, detail: object = "") -> None:
        self.kind = kind
        self.detail = str(detail)
        super().__init__(f"{kind}: {self.detail}" if self.detail else kind)


class Target(ABC):
    """Draws cases and checks them."""

    name: ClassVar[str]
    counts: ClassVar[str] = ""
    """What `check` counts, in the plural; "" when a case is one question."""

    def lacks(self) -> str | None:
        """The program that has to be installed before cases can be checked; None when all is
        there."""
        return None

    @abstractmethod
    def draw(self, rng: Random) -> Case:
        """A random case."""

    @abstractmethod
    def check(self, case: Case) -> int | None:
        """Returns when everything held: how many of its `counts` there were, if it has any.

        Raises:
            Fault: something did not. Any other exception counts as one.
        """

    @abstractmethod
    def smaller(self, case: Case) -> Iterator[Case]:
        """Cases a step smaller than this one, those that take most away first."""


@dataclass(frozen=True)
class Finding:
    """A case that fails: the smallest found, how it fails, and which drawn case it comes from."""

    target: str
    case: Case
    kind: str
    message: str
    number: int


@dataclass(frozen=True)
class Report:
    """What a search did: how many cases it ran, how many of the target's `counts` were in those,
    and the finding that ended it, if one did."""

    target: str
    cases: int
    counted: int
    finding: Finding | None


def search(
    target: Target, *, seed: int = 0, cases: int | None = None, seconds: float | None = None
) -> Report:
    """Checks drawn cases until one fails, `cases` were run or `seconds` are over.

    Raises:
        ValueError: neither bound was given.
    """
    if cases is None and seconds is None:
        raise ValueError("a search needs a bound: cases or seconds")
    stop = None if seconds is None else time.monotonic() + seconds
    number = counted = 0
    while (cases is None or number < cases) and (stop is None or time.monotonic() < stop):
        case = target.draw(Random(f"{seed}/{target.name}/{number}"))
        failure, asked = _checked(target, case)
        number += 1
        counted += asked
        if failure is not None:
            case, message = shrink(target, case, *failure)
            finding = Finding(target.name, case, failure[0], message, number - 1)
            return Report(target.name, number, counted, finding)
    return Report(target.name, number, counted, None)


def failure_of(target: Target, case: Case) -> tuple[str, str] | None:
    """The kind of a case's failure and a message; None when everything held."""
    return _checked(target, case)[0]


def _checked(target: Target, case: Case) -> tuple[tuple[str, str] | None, int]:
    began = time.process_time()
    try:
        counted = target.check(case) or 0
    except Fault as fault:
        return (fault.kind, str(fault)), 0
    except Exception as error:
        trace = "".join(traceback.format_exception(error)[-4:])
        return (f"{type(error).__name__} came out", trace), 0
    spent = time.process_time() - began
    slow = ("slow", f"slow: {spent:.1f} s of CPU time") if spent > SLOW_SECONDS else None
    return slow, counted


def shrink(
    target: Target, case: Case, kind: str, message: str, *, seconds: float = SHRINK_SECONDS
) -> tuple[Case, str]:
    """A case that fails in the same way and of which no smaller one does, and its message; the
    best so far when the time is over."""
    stop = time.monotonic() + seconds
    candidates = target.smaller(case)
    while time.monotonic() < stop:
        candidate = next(candidates, None)
        if candidate is None:
            break
        failure = failure_of(target, candidate)
        if failure is not None and failure[0] == kind:
            case, message = candidate, failure[1]
            candidates = target.smaller(case)
    return case, message


def without_parts(pieces: _Pieces) -> Iterator[_Pieces]:
    """A text or list without a run of its elements: all, halves, quarters, …, single ones."""
    size = len(pieces)
    while size:
        for at in range(0, len(pieces), size):
            yield pieces[:at] + pieces[at + size :]
        size //= 2


def smaller_value(value: Case) -> Iterator[Case]:
    """JSON values smaller than this one: its parts, itself without some, or with smaller ones."""
    if isinstance(value, str):
        yield from without_parts(value)
    elif isinstance(value, list):
        yield from value
        yield from without_parts(value)
        for at, part in enumerate(value):
            for less in smaller_value(part):
                yield [*value[:at], less, *value[at + 1 :]]
    elif isinstance(value, dict):
        for part in value.values():
            yield part
            # Schemas stand in lists and maps inside schemas, which are none themselves.
            yield from part.values() if isinstance(part, dict) else ()
            yield from part if isinstance(part, list) else ()
        for keys in without_parts(list(value)):
            yield {key: value[key] for key in keys}
        for key, part in value.items():
            for less in smaller_value(part):
                yield {**value, key: less}
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (less for less in (0, abs(value) // 2) if less < abs(value))


def mutate_text(rng: Random, text: str, alphabet: Sequence[str]) -> str:
    """The text with one to three characters inserted, dropped, replaced or moved."""
    random = rng.random  # a third of the time of `randrange`
    for _ in range(1 + int(random() * 3)):
        at = int(random() * (len(text) + 1))
        kind = int(random() * 4)
        if kind == 0:
            text = text[:at] + alphabet[int(random() * len(alphabet))] + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + 1 :]
        elif kind == 2:
            text = text[:at] + alphabet[int(random() * len(alphabet))] + text[at + 1 :]
        else:
            text = text[at:] + text[:at]
    return text
