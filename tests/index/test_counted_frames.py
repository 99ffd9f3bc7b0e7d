"""Frames of so many items, whose items may begin other items, be ambiguous, or call rules.

Every id is also tried by itself: `validate` follows bytes and knows nothing of frames.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammaton import Grammar, Limits, Vocabulary, compile
from grammaton._core import Constraint
from tests.index.test_bounded_frames import BOUNDS, LETTERS, TAILS, WORD, same_masks
from tests.reference import mask_to_ids
from tests.strategies import Expression, Plan

ITEMS: tuple[Expression, ...] = (
    ("texts", ("a", "ab", "n")),
    ("texts", ("a", "aa", "é")),
    ("texts", ("b", "ba", "bab")),
    ("concat", (LETTERS, ("repeat", ("text", "n"), 0, 1))),
    ("union", (WORD, ("text", "a\\b"))),
    ("union", (("chars", ((0x61, 0x7A),)), ("concat", (("text", "\\"), WORD)))),
    ("concat", (("chars", ((0x62, 0x62), (0xE9, 0xFF))), ("repeat", ("text", "a"), 0, None))),
    ("concat", (("repeat", LETTERS, 1, None), ("text", "n"))),
    ("repeat", LETTERS, 2, 4),
)
BEFORE: tuple[Expression, ...] = (
    ("text", ""),
    ("repeat", ("text", "a"), 0, 1),
    ("texts", ("b", "ba", "\\")),
    ("concat", (LETTERS, WORD)),
    ("repeat", ("texts", ("ab", "é")), 0, 1),
)
PREFIXES = st.lists(
    st.text("abén\\", max_size=12).map(str.encode) | st.sampled_from([b"\xc3", b"ab" * 9]),
    max_size=3,
)


@settings(max_examples=max(settings().max_examples // 2, 10))
@given(st.sampled_from(BEFORE), st.sampled_from(ITEMS), BOUNDS, st.sampled_from(TAILS), PREFIXES)
def test_items(
    before: Expression, item: Expression, bounds: list[int], tail: Expression, prefixes: list[bytes]
) -> None:
    low, high = bounds
    frame: Expression = ("concat", (before, ("repeat", item, low, high), tail))
    same_masks(Plan(frame), [b"", *prefixes])


@settings(max_examples=max(settings().max_examples // 4, 10))
@given(st.sampled_from(ITEMS), st.sampled_from(ITEMS), BOUNDS, BOUNDS, PREFIXES)
def test_runs_of_runs(
    first: Expression, second: Expression, some: list[int], more: list[int], prefixes: list[bytes]
) -> None:
    """What follows is counted, too, and may begin as the items do."""
    runs = (("repeat", first, *some), ("text", '"'), ("repeat", second, *more))
    same_masks(Plan(("concat", runs)), [b"", *prefixes])
    same_masks(Plan(("concat", (runs[0], runs[2]))), [b"", *prefixes])


@cache
def words() -> Vocabulary:
    """All short texts of a few letters, and some long ones."""
    texts = ["".join(each) for n in range(1, 5) for each in product("ab()|", repeat=n)]
    texts += [run * 8 for run in ("a", "b", "ab", "(a)", "a|", "(", "|b")]
    return Vocabulary([*map(str.encode, texts), b""], eos_token_ids=len(texts))


CALLING_ITEMS = [
    '"a" | "b" "b"? | "(" root ")"',
    '"a" | "(" root? ")"',
    '"a" "b"? | "ab" | "(" item ")"',
    '"|" root | "b"',
    '"a" root "|" | "b"',
    '"a" | "(" item{0,2} ")"',
]
ROOTS = [
    "item{LOW,HIGH}",
    'item{LOW,HIGH} ("|" item{0,3}){0,2}',
    'item{LOW,HIGH} ")"',
    'item{LOW,HIGH} "a"',
    "item{LOW,HIGH} item{1,2}",
    '("(" item{LOW,HIGH} ")"){1,3}',
]


@settings(max_examples=max(settings().max_examples // 2, 10))
@given(
    st.sampled_from(CALLING_ITEMS),
    st.sampled_from(ROOTS),
    st.tuples(st.integers(0, 3), st.integers(1, 9)).map(sorted),
    st.lists(st.integers(0, 10**6), max_size=4),
)
def test_items_that_call(item: str, root: str, bounds: list[int], picks: list[int]) -> None:
    low, high = bounds
    root = root.replace("LOW", str(low)).replace("HIGH", str(high))
    # Whoever may say nothing could be called for ever.
    grammar = Grammar.from_gbnf(f'root ::= "b" {root} | "a"\nitem ::= {item}')
    vocabulary = words()
    constraint = compile(grammar, vocabulary)
    assert grammar.rehearsed
    plain = Constraint(grammar.store, grammar.start, vocabulary.index, Limits(), []).matcher()
    matcher = constraint.matcher()
    count = len(vocabulary) - 1
    for pick in [*picks, 0]:
        found = mask_to_ids(matcher.mask())
        assert found == mask_to_ids(plain.mask())
        allowed = sorted(found - {count})
        assert allowed == [t for t in range(count) if matcher.validate([t])]
        if not allowed:
            break
        token = allowed[pick % len(allowed)]
        assert matcher.accept(token)
        assert plain.accept(token)


@pytest.mark.parametrize(
    ("source", "first", "again"),
    [
        ('root ::= "[" ("a" | "b" | "a|b" | "(" [ab]){1,9} "|"', "[ab(a", "b(bab"),
        ('root ::= item{0,9}\nitem ::= "a" "|"? | "b" | "(" root ")"', "a|ba", "|bab"),
    ],
)
def test_a_count_is_studied_once(source: str, first: str, again: str) -> None:
    """The same place in an item, so many items later, is no new study."""
    tokens = [*map(words().token_bytes, range(len(words()) - 1)), b"[", b""]
    constraint = compile(
        Grammar.from_gbnf(source), Vocabulary(tokens, eos_token_ids=len(tokens) - 1)
    )
    matcher = constraint.matcher()

    def visit(text: str) -> None:
        for letter in text:
            assert matcher.accept(tokens.index(letter.encode()))
            matcher.mask()

    visit(first)
    before = constraint.stats()
    visit(again)
    after = constraint.stats()
    assert after["mask_misses"] == before["mask_misses"] + len(again)
    assert after["counted"] > before["counted"]
    assert after["study_nodes"] == before["study_nodes"]
