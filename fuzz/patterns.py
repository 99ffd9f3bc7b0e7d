"""Target `patterns`: regular expressions of Python's dialect, right and broken, against `re`.

A case is a pattern and some texts. Patterns are drawn together with a text that they match
(anchors taken for granted), and half of them are then mutated, so that most of those are broken or
mean something else. Where both `re` and `Grammar.from_regex` take a pattern, they must agree on
every text. Where ours refuses it, that must be an error that says where; it may refuse what `re`
takes (back references, say), but never take what `re` refuses.

Texts are at most 7 characters long: `re` backtracks, exponentially on some patterns.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from random import Random

from grammaton.errors import GrammarError, LimitExceeded
from grammaton.fuzz.target import Case, Fault, Target, mutate_text, without_parts
from grammaton.grammar.grammar import Grammar

_TEXT = "aab1_é漢😀 -\n"
_SYNTAX = [
    *"ab1(|)[]{}*+?^$\\-,.:P<>=!#dDwWsSbBnxuNiZ0é",
    *(
        "(?",
        "(?:",
        "(?P<n>",
        "{2,",
        "\\x6",
        "[^",
        "(?=",
        "(?!",
        "(?<=",
        "(?<!",
        "(?>",
        "(?i",
        "(?#",
    ),
]
_NAMED = {"d": "17٣", "D": "ab é", "w": "ab1_é漢", "W": " -\n", "s": " \n\u2028", "S": "ab漢"}
_COUNTS = [("?", 0, 1), ("*", 0, 2), ("+", 1, 2), ("{2}", 2, 2), ("{1,2}", 1, 2), ("{2,}", 2, 3)]
_FLAGS = ("i", "m", "s", "a", "im", "ms", "x", "u", "-i", "m-s", "i-x")
_LONGEST = 7


_Piece = Callable[[Random, int], tuple[str, str]]


def draw_pattern(rng: Random, depth: int = 3) -> tuple[str, str]:
    """A pattern with at most `depth` levels of groups, and a text that it matches or nearly so."""
    parts = [_piece(rng, depth) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
    return "".join(pattern for pattern, _ in parts), "".join(text for _, text in parts)


def _piece(rng: Random, depth: int) -> tuple[str, str]:
    kinds = [_char, _char, _class, _named, _anchor, _comment]
    kinds += [_group, _repeat, _group, _repeat, _look] * (depth > 0)
    return rng.choice(kinds)(rng, depth)


def _char(rng: Random, depth: int) -> tuple[str, str]:
    char = rng.choice(_TEXT)
    spellings = [re.escape(char), re.escape(char), ".", f"\\U{ord(char):08x}"]
    return rng.choice(spellings), char if rng.random() < 0.9 else char.swapcase()


def _named(rng: Random, depth: int) -> tuple[str, str]:
    letter = rng.choice("dDwWsS")
    return "\\" + letter, rng.choice(_NAMED[letter])


def _anchor(rng: Random, depth: int) -> tuple[str, str]:
    return rng.choice(("^", "$", "\\A", "\\Z", "\\b", "\\b", "\\B")), ""


def _comment(rng: Random, depth: int) -> tuple[str, str]:
    return rng.choice(("(?#a)", "#")), ""


def _class(rng: Random, depth: int) -> tuple[str, str]:
    items, text = "", ""
    for _ in range(rng.randint(1, 3)):
        low, high = sorted(rng.choices(_TEXT, k=2))
        item, text = rng.choice(
            [
                (re.escape(low), low),
                (f"{re.escape(low)}-{re.escape(high)}", high),
                _named(rng, depth),
            ]
        )
        items += item
    return (f"[^{items}]", rng.choice(_TEXT)) if rng.random() < 0.3 else (f"[{items}]", text)


def _group(rng: Random, depth: int) -> tuple[str, str]:
    branches = [draw_pattern(rng, depth - 1) for _ in range(rng.choice((1, 2, 2, 3)))]
    opening = rng.choice(("(", "(", "(?:", "(?:", "(?>", f"(?{rng.choice(_FLAGS)}:"))
    body = "|".join(pattern for pattern, _ in branches)
    return f"{opening}{body})", rng.choice(branches)[1]


def _look(rng: Random, depth: int) -> tuple[str, str]:
    opening = rng.choice(("(?=", "(?!", "(?<=", "(?<!"))
    if "<" in opening:  # of a fixed width
        single: list[_Piece] = [_char, _class, _named]
        body = "".join(rng.choice(single)(rng, 0)[0] for _ in range(rng.choice((1, 1, 2))))
        body = rng.choice(("", "", "", "\\b", "^")) + body
    else:
        body = draw_pattern(rng, depth - 1)[0]
    return f"{opening}{body})", ""


def _repeat(rng: Random, depth: int) -> tuple[str, str]:
    drawn: _Piece = rng.choice((_char, _class, _group))
    body, text = drawn(rng, depth)
    count, low, high = rng.choice(_COUNTS)
    return body + count + rng.choice(("", "", "", "?", "+")), text * rng.randint(low, high)


def asks_re(pattern: str, *, flags: str = "", search: bool = False) -> Callable[[str], bool]:
    """The question whether `re` finds a text to match, or to contain a match.

    Raises:
        re.error, OverflowError, ValueError: `re` refuses the pattern or the flags.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(pattern, sum(re.RegexFlag[flag.upper()] for flag in flags))
    asked = expected.search if search else expected.fullmatch
    return lambda text: asked(text) is not None


