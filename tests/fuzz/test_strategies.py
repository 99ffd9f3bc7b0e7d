"""The strategies: inside or outside as promised, every text possible, shrinking to short ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

import jsonschema
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from grammaton.errors import GrammarError, UnsatisfiableGrammar
from grammaton.fuzz import mutations, prefixes, sentences
from grammaton.fuzz.draw import Drawn, NearMisses, Replayed, draw_prefix, draw_sentence
from grammaton.fuzz.paths import Paths
from grammaton.grammar.grammar import Grammar
from tests.reference import ReferenceStore, enumerate_language
from tests.strategies import Plan, plans, within_budget

BRACKETS = Grammar.from_text('start ::= "(" start ")" start | "[" start "]" start | ""')
PATTERNS = [
    r"[a-z]+@[a-z]+(\.[a-z]{2,})+",
    r"\d{4}-(0[1-9]|1[0-2])",
    r"(?:a|é|漢)*x.?",
    r"[^\n]{2,5}|\w+\s\W",
    "",
    r"(?:(?:ab){2,3}c?)*",
]
SCHEMAS: list[object] = [
    True,
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}, "n": {"minimum": 3}},
        "required": ["n"],
    },
    {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}, "minItems": 1},
    {"oneOf": [{"enum": ["a", 1, None]}, {"type": "string", "pattern": "^a"}]},
]


def draw_many(
    draw: Callable[..., str | None], grammar: Grammar, max_size: int, count: int
) -> set[str]:
    paths = Paths(grammar)
    drawn = (draw(paths, Drawn(Random(number)), max_size=max_size) for number in range(count))
    return {text for text in drawn if text is not None}


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=30)
@given(st.data())
def test_sentences_of_a_pattern(pattern: str, data: st.DataObject) -> None:
    grammar = Grammar.from_regex(pattern)
    assert re.fullmatch(pattern, data.draw(sentences(grammar)))
    missed = data.draw(mutations(grammar))
    assert not re.fullmatch(pattern, missed)


@pytest.mark.parametrize("schema", SCHEMAS)
@settings(max_examples=30)
@given(st.data())
def test_sentences_of_a_schema(schema: bool, data: st.DataObject) -> None:
    grammar = Grammar.from_json_schema(schema, whitespace="compact")
    jsonschema.validate(json.loads(data.draw(sentences(grammar))), schema)
    text = data.draw(prefixes(grammar))
    assert grammar.accepts_prefix(text)
    assert not grammar.accepts(data.draw(mutations(grammar)))


@given(plans(), st.integers(0, 3), st.integers(0, 2**32))
@within_budget
def test_any_grammar(plan: Plan, extra: int, seed: int) -> None:
    """Sentences keep to the size asked for, near misses stay outside, choices replay."""
    reference = ReferenceStore()
    expected = plan.build(reference)
    try:
        grammar = _grammar(plan)
        paths = Paths(grammar)
    except UnsatisfiableGrammar:
        assert not enumerate_language(reference, expected, 2, [b"a", b"b"])
        return
    size = paths.shortest(paths.start) + extra
    source = Drawn(Random(seed))
    text = draw_sentence(paths, source, max_size=size)
    assert len(text) <= size
    assert reference.accepts(expected, text.encode())
    assert draw_sentence(paths, Replayed(source.choices), max_size=size) == text
    assert len(draw_sentence(paths, Replayed([]), max_size=size)) == paths.shortest(paths.start)
    prefix = draw_prefix(paths, Drawn(Random(seed)), max_size=extra)
    assert len(prefix) <= extra
    assert grammar.accepts_prefix(prefix)
    try:
        missed = NearMisses(paths, max_size=size).draw(Drawn(Random(seed)))
    except UnsatisfiableGrammar:
        assert reference.accepts(expected, "zé😀".encode())
        return
    assert missed is None or not reference.accepts(expected, missed.encode())


def _grammar(plan: Plan) -> Grammar:
    from grammaton._core import TermStore

    store = TermStore()
    return Grammar(store, plan.build(store))


@pytest.mark.parametrize(
    ("grammar", "alphabet", "size"),
    [
        (BRACKETS, "()[]", 4),
        (Grammar.from_regex("[ab]{0,2}|a*b|aaa"), "ab", 4),
        (Grammar.from_text('start ::= [ab]* & ~("a" | "bb" [ab]*)'), "ab", 3),
        (Grammar.from_text('start ::= "a" start "b" | "a" start | [é漢😀]'), "abé漢😀", 3),
    ],
)
def test_every_text_is_possible(grammar: Grammar, alphabet: str, size: int) -> None:
    texts = [""]
    every = {""}
    for _ in range(size):
        texts = [text + char for text in texts for char in alphabet]
        every.update(texts)
    assert draw_many(draw_sentence, grammar, size, 3000) == {t for t in every if grammar.accepts(t)}
    assert draw_many(draw_prefix, grammar, size, 6000) == {
        text for text in every if grammar.accepts_prefix(text)
    }


def test_every_character_is_possible() -> None:
    drawn = draw_many(draw_sentence, Grammar.from_regex(r"[!-ÿ]"), 1, 15000)
    assert drawn == {chr(code) for code in range(0x21, 0x100)}
    wide = draw_many(draw_sentence, Grammar.from_regex("."), 1, 500)
    assert {"\U0010ffff", "é"} <= wide
    assert any(0x300 < ord(char) < 0xD800 for char in wide)
    assert sum(char.isascii() for char in wide) > 50


def test_sentences_are_not_all_alike() -> None:
    """Deep and flat, long and short, with and without escapes."""
    json_texts = draw_many(
        draw_sentence, Grammar.from_json_schema(True, whitespace="compact"), 60, 600
    )
    values = [json.loads(text) for text in json_texts]
    assert {type(value) for value in values} == {dict, list, str, int, float, bool, type(None)}
    assert any(isinstance(value, list) and len(value) > 4 for value in values)
    assert any(isinstance(value, dict) and len(value) > 1 for value in values)
    assert any("[[" in text for text in json_texts)
    assert any(len(text) > 40 for text in json_texts)
    strings = [text for text in json_texts if text.startswith('"') and len(text) > 6]
    assert {"\\u" in text for text in strings} == {True, False}


@pytest.mark.parametrize(
    ("strategy", "wanted", "least"),
    [
        (sentences(Grammar.from_regex(r"[a-z]+@[a-z]+(\.[a-z]+)+")), "..", "a@a.a.a"),
        (sentences(BRACKETS), "[(", "[()]"),
        (sentences(Grammar.from_regex(".*")), "x", "x"),
        (sentences(Grammar.from_json_schema(True, whitespace="compact")), "[[", "[[]]"),
        (prefixes(Grammar.from_json_schema(True, whitespace="compact")), "[{", "[{"),
        (mutations(Grammar.from_regex("a*b")), "c", "cb"),
    ],
)
def test_texts_shrink(strategy: st.SearchStrategy[str], wanted: str, least: str) -> None:
    def holds(text: str) -> bool:
        at = -1
        for char in wanted if wanted == ".." else [wanted]:
            at = text.find(char, at + 1)
            if at < 0:
                return False
        return True

    quiet = settings(max_examples=1000, database=None, derandomize=True)
    assert len(find(strategy, holds, settings=quiet)) == len(least)


def test_near_misses_where_one_edit_hardly_leaves_the_language() -> None:
    assert NearMisses(Paths(~Grammar.literal("secret"))).draw(Drawn(Random(0))) == "secret"
    for grammar in (Grammar.from_regex(r"[\s\S]*"), ~Grammar.from_text("start ::= nothing")):
        with pytest.raises(UnsatisfiableGrammar, match="no near misses"):
            mutations(grammar)
    recursive = Grammar.from_text('start ::= [^] start | ""')
    assert NearMisses(Paths(recursive)).draw(Drawn(Random(0))) is None


def test_near_misses_are_of_every_kind() -> None:
    grammar = Grammar.from_regex("abc[0-9]{3}")
    missed = draw_many(lambda p, s, max_size: NearMisses(p).draw(s), grammar, 6, 3000)
    shapes = {re.sub("[A-Z!-&]", "!", re.sub("[0-9]", "0", text)) for text in missed}
    assert {"", "ab", "abc00", "!abc000", "ab!000", "acb000", "abcc000", "abc0000"} <= shapes


@pytest.mark.parametrize("strategy", [sentences, prefixes, mutations])
def test_bad_arguments(strategy: Callable[..., object]) -> None:
    grammar = Grammar.from_regex("abc")
    for bad in (-1, "3", True, 1.5):
        with pytest.raises(GrammarError, match="max_size must be a number of characters"):
            strategy(grammar, max_size=bad)
    with pytest.raises(GrammarError, match="a Grammar is needed, not str"):
        strategy("abc")
    with pytest.raises(UnsatisfiableGrammar):
        strategy(Grammar.from_text("start ::= nothing"))
    if strategy is not prefixes:
        with pytest.raises(GrammarError, match="the shortest sentence has 3 characters"):
            strategy(grammar, max_size=2)


def test_a_crowded_machine_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grammaton.fuzz.paths._MOST_STATES", 3)
    paths = Paths(BRACKETS)
    rng = Random(0)
    for _ in range(50):
        assert BRACKETS.accepts(draw_sentence(paths, Drawn(rng), max_size=30))
        paths.accepts("([])")
