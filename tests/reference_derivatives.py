"""Derivatives of regular terms by characters, and the characters that a vocabulary can spell.

A *spelling* is the set of characters that texts may use. `whole` may stand in a text, `bytewise`
may also be cut in the middle of its bytes (docs/machine.md: S1 with S2, and S1 alone).
A *boundary* of a term is a code point where it may begin to treat characters differently: one
character between two boundaries stands for all of them.

JSON escapes are read a character at a time; unfinished `\\uXXXX` that can only end in characters
between the same two boundaries are one term, else a search would visit all 65,536 of them.

Cost: one derivative is linear in the size of the term; there may be exponentially many.
"""

from __future__ import annotations

import bisect
import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from grammaton.errors import GrammarError
from tests.reference_terms import LAST_CODE_POINT, TermTable, is_multiple, normal_ranges

ALL_CHARACTERS = normal_ranges([(0, LAST_CODE_POINT)])
HEX = "0123456789abcdefABCDEF"
JSON_SPECIALS = sorted({ord(char) for char in '"\\/bfnrtu' + HEX})
SHORT_ESCAPES = dict(zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True))


@dataclass(frozen=True)
class Spelling:
    """The characters that a text may be made of: sorted disjoint code point ranges."""

    bytewise: tuple[tuple[int, int], ...] = ALL_CHARACTERS
    whole: tuple[tuple[int, int], ...] = ALL_CHARACTERS

    def __contains__(self, code_point: int) -> bool:
        return first_in(self.whole, code_point, code_point) is not None


def first_in(ranges: Sequence[tuple[int, int]], low: int, high: int) -> int | None:
    """The first code point of `ranges` that lies in low..high."""
    at = bisect.bisect_right(ranges, (low, LAST_CODE_POINT + 1))
    for begin, end in ranges[max(at - 1, 0) : at + 1]:
        if begin <= high and end >= low:
            return max(begin, low)
    return None


