"""Masks at several levels of indentation, which share what does not depend on them.

Every token is tried in states of blocks within blocks: what was found at one level must not be
taken for another one where the blanks of lines matter.
"""

from __future__ import annotations

import random

import pytest

from grammaton import Grammar, Indenter, Vocabulary, compile
from tests.reference import mask_to_ids

BLOCKS = r"""
start: (_NL | line)*
line: NAME _NL | NAME ":" block | "(" [NAME ("," NAME)*] ")" _NL | "if" NAME ":" block else?
else: "else" ":" block
block: _NL _INDENT line+ _DEDENT | NAME _NL
NAME: /[a-d]/ | / -/
_NL: /(\r?\n[BLANKS]*)+/
%ignore " "
%declare _INDENT _DEDENT
"""
PIECES = ["\n", " ", "  ", "    ", "a", "b", ":", "(", ")", ",", " -", "if", "else"]
PIECES += ["a:\n", "\n ", "\n  ", ":\n    ", "c\n"]


@pytest.mark.parametrize(("blanks", "tab_length"), [(" ", 8), (r"\t ", 4)])
def test_masks_of_blocks(blanks: str, tab_length: int) -> None:
    rng = random.Random(tab_length)
    indenter = Indenter(newline="_NL", tab_length=tab_length, max_step=5)
    grammar = Grammar.from_lark(BLOCKS.replace("BLANKS", blanks), indenter=indenter)
    pieces = [*PIECES, "\t"] if "t" in blanks else PIECES
    texts = {"".join(rng.choices(pieces, k=rng.randint(1, 6))).encode() for _ in range(2500)}
    tokens = [*(bytes([byte]) for byte in range(128)), *sorted(t for t in texts if len(t) > 1)]
    constraint = compile(grammar, Vocabulary([*tokens, b""], eos_token_ids=len(tokens)))
    for _ in range(6):
        matcher = constraint.matcher()
        for _ in range(8):
            found = mask_to_ids(matcher.mask())
            begun = []
            for i in range(len(tokens)):
                if matcher.accept(i):
                    matcher.rollback(1)
                    begun.append(i)
            assert found - {len(tokens)} == set(begun)
            begun.sort(key=lambda i: -len(tokens[i]) - 3 * tokens[i].count(b"\n"))
            assert matcher.accept(rng.choice(begun[: max(1, len(begun) // 8)]))
