"""Grammars far larger than people write: read and compiled, or refused, in each notation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark.parsers import lalr_analysis

from grammaton import Grammar, GrammarError, LimitExceeded, Limits, Vocabulary, compile
from grammaton._core import TermStore
from grammaton.grammar import grammar as grammar_module
from grammaton.grammar.lark import lalr, product, table_cost

MANY = 10_000
VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"b1", b"xx", b"((", b""], eos_token_ids=259
)

NOTATIONS: dict[str, tuple[Callable[[str], Grammar], str, str]] = {
    "lark": (Grammar.from_lark, "start", ":"),
    "gbnf": (Grammar.from_gbnf, "root", " ::="),
    "ebnf": (Grammar.from_ebnf, "root", " ::="),
}


class _SmallStore(TermStore):
    def __init__(self) -> None:
        super().__init__(Limits(max_step_terms=100))


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


AROUND = "".join(f"T{i}: /[a-z]+{i}(?!y{i % 40})/\n" for i in range(400))


def test_look_around_in_many_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "".join(f'r{i}: T{i} r{i + 1} | "b{i}"\n' for i in range(400))
    grammar = Grammar.from_lark(f'start: r0\n{rules}r400: "z"\n{AROUND}')
    assert grammar.accepts("a0b1")
    assert grammar.accepts("a0xx1b2")
    assert not grammar.accepts("a0y0b1")
    monkeypatch.setattr(product, "MAX_WORK", 5_000)
    loop = "start: (" + " | ".join(f"T{i}" for i in range(400)) + ")*\n"
    with pytest.raises(LimitExceeded, match="in too many different surroundings") as caught:
        Grammar.from_lark(loop + AROUND)
    assert caught.value.line is not None
    assert caught.value.line > 1
    assert "^^" in str(caught.value)


def test_too_many_surroundings_are_refused_before_they_are_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = "start: (" + " | ".join(f"r{i}" for i in range(1_000)) + ")*\n"
    rules = "".join(f'r{i}: T{i} start? "x"\n' for i in range(1_000))
    terminals = "".join(f"T{i}: /[a-z]+{i}(?!y{i})/\n" for i in range(1_000))
    followed: list[str] = []
    follow = product.Product._follow

    def note(made: product.Product[Any], name: str, state: object) -> None:
        followed.append(name)
        follow(made, name, state)

    monkeypatch.setattr(product.Product, "_follow", note)
    with pytest.raises(LimitExceeded, match="in too many different surroundings"):
        Grammar.from_lark(loop + rules + terminals)
    assert len(followed) < 2_000


MUTUAL = "".join(f'r{i}: "(" r{(i * 7 + 1) % 90} ")" | "x{i}"\n' for i in range(90))
LOOP = "start: (" + " | ".join(f"r{i}" for i in range(300)) + ")*\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LOOP + "".join(f'r{i}: "a{i}" "x"\n' for i in range(300)), "too long to make a table"),
        ("start: " + "r " * 500 + '\nr: "x"\n', "too long to make a table"),
        (
            "start: r0\n" + "".join(f'r{i}: r{i + 1} "a{i}" | "b{i}"\n' for i in range(300))
            + 'r300: "z"\n',
            "too long to make a table",
        ),
        ("start: r0\n" + MUTUAL, None),
    ],
)  # fmt: skip
def test_what_takes_lark_minutes_is_refused_at_once(
    text: str, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_cost, "MAX_COST", 400_000)
    if message is None:
        assert Grammar.from_lark(text, parser="lalr").accepts("((x8))")
        return
    with pytest.raises(LimitExceeded, match=message) as caught:
        Grammar.from_lark(text, parser="lalr")
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_rules_that_are_told_apart_far_away() -> None:
    rules = "".join(f'r{i}: "(" r{i + 1} ")" | ID\n' for i in range(2_000))
    grammar = Grammar.from_lark(f'start: r0\n{rules}r2000: "z"\nID: /[a-z]+(?!\\w)/\n')
    assert grammar.accepts("(((a)))")
    assert not grammar.accepts("(((a))")


def test_terminals_of_many_words() -> None:
    words = [f"w{i}" for i in range(8_000)]
    grammar = Grammar.from_lark("start: W\nW: " + " | ".join(f'"{word}"' for word in words))
    assert grammar.accepts("w7")
    assert grammar.accepts("w7999")
    assert not grammar.accepts("w8000")


def test_limits_have_places() -> None:
    chain = "".join(f'T{i}: "a" T{i + 1}\n' for i in range(200))
    with pytest.raises(LimitExceeded, match="within each other") as caught:
        Grammar.from_lark(f'start: T0\n{chain}T200: "b"\n')
    assert caught.value.line is not None
    with pytest.raises(LimitExceeded, match="more than 20000 templates") as caught:
        Grammar.from_lark(
            "start: " + " | ".join(f't{{"x{i}"}}' for i in range(20_010)) + "\nt{p}: p p\n"
        )
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("notation", "text", "line"),
    [
        ("lark", 'start: "x" T\nT: {both}\nC: "a".."b" & "a".."z"', 2),
        ("lark", 'start: "x"\n  | ({both})\nC: "a".."b" & "a".."z"', 2),
        ("lark", 'start: a\na[lazy]: {both}\nC: "a".."b" & "a".."z"', 2),
        ("ebnf", "root ::= a\na ::= ([ab]* 'a' {tail} [ab]) - ([ab]* 'a' {tail} [ab]*)", 2),
    ],
)
def test_limits_of_intersections_have_places(
    notation: str, text: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammar_module, "TermStore", _SmallStore)
    # Empty, which takes 2**16 states to see.
    both = '(C* "a" C~16) & ~(C* "a" C~15 C*)'
    tail = "[ab] " * 15
    with pytest.raises(LimitExceeded) as caught:
        NOTATIONS[notation][0](text.format(both=both, tail=tail))
    assert caught.value.line == line


def test_messages_are_no_longer_than_a_page() -> None:
    with pytest.raises(GrammarError, match="is not defined") as caught:
        Grammar.from_lark("start: " + "n" * 100_000)
    assert len(str(caught.value)) < 2_000


def test_many_parts_that_may_be_empty() -> None:
    grammar = Grammar.from_gbnf("root ::= " + "r " * 800 + '\nr ::= ("(" r ")" "a")?')
    assert compile(grammar, VOCABULARY).matcher().validate([256, 258]) == 0
    assert grammar.accepts("(()a)a")
    assert not grammar.accepts("(()a)")


def test_many_ignored_patterns_under_lalr() -> None:
    """Their borders share what follows them: pairs of them took gigabytes."""
    lines = ['start: "a"*', *(f"%ignore /b{i}+/" for i in range(1_000))]
    grammar = Grammar.from_lark("\n".join(lines), parser="lalr")
    assert grammar.accepts("ab77ab5a")
    assert not grammar.accepts_prefix("abb")
    assert compile(grammar, VOCABULARY).matcher().validate([97, 256, 97]) == 3


def test_a_lexer_with_too_many_threads_is_refused_by_name() -> None:
    """`[a-z]x+` four hundred times can be read in as many ways after as many `x`."""
    text = "start: A | MANY\nA: /b/\nMANY: /" + "[a-z]x+" * 400 + "/\n"
    with pytest.raises(LimitExceeded, match=r"in many ways at once: .*MANY") as caught:
        compile(Grammar.from_lark(text, parser="lalr"), VOCABULARY)
    assert (caught.value.line, caught.value.column) == (3, 1)


def test_what_the_core_finds_has_a_place() -> None:
    budget = 'start: "x" a\na[max_tokens=2]: "abc"\n'
    with pytest.raises(GrammarError, match="the shortest text of rule `a`") as caught:
        compile(Grammar.from_lark(budget), VOCABULARY)
    assert (caught.value.line, caught.value.column) == (2, 1)
    with pytest.raises(GrammarError, match="the shortest text") as caught:
        Grammar.from_lark(budget).accepts("xabc")
    assert caught.value.line == 2
    printed = Grammar.from_text('start ::= "x" a\n\na {max_tokens 2} ::= "abc"')
    with pytest.raises(GrammarError, match="the shortest text") as caught:
        compile(printed, VOCABULARY)
    assert caught.value.line == 3
    both = Grammar.from_lark(budget) | Grammar.from_lark(budget)
    with pytest.raises(GrammarError, match="the shortest text") as caught:
        compile(both, VOCABULARY)
    assert caught.value.line is None
    knot = "\n".join(f'r{i} ::= r{(i + 1) % 99} "a{i}" | "b"' for i in range(99))
    with pytest.raises(LimitExceeded, match="left recursion") as limit:
        compile(
            Grammar.from_gbnf("root ::= r0\n" + knot), VOCABULARY, limits=Limits(max_terms=1500)
        )
    assert limit.value.line is not None


def test_a_first_mask_that_no_one_could_take_is_refused() -> None:
    lines = ["start: " + " | ".join(f"T{i}" for i in range(2_000))]
    lines += [f'T{i}: /[a-z0-9]+/ "{i}"' for i in range(2_000)]
    limits = Limits(max_step_terms=1_000)
    with pytest.raises(LimitExceeded, match="max_step_terms = 1000") as caught:
        compile(Grammar.from_lark("\n".join(lines)), VOCABULARY, limits=limits)
    assert (caught.value.line, caught.value.column) == (1, 1)


def refused(ask: Callable[[], Any]) -> bool:
    """With a place."""
    with pytest.raises(LimitExceeded) as caught:
        ask()
    return caught.value.line is not None


@pytest.mark.parametrize(
    "terminals",
    [
        "A: /([ab]x+){60}/\nB: /([ab]+x){2}/\nC: /a?(x|b){0,60}a/\nD: /[abx]/\n",
        "A: /[ab]+?(?=[ab]{10}c)/\nB: /[a-c]+(?=b{1,10}[abc]{8}d)/\nC: /c/\nD: /d/\n",
        "A: /[ab]+(?![ab]{40}c)/\nB: /[a-c]+(?!b{1,30}[ab]{20})/\nC: /c/\nD: /d/\n",
        "A: /([ab]{1,200}c){1,40}/\nB: /([a-c]{1,30}b){1,100}d/\nC: /c/\nD: /d/\n",
    ],
)
def test_lexers_that_are_too_hard_are_refused(terminals: str) -> None:
    """Their places, borders and states are many more than threads that are followed."""
    grammar = Grammar.from_lark("start: (A | B | C | D)+\n" + terminals, parser="lalr")
    assert refused(lambda: compile(grammar, VOCABULARY))


@pytest.mark.parametrize("body", ['r{next} "x"', 'W "i{i}"', 'r{i} "i{i}" | "s{i}"'])
def test_ten_thousand_rules_that_lark_would_look_at_in_pairs(body: str) -> None:
    rules = "".join(f"r{i}: {body.format(i=i, next=i + 1)}\n" for i in range(MANY))
    starts = " | ".join(f"r{i}" for i in range(MANY))
    text = f'start: {starts}\n{rules}r{MANY}: "y"\nW: /w/\n'
    assert refused(lambda: Grammar.from_lark(text, parser="lalr"))


def test_long_chains_of_rules_under_lalr() -> None:
    """Lark's analysis recurs along them, ours of it does not."""
    rules = "".join(f'r{i}: "x" r{i + 1}\n' for i in range(2_000))
    grammar = Grammar.from_lark(f'start: r0\n{rules}r2000: "y"\n', parser="lalr")
    assert grammar.accepts("x" * 2_000 + "y")
    assert not grammar.accepts("x" * 1_999 + "y")


relations = st.lists(st.sets(st.integers(0, 7), max_size=4), min_size=8, max_size=8)


@given(relations, relations, st.lists(st.sets(st.integers(0, 9)), min_size=8, max_size=8))
def test_what_nodes_reach_is_found_as_lark_finds_it(
    reads: list[set[int]], includes: list[set[int]], own: list[set[int]]
) -> None:
    """The sets that Lark shares between the two searches too."""
    found = []
    for search in (lalr._digraph, lalr_analysis.digraph):
        first = search(range(8), dict(enumerate(reads)), {i: set(own[i]) for i in range(8)})
        found.append(search(range(8), dict(enumerate(includes)), first))
    assert found[0] == found[1]
