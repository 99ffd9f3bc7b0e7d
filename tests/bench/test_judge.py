"""Verdicts on disputed tokens, on schemas whose answers are plain to see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.judge import (
    ALLOWER,
    CONVENTION,
    DIALECT,
    FORBIDDER,
    FORMAT,
    INVALID,
    UNDECIDED,
    is_plain,
    judge,
    parse,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string", "format": "ipv4"}},
}


@pytest.mark.parametrize(
    ("rejoined", "led", "verdict"),
    [
        ([b'{"a": 1'], [b'{"a": 2}'], FORBIDDER),
        ([b'{"a": "x"}', b'{"a": 1}'], [], FORBIDDER),
        ([b'{ "a": 1}'], [], CONVENTION),
        ([b'{"a":1}'], [], CONVENTION),
        ([b'{"b": "1.2.3.4", "a": 1}'], [], CONVENTION),
        ([b'{"\\u0061": 1}'], [b'{"a": "x"}'], CONVENTION),
        ([b'{"a": "x"}'], [b'{"a": "x"}'], ALLOWER),
        ([], [b'{"a": 1, "a": 1}'], ALLOWER),
        ([], [b'{"b": "x"}'], FORMAT),
        ([b'{"a": "x"}'], [], UNDECIDED),
    ],
)
def test_verdicts(rejoined: list[bytes], led: list[bytes], verdict: str) -> None:
    def lead() -> Iterator[bytes]:
        return iter(led)

    assert judge(SCHEMA, iter(rejoined), lead, whitespace="spaced")[0] == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('"a\\rb"', DIALECT),
        ('"\\ufeff"', DIALECT),
        ('"é"', DIALECT),
        ('"ab"', FORBIDDER),
        ('"a\\tb"', FORBIDDER),
    ],
)
def test_what_two_dialects_of_patterns_may_read_differently_proves_nothing(
    text: str, verdict: str
) -> None:
    schema = {"type": "string", "pattern": "^.+$"}
    found = judge(schema, iter([text.encode()]), lambda: iter([text.encode()]), whitespace="spaced")
    assert found[0] == verdict


def test_a_schema_that_cannot_be_judged_is_undecided() -> None:
    schema = {"$ref": "https://example.invalid/schema"}
    verdict, why = judge(schema, iter([b"1"]), lambda: iter([b"1"]), whitespace="spaced")
    assert verdict == UNDECIDED
    assert why


@pytest.mark.parametrize("text", [b'{"a": 1, "a": 2}', b"NaN", b"\xff", b"[" * 100_000])
def test_what_is_no_json(text: bytes) -> None:
    assert parse(text) is INVALID


def test_whitespace_that_the_forbidder_writes() -> None:
    value = {"a": 1, "b": "x"}
    spaced, compact = '{"a": 1, "b": "x"}', '{"a":1,"b":"x"}'
    assert is_plain(spaced, value, SCHEMA, "spaced")
    assert not is_plain(compact, value, SCHEMA, "spaced")
    assert is_plain(compact, value, SCHEMA, "compact")
    assert is_plain(compact, value, SCHEMA, "flexible")


def test_keys_required_besides_come_after_those_declared() -> None:
    schema = {"properties": {"a": {}}, "required": ["id"]}
    for text, plain in [('{"a": 1, "id": 1, "x": 1}', True), ('{"a": 1, "x": 1, "id": 1}', False)]:
        assert is_plain(text, parse(text.encode()), schema, "spaced") == plain
