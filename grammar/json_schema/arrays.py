"""Arrays: a shape as a rule.

The rule's body is what follows the opening bracket. Counts stay counts: `maxItems: 100000` is one
repeat, not a hundred thousand items. Cost: a handful of terms, and four a prefix item. Where items
are counted by what they are, or must differ, the rule is a template with counters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.json_schema.positions import ArrayShape, Position

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.rules import Lowering


def array_body(lowering: Lowering, shape: ArrayShape, depth: int) -> int:
    """The term of the text after `[`; `shape` is known to hold a value at this depth."""
    if shape.variants is not None:
        return _with_variants(lowering, shape, shape.variants, depth)
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
    term: Callable[[Position, int], int] = lowering.term
    if shape.unique is not None:
        most, term = _unique(lowering, shape, shape.unique, prefix, rest, most)
        if most is not None and most < shape.min:
            return int(store.NOTHING)
    lead, comma, close = pieces.first_lead(depth), pieces.comma(depth), pieces.close("]", depth)
    items = [store.concat([term(position, depth + 1), pieces.space]) for position in prefix]
    repeated = None
    if rest is not None and (most is None or most > len(prefix)):
        repeated = store.concat([term(rest, depth + 1), pieces.space])
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


def _unique(
    lowering: Lowering,
    shape: ArrayShape,
    pointer: str,
    prefix: list[Position],
    rest: Position | None,
    most: int | None,
) -> tuple[int | None, Callable[[Position, int], int]]:
    """How many items that differ there can be, and what makes the term of one.

    Raises:
        UnsupportedKeyword: some items may be used up before there are so many.
    """
    distinct = lowering.distinct
    counts = [distinct.item(position, pointer).size for position in prefix]
    short = any(count is not None and count <= i for i, count in enumerate(counts))
    if rest is not None and (most is None or most > len(prefix)):
        count = distinct.item(rest, pointer).size
        if count is not None and (most is None or most > count):
            most = count
            short = short or bool(prefix)
    if short:
        raise UnsupportedKeyword(
            "'uniqueItems' is not enforced yet where the first items leave too few for the others",
            pointer=pointer,
        )
    return most, lambda position, depth: distinct.item(position, pointer).term


def _with_variants(
    lowering: Lowering,
    shape: ArrayShape,
    variants: list[tuple[int | None, Position, tuple[int, ...], int | None]],
    depth: int,
) -> int:
    """Arrays whose items are claimed for duties, or have numbered values that may occur once.

    Counter 0 is the index of the next item, counter 1 + j what duty j has; bits are the values
    seen. The core leaves out what cannot end, since an alternative is NOTHING.
    """
    store, pieces = lowering.store, lowering.pieces
    lead, comma, close = pieces.first_lead(depth), pieces.comma(depth), pieces.close("]", depth)
    empty = store.EMPTY
    prefix = len(shape.prefix)
    cap = max(prefix, shape.min, shape.max or 0)
    last = cap if shape.max is None else shape.max - 1
    caps = [duty.least if duty.most is None else duty.most for duty in shape.duties]
    first, rest, item = store.rule("ITEMS"), store.rule("ITEMS"), store.rule("ITEM")
    written = []
    for index, position, claimed, number in variants:
        if not lowering.alive(position, depth + 1) or (index is not None and index > last):
            continue
        text = store.concat([_claimed(lowering, shape, position, depth + 1), pieces.space])
        low, high = (prefix, last) if index is None else (index, index)
        if low > high or any(shape.duties[j].most == 0 for j in claimed):
            continue
        conditions: list[Any] = [("between", 0, low, high)]
        updates: list[Any] = [("add", 0, 1, cap)]
        for j in claimed:
            if shape.duties[j].most is not None:
                conditions.append(("between", 1 + j, 0, caps[j] - 1))
            updates.append(("add", 1 + j, 1, caps[j]))
        if number is not None:
            conditions.append(("unseen", number))
            updates.append(("see", number))
        written.append((text, conditions, updates))
    done: list[Any] = [("between", 0, shape.min, cap)]
    done += [("between", 1 + j, duty.least, caps[j]) for j, duty in enumerate(shape.duties)]
    dead: Any = (store.NOTHING, -1, empty, [], [])
    may_be_empty = not shape.min and not any(duty.least for duty in shape.duties)
    store.define_template(
        first,
        [
            *([(pieces.close_bracket, -1, empty, [], [])] if may_be_empty else []),
            *(
                (store.concat([lead, text]), rest, empty, conditions, updates)
                for text, conditions, updates in written
            ),
        ],
    )
    store.define_template(rest, [(close, -1, empty, done, []), (comma, item, empty, [], []), dead])
    store.define_template(
        item, [(text, rest, empty, conditions, updates) for text, conditions, updates in written]
    )
    return int(store.call(first))


def _claimed(lowering: Lowering, shape: ArrayShape, position: Position, depth: int) -> int:
    """The term of an item of an array whose items are claimed for duties."""
    if shape.unique is None:
        return lowering.term(position, depth)
    item = lowering.distinct.item(position, shape.unique)
    if item.size is not None:
        raise UnsupportedKeyword(
            "'uniqueItems' beside 'contains' is enforced only where both leave no end of items",
            pointer=shape.unique,
        )
    return item.term
