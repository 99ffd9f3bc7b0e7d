"""The grammars of bench/grammars: what they allow is what independent parsers take."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bench.grammars import Sample, load_all
from grammaton import Vocabulary, compile

SAMPLES = load_all()
FEWEST = {"lalr_c": 2}
"""Random texts that come to an end, of 60: nested blocks of C seldom close by chance."""


def checked(sample: Sample, text: str) -> None:
    """Lets the independent parser judge a text."""
    if sample.name == "lua":
        pytest.importorskip("lupa")
    sample.check(text)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_texts_are_accepted_and_parse(sample: Sample) -> None:
    grammar = sample.grammar()
    for text in sample.texts:
        assert grammar.accepts(text), text
        checked(sample, text)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_random_texts_parse(sample: Sample) -> None:
    """Walks over the masks, on a vocabulary of characters and pieces of the sample's texts."""
    choose = random.Random(sample.name)
    pieces = {text[i : i + n] for text in sample.texts for i in range(len(text)) for n in (2, 4, 7)}
    some = choose.sample(sorted(pieces), 150)
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in some]
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    constraint = compile(sample.grammar(), vocabulary)
    finished = 0
    for _ in range(60):
        matcher = constraint.matcher()
        text = b""
        while len(text) < 60 or (len(text) < 400 and not matcher.is_complete):
            mask = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(mask[: len(tokens)])
            if not len(allowed) or (matcher.is_complete and choose.random() < 0.1):
                break
            token = int(choose.choice(allowed))
            assert matcher.accept(token)
            text += tokens[token]
        if matcher.is_complete:
            finished += 1
            checked(sample, text.decode())
    assert finished >= FEWEST.get(sample.name, 6)
