"""Frames whose length is bounded from both sides, on a vocabulary with long tokens.

Every id is also tried by itself: `validate` follows bytes and knows nothing of frames.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from string import ascii_lowercase

from hypothesis import given, settings
from hypothesis import strategies as st

from grammaton import Grammar, Vocabulary, compile
from grammaton._core import Constraint, TermStore, TokenIndex
from grammaton.errors import UnsatisfiableGrammar
from tests.reference import mask_to_ids
from tests.strategies import ALL, Expression, Plan

PIECES = [b"a", b"b", b'"', b"\\", b"n", "é".encode()]
RUNS = ["a", "b", "ab", "é", "aé", '\\"', "\\n", "a\\", "\\u0061", "ba "]
LETTERS = ("chars", ((0x61, 0x62),))
WORD = ("chars", ((0x61, 0x7A), (0xE0, 0xFF)))
ALL_OF: tuple[Expression, ...] = (
    ("repeat", LETTERS, 0, None),
    ("repeat", WORD, 1, None),
    ("repeat", ("text", "ab"), 0, None),
    ("repeat", ("texts", ("ab", "é", 'a"')), 1, None),
    ("concat", (LETTERS, ("repeat", WORD, 0, None), ("text", "é"))),
    ("concat", (("repeat", ("chars", ALL), 0, None), ("text", "b"), ("repeat", WORD, 2, None))),
    ("complement", ("concat", (("text", "a"), ("repeat", ("chars", ALL), 0, None)))),
    ("complement", ("texts", ("a", "abab", "éé", "\n"))),
    ("texts", ("a", "ab", "aabb" * 5, "b" * 20)),
    ("concat", (("text", "a"), ("repeat", ("chars", ALL), 0, None))),
)
BOUNDS = st.tuples(
    st.sampled_from([0, 0, 1, 3, 8]), st.sampled_from([1, 2, 5, 15, 16, 17, 20, 33, 60, 200])
).map(sorted)
TAILS: tuple[Expression, ...] = (
    ("text", ""),
    ("text", '"'),
    ("text", '"n'),
    ("text", "a"),
    ("concat", (("text", '"'), ("repeat", WORD, 0, None))),
    ("repeat", WORD, 0, 18),
)


@cache
def index() -> tuple[TokenIndex, int]:
    """The vocabulary, and how many of its tokens are text."""
    tokens = [b"".join(run) for n in range(2, 5) for run in product(PIECES, repeat=n)]
    tokens += [bytes([byte]) for byte in range(256)]
    tokens += [(run * 40)[:n].encode() for run in RUNS for n in (5, 9, 15, 16, 17, 18, 31, 34, 70)]
    tokens += [(run * 40).encode()[:n] + b'"n' for run in RUNS for n in (5, 16, 21, 40)]
    return TokenIndex([*tokens, b""], [True] * len(tokens) + [False], [len(tokens)], 10_000), len(
        tokens
    )


def same_masks(plan: Plan, prefixes: list[bytes]) -> None:
    """Compares the mask after each prefix that is possible."""
    vocabulary, count = index()
    store = TermStore()
    try:
        constraint = Constraint(store, plan.build(store), vocabulary)
    except UnsatisfiableGrammar:
        return
    for prefix in prefixes:
        matcher = constraint.matcher()
        if not matcher.accept_bytes(prefix):
            continue
        allowed = mask_to_ids(matcher.mask()) - {count}
        assert allowed == {t for t in range(count) if matcher.validate([t])}, prefix


@settings(max_examples=max(settings().max_examples // 4, 10))
@given(
    st.sampled_from(ALL_OF),
    BOUNDS,
    st.booleans(),
    st.sampled_from(TAILS),
    st.lists(
        st.text("abén", max_size=12).map(str.encode)
        | st.sampled_from([b"a\\", b"\xc3", b"ab\\u00", b"b" * 18, b"ab" * 30]),
        max_size=3,
    ),
)
def test_bounded(
    inner: Expression, bounds: list[int], lifted: bool, tail: Expression, prefixes: list[bytes]
) -> None:
    low, high = bounds
    frame: Expression = ("intersect", (inner, ("repeat", ("chars", ALL), low, high)))
    if lifted:
        frame = ("json", frame)
    same_masks(Plan(("concat", (frame, tail))), [b"", *prefixes])


@settings(max_examples=max(settings().max_examples // 8, 10))
@given(st.sampled_from([LETTERS, WORD, ("chars", ALL)]), BOUNDS, st.sampled_from(TAILS))
def test_bounded_runs(item: Expression, bounds: list[int], tail: Expression) -> None:
    """Without a closing byte a run may end anywhere, inside long tokens too."""
    low, high = bounds
    same_masks(Plan(("concat", (("repeat", item, low, high), tail))), [b"", b"ab", b"a" * 18])


@settings(max_examples=max(settings().max_examples // 8, 10))
@given(
    st.lists(
        st.sampled_from([LETTERS, WORD, ("text", "ab"), ("text", "é")]), min_size=2, max_size=3
    ),
    st.lists(st.integers(0, 250), min_size=6, max_size=6),
    st.booleans(),
)
def test_large_counts(parts: list[Expression], counts: list[int], nested: bool) -> None:
    """Counts that no token can exhaust."""
    rows: list[Expression] = []
    for at, part in enumerate(parts):
        low, high = sorted(counts[2 * at : 2 * at + 2])
        rows.append(("repeat", part, low, high + 1))
        rows.append(("text", "b"))
    whole: Expression = ("concat", tuple(rows))
    if nested:
        whole = ("repeat", whole, 1, 90)
    same_masks(Plan(whole), [b"", b"ab", b"a" * 100, "é".encode() * 9])


def test_many_tokens_at_the_few_characters_left_out() -> None:
    """1,100 tokens end where the text may no longer go on at will: more than are listed."""
    rng = random.Random(1)
    words = sorted({"".join(rng.choices(ascii_lowercase, k=7)) for _ in range(60_000)})
    tokens = [word.encode() for word in words]
    tokens += [word.encode() + b"," for word in words[:1100]]
    tokens += [bytes([byte]) for byte in range(256)]
    vocabulary = Vocabulary([b"", *tokens], eos_token_ids=0)
    grammar = Grammar.from_regex("[a-z,]{0,100}") & ~Grammar.from_regex(".*,z.*")
    allowed = mask_to_ids(compile(grammar, vocabulary).matcher().mask())
    letters = {ord(letter) for letter in ascii_lowercase + ","}
    assert allowed == {0} | {i for i, text in enumerate(tokens, 1) if set(text) <= letters}
