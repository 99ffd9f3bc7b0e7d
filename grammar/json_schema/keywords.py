"""Keywords: what each says, parsed into the facts of a node.

Keywords fall into three groups: enforced (`_PARSERS`), refused (`_REFUSED`: keywords of some draft
that assert something not enforced yet, noted here and raised where a kind they constrain is
lowered), and the rest: annotations and keywords no draft knows, which the standard has validators
ignore (core 2020-12, section 6.5). The values of a refused keyword that assert nothing
(`uniqueItems: false`) are not refused.

Parsing costs about a microsecond a keyword.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from grammaton.errors import GrammarError, LimitExceeded
from grammaton.grammar.json_schema.content import JSON_CONTENT
from grammaton.grammar.json_schema.document import (
    DRAFT_6,
    DRAFT_7,
    DRAFT_2019,
    DRAFT_2020,
    describe,
    escape,
)
from grammaton.grammar.json_schema.formats import (
    BASE64,
    OLD_HOSTNAME,
    SUPPORTED_FORMATS,
)
from grammaton.grammar.json_schema.negation import negate
from grammaton.grammar.json_schema.nodes import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Arrays,
    Contains,
    Node,
    Nodes,
    Objects,
    Strings,
    bad,
)
from grammaton.grammar.json_schema.numbers import Bounds, exact
from grammaton.grammar.json_schema.values import kind_of

MOST_COUNTED = 2**32 - 2
"""The highest count of a repetition that a term can hold."""

TYPES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "string": STRING,
    "integer": INTEGER,
    "number": NUMBER,
    "array": ARRAY,
    "object": OBJECT,
}


_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), DRAFT_6),
    **dict.fromkeys(("if", "then", "else"), DRAFT_7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "$recursiveRef"), DRAFT_2019),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), DRAFT_2019),
    **dict.fromkeys(("minContains", "maxContains"), DRAFT_2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), DRAFT_2020),
}
"""The draft that brought a keyword in; schemas of an earlier one do not mean it."""

_Parser = Callable[[Nodes, Node, Any], None]
_NOTHING_SAID: tuple[Any, ...] = ({}, True)

_REFUSED: dict[str, tuple[int, tuple[Any, ...]]] = {
    "extends": (ANYTHING, ({}, [])),
    "disallow": (ANYTHING, ([],)),
    "divisibleBy": (NUMBER, ()),
}


def _count(node: Node, keyword: str, value: Any) -> int:
    number = exact(value)
    if number is None or number < 0 or number != int(number):
        raise bad(node, keyword, "a whole number of at least 0", value)
    if number > MOST_COUNTED:
        raise LimitExceeded(
            f"{keyword} {value} is more than {MOST_COUNTED}, the highest count enforced "
            f"(at {node.pointer}/{keyword})"
        )
    return int(number)


def _most(node: Node, keyword: str, value: Any) -> int | None:
    """A maximum; None when no text is long enough to exceed it."""
    number = exact(value)
    return None if number is not None and number > MOST_COUNTED else _count(node, keyword, value)


def _require_json(value: Any, above: Node, *path: str | int) -> None:
    """Refuses what is no JSON value anywhere inside: NaN, an infinity, a Python object."""
    if isinstance(value, str):
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            _require_json(item, above, *path, index)
        return
    try:
        kind_of(value, "")
    except GrammarError as error:
        pointer = "".join(f"/{escape(str(each))}" for each in path)
        raise GrammarError(error.message, pointer=above.pointer + pointer) from None
    if isinstance(value, dict):
        for key, item in value.items():
            _require_json(item, above, *path, key)


def _type(nodes: Nodes, node: Node, value: Any) -> None:
    kinds = TYPES.get(value) if isinstance(value, str) else None
    if kinds is None:
        kinds = 0
        for name in value if isinstance(value, list) else [value]:
            kind = TYPES.get(name) if isinstance(name, str) else None
            if kind is None:
                what = f"{name!r} is" if isinstance(name, str) else f"{describe(name)} is"
                raise GrammarError(
                    f"{what} no type; the types are {', '.join(sorted(TYPES))}",
                    pointer=f"{node.pointer}/type",
                )
            kinds |= kind
    node.kinds &= kinds


def _enum(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, list):
        raise bad(node, "enum", "an array", value)
    _require_json(value, node, "enum")
    node.values = [*(node.values or ()), ("enum", value)]


def _const(nodes: Nodes, node: Node, value: Any) -> None:
    _require_json(value, node, "const")
    node.values = [*(node.values or ()), ("const", [value])]


def _reference(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, str):
        raise bad(node, "$ref", "a URI reference, so a string", value)
    target = nodes.referred.get((value, node.resource))
    if target is None:
        address = nodes.document.resolve(value, node.resource, f"{node.pointer}/$ref")
        target = nodes.referred[value, node.resource] = nodes.node(*address)
    _also(node, [target])


def _dynamic_reference(nodes: Nodes, node: Node, value: Any) -> None:
    keyword = "$dynamicRef" if node.resource.draft >= DRAFT_2020 else "$recursiveRef"
    if not isinstance(value, str):
        raise bad(node, keyword, "a URI reference, so a string", value)
    pointer = f"{node.pointer}/{keyword}"
    address = nodes.document.resolve_dynamic(keyword, value, node.resource, pointer)
    _also(node, [nodes.node(*address)])


def _all_of(nodes: Nodes, node: Node, value: Any) -> None:
    _also(node, nodes.children(node, "allOf", value))


def _also(node: Node, others: list[Node]) -> None:
    if node.same is None:
        node.same = [None] if node.objects is not None else []
    node.same.extend(others)


def _any_of(nodes: Nodes, node: Node, value: Any) -> None:
    _choose(node, "anyOf", nodes.children(node, "anyOf", value))


def _one_of(nodes: Nodes, node: Node, value: Any) -> None:
    _choose(node, "oneOf", nodes.children(node, "oneOf", value))


def _not(nodes: Nodes, node: Node, value: Any) -> None:
    node.denied = nodes.child(node, value, "not")
    _choose(node, "not", [nodes.negation(node.denied, f"{node.pointer}/not")])


def _choose(node: Node, keyword: str, options: list[Node]) -> None:
    node.choices = [*(node.choices or ()), (keyword, options)]


def _if(nodes: Nodes, node: Node, value: Any) -> None:
    raw = node.raw
    if "then" not in raw and "else" not in raw and not nodes.document.speaks_of_unevaluated:
        return
    test = nodes.child(node, value, "if")
    then = nodes.child(node, raw.get("then", True), "then")
    otherwise = nodes.child(node, raw.get("else", True), "else")
    node.conditions = (test, then, otherwise)
    pointer = f"{node.pointer}/if"
    failed = nodes.negation(test, pointer)
    options = [nodes.all_of([test, then], pointer), nodes.all_of([failed, otherwise], pointer)]
    _choose(node, "if", options)


def _strings(node: Node) -> Strings:
    if node.strings is None:
        node.strings = Strings()
    return node.strings


def _min_length(nodes: Nodes, node: Node, value: Any) -> None:
    _strings(node).min = _count(node, "minLength", value)


def _max_length(nodes: Nodes, node: Node, value: Any) -> None:
    _strings(node).max = _most(node, "maxLength", value)


def _pattern(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, str):
        raise bad(node, "pattern", "a regular expression, so a string", value)
    _strings(node).patterns.append((value, f"{node.pointer}/pattern"))


def _format(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, str):
        raise bad(node, "format", "the name of a format, so a string", value)
    if value == "hostname" and node.resource.draft <= DRAFT_6:
        value = OLD_HOSTNAME
    if value in SUPPORTED_FORMATS:
        _strings(node).formats.append(value)


def _content_encoding(nodes: Nodes, node: Node, value: Any) -> None:
    if node.resource.draft == DRAFT_7 and isinstance(value, str) and value.lower() == "base64":
        _strings(node).formats.append(BASE64)


def _content_media_type(nodes: Nodes, node: Node, value: Any) -> None:
    if node.resource.draft != DRAFT_7 or value != "application/json":
        return
    if "contentEncoding" in node.raw:
        node.refused = [*(node.refused or ()), (STRING, "contentMediaType", value)]
    else:
        _strings(node).formats.append(JSON_CONTENT)


def _bounds(node: Node, keyword: str, value: Any) -> Any:
    number = exact(value)
    if number is None:
        raise bad(node, keyword, "a number", value)
    return number


def _meet(node: Node, bounds: Bounds) -> None:
    node.numbers = bounds if node.numbers is None else node.numbers.meet(bounds)


def _minimum(nodes: Nodes, node: Node, value: Any) -> None:
    _meet(node, Bounds(low=_bounds(node, "minimum", value)))


def _maximum(nodes: Nodes, node: Node, value: Any) -> None:
    _meet(node, Bounds(high=_bounds(node, "maximum", value)))


def _multiple_of(nodes: Nodes, node: Node, value: Any) -> None:
    step = _bounds(node, "multipleOf", value)
    if step <= 0:
        raise bad(node, "multipleOf", "a number above 0", value)
    _meet(node, Bounds(step=step))


def _exclusive_minimum(nodes: Nodes, node: Node, value: Any) -> None:
    bound = _exclusive(node, "exclusiveMinimum", "minimum", value)
    if bound is not None:
        _meet(node, Bounds(low=bound, low_open=True))


def _exclusive_maximum(nodes: Nodes, node: Node, value: Any) -> None:
    bound = _exclusive(node, "exclusiveMaximum", "maximum", value)
    if bound is not None:
        _meet(node, Bounds(high=bound, high_open=True))


def _exclusive(node: Node, keyword: str, beside: str, value: Any) -> Any:
    """The bound itself; in draft 4's spelling, a flag that opens the bound beside it."""
    if not isinstance(value, bool):
        return _bounds(node, keyword, value)
    return _bounds(node, beside, node.raw[beside]) if value and beside in node.raw else None


