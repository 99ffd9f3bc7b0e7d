"""The part of the regex parser that every dialect shares.

A *dialect* is a subclass that says what an escape, a group's opening and a brace mean; alternation,
quantifiers, classes and errors live here. The parser keeps its own stack of open groups, so a
pattern cannot exhaust Python's; nesting deeper than `MAX_NESTING` is refused, because later passes
do recurse. Parsing is linear in the pattern, apart from the reading of Unicode classes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from grammaton.errors import GrammarError
from grammaton.grammar.regex.nodes import Anchor, Chars, LookAhead, Node, Repeat, alt, cat
from grammaton.grammar.regex.ranges import Ranges, invert, normalize
from grammaton.grammar.utf8 import check_utf8

MAX_NESTING = 100
MAX_REPEAT = 2**32 - 2
"""The largest count that Python's `re` takes; the core's counters are of the same width."""

_HEX = re.compile("[0-9a-fA-F]+")


@dataclass
class _Group:
    """An open group, or the whole pattern: what was read of it so far."""

    position: int
    look: str = ""
    branches: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    no_repeat: str = "nothing to repeat"
    """Why no quantifier may follow; empty when one may."""

    def push(self, node: Node, *, no_repeat: str = "") -> None:
        self.parts.append(node)
        self.no_repeat = no_repeat

    def branch(self) -> None:
        self.branches.append(cat(self.parts))
        self.parts = []
        self.no_repeat = "nothing to repeat"

    def close(self) -> Node:
        self.branch()
        body = alt(self.branches)
        return LookAhead(self.look == "!", body) if self.look else body


class Parser(ABC):
    """Reads one pattern.

    Args:
        text: the pattern.

    Raises:
        GrammarError: not a str, or a lone surrogate in it.
    """

    dot: Ranges
    """What `.` matches."""
    anchors: ClassVar[dict[str, Anchor]]
    """What `^` and `$` mean."""
    leading_bracket_is_literal: bool
    """Whether `]` first in a class is a member of it."""
    class_as_bound_is_literal: bool
    """Whether `-` beside a class in a class, as in `[\\w-.]`, is itself; else an error."""

    def __init__(self, text: str) -> None:
        self.text = check_utf8(text, "a pattern")
        self.at = 0

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
        stack = [_Group(0)]
        while self.at < len(self.text):
            here = self.at
            char = self.text[here]
            group = stack[-1]
            if char in "*+?{":
                self._quantifier(group)
                continue
            if char == "[":
                group.push(Chars(self._class()))
                continue
            self.at += 1
            if char == "|":
                group.branch()
            elif char == "(":
                look = self.open_group(here)
                if len(stack) > MAX_NESTING:
                    raise self.error(f"groups are nested deeper than {MAX_NESTING}", here)
                stack.append(_Group(here, look))
            elif char == ")":
                if len(stack) == 1:
                    raise self.error("this parenthesis closes no group", here)
                why = "a look-ahead cannot be repeated" if group.look else ""
                stack.pop()
                stack[-1].push(group.close(), no_repeat=why)
            elif char in self.anchors:
                group.push(self.anchors[char], no_repeat="an anchor cannot be repeated")
            elif char == ".":
                group.push(Chars(self.dot))
            elif char == "\\":
                item = self.escape(here, in_class=False)
                if isinstance(item, Anchor):
                    group.push(item, no_repeat="an anchor cannot be repeated")
                else:
                    group.push(Chars(((item, item),) if isinstance(item, int) else item))
            else:
                group.push(Chars(((ord(char), ord(char)),)))
        if len(stack) > 1:
            raise self.error("this group is never closed; expected )", stack[-1].position)
        return stack[0].close()

    @abstractmethod
    def open_group(self, here: int) -> str:
        """Reads what follows a `(` at `here`: "=" or "!" for a look-ahead, "" for another group."""

    @abstractmethod
    def escape(self, here: int, *, in_class: bool) -> int | Ranges | Anchor:
        """Reads what follows a backslash at `here`: one code point, a class, or an anchor."""

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

    def _quantifier(self, group: _Group) -> None:
        here = self.at
        low, high = 0, None
        if self.text[here] == "{":
            counts = self.braces()
            if counts is None:
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
                f"the repetition's minimum {low} is above its maximum {high}", here, self.at
            )
        if self.text.startswith("+", self.at):
            raise self.error(
                "multiple repeat; possessive quantifiers are not supported", here, self.at + 1
            )
        self.take("?")
        body = group.parts.pop()
        group.push(
            Repeat(body, low, high, here, self.at, body.asserts), no_repeat="multiple repeat"
        )

    def _class(self) -> Ranges:
        start = self.at
        self.at += 1
        negated = self.take("^")
        first = self.at
        found: list[tuple[int, int]] = []
        while True:
            here = self.at
            if self.take("]") and not (self.leading_bracket_is_literal and here == first):
                break
            low = self._class_item(start, here)
            if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
                found.extend(((low, low),) if isinstance(low, int) else low)
                continue
            self.at += 1
            high = self._class_item(start, self.at)
            if isinstance(low, int) and isinstance(high, int):
                if low > high:
                    raise self.error(
                        f"bad character range {self.text[here : self.at]}: "
                        "its end is before its start",
                        here,
                        self.at,
                    )
                found.append((low, high))
            elif self.class_as_bound_is_literal:
                for item in (low, 0x2D, high):
                    found.extend(((item, item),) if isinstance(item, int) else item)
            else:
                raise self.error(
                    f"bad character range {self.text[here : self.at]}: its ends must be characters",
                    here,
                    self.at,
                )
        ranges = normalize(found)
        return invert(ranges) if negated else ranges

    def _class_item(self, start: int, here: int) -> int | Ranges:
        self.at = here
        if here >= len(self.text):
            raise self.error("this character class is never closed; expected ]", start)
        self.at += 1
        if self.text[here] != "\\":
            return ord(self.text[here])
        item = self.escape(here, in_class=True)
        if isinstance(item, Anchor):
            raise self.error("an anchor cannot stand in a class", here, self.at)
        return item
