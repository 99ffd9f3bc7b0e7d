"""Multiples: the texts of the numbers that `multipleOf` allows.

A divisor is `p / 10**k` in lowest terms, and a plain decimal is a multiple when its digits, read
as a whole number of `10**-k`, leave no remainder by p: one term of the core, whatever p is. The
scientific form is taken exactly where `json.dumps` writes it, its mantissa without trailing zeros
and with at most `MAX_FRACTION` digits after the point: there `m * 10**x`, m not a multiple of 10,
is a multiple when x is not negative and m is one of `p / gcd(p, 10**x)`.

Cost: a handful of terms; some fifty more where numbers reach 10**16.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING

from grammaton.errors import LimitExceeded
from grammaton.grammar.json_schema.numbers import Exact, decimal_places

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.number_texts import NumberTexts

MAX_FRACTION = 17
"""Digits after the point of a mantissa: as many as a double needs, and one more."""
MAX_DIVISOR = 2**32 - 1
"""The largest p of a divisor `p / 10**k`."""
MAX_PLACES = 1000
"""The largest k of one."""


def _divisor(step: Exact) -> tuple[int, int]:
    """p and k of a divisor p / 10**k."""
    places = decimal_places(step)
    divisor = int(Fraction(step) * 10**places)
    if divisor > MAX_DIVISOR or places > MAX_PLACES:
        raise LimitExceeded(
            f"multipleOf {step} is a multiple of {divisor} / 10**{places}; enforced are divisors "
            f"up to {MAX_DIVISOR} and {MAX_PLACES} decimal places"
        )
    return divisor, places


def plain_multiples(texts: NumberTexts, step: Exact) -> int:
    """The plain decimals without a sign that are multiples, and some that are misspelt: a caller
    intersects with a shape.

    Raises:
        LimitExceeded: the divisor has too many digits.
    """
    return int(texts.store.multiples(*_divisor(step)))


def scientific_multiples(texts: NumberTexts, step: Exact, exponents: list[tuple[int, int]]) -> int:
    """The normalised scientific forms without a sign that are multiples, or NOTHING.

    Args:
        exponents: those to be considered, ranges on one side of zero.

    Raises:
        LimitExceeded: the divisor has too many digits.
    """
    return int(texts.store.union(_scientific(texts, *_divisor(step), exponents)))


def _normal_mantissa(texts: NumberTexts, fraction: int) -> int:
    """Mantissas with so many digits after the point, the last of which is not zero."""
    store = texts.store
    if not fraction:
        return texts.nonzero
    between = store.repeat(texts.digit, fraction - 1, fraction - 1)
    return int(store.concat([texts.nonzero, texts.dot, between, texts.nonzero]))


def normal_scientific(texts: NumberTexts) -> int:
    """All scientific forms that are written as described above."""
    store = texts.store
    fraction = store.concat(
        [texts.dot, store.repeat(texts.digit, 0, MAX_FRACTION - 1), texts.nonzero]
    )
    mantissa = store.concat([texts.nonzero, store.union([store.EMPTY, fraction])])
    powers = [texts.powers(*exponents) for exponents in texts.exponents()]
    return int(store.concat([mantissa, store.union(powers)]))


def _scientific(
    texts: NumberTexts, divisor: int, places: int, ranges: list[tuple[int, int]]
) -> list[int]:
    store = texts.store
    parts: list[int] = []
    for fraction in range(MAX_FRACTION + 1):
        mantissa = _normal_mantissa(texts, fraction)
        by_rest: dict[int, list[tuple[int, int]]] = {}
        for least, most in ranges:
            # Below the first of these the digits do not reach far enough.
            first = max(least, fraction - places)
            while first <= most:
                # Powers of ten beyond the divisor's size take nothing more from it.
                power = min(first - fraction + places, divisor.bit_length())
                last = first if power < divisor.bit_length() else most
                rest = divisor // gcd(divisor, 10**power)
                by_rest.setdefault(rest, []).append((first, last))
                first = last + 1
        for rest, exponents in by_rest.items():
            if rest % 10 == 0:
                continue
            fitting = mantissa
            if rest > 1:
                fitting = store.intersect([mantissa, store.multiples(rest, fraction)])
                if store.is_empty(fitting):
                    continue
            for first, last in _runs(exponents):
                parts.append(store.concat([fitting, texts.powers(first, last)]))
    return parts


def _runs(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending ranges as runs without a gap; one that crosses zero is two."""
    runs: list[tuple[int, int]] = []
    for first, last in ranges:
        if runs and runs[-1][1] == first - 1 and first != 0:
            runs[-1] = (runs[-1][0], last)
        else:
            runs.append((first, last))
    return runs
