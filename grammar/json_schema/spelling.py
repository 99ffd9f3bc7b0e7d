"""Spellings: how the characters of strings may be escaped.

JSON lets every character be written as an escape, and some in two more ways (RFC 8259, section 7).
By default all spellings are in. Two options narrow that, for values and keys alike:

    escapes="canonical"   each character has one spelling, that of `json.dumps`: an escape where it
                          must be one, the short form if there is one, lower-case digits
    ensure_ascii=True     no character beyond ASCII stands as itself

Together they are `json.dumps(ensure_ascii=True)`, `escapes="canonical"` alone is
`json.dumps(ensure_ascii=False)`. Both are conditions on the spelled text, so languages of strings
are lifted first and then met with them: some 40 terms, made once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from grammaton.errors import GrammatonError

Escapes = Literal["any", "canonical"]


def check_spelling(escapes: object, ensure_ascii: object) -> None:
    """Refuses what these options can't be.

    Raises:
        GrammatonError: an option has a value it can't have.
    """
    if not isinstance(escapes, str) or escapes not in ("any", "canonical"):
        raise GrammatonError(f'escapes is "any" or "canonical", not {escapes!r}')
    if not isinstance(ensure_ascii, bool):
        raise GrammatonError(f"ensure_ascii is True or False, not {ensure_ascii!r}")


class Spelling:
    """Spells decoded texts in one store.

    Args:
        escapes, ensure_ascii: see the module's docstring; checked.
    """

    def __init__(self, store: Any, escapes: Escapes, ensure_ascii: bool) -> None:
        self.store = store
        self._canonical = escapes == "canonical"
        self._ascii = ensure_ascii
        self._free = not self._canonical and not ensure_ascii
        self._spelled: int | None = None

    def on(self, store: Any) -> Spelling:
        """This spelling in a copy of its store."""
        spelling = object.__new__(Spelling)
        spelling.__dict__.update(self.__dict__)
        spelling.store = store
        return spelling

    @property
    def is_free(self) -> bool:
        """Whether every spelling is allowed."""
        return self._free

    def texts(self, texts: Sequence[str]) -> int:
        """The spellings of some texts, without quotes."""
        store = self.store
        if self._canonical:
            spelled = [json.dumps(text, ensure_ascii=self._ascii)[1:-1].encode() for text in texts]
        else:
            spelled = [text.encode() for text in texts]
        term = store.literal(spelled[0]) if len(spelled) == 1 else store.literals(spelled)
        return int(term) if self._canonical else self._met(store.json(term))

    def lift(self, term: int) -> int:
        """The spellings of the texts of a regular term, without quotes."""
        return self._met(self.store.json(term))

    def character(self) -> int:
        """The spellings of one character, whichever it is."""
        if self._free:
            return int(self.store.json(self.store.chars([(0, 0x10FFFF)])))
        return self._canonical_character() if self._canonical else self._met_character()

    def _met(self, lifted: int) -> int:
        if self._free:
            return lifted
        if self._spelled is None:
            one = self._canonical_character() if self._canonical else self.store.chars([(0, 127)])
            self._spelled = self.store.repeat(one, 0, None)
        return int(self.store.intersect([lifted, self._spelled]))

    def _met_character(self) -> int:
        store = self.store
        ascii_characters = store.repeat(store.chars([(0, 127)]), 0, None)
        return int(store.intersect([store.json(store.chars([(0, 0x10FFFF)])), ascii_characters]))

    def _canonical_character(self) -> int:
        store = self.store
        escaped = [code for code in range(0x20) if code not in (8, 9, 10, 12, 13)]
        last = 0x10FFFF
        if self._ascii:
            escaped.append(0x7F)
            last = 0x7E
        parts = [
            store.chars([(0x20, 0x21), (0x23, 0x5B), (0x5D, last)]),
            *(store.literal(b"\\" + letter.encode()) for letter in '"\\bfnrt'),
            *(store.literal(f"\\u{code:04x}".encode()) for code in escaped),
        ]
        if self._ascii:
            parts.extend(self._beyond_ascii())
        return int(store.union(parts))

    def _beyond_ascii(self) -> list[int]:
        """Escapes of U+0080 and up, in lower case."""
        store = self.store
        start = store.literal(b"\\u")

        def of(digits: str) -> int:
            return int(store.chars([(ord(digit), ord(digit)) for digit in digits]))

        hexadecimal = "0123456789abcdef"
        digit, zero = of(hexadecimal), of("0")
        units = [
            (zero, zero, of("89abcdef"), digit),
            (zero, of("1234567"), digit, digit),
            (zero, of("89abcdef"), digit, digit),
            (of("123456789abcef"), digit, digit, digit),
            (of("d"), of("01234567"), digit, digit),
        ]
        high = store.concat([start, of("d"), of("89ab"), digit, digit])
        low = store.concat([start, of("d"), of("cdef"), digit, digit])
        return [
            *(int(store.concat([start, *unit])) for unit in units),
            int(store.concat([high, low])),
        ]
