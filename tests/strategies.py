"""Hypothesis strategies for grammars and vocabularies, independent of who builds them.

A *plan* describes a grammar as plain data: expressions are nested tuples, rules have an index.
`Plan.build(store)` makes the same grammar in any store with the builder methods of
`grammaton._core.TermStore`, so that one drawn plan feeds the core and the reference alike.

Plans may be ambiguous, mutually recursive, left-recursive, nullable, unproductive, and empty. Half
of them are not left-recursive: their expressions are *guarded* where a character has certainly
been read, and only there may a rule be called that stands at or before the calling rule.

Texts use a small alphabet, so that grammars, vocabularies and texts meet often.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import product
from typing import Any, Protocol

from hypothesis import reject
from hypothesis import strategies as st

from tests.reference import ReferenceStore, ReferenceTooHardError
from tests.reference_language import Language

Expression = tuple[Any, ...]
"""("text", str) | ("texts", (str, ...)) | ("chars", ranges) | ("none",) | ("concat" | "union" |
"intersect", (e, ...)) | ("complement", e) | ("repeat", e, min, max) | ("json", e) |
("multiples", divisor, places) |
("call", rule, bits, counters)"""

TemplateRow = tuple[Expression, int, Expression, tuple[Any, ...], tuple[Any, ...]]
"""(head, next rule or -1, tail, conditions, updates)"""

PLAIN = "abé"
RARE = "漢😀"
JSON_MARKS = '"\\u{,'
DIGITS = "09de38."
ALPHABET = PLAIN + RARE + JSON_MARKS + DIGITS
ALL = ((0, 0x10FFFF),)
RANGES: tuple[tuple[tuple[int, int], ...], ...] = (
    ((0x61, 0x61),),
    ((0x61, 0x62),),
    ((0xE9, 0xE9),),
    ((0x61, 0x61), (0xE9, 0xE9)),
    ((0x62, 0x10FFFF),),
    ((0x80, 0x10FFFF),),
    ((0xE9, 0x6F22),),
    ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)),
    ALL,
)


class Store(Protocol):
    """What `Plan.build` needs of a store."""

    NOTHING: int
    EMPTY: int

    def chars(self, ranges: Sequence[tuple[int, int]]) -> int: ...
    def literal(self, text: bytes) -> int: ...
    def literals(self, texts: Sequence[bytes]) -> int: ...
    def concat(self, terms: Sequence[int]) -> int: ...
    def union(self, terms: Sequence[int]) -> int: ...
    def intersect(self, terms: Sequence[int]) -> int: ...
    def complement(self, term: int) -> int: ...
    def repeat(self, term: int, min: int, max: int | None) -> int: ...
    def json(self, term: int) -> int: ...
    def multiples(self, divisor: int, places: int = 0) -> int: ...
    def rule(self, name: str) -> int: ...
    def define(self, rule: int, body: int) -> None: ...
    def define_template(self, rule: int, alternatives: Sequence[Any]) -> None: ...
    def param(self, bits: Sequence[int] = ..., counters: Sequence[int] = ...) -> int: ...
    def call(self, rule: int, param: int = 0) -> int: ...


@dataclass(frozen=True)
class Plan:
    """A grammar as data: the start expression, and rules: an expression or template rows each."""

    start: Expression
    rules: tuple[Expression | tuple[TemplateRow, ...], ...] = ()

    def build(self, store: Store) -> int:
        """The start term in `store`, with the rules defined in it."""
        ids = [store.rule(f"r{index}") for index in range(len(self.rules))]
        for rule, body in zip(ids, self.rules, strict=True):
            if isinstance(body[0], str):
                store.define(rule, _build(store, ids, body))
            else:
                rows = [
                    (
                        _build(store, ids, head),
                        ids[after] if after >= 0 else -1,
                        _build(store, ids, tail),
                        list(conditions),
                        list(updates),
                    )
                    for head, after, tail, conditions, updates in body
                ]
                store.define_template(rule, rows)
        return _build(store, ids, self.start)

    def texts(self) -> list[str]:
        """The literal texts of the plan, for vocabularies that suit it."""
        found: list[str] = []
        pending: list[Any] = [self.start, self.rules]
        while pending:
            part = pending.pop()
            if isinstance(part, tuple):
                if len(part) == 2 and part[0] == "text":
                    found.append(part[1])
                elif part[:1] == ("texts",):
                    found += part[1]
                else:
                    pending += part
        return sorted({text for text in found if text})


def _build(store: Store, ids: Sequence[int], expression: Expression) -> int:
    match expression:
        case ("none",):
            return store.NOTHING
        case ("text", str(text)):
            return store.literal(text.encode())
        case ("texts", (*texts,)):
            return store.literals([text.encode() for text in texts])
        case ("chars", (*ranges,)):
            return store.chars(ranges)
        case ("concat", (*parts,)):
            return store.concat([_build(store, ids, part) for part in parts])
        case ("union", (*parts,)):
            return store.union([_build(store, ids, part) for part in parts])
        case ("intersect", (*parts,)):
            return store.intersect([_build(store, ids, part) for part in parts])
        case ("complement", inner):
            return store.complement(_build(store, ids, inner))
        case ("repeat", inner, int(low), high):
            return store.repeat(_build(store, ids, inner), low, high)
        case ("json", inner):
            return store.json(_build(store, ids, inner))
        case ("multiples", int(divisor), int(places)):
            return store.multiples(divisor, places)
        case ("call", int(rule), bits, counters):
            return store.call(ids[rule], store.param(bits, counters) if bits or counters else 0)
    raise AssertionError(expression)


# Expressions

_TEXTS = st.one_of(
    st.text(PLAIN, min_size=1, max_size=3),
    st.text(ALPHABET, min_size=1, max_size=2),
    st.sampled_from(["", "ab", "é", '"', "\\u00e9", '{"', "aa"]),
)
_LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.tuples(st.just("text"), _TEXTS),
    st.tuples(st.just("chars"), st.sampled_from(RANGES)),
    st.tuples(st.just("texts"), st.lists(_TEXTS, min_size=1, max_size=4).map(tuple)),
    st.tuples(st.just("multiples"), st.sampled_from([1, 3, 4, 6]), st.integers(0, 2)),
    st.just(("none",)) | st.just(("text", "a")) | st.just(("repeat", ("chars", ALL), 0, None)),
)


_COUNTS: st.SearchStrategy[tuple[int, int | None]] = st.one_of(
    st.sampled_from([(0, None), (1, None), (0, 1), (2, None)]),
    st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda c: (c[0], c[0] + c[1])),
)


def _grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.tuples(st.sampled_from(["concat", "union"]), parts),
        st.builds(lambda e, c: ("repeat", e, *c), inner, _COUNTS),
        st.tuples(st.just("intersect"), parts),
        st.tuples(st.just("complement"), inner),
        st.tuples(st.just("json"), inner.filter(lambda e: "json" not in repr(e))),
    )


def regular_expressions(max_leaves: int = 6) -> st.SearchStrategy[Expression]:
    """Regular expressions with `&`, `~`, counts and JSON lifts."""
    return st.recursive(_LEAVES, _grown, max_leaves=max_leaves)


_REGULAR = regular_expressions(3)


def regular_plans(max_leaves: int = 6) -> st.SearchStrategy[Plan]:
    """Plans without rules."""
    return regular_expressions(max_leaves).map(Plan)


def _reads(expression: Expression) -> bool:
    """Whether the expression certainly reads a character (it may say no where it does)."""
    match expression:
        case ("none",) | ("chars", _):
            return True
        case ("text", text):
            return bool(text)
        case ("texts", (*texts,)):
            return all(texts)
        case ("concat", (*parts,)):
            return any(_reads(part) for part in parts)
        case ("union", (*parts,)):
            return all(_reads(part) for part in parts)
        case ("repeat", inner, low, _):
            return low > 0 and _reads(inner)
    return False


def _body(
    draw: st.DrawFn, rule: int, calls: Sequence[Expression], depth: int, guarded: bool
) -> Expression:
    """An expression inside `rule`; where not `guarded`, calls go to later rules only."""
    callable_now = [call for call in calls if guarded or call[1] > rule]
    kinds = ["leaf", "leaf", "regular"] + ["call"] * (3 * bool(callable_now))
    if depth > 0:
        kinds += ["concat", "concat", "concat", "union", "union", "repeat"]
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        return draw(_LEAVES)
    if kind == "regular":
        return draw(_REGULAR)
    if kind == "call":
        return draw(st.sampled_from(callable_now))
    if kind == "repeat":
        low, high = draw(_COUNTS)
        return ("repeat", _body(draw, rule, calls, depth - 1, guarded), low, high)
    parts: list[Expression] = []
    for _ in range(draw(st.integers(2, 3))):
        part = _body(draw, rule, calls, depth - 1, guarded)
        parts.append(part)
        guarded = guarded or (kind == "concat" and _reads(part))
    return (kind, tuple(parts))


@st.composite
def recursive_plans(draw: st.DrawFn, max_rules: int = 4) -> Plan:
    """Plans of up to `max_rules` rules that call each other, left-recursive ones too."""
    count = draw(st.integers(1, max_rules))
    calls: list[Expression] = [("call", rule, (), ()) for rule in range(count)]
    left_recursive = draw(st.booleans())
    rules = tuple(_body(draw, rule, calls, 2, left_recursive) for rule in range(count))
    start = calls[0] if draw(st.booleans()) else _body(draw, -1, calls, 1, False)
    return Plan(start, rules)


_CONDITIONS: st.SearchStrategy[tuple[tuple[Any, ...], ...]] = st.lists(
    st.one_of(
        st.tuples(st.just("unseen"), st.integers(0, 1)),
        st.sampled_from([("all_seen", (0,)), ("all_seen", (0, 1))]),
        st.builds(lambda low, more: ("between", 0, low, low + more), *[st.integers(0, 2)] * 2),
    ),
    max_size=2,
).map(tuple)
_UPDATES: st.SearchStrategy[tuple[tuple[Any, ...], ...]] = st.lists(
    st.one_of(
        st.tuples(st.just("see"), st.integers(0, 1)),
        st.tuples(st.just("set"), st.just(0), st.integers(0, 2)),
        st.tuples(st.just("add"), st.just(0), st.just(1), st.integers(1, 3)),
    ),
    max_size=2,
).map(tuple)


def _rows(
    draw: st.DrawFn, rule: int, templates: Sequence[int], calls: Sequence[Expression]
) -> tuple[TemplateRow, ...]:
    """Rows of a template rule over two bits and one counter."""
    rows: list[TemplateRow] = []
    for _ in range(draw(st.integers(1, 4))):
        mark = ("text", draw(st.sampled_from(["a", "b", "é", "ab", '"', "漢"])))
        head: Expression = mark
        if draw(st.booleans()):
            head = ("concat", (mark, _body(draw, rule, calls, 1, True)))
        conditions = draw(_CONDITIONS)
        if draw(st.integers(0, 2)):
            tail = _body(draw, rule, calls, 1, True) if draw(st.booleans()) else ("text", "")
            rows.append((head, draw(st.sampled_from(templates)), tail, conditions, draw(_UPDATES)))
        else:
            rows.append((head, -1, ("text", ""), conditions, ()))
    return tuple(rows)


@st.composite
def template_plans(draw: st.DrawFn) -> Plan:
    """Plans with one or two template rules (bits, a counter) beside up to two plain rules.

    Every (rule, parameter) reached can end: where one cannot, its rule gets a row that ends it.
    """
    templates = list(range(draw(st.integers(1, 2))))
    plain = list(range(len(templates), len(templates) + draw(st.integers(0, 2))))
    values = st.sampled_from([((), (0,)), ((0,), (0,)), ((1,), (1,)), ((), (2,))])
    calls: list[Expression] = [("call", rule, (), ()) for rule in plain]
    calls += [("call", rule, *draw(values)) for rule in templates]
    rules: list[Any] = [_rows(draw, rule, templates, calls) for rule in templates]
    left_recursive = draw(st.booleans())
    rules += [_body(draw, rule, calls, 2, left_recursive) for rule in plain]
    start = calls[-1] if draw(st.booleans()) else _body(draw, -1, calls, 1, False)
    for _ in range(len(templates) + 1):
        stuck = _stuck_rules(Plan(start, tuple(rules)))
        for rule in stuck & set(templates):
            rules[rule] += ((("text", "b"), -1, ("text", ""), (), ()),)
    return Plan(start, tuple(rules))


def _stuck_rules(plan: Plan) -> set[int]:
    """Rules that are reached with a parameter for which they cannot end."""
    store = ReferenceStore()
    start = plan.build(store)
    language = Language(store, start)
    try:
        language.live(start)
    except ReferenceTooHardError:
        reject()
    reached = [start]
    stuck: set[int] = set()
    for term in reached:
        below = list(store.children(store.node(term)))
        match store.node(term):
            case ("call", int(rule), int(param)):
                below += [part for body in store.bodies(rule, param) for part in body]
                if not language.live(term):
                    stuck.add(rule)
        reached += [part for part in dict.fromkeys(below) if part not in reached]
    return stuck


def plans() -> st.SearchStrategy[Plan]:
    """Plans of every kind."""
    return st.one_of(regular_plans(), recursive_plans(), template_plans(), framed_plans())


# Plain context-free grammars

Productions = tuple[tuple[tuple[str | int, ...], ...], ...]
"""For each rule its alternatives: sequences of one-letter texts and indices of rules."""


@st.composite
def productions(draw: st.DrawFn, max_rules: int = 4, letters: str = "ab") -> Productions:
    """Grammars of any shape over a few letters; rule 0 is the start."""
    count = draw(st.integers(1, max_rules))
    rules = st.integers(0, count - 1)
    symbols: st.SearchStrategy[str | int] = st.sampled_from(letters) | rules | rules
    alternatives = st.lists(
        st.lists(symbols, max_size=3).map(tuple), min_size=1, max_size=3, unique=True
    ).map(tuple)
    return tuple(draw(alternatives) for _ in range(count))


def plan_of(grammar: Productions) -> Plan:
    """The same grammar as a plan."""
    parts: list[Expression] = []
    for alternatives in grammar:
        ways = [
            ("concat", tuple(_mark(s) if isinstance(s, str) else ("call", s, (), ()) for s in way))
            for way in alternatives
        ]
        parts.append(("union", tuple(ways)))
    return Plan(("call", 0, (), ()), tuple(parts))


# Frames: what the core studies once and shares, wherever it stands

_ITEMS: st.SearchStrategy[Expression] = st.one_of(
    st.tuples(st.just("chars"), st.sampled_from(RANGES[-2:])),
    st.tuples(st.just("chars"), st.sampled_from(RANGES)),
    st.sampled_from(
        [("texts", ("ab", "b", "é")), ("json", ("chars", ALL)), ("texts", ("a", "ab"))]
    ),
)
_QUOTE = ("text", '"')


_FRAMES = ("json", "key", "counted", "run", "closed run", "nested run", "other")


def _frame(draw: st.DrawFn, kinds: Sequence[str] = _FRAMES) -> Expression:
    """A string body, a run of characters, a key that is none of some: what a front end writes."""
    kind = draw(st.sampled_from(kinds))
    keys = (
        "texts",
        tuple(draw(st.lists(st.text(PLAIN + "u", min_size=1, max_size=3), max_size=3))),
    )
    low, high = draw(_COUNTS)
    run = ("repeat", draw(_ITEMS), low, high)
    if kind == "json":
        return (
            "concat",
            (("json", draw(st.sampled_from([("repeat", ("chars", ALL), 0, None), run]))), _QUOTE),
        )
    if kind == "key":
        other: Expression = ("complement", keys)
        if draw(st.booleans()):
            other = ("intersect", (other, run))
        return ("concat", (draw(st.sampled_from([("json", other), other])), _QUOTE))
    if kind == "counted":
        low = draw(st.integers(0, 4))
        item = draw(
            st.sampled_from([("chars", RANGES[-2]), ("json", ("chars", ALL)), ("text", "ab")])
        )
        return ("concat", (("repeat", item, low, low + draw(st.integers(1, 4))), _QUOTE))
    if kind == "run":
        return run
    if kind == "closed run":
        return ("concat", (run, ("text", draw(st.sampled_from('",{a')))))
    if kind == "nested run":
        outer = draw(_COUNTS)
        return ("repeat", ("concat", (run, ("text", draw(st.sampled_from(",ué"))))), *outer)
    return draw(_REGULAR)


@st.composite
def framed_plans(draw: st.DrawFn) -> Plan:
    """Plans that put frames after one another, in alternatives and within nested brackets."""
    count = draw(st.integers(1, 3))
    frames = tuple(_frame(draw) for _ in range(count))
    value = ("call", count, (), ())
    calls: list[Expression] = [("call", rule, (), ()) for rule in range(count)]
    pieces = st.lists(st.sampled_from([*calls, *calls, value, *map(_mark, '"{,aé')]), max_size=3)
    rows: list[Expression] = []
    for opening in draw(st.lists(st.sampled_from('"{au'), min_size=1, max_size=3)):
        rows.append(("concat", (_mark(opening), *draw(pieces), draw(st.sampled_from(calls)))))
    rows.append(draw(st.sampled_from(calls)) if draw(st.booleans()) else _mark("b"))
    start = draw(st.sampled_from([value, calls[0], ("concat", (calls[0], calls[-1]))]))
    return Plan(start, (*frames, ("union", tuple(rows))))


@st.composite
def studied_plans(draw: st.DrawFn) -> Plan:
    """Plans that begin in a counted string, or a key that is none of some."""
    frames = tuple(_frame(draw, ("counted", "key")) for _ in range(2))
    calls: list[Expression] = [("call", rule, (), ()) for rule in range(2)]
    tail = draw(
        st.sampled_from([("text", ""), _mark("a"), calls[1], ("repeat", calls[1], 0, None)])
    )
    return Plan(("concat", (calls[0], tail)), frames)


def _mark(char: str) -> Expression:
    return ("text", char)


# Vocabularies


@dataclass(frozen=True)
class VocabularyPlan:
    """The arguments of a token index: texts, which ids match text, the ends, the mask's width."""

    tokens: tuple[bytes, ...]
    ordinary: tuple[bool, ...]
    eos_ids: tuple[int, ...]
    mask_bits: int

    def arguments(self) -> tuple[list[bytes], list[bool], list[int], int]:
        """What `TokenIndex` takes."""
        return list(self.tokens), list(self.ordinary), list(self.eos_ids), self.mask_bits