def _arrays(node: Node) -> Arrays:
    if node.arrays is None:
        node.arrays = Arrays()
    return node.arrays


def _items(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, list):
        _arrays(node).rest = nodes.child(node, value, "items")
        return
    arrays = _arrays(node)
    arrays.prefix = nodes.children(node, "items", value)
    if "additionalItems" in node.raw:
        arrays.rest = nodes.child(node, node.raw["additionalItems"], "additionalItems")


def _prefix_items(nodes: Nodes, node: Node, value: Any) -> None:
    _arrays(node).prefix = nodes.children(node, "prefixItems", value)


def _contains(nodes: Nodes, node: Node, value: Any) -> None:
    item = nodes.child(node, value, "contains")
    least, most = 1, None
    if node.resource.draft >= DRAFT_2019:
        if "minContains" in node.raw:
            least = _count(node, "minContains", node.raw["minContains"])
        if "maxContains" in node.raw:
            most = _most(node, "maxContains", node.raw["maxContains"])
    if least or most is not None or node.resource.draft >= DRAFT_2020:
        _arrays(node).some.append(Contains(0, item, least, most))


def _unique_items(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, bool):
        raise bad(node, "uniqueItems", "true or false", value)
    if value:
        _arrays(node).unique = True


def _min_items(nodes: Nodes, node: Node, value: Any) -> None:
    _arrays(node).min = _count(node, "minItems", value)


