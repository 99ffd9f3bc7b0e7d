"""Blocks by indentation, against Lark's own indenter and its LALR parser."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark.indenter import Indenter as LarkIndenter
from lark.indenter import PythonIndenter

from grammaton import Grammar, GrammarError, Indenter, UnsupportedKeyword, Vocabulary, compile
from tests.reference import mask_to_ids

LIBRARY = Path(lark.__file__).parent / "grammars"

BLOCKS = r"""
start: (_NL | stmt)*
stmt: NAME _NL | NAME ":" suite | "(" [NAME (COMMA NAME)*] ")" _NL
suite: _NL _INDENT stmt+ _DEDENT | NAME _NL
COMMA: ","
NAME: /[a-z]/ | / -/
_NL: /(\r?\n[\t ]*)+/
%ignore " "
%declare _INDENT _DEDENT
"""


class Blocks(LarkIndenter):
    """The same for Lark."""

    NL_type = "_NL"
    OPEN_PAREN_types = ["LPAR"]  # noqa: RUF012
    CLOSE_PAREN_types = ["RPAR"]  # noqa: RUF012
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 4


@cache
def blocks() -> tuple[Grammar, lark.Lark]:
    parser = lark.Lark(BLOCKS, parser="lalr", postlex=Blocks())
    return Grammar.from_lark(BLOCKS, indenter=Indenter.from_lark(Blocks)), parser


def parses(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except (lark.exceptions.LarkError, AssertionError, IndexError):
        return False
    return True


margins = st.sampled_from(["", " ", "  ", "    ", "\t", " \t", "     "])
lines = st.sampled_from(["a", "b:", "c:d", "", "(a,", "b)", "(a)", "a ", "(", " -", "-", "( -)"])


@given(st.lists(st.tuples(margins, lines), max_size=6), st.sampled_from(["", "\n", "\n  "]))
def test_acceptance_is_larks(parts: list[tuple[str, str]], end: str) -> None:
    grammar, parser = blocks()
    text = "\n".join(margin + line for margin, line in parts) + end
    assert grammar.accepts(text) == parses(parser, text)


@given(st.data())
def test_masks_have_no_dead_ends(data: st.DataObject) -> None:
    """A token is allowed where the text with it is the start of one, and some token always is."""
    grammar, parser = blocks()
    tokens = [bytes([c]) for c in b"ab:(),\n \t\r"] + [b"\n ", b":\n", b"  ", b"\n\ta", b"a\n  b"]
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    matcher = compile(grammar, vocabulary).matcher()
    text = b""
    for _ in range(12):
        allowed = {i for i, token in enumerate(tokens) if grammar.accepts_prefix(text + token)}
        ends = {len(tokens)} if grammar.accepts(text) else set()
        assert mask_to_ids(matcher.mask()) == allowed | ends
        assert ends == ({len(tokens)} if parses(parser, text.decode()) else set())
        token = data.draw(st.sampled_from(sorted(allowed)))
        assert matcher.accept(token)
        text += tokens[token]


@pytest.mark.parametrize("tab", ["", "\\t"])
def test_masks_at_all_levels(tab: str) -> None:
    """What is found at one level serves others (grammar/levels.cpp) only where it is the same."""
    rng = random.Random(7)
    grammar = Grammar.from_lark(
        BLOCKS.replace("[\\t ]*", f"[{tab} ]*"),
        indenter=Indenter(newline="_NL", tab_length=4, max_step=6),
    )
    pieces = ["\n", " ", "  ", "\t", "a", "b:", "(", ")", ",", "a:\n", "\n  ", ":\n    ", "c\n"]
    drawn = {"".join(rng.choices(pieces, k=rng.randint(1, 6))).encode() for _ in range(1500)}
    tokens = [*(bytes([c]) for c in range(256)), *sorted(drawn - {bytes([c]) for c in range(256)})]
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    constraint = compile(grammar, vocabulary)
    for _ in range(3):
        matcher = constraint.matcher()
        for _ in range(8):
            allowed = set()
            for token in range(len(tokens) + 1):
                if matcher.accept(token):
                    matcher.rollback(1)
                    allowed.add(token)
            assert mask_to_ids(matcher.mask()) == allowed
            lines = sorted(allowed - {len(tokens)}, key=lambda i: -tokens[i].count(b"\n"))
            assert matcher.accept(rng.choice(lines[: max(1, len(lines) // 4)]))


def test_text_form() -> None:
    grammar, _ = blocks()
    again = Grammar.from_text(str(grammar))
    assert again == grammar
    assert again.accepts("a:\n  b:\n   c\n  d\n")
    assert not again.accepts("a:\n  b\n c\n")


def test_steps_are_bounded() -> None:
    grammar = Grammar.from_lark(BLOCKS, indenter=Indenter(newline="_NL", max_step=3))
    assert grammar.accepts("a:\n   b:\n      c\n")
    assert not grammar.accepts_prefix("a:\n    b")
    assert not grammar.accepts_prefix("a:\n\tb")


def test_newlines_without_tabs() -> None:
    text = BLOCKS.replace("[\\t ]*", " *")
    grammar = Grammar.from_lark(text, indenter=Indenter(newline="_NL", tab_length=1))
    assert grammar.accepts("a:\n b\n")
    assert not grammar.accepts("a:\n\tb\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("_INDENT stmt+ _DEDENT", "_INDENT stmt+", "must be closed in the sequence"),
        ("_INDENT stmt+ _DEDENT", "stmt+ _DEDENT", "must be closed in the sequence"),
        ('")" _NL', "_NL", "must be closed in the sequence"),
        ("(\\r?\\n[\\t ]*)+", "\\n", "must match a line break and any blanks"),
        ("(\\r?\\n[\\t ]*)+", ";", "must match a line break and any blanks"),
    ],
)
def test_what_is_not_supported(old: str, new: str, message: str) -> None:
    assert old in BLOCKS
    with pytest.raises(UnsupportedKeyword, match=message):
        Grammar.from_lark(BLOCKS.replace(old, new), indenter=Indenter(newline="_NL"))


def test_a_grammar_without_newlines() -> None:
    with pytest.raises(GrammarError, match="no rule of the grammar uses _NEWLINE"):
        Grammar.from_lark('start: "a"', indenter=Indenter())


@pytest.mark.parametrize(
    "options",
    [{"newline": 1}, {"open_parens": "LPAR"}, {"tab_length": 0}, {"max_step": True}],
)
def test_bad_indenters(options: dict[str, object]) -> None:
    with pytest.raises(GrammarError, match=next(iter(options))):
        Indenter(**options)  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="NL_type"):
        Indenter.from_lark(object())


PROGRAM = '''# comment
import os, sys
from a.b import (c,
   d as e)

@decorator(1,
  2)
class A(B):
    """doc"""
    x: int = 1

    def f(self, *args, y=2, **kw) -> int:
        if x:
            return [i for i in range(10) if i
                    > 3]
        elif y:
\t    pass
        else:
            while True:
                break
        # comment at another place
      # and here
        return x \\
            + 1
for i in x: print(i); continue
try:
  pass
finally:
  with a as b: pass
'''


def test_larks_python() -> None:
    """Lark's own grammar of Python: a program, and what becomes of it with other indentation."""
    source = (LIBRARY / "python.lark").read_text(encoding="utf-8")
    grammar = Grammar.from_lark(
        source, start="file_input", indenter=Indenter.from_lark(PythonIndenter)
    )
    parser = lark.Lark(source, parser="lalr", start="file_input", postlex=PythonIndenter())
    mutated = [
        PROGRAM,
        PROGRAM + "x",
        PROGRAM.replace("            return", "           return"),
        PROGRAM.replace("      # and", "      and"),
        PROGRAM.replace("\t    pass", "            pass"),
        PROGRAM.replace("\t    pass", "        pass"),
        PROGRAM.replace("        return x", "       return x"),
        PROGRAM.replace("(c,\n", "(c\n"),
        "if x:\n  y\n else:\n  z\n",
        "if x:\n  y\nelse:\n  z\n  ",
        "x = {\n 1: 2,\n\n   3:4 }\n",
    ]
    verdicts = [parses(parser, text) for text in mutated]
    assert [grammar.accepts(text) for text in mutated] == verdicts
    assert 0 < sum(verdicts) < len(verdicts)
