"""The text form: print, parse, print again; the same language; errors with their place."""

from __future__ import annotations

import json
import lzma
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton import Grammar, GrammarError, LimitExceeded
from grammaton._core import TermStore
from grammaton.grammar import text_printer
from grammaton.grammar.text_form import from_text, to_text
from tests.grammar.patterns import examples
from tests.reference import ReferenceStore
from tests.reference_language import Language
from tests.strategies import Plan, plans, texts_near, within_budget


@given(plans())
@examples(3)
def test_printing_a_parsed_text_gives_the_text(plan: Plan) -> None:
    store = TermStore()
    text = to_text(store, plan.build(store))
    again = TermStore()
    assert to_text(again, from_text(again, text)) == text


@given(plans(), st.data())
@examples(2)
@within_budget
def test_a_text_has_the_language_of_its_grammar(plan: Plan, data: st.DataObject) -> None:
    store = TermStore()
    text = to_text(store, plan.build(store))
    reference = ReferenceStore()
    start = plan.build(reference)
    again: Any = ReferenceStore()
    parsed = from_text(again, text)
    language = Language(reference, start)
    for _ in range(3):
        sample = data.draw(texts_near(language))
        assert again.accepts(parsed, sample) == reference.accepts(start, sample), text


@given(plans())
def test_a_grammar_is_made_of_its_text(plan: Plan) -> None:
    store = TermStore()
    grammar = Grammar(store, plan.build(store))
    again = Grammar.from_text(str(grammar))
    assert again == grammar
    assert hash(again) == hash(grammar)


def test_grammars_of_real_schemas_go_through_their_text(data_path: Path) -> None:
    printed_schemas = 0
    with lzma.open(data_path / "jsonschemabench-dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in islice(lines, 0, None, 100):
            entry = json.loads(line)
            try:
                grammar = Grammar.from_json_schema(entry["schema"], key_order="any")
            except (GrammarError, LimitExceeded):
                continue
            again = Grammar.from_text(str(grammar))
            assert again == grammar, entry["id"]
            for test in entry["tests"][:2]:
                text = json.dumps(test["data"], ensure_ascii=False)
                assert again.accepts(text) == grammar.accepts(text), entry["id"]
            printed_schemas += 1
    assert printed_schemas > 50


def printed(text: str) -> str:
    """A text after parsing and printing."""
    return str(Grammar.from_text(text))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('start ::= "a"', 'start ::= "a"\n'),
        ('// nothing here\nstart ::=// x\n"a" "b"', 'start ::= "ab"\n'),
        ('start ::= "\\"\\\\\\n\\u{e9}\\u{0}"', 'start ::= "\\"\\\\\\né\\u{0}"\n'),
        ("start ::= [a-c]", "start ::= [a-c]\n"),
        ("start ::= [cab]", "start ::= [a-c]\n"),
        ("start ::= [b]", 'start ::= "b"\n'),
        ("start ::= [\\]\\[\\^\\-\\\\]", "start ::= [\\-\\[-\\^]\n"),
        ('start ::= [^"]', 'start ::= [^"]\n'),
        ("start ::= [^]", "start ::= [^]\n"),
        ("start ::= []", "start ::= nothing\n"),
        ('start ::= ""', 'start ::= ""\n'),
        ('start ::= ("ab")*', 'start ::= "ab"*\n'),
        ('start ::= ("ab" [cd])+ "e"?', 'start ::= ("ab" [cd])+ "e"?\n'),
        ("start ::= [a-z]{2,} [0-9]{3} x{1,4}\nx ::= x_1\nx_1 ::= [^]", None),
        ('start ::= ~"a" & [a-z]+ & ~"b"', None),
        ('start ::= ~("a" | [b-d] "e")', None),
        ('start ::= "(" start ")" | ""', None),
        ("start ::= b c\nc ::= start2\nb ::= [0-9]\nstart2 ::= [a-f]", None),
        ('start ::= "\\"" json([^]*) "\\""', None),
        ("start ::= json(~[a-z]*)", None),
    ],
)
def test_examples(text: str, canonical: str | None) -> None:
    once = printed(text)
    if canonical is not None:
        assert once == canonical
    assert printed(once) == once


def test_rules_of_one_name_are_told_apart() -> None:
    store = TermStore()
    rules = [store.rule(name) for name in ("x", "x", "start", "json", "a-b", "1", "", "é")]
    for index, rule in enumerate(rules):
        store.define(rule, store.literal(str(index).encode()))
    grammar = Grammar(store, store.concat([store.call(rule) for rule in rules]))
    assert Grammar.from_text(str(grammar)) == grammar
    assert Grammar.from_text(str(grammar)).accepts("01234567")


def test_a_start_rule_that_calls_itself_keeps_its_name() -> None:
    text = 'start ::= "(" start ")" | ""'
    grammar = Grammar.from_text(text)
    assert str(grammar).count("::=") == 1
    wrapped = grammar + Grammar.literal(";")
    assert Grammar.from_text(str(wrapped)) == wrapped
    assert wrapped.accepts("(());")


def test_a_rule_without_a_body_cannot_be_printed() -> None:
    store = TermStore()
    with pytest.raises(GrammarError, match="rule value is not defined"):
        to_text(store, store.call(store.rule("value")))


