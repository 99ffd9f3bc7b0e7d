"""The part of the regex parser that every dialect shares.

A *dialect* is a subclass that says what an escape, a special group and a brace mean; alternation,
quantifiers, classes, flags in force and errors live here. The parser keeps its own stack of open
groups, so a pattern cannot exhaust Python's; nesting deeper than `MAX_NESTING` is refused, because
later passes do recurse. Parsing is linear in the pattern, apart from the reading of Unicode classes
and the folding of case.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cache
from typing import ClassVar, Literal

from grammaton.errors import GrammarError
from grammaton.grammar.regex.nodes import (
    Anchor,
    Atomic,
    Chars,
    Look,
    Node,
    Repeat,
    alt,
    boundary,
    cat,
    line_edge,
)
from grammaton.grammar.regex.ranges import ANY, Ranges, invert, normalize, unite
from grammaton.grammar.utf8 import check_utf8

MAX_NESTING = 100
MAX_REPEAT = 2**32 - 2
"""The largest count that Python's `re` takes; the core's counters are of the same width."""

Opening = Literal["", ">", "=", "!", "<=", "<!"]
"""The kind of a group: plain, atomic, or a look-around by what stands after its question mark."""

_NOTHING = "nothing to repeat; expected a character, a class or a group before the quantifier"
_MULTIPLE = "multiple repeat; expected a group around what is repeated already, as in (?:a*){2}"
_ANCHOR = "an anchor cannot be repeated; expected a group around it, (?:…)"
_HEX = re.compile("[0-9a-fA-F]+")
_RUN = re.compile("[A-Za-z0-9_ :;,/@=<>!&%~'\"-]+")
"""Characters that mean themselves, whatever stands around them."""
_LOOKS: tuple[Opening, ...] = ("=", "!", "<=", "<!")


@dataclass(frozen=True)
class Flags:
    """The flags in force at a place of a pattern."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    verbose: bool = False
    ascii: bool = False

    def changed(self, on: str, off: str = "") -> Flags:
        """With flags by their letters switched on and off; `u` takes `a` back."""
        names = {"i": "ignore_case", "m": "multiline", "s": "dot_all", "x": "verbose", "a": "ascii"}
        changes = {names[letter]: True for letter in on if letter != "u"}
        changes |= {names[letter]: False for letter in off}
        return replace(self, **({"ascii": False} if "u" in on else {}), **changes)


@dataclass
class Group:
    """An open group, or the whole pattern: what was read of it so far."""

    position: int
    opening: Opening
    flags: Flags
    branches: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    no_repeat: str = _NOTHING
    """Why no quantifier may follow; empty when one may."""

    def push(self, node: Node, *, no_repeat: str = "") -> None:
        """Adds a part to the branch being read."""
        self.parts.append(node)
        self.no_repeat = no_repeat

    def branch(self) -> None:
        """Ends a branch."""
        self.branches.append(cat(self.parts))
        self.parts = []
        self.no_repeat = _NOTHING

    def close(self, end: int) -> Node:
        """The group as a node; it ends at `end`."""
        self.branch()
        body = alt(self.branches)
        if not self.opening:
            return body
        if self.opening == ">":
            return Atomic(body, self.position, end)
        return Look("<" in self.opening, "!" in self.opening, body, self.position, end)


@cache
def _itself(char: str) -> Chars:
    return Chars(((ord(char), ord(char)),))


