"""Inputs that once crashed the process or led to a dead end; each stands for its kind."""

from __future__ import annotations

from itertools import product

import pytest

from grammaton import Grammar, LimitExceeded, Limits, Vocabulary, VocabularyError, compile
from grammaton._core import Constraint, Recognizer, TermStore, TokenIndex

BYTES = [bytes([byte]) for byte in range(256)]


def test_emptiness_of_a_lift_where_not_every_byte_is_spelled() -> None:
    """A residual that is a sequence led the search back to its own question."""
    tokens = [bytes([byte]) for byte in range(0x20, 0x7F)]
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    schema = {"type": "string", "pattern": r"^(b[\s\S])*c$"}
    matcher = compile(Grammar.from_json_schema(schema), vocabulary).matcher()
    assert matcher.accept_bytes(b'"bxc"')
    assert matcher.is_complete


def test_a_counted_frame_that_every_token_ends() -> None:
    """Beside a long maximum, the list of tokens that stay inside was read though empty."""
    letters = [bytes([byte]) for byte in range(97, 113)]
    tokens = [*BYTES, *(b"z" + b"".join(p) + b'"' for p in product(letters, repeat=3))]
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    text = 'start ::= "z" [a-p]{0,40} "\\"" | "y" r\nr ::= "w" r | "v"\n'
    matcher = compile(Grammar.from_text(text), vocabulary).matcher()
    mask = matcher.mask()
    for token in range(len(tokens)):
        taken = matcher.accept(token)
        assert taken == bool(mask[token // 32] >> (token % 32) & 1)
        if taken:
            matcher.rollback(1)


def test_literals_that_part_late_or_begin_each_other() -> None:
    late = Grammar.from_choices(["a" * 99_999, "a" * 99_998 + "b"])
    assert late.accepts("a" * 99_998 + "b")
    assert not late.accepts("a" * 99_998 + "c")
    nested = Grammar.from_choices(["a" * n for n in range(1, 3000)])
    assert nested.accepts("a" * 2999)
    assert not nested.accepts("a" * 3000)


def test_a_long_sequence_is_lifted_without_recursion() -> None:
    store = TermStore()
    store.json(store.concat([store.chars([(0, 0x10FFFF)])] * 200_000))


def nested_unions(store: TermStore, levels: int) -> int:
    a, b = store.literal(b"a"), store.literal(b"b")
    term = a
    for _ in range(levels):
        term = store.union([store.concat([a, term]), b])
    return term


def test_nesting_meets_a_limit() -> None:
    store = TermStore()
    assert Recognizer(store, nested_unions(store, 300)).accepts(b"ab")
    with pytest.raises(LimitExceeded, match="2000 deep"):
        nested_unions(store, 50_000)


def test_a_token_of_monstrous_length_is_refused() -> None:
    vocabulary = Vocabulary([b"(" * 60_000, *BYTES, b""], eos_token_ids=257)
    with pytest.raises(VocabularyError, match="60000 bytes"):
        compile(Grammar.from_text('start ::= "(" start ")" | "a"'), vocabulary)


def test_a_template_goes_on_only_to_rules_that_end() -> None:
    store = TermStore()
    endless = store.rule("endless")
    store.define(endless, store.concat([store.literal(b"x"), store.call(endless)]))
    rule = store.rule("rule")
    a, b = store.literal(b"a"), store.literal(b"b")
    store.define_template(rule, [(a, -1, store.EMPTY, (), ()), (b, endless, store.EMPTY, (), ())])
    index = TokenIndex([*BYTES, b""], [True] * 256 + [False], [256], 257)
    matcher = Constraint(store, store.call(rule), index).matcher()
    assert not matcher.accept(ord("b"))
    assert matcher.accept(ord("a"))
    assert matcher.is_complete


@pytest.mark.parametrize(
    "schema",
    [
        {"multipleOf": 123_456, "minimum": -123_456, "maximum": 10**18},
        {"multipleOf": 4004, "not": {"anyOf": [{"multipleOf": d} for d in (8, 33, 12)]}},
    ],
)
def test_multiples_are_told_by_arithmetic(schema: dict[str, object]) -> None:
    """Ends of scientific forms were searched for, a hundred thousand terms at the first mask."""
    digits = [b"%d" % number for number in range(10, 1000)]
    tokens = [*BYTES, *digits]
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    grammar = Grammar.from_json_schema({"type": "number", **schema})
    matcher = compile(grammar, vocabulary.with_limits(Limits(max_step_terms=40_000))).matcher()
    for text in (b"12", b"0", b"8"):
        token = tokens.index(text)
        assert matcher.mask()[token // 32] >> (token % 32) & 1
        assert matcher.accept_bytes(text)
