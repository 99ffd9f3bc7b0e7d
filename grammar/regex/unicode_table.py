"""Unicode's properties and simple case folding, as ECMA-262 uses them: `\\p{…}` and the flag `i`.

The data is `unicode.json`, made by `generate_unicode`: Unicode 17.0, whatever the version of the
interpreter. It is read at the first question, which takes some 10 ms; a property's ranges are
unpacked when it is first asked for.

An *orbit* is a set of characters that simple case folding (CaseFolding.txt, C and S) takes to the
same one: `k`, `K` and the Kelvin sign.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TypedDict, cast

from grammaton.grammar.regex.ranges import Ranges, contains, unite

_CATEGORY_PREFIXES = ("General_Category=", "gc=")
_SCRIPT_PREFIXES = {"Script": "sc=", "sc": "sc=", "Script_Extensions": "scx=", "scx": "scx="}


class _Table(TypedDict):
    unicode: str
    aliases: dict[str, str]
    folding: list[list[int]]
    sets: dict[str, list[int]]


@cache
def _table() -> _Table:
    text = Path(__file__).with_name("unicode.json").read_text(encoding="ascii")
    return cast(_Table, json.loads(text))


def unicode_version() -> str:
    """The version of Unicode that the table has."""
    return _table()["unicode"]


@cache
def unicode_property(expression: str) -> Ranges | None:
    """The set that `\\p{expression}` names in ECMA-262 (section 22.2.1); None when it names none.

    Known are the general categories (bare, or after `General_Category=` or `gc=`), `Script=`,
    `Script_Extensions=` (`sc=`, `scx=`) and the binary properties of the standard, by the names
    and aliases that it lists, spelled as it spells them.
    """
    key, equals, value = expression.partition("=")
    if not equals:
        return _unpacked(key) or _unpacked("gc=" + key)
    if key + equals in _CATEGORY_PREFIXES:
        return _unpacked("gc=" + value)
    prefix = _SCRIPT_PREFIXES.get(key)
    if prefix is None:
        return None
    name = _table()["aliases"].get("sc=" + value, "sc=" + value)
    # A script without a set of its own for extensions has the same characters there.
    return (_unpacked("scx=" + name[3:]) if prefix == "scx=" else None) or _unpacked(name)


def property_names() -> list[str]:
    """The name of every set, and of every alias of one."""
    return [*_table()["sets"], *_table()["aliases"]]


def _unpacked(name: str) -> Ranges | None:
    table = _table()
    numbers = table["sets"].get(table["aliases"].get(name, name))
    if numbers is None:
        return None
    out = []
    at = 0
    for gap, length in zip(numbers[::2], numbers[1::2], strict=True):
        out.append((at + gap, at + gap + length - 1))
        at += gap + length
    return tuple(out)


def fold_orbits() -> list[list[int]]:
    """Every orbit of more than one character, each in ascending order."""
    return _table()["folding"]


@cache
def unicode_closure(ranges: Ranges) -> Ranges:
    """The set with every character that simple case folding takes to a member's folding."""
    more = [
        (point, point)
        for orbit in fold_orbits()
        if any(contains(ranges, point) for point in orbit)
        for point in orbit
    ]
    return unite(ranges, tuple(more))
