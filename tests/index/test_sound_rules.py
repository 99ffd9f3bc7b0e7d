"""Rules whose front end vouches that they can end, against the same rules judged when compiled.

A copy of a grammar vouches for nothing. Masks of both are the same wherever a walk leads.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from grammaton import Grammar, Vocabulary, compile
from grammaton._core import Constraint, TermStore
from grammaton.errors import GrammatonError, UnsatisfiableGrammar
from tests.grammar.test_json_schema_simple import OPTIONS, Documents

SPELLED = Vocabulary([*(bytes([i]) for i in range(256)), b""], eos_token_ids=256)
LACKING = Vocabulary(
    [*(bytes([i]) for i in range(256) if i not in b'ab0{\xc3"'), b'"b', b'{"', b""],
    eos_token_ids=252,
)
STEPS = 40


def constraint(grammar: Grammar, vocabulary: Vocabulary) -> Constraint | None:
    try:
        return compile(grammar, vocabulary)
    except UnsatisfiableGrammar:
        return None


def same_masks(grammar: Grammar, vocabulary: Vocabulary, source: random.Random) -> None:
    store = TermStore()
    copied = Grammar(store, store.import_term(grammar.store, grammar.start))
    pair = [constraint(each, vocabulary) for each in (grammar, copied)]
    if pair[0] is None or pair[1] is None:
        assert pair == [None, None]
        return
    one, other = pair[0].matcher(), pair[1].matcher()
    for _ in range(STEPS):
        mask = one.mask()
        assert (mask == other.mask()).all()
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        assert len(allowed), "a dead end"
        token = int(source.choice(list(allowed)))
        if token in vocabulary.eos_token_ids:
            break
        assert one.accept(token)
        assert other.accept(token)


@pytest.mark.parametrize("seed", range(8))
def test_drawn_documents(seed: int) -> None:
    source = random.Random(seed)
    for number in range(60 * seed, 60 * (seed + 1)):
        try:
            grammar = Grammar.from_json_schema(
                Documents(number).document(), **OPTIONS[number % len(OPTIONS)]
            )
        except GrammatonError:
            continue
        same_masks(grammar, SPELLED if number % 3 else LACKING, source)
