"""The machine without a vocabulary, against the reference: recursion, templates, prefixes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton._core import Recognizer, TermStore
from grammaton.errors import GrammarError, UnsatisfiableGrammar
from tests.reference import ReferenceRecognizer, ReferenceStore
from tests.reference_language import Language
from tests.strategies import (
    Plan,
    plans,
    recursive_plans,
    regular_plans,
    template_plans,
    texts_near,
    within_budget,
)

if TYPE_CHECKING:
    from grammaton._core import Alternative, Condition


def check(plan: Plan, data: st.DataObject) -> None:
    """One text, all of its prefixes, and the longest viable one."""
    store, reference = TermStore(), ReferenceStore()
    start, expected_start = plan.build(store), plan.build(reference)
    try:
        expected = ReferenceRecognizer(reference, expected_start)
    except UnsatisfiableGrammar:
        with pytest.raises(UnsatisfiableGrammar):
            Recognizer(store, start)
        return
    recognizer = Recognizer(store, start)
    for _ in range(2):
        text = data.draw(texts_near(Language(reference, expected_start)))
        assert recognizer.accepts(text) == expected.accepts(text)
        for length in range(len(text) + 1):
            prefix = text[:length]
            assert recognizer.accepts(prefix) == expected.accepts(prefix), prefix
            assert recognizer.accepts_prefix(prefix) == expected.accepts_prefix(prefix), prefix
        assert recognizer.longest_prefix(text) == expected.longest_prefix(text)


@given(regular_plans(), st.data())
@within_budget
def test_regular_terms(plan: Plan, data: st.DataObject) -> None:
    check(plan, data)


@given(recursive_plans(), st.data())
@within_budget
def test_recursive_grammars(plan: Plan, data: st.DataObject) -> None:
    check(plan, data)


@given(template_plans(), st.data())
@within_budget
def test_template_rules(plan: Plan, data: st.DataObject) -> None:
    check(plan, data)


@given(plans(), st.data())
@within_budget
def test_imported_grammars(plan: Plan, data: st.DataObject) -> None:
    """A grammar copied into another store, twice, accepts what it did."""
    store, other, reference = TermStore(), TermStore(), ReferenceStore()
    other.rule("unrelated")
    start, expected = plan.build(store), plan.build(reference)
    copies = [other.import_term(store, start) for _ in range(2)]
    language = Language(reference, expected)
    if language.is_empty:
        return
    text = data.draw(texts_near(language))
    for copied in copies:
        assert Recognizer(other, copied).accepts(text) == reference.accepts(expected, text)


def json_values(store: TermStore) -> int:
    """JSON without blanks: recursion, strings and numbers as frames of their own."""
    value, string, number = store.rule("value"), store.rule("string"), store.rule("number")
    everything = store.repeat(store.chars([(0, 0x10FFFF)]), 0, None)
    store.define(string, store.concat([store.json(everything), store.literal(b'"')]))
    digit = store.chars([(0x30, 0x39)])
    whole = store.union(
        [
            store.literal(b"0"),
            store.concat([store.chars([(0x31, 0x39)]), store.repeat(digit, 0, None)]),
        ]
    )
    fraction = store.concat([store.literal(b"."), store.repeat(digit, 1, None)])
    exponent = store.concat(
        [
            store.literals([b"e", b"E"]),
            store.repeat(store.literals([b"+", b"-"]), 0, 1),
            store.repeat(digit, 1, None),
        ]
    )
    store.define(
        number,
        store.concat(
            [
                store.repeat(store.literal(b"-"), 0, 1),
                whole,
                store.repeat(fraction, 0, 1),
                store.repeat(exponent, 0, 1),
            ]
        ),
    )
    quoted = store.concat([store.literal(b'"'), store.call(string)])
    member = store.concat([quoted, store.literal(b":"), store.call(value)])

    def several(item: int, opening: bytes, closing: bytes) -> int:
        more = store.repeat(store.concat([store.literal(b","), item]), 0, None)
        inside = store.repeat(store.concat([item, more]), 0, 1)
        return store.concat([store.literal(opening), inside, store.literal(closing)])

    words = store.literals([b"true", b"false", b"null"])
    arrays = several(store.call(value), b"[", b"]")
    objects = several(member, b"{", b"}")
    store.define(value, store.union([quoted, store.call(number), words, arrays, objects]))
    return store.call(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def is_json(text: bytes) -> bool:
    """Whether Python reads the text as JSON, leaving out what only Python allows."""
    if set(text) & set(b" \t\n\r"):
        return False

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        value = json.loads(text.decode(), parse_constant=refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


@given(JSON, st.booleans(), st.data())
def test_json_values(value: object, ascii_only: bool, data: st.DataObject) -> None:
    store = TermStore()
    recognizer = Recognizer(store, json_values(store))
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
    assert recognizer.accepts(text.encode())
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.sampled_from('"\\{}[],:0e-.u')) + text[at:]
    if " " not in damaged:
        assert recognizer.accepts(damaged.encode()) == is_json(damaged.encode())


@pytest.mark.parametrize("depth", [1, 10, 1000, 20_000])
def test_deep_nesting(depth: int) -> None:
    store = TermStore()
    recognizer = Recognizer(store, json_values(store))
    assert recognizer.accepts(b"[" * depth + b"]" * depth)
    assert not recognizer.accepts(b"[" * depth + b"]" * (depth - 1))
    assert not recognizer.accepts_prefix(b"[" * depth + b"]" * (depth + 1))


def test_shared_stacks_do_not_merge_deeply() -> None:
    """The grammar on which canonical merging of whole stacks is exponential."""
    store = TermStore()
    rule = store.rule("s")
    s = store.call(rule)
    rows = [b"dSx", b"dSy", b"eSy", b"aS", b"aSx", b"aSy", b"z"]
    store.define(
        rule,
        store.union(
            [
                store.concat([s if c == ord("S") else store.literal(bytes([c])) for c in row])
                for row in rows
            ]
        ),
    )
    recognizer = Recognizer(store, s)
    for k in (4, 12, 40):
        text = b"d" * k + b"e" + b"a" * (2 * k)
        assert recognizer.accepts_prefix(text)
        assert recognizer.accepts(text + b"z" + b"y" * (k + 1))
        assert not recognizer.accepts(text + b"z" + b"x" * (k + 1))


def test_undefined_rules_are_refused() -> None:
    store = TermStore()
    rule = store.rule("missing")
    with pytest.raises(GrammarError, match="missing"):
        Recognizer(store, store.concat([store.literal(b"a"), store.call(rule)]))


def test_unsatisfiable_grammars_are_refused() -> None:
    store = TermStore()
    rule = store.rule("endless")
    store.define(rule, store.concat([store.literal(b"a"), store.call(rule)]))
    for term in (
        store.NOTHING,
        store.call(rule),
        store.intersect([store.literal(b"ab"), store.literal(b"ac")]),
        store.intersect([store.complement(store.literal(b"a")), store.literal(b"a")]),
    ):
        with pytest.raises(UnsatisfiableGrammar):
            Recognizer(store, term)


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)), st.booleans())
def test_members_in_any_order(order: list[int], taken: set[int], repeated: bool) -> None:
    """Each key at most once, 0 and 3 required, at most two of the others: bits and a counter."""
    store = TermStore()
    keys = store.rule("keys")
    letters = "abé漢😀"
    rows: list[Alternative] = []
    for k, letter in enumerate(letters):
        head = store.literal(letter.encode())
        if k in (0, 3):
            rows.append((head, keys, store.EMPTY, [("unseen", k)], [("see", k)]))
        else:
            few: list[Condition] = [("unseen", k), ("between", 0, 0, 1)]
            rows.append((head, keys, store.EMPTY, few, [("see", k), ("add", 0, 1, 2)]))
    rows.append((store.literal(b"."), -1, store.EMPTY, [("all_seen", (0, 3))], []))
    store.define_template(keys, rows)
    recognizer = Recognizer(store, store.call(keys))
    text = "".join(letters[k] for k in order if k in taken)
    again = text + text[:1] if repeated else text
    allowed = len(taken - {0, 3}) <= 2 and again == text
    assert recognizer.accepts_prefix(again.encode()) == allowed
    assert recognizer.accepts((again + ".").encode()) == (allowed and {0, 3} <= taken)


def test_templates_that_need_each_other_keep_their_alternatives() -> None:
    """Whether a row can end is asked while it is being asked of the rule it leads back to."""
    store = TermStore()
    a, b = store.literal(b"a"), store.literal(b"b")
    first, second, plain = (store.rule(name) for name in ("first", "second", "plain"))
    again = store.call(first, store.param([0], [0]))
    store.define_template(first, [(a, second, store.EMPTY, [], []), (a, -1, store.EMPTY, [], [])])
    row = store.concat([b, store.call(plain), again])
    store.define_template(second, [(a, -1, store.EMPTY, [], []), (row, -1, store.EMPTY, [], [])])
    store.define(plain, store.union([a, store.concat([a, store.call(plain), again])]))
    recognizer = Recognizer(store, store.call(second, store.param([], [0])))
    for text in (b"a", b"baa", b"baaa", b"baaaa", b"baabaa"):
        assert recognizer.accepts(text), text
    assert not recognizer.accepts(b"ba")
