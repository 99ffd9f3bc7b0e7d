"""Context-free grammars of any shape: left recursion, ambiguity, cycles, and what a step costs.

The oracle is a least fixpoint over sets of short texts; Lark's Earley parser is a second one.
"""

from __future__ import annotations

from itertools import product

import lark
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grammaton._core import Constraint, Recognizer, TermStore, TokenIndex
from grammaton.errors import GrammarError, LimitExceeded, UnsatisfiableGrammar
from grammaton.limits import Limits
from tests.reference import ReferenceStore
from tests.reference_language import Language
from tests.strategies import Productions, plan_of, productions

LONGEST = 5
TEXTS = ["".join(text) for n in range(LONGEST + 1) for text in product("ab", repeat=n)]


def short_texts(grammar: Productions) -> set[str]:
    """The texts of at most LONGEST letters of rule 0."""
    found: list[set[str]] = [set() for _ in grammar]
    changed = True
    while changed:
        changed = False
        for rule, alternatives in enumerate(grammar):
            for way in alternatives:
                texts = {""}
                for symbol in way:
                    parts = {symbol} if isinstance(symbol, str) else found[symbol]
                    texts = {x + y for x in texts for y in parts if len(x + y) <= LONGEST}
                changed = changed or not texts <= found[rule]
                found[rule] |= texts
    return found[0]


def recognizer_of(grammar: Productions, limits: Limits | None = None) -> Recognizer:
    store = TermStore()
    return Recognizer(store, plan_of(grammar).build(store), limits or Limits())


# One rule each: direct, hidden, unit and mutual left recursion, and what ends nowhere.
LEFT = [
    (((0, "a"), ("b",)),),
    (((0, 0), ("a",)),),
    (((0,), ("a",)),),
    (((0, 0), (0, 0, 0), ("a",), ()),),
    (((1, 0, "a"), ("b",)), ((), ("a",))),
    (((1, "a"), ("a",)), ((0, "b"), ("b",))),
    (((1,), ("a", 0)), ((2,), (1, "b")), ((0,), ("b",))),
    (((1, 1, 0), ("a",)), ((1, 0), ())),
    (((1, "a"), ("b",)), ((),)),
    (((1, 2), ("b",)), ((0,), ("a",)), ((2, "a"),)),
]


@given(productions())
@example(LEFT[0])
@example(LEFT[1])
@example(LEFT[2])
@example(LEFT[3])
@example(LEFT[4])
@example(LEFT[5])
@example(LEFT[6])
@example(LEFT[7])
@example(LEFT[8])
@example(LEFT[9])
def test_texts_and_their_prefixes(grammar: Productions) -> None:
    """Every text up to a length, and whether it begins one of the language."""
    reference = ReferenceStore()
    language = Language(reference, plan_of(grammar).build(reference))
    expected = short_texts(grammar)
    try:
        recognizer = recognizer_of(grammar)
    except UnsatisfiableGrammar:
        assert language.is_empty
        return
    for text in TEXTS:
        assert recognizer.accepts(text.encode()) == (text in expected), text
        assert recognizer.accepts_prefix(text.encode()) == language.viable(text.encode()), text


def lark_grammar(grammar: Productions) -> str:
    lines = []
    for rule, alternatives in enumerate(grammar):
        ways = [
            " ".join(f'"{s}"' if isinstance(s, str) else f"r{s}" for s in way)
            for way in alternatives
        ]
        lines.append(f"r{rule}: " + " | ".join(ways))
    return "\n".join(lines)


@given(productions(max_rules=3), st.data())
def test_agreement_with_lark(grammar: Productions, data: st.DataObject) -> None:
    """Lark's Earley parser, every way of cutting a text counting."""
    parser = lark.Lark(
        lark_grammar(grammar),
        start="r0",
        parser="earley",
        lexer="dynamic_complete",
        ambiguity="resolve",
    )
    try:
        recognizer = recognizer_of(grammar)
    except UnsatisfiableGrammar:
        recognizer = None
    for text in data.draw(st.lists(st.sampled_from(TEXTS), min_size=10, max_size=20, unique=True)):
        try:
            parser.parse(text)
        except lark.exceptions.UnexpectedInput:
            parsed = False
        else:
            parsed = True
        assert (recognizer is not None and recognizer.accepts(text.encode())) == parsed, text


