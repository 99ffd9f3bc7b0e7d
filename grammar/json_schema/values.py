"""JSON values: equality, and whether a value satisfies a schema.

`enum` and `const` need no algebra: their values are filtered by all that is said beside them. The
check below is a plain reading of the specification (validation 2020-12, section 6; core, section
10) over parsed nodes, so it also decides `oneOf`, `not` and `if`, which lowering cannot do yet.
Strings are checked with the very terms that are lowered.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any

from grammaton.errors import GrammarError
from grammaton.grammar.json_schema.document import DRAFT_2020, describe
from grammaton.grammar.json_schema.nodes import (
    ARRAY,
    BOOLEAN,
    FRACTION,
    INTEGER,
    NULL,
    OBJECT,
    STRING,
    Node,
    Nodes,
    Strings,
    unsupported,
)
from grammaton.grammar.json_schema.numbers import Exact, exact
from grammaton.grammar.json_schema.strings import StringFacts, StringTexts


def kind_of(value: Any, pointer: str) -> int:
    """The kind bit of a JSON value.

    Raises:
        GrammarError: it is no JSON value.
    """
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, str):
        return STRING
    if isinstance(value, list):
        return ARRAY
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise GrammarError("the keys of a JSON object are strings", pointer=pointer)
        return OBJECT
    number = exact(value)
    if number is None:
        raise GrammarError(f"{describe(value)} is no JSON value", pointer=pointer)
    return INTEGER if isinstance(number, int) or is_whole(number) else FRACTION


def is_whole(number: Exact) -> bool:
    """Whether a number has no fraction."""
    return isinstance(number, int) or number == number.to_integral_value()


def canonical(value: Any) -> Hashable:
    """A key under which equal JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, list):
        return ("array", tuple(canonical(item) for item in value))
    if isinstance(value, dict):
        return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
    number = exact(value)
    assert number is not None
    return number if isinstance(number, int) else plain_number(number)


def plain_number(number: Exact) -> Exact:
    """An int for a whole number of reasonable size, so that equal numbers are written alike."""
    if isinstance(number, Decimal) and is_whole(number):
        return int(number)
    return number


def string_facts(said: Sequence[Strings], strings: StringTexts) -> StringFacts:
    """What several schemas say of a string, together."""
    least, most = 0, None
    patterns: dict[str, None] = {}
    missing: dict[str, None] = {}
    formats: dict[str, None] = {}
    wrong: dict[str, None] = {}
    excluded: dict[str, None] = {}
    for facts in said:
        least = max(least, facts.min)
        if facts.max is not None and (most is None or facts.max < most):
            most = facts.max
        for found, written in ((patterns, facts.patterns), (missing, facts.missing)):
            for pattern, pointer in written:
                strings.pattern_at(pattern, pointer)
                found[pattern] = None
        formats.update(dict.fromkeys(facts.formats))
        wrong.update(dict.fromkeys(facts.wrong))
        excluded.update(dict.fromkeys(facts.excluded))
    return StringFacts(
        least,
        most,
        tuple(patterns),
        tuple(formats),
        tuple(missing),
        tuple(wrong),
        tuple(excluded),
    )