class Patterns(Target):
    """`Grammar.from_regex` against `re`. A case: {"pattern": str, "flags": str, "search": bool,
    "texts": [str, …]}; flags and search may be missing."""

    name = "patterns"

    def draw(self, rng: Random) -> Case:
        pattern, text = draw_pattern(rng)
        if rng.random() < 0.2:
            pattern = f"(?{rng.choice('imsaxu')}){pattern}"
        if rng.random() < 0.4:
            pattern = mutate_text(rng, pattern, _SYNTAX)
        search = rng.random() < 0.3
        if search and rng.random() < 0.5:
            text = rng.choice(_TEXT) + text + rng.choice(_TEXT)
        texts = [text, *(mutate_text(rng, text, _TEXT) for _ in range(4)), ""]
        return {
            "pattern": pattern,
            "flags": rng.choice(("", "", "", "i", "m", "s", "a")),
            "search": search,
            "texts": [each[:_LONGEST] for each in texts],
        }

    def check(self, case: Case) -> None:
        pattern, flags = case["pattern"], case.get("flags", "")
        search = case.get("search", False)
        try:
            grammar = Grammar.from_regex(pattern, flags=flags, search=search)
        except LimitExceeded:
            return
        except GrammarError as error:
            if error.position is None or not 0 <= error.position <= len(pattern):
                raise Fault("an error without a place in the pattern", repr(error)) from error
            return
        try:
            asked = asks_re(pattern, flags=flags, search=search)
        except (re.error, OverflowError, ValueError) as error:
            raise Fault("a pattern that re refuses was taken", error) from error
        for text in case["texts"]:
            try:
                theirs = asked(text)
            except SystemError:
                continue  # CPython's own matcher gives up: `(|){2}+` and the like.
            ours = grammar.accepts(text)
            if ours != theirs:
                name = "search" if search else "fullmatch"
                raise Fault(f"another answer than re.{name}", f"{pattern!r} on {text!r}: {ours}")

    def smaller(self, case: Case) -> Iterator[Case]:
        for key in ("flags", "search"):
            if key in case:
                yield {other: part for other, part in case.items() if other != key}
        for texts in without_parts(case["texts"]):
            yield {**case, "texts": texts}
        for pattern in without_parts(case["pattern"]):
            yield {**case, "pattern": pattern}
        for at, text in enumerate(case["texts"]):
            for less in without_parts(text):
                yield {**case, "texts": [*case["texts"][:at], less, *case["texts"][at + 1 :]]}
