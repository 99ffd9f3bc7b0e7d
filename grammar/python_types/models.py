"""pydantic's types to shapes. Imported only when such a type is met.

pydantic writes the schema, and this module sees to it that it is exact: where its own words are
wider than what it validates (formats, bounds of floats, keys of dicts, tags with a default) the
schema says what is validated, and what runs Python code or can't be said is refused by its path.
Values are built by pydantic from the text.

Nouns: the *core schema* is pydantic's description of a validator, the *JSON schema* what its
`GenerateJsonSchema` makes of that. `rewrite.py` puts the latter into draft 4's words.

Validators written in Python (`field_validator`, a callable discriminator, pydantic's `EmailStr`
and URLs) decide after the text is written. They are refused unless `run_validators` is set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pydantic
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticOmit

from grammaton.errors import UnsupportedType
from grammaton.grammar.python_types.combine import values
from grammaton.grammar.python_types.constraints import float_bounds
from grammaton.grammar.python_types.rewrite import SET, rewrite
from grammaton.grammar.python_types.scalars import (
    AWARE,
    DATE,
    DATETIME,
    DECIMAL,
    NAIVE,
    TIME,
    TIMEDELTA,
    string,
    uuid_pattern,
)
from grammaton.grammar.python_types.shape import Mismatch, Schema, Shape, natural

_AS_THEY_ARE = frozenset(
    str.split(
        "any none bool int list tuple deque nullable union lax-or-strict json-or-python "
        "typed-dict typed-dict-field model-fields model-field dataclass-args dataclass-field "
        "dataclass named-tuple named-tuple-field arguments call custom-error definitions "
        "definition-ref computed-field"
    )
)
"""Core schemas whose JSON schema says what they validate, once their parts do."""

_TRANSLATED = frozenset(
    str.split(
        "float decimal str bytes date time datetime timedelta literal enum set frozenset dict "
        "frozendict ordered-dict counter default model tagged-union uuid"
    )
)
"""Core schemas whose JSON schema is made here."""

_CODE = frozenset(
    str.split(
        "function-before function-after function-wrap function-plain chain url multi-host-url json"
    )
)
"""Core schemas that validate more than a grammar says."""

_SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_STRIPPED = f"^(?:[^{_SPACE}](?:[\\s\\S]*[^{_SPACE}])?)?$"
_UNSAFE_ESCAPE = re.compile(r"\\(?:\\|([WDSBbAzZpP<>]))")
_SET_OPERATION = re.compile(r"&&|--|~~|\[[^\]]*\[")
_BOUNDS = ("ge", "gt", "le", "lt")


def translate(
    kind: Any, path: str, *, prefix: str = "", run_validators: bool = False
) -> tuple[Shape, Callable[[str], Any]]:
    """The shape of a type that pydantic knows, and what builds its value from JSON text.

    Args:
        kind: the type.
        path: where it stands.
        prefix: what the names of definitions begin with.
        run_validators: whether types with validators in Python are taken; else they are refused.

    Returns:
        The shape, with its definitions under `$defs`; and `TypeAdapter(kind).validate_json`.

    Raises:
        UnsupportedType: some part of the type can't be enforced exactly.
    """
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
        generator = _Generator(by_alias=True, ref_template=f"#/$defs/{prefix}{{model}}")
        generator.root, generator.run_validators = path, run_validators
        made = generator.generate(adapter.core_schema, mode="validation")
    except PydanticUserError as error:
        raise UnsupportedType(str(error).partition("\n")[0], path=path) from error
    schema = rewrite(made, path, prefix=prefix, any_format=run_validators)

    def build(value: Any) -> Any:
        try:
            return adapter.validate_json(json.dumps(natural(value)))
        except pydantic.ValidationError as error:
            raise Mismatch(str(error)) from error

    return Shape(schema, build), adapter.validate_json


class _Generator(GenerateJsonSchema):
    """pydantic's generator, made exact.

    Attributes:
        root: the path of the whole type.
        run_validators: see `translate`.
    """

    root = ""
    run_validators = False

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        trail: list[Any] = self.__dict__.setdefault("trail", [])
        trail.append(schema)
        try:
            self._check(schema)
            return super().generate_inner(schema)
        finally:
            trail.pop()

    def _check(self, schema: Any) -> None:
        word = schema["type"]
        if word in _CODE and not self.run_validators:
            raise self._refused(
                f"a validator ({word}) decides on its values, which no grammar enforces; "
                'validators="run" runs it on the finished text'
            )
        if word not in _AS_THEY_ARE and word not in _TRANSLATED and word not in _CODE:
            raise self._refused(f"pydantic's {word!r} has no exact JSON Schema")
        if word.endswith("-field"):
            alias = schema.get("validation_alias")
            if isinstance(alias, list) and not any(
                isinstance(each, list) and len(each) == 1 and isinstance(each[0], str)
                for each in alias
            ):
                raise self._refused("an alias that is a path is not supported")
            if schema.get("init") is False:
                raise self._refused("a field that can't be given (init=False) is not supported")

    def _refused(self, message: str) -> UnsupportedType:
        return UnsupportedType(message, path=self._path())

    def _path(self) -> str:
        path = self.root
        outer: Any = None
        for schema in self.__dict__["trail"]:
            word = schema["type"]
            if word in ("model", "dataclass") or (word == "typed-dict" and "cls" in schema):
                path = schema["cls"].__name__
            elif outer is not None:
                path += _step(outer, schema)
            outer = schema
        return path

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Any:
        raise self._refused(f"it has no JSON form ({error_info})")

    def emit_warning(self, kind: Any, detail: str) -> None:
        """pydantic warns of what is refused here, or of defaults, which are no concern."""

    # Scalars

    def float_schema(self, schema: Any) -> Schema:
        finite = not schema.get("allow_inf_nan", self._config.allow_inf_nan)
        bounds = [
            (word, schema[word])
            for word in (*_BOUNDS, "multiple_of")
            if schema.get(word) is not None
        ]
        return {"type": "number", **float_bounds(bounds, self._path(), finite=finite)}

    def decimal_schema(self, schema: Any) -> Schema:
        path = self._path()
        bounds = [
            (word, schema[word])
            for word in (*_BOUNDS, "multiple_of")
            if schema.get(word) is not None
        ]
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        if digits is not None and places is None:
            raise self._refused("max_digits is enforced together with decimal_places only")
        pattern = DECIMAL
        extra = list(bounds)
        if places is not None:
            whole = "(?:0|[1-9][0-9]*)"
            if digits is not None:
                room = digits - places
                extra += [("lt", 10**room), ("gt", -(10**room))]
                whole = f"(?:0|[1-9][0-9]{{0,{room - 1}}})" if room else "0"
            extra.append(("multiple_of", Decimal(1).scaleb(-places)))
            pattern = f"-?{whole}" + (f"(?:\\.[0-9]{{1,{places}}})?" if places else "")
        number = {"type": "number", **float_bounds(extra, path, finite=True)}
        return number if bounds else {"anyOf": [number, string(pattern)]}

    def str_schema(self, schema: Any) -> Schema:
        config = self._config
        made: Schema = {"type": "string"}
        low = schema.get("min_length", config.str_min_length)
        high = schema.get("max_length", config.str_max_length)
        if low:
            made["minLength"] = low
        if high is not None:
            made["maxLength"] = high
        pattern = schema.get("pattern")
        if pattern is not None:
            if not isinstance(pattern, str):
                if pattern.flags & ~re.UNICODE:
                    raise self._refused("the flags of a compiled pattern are not supported")
                pattern = pattern.pattern
            made["pattern"] = self._pattern(pattern)
        if schema.get("strip_whitespace", config.str_strip_whitespace):
            made["allOf"] = [{"type": "string", "pattern": _STRIPPED}]
        return made

    def _pattern(self, pattern: str) -> str:
        """The pattern, if ECMA-262 reads no more into it than pydantic does.

        ECMA's `\\d`, `\\w`, `\\s` and `.` match less; their complements match more.
        """
        for match in _UNSAFE_ESCAPE.finditer(pattern):
            if match[1]:
                raise self._refused(f"the pattern's {match[0]} is not supported in types")
        if _SET_OPERATION.search(pattern) or re.search(r"\[\^[^\]]*\\[dws]", pattern):
            raise self._refused(
                "the pattern has a set of characters that JSON Schema reads differently"
            )
        return pattern

    def bytes_schema(self, schema: Any) -> Schema:
        if schema.get("min_length") or schema.get("max_length") is not None:
            raise self._refused("lengths of bytes are not those of their text")
        coding = self._config.val_json_bytes
        if coding == "hex":
            return string("(?:[0-9a-f]{2})*")
        if coding == "base64":
            any64, two, four = "[A-Za-z0-9_\\-]", "[AQgw]", "[AEIMQUYcgkosw048]"
            return string(f"(?:{any64}{{4}})*(?:{any64}{two}==|{any64}{{2}}{four}=)?")
        return {"type": "string"}

    def date_schema(self, schema: Any) -> Schema:
        return self._temporal(schema, DATE)

    def time_schema(self, schema: Any) -> Schema:
        zone = schema.get("tz_constraint")
        return self._temporal(schema, TIME if zone is None else TIME.removesuffix("?"))

    def datetime_schema(self, schema: Any) -> Schema:
        zone = schema.get("tz_constraint")
        patterns = {None: DATETIME, "naive": NAIVE, "aware": AWARE}
        if zone not in patterns:
            raise self._refused("a fixed offset is not supported")
        return self._temporal(schema, patterns[zone])

    def timedelta_schema(self, schema: Any) -> Schema:
        return self._temporal(schema, TIMEDELTA)

    def _temporal(self, schema: Any, pattern: str) -> Schema:
        for word in (*_BOUNDS, "now_op"):
            if schema.get(word) is not None:
                raise self._refused(f"{word} on times and dates is not enforced by a grammar")
        return string(pattern)

    def uuid_schema(self, schema: Any) -> Schema:
        return string(uuid_pattern(schema.get("version")))

    def literal_schema(self, schema: Any) -> Schema:
        return values([(each, each) for each in schema["expected"]], self._path()).schema

    def enum_schema(self, schema: Any) -> Schema:
        return values([(each.value, each) for each in schema["members"]], self._path()).schema

    # Containers

    def set_schema(self, schema: Any) -> Schema:
        made = super().set_schema(schema)
        return {SET if word == "uniqueItems" else word: each for word, each in made.items()}

    def frozenset_schema(self, schema: Any) -> Schema:
        return self.set_schema(schema)

    def dict_schema(self, schema: Any) -> Schema:
        made: Schema = {"type": "object", "additionalProperties": True}
        if "keys_schema" in schema:
            made["propertyNames"] = self.generate_inner(schema["keys_schema"])
        if "values_schema" in schema:
            made["additionalProperties"] = self.generate_inner(schema["values_schema"])
        for word, keyword in (("min_length", "minProperties"), ("max_length", "maxProperties")):
            if schema.get(word):
                made[keyword] = schema[word]
        return made

    def frozendict_schema(self, schema: Any) -> Schema:
        return self.dict_schema(schema)

    def ordered_dict_schema(self, schema: Any) -> Schema:
        return self.dict_schema(schema)

    def default_schema(self, schema: Any) -> Schema:
        """A default is an annotation, and need not be JSON."""
        return self.generate_inner(schema["schema"])

    def model_schema(self, schema: Any) -> Schema:
        if schema.get("custom_init") and not self.run_validators:
            raise self._refused(
                'its own __init__ decides on its values; validators="run" runs it on the '
                "finished text"
            )
        return super().model_schema(schema)

    def tagged_union_schema(self, schema: Any) -> Schema:
        """Each choice with its tag, which pydantic wants written even where it has a default."""
        tag = schema["discriminator"]
        if isinstance(tag, list):
            single = [each[0] for each in tag if len(each) == 1]
            tag = single[0] if single else None
        if not isinstance(tag, str):
            if self.run_validators:
                return super().tagged_union_schema(schema)
            raise self._refused("a discriminator that is a function or a path is not supported")
        options: list[Schema] = []
        for value, choice in schema["choices"].items():
            try:
                branch = self.generate_inner(choice)
            except PydanticOmit:
                continue
            named = values([(value, value)], self._path()).schema
            duty = {"properties": {tag: named}, "required": [tag], "additionalProperties": True}
            options.append({"allOf": [branch, duty]})
        return {"anyOf": options}


def _step(outer: Any, schema: Any) -> str:
    """How a path goes on from a core schema to one inside it."""
    for word, step in (
        ("items_schema", ".item"),
        ("values_schema", ".value"),
        ("keys_schema", ".key"),
    ):
        inside = outer.get(word)
        if inside is schema:
            return step
        if isinstance(inside, list):
            for place, each in enumerate(inside):
                if each is schema:
                    return f".{place}"
    fields = outer.get("fields")
    if isinstance(fields, dict):
        for name, each in fields.items():
            if each is schema:
                return f".{name}"
    elif isinstance(fields, list) and schema in fields:
        return f".{schema['name']}"
    return ""
