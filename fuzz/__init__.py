"""Property-based testing of grammars, and the fuzz targets of the library itself.

The kit, for people who write grammars or programs that read what they describe:

- `sentences`, `mutations` and `prefixes`: hypothesis strategies of texts in a language, just
  outside it, and on the way into it. They need hypothesis (the extra `grammaton[fuzz]`).
- `counterexample`, `is_subset`, `is_empty` and `size`: questions about whole languages.
- `run`: sentences and near misses fed to a program, behind `grammaton fuzz`.

docs/fuzz.md shows them at work. Importing this package imports none of them.

The targets test the library itself on random inputs: `search` runs one, and

    python -m grammaton.fuzz --seconds 60

runs them all; `grammaton.fuzz.target` says what they have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammaton.fuzz.command import Disagreement, ProgramReport, TargetError, run
    from grammaton.fuzz.compare import (
        Counterexample,
        Undecided,
        counterexample,
        is_empty,
        is_subset,
        size,
    )
    from grammaton.fuzz.strategies import mutations, prefixes, sentences
    from grammaton.fuzz.target import Fault, Finding, Report, Target, search

__all__ = [
    "Counterexample",
    "Disagreement",
    "Fault",
    "Finding",
    "ProgramReport",
    "Report",
    "Target",
    "TargetError",
    "Undecided",
    "counterexample",
    "is_empty",
    "is_subset",
    "mutations",
    "prefixes",
    "run",
    "search",
    "sentences",
    "size",
]

_MODULES = {
    "Disagreement": "command",
    "ProgramReport": "command",
    "TargetError": "command",
    "run": "command",
    "Counterexample": "compare",
    "Undecided": "compare",
    "counterexample": "compare",
    "is_empty": "compare",
    "is_subset": "compare",
    "size": "compare",
    "mutations": "strategies",
    "prefixes": "strategies",
    "sentences": "strategies",
    "Fault": "target",
    "Finding": "target",
    "Report": "target",
    "Target": "target",
    "search": "target",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
