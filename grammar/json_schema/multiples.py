"""Multiples: the texts of the numbers that `multipleOf` allows.

A divisor is `p / 10**k` in lowest terms, and a plain decimal is a multiple when its digits, read
as a whole number of `10**-k`, leave no remainder by p: one term of the core, whatever p is. The
scientific form is taken exactly where `json.dumps` writes it, its mantissa without trailing zeros
and with at most `MAX_FRACTION` digits after the point: there `m * 10**x`, m not a multiple of 10,
is a multiple when x is not negative and m is one of `p / gcd(p, 10**x)`. Several divisors, wanted
and unwanted, are compared there before a term is made: what is a multiple of 24 is one of 8.

Cost: a handful of terms; some fifty more where numbers reach 10**16.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
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
MAX_TRIED = 200
"""Mantissas that are tried before the core searches for one."""


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


def scientific_multiples(
    texts: NumberTexts,
    step: Exact | None,
    skipped: tuple[Exact, ...],
    exponents: list[tuple[int, int]],
    *,
    mantissas: Sequence[int] = (),
) -> int:
    """The normalised scientific forms without a sign of multiples of a step (None: all numbers)
    that are multiples of none of some others, or NOTHING.

    Args:
        exponents: those to be considered, ranges on one side of zero.
        mantissas: terms each of which has to have the mantissa.

    Raises:
        LimitExceeded: a divisor has too many digits.
    """
    wanted = None if step is None else _divisor(step)
    unwanted = [_divisor(each) for each in skipped]
    divisors = unwanted if wanted is None else [wanted, *unwanted]
    sizes = [divisor.bit_length() - places for divisor, places in divisors]
    store = texts.store
    parts: list[int] = []
    for fraction in range(MAX_FRACTION + 1):
        by_rests: dict[_Rests, list[tuple[int, int]]] = {}
        for least, most in exponents:
            # Below the first of these the digits do not reach far enough.
            first = least if wanted is None else max(least, fraction - wanted[1])
            while first <= most:
                shift = first - fraction
                rests = _rests(wanted, unwanted, shift)
                # Powers of ten beyond the size of all divisors take nothing more from them.
                last = first if any(shift < enough for enough in sizes) else most
                if rests is not None:
                    by_rests.setdefault(rests, []).append((first, last))
                first = last + 1
        for (rest, others), fitting in by_rests.items():
            mantissa = _mantissa(texts, fraction, rest, others, mantissas)
            if mantissa != store.NOTHING:
                parts.extend(
                    store.concat([mantissa, texts.powers(first, last)])
                    for first, last in _runs(fitting)
                )
    return int(store.union(parts))


_Rests = tuple[int, tuple[int, ...]]
"""What the digits of a mantissa must be a multiple of, and what of none."""


def _rests(
    wanted: tuple[int, int] | None, unwanted: list[tuple[int, int]], shift: int
) -> _Rests | None:
    """What is left to ask of digits m, no multiple of 10, that stand for m * 10**shift; None where
    no digits will do.

    Args:
        wanted, unwanted: divisors, as `_divisor` gives them.
    """
    rest = 1 if wanted is None else _rest(*wanted, shift)
    if rest is None:
        return None
    others = {other for each in unwanted if (other := _rest(*each, shift)) is not None}
    if any(rest % other == 0 for other in others):
        return None
    fewest = [
        other for other in others if not any(other % each == 0 for each in others if each != other)
    ]
    return rest, tuple(sorted(fewest))


def _rest(divisor: int, places: int, shift: int) -> int | None:
    """What m, no multiple of 10, must be a multiple of for m * 10**shift to be one of
    `divisor / 10**places`; None if it never is."""
    if shift + places < 0:
        return None
    rest = divisor // gcd(divisor, 10 ** min(shift + places, divisor.bit_length()))
    return None if rest % 10 == 0 else rest


def _mantissa(
    texts: NumberTexts, fraction: int, rest: int, others: tuple[int, ...], within: Sequence[int]
) -> int:
    """Mantissas within some terms whose digits are a multiple of `rest` and of none of the others,
    or NOTHING."""
    store = texts.store
    mantissa = _normal_mantissa(texts, fraction)
    found = _any_digits(fraction, rest, others)
    if found is False:
        return int(store.NOTHING)
    parts = [mantissa, *within]
    if rest > 1:
        parts.append(store.multiples(rest, fraction))
    if others:
        wrong = [store.multiples(other, fraction) for other in others]
        parts.append(store.complement(store.union(wrong)))
    term = int(store.intersect(parts))
    seen = found and not within
    return term if seen or not store.is_empty(term) else int(store.NOTHING)


def _any_digits(fraction: int, rest: int, others: tuple[int, ...]) -> bool | None:
    """Whether some mantissa is as asked; None when that is not seen at once."""
    first = -(-(10**fraction) // rest) * rest
    for digits in islice(range(first, 10 ** (fraction + 1), rest), MAX_TRIED):
        if digits % 10 and all(digits % other for other in others):
            return True
    return False if first + MAX_TRIED * rest >= 10 ** (fraction + 1) else None


def _normal_mantissa(texts: NumberTexts, fraction: int) -> int:
    """Mantissas with so many digits after the point, the last of which is not zero."""
    store = texts.store
    if not fraction:
        return texts.nonzero
    between = store.repeat(texts.digit, fraction - 1, fraction - 1)
    return int(store.concat([texts.nonzero, texts.dot, between, texts.nonzero]))


def _runs(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending ranges as runs without a gap; one that crosses zero is two."""
    runs: list[tuple[int, int]] = []
    for first, last in ranges:
        if runs and runs[-1][1] == first - 1 and first != 0:
            runs[-1] = (runs[-1][0], last)
        else:
            runs.append((first, last))
    return runs
