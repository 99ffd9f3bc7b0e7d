"""Schemas that the core reads by itself against the same ones read in Python.

Both readings of a document must give the same terms, up to the names of rules and the order in
which alternatives stand, or the same error. Documents are drawn here, with simple schemas and
others as members of each other, and taken from JSONSchemaBench.
"""

from __future__ import annotations

import json
import lzma
import random
from pathlib import Path
from typing import Any

import pytest

from grammaton.errors import GrammatonError
from grammaton.grammar.json_schema import grammar_from_json_schema, lower

KEYS = ["a", "b", "é", 'q"', "a/b~"]
Options = dict[str, Any]


def shape_of(store: Any, start: int) -> int:
    """A hash of a term and all it calls that does not depend on ids, names or the order of unions.

    Rules get colours, refined by their bodies until no more of them can be told apart.
    """
    rules: dict[int, int] = {}
    known: dict[int, int] = {}
    todo: list[int] = []

    def of_rule(rule: int) -> int:
        if rule not in rules:
            rules[rule] = 0
            todo.append(rule)
        return rules[rule]

    def of_term(term: int) -> int:
        if term not in known:
            kind, *rest = store.node(term)
            if kind == "call":
                param = None if rest[1] is None else store.param_value(rest[1])
                known[term] = hash((kind, of_rule(rest[0]), param))
            elif kind in ("union", "intersect"):
                known[term] = hash((kind, tuple(sorted(map(of_term, rest[0])))))
            elif kind == "concat":
                known[term] = hash((kind, tuple(map(of_term, rest[0]))))
            elif kind in ("complement", "json", "repeat", "distinct", "distinct_text"):
                known[term] = hash((kind, of_term(rest[0]), *rest[1:]))
            else:
                known[term] = hash((kind, *rest))
        return known[term]

    def of_body(rule: int) -> int:
        body = store.rule_body(rule)
        if isinstance(body, int):
            return hash((of_term(body), store.is_scope(rule)))
        alternatives = [
            (of_term(head), -1 if to < 0 else of_rule(to), of_term(tail), conditions, updates)
            for head, to, tail, conditions, updates in body
        ]
        return hash((tuple(alternatives), store.is_scope(rule)))

    of_term(start)
    while todo:
        of_body(todo.pop())
    colours = 0
    while colours < (colours := len(set(rules.values()))):
        known.clear()
        rules.update({rule: of_body(rule) for rule in list(rules)})
    known.clear()
    return hash((of_term(start), frozenset(rules.values())))


def reading(schema: Any, options: Options) -> tuple[str, str] | int:
    """What a schema is read as, or the error."""
    try:
        return shape_of(*grammar_from_json_schema(schema, **options))
    except GrammatonError as error:
        return type(error).__name__, str(error)


def agree(schema: Any, options: Options, patch: pytest.MonkeyPatch) -> None:
    """Large unions are not always put together alike, whoever reads them: a few tries."""
    tries = 4
    read = {reading(schema, options)}
    with patch.context() as inside:
        inside.setattr(lower, "simple_positions", lambda *_, **__: None)
        others = {reading(schema, options)}
        while not read & others and tries:
            others.add(reading(schema, options))
            tries -= 1
    assert read & others, (schema, options)


