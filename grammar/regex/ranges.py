"""Sets of code points as sorted ranges, and the named classes of the two dialects.

A *range set* is a tuple of inclusive `(low, high)` pairs, sorted, disjoint and not touching.
Python's classes that follow Unicode (`\\w`) are read off the running interpreter's own character
database at first use, one pass over all 1,114,112 code points (about 0.1 s), and then kept for the
life of the process. Operations on sets take time linear in their ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise

MAX_CODE_POINT = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

ANY: Ranges = ((0, MAX_CODE_POINT),)
ASCII_DIGITS: Ranges = ((0x30, 0x39),)
ASCII_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
ASCII_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ECMA_SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
"""WhiteSpace and LineTerminator of ECMA-262, sections 12.2 and 12.3 (Zs of Unicode 16 included)."""


_LARGE = 64
"""Ranges of a set from which on what it makes of others is worth keeping."""

_FAR_LARGER = 16
"""Times the ranges of another set from which on few of a set's ranges are looked at."""


def normalize(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorts ranges and merges those that overlap or touch."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out)


def invert(ranges: Ranges) -> Ranges:
    """Every code point outside a range set."""
    out = []
    start = 0
    for low, high in ranges:
        if start < low:
            out.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE_POINT:
        out.append((start, MAX_CODE_POINT))
    return tuple(out)


def unite(*sets: Ranges) -> Ranges:
    """Every code point of any of some range sets."""
    if len(sets) == 1:
        return sets[0]
    if any(len(each) > _LARGE for each in sets):
        return _united(sets)
    return normalize(pair for each in sets for pair in each)


@lru_cache(maxsize=64)
def _united(sets: tuple[Ranges, ...]) -> Ranges:
    return normalize(pair for each in sets for pair in each)


def intersect(first: Ranges, second: Ranges) -> Ranges:
    """Every code point of both range sets. Of a large and a small one, only ends are looked at."""
    few, many = (first, second) if len(first) < len(second) else (second, first)
    if len(few) * _FAR_LARGER < len(many):
        return tuple(pair for low, high in few for pair in _between(many, low, high))
    out = []
    at = other = 0
    while at < len(first) and other < len(second):
        low = max(first[at][0], second[other][0])
        high = min(first[at][1], second[other][1])
        if low <= high:
            out.append((low, high))
        if first[at][1] < second[other][1]:
            at += 1
        else:
            other += 1
    return tuple(out)


def _between(ranges: Ranges, low: int, high: int) -> Ranges:
    """What a range set has of the code points from `low` to `high`."""
    start = bisect_right(ranges, (low, MAX_CODE_POINT))
    if start and ranges[start - 1][1] >= low:
        start -= 1
    stop = bisect_right(ranges, (high, MAX_CODE_POINT))
    if start == stop:
        return ()
    first, last = ranges[start], ranges[stop - 1]
    if low <= first[0] and last[1] <= high:
        return ranges[start:stop]
    if start + 1 == stop:
        return ((max(low, first[0]), min(high, first[1])),)
    ends = (max(low, first[0]), first[1]), (last[0], min(high, last[1]))
    return (ends[0], *ranges[start + 1 : stop - 1], ends[1])


def contains(ranges: Ranges, point: int) -> bool:
    """Whether a code point is in a range set."""
    at = bisect_right(ranges, (point, MAX_CODE_POINT)) - 1
    return at >= 0 and point <= ranges[at][1]


def partition(sets: Iterable[Ranges]) -> list[Ranges]:
    """The coarsest partition of all code points of which each of `sets` is a union, in order.

    A set of n ranges adds at most 2 n + 1 runs; parts are few, since runs in the same sets are one.
    Large sets, as `\\w` is one, are few in number, so what they make together is kept.
    """
    distinct = dict.fromkeys(sets)
    small = _swept([ranges for ranges in distinct if len(ranges) <= _LARGE])
    large = _large_parts(tuple(ranges for ranges in distinct if len(ranges) > _LARGE))
    met = (intersect(part, other) for part in large for other in small)
    return sorted(part for part in met if part)


@lru_cache(maxsize=64)
def _large_parts(sets: tuple[Ranges, ...]) -> list[Ranges]:
    return _swept(sets)


def _swept(sets: Sequence[Ranges]) -> list[Ranges]:
    if not sets:
        return [ANY]
    edges: dict[int, int] = {0: 0}
    for number, ranges in enumerate(sets):
        for low, high in ranges:
            edges[low] = edges.get(low, 0) ^ (1 << number)
            edges[high + 1] = edges.get(high + 1, 0) ^ (1 << number)
    edges.setdefault(MAX_CODE_POINT + 1, 0)
    parts: dict[int, list[tuple[int, int]]] = {}
    member = 0
    places = sorted(edges)
    for low, following in pairwise(places):
        member ^= edges[low]
        parts.setdefault(member, []).append((low, following - 1))
    return [normalize(runs) for runs in parts.values()]


def _scan(member: Callable[[str], bool]) -> Ranges:
    flags = bytes(map(member, map(chr, range(MAX_CODE_POINT + 1))))
    out = []
    low = flags.find(1)
    while low >= 0:
        stop = flags.find(0, low)
        stop = len(flags) if stop < 0 else stop
        out.append((low, stop - 1))
        low = flags.find(1, stop)
    return tuple(out)


@cache
def python_digits() -> Ranges:
    """`\\d` of a Python str pattern: decimal digits of every script."""
    return _scan(str.isdecimal)


@cache
def python_space() -> Ranges:
    """`\\s` of a Python str pattern."""
    return _scan(str.isspace)


@cache
def python_word() -> Ranges:
    """`\\w` of a Python str pattern: letters and digits of every script, and the underscore."""
    return normalize((*_scan(str.isalnum), (0x5F, 0x5F)))
