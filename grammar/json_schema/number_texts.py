"""The texts of numbers: which texts spell a number within bounds (numbers.py).

Multiples, constants and bounds with free exponents are no regular language, so the texts of a
*constrained* number are fixed as

- plain decimals with optional trailing zeros (`1`, `1.0`, `-0.250`), and
- normalised scientific form `d[.d*]e+NN` / `d[.d*]e-NN` exactly where `json.dumps` writes it: for
  exponents from `MIN_EXPONENT` to -5 and from 16 to `MAX_EXPONENT`. A one-digit exponent may lack
  the zero that Python writes (`1e-07`, `1e-7`).

`multipleOf` constrains, too (multiples.py). A number without either, or with its sign alone fixed,
has every spelling of RFC 8259, section 6.
An integer is what JSON Schema calls one (validation 2020-12, section 6.1.1): `1.0` is an integer,
and so is `1e+22`; up to draft 4 it is a number without fraction and exponent.

Zero has a minus sign in some texts; `-0` is the number 0. Bounds are exact decimals.
A bound costs a few terms for each of its digits; everything is made once for each distinct bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from grammaton.errors import LimitExceeded
from grammaton.grammar.json_schema.multiples import (
    plain_multiples,
    scientific_multiples,
)
from grammaton.grammar.json_schema.numbers import Bounds, Digits, Exact, negated
from grammaton.grammar.json_schema.text import TextPieces, copied

MIN_EXPONENT, MAX_EXPONENT = -324, 308
"""Exponents of the scientific form: those a double can have."""
SMALL_EXPONENT, LARGE_EXPONENT = -5, 16
"""The scientific form starts below and above these, as in Python's `repr`."""

MOST_LISTED = 100_000
"""Numbers that are looked at one by one to be counted."""

Sort = Literal["integer", "fraction", "number"]
"""Integers, numbers that are none, or both."""


