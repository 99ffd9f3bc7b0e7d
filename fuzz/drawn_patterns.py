"""Random regular expressions in both dialects, each with as many texts of it as one likes.

A pattern is drawn together with its *sampler*, which draws texts that the pattern matches, its
assertions taken for granted. The alphabet is small, so that mutated texts often stay inside the
language, and has a character of each length in UTF-8 and of each named class.

Cost: a pattern takes some 30 us, a text some 5 us.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from grammaton.fuzz.target import mutate_text

Sampler = Callable[[Random], str]

_COUNTS = [("?", 0, 1), ("*", 0, 2), ("+", 1, 2), ("{2}", 2, 2), ("{1,2}", 1, 2), ("{2,}", 2, 3)]


@dataclass(frozen=True)
class DrawnPattern:
    """A pattern, and what draws texts that it matches or nearly so."""

    pattern: str
    sample: Sampler


class PatternDialect(ABC):
    """Draws patterns of one dialect.

    Attributes:
        alphabet: the characters of patterns and texts; what is there twice comes twice as often.
        named: for the letter of each named class, some characters in it.
        syntax: what mutations put into patterns.
        anchors: assertions of no width that are no groups.
        openings: what groups begin with.
        suffixes: what may stand behind a quantifier.
    """

    alphabet: ClassVar[str]
    named: ClassVar[Mapping[str, str]]
    syntax: ClassVar[Sequence[str]]
    anchors: ClassVar[Sequence[str]]
    openings: ClassVar[Sequence[str]]
    suffixes: ClassVar[Sequence[str]]

    @abstractmethod
    def spelled(self, rng: Random, char: str) -> str:
        """A character as it stands outside of classes, or `.`."""

    @abstractmethod
    def spelled_in_class(self, char: str) -> str:
        """A character as it stands in a class."""

    @abstractmethod
    def odd(self, rng: Random) -> DrawnPattern:
        """A construct that only this dialect has."""

    @abstractmethod
    def look_behind(self, rng: Random, depth: int) -> str:
        """What may stand in a look-behind."""

    def draw(self, rng: Random, depth: int = 3) -> DrawnPattern:
        """A pattern with at most `depth` levels of groups."""
        count = rng.choice((0, 1, 1, 2, 2, 3))
        return _joined([self._piece(rng, depth) for _ in range(count)])

    def draw_texts(
        self, rng: Random, sample: Sampler, *, count: int, longest: int, search: bool
    ) -> list[str]:
        """At most `count` different texts of up to `longest` characters: of the sampler, with
        something around them for a search, and with some characters changed."""
        texts = {"": None}
        for number in range(count - 1):
            text = sample(rng)
            if number % 2:
                text = mutate_text(rng, text, self.alphabet)
            elif search:
                text = rng.choice(self.alphabet) + text + rng.choice(self.alphabet)
            texts[text[:longest]] = None
        return list(texts)

    def _piece(self, rng: Random, depth: int) -> DrawnPattern:
        kinds = [self._char, self._char, self._class, self._named, self._anchor, self._odd]
        if depth > 0:
            kinds += [self._group, self._repeat, self._group, self._repeat, self._look]
        return rng.choice(kinds)(rng, depth)

    def _char(self, rng: Random, depth: int) -> DrawnPattern:
        char = rng.choice(self.alphabet)
        swapped = char.swapcase()

        def sample(rng: Random) -> str:
            return char if rng.random() < 0.9 else swapped

        return DrawnPattern(self.spelled(rng, char), sample)

    def _named(self, rng: Random, depth: int) -> DrawnPattern:
        letter = rng.choice("dDwWsS")
        return _one_of("\\" + letter, self.named[letter])

    def _anchor(self, rng: Random, depth: int) -> DrawnPattern:
        return _one_of(rng.choice(self.anchors), ("",))

    def _odd(self, rng: Random, depth: int) -> DrawnPattern:
        return self.odd(rng)

    def _class(self, rng: Random, depth: int) -> DrawnPattern:
        items = [self._class_item(rng) for _ in range(rng.randint(1, 3))]
        inside = "".join(item for item, _ in items)
        if rng.random() < 0.3:
            return _one_of(f"[^{inside}]", self.alphabet)
        return _one_of(f"[{inside}]", "".join(chars for _, chars in items))

    def _class_item(self, rng: Random) -> tuple[str, str]:
        kind = rng.randrange(3)
        if kind == 0:
            char = rng.choice(self.alphabet)
            return self.spelled_in_class(char), char
        if kind == 1:
            low, high = sorted(rng.choices(self.alphabet, k=2))
            return f"{self.spelled_in_class(low)}-{self.spelled_in_class(high)}", low + high
        letter = rng.choice("dDwWsS")
        return "\\" + letter, self.named[letter]

    def _group(self, rng: Random, depth: int) -> DrawnPattern:
        branches = [self.draw(rng, depth - 1) for _ in range(rng.choice((1, 2, 2, 3)))]
        body = "|".join(branch.pattern for branch in branches)
        samplers = [branch.sample for branch in branches]
        return DrawnPattern(
            f"{rng.choice(self.openings)}{body})", lambda rng: rng.choice(samplers)(rng)
        )

    def _look(self, rng: Random, depth: int) -> DrawnPattern:
        opening = rng.choice(("(?=", "(?!", "(?<=", "(?<!"))
        behind = "<" in opening
        body = self.look_behind(rng, depth) if behind else self.draw(rng, depth - 1).pattern
        return _one_of(f"{opening}{body})", ("",))

    def _repeat(self, rng: Random, depth: int) -> DrawnPattern:
        drawn = rng.choice((self._char, self._class, self._group))(rng, depth)
        count, low, high = rng.choice(_COUNTS)
        once = drawn.sample
        return DrawnPattern(
            drawn.pattern + count + rng.choice(self.suffixes),
            lambda rng: "".join(once(rng) for _ in range(rng.randint(low, high))),
        )


def _one_of(pattern: str, texts: Sequence[str]) -> DrawnPattern:
    return DrawnPattern(pattern, lambda rng: rng.choice(texts))


def _joined(parts: list[DrawnPattern]) -> DrawnPattern:
    samplers = [part.sample for part in parts]
    return DrawnPattern(
        "".join(part.pattern for part in parts),
        lambda rng: "".join([sample(rng) for sample in samplers]),
    )


class PythonPatterns(PatternDialect):
    """Patterns of Python's `re`; every escape of a character is written by `re.escape`."""

    alphabet = "aab1_é漢😀 -\n"
    named: ClassVar[Mapping[str, str]] = {
        "d": "17٣",
        "D": "ab é",
        "w": "ab1_é漢",
        "W": " -\n",
        "s": " \n\u2028",
        "S": "ab漢",
    }
    syntax = (
        *"ab1(|)[]{}*+?^$\\-,.:P<>=!#dDwWsSbBnxuNiZ0é",
        *("(?", "(?:", "(?P<n>", "{2,", "\\x6", "[^", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i"),
        "(?#",
    )
    anchors = ("^", "$", "\\A", "\\Z", "\\b", "\\b", "\\B")
    openings = (
        *("(", "(?:", "(?>") * 4,
        *(f"(?{flags}:" for flags in ("i", "m", "s", "a", "im", "x", "u", "-i", "m-s", "i-x")),
    )
    suffixes = ("", "", "", "?", "+")

    def spelled(self, rng: Random, char: str) -> str:
        escaped = re.escape(char)
        return rng.choice((escaped, escaped, ".", f"\\U{ord(char):08x}"))

    def spelled_in_class(self, char: str) -> str:
        return re.escape(char)

    def odd(self, rng: Random) -> DrawnPattern:
        return _one_of(rng.choice(("(?#a)", "#")), ("",))

    def look_behind(self, rng: Random, depth: int) -> str:
        """Of a fixed width, as `re` wants it."""
        kinds = [self._char, self._class, self._named]
        body = "".join(rng.choice(kinds)(rng, 0).pattern for _ in range(rng.choice((1, 1, 2))))
        return rng.choice(("", "", "", "\\b", "^")) + body


class EcmaPatterns(PatternDialect):
    """Patterns of ECMA-262 with the flag `u`, without what node 20 lacks (scoped flags)."""

    alphabet = "aab1_éſK漢😀 -\n"
    named: ClassVar[Mapping[str, str]] = {
        "d": "17",
        "D": "aé ",
        "w": "ab1_",
        "W": " -é",
        "s": " \n\ufeff",
        "S": "ab漢",
    }
    syntax = (
        *"ab1(|)[]{}*+?^$\\-,.:P<>=!dDwWsSbBcxupk0é",
        *("(?", "(?:", "(?<n>", "\\p{L}", "\\u{6", "[^", "(?=", "(?!", "(?<=", "(?<!", "{,2}"),
        "{2",
    )
    anchors = ("^", "$", "\\b", "\\b", "\\B")
    openings = ("(", "(?:", "(?:")
    suffixes = ("", "", "?")
    _PROPERTIES = (
        *("L", "Lu", "Ll", "N", "P", "Alphabetic", "Uppercase", "White_Space", "ASCII"),
        *("Script=Latin", "scx=Han", "sc=Grek"),
    )

    def spelled(self, rng: Random, char: str) -> str:
        code = ord(char)
        escaped = self._escaped(char, "^$\\.*+?()[]{}|/")
        spellings = [escaped, escaped, ".", f"\\u{{{code:x}}}"]
        units = char.encode("utf-16-be")
        spellings.append("".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)))
        if code < 256:
            spellings.append(f"\\x{code:02x}")
        return rng.choice(spellings)

    def spelled_in_class(self, char: str) -> str:
        return self._escaped(char, "^$\\.*+?()[]{}|/-")

    @staticmethod
    def _escaped(char: str, special: str) -> str:
        return "\\" + char if char in special else char

    def odd(self, rng: Random) -> DrawnPattern:
        name = rng.choice(self._PROPERTIES)
        return _one_of(f"\\{rng.choice('pP')}{{{name}}}", self.alphabet)

    def look_behind(self, rng: Random, depth: int) -> str:
        return self.draw(rng, depth - 1).pattern
