"""What a schema says: its keywords, parsed one schema at a time.

A *node* is one schema of the document, parsed when it is first met; what it contains are nodes in
their turn, not parsed yet. A keyword constrains values of some *kinds* only (`minLength` says
nothing about 5), so its facts are kept by kind. Kinds are bits; an integer and a number with a
fraction are different kinds.

Keywords fall into three groups: enforced (`_PARSERS`), refused (`_REFUSED`: keywords of some draft
that assert something not enforced yet, noted here and raised where a kind they constrain is
lowered), and the rest: annotations and keywords no draft knows, which the standard has validators
ignore (core 2020-12, section 6.5). The values of a refused keyword that assert nothing
(`uniqueItems: false`) are not refused.

Parsing costs about a microsecond a keyword.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grammaton.errors import GrammarError, UnsupportedKeyword
from grammaton.grammar.json_schema.document import (
    DRAFT_6,
    DRAFT_7,
    DRAFT_2019,
    DRAFT_2020,
    Document,
    Resource,
    describe,
    escape,
)
from grammaton.grammar.json_schema.formats import KNOWN_FORMATS, SUPPORTED_FORMATS
from grammaton.grammar.json_schema.numbers import Bounds, exact

NULL, BOOLEAN, STRING, INTEGER, FRACTION, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32, 64
NUMBER = INTEGER | FRACTION
ANYTHING = 127

SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), DRAFT_6),
    **dict.fromkeys(("if", "then", "else"), DRAFT_7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "$recursiveRef"), DRAFT_2019),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), DRAFT_2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), DRAFT_2020),
}
"""The draft that brought a keyword in; schemas of an earlier one do not mean it."""

TYPES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "string": STRING,
    "integer": INTEGER,
    "number": NUMBER,
    "array": ARRAY,
    "object": OBJECT,
}


class Strings:
    """What is said of strings: lengths in code points, patterns with pointers, formats."""

    __slots__ = ("formats", "max", "min", "patterns")

    def __init__(self) -> None:
        self.min = 0
        self.max: int | None = None
        self.patterns: list[tuple[str, str]] = []
        self.formats: list[str] = []


class Arrays:
    """What is said of arrays: nodes of the first items, of the rest, and how many."""

    __slots__ = ("max", "min", "prefix", "rest")

    def __init__(self) -> None:
        self.prefix: list[Node] = []
        self.rest: Node | None = None
        self.min = 0
        self.max: int | None = None


class Objects:
    """What is said of objects: nodes of declared properties, of the others, required keys.

    `patterns` are (regular expression, its pointer, node) of `patternProperties`; `min` and `max`
    the number of properties.
    """

    __slots__ = ("declared", "max", "min", "other", "patterns", "properties", "required")

    def __init__(self) -> None:
        self.properties: dict[str, Node] = {}
        self.declared = False
        self.other: Node | None = None
        self.patterns: list[tuple[str, str, Node]] = []
        self.required: list[str] = []
        self.min = 0
        self.max: int | None = None


class Node:
    """One schema: a kind mask and the facts of each keyword family.

    Attributes:
        pointer: JSON Pointer from the document's root.
        kinds: the kinds of value allowed by `type` and boolean schemas.
        never: true for the schema `false`.
        trivial: true when nothing is asserted.
        same: schemas that hold of the same value: `$ref` and `allOf`; None stands for the node's
            own keywords, so that keys keep the order in which the schema mentions them.
        choices: (keyword, branches) of anyOf and oneOf.
        values: the lists of `enum` and `const`.
        denied: `not`'s schema; conditions: (if, then, else).
        refused: (kinds, keyword, value) of keywords that are not enforced.
    """

    __slots__ = (
        *("arrays", "choices", "conditions", "denied", "document", "id", "kinds", "never"),
        *("numbers", "objects", "parsed", "pointer", "raw", "refused", "resource", "same"),
        *("strings", "trivial", "values"),
    )

    def __init__(
        self, document: Document, raw: Any, pointer: str, resource: Resource, number: int
    ) -> None:
        self.document = document
        self.raw = raw
        self.pointer = pointer
        self.resource = resource
        self.id = number
        self.parsed = False
        self.kinds = ANYTHING
        self.never = False
        self.trivial = False
        self.same: list[Node | None] | None = None
        self.choices: list[tuple[str, list[Node]]] | None = None
        self.values: list[tuple[str, list[Any]]] | None = None
        self.denied: Node | None = None
        self.conditions: tuple[Node, Node | None, Node | None] | None = None
        self.strings: Strings | None = None
        self.numbers: Bounds | None = None
        self.arrays: Arrays | None = None
        self.objects: Objects | None = None
        self.refused: list[tuple[int, str, Any]] | None = None

    def around(self) -> tuple[Sequence[Node], Sequence[Node]]:
        """The schemas that hold of the same value, mentioned before and after its own keys."""
        if self.same is None:
            return (), ()
        mine = self.same.index(None) if None in self.same else 0
        before = [node for node in self.same[:mine] if node is not None]
        return before, [node for node in self.same[mine:] if node is not None]

    def plain(self) -> Node:
        """This node without what refers to other schemas of the same value."""
        copy = Node(self.document, self.raw, self.pointer, self.resource, -1 - self.id)
        for name in ("kinds", "never", "values", "strings", "numbers", "arrays", "objects"):
            setattr(copy, name, getattr(self, name))
        copy.parsed = True
        return copy


class Nodes:
    """Makes the nodes of one document; the same schema is the same node."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._later = frozenset(word for word, draft in SINCE.items() if draft > document.draft)
        self._by_place: dict[tuple[int, int], Node] = {}
        self._count = 0
        self.anything = self._new(True, "", document.resource)
        self._parse_now(self.anything)
        self.root = self.node(document.root, "", document.resource)

    def _new(self, raw: Any, pointer: str, resource: Resource) -> Node:
        self._count += 1
        return Node(self.document, raw, pointer, resource, self._count)

    def node(self, raw: Any, pointer: str, resource: Resource) -> Node:
        """The node of a raw schema.

        Raises:
            GrammarError: it is neither an object nor a boolean.
        """
        if raw is True:
            return self.anything
        if not isinstance(raw, dict):
            if raw is False:
                return self._new(raw, pointer, resource)
            raise GrammarError(
                f"a schema is an object or a boolean, not {describe(raw)}", pointer=pointer
            )
        if self.document.id_keyword in raw:
            resource = self.document.resource_of(raw, pointer, resource)
        place = (id(raw), id(resource.root))
        node = self._by_place.get(place)
        if node is None:
            node = self._by_place[place] = self._new(raw, pointer, resource)
        return node

    def child(self, parent: Node, raw: Any, path: str) -> Node:
        """The node of a schema inside another's keyword."""
        if raw is True:
            return self.anything
        return self.node(raw, f"{parent.pointer}/{path}", parent.resource)

    def children(self, parent: Node, keyword: str, raw: Any) -> list[Node]:
        """The nodes of a keyword that takes a list of schemas."""
        if not isinstance(raw, list):
            raise bad(parent, keyword, "an array of schemas", raw)
        return [self.child(parent, item, f"{keyword}/{i}") for i, item in enumerate(raw)]

    def constant(self, value: Any, pointer: str) -> Node:
        """A node for one array or object of an `enum` or `const`."""
        node = self._new(True, pointer, self.document.resource)
        node.parsed = True
        if isinstance(value, list):
            node.kinds = ARRAY
            arrays = node.arrays = Arrays()
            arrays.prefix = [self._literal(item, pointer) for item in value]
            arrays.min = arrays.max = len(value)
        else:
            node.kinds = OBJECT
            objects = node.objects = Objects()
            objects.declared = True
            objects.properties = {k: self._literal(v, pointer) for k, v in value.items()}
            objects.required = list(value)
            objects.other = self.node(False, pointer, self.document.resource)
        return node

    def having(self, keys: list[str], pointer: str) -> Node:
        """A node for objects that have these keys."""
        node = self._new(True, pointer, self.document.resource)
        node.parsed = True
        node.kinds = OBJECT
        node.objects = Objects()
        node.objects.required = keys
        return node

    def lacking(self, key: str, pointer: str) -> Node:
        """A node for everything but objects that have this key."""
        node = self._new(True, pointer, self.document.resource)
        node.parsed = True
        node.objects = Objects()
        node.objects.properties[key] = self.node(False, pointer, self.document.resource)
        return node

    def listed(self, nodes: list[Node]) -> Node:
        """A node for the values that any of some nodes lists."""
        node = self._new(True, nodes[0].pointer, self.document.resource)
        node.parsed = True
        values = [value for each in nodes for _, some in each.values or () for value in some]
        node.values = [("enum", values)]
        return node

    def _literal(self, value: Any, pointer: str) -> Node:
        node = self._new(True, pointer, self.document.resource)
        node.parsed = True
        node.values = [("const", [value])]
        return node

    def parse(self, node: Node) -> Node:
        """Reads the node's keywords, once.

        Raises:
            GrammarError: a keyword's value is not what the specification says it is.
        """
        if not node.parsed:
            self._parse_now(node)
        return node

    def _parse_now(self, node: Node) -> None:
        node.parsed = True
        raw = node.raw
        if raw is True:
            node.trivial = True
            return
        if raw is False:
            node.never = True
            node.kinds = 0
            return
        if "$ref" in raw and self.document.draft <= DRAFT_7:
            raw = {"$ref": raw["$ref"]}
        if not self._later.isdisjoint(raw):
            raw = {word: value for word, value in raw.items() if word not in self._later}
        asserting = False
        for keyword, value in raw.items():
            parser = _PARSERS.get(keyword)
            if parser is not None:
                parser(self, node, value)
                asserting = True
            elif keyword in _REFUSED:
                kinds, trivial = _REFUSED[keyword]
                if value not in trivial and not _beside_the_point(keyword, raw):
                    asserting = True
                    if node.refused is None:
                        node.refused = []
                    node.refused.append((kinds, keyword, value))
            elif not isinstance(keyword, str):
                raise GrammarError(
                    f"the keys of a schema are strings, not {describe(keyword)}",
                    pointer=node.pointer,
                )
        if "exclusiveMinimum" in raw or "exclusiveMaximum" in raw:
            _boolean_exclusives(node, raw)
        node.trivial = not asserting


