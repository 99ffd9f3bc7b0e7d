"""pydantic's JSON schemas in draft 4's words, and paths for places in them.

In draft 4 an integer is a number without fraction and exponent, as `int` is written; from draft 6
`1.0` is one, too. Nothing else that types need was lost: `const` is an `enum` of one, `prefixItems`
are `items`, `propertyNames` are `patternProperties`. What is only an annotation is left out.
"""

from __future__ import annotations

import re
from typing import Any

from grammaton.errors import UnsupportedType
from grammaton.grammar.python_types.combine import INT, is_finite, keyed, text_pattern, values
from grammaton.grammar.python_types.scalars import anchored, uuid_pattern
from grammaton.grammar.python_types.shape import Schema

SET = "x-grammaton-set"
"""Marks the array of a set's items."""

_KEPT = frozenset(
    str.split(
        "type enum minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum "
        "multipleOf minItems maxItems uniqueItems required minProperties maxProperties format"
    )
)
_SCHEMAS = frozenset(("items", "additionalItems", "additionalProperties", "not"))
_LISTS = frozenset(("anyOf", "oneOf", "allOf"))
_MAPS = frozenset(("properties", "patternProperties", "$defs"))
_BEYOND = frozenset(
    str.split(
        "contains minContains maxContains if then else dependentRequired dependentSchemas "
        "dependencies unevaluatedItems unevaluatedProperties $dynamicRef $recursiveRef $id id "
        "$anchor"
    )
)
_EXACT_FORMATS = frozenset(
    ("binary", "password", "path", "ipv4", "ipv6", "date", "time", "date-time", "duration", "uuid")
)

_UUID_VERSION = re.compile("uuid[1-8]")


def rewrite(schema: Schema, path: str, *, prefix: str, any_format: bool) -> Schema:
    """A schema of pydantic's, in draft 4's words.

    Args:
        schema: what `GenerateJsonSchema.generate` gave.
        path: where its type stands.
        prefix: what the names of definitions are to begin with; references have it already.
        any_format: whether formats are taken that say less than what is validated.

    Raises:
        UnsupportedType: it has a keyword or a format that draft 4 or a grammar can't say.
    """
    definitions = schema.get("$defs", {})
    made: Schema = _Rewriter(definitions, path, prefix, any_format).schema(schema, "")
    return made


class _Rewriter:
    def __init__(self, definitions: Schema, path: str, prefix: str, any_format: bool) -> None:
        self._definitions = definitions
        self._path = path
        self._prefix = prefix
        self._any_format = any_format

    def schema(self, raw: Any, pointer: str) -> Any:
        if not isinstance(raw, dict):
            return raw
        made: Schema = {}
        for word, value in raw.items():
            if word in _KEPT or word == "$ref":
                made[word] = value
            elif word == "const":
                made["enum"] = [value]
            elif word in _SCHEMAS:
                made[word] = self.schema(value, f"{pointer}/{word}")
            elif word in _LISTS:
                made[word] = [
                    self.schema(each, f"{pointer}/{word}/{place}")
                    for place, each in enumerate(value)
                ]
            elif word in _MAPS:
                start = self._prefix if word == "$defs" else ""
                made[word] = {
                    start + name: self.schema(each, f"{pointer}/{word}/{name}")
                    for name, each in value.items()
                }
            elif word in _BEYOND:
                raise self._refused(f"the keyword {word!r} is not supported in types", pointer)
        if _UUID_VERSION.fullmatch(str(made.get("format"))):
            made["pattern"] = anchored(uuid_pattern(int(made.pop("format")[-1])))
        if "format" in made and made["format"] not in _EXACT_FORMATS and not self._any_format:
            raise self._refused(
                f"the format {made['format']!r} says less than what is validated; "
                'validators="run" enforces the format and validates the finished text',
                pointer,
            )
        if "prefixItems" in raw:
            self._places(raw, made, pointer)
        if "propertyNames" in raw:
            self._names(raw, made, pointer)
        if SET in raw:
            self._set(raw, made, pointer)
        reference = made.pop("$ref", None)
        if reference is None:
            return made
        definitions = made.pop("$defs", None)
        made = {"allOf": [{"$ref": reference}, *made.pop("allOf", ()), made]} if made else {}
        made = made or {"$ref": reference}
        return made if definitions is None else {"allOf": [made], "$defs": definitions}

    def _places(self, raw: Schema, made: Schema, pointer: str) -> None:
        if "items" in made:
            made["additionalItems"] = made["items"]
        made["items"] = [
            self.schema(each, f"{pointer}/prefixItems/{place}")
            for place, each in enumerate(raw["prefixItems"])
        ]

    def _names(self, raw: Schema, made: Schema, pointer: str) -> None:
        """The keys' language, as a pattern."""
        names = self.schema(self._resolved(raw["propertyNames"]), f"{pointer}/propertyNames")
        rest = dict(names)
        rest.pop("format", None)
        word = rest.pop("type", None)
        if not rest and word == "string":
            return
        if not rest and word == "integer" and INT.key is not None:
            pattern = INT.key.pattern
        elif set(rest) <= {"minLength", "maxLength"} and word == "string":
            pattern = text_pattern(rest.get("minLength", 0), rest.get("maxLength"))
        elif set(rest) == {"enum"} and all(isinstance(each, str) for each in rest["enum"]):
            key = values([(each, each) for each in rest["enum"]], self._path).key
            assert key is not None
            pattern = key.pattern
        elif set(rest) == {"pattern"} and word == "string":
            made["patternProperties"] = {rest["pattern"]: made["additionalProperties"]}
            made["additionalProperties"] = False
            return
        else:
            raise self._refused("its values can't be written as keys of an object", pointer, ".key")
        made.update(keyed(pattern, made["additionalProperties"]))

    def _set(self, raw: Schema, made: Schema, pointer: str) -> None:
        """As `combine.unique`."""
        items = self._resolved(raw.get("items", {}))
        if is_finite(items):
            made["uniqueItems"] = True
        elif made.get("minItems", 0) > 1:
            raise self._refused(
                "min_length above 1 can't be enforced on sets whose items have many values", pointer
            )

    def _resolved(self, schema: Schema) -> Schema:
        seen = 0
        while "$ref" in schema and seen <= len(self._definitions):
            name = schema["$ref"].removeprefix("#/$defs/" + self._prefix)
            schema = self._definitions.get(name, {})
            seen += 1
        return schema

    def _refused(self, message: str, pointer: str, step: str = "") -> UnsupportedType:
        return UnsupportedType(message, path=path_of(pointer, self._path) + step)


def path_of(pointer: str, root: str) -> str:
    """The place in the types of a JSON Pointer into their schema."""
    path = root
    tokens = iter(pointer.split("/")[1:])
    for token in tokens:
        if token == "$defs":
            path = next(tokens, path).rpartition(".")[2]
        elif token == "properties":
            path += "." + next(tokens, "").replace("~1", "/").replace("~0", "~")
        elif token in ("items", "additionalItems", "prefixItems"):
            path += ".item"
        elif token.isdigit() and path.endswith(".item"):
            path = path.removesuffix("item") + token
        elif token == "additionalProperties":
            path += ".value"
        elif token == "patternProperties":
            next(tokens, None)
            path += ".value"
        elif token in _LISTS:
            next(tokens, None)
    return path
