"""Tokens as letters: masks and steps against sets of symbol strings, written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton import Grammar, GrammarError, Vocabulary, compile
from tests.reference import mask_to_ids

Symbol = bytes | frozenset[int]
"""A byte, or a set of token ids."""

Language = frozenset[tuple[Symbol, ...]]

TOKENS = [b"a", b"b", b"ab", b"ba", b"abb", b"", b"", b"", b"b"]
SPECIAL = {"<|x|>": 5, "<|y|>": 6}
EOS = 7
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=EOS, special_tokens=SPECIAL)
MOST_TEXTS = 60


@st.composite
def pairs(draw: st.DrawFn, depth: int = 3) -> tuple[Grammar, Language]:
    """A grammar with finitely many texts, and all of them."""
    kind = draw(st.sampled_from("lltttcccuuor" if depth else "ltt"))
    if kind == "l":
        text = draw(st.text("ab", max_size=3))
        return Grammar.literal(text), frozenset({tuple(bytes([c]) for c in text.encode())})
    if kind == "t":
        ids = draw(st.sets(st.sampled_from([0, 2, 5, 6, EOS, 8]), max_size=3))
        negated = draw(st.booleans())
        names = [name for name, i in SPECIAL.items() if i in ids and draw(st.booleans())]
        listed: list[str | int] = [*names, *(ids - {SPECIAL[name] for name in names})]
        if negated:
            letter = frozenset(range(len(TOKENS))) - ids - {EOS}
            return Grammar.from_tokens(listed, negated=True), frozenset({(letter,)})
        if not ids:
            return Grammar.literal(""), frozenset({()})
        return Grammar.from_tokens(listed), frozenset({(frozenset(ids),)})
    one, texts = draw(pairs(depth - 1))
    if kind == "o":
        return one.optional(), texts | {()}
    if kind == "r":
        both = frozenset(x + y for x in texts for y in texts)
        if len(both) <= MOST_TEXTS:
            return one.repeat(0, 2), both | texts | {()}
    other, others = draw(pairs(depth - 1))
    if kind == "c" and len(texts) * len(others) <= MOST_TEXTS:
        return one + other, frozenset(x + y for x in texts for y in others)
    return one | other, texts | others


def after(language: Language, token: int) -> Language:
    """What may follow a token, read as text or as itself."""
    found = set()
    spelled = tuple(bytes([c]) for c in TOKENS[token])
    for text in language:
        if spelled and text[: len(spelled)] == spelled:
            found.add(text[len(spelled) :])
        if text and isinstance(text[0], frozenset) and token in text[0]:
            found.add(text[1:])
    return frozenset(found)


@given(st.data())
def test_masks_and_steps(data: st.DataObject) -> None:
    grammar, language = data.draw(pairs())
    matcher = compile(grammar, VOCABULARY).matcher()
    history = [language]
    for _ in range(5):
        assert matcher.is_complete == (() in language)
        allowed = {token for token in range(len(TOKENS)) if after(language, token)}
        if () in language:
            allowed.add(EOS)
        assert mask_to_ids(matcher.mask()) == allowed
        for token in range(len(TOKENS)):
            fork = matcher.fork()
            assert fork.accept(token) == (token in allowed)
            assert fork.is_finished == (
                token == EOS and () in language and not after(language, EOS)
            )
        for token in matcher.forced_tokens():
            assert {token} == {t for t in range(len(TOKENS)) if after(history[-1], t)}
            history.append(after(history[-1], token))
        history = history[: history.index(language) + 1]
        if not allowed:
            break
        token = data.draw(st.sampled_from(sorted(allowed)))
        following = after(language, token)
        if token == EOS and () in language:
            if not following:
                assert matcher.accept(token)
                assert mask_to_ids(matcher.mask()) == set()
                break
            following |= {()}
        assert matcher.validate([token]) == 1
        assert matcher.accept(token)
        if data.draw(st.booleans()):
            matcher.rollback(1)
            assert mask_to_ids(matcher.mask()) == allowed
            continue
        language = following
        history.append(language)


@given(pairs())
def test_text_form(pair: tuple[Grammar, Language]) -> None:
    grammar, _ = pair
    assert Grammar.from_text(str(grammar)) == grammar


@given(pairs(), st.text("ab", max_size=4))
def test_text_spells_no_token(pair: tuple[Grammar, Language], text: str) -> None:
    grammar, language = pair
    symbols = tuple(bytes([c]) for c in text.encode())
    assert grammar.accepts(text) == (symbols in language)
    assert grammar.accepts_prefix(text) == any(t[: len(text)] == symbols for t in language)
    matcher = compile(grammar, VOCABULARY).matcher()
    assert matcher.accept_bytes(text.encode()) == grammar.accepts_prefix(text)


def allowed_names(grammar: Grammar, *tokens: int) -> set[int]:
    matcher = compile(grammar, VOCABULARY).matcher()
    assert matcher.validate(tokens) == len(tokens)
    for token in tokens:
        matcher.accept(token)
    return mask_to_ids(matcher.mask())


def test_recursion_through_tokens() -> None:
    grammar = Grammar.from_lark('start: <|x|> start <|y|> | "ab"*')
    assert allowed_names(grammar) == {0, 2, 5, EOS} | {4} - {4}
    assert allowed_names(grammar, 5, 5, 2) == {0, 2, 6}
    assert allowed_names(grammar, 5, 5, 2, 6, 6) == {EOS}


def test_left_recursion_through_tokens() -> None:
    grammar = Grammar.from_gbnf("root ::= root <|x|> | <[6]> | other\nother ::= root <|y|> | [a]")
    assert allowed_names(grammar) == {6, 0}
    assert allowed_names(grammar, 6, 5, 6, 5) == {5, 6, EOS}


def test_forms_in_lark() -> None:
    assert allowed_names(Grammar.from_lark("start: <|x|> | <[0,2-4]>")) == {0, 2, 3, 4, 5}
    assert allowed_names(Grammar.from_lark("start: <[^0, 2 - 4]>")) == {1, 5, 6, 8}
    assert allowed_names(Grammar.from_lark("start: <[*]>")) == {0, 1, 2, 3, 4, 5, 6, 8}
    ignored = Grammar.from_lark('start: <|x|> "a"\n%ignore "b"')
    assert allowed_names(ignored) == {1, 5, 8}
    assert allowed_names(ignored, 5, 1) == {0, 1, 2, 3, 8, 4}
    one = "start: each{<|x|>}\neach{one}: one one"
    assert allowed_names(Grammar.from_lark(one), 5) == {5}


def test_look_around_ends_at_a_token() -> None:
    grammar = Grammar.from_lark('start: WORD (<|x|> | "b")\nWORD: /a(?!b)/ | /ab(?=b)/')
    assert allowed_names(grammar) == {0, 2, 4}
    assert allowed_names(grammar, 0) == {5, 1, 8}
    assert allowed_names(grammar, 2) == {1, 8}


def test_forms_in_gbnf() -> None:
    text = "root ::= !<|x|> <[5]>\n"
    grammar = Grammar.from_gbnf(text)
    assert allowed_names(grammar) == {0, 1, 2, 3, 4, 6, 8}
    assert allowed_names(grammar, 0) == {5}
    assert grammar.to_gbnf() == text
    several = Grammar.from_gbnf("root ::= <[2-3]> | <[5]> <|y|>")
    assert Grammar.from_gbnf(several.to_gbnf()) != several  # sets of one now
    assert allowed_names(Grammar.from_gbnf(several.to_gbnf())) == {2, 3, 5}


def test_an_ordinary_token_is_known_by_its_text() -> None:
    """Both ids that spell it."""
    assert allowed_names(Grammar.from_tokens("b")) == {1, 8}


def test_forced_text_stops_before_a_token() -> None:
    grammar = Grammar.from_lark('start: "ab" <|x|> "a"')
    matcher = compile(grammar, VOCABULARY).matcher()
    assert matcher.forced_bytes() == b"ab"
    assert matcher.accept(2)
    assert matcher.forced_bytes() == b""
    assert matcher.forced_tokens() == [5, 0]


def test_a_token_among_the_text_is_a_choice() -> None:
    matcher = compile(Grammar.from_lark('start: "a" | <|x|>'), VOCABULARY).matcher()
    assert matcher.forced_bytes() == b""


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("start: a\na: <|z|>", "this vocabulary has no token <|z|>; special tokens are <|", (2, 4)),
        ("start: <[3,9]>", "token id 9 is out of range; the vocabulary has ids 0 to 8", (1, 8)),
    ],
)
def test_unknown_tokens(text: str, message: str, place: tuple[int, int]) -> None:
    grammar = Grammar.from_lark(text) | Grammar.literal("a")
    with pytest.raises(GrammarError, match="(?s)" + message.replace("|", r"\|")) as caught:
        compile(grammar, VOCABULARY)
    assert (caught.value.line, caught.value.column) == place
    with pytest.raises(GrammarError, match=message.replace("|", r"\|")):
        compile(Grammar.from_text(str(grammar)), VOCABULARY)


def test_an_unreachable_unknown_token_is_no_error() -> None:
    compile(Grammar.from_lark("start: <|x|>\nother: <|z|>"), VOCABULARY)


@pytest.mark.parametrize("tokens", [[], [-1], [2**32], [True], [range(0, 9, 2)], [1.5], ["\ud800"]])
def test_bad_tokens(tokens: list[int]) -> None:
    with pytest.raises(GrammarError):
        Grammar.from_tokens(tokens)


def test_operators_on_characters_refuse_tokens() -> None:
    token = Grammar.from_tokens("<|x|>")
    with pytest.raises(GrammarError, match="without rules and tokens"):
        _ = ~token
    with pytest.raises(GrammarError, match="without rules and tokens"):
        _ = token & Grammar.literal("a")


def test_a_real_vocabulary_of_ids() -> None:
    """Sets over many words of a mask, also in the middle of a wide text."""
    tokens = [bytes([byte]) for byte in range(256)] + [b""] * 300
    names = {f"<|{i}|>": i for i in range(256, 555)}
    vocabulary = Vocabulary(tokens, eos_token_ids=555, special_tokens=names)
    grammar = Grammar.from_lark("start: /[^<]*/ <[^0-300]> TEXT\nTEXT: /.*/s")
    matcher = compile(grammar, vocabulary).matcher()
    assert matcher.accept_bytes("é".encode())
    mask = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
    assert set(np.flatnonzero(mask[256:]) + 256) == set(range(301, 555))
    assert matcher.accept(400)
    assert mask_to_ids(matcher.mask()) > {555, 65}
