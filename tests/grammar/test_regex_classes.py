"""Character classes, over every code point there is."""

from __future__ import annotations

import re
import unicodedata
from random import Random
from typing import Any

import pytest

from grammaton import GrammarError
from grammaton._core import TermStore
from grammaton.grammar.regex import pattern_term
from grammaton.grammar.regex.ecma import EcmaParser
from grammaton.grammar.regex.nodes import Chars
from grammaton.grammar.regex.python import PythonParser
from grammaton.grammar.regex.ranges import Ranges, intersect, invert, normalize
from grammaton.grammar.regex.unicode_table import (
    property_names,
    unicode_property,
    unicode_version,
)

ALL_TEXT = "".join(map(chr, range(0x110000)))


def found(pattern: str, flags: int = 0, *, engine: Any = re, text: str = ALL_TEXT) -> Ranges:
    """What a class of `re` (or of a module like it) matches, of a text of every code point."""
    return normalize(
        (match.start(), match.end() - 1)
        for match in engine.finditer(f"(?:{pattern})+", text, flags)
    )


def difference(one: Ranges, other: Ranges) -> int:
    """How many code points are in just one of two sets."""
    apart = (*intersect(one, invert(other)), *intersect(other, invert(one)))
    return sum(high - low + 1 for low, high in apart)


def parsed(node: object) -> Ranges:
    """The ranges of a pattern that is one class."""
    assert isinstance(node, Chars)
    return node.ranges


def ecma(pattern: str, flags: str = "") -> Ranges:
    """The ranges of a class of ECMA-262."""
    return parsed(EcmaParser(pattern, flags).parse())


def named(name: str) -> Ranges:
    """The ranges of a property that there is."""
    ranges = unicode_property(name)
    assert ranges is not None
    return ranges


