"""Target `schemas`: values that look like JSON Schemas, mutated, through all of the library.

A case is a schema (or its text), the options it is read with, and the seed of a walk. Schemas are
drawn keyword by keyword, so that many mean something, and then damaged: parts of wrong types,
references to nowhere and in circles, huge numbers, nesting of any depth. Whatever it is, nothing
but a `GrammatonError` may come out. What compiles is written: a matcher on a vocabulary of all
bytes takes random allowed tokens, and then those that close what is open. On the way the mask must
never be empty, and where it lets the text end, that text must be JSON that the grammar accepts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import numpy as np

from grammaton.errors import GrammatonError
from grammaton.fuzz.target import Case, Fault, Target, mutate_text, smaller_value, without_parts
from grammaton.grammar.grammar import Grammar
from grammaton.index import Matcher, Vocabulary, compile

WALK_STEPS = 30
CLOSING_STEPS = 100

_NAMES = ["a", "b", "", "é", "$ref", "a/b~", '"\\', "0"]
_PATTERNS = ["^a", "b$", "[a-c]{1,3}", "^(a|é)*$", "\\d+", "^$", "(", "(?=a)a", "\\p{L}"]
_REFS = ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/nowhere", "other.json", "#%", "#x"]
_FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "uri", "regex", "no-such"]
_NUMBERS = [0, 1, 2, 3, 7, -1, -5, 0.5, 1.5, 100, 1e-7, 1e300, 2**53, 10**30, 2**64 - 1]
_TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
_VALUES = [None, True, False, 0, 1.0, -3, 1e20, "", "a", "é\n", "😀", [], [1, "a"], {}, {"a": 1}]
_JUNK = [*_VALUES, *_NUMBERS, float("inf"), float("nan"), "\ud800", -(10**40), [None], "#", 2**32]
_WRAPS = ['{"not":%s}', '{"items":%s}', '{"allOf":[%s,true]}', '{"properties":{"a":%s}}', "[%s]"]
_OPTIONS: dict[str, list[Any]] = {
    "key_order": ["schema", "any"],
    "whitespace": ["flexible", "compact", 0, 2],
    "additional_properties": [None, True, False],
    "ensure_ascii": [False, True],
    "escapes": ["any", "canonical"],
}


def draw_schema(rng: Random, depth: int = 3) -> Any:
    """A schema with at most `depth` levels below it, whose keywords mostly have the right types."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([True, True, {}, False, {"type": rng.choice(_TYPES)}])
    schema: dict[str, Any] = {}
    if rng.random() < 0.6:
        schema["type"] = rng.choice(_TYPES) if rng.random() < 0.8 else rng.sample(_TYPES, 2)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        keyword = rng.choice(_KEYWORDS)
        schema[keyword] = _keyword(rng, keyword, depth - 1)
    return schema


_COUNTS = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]
_BOUNDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]
_ONE = ["items", "not", "additionalProperties", "contains", "propertyNames", "if", "then", "else"]
_MANY = ["anyOf", "oneOf", "allOf", "prefixItems"]
_NAMED = ["properties", "$defs", "patternProperties", "dependentSchemas"]
_OTHER = ["enum", "const", "required", "pattern", "format", "$ref", "uniqueItems", "title"]
_KEYWORDS = [*_COUNTS, *_BOUNDS, *_ONE, *_MANY, *_NAMED * 2, *_OTHER * 2, "properties", "required"]


def _keyword(rng: Random, keyword: str, depth: int) -> Any:
    if keyword in _COUNTS:
        return rng.choice((0, 1, 2, 3, 5))
    if keyword in _BOUNDS:
        return rng.choice(_NUMBERS)
    if keyword in _ONE:
        return draw_schema(rng, depth)
    if keyword in _MANY:
        return [draw_schema(rng, depth) for _ in range(rng.randint(1, 3))]
    if keyword in _NAMED:
        names = _PATTERNS if keyword == "patternProperties" else _NAMES
        return {rng.choice(names): draw_schema(rng, depth) for _ in range(rng.randint(0, 3))}
    drawn: dict[str, Any] = {
        "enum": rng.sample(_VALUES, rng.randint(1, 4)),
        "const": rng.choice(_VALUES),
        "required": rng.sample(_NAMES, rng.randint(0, 2)),
        "pattern": rng.choice(_PATTERNS),
        "format": rng.choice(_FORMATS),
        "$ref": rng.choice(_REFS),
        "uniqueItems": rng.random() < 0.3,
        "title": "a title",
    }
    return drawn[keyword]


