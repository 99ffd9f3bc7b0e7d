"""Regular expressions as programs that try their ways in order, as Python's `re` does.

An *instruction* is a tuple (operation, a, b, next, ways); `automata/lark_source.hpp` says what each
operation does. A *loop* whose body can be empty marks where an iteration begins, because `re` ends
such a loop after an iteration that took nothing. Programs are written from their end to their
start; repetitions are written out, which `MAX_PROGRAM` bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammaton.errors import LimitExceeded, UnsupportedKeyword
from grammaton.grammar.regex import nodes as regex
from grammaton.grammar.regex.ranges import ANY, invert

if TYPE_CHECKING:
    from grammaton.grammar.regex.ranges import Ranges

MAX_PROGRAM = 400_000
"""Instructions of all terminals of a grammar."""

MAX_BEHINDS = 64
"""Different look-behinds in a grammar."""

NONE = 0xFFFFFFFF
"""No terminal: the end of a look-around."""

CHAR, SPLIT, MARK, AGAIN, UNMARK, BEHIND, AHEAD, MATCH = range(8)

Instruction = tuple[int, int, int, int, tuple[int, ...]]

_NEWLINE: Ranges = ((0x0A, 0x0A),)


class Program:
    """The patterns of a grammar's terminals.

    Attributes:
        instructions: as the core takes them.
        classes: the classes of characters that they mention by number.
        behinds: where the pattern of each look-behind starts.
        widest_behind: characters of the widest look-behind.
    """

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.classes: list[Ranges] = []
        self.behinds: list[int] = []
        self.widest_behind = 0
        self._class_numbers: dict[Ranges, int] = {}
        self._behind_numbers: dict[regex.Node, int] = {}
        self._characters: dict[tuple[int, int], int] = {}
        """By class and what follows; endings that strings share are written once."""
        self._loops = 0

    def add(self, node: regex.Node, terminal: int) -> int:
        """Writes a terminal's pattern; returns where it starts.

        Raises:
            UnsupportedKeyword: atomic groups, possessive quantifiers, look-around within
                look-behind.
            LimitExceeded: the programs grow too long, or groups stand too deep.
        """
        try:
            return self._write(node, self._emit(MATCH, terminal))
        except RecursionError:
            raise LimitExceeded("groups of a terminal stand too deep within each other") from None

    def add_text(self, text: str, terminal: int) -> int:
        """Writes a terminal's pattern that is just a text; returns where it starts.

        Raises:
            LimitExceeded: the programs grow too long.
        """
        at = self._emit(MATCH, terminal)
        for char in reversed(text):
            at = self._write(regex.Chars(((ord(char), ord(char)),)), at)
        return at

    def looks_behind_at(self, start: int) -> bool:
        """Whether a pattern can look behind before it took a character."""
        seen: set[int] = set()
        pending = [start]
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            operation, a, b, following, ways = self.instructions[at]
            if operation == BEHIND:
                return True
            if operation == AHEAD:
                pending.append(a)
            if operation == AGAIN:
                pending.append(b)
            if operation not in (CHAR, MATCH, SPLIT):
                pending.append(following)
            pending.extend(ways)
        return False

    def _emit(
        self,
        operation: int,
        a: int = 0,
        b: int = 0,
        following: int = 0,
        *,
        ways: tuple[int, ...] = (),
    ) -> int:
        if len(self.instructions) >= MAX_PROGRAM:
            raise LimitExceeded(
                f"the terminals need more than {MAX_PROGRAM} instructions; counted repetitions and "
                "long strings are written out"
            )
        self.instructions.append((operation, a, b, following, ways))
        return len(self.instructions) - 1

    def _write(self, node: regex.Node, following: int) -> int:
        match node:
            case regex.Empty():
                return following
            case regex.Chars(ranges):
                key = self._class_number(ranges), following
                if key not in self._characters:
                    self._characters[key] = self._emit(CHAR, key[0], 0, following)
                return self._characters[key]
            case regex.Cat(parts):
                for part in reversed(parts):
                    following = self._write(part, following)
                return following
            case regex.Alt(branches):
                ways = tuple(self._write(branch, following) for branch in branches)
                return self._emit(SPLIT, ways=ways)
            case regex.Repeat():
                return self._repeat(node, following)
            case regex.Anchor(kind):
                return self._write(_anchor(kind), following)
            case regex.Look(behind=True):
                number = self._behind_number(node.body)
                return self._emit(BEHIND, number, int(node.negative), following)
            case regex.Look():
                body = self._write(node.body, self._emit(MATCH, NONE))
                return self._emit(AHEAD, body, int(node.negative), following)
            case regex.Atomic():
                raise UnsupportedKeyword(
                    "atomic groups and possessive quantifiers are not supported with Lark's lexers"
                )

    def _repeat(self, node: regex.Repeat, following: int) -> int:
        body, low, high = node.body, node.min, node.max
        can_be_empty = regex.length(body)[0] == 0
        loop = self._loops
        self._loops += 1
        end = self._emit(UNMARK, loop, 0, following) if can_be_empty else following

        def iteration(then: int) -> int:
            if not can_be_empty:
                return self._write(body, then)
            again = self._emit(AGAIN, loop, end, then)
            return self._emit(MARK, loop, 0, self._write(body, again))

        def choose(way: int) -> tuple[int, ...]:
            return (end, way) if node.lazy else (way, end)

        if high is None:
            at = self._emit(SPLIT)
            way = iteration(at)
            self.instructions[at] = (SPLIT, 0, 0, 0, choose(way))
        else:
            at = end
            for _ in range(high - low):
                at = self._emit(SPLIT, ways=choose(iteration(at)))
        for _ in range(low):
            at = self._write(body, at)
        return at

    def _class_number(self, ranges: Ranges) -> int:
        number = self._class_numbers.setdefault(ranges, len(self.classes))
        if number == len(self.classes):
            self.classes.append(ranges)
        return number

    def _behind_number(self, body: regex.Node) -> int:
        if body.asserts:
            raise UnsupportedKeyword("look-around within look-behind is not supported")
        if body not in self._behind_numbers:
            if len(self.behinds) >= MAX_BEHINDS:
                raise LimitExceeded(f"the terminals have more than {MAX_BEHINDS} look-behinds")
            start = self._write(body, self._emit(MATCH, NONE))
            self._behind_numbers[body] = len(self.behinds)
            self.behinds.append(start)
            self.widest_behind = max(self.widest_behind, regex.length(body)[0])
        return self._behind_numbers[body]


def _anchor(kind: str) -> regex.Node:
    """An anchor as look-around over characters."""
    any_character = regex.Chars(ANY)
    if kind == "start":
        return regex.Look(True, True, any_character, 0, 0)
    if kind == "end":
        return regex.not_followed_by(any_character)
    more = regex.cat([regex.Chars(_NEWLINE), any_character])
    return regex.not_followed_by(regex.alt([regex.Chars(invert(_NEWLINE)), more]))
