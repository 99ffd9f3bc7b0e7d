"""The format `idn-hostname`: internationalised host names (RFC 5890 to 5893).

A name is labels between full stops (any of IDNA's four). A label is one of `hostname`, or a
U-label: letters and digits that RFC 5892 calls valid, with its contextual rules and the rule for
scripts written from right to left (RFC 5893). It is a stated approximation from inside: every text
of it is a name. It lacks

- A-labels (`xn--`), as `hostname` does,
- U-labels of over `MAX_LABEL` characters, and names of over `MAX_LABELS` labels with one: how long
  the encoded form gets, which may have 63 and 253 characters, is no regular question,
- U-labels with a character that may compose with the one before, or with two combining marks of
  a class above 0 in a row: the others are in normal form C as they stand.

The classes come from Python's own Unicode tables when the format is first used, in some 0.2 s.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

from grammaton.grammar.regex.ranges import Ranges, intersect, invert, normalize, unite

MAX_LABEL, MAX_LABELS = 12, 4

_VALID_EXCEPTIONS = frozenset((0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007))
_INVALID_EXCEPTIONS = frozenset((0x640, 0x7FA, 0x302E, 0x302F, *range(0x3031, 0x3036), 0x303B))
_MIDDLE_DOT, _KERAIA, _KATAKANA_DOT = 0xB7, 0x375, 0x30FB
_GERESH = (0x5F3, 0x5F4)
_NON_JOINER, _JOINER = 0x200C, 0x200D
_ARABIC_DIGITS, _EXTENDED_DIGITS = range(0x660, 0x66A), range(0x6F0, 0x6FA)
_CONTEXTUAL = frozenset(
    (
        *(_MIDDLE_DOT, _KERAIA, _KATAKANA_DOT, *_GERESH, _NON_JOINER, _JOINER),
        *(*_ARABIC_DIGITS, *_EXTENDED_DIGITS),
    )
)
# Letters of the Arabic block that join on both sides, and those that join to the one before only.
_JOINING = (
    *(0x620, 0x626, 0x628, *range(0x62A, 0x62F), *range(0x633, 0x640), *range(0x641, 0x648)),
    *(0x649, 0x64A),
)
_JOINING_BEFORE = (*range(0x622, 0x626), 0x627, 0x629, *range(0x62F, 0x633), 0x648)
_GREEK = ((0x370, 0x3E1), (0x3F0, 0x3FF), (0x1F00, 0x1FFF))
_HEBREW = ((0x5D0, 0x5EA),)
_KANA_OR_HAN = (
    *((0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FD, 0x30FF), (0x31F0, 0x31FF)),
    *((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, 0x323AF)),
)
_LETTER_DIGITS = frozenset(("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"))
_LAST = 0x3FFFF
"""No letter or digit is assigned above."""


def idn_hostname_term(store: Any, hostname_label: int) -> int:
    """The term of the format over decoded characters.

    Args:
        hostname_label: the term of a label of `hostname`.
    """
    return _Names(store).term(hostname_label)


def _is_valid(code: int, composing: set[int]) -> bool:
    """RFC 5892, section 3, without what the contextual rules decide, in normal form C."""
    if code in _VALID_EXCEPTIONS:
        return True
    if code in _INVALID_EXCEPTIONS or code in _CONTEXTUAL or code in composing:
        return False
    char = chr(code)
    if unicodedata.category(char) not in _LETTER_DIGITS or 0x1100 <= code <= 0x11FF:
        return False
    if 0xA960 <= code <= 0xA97F or 0xD7B0 <= code <= 0xD7FF:  # old Hangul
        return False
    if not unicodedata.decomposition(char) and char.lower() == char == char.casefold():
        return True
    normal = unicodedata.normalize
    return normal("NFKC", normal("NFKC", char).casefold()) == char


def _set(codes: Iterable[int]) -> Ranges:
    return normalize((code, code) for code in codes)


def _without(codes: Ranges, others: Ranges) -> Ranges:
    return intersect(codes, invert(others))


class _Names:
    """The pieces of the language in one store."""

    def __init__(self, store: Any) -> None:
        self.store = store
        composing = {
            int(parts[1], 16)
            for code in range(0x80, _LAST)
            if len(parts := unicodedata.decomposition(chr(code)).split()) == 2
            and not parts[0].startswith("<")
        }
        valid = {code for code in range(0x80, _LAST) if _is_valid(code, composing)}
        ascii_codes = [0x2D, *range(0x30, 0x3A), *range(0x61, 0x7B)]
        sorts: dict[tuple[str, int, str], list[int]] = {}
        for code in sorted(valid.union(ascii_codes, _CONTEXTUAL)):
            char = chr(code)
            key = (
                unicodedata.category(char),
                unicodedata.combining(char),
                unicodedata.bidirectional(char),
            )
            sorts.setdefault(key, []).append(code)
        self.sorts = {key: _set(codes) for key, codes in sorts.items()}
        self.codes = unite(*self.sorts.values())
        self.any = self._chars(self.codes)
        self.all = store.repeat(self.any, 0, None)

    def _chars(self, codes: Ranges) -> int:
        return int(self.store.chars(list(codes)))

    def _of(self, test: Callable[[str, int, str], bool]) -> int:
        """One character by its category, combining class and direction."""
        return self._chars(unite(*(codes for key, codes in self.sorts.items() if test(*key))))

    def _within(self, ranges: Iterable[tuple[int, int]]) -> int:
        return self._chars(intersect(self.codes, normalize(ranges)))

    def _then(self, *terms: int) -> int:
        return int(self.store.concat(terms))

    def _or(self, *terms: int) -> int:
        return int(self.store.union(terms))

    def _and(self, *terms: int) -> int:
        return int(self.store.intersect(terms))

    def _has(self, part: int) -> int:
        return self._then(self.all, part, self.all)

    def _bidi(self, *classes: str) -> int:
        return self._of(lambda _category, _combining, direction: direction in classes)

    def _units(self, *, left_out: Iterable[int]) -> int:
        """Runs of characters, those with a contextual rule where it allows them (RFC 5892, appendix
        A); a combining mark follows a character that is none."""
        store = self.store

        def chars(codes: Iterable[int]) -> int:
            return self._chars(_set(codes))

        greek = self._within(_GREEK)
        hebrew = self._within(_HEBREW)
        marks = self._of(lambda _category, combining, _direction: combining not in (0, 9))
        virama = self._of(lambda _category, combining, _direction: combining == 9)
        joiners = chars((_JOINER, _NON_JOINER))
        special = {*_CONTEXTUAL, *left_out, 0x6C}
        special -= {_KATAKANA_DOT, *_ARABIC_DIGITS, *_EXTENDED_DIGITS} - set(left_out)
        uncombined = (codes for (_, combining, _), codes in self.sorts.items() if combining == 0)
        plain = self._chars(_without(unite(*uncombined), _set(special)))
        el = chars([0x6C])
        transparent = store.repeat(marks, 0, 1)
        bases = self._or(
            plain,
            self._then(el, store.repeat(self._then(chars([_MIDDLE_DOT]), el), 0, None)),
            self._then(chars([_KERAIA]), greek),
            self._then(hebrew, chars(_GERESH)),
        )
        after = self._or(store.EMPTY, marks, self._then(virama, self._or(store.EMPTY, joiners)))
        joined = self._then(
            store.repeat(
                self._then(chars(_JOINING), transparent, chars([_NON_JOINER]), transparent), 1, None
            ),
            chars((*_JOINING, *_JOINING_BEFORE)),
        )
        return int(store.repeat(self._then(self._or(bases, joined), after), 1, None))

    def _label(self) -> int:
        """U-labels, whatever their direction."""
        store, everything = self.store, self.all
        kana_or_han = self._within(_KANA_OR_HAN)
        dot, arabic, extended = (_KATAKANA_DOT,), tuple(_ARABIC_DIGITS), tuple(_EXTENDED_DIGITS)
        units = self._or(
            self._units(left_out=dot + arabic),
            self._units(left_out=dot + extended),
            self._and(self._units(left_out=arabic), self._has(kana_or_han)),
        )
        hyphen = _set([0x2D])
        no_hyphen = self._chars(_without(self.codes, hyphen))
        marks = (codes for key, codes in self.sorts.items() if key[0][0] == "M")
        first = self._chars(_without(self.codes, unite(hyphen, *marks)))
        third = self._or(
            self._then(no_hyphen, self.any), self._then(self._chars(hyphen), no_hyphen)
        )
        begins = self._or(
            store.repeat(self.any, 1, 3), self._then(self.any, self.any, third, everything)
        )
        return self._and(
            store.repeat(self.any, 1, MAX_LABEL),
            self._has(self._within([(0x80, _LAST)])),
            units,
            self._then(first, everything),
            self._then(everything, no_hyphen),
            begins,
        )

    def _directions(self) -> tuple[int, int]:
        """Labels without a right-to-left character, and labels that may stand beside ones."""
        store = self.store
        right = ("R", "AL", "AN")
        plain = store.repeat(
            self._of(lambda _category, _combining, direction: direction not in right), 1, None
        )
        neutral = ("ES", "CS", "ET", "ON", "BN", "NSM")
        marks = store.repeat(self._bidi("NSM"), 0, None)
        left_to_right = self._and(
            self._then(self._bidi("L"), self.all),
            store.repeat(self._bidi("L", "EN", *neutral), 1, None),
            self._then(self.all, self._bidi("L", "EN"), marks),
        )
        right_to_left = self._and(
            self._then(self._bidi("R", "AL"), self.all),
            store.repeat(self._bidi("R", "AL", "AN", "EN", *neutral), 1, None),
            self._then(self.all, self._bidi("R", "AL", "AN", "EN"), marks),
            self._or(
                store.repeat(self._bidi("R", "AL", "AN", *neutral), 1, None),
                store.repeat(self._bidi("R", "AL", "EN", *neutral), 1, None),
            ),
        )
        return plain, self._or(left_to_right, right_to_left)

    def term(self, hostname_label: int) -> int:
        """The whole format."""
        store = self.store
        label = self._label()
        plain, beside_right = self._directions()
        anything = store.chars([(0, 0x10FFFF)])
        letter = store.chars([(0x41, 0x5A), (0x61, 0x7A)])
        stop = store.chars([(0x2E, 0x2E), (0x3002, 0x3002), (0xFF0E, 0xFF0E), (0xFF61, 0xFF61)])

        def names(one: int, most: int | None) -> int:
            return self._then(one, store.repeat(self._then(stop, one), 0, most))

        # Four labels of 62 characters have 251.
        short = self._and(hostname_label, store.repeat(anything, 1, 62))
        lettered = self._and(short, self._then(letter, store.complement(store.NOTHING)))
        return self._or(
            self._and(names(hostname_label, None), store.repeat(anything, 1, 253)),
            names(self._or(short, self._and(label, plain)), MAX_LABELS - 1),
            names(self._or(lettered, self._and(label, beside_right)), MAX_LABELS - 1),
        )
