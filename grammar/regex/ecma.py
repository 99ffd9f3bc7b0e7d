"""The ECMAScript dialect, which JSON Schema's `pattern` uses (ECMA-262 of 2025, section 22.2).

Texts are code points, as under the `u` flag: an astral character is one, and a surrogate pair of
`\\u` escapes is read as one. Syntax is that of the `u` flag; a *lenient* parser also takes these
forms of Annex B.1.2, since real schemas contain them: lone `{`, `}` and `]`, escapes of any
character that is no letter or digit (`\\-`, `\\_`), a class as the bound of a range (`[\\w-.]`).
Refused either way is what Annex B reads otherwise than its author is likely to have meant: an
escaped letter without a meaning (`\\Z`) and `{,3}`.

Case is folded as Unicode's simple folding has it, properties are those of `unicode_table`. Refused
with the place are back-references and the classes of the `v` flag.
"""

from __future__ import annotations

import re
import string

from grammaton.errors import GrammarError
from grammaton.grammar.regex.nodes import Anchor, Node
from grammaton.grammar.regex.parser import Group, Parser
from grammaton.grammar.regex.ranges import (
    ASCII_DIGITS,
    ASCII_WORD,
    ECMA_SPACE,
    Ranges,
    contains,
    invert,
)
from grammaton.grammar.regex.unicode_table import unicode_closure, unicode_property, unicode_version

