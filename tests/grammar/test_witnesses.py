"""Whether intersections are empty, seen from texts that were found in others (witnesses.hpp).

All texts of at most six characters are tried with Python's `re`; every grammar is cut to that
length, so "no text goes on like this" is decided by trying. One grammar's residuals are asked one
after the other, of one store: what was found for one is tried on the next.
"""

from __future__ import annotations

import random
import re
from itertools import product

import numpy as np
import pytest

from grammaton import Grammar, Limits, UnsatisfiableGrammar, Vocabulary, compile

LETTERS = "abé"
LONGEST = 6
TEXTS = ["".join(p) for n in range(LONGEST + 1) for p in product(LETTERS, repeat=n)]


def drawn(chooser: random.Random, depth: int = 2) -> str:
    """A pattern with counts, classes and choices."""
    if depth == 0:
        return chooser.choice(("a", "b", "é", "[ab]", "[^a]", ".", "[^é]"))
    parts = []
    for _ in range(chooser.randint(1, 3)):
        quantifier = chooser.choice(("", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}"))
        parts.append(f"(?:{drawn(chooser, depth - 1)}){quantifier}")
    return chooser.choice(("", "", ".*")) + "".join(parts) + chooser.choice(("", "", ".*", "|a"))


@pytest.mark.parametrize("seed", range(60))
def test_prefixes_of_intersections_and_complements(seed: int) -> None:
    chooser = random.Random(seed)
    taken = [drawn(chooser) for _ in range(chooser.randint(1, 2))]
    removed = [drawn(chooser) for _ in range(chooser.randint(1, 3))]
    ahead = drawn(chooser, 1)
    grammar = Grammar.from_regex(f"(?=(?:{ahead}))[{LETTERS}]{{0,{LONGEST}}}")
    for pattern in taken:
        grammar &= Grammar.from_regex(pattern)
    for pattern in removed:
        grammar &= ~Grammar.from_regex(pattern)
    within = [
        text
        for text in TEXTS
        if re.match(ahead, text)
        and all(re.fullmatch(pattern, text) for pattern in taken)
        and not any(re.fullmatch(pattern, text) for pattern in removed)
    ]
    begun = {text[:n] for text in within for n in range(len(text) + 1)}
    for text in (text for text in TEXTS if len(text) <= 4):
        assert grammar.accepts_prefix(text) == (text in begun), text
        assert grammar.accepts(text) == (text in within), text


def test_what_a_text_of_any_characters_takes_in_is_gone() -> None:
    """`.*` without any text: a search went through all that was left of the count."""
    grammar = Grammar.from_regex(r"(?!.*\s\s)(?=.*a)(?=.*\d).{8,100}")
    assert grammar.accepts_prefix("b \u2003") is False
    assert grammar.accepts_prefix("b \u2003"[:2]) is True


HARD = (
    Grammar.from_regex(r"\w{5,60}")
    & ~Grammar.from_regex(".*a.{9}b.*")
    & ~Grammar.from_regex(".*b.{7}c.*"),
    Grammar.from_regex(r"((?!foo).|(?=b)\w\w|x){1,40}"),
    ~Grammar.from_regex("(.{3,7}a){2,20}") & Grammar.from_regex(r"\w{0,90}"),
)


FIRST_TERMS = (55_000, 32_000, 20_000)


@pytest.mark.parametrize("number", range(len(HARD)))
def test_masks_make_few_terms(number: int) -> None:
    """The first of them met max_step_terms, 100,000 on a large vocabulary, in its first mask."""
    chooser = random.Random(3)
    tokens = {bytes([b]) for b in range(256)}
    while len(tokens) < 2000:
        tokens.add("".join(chooser.choices("abcfox é", k=chooser.randint(2, 14))).encode())
    listed = sorted(tokens)
    vocabulary = Vocabulary([b"", *listed], eos_token_ids=0)
    constraint = compile(HARD[number], vocabulary, limits=Limits(max_mask_work=0))
    matcher = constraint.matcher()
    for step in range(2):
        mask = matcher.mask()
        if step == 0:
            assert constraint.stats()["terms"] < FIRST_TERMS[number]
        allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")
        for token in chooser.sample(range(1, len(listed) + 1), 150):
            accepted = matcher.accept(token)
            assert accepted == bool(allowed[token])
            if accepted:
                matcher.rollback(1)
        longest = max(np.flatnonzero(allowed)[1:], key=lambda i: len(listed[i - 1]))
        assert matcher.accept(int(longest)), step


def test_no_text_at_all() -> None:
    with pytest.raises(UnsatisfiableGrammar):
        compile(
            Grammar.from_regex("[ab]{3}") & ~Grammar.from_regex("a.*|b.*"),
            Vocabulary([b"a", b"b", b""], eos_token_ids=2),
        )
