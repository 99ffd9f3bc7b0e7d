"""The oracle itself, against Python's `re` and `json`, Lark, and plain enumeration."""

from __future__ import annotations

import json
import re
from itertools import permutations, product

import lark
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammaton.errors import GrammarError, UnsatisfiableGrammar, VocabularyError
from tests.reference import (
    ReferenceConstraint,
    ReferenceIndex,
    ReferenceRecognizer,
    ReferenceStore,
    decode_json_contents,
    enumerate_language,
    is_utf8,
    mask_to_ids,
    plain_text,
    reference_mask,
    spelling_of,
)
from tests.reference_derivatives import completions, first_in
from tests.reference_language import Language
from tests.reference_terms import Alternative
from tests.strategies import (
    ALPHABET,
    Expression,
    Plan,
    VocabularyPlan,
    plans,
    recursive_plans,
    regular_expressions,
    regular_plans,
    texts_near,
    vocabularies,
    within_budget,
)

SMALL = [char.encode() for char in 'abé"\\']


def strings(alphabet: list[bytes], longest: int) -> list[bytes]:
    """Every text of at most `longest` pieces."""
    return [b"".join(t) for n in range(longest + 1) for t in product(alphabet, repeat=n)]


def as_pattern(expression: Expression) -> str:
    """An expression without `&`, `~`, multiples and JSON lifts as a pattern of Python's `re`."""
    match expression:
        case ("none",):
            return "(?!)"
        case ("text", text):
            return f"(?:{re.escape(text)})"
        case ("texts", (*texts,)):
            return f"(?:{'|'.join(re.escape(text) for text in texts)})"
        case ("chars", (*ranges,)):
            return f"[{''.join(f'{re.escape(chr(a))}-{re.escape(chr(b))}' for a, b in ranges)}]"
        case ("concat", (*parts,)):
            return "".join(as_pattern(part) for part in parts)
        case ("union", (*parts,)):
            return f"(?:{'|'.join(as_pattern(part) for part in parts)})"
        case ("repeat", inner, low, high):
            return f"(?:{as_pattern(inner)}){{{low},{'' if high is None else high}}}"
    raise AssertionError(expression)


def plain(expression: Expression) -> bool:
    """Whether `as_pattern` can write the expression."""
    return expression[0] not in ("intersect", "complement", "json", "multiples") and all(
        plain(part)
        for field in expression[1:]
        if isinstance(field, tuple) and expression[0] not in ("chars", "texts")
        for part in ([field] if field and isinstance(field[0], str) else field)
    )


@given(regular_plans().filter(lambda plan: plain(plan.start)), st.data())
@within_budget
def test_acceptance_is_fullmatch(plan: Plan, data: st.DataObject) -> None:
    store = ReferenceStore()
    term = plan.build(store)
    text = data.draw(texts_near(Language(store, term)))
    try:
        expected = re.fullmatch(as_pattern(plan.start), text.decode(), re.DOTALL) is not None
    except UnicodeDecodeError:
        expected = False
    assert store.accepts(term, text) == expected


@given(regular_plans(4), regular_plans(4), st.sampled_from(strings(SMALL, 3)))
@within_budget
def test_boolean_operators_are_boolean(left: Plan, right: Plan, text: bytes) -> None:
    store = ReferenceStore()
    both = [left.build(store), right.build(store)]
    inside = [store.accepts(term, text) for term in both]
    assert store.accepts(store.intersect(both), text) == all(inside)
    assert store.accepts(store.union(both), text) == any(inside)
    assert store.accepts(store.complement(both[0]), text) == (not inside[0])


