"""What a terminal of a Lark grammar matches whole is what `re.match` does, preferences included."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grammaton import Grammar, UnsatisfiableGrammar, UnsupportedKeyword

TEXTS = ["".join(letters) for count in range(5) for letters in product("abc", repeat=count)]

_QUANTIFIERS = ("*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{0,2}?", "{2,}?")
_LOOKS = ("(?!a)", "(?=b)", "(?<!a)", "(?<=b)", r"\b", r"\B", "(?!ab)", "(?=a|ba)")
PATTERNS = st.recursive(
    st.sampled_from(("a", "b", "[ab]", "[^a]", ".", *_LOOKS)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]})"),
        st.tuples(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]}|)"),
        st.tuples(inner, st.sampled_from(_QUANTIFIERS)).map(lambda both: f"(?:{both[0]}){both[1]}"),
    ),
    max_leaves=7,
)


@given(PATTERNS)
@settings(max_examples=80)
def test_what_is_matched_is_what_re_matches(pattern: str) -> None:
    try:
        grammar = Grammar.from_lark(f"start: A\nA: /{pattern}/\n")
    except UnsatisfiableGrammar:
        grammar = Grammar.from_text("start ::= nothing")
    except UnsupportedKeyword:
        assume(False)
    compiled = re.compile(pattern)
    for text in TEXTS:
        found = compiled.match(text)
        assert grammar.accepts(text) == (found is not None and found[0] == text), text


@pytest.mark.parametrize(
    ("pattern", "printed"),
    [
        (r'/".*?(?<!\\)(\\\\)*?"/', r'"\"" ("\\" [^\n] | [^\n"\\])* "\""'),
        (r"/\/\*(.|\n)*?\*\//", None),
        ("/[a-z]+/", "[a-z]+"),
        ("/[ab]{2,50000}/", "[ab]{2,50000}"),
        ('("a" | "ab")+', None),
    ],
)
def test_terms_stay_small(pattern: str, printed: str | None) -> None:
    text = str(Grammar.from_lark(f"start: A\nA: {pattern}\n"))
    assert len(text) < 120
    assert printed is None or text.splitlines()[-1].endswith(f"::= {printed}")


def test_what_grows_too_large_is_refused() -> None:
    with pytest.raises(UnsupportedKeyword, match="more than 3000 states"):
        Grammar.from_lark("start: A\nA: /(a|b)*a(a|b){12}|b/\n")
    with pytest.raises(UnsupportedKeyword, match="longer than 20000 characters"):
        Grammar.from_lark("start: A\nA: /(a|ab){1,30000}/\n")
