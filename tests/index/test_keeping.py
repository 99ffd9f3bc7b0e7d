"""Studies that take subtrees whole because no text of their characters kills the term.

That is tried when a study takes long, so each grammar here has an operand with very many residuals
and each vocabulary is large; the others are drawn from characters that share their first bytes.
`accept` follows the bytes of one token and knows nothing of it.
"""

from __future__ import annotations

import random

import pytest

from grammaton import Grammar, LimitExceeded, UnsatisfiableGrammar, Vocabulary, compile
from tests.index.test_masks_real import check_on_a_walk

LETTERS = ("a", "b", "x", " ", "é", "è", "漢", "漣", "😀", "😁", '"', "\\")
ATOMS = (
    *(
        "a",
        "b",
        "é",
        "è",
        "漢",
        "[éa]",
        "[^é]",
        "[^a]",
        "[^漢x]",
        "[a-bé]",
        "[漢-漣]",
        ".",
        r"[\s\S]",
    ),
    *("[è-ÿ]", "(?:a|éb)", "(?:é|èa)", "😀", "[^😀]", r"\w"),
)
HARD = (r"[\s\S]*a[\s\S]{12}", r".*[aé].{9}", r"[^b]*a[^b]{11}.*", r"(?:.{2,7}a){2,9}")
# Wrong masks once: of characters that share a first byte some killed what was left out, some not.
CASES = (
    ((r"é[\s\S]*", False), (r"[\s\S]*a[\s\S]{12}", False)),
    ((r"[\s\S]*漢[漣a]{1,}[\s\S]*", False), (r"[\s\S]*a[\s\S]{12}", True)),
)


def vocabulary(chooser: random.Random) -> Vocabulary:
    tokens = {bytes([b]) for b in range(256)}
    while len(tokens) < 2_500:
        text = "".join(chooser.choices(LETTERS, k=chooser.randint(2, 9))).encode()
        tokens.add(text[: len(text) - chooser.choice((0, 0, 0, 1))])
    return Vocabulary([b"", *sorted(tokens)], eos_token_ids=0)


@pytest.fixture(scope="module")
def shared() -> Vocabulary:
    return vocabulary(random.Random(1))


def drawn(chooser: random.Random) -> str:
    parts = []
    for _ in range(chooser.randint(1, 4)):
        quantifier = chooser.choice(("", "", "", "*", "+", "?", "{1,3}", "{4}"))
        parts.append(chooser.choice(ATOMS) + quantifier)
    pattern = "".join(parts)
    return chooser.choice((pattern, rf"[\s\S]*{pattern}", rf"{pattern}[\s\S]*", f".*{pattern}.*"))


def walk(grammar: Grammar, vocabulary: Vocabulary, chooser: random.Random) -> None:
    try:
        check_on_a_walk(compile(grammar, vocabulary).matcher(), vocabulary, chooser, 3)
    except (LimitExceeded, UnsatisfiableGrammar):
        return


def of(pattern: str, kept: bool) -> Grammar:
    grammar = Grammar.from_regex(pattern)
    return grammar if kept else ~grammar


@pytest.mark.parametrize("case", CASES)
def test_cases(case: tuple[tuple[str, bool], tuple[str, bool]], shared: Vocabulary) -> None:
    walk(of(*case[0]) & of(*case[1]), shared, random.Random(2))


@pytest.mark.parametrize("seed", range(24))
def test_drawn(seed: int, shared: Vocabulary) -> None:
    chooser = random.Random(seed)
    grammar = of(chooser.choice(HARD), chooser.random() < 0.6)
    for _ in range(chooser.randint(1, 2)):
        grammar = grammar & of(drawn(chooser), chooser.random() < 0.4)
    walk(grammar, shared, chooser)
