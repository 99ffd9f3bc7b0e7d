"""Sets of code points as sorted ranges, and the named classes of the two dialects.

A *range set* is a tuple of inclusive `(low, high)` pairs, sorted, disjoint and not touching.
Classes that follow Unicode (`\\w` of Python, `\\p{Lu}` of ECMAScript) are read off the running
interpreter's own character database at first use, one pass over all 1,114,112 code points (about
0.1 s for a class of Python, 0.2 s for the first `\\p`), and then kept for the life of the process.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

MAX_CODE_POINT = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

ANY: Ranges = ((0, MAX_CODE_POINT),)
ASCII_DIGITS: Ranges = ((0x30, 0x39),)
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


# Unicode Character Database, PropertyValueAliases.txt, property gc.
_CATEGORY_NAMES = {
    "Other": "C",
    "Control": "Cc",
    "cntrl": "Cc",
    "Format": "Cf",
    "Unassigned": "Cn",
    "Private_Use": "Co",
    "Surrogate": "Cs",
    "Letter": "L",
    "Cased_Letter": "LC",
    "Lowercase_Letter": "Ll",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Titlecase_Letter": "Lt",
    "Uppercase_Letter": "Lu",
    "Mark": "M",
    "Combining_Mark": "M",
    "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Nonspacing_Mark": "Mn",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P",
    "punct": "P",
    "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd",
    "Close_Punctuation": "Pe",
    "Final_Punctuation": "Pf",
    "Initial_Punctuation": "Pi",
    "Other_Punctuation": "Po",
    "Open_Punctuation": "Ps",
    "Symbol": "S",
    "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk",
    "Math_Symbol": "Sm",
    "Other_Symbol": "So",
    "Separator": "Z",
    "Line_Separator": "Zl",
    "Paragraph_Separator": "Zp",
    "Space_Separator": "Zs",
}


@cache
def _categories() -> dict[str, Ranges]:
    runs: dict[str, list[tuple[int, int]]] = {}
    low = 0
    name = unicodedata.category(chr(0))
    for point in range(1, MAX_CODE_POINT + 1):
        other = unicodedata.category(chr(point))
        if other != name:
            runs.setdefault(name, []).append((low, point - 1))
            low, name = point, other
    runs.setdefault(name, []).append((low, MAX_CODE_POINT))
    return {name: tuple(ranges) for name, ranges in runs.items()}


def unicode_property(expression: str) -> Ranges | None:
    """The set that `\\p{expression}` names in ECMA-262 (section 22.2.1), None when it is unknown.

    Known are `Any`, `ASCII`, `Assigned` and every general category by its short or long name, bare
    or after `General_Category=` or `gc=`. Scripts and binary properties are not.
    """
    if expression == "Any":
        return ANY
    if expression == "ASCII":
        return ((0, 0x7F),)
    if expression == "Assigned":
        return invert(_categories()["Cn"])
    for prefix in ("General_Category=", "gc="):
        expression = expression.removeprefix(prefix)
    name = _CATEGORY_NAMES.get(expression, expression)
    categories = _categories()
    if name in categories:
        return categories[name]
    if name == "LC":
        members = ["Lu", "Ll", "Lt"]
    elif name in {"C", "L", "M", "N", "P", "S", "Z"}:
        members = [short for short in categories if short[0] == name]
    else:
        return None
    return normalize(pair for member in members for pair in categories[member])
