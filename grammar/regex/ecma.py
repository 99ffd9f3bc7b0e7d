"""The ECMAScript dialect, which JSON Schema's `pattern` uses (ECMA-262, section 22.2).

Texts are code points, as under the `u` flag: an astral character is one, and a surrogate pair of
`\\u` escapes is read as one. Beyond the `u` grammar, these forms of Annex B.1.2 are accepted, since
real schemas contain them: lone `{`, `}` and `]`, escapes of any character that is no letter or
digit (`\\-`, `\\_`), and a class as the bound of a range (`[\\w-.]`).

Look-ahead is supported; look-behind, back-references, word boundaries and modifiers are refused
with the place, and so is what Annex B reads otherwise than its author is likely to have meant: an
escaped letter without a meaning (`\\Z`) and `{,3}`.
"""

from __future__ import annotations

import re
import string
from typing import ClassVar

from grammaton.grammar.regex.nodes import Anchor
from grammaton.grammar.regex.parser import Parser
from grammaton.grammar.regex.ranges import (
    ASCII_DIGITS,
    ASCII_WORD,
    ECMA_SPACE,
    Ranges,
    invert,
    unicode_property,
)

_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_COUNT_WITHOUT_MINIMUM = re.compile(r"\{,[0-9]+\}")
_NAMED_GROUP = re.compile(r"<([\w$]+)>")
_PROPERTY = re.compile(r"\{([A-Za-z0-9_=]+)\}")
_BRACED = re.compile(r"\{([0-9a-fA-F]+)\}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CLASSES = {"d": ASCII_DIGITS, "s": ECMA_SPACE, "w": ASCII_WORD}
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


class EcmaParser(Parser):
    """Reads a pattern of ECMA-262; see `Parser`."""

    dot: Ranges = invert(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))
    anchors: ClassVar = {"^": Anchor("start"), "$": Anchor("end")}
    leading_bracket_is_literal = False
    class_as_bound_is_literal = True

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._names: set[str] = set()

    def open_group(self, here: int) -> str:
        if not self.take("?") or self.take(":"):
            return ""
        if self.take("="):
            return "="
        if self.take("!"):
            return "!"
        if self.text.startswith(("<=", "<!"), self.at):
            raise self.error("look-behind is not supported", here, self.at + 2)
        match = _NAMED_GROUP.match(self.text, self.at)
        if match is not None and match[1][0] not in string.digits:
            if match[1] in self._names:
                raise self.error(
                    f"the group name {match[1]} is already in use", match.start(1), match.end(1)
                )
            self._names.add(match[1])
            self.at = match.end()
            return ""
        if self.text.startswith("P<", self.at):
            raise self.error(
                "(?P<name>…) is Python's spelling; ECMAScript's is (?<name>…)", here, self.at + 2
            )
        raise self.error(
            "unknown kind of group; expected (…), (?:…), (?<name>…), (?=…) or (?!…)",
            here,
            self.at + 1,
        )

    def escape(self, here: int, *, in_class: bool) -> int | Ranges | Anchor:
        if self.at >= len(self.text):
            raise self.error("bad escape: the pattern ends in a backslash", here)
        char = self.text[self.at]
        self.at += 1
        if char.lower() in _CLASSES and char.isascii():
            ranges = _CLASSES[char.lower()]
            return invert(ranges) if char.isupper() else ranges
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "bB":
            if in_class and char == "b":
                return 8
            raise self.error("word boundaries are not supported", here, self.at)
        if char == "k":
            raise self.error("back-references are not supported", here, self.at)
        if char in "pP":
            return self._property(here, negated=char == "P")
        if char == "x":
            return self.hexadecimal(here, 2, 2)
        if char == "u":
            return self._unicode(here)
        if char == "c":
            return self._control(here)
        if char in string.digits:
            if char == "0" and self.text[self.at : self.at + 1] not in tuple(string.digits):
                return 0
            raise self.error("back-references and octal escapes are not supported", here, self.at)
        if char in string.ascii_letters:
            raise self.error(
                f"bad escape \\{char}; a letter may be escaped only where that has a meaning",
                here,
                self.at,
            )
        return ord(char)

    def _control(self, here: int) -> int:
        letter = self.text[self.at : self.at + 1]
        if not letter or letter not in string.ascii_letters:
            raise self.error("bad escape \\c; expected a letter after it", here, self.at)
        self.at += 1
        return ord(letter) % 32

    def _unicode(self, here: int) -> int:
        if (braced := _BRACED.match(self.text, self.at)) is not None:
            self.at = braced.end()
            if len(braced[1].lstrip("0")) > 6 or int(braced[1], 16) > 0x10FFFF:
                raise self.error("bad escape: above U+10FFFF", here, self.at)
            return int(braced[1], 16)
        value = self.hexadecimal(here, 4, 4)
        if 0xD800 <= value < 0xDC00:
            low = _LOW_SURROGATE.match(self.text, self.at)
            if low is not None:
                self.at = low.end()
                return 0x10000 + ((value - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
        return value

    def _property(self, here: int, *, negated: bool) -> Ranges:
        match = _PROPERTY.match(self.text, self.at)
        if match is None:
            raise self.error("bad escape \\p; expected \\p{Property}", here, self.at)
        self.at = match.end()
        ranges = unicode_property(match[1])
        if ranges is None:
            raise self.error(
                f"the Unicode property {match[1]} is not supported; expected a general category",
                here,
                self.at,
            )
        return invert(ranges) if negated else ranges

    def braces(self) -> tuple[int, int | None] | None:
        if (odd := _COUNT_WITHOUT_MINIMUM.match(self.text, self.at)) is not None:
            raise self.error(
                f"ECMAScript has no count without a minimum; write {{0{odd[0][1:]}",
                odd.start(),
                odd.end(),
            )
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return None
        low = self.bound(match[1], match.start(1))
        high: int | None = low
        if match[2]:
            high = self.bound(match[3], match.start(3)) if match[3] else None
        self.at = match.end()
        return low, high