def bad(node: Node, keyword: str, wanted: str, value: object) -> GrammarError:
    """The error for a keyword with a value of the wrong sort."""
    return GrammarError(
        f"{keyword!r} takes {wanted}, not {describe(value)}",
        pointer=f"{node.pointer}/{escape(keyword)}",
    )


def unsupported(
    node: Node, keyword: str, reason: str = "is not enforced yet"
) -> UnsupportedKeyword:
    """The error for a keyword that is not enforced."""
    return UnsupportedKeyword(f"{keyword!r} {reason}", pointer=f"{node.pointer}/{escape(keyword)}")


_Parser = Callable[[Nodes, Node, Any], None]
_NOTHING_SAID: tuple[Any, ...] = ({}, True)

_REFUSED: dict[str, tuple[int, tuple[Any, ...]]] = {
    "$dynamicRef": (ANYTHING, ()),
    "$recursiveRef": (ANYTHING, ()),
    "extends": (ANYTHING, ({}, [])),
    "disallow": (ANYTHING, ([],)),
    "multipleOf": (NUMBER, ()),
    "divisibleBy": (NUMBER, ()),
    "uniqueItems": (ARRAY, (False,)),
    "contains": (ARRAY, ()),
    "unevaluatedItems": (ARRAY, _NOTHING_SAID),
    "propertyNames": (OBJECT, _NOTHING_SAID),
    "unevaluatedProperties": (OBJECT, _NOTHING_SAID),
}


