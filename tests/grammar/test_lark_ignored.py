"""Where ignored text is cut: what docs/grammars.md says of Lark's Earley parser and of ours.

Lark skips as much at once as the ignored terminal matches, here any part of it that the terminal
matches, too. So a text that Lark parses belongs always, and more texts do where a terminal may
begin, or has to, with what is ignored.
"""

from __future__ import annotations

import itertools

import lark
import pytest

from grammaton import Grammar

SAME = (
    'start: "a" "b"+\n%ignore / +/\n',
    'start: "a" B+\nB: /b| b/\n%ignore " "\n',
    'start: ("a" | C)+\nC: "b" " "? "a"\n%ignore " "\n',
)
MORE = (('start: "a" B\nB: " b"\n%ignore / +/\n', "a  b"),)


def texts(most: int) -> list[str]:
    return [
        "".join(text) for size in range(most + 1) for text in itertools.product("ab ", repeat=size)
    ]


def parses(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def earley(text: str) -> lark.Lark:
    return lark.Lark(text, parser="earley", lexer="dynamic_complete")


@pytest.mark.parametrize("grammar", SAME)
def test_ignored_text_is_larks(grammar: str) -> None:
    parser, ours = earley(grammar), Grammar.from_lark(grammar)
    for text in texts(5):
        assert ours.accepts(text) == parses(parser, text), text


@pytest.mark.parametrize(("grammar", "text"), MORE)
def test_a_part_of_ignored_text_may_belong_to_a_terminal(grammar: str, text: str) -> None:
    parser, ours = earley(grammar), Grammar.from_lark(grammar)
    assert ours.accepts(text)
    assert not parses(parser, text)
    for other in texts(5):
        assert ours.accepts(other) or not parses(parser, other), other
