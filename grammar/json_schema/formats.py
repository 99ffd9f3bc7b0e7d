"""Formats: the languages of `format` (validation 2020-12, section 7.3).

Each is an exact regular language over decoded text:

    date, time, date-time   RFC 3339, section 5.6: months' lengths, leap years, offsets; a second 60
                            only where it is 23:59:60 in UTC; `T` and `Z` in either case
    duration                RFC 3339, appendix A
    email                   RFC 5321, section 4.1.2 (Mailbox), without its length limits
    idn-email               RFC 6531, section 3.3, without length limits; labels of the domain are
                            any letters, digits and hyphens beyond ASCII
    hostname                RFC 1123, section 2.1, but from draft 7 no label with hyphens in places
                            3 and 4: which of those are internationalised names (`xn--`) is no
                            regular question, and none is accepted
    idn-hostname            RFC 5890, with the exceptions that idn.py states
    iri, iri-reference      RFC 3987, section 2.2
    uri-template            RFC 6570, section 2
    ipv4, ipv6              RFC 2673, section 3.2 (dotted quad); RFC 4291, section 2.2
    uri, uri-reference      RFC 3986, appendix A
    uuid                    RFC 4122, section 3
    json-pointer, relative-json-pointer    RFC 6901 and its relative extension

`regex` is a rule of its own (regex_format.py), enforced where a string is nothing else. Names that
the specification does not define assert nothing. A format's term is made when it is first used,
some 10 to 300 terms each.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

from grammaton.grammar.json_schema.content import JSON_CONTENT
from grammaton.grammar.json_schema.idn import idn_hostname_term
from grammaton.grammar.regex import pattern_term

_DAYS_31 = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
_DAYS_30 = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
_FEBRUARY = "02-(?:0[1-9]|1[0-9]|2[0-8])"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = f"(?:[0-9]{{4}}-(?:{_DAYS_31}|{_DAYS_30}|{_FEBRUARY})|{_LEAP_YEAR}-02-29)"

_HOUR, _MINUTE = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_OFFSET = f"(?:[Zz]|[+\\-]{_HOUR}:{_MINUTE})"
_FRACTION = "(?:\\.[0-9]+)?"
_TIME = f"{_HOUR}:{_MINUTE}:[0-5][0-9]{_FRACTION}{_OFFSET}"

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = f"{_OCTET}(?:\\.{_OCTET}){{3}}"


def _ipv6(elided: int) -> str:
    """IPv6 addresses whose `::` stands for at least `elided` groups."""
    group = "[0-9A-Fa-f]{1,4}"
    last = f"(?:{group}:{group}|{_IPV4})"
    forms = [f"(?:{group}:){{6}}{last}"]
    for before in range(9 - elided):
        head = f"{group}(?::{group}){{{before - 1}}}" if before else ""
        most = 8 - elided - before
        tails = [""]
        if most >= 1:
            tails.append(f"{group}(?::{group}){{0,{most - 1}}}")
        if most >= 2:
            tails.append(f"(?:{group}:){{0,{most - 2}}}{_IPV4}")
        forms.append(f"{head}::(?:{'|'.join(tails)})")
    return "(?:" + "|".join(forms) + ")"


_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-]+"
_QUOTED = '"(?:[ !#-\\[\\]-~]|\\\\[ -~])*"'
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9\\-]*[A-Za-z0-9])?"
_EMAIL = (
    f"(?:{_ATOM}(?:\\.{_ATOM})*|{_QUOTED})@"
    f"(?:{_LABEL}(?:\\.{_LABEL})*|\\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_ipv6(2)})\\])"
)

_HEX = "[0-9A-Fa-f]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

_DURATION_TIME = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DURATION_DATE = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_DURATION = f"P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|[0-9]+W)"

_POINTER = "(?:/(?:[^~/]|~[01])*)*"
_RELATIVE_POINTER = f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"

_PCT = f"%{_HEX}{{2}}"
_UNRESERVED, _SUB = "A-Za-z0-9\\-._~", "!$&'()*+,;="
_PCHAR = f"(?:[{_UNRESERVED}{_SUB}:@]|{_PCT})"
_LITERAL = f"\\[(?:{_ipv6(1)}|[vV]{_HEX}+\\.[{_UNRESERVED}{_SUB}:]+)\\]"
_HOST = f"(?:{_LITERAL}|(?:[{_UNRESERVED}{_SUB}]|{_PCT})*)"
_AUTHORITY = f"(?:(?:[{_UNRESERVED}{_SUB}:]|{_PCT})*@)?{_HOST}(?::[0-9]*)?"
_SEGMENTS = f"(?:/{_PCHAR}*)*"
_ABSOLUTE_PATH = f"/(?:{_PCHAR}+{_SEGMENTS})?"
_QUERY_FRAGMENT = f"(?:\\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_URI = (
    f"[A-Za-z][A-Za-z0-9+\\-.]*:"
    f"(?://{_AUTHORITY}{_SEGMENTS}|{_ABSOLUTE_PATH}|(?:{_PCHAR}+{_SEGMENTS})?){_QUERY_FRAGMENT}"
)
_NO_COLON = f"(?:[{_UNRESERVED}{_SUB}@]|{_PCT})+"
_RELATIVE = (
    f"(?://{_AUTHORITY}{_SEGMENTS}|{_ABSOLUTE_PATH}|(?:{_NO_COLON}{_SEGMENTS})?){_QUERY_FRAGMENT}"
)

# RFC 3987's ucschar and iprivate.
_UCS = (
    r"\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF"
    + "".join(rf"\u{{{plane:X}0000}}-\u{{{plane:X}FFFD}}" for plane in range(1, 14))
    + r"\u{E1000}-\u{EFFFD}"
).replace(r"\u{E0000}-", r"\u{E1000}-")
_PRIVATE = r"\uE000-\uF8FF\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"


def _international(pattern: str) -> str:
    """A pattern of URIs as one of IRIs: what is unreserved goes beyond ASCII, and a query has
    private characters."""
    query = f"(?:\\?(?:{_PCHAR}|[/?])*)?"
    private = f"(?:\\?(?:{_PCHAR}|[/?{_PRIVATE}])*)?"
    assert query in pattern
    return pattern.replace(query, private).replace(_UNRESERVED, _UNRESERVED + _UCS)


_A, _X = "[A-Za-z0-9]", "[A-Za-z0-9\\-]"
_HOST_LABEL = f"{_A}(?:{_A}|{_X}{_A}|{_X}{_X}{_A}|{_X}(?:{_A}{_X}|-{_A}){_X}{{0,58}}{_A})?"
_OLD_LABEL = f"{_A}(?:{_X}{{0,61}}{_A})?"
_HOSTNAME = f"{_HOST_LABEL}(?:\\.{_HOST_LABEL})*"

_BEYOND = r"\u0080-\u{10FFFF}"
_IDN_ATOM = _ATOM.replace("[", "[" + _BEYOND, 1)
_IDN_QUOTED = f'"(?:[ !#-\\[\\]-~{_BEYOND}]|\\\\[ -~])*"'
_IDN_LABEL = f"[A-Za-z0-9{_BEYOND}](?:[A-Za-z0-9\\-{_BEYOND}]*[A-Za-z0-9{_BEYOND}])?"
_IDN_EMAIL = (
    f"(?:{_IDN_ATOM}(?:\\.{_IDN_ATOM})*|{_IDN_QUOTED})@"
    f"(?:{_IDN_LABEL}(?:\\.{_IDN_LABEL})*|\\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_ipv6(2)})\\])"
)

_VARCHAR = f"(?:[A-Za-z0-9_]|{_PCT})"
_VARSPEC = f"{_VARCHAR}(?:\\.?{_VARCHAR})*(?::[1-9][0-9]{{0,3}}|\\*)?"
_URI_TEMPLATE = (
    f"(?:[!#$&'()*+,\\-./0-9:;=?@A-Z\\[\\]_a-z~{_UCS}{_PRIVATE}]|{_PCT}"
    f"|\\{{[+#./;?&=,!@|]?{_VARSPEC}(?:,{_VARSPEC})*\\}})*"
)

OLD_HOSTNAME = "hostname of drafts up to 6"
"""`hostname` in drafts that do not speak of internationalised names: any RFC 1123 name."""

BASE64 = "base64 of contentEncoding"
"""What draft 7's `contentEncoding` asks for (content.py)."""