class Checker:
    """Checks values against nodes."""

    def __init__(self, nodes: Nodes, strings: StringTexts) -> None:
        self.nodes = nodes
        self.strings = strings
        self._listed: dict[int, frozenset[Hashable]] = {}
        self._wholes: dict[Node, StringFacts] = {}

    def satisfies(self, value: Any, node: Node) -> bool:
        """Whether a value is valid against a schema.

        Raises:
            UnsupportedKeyword: the answer turns on a keyword that is not enforced.
        """
        if node.negates is not None:
            return not self.satisfies(value, node.negates)
        self.nodes.parse(node)
        if node.trivial:
            return True
        if not self.satisfies_plain(value, node):
            return False
        for other in node.same or ():
            if other is not None and not self.satisfies(value, other):
                return False
        if not all(
            self.satisfies_choice(value, keyword, branches)
            for keyword, branches in node.choices or ()
        ):
            return False
        return self._satisfies_loose(value, node)

    def _satisfies_loose(self, value: Any, node: Node) -> bool:
        """Whether what a schema's parts leave unevaluated is as it must be."""
        loose, members = node.loose_properties, value
        if isinstance(value, list):
            loose, members = node.loose_items, dict(enumerate(value))
        if loose is None or not isinstance(members, dict):
            return True
        evaluated = self._evaluated(value, node, own=True)
        return all(
            key in evaluated or self.satisfies(member, loose) for key, member in members.items()
        )

    def _evaluated(self, value: Any, node: Node, *, own: bool = False) -> set[Any]:
        """The keys or indices that a schema, which a value satisfies, evaluates; `own` without its
        unevaluatedProperties and unevaluatedItems (core 2020-12, section 11)."""
        self.nodes.parse(node)
        if node.negates is not None or node.trivial:
            return set()
        is_list = isinstance(value, list)
        everything = set(range(len(value))) if is_list else set(value)
        if not own and (node.loose_items if is_list else node.loose_properties) is not None:
            return everything
        found: set[Any] = set()
        if is_list and node.arrays is not None:
            if node.arrays.rest is not None:
                return everything
            found.update(range(len(node.arrays.prefix)))
            if node.resource.draft >= DRAFT_2020:
                for each in node.arrays.some:
                    found.update(
                        i for i, item in enumerate(value) if self.satisfies(item, each.node)
                    )
        if not is_list and node.objects is not None:
            if node.objects.other is not None:
                return everything
            found.update(node.objects.properties)
            for pattern, pointer, _ in node.objects.patterns:
                found.update(key for key in value if self._found(pattern, pointer, key))
        inside = [other for other in node.same or () if other is not None]
        for _, branches in node.choices or ():
            inside.extend(branch for branch in branches if self.satisfies(value, branch))
        for other in inside:
            found |= self._evaluated(value, other)
        return found

    def satisfies_choice(self, value: Any, keyword: str, branches: list[Node]) -> bool:
        """Whether a value is valid against one of some schemas; exactly one under oneOf."""
        fitting = 0
        for branch in branches:
            fitting += self.satisfies(value, branch)
            if fitting and keyword != "oneOf":
                return True
        return fitting == 1

    def satisfies_plain(self, value: Any, node: Node) -> bool:
        """As `satisfies`, what refers to other schemas of the same value left aside."""
        kind = kind_of(value, node.pointer)
        if not node.kinds & kind:
            return False
        for _, values in node.values or ():
            if canonical(value) not in self._list(values):
                return False
        if kind == STRING:
            good = self._string(value, node)
        elif kind & (INTEGER | FRACTION):
            number = exact(value)
            good = node.numbers is None or (number is not None and node.numbers.holds(number))
        elif kind == ARRAY:
            good = self._array(value, node)
        elif kind == OBJECT:
            good = self._object(value, node)
        else:
            good = True
        if not good:
            return False
        for kinds, keyword, _ in node.refused or ():
            if kinds & kind:
                raise unsupported(node, keyword)
        return True

    def _list(self, values: list[Any]) -> frozenset[Hashable]:
        """The values of one `enum`, which the document keeps alive, as a set."""
        listed = self._listed.get(id(values))
        if listed is None:
            listed = self._listed[id(values)] = frozenset(canonical(value) for value in values)
        return listed

    def _string(self, value: str, node: Node) -> bool:
        facts = node.strings
        if facts is None:
            return True
        whole = self._wholes.get(node)
        if whole is None:
            whole = string_facts([facts], self.strings)
            self._wholes[node] = whole
        return self.strings.holds(whole, value)

    def _found(self, pattern: str, pointer: str, key: str) -> bool:
        self.strings.pattern_at(pattern, pointer)
        return self.strings.found(pattern, key)

    def _array(self, value: list[Any], node: Node) -> bool:
        facts = node.arrays
        if facts is None:
            return True
        if len(value) < facts.min or (facts.max is not None and len(value) > facts.max):
            return False
        for i, item in enumerate(value):
            schema = facts.prefix[i] if i < len(facts.prefix) else facts.rest
            if schema is not None and not self.satisfies(item, schema):
                return False
        if facts.unique and len({canonical(item) for item in value}) < len(value):
            return False
        for start, schema, least, most in facts.some:
            count = sum(self.satisfies(item, schema) for item in value[start:])
            if count < least or (most is not None and count > most):
                return False
        return True

    def _object(self, value: dict[str, Any], node: Node) -> bool:
        facts = node.objects
        if facts is None:
            return True
        if any(key not in value for key in facts.required):
            return False
        if len(value) < facts.min or (facts.max is not None and len(value) > facts.max):
            return False
        if not all(self.satisfies(key, names) for names in facts.names for key in value):
            return False
        for key, item in value.items():
            schemas = [
                schema
                for pattern, pointer, schema in facts.patterns
                if self._found(pattern, pointer, key)
            ]
            if key in facts.properties:
                schemas.append(facts.properties[key])
            elif not schemas and facts.other is not None:
                schemas.append(facts.other)
            if not all(self.satisfies(item, schema) for schema in schemas):
                return False
        return all(
            any(
                self.strings.is_of(sort, key)
                and all(self.satisfies(key, names) for names in sort.named)
                and self.satisfies(item, schema)
                for key, item in value.items()
            )
            for sort, schema in facts.some
        )
