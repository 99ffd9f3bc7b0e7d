"""What may follow at a position, said the way an error message needs it.

Characters whose successors are the same position form a *class* (`a digit`). One that leads
somewhere of its own begins a *literal*, which is read on for as long as the grammar forces it, and
within a word or a JSON string past a choice between few: so an object names the keys it wants and
not just their first letter. Single characters that lead nowhere in particular are counted with the
classes.

Inside JSON strings every character has spellings by escapes as well. Where those lead to the same
position as the plain characters, they are not listed; `escapes` says that they exist.

Cost: some hundred steps of the machine, about a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grammaton._core import Matcher
from grammaton.cli.characters import CharacterMachine, Ranges
from grammaton.grammar.text_printer import character_class, escape

_MOST_LITERALS = 12
_MOST_BRANCHES = 8
_LONGEST_LITERAL = 48
_BLANKS = {0x20: "a space", 0x09: "a tab", 0x0A: "a newline", 0x0D: "a carriage return"}
_MOST_SYMBOLS = 10
_ALMOST_ALL = 80
"""Of the 95 printable ASCII characters: from here on a class is named by what it leaves out."""


@dataclass(frozen=True)
class Expected:
    """What may follow.

    Attributes:
        literals: texts of two characters or more, sorted.
        characters: single characters that may follow, those that begin a literal left out.
        may_end: whether the text may end here.
        escapes: whether the same characters may also be written as JSON escapes.
    """

    literals: tuple[str, ...]
    characters: Ranges
    may_end: bool
    escapes: bool

    def phrases(self) -> list[str]:
        """The alternatives, each as a phrase: a quoted text, or a description."""
        found = [quoted(text) for text in self.literals] + _describe(self.characters)
        return [*found, "the end of the text"] if self.may_end else found

    def sentence(self) -> str:
        """`expected "name" or "age"`."""
        phrases = self.phrases()
        said = phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " or " + phrases[-1]
        several = "one of " if len(phrases) > 2 else ""
        return f"expected {several}{said}" + (" (or JSON escapes)" if self.escapes else "")

    def as_json(self) -> dict[str, Any]:
        """For `--json`; `characters` is a class in the notation of the text form."""
        return {
            "literals": list(self.literals),
            "characters": character_class(self.characters) if self.characters else None,
            "may_end": self.may_end,
            "json_escapes": self.escapes,
            "phrases": self.phrases(),
        }


def expected(machine: CharacterMachine, position: Matcher) -> Expected:
    """What may follow at a position of a machine."""
    singles, classes, escapes = _choices(machine, position)
    words: list[tuple[str, Matcher]] = []
    for code, target in singles:
        words.append((chr(code), target) if code in _BLANKS else _forced(chr(code), target))
    words = _read_on(machine, words)
    ones = {ord(word) for word, _ in words if len(word) == 1}
    characters = sorted([*classes, *((code, code) for code in ones)])
    literals = {_cut(word) for word, _ in words if len(word) > 1}
    return Expected(tuple(sorted(literals)), tuple(characters), position.is_complete, escapes)


def _choices(
    machine: CharacterMachine, position: Matcher
) -> tuple[list[tuple[int, Matcher]], list[tuple[int, int]], bool]:
    """Characters that lead somewhere of their own, ranges of the others, are escapes left out."""
    by_state: dict[int, list[tuple[int, int, Matcher]]] = {}
    for low, high, target in machine.transitions(position):
        by_state.setdefault(target.state, []).append((low, high, target))
    singles: list[tuple[int, Matcher]] = []
    classes: list[tuple[int, int]] = []
    for found in by_state.values():
        if len(found) == 1 and found[0][0] == found[0][1]:
            singles.append((found[0][0], found[0][2]))
        else:
            classes += [(low, high) for low, high, _ in found]
    plain = [(code, target) for code, target in singles if chr(code) not in '\\"']
    escapes = any(chr(code) == "\\" for code, _ in singles) and bool(plain or classes)
    if escapes:
        ways = [*plain, *((low, target) for found in by_state.values() for low, _, target in found)]
        escapes = all(
            _escaped(position, code) == target.state
            for code, target in ways
            if chr(code) not in '\\"'
        )
    if escapes:
        singles = [(code, target) for code, target in singles if chr(code) != "\\"]
    return singles, sorted(classes), escapes


def _escaped(position: Matcher, code: int) -> int | None:
    """The position after a character's `\\u` escape, None when that is not allowed."""
    target = position.fork()
    units = chr(code).encode("utf-16-be")
    spelled = "".join(
        f"\\u{int.from_bytes(units[i : i + 2], 'big'):04x}" for i in range(0, len(units), 2)
    )
    return target.state if target.accept_bytes(spelled.encode()) else None