@given(st.text(max_size=4), st.booleans())
@within_budget
def test_json_lift_takes_what_json_writes(text: str, ascii_only: bool) -> None:
    assume(
        is_utf8(text.encode(errors="replace")) and not any("\ud800" <= c < "\ue000" for c in text)
    )
    store = ReferenceStore()
    term = store.json(store.literal(text.encode()))
    written = json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode()
    assert store.accepts(term, written)
    assert Language(store, term).accepts(written)
    assert not store.accepts(term, written + b"a")


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        (b"\\u00e9", "é"),
        (b"\\u00E9", "é"),
        (b"\\ud83d\\ude00", "😀"),
        (b"\\uD83D\\uDE00", "😀"),
        (b"\\/", "/"),
        (b"/", "/"),
        (b"\x7f", "\x7f"),
        (b"\\ud83d", None),
        (b"\\ude00\\ud83d", None),
        (b"\\ud83da", None),
        (b"\\u00g0", None),
        (b"\\u 123", None),
        (b"\\u+123", None),
        (b"\\U0061", None),
        (b"\\x", None),
        (b"\\", None),
        (b'"', None),
        (b'a" "b', None),
        (b"\n", None),
        (b"\x1f", None),
        (b"\xff", None),
    ],
)
def test_json_contents(contents: bytes, text: str | None) -> None:
    assert decode_json_contents(contents) == text
    store = ReferenceStore()
    everything = store.repeat(store.chars([(0, 0x10FFFF)]), 0, None)
    assert Language(store, store.json(everything)).accepts(contents) == (text is not None)


@given(regular_expressions(3), st.data())
@within_budget
def test_json_lift_is_the_same_both_ways(inner: Expression, data: st.DataObject) -> None:
    plan = Plan(("json", inner))
    store = ReferenceStore()
    term = plan.build(store)
    language = Language(store, term)
    text = data.draw(texts_near(language))
    assert language.accepts(text) == store.accepts(term, text)


@given(plans(), st.data())
@within_budget
def test_earley_agrees_with_spans(plan: Plan, data: st.DataObject) -> None:
    store = ReferenceStore()
    term = plan.build(store)
    language = Language(store, term)
    text = data.draw(texts_near(language))
    assert language.accepts(text) == store.accepts(term, text)


@given(plans(), st.data())
@within_budget
def test_viable_means_that_a_completion_exists(plan: Plan, data: st.DataObject) -> None:
    store = ReferenceStore()
    term = plan.build(store)
    language = Language(store, term)
    text = data.draw(texts_near(language, 5))
    prefix = text[: data.draw(st.integers(0, len(text)))]
    if language.viable(prefix):
        assert store.accepts(term, prefix + language.completion(prefix))
    else:
        more = strings([char.encode() for char in "abé" + chr(0x10FFFF)], 2)
        tails = [prefix[-k:] for k in range(4)]
        assert not any(store.accepts(term, prefix + tail) for tail in (*more, *tails, b"\xa9"))


@given(st.sampled_from("😀𐀀𝔸󿿽􏿿") | st.characters(min_codepoint=0x10000), st.data())
def test_viable_escapes_of_a_character(char: str, data: st.DataObject) -> None:
    store = ReferenceStore()
    language = Language(store, store.json(store.literal(char.encode())))
    written = json.dumps(char)[1:-1].encode()
    cut = data.draw(st.integers(1, len(written)))
    for digit in b"0123456789abcdef\\u":
        prefix = written[: cut - 1] + bytes([digit])
        assert language.viable(prefix) == written.startswith(prefix), prefix


@given(recursive_plans(), st.integers(0, 3))
@within_budget
def test_emptiness(plan: Plan, longest: int) -> None:
    store = ReferenceStore()
    term = plan.build(store)
    found = enumerate_language(store, term, longest, [b"a", "é".encode()])
    assert not (found and store.is_empty(term))
    assert store.is_nullable(term) == (b"" in enumerate_language(store, term, 0, []))


