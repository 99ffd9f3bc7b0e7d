"""Fuzz targets: random inputs to the whole library, and what must hold whatever they are.

Nouns:

- *case*: one input, as a JSON value, so that a finding can be printed, kept and replayed.
- *target*: draws cases from a `random.Random`, and checks one: it returns when everything held and
  raises `Fault` when something did not. Any other exception that leaves a check is a fault too:
  what a library may raise on bad input is part of what a target checks.
- *finding*: a fault, with the smallest case found that still shows it. Shrinking tries parts of the
  case in place of the whole and keeps what fails in the same way; it is greedy and bounded.

The targets, and what each compares with what:

    patterns    regular expressions, right and broken: `Grammar.from_regex` against `re.fullmatch`
    schemas     values like JSON Schemas, mutated: nothing but a `GrammatonError` may come out, and
                whatever compiles can be written to the end, as JSON
    matcher     small grammars on odd vocabularies: a matcher after any history against one that
                replays what is left of it, and each mask against `accept` of every id

A run is its seed: case n of a target is drawn from (seed, target, n) alone, so that it does not
depend on how long the cases before it took. What is searched is wide and shallow; the property
tests under `tests/` are deep, as they compare with a reference, but need more than the standard
library and numpy, which is all there is here. So this can be run wherever the library is installed:

    python -m grammaton.fuzz --seconds 60

Cost: a case takes about a millisecond, most of it in the library, and one that takes ten seconds is
a finding. Shrinking a finding takes at most 15 seconds. A case that never ends or that kills the
process is not caught here; the seed finds it again.
"""

from __future__ import annotations

from grammaton.fuzz.target import Fault, Finding, Report, Target, search

__all__ = ["Fault", "Finding", "Report", "Target", "search"]
