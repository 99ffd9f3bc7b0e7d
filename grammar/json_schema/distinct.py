"""Values that must differ: what may stand in a `uniqueItems` array, and as key beside others.

The core remembers the values that a scope has seen and compares them by what they mean (a string
by its characters, a number by its size); here is only said which texts are such values. An item is
a string or another scalar, all strings of a position together and all others together, so that a
text is remembered once. Numbers are written as constrained ones are (number_texts.py): with free
exponents the texts of one number are no regular language.

How many different values there are is counted, since no array may need, or be offered, more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.json_schema.number_texts import NumberTexts
from grammaton.grammar.json_schema.positions import Position
from grammaton.grammar.json_schema.strings import KeySort, StringTexts
from grammaton.grammar.json_schema.text import TextPieces

MOST_COUNTED = 2**32 - 2
"""From so many values on it is as if there were infinitely many: no text has as many items."""


class Distinct(NamedTuple):
    """A term of the values of a place, and how many there are; None for no end of them."""

    term: int
    size: int | None


class DistinctValues:
    """Builds the terms of values that must differ in one store."""

    def __init__(self, pieces: TextPieces, strings: StringTexts, numbers: NumberTexts) -> None:
        self.store = pieces.store
        self.pieces = pieces
        self.strings = strings
        self.numbers = numbers
        self._items: dict[Position, Distinct] = {}
        self._keys: dict[KeySort, Distinct] = {}

    def item(self, position: Position, pointer: str) -> Distinct:
        """A value of a position.

        Raises:
            UnsupportedKeyword: it may be an array or object, or its values can't be compared.
        """
        item = self._items.get(position)
        if item is None:
            item = self._items[position] = self._item(position, pointer)
        return item

    def key(self, sort: KeySort) -> Distinct:
        """A key of a sort."""
        key = self._keys.get(sort)
        if key is None:
            text = self.strings.key_text(sort)
            count = self._count(text)
            key = self._keys[sort] = Distinct(self._string(text), count)
        return key

    def _string(self, text: int) -> int:
        """A string of some decoded texts."""
        store, pieces = self.store, self.pieces
        if pieces.spelling.is_free:
            return int(store.concat([pieces.quote, store.distinct_text(text)]))
        return int(store.distinct(store.concat([pieces.quote, pieces.lift(text), pieces.quote])))

    def _item(self, position: Position, pointer: str) -> Distinct:
        if position.arrays or position.objects:
            raise UnsupportedKeyword(
                "'uniqueItems' is not enforced for arrays and objects yet", pointer=pointer
            )
        store = self.store
        texts: list[int] = []
        numbers: list[int] = []
        others: list[int] = []
        for term in position.scalars:
            text = self.strings.decoded(term)
            if text is not None:
                texts.append(text)
            elif self.numbers.is_number(term):
                numbers.append(term)
            elif store.is_regular(term):
                others.append(term)
            else:
                raise UnsupportedKeyword(
                    "'uniqueItems' is enforced for strings of a regular language only",
                    pointer=pointer,
                )
        counts = [self.numbers.count(numbers)] if numbers else []
        terms: list[int] = []
        if texts:
            text = store.union(texts)
            counts.append(self._count(text))
            terms.append(self._string(text))
        if others:
            counts.append(self._count(store.union(others)))
        languages = [*(self.numbers.plain(number) for number in numbers), *others]
        if languages:
            terms.append(store.distinct(store.union(languages)))
        total: int | None = 0
        for count in counts:
            total = None if count is None or total is None else total + count
        return Distinct(int(store.union(terms)), total)

    def _count(self, term: Any) -> int | None:
        count = int(self.store.count_texts(term, MOST_COUNTED))
        return None if count == MOST_COUNTED else count
