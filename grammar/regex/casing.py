"""What the flag `i` of Python's `re` makes of a set of characters.

`re` matches a character c against a set by lowering c: it matches when `lower(c)` is `lower(m)` for
a member m, or one of the other lower-case characters with the same upper case as that (`s` and
`ſ`). With the flag `a` only ASCII letters have a case. The relation follows the interpreter's
character database, as `re` does; finding it takes a pass over all code points, some 0.2 s, once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache

from grammaton.grammar.regex.ranges import MAX_CODE_POINT, Ranges, contains, normalize

_ASCII_LETTERS = [(0x41 + at, 0x61 + at) for at in range(26)]


def _lower(char: str) -> str:
    """Simple lower case: that of U+0130 is the first of the two characters that `lower` gives."""
    return char.lower()[0]


@cache
def _kin() -> dict[int, set[int]]:
    """For each character with a case, in order, those that match a set because it is a member."""
    same_upper: dict[str, set[str]] = {}
    lowering: dict[str, set[int]] = {}
    with_case = [
        char
        for char in map(chr, range(MAX_CODE_POINT + 1))
        if char.lower() != char or char.upper() != char
    ]
    for char in with_case:
        same_upper.setdefault(char.upper(), set()).add(_lower(char))
        lowering.setdefault(_lower(char), set()).add(ord(char))
    friends: dict[str, set[str]] = {}
    for lowers in same_upper.values():
        if len(lowers) > 1:
            for lower in lowers:
                friends.setdefault(lower, set()).update(lowers)
    kin: dict[int, set[int]] = {}
    for lower, points in lowering.items():
        for other in friends.get(lower, {lower}):
            for member in lowering.get(other, ()):
                kin.setdefault(member, {member}).update(points)
    return dict(sorted(kin.items()))


@cache
def _members() -> list[int]:
    return list(_kin())


@cache
def python_closure(ranges: Ranges, ascii_only: bool) -> Ranges:
    """The characters that match a set under `i` (and `a`, when `ascii_only`)."""
    if ascii_only:
        more = [
            (point, point)
            for pair in _ASCII_LETTERS
            if any(contains(ranges, point) for point in pair)
            for point in pair
        ]
        return normalize((*ranges, *more))
    members = _members()
    found: set[int] = set()
    for low, high in ranges:
        for member in members[bisect_left(members, low) : bisect_right(members, high)]:
            found |= _kin()[member]
    return normalize((*ranges, *((point, point) for point in found)))
