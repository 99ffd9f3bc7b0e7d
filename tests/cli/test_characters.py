"""Characters over bytes: positions, what may follow, automata, all against plain questions."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammaton import Grammar, LimitExceeded, UnsatisfiableGrammar
from grammaton._core import Recognizer, TermStore
from grammaton.cli.characters import Automaton, CharacterMachine, automaton
from grammaton.cli.expected import expected
from tests.strategies import ALPHABET, PLAIN, Plan, plans, regular_plans, within_budget

PROBES = sorted({*ALPHABET, "c", "~", "\n", "ü", "\u0800", "\ud7ff", "\ue000", "\U0010ffff"})

texts = st.text(st.sampled_from(PROBES), max_size=6)


def grammar_of(plan: Plan) -> Grammar:
    store = TermStore()
    return Grammar(store, plan.build(store))


def machine_of(grammar: Grammar) -> CharacterMachine:
    try:
        return CharacterMachine(grammar)
    except UnsatisfiableGrammar:
        assume(False)
        raise


def near(grammar: Grammar, text: str) -> bytes:
    """A text that goes some way: characters that lead nowhere are mostly left out."""
    kept = ""
    for i, char in enumerate(text):
        if i == len(text) - 1 or grammar.accepts_prefix(kept + char):
            kept += char
    return kept.encode()


@given(plans(), texts)
@within_budget
def test_what_may_follow(plan: Plan, text: str) -> None:
    grammar = grammar_of(plan)
    machine = machine_of(grammar)
    data = near(grammar, text)
    count, position = machine.follow(data)
    assert count == Recognizer(grammar.store, grammar.start).longest_prefix(data)

    prefix = data[:count].decode(errors="ignore")
    after = {char for char in PROBES if grammar.accepts_prefix(prefix + char)}
    transitions = machine.transitions(position)
    assert {c for c in PROBES for low, high, _ in transitions if low <= ord(c) <= high} == after
    for (_, high, _), (low, _, _) in pairwise(transitions):
        assert high < low

    found = expected(machine, position)
    assert found.may_end == grammar.accepts(prefix)
    assert found.may_end or found.literals or found.characters
    for literal in found.literals:
        assert len(literal) > 1
        assert grammar.accepts_prefix(prefix + literal.removesuffix("…"))
    said = {literal[0] for literal in found.literals} | {"\\" for _ in range(found.escapes)}
    for char in PROBES:
        single = any(low <= ord(char) <= high for low, high in found.characters)
        assert not single or char in after
        assert char not in after or single or char in said
    assert found.sentence().startswith("expected ")


@given(plans(), st.integers(0, 3), st.sampled_from(["é", "漢", "😀"]))
@within_budget
def test_texts_that_end_or_break_inside_a_character(plan: Plan, cut: int, char: str) -> None:
    grammar = grammar_of(plan)
    machine = machine_of(grammar)
    whole = machine.follow(b"a")[0] == 1
    data = b"a" * whole + char.encode()[: cut + 1]
    _, position = machine.follow(data + b"\xff")
    _, before = machine.follow(b"a" * whole + b"\xff")
    complete = len(char.encode()) <= cut + 1 and grammar.accepts_prefix(data)
    assert (position.state == before.state) or complete


def runs(found: Automaton, text: str) -> bool:
    state = 0
    for char in text:
        following = [
            end
            for start, ranges, end in found.edges
            if start == state and any(low <= ord(char) <= high for low, high in ranges)
        ]
        assert len(following) <= 1
        if not following:
            return False
        state = following[0]
    return state in found.accepting


def distinguishable(found: Automaton) -> bool:
    """Whether every two states differ, by filling the table of pairs."""
    # One of each class of characters that no edge tells apart: a class begins where a range does,
    # or after one.
    points = {
        edge for _, ranges, _ in found.edges for low, high in ranges for edge in (low, high + 1)
    }
    step = {
        (start, point): end
        for start, ranges, end in found.edges
        for point in points
        if any(low <= point <= high for low, high in ranges)
    }
    pairs = set(product(range(found.states), repeat=2))
    different = {(a, b) for a, b in pairs if (a in found.accepting) != (b in found.accepting)}
    while True:
        more = {
            (a, b)
            for a, b in pairs - different
            for point in points
            if ((a, point) in step) != ((b, point) in step)
            or ((a, point) in step and (step[a, point], step[b, point]) in different)
        }
        if not more:
            return all(a == b for a, b in pairs - different)
        different |= more


@given(regular_plans(), st.lists(texts, min_size=8, max_size=8))
@within_budget
def test_automata(plan: Plan, some: list[str]) -> None:
    grammar = grammar_of(plan)
    machine = machine_of(grammar)
    try:
        found = automaton(machine, max_states=60)
    except LimitExceeded:
        return
    short = ["".join(chars) for size in range(4) for chars in product(PLAIN, repeat=size)]
    for text in [*some, *(near(grammar, text).decode() for text in some), *short]:
        assert runs(found, text) == grammar.accepts(text), text
    assert found.states > 12 or distinguishable(found)


@pytest.mark.parametrize(
    ("pattern", "states"),
    [("", 1), ("a", 2), ("(ab|ac)*", 2), ("[ab]*a[ab]{3}", 16), (".*", 1), ("é|漢", 2)],
)  # fmt: skip
def test_the_smallest_automaton(pattern: str, states: int) -> None:
    assert automaton(CharacterMachine(Grammar.from_regex(pattern)), max_states=100).states == states


def test_recursion_has_no_automaton_and_rules_may_have_one() -> None:
    endless = Grammar.from_text('start ::= "(" start ")" | "x"')
    with pytest.raises(LimitExceeded, match="more than 50 states"):
        automaton(CharacterMachine(endless), max_states=50)
    rules = Grammar.from_text('start ::= a a\na ::= "x" | "y"')
    assert automaton(CharacterMachine(rules), max_states=50).states == 3


@pytest.mark.parametrize(
    ("pattern", "text", "sentence"),
    [
        ("(Mon|Tues|Wednes)day", "", "expected one of `Monday`, `Tuesday` or `Wednesday`"),
        ("[abc]{3}", "a", "expected one of `a`, `b` or `c`"),
        (r"[0-9]+", "", "expected a digit"),
        (r"[0-9]+", "7", "expected a digit or the end of the text"),
        (r"[a-z]+@x", "ab", "expected `@x` or a lowercase letter"),
        (r"[0-9a-fA-F]{2}", "", "expected a hexadecimal digit"),
        (r"[1-9][0-9]*", "", "expected a digit from 1 to 9"),
        (r"[ \t\n]x| y", "", "expected whitespace"),
        (r"\n", "", "expected a newline"),
        (r'[^"]*', "", 'expected any character except `"` or the end of the text'),
        ("a|é", "", "expected `a` or `é`"),
        (r"\w", "", "expected one of `_`, a letter, a digit or other characters beyond ASCII"),
        ("a", "a", "expected the end of the text"),
        ("`", "", "expected '`'"),
    ],
)
def test_sentences(pattern: str, text: str, sentence: str) -> None:
    machine = CharacterMachine(Grammar.from_regex(pattern))
    assert expected(machine, machine.follow(text.encode())[1]).sentence() == sentence


def test_keys_of_an_object_are_named() -> None:
    properties = {"name": {"type": "string"}, "nick": {}, "née": {}, "to do.md": {}, 'q"': {}}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    machine = CharacterMachine(Grammar.from_json_schema(schema, whitespace="compact"))

    def after(text: str) -> tuple[str, ...]:
        return expected(machine, machine.follow(text.encode())[1]).literals

    assert {literal.split(":")[0] for literal in after("{")} >= {
        '"name"', '"nick"', '"née"', '"to do.md"',
    }  # fmt: skip
    inside = expected(machine, machine.follow(b'{"n')[1])
    assert inside.escapes
    assert {literal.split('"')[0] for literal in inside.literals} == {"ame", "ick", "ée"}


def test_many_choices_are_not_all_listed() -> None:
    machine = CharacterMachine(Grammar.from_choices([f"x{i}y" for i in range(500)]))
    assert len(expected(machine, machine.start()).phrases()) <= 14