@pytest.mark.parametrize(
    "pattern",
    [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", r"[\w-]", r"[^\w\s]", r"[^\D1-5]", r"[\S\s]"],
)
@pytest.mark.parametrize("flags", ["", "a", "s"])
def test_python_classes_equal_those_of_re(pattern: str, flags: str) -> None:
    expected = found(pattern, sum(re.RegexFlag[flag.upper()] for flag in flags))
    assert parsed(PythonParser(pattern, flags).parse()) == expected


@pytest.mark.parametrize(
    ("pattern", "in_python"),
    [
        (r"\d", "[0-9]"),
        (r"\D", "[^0-9]"),
        (r"\w", "[A-Za-z0-9_]"),
        (r"\W", "[^A-Za-z0-9_]"),
        (".", "[^\n\r\u2028\u2029]"),
        ("[^]", r"[\s\S]"),
    ],
)
def test_ecma_classes(pattern: str, in_python: str) -> None:
    assert ecma(pattern) == found(in_python)


def test_ecma_space_is_white_space_and_line_terminators() -> None:
    others = [(ord(char), ord(char)) for char in "\t\n\v\f\r\u2028\u2029\ufeff"]
    assert ecma(r"\s") == normalize((*named("Zs"), *others))
    assert ecma(r"\S") == invert(ecma(r"\s"))


@pytest.mark.parametrize(
    ("names", "categories"),
    [
        (("L", "Letter", "gc=L", "General_Category=Letter"), "Lu Ll Lt Lm Lo"),
        (("LC", "Cased_Letter"), "Lu Ll Lt"),
        (("Nd", "Decimal_Number", "digit"), "Nd"),
        (("P", "Punctuation", "punct"), "Pc Pd Ps Pe Pi Pf Po"),
        (("Zs", "Space_Separator"), "Zs"),
    ],
)
def test_general_categories(names: tuple[str, ...], categories: str) -> None:
    """Those of the interpreter's database, where it has the character; a few dozen characters
    changed their category since."""
    wanted = categories.split()
    expected = normalize(
        (point, point)
        for point, char in enumerate(ALL_TEXT)
        if unicodedata.category(char) in wanted
    )
    known = normalize(
        (point, point) for point, char in enumerate(ALL_TEXT) if unicodedata.category(char) != "Cn"
    )
    for name in names:
        assert difference(intersect(named(name), known), expected) < 30


@pytest.mark.parametrize(
    "name",
    [
        *("Lu", "Nd", "Sc", "Cf", "Script=Latin", "sc=Grek", "scx=Deva", "Script_Extensions=Han"),
        *("sc=Cyrl", "sc=Zyyy", "Alphabetic", "Uppercase", "White_Space", "Emoji", "ID_Start"),
        *("Extended_Pictographic", "Math", "Dash", "Hex_Digit", "Ideographic", "Cased"),
        *("Bidi_Mirrored", "Quotation_Mark", "XID_Continue", "Grapheme_Extend"),
    ],
)
def test_properties_equal_those_of_the_regex_package(name: str) -> None:
    """Of the characters that are assigned here, all but a few, as that package's Unicode may be
    another version."""
    regex = pytest.importorskip("regex")
    assigned = invert(named("Cn"))
    theirs = found(rf"\p{{{name}}}", engine=regex)
    assert difference(intersect(theirs, assigned), intersect(named(name), assigned)) <= 4


def test_every_name_of_the_table_is_a_property() -> None:
    names = property_names()
    assert len(names) > 500
    assert all(unicode_property(name) for name in names)
    assert unicode_property("Script=Latin") == unicode_property("sc=Latn")
    assert unicode_property("Script_Extensions=Latin") != unicode_property("sc=Latn")
    assert unicode_version() == "17.0"


def test_unknown_properties() -> None:
    for name in ("Latin", "Xx", "", "lu", "gc=", "gc=Any", "sc=latn", "Script", "gc=Latin", "sets"):
        assert unicode_property(name) is None
    with pytest.raises(GrammarError, match="unknown Unicode property Script=Klingon"):
        pattern_term(TermStore(), r"^\p{Script=Klingon}$")


@pytest.mark.parametrize("flags", ["i", "ia"])
def test_case_is_folded_as_re_folds_it(flags: str) -> None:
    """Below U+10000: beyond it, `re` misses some members of classes of several (`[𐐀x]`)."""
    rng = Random(0)
    text = ALL_TEXT[:0x10000]
    of_re = sum(re.RegexFlag[flag.upper()] for flag in flags)
    for _ in range(40):
        low = rng.choice((0x20, 0x100, 0x370, 0x400, 0x1E00, 0x2100, 0xA640, 0xFF20))
        low += rng.randrange(0x60)
        high = low + rng.choice((0, 0, 1, 40))
        for pattern in (f"[\\u{low:04x}-\\u{high:04x}]", f"[^\\u{high:04x}]", f"\\u{low:04x}"):
            ranges = parsed(PythonParser(pattern, flags).parse())
            assert intersect(ranges, ((0, 0xFFFF),)) == found(pattern, of_re, text=text), pattern


def test_ecma_case_is_simple_folding() -> None:
    def points(text: str) -> Ranges:
        return normalize((ord(char), ord(char)) for char in text)

    assert ecma("k", "i") == points("kK\u212a")
    assert ecma("[^k]", "i") == invert(points("kK\u212a"))
    assert ecma("ß", "i") == points("ß\u1e9e")
    assert ecma("i", "i") == points("iI")
    assert ecma(r"\w", "i") == normalize((*ecma(r"\w"), *points("\u017f\u212a")))
    assert ecma(r"\W", "i") == invert(ecma(r"\w", "i"))
    assert intersect(ecma(r"\p{Lu}", "i"), points("azé1")) == points("azé")


def test_ranges() -> None:
    assert normalize([(5, 9), (1, 2), (3, 3), (8, 20), (30, 30)]) == ((1, 3), (5, 20), (30, 30))
    assert invert(()) == ((0, 0x10FFFF),)
    assert invert(((0, 0x10FFFF),)) == ()
    assert invert(((3, 5),)) == ((0, 2), (6, 0x10FFFF))
