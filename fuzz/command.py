"""A program against a grammar: what `grammaton fuzz` does.

Nouns:

- *target*: a program that reads a text and says by its exit status whether it takes it: 0 for yes,
  anything else for no. `{}` in its command line stands for the path of a file that holds the text,
  in UTF-8 and without a newline that is not of the text; without `{}` the text is standard input.
- *disagreement*: a text on which target and grammar part. Four kinds: the target *refuses* a
  sentence, *accepts* a near miss, *crashes* (ends by a signal) or *hangs* (is not done in time).

Sentences and near misses take turns. The first disagreement of each kind is made smaller: its text
stays a sentence, or outside the language, and the target goes on to do the same. Later ones of the
same kind are counted.

Cost: that of the target's process, a few ms. A target that hangs is killed with all that it
started, and takes its timeout for each text; while a hang is made smaller, the timeout is some
times what the target mostly takes, and what is found is tried once more at full length.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

from grammaton.errors import GrammatonError, UnsatisfiableGrammar
from grammaton.fuzz.draw import (
    Choice,
    Drawn,
    NearMisses,
    Replayed,
    draw_sentence,
    longest_size,
)
from grammaton.fuzz.paths import Paths, rank
from grammaton.fuzz.target import without_parts
from grammaton.grammar.grammar import Grammar

Kind = Literal["refuses", "accepts", "crashes", "hangs"]

SHRINK_SECONDS = 10.0
_SAID = 400
_SIGNAL_STATUS = range(129, 160)
"""Statuses with which a shell says that a signal ended what it ran."""


class TargetError(GrammatonError):
    """The target can't be run: no such program, or no command at all."""


@dataclass(frozen=True)
class Disagreement:
    """How a target and a grammar part.

    Attributes:
        kind: what the target does.
        is_sentence: whether the text is one.
        text: the smallest text found that shows it.
        detail: the exit status, and the end of what the target wrote to standard error.
        count: how many of the texts that were tried show this kind.
    """

    kind: Kind
    is_sentence: bool
    text: str
    detail: str
    count: int