def _max_items(nodes: Nodes, node: Node, value: Any) -> None:
    _arrays(node).max = _most(node, "maxItems", value)


def _objects(node: Node) -> Objects:
    if node.objects is None:
        node.objects = Objects()
        if node.same is not None:
            node.same.append(None)
    return node.objects


def _properties(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, dict):
        raise bad(node, "properties", "an object of schemas", value)
    objects = _objects(node)
    objects.declared = True
    resource, make = node.resource, nodes.node
    for name, raw in value.items():
        if not isinstance(name, str):
            raise GrammarError(
                "the names of properties are strings", pointer=f"{node.pointer}/properties"
            )
        objects.properties[name] = make(raw, ("properties", name), resource, node)


def _additional(nodes: Nodes, node: Node, value: Any) -> None:
    _objects(node).other = nodes.child(node, value, "additionalProperties")


def _pattern_properties(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, dict):
        raise bad(node, "patternProperties", "an object of schemas", value)
    objects = _objects(node)
    for pattern, raw in value.items():
        path = f"patternProperties/{escape(pattern)}"
        schema = nodes.child(node, raw, path)
        objects.patterns.append((pattern, f"{node.pointer}/{path}", schema))


def _property_names(nodes: Nodes, node: Node, value: Any) -> None:
    _objects(node).names = [nodes.child(node, value, "propertyNames")]


