"""The corpus in tests/cases/json_schema: schemas with texts that are in and texts that are out.

A case has a `schema` (or `text`, its JSON), `options`, and either `accepts` and `rejects` or the
`error` with its `pointer` (JSON Pointer) or `line` and `column`.
"""

from __future__ import annotations

import itertools
import json
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from grammaton import errors
from grammaton._core import Recognizer
from grammaton.grammar.json_schema import grammar_from_json_schema

CASES = Path(__file__).resolve().parents[1] / "cases" / "json_schema"


def _cases() -> list[Any]:
    cases = []
    for path in sorted(CASES.glob("*.json")):
        if path.stem.startswith("ratchet"):
            continue
        for case in json.loads(path.read_text(encoding="utf-8")):
            cases.append(pytest.param(case, id=f"{path.stem}: {case['name']}"))
    return cases


def recognizer(schema: object, **options: Any) -> Recognizer:
    return Recognizer(*grammar_from_json_schema(schema, **options))


@pytest.mark.parametrize("case", _cases())
def test_case(case: dict[str, Any]) -> None:
    schema = case["text"] if "text" in case else case["schema"]
    options = case.get("options", {})
    if "error" in case:
        with pytest.raises(getattr(errors, case["error"])) as caught:
            grammar_from_json_schema(schema, **options)
        assert type(caught.value).__name__ == case["error"]
        for key in ("pointer", "line", "column"):
            if case.get(key) is not None:
                assert getattr(caught.value, key) == case[key], str(caught.value)
        return
    language = recognizer(schema, **options)
    for text in case["accepts"]:
        assert language.accepts(text.encode()), f"{text!r} is valid and was stopped"
        assert language.accepts_prefix(text.encode()[:-1])
    for text in case["rejects"]:
        assert not language.accepts(text.encode()), f"{text!r} is not valid and was accepted"


@pytest.mark.parametrize("text", [True, False])
def test_schema_as_text_is_schema_as_data(text: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number", "minimum": 0.1}}}
    language = recognizer(json.dumps(schema).encode() if text else schema)
    assert language.accepts(b'{"a":0.1}')
    assert not language.accepts(b'{"a":0.0999}')


def test_bytes_must_be_utf8() -> None:
    with pytest.raises(errors.GrammarError, match="UTF-8"):
        grammar_from_json_schema(b'{"title": "\xff"}')


def test_bom_is_not_part_of_the_schema() -> None:
    assert recognizer('\ufeff{"type": "null"}').accepts(b"null")
    assert recognizer('\ufeff{"type": "null"}'.encode()).accepts(b"null")


@pytest.mark.parametrize("order", ["schema", "any"])
def test_300_optional_properties(order: Any) -> None:
    names = [f"p{i:03}" for i in range(300)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
    }
    store, start = grammar_from_json_schema(schema, key_order=order)
    assert len(store) < 300 * 40
    language = Recognizer(store, start)
    assert language.accepts(json.dumps(dict.fromkeys(names, 1)).encode())
    assert language.accepts(b'{"p000":1,"p299":2}')
    assert language.accepts(b"{}")
    assert language.accepts(b'{"p299":1,"p000":2}') == (order == "any")
    assert not language.accepts(b'{"p299":1,"p299":2}')
    assert not language.accepts(b'{"p300":1}')


def test_large_bounds_are_not_unrolled() -> None:
    few = len(grammar_from_json_schema({"type": "string"})[0]) + 100
    assert len(grammar_from_json_schema({"type": "string", "maxLength": 100_000})[0]) < few
    nested: dict[str, Any] = {"type": "integer"}
    for _ in range(3):
        nested = {"type": "array", "minItems": 50_000, "maxItems": 100_000, "items": nested}
    assert len(grammar_from_json_schema(nested)[0]) < few


def test_10000_strings() -> None:
    language = recognizer({"enum": [f"value-{i:05}" for i in range(10_000)]})
    assert language.accepts(b'"value-00000"')
    assert language.accepts(b'"value-099\\u0039\\u0039"')
    assert not language.accepts(b'"value-10000"')
    assert not language.accepts(b'"value-0000"')


def test_white_space_is_bounded() -> None:
    language = recognizer({"type": "array"})
    assert language.accepts(b"[" + b" " * 40 + b"]")
    assert not language.accepts_prefix(b"[" + b" " * 41)


def test_constants_may_be_exact_decimals() -> None:
    language = recognizer('{"const": 0.1000000000000000055511151231257827}')
    assert language.accepts(b"0.1000000000000000055511151231257827")
    assert not language.accepts(b"0.1")


def _tree(keywords: list[str], depth: int, places: Iterator[int]) -> dict[str, Any]:
    """Choices within each other, two ways each, that differ everywhere."""
    if not depth:
        place = next(places)
        return {"required": [f"k{place}"], "properties": {f"q{place % 7}": {"maximum": place}}}
    keyword = keywords[depth % len(keywords)]
    return {keyword: [_tree(keywords, depth - 1, places) for _ in range(2)]}


def _subsets(states: int) -> dict[str, Any]:
    """Schemas that meet in 2**states ways: those of an automaton, made deterministic."""

    def ref(i: int) -> dict[str, Any]:
        return {"$ref": f"#/$defs/q{i}"}

    first = {"properties": {"a": {"allOf": [ref(0), ref(1)]}, "b": ref(0)}}
    others = {f"q{i}": {"properties": {"a": ref(i + 1), "b": ref(i + 1)}} for i in range(1, states)}
    last = {f"q{states}": {"required": ["z"]}}
    return {"$defs": {"q0": first, **others, **last}, "$ref": "#/$defs/q0"}


def _nested(keywords: list[str], depth: int, leaf: Callable[[int], Any]) -> dict[str, Any]:
    """Choices within each other, one schema beside each."""
    schema = leaf(depth)
    for i in range(depth):
        schema = {keywords[i % len(keywords)]: [leaf(i), schema]}
    return dict(schema)


def _doubled(keyword: str) -> dict[str, Any]:
    """References that lead to one place in 2**30 ways."""
    definitions: dict[str, Any] = {
        f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)
    }
    return {"$defs": {**definitions, "d30": {"type": "integer"}}, "$ref": "#/$defs/d0"}


