"""Look-around that reaches beyond terminals: random grammars against cutting texts up in every way.

A *shape* is a grammar without names: terminals in sequence, choice and repetition, and parentheses
around the whole shape, so that it is recursive. Its texts are found by trying every place where a
terminal may end, with `re` looking at the whole text.
"""

from __future__ import annotations

import itertools
import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammaton import Grammar
from grammaton.errors import UnsatisfiableGrammar

TERMINALS = {
    "NAME": "[a-b]+",
    "WORD": r"a(?!\w)",
    "KEY": r"\bab\b",
    "LATE": r"(?<=b)a",
    "FREE": r"(?<!\w)b",
    "NUMBER": r"1(?![1a])",
    "PLUS": r"\+",
    "MINUS": r"-(?=[ab])",
    "DOT": r"\.\B",
}
Shape = tuple[object, ...]
LEAVES = st.sampled_from([*TERMINALS, "(start)"]).map(lambda name: (name,))
SHAPES: st.SearchStrategy[Shape] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.just("seq"), inner, inner),
        st.tuples(st.just("alt"), inner, inner),
        st.tuples(st.sampled_from(["?", "*", "+"]), inner),
    ),
    max_leaves=6,
)
TEXTS = ["".join(each) for n in range(5) for each in itertools.product("ab1+", repeat=n)]
TEXTS += ["".join(each) for n in range(5) for each in itertools.product("ab -.", repeat=n)]
TEXTS += ["(a)+b", "(ab)", "(a )b", "ab (a)", "a(ab)a", "((b))", "a+(b+a)", "ab+ab", "1 ab", "(1)1"]


def written(shape: Shape) -> str:
    match shape:
        case ("seq", tuple(left), tuple(right)):
            return f"{written(left)} {written(right)}"
        case ("alt", tuple(left), tuple(right)):
            return f"({written(left)} | {written(right)})"
        case (str(sign), tuple(body)):
            return f"({written(body)}){sign}"
        case ("(start)",):
            return '"(" start ")"'
    return str(shape[0])


def cut_up(shape: Shape, text: str) -> bool:
    """Whether the text is one of the shape's, with blanks after each terminal."""

    def after_blanks(at: int) -> set[int]:
        blanks = len(text[at:]) - len(text[at:].lstrip(" "))
        return set(range(at, at + blanks + 1))

    @cache
    def terminal(pattern: str, at: int) -> frozenset[int]:
        found: set[int] = set()
        for end in range(at, len(text) + 1):
            rest = len(text) - end
            if re.compile(rf"(?:{pattern})(?=[\s\S]{{{rest}}}\Z)").match(text, at):
                found |= after_blanks(end)
        return frozenset(found)

    @cache
    def ends(node: Shape, at: int) -> frozenset[int]:
        match node:
            case ("seq", tuple(left), tuple(right)):
                return frozenset(end for mid in ends(left, at) for end in ends(right, mid))
            case ("alt", tuple(left), tuple(right)):
                return ends(left, at) | ends(right, at)
            case (str(sign), tuple(body)):
                new = {at} if sign != "+" else set(ends(body, at))
                found = set(new)
                while new and (sign != "?" or found == {at}):
                    new = {end for mid in new for end in ends(body, mid)} - found
                    found |= new
                    if sign == "?":
                        break
                return frozenset(found)
            case ("(start)",):
                inside = {end for mid in terminal(r"\(", at) for end in ends(shape, mid)}
                return frozenset(end for mid in inside for end in terminal(r"\)", mid))
        return terminal(TERMINALS[str(node[0])], at)

    return any(len(text) in ends(shape, at) for at in after_blanks(0))


def grammar_of(shape: Shape) -> Grammar:
    terminals = "".join(f"{name}: /{pattern}/\n" for name, pattern in TERMINALS.items())
    text = f'start: {written(shape)}\n{terminals}%ignore " "\n'
    return Grammar.from_lark(text, max_ignored=None)


@given(SHAPES)
@settings(max_examples=25)
def test_texts_are_those_that_can_be_cut_up(shape: Shape) -> None:
    try:
        grammar = grammar_of(shape)
        grammar.accepts("")
    except UnsatisfiableGrammar:
        assert not any(cut_up(shape, text) for text in TEXTS)
        return
    for text in TEXTS:
        assert grammar.accepts(text) == cut_up(shape, text), text


@pytest.mark.parametrize("levels", [2, 6])
def test_names_and_keywords_leave_the_same_place(levels: int) -> None:
    """Where nothing but punctuation can follow either, each rule has two kinds of ends: with a word
    boundary behind it for the next keyword, and without."""
    rules = [rf"l{i}: l{i + 1} (/\bk{i}\b/ l{i + 1})*" for i in range(levels)]
    rules.append(f'l{levels}: NAME | /\\bnone\\b/ | /[0-9]+(?!\\w)/ | "(" l0 ")"')
    text = "\n".join(["start: l0", *rules, "NAME: /[a-z_]+/", '%ignore " "'])
    grammar = Grammar.from_lark(text)
    assert grammar.accepts("(a)k0 none k1 (1 k0 b)")
    assert not grammar.accepts("ak0 b")
    assert str(grammar).count("::=") < 8 * levels + 12