def _damage(rng: Random, value: Any) -> Any:
    """The value with one part of it, found by a random descent, replaced, renamed or moved up."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {**value, rng.choice(_KEYWORDS): value[key]}
        return {**value, key: _damage(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        return [*value[:at], _damage(rng, value[at]), *value[at + 1 :]]
    return rng.choice([rng.choice(_JUNK), {"$ref": rng.choice(_REFS)}, [value], {"a": value}])


def _as_text(rng: Random, schema: Any) -> str:
    """The schema as JSON text: in many layers, or with a few wrong characters."""
    text = json.dumps(schema)
    if rng.random() < 0.5:
        return mutate_text(rng, text, '{}[]",:\\ue10-tn \ud800')
    opening, closing = rng.choice(_WRAPS).split("%s")
    layers = rng.choice((3, 40, 150, 2000))
    return opening * layers + text + closing * layers


class Schemas(Target):
    """Schemas from reading to the last token. A case: {"schema": any value, "options": {name:
    value}, "walk": int}; a schema that is a str is read as JSON text."""

    name = "schemas"

    def draw(self, rng: Random) -> Case:
        schema = draw_schema(rng)
        if rng.random() < 0.5:
            for _ in range(rng.randint(1, 3)):
                schema = _damage(rng, schema)
        if rng.random() < 0.15:
            schema = _as_text(rng, schema)
        options = {name: rng.choice(of) for name, of in _OPTIONS.items() if rng.random() < 0.3}
        return {"schema": schema, "options": options, "walk": rng.randrange(2**32)}

    def check(self, case: Case) -> None:
        try:
            grammar = Grammar.from_json_schema(case["schema"], **case["options"])
            matcher = compile(grammar, byte_vocabulary()).matcher()
            write(matcher, grammar, Random(case["walk"]))
        except GrammatonError:
            return

    def smaller(self, case: Case) -> Iterator[Case]:
        for names in without_parts(list(case["options"])):
            yield {**case, "options": {name: case["options"][name] for name in names}}
        if isinstance(case["schema"], str):
            # A value has smaller ones that are schemas still; a text has few.
            with suppress(ValueError, RecursionError):
                yield {**case, "schema": json.loads(case["schema"])}
        for schema in smaller_value(case["schema"]):
            yield {**case, "schema": schema}


@cache
def byte_vocabulary() -> Vocabulary:
    """Every byte as a token of that id, some tokens of several, and the end as the last id."""
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [b'{"', b'":', b'",', b'"}', b"true", b"null", b"},", "é".encode(), b"\\u00"]
    return Vocabulary([*tokens, b""], eos_token_ids=len(tokens))


def write(matcher: Matcher, grammar: Grammar, rng: Random) -> None:
    """Takes random allowed tokens to the end of a text, or until it gets too long.

    Raises:
        Fault: a dead end, or a text that ends and is not JSON of the grammar.
    """
    vocabulary = byte_vocabulary()
    (end,) = vocabulary.eos_token_ids
    text = b""
    for step in range(WALK_STEPS + CLOSING_STEPS):
        bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
        allowed = np.flatnonzero(bits).tolist()
        if not allowed:
            raise Fault("a dead end", text)
        if (end in allowed) != matcher.is_complete:
            raise Fault(
                "the end is allowed where the text is not complete, or not where it is", text
            )
        closing = step >= WALK_STEPS
        if end in allowed and (closing or allowed == [end] or rng.random() < 0.1):
            _check_end(text, grammar)
            return
        allowed = [token_id for token_id in allowed if token_id != end]
        # Half of the time a token that brings the end nearer; else strings would never close.
        marks = [token_id for token_id in allowed if chr(token_id) in '"}]:01']
        chosen = rng.choice(marks if marks and (closing or rng.random() < 0.5) else allowed)
        if not matcher.accept(chosen):
            raise Fault("a token of the mask was not accepted", (text, chosen))
        text += vocabulary.token_bytes(chosen)


def _check_end(text: bytes, grammar: Grammar) -> None:
    try:
        json.loads(text.decode())
    except ValueError as error:
        raise Fault("a complete text is not JSON", (text, error)) from error
    if not grammar.accepts(text):
        raise Fault("the grammar does not accept a text that its matcher completed", text)