def _forced(text: str, target: Matcher) -> tuple[str, Matcher]:
    """A text and what must follow it, up to the last whole character."""
    forced = target.forced_bytes()[: 4 * _LONGEST_LITERAL].decode(errors="ignore")
    after = target.fork()
    if forced and after.accept_bytes(forced.encode()):
        return text + forced, after
    return text, target


def _read_on(
    machine: CharacterMachine, words: list[tuple[str, Matcher]]
) -> list[tuple[str, Matcher]]:
    """Follows words past choices between few others, the shortest first."""
    done: list[tuple[str, Matcher]] = []
    while words:
        words.sort(key=lambda word: -len(word[0]))
        text, position = words.pop()
        room = _MOST_LITERALS - len(done) - len(words)
        longer = _continued(machine, text, position, min(room, _MOST_BRANCHES))
        if longer is None:
            done.append((text, position))
        else:
            words += longer
    return done


def _continued(
    machine: CharacterMachine, text: str, position: Matcher, most: int
) -> list[tuple[str, Matcher]] | None:
    if position.is_complete or len(text) > _LONGEST_LITERAL:
        return None
    singles, classes, escapes = _choices(machine, position)
    if classes or not 0 < len(singles) <= most:
        return None
    if not escapes and not all(map(_in_word, [text[-1], *(chr(code) for code, _ in singles)])):
        return None
    return [_forced(text + chr(code), target) for code, target in singles]


def _in_word(char: str) -> bool:
    """Whether a choice at this character is one between words, quoted ones included."""
    return char.isalnum() or char in "_-\"'"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LITERAL else text[:_LONGEST_LITERAL] + "…"


def quoted(text: str) -> str:
    """A text between backticks, what can't be seen in it escaped."""
    shown = "".join(escape(ord(char), "") for char in text)
    return f"`{shown}`" if "`" not in shown else f"'{shown}'"


def _describe(characters: Ranges) -> list[str]:
    """Phrases for a set of characters, many beyond ASCII being summed up."""
    ascii_set = {
        code for low, high in characters if low < 0x80 for code in range(low, min(high, 0x7F) + 1)
    }
    beyond = [(max(low, 0x80), high) for low, high in characters if high >= 0x80]
    printable = set(range(0x20, 0x7F))
    if beyond and len(ascii_set & printable) >= _ALMOST_ALL:
        left_out = [quoted(chr(code)) for code in sorted(printable - ascii_set)]
        if not ascii_set & set(range(0x20)):
            left_out.append("control characters")
        return ["any character" + (f" except {' and '.join(left_out)}" if left_out else "")]
    others = "other characters" if ascii_set else "characters"
    return [*_describe_ascii(ascii_set), *_describe_beyond(beyond, f"{others} beyond ASCII")]


def _describe_ascii(found: set[int]) -> list[str]:
    phrases: list[str] = []

    def take(phrase: str, *ranges: str) -> None:
        wanted = {code for ends in ranges for code in range(ord(ends[0]), ord(ends[1]) + 1)}
        if wanted <= found:
            found.difference_update(wanted)
            phrases.append(phrase)

    blanks = [name for code, name in _BLANKS.items() if code in found]
    found = found - _BLANKS.keys()
    letters = {code for code in found if chr(code).isalpha()}
    if letters == {*map(ord, "abcdefABCDEF")}:
        take("a hexadecimal digit", "09", "af", "AF")
    take("a letter", "az", "AZ")
    take("a lowercase letter", "az")
    take("an uppercase letter", "AZ")
    take("a digit", "09")
    take("a digit from 1 to 9", "19")
    ranges = _ranges(found)
    if len(found) > _MOST_SYMBOLS:
        symbols = [character_class(ranges)]
    else:
        symbols = [quoted(chr(code)) for code in sorted(found)]
    return [*symbols, *phrases, *(["whitespace"] if len(blanks) > 1 else blanks)]


def _describe_beyond(ranges: list[tuple[int, int]], many: str) -> list[str]:
    if not ranges:
        return []
    if sum(high - low + 1 for low, high in ranges) <= _MOST_SYMBOLS:
        return [quoted(chr(code)) for low, high in ranges for code in range(low, high + 1)]
    shown = character_class(ranges)
    return [shown if len(shown) <= _LONGEST_LITERAL else many]


def _ranges(codes: set[int]) -> Ranges:
    found: list[tuple[int, int]] = []
    for code in sorted(codes):
        if found and found[-1][1] + 1 == code:
            found[-1] = found[-1][0], code
        else:
            found.append((code, code))
    return tuple(found)