_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_COUNT_WITHOUT_MINIMUM = re.compile(r"\{,[0-9]+\}")
_GROUP_NAME = re.compile(r"<([^>]*)>")
_MODIFIERS = re.compile(r"([ims]*)(?:-([ims]*))?:")
_PROPERTY = re.compile(r"\{([A-Za-z0-9_=]+)\}")
_BRACED = re.compile(r"\{([0-9a-fA-F]+)\}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CLASSES = {"d": ASCII_DIGITS, "s": ECMA_SPACE}
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_SYNTAX = "^$\\.*+?()[]{}|/"
_IDLE_FLAGS = {
    "d": "asks for indices",
    "g": "asks for all matches",
    "y": "says where a search goes on",
}


class EcmaParser(Parser):
    """Reads a pattern of ECMA-262; see `Parser`.

    Args:
        lenient: whether forms of Annex B that real patterns contain are taken too.
    """

    dot: Ranges = invert(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))
    line_terminators: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
    end_anchor = Anchor("end")
    leading_bracket_is_literal = False
    look_no_repeat = "a look-around cannot be repeated; expected a group around it, (?:…)"
    possessive = False

    def __init__(self, text: str, flags: str = "", *, lenient: bool = False) -> None:
        super().__init__(text, flags)
        self._names: dict[str, list[dict[int, int]]] = {}
        self._lenient = lenient
        self.class_as_bound_is_literal = lenient
        self.bare = "" if lenient else "{}]"

    def check_flags(self, flags: str) -> str:
        for at, letter in enumerate(flags):
            if letter in _IDLE_FLAGS:
                raise GrammarError(
                    f"the flag {letter} {_IDLE_FLAGS[letter]}, which is no matter of the language; "
                    "expected flags out of i, m, s, u"
                )
            if letter == "v":
                raise GrammarError("the flag v is not supported; expected flags out of i, m, s, u")
            if letter not in "imsu":
                raise GrammarError(f"unknown flag {letter!r}; expected flags out of i, m, s, u")
            if letter in flags[:at]:
                raise GrammarError(f"the flag {letter} is given twice")
        return flags

    def cased(self, ranges: Ranges, *, named: bool = False) -> Ranges:
        return unicode_closure(ranges) if self.flags.ignore_case else ranges

    def check_look(self, look: Node) -> None:
        """ECMAScript has every look-around, of any width."""

    def special_group(self, here: int) -> Group | None:
        name = _GROUP_NAME.match(self.text, self.at)
        if name is not None:
            self._group_name(name)
            self.at = name.end()
            return Group(here, "", self.flags)
        modifiers = _MODIFIERS.match(self.text, self.at)
        if modifiers is not None:
            self.at = modifiers.end()
            on, off = modifiers[1], modifiers[2] or ""
            if len(set(on + off)) < len(on + off) or not on + off:
                raise self.error(
                    "expected each flag once, switched on or off", here, modifiers.end()
                )
            return Group(here, "", self.flags.changed(on, off))
        if self.text.startswith("P<", self.at):
            raise self.error(
                "(?P<name>…) is Python's spelling; ECMAScript's is (?<name>…)", here, self.at + 2
            )
        raise self.error(
            "unknown kind of group; expected (…), (?:…), (?<name>…), (?=…), (?!…), (?<=…), (?<!…) "
            "or (?ims-ims:…)",
            here,
            self.at + 1,
        )

    def _group_name(self, match: re.Match[str]) -> None:
        """Keeps a group's name; two groups may share one if they stand in different alternatives
        of a group, so that at most one of them takes part in a match."""
        start, end = match.span(1)
        name = self._unescaped_name(match[1], start)
        first, rest = name[:1], name[1:]
        if not _is_identifier(first, "ID_Start", "$_") or not all(
            _is_identifier(char, "ID_Continue", "$\u200c\u200d") for char in rest
        ):
            raise self.error("bad group name; expected an identifier", start, max(end, start + 1))
        place = {group.position: len(group.branches) for group in self._stack[1:]}
        place[-1] = len(self._stack[0].branches)
        for other in self._names.setdefault(name, []):
            if not any(place.get(group, branch) != branch for group, branch in other.items()):
                raise self.error(
                    f"the group name {name} is already in use; expected another", start, end
                )
        self._names[name].append(place)

    def _unescaped_name(self, name: str, start: int) -> str:
        """A group's name with its `\\u` escapes read."""
        if "\\" not in name:
            return name
        inner = type(self)(self.text)
        inner.at = start
        out = ""
        while inner.at < start + len(name):
            here = inner.at
            inner.at += 1
            if self.text[here] != "\\":
                out += self.text[here]
            elif inner.take("u"):
                out += chr(inner._unicode(here))
            else:
                raise self.error("bad escape in a group name; expected \\u", here, here + 1)
        return out

    def escape(self, here: int, *, in_class: bool) -> int | Ranges | Node:
        if self.at >= len(self.text):
            raise self.error(
                "bad escape: the pattern ends in a backslash; expected a character", here
            )
        char = self.text[self.at]
        self.at += 1
        if char in "dDsSwW":
            ranges = _CLASSES.get(char.lower()) or self._word()
            return invert(ranges) if char.isupper() else ranges
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "bB":
            if not in_class:
                return self.word_boundary(self._word(), here, negative=char == "B")
            if char == "b":
                return 8
            raise self.error(
                "\\B is no character; expected one, or a class such as \\W", here, self.at
            )
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
        if not self._lenient and char not in _SYNTAX and not (in_class and char == "-"):
            raise self.error(
                f"bad escape \\{char}; only ^ $ \\ . * + ? ( ) [ ] {{ }} | / may be escaped to "
                "mean themselves, and - in a class",
                here,
                self.at,
            )
        return ord(char)

    def _word(self) -> Ranges:
        """`\\w`, which under `i` has what folds to an ASCII letter (WordCharacters)."""
        return self.cased(ASCII_WORD)

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
                raise self.error(
                    "bad escape: above U+10FFFF, the last character; expected a lower number",
                    here,
                    self.at,
                )
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
                f"unknown Unicode property {match[1]}; expected a general category, Script=…, "
                f"Script_Extensions=… or a binary property of Unicode {unicode_version()}, "
                "spelled as the standard does",
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


def _is_identifier(char: str, name: str, others: str) -> bool:
    ranges = unicode_property(name)
    assert ranges is not None
    return bool(char) and (char in others or contains(ranges, ord(char)))
