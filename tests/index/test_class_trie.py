"""Studies over classes of characters: masks of hard terms are what steps accept, token by token."""

from __future__ import annotations

import random

import numpy as np
import pytest

from grammaton import Grammar, Limits, Vocabulary, compile

CHARACTERS = [*"aaaabbbcd0189xX  \n_-.", "é", "é", "ß", "日", "語", "🙂", "\u2028"]


def tokens_of(characters: list[str], count: int, *, seed: int) -> list[bytes]:
    """All bytes, then texts, some of them cut inside a character and some that are no text."""
    rng = random.Random(seed)
    made = {bytes([byte]): None for byte in range(256)}
    while len(made) < count:
        text = "".join(rng.choices(characters, k=rng.randint(1, 7))).encode()
        kind = rng.random()
        if kind < 0.1:
            text = text[: rng.randint(1, len(text))]
        elif kind < 0.13:
            text = text[rng.randint(0, len(text) - 1) :]
        elif kind < 0.15:
            at = rng.randint(0, len(text))
            text = text[:at] + bytes([rng.randint(0x80, 0xFF)]) + text[at:]
        made[text] = None
    return list(made)


TEXTS = tokens_of(CHARACTERS, 6000, seed=1)
JSON_TEXTS = tokens_of([*CHARACTERS, *'""""\\\\\\un/dD8e}, '], 6000, seed=2)


def vocabulary_of(tokens: list[bytes]) -> Vocabulary:
    return Vocabulary([*tokens, b""], eos_token_ids=len(tokens)).with_limits(
        Limits(max_mask_work=0)
    )


def check_masks(grammar: Grammar, tokens: list[bytes], *, steps: int, seed: int) -> int:
    """Compares masks with steps; returns how many nodes were studied."""
    vocabulary = vocabulary_of(tokens)
    constraint = compile(grammar, vocabulary)
    matcher = constraint.matcher()
    rng = random.Random(seed)
    for _ in range(steps):
        bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
        taken = np.zeros_like(bits)
        for token in range(len(tokens)):
            if matcher.accept(token):
                taken[token] = 1
                matcher.rollback(1)
        assert np.array_equal(bits[: len(tokens)], taken[: len(tokens)])
        allowed = np.flatnonzero(taken)
        if len(allowed) == 0:
            break
        matcher.accept(int(rng.choice(allowed)))
    return constraint.stats()["study_nodes"]


def all_of(*patterns: str) -> Grammar:
    grammar = Grammar.from_regex(patterns[0])
    for pattern in patterns[1:]:
        grammar &= Grammar.from_regex(pattern)
    return grammar


@pytest.mark.parametrize(
    "grammar",
    [
        all_of(r".*a.{5}\d.*", r".*b.{4}[é日].*", r"[\s\S]*x[\s\S]{3}a[\s\S]*"),
        all_of(r"(a|b|é|[^a]\w{1,4}){0,9}", r"(?:[\s\S]{5})*"),
        Grammar.from_regex(r"(((\w{1,9}\s?){1,9}[-.]?){1,9}\n){1,9}"),
        Grammar.from_regex(r"((?!ab\d).|(?=b)\w\w|x){1,40}"),
        ~Grammar.from_regex(r"(.{2,5}a){2,9}") & Grammar.from_regex(r"(\w| ){0,90}"),
        Grammar.from_regex(r"(?=.*a.{3}\W)(?=.*[^\x00-\x7f].{4}b).{3,30}[é-日]?"),
    ],
)
def test_masks_are_what_steps_accept(grammar: Grammar) -> None:
    check_masks(grammar, TEXTS, steps=4, seed=3)


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"pattern": p} for p in ("a.{4}b", "[0-9].{5}x", r"\\.{3}[a/]")]},
        {"oneOf": [{"pattern": p} for p in ("a.{4}b", '[0-9"].{5}', "[^é].{3}日")]},
        {"not": {"pattern": "(a|.b).{5}d"}, "pattern": r"^(\w+[\s\\]?){1,9}$", "maxLength": 19},
    ],
)
def test_masks_of_json_strings_are_what_steps_accept(schema: dict[str, object]) -> None:
    check_masks(Grammar.from_json_schema({"type": "string", **schema}), JSON_TEXTS, steps=4, seed=4)


def test_what_is_not_told_apart_is_studied_once() -> None:
    """A study of every node would be some 20,000."""
    grammar = all_of(r".*a.{5}\d.*", r".*b.{4}[é日].*", r"[\s\S]*x[\s\S]{3}a[\s\S]*")
    assert check_masks(grammar, TEXTS, steps=1, seed=5) < 14_000
