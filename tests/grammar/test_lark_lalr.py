"""Lark grammars under LALR: acceptance and viable prefixes against Lark itself, with both lexers.

What may be generated is compared with `lark.Lark(text, parser="lalr", lexer=...)` on every short
text over a few characters. For a prefix that none of them goes on from a longer one is searched:
without any, the claim that it is viable was wrong.
"""

from __future__ import annotations

import itertools
import pickle
import random
from pathlib import Path
from typing import Literal

import lark
import pytest

from grammaton import (
    Grammar,
    GrammarError,
    LimitExceeded,
    UnsatisfiableGrammar,
    UnsupportedKeyword,
    Vocabulary,
    compile,
)
from grammaton._core import Constraint, Matcher
from grammaton.fuzz.lalr import drawn
from grammaton.grammar.lark.indenter import Indenter
from tests.grammar.lalr_grammars import CHOSEN

LIBRARY = Path(lark.__file__).parent / "grammars"
Lexer = Literal["contextual", "basic"]
LEXERS: tuple[Lexer, ...] = ("contextual", "basic")


def parses(parser: lark.Lark, text: str) -> bool:
    """Whether Lark parses a text."""
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def texts_over(characters: str, most: int) -> list[str]:
    """Short texts first; at most about `most` of them, all of a length or none."""
    texts = [""]
    for length in itertools.count(1):
        if len(texts) + len(characters) ** length > most:
            return texts
        texts += ["".join(text) for text in itertools.product(characters, repeat=length)]
    raise AssertionError


def goes_on(constraint: Constraint, parser: lark.Lark, prefix: str, characters: str) -> bool:
    """Whether a text that Lark parses is found behind a prefix, breadth first over positions."""
    matcher = constraint.matcher()
    assert matcher.accept_bytes(prefix.encode())
    level = [(prefix, matcher)]
    seen = {matcher.state}
    while level and len(level[0][0]) < len(prefix) + 20:
        longer: list[tuple[str, Matcher]] = []
        for text, at in level:
            if at.is_complete:
                assert parses(parser, text)
                return True
            for token, character in enumerate(characters):
                after = at.fork()
                if after.accept(token) and after.state not in seen:
                    seen.add(after.state)
                    longer.append((text + character, after))
        level = longer[:500]
    return False