class Parser(ABC):
    """Reads one pattern.

    Args:
        text: the pattern.
        flags: letters that apply to all of it.

    Raises:
        GrammarError: not a str, a lone surrogate in it, or a flag that is not the dialect's.
    """

    dot: Ranges
    """What `.` matches without the flag `s`."""
    line_terminators: Ranges
    """Where `^` and `$` hold under the flag `m`, besides the ends of the text."""
    end_anchor: Anchor
    """What `$` means without the flag `m`."""
    leading_bracket_is_literal: bool
    """Whether `]` first in a class is a member of it."""
    class_as_bound_is_literal: bool
    """Whether `-` beside a class in a class, as in `[\\w-.]`, is itself; else an error."""
    look_no_repeat: ClassVar[str]
    """Why a look-around takes no quantifier; empty when it does."""
    possessive: ClassVar[bool]
    """Whether `+` after a quantifier makes it possessive."""
    bare: str = ""
    """Characters that must be escaped although they could only mean themselves."""

    def __init__(self, text: str, flags: str = "") -> None:
        self.text = check_utf8(text, "a pattern")
        self.at = 0
        self._stack = [Group(0, "", Flags().changed(self.check_flags(flags)))]

    @property
    def group(self) -> Group:
        """The innermost open group."""
        return self._stack[-1]

    @property
    def flags(self) -> Flags:
        """The flags in force."""
        return self._stack[-1].flags

    def error(self, message: str, position: int, end: int | None = None) -> GrammarError:
        """The error for a span of the pattern; it is for the caller to raise."""
        return GrammarError(message, source=self.text, position=position, end=end)

    def take(self, expected: str) -> bool:
        """Steps over `expected` when it comes next."""
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def parse(self) -> Node:
        """The whole pattern.

        Raises:
            GrammarError: a syntax error or an unsupported construct, with its span.
        """
        while self.at < len(self.text):
            flags = self.flags
            if not (flags.verbose or flags.ignore_case) and (run := _RUN.match(self.text, self.at)):
                self.group.parts.extend(map(_itself, run[0]))
                self.group.no_repeat = ""
                self.at = run.end()
            elif not (flags.verbose and self.skip()):
                self._piece()
        if len(self._stack) > 1:
            raise self.error("this group is never closed; expected )", self.group.position)
        return self.group.close(self.at)

    def _piece(self) -> None:
        here = self.at
        char = self.text[here]
        group = self.group
        if char in "*+?{":
            self._quantifier(group)
            return
        if char == "[":
            group.push(Chars(self._class()))
            return
        self.at += 1
        if char == "|":
            group.branch()
        elif char == "(":
            opened = self._open(here)
            if opened is not None:
                if len(self._stack) > MAX_NESTING:
                    raise self.error(f"groups are nested deeper than {MAX_NESTING}", here)
                self._stack.append(opened)
        elif char == ")":
            if len(self._stack) == 1:
                raise self.error(
                    "this parenthesis closes no group; expected \\) to mean itself", here
                )
            node = self._stack.pop().close(self.at)
            looks = isinstance(node, Look) and group.opening not in ("", ">")
            if looks:
                self.check_look(node)
            self.group.push(node, no_repeat=self.look_no_repeat if looks else "")
        elif char in "^$":
            group.push(self._edge(char, here), no_repeat=_ANCHOR)
        elif char == ".":
            group.push(Chars(ANY if self.flags.dot_all else self.dot))
        elif char == "\\":
            item = self.escape(here, in_class=False)
            if isinstance(item, int | tuple):
                ranges = ((item, item),) if isinstance(item, int) else item
                group.push(Chars(self.cased(ranges, named=not isinstance(item, int))))
            else:
                group.push(item, no_repeat=_ANCHOR)
        elif char in self.bare:
            raise self.error(f"a lone {char} must be escaped; expected \\{char}", here)
        else:
            group.push(Chars(self.cased(((ord(char), ord(char)),))))

    def _open(self, here: int) -> Group | None:
        if not self.take("?") or self.take(":"):
            return Group(here, "", self.flags)
        for look in _LOOKS:
            if self.take(look):
                return Group(here, look, self.flags)
        return self.special_group(here)

    def _edge(self, char: str, here: int) -> Anchor | Look:
        if self.flags.multiline:
            return line_edge(self.line_terminators, behind=char == "^", position=here, end=self.at)
        return Anchor("start") if char == "^" else self.end_anchor

    def word_boundary(self, word: Ranges, here: int, *, negative: bool) -> Node:
        """`\\b` or `\\B`, which starts at `here`."""
        return boundary(word, negative=negative, position=here, end=self.at)

    def skip(self) -> bool:
        """Steps over what means nothing under the flag `x`; whether there was any."""
        return False

    @abstractmethod
    def check_flags(self, flags: str) -> str:
        """The letters of flags that apply to the whole pattern, those of them that matter.

        Raises:
            GrammarError: an unknown flag.
        """

    @abstractmethod
    def special_group(self, here: int) -> Group | None:
        """Reads what follows `(?` at `here` when it is no plain group and no look-around: the group
        that it opens, if it opens one."""

    @abstractmethod
    def check_look(self, look: Node) -> None:
        """Raises GrammarError when the dialect has no such look-around."""

    @abstractmethod
    def escape(self, here: int, *, in_class: bool) -> int | Ranges | Node:
        """Reads what follows a backslash at `here`: one code point, a class, or an anchor."""

    @abstractmethod
    def cased(self, ranges: Ranges, *, named: bool = False) -> Ranges:
        """What a set of characters, or a class with a name (`\\w`), matches under the flags."""

    @abstractmethod
    def braces(self) -> tuple[int, int | None] | None:
        """Reads `{…}` as a count; None, having read nothing, when the brace is a literal."""

    def bound(self, digits: str, position: int) -> int:
        """A repetition count, within what can be counted."""
        # Long digit strings are refused by length: int() is quadratic, and limited by Python.
        if len(digits.lstrip("0")) > 10 or int(digits) > MAX_REPEAT:
            raise self.error(
                f"the repetition count is too large; expected at most {MAX_REPEAT}",
                position,
                position + len(digits),
            )
        return int(digits)

    def hexadecimal(self, here: int, low: int, high: int) -> int:
        """Reads `low` to `high` hexadecimal digits of the escape that starts at `here`."""
        match = _HEX.match(self.text, self.at, self.at + high)
        count = 0 if match is None else len(match[0])
        if match is None or count < low:
            raise self.error(
                f"incomplete escape {self.text[here : self.at + count]}; "
                f"expected {low} hexadecimal digits",
                here,
                self.at + count,
            )
        self.at += count
        return int(match[0], 16)

    def _quantifier(self, group: Group) -> None:
        here = self.at
        low, high = 0, None
        if self.text[here] == "{":
            counts = self.braces()
            if counts is None:
                if "{" in self.bare:
                    raise self.error("a lone { must be escaped; expected \\{", here)
                self.at += 1
                group.push(Chars(((0x7B, 0x7B),)))
                return
            low, high = counts
        else:
            self.at += 1
            low = int(self.text[here] == "+")
            high = 1 if self.text[here] == "?" else None
        if group.no_repeat:
            raise self.error(group.no_repeat, here, self.at)
        if high is not None and high < low:
            raise self.error(
                f"the repetition's minimum {low} is above its maximum {high}; expected the "
                "smaller number first",
                here,
                self.at,
            )
        kind = self.text[self.at : self.at + 1]
        if kind == "?" or (kind == "+" and self.possessive):
            self.at += 1
        body = group.parts.pop()
        node: Node = Repeat(body, low, high, here, self.at, body.asserts, kind == "?")
        if kind == "+" and self.possessive:
            node = Atomic(node, here, self.at)
        group.push(node, no_repeat=_MULTIPLE)

    def _class(self) -> Ranges:
        start = self.at
        self.at += 1
        negated = self.take("^")
        first = self.at
        found: list[tuple[int, int]] = []
        named: list[Ranges] = []
        while True:
            here = self.at
            if self.take("]") and not (self.leading_bracket_is_literal and here == first):
                break
            low = self._class_item(start, here)
            if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
                if isinstance(low, int):
                    found.append((low, low))
                else:
                    named.append(low)
                continue
            self.at += 1
            high = self._class_item(start, self.at)
            if isinstance(low, int) and isinstance(high, int):
                if low > high:
                    raise self.error(
                        f"bad character range {self.text[here : self.at]}: "
                        "its end is before its start; expected the lower end first",
                        here,
                        self.at,
                    )
                found.append((low, high))
            elif self.class_as_bound_is_literal:
                for item in (low, 0x2D, high):
                    if isinstance(item, int):
                        found.append((item, item))
                    else:
                        named.append(item)
            else:
                raise self.error(
                    f"bad character range {self.text[here : self.at]}: its ends must be "
                    "characters; expected \\- to mean itself",
                    here,
                    self.at,
                )
        ranges = self.cased(normalize(found))
        if named:
            ranges = unite(ranges, self.cased(unite(*named), named=True))
        return invert(ranges) if negated else ranges

    def _class_item(self, start: int, here: int) -> int | Ranges:
        self.at = here
        if here >= len(self.text):
            raise self.error("this character class is never closed; expected ]", start)
        self.at += 1
        if self.text[here] != "\\":
            return ord(self.text[here])
        item = self.escape(here, in_class=True)
        assert isinstance(item, int | tuple), "in a class, a dialect makes no anchors"
        return item