_PATTERNS = {
    BASE64: "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
    OLD_HOSTNAME: f"{_OLD_LABEL}(?:\\.{_OLD_LABEL})*",
    "date": _DATE,
    "duration": _DURATION,
    "email": _EMAIL,
    "hostname": _HOSTNAME,
    "idn-email": _IDN_EMAIL,
    "iri": _international(_URI),
    "iri-reference": _international(f"(?:{_URI}|{_RELATIVE})"),
    "uri-template": _URI_TEMPLATE,
    "ipv4": _IPV4,
    "ipv6": _ipv6(1),
    "json-pointer": _POINTER,
    "relative-json-pointer": _RELATIVE_POINTER,
    "uri": _URI,
    "uri-reference": f"(?:{_URI}|{_RELATIVE})",
    "uuid": _UUID,
}

_MOST_CHARACTERS = {OLD_HOSTNAME: 253, "hostname": 253}

SUPPORTED_FORMATS = frozenset((*_PATTERNS, "time", "date-time", "regex", "idn-hostname"))
IRREGULAR_FORMATS = frozenset(("regex", JSON_CONTENT))
"""Formats that are rules, not terms."""
APPROXIMATE_FORMATS = frozenset(("hostname", "idn-hostname", *IRREGULAR_FORMATS))
"""Formats whose languages lack some texts, which their negation would let through, or have none."""


