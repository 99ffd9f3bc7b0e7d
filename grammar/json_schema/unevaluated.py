"""unevaluatedProperties and unevaluatedItems, once it is known which schemas hold.

Where all choices are made (normal.py), what a schema evaluates is known from its keywords (core
2020-12, sections 10 and 11): `unevaluatedProperties` is an `additionalProperties` beside all the
properties that any of them speaks of. An item that a `contains` of draft 2020-12 holds of is
evaluated, which depends on the item: there the rest is a choice.
"""

from __future__ import annotations

from collections.abc import Sequence

from grammaton.grammar.json_schema.document import DRAFT_2020
from grammaton.grammar.json_schema.nodes import (
    ARRAY,
    OBJECT,
    Arrays,
    Contains,
    Node,
    Nodes,
    Objects,
)
from grammaton.grammar.json_schema.strings import KeySort


def loose_objects(nodes: Nodes, owner: Node, loose: Node, seen: Sequence[Node]) -> Node | None:
    """What unevaluatedProperties says of objects; None for nothing.

    Args:
        owner, loose: the schema with the keyword, and the keyword's.
        seen: the schemas that evaluate properties for it, itself included.
    """
    objects = Objects()
    objects.other = loose
    for node in seen:
        if node is not owner and node.loose_properties is not None:
            return None
        facts = node.objects
        if facts is None:
            continue
        if facts.other is not None:
            return None
        objects.properties.update(dict.fromkeys(facts.properties, nodes.anything))
        objects.patterns.extend(
            (pattern, pointer, nodes.anything) for pattern, pointer, _ in facts.patterns
        )
    made = nodes.made(f"{owner.pointer}/unevaluatedProperties")
    made.objects = objects
    return made


def loose_arrays(nodes: Nodes, owner: Node, loose: Node, seen: Sequence[Node]) -> Node | None:
    """What unevaluatedItems says of arrays, with arguments as above."""
    pointer = f"{owner.pointer}/unevaluatedItems"
    length = 0
    found: list[Node] = []
    for node in seen:
        if node is not owner and node.loose_items is not None:
            return None
        facts = node.arrays
        if facts is None:
            continue
        if facts.rest is not None:
            return None
        length = max(length, len(facts.prefix))
        if node.resource.draft >= DRAFT_2020:
            found.extend(each.node for each in facts.some)
    arrays = Arrays()
    arrays.prefix = [nodes.anything] * length
    arrays.rest = loose
    if found:
        arrays.rest = nodes.made(pointer)
        arrays.rest.choices = [("anyOf", [*dict.fromkeys(found), loose])]
    made = nodes.made(pointer)
    made.arrays = arrays
    return made


def broken_member(nodes: Nodes, owner: Node, loose: Node, seen: Sequence[Node]) -> Node | None:
    """A member that unevaluatedProperties or unevaluatedItems should hold of and does not; None
    where every member is evaluated. Arguments as above.
    """
    made = nodes.made(owner.pointer, owner.kinds)
    wrong = nodes.negation(loose, owner.pointer)
    if owner.kinds == OBJECT:
        said = loose_objects(nodes, owner, loose, seen)
        if said is None or said.objects is None:
            return None
        patterns = tuple(pattern for pattern, _, _ in said.objects.patterns)
        made.objects = Objects()
        sort = KeySort(frozenset(said.objects.properties), missing=patterns)
        made.objects.some = [(sort, wrong)]
        return made
    assert owner.kinds == ARRAY
    said = loose_arrays(nodes, owner, loose, seen)
    if said is None or said.arrays is None or said.arrays.rest is None:
        return None
    made.arrays = Arrays()
    wrong = nodes.negation(said.arrays.rest, owner.pointer)
    made.arrays.some = [Contains(len(said.arrays.prefix), wrong, 1, None)]
    return made