def _beside_the_point(keyword: str, raw: dict[str, Any]) -> bool:
    """Whether a keyword says nothing because of the one beside it."""
    return keyword == "contains" and raw.get("minContains") == 0 and "maxContains" not in raw


def _count(node: Node, keyword: str, value: Any) -> int:
    number = exact(value)
    if number is None or number < 0 or number != int(number):
        raise bad(node, keyword, "a whole number of at least 0", value)
    return int(number)


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
    node.values = [*(node.values or ()), ("enum", value)]


def _const(nodes: Nodes, node: Node, value: Any) -> None:
    node.values = [*(node.values or ()), ("const", [value])]


def _reference(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, str):
        raise bad(node, "$ref", "a URI reference, so a string", value)
    address = nodes.document.resolve(value, node.resource, f"{node.pointer}/$ref")
    _also(node, [nodes.node(*address)])


def _all_of(nodes: Nodes, node: Node, value: Any) -> None:
    _also(node, nodes.children(node, "allOf", value))


def _also(node: Node, others: list[Node]) -> None:
    if node.same is None:
        node.same = [None] if node.objects is not None else []
    node.same.extend(others)


def _any_of(nodes: Nodes, node: Node, value: Any) -> None:
    node.choices = [*(node.choices or ()), ("anyOf", nodes.children(node, "anyOf", value))]


