"""Grammars made to be slow: every step within bounds of work, or a typed limit at compile.

Work is counted, not timed: trie nodes visited, terms made, operands of unions joined. The bounds
are some three times the most that a step takes now on this vocabulary of 1,300 tokens (terms: what
10,000 texts of JSON are, once). `python -m bench.hostile` has the CPU time on a real vocabulary.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from grammaton import Constraint, Grammar, LimitExceeded, Limits, Vocabulary, compile

LETTERS = b"abcx1 .,"
TOKENS = [
    *(bytes([byte]) for byte in range(256)),
    *(bytes(word) for length in (2, 3) for word in product(LETTERS, repeat=length)),
    *(bytes(word) for word in product(b"ab", repeat=9)),
    "é".encode(), "漢".encode(), b'",', b'":', b" the same beginning",
]  # fmt: skip
VOCABULARY = Vocabulary([b"", *TOKENS], eos_token_ids=0)
BOUNDS = (6_000, 30_000, 60_000)
"""Trie nodes, terms, operands."""


def regex(pattern: str, *, search: bool = False) -> Grammar:
    return Grammar.from_regex(pattern, search=search)


def enum(count: int) -> list[str]:
    """Texts that begin alike."""
    rng = random.Random(5)
    return [
        f" the same beginning{''.join(rng.choices('ab', k=14))}{number}" for number in range(count)
    ]


HOSTILE = {
    "the a before the last 20": lambda: regex("(a|b)*a(a|b){20}"),
    "an x in between": lambda: regex(".{0,1000}x.{0,1000}"),
    "three-way &": lambda: regex("(ab|a|b){0,60}c") & regex("(a|b|c){3,50}") & regex("(ab?|b|c)*"),
    "enum": lambda: Grammar.from_choices(enum(10_000)),
    "enum of JSON": lambda: Grammar.from_json_schema({"enum": enum(10_000)}),
    "words": lambda: regex(r"(?:\S+\s+){0,50}\S+"),
    "words of JSON": lambda: Grammar.from_json_schema(
        {"type": "string", "pattern": r"^(?:\S+\s+){0,50}\S+$"}
    ),
    "nested counts": lambda: regex("((((a{0,9}b){0,9}c){0,9}x){0,9}1){0,9}a"),
    "nested counts of classes": lambda: regex(r"(((\w{1,30} ?){1,30}[,.]?){1,30}x){1,30}"),
    "rounds that look behind": lambda: regex(
        r"( .{1,2}(?<=a)|\w|(|#.|b|[aé])){1,30}(|x+y)a", search=True
    ),
    "rounds of no text that look ahead": lambda: regex("(?:.|(?:abc){0,1}|éa|é(?=[a-c])){0,120}"),
    "optional parts": lambda: regex("(?:a?){300}a{300}"),
    "an a before the last 20": lambda: regex(".*a.{20}"),
    "no a before the last 20": lambda: ~regex(".*a.{20}"),
    "an a before one of the last": lambda: regex(".*(a.{9}|b.{11}|c.{13})"),
    "two places": lambda: regex(".*a.{12}b.*") & regex(".*[0-9].{10}x.*"),
    "three patterns of JSON": lambda: Grammar.from_json_schema(
        {"type": "string", "allOf": [{"pattern": p} for p in ("a.{8}b", "[0-9].{9}x", "c.{7}1")]}
    ),
}


def work(constraint: Constraint) -> tuple[int, int, int]:
    stats = constraint.stats()
    nodes = stats["walk_nodes"] + stats["study_nodes"] + stats["pair_nodes"]
    return nodes, stats["terms"], stats["operands_joined"]


@pytest.mark.parametrize("name", HOSTILE)
def test_each_step_is_bounded(name: str) -> None:
    constraint = compile(HOSTILE[name](), VOCABULARY)
    for seed in range(3):
        rng, matcher = random.Random(seed), constraint.matcher()
        before = work(constraint)
        for _ in range(25):
            mask = matcher.mask()
            after = work(constraint)
            done = [new - old for new, old in zip(after, before, strict=True)]
            assert all(spent <= most for spent, most in zip(done, BOUNDS, strict=True)), done
            before = after
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            ids = [token for token in allowed.tolist() if token]
            if not ids:
                break
            assert matcher.accept(rng.choice(ids))


def test_a_string_that_looks_hard_is_tried_wherever_it_stands() -> None:
    """What the mask after its quote takes, twenty thousand terms, was taken in mid-generation."""
    host = {"type": "string", "format": "idn-hostname"}
    schema = {"type": "object", "properties": {"host": host}, "required": ["host"]}
    constraint = compile(Grammar.from_json_schema(schema), VOCABULARY)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'{"host":"')
    before = work(constraint)
    matcher.mask()
    nodes, terms, _ = (new - old for new, old in zip(work(constraint), before, strict=True))
    assert nodes < 500
    assert terms < 2_000


def test_what_was_tried_on_a_vocabulary_is_not_tried_again() -> None:
    """A format takes 50 ms to be tried on a real vocabulary; every constraint with it did so."""
    vocabulary = Vocabulary([b"", *TOKENS], eos_token_ids=0)
    host = {"type": "string", "format": "idn-hostname"}
    schema = {"type": "object", "properties": {"host": host}, "required": ["host"]}
    tried = compile(Grammar.from_json_schema(host), vocabulary)
    known = compile(Grammar.from_json_schema(schema), vocabulary)
    assert tried.stats()["study_nodes"] > 1_000
    assert known.stats()["study_nodes"] == 0
    assert known.stats()["terms"] < tried.stats()["terms"] / 4


def test_patterns_as_values() -> None:
    """Names that references repeat met a limit at `(?<`; each state outside of classes walked all
    of the vocabulary, in every constraint anew."""
    text = rb'"(?<ab>[a-z]+)\\k<ab>(x|(?:y\\d)?){2,3}"'
    constraint = compile(Grammar.from_json_schema({"format": "regex"}), VOCABULARY)
    matcher = constraint.matcher()
    for byte in text:
        before = work(constraint)
        matcher.mask()
        nodes, terms, _ = (new - old for new, old in zip(work(constraint), before, strict=True))
        assert nodes < BOUNDS[0]
        assert terms < BOUNDS[1]
        assert matcher.accept_bytes(bytes([byte]))
    assert matcher.is_complete
    assert constraint.stats()["walk_nodes"] < 10_000


def test_a_first_mask_is_not_given_up_in_a_dive() -> None:
    """A look for an end along one letter joined three million operands."""
    constraint = compile(regex(r"(?!\w)(?:\S(?!\W)(?:[^\n]){8,}){8,9}"), VOCABULARY)
    constraint.matcher().mask()
    assert work(constraint)[2] < 300_000


def test_a_search_without_an_end_goes_by_characters() -> None:
    """Of four thousand states that were looked at, nearly all stood inside characters."""
    host = {"type": "string", "format": "idn-hostname"}
    constraint = compile(Grammar.from_json_schema(host), VOCABULARY)
    assert constraint.stats()["terms"] < 90_000


def test_what_is_too_hard_is_refused_when_it_is_compiled() -> None:
    """The shortest text that is in all three has a million letters."""
    parts = [regex(f"(a{{{count}}})+") for count in (97, 101, 103)]
    with pytest.raises(LimitExceeded, match="max_step_terms"):
        compile(parts[0] & parts[1] & parts[2], VOCABULARY, limits=Limits(max_step_terms=5_000))
