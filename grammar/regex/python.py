"""The Python dialect: str patterns of the standard library's `re`, without flags.

Read as Python reads them, so also its leniencies: `{` that begins no count is a literal, `{,3}` is
`{0,3}`, `]` first in a class is a member. Look-around, back-references, word boundaries, flags,
atomic groups, conditionals and possessive quantifiers are refused with the place.
"""

from __future__ import annotations

import re
import string
import unicodedata
from typing import ClassVar

from grammaton.grammar.regex.nodes import Anchor
from grammaton.grammar.regex.parser import Parser
from grammaton.grammar.regex.ranges import (
    Ranges,
    invert,
    python_digits,
    python_space,
    python_word,
)

_COUNT = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")
_NAME = re.compile(r"\{([^{}]+)\}")
_CLASSES = {"d": python_digits, "s": python_space, "w": python_word}
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_REFUSED_GROUPS = {
    "=": "look-ahead (?=…) is not supported in this dialect",
    "!": "negative look-ahead (?!…) is not supported in this dialect",
    "<=": "look-behind is not supported",
    "<!": "look-behind is not supported",
    ">": "atomic groups are not supported",
    "(": "conditional groups are not supported",
    "#": "comments are not supported",
}


class PythonParser(Parser):
    """Reads a pattern of Python's `re`; see `Parser`."""

    dot: Ranges = invert(((0x0A, 0x0A),))
    anchors: ClassVar = {"^": Anchor("start"), "$": Anchor("end_or_newline")}
    leading_bracket_is_literal = True
    class_as_bound_is_literal = False

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._names: set[str] = set()

    def open_group(self, here: int) -> str:
        if not self.take("?") or self.take(":"):
            return ""
        if self.take("P<"):
            self._group_name(here)
            return ""
        if self.text.startswith("P=", self.at):
            raise self.error("back-references are not supported", here, self.at + 2)
        for opening, message in _REFUSED_GROUPS.items():
            if self.text.startswith(opening, self.at):
                raise self.error(message, here, self.at + len(opening))
        char = self.text[self.at : self.at + 1]
        if char and char in "aiLmsux-":
            raise self.error("inline flags are not supported", here, self.at + 1)
        raise self.error(
            "unknown kind of group; expected (…), (?:…) or (?P<name>…)", here, self.at + 1
        )

    def _group_name(self, here: int) -> None:
        stop = self.text.find(">", self.at)
        if stop < 0:
            raise self.error("this group's name is never closed; expected >", here, self.at)
        name = self.text[self.at : stop]
        if not name.isidentifier():
            raise self.error(
                "bad group name; expected a Python identifier", self.at, max(stop, self.at + 1)
            )
        if name in self._names:
            raise self.error(f"the group name {name} is already in use", self.at, stop)
        self._names.add(name)
        self.at = stop + 1

    def escape(self, here: int, *, in_class: bool) -> int | Ranges | Anchor:
        if self.at >= len(self.text):
            raise self.error("bad escape: the pattern ends in a backslash", here)
        char = self.text[self.at]
        self.at += 1
        if char.lower() in _CLASSES:
            ranges = _CLASSES[char.lower()]()
            return invert(ranges) if char.isupper() else ranges
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "b" and in_class:
            return 8
        if not in_class:
            if char == "A":
                return Anchor("start")
            if char == "Z":
                return Anchor("end")
            if char == "z":
                raise self.error("\\z is not supported; the end is \\Z", here, self.at)
            if char in "bB":
                raise self.error("word boundaries are not supported", here, self.at)
        if char in string.digits:
            return self._octal(here, char, in_class=in_class)
        if char in "xuU":
            width = {"x": 2, "u": 4, "U": 8}[char]
            value = self.hexadecimal(here, width, width)
            if value > 0x10FFFF:
                raise self.error("bad escape: above U+10FFFF", here, self.at)
            return value
        if char == "N":
            return self._named(here)
        if char in string.ascii_letters:
            raise self.error(
                f"bad escape \\{char}; a letter may be escaped only where that has a meaning",
                here,
                self.at,
            )
        return ord(char)

    def _octal(self, here: int, first: str, *, in_class: bool) -> int:
        digits = first
        while (
            len(digits) < 3 and self.at < len(self.text) and self.text[self.at] in string.octdigits
        ):
            digits += self.text[self.at]
            self.at += 1
        is_octal = first == "0" or (first in string.octdigits and (in_class or len(digits) == 3))
        if not is_octal:
            if in_class:
                raise self.error(f"bad escape \\{first}", here, self.at)
            raise self.error("back-references are not supported", here, self.at)
        value = int(digits, 8)
        if value > 0o377:
            raise self.error(
                f"octal escape \\{digits} is outside of the range 0 to 0o377", here, self.at
            )
        return value

    def _named(self, here: int) -> int:
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self.error("bad escape \\N; expected \\N{CHARACTER NAME}", here, self.at)
        self.at = match.end()
        try:
            return ord(unicodedata.lookup(match[1]))
        except (KeyError, TypeError):  # TypeError: the name of a sequence of several characters
            raise self.error(f"undefined character name {match[1]!r}", here, self.at) from None

    def braces(self) -> tuple[int, int | None] | None:
        match = _COUNT.match(self.text, self.at)
        if match is None or match[0] == "{}":
            return None
        low = self.bound(match[1] or "0", match.start(1))
        high: int | None = low
        if match[2]:
            high = self.bound(match[3], match.start(3)) if match[3] else None
        self.at = match.end()
        return low, high