_ODD_TOKENS = (b"", b"\xff", b"\xc3\x28", b"\xa9", b"\xa9a", b"a\xc3", b"\xed\xa0\x80", b"\xf0\x9f")


_CHARACTERS = [char.encode() for char in ALPHABET]
_BYTES = [bytes([byte]) for byte in sorted(set(b"".join(_CHARACTERS)))]
_PIECES = st.one_of(
    st.sampled_from([char.encode() for char in PLAIN]),
    st.sampled_from(_CHARACTERS),
    st.sampled_from(_BYTES),
)
_TOKENS = st.one_of(
    st.lists(_PIECES, min_size=1, max_size=4).map(b"".join), st.sampled_from(_ODD_TOKENS)
)
_SINGLE_BYTES = st.lists(st.sampled_from(_BYTES), max_size=14)
_SPECIALS = st.lists(st.sampled_from([b"a", b"ab", b"<s>", b""]), max_size=3)


@st.composite
def vocabularies(
    draw: st.DrawFn, plan: Plan | None = None, *, full: bool | None = None
) -> VocabularyPlan:
    """Small vocabularies that overlap, repeat, cut characters, and hold special and empty tokens.

    With `full` every byte of the alphabet is a token; without it only some are.
    """
    full = bool(draw(st.integers(0, 2))) if full is None else full
    texts = [text.encode() for text in plan.texts()] if plan else []
    parts = texts + [char.encode() for text in texts for char in text.decode()] or _CHARACTERS
    ordinary = [*_BYTES] if full else draw(_SINGLE_BYTES)
    for _ in range(draw(st.integers(2, 14))):
        if draw(st.booleans()):
            ordinary.append(draw(_TOKENS))
        else:
            joined = draw(st.sampled_from(parts)) + draw(st.sampled_from(parts))
            ordinary.append(joined[draw(st.integers(0, 2)) : draw(st.integers(1, 8))])
    entries = [(token, True) for token in ordinary]
    entries += [(token, False) for token in (*draw(_SPECIALS), b"</s>")]
    random.Random(draw(st.integers(0, 7))).shuffle(entries)
    special_ids = [token_id for token_id, (_, flag) in enumerate(entries) if not flag]
    eos_ids = {draw(st.sampled_from(special_ids))}
    if not draw(st.integers(0, 3)):
        eos_ids.add(draw(st.integers(0, len(entries) - 1)))
    width = len(entries) + draw(st.sampled_from([0, 0, 1, 40]))
    tokens, flags = zip(*entries, strict=True)
    return VocabularyPlan(tokens, flags, tuple(sorted(eos_ids)), width)


