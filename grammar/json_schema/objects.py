"""Objects: a shape as two rules, whose parameter remembers what has been written.

    MEMBER   after `{` or a comma: a member
    MEMBERS  after a member: the closing brace, or a comma and MEMBER

A member is its key, colon and value, and goes on with MEMBERS under a new parameter. In schema
order the parameter is the index of the next property: property i may come next when the index is at
most i and no required property lies between. In any order it is the set of properties seen. Where
it matters the parameter counts the properties that are not required, too (`minProperties`), and
keeps count of the choices that are kept (kept.py). The rules are data (`define_template`), so an
object of n properties costs about 3n terms in both orders, whatever the number of subsets; the core
makes the bodies of the parameters it meets.

Keys are compared after unescaping; the key of another property is any text but the declared keys,
so a declared property can be neither repeated nor smuggled in under an escape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.json_schema.kept import ClauseCounters, Kept
from grammaton.grammar.json_schema.key_sorts import put_together
from grammaton.grammar.json_schema.positions import ObjectShape, Position
from grammaton.grammar.json_schema.strings import KeySort

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.rules import Lowering


def object_term(lowering: Lowering, shape: ObjectShape, depth: int) -> int:
    """The term of an object; `shape` is known to hold a value at this depth."""
    pieces = lowering.pieces
    highest = lowering.highest(depth + 1)
    others = [(sort, position) for sort, position in shape.others if position.height <= highest]
    keys = [key for key, position in shape.properties.items() if position.height <= highest]
    if shape.is_full:
        keys, others = [key for key in keys if key in shape.required], []
    if not keys and not others:
        return int(lowering.store.concat([pieces.open("{"), pieces.close_brace]))
    store = lowering.store
    rule = store.rule("MEMBER" if keys or shape.duties or shape.kept is not None else "MEMBERS")
    lowering.later(lambda: _define(lowering, shape, depth, rule, keys, others))
    may_be_empty = not (shape.required or shape.min or shape.duties)
    param = 0
    if shape.kept is not None:
        clauses = _counters(lowering, shape.kept, depth, keys)
        param = store.param(counters=(0, 0, *clauses.start()))
        may_be_empty = may_be_empty and clauses.holds_at_first
    members = store.call(rule, param)
    if shape.counts_others and others:
        scope = store.rule("OBJECT")
        store.scope(scope)
        store.define(scope, members)
        members = store.call(scope)
    inside = store.concat([pieces.first_lead(depth), members])
    if may_be_empty:
        inside = store.union([pieces.close_brace, inside])
    return int(store.concat([pieces.open("{"), inside]))


def _define(
    lowering: Lowering,
    shape: ObjectShape,
    depth: int,
    rule: int,
    keys: list[str],
    others: list[tuple[KeySort, Position]],
) -> None:
    store, pieces = lowering.store, lowering.pieces
    quote, quote_colon, space = pieces.quote, pieces.quote_colon, pieces.space
    concat, term, literal = store.concat, lowering.term, pieces.literal
    values = [term(shape.properties[key], depth + 1) for key in keys]
    spelled = [literal(key) for key in keys]
    members = store.members(spelled, values, quote, quote_colon, space)
    differing = None
    if shape.counts_others and others:
        differing = _distinct_keys(lowering, shape, others)

    def key_of(sort: KeySort) -> int:
        if differing is not None:
            return differing(sort)
        return int(concat([quote, lowering.strings.key_rest(sort)]))

    def written(sorts: list[tuple[KeySort, Position]]) -> list[int]:
        return [
            concat(
                [
                    *(key_of(sort), pieces.colon),
                    *(term(position, depth + 1), space),
                ]
            )
            for sort, position in sorts
        ]

    overlap = any(len(sort.found) > 1 for sort, _ in others)
    if overlap and differing is None and not shape.claimed and shape.kept is None:
        others = _alike_together(lowering, shape, depth)
    undeclared = written(others)
    index = {key: i for i, key in enumerate(keys)}
    # Each member as it is and as it may be claimed to be: (term, conditions, updates).
    variants: list[list[_Variant]] = [[(member, [], [])] for member in members]
    free: list[_Variant] = [(member, [], []) for member in undeclared]
    for place, position, duties in shape.claimed:
        if not lowering.alive(position, depth + 1):
            continue
        if isinstance(place, KeySort):
            if shape.is_full:
                continue
            free.append((written([(place, position)])[0], [], _claims(duties)))
        elif place in index:
            value = term(position, depth + 1)
            claimed = concat([quote, literal(place), quote_colon, value, space])
            variants[index[place]].append((claimed, [], _claims(duties)))
    kept = shape.kept
    clauses = None
    if kept is not None:
        clauses = _counters(lowering, kept, depth, keys)
        for key, classes in kept.members.items():
            if key in index:
                variants[index[key]] = [
                    (concat([quote, literal(key), quote_colon, value, space]), *rest)
                    for position, effect in classes
                    if lowering.alive(position, depth + 1)
                    for value in [term(position, depth + 1)]
                    for rest in clauses.written(key, effect)
                ]
        free = [
            (written([(sort, position)])[0], *rest)
            for sort, position, effect in kept.others
            if lowering.alive(position, depth + 1)
            for rest in clauses.written(None, effect)
        ]
        if not lowering.any_order:
            *before, after = clauses.passed(keys)
            variants = [
                [(member, [*passed, *conditions], updates) for member, conditions, updates in some]
                for passed, some in zip(before, variants, strict=True)
            ]
            free = [(other, [*after, *conditions], updates) for other, conditions, updates in free]
    required = [i for i, key in enumerate(keys) if key in shape.required]
    found = [("between", 2 + j, 1, 1) for j in range(len(shape.duties))]
    least = max(0, shape.min - len(required))
    most = None if shape.max is None else shape.max - len(required)
    if not members and not found and clauses is None:
        _define_uniform(lowering, rule, store.union(undeclared), depth, least, most)
        return
    count = _Count(least, most, len(members) - len(required), bool(undeclared))
    order = _any_order if lowering.any_order else _in_order
    if lowering.any_order:
        store.unordered(rule)
    alternatives, ended, more = order(variants, required, free, count)
    if clauses is not None:
        found = clauses.ended()
    _define_rules(lowering, depth, rule, alternatives, [*ended, *found], more, bool(found))


def _alike_together(
    lowering: Lowering, shape: ObjectShape, depth: int
) -> list[tuple[KeySort, Position]]:
    """The sorts of undeclared keys, those with the same values together (key_sorts.py)."""
    alike: dict[object, int] = {None: 0}
    places: list[Position | None] = [None]
    sorts = []
    for sort, position in shape.others:
        said: object = None
        if lowering.alive(position, depth + 1):
            said = position.simple
            if said is None and position.expanded:
                said = (frozenset(position.scalars), *map(id, position.shapes))
            elif said is None:
                said = position
        number = alike.setdefault(said, len(places))
        if number == len(places):
            places.append(position)
        sorts.append((sort, number))
    together = [(sort, places[number]) for sort, number in put_together(sorts)]
    return [(sort, position) for sort, position in together if position is not None]


def _counters(lowering: Lowering, kept: Kept, depth: int, keys: list[str]) -> ClauseCounters:
    """The counters of the clauses of a shape with these keys."""
    supports = kept.supports(lambda position: lowering.alive(position, depth + 1))
    return ClauseCounters(supports, 2, len(keys))


def _distinct_keys(
    lowering: Lowering, shape: ObjectShape, others: list[tuple[KeySort, Position]]
) -> Callable[[KeySort], int]:
    """Keys of undeclared properties that differ from each other.

    Raises:
        UnsupportedKeyword: there is an end of them.
    """
    kinds = [sort for sort, _ in others]
    kinds += [place for place, _, _ in shape.claimed if isinstance(place, KeySort)]
    regular = not any(sort.irregular for sort in kinds)
    counts = [lowering.distinct.key(sort).size for sort in kinds] if regular else []
    # What must be found must not be used up; for a count, one sort without end is enough.
    ends = any if shape.found else all
    if not regular or ends(count is not None for count in counts):
        raise UnsupportedKeyword(
            "what is said of properties that are not declared is enforced only where their keys "
            "are a regular language, and there is no end of them",
            pointer=shape.counted,
        )
    return lambda sort: lowering.distinct.key(sort).term


def _define_uniform(
    lowering: Lowering,
    rule: int,
    member: int,
    depth: int,
    least: int,
    most: int | None,
) -> None:
    """Objects without declared properties: nothing to remember but how many there are."""
    store, pieces = lowering.store, lowering.pieces
    following = store.concat([pieces.comma(depth), member])
    left = None if most is None else most - 1
    more = store.repeat(following, max(0, least - 1), left)
    store.define(rule, store.concat([member, more, pieces.close("}", depth)]))


class _Count:
    """Conditions on how many properties that are not required an object has; counter 1.

    Args:
        least, most: how many it must and may have.
        optional: how many declared ones there are; open: whether there are undeclared ones.
    """

    def __init__(self, least: int, most: int | None, optional: int, is_open: bool) -> None:
        self.least = least
        self.most = most
        self.is_open = is_open
        self.matters = least > 0 or (most is not None and (is_open or most < optional))
        self._cap = max(least, most or 0, 0 if is_open else optional)

    def taken(self) -> list[Any]:
        """The update for one more."""
        return [("add", 1, 1, self._cap)] if self.matters else []

    def may_take(self) -> list[Any]:
        """One more may follow."""
        if not self.matters or self.most is None:
            return []
        return [("between", 1, 0, self.most - 1)]

    def enough(self, to_come: int = 0) -> list[Any]:
        """With so many to come there can be as many as there must."""
        missing = self.least - to_come
        return [("between", 1, missing, self._cap)] if missing > 0 else []


_Variant = tuple[int, list[Any], list[Any]]

_Rules = tuple[list[Any], list[Any], list[list[Any]]]
"""Alternatives (member, conditions, updates); when the object may end; when more may follow."""


def _claims(duties: tuple[int, ...]) -> list[Any]:
    """The updates for what a member is claimed to be; counter 2 + j says so of duty j."""
    return [("set", 2 + j, 1) for j in duties]


def _in_order(
    members: list[list[_Variant]], required: list[int], others: list[_Variant], count: _Count
) -> _Rules:
    size = len(members)
    last = required[-1] if required else -1
    needed = frozenset(required)
    optional = [i for i in range(size) if i not in needed]
    to_come = len(optional)
    alternatives: list[Any] = []
    least = 0
    for i, variants in enumerate(members):
        conditions: list[Any] = [("between", 0, least, i)]
        updates: list[Any] = [("set", 0, i + 1)]
        if i in needed:
            least = i + 1
            conditions += [] if count.is_open else count.enough(to_come)
        else:
            # Taking this one leaves as many to come as skipping up to it did.
            conditions += count.may_take()
            conditions += [] if count.is_open else count.enough(to_come)
            updates += count.taken()
            to_come -= 1
        for member, more_conditions, more_updates in variants:
            alternatives.append(
                (member, [*conditions, *more_conditions], [*updates, *more_updates])
            )
    after = ("between", 0, last + 1, size)
    for other, conditions, updates in others:
        updates = [("set", 0, size), *count.taken(), *updates]
        alternatives.append((other, [after, *count.may_take(), *conditions], updates))
    more: list[list[Any]] = []
    if others:
        more.append(count.may_take())
    elif optional:
        more.append([("between", 0, 0, optional[-1]), *count.may_take()])
    if required and more != [[]]:
        more.append([("between", 0, 0, last)])
    return alternatives, [after, *count.enough()], more


def _any_order(
    members: list[list[_Variant]], required: list[int], others: list[_Variant], count: _Count
) -> _Rules:
    """Counter 0 counts the required properties that are there."""
    needed = frozenset(required)
    count.matters = count.matters or not others
    seen = [("add", 0, 1, len(required))] if count.may_take() or not others else []
    alternatives: list[Any] = []
    for i, variants in enumerate(members):
        conditions: list[Any] = [("unseen", i)]
        updates: list[Any] = [("see", i)]
        if i in needed:
            updates += seen
        else:
            conditions += count.may_take()
            updates += count.taken()
        for member, more_conditions, more_updates in variants:
            alternatives.append(
                (member, [*conditions, *more_conditions], [*updates, *more_updates])
            )
    for other, conditions, updates in others:
        alternatives.append((other, [*count.may_take(), *conditions], [*count.taken(), *updates]))
    more: list[list[Any]] = []
    optional = len(members) - len(required)
    if others:
        more.append(count.may_take())
    elif optional:
        most = optional if count.most is None else min(optional, count.most)
        if most:
            more.append([("between", 1, 0, most - 1)])
    if required and more != [[]]:
        more.append([("between", 0, 0, len(required) - 1)])
    ended = [("all_seen", tuple(required))] if required else []
    return alternatives, [*ended, *count.enough()], more


def _define_rules(
    lowering: Lowering,
    depth: int,
    rule: int,
    alternatives: list[Any],
    ended: list[Any],
    more: list[list[Any]],
    claiming: bool,
) -> None:
    """The two rules; see `_Rules`."""
    store, pieces = lowering.store, lowering.pieces
    empty = store.EMPTY
    rest = store.rule("MEMBERS")
    close, comma = pieces.close("}", depth), pieces.comma(depth)
    goes_on = [
        (member, rest, empty, conditions, updates) for member, conditions, updates in alternatives
    ]
    # Claims may lead to where the others can't be met any more; an alternative that is NOTHING asks
    # the core to leave out what cannot end.
    dead: list[Any] = [(store.NOTHING, -1, empty, [], [])] if claiming else []
    store.define_template(
        rest,
        [
            *dead,
            (close, -1, empty, ended, []),
            *[(comma, rule, empty, conditions, []) for conditions in more],
        ],
    )
    store.define_template(rule, goes_on)
