"""Target `languages`: the kit on random patterns, with `re` as the judge of its texts.

A case is two patterns and a seed. Sentences drawn from the first must match it, near misses must
not, and prefixes must go on; what tells the two patterns apart must match exactly the one that it
is said to be of; and the number of short sentences must be what counting them one by one gives.
This reaches texts that random mutation hardly finds, deep inside a language and at its rim.

Texts are at most 8 characters long: `re` backtracks, exponentially on some patterns.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from random import Random

from grammaton.errors import GrammatonError
from grammaton.fuzz.compare import counterexample, is_subset, size
from grammaton.fuzz.draw import Drawn, NearMisses, draw_prefix, draw_sentence
from grammaton.fuzz.drawn_patterns import PythonPatterns
from grammaton.fuzz.paths import Paths
from grammaton.fuzz.target import Case, Fault, Target, without_parts
from grammaton.grammar.grammar import Grammar

_LONGEST = 8
_DRAWS = 4
_MOST_TEXTS = 200


class Languages(Target):
    """Sentences, near misses and counterexamples against `re.fullmatch`. A case: {"patterns":
    [str, str], "seed": int}."""

    name = "languages"

    def draw(self, rng: Random) -> Case:
        patterns = [PythonPatterns().draw(rng, 2).pattern for _ in range(2)]
        return {"patterns": patterns, "seed": rng.randrange(2**32)}

    def check(self, case: Case) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                judges = [re.compile(pattern) for pattern in case["patterns"]]
            grammars = [Grammar.from_regex(pattern) for pattern in case["patterns"]]
            _check_texts(grammars[0], judges[0], Random(case["seed"]))
            _check_pair(grammars, judges)
        except (re.error, OverflowError, GrammatonError):
            return  # Whether refusals are right is for the target `patterns`.
        except SystemError:
            return  # CPython's own matcher gives up: `(|){2}+` and the like.

    def smaller(self, case: Case) -> Iterator[Case]:
        first, second = case["patterns"]
        for less in without_parts(first):
            yield {**case, "patterns": [less, second]}
        for less in without_parts(second):
            yield {**case, "patterns": [first, less]}


def _check_texts(grammar: Grammar, judge: re.Pattern[str], rng: Random) -> None:
    paths = Paths(grammar)
    longest = max(_LONGEST, paths.shortest(paths.start))
    misses = NearMisses(paths, max_size=longest)
    for _ in range(_DRAWS):
        text = draw_sentence(paths, Drawn(rng), max_size=longest)
        if judge.fullmatch(text) is None:
            raise Fault("a sentence does not match", (judge.pattern, text))
        if not grammar.accepts(text):
            raise Fault("a sentence is not accepted", (judge.pattern, text))
        missed = misses.draw(Drawn(rng))
        if missed is None:
            raise Fault("a regular language without near misses", judge.pattern)
        if len(missed) <= 2 * _LONGEST and judge.fullmatch(missed) is not None:
            raise Fault("a near miss matches", (judge.pattern, missed))
        prefix = draw_prefix(paths, Drawn(rng), max_size=_LONGEST)
        if not grammar.accepts_prefix(prefix):
            raise Fault("a prefix is none", (judge.pattern, prefix))


def _check_pair(grammars: list[Grammar], judges: list[re.Pattern[str]]) -> None:
    found = counterexample(*grammars)
    if found is None:
        if not (is_subset(*grammars) and is_subset(*reversed(grammars))):
            raise Fault("equal languages that are not within each other", judges)
        return
    if len(found.text) <= 2 * _LONGEST:
        matches = [judge.fullmatch(found.text) is not None for judge in judges]
        if matches != [found.in_first, not found.in_first]:
            raise Fault("a counterexample is none", (judges, found))
    shorter = len(found.text) - 1
    if shorter >= 0 and size(grammars[0], shorter) != size(grammars[1], shorter):
        raise Fault("languages differ before their shortest counterexample", (judges, found))
    _check_size(grammars[0])


def _check_size(grammar: Grammar) -> None:
    """Counts the shortest sentences one by one, where they are few."""
    paths = Paths(grammar)
    length = paths.shortest(paths.start)
    expected = size(grammar, length)
    if expected > _MOST_TEXTS or length > _LONGEST:
        return
    texts = [("", paths.start)]
    for left in range(length, 0, -1):
        texts = [
            (text + chr(code), arc.target)
            for text, state in texts
            for arc in paths.arcs(state)
            if arc.shortest < left
            for low, high in arc.ranges
            for code in range(low, high + 1)
        ]
    counted = sum(grammar.accepts(text) for text, _ in texts)
    if len({text for text, _ in texts}) != expected or counted != expected:
        raise Fault("another number of sentences than there are", (str(grammar), expected, counted))