def split_characters(data: bytes) -> tuple[str, bytes] | None:
    """Whole characters and the begun one at the end; None when `data` begins no UTF-8 text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None
    return text, bytes(decoder.getstate()[0])


def completions(begun: bytes) -> tuple[int, int]:
    """The lowest and highest code point whose UTF-8 begins with `begun`."""
    lead = begun[0]
    length, bits = (
        (2, lead & 0x1F) if lead < 0xE0 else (3, lead & 15) if lead < 0xF0 else (4, lead & 7)
    )
    for byte in begun[1:]:
        bits = bits << 6 | byte & 0x3F
    free = 6 * (length - len(begun))
    first, last = {2: (0x80, 0x7FF), 3: (0x800, 0xFFFF), 4: (0x10000, LAST_CODE_POINT)}[length]
    return max(bits << free, first), min((bits + 1 << free) - 1, last)


class Derivatives:
    """Derivatives of regular terms by characters, normal enough to be finitely many."""

    def __init__(self, table: TermTable) -> None:
        self.table = table
        self._steps: dict[tuple[int, str], int] = {}
        self._nullable: dict[int, bool] = {}
        self._boundaries: dict[int, tuple[int, ...]] = {}

    def nullable(self, term: int) -> bool:
        if term not in self._nullable:
            self._nullable[term] = self._is_nullable(term)
        return self._nullable[term]

    def _is_nullable(self, term: int) -> bool:
        match self.table.nodes[term]:
            case ("empty",):
                return True
            case ("concat" | "intersect", (*parts,)):
                return all(self.nullable(part) for part in parts)
            case ("union", (*parts,)):
                return any(self.nullable(part) for part in parts)
            case ("complement", int(inner)):
                return not self.nullable(inner)
            case ("repeat", int(inner), low, _):
                return low == 0 or self.nullable(inner)
            case ("json", int(inner)):
                return self.nullable(inner)
            case ("multiples", int(divisor), int(places), *read):
                return is_multiple("".join(map(str, read)).encode(), divisor, places)
        return False

    def boundaries(self, term: int) -> tuple[int, ...]:
        """Code points where the term may begin to treat characters differently; 0 is one."""
        if term not in self._boundaries:
            node = self.table.nodes[term]
            points = {0, 0xD800, 0xE000, 0x10000}
            match node:
                case ("chars", (*ranges,)):
                    points.update(edge for low, high in ranges for edge in (low, high + 1))
                case ("multiples", *_):
                    points.update(ord(char) for char in "./0123456789:")
                case ("json" | "escape", int(inner), *_):
                    points.update(self.boundaries(inner), [0x20])
                    points.update(edge for code in JSON_SPECIALS for edge in (code, code + 1))
                case _:
                    for child in self.table.children(node):
                        points.update(self.boundaries(child))
            self._boundaries[term] = tuple(sorted(points))
        return self._boundaries[term]

    def step(self, term: int, char: str) -> int:
        """The term for what may follow `char`."""
        key = (term, char)
        if key not in self._steps:
            self._steps[key] = self._step(term, char)
        return self._steps[key]

    def _step(self, term: int, char: str) -> int:
        table = self.table
        match table.nodes[term]:
            case ("nothing",) | ("empty",):
                return table.NOTHING
            case ("chars", (*ranges,)):
                inside = any(low <= ord(char) <= high for low, high in ranges)
                return table.EMPTY if inside else table.NOTHING
            case ("concat", (*parts,)):
                ways = []
                for index, part in enumerate(parts):
                    ways.append(self._concat([self.step(part, char), *parts[index + 1 :]]))
                    if not self.nullable(part):
                        break
                return self._union(ways)
            case ("union", (*parts,)):
                return self._union([self.step(part, char) for part in parts])
            case ("intersect", (*parts,)):
                return self._intersect([self.step(part, char) for part in parts])
            case ("complement", int(inner)):
                return self._complement(self.step(inner, char))
            case ("repeat", int(inner), int(low), high):
                if high == 0:
                    return table.NOTHING
                rest = table.repeat(
                    inner, max(low - 1, 0), high - 1 if isinstance(high, int) else None
                )
                return self._concat([self.step(inner, char), rest])
            case ("json", int(inner)):
                if char == "\\":
                    return self._escape(inner, "")
                if char == '"' or char < " ":
                    return table.NOTHING
                return self._json(self.step(inner, char))
            case ("multiples", int(divisor), int(places), *read):
                return self._multiples(divisor, places, "".join(map(str, read)) + char)
            case ("escape", int(inner), str(read)):
                return self._escaped(inner, read, char)
        raise GrammarError(f"no derivative by a character: {table.nodes[term]!r}")

    def _multiples(self, divisor: int, places: int, read: str) -> int:
        """What may follow `read`, whose digits are reduced to their remainder."""
        whole, point, fraction = read.partition(".")
        digits = (whole + fraction)[: len(whole) + places]
        read_digits = whole + fraction or "0"  # str.isdigit() also holds for other scripts' digits
        if not (read_digits.isascii() and read_digits.isdigit()) or fraction[places:].strip("0"):
            return self.table.NOTHING
        small = str(int(digits or "0") % divisor).zfill(len(digits) - len(whole) + 1)
        cut = len(small) - (len(digits) - len(whole))
        kept = small[:cut] + point + small[cut:]
        left = 10 ** (places - len(fraction[:places]))
        if point and -int(digits or "0") * left % divisor >= left:
            return self.table.NOTHING
        return self.table.intern(("multiples", divisor, places, kept))

    # Escapes: `read` is what followed the backslash; after a high surrogate comes `\uXXXX`.

    def _escaped(self, inner: int, read: str, char: str) -> int:
        if read == "" and char in SHORT_ESCAPES:
            return self._json(self.step(inner, SHORT_ESCAPES[char]))
        at = len(read) % 6
        if not (char == "u" if at == 0 else char == "\\" if at == 5 else char in HEX):
            return self.table.NOTHING
        read += char.lower()
        if len(read) == 5:
            unit = int(read[1:], 16)
            if 0xDC00 <= unit <= 0xDFFF:
                return self.table.NOTHING
            if not 0xD800 <= unit <= 0xDBFF:
                return self._json(self.step(inner, chr(unit)))
        if len(read) > 7 and (read[7] != "d" or read[8:9] > "f" or "" < read[8:9] < "c"):
            return self.table.NOTHING
        if len(read) == 11:
            pair = [int(read[1:5], 16), int(read[7:], 16)]
            return self._json(self.step(inner, chr(code_of_pair(*pair))))
        return self._escape(inner, self._merge(inner, read))

    def _merge(self, inner: int, read: str) -> str:
        """One `read` for all that end in the same class of characters, to keep searches short."""
        span = characters_of_escape(read)
        if span is None:
            return read
        bounds = self.boundaries(inner)
        index = bisect.bisect_right(bounds, span[0])
        if index < len(bounds) and bounds[index] <= span[1]:
            return read
        size = span[1] - span[0] + 1
        origin = (
            0x10000 if span[0] >= 0x10000 else 0
        )  # of surrogate pairs: `ud8` and `ud9` part there
        begin = origin - (-(bounds[index - 1] - origin) // size) * size
        return escape_prefix(begin, len(read))

    def _escape(self, inner: int, read: str) -> int:
        return (
            self.table.NOTHING
            if inner == self.table.NOTHING
            else self.table.intern(("escape", inner, read))
        )

    def _json(self, inner: int) -> int:
        return self.table.NOTHING if inner == self.table.NOTHING else self.table.json(inner)

    # Normal forms: flat, without units and zeros, unions and intersections as sets.

    def _flat(self, kind: str, parts: Sequence[int]) -> list[int]:
        flat: list[int] = []
        for part in parts:
            node = self.table.nodes[part]
            flat += self._flat(kind, self.table.children(node)) if node[0] == kind else [part]
        return flat

    def _concat(self, parts: Sequence[int]) -> int:
        flat = [part for part in self._flat("concat", parts) if part != self.table.EMPTY]
        if self.table.NOTHING in flat:
            return self.table.NOTHING
        return self.table.concat(flat)

    def _union(self, parts: Sequence[int]) -> int:
        return self.table.union(sorted(set(self._flat("union", parts)) - {self.table.NOTHING}))

    def _intersect(self, parts: Sequence[int]) -> int:
        flat = sorted(set(self._flat("intersect", parts)))
        return self.table.NOTHING if self.table.NOTHING in flat else self.table.intersect(flat)

    def _complement(self, inner: int) -> int:
        node = self.table.nodes[inner]
        return (
            self.table.children(node)[0]
            if node[0] == "complement"
            else self.table.complement(inner)
        )


def code_of_pair(high: int, low: int) -> int:
    """The code point of a surrogate pair."""
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)


def characters_of_escape(read: str) -> tuple[int, int] | None:
    """The characters that an unfinished `uXXXX` or pair can become, when one aligned range."""
    if len(read) <= 5:
        free = 4 * (5 - len(read))
        low = (int(read[1:], 16) if len(read) > 1 else 0) << free
        high = low + (1 << free) - 1
        if high < 0xD800 or low >= 0xE000:
            return low, high
        if low >= 0xD800 and high < 0xDC00:
            return code_of_pair(low, 0xDC00), code_of_pair(high, 0xDFFF)
        return None
    unit = int(read[1:5], 16)
    digits = read[7:]
    free = 4 * (4 - len(digits))
    low = (int(digits, 16) if digits else 0) << free
    high = low + (1 << free) - 1
    if len(digits) < 2:
        return (
            (code_of_pair(unit, 0xDC00), code_of_pair(unit, 0xDFFF))
            if digits in ("", "d")
            else None
        )
    return (code_of_pair(unit, low), code_of_pair(unit, high)) if 0xDC00 <= low <= 0xDFFF else None


def escape_prefix(code_point: int, length: int) -> str:
    """The first `length` characters of `uXXXX` or `uXXXX\\uXXXX` for a character."""
    if code_point < 0x10000:
        return f"u{code_point:04x}"[:length]
    above = code_point - 0x10000
    return f"u{0xD800 + (above >> 10):04x}\\u{0xDC00 + (above & 0x3FF):04x}"[:length]
