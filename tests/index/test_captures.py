"""Attributes of rules, each by its definition: captures, lazy ends, token budgets, temperatures."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton import Grammar, GrammarError, UnsupportedKeyword, Vocabulary, compile
from grammaton._core import Matcher
from tests.reference import mask_to_ids

TOKENS = [b"a", b"b", b"ab", b"ba", b"bb", b"aab", b";", b"=", b"=a", b"b;", b" ", b"", b""]
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=12, special_tokens={"<|x|>": 11})


def reading(grammar: Grammar, *tokens: int | bytes) -> Matcher:
    matcher = compile(grammar, VOCABULARY).matcher()
    for token in tokens:
        took = matcher.accept(token) if isinstance(token, int) else matcher.accept_bytes(token)
        assert took, token
    return matcher


def split(data: st.DataObject, text: bytes) -> list[int]:
    """Some way of spelling a text in tokens."""
    tokens = []
    while text:
        fitting = [i for i, token in enumerate(TOKENS) if token and text.startswith(token)]
        tokens.append(data.draw(st.sampled_from(fitting)))
        text = text[len(TOKENS[tokens[-1]]) :]
    return tokens


FIELDS = r"""
start: {body}
pair[capture]: key "=" value
key[capture="name"]: /[ab]+/
value[capture]: /[ab]*/
%ignore " "
"""
SHAPES = [
    'pair (";" pair)*',
    'pairs\npairs: pair | pairs separator pair\nseparator: ";"',
    'pairs\npairs: pair | pair separator pairs\nseparator: ";"',
    '<|x|>? pairs\npairs: (pair ";")* pair',
]


@pytest.mark.parametrize("shape", SHAPES)
@given(st.data(), st.lists(st.tuples(st.text("ab", min_size=1), st.text("ab")), min_size=1))
def test_captures_of_fields(shape: str, data: st.DataObject, fields: list[tuple[str, str]]) -> None:
    grammar = Grammar.from_lark(FIELDS.format(body=shape))
    text = ";".join(f"{key}={value}" for key, value in fields).encode()
    matcher = reading(grammar, *split(data, text))
    expected = {
        "pair": [f"{key}={value}".encode() for key, value in fields],
        "name": [key.encode() for key, _ in fields],
        "value": [value.encode() for _, value in fields],
    }
    assert matcher.captures() == expected
    fork = matcher.fork()
    if fork.accept(6):
        assert fork.captures() == expected
        fork.rollback(1)
    assert matcher.accept(12)
    assert matcher.captures() == fork.captures() == expected
    fork.reset()
    assert fork.captures() == {}


def test_captures_within_captures() -> None:
    grammar = Grammar.from_lark('start: list\nlist[capture]: "a" list "b" | ""')
    assert reading(grammar, b"aa", b"bb").captures() == {"list": [b"aabb", b"ab", b""]}
    assert reading(grammar, b"aab").captures() == {"list": [b"ab", b""]}


def test_captures_with_tokens() -> None:
    grammar = Grammar.from_lark("start: (turn <|x|>)+\nturn[capture]: /[ab]+/ <[0]>?")
    matcher = reading(grammar, 1, 0, 11, 2, 11)
    assert matcher.captures() == {"turn": [b"ba", b"ab"]}


def test_an_ambiguous_text_is_read_one_way() -> None:
    grammar = Grammar.from_lark('start: x x\nx[capture]: "a"*')
    found = reading(grammar, b"aaa").captures()["x"]
    assert b"".join(found) == b"aaa"
    assert len(found) == 2
    assert reading(grammar, 0, 0, 0).captures()["x"] == found


def test_no_captures() -> None:
    matcher = reading(Grammar.literal("ab"), 2)
    assert matcher.captures() == {}
    assert matcher.temperature is None


@pytest.mark.parametrize(
    ("rules", "tokens", "expected"),
    [
        (
            'r[max_tokens=2, capture]: /a?b*/\ns[max_tokens=1, capture]: "b" | "bb"',
            (0, 1, 1),
            "ab b",
        ),
        ('r[max_tokens=2, capture]: /a?b*/\ns[max_tokens=1, capture]: "b" | "bb"', (2, 1), "ab b"),
        ('r[capture]: "a" | "ab"\ns[max_tokens=2, capture]: "bbb" | "bb"', (2, 1, 1), "ab bb"),
    ],
)
def test_captures_are_read_within_budgets(
    rules: str, tokens: tuple[int, ...], expected: str
) -> None:
    matcher = reading(Grammar.from_lark(f"start: r s\n{rules}\n"), *tokens)
    r, s = expected.encode().split()
    assert matcher.captures() == {"r": [r], "s": [s]}


PATTERNS = ["a*", "a+b?", "[ab]*b", "(ab|a)*", "[ab]{2,4}", "[ab]*(ab|bb)", "a|ab|b"]
TEXTS = ["".join(chars) for n in range(6) for chars in product("ab", repeat=n)]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_lazy_rules(pattern: str) -> None:
    grammar = Grammar.from_lark(f"start: r\nr[lazy]: /{pattern}/")
    whole = re.compile(f"(?:{pattern})\\Z")
    for text in TEXTS:
        ends = [n for n in range(len(text) + 1) if whole.match(text[:n])]
        # Alternatives of a regular expression are tried in order, which texts of length 1 show.
        if pattern == "a|ab|b":
            ends = [n for n in ends if n < 2]
        assert grammar.accepts(text) == (bool(ends) and ends[0] == len(text)), text


@pytest.mark.parametrize(("pattern", "end"), list(product(PATTERNS[:5], ["b", "ab", "aa", "b+"])))
def test_suffixes_and_stops(pattern: str, end: str) -> None:
    def ways(text: str) -> list[int]:
        """Where the end may begin, for the shortest text with one."""
        first, last = re.compile(pattern), re.compile(end)
        return [
            n
            for n in range(len(text) + 1)
            if first.fullmatch(text[:n]) and last.fullmatch(text[n:])
        ]

    suffix = f'start: r\nr[capture, suffix=/{end}/, stop_capture="end"]: /{pattern}/'
    closed = Grammar.from_lark(suffix)
    stopped = Grammar.from_lark(f"start: r\nr[stop=/{end}/]: /{pattern}/")
    for text in TEXTS:
        earlier = any(ways(text[:n]) for n in range(len(text)))
        assert closed.accepts(text) == (bool(ways(text)) and not earlier), text
        inside = re.fullmatch(pattern, text) is not None
        assert stopped.accepts(text) == (inside and not earlier and not ways(text)), text
        if closed.accepts(text):
            found = reading(closed, *([text.encode()] if text else [])).captures()
            assert found["r"][0] + found["end"][0] == text.encode()
            assert re.fullmatch(end, found["end"][0].decode())
            cut = len(found["r"][0])
            assert not any(re.fullmatch(end, text[n:]) for n in range(cut))


def meter_allows(words: list[str], n: int, before: str, after: str, tokens: list[int]) -> bool:
    """Whether tokens begin `before`, one of `words` within n tokens, then `after`."""
    text = b"".join(TOKENS[token] for token in tokens).decode()
    for word in words:
        whole = before + word + after
        if not whole.startswith(text):
            continue
        start, end = len(before), len(before) + len(word)
        at = used = 0
        fits = True
        for token in tokens:
            begin, at = at, at + len(TOKENS[token])
            if begin < end and at > start:
                used += 1
                if start < at < end:
                    done = word[: at - start]
                    least = min(len(w) - len(done) for w in words if w.startswith(done))
                    fits = fits and n - used >= least
                fits = fits and used <= n
        if fits:
            return True
    return False


@given(
    st.sets(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=5),
    st.integers(1, 4),
    st.sampled_from(["", "=", "=a"]),
    st.data(),
)
def test_token_budgets(words: set[str], n: int, before: str, data: st.DataObject) -> None:
    n = max(n, min(map(len, words)))
    listed = "|".join(sorted(words, key=len, reverse=True))
    text = f'start: "{before}" r ";"\nr[max_tokens={n}, temperature=0.5]: /{listed}/'
    grammar = Grammar.from_lark(text)
    assert Grammar.from_text(str(grammar)) == grammar
    assert all(grammar.accepts(f"{before}{word};") for word in words)
    matcher = compile(grammar, VOCABULARY).matcher()
    taken: list[int] = []
    while True:
        spelled = [i for i, token in enumerate(TOKENS) if token]
        allowed = {i for i in spelled if meter_allows(sorted(words), n, before, ";", [*taken, i])}
        mask = mask_to_ids(matcher.mask())
        assert mask - {12} == allowed
        for token in spelled:
            assert matcher.fork().accept(token) == (token in allowed)
        if not allowed:
            assert mask == {12}
            break
        taken.append(data.draw(st.sampled_from(sorted(allowed))))
        assert matcher.accept(taken[-1])


def test_a_budget_of_a_wide_rule() -> None:
    """The first tokens of a large budget have the mask of the rule itself."""
    free = Grammar.from_lark('start: /[ab ;]*/ "="')
    bounded = Grammar.from_lark('start: r "="\nr[max_tokens=3]: /[ab ;]*/')
    matcher = reading(bounded)
    assert mask_to_ids(matcher.mask()) == mask_to_ids(reading(free).mask())
    for _ in range(3):
        assert matcher.accept(5)
    assert mask_to_ids(matcher.mask()) == {7}


def test_a_budget_that_is_too_small() -> None:
    grammar = Grammar.from_lark("start: r\nr[max_tokens=2]: /ab+a/")
    with pytest.raises(GrammarError, match="shortest text of rule `r` has 3 bytes"):
        compile(grammar, VOCABULARY)


def test_temperatures() -> None:
    grammar = Grammar.from_lark(
        'start: (hot | cold) ";"\nhot[temperature=1.5]: /a+/\ncold[temperature=0]: /a?b+/'
    )
    matcher = reading(grammar)
    assert matcher.temperature == 1.5
    matcher.accept(1)
    assert matcher.temperature == 0
    matcher.accept(9)
    assert matcher.temperature is None


def test_ignored_text_is_not_captured() -> None:
    text = 'start: word "=" word\nword[capture, max_tokens=2]: /[ab]+/\n%ignore " "'
    assert reading(Grammar.from_lark(text), b"ab ", b" = b ").captures()["word"] == [b"ab", b"b"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("r[max_tokens=0]: /a/", "max_tokens is at least 1"),
        ("r[temperature=-1]: /a/", "expected a temperature from 0 on"),
        ("r[foo]: /a/", "expected one of capture, lazy"),
        ("r[lazy, lazy]: /a/", "lazy is there twice"),
        ("r[stop=b]: /a/\nb: /b/", "expected a literal, a regular expression or a terminal"),
        ("r[lazy]: b\nb: /b/", "a terminal cannot contain a rule"),
        ('r[stop_capture="x"]: /a/', "stop_capture names what a suffix matches"),
        ('r[stop="a", suffix="b"]: /a/', "stop and suffix don't go together"),
        ('r[capture=""]: /a/', "a capture needs a name"),
        ("r[lazy", "expected , or ]"),
        ("r: /a/\nR[lazy]: /a/", "attributes belong to rules"),
    ],
)
def test_bad_attributes(rule: str, message: str) -> None:
    with pytest.raises(GrammarError, match=re.escape(message)):
        Grammar.from_lark("start: r\n" + rule)


@pytest.mark.parametrize("rule", ['r[stop=""]: /a/', "r[lazy]: /a(?=b)/"])
def test_attributes_that_are_not_supported(rule: str) -> None:
    with pytest.raises(UnsupportedKeyword):
        Grammar.from_lark("start: r\n" + rule)
    captured = Grammar.from_lark('start: r\nr[capture]: "a"')
    with pytest.raises(UnsupportedKeyword, match="GBNF cannot say attributes"):
        captured.to_gbnf()