LARK_GRAMMARS = [
    (
        """start: start start | "a" | "(" start ")" """,
        Plan(
            ("call", 0, (), ()),
            (
                (
                    "union",
                    (
                        ("concat", (("call", 0, (), ()), ("call", 0, (), ()))),
                        ("text", "a"),
                        ("concat", (("text", "("), ("call", 0, (), ()), ("text", ")"))),
                    ),
                ),
            ),
        ),
        "a()",
    ),
    (
        """start: x "a" | "b"\nx: start | """,
        Plan(
            ("call", 0, (), ()),
            (
                ("union", (("concat", (("call", 1, (), ()), ("text", "a"))), ("text", "b"))),
                ("union", (("call", 0, (), ()), ("text", ""))),
            ),
        ),
        "ab",
    ),
    (
        """start: ("a" start "b")? | /b{2,3}/ dead?\ndead: "a" dead""",
        Plan(
            ("call", 0, (), ()),
            (
                (
                    "union",
                    (
                        ("text", ""),
                        ("concat", (("text", "a"), ("call", 0, (), ()), ("text", "b"))),
                        (
                            "concat",
                            (
                                ("repeat", ("text", "b"), 2, 3),
                                ("repeat", ("call", 1, (), ()), 0, 1),
                            ),
                        ),
                    ),
                ),
                ("concat", (("text", "a"), ("call", 1, (), ()))),
            ),
        ),
        "ab",
    ),
]


@pytest.mark.parametrize(("source", "plan", "letters"), LARK_GRAMMARS)
def test_recursion_against_lark(source: str, plan: Plan, letters: str) -> None:
    parser = lark.Lark(source, parser="earley", lexer="dynamic_complete")
    store = ReferenceStore()
    term = plan.build(store)
    language = Language(store, term)
    texts = strings([letter.encode() for letter in letters], 5)
    accepted = set()
    for text in texts:
        try:
            parser.parse(text.decode())
            accepted.add(text)
        except lark.exceptions.UnexpectedInput:
            pass
    assert accepted
    assert {text for text in texts if store.accepts(term, text)} == accepted
    assert {text for text in texts if language.accepts(text)} == accepted
    assert set(enumerate_language(store, term, 5, [c.encode() for c in letters])) == accepted


def test_template_rules_take_each_key_once() -> None:
    store = ReferenceStore()
    keys = store.rule("keys")
    rows: list[Alternative] = [
        (store.literal(b"abc"[k : k + 1]), keys, store.EMPTY, [("unseen", k)], [("see", k)])
        for k in range(3)
    ]
    rows.append((store.literal(b"."), -1, store.EMPTY, [("all_seen", (0, 2))], []))
    store.define_template(keys, rows)
    found = enumerate_language(store, store.call(keys), 4, [b"a", b"b", b"c", b"."])
    expected = {"".join(p) + "." for n in (2, 3) for p in permutations("abc", n)}
    assert {text.decode() for text in found} == {t for t in expected if {"a", "c"} <= set(t)}


def test_template_counters_saturate() -> None:
    store = ReferenceStore()
    many = store.rule("many")
    grow: Alternative = (
        store.literal(b"a"),
        many,
        store.EMPTY,
        [("between", 0, 0, 3)],
        [("add", 0, 1, 3)],
    )
    stop: Alternative = (store.literal(b"."), -1, store.EMPTY, [("between", 0, 2, 3)], [])
    store.define_template(many, [grow, stop])
    found = enumerate_language(store, store.call(many), 6, [b"a", b"."])
    assert found == [b"aa.", b"aaa.", b"aaaa.", b"aaaaa."]
    two_left = store.call(many, store.param(counters=[2]))
    assert enumerate_language(store, two_left, 2, [b"a", b"."]) == [b".", b"a."]


@given(regular_plans(), st.data())
@within_budget
def test_derivative_is_the_residual(plan: Plan, data: st.DataObject) -> None:
    store = ReferenceStore()
    term = plan.build(store)
    text = data.draw(texts_near(Language(store, term), 4))
    residual = term
    for byte in text:
        residual = store.derivative(residual, byte)
    assert store.is_nullable(residual) == store.accepts(term, text)
    assert store.is_empty(residual) == (not Language(store, term).viable(text))


