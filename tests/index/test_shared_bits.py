"""Masks are kept as what they differ in from bits that others are kept by, too.

Here they are of families: those of one differ in little, those of two in much, and there are more
families than bits that are held.
"""

from __future__ import annotations

import random
from itertools import product
from string import ascii_letters, ascii_lowercase, ascii_uppercase

from grammaton import Grammar, Vocabulary, compile
from tests.reference import mask_to_ids

WORDS = ["".join(letters) for letters in product(ascii_lowercase, repeat=3)]
KEYS = ["".join(letters) for letters in product(ascii_uppercase, repeat=2)][:240]
FAMILIES = 80


def test_masks_that_differ_in_little_or_much() -> None:
    rng = random.Random(1)
    families = [
        ["".join(rng.sample(ascii_lowercase, 13)) for _ in range(3)] for _ in range(FAMILIES)
    ]
    classes = {}
    for i, key in enumerate(KEYS):
        first, *others = families[i % FAMILIES]
        left = "".join(rng.sample(first, 13 - i // FAMILIES))
        classes[key] = [left, *others]
    grammar = Grammar.from_gbnf(
        "root ::= ("
        + " | ".join(
            f'"{key}" ' + " ".join(f"[{letters}]" for letters in sets)
            for key, sets in classes.items()
        )
        + ")+"
    )
    tokens = [*KEYS, *WORDS, *ascii_letters]
    vocabulary = Vocabulary([*(t.encode() for t in tokens), b""], eos_token_ids=len(tokens))
    constraint = compile(grammar, vocabulary)
    for key in rng.sample(KEYS, len(KEYS)) + rng.sample(KEYS, 20):
        matcher = constraint.matcher()
        begun = {tokens[i] for i in mask_to_ids(matcher.mask())}
        assert begun == {*KEYS, *(each[0] for each in KEYS)}
        assert matcher.accept(tokens.index(key))
        allowed = {"".join(letters) for letters in product(*classes[key])} | {*classes[key][0]}
        assert {tokens[i] for i in mask_to_ids(matcher.mask())} == allowed
    bits = vocabulary.mask_words * 4
    assert constraint.stats()["mask_bytes"] < len(KEYS) * bits
