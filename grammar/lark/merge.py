"""Rules that say the same are made one.

Look-around multiplies rules by the surroundings in which they stand (context.py), and many of the
copies differ in nothing: what begins with a parenthesis does not care what is before it. Rules are
*equal* when their bodies are, mentions of equal rules being equal: the coarsest such partition,
found by refining. What is left is fewer rules to lower, and fewer stacks to follow. A rule that is
nothing but another one is that one. Attributes belong to a name, so rules that have some stay.

Cost: n log n in the mentions, 10 ms for a thousand rules.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from grammaton.grammar.ebnf_nodes import (
    Alt,
    Indent,
    Node,
    Ref,
    Repeat,
    Rule,
    Rules,
    Seq,
    Without,
    mapped,
    mentions,
)


def merge_equal(rules: Rules, start: str) -> tuple[Rules, str]:
    """The rules that `start` needs without their twins, and the name of the start among them."""
    by_name = rules.by_name
    stands_for = _aliases(by_name)
    start = stands_for.get(start, start)
    needed = [start]
    found = {start}
    shapes: dict[str, Hashable] = {}
    refs: dict[str, list[str]] = {}
    for name in needed:
        rule = by_name[name]
        shape = _shape(rule.body)
        shapes[name] = shape if rule.attributes is None else (name, shape)
        refs[name] = [stands_for.get(ref.name, ref.name) for ref in mentions(rule.body)]
        for other in refs[name]:
            if other not in found:
                found.add(other)
                needed.append(other)
    part = _refined(needed, shapes, refs)
    first: dict[int, str] = {}
    for name in by_name:  # the first twin in order stands for all
        if name in found:
            first.setdefault(part[name], name)
    renamed = {name: first[part[name]] for name in needed}
    renamed |= {name: renamed[other] for name, other in stands_for.items() if other in renamed}
    merged = Rules()
    for name, rule in by_name.items():
        if name in found and renamed[name] == name:
            merged.add(replace(rule, body=_renamed(rule.body, renamed)))
    return merged, renamed[start]


def _aliases(by_name: Mapping[str, Rule]) -> dict[str, str]:
    """What each rule stands for that is nothing but another one."""
    direct = {
        name: rule.body.name
        for name, rule in by_name.items()
        if isinstance(rule.body, Ref) and rule.attributes is None
    }
    resolved: dict[str, str] = {}
    for name in direct:
        path: dict[str, None] = {}
        end = name
        while end in direct and end not in path and end not in resolved:
            path[end] = None
            end = direct[end]
        if end in path:  # they go in a circle, and none has a text
            continue
        end = resolved.get(end, end)
        resolved.update(dict.fromkeys(path, end))
    return resolved


def _refined(
    names: list[str], shapes: Mapping[str, Hashable], refs: Mapping[str, list[str]]
) -> dict[str, int]:
    """The number of each rule's part: equal for equal rules."""
    numbers: dict[Hashable, int] = {}
    part = {name: numbers.setdefault(shapes[name], len(numbers)) for name in names}
    members: list[set[str]] = [set() for _ in numbers]
    users: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    for name in names:
        members[part[name]].add(name)
        for place, ref in enumerate(refs[name]):
            users[ref].append((place, name))
    # What a part tells apart is looked at once for each time that it is not the largest of those
    # that an older one was split into (Hopcroft).
    queue = list(range(len(members)))
    while queue:
        places: dict[str, list[int]] = {}
        for name in members[queue.pop()]:
            for place, user in users[name]:
                places.setdefault(user, []).append(place)
        touched: dict[int, dict[tuple[int, ...], list[str]]] = {}
        for user, found in places.items():
            signs = touched.setdefault(part[user], {})
            signs.setdefault(tuple(sorted(found)), []).append(user)
        for old, signs in touched.items():
            pieces = list(signs.values())
            if len(pieces) == 1 and len(pieces[0]) == len(members[old]):
                continue
            for piece in pieces:
                members[old].difference_update(piece)
            # What is left mentions nothing of it, and may be far more than was touched.
            largest = max(pieces, key=len)
            if len(members[old]) < len(largest):
                pieces.remove(largest)
                pieces += [list(members[old])] if members[old] else []
                members[old] = set(largest)
            for piece in pieces:
                queue.append(len(members))
                part.update(dict.fromkeys(piece, len(members)))
                members.append(set(piece))
    return part


def _shape(node: Node) -> Hashable:
    """A node without what its mentions mention."""
    match node:
        case Ref():
            return Ref
        case Seq(parts):
            return Seq, *map(_shape, parts)
        case Alt(branches):
            return Alt, *map(_shape, branches)
        case Repeat(body, low, high):
            return Repeat, _shape(body), low, high
        case Without(body, removed):
            return Without, _shape(body), _shape(removed)
        case Indent(_, tab, most):
            return Indent, tab, most
    return node


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if isinstance(node, Ref):
        return node if names[node.name] == node.name else replace(node, name=names[node.name])
    return mapped(node, lambda part: _renamed(part, names))