@st.composite
def wide_vocabularies(draw: st.DrawFn) -> VocabularyPlan:
    """Vocabularies with hundreds of trie nodes: every run of a few pieces, up to some length.

    The core walks small subtries directly; only here do frame masks, remainder tries, counts and
    pair walks come into play. With all 256 bytes every text can be spelled, else few can.
    """
    count, length = draw(st.sampled_from([(7, 3), (5, 4), (4, 5), (6, 4)]))
    chosen = ["a", '"', *draw(st.permutations("b\\,ué{0漢"))][:count]
    pieces = [char.encode() for char in chosen]
    if draw(st.booleans()):
        pieces[-1] = draw(st.sampled_from([b"\xc3", b"\xa9", b"\\u00", b"aa", b'"a']))
    tokens = [b"".join(run) for n in range(1, length + 1) for run in product(pieces, repeat=n)]
    extra = draw(st.lists(st.sampled_from(tokens), max_size=4))
    if draw(st.booleans()):
        tokens += [bytes([byte]) for byte in range(256)]
    elif draw(st.booleans()):
        tokens += sorted({bytes([byte]) for char in ALPHABET for byte in char.encode()})
    tokens += [*extra, b"", b"\xff"]
    missing = draw(st.lists(st.sampled_from(pieces), max_size=1))
    tokens = [token for token in tokens if token not in missing]
    end = len(tokens)
    return VocabularyPlan((*tokens, b"</s>"), (True,) * end + (False,), (end,), end + 1)