def test_deep_nesting_needs_no_stack() -> None:
    depth = 3000
    parsed = Grammar.from_text("start ::= " + "(" * depth + '"a"' + ")" * depth)
    assert str(parsed) == 'start ::= "a"\n'
    choices = Grammar.from_choices(["a" * n for n in range(1, 400)])
    assert Grammar.from_text(str(choices)) == choices


def test_texts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_printer, "MAX_TEXT", 1000)
    grammar = Grammar.literal("a")
    for _ in range(12):
        grammar = (grammar + Grammar.literal("b")) | (Grammar.literal("c") + grammar)
    with pytest.raises(LimitExceeded, match="longer than 1000 characters"):
        str(grammar)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "no rule is named start"),
        ('a ::= "a"', 0, "no rule is named start, the start; the rules are: a"),
        ("start ::=", 9, "expected an operand, found the end of the text"),
        ('start ::= "a" |', 15, "expected an operand, found the end of the text"),
        ('start ::= | "a"', 10, "expected an operand, found |"),
        ('start ::= "a" & | "b"', 16, "expected an operand, found |"),
        ("start ::= ~", 11, "expected an operand, found the end of the text"),
        ("start ::= ()", 11, "expected an operand, found )"),
        ('start ::= ("a"', 14, "expected an operand or ), found the end of the text"),
        ('start ::= "a")', 13, "this parenthesis closes nothing"),
        ("start ::= *", 10, "expected an operand, found *"),
        ('start ::= "a', 10, 'this literal is never closed; expected "'),
        ('start ::= "a\n"', 10, 'this literal is never closed; expected "'),
        ("start ::= [a", 10, "this class is never closed; expected ]"),
        ("start ::= [a-]", 13, "] must be escaped in a class"),
        ("start ::= [[a]", 11, "[ must be escaped in a class"),
        ("start ::= [c-a]", 11, "this range ends before its start"),
        ('start ::= "\\q"', 11, "bad escape"),
        ('start ::= "\\', 11, "bad escape"),
        ('start ::= "\\u{110000}"', 11, "this is no Unicode character"),
        ("start ::= [\\u{D800}]", 11, "this is no Unicode character"),
        ("start ::= \ud800", 10, "the text form holds a lone surrogate (U+D800)"),
        ("start ::= %", 10, "'%' means nothing here"),
        ("start ::= a", 10, "rule a is not defined"),
        ('start ::= "a"\nstart ::= "b"', 14, "rule start is defined twice"),
        ('if ::= "a"', 0, "if is a reserved word"),
        ("start ::= template", 18, "expected {, found the end of the text"),
        ('start ::= "a" if', 14, "if is a reserved word"),
        ('start ::= "a"{3,2}', 13, "the minimum 3 is above the maximum 2"),
        ('start ::= "a"{x}', 14, "expected a count, found x"),
        ('start ::= "a"{1,x}', 16, "expected a count or }, found x"),
        ('start ::= "a"{1', 15, "expected }, found the end of the text"),
        ('start ::= "a"{4294967295}', 14, "the number is too large"),
        ('start ::= "a" ; "b"', 14, "expected a rule or the end, found ;"),
        ('start "a"', 6, "expected ::=, found a literal"),
        ('"a"', 0, "expected the name of a rule, found a literal"),
        ("start ::= ~start", 10, "~ applies to expressions without rules"),
        ('start ::= "a" & start', 14, "& applies to expressions without rules"),
        ("start ::= json(start)", 10, "json applies to expressions without rules"),
        ("start ::= json [a]", 15, "expected (, found a class"),
        ('start ::= template { "a" }', 25, "expected ;, found }"),
        (
            "start ::= template { if x: [a]; }",
            24,
            "expected unseen #…, seen #… or $… in …, found x",
        ),
        ("start ::= template { if seen: [a]; }", 28, "expected #, found :"),
        ("start ::= template { if $0 on 1..2: [a]; }", 27, "expected in, found on"),
        ("start ::= template { [a] -> start; }", 33, "expected (, found ;"),
        ("start ::= template { [a] -> start(x); }", 34, "expected see #…"),
        ("start ::= template { [a] -> start(see #0 see #1); }", 41, "expected ,, found see"),
        ("start ::= template { [a] -> start($0 += 1 min 2); }", 42, "expected max, found min"),
        ('start ::= template { ""; }', 0, ""),
        ("start ::= start(#1, x)", 20, "expected #… or $… = …, found x"),
        ("start ::= start($0)", 18, "expected =, found )"),
    ],
)
def test_errors(text: str, position: int, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_text(text)
    assert message in caught.value.message
    assert caught.value.position == position
    str(caught.value).encode()


@given(st.text('start:=ab "[]()|&~*{}0,;->#$\\\n', max_size=40))
def test_any_text_is_a_grammar_or_an_error_with_its_place(text: str) -> None:
    parsed: Grammar | GrammarError
    try:
        parsed = Grammar.from_text("start ::= " + text)
    except GrammarError as error:
        parsed = error
    if isinstance(parsed, GrammarError):
        assert parsed.position is not None
    else:
        assert Grammar.from_text(str(parsed)) == parsed
