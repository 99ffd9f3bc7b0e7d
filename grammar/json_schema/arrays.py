"""Arrays: a shape as a rule.

The rule's body is what follows the opening bracket. Counts stay counts: `maxItems: 100000` is one
repeat, not a hundred thousand items. Cost: a handful of terms, and four a prefix item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammaton.grammar.json_schema.positions import ArrayShape

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.rules import Lowering


def array_body(lowering: Lowering, shape: ArrayShape, depth: int) -> int:
    """The term of the text after `[`; `shape` is known to hold a value at this depth."""
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
