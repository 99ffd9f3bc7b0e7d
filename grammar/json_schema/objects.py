"""Objects: a shape as three rules, whose parameter remembers what has been written.

    FIRST    after `{`: the closing brace, or a member
    REST     after a member: the closing brace, or a comma and MEMBERS
    MEMBERS  after a comma: a member

A member is its key, colon and value, and goes on with REST under a new parameter. In schema order
the parameter is the index of the next property: property i may come next when the index is at most
i and no required property lies between. In any order it is the set of properties seen. The rules
are data (`define_template`), so an object of n properties costs about 4n terms in both orders,
whatever the number of subsets; the core makes the bodies of the parameters it meets.

Keys are compared after unescaping; the key of another property is any text but the declared keys,
so a declared property can be neither repeated nor smuggled in under an escape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammaton.grammar.json_schema.positions import ObjectShape, Position
from grammaton.grammar.json_schema.strings import KeySort

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.rules import Lowering


def object_term(lowering: Lowering, shape: ObjectShape, depth: int) -> int:
    """The term of an object; `shape` is known to hold a value at this depth."""
    pieces = lowering.pieces
    others = [
        (sort, position) for sort, position in shape.others if lowering.alive(position, depth + 1)
    ]
    keys = [
        key for key, position in shape.properties.items() if lowering.alive(position, depth + 1)
    ]
    if not keys and not others:
        return int(lowering.store.concat([pieces.open("{"), pieces.close_brace]))
    first = lowering.store.rule("OBJECT")
    lowering.later(lambda: _define(lowering, shape, depth, first, keys, others))
    counters = (0,) if keys else ()
    start = lowering.store.call(first, lowering.param(counters))
    return int(lowering.store.concat([pieces.open("{"), start]))


def _define(
    lowering: Lowering,
    shape: ObjectShape,
    depth: int,
    first: int,
    keys: list[str],
    others: list[tuple[KeySort, Position]],
) -> None:
    store, pieces = lowering.store, lowering.pieces
    quote, quote_colon, space = pieces.quote, pieces.quote_colon, pieces.space
    concat, term, literal = store.concat, lowering.term, pieces.literal
    properties = shape.properties
    members = [
        concat([quote, literal(key), quote_colon, term(properties[key], depth + 1), space])
        for key in keys
    ]
    undeclared = [
        concat(
            [
                *(quote, lowering.strings.key_rest(sort), pieces.colon),
                *(term(position, depth + 1), space),
            ]
        )
        for sort, position in others
    ]
    if not members:
        _define_uniform(lowering, first, store.union(undeclared), depth)
        return
    required = [i for i, key in enumerate(keys) if key in shape.required]
    if lowering.any_order:
        _define_any_order(lowering, depth, first, members, required, undeclared)
    else:
        _define_in_order(lowering, depth, first, members, required, undeclared)


def _define_uniform(lowering: Lowering, first: int, member: int, depth: int) -> None:
    """Objects without declared properties: nothing to remember."""
    store, pieces = lowering.store, lowering.pieces
    more = store.repeat(store.concat([pieces.comma(depth), member]), 0, None)
    some = store.concat([pieces.first_lead(depth), member, more, pieces.close("}", depth)])
    store.define(first, store.union([pieces.close_brace, some]))


def _define_in_order(
    lowering: Lowering,
    depth: int,
    first: int,
    members: list[int],
    required: list[int],
    others: list[int],
) -> None:
    count = len(members)
    last = required[-1] if required else -1
    alternatives: list[Any] = []
    least, upcoming = 0, 0
    for i, member in enumerate(members):
        alternatives.append((member, [("between", 0, least, i)], [("set", 0, i + 1)]))
        if upcoming < len(required) and required[upcoming] == i:
            least, upcoming = i + 1, upcoming + 1
    for other in others:
        alternatives.append((other, [("between", 0, last + 1, count)], [("set", 0, count)]))
    ended = [("between", 0, last + 1, count)]
    more = [] if others else [("between", 0, 0, count - 1)]
    _define_rules(lowering, depth, first, alternatives, ended, more, not required)


def _define_any_order(
    lowering: Lowering,
    depth: int,
    first: int,
    members: list[int],
    required: list[int],
    others: list[int],
) -> None:
    count = len(members)
    alternatives: list[Any] = [
        (member, [("unseen", i)], [("see", i), ("add", 0, 1, count)])
        for i, member in enumerate(members)
    ]
    more: list[Any] = [("between", 0, 0, count - 1)]
    if others:
        alternatives.extend((other, [], []) for other in others)
        more = []
    ended = [("all_seen", tuple(required))] if required else []
    _define_rules(lowering, depth, first, alternatives, ended, more, not required)


def _define_rules(
    lowering: Lowering,
    depth: int,
    first: int,
    alternatives: list[Any],
    ended: list[Any],
    more: list[Any],
    may_be_empty: bool,
) -> None:
    """The three rules.

    Args:
        alternatives: (member, conditions, updates).
        ended: when the object may be closed; more: when another member may follow.
    """
    store, pieces = lowering.store, lowering.pieces
    empty = store.EMPTY
    rest, after_comma = store.rule("MEMBERS"), store.rule("MEMBER")
    close = pieces.close("}", depth)
    goes_on = [
        (member, rest, empty, conditions, updates) for member, conditions, updates in alternatives
    ]
    store.define_template(
        rest,
        [(close, -1, empty, ended, []), (pieces.comma(depth), after_comma, empty, more, [])],
    )
    store.define_template(after_comma, goes_on)
    lead = pieces.first_lead(depth)
    if lead != empty:
        goes_on = [(store.concat([lead, head]), *others) for head, *others in goes_on]
    if may_be_empty:
        goes_on = [(pieces.close_brace, -1, empty, [], []), *goes_on]
    store.define_template(first, goes_on)
