"""The compiled term store against the reference: membership, emptiness, derivatives, printing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammaton._core import Recognizer, TermStore
from grammaton.errors import GrammarError
from tests.reference import ReferenceStore
from tests.reference_language import Language
from tests.strategies import Plan, plans, regular_plans, texts_near, within_budget

if TYPE_CHECKING:
    from grammaton._core import Alternative

EVERYTHING = ("repeat", ("chars", ((0, 0x10FFFF),)), 0, None)


def residual(store: TermStore, term: int, text: bytes) -> int:
    """The derivative of a regular term by a text."""
    for byte in text:
        term = store.derivative(term, byte)
    return term


def accepts(store: TermStore, term: int, text: bytes) -> bool:
    """Membership of a text in a regular term, by derivatives."""
    return store.is_nullable(residual(store, term, text))


def both(plan: Plan) -> tuple[TermStore, int, ReferenceStore, int]:
    """The plan built in a compiled store and in the reference."""
    store, reference = TermStore(), ReferenceStore()
    return store, plan.build(store), reference, plan.build(reference)


@given(regular_plans(), st.data())
@within_budget
def test_membership(plan: Plan, data: st.DataObject) -> None:
    store, term, reference, expected = both(plan)
    text = data.draw(texts_near(Language(reference, expected)))
    assert accepts(store, term, text) == reference.accepts(expected, text)


@given(regular_plans())
@within_budget
def test_membership_of_every_short_text(plan: Plan) -> None:
    store, term, reference, expected = both(plan)
    alphabet = [b"a", b"b", "é".encode(), b'"', b"\\"]
    for pieces in (p for n in range(4) for p in product(alphabet, repeat=n)):
        text = b"".join(pieces)
        assert accepts(store, term, text) == reference.accepts(expected, text), text


@given(plans())
@within_budget
def test_nullable_empty_and_regular(plan: Plan) -> None:
    store, term, reference, expected = both(plan)
    assert store.is_nullable(term) == reference.is_nullable(expected)
    assert store.is_empty(term) == reference.is_empty(expected)
    if reference.is_regular(expected):
        assert store.is_regular(term)


@given(regular_plans(), st.data())
@within_budget
def test_derivatives_end_where_no_text_goes_on(plan: Plan, data: st.DataObject) -> None:
    store, term, reference, expected = both(plan)
    language = Language(reference, expected)
    text = data.draw(texts_near(language, 4))
    for length in range(len(text) + 1):
        rest = residual(store, term, text[:length])
        viable = language.viable(text[:length])
        assert store.is_empty(rest) == (not viable)
        assert viable or length == 0 or rest == store.NOTHING
        assert store.is_regular(rest)


@given(regular_plans(), st.data())
@within_budget
def test_residuals_have_the_same_language_by_every_way(plan: Plan, data: st.DataObject) -> None:
    """A text cut anywhere: the residual of a residual is the residual of the whole."""
    store, term, reference, expected = both(plan)
    text = data.draw(texts_near(Language(reference, expected)))
    cut = data.draw(st.integers(0, len(text)))
    rest = residual(store, term, text[:cut])
    rest_of_reference = residual_of_reference(reference, expected, text[:cut])
    assert accepts(store, rest, text[cut:]) == reference.accepts(rest_of_reference, text[cut:])


def residual_of_reference(reference: ReferenceStore, term: int, text: bytes) -> int:
    """`residual` in the reference."""
    for byte in text:
        term = reference.derivative(term, byte)
    return term


@given(regular_plans(), st.data())
@within_budget
def test_import_keeps_the_language(plan: Plan, data: st.DataObject) -> None:
    store, term, reference, expected = both(plan)
    other = TermStore()
    other.rule("unrelated")
    other.literal(b"unrelated")
    copied = other.import_term(store, term)
    text = data.draw(texts_near(Language(reference, expected)))
    assert accepts(other, copied, text) == reference.accepts(expected, text)


@given(regular_plans())
def test_equal_terms_are_one_id(plan: Plan) -> None:
    store = TermStore()
    first = plan.build(store)
    size = len(store)
    assert plan.build(store) == first
    assert len(store) == size


@given(regular_plans(), st.data())
@within_budget
def test_nodes_describe_the_term(plan: Plan, data: st.DataObject) -> None:
    """A term rebuilt from what `node` says has the same language."""
    store, term, reference, expected = both(plan)
    other = TermStore()
    rebuilt = rebuild(store, term, other)
    text = data.draw(texts_near(Language(reference, expected)))
    assert accepts(other, rebuilt, text) == reference.accepts(expected, text)


def rebuild(store: TermStore, term: int, other: TermStore) -> int:
    """A copy of a regular term through the builders."""
    node: tuple[Any, ...] = store.node(term)
    match node:
        case ("nothing",):
            return other.NOTHING
        case ("empty",):
            return other.EMPTY
        case ("chars", ranges):
            return other.chars(ranges)
        case ("concat", parts):
            return other.concat([rebuild(store, part, other) for part in parts])
        case ("union", parts):
            return other.union([rebuild(store, part, other) for part in parts])
        case ("intersect", parts):
            return other.intersect([rebuild(store, part, other) for part in parts])
        case ("complement", inner):
            return other.complement(rebuild(store, inner, other))
        case ("json", inner):
            return other.json(rebuild(store, inner, other))
        case ("multiples", divisor, places):
            return other.multiples(divisor, places)
        case ("repeat", inner, low, high):
            return other.repeat(rebuild(store, inner, other), low, high)
    raise AssertionError(store.node(term))


@given(st.lists(st.text("abé漢", max_size=4), max_size=12), st.text("abé漢", max_size=4))
def test_literals_are_a_union(texts: list[str], probe: str) -> None:
    store = TermStore()
    term = store.literals([text.encode() for text in texts])
    assert accepts(store, term, probe.encode()) == (probe in texts)
    for text in texts:
        assert accepts(store, term, text.encode())


@given(st.text(max_size=6), st.booleans())
def test_json_lift_takes_what_json_writes(text: str, ascii_only: bool) -> None:
    assume(not any("\ud800" <= char <= "\udfff" for char in text))
    store = TermStore()
    term = store.json(store.literal(text.encode()))
    written = json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode()
    assert accepts(store, term, written)
    assert store.is_empty(store.derivative(residual(store, term, written), ord("a")))


@pytest.mark.parametrize(
    ("contents", "inside"),
    [
        (b"\\u00e9", True),
        (b"\\u00E9", True),
        (b"\\uD83D\\udE00", True),
        (b"\\/", True),
        (b"\x7f", True),
        (b'\\b\\f\\n\\r\\t\\"\\\\', True),
        (b"\\ud83d", False),
        (b"\\ude00\\ud83d", False),
        (b"\\ud83d\\u0061", False),
        (b"\\ud83da", False),
        (b"\\u00g0", False),
        (b"\\U0061", False),
        (b"\\x", False),
        (b"\\", False),
        (b'"', False),
        (b"\n", False),
        (b"\x1f", False),
        (b"\xff", False),
        (b"\xed\xa0\x80", False),
    ],
)
def test_json_lift_of_any_text(contents: bytes, inside: bool) -> None:
    store = TermStore()
    term = store.json(Plan(EVERYTHING).build(store))
    assert accepts(store, term, contents) == inside


@pytest.mark.parametrize(
    "code_point", [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000]
)
def test_characters_at_the_edges_of_utf8(code_point: int) -> None:
    store = TermStore()
    one = store.chars([(code_point, code_point)])
    above = store.chars([(code_point + 1, 0x10FFFF)])
    text = chr(code_point).encode()
    assert accepts(store, one, text)
    assert not accepts(store, above, text)
    assert accepts(store, above, chr(code_point + 1 if code_point != 0xD7FF else 0xE000).encode())
    assert not store.is_empty(residual(store, one, text[:-1]))


@pytest.mark.parametrize(
    "text",
    [b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xed\xbf\xbf",
     b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xc3", b"a\xc3("],
)  # fmt: skip
def test_text_is_never_ill_formed(text: bytes) -> None:
    store = TermStore()
    anything = Plan(EVERYTHING).build(store)
    for term in (anything, store.complement(store.NOTHING), store.complement(store.literal(b"a"))):
        assert not accepts(store, term, text)


def test_surrogates_are_dropped() -> None:
    store = TermStore()
    assert store.chars([(0xD800, 0xDFFF)]) == store.NOTHING
    assert store.is_empty(store.chars([(0xDC00, 0xDFFF)]))
    term = store.chars([(0xD7FF, 0xE000)])
    assert accepts(store, term, "\ud7ff".encode())
    assert accepts(store, term, "\ue000".encode())


def test_builders_reject_what_means_nothing() -> None:
    store = TermStore()
    rule = store.rule("r")
    call = store.call(rule)
    with pytest.raises(GrammarError):
        store.literal(b"\xff")
    with pytest.raises(GrammarError):
        store.literals([b"a", b"\xed\xa0\x80"])
    with pytest.raises(GrammarError):
        store.repeat(store.literal(b"a"), 2, 1)
    with pytest.raises((GrammarError, TypeError)):
        store.repeat(store.literal(b"a"), -1, 1)
    with pytest.raises(GrammarError):
        store.chars([(0x61, 0x110000)])
    with pytest.raises(GrammarError):
        store.chars([(0x62, 0x61)])
    inside = store.concat([store.literal(b"a"), call])
    for term in (call, inside):
        with pytest.raises(GrammarError):
            store.complement(term)
        with pytest.raises(GrammarError):
            store.json(term)
        with pytest.raises(GrammarError):
            store.intersect([term, store.literal(b"a")])
    with pytest.raises(GrammarError):
        store.define_template(rule, [(store.EMPTY, -1, store.EMPTY, [], [])])


@pytest.mark.parametrize("bad", [-1, 10**6, 2**31, 2**40])
def test_ids_that_are_no_terms(bad: int) -> None:
    """An id out of range is an error, not a crash."""
    store = TermStore()
    calls: list[Callable[[], object]] = [
        lambda: store.concat([bad, store.EMPTY]),
        lambda: store.union([store.EMPTY, bad]),
        lambda: store.complement(bad),
        lambda: store.repeat(bad, 0, 1),
        lambda: store.is_nullable(bad),
        lambda: store.is_empty(bad),
        lambda: store.derivative(bad, 97),
        lambda: store.node(bad),
        lambda: store.call(bad),
        lambda: store.rule_name(bad),
        lambda: store.rule_body(bad),
        lambda: store.param_value(bad),
        lambda: store.define(bad, store.EMPTY),
    ]
    for call in calls:
        with pytest.raises((GrammarError, TypeError, ValueError, IndexError)):
            call()


def test_rules_and_parameters_are_kept() -> None:
    store = TermStore()
    first, second = store.rule("first"), store.rule("second")
    body = store.union(
        [store.literal(b"a"), store.concat([store.literal(b"b"), store.call(second)])]
    )
    store.define(first, body)
    rows: list[Alternative] = [
        (store.literal(b"k"), second, store.literal(b"t"), [("unseen", 3)], [("see", 3)]),
        (store.literal(b"."), -1, store.EMPTY, [("all_seen", (3,)), ("between", 0, 0, 2)], []),
    ]
    store.define_template(second, rows)
    assert [store.rule_name(rule) for rule in (first, second)] == ["first", "second"]
    assert store.rule_body(first) == body
    kept = store.rule_body(second)
    assert isinstance(kept, list)
    assert [tuple(row[:3]) for row in kept] == [row[:3] for row in rows]
    assert [[tuple(c) for c in row[3]] for row in kept] == [row[3] for row in rows]
    assert [[tuple(u) for u in row[4]] for row in kept] == [row[4] for row in rows]
    param = store.param([5, 2], [7, 0, 1])
    assert store.param_value(param) == ((2, 5), (7, 0, 1))
    assert store.param_value(0) == ((), ())
    assert store.param() == 0
    assert store.node(store.call(second, param)) == ("call", second, param)


def test_large_counts_are_not_unrolled() -> None:
    store = TermStore()
    term = store.repeat(store.chars([(0x61, 0x7A)]), 0, 100_000)
    for _ in range(1000):
        term = store.derivative(term, ord("x"))
    assert store.is_nullable(term)
    assert len(store) < 20_000


@given(
    st.integers(1, 400) | st.integers(1, 2**32 - 1),
    st.integers(0, 4),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 6),
)
def test_multiples_within_a_range_of_lengths(
    divisor: int, places: int, low: int, size: int, digits: int
) -> None:
    """Emptiness is arithmetic: some number of so many digits is a multiple, or none is."""
    store = TermStore()
    digit = store.chars([(48, 57)])
    prefix = store.literal(str(low).encode())
    shape = store.concat([prefix, store.repeat(digit, 0, digits)])
    language = store.intersect([shape, store.multiples(divisor, places)])
    step = divisor // math.gcd(divisor, 10**places)
    expected = any(-low * 10**k % step < 10**k for k in range(digits + 1))
    assert store.is_empty(language) != expected
    value = low * 10**digits + size % 10**digits
    text = str(value).encode()
    multiple = value * 10**places % divisor == 0
    assert accepts(store, store.multiples(divisor, places), text) == multiple


@pytest.mark.parametrize(("divisor", "places"), [(0, 0), (2**32, 0), (3, 1001), (-1, 0)])
def test_bad_multiples(divisor: int, places: int) -> None:
    with pytest.raises((GrammarError, TypeError)):
        TermStore().multiples(divisor, places)


def test_members_are_keys_with_values() -> None:
    store = TermStore()
    quote, colon = store.literal(b'"'), store.literal(b'":')
    values = [store.literal(b"1"), store.literal(b"2")]
    keys = [store.json(store.literal(key.encode())) for key in ("a", "é")]
    made = store.members(keys, values, quote, colon, store.EMPTY)
    for term, good in zip(made, ('"a":1', '"é":2'), strict=True):
        assert store.matches(term, good.encode())
        assert store.matches(term, good.replace("é", r"\u00e9").encode())
        assert not store.matches(term, good[:-1].encode())
    with pytest.raises(GrammarError, match="as many"):
        store.members(keys[:1], values, quote, colon, store.EMPTY)


def test_copies_of_a_kept_store() -> None:
    kept = TermStore()
    spaces, nest = kept.rule("SPACES"), kept.rule("NEST")
    kept.define(spaces, kept.repeat(kept.literal(b" "), 1, 3))
    blank = kept.union([kept.EMPTY, kept.call(spaces)])
    inner = kept.union([kept.EMPTY, kept.call(nest)])
    kept.define(nest, kept.concat([kept.literal(b"("), blank, inner, kept.literal(b")")]))
    kept.keep()
    for _ in range(2):  # copies do not change what is kept
        store = kept.copy()
        assert len(store) == len(kept)
        digits = store.rule("DIGITS")
        store.define(digits, store.union([store.EMPTY, store.chars([(48, 57)])]))
        start = store.concat([store.call(nest), blank, store.call(digits)])
        other = TermStore()
        for each in (Recognizer(store, start), Recognizer(other, other.import_term(store, start))):
            for text in (b"()", b"(( ))", b"(   ) 7", b"( ( ))9"):
                assert each.accepts(text)
            for text in (b"", b"(    )", b"() 77", b"(()"):
                assert not each.accepts(text)


def test_what_can_not_be_kept() -> None:
    store = TermStore()
    store.define(store.rule("empty"), store.union([store.EMPTY, store.literal(b"a")]))
    with pytest.raises(GrammarError, match="may be empty"):
        store.keep()
    store = TermStore()
    endless = store.rule("endless")
    store.define(endless, store.concat([store.literal(b"a"), store.call(endless)]))
    with pytest.raises(GrammarError, match="no text"):
        store.keep()
    store = TermStore()
    store.rule("undefined")
    with pytest.raises(GrammarError, match="no body"):
        store.keep()