def format_term(store: Any, name: str) -> int:
    """The term of the texts of a supported format, over decoded characters.

    A format is made once a process, in a store that is kept, and copied from there, which costs a
    quarter of reading its pattern.
    """
    with _lock:
        kept, terms = _kept.setdefault(type(store), (type(store)(), {}))
        if name not in terms:
            terms[name] = _make(kept, name)
        return int(store.import_term(kept, terms[name]))


_lock = Lock()
_kept: dict[type, tuple[Any, dict[str, int]]] = {}


def _make(store: Any, name: str) -> int:
    pattern = _PATTERNS.get(name)
    if pattern is not None:
        term = _texts(store, pattern)
        if name in _MOST_CHARACTERS:
            within = store.repeat(store.chars([(0, 0x10FFFF)]), 1, _MOST_CHARACTERS[name])
            term = int(store.intersect([within, term]))
        return term
    if name == "idn-hostname":
        return idn_hostname_term(store, _texts(store, _HOST_LABEL))
    time = _texts(store, _TIME)
    if name == "date-time":
        date = _texts(store, _DATE + "[Tt]")
        return int(store.concat([date, store.union([time, _leap_seconds(store)])]))
    return int(store.union([time, _leap_seconds(store)]))


def _texts(store: Any, pattern: str) -> int:
    """The texts of a pattern, from end to end, in the form that the core reads: 0.1 ms where the
    longest take 5 in Python, which a process's first schema with a format would wait for."""
    return pattern_term(store, f"^(?:{pattern})$")


def _leap_seconds(store: Any) -> int:
    """Times with a second 60: local time minus offset is 23:59.

    With an offset of +HH:MM the local minute is MM - 1, or 59 when MM is 0, and the local hour HH
    - 1, or HH when MM is not 0 (of 24); with -HH:MM they are 59 - MM and 23 - HH. The hours and
    the minutes are two separate conditions, whose intersection is smaller than their product.
    """
    second = f":60{_FRACTION}"
    hours, minutes = [], []
    for offset in range(24):
        hours.append(f"{(offset + 23) % 24:02}:[0-9]{{2}}{second}\\+{offset:02}:00")
        hours.append(f"{offset:02}:[0-9]{{2}}{second}\\+{offset:02}:(?:0[1-9]|[1-5][0-9])")
        hours.append(f"{23 - offset:02}:[0-9]{{2}}{second}-{offset:02}:[0-9]{{2}}")
    for offset in range(60):
        minutes.append(f"[0-9]{{2}}:{(offset + 59) % 60:02}{second}\\+[0-9]{{2}}:{offset:02}")
        minutes.append(f"[0-9]{{2}}:{59 - offset:02}{second}-[0-9]{{2}}:{offset:02}")
    local = store.intersect([_texts(store, "|".join(forms)) for forms in (hours, minutes)])
    return int(store.union([_texts(store, f"23:59{second}[Zz]"), local]))
