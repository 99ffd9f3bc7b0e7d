"""Strings that patterns tell apart: masks of all groups at once, against every token tried."""

from __future__ import annotations

import random
from functools import cache

import jsonschema
import numpy as np
import pytest

from grammaton import Grammar, LimitExceeded, Limits, Matcher, Vocabulary, compile

PIECES = (
    *(
        '"',
        '":',
        '",',
        '"a":',
        "ab",
        'b"',
        'ab":',
        '":1',
        '": "',
        "\\u0061",
        "\\n",
        '\\"',
        "é",
        "é",
    ),
    *('{"', '},"', "}", "1", "17", "null", "[", "]", "aab", "xyz", " ", 'a"}', 'é":[', 'x":null}'),
)
TOKENS = 3000


@cache
def vocabulary() -> Vocabulary:
    rng = random.Random(3)
    tokens = {bytes([byte]) for byte in range(256)}
    while len(tokens) < TOKENS:
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 4))).encode()
        tokens.add(text[: rng.choice([len(text), len(text) - 1])] or text)
    return Vocabulary([*sorted(tokens), b""], eos_token_ids=TOKENS)


def allowed(matcher: Matcher) -> np.ndarray:
    bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
    return bits[:TOKENS].astype(bool)


def accepted(matcher: Matcher) -> np.ndarray:
    taken = np.zeros(TOKENS, dtype=bool)
    for token in range(TOKENS):
        if matcher.accept(token):
            taken[token] = True
            matcher.rollback(1)
    return taken


def keyed(patterns: dict[str, object], **others: object) -> dict[str, object]:
    return {"type": "object", "patternProperties": patterns, **others}


SCHEMAS = {
    "overlapping": keyed(
        {"a": {"minimum": 3}, "b": {"type": ["string", "integer"]}, "^.{2}b": {"maximum": 17}}
    ),
    "values that conflict": keyed(
        {"a": {"type": "integer"}, "b": {"type": "string"}, "é": {"type": "null"}},
        additionalProperties={"type": "array"},
    ),
    "beside declared keys": keyed(
        {"^a": {"type": "integer"}, "b$": {"type": ["integer", "null"]}, ".x": {"const": 1}},
        properties={"ab": {"enum": [1, None]}, "x": {"type": "string"}},
        additionalProperties=False,
    ),
    "letters": keyed({"a": {"const": 1}, "b": {"const": 17}, "x": {"type": "null"}}),
    "names": keyed(
        {"a": {"type": "integer"}, "b": {}, "aa": {"maximum": 9}},
        propertyNames={"pattern": "^[abé]+$"},
    ),
    "one of three": {"type": "string", "oneOf": [{"pattern": p} for p in ("a.b", "é", "[0-9]$")]},
    "one of lengths": {
        "type": "string",
        "oneOf": [{"pattern": "a", "maxLength": 4}, {"minLength": 3}, {"pattern": '"'}],
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_masks(name: str) -> None:
    schema = SCHEMAS[name]
    validator = jsonschema.Draft202012Validator(schema)
    constraint = compile(Grammar.from_json_schema(schema), vocabulary())
    rng = random.Random(name)
    for _ in range(3):
        matcher = constraint.matcher()
        for _ in range(7):
            mask = allowed(matcher)
            assert (mask == accepted(matcher)).all()
            tokens: list[int] = np.flatnonzero(mask).tolist()
            if not tokens:
                break
            longest = sorted(tokens, key=lambda token: len(vocabulary().token_bytes(token)))[-30:]
            assert matcher.accept(rng.choice(longest))
    assert constraint.stats()["pair_nodes"] > 0
    for key in ("a", "b", "ab", "x", "é", "xab", "aéb", ""):
        for text, value in (("1", 1), ("17", 17), ('"a"', "a"), ("null", None), ("[]", [])):
            matcher = constraint.matcher()
            said = matcher.accept_bytes(f'{{"{key}":{text}}}'.encode()) and matcher.is_complete
            assert said == validator.is_valid({key: value}), (key, value)


def test_remainders_are_listed_when_something_follows() -> None:
    """A frame that was made where nothing follows it is shared with grammars that go on."""
    rng = random.Random(9)
    tokens = {"".join(rng.choices("abc,", k=rng.randint(3, 9))).encode() for _ in range(9000)}
    listed = [*sorted(tokens), *(bytes([byte]) for byte in range(256)), b""]
    shared = Vocabulary(listed, eos_token_ids=len(listed) - 1)
    for pattern in (r"[abc,]{1,6}(?:a,|b)?", r"(?:[abc,]{1,6}(?:a,|b)?)\n", r"[abc,]{1,6},\n"):
        matcher = compile(Grammar.from_regex(pattern), shared).matcher()
        for _ in range(2):
            bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
            for token in range(0, len(listed) - 1, 3):
                taken = matcher.accept(token)
                assert taken == bits[token], (pattern, listed[token])
                if taken:
                    matcher.rollback(1)
            assert matcher.accept_bytes(b"ab")


def test_masks_that_would_take_long_are_refused() -> None:
    hard = Grammar.from_regex(".*a.{9}b.*") & Grammar.from_regex(".*[01].{8}é.*")
    with pytest.raises(LimitExceeded, match=r"max_mask_work = 100 .*at the beginning"):
        compile(hard, vocabulary(), limits=Limits(max_mask_work=100))
    easy = Grammar.from_regex(".*a.*") & Grammar.from_regex("[^b]{3,5}")
    for grammar in (easy, Grammar.from_regex(".*a.{9}b.*")):
        compile(grammar, vocabulary(), limits=Limits(max_mask_work=100))
    compile(hard, vocabulary())
    text = 'start: "a" m~0..5 ";"\nm: T | "(" m~1..3 ")"\nT: /[^\\n]{1,3}/\n%ignore " "\n'
    with pytest.raises(LimitExceeded, match=r"max_mask_work = 100 .*near the start"):
        compile(Grammar.from_lark(text), vocabulary(), limits=Limits(max_mask_work=100))
