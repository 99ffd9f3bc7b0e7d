"""Grammars far larger than people write: read and compiled, or refused, in each notation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grammaton import Grammar, GrammarError, Vocabulary, compile

MANY = 10_000
VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"b1", b"xx", b"((", b""], eos_token_ids=259
)

NOTATIONS: dict[str, tuple[Callable[[str], Grammar], str, str]] = {
    "lark": (Grammar.from_lark, "start", ":"),
    "gbnf": (Grammar.from_gbnf, "root", " ::="),
    "ebnf": (Grammar.from_ebnf, "root", " ::="),
}


def made(notation: str, first: str, rules: list[str]) -> Grammar:
    """A grammar of numbered rules `r0`, `r1`, …."""
    read, start, sign = NOTATIONS[notation]
    lines = [f"{start}{sign} {first}", *(f"r{i}{sign} {body}" for i, body in enumerate(rules))]
    return read("\n".join(lines) + "\n")


@pytest.mark.parametrize("notation", NOTATIONS)
def test_chains_of_rules(notation: str) -> None:
    last = ['"z"']
    left = made(notation, "r0", [f'r{i + 1} "a" | "b{i}"' for i in range(MANY)] + last)
    assert left.accepts("b1a")
    assert compile(left, VOCABULARY).matcher().accept(256)
    right = made(notation, "r0", [f'"x" r{i + 1} | "b{i}"' for i in range(MANY)] + last)
    assert right.accepts("xxb2")
    assert compile(right, VOCABULARY).matcher().validate([257, 257]) == 2
    names = made(notation, "r0", [f"r{i + 1}" for i in range(MANY)] + last)
    assert names.accepts("z")


@pytest.mark.parametrize("notation", NOTATIONS)
def test_texts_of_a_megabyte(notation: str) -> None:
    grammar = made(notation, '"' + "x" * 1_000_000 + '"', [])
    assert grammar.accepts_prefix("x" * 999_999)
    assert not grammar.accepts("x" * 999_999)
    assert compile(grammar, VOCABULARY).matcher().validate([257] * 3) == 3


@pytest.mark.parametrize("repeated", ['"x"~100000', '("(" start ")" | "x")~100000', "/x{100000}/"])
def test_repetition_in_lark(repeated: str) -> None:
    grammar = Grammar.from_lark(f'start: "a" | {repeated}')
    assert grammar.accepts_prefix("x" * 300)
    assert not grammar.accepts("x" * 300)
    assert compile(grammar, VOCABULARY).matcher().validate([257, 257]) == 2


def test_repetition_in_gbnf() -> None:
    grammar = Grammar.from_gbnf('root ::= ("(" root ")" | "x"){100000}')
    assert compile(grammar, VOCABULARY).matcher().validate([257, 258]) == 2


@pytest.mark.parametrize("notation", NOTATIONS)
def test_deep_nesting_is_refused_with_its_place(notation: str) -> None:
    with pytest.raises(GrammarError, match="groups are nested deeper than") as caught:
        made(notation, "(" * 5_000 + '"a"' + ")" * 5_000, [])
    assert caught.value.line == 1
    assert caught.value.column is not None
