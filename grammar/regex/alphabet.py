"""The characters of one pattern, as few classes of them as the pattern tells apart.

A *part* is a class of characters that every class of the pattern has wholly or not at all; a *mask*
is a set of parts, part n being bit n. What is asked of characters again and again is asked of
masks, since a class such as `\\w` has some 700 ranges and patterns seldom have more than 20 parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from grammaton.grammar.regex.ranges import Ranges, contains, partition, unite

if TYPE_CHECKING:
    from grammaton._core import TermStore


class Alphabet:
    """The parts of all code points but surrogates, which no text holds.

    Attributes:
        all: the mask of every part.
        samples: for each part, one of its characters in UTF-8.
    """

    def __init__(self, store: TermStore, classes: Iterable[Ranges]) -> None:
        self._store = store
        self._parts: list[Ranges] = []
        self.samples: list[bytes] = []
        for part in partition(classes):
            sample = _sample(part)
            if sample is not None:
                self._parts.append(part)
                self.samples.append(chr(sample).encode())
        self._points = [ord(sample.decode()) for sample in self.samples]
        self.all = (1 << len(self._parts)) - 1
        self._masks: dict[Ranges, int] = {}
        self._terms: dict[int, int] = {}

    def mask(self, ranges: Ranges) -> int:
        """The mask of one of the pattern's classes."""
        mask = self._masks.get(ranges)
        if mask is None:
            mask = sum(
                1 << number for number, point in enumerate(self._points) if contains(ranges, point)
            )
            self._masks[ranges] = mask
        return mask

    def term(self, mask: int) -> int:
        """One character out of a mask."""
        term = self._terms.get(mask)
        if term is None:
            parts = [part for number, part in enumerate(self._parts) if mask >> number & 1]
            term = self._terms[mask] = self._store.chars(unite(*parts) if parts else ())
        return term


def _sample(part: Ranges) -> int | None:
    for low, high in part:
        point = 0xE000 if 0xD800 <= low <= 0xDFFF else low
        if point <= high:
            return point
    return None
