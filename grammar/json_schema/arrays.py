"""Arrays: a shape as a rule.

The rule's body is what follows the opening bracket. Counts stay counts: `maxItems: 100000` is one
repeat, not a hundred thousand items. Cost: a handful of terms, and four a prefix item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammaton.errors import LimitExceeded
from grammaton.grammar.json_schema.positions import ArrayShape, Position

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.rules import Lowering

MAX_PLACES = 64
"""Places of a counted array at which an item may be looked for."""


def array_body(lowering: Lowering, shape: ArrayShape, depth: int) -> int:
    """The term of the text after `[`; `shape` is known to hold a value at this depth."""
    if shape.some is not None:
        return _with_some(lowering, shape, shape.some, depth)
    store, pieces = lowering.store, lowering.pieces
    most = shape.max
    prefix = shape.prefix
    for i, position in enumerate(prefix):
        if not lowering.alive(position, depth + 1):
            most = i if most is None else min(most, i)
            break
    rest = shape.rest
    if rest is None or not lowering.alive(rest, depth + 1):
        rest = None
        most = len(prefix) if most is None else min(most, len(prefix))
    if most is not None:
        prefix = prefix[:most]
    if most == 0:
        return pieces.close_bracket
    lead, comma, close = pieces.first_lead(depth), pieces.comma(depth), pieces.close("]", depth)
    items = [
        store.concat([lowering.term(position, depth + 1), pieces.space]) for position in prefix
    ]
    repeated = None
    if rest is not None and (most is None or most > len(prefix)):
        repeated = store.concat([lowering.term(rest, depth + 1), pieces.space])
    taken = max(1, len(items))
    tail = close
    if repeated is not None and (most is None or most > taken):
        left = None if most is None else most - taken
        more = store.repeat(store.concat([comma, repeated]), max(0, shape.min - taken), left)
        tail = store.concat([more, close])
    if not items:
        assert repeated is not None
        body = store.concat([lead, repeated, tail])
    else:
        for i in range(len(items) - 1, 0, -1):
            tail = store.concat([comma, items[i], tail])
            if i >= shape.min:
                tail = store.union([close, tail])
        body = store.concat([lead, items[0], tail])
    if shape.min == 0:
        body = store.union([pieces.close_bracket, body])
    return int(body)


def _with_some(lowering: Lowering, shape: ArrayShape, some: Position, depth: int) -> int:
    """Arrays one of whose items after the first ones is of a position of its own."""
    store, pieces = lowering.store, lowering.pieces
    lead, comma = pieces.first_lead(depth), pieces.comma(depth)
    prefix, rest = len(shape.prefix), shape.rest
    assert rest is not None

    def item(position: Position, before: int) -> int:
        return int(store.concat([before, lowering.term(position, depth + 1), pieces.space]))

    wanted, many = item(some, comma), item(rest, comma)

    def form(fewest: int, most: int | None, after: int) -> int:
        """So many items, then the wanted one, then the text after."""
        if prefix:
            return int(store.concat([store.repeat(many, fewest, most), wanted, after]))
        if most == 0:
            return int(store.concat([item(some, lead), after]))
        more = store.repeat(many, fewest - 1, None if most is None else most - 1)
        return int(store.concat([item(rest, lead), more, wanted, after]))

    least = max(1, shape.min - prefix)
    if max(least, 0 if shape.max is None else shape.max - prefix) > MAX_PLACES:
        raise LimitExceeded(
            f"an item that must be found may be at over {MAX_PLACES} places of a counted array"
        )
    if shape.max is None:
        forms = [
            form(before, before, store.repeat(many, least - 1 - before, None))
            for before in range(least)
        ]
        forms.append(form(least, None, store.repeat(many, 0, None)))
    else:
        size = shape.max - prefix
        forms = [
            form(before, before, store.repeat(many, max(0, least - 1 - before), size - 1 - before))
            for before in range(size)
        ]
    items = [item(place, comma if i else lead) for i, place in enumerate(shape.prefix)]
    return int(store.concat([*items, store.union(forms), pieces.close("]", depth)]))