@given(st.sampled_from(ALPHABET + "\u0800\ud7ff\ue000\uffff\U0010ffff"), st.integers(1, 3))
@within_budget
def test_completions_of_a_cut_character(char: str, cut: int) -> None:
    assume(cut < len(char.encode()))
    begun = char.encode()[:cut]
    low, high = completions(begun)
    assert low <= ord(char) <= high
    assert chr(low).encode(errors="surrogatepass").startswith(begun)
    assert chr(high).encode(errors="surrogatepass").startswith(begun)
    assert not chr(low - 1).encode(errors="surrogatepass").startswith(begun)
    if high < 0x10FFFF:
        assert not chr(high + 1).encode(errors="surrogatepass").startswith(begun)


@given(vocabularies(), st.characters(exclude_categories=["Cs"]) | st.sampled_from(ALPHABET))
@within_budget
def test_spelling_by_its_definition(vocabulary: VocabularyPlan, char: str) -> None:
    texts = {t for t, plain in zip(vocabulary.tokens, vocabulary.ordinary, strict=True) if plain}
    spelling = spelling_of(vocabulary.tokens, vocabulary.ordinary)
    bytewise = all(bytes([byte]) in texts for byte in char.encode())
    assert (first_in(spelling.bytewise, ord(char), ord(char)) is not None) == bytewise
    assert (ord(char) in spelling) == (bytewise or char.encode() in texts)


def test_spelling_of_every_byte_is_every_character() -> None:
    spelling = spelling_of([bytes([byte]) for byte in range(256)], [True] * 256)
    assert spelling.whole == spelling.bytewise == ((0, 0xD7FF), (0xE000, 0x10FFFF))


@given(
    st.lists(st.text(ALPHABET, max_size=4), min_size=1, max_size=5, unique=True),
    st.data(),
)
@within_budget
def test_masks_of_finite_languages(texts: list[str], data: st.DataObject) -> None:
    """Where the language is a list of texts, the definition can be written down directly."""
    vocabulary = data.draw(vocabularies(Plan(("texts", tuple(texts)))))
    plain = plain_text(vocabulary.ordinary, vocabulary.eos_ids)
    ordinary = {token for token, is_plain in zip(vocabulary.tokens, plain, strict=True) if is_plain}

    def bytewise(char: str) -> bool:
        return all(bytes([byte]) in ordinary for byte in char.encode())

    spelled = [t for t in texts if all(bytewise(c) or c.encode() in ordinary for c in t)]
    prefixes = {
        text[:at].encode() + char.encode()[:cut]
        for text in spelled
        for at, char in enumerate(text)
        for cut in range(len(char.encode()))
        if cut == 0 or bytewise(char)
    } | {text.encode() for text in spelled}
    store = ReferenceStore()
    index = ReferenceIndex(*vocabulary.arguments())
    try:
        matcher = ReferenceConstraint(store, store.literals([t.encode() for t in texts]), index)
    except UnsatisfiableGrammar:
        assert not spelled
        return
    for prefix in sorted(prefixes):
        allowed = {
            token_id
            for token_id, token in enumerate(vocabulary.tokens)
            if plain[token_id] and token and prefix + token in prefixes
        }
        if prefix.decode(errors="replace") in spelled:
            allowed |= set(vocabulary.eos_ids)
        assert matcher.allowed(prefix) == allowed


@pytest.mark.parametrize(
    ("tokens", "texts", "prefix", "allowed"),
    [
        ([b"ab", b"b"], [b"ab"], [], None),
        ([b"ab", b"b"], [b"b"], [], {1}),
        (["é".encode(), b"\xc3"], ["é".encode()], [], {0}),
        ([b"\xc3", b"\xa9"], ["é".encode()], [], {0}),
        ([b"\xc3", b"\xa9", b"\xa9b"], ["éb".encode()], [], None),
        ([b"\xc3", b"\xa9", b"\xa9b", b"b"], ["éb".encode()], [0], {1, 2}),
        ([b"\xc3", b"\xa9", "é".encode(), b"\xa8"], ["é".encode()], [0], {1}),
    ],
)
def test_masks_of_awkward_vocabularies(
    tokens: list[bytes], texts: list[bytes], prefix: list[int], allowed: set[int] | None
) -> None:
    store = ReferenceStore()
    start = store.literals(texts)
    arguments = [*tokens, b""], [True] * len(tokens) + [False], [len(tokens)]
    if allowed is None:
        with pytest.raises(UnsatisfiableGrammar):
            ReferenceConstraint(store, start, ReferenceIndex(*arguments, len(tokens) + 1))
    else:
        assert reference_mask(store, start, *arguments, prefix) == allowed