def _required(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise bad(node, "required", "an array of strings", value)
    if value:
        _objects(node).required = list(dict.fromkeys(value))


def _min_properties(nodes: Nodes, node: Node, value: Any) -> None:
    _objects(node).min = _count(node, "minProperties", value)


def _max_properties(nodes: Nodes, node: Node, value: Any) -> None:
    _objects(node).max = _most(node, "maxProperties", value)


def _dependencies(nodes: Nodes, node: Node, value: Any) -> None:
    _depend(nodes, node, "dependencies", value)


def _dependent_required(nodes: Nodes, node: Node, value: Any) -> None:
    _depend(nodes, node, "dependentRequired", value)


def _dependent_schemas(nodes: Nodes, node: Node, value: Any) -> None:
    _depend(nodes, node, "dependentSchemas", value)


def _unevaluated_properties(nodes: Nodes, node: Node, value: Any) -> None:
    node.loose_properties = nodes.child(node, value, "unevaluatedProperties")


def _unevaluated_items(nodes: Nodes, node: Node, value: Any) -> None:
    node.loose_items = nodes.child(node, value, "unevaluatedItems")


def _depend(nodes: Nodes, node: Node, keyword: str, value: Any) -> None:
    """What holds of an object that has a property: a choice between lacking it and that."""
    if not isinstance(value, dict):
        raise bad(node, keyword, "an object", value)
    for key, needed in value.items():
        path = f"{keyword}/{escape(key)}"
        pointer = f"{node.pointer}/{path}"
        if isinstance(needed, list):
            if not all(isinstance(name, str) for name in needed):
                raise GrammarError("required properties are strings", pointer=pointer)
            present = nodes.having(list(dict.fromkeys([key, *needed])), pointer)
        elif keyword == "dependentRequired":
            raise bad(node, keyword, "an object of arrays", value)
        else:
            present = nodes.having([key], pointer)
            present.same = [None, nodes.child(node, needed, path)]
        _choose(node, keyword, [nodes.lacking(key, pointer), present])


_PARSERS: dict[str, _Parser] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "$ref": _reference,
    "$dynamicRef": _dynamic_reference,
    "$recursiveRef": _dynamic_reference,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "contentEncoding": _content_encoding,
    "contentMediaType": _content_media_type,
    "minimum": _minimum,
    "maximum": _maximum,
    "multipleOf": _multiple_of,
    "exclusiveMinimum": _exclusive_minimum,
    "exclusiveMaximum": _exclusive_maximum,
    "items": _items,
    "prefixItems": _prefix_items,
    "minItems": _min_items,
    "contains": _contains,
    "maxItems": _max_items,
    "uniqueItems": _unique_items,
    "properties": _properties,
    "additionalProperties": _additional,
    "patternProperties": _pattern_properties,
    "propertyNames": _property_names,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "dependencies": _dependencies,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    "required": _required,
}
assert not set(_PARSERS) & set(_REFUSED)


@cache
def _dialect(draft: int, lacking: frozenset[str]) -> dict[str, _Parser]:
    """The parsers of the keywords that a dialect has."""
    parsers = {
        word: parser
        for word, parser in _PARSERS.items()
        if _SINCE.get(word, draft) <= draft and word not in lacking
    }
    if draft >= DRAFT_2020:
        parsers.pop("$recursiveRef", None)
    return parsers


def asserting_keywords(draft: int, lacking: frozenset[str]) -> frozenset[str]:
    """The keywords of a dialect that are no annotations."""
    return frozenset((*_dialect(draft, lacking), *_REFUSED))


def read_keywords(nodes: Nodes, node: Node) -> None:
    """Fills in what a node's schema says.

    Raises:
        GrammarError: a keyword's value is not what the specification says it is.
        UnsupportedKeyword: the node negates a schema whose negation cannot be enforced.
    """
    if node.negates is not None:
        negate(nodes, node, node.negates)
        return
    raw = node.raw
    if raw is True:
        node.trivial = True
        return
    if raw is False:
        node.never = True
        node.kinds = 0
        return
    resource = node.resource
    if "$ref" in raw and resource.draft <= DRAFT_7:
        raw = {"$ref": raw["$ref"]}
    parsers = _dialect(resource.draft, resource.lacking)
    asserting = False
    last: _Parser | None = None  # of all keywords, if they are one
    for keyword, value in raw.items():
        parser = parsers.get(keyword)
        if parser is not None:
            parser(nodes, node, value)
            last = None if asserting else parser
            asserting = True
        elif keyword in _REFUSED:
            kinds, trivial = _REFUSED[keyword]
            if value not in trivial:
                last, asserting = None, True
                node.refused = [*(node.refused or ()), (kinds, keyword, value)]
        elif not isinstance(keyword, str):
            raise GrammarError(
                f"the keys of a schema are strings, not {describe(keyword)}",
                pointer=node.pointer,
            )
    node.trivial = not asserting
    if last is _type:
        node.only_kinds = node.kinds > 0
    elif last is _reference and node.same is not None and len(node.same) == 1:
        node.only_same = node.same[0]