@dataclass(frozen=True)
class ProgramReport:
    """What came of feeding a target.

    Attributes:
        sentences, near_misses: how many different ones it was given, without those that were tried
            to make a disagreement smaller.
        disagreements: one for each kind.
        seconds: how long it took.
    """

    sentences: int
    near_misses: int
    disagreements: tuple[Disagreement, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON value."""
        return asdict(self) | {"disagreements": [asdict(each) for each in self.disagreements]}


def run(
    grammar: Grammar,
    target: str | Sequence[str],
    *,
    cases: int = 500,
    seconds: float = 60.0,
    timeout: float = 5.0,
    seed: int = 0,
    max_size: int | None = None,
) -> ProgramReport:
    """Feeds sentences and near misses of a grammar to a program and reports where they disagree.

    Args:
        grammar: the language that the program should accept.
        target: the program and its arguments; a str is split as a POSIX shell would, but no shell
            runs it.
        cases: how many texts to draw; equal ones are tried once.
        seconds: when to stop drawing; a text under way, and making disagreements smaller, which
            takes at most 10 s each, come on top.
        timeout: seconds after which a run counts as hung.
        seed: which texts; the same seed draws the same.
        max_size: the most characters of a sentence, 100 more than the shortest by default.

    Raises:
        TargetError: no such program, a command line that can't be split, or numbers that are not
            above 0.
        UnsatisfiableGrammar: the language is empty.
        GrammarError, LimitExceeded: as `grammaton.fuzz.sentences`.
    """
    for name, bound in (("cases", cases), ("seconds", seconds), ("timeout", timeout)):
        _check_above_zero(name, bound)
    command = _command(target)
    paths = Paths(grammar)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="grammaton-fuzz-") as folder:
        program = _Program(paths, command, Path(folder), timeout, max_size)
        found: dict[Kind, Disagreement] = {}
        counts: Counter[str] = Counter()
        for number in range(cases):
            if time.monotonic() - began > seconds:
                break
            case = program.draw(Random(f"{seed}/{number}"), sentence=number % 2 == 0)
            if case is None:
                continue
            counts["sentences" if case.sentence else "near misses"] += 1
            fault = program.fault(case)
            if fault is None:
                continue
            counts[fault.kind] += 1
            if fault.kind not in found:
                found[fault.kind] = program.smallest(case, fault)
    return ProgramReport(
        sentences=counts["sentences"],
        near_misses=counts["near misses"],
        disagreements=tuple(replace(each, count=counts[kind]) for kind, each in found.items()),
        seconds=time.monotonic() - began,
    )


def _check_above_zero(name: str, bound: object) -> None:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not bound > 0:
        raise TargetError(f"{name} must be a number above 0, not {bound!r}")


def _command(target: str | Sequence[str]) -> list[str]:
    try:
        command = shlex.split(target) if isinstance(target, str) else [str(part) for part in target]
    except ValueError as error:
        raise TargetError(f"the target's command line can't be split: {error}") from None
    if not command:
        raise TargetError("the target is empty; give a program and its arguments")
    if shutil.which(command[0]) is None:
        raise TargetError(f"there is no program {command[0]!r}")
    return command


@dataclass(frozen=True)
class _Case:
    """A text, whether it is a sentence or a near miss, and the choices that it was drawn from."""

    text: str
    sentence: bool
    choices: list[Choice]


@dataclass(frozen=True)
class _Fault:
    kind: Kind
    detail: str


class _Program:
    """The target at work, and what it did with each text."""

    def __init__(
        self,
        paths: Paths,
        command: list[str],
        folder: Path,
        timeout: float,
        max_size: int | None,
    ) -> None:
        self._paths = paths
        self._command = command
        self._folder = folder
        self._timeout = self._full_timeout = timeout
        self._slowest = 0.0
        self._max_size = longest_size(paths, max_size)
        self._faults: dict[str, _Fault | None] = {}
        try:
            self._misses: NearMisses | None = NearMisses(paths, max_size=max_size)
        except UnsatisfiableGrammar:
            self._misses = None  # Every text is a sentence.

    def draw(self, rng: Random, *, sentence: bool) -> _Case | None:
        """A text that was not tried before; None when none comes of these random numbers."""
        source = Drawn(rng)
        if sentence:
            text: str | None = draw_sentence(self._paths, source, max_size=self._max_size)
        else:
            text = None if self._misses is None else self._misses.draw(source)
        return (
            None if text is None or text in self._faults else _Case(text, sentence, source.choices)
        )

    def fault(self, case: _Case) -> _Fault | None:
        """What is wrong with what the target does with a text."""
        if case.text not in self._faults:
            self._faults[case.text] = self._judge(case.text, sentence=case.sentence)
        return self._faults[case.text]

    def smallest(self, case: _Case, fault: _Fault) -> Disagreement:
        """A disagreement of the same kind, with as small a text as is found in `SHRINK_SECONDS`."""
        hangs = fault.kind == "hangs"
        if hangs:
            self._timeout = min(self._full_timeout, 0.1 + 10 * self._slowest)
        least = self._least(case, fault.kind)
        if hangs:
            self._timeout = self._full_timeout
            del self._faults[least.text]
            again = self.fault(least)
            if again is None or again.kind != "hangs":  # It was slow rather than hung.
                least = case
        found = self._faults[least.text] or fault
        return Disagreement(fault.kind, case.sentence, least.text, found.detail, 0)

    def _least(self, case: _Case, kind: Kind) -> _Case:
        """First as many choices as possible are left out of a sentence and the others made
        simpler, which keeps brackets matched; then characters of the text."""
        stop = time.monotonic() + SHRINK_SECONDS

        def holds(smaller: _Case, than: _Case) -> bool:
            if time.monotonic() > stop or _size(smaller.text) >= _size(than.text):
                return False
            if self._paths.accepts(smaller.text) != smaller.sentence:
                return False
            fault = self.fault(smaller)
            return fault is not None and fault.kind == kind

        before = None
        while before != case and time.monotonic() < stop:
            before = case
            for simplified in (self._by_choices, self._by_characters):
                case = simplified(case, holds)
        return case

    def _by_choices(self, case: _Case, holds: Callable[[_Case, _Case], bool]) -> _Case:
        if not case.sentence or not case.choices:
            return case

        def redrawn(choices: list[Choice]) -> _Case:
            text = draw_sentence(self._paths, Replayed(choices), max_size=self._max_size)
            return _Case(text, True, choices)

        run = len(case.choices)
        while run:
            at = 0
            while at < len(case.choices):
                less = redrawn(case.choices[:at] + case.choices[at + run :])
                case, at = (less, at) if holds(less, case) else (case, at + run)
            run //= 2
        at = 0
        while at < len(case.choices):
            for choice in _simpler(case.choices[at]):
                less = redrawn([*case.choices[:at], choice, *case.choices[at + 1 :]])
                if holds(less, case):
                    case = less
                    break
            else:
                at += 1
        return case

    def _by_characters(self, case: _Case, holds: Callable[[_Case, _Case], bool]) -> _Case:
        run = len(case.text)
        while run:
            at = 0
            while at < len(case.text):
                less = _Case(case.text[:at] + case.text[at + run :], case.sentence, [])
                case, at = (less, at) if holds(less, case) else (case, at + run)
            run //= 2
        for at in range(len(case.text)):
            for simple in "a0A":
                less = _Case(case.text[:at] + simple + case.text[at + 1 :], case.sentence, [])
                if holds(less, case):
                    case = less
                    break
        return case

    def _judge(self, text: str, *, sentence: bool) -> _Fault | None:
        status, said = self._run(text.encode())
        if status is None:
            return _Fault("hangs", f"not done after {self._timeout:g} s")
        detail = f"exit status {status}" + (f": {said}" if said else "")
        if status < 0 or status in _SIGNAL_STATUS:
            number = -status if status < 0 else status - 128
            with contextlib.suppress(ValueError):
                detail = f"{signal.Signals(number).name}" + (f": {said}" if said else "")
            return _Fault("crashes", detail)
        if sentence != (status == 0):
            return _Fault("refuses" if sentence else "accepts", detail)
        return None

    def _run(self, text: bytes) -> tuple[int | None, str]:
        """The exit status, None when it was not done in time, and what it had to say."""
        path = self._folder / "text"
        path.write_bytes(text)
        command = [part.replace("{}", str(path)) for part in self._command]
        by_path = command != self._command
        began = time.monotonic()
        # Files rather than pipes: a grandchild that outlives the target would keep those open.
        with path.open("rb") as given, (self._folder / "said").open("w+b") as said:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if by_path else given,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
            try:
                status: int | None = process.wait(self._timeout)
                self._slowest = max(self._slowest, time.monotonic() - began)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _kill(process)
            said.seek(0, os.SEEK_END)
            said.seek(max(0, said.tell() - _SAID))
            return status, said.read().decode(errors="replace").strip()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _size(text: str) -> tuple[int, int]:
    """Less is smaller: shorter, or as long with simpler characters."""
    return len(text), sum(rank(ord(char)) for char in text)


def _simpler(choice: Choice) -> Iterator[Choice]:
    if isinstance(choice, str):
        yield from without_parts(choice)
    else:
        yield from sorted({0, choice // 2, choice - 1} & set(range(choice)))
