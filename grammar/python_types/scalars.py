"""Scalar types: their strings as patterns, and their values.

Nouns: a *pattern* here is ECMA-262 without anchors; `anchored` adds them. The languages are those
that pydantic reads in JSON and writes, so far as a grammar can say them:

    datetime   RFC 3339, section 5.6 (`T` and `Z` in capitals), the offset optional as in Python's
               own isoformat, from year 1, without leap seconds, up to six digits of a second
    date       YYYY-MM-DD from year 1
    time       as in datetime
    timedelta  ISO 8601 durations in years of 365 days, days, hours, minutes and seconds, with so
               many digits that every one is a timedelta: fewer than 2,700,000 years
    UUID       RFC 4122's hexadecimal groups with hyphens
    Decimal    a JSON number, read exactly, which is in a double's range so that its exponent has an
               end; or, where no bounds are set, a string as `str` writes it
    bytes      a string, being their UTF-8
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from grammaton.grammar.python_types.shape import Key, Mismatch, Schema, Shape, is_number

_MONTH_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_YEAR = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_LEAP = "(?:(?:0[48]|[2468][048]|[13579][26])00|[0-9]{2}(?:0[48]|[2468][048]|[13579][26]))"
DATE = f"(?:{_YEAR}-{_MONTH_DAY}|{_LEAP}-02-29)"
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?"
OFFSET = "(?:Z|[+\\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
TIME = f"{_CLOCK}{OFFSET}?"
NAIVE = f"{DATE}T{_CLOCK}"
AWARE = f"{NAIVE}{OFFSET}"
DATETIME = f"{NAIVE}{OFFSET}?"

_CLOCK_PART = (
    "T(?:[0-9]{1,8}H(?:[0-9]{1,8}M)?(?:[0-9]{1,8}(?:\\.[0-9]{1,6})?S)?"
    "|[0-9]{1,8}M(?:[0-9]{1,8}(?:\\.[0-9]{1,6})?S)?"
    "|[0-9]{1,8}(?:\\.[0-9]{1,6})?S)"
)
_YEARS = "(?:[0-9]{1,6}|1[0-9]{6}|2[0-6][0-9]{5})"
_DAYS = f"(?:{_YEARS}Y(?:[0-9]{{1,7}}D)?|[0-9]{{1,8}}D)"
TIMEDELTA = f"-?P(?:{_DAYS}(?:{_CLOCK_PART})?|{_CLOCK_PART})"

_HEX = "[0-9a-fA-F]"
DECIMAL = "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:E[+\\-]?[0-9]{1,6})?"
INTEGER = "(?:0|-?[1-9][0-9]*)"

_DURATION = re.compile(
    r"(-)?P(?:(\d+)Y)?(?:(\d+)D)?"
    r"(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?",
    re.ASCII,
)
_FRACTION = re.compile(r"\.(\d+)")


def anchored(pattern: str) -> str:
    """The pattern of whole strings."""
    return f"^(?:{pattern})$"


def string(pattern: str) -> Schema:
    """The schema of the strings that a pattern matches as a whole."""
    return {"type": "string", "pattern": anchored(pattern)}


def uuid_pattern(version: int | None = None) -> str:
    """UUIDs, of any version and variant or of one version of RFC 4122's variant."""
    if version is None:
        return f"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"
    return f"{_HEX}{{8}}-{_HEX}{{4}}-{version}{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}"


def _iso(text: str) -> str:
    """As every supported Python's `fromisoformat` takes it: six digits of a second, no `Z`."""
    text = _FRACTION.sub(lambda match: "." + match[1].ljust(6, "0"), text)
    return text[:-1] + "+00:00" if text.endswith("Z") else text


def _datetime(text: str) -> datetime:
    value = datetime.fromisoformat(_iso(text))
    return value.replace(tzinfo=timezone.utc) if text.endswith("Z") else value


def _time(text: str) -> time:
    value = time.fromisoformat(_iso(text))
    return value.replace(tzinfo=timezone.utc) if text.endswith("Z") else value


def _timedelta(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("not a duration")
    sign, years, days, hours, minutes, seconds, part = match.groups(default="")
    value = timedelta(
        days=int(years or 0) * 365 + int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=int(seconds or 0),
        microseconds=int(part.ljust(6, "0") or 0),
    )
    return -value if sign else value


def _textual(pattern: str, parse: Callable[[str], Any]) -> Shape:
    whole = re.compile(pattern, re.ASCII)

    def build(value: Any) -> Any:
        if not isinstance(value, str) or not whole.fullmatch(value):
            raise Mismatch
        return parse(value)

    return Shape(string(pattern), build, Key(pattern, build))


def decimal_number(value: Any) -> Decimal:
    """The decimal of a JSON number.

    Raises:
        Mismatch: not a number.
    """
    if not is_number(value):
        raise Mismatch
    return Decimal(value)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, str):
        if not re.fullmatch(DECIMAL, value, re.ASCII):
            raise Mismatch
        return Decimal(value)
    return decimal_number(value)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise Mismatch
    return value.encode()


_DOUBLE = {"type": "number", "minimum": -sys.float_info.max, "maximum": sys.float_info.max}

SCALARS: dict[type, Shape] = {
    datetime: _textual(DATETIME, _datetime),
    date: _textual(DATE, date.fromisoformat),
    time: _textual(TIME, _time),
    timedelta: _textual(TIMEDELTA, _timedelta),
    UUID: _textual(uuid_pattern(), UUID),
    Decimal: Shape({"anyOf": [_DOUBLE, string(DECIMAL)]}, _decimal),
    bytes: Shape({"type": "string"}, _bytes),
}
"""The scalar types that are strings in JSON."""
