"""Masks over thousands of odd tokens: escapes cut anywhere, halves of characters, bytes of none.

The shortcuts of masks rest on what tokens are made of: which characters occur below a trie node
(letters), where the spellings of a text lie, how many characters a token has. Real vocabularies
hardly have the tokens that would tell a wrong shortcut from a right one, so they are made up here.
As in `test_masks_real`, every id is also tried by itself.
"""

from __future__ import annotations

import random

import pytest

from grammaton._core import Constraint, Matcher, TermStore, TokenIndex
from tests.reference import mask_to_ids
from tests.strategies import ALL, Expression, Plan

PIECES = (
    *('"', '":', '",', '"}', '": "', "\\", "\\\\", "\\n", '\\"', "/", "\\/"),
    *("\\u", "\\u00", "\\u006", "0", "00", "61", "6e", "6E", "e9", "E9", "\\u0061", "\\uD83D"),
    *("\\ude00", "d", "D83d", "DE00", "u", "a", "b", "n", "na", "name", "x", "Z", "9", " ", "\n"),
    *("\t", "\0", "\x01", "\x7f", "é", "ß", "\u07ff", "\u0800", "中", "\u2028", "\u2029", "\ud7ff"),
    *("\ufffd", "😀", "\U00010000", "\U0010ffff"),
)
CUT = [piece.encode()[at:] for piece in PIECES for at in range(len(piece.encode()))]
CUT += [piece.encode()[:at] for piece in PIECES for at in range(1, len(piece.encode()) + 1)]
BROKEN = (b"\xff", b"\xc0", b"\xc1\x81", b"\xed\xa0\x80", b"\xf4\x90", b"\xf8", b"\xe0\x80")
ANY_TEXT = ("repeat", ("chars", ALL), 0, None)
QUOTE = ("text", '"')
KEYS = ("a", "ab", "name", "na", "", "\n", '"', "\\", "/", "é", "😀", "中a", "x" * 9)
LETTERS = ("chars", ((0x61, 0x7A),))
NOT_LINES = ("chars", ((0, 9), (11, 12), (14, 0x2027), (0x202A, 0x10FFFF)))
WIDE = ("chars", ((0x20, 0x7E), (0x4E00, 0x9FFF)))


def other_than(*texts: str) -> Expression:
    return ("json", ("complement", ("texts", texts)))


def key_then(key: str, rest: str) -> Expression:
    return ("concat", (("json", ("texts", (key,))), ("text", rest)))


DECLARED = ("union", tuple(key_then(key, f'":{i}') for i, key in enumerate(KEYS) if key))
BODIES: dict[str, Expression] = {
    "a key": ("concat", (QUOTE, key_then("name", '": '))),
    "declared keys": ("concat", (QUOTE, DECLARED)),
    "a declared key or another": (
        "union",
        (DECLARED, ("concat", (other_than(*KEYS), ("text", '": '), LETTERS))),
    ),
    "enum": ("concat", (("json", ("texts", KEYS)), QUOTE)),
    "large enum": (
        "concat",
        (("json", ("texts", tuple(f"{a}{n}" for a in KEYS for n in range(40)))), QUOTE),
    ),
    "enum of classes": (
        "concat",
        (("json", ("concat", (("text", "a"), ("chars", ((0x62, 0x63), (0xE9, 0xEA)))))), QUOTE),
    ),
    "enum or a number": (
        "union",
        (("concat", (QUOTE, ("json", ("texts", KEYS[2:])), QUOTE)), ("chars", ((0x30, 0x39),))),
    ),
    "two enums": (
        "concat",
        (("json", ("texts", ("a", "é"))), ("json", ("texts", ("b", "", "ab"))), QUOTE),
    ),
    "other key": ("concat", (other_than(*KEYS), QUOTE)),
    "one other key": ("concat", (other_than("name"), QUOTE)),
    "another": ("concat", (other_than(""), QUOTE)),
    "other key, then more": ("concat", (other_than(*KEYS), ("text", '": "a'))),
    "string": ("concat", (("json", ANY_TEXT), QUOTE)),
    "line in a string": ("concat", (("json", ("repeat", NOT_LINES, 0, None)), QUOTE)),
    "lines": ("repeat", NOT_LINES, 0, None),
    "letters": ("repeat", LETTERS, 1, None),
    "some letters": ("repeat", LETTERS, 2, 5),
    "letters, then more": ("concat", (("repeat", LETTERS, 2, 9), ("text", '": na'))),
    "wide": ("repeat", WIDE, 0, None),
    "some wide": ("concat", (("repeat", WIDE, 3, 7), ("text", "\n\t"))),
    "with an x": ("concat", (ANY_TEXT, ("text", "x"), ANY_TEXT, ("text", "\n"))),
    "a string with an x": (
        "concat",
        (("json", ("concat", (ANY_TEXT, ("text", "x"), ANY_TEXT))), QUOTE),
    ),
}


@pytest.fixture(scope="module", params=range(3))
def index(request: pytest.FixtureRequest) -> tuple[TokenIndex, list[bytes]]:
    chooser = random.Random(request.param)
    tokens = [bytes([byte]) for byte in range(256)]
    while len(tokens) < 2_500:
        pieces = chooser.choices(CUT, k=chooser.choice([1, 2, 2, 3, 3, 4, 6]))
        if chooser.random() < 0.05:
            pieces.insert(chooser.randrange(len(pieces) + 1), chooser.choice(BROKEN))
        tokens.append(b"".join(pieces))
    if request.param == 2:  # S1 and S2: a vocabulary that can't spell every character
        for byte in (0x5A, 0xA9, 0xF0):
            tokens[byte] = b"a"
    end = len(tokens)
    return TokenIndex([*tokens, b""], [True] * end + [False], [end], end + 1), tokens


def check(matcher: Matcher, tokens: list[bytes]) -> list[int]:
    allowed = mask_to_ids(matcher.mask()) - {len(tokens)}
    accepted = {t for t in range(len(tokens)) if matcher.validate([t])}
    assert accepted ^ allowed == set(), [tokens[t] for t in accepted ^ allowed][:20]
    return sorted(allowed)


@pytest.mark.parametrize("body", BODIES)
def test_masks(body: str, index: tuple[TokenIndex, list[bytes]]) -> None:
    core, tokens = index
    store = TermStore()
    start = ("concat", (("call", 0, (), ()), ("text", ":"), ("call", 0, (), ())))
    constraint = Constraint(store, Plan(start, (BODIES[body],)).build(store), core)
    chooser = random.Random(body)
    for _ in range(4):
        matcher = constraint.matcher()
        for _ in range(6):
            allowed = check(matcher, tokens)
            if not allowed:
                break
            assert matcher.accept(chooser.choice(allowed))