def _one_of(nodes: Nodes, node: Node, value: Any) -> None:
    node.choices = [*(node.choices or ()), ("oneOf", nodes.children(node, "oneOf", value))]


def _not(nodes: Nodes, node: Node, value: Any) -> None:
    node.denied = nodes.child(node, value, "not")


def _if(nodes: Nodes, node: Node, value: Any) -> None:
    raw = node.raw
    if "then" not in raw and "else" not in raw:
        return
    node.conditions = (
        nodes.child(node, value, "if"),
        nodes.child(node, raw["then"], "then") if "then" in raw else None,
        nodes.child(node, raw["else"], "else") if "else" in raw else None,
    )


def _strings(node: Node) -> Strings:
    if node.strings is None:
        node.strings = Strings()
    return node.strings


def _min_length(nodes: Nodes, node: Node, value: Any) -> None:
    _strings(node).min = _count(node, "minLength", value)


def _max_length(nodes: Nodes, node: Node, value: Any) -> None:
    _strings(node).max = _count(node, "maxLength", value)


def _pattern(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, str):
        raise bad(node, "pattern", "a regular expression, so a string", value)
    _strings(node).patterns.append((value, f"{node.pointer}/pattern"))


def _format(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, str):
        raise bad(node, "format", "the name of a format, so a string", value)
    if value in SUPPORTED_FORMATS:
        _strings(node).formats.append(value)
    elif value in KNOWN_FORMATS:
        node.refused = [*(node.refused or ()), (STRING, "format", value)]


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


def _exclusive_minimum(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, bool):
        _meet(node, Bounds(low=_bounds(node, "exclusiveMinimum", value), low_open=True))


def _exclusive_maximum(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, bool):
        _meet(node, Bounds(high=_bounds(node, "exclusiveMaximum", value), high_open=True))


def _boolean_exclusives(node: Node, raw: dict[str, Any]) -> None:
    """Draft 4's spelling: a flag that opens the bound beside it."""
    if raw.get("exclusiveMinimum") is True and "minimum" in raw:
        _meet(node, Bounds(low=_bounds(node, "minimum", raw["minimum"]), low_open=True))
    if raw.get("exclusiveMaximum") is True and "maximum" in raw:
        _meet(node, Bounds(high=_bounds(node, "maximum", raw["maximum"]), high_open=True))


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


def _min_items(nodes: Nodes, node: Node, value: Any) -> None:
    _arrays(node).min = _count(node, "minItems", value)


def _max_items(nodes: Nodes, node: Node, value: Any) -> None:
    _arrays(node).max = _count(node, "maxItems", value)


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
    pointer = f"{node.pointer}/properties/"
    resource, make = node.resource, nodes.node
    for name, raw in value.items():
        if not isinstance(name, str):
            raise GrammarError("the names of properties are strings", pointer=pointer[:-1])
        objects.properties[name] = make(raw, pointer + escape(name), resource)


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


def _required(nodes: Nodes, node: Node, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise bad(node, "required", "an array of strings", value)
    if value:
        _objects(node).required = list(dict.fromkeys(value))


def _min_properties(nodes: Nodes, node: Node, value: Any) -> None:
    _objects(node).min = _count(node, "minProperties", value)


def _max_properties(nodes: Nodes, node: Node, value: Any) -> None:
    _objects(node).max = _count(node, "maxProperties", value)


def _dependencies(nodes: Nodes, node: Node, value: Any) -> None:
    _depend(nodes, node, "dependencies", value)


def _dependent_required(nodes: Nodes, node: Node, value: Any) -> None:
    _depend(nodes, node, "dependentRequired", value)


def _dependent_schemas(nodes: Nodes, node: Node, value: Any) -> None:
    _depend(nodes, node, "dependentSchemas", value)


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
        node.choices = [*(node.choices or ()), (keyword, [nodes.lacking(key, pointer), present])]


_PARSERS: dict[str, _Parser] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "$ref": _reference,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "minimum": _minimum,
    "maximum": _maximum,
    "exclusiveMinimum": _exclusive_minimum,
    "exclusiveMaximum": _exclusive_maximum,
    "items": _items,
    "prefixItems": _prefix_items,
    "minItems": _min_items,
    "maxItems": _max_items,
    "properties": _properties,
    "additionalProperties": _additional,
    "patternProperties": _pattern_properties,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "dependencies": _dependencies,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "required": _required,
}
assert not set(_PARSERS) & set(_REFUSED)
