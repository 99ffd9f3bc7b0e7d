"""Nodes: the schemas of a document, each with the facts that it states.

A *node* is one schema, parsed when it is first met; the schemas inside it are nodes in their turn,
not parsed yet. A keyword constrains values of some *kinds* only (`minLength` says nothing about 5),
so facts are kept by kind. Kinds are bits; an integer and a number with a fraction are different
kinds. Besides the document's own there are nodes made here, for constants, and the negations of
nodes. A node costs about a microsecond to make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from grammaton.errors import GrammarError, UnsupportedKeyword
from grammaton.grammar.json_schema.document import Document, Resource, describe, escape
from grammaton.grammar.json_schema.numbers import Bounds
from grammaton.grammar.json_schema.strings import KeySort

NULL, BOOLEAN, STRING, INTEGER, FRACTION, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32, 64
NUMBER = INTEGER | FRACTION
ANYTHING = 127


class Strings:
    """What is said of strings: lengths in code points, patterns with pointers, formats.

    `missing` are patterns and `wrong` formats that a string must not have, `excluded` the values
    that it must not be.
    """

    __slots__ = ("excluded", "formats", "max", "min", "missing", "patterns", "wrong")

    def __init__(self) -> None:
        self.min = 0
        self.max: int | None = None
        self.patterns: list[tuple[str, str]] = []
        self.formats: list[str] = []
        self.missing: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.excluded: list[str] = []


class Contains(NamedTuple):
    """So many of the items from an index on satisfy a node."""

    start: int
    node: Node
    least: int
    most: int | None

    @property
    def counts(self) -> bool:
        """Whether it asserts anything; in any case it says which items are evaluated."""
        return self.least > 0 or self.most is not None


class Arrays:
    """What is said of arrays: nodes of the first items, of the rest, and how many; what items
    there must be among them, and whether no two may be equal."""

    __slots__ = ("max", "min", "prefix", "rest", "some", "unique")

    def __init__(self) -> None:
        self.prefix: list[Node] = []
        self.rest: Node | None = None
        self.min = 0
        self.max: int | None = None
        self.some: list[Contains] = []
        self.unique = False


class Objects:
    """What is said of objects: nodes of declared properties, of the others, required keys.

    `patterns` are (regular expression, its pointer, node) of `patternProperties`; `names` the nodes
    that every key satisfies; `min` and `max` the number of properties; `some` are (sort of key,
    node): a property of the sort must satisfy the node.
    """

    __slots__ = (
        *("declared", "max", "min", "names", "other", "patterns", "properties", "required"),
        "some",
    )

    def __init__(self) -> None:
        self.properties: dict[str, Node] = {}
        self.declared = False
        self.other: Node | None = None
        self.patterns: list[tuple[str, str, Node]] = []
        self.required: list[str] = []
        self.names: list[Node] = []
        self.some: list[tuple[KeySort, Node]] = []
        self.min = 0
        self.max: int | None = None

    @property
    def is_closed(self) -> bool:
        """Whether no other properties than those spoken of can be there."""
        return self.other is not None and self.other.raw is False


Piece = str | tuple[str, str]


def _written(piece: Piece) -> str:
    return piece if isinstance(piece, str) else f"/{piece[0]}/{escape(piece[1])}"


class Node:
    """One schema: a kind mask and the facts of each keyword family.

    Attributes:
        piece: the end of the node's pointer, after that of the node above it, if there is one; as
            text, or as a keyword and a key in it.
        kinds: the kinds of value allowed by `type` and boolean schemas.
        never: true for the schema `false`.
        only_kinds: true when all it says is which kinds there are, at least one.
        only_same: the schema that it refers to, when it says nothing else.
        trivial: true when nothing is asserted.
        same: schemas that hold of the same value: `$ref` and `allOf`; None stands for the node's
            own keywords, so that keys keep the order in which the schema mentions them.
        choices: (keyword, branches) of anyOf and oneOf, and of what is rewritten as such.
        values: the lists of `enum` and `const`.
        denied: `not`'s schema; conditions: (if, then, else); both are choices, too.
        negates: the schema that this node is the negation of.
        loose_properties, loose_items: the schemas of unevaluatedProperties and unevaluatedItems.
        broken: a schema that some member does not satisfy which the others here do not evaluate.
        refused: (kinds, keyword, value) of keywords that are not enforced.
    """

    __slots__ = (
        *(
            "above",
            "arrays",
            "broken",
            "choices",
            "conditions",
            "denied",
            "document",
            "id",
            "kinds",
            "loose_items",
            "loose_properties",
            "negates",
        ),
        *("never", "numbers", "objects", "only_kinds", "only_same", "parsed", "piece", "raw"),
        *("refused", "resource", "same", "strings", "trivial", "values"),
    )

    def __init__(
        self,
        document: Document,
        raw: Any,
        piece: Piece,
        resource: Resource,
        number: int,
        above: Node | None = None,
    ) -> None:
        self.document = document
        self.raw = raw
        self.piece = piece
        self.above = above
        self.resource = resource
        self.id = number
        self.parsed = False
        self.kinds = ANYTHING
        self.never = False
        self.only_kinds = False
        self.only_same: Node | None = None
        self.trivial = False
        self.same: list[Node | None] | None = None
        self.choices: list[tuple[str, list[Node]]] | None = None
        self.values: list[tuple[str, list[Any]]] | None = None
        self.denied: Node | None = None
        self.conditions: tuple[Node, Node, Node] | None = None
        self.negates: Node | None = None
        self.loose_properties: Node | None = None
        self.loose_items: Node | None = None
        self.broken: Node | None = None
        self.strings: Strings | None = None
        self.numbers: Bounds | None = None
        self.arrays: Arrays | None = None
        self.objects: Objects | None = None
        self.refused: list[tuple[int, str, Any]] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it says what it says by itself, without a choice."""
        return self.same is None and self.choices is None and not self.is_loose

    @property
    def is_loose(self) -> bool:
        """Whether what its schemas leave unevaluated matters."""
        return (
            self.loose_properties is not None
            or self.loose_items is not None
            or self.broken is not None
        )

    def tightened(self) -> Node:
        """This node without unevaluatedProperties and unevaluatedItems."""
        copy = self.plain()
        for name in ("same", "choices", "denied", "conditions"):
            setattr(copy, name, getattr(self, name))
        return copy

    @property
    def pointer(self) -> str:
        """JSON Pointer from the document's root, put together when it is asked for."""
        pieces: list[str] = []
        node: Node | None = self
        while node is not None:
            pieces.append(_written(node.piece))
            node = node.above
        return "".join(reversed(pieces))

    def around(self) -> tuple[Sequence[Node], Sequence[Node]]:
        """The schemas that hold of the same value, mentioned before and after its own keys."""
        if self.same is None:
            return (), ()
        mine = self.same.index(None) if None in self.same else 0
        before = [node for node in self.same[:mine] if node is not None]
        return before, [node for node in self.same[mine:] if node is not None]

    def plain(self) -> Node:
        """This node without what refers to other schemas of the same value."""
        copy = Node(self.document, self.raw, self.piece, self.resource, -1 - self.id, self.above)
        for name in ("kinds", "never", "values", "strings", "numbers", "arrays", "objects"):
            setattr(copy, name, getattr(self, name))
        copy.parsed = True
        return copy


