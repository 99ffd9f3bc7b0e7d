"""Token forms in Lark grammars against characters in their place.

Each token has a character of its own, from the private use area. A grammar whose token forms are
written as classes of these characters is asked with a vocabulary in which every token is there
twice, as its text and as its character: the token forms' grammar must allow what that one allows
for either. A sequence of tokens has several readings, which are followed one by one.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton import Grammar, GrammatonError, Matcher, Vocabulary, compile
from tests.reference import mask_to_ids

TOKENS = [b"a", b"b", b"ab", b"ba", b" a", b"", b"", b"", b"b", b""]
SPECIAL = {"<|x|>": 5, "<|y|>": 6, "<|end|>": 7}
EOS = [7, 9]
COUNT = 14
"""Ids that are mentioned; those after the tokens' are the model's and have no text."""
LOGITS = 40
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=EOS, special_tokens=SPECIAL, logits_size=LOGITS)
TWICE = Vocabulary(
    [*TOKENS, *[b""] * 4, *(chr(0xE000 + i).encode() for i in range(COUNT))], eos_token_ids=EOS
)
FORMS = {
    "<|x|>": {5},
    "<|y|>": {6},
    "<|end|>": {7},
    "<[5-6]>": {5, 6},
    "<[0, 2, 8]>": {0, 2, 8},
    "<[7-9]>": {7, 8, 9},
    "<[9]>": {9},
    "<[12]>": {12},
    "<[8-11]>": {8, 9, 10, 11},
    "<[^12]>": set(range(10)) - {7, 9},
    "<[*]>": set(range(10)) - {7, 9},
    "<[^0-4]>": {5, 6, 8},
    "<[^5]>": set(range(10)) - {5, 7, 9},
}  # fmt: skip
TERMINALS = """
WORD: /[ab]+/
AHEAD: /a(?!b)/ | /b(?= ?a)/
SHORT: "a"~1..3
lazy[lazy]: /[ab]+/
stop[stop="ba"]: /[ab]+/
suffix[suffix="b"]: /[ab]*/
few[max_tokens=2]: /[ab]{1,2}/
warm[temperature=0.5]: /[ab]+/
"""
NAMES = ["r0", "r1", "r2", "WORD", "AHEAD", "SHORT", "lazy", "stop", "suffix", "few", "warm"]


@st.composite
def bodies(draw: st.DrawFn, depth: int = 2) -> tuple[str, str]:
    """A body with token forms, and with characters."""
    branches = []
    for _ in range(draw(st.integers(1, 2))):
        row = []
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from("tttlnng" if depth else "ttln"))
            if kind == "t":
                form = draw(st.sampled_from(list(FORMS)))
                item = form, "/[" + "".join(chr(0xE000 + i) for i in sorted(FORMS[form])) + "]/"
            elif kind == "l":
                text = '"' + draw(st.sampled_from(["a", "b", "ab", "aba", " "])) + '"'
                item = text, text
            elif kind == "n":
                name = draw(st.sampled_from(NAMES))
                item = name, name
            else:
                group = draw(bodies(depth - 1))
                item = f"({group[0]})", f"({group[1]})"
            often = draw(st.sampled_from(["", "", "", "?", "*", "+", "~2", "~0..2"]))
            row.append((item[0] + often, item[1] + often))
        branches.append(tuple(" ".join(side) for side in zip(*row, strict=True)))
    one, other = (" | ".join(side) for side in zip(*branches, strict=True))
    return one, other


@st.composite
def grammars(draw: st.DrawFn) -> tuple[str, str]:
    rules = [draw(bodies()) for _ in range(4)]
    end = TERMINALS + ('%ignore " "\n' if draw(st.booleans()) else "")
    one, other = (
        f"start: {side[0]}\n" + "".join(f"r{i}: {side[i + 1]}\n" for i in range(3)) + end
        for side in zip(*rules, strict=True)
    )
    return one, other


def read(text: str, vocabulary: Vocabulary) -> Matcher | type[GrammatonError]:
    try:
        return compile(Grammar.from_lark(text), vocabulary).matcher()
    except GrammatonError as error:
        return type(error)


class Readings:
    """The ways in which a sequence of tokens can be read.

    Attributes:
        all: a matcher of characters for each.
        ended: whether the last token also ended the sequence, which is then complete.
    """

    def __init__(self, all: list[Matcher], *, ended: bool = False) -> None:
        self.all = all
        self.ended = ended and bool(all)
        self.complete = self.ended or any(each.is_complete for each in all)
        ids = {i % COUNT for each in all for i in mask_to_ids(each.mask()) if i not in EOS}
        self.allowed = ids | set(EOS if self.complete else ())

    def followed(self, token: int) -> Readings:
        found = []
        for each in self.all:
            for way in (token, token + COUNT):
                fork = each.fork()
                if way not in EOS and fork.accept(way):
                    found.append(fork)
        return Readings(found, ended=self.complete and token in EOS)


@given(grammars(), st.data())
def test_token_forms_are_as_characters(texts: tuple[str, str], data: st.DataObject) -> None:
    matcher, other = read(texts[0], VOCABULARY), read(texts[1], TWICE)
    if not isinstance(matcher, Matcher) or not isinstance(other, Matcher):
        assert matcher is other
        return
    history = [Readings([other])]
    for _ in range(6):
        readings = history[-1]
        assert mask_to_ids(matcher.mask()) == readings.allowed
        assert matcher.is_complete == readings.complete or not readings.allowed
        for token in range(LOGITS):
            assert matcher.fork().accept(token) == (token in readings.allowed)
        fork = matcher.fork()
        for token in matcher.forced_tokens():
            assert mask_to_ids(fork.mask()) == {token}
            assert fork.accept(token)
        if not readings.allowed:
            break
        token = data.draw(st.sampled_from(sorted(readings.allowed)))
        assert matcher.accept(token)
        history.append(readings.followed(token))
        if data.draw(st.integers(0, 3)) == 0:
            back = data.draw(st.integers(1, len(history) - 1))
            matcher.rollback(back)
            del history[-back:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start: <|z|>", "no token <\\|z\\|>"),
        ("start: <[40]>", "token id 40 is out of range; the vocabulary has ids 0 to 39"),
        ("start: <[0-40]>", "token id 40 is out of range"),
        ("start: <[^40]>", "token id 40 is out of range"),
        ("start: <[3-2]>", "this range ends before its start"),
        ("start: <[]>", "expected a token id"),
        ("start: <[^]>", "expected a token id"),
        ("start: <[^*]>", "expected a token id"),
        ("start: <[1,]>", "expected a token id"),
        ("start: <[-1]>", "expected a token id"),
        ("start: <[99999999999]>", "token id"),
        ("start: <>", "expected the name of a token"),
        ("start: <[0-9]> <[^0-9]>", "no text that this vocabulary can spell"),
        ('start: "a" & <|x|>', "special token"),
        ("start: ~<|x|>", "special token"),
        ("start: A\nA: <|x|>", "special token"),
        ('start: "a"\n%ignore <|x|>', "special token"),
        ("start: a\na[lazy]: <|x|>", "special token"),
        ("start: a\na[stop=<|x|>]: /a/", "expected a literal, a regular"),
        ("start: a\na[max_tokens=3]: <|x|>", "special token"),
        ("start: A\nA: /a/ | <[*]>", "special token"),
    ],
)
def test_where_tokens_cannot_stand(text: str, message: str) -> None:
    with pytest.raises(GrammatonError, match=message) as caught:
        compile(Grammar.from_lark(text), VOCABULARY)
    assert caught.value.line is not None, caught.value  # type: ignore[attr-defined]