AMBIGUOUS = {
    "s s | a": (((0, 0), ("a",)),),
    "a s a | a": ((("a", 0, "a"), ("a",)),),
    "a | a s | a s s": ((("a",), ("a", 0), ("a", 0, 0)),),
    "s s s | s s | a": (((0, 0, 0), (0, 0), ("a",)),),
    "a s a s | a": ((("a", 0, "a", 0), ("a",)),),
    "a t s | a t, t: s t | empty": ((("a", 1, 0), ("a", 1)), ((0, 1), ())),
    "t s | a, t: s t | a": (((1, 0), ("a",)), ((0, 1), ("a",))),
    "a s | a": ((("a", 0), ("a",)),),
    "s a | a": (((0, "a"), ("a",)),),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_step_of_an_ambiguous_grammar_follows_few_links(name: str) -> None:
    """However long the text: the stacks of each step share almost all of their links."""
    length = 2000
    recognizer = recognizer_of(AMBIGUOUS[name], Limits(max_step_links=300, max_frames=40 * length))
    assert recognizer.accepts_prefix(b"a" * length)
    assert recognizer.longest_prefix(b"a" * length + b"b") == length
    assert recognizer.accepts(b"a" * 37)


@pytest.mark.parametrize("name", ["s s | a", "a s | a", "s a | a"])
def test_loops_take_no_more_room_than_their_first_round(name: str) -> None:
    recognizer = recognizer_of(AMBIGUOUS[name], Limits(max_frames=30))
    assert recognizer.accepts(b"a" * 3000)


def test_masks_far_into_an_ambiguous_text() -> None:
    """A walk of the vocabulary shares the links too."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"a" * n for n in range(2, 17)]
    end = len(tokens)
    index = TokenIndex([*tokens, b""], [True] * end + [False], [end], end + 1)
    store = TermStore()
    start = plan_of(AMBIGUOUS["a | a s | a s s"]).build(store)
    matcher = Constraint(store, start, index, Limits(max_step_links=5000)).matcher()
    for _ in range(1500):
        assert matcher.accept(97)
    mask = matcher.mask()
    assert all(bool(mask[i // 32] >> (i % 32) & 1) == (set(tokens[i]) == {97}) for i in range(end))


def test_nesting_costs_the_same_at_any_depth() -> None:
    array = ((("[", "]"), ("[", 1, "]")), ((1, ",", 0), (0,)))
    recognizer = recognizer_of(array, Limits(max_step_links=50))
    depth = 10_000
    assert recognizer.accepts(b"[" * depth + b"]" * depth)
    assert recognizer.accepts(b"[[]," * depth + b"[]" + b"]" * depth)
    assert not recognizer.accepts_prefix(b"[" * depth + b"]" * (depth + 1))


def test_following_too_many_links_is_an_error() -> None:
    """Palindromes around every place, each with a tail of its own."""
    grammar: Productions = ((("a", 0, "a"), ("b", 0, "b"), (0, 0), ("a",), ("b",)),)
    recognizer = recognizer_of(grammar, Limits(max_step_links=40))
    with pytest.raises(LimitExceeded, match="max_step_links = 40"):
        recognizer.accepts(b"ab" * 400)
    assert recognizer_of(grammar).accepts(b"ab" * 400)


def chain(count: int) -> Productions:
    """Each rule begins with the next, the last with the first, and each adds a letter."""
    return tuple(((((rule + 1) % count), "b"), ("a",)) for rule in range(count))


def test_left_recursion_through_many_rules() -> None:
    recognizer = recognizer_of(chain(400))
    for n in (0, 1, 399, 400, 401, 1000):
        assert recognizer.accepts(b"a" + b"b" * n)
    assert not recognizer.accepts_prefix(b"aba")


def test_unit_cycles_through_many_rules() -> None:
    count = 3000
    grammar = tuple((((rule + 1) % count,), ("a",) * (rule == 7)) for rule in range(count))
    recognizer = recognizer_of(grammar)
    assert recognizer.accepts(b"a")
    assert recognizer.accepts(b"")
    assert recognizer.longest_prefix(b"aa") == 1


def test_a_knot_with_too_many_entries_is_refused() -> None:
    count = 120
    grammar = tuple(
        (((rule + 1) % count, "b"), ("a",), ("b", (rule * 7 + 1) % count)) for rule in range(count)
    )
    with pytest.raises(LimitExceeded, match="left recursion through 120 rules"):
        recognizer_of(grammar, Limits(max_terms=100_000))


def test_facts_that_go_against_the_order_of_rules() -> None:
    """Whether a rule may be empty follows from the one before it, 5,000 times."""
    grammar: list[tuple[tuple[str | int, ...], ...]] = [((), ("a", 1))]
    grammar += [((rule - 1, rule - 1), ("a", rule + 1)) for rule in range(1, 4999)]
    grammar.append(((4998, 4998),))
    assert recognizer_of(tuple(grammar)).accepts(b"")


def test_left_recursion_through_templates_is_refused() -> None:
    store = TermStore()
    plain, template = store.rule("plain"), store.rule("template")
    a = store.literal(b"a")
    store.define(plain, store.union([store.concat([store.call(template), a]), a]))
    store.define_template(template, [(store.call(plain), -1, store.EMPTY, [], [])])
    with pytest.raises(GrammarError, match="template -> plain -> template"):
        Recognizer(store, store.call(plain))


def test_left_recursive_rules_call_templates_and_are_called_by_them() -> None:
    """`list: list item | item`; an item counts its `a`s, up to two, around a list."""
    store = TermStore()
    items, item = store.rule("items"), store.rule("item")
    call = store.call(item, store.param([], [0]))
    store.define(items, store.union([call, store.concat([store.call(items), call])]))
    nested = store.concat([store.literal(b"("), store.call(items), store.literal(b")")])
    store.define_template(
        item,
        [
            (store.literal(b"a"), item, store.EMPTY, [("between", 0, 0, 1)], [("add", 0, 1, 2)]),
            (store.literal(b"."), -1, store.EMPTY, [("between", 0, 2, 2)], []),
            (nested, -1, store.EMPTY, [("between", 0, 0, 0)], []),
        ],
    )
    recognizer = Recognizer(store, store.call(items))
    assert recognizer.accepts(b"aa.(aa.((aa.)aa.))aa.")
    assert recognizer.longest_prefix(b"aa.aaa") == 5
    assert recognizer.longest_prefix(b"aa.a.") == 4


def test_a_part_that_cannot_end_takes_its_branch_with_it() -> None:
    """A call before a dead part must not be entered, though neither is dead by itself."""
    store = TermStore()
    rule = store.rule("t")
    store.define(rule, store.literal(b"t"))
    dead = store.intersect([store.literal(b"ab"), store.literal(b"ac")])
    dead_call = store.repeat(store.concat([dead, store.call(rule)]), 2, 3)
    for part in (dead, dead_call):
        branches = store.union([store.concat([store.call(rule), part]), store.literal(b"c")])
        recognizer = Recognizer(store, store.concat([store.literal(b"x"), branches]))
        assert recognizer.accepts(b"xc")
        assert not recognizer.accepts_prefix(b"xt")


def test_rules_of_nothing_but_the_empty_text() -> None:
    store = TermStore()
    first, second, start = (store.rule(name) for name in ("first", "second", "start"))
    store.define(first, store.EMPTY)
    store.define(second, store.repeat(store.call(first), 0, 3))
    empty = store.concat([store.call(first), store.call(second)])
    store.define(start, store.union([empty, store.concat([store.call(start), empty])]))
    recognizer = Recognizer(store, store.concat([store.call(start), store.literal(b"a")]))
    assert recognizer.accepts(b"a")
    assert recognizer.longest_prefix(b"aa") == 1


@pytest.mark.parametrize("goes_on", [False, True], ids=["no alternative", "none that ends"])
def test_templates_without_an_end_are_left_out(goes_on: bool) -> None:
    store = TermStore()
    endless = store.rule("endless")
    store.define_template(
        endless, [(store.literal(b"a"), endless, store.EMPTY, [], [])] if goes_on else []
    )
    call = store.concat([store.literal(b"["), store.call(endless)])
    with pytest.raises(UnsatisfiableGrammar):
        Recognizer(store, call)
    recognizer = Recognizer(store, store.union([call, store.literal(b"[b")]))
    assert recognizer.accepts(b"[b")
    assert recognizer.longest_prefix(b"[aa") == 1
