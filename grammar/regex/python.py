"""The Python dialect: str patterns of the standard library's `re`.

Read as Python reads them, so also its leniencies: `{` that begins no count is a literal, `{,3}` is
`{0,3}`, `]` first in a class is a member. Classes, case and what `\\B` says of the empty text are
those of the interpreter that runs. Refused with the place are back-references, conditional groups
and the flag `L`.
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata

from grammaton.errors import GrammarError
from grammaton.grammar.regex.casing import python_closure
from grammaton.grammar.regex.nodes import Anchor, Chars, Look, Node, alt, cat, length
from grammaton.grammar.regex.parser import Group, Parser
from grammaton.grammar.regex.ranges import (
    ANY,
    ASCII_DIGITS,
    ASCII_SPACE,
    ASCII_WORD,
    Ranges,
    invert,
    python_digits,
    python_space,
    python_word,
)

_COUNT = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")
_NAME = re.compile(r"\{([^{}]+)\}")
_CLASSES = {
    "d": (python_digits, ASCII_DIGITS),
    "s": (python_space, ASCII_SPACE),
    "w": (python_word, ASCII_WORD),
}
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_FLAGS = "aimsux"
_INCOMPATIBLE = "the flags a and u are incompatible"


class PythonParser(Parser):
    """Reads a pattern of Python's `re`; see `Parser`."""

    dot: Ranges = invert(((0x0A, 0x0A),))
    line_terminators: Ranges = ((0x0A, 0x0A),)
    end_anchor = Anchor("end_or_newline")
    leading_bracket_is_literal = True
    class_as_bound_is_literal = False
    look_no_repeat = ""
    possessive = True

    def __init__(self, text: str, flags: str = "") -> None:
        super().__init__(text, flags)
        self._names: set[str] = set()
        self._unicode = "u" in flags

    def check_flags(self, flags: str) -> str:
        for letter in flags:
            if letter not in _FLAGS:
                raise GrammarError(_unknown_flag(letter))
        if "a" in flags and "u" in flags:
            raise GrammarError(_INCOMPATIBLE)
        return flags

    def cased(self, ranges: Ranges, *, named: bool = False) -> Ranges:
        # `re` asks whether the lower case of a character is in a class such as \W, which is as much
        # as whether the character is; it does not look for other characters of the same case.
        if named or not self.flags.ignore_case:
            return ranges
        return python_closure(ranges, self.flags.ascii)

    def skip(self) -> bool:
        char = self.text[self.at]
        if char == "#":
            self._comment("\n")
        elif char in " \t\n\r\v\f":
            self.at += 1
        else:
            return False
        return True

    def _comment(self, end: str) -> bool:
        """Steps over a comment and its end, if there is one; a backslash hides what follows it."""
        while self.at < len(self.text):
            here = self.at
            char = self.text[here]
            self.at += 1
            if char == end:
                return True
            if char == "\\":
                if self.at == len(self.text):
                    raise self.error(
                        "bad escape: the pattern ends in a backslash; expected a character",
                        here,
                    )
                self.at += 1
        return False

    def special_group(self, here: int) -> Group | None:
        if self.take(">"):
            return Group(here, ">", self.flags)
        if self.take("#"):
            if not self._comment(")"):
                raise self.error("this comment is never closed; expected )", here)
            return None
        if self.take("P<"):
            self._group_name(here)
            return Group(here, "", self.flags)
        if self.text.startswith("P=", self.at):
            raise self.error("back-references are not supported", here, self.at + 2)
        if self.text.startswith("(", self.at):
            raise self.error("conditional groups are not supported", here, self.at + 1)
        char = self.text[self.at : self.at + 1]
        if char and char in _FLAGS + "L-":
            return self._flags(here)
        if char.isalpha() and self.text[self.at + 1 : self.at + 2] in tuple(":)-"):
            raise self.error(_unknown_flag(char), self.at)
        raise self.error(
            "unknown kind of group; expected (…), (?:…), (?P<name>…), (?>…), (?=…), (?!…), "
            "(?<=…), (?<!…), (?#…) or flags",
            here,
            self.at + 1,
        )

    def _flags(self, here: int) -> Group | None:
        """`(?aimsux)` for the whole pattern, or the opening of `(?aimsux-imsx:…)`."""
        on = self._flag_letters("-:)")
        if "a" in on and "u" in on:
            raise self.error(_INCOMPATIBLE, here, self.at)
        if self.take(")"):
            self._global_flags(on, here)
            return None
        off = ""
        if self.take("-"):
            begin = self.at
            off = self._flag_letters(":")
            if not off:
                raise self.error("expected a flag to switch off", self.at)
            if set(off) & set("au"):
                raise self.error("the flags a and u cannot be switched off", begin, self.at)
            if set(on) & set(off):
                raise self.error(
                    "a flag is switched on and off at once; expected it once", here, self.at
                )
        self.at += 1
        return Group(here, "", self.flags.changed(on, off))

    def _flag_letters(self, ends: str) -> str:
        """Reads letters of flags, up to one of `ends`, which comes next then."""
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] not in ends:
            if self.text[self.at] not in _FLAGS:
                raise self.error(_unknown_flag(self.text[self.at]), self.at)
            self.at += 1
        if self.at == len(self.text):
            raise self.error(f"the flags end here; expected {' or '.join(ends)}", self.at)
        return self.text[begin : self.at]

    def _global_flags(self, on: str, here: int) -> None:
        group = self.group
        if len(self._stack) > 1 or group.branches or group.parts:
            raise self.error(
                "flags for the whole pattern must stand at its start; (?i:…) is for a part of it",
                here,
                self.at,
            )
        self._unicode |= "u" in on
        restart = "x" in on and not group.flags.verbose
        group.flags = group.flags.changed(on.replace("u", ""))
        if self._unicode and group.flags.ascii:
            raise self.error(_INCOMPATIBLE, here, self.at)
        if restart:  # what was read may hold comments, which no longer mean what they did
            self.at = 0

    def check_look(self, look: Node) -> None:
        if isinstance(look, Look) and look.behind:
            low, high = length(look.body)
            if low != high:
                raise self.error(
                    "look-behind must have a fixed width in this dialect; this one matches "
                    f"{low} to {'any number of' if high is None else high} characters",
                    look.position,
                    look.end,
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
            raise self.error(
                f"the group name {name} is already in use; expected another", self.at, stop
            )
        self._names.add(name)
        self.at = stop + 1

    def escape(self, here: int, *, in_class: bool) -> int | Ranges | Node:
        if self.at >= len(self.text):
            raise self.error(
                "bad escape: the pattern ends in a backslash; expected a character", here
            )
        char = self.text[self.at]
        self.at += 1
        if char.lower() in _CLASSES:
            ranges = self._named_class(char.lower())
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
                return self._boundary(here, negative=char == "B")
        if char in string.digits:
            return self._octal(here, char, in_class=in_class)
        if char in "xuU":
            width = {"x": 2, "u": 4, "U": 8}[char]
            value = self.hexadecimal(here, width, width)
            if value > 0x10FFFF:
                raise self.error(
                    "bad escape: above U+10FFFF, the last character; expected a lower number",
                    here,
                    self.at,
                )
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

    def _named_class(self, letter: str) -> Ranges:
        of_unicode, of_ascii = _CLASSES[letter]
        return of_ascii if self.flags.ascii else of_unicode()

    def _boundary(self, here: int, *, negative: bool) -> Node:
        node = self.word_boundary(self._named_class("w"), here, negative=negative)
        if not negative or sys.version_info >= (3, 14):
            return node
        # Before Python 3.14, \\B does not hold in the empty text.
        some = [Look(behind, False, Chars(ANY), here, self.at) for behind in (True, False)]
        return alt([cat([side, node]) for side in some])

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
            raise self.error(
                f"undefined character name {match[1]!r}; expected one of Unicode's", here, self.at
            ) from None

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


def _unknown_flag(letter: str) -> str:
    if letter == "L":
        return "the flag L is for bytes patterns; expected flags out of a, i, m, s, u, x"
    return f"unknown flag {letter!r}; expected flags out of a, i, m, s, u, x"