# Texts


@st.composite
def texts_near(draw: st.DrawFn, language: Language, max_len: int = 8) -> bytes:
    """A text about half the time inside the language: a walk along viable prefixes, sometimes
    finished by its shortest completion, sometimes damaged, sometimes anything."""
    kind = draw(st.sampled_from(["finished", "finished", "prefix", "damaged", "any"]))
    if kind == "any":
        return draw(st.text(ALPHABET, max_size=max_len)).encode()
    text = ""
    for _ in range(draw(st.sampled_from(range(max_len, -1, -1)))):
        choices = [char for char in ALPHABET if language.viable((text + char).encode())]
        if not choices:
            break
        text += draw(st.sampled_from(choices))
    data = text.encode()
    if kind != "prefix" and language.viable(data):
        data += language.completion(data)
    if kind == "damaged" and data:
        at = draw(st.integers(0, len(data) - 1))
        damage = draw(st.sampled_from([b"", b"a", b"\xa9", b"\xff", "é".encode()]))
        data = data[:at] + damage + data[at + draw(st.integers(0, 1)) :]
    return data


def within_budget(test: Callable[..., None]) -> Callable[..., None]:
    """Below `given`: passes over examples that are too hard for the reference."""

    @wraps(test)
    def checked(*args: Any, **kwargs: Any) -> None:
        try:
            test(*args, **kwargs)
        except ReferenceTooHardError:
            reject()

    return checked
