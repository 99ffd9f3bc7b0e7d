"""Target `patterns`: regular expressions of Python's dialect, right and broken, against `re`.

A case is a pattern and texts. Texts are drawn with the pattern (see `drawn_patterns`), and four in
ten patterns are mutated then, so that most of those are broken or mean something else. Where both
`re` and `Grammar.from_regex` take a pattern, they must agree on every text. Where ours refuses it,
that must be an error that says where; it may refuse what `re` takes only as not supported (back-
references, say), and never take what `re` refuses.

Texts are at most 7 characters long: `re` backtracks, exponentially on some patterns. A pattern
costs a millisecond or two and a text ten microseconds, so there are many texts a pattern.
"""

from __future__ import annotations

import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from grammaton.errors import GrammarError, LimitExceeded
from grammaton.fuzz.drawn_patterns import PythonPatterns
from grammaton.fuzz.target import (
    SLOW_SECONDS,
    Case,
    Fault,
    Target,
    mutate_text,
    without_parts,
)
from grammaton.grammar.grammar import Grammar

_DIALECT = PythonPatterns()
_LONGEST = 7
_TEXTS = 500
_BEYOND = ("not supported", "nested")
"""In the message about a construct that is beyond what can be lowered."""


def asks_re(pattern: str, *, flags: str = "", search: bool = False) -> Callable[[str], bool]:
    """The question whether `re` finds a text to match, or to contain a match.

    `re.search` itself passes over matches, as it looks for their first characters with the flags of
    the whole pattern (`(?a)(?u:\\w)` in "é"). So every place is tried.

    Raises:
        re.error, OverflowError, ValueError: `re` refuses the pattern or the flags.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(pattern, sum(re.RegexFlag[flag.upper()] for flag in flags))
    if not search:
        return lambda text: expected.fullmatch(text) is not None
    return lambda text: any(expected.match(text, at) for at in range(len(text) + 1))


class _OutOfTime(Exception):
    pass


def _answers(asked: Callable[[str], bool], texts: Sequence[str]) -> list[bool]:
    """What `re` says of the first texts: those it gets to. It gives some up itself (`(|){2}+` and
    the like), and goes back and forth over others for hours."""
    answers: list[bool] = []
    try:
        with _stopped_after(SLOW_SECONDS / 4):
            answers.extend(map(asked, texts))
    except (_OutOfTime, SystemError):
        pass
    return answers


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raises inside of what takes more CPU time: a match of `re` looks for signals on its way.
    Where there is no such timer, or it is not the main thread's, that is waited for."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _taken(pattern: str, *, flags: str) -> bool:
    try:
        asks_re(pattern, flags=flags)
    except (re.error, OverflowError, ValueError):
        return False
    return True


class Patterns(Target):
    """`Grammar.from_regex` against `re`. A case: {"pattern": str, "flags": str, "search": bool,
    "texts": [str, …]}; flags and search may be missing."""

    name = "patterns"
    counts = "pairs of a pattern and a text"

    def draw(self, rng: Random) -> Case:
        drawn = _DIALECT.draw(rng)
        pattern, sample = drawn.pattern, drawn.sample
        if rng.random() < 0.2:
            pattern = f"(?{rng.choice('imsaxu')}){pattern}"
        if rng.random() < 0.4:
            pattern = mutate_text(rng, pattern, _DIALECT.syntax)
        search = rng.random() < 0.3
        flags = rng.choice(("", "", "", "i", "m", "s", "a"))
        count = _TEXTS if _taken(pattern, flags=flags) else 1  # which shall not cost its time
        texts = _DIALECT.draw_texts(rng, sample, count=count, longest=_LONGEST, search=search)
        return {"pattern": pattern, "flags": flags, "search": search, "texts": texts}

    def check(self, case: Case) -> int:
        pattern, flags = case["pattern"], case.get("flags", "")
        search = case.get("search", False)
        asked: Callable[[str], bool] | None = None
        refusal: Exception | None = None
        try:
            asked = asks_re(pattern, flags=flags, search=search)
        except (re.error, OverflowError, ValueError) as error:
            refusal = error
        grammar = made(pattern, taken=asked is not None, flags=flags, search=search)
        if grammar is None:
            return 0
        if asked is None:
            raise Fault("a pattern that re refuses was taken", refusal) from refusal
        answers = _answers(asked, case["texts"])
        last = time.process_time() + SLOW_SECONDS / 2
        for number, (text, theirs) in enumerate(zip(case["texts"], answers, strict=False)):
            if time.process_time() > last:
                return number  # A hard pattern: some texts together may take longer than one may.
            try:
                ours = grammar.accepts(text)
            except LimitExceeded:
                return number
            if ours != theirs:
                name = "search" if search else "fullmatch"
                raise Fault(f"another answer than re.{name}", f"{pattern!r} on {text!r}: {ours}")
        return len(answers)

    def smaller(self, case: Case) -> Iterator[Case]:
        return smaller_patterns(case)


def made(pattern: str, *, taken: bool, **options: Any) -> Grammar | None:
    """The grammar of a pattern that another implementation has `taken` or not; None when it is
    refused, rightly as it seems.

    Raises:
        Fault: the refusal does not say where, or is none of a construct that is beyond grammars.
    """
    try:
        return Grammar.from_regex(pattern, **options)
    except LimitExceeded:
        return None
    except GrammarError as error:
        if error.position is None or not 0 <= error.position <= len(pattern):
            raise Fault("an error without a place in the pattern", repr(error)) from error
        if taken and not any(words in error.message for words in _BEYOND):
            raise Fault("a good pattern was refused", f"{pattern!r}: {error}") from error
        return None


def smaller_patterns(case: Case) -> Iterator[Case]:
    """Smaller cases of a pattern and texts; every other field may be missing."""
    for key in case:
        if key not in ("pattern", "texts"):
            yield {other: part for other, part in case.items() if other != key}
    for texts in without_parts(case["texts"]):
        yield {**case, "texts": texts}
    for pattern in without_parts(case["pattern"]):
        yield {**case, "pattern": pattern}
    for at, text in enumerate(case["texts"]):
        for less in without_parts(text):
            yield {**case, "texts": [*case["texts"][:at], less, *case["texts"][at + 1 :]]}
