"""Character classes, over every code point there is."""

from __future__ import annotations

import re
import unicodedata

import pytest

from grammaton import GrammarError
from grammaton._core import TermStore
from grammaton.grammar.regex import pattern_term
from grammaton.grammar.regex.ecma import EcmaParser
from grammaton.grammar.regex.nodes import Chars
from grammaton.grammar.regex.python import PythonParser
from grammaton.grammar.regex.ranges import Ranges, invert, normalize, unicode_property

EVERY = [chr(point) for point in range(0x110000)]
ALL_TEXT = "".join(EVERY)


def members(ranges: Ranges) -> set[str]:
    """The characters of a range set."""
    return {char for low, high in ranges for char in EVERY[low : high + 1]}


def parsed(node: object) -> Ranges:
    """The ranges of a pattern that is one class."""
    assert isinstance(node, Chars)
    return node.ranges


@pytest.mark.parametrize(
    "pattern",
    [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", r"[\w-]", r"[^\w\s]", r"[^\D1-5]", r"[\S\s]"],
)
def test_python_classes_equal_those_of_re(pattern: str) -> None:
    assert members(parsed(PythonParser(pattern).parse())) == set(re.findall(pattern, ALL_TEXT))


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
    assert members(parsed(EcmaParser(pattern).parse())) == set(re.findall(in_python, ALL_TEXT))


def test_ecma_space_is_white_space_and_line_terminators() -> None:
    zs = {char for char in EVERY if unicodedata.category(char) == "Zs"}
    expected = zs | set("\t\n\v\f\r\u2028\u2029\ufeff")
    assert members(parsed(EcmaParser(r"\s").parse())) == expected
    assert members(parsed(EcmaParser(r"\S").parse())) == set(EVERY) - expected


@pytest.mark.parametrize(
    ("names", "categories"),
    [
        (("L", "Letter", "gc=L", "General_Category=Letter"), "Lu Ll Lt Lm Lo"),
        (("LC", "Cased_Letter"), "Lu Ll Lt"),
        (("Nd", "Decimal_Number", "digit"), "Nd"),
        (("P", "Punctuation", "punct"), "Pc Pd Ps Pe Pi Pf Po"),
        (("C", "Other"), "Cc Cf Cs Co Cn"),
        (("Zs", "Space_Separator"), "Zs"),
    ],
)
def test_general_categories(names: tuple[str, ...], categories: str) -> None:
    wanted = categories.split()
    expected = {char for char in EVERY if unicodedata.category(char) in wanted}
    for name in names:
        ranges = unicode_property(name)
        assert ranges is not None
        assert members(ranges) == expected


def test_unknown_properties() -> None:
    for name in ("Latin", "Script=Latin", "Xx", "", "lu", "gc=", "gc=Any"):
        assert unicode_property(name) is None
    with pytest.raises(GrammarError, match="Script=Latin is not supported"):
        pattern_term(TermStore(), r"^\p{Script=Latin}$")


def test_ranges() -> None:
    assert normalize([(5, 9), (1, 2), (3, 3), (8, 20), (30, 30)]) == ((1, 3), (5, 20), (30, 30))
    assert invert(()) == ((0, 0x10FFFF),)
    assert invert(((0, 0x10FFFF),)) == ()
    assert invert(((3, 5),)) == ((0, 2), (6, 0x10FFFF))
