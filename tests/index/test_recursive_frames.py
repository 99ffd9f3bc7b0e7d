"""Masks of grammars with recursion: with and without rehearsal, and against prefixes.

A vocabulary of all short texts over a small alphabet has subtrees wide enough for frames, and its
tokens cross several rules.
"""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grammaton import Grammar, GrammarError, Limits, Vocabulary, compile
from grammaton._core import Constraint
from tests.grammar.notations import Expression, grammars, to_lark
from tests.reference import mask_to_ids

LETTERS = "ab "
LONGEST = 5
TEXTS = [
    "".join(each).encode() for n in range(1, LONGEST + 1) for each in product(LETTERS, repeat=n)
]
BYTES = [bytes([byte]) for byte in range(256) if bytes([byte]) not in TEXTS]
VOCABULARIES = [
    Vocabulary([*tokens, b""], eos_token_ids=len(tokens)) for tokens in (TEXTS, TEXTS + BYTES)
]
"""One that spells only the letters, one that spells all."""


@given(
    st.sampled_from(VOCABULARIES),
    grammars("ab", terminals=True),
    st.sampled_from(["", '" "', "/ +/"]),
    st.lists(st.integers(0, 10**6), max_size=3),
)
@settings(max_examples=60)
def test_masks_are_prefixes(
    vocabulary: Vocabulary, rules: list[Expression], ignored: str, picks: list[int]
) -> None:
    try:
        grammar = Grammar.from_lark(to_lark(rules, ignored))
        constraint = compile(grammar, vocabulary)
    except GrammarError:
        assume(False)
    assert grammar.rehearsed
    plain = Constraint(grammar.store, grammar.start, vocabulary.index, Limits(), []).matcher()
    matcher = constraint.matcher()
    tokens = {i: vocabulary.token_bytes(i) for i in range(len(TEXTS))}
    end = len(vocabulary) - 1
    text = b""
    for pick in [*picks, 0]:
        found = mask_to_ids(matcher.mask())
        assert found == mask_to_ids(plain.mask())
        assert (end in found) == grammar.accepts(text)
        begun = {i for i, token in tokens.items() if grammar.accepts_prefix(text + token)}
        assert found & tokens.keys() == begun
        if not begun:
            break
        token = sorted(begun)[pick % len(begun)]
        assert matcher.accept(token)
        assert plain.accept(token)
        text += tokens[token]


def test_states_near_the_start_are_rehearsed() -> None:
    """What follows a run of items inside its rules has been studied before the first text."""
    grammar = Grammar.from_gbnf(
        'root ::= piece{0,7}\npiece ::= "a" [ab] ("a" | " " [ab]{2,4})? | "b" | " " root "b"'
    )
    constraint = compile(grammar, VOCABULARIES[0])
    matcher = constraint.matcher()
    matcher.mask()
    before = constraint.stats()
    for letter in ("a", "b", " ", "a", "b", "b"):
        assert matcher.accept(TEXTS.index(letter.encode()))
        matcher.mask()
    after = constraint.stats()
    assert after["mask_misses"] > before["mask_misses"]
    assert after["frames_made"] == before["frames_made"]
    assert after["study_nodes"] == before["study_nodes"]


@pytest.mark.parametrize("comma", ['","?', ""])
@pytest.mark.parametrize("most", [2, 3])
def test_counted_names_before_calls(most: int, comma: str) -> None:
    """Remainders of names that are too long are none, a last comma goes on or ends."""
    rng = random.Random(most)
    grammar = Grammar.from_lark(f"""
        start: (NAME call* ";")+
        call: "(" args? ")" | "." NAME
        args: sum ("," sum)* {comma}
        sum: item ("+" item)*
        item: NAME call* | "(" args ")"
        NAME: /[ab]{{1,{most}}}/ & ~"ab"
        %ignore " "
        """)
    pieces = ["a", "b", "aa", "bab", "(", ")", ",", ".", "+", ";", " ", "a,", "a)", "(b"]
    texts = {"".join(rng.choices(pieces, k=rng.randint(1, 6))).encode() for _ in range(3000)}
    tokens = [*sorted({*texts, *(bytes([byte]) for byte in b"ab(),.+; ")})]
    constraint = compile(grammar, Vocabulary([*tokens, b""], eos_token_ids=len(tokens)))
    for _ in range(4):
        matcher = constraint.matcher()
        for _ in range(6):
            found = mask_to_ids(matcher.mask())
            begun = set()
            for i in range(len(tokens)):
                if matcher.accept(i):
                    matcher.rollback(1)
                    begun.add(i)
            assert found - {len(tokens)} == begun
            assert matcher.accept(rng.choice(sorted(begun)))