@pytest.fixture
def _watchdog() -> Iterator[None]:
    """Ends what goes on for minutes, and looks whether memory grew by a GiB."""

    def bite(*_: object) -> None:
        raise TimeoutError

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGALRM, bite)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20


@pytest.mark.usefixtures("_watchdog")
@pytest.mark.parametrize(
    "schema",
    [
        '{"items":' * 100_000 + "{}" + "}" * 100_000,
        '{"const": ' + "[" * 50_000 + "]" * 50_000 + "}",
        {"allOf": [{"anyOf": [{"minLength": i}, {"maxLength": i}]} for i in range(20)]},
        {"const": 10**10_000},
        '{"minimum": ' + "9" * 10_000 + "}",
        '{"maximum": 1e999999}',
        _tree(["anyOf", "allOf", "oneOf"], 10, itertools.count()),
        _tree(["allOf", "anyOf"], 12, itertools.count()),
        _doubled("oneOf"),
        _subsets(30),
        _nested(["oneOf"], 20, lambda i: {"required": [f"k{i}"]}),
        '{"description": "' + "x" * 10_000_000 + '"}',
    ],
    ids=[
        *("deep text", "deep constant", "anyOf bomb", "huge integer", "long digits", "huge power"),
        *("tree of choices", "tree of anyOf", "doubled oneOf"),
        *("mutual recursion", "20 oneOf", "10 MB"),
    ],
)
def test_bombs_meet_a_limit(schema: object) -> None:
    with pytest.raises(errors.LimitExceeded):
        grammar_from_json_schema(schema)


@pytest.mark.usefixtures("_watchdog")
def test_what_only_looks_like_a_bomb() -> None:
    assert recognizer(_doubled("allOf")).accepts(b"5")
    assert recognizer(_doubled("anyOf")).accepts(b"5")
    mixed = _nested(["anyOf", "allOf", "oneOf"], 20, lambda i: {"required": [f"k{i}"]})
    language = recognizer(mixed, key_order="any")
    validator = Draft202012Validator(mixed)
    for keys in ([], ["k0"], ["k19"], ["k0", "k1"], ["k18", "k17", "k3"], ["k16", "k20", "k19"]):
        value = dict.fromkeys(keys, 1)
        assert language.accepts(json.dumps(value).encode()) == validator.is_valid(value)


def test_deep_schemas_as_data() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(5_000):
        schema = {"type": "array", "items": schema, "minItems": 1}
    language = recognizer(schema)
    assert language.accepts(b"[" * 5_000 + b"1" + b"]" * 5_000)
    for _ in range(5_000):
        schema = {"allOf": [schema]}
    with pytest.raises(errors.LimitExceeded):
        grammar_from_json_schema(schema)


def test_indented_texts_nest_at_most_24_deep() -> None:
    language = recognizer({"type": "array", "items": {"$ref": "#"}}, whitespace=1)

    def nested(depth: int) -> bytes:
        value: list[Any] = []
        for _ in range(depth - 1):
            value = [value]
        return json.dumps(value, indent=1).encode()

    assert language.accepts(nested(24))
    assert not language.accepts(nested(25))
    deep: dict[str, Any] = {"type": "array", "maxItems": 0}
    for _ in range(30):
        deep = {"type": "array", "items": deep, "minItems": 1}
    with pytest.raises(errors.LimitExceeded):
        grammar_from_json_schema(deep, whitespace=1)


@pytest.mark.parametrize("keyword", ["maxLength", "maxItems", "maxProperties"])
def test_a_maximum_beyond_every_text_is_no_bound(keyword: str) -> None:
    for value in (2**32 - 1, 2**64, 1e300):
        recognizer = Recognizer(*grammar_from_json_schema({keyword: value}))
        assert all(recognizer.accepts(text) for text in (b'"abc"', b"[1, 2]", b'{"a": 1}', b"5"))


@pytest.mark.parametrize("keyword", ["minLength", "minItems", "minProperties"])
def test_a_minimum_beyond_every_text_meets_the_limit(keyword: str) -> None:
    for value in (2**32 - 1, 2**64, 1e300):
        with pytest.raises(errors.LimitExceeded, match=f"/{keyword}"):
            grammar_from_json_schema({keyword: value})


@pytest.mark.parametrize("value", [float("inf"), [float("nan")], {"a": [float("-inf")]}, {1: 2}])
def test_what_is_no_json_value_is_refused_wherever_it_stands(value: object) -> None:
    for schema in ({"const": value}, {"enum": [1, value]}):
        with pytest.raises(errors.GrammarError) as caught:
            grammar_from_json_schema(schema)
        assert caught.value.pointer is not None
        assert caught.value.pointer.startswith(("/const", "/enum/1"))