def check(grammar: Grammar, parser: lark.Lark, texts: list[str], characters: str) -> None:
    """Compares with Lark on texts, and viable prefixes with the texts they begin."""
    begun: set[str] = set()
    for text in texts:
        accepted = parses(parser, text)
        assert grammar.accepts(text) == accepted, text
        if accepted:
            begun.update(text[:end] for end in range(len(text) + 1))
    if not grammar.accepts_prefix(""):
        assert not begun
        return
    tokens = [*(character.encode() for character in characters), b""]
    constraint = compile(grammar, Vocabulary(tokens, eos_token_ids=len(characters)))
    for text in texts[: len(texts) // 4]:
        viable = grammar.accepts_prefix(text)
        if text in begun:
            assert viable, text
        elif viable:
            assert goes_on(constraint, parser, text, characters), text


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize("name", CHOSEN)
def test_the_language_is_larks(name: str, lexer: Lexer) -> None:
    text, characters = CHOSEN[name]
    parser = lark.Lark(text, parser="lalr", lexer=lexer)
    grammar = Grammar.from_lark(text, parser="lalr", lexer=lexer)
    check(grammar, parser, texts_over(characters, 1500), characters)


@pytest.mark.parametrize("seed", range(12))
def test_random_grammars(seed: int) -> None:
    source = random.Random(seed)
    made = 0
    while made < 4:
        text = drawn(source)
        lexer = source.choice(LEXERS)
        try:
            parser = lark.Lark(text, parser="lalr", lexer=lexer)
        except lark.exceptions.LarkError:
            continue
        made += 1
        grammar = Grammar.from_lark(text, parser="lalr", lexer=lexer)
        check(grammar, parser, texts_over("ab ", 364), "ab AB")


def test_no_text_at_all() -> None:
    """Every beginning stays alive for Lark's lexer, and none can be completed."""
    grammar = Grammar.from_lark('start: A B\nA: /a+/\nB: "ab"\n', parser="lalr")
    assert not grammar.accepts("aab")
    assert not grammar.accepts_prefix("")
    with pytest.raises(UnsatisfiableGrammar, match="parses no text at all"):
        compile(grammar, Vocabulary([b"a", b"b", b""], eos_token_ids=2))


def test_larks_own_grammars_under_its_grammar_of_grammars() -> None:
    text = (LIBRARY / "lark.lark").read_text(encoding="utf-8")
    parser = lark.Lark(text, parser="lalr")
    grammar = Grammar.from_lark(text, parser="lalr")
    source = random.Random(7)
    refused = 0
    for file in ("lark.lark", "common.lark", "unicode.lark"):
        body = (LIBRARY / file).read_text(encoding="utf-8")
        assert grammar.accepts(body)
        for _ in range(8):
            at = source.randrange(len(body))
            changed = body[:at] + source.choice(["", "(", ":", "a", "\n", '"']) + body[at + 1 :]
            accepted = parses(parser, changed)
            refused += not accepted
            assert grammar.accepts(changed) == accepted
    assert refused > 5


def test_deep_stacks() -> None:
    text = 'start: "[" start? "]" | N\nN: /[0-9]+/\n'
    grammar = Grammar.from_lark(text, parser="lalr")
    deep = "[" * 20_000
    assert grammar.accepts_prefix(deep)
    assert grammar.accepts(deep + "12" + "]" * 20_000)
    assert not grammar.accepts(deep + "12" + "]" * 19_999)


def test_mid_character_prefixes() -> None:
    grammar = Grammar.from_lark("start: /[é-ü]+ж/\n", parser="lalr")
    whole = "éж".encode()
    for end in range(len(whole) + 1):
        assert grammar.accepts_prefix(whole[:end])
    assert not grammar.accepts_prefix(b"\xc3\xc3")
    assert not grammar.accepts_prefix(b"\xc4")


# What is refused


def test_pairs_of_parser_and_lexer() -> None:
    from_lark = Grammar.from_lark
    text = 'start: "a"'
    assert from_lark(text, parser="earley", lexer="dynamic_complete").accepts("a")
    refused = [("earley", "dynamic"), ("earley", "basic"), ("cyk", "basic"), ("cyk", None)]
    for parser, lexer in refused:
        with pytest.raises(UnsupportedKeyword, match=r"is not supported: .* supported are parser="):
            from_lark(text, parser=parser, lexer=lexer)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedKeyword, match="a lexer of one's own"):
        from_lark(text, parser="lalr", lexer=lark.lexer.BasicLexer)  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="parser='lalr' has no lexer 'dynamic_complete'"):
        from_lark(text, parser="lalr", lexer="dynamic_complete")
    with pytest.raises(GrammarError, match="unknown parser 'glr'"):
        from_lark(text, parser="glr")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedKeyword, match="with max_ignored=5 is not supported"):
        Grammar.from_lark('start: "a"', parser="lalr", max_ignored=5)
    assert Grammar.from_lark('start: "a"', parser="lalr", max_ignored=None).accepts("a")
    with pytest.raises(UnsupportedKeyword, match="with an indenter is not supported"):
        from_lark(text, parser="lalr", indenter=Indenter())
    with pytest.raises(GrammarError, match="declared has a pattern for X"):
        from_lark("start: X\n%declare X", parser="lalr", declared={"X": "x"})


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ('start: a "b" | c "b"\na: "x"\nc: "x"\n', GrammarError, "Reduce/Reduce"),
        ("start: A\nA: /a*/\n", GrammarError, "zero-width"),
        ("start: (A | B)+\nA: /(?P<x>a)/\nB: /(?P<x>b)/\n", GrammarError, "same name x"),
        ("start: A\nA: /a(?i:b)++/\n", UnsupportedKeyword, "possessive"),
        ("start: A\nA: /(a)\\1/\n", GrammarError, "back-references"),
        ('start: "a"{2}\n', GrammarError, "Lark refuses the grammar"),
        ('start: A\nA: "a" & "b"\n', UnsupportedKeyword, "Lark has no & between"),
        ('start[capture]: "a"\n', UnsupportedKeyword, "Lark has no attributes"),
        ('start: t{"a"}\nt{x}: x | t{u{x}} "b"\nu{x}: x "c"\n', GrammarError, "template t grows"),
        ("start: " + '["a"] ' * 30 + "\n", LimitExceeded, "alternatives of start"),
        ("start: b\n", GrammarError, "rule b is not defined"),
    ],
)
def test_errors(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Grammar.from_lark(text, parser="lalr")


def test_places_of_errors() -> None:
    with pytest.raises(UnsupportedKeyword) as caught:
        Grammar.from_lark("start: A\nA: /a++/\n", parser="lalr")
    assert (caught.value.line, caught.value.column) == (2, 1)


# A grammar like others


def test_it_is_a_grammar_that_does_not_combine() -> None:
    text = 'start: "a"+\n'
    grammar = Grammar.from_lark(text, parser="lalr")
    assert str(grammar) == text
    assert grammar == pickle.loads(pickle.dumps(grammar))
    assert hash(grammar) == hash(Grammar.from_lark(text, parser="lalr"))
    assert grammar != Grammar.from_lark(text, parser="lalr", lexer="basic")
    assert grammar != Grammar.from_lark(text)
    for combine in (
        lambda: grammar | Grammar.literal("b"),
        lambda: Grammar.literal("b") + grammar,
        lambda: ~grammar,
        grammar.many,
        grammar.to_gbnf,
    ):
        with pytest.raises(GrammarError, match="is a machine of its own"):
            combine()
