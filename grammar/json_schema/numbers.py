"""Numbers: exact values, and the bounds and multiples that a schema asks of them.

A JSON number is an exact decimal here, the shortest one for a float: 0.3 is a multiple of 0.1.
Everything is plain arithmetic on a few integers; nothing is built.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite, lcm
from typing import Any

from grammaton.errors import LimitExceeded

MAX_DIGITS = 4096
"""Digits a bound or constant may need when written out."""

Exact = int | Decimal


def exact(value: Any) -> Exact | None:
    """A JSON number as an exact decimal, the shortest one for a float; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if value.bit_length() > 3 * MAX_DIGITS:
            raise _too_long()
        return value
    if isinstance(value, float):
        # Not the repr of what derives from it: NumPy's says its type.
        return Decimal(float.__repr__(value)) if isfinite(value) else None
    if isinstance(value, Decimal) and value.is_finite():
        if value and abs(value.adjusted()) + len(value.as_tuple().digits) > MAX_DIGITS:
            raise _too_long()
        return value
    return None


def _too_long() -> LimitExceeded:
    return LimitExceeded(f"a number in the schema has over {MAX_DIGITS} digits written out")


def common_multiple(one: Exact, other: Exact) -> Exact:
    """The least number above zero that is a multiple of two."""
    places = max(decimal_places(one), decimal_places(other))
    scale = 10**places
    whole = lcm(int(Fraction(one) * scale), int(Fraction(other) * scale))
    found = Fraction(whole, scale)
    return int(found) if found.denominator == 1 else Decimal(whole).scaleb(-places)


def is_multiple(value: Exact, step: Exact) -> bool:
    """Whether a number is a whole multiple of another."""
    return (Fraction(value) / Fraction(step)).denominator == 1


def decimal_places(value: Exact) -> int:
    """How many digits a number has after the point, without trailing zeros."""
    if isinstance(value, int):
        return 0
    exponent = value.normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


@dataclass(frozen=True)
class Digits:
    """A number above zero in decimal: `0.d1d2d3... * 10**point`, d1 and the last digit not 0."""

    digits: str
    point: int

    @staticmethod
    def of(value: Exact) -> Digits:
        _, digits, exponent = Decimal(value).as_tuple()
        assert isinstance(exponent, int)
        assert any(digits)
        text = "".join(map(str, digits)).lstrip("0")
        point = len(text) + exponent
        return Digits(text.rstrip("0"), point)

    @property
    def whole(self) -> str:
        return self.digits[: self.point].ljust(self.point, "0") if self.point > 0 else "0"

    @property
    def fraction(self) -> str:
        return self.digits[self.point :] if self.point > 0 else "0" * -self.point + self.digits

    @property
    def exponent(self) -> int:
        return self.point - 1


@dataclass(frozen=True)
class Bounds:
    """`low <= x <= high`, strictly where open; None is no bound.

    x is a multiple of `step`, and of none of `skipped`; zero is a multiple of everything.
    """

    low: Exact | None = None
    low_open: bool = False
    high: Exact | None = None
    high_open: bool = False
    step: Exact | None = None
    skipped: tuple[Exact, ...] = ()

    @property
    def divides(self) -> bool:
        """Whether anything is said of multiples."""
        return self.step is not None or bool(self.skipped)

    def meet(self, other: Bounds) -> Bounds:
        """The numbers within both."""
        low, low_open, high, high_open = self.low, self.low_open, self.high, self.high_open
        if other.low is not None:
            if low is None or other.low > low:
                low, low_open = other.low, other.low_open
            elif other.low == low:
                low_open = low_open or other.low_open
        if other.high is not None:
            if high is None or other.high < high:
                high, high_open = other.high, other.high_open
            elif other.high == high:
                high_open = high_open or other.high_open
        step = self.step
        if other.step is not None:
            step = other.step if step is None else common_multiple(step, other.step)
        skipped = self.skipped
        if other.skipped:
            skipped = tuple(dict.fromkeys((*skipped, *other.skipped)))
        return Bounds(low, low_open, high, high_open, step, skipped)

    def whole(self) -> Bounds:
        """Bounds that the same whole numbers are within, and that speak of whole multiples."""
        step = None if self.step is None else common_multiple(self.step, 1)
        skipped = tuple(common_multiple(each, 1) for each in self.skipped)
        return replace(self, step=step, skipped=skipped)

    @property
    def skips_all(self) -> bool:
        """Whether every multiple of `step` is one that is skipped."""
        step = self.step
        return step is not None and any(is_multiple(step, each) for each in self.skipped)

    def reduced(self) -> Bounds:
        """The same, without what of `skipped` is skipped anyway."""
        step = self.step
        fewest: dict[Exact, Exact] = {}
        for each in sorted(self.skipped):
            among = each if step is None else common_multiple(step, each)
            if not any(is_multiple(among, other) for other in fewest):
                fewest[among] = each
        return replace(self, skipped=tuple(fewest.values()))

    def steps(self, *, integer: bool) -> tuple[Fraction, int, int] | None:
        """The numbers within as the multiples of a step, from the first to the last one; some of
        them are `skipped`. None where there is no end of them, or no step between them."""
        bounds = self.whole() if integer else self
        step = 1 if integer and bounds.step is None else bounds.step
        low, high = bounds.low, bounds.high
        if low is None or high is None:
            return None
        if step is None:
            if low < high:
                return None
            alone = low == high and not bounds.low_open and not bounds.high_open
            if low == 0 or not alone:
                return Fraction(1), 0, 0 if alone else -1
            return Fraction(low), 1, 1
        width = Fraction(step)
        first, last = ceil(Fraction(low) / width), floor(Fraction(high) / width)
        first += bounds.low_open and first * width == Fraction(low)
        last -= bounds.high_open and last * width == Fraction(high)
        return width, first, last

    def holds(self, value: Exact) -> bool:
        """Whether a number is within."""
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        if self.step is not None and not is_multiple(value, self.step):
            return False
        if any(is_multiple(value, step) for step in self.skipped):
            return False
        if self.high is None:
            return True
        return not (value > self.high or (self.high_open and value == self.high))

    def mirrored(self) -> Bounds:
        """The numbers whose negatives are within."""
        return Bounds(
            None if self.high is None else negated(self.high),
            self.high_open,
            None if self.low is None else negated(self.low),
            self.low_open,
            self.step,
            self.skipped,
        )

    def describe(self) -> str:
        """The bounds in a reader's words, for messages."""
        words = []
        if self.low is not None:
            words.append(f"{'above' if self.low_open else 'at least'} {self.low}")
        if self.high is not None:
            words.append(f"{'below' if self.high_open else 'at most'} {self.high}")
        if self.step is not None:
            words.append(f"a multiple of {self.step}")
        words.extend(f"no multiple of {step}" for step in self.skipped)
        return " and ".join(words)


def negated(value: Exact) -> Exact:
    """The number with its sign turned, without rounding."""
    return value.copy_negate() if isinstance(value, Decimal) else -value
