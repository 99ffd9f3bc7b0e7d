"""Frames of classes of characters, which lose a vocabulary's other tokens by whole rows of bits.

The vocabulary is large, of letters that are often looped on and of rarer ones, with tokens that
begin or end inside a character or are no UTF-8 at all; classes are drawn so that some characters
kill the term, some lead out of it, and some that share a first byte do both. `accept` follows the
bytes of one token and knows nothing of rows.
"""

from __future__ import annotations

import random

import pytest

from grammaton import Grammar, UnsatisfiableGrammar, Vocabulary, compile
from tests.index.test_masks_real import check, check_on_a_walk

COMMON = "abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789 "
RARE = '-_/.,:;"\\\n\t~éèüñßж漢漣字😀😁'
PARTS = ("a-z", "A-Z", "0-9", "a-f", " ", "é-ü", "é", "漢", "ж", "_", r"\-", ".", "/", r"\w", r"\s")
ENDS = ("", "/", "-[a-z]*", ":.*", "é[a-z]+", "漢", '"', r"\.[a-z]{2,3}", "\n", "[_/]x*")
COUNTS = ("*", "+", "+", "{2,9}", "{0,4}", "{3,}", "{5}")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    chooser = random.Random(5)
    tokens = {bytes([b]) for b in range(256)}
    while len(tokens) < 4_000:
        letters = COMMON if chooser.random() < 0.9 else COMMON[:26] + RARE
        text = "".join(chooser.choices(letters, k=chooser.randint(2, 9))).encode()
        cut = chooser.choice((0, 0, 0, 0, 1, 2))
        tokens.add(text[chooser.choice((0, 0, 0, 0, 1)) : len(text) - cut] or text)
    tokens |= {b"ab\xc3cd", b"a\xff", b"\xe6\xbca", b"z\x80z"}
    # Inside of characters there are subtrees, too, which no character begins.
    for first, last in ((0xC0, 0xFF), (0x400, 0x44F), (0x3041, 0x3096), (0x6F00, 0x6F40)):
        tokens |= {chr(code).encode() for code in range(first, last)}
    return Vocabulary([b"", *sorted(tokens)], eos_token_ids=0)


def drawn(chooser: random.Random) -> str:
    parts = "".join(chooser.sample(PARTS, chooser.randint(1, 4)))
    item = f"[{chooser.choice(('', '', '', '^'))}{parts}]"
    first = chooser.choice(("", "", "", "[a-zé]", "[A-Z]?"))
    return first + item + chooser.choice(COUNTS) + chooser.choice(ENDS)


@pytest.mark.parametrize("seed", range(40))
def test_masks_are_accept(seed: int, vocabulary: Vocabulary) -> None:
    chooser = random.Random(seed)
    pattern = drawn(chooser)
    try:
        if seed % 2:
            grammar = Grammar.from_json_schema({"type": "string", "pattern": f"^{pattern}$"})
        else:
            grammar = Grammar.from_regex(pattern)
    except UnsatisfiableGrammar:
        return
    check_on_a_walk(compile(grammar, vocabulary).matcher(), vocabulary, chooser, 3)


def test_other_tokens_cost_no_visit(vocabulary: Vocabulary) -> None:
    schema = {"type": "string", "pattern": "^[A-H0-9 ]{2,30}$"}
    constraint = compile(Grammar.from_json_schema(schema), vocabulary)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'"')
    check(matcher, vocabulary)
    stats = constraint.stats()
    assert stats["frames_made"] > 0
    assert stats["study_nodes"] < 100