class NumberTexts:
    """Builds the terms of numbers in one store; each distinct one is made once.

    Args:
        plain_integers: integers have neither fraction nor exponent, as drafts up to 4 say.
    """

    def __init__(self, pieces: TextPieces, *, plain_integers: bool = False) -> None:
        store = pieces.store
        self.pieces = pieces
        self.plain_integers = plain_integers
        self.store = store
        self.nothing: int = store.NOTHING
        self.empty: int = store.EMPTY
        self._frames: dict[tuple[Sort, Bounds], int] = {}
        self._values: dict[tuple[bool, tuple[Exact, ...]], int] = {}
        self._said: dict[int, tuple[Sort, Bounds] | tuple[tuple[Exact, ...], int]] = {}
        self._made = False

    def on(self, pieces: TextPieces) -> NumberTexts:
        """These texts, and those made so far, in a copy of their store."""
        texts = object.__new__(NumberTexts)
        texts.__dict__.update(copied(self))
        texts.pieces, texts.store = pieces, pieces.store
        return texts

    def _make(self) -> None:
        """The pieces that all numbers share, made when the first number is."""
        if self._made:
            return
        self._made = True
        store = self.store
        self.digit: int = store.chars([(48, 57)])
        self.nonzero: int = store.chars([(49, 57)])
        self.zero: int = store.literal(b"0")
        self.dot: int = store.literal(b".")
        self.minus: int = store.literal(b"-")
        self.digits: int = store.repeat(self.digit, 0, None)
        self.zeros: int = store.repeat(self.zero, 0, None)
        self.whole: int = self._or(self.zero, self._then(self.nonzero, self.digits))
        self.fraction: int = self._maybe(self.dot, store.repeat(self.digit, 1, None))
        self.no_fraction: int = self._maybe(self.dot, store.repeat(self.zero, 1, None))

    def _then(self, *terms: int) -> int:
        return self.nothing if self.nothing in terms else int(self.store.concat(terms))

    def _or(self, *terms: int) -> int:
        some = [term for term in terms if term != self.nothing]
        if len(some) == 1:
            return some[0]
        return int(self.store.union(some)) if some else self.nothing

    def _maybe(self, *terms: int) -> int:
        return self._or(self.empty, self._then(*terms))

    def number(self, bounds: Bounds, sort: Sort) -> int:
        """A call of the frame of the numbers of a sort within bounds, or NOTHING."""
        key = (sort, bounds)
        frame = self._frames.get(key)
        if frame is None:
            self._make()
            body = self._language(bounds, sort)
            frame = self.nothing
            if body != self.nothing:
                limits = bounds.describe()
                name = sort.upper()
                frame = self.pieces.frame(f"{name} {limits}" if limits else name, body)
                self._said[frame] = key
            self._frames[key] = frame
        return frame

    def _language(self, bounds: Bounds, sort: Sort, *, free: bool = True) -> int:
        """The texts of the numbers of a sort within bounds; `free` if exponents may be."""
        body = self._body(bounds, sort == "integer", free=free)
        if sort == "fraction" and body != self.nothing:
            body = int(self.store.intersect([body, self._no_integer()]))
            body = self.nothing if self.store.is_empty(body) else body
        return body

    def is_number(self, term: int) -> bool:
        """Whether a term was made by `number` or `values`."""
        return term in self._said

    def plain(self, term: int) -> int:
        """The texts of a term made here, without free exponents; regular."""
        said = self._said[term]
        if isinstance(said[0], tuple):
            assert isinstance(said[1], int)
            return said[1]
        assert isinstance(said[1], Bounds)
        return self._language(said[1], said[0], free=False)

    def count(self, terms: Sequence[int]) -> int | None:
        """How many numbers some terms made here have together; None for no end of them.

        Raises:
            LimitExceeded: they are too many to be told apart.
        """
        found: set[Fraction] = set()
        for term in terms:
            said = self._said[term]
            if isinstance(said[0], tuple):
                found.update(map(Fraction, said[0]))
                continue
            sort, bounds = said
            assert isinstance(bounds, Bounds)
            steps = bounds.steps(integer=sort == "integer")
            if steps is None:
                return None
            step, first, last = steps
            if len(terms) == 1 and sort != "fraction" and not bounds.skipped:
                return max(0, last - first + 1)
            if last - first >= MOST_LISTED:
                raise LimitExceeded(
                    f"over {MOST_LISTED} numbers that must differ are said in several ways"
                )
            skipped = [Fraction(each) for each in bounds.skipped]
            for number in (step * i for i in range(first, last + 1)):
                if any((number / each).denominator == 1 for each in skipped):
                    continue
                if sort != "fraction" or number.denominator != 1:
                    found.add(number)
        return len(found)

    def _no_integer(self) -> int:
        """Spellings of numbers that are no integers: plain ones, or with a small power of ten."""
        sign = self._maybe(self.minus)
        if self.plain_integers:
            return int(self.store.complement(self._then(sign, self.whole)))
        plain = self._then(sign, self.whole, self.dot, self.digits, self.nonzero, self.digits)
        mantissa = self._then(sign, self.nonzero, self.fraction)
        return self._or(plain, self._then(mantissa, self.powers(MIN_EXPONENT, SMALL_EXPONENT)))

    def values(self, values: tuple[Exact, ...], *, integer: bool) -> int:
        """The texts of finitely many numbers; `integer` when they must be integers."""
        key = (integer and self.plain_integers, values)
        term = self._values.get(key)
        if term is None:
            self._make()
            texts = term = self._or(*[self._value(value, key[0]) for value in values])
            if len(values) > 1:
                term = self.pieces.frame("NUMBERS", term)
            self._said[term] = (values, texts)
            self._values[key] = term
        return term

    def _value(self, value: Exact, plain_integer: bool) -> int:
        if value == 0:
            fraction = self.empty if plain_integer else self.no_fraction
            return self._then(self._maybe(self.minus), self.zero, fraction)
        digits = Digits.of(_magnitude(value))
        if digits.fraction:
            written = f"{digits.whole}.{digits.fraction}".encode()
            plain = self._then(self.store.literal(written), self.zeros)
        else:
            plain = int(self.store.literal(digits.whole.encode()))
            if not plain_integer:
                plain = self._then(plain, self.no_fraction)
        exponent = digits.exponent
        scientific = not SMALL_EXPONENT < exponent < LARGE_EXPONENT and not plain_integer
        if scientific and self._in_range(exponent):
            mantissa = digits.digits[0]
            if len(digits.digits) > 1:
                mantissa += "." + digits.digits[1:]
            power = self.powers(exponent, exponent)
            plain = self._or(plain, self._then(self.store.literal(mantissa.encode()), power))
        return self._then(self.minus, plain) if value < 0 else plain

    def _in_range(self, exponent: int) -> bool:
        return MIN_EXPONENT <= exponent <= MAX_EXPONENT

    def _body(self, bounds: Bounds, integer: bool, *, free: bool) -> int:
        if bounds.divides:
            bounds = (bounds.whole() if integer else bounds).reduced()
            if bounds.skips_all:
                return self.nothing
        if free and not integer and not bounds.divides:
            texts = self._free(bounds)
            if texts is not None:
                return texts
        positive = self._magnitudes(bounds, integer)
        negative = self._magnitudes(bounds.mirrored(), integer)
        return self._or(positive, self._then(self.minus, negative))

    def _free(self, bounds: Bounds) -> int | None:
        """Numbers of any size whose sign alone may be fixed, with every exponent."""
        if bounds.low is None and bounds.high is None:
            return self._then(self._maybe(self.minus), self.whole, self.fraction, self._exponent())
        if bounds.low == 0 and bounds.high is None:
            minus, open_end = self.empty, bounds.low_open
        elif bounds.high == 0 and bounds.low is None:
            minus, open_end = self.minus, bounds.high_open
        else:
            return None
        above = self._then(minus, self._above_zero(), self._exponent())
        if open_end:
            return above
        zero = self._then(self._maybe(self.minus), self.zero, self.no_fraction, self._exponent())
        return self._or(above, zero)

    def _above_zero(self) -> int:
        """Decimals without sign and exponent that are not zero."""
        return self._or(
            self._then(self.nonzero, self.digits, self.fraction),
            self._then(self.zero, self.dot, self.zeros, self.nonzero, self.digits),
        )

    def _exponent(self) -> int:
        letter = self.store.chars([(69, 69), (101, 101)])
        sign = self.store.chars([(43, 43), (45, 45)])
        return self._maybe(letter, self._maybe(sign), self.store.repeat(self.digit, 1, None))

    def _magnitudes(self, bounds: Bounds, integer: bool) -> int:
        """Texts without a sign of the numbers from 0 up that are within bounds."""
        low, low_open, high, high_open = bounds.low, bounds.low_open, bounds.high, bounds.high_open
        if low is None or low < 0:
            low, low_open = 0, False
        if high is not None and (high < low or (high == low and (low_open or high_open))):
            return self.nothing
        if integer:
            plain, scientific = self._integers(low, low_open, high, high_open)
        else:
            above = Bounds(low, low_open, high, high_open)
            plain, scientific = self._decimals(above), self._scientific(above)
        if bounds.divides:
            plain = self._divided(plain, bounds)
            if scientific != self.nothing:
                scientific = self._divided_scientific(scientific, bounds, integer)
        return self._or(plain, scientific)

    def _divided_scientific(self, within: int, bounds: Bounds, integer: bool) -> int:
        """The scientific forms among those within bounds that are multiples as they should be."""
        inner = self._exponents_within(bounds)
        if integer and (bounds.step is None or bounds.step != int(bounds.step)):
            # Some of these multiples are not whole.
            multiples = scientific_multiples(self, bounds.step, bounds.skipped, inner)
            term = int(self.store.intersect([within, multiples]))
            return self.nothing if self.store.is_empty(term) else term
        edges: dict[int, list[int]] = {}  # mantissas within, by the exponent of a bound
        if bounds.low is not None and bounds.low > 0:
            low = Digits.of(bounds.low)
            edges[low.exponent] = [self._mantissa_from(low, bounds.low_open)]
        if bounds.high is not None and bounds.high > 0:
            high = Digits.of(bounds.high)
            mantissa = self._mantissa_to(high, bounds.high_open)
            edges.setdefault(high.exponent, []).append(mantissa)
        parts = []
        for exponent, mantissas in edges.items():
            at = [(exponent, exponent) for first, last in inner if first <= exponent <= last]
            inner = _without(inner, exponent)
            parts.append(
                scientific_multiples(self, bounds.step, bounds.skipped, at, mantissas=mantissas)
            )
        parts.append(scientific_multiples(self, bounds.step, bounds.skipped, inner))
        return self._or(*parts)

    def _divided(self, within: int, bounds: Bounds) -> int:
        """The plain numbers among some texts without sign that are multiples as they should be."""
        store = self.store
        parts = [within]
        if bounds.step is not None:
            parts.append(plain_multiples(self, bounds.step))
        if bounds.skipped:
            wrong = self._or(*[plain_multiples(self, step) for step in bounds.skipped])
            parts.append(store.complement(wrong))
        term = int(store.intersect(parts))
        return self.nothing if store.is_empty(term) else term

    def _exponents_within(self, bounds: Bounds) -> list[tuple[int, int]]:
        """The exponents that scientific forms of numbers from 0 up within bounds can have."""
        least, most = MIN_EXPONENT, MAX_EXPONENT
        if bounds.low is not None and bounds.low > 0:
            least = Digits.of(bounds.low).exponent
        if bounds.high:
            most = Digits.of(bounds.high).exponent
        clipped = [(max(first, least), min(last, most)) for first, last in self.exponents()]
        return [(first, last) for first, last in clipped if first <= last]

    def exponents(self) -> list[tuple[int, int]]:
        """The least and highest exponents of the scientific form, below and above zero."""
        return [(MIN_EXPONENT, SMALL_EXPONENT), (LARGE_EXPONENT, MAX_EXPONENT)]

    def _integers(
        self, low: Exact, low_open: bool, high: Exact | None, high_open: bool
    ) -> tuple[int, int]:
        """Whole numbers from 0 up within bounds: plain ones, and in scientific form."""
        first = _ceiling(low)
        if low_open and first == low:
            first += 1
        last = None
        if high is not None:
            last = -_ceiling(negated(high))
            if high_open and last == high:
                last -= 1
            if last < first:
                return self.nothing, self.nothing
        if self.plain_integers:
            return self._whole_range(first, last), self.nothing
        plain = self._then(self._whole_range(first, last), self.no_fraction)
        if last is not None and last < 10**LARGE_EXPONENT:
            return plain, self.nothing
        # With at most 16 digits after the point and an exponent of at least 16 every text is whole.
        fraction = self._maybe(self.dot, self.store.repeat(self.digit, 1, LARGE_EXPONENT))
        whole = self._then(self.nonzero, fraction, self.powers(LARGE_EXPONENT, MAX_EXPONENT))
        if last is None and first <= 10**LARGE_EXPONENT:
            return plain, whole
        within = self._scientific(Bounds(first, False, last, False))
        return plain, int(self.store.intersect([whole, within]))

    def _decimals(self, bounds: Bounds) -> int:
        """Plain decimals from 0 up within bounds; `low` is set."""
        low, high = bounds.low, bounds.high
        assert low is not None
        low_whole, low_fraction = _parts(low)
        floor = int(low_whole)
        at_low = self._fraction_from(low_fraction, bounds.low_open)
        if high is None:
            return self._or(
                self._then(self._integer(floor), at_low),
                self._then(self._whole_range(floor + 1, None), self.fraction),
            )
        high_whole, high_fraction = _parts(high)
        ceiling = int(high_whole)
        at_high = self._fraction_to(high_fraction, bounds.high_open)
        if floor == ceiling:
            both = self.store.intersect([at_low, at_high])
            if self.store.is_empty(both):
                return self.nothing
            return self._then(self._integer(floor), both)
        parts = [
            self._then(self._integer(floor), at_low),
            self._then(self._integer(ceiling), at_high),
        ]
        if ceiling - floor > 1:
            between = self._whole_range(floor + 1, ceiling - 1)
            parts.append(self._then(between, self.fraction))
        return self._or(*parts)

    def _integer(self, value: int) -> int:
        return int(self.store.literal(str(value).encode()))

    def _fraction_from(self, digits: str, strict: bool) -> int:
        """Optional fractions of value at least (above) 0.digits."""
        anything = self._then(self.zeros, self.nonzero, self.digits)
        if not digits:
            return self._then(self.dot, anything) if strict else self.fraction
        term = anything if strict else self.digits
        for digit in reversed(digits):
            here = ord(digit)
            term = self._then(int(self.store.chars([(here, here)])), term)
            if digit < "9":
                more = self.store.chars([(here + 1, 57)])
                term = self._or(term, self._then(more, self.digits))
        return self._then(self.dot, term)

    def _fraction_to(self, digits: str, strict: bool) -> int:
        """Optional fractions of value at most (below) 0.digits."""
        if not digits:
            return self.nothing if strict else self.no_fraction
        # A text that stops early is smaller than the bound, whose last digit is not zero.
        term = self.nothing if strict else self.zeros
        for i in range(len(digits) - 1, -1, -1):
            here = ord(digits[i])
            term = self._then(int(self.store.chars([(here, here)])), term)
            if digits[i] > "0":
                less = self.store.chars([(48, here - 1)])
                term = self._or(term, self._then(less, self.digits))
            if i:
                term = self._or(term, self.empty)
        return self._maybe(self.dot, term)

    def _scientific(self, bounds: Bounds) -> int:
        """Scientific forms within bounds; `low` is at least 0."""
        low = None if not bounds.low else Digits.of(bounds.low)
        high = None
        if bounds.high is not None:
            if bounds.high == 0:
                return self.nothing
            high = Digits.of(bounds.high)
        parts = []
        for least, most in self.exponents():
            parts.extend(self._scientific_part(bounds, low, high, least, most))
        return self._or(*parts)

    def _scientific_part(
        self, bounds: Bounds, low: Digits | None, high: Digits | None, least: int, most: int
    ) -> list[int]:
        parts = []
        inner_least, inner_most = least, most
        if low is not None and low.exponent >= least:
            inner_least = low.exponent + 1
        if high is not None and high.exponent <= most:
            inner_most = high.exponent - 1
        if inner_least <= inner_most:
            any_mantissa = self._then(self.nonzero, self.fraction)
            parts.append(self._then(any_mantissa, self.powers(inner_least, inner_most)))
        at_low = low is not None and least <= low.exponent <= most
        at_high = high is not None and least <= high.exponent <= most
        if low is not None and high is not None and low.exponent == high.exponent:
            if at_low:
                from_low = self._mantissa_from(low, bounds.low_open)
                both = self.store.intersect([from_low, self._mantissa_to(high, bounds.high_open)])
                if not self.store.is_empty(both):
                    parts.append(self._then(both, self.powers(low.exponent, low.exponent)))
            return parts
        if low is not None and at_low:
            mantissa = self._mantissa_from(low, bounds.low_open)
            parts.append(self._then(mantissa, self.powers(low.exponent, low.exponent)))
        if high is not None and at_high:
            mantissa = self._mantissa_to(high, bounds.high_open)
            parts.append(self._then(mantissa, self.powers(high.exponent, high.exponent)))
        return parts

    def _mantissa_from(self, low: Digits, strict: bool) -> int:
        first = ord(low.digits[0])
        exact_first = int(self.store.chars([(first, first)]))
        term = self._then(exact_first, self._fraction_from(low.digits[1:], strict))
        if first < 57:
            term = self._or(term, self._then(self.store.chars([(first + 1, 57)]), self.fraction))
        return term

    def _mantissa_to(self, high: Digits, strict: bool) -> int:
        first = ord(high.digits[0])
        exact_first = int(self.store.chars([(first, first)]))
        term = self._then(exact_first, self._fraction_to(high.digits[1:], strict))
        if first > 49:
            term = self._or(term, self._then(self.store.chars([(49, first - 1)]), self.fraction))
        return term

    def powers(self, least: int, most: int) -> int:
        """`e+NN` or `e-NN` for the exponents of a range on one side of zero."""
        if most < 0:
            least, most, start = -most, -least, b"e-"
        else:
            start = b"e+"
        powers = self._whole_range(least, most)
        if least < 10:
            padded = self._then(self.zero, self._whole_range(least, min(most, 9)))
            powers = self._or(powers, padded)
        return self._then(self.store.literal(start), powers)

    def _whole_range(self, first: int, last: int | None) -> int:
        """Whole numbers from `first` (at least 0) to `last`, without leading zeros."""
        if first == 0:
            if last is None:
                return self.whole
            return self._or(self.zero, self._whole_range(1, last)) if last else self.zero
        low = str(first)
        if last is None:
            longer = self._then(self.nonzero, self.store.repeat(self.digit, len(low), None))
            return self._or(self._same_length_from(low), longer)
        high = str(last)
        if len(low) == len(high):
            return self._same_length(low, high)
        parts = [self._same_length_from(low), self._same_length_to(high, "1")]
        if len(high) - len(low) > 1:
            parts.append(
                self._then(self.nonzero, self.store.repeat(self.digit, len(low), len(high) - 2))
            )
        return self._or(*parts)

    def _same_length_from(self, low: str) -> int:
        term = self.empty
        for i in range(len(low) - 1, -1, -1):
            here = ord(low[i])
            term = self._then(int(self.store.chars([(here, here)])), term)
            if low[i] < "9":
                term = self._or(term, self._then(self._class(here + 1, 57), self._run(low, i)))
        return term

    def _same_length_to(self, high: str, first: str = "0") -> int:
        term = self.empty
        for i in range(len(high) - 1, -1, -1):
            here = ord(high[i])
            lowest = ord(first) if i == 0 else 48
            term = self._then(self._class(here, here), term)
            if here > lowest:
                term = self._or(term, self._then(self._class(lowest, here - 1), self._run(high, i)))
        return term

    def _same_length(self, low: str, high: str) -> int:
        same = 0
        while same < len(low) and low[same] == high[same]:
            same += 1
        prefix = self.store.literal(low[:same].encode())
        if same == len(low):
            return int(prefix)
        here, there = ord(low[same]), ord(high[same])
        parts = [
            self._then(self._class(here, here), self._same_length_from(low[same + 1 :])),
            self._then(self._class(there, there), self._same_length_to(high[same + 1 :])),
        ]
        if there - here > 1:
            parts.append(self._then(self._class(here + 1, there - 1), self._run(low, same)))
        return self._then(prefix, self._or(*parts))

    def _class(self, first: int, last: int) -> int:
        return int(self.store.chars([(first, last)]))

    def _run(self, digits: str, i: int) -> int:
        """Any digits for those after place i."""
        rest = len(digits) - 1 - i
        return int(self.store.repeat(self.digit, rest, rest))


def _magnitude(value: Exact) -> Exact:
    # abs() of a Decimal rounds to the context's precision; copy_abs does not.
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _without(ranges: list[tuple[int, int]], number: int) -> list[tuple[int, int]]:
    """Ascending ranges less one number."""
    pieces = [
        piece
        for first, last in ranges
        for piece in ((first, min(last, number - 1)), (max(first, number + 1), last))
    ]
    return [(first, last) for first, last in pieces if first <= last]


def _ceiling(value: Exact) -> int:
    if isinstance(value, int):
        return value
    whole = int(value)
    return whole + 1 if value > whole else whole


def _parts(value: Exact) -> tuple[str, str]:
    """The whole part and the fraction of a number from 0 up, as digits."""
    if value == 0:
        return "0", ""
    digits = Digits.of(value)
    return digits.whole, digits.fraction
