"""Cases that are kept: those that failed once, and others that are hard to come by at random.

`fuzz/regressions/TARGET.json` is a list of `{"why": …, "case": …}`. They are checked before a run
draws cases of its own, and by the tests. A finding is kept by adding its case, as printed, and what
was wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from grammaton.fuzz.target import Case, Finding, Target, failure_of

FOLDER = Path(__file__).parent / "regressions"


@dataclass(frozen=True)
class Kept:
    """A case, and why it is kept."""

    why: str
    case: Case


def kept_cases(name: str) -> list[Kept]:
    """The cases kept for a target; none when it has no file."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        return []
    return [Kept(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def check_kept(target: Target) -> Finding | None:
    """The first kept case that fails; its number counts kept cases from 0."""
    for number, kept in enumerate(kept_cases(target.name)):
        failure = failure_of(target, kept.case)
        if failure is not None:
            return Finding(target.name, kept.case, failure[0], failure[1], number)
    return None