class Documents:
    """Random documents; about one in ten has something wrong, in one place."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = ["x", "y", "z"][: self.random.randint(0, 3)]
        self.wrong = self.random.random() < 0.1

    def document(self) -> dict[str, Any]:
        root = self.schema(3)
        while not isinstance(root, dict):
            root = self.schema(3)
        if self.names:
            word = self.random.choice(["$defs", "definitions"])
            root[word] = {name: self.schema(2) for name in self.names}
            _refer(root, word)
        if self.random.random() < 0.3:
            root["$schema"] = self.random.choice(
                [
                    "http://json-schema.org/draft-04/schema#",
                    "http://json-schema.org/draft-07/schema",
                ]
            )
        return root

    def schema(self, depth: int) -> Any:
        pick = self.random.random()
        if pick < 0.1:
            return self.random.choice([True, True, {}, {"title": "t"}, False])
        if pick < 0.2 and self.names:
            reference = {"$ref": self.random.choice(self.names)}
            return reference if pick < 0.18 else {**reference, **self.facts(0)}
        if pick < 0.27 and depth:
            word = self.random.choice(["anyOf", "oneOf", "allOf", "not"])
            if word == "not":
                return {"not": self.facts(0)}
            return {word: [self.schema(depth - 1) for _ in range(self.random.randint(1, 2))]}
        return self.facts(depth)

    def facts(self, depth: int) -> dict[str, Any]:
        draw, facts = self.random, dict[str, Any]()
        types = ["object", "array", "string", "integer", "number", "boolean", "null"]
        kind = draw.choice(types if not depth else types[:2] * 3 + types)
        if draw.random() < 0.9:
            facts["type"] = kind if draw.random() < 0.9 else [kind, draw.choice(types)]
        if kind == "object" and depth:
            facts.update(self.members(depth))
        elif kind == "array" and depth:
            if draw.random() < 0.8:
                facts["items"] = self.schema(depth - 1)
            for word in ("minItems", "maxItems"):
                if draw.random() < 0.3:
                    facts[word] = draw.choice([0, 1, 1, 2, 3])
            if draw.random() < 0.1:
                facts["uniqueItems"] = draw.random() < 0.5
        elif kind == "string":
            more: list[dict[str, Any]] = [
                *({"minLength": draw.randint(0, 3)}, {"maxLength": draw.randint(0, 4)}),
                *({"format": draw.choice(["date", "int32", "regex"])}, {"pattern": "^a"}),
                {"enum": draw.sample(["a", "é", "\n", "b", "c", "\ud800", 1], 2)},
                {"const": draw.choice(["a", "é", 1])},
            ]
            for each in draw.sample(more, draw.choice([0, 0, 1, 1, 2])):
                facts.update(each)
        elif kind in ("integer", "number") and draw.random() < 0.4:
            words = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]
            for word in draw.sample(words, draw.choice([1, 1, 2])):
                facts[word] = draw.choice([1, 2.5] if word == "multipleOf" else [-2, 0, 1.5])
        if self.wrong and draw.random() < 0.2:
            self.wrong = False
            facts.update(
                draw.choice(
                    [
                        *({"type": "text"}, {"properties": []}, {"required": "a"}, {"items": 3}),
                        *({"minItems": -1}, {"properties": {"a": 1}}, {"enum": {}}, {"type": []}),
                        *({"$ref": "#/nowhere"}, {"pattern": "("}, {"maxLength": 2**40}),
                    ]
                )
            )
        return facts

    def members(self, depth: int) -> dict[str, Any]:
        draw, facts = self.random, dict[str, Any]()
        if draw.random() < 0.9:
            keys = draw.sample(KEYS, draw.randint(0, 4))
            facts["properties"] = {key: self.schema(depth - 1) for key in keys}
        if draw.random() < 0.5:
            facts["required"] = draw.sample(KEYS, draw.choice([0, 1, 1, 2]))
        if draw.random() < 0.4:
            facts["additionalProperties"] = (
                draw.choice([False, False, True]) if draw.random() < 0.7 else self.schema(depth - 1)
            )
        if draw.random() < 0.05:
            facts["minProperties"] = 1
        if draw.random() < 0.2:
            patterns = draw.sample(["^p", "^x-", "^[a-z]+$", "a", "(", ".*", "^pq"], 2)
            facts["patternProperties"] = {
                pattern: self.schema(depth - 1) for pattern in patterns[: draw.randint(0, 2)]
            }
        return facts


def _refer(part: Any, word: str) -> None:
    """Spells the references of a document out."""
    if isinstance(part, dict):
        if isinstance(name := part.get("$ref"), str) and not name.startswith("#"):
            part["$ref"] = f"#/{word}/{name}"
        for value in part.values():
            _refer(value, word)
    elif isinstance(part, list):
        for value in part:
            _refer(value, word)


OPTIONS: list[Options] = [
    *({}, {"key_order": "any"}, {"whitespace": "compact", "additional_properties": False}),
    *({"key_order": "any", "additional_properties": False}, {"whitespace": 1}),
    {"escapes": "canonical"},
]


@pytest.mark.parametrize("seed", range(12))
def test_drawn_documents(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100 * seed, 100 * (seed + 1)):
        agree(Documents(number).document(), OPTIONS[number % 4], monkeypatch)


@pytest.mark.parametrize("options", OPTIONS)
def test_real_documents(options: Options, data_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lzma.open(data_path / "jsonschemabench-dev.jsonl.xz", "rt", encoding="utf-8") as file:
        for i, line in enumerate(file):
            if i % 300 == OPTIONS.index(options) and len(line) < 20_000:
                agree(json.loads(line)["schema"], options, monkeypatch)


def test_a_shape_tells_terms_apart() -> None:
    schemas: list[Any] = [
        {"properties": {"a": {"type": "string"}}},
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"a": {"type": "integer"}}},
        {"properties": {"a": {"type": "string"}}, "additionalProperties": False},
        {"properties": {"a": {"items": {"type": "string"}}}},
        {"properties": {"a": {"items": {"type": "string"}, "maxItems": 2}}},
    ]
    assert len({shape_of(*grammar_from_json_schema(schema)) for schema in schemas}) == len(schemas)


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_choices(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, thing = {"type": "string"}, {"type": "object", "properties": {"a": {"$ref": "#"}}}
    for choices in (
        *([True], [True, False], [False], [{}, False], [text, thing], [text, text], [thing, {}]),
        *([{"type": "null"}, {word: [text, {"type": "array", "items": thing}]}], [{"$ref": "#"}]),
        *([text, {"type": "integer", "minimum": 3}, {"type": "number"}], [text, {"const": 1}]),
        *([thing, {"type": "object", "required": ["b"]}, text], [{"type": ["array", "null"]}] * 2),
    ):
        for more in ({}, {"type": "string"}, {"type": ["string", "object"]}, {"minLength": 2}):
            agree({word: choices, **more}, {}, monkeypatch)
            agree({"properties": {"x": {word: choices, **more}}}, {}, monkeypatch)


def test_patterns_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    for patterns in ({}, {"^x": text}, {"^x": text, "^y": number}, {"^x": text, "x$": number}):
        for more in ({}, {"additionalProperties": False}, {"additionalProperties": number}):
            for named in ({}, {"properties": {"a": text}}, {"properties": {"x": text}}):
                for required in ([], ["a"], ["xa"]):
                    schema = {"patternProperties": patterns, "required": required, **more, **named}
                    for options in OPTIONS:
                        agree(schema, options, monkeypatch)
                        agree({"items": {"type": "object", **schema}}, options, monkeypatch)


def test_one_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    def tagged(kind: Any, **more: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"t": kind}, "required": ["t"], **more}

    a, b, ab = {"const": "a"}, {"enum": ["b", "c"]}, {"enum": ["a", "b"]}
    closed = {"additionalProperties": False}
    for choices in (
        *([tagged(a), tagged(b)], [tagged(a), tagged(ab)], [tagged(a), tagged({"type": "null"})]),
        *([tagged(a, **closed), {"type": "object", "required": ["u"], **closed}],),
        *([tagged(a), {"type": "object", "properties": {"u": a}, **closed}],),
        *([tagged(tagged(a)), tagged(tagged(b))], [{**tagged(a), "type": "string"}, tagged(b)]),
        *([tagged({"$ref": "#"}), tagged(a)], [{"required": ["t"]}, {"properties": {"t": False}}]),
        *([tagged(a), {"oneOf": [tagged(b), {"type": "null"}]}], [tagged(a), tagged(b), ab]),
        *([tagged(a), {"type": "object", "patternProperties": {"^t": b}, **closed}],),
    ):
        for more in ({}, {"type": "object"}, {"type": ["object", "null"]}):
            agree({"oneOf": choices, **more}, {}, monkeypatch)
            agree({"properties": {"x": {"anyOf": choices, **more}}}, {}, monkeypatch)


def test_kinds_beside_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {"properties": {"a": {"type": "null"}}}
    for choices in (
        *([some, {"additionalProperties": False}], [{}, some], [{"minLength": 2}, {"minimum": 3}]),
        *([{"enum": ["a"]}, some], [{"anyOf": [some, True]}, {"items": some}], [True], [some]),
    ):
        for kinds in ("object", "string", "integer", "number", ["object", "integer"], "null"):
            for word in ("anyOf", "oneOf"):
                agree({"type": kinds, word: choices}, {}, monkeypatch)
                agree({"items": {"type": kinds, word: choices}}, {}, monkeypatch)


def test_all_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {"properties": {"a": {"type": "null"}, "b": {"$ref": "#"}}}
    parts: list[Any]
    for parts in ([some], [{}, some], [some, True], [{}], [False], [{"$ref": "#"}], [some, some]):
        for more in ({}, {"type": "object"}):
            agree({"allOf": parts, **more}, {}, monkeypatch)
            agree({"properties": {"x": {"allOf": parts, **more}}}, {}, monkeypatch)


def test_deep_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (20, 1000):
        chain = {str(i): {"anyOf": [{"$ref": f"#/$defs/{i - 1}"}]} for i in range(1, count)}
        links = {f"p{i}": {"$ref": f"#/$defs/{i}"} for i in range(count)}
        agree({"$defs": {"0": {"type": "object"}, **chain}, "properties": links}, {}, monkeypatch)


def test_deep_and_circular_references() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(900):
        deep = {"type": "object", "properties": {"a": deep}}
    grammar_from_json_schema(deep)
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    grammar_from_json_schema(tree)
    with pytest.raises(GrammatonError, match="without end"):
        grammar_from_json_schema({**tree, "required": ["next"]})
    with pytest.raises(GrammatonError):
        grammar_from_json_schema({"$ref": "#"})
