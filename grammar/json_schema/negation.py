"""Negation: the values that a schema does not hold of, as a choice of schemas.

`not`, `if` and a `oneOf` whose schemas overlap need it. The negation of a conjunction is the union
of the negations of its parts, down to the keywords:

    type, enum, const             the other kinds, the other values
    lengths, counts, bounds       the bound turned round; multipleOf: numbers that are none
    pattern, format               strings without it
    required                      objects that lack the key
    properties                    objects that have the key with a value the schema does not hold of
    allOf, anyOf, oneOf, $ref     by De Morgan; not, if: by cases
    unevaluated*                  the rest holds, and not of a member that it should hold of
    contains                      other counts of items that the schema holds of
    propertyNames                 some key that the schema does not hold of
    items, additionalProperties   some item or other property that the schema does not hold of

A negation is parsed when it is met, so recursion through properties stays lazy.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.json_schema.document import escape
from grammaton.grammar.json_schema.formats import APPROXIMATE_FORMATS
from grammaton.grammar.json_schema.nodes import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
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
)
from grammaton.grammar.json_schema.numbers import Bounds, Exact, exact
from grammaton.grammar.json_schema.strings import KeySort


def negate(nodes: Nodes, node: Node, schema: Node) -> None:
    """Fills in a node with the negation of a schema.

    Raises:
        UnsupportedKeyword: the schema says something whose negation is not enforced.
    """
    nodes.parse(schema)
    if schema.trivial:
        node.kinds, node.never = 0, True
        return
    if schema.never:
        node.trivial = True
        return
    for _, keyword, _ in schema.refused or ():
        raise _refusal(schema, keyword)
    options: list[Node] = []
    pointer = node.pointer
    for kind, loose in ((OBJECT, schema.loose_properties), (ARRAY, schema.loose_items)):
        if loose is not None and not nodes.parse(loose).trivial:
            wrong = nodes.made(pointer, kind)
            wrong.same = [schema.tightened()]
            wrong.broken = loose
            options.append(wrong)
    if schema.kinds != ANYTHING:
        options.append(nodes.made(pointer, ANYTHING & ~schema.kinds))
    for keyword, values in schema.values or ():
        options.extend(_other_values(nodes, schema, keyword, values, pointer))
    if schema.strings is not None:
        if not APPROXIMATE_FORMATS.isdisjoint(schema.strings.formats):
            raise _refusal(schema, "format")
        options.extend(_strings(nodes, schema.strings, pointer))
    if schema.numbers is not None:
        options.extend(_numbers(nodes, schema.numbers, pointer))
    if schema.arrays is not None:
        options.extend(_arrays(nodes, schema, schema.arrays, pointer))
    if schema.objects is not None:
        options.extend(_objects(nodes, schema, schema.objects, pointer))
    options.extend(nodes.negation(other, pointer) for other in schema.same or () if other)
    for keyword, branches in schema.choices or ():
        options.extend(_no_choice(nodes, schema, keyword, branches, pointer))
    node.choices = [("not", options)]


def _refusal(schema: Node, keyword: str) -> UnsupportedKeyword:
    return UnsupportedKeyword(
        f"the negation of {keyword!r} is not enforced yet; 'not', 'if' or a 'oneOf' needs it",
        pointer=f"{schema.pointer}/{escape(keyword)}",
    )


def _no_choice(
    nodes: Nodes, schema: Node, keyword: str, branches: list[Node], pointer: str
) -> list[Node]:
    """The values that fit none of the branches or, under oneOf, more than one."""
    if keyword == "not" and schema.denied is not None:
        return [schema.denied]
    if keyword == "if" and schema.conditions is not None:
        test, then, otherwise = schema.conditions
        failed = nodes.negation(test, pointer)
        return [
            nodes.all_of([test, nodes.negation(then, pointer)], pointer),
            nodes.all_of([failed, nodes.negation(otherwise, pointer)], pointer),
        ]
    none = nodes.all_of([nodes.negation(branch, pointer) for branch in branches], pointer)
    if keyword != "oneOf":
        return [none]
    pairs = [
        nodes.all_of([one, other], pointer)
        for i, one in enumerate(branches)
        for other in branches[i + 1 :]
    ]
    return [none, *pairs]


def _other_values(
    nodes: Nodes, schema: Node, keyword: str, values: list[Any], pointer: str
) -> list[Node]:
    """All values but some."""
    texts = [value for value in values if isinstance(value, str)]
    booleans = {value for value in values if isinstance(value, bool)}
    numbers = sorted({number for value in values if (number := exact(value)) is not None})
    kinds = 0
    kinds |= 0 if any(isinstance(value, list) for value in values) else ARRAY
    kinds |= 0 if any(isinstance(value, dict) for value in values) else OBJECT
    kinds |= 0 if None in values else NULL
    kinds |= 0 if booleans else BOOLEAN
    kinds |= 0 if texts else STRING
    kinds |= 0 if numbers else NUMBER
    options = [nodes.made(pointer, kinds)]
    for kind, sort in ((ARRAY, list), (OBJECT, dict)):
        listed = [nodes.constant(value, pointer) for value in values if isinstance(value, sort)]
        if listed:
            others = [nodes.negation(constant, pointer) for constant in listed]
            options.append(nodes.all_of([nodes.made(pointer, kind), *others], pointer))
    if len(booleans) == 1:
        other = nodes.made(pointer)
        other.values = [(keyword, [False in booleans])]
        options.append(other)
    if texts:
        string = nodes.made(pointer, STRING)
        string.strings = Strings()
        string.strings.excluded = texts
        options.append(string)
    ends: list[Exact | None] = [None, *numbers, None] if numbers else []
    for low, high in pairwise(ends):
        between = nodes.made(pointer, NUMBER)
        between.numbers = Bounds(low, low is not None, high, high is not None)
        options.append(between)
    return options


def _strings(nodes: Nodes, facts: Strings, pointer: str) -> list[Node]:
    options = []

    def option() -> Strings:
        node = nodes.made(pointer, STRING)
        node.strings = Strings()
        options.append(node)
        return node.strings

    if facts.min:
        option().max = facts.min - 1
    if facts.max is not None:
        option().min = facts.max + 1
    for pattern in facts.patterns:
        option().missing = [pattern]
    for name in facts.formats:
        option().wrong = [name]
    return options


def _numbers(nodes: Nodes, bounds: Bounds, pointer: str) -> list[Node]:
    options = []
    if bounds.low is not None:
        below = nodes.made(pointer, NUMBER)
        below.numbers = Bounds(high=bounds.low, high_open=not bounds.low_open)
        options.append(below)
    if bounds.high is not None:
        above = nodes.made(pointer, NUMBER)
        above.numbers = Bounds(low=bounds.high, low_open=not bounds.high_open)
        options.append(above)
    if bounds.step is not None:
        uneven = nodes.made(pointer, NUMBER)
        uneven.numbers = Bounds(skipped=(bounds.step,))
        options.append(uneven)
    for step in bounds.skipped:
        even = nodes.made(pointer, NUMBER)
        even.numbers = Bounds(step=step)
        options.append(even)
    return options


def _arrays(nodes: Nodes, schema: Node, facts: Arrays, pointer: str) -> list[Node]:
    options = []

    def option(least: int, most: int | None = None) -> Arrays:
        node = nodes.made(pointer, ARRAY)
        arrays = node.arrays = Arrays()
        arrays.min, arrays.max = least, most
        options.append(node)
        return arrays

    if facts.min:
        option(0, facts.min - 1)
    if facts.max is not None:
        option(facts.max + 1)
    for i, item in enumerate(facts.prefix):
        option(i + 1).prefix = [nodes.anything] * i + [nodes.negation(item, pointer)]
    if facts.rest is not None and not nodes.parse(facts.rest).trivial:
        start = len(facts.prefix)
        wrong = nodes.negation(facts.rest, pointer)
        option(start + 1).some = [Contains(start, wrong, 1, None)]
    for each in facts.some:
        if each.least == 1:
            none = option(0)
            none.prefix = [nodes.anything] * each.start
            none.rest = nodes.negation(each.node, pointer)
        elif each.least:
            option(0).some = [Contains(each.start, each.node, 0, each.least - 1)]
        if each.most is not None:
            option(0).some = [Contains(each.start, each.node, each.most + 1, None)]
    if facts.unique:
        raise _refusal(schema, "uniqueItems")
    return options


def _objects(nodes: Nodes, schema: Node, facts: Objects, pointer: str) -> list[Node]:
    options = []
    for key in facts.required:
        lacking = nodes.lacking(key, pointer)
        lacking.kinds = OBJECT
        options.append(lacking)
    for key, value in facts.properties.items():
        having = nodes.having([key], pointer)
        assert having.objects is not None
        having.objects.properties[key] = nodes.negation(value, pointer)
        options.append(having)
    undeclared = KeySort(
        frozenset(facts.properties), missing=tuple(pattern for pattern, _, _ in facts.patterns)
    )
    sorts = [(KeySort(frozenset(), (pattern,)), value) for pattern, _, value in facts.patterns]
    if facts.other is not None:
        sorts.append((undeclared, facts.other))
    for sort, value in sorts:
        if not nodes.parse(value).trivial:
            wrong = nodes.made(pointer, OBJECT)
            wrong.objects = Objects()
            wrong.objects.some = [(sort, nodes.negation(value, pointer))]
            options.append(wrong)
    for names in facts.names:
        if not nodes.parse(names).trivial:
            misnamed = nodes.made(pointer, OBJECT)
            misnamed.objects = Objects()
            sort = KeySort(frozenset(), named=(nodes.negation(names, pointer),))
            misnamed.objects.some = [(sort, nodes.anything)]
            options.append(misnamed)
    for _ in facts.some:
        raise _refusal(schema, "not")
    for least, most in ((0, facts.min - 1), (None if facts.max is None else facts.max + 1, None)):
        if least is not None and (most is None or most >= 0):
            counted = nodes.made(pointer, OBJECT)
            counted.objects = Objects()
            counted.objects.min, counted.objects.max = least, most
            options.append(counted)
    return options