def test_matcher_follows_its_history() -> None:
    store = ReferenceStore()
    start = store.repeat(store.union([store.literal(b"a"), store.literal("é".encode())]), 1, None)
    tokens = [b"a", b"aa", b"\xc3", b"\xa9", b"b", b"a", b"</s>"]
    index = ReferenceIndex(tokens, [True] * 5 + [False] * 2, [6], 40)
    matcher = ReferenceConstraint(store, start, index).matcher()
    assert matcher.mask().shape == (2,)
    assert mask_to_ids(matcher.mask()) == {0, 1, 2}
    assert matcher.accept(2)
    assert not matcher.accept(0)
    assert mask_to_ids(matcher.mask()) == {3}
    assert matcher.forced_bytes() == b"\xa9"
    assert matcher.forced_tokens() == [3]
    twin = matcher.fork()
    assert twin.accept(3)
    assert (twin.is_complete, matcher.is_complete) == (True, False)
    assert mask_to_ids(twin.mask()) == {0, 1, 2, 6}
    assert twin.validate([0, 1, 6, 0]) == 3
    assert twin.accept(6)
    assert (twin.is_finished, twin.is_complete) == (True, True)
    assert mask_to_ids(twin.mask()) == set()
    assert [twin.accept(token_id) for token_id in range(40)] == [False] * 40
    twin.rollback(3)
    assert mask_to_ids(twin.mask()) == {0, 1, 2}
    with pytest.raises(VocabularyError):
        twin.rollback(1)
    with pytest.raises(VocabularyError):
        twin.accept(40)
    assert twin.accept_bytes(b"aa\xc3")
    assert not twin.accept_bytes(b"a")
    twin.reset()
    assert (twin.text, matcher.text) == (b"", b"\xc3")


def test_recognizer() -> None:
    store = ReferenceStore()
    term = store.literals(["éb".encode(), b"ab"])
    recognizer = ReferenceRecognizer(store, term)
    assert [recognizer.accepts(text) for text in (b"ab", b"a")] == [True, False]
    assert [recognizer.accepts_prefix(text) for text in (b"\xc3", b"\xa9")] == [True, False]
    assert recognizer.longest_prefix(b"\xc3\xa8") == 1
    with pytest.raises(UnsatisfiableGrammar):
        ReferenceRecognizer(store, store.intersect([term, store.literal(b"a")]))


def test_builders_reject_what_means_nothing() -> None:
    store = ReferenceStore()
    rule = store.rule("r")
    call = store.call(rule)
    with pytest.raises(GrammarError, match="UTF-8"):
        store.literal(b"\xff")
    with pytest.raises(GrammarError):
        store.repeat(store.EMPTY, 2, 1)
    for build in (store.complement, store.json, lambda term: store.intersect([term, store.EMPTY])):
        with pytest.raises(GrammarError, match="regular"):
            build(call)
    with pytest.raises(GrammarError, match="never defined"):
        store.accepts(call, b"")
    with pytest.raises(GrammarError, match="nullable"):
        store.define_template(rule, [(store.EMPTY, -1, store.EMPTY, [], [])])
    store.define(rule, store.EMPTY)
    with pytest.raises(GrammarError, match="twice"):
        store.define(rule, store.EMPTY)


@given(plans(), st.data())
@within_budget
def test_import_keeps_the_language(plan: Plan, data: st.DataObject) -> None:
    store, other = ReferenceStore(), ReferenceStore()
    other.rule("unrelated")
    other.literal(b"unrelated")
    term = plan.build(store)
    copied = other.import_term(store, term)
    text = data.draw(texts_near(Language(store, term)))
    assert other.accepts(copied, text) == store.accepts(term, text)