class Nodes:
    """Makes the nodes of one document; the same schema is the same node.

    Args:
        read: parses the keywords of a node (keywords.py).

    Attributes:
        referred: what references lead to, by the resource that they stand in.
    """

    def __init__(self, document: Document, read: Callable[[Nodes, Node], None]) -> None:
        self.document = document
        self._read = read
        self._by_place: dict[tuple[int, int], Node] = {}
        self.referred: dict[tuple[str, Resource], Node] = {}
        self._negations: dict[Node, Node] = {}
        self._count = 0
        self.anything = self._new(True, "", document.resource)
        self.anything.parsed = self.anything.trivial = True
        self.root = self.node(document.root, "", document.resource)

    def _new(self, raw: Any, piece: Piece, resource: Resource, above: Node | None = None) -> Node:
        self._count += 1
        return Node(self.document, raw, piece, resource, self._count, above)

    def node(self, raw: Any, piece: Piece, resource: Resource, above: Node | None = None) -> Node:
        """The node of a raw schema.

        Args:
            piece: its pointer, from the node above it if there is one.
            resource: the resource around it.

        Raises:
            GrammarError: it is neither an object nor a boolean.
        """
        if raw is True:
            return self.anything
        if not isinstance(raw, dict):
            if raw is False:
                return self._new(raw, piece, resource, above)
            raise GrammarError(
                f"a schema is an object or a boolean, not {describe(raw)}",
                pointer=(above.pointer if above else "") + _written(piece),
            )
        if "$id" in raw or "id" in raw:
            pointer = (above.pointer if above else "") + _written(piece)
            resource = self.document.resource_of(raw, pointer, resource)
        place = (id(raw), id(resource))
        node = self._by_place.get(place)
        if node is None:
            self._count += 1
            node = self._by_place[place] = Node(
                self.document, raw, piece, resource, self._count, above
            )
        return node

    def child(self, parent: Node, raw: Any, path: str) -> Node:
        """The node of a schema inside another's keyword."""
        return self.node(raw, f"/{path}", parent.resource, parent)

    def children(self, parent: Node, keyword: str, raw: Any) -> list[Node]:
        """The nodes of a keyword that takes a list of schemas."""
        if not isinstance(raw, list):
            raise bad(parent, keyword, "an array of schemas", raw)
        return [self.child(parent, item, f"{keyword}/{i}") for i, item in enumerate(raw)]

    def constant(self, value: Any, pointer: str) -> Node:
        """A node for one array or object of an `enum` or `const`."""
        node = self.made(pointer, ARRAY if isinstance(value, list) else OBJECT)
        if isinstance(value, list):
            arrays = node.arrays = Arrays()
            arrays.prefix = [self.literal(item, pointer) for item in value]
            arrays.min = arrays.max = len(value)
        else:
            objects = node.objects = Objects()
            objects.declared = True
            objects.properties = {k: self.literal(v, pointer) for k, v in value.items()}
            objects.required = list(value)
            objects.other = self.node(False, pointer, self.document.resource)
        return node

    def made(self, pointer: str, kinds: int = ANYTHING) -> Node:
        """A node that is no schema of the document, with facts to be filled in."""
        node = self._new(True, pointer, self.document.resource)
        node.parsed = True
        node.kinds = kinds
        return node

    def negation(self, node: Node, pointer: str) -> Node:
        """The node of the values that another does not hold of, parsed when it is met."""
        if node.negates is not None:
            return node.negates
        negation = self._negations.get(node)
        if negation is None:
            negation = self._new(True, pointer, self.document.resource)
            negation.negates = node
            self._negations[node] = negation
        return negation

    def all_of(self, nodes: list[Node], pointer: str) -> Node:
        """The node of a conjunction."""
        node = self.made(pointer)
        node.same = list(nodes)
        return node

    def having(self, keys: list[str], pointer: str) -> Node:
        """A node for objects that have these keys."""
        node = self.made(pointer, OBJECT)
        node.objects = Objects()
        node.objects.required = keys
        return node

    def lacking(self, key: str, pointer: str) -> Node:
        """A node for everything but objects that have this key."""
        node = self.made(pointer)
        node.objects = Objects()
        node.objects.properties[key] = self.node(False, pointer, self.document.resource)
        return node

    def listed(self, nodes: list[Node]) -> Node:
        """A node for the values that any of some nodes lists."""
        node = self.made(nodes[0].pointer)
        values = [value for each in nodes for _, some in each.values or () for value in some]
        node.values = [("enum", values)]
        return node

    def literal(self, value: Any, pointer: str) -> Node:
        """A node for one value."""
        node = self.made(pointer)
        node.values = [("const", [value])]
        return node

    def parse(self, node: Node) -> Node:
        """Reads the node's keywords, once.

        Raises:
            GrammarError: a keyword's value is not what the specification says it is.
        """
        if not node.parsed:
            node.parsed = True
            try:
                self._read(self, node)
            except GrammarError:
                node.parsed = False
                raise
        return node


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
