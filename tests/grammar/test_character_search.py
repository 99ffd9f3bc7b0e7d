"""Intersections whose ends are searched for by characters: what may go on, beside all texts."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from grammaton import Grammar, GrammatonError

LONGEST = 7
ALL = [
    "".join(text)
    for length in range(LONGEST + 1)
    for text in itertools.product("abé", repeat=length)
]
PARTS = ["a", "b", "é", "[ab]", "[^a]", "[^b]", r"\w", "ab", "éa", "(?:a|bé)", "(?:b|aa)", "[aé]b?"]


def pattern_of(rng: random.Random) -> str:
    """Some parts, each counted, in a row that is counted, too."""

    def counted(part: str) -> str:
        low = rng.randint(0, 3)
        return f"(?:{part}){{{low},{low + rng.randint(0, 3)}}}"

    row = "".join(counted(rng.choice(PARTS)) for _ in range(rng.randint(1, 3)))
    return rng.choice([counted(row), f"(?:{row})*", f"[abé]*{row}", f"{row}[abé]*{row}"])


@pytest.mark.parametrize("seed", range(60))
def test_what_goes_on_is_what_begins_a_text(seed: int) -> None:
    rng = random.Random(seed)
    patterns = [pattern_of(rng) for _ in range(rng.randint(2, 3))]
    excluded = [pattern_of(rng) for _ in range(rng.randint(0, 2))]
    texts = {
        text
        for text in ALL
        if all(re.fullmatch(p, text) for p in patterns)
        and not any(re.fullmatch(p, text) for p in excluded)
    }
    prefixes = {text[:i] for text in texts for i in range(len(text) + 1)}
    grammar = Grammar.from_regex(f"[abé]{{0,{LONGEST}}}")
    for pattern in patterns:
        grammar &= Grammar.from_regex(pattern)
    for pattern in excluded:
        grammar &= ~Grammar.from_regex(pattern)
    try:
        found = {text for text in rng.sample(ALL, 400) if grammar.accepts_prefix(text)}
    except GrammatonError:
        assert not texts
        return
    assert found <= prefixes
    assert {text for text in prefixes if not grammar.accepts_prefix(text)} == set()
