"""Random grammars in a form of their own, a naive matcher for them, and printers to the notations.

A *grammar* is a list of expressions, the rules `r0`, `r1`, …, the first being the start. An
expression is a tuple: `("text", t)`, `("set", characters, negated)`, `("rule", i)`, `("seq", xs)`,
`("alt", xs)`, `("repeat", x, low, high)`, and for Lark `("terminal", i)`, an entry of `TERMINALS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

Expression = tuple[Any, ...]
LETTERS = "abé"

TERMINALS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ('"a" | "ab"', ("a", "ab")),
    ('"A"i', ("a", "A")),
    ('"a".."b"', ("a", "b")),
    ('("a" "b"~1..2)+', ("ab", "abbab")),
    ("/a+/", ("a", "aaa")),
    ("/[^b]/", ("a", "c")),
    ("/a|ab/", ("a", "ab")),
    ("/a+?b?/", ("a", "ab")),
    ("/(?:a|ab)(?:b|ba)?/", ("abb", "ab", "aba")),
    ("/(?:a|b|ab)*?ba/", ("ba", "abba")),
    ("/(?:a??b)*a/", ("a", "aba", "bba")),
    ("/a(?!b)/", ("a",)),
    ("/a(?=b)|b/", ("a", "b")),
    ("/(?<!a)b/", ("b",)),
    (r"/\ba+|b\b/", ("a", "b")),
    ("/(?:a(?!b)|b)+/", ("aa", "ba", "ab")),
    ("/b(?!a|ba)/", ("b",)),
    ("/(?:(?!ba).)+/", ("aab", "b")),
    ("/b.*?(?<!a)b/", ("bb", "bab", "babb")),
)
"""Terminals of Lark with texts that they might match: choices, laziness, look-around."""


@cache
def expressions(rules: int, letters: str, terminals: bool) -> st.SearchStrategy[Expression]:
    """Expressions that mention `rules` rules, over a small alphabet. Kept, since a strategy costs
    more to make than an example."""
    words = st.text(st.sampled_from(letters), min_size=1, max_size=2)
    leaves: st.SearchStrategy[Expression] = st.one_of(
        st.tuples(st.just("text"), words),
        st.tuples(st.just("set"), words.map(lambda word: "".join(set(word))), st.booleans()),
        st.tuples(st.just("rule"), st.integers(0, rules - 1)),
        st.tuples(st.just("rule"), st.integers(0, rules - 1)),
    )
    if terminals:
        numbers = st.integers(0, len(TERMINALS) - 1)
        leaves = st.one_of(leaves, st.tuples(st.just("terminal"), numbers))
    bounds = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (0, 2), (1, 3), (2, None)])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.just("seq"), st.lists(inner, max_size=3).map(tuple)),
            st.tuples(st.just("alt"), st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.tuples(inner, bounds).map(lambda both: ("repeat", both[0], *both[1])),
        ),
        max_leaves=6,
    )


@st.composite
def grammars(
    draw: st.DrawFn, letters: str = LETTERS, *, terminals: bool = False
) -> list[Expression]:
    """Grammars of one to three rules: recursive, ambiguous, nullable."""
    count = draw(st.integers(1, 3))
    return [draw(expressions(count, letters, terminals)) for _ in range(count)]


def language(rules: Sequence[Expression], text: str) -> bool:
    """Whether a text belongs, by the least fixpoint of where each rule ends from each place."""
    ends: dict[tuple[int, int], frozenset[int]] = {
        (rule, at): frozenset() for rule in range(len(rules)) for at in range(len(text) + 1)
    }

    def match(node: Expression, at: int) -> frozenset[int]:
        kind = node[0]
        if kind == "text":
            return frozenset({at + len(node[1])} if text.startswith(node[1], at) else ())
        if kind == "set":
            found = at < len(text) and (text[at] in node[1]) != node[2]
            return frozenset({at + 1} if found else ())
        if kind == "rule":
            return ends[node[1], at]
        if kind == "alt":
            return frozenset().union(*(match(branch, at) for branch in node[1]))
        if kind == "seq":
            places = frozenset({at})
            for part in node[1]:
                places = frozenset().union(*(match(part, place) for place in places))
            return places
        _, body, low, high = node
        places = frozenset({at})
        found_ends = places if low == 0 else frozenset()
        count = 0
        while count != high:
            places = frozenset().union(*(match(body, place) for place in places))
            count += 1
            if count >= low:
                if places <= found_ends:
                    break
                found_ends |= places
        return found_ends

    changed = True
    while changed:
        changed = False
        for key in ends:
            found = match(rules[key[0]], key[1])
            if found != ends[key]:
                ends[key] = found
                changed = True
    return len(text) in ends[0, 0]


@st.composite
def texts_of(
    draw: st.DrawFn, rules: Sequence[Expression], letters: str = LETTERS, between: str = ""
) -> str:
    """A text that the grammar derives, if it ends soon enough; else any text.

    `between` is put in front of some leaves.
    """
    budget = 30

    def derive(node: Expression) -> str:
        nonlocal budget
        budget -= 1
        if budget < 0:
            return ""
        kind = node[0]
        space = between if between and kind in ("text", "set", "terminal") else ""
        space = space if space and draw(st.booleans()) else ""
        if kind == "text":
            return space + str(node[1])
        if kind == "terminal":
            return space + draw(st.sampled_from(TERMINALS[node[1]][1]))
        if kind == "set":
            choices = [letter for letter in letters if (letter in node[1]) != node[2]]
            return space + draw(st.sampled_from(choices)) if choices else ""
        if kind == "rule":
            return derive(rules[node[1]])
        if kind == "alt":
            return derive(draw(st.sampled_from(node[1])))
        if kind == "seq":
            return "".join(map(derive, node[1]))
        _, body, low, high = node
        most = low + 2 if high is None else high
        return "".join(derive(body) for _ in range(draw(st.integers(low, most))))

    return derive(rules[0])[:7]


def to_gbnf(rules: Sequence[Expression], layout: int) -> str:
    """The grammar in GBNF; `layout` varies comments and line breaks."""
    inside = [" ", "\n  ", " # comment ) |\n"][layout % 3]

    def show(node: Expression) -> str:
        kind = node[0]
        if kind == "text":
            return '"' + "".join(_gbnf_char(char, layout) for char in node[1]) + '"'
        if kind == "set":
            chars = "".join(_gbnf_char(char, layout) for char in sorted(node[1]))
            return f"[{'^' * node[2]}{chars}]"
        if kind == "rule":
            return f"r{node[1]}"
        if kind == "alt":
            return "(" + f"{inside}|{inside}".join(map(show, node[1])) + inside + ")"
        if kind == "seq":
            return "(" + inside.join(map(show, node[1])) + ")"
        return show(node[1]) + _counts(node[2], node[3], spelled=layout % 2 == 0)

    names = "".join(f"r{index} ::= {show(rule)} # rule\n" for index, rule in enumerate(rules))
    return f"# a grammar\nroot ::= r0\n\n{names}"


def _gbnf_char(char: str, layout: int) -> str:
    spellings = {0: char, 1: f"\\u{ord(char):04X}", 2: f"\\U{ord(char):08X}"}
    return spellings[layout % 3]


def _counts(low: int, high: int | None, *, spelled: bool) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high))
    if short and spelled:
        return short
    if low == high:
        return f"{{{low}}}"
    return f"{{{low},{'' if high is None else high}}}"


def to_ebnf(rules: Sequence[Expression], layout: int) -> str:
    """The grammar in W3C EBNF."""
    quote = "'\""[layout % 2]
    space = [" ", " /* comment | ( */ ", "\n"][layout % 3]

    def show(node: Expression) -> str:
        kind = node[0]
        if kind == "text":
            if layout % 2 or not node[1].isascii():
                return "(" + " ".join(f"#x{ord(char):X}" for char in node[1]) + ")"
            return quote + str(node[1]) + quote
        if kind == "set":
            chars = "".join(f"#x{ord(char):X}" if layout % 2 else char for char in sorted(node[1]))
            return f"[{'^' * node[2]}{chars}]"
        if kind == "rule":
            return f"r{node[1]}"
        if kind == "alt":
            return "(" + f"{space}|{space}".join(map(show, node[1])) + ")"
        if kind == "seq":
            return "(" + space.join(map(show, node[1])) + ")"
        _, body, low, high = node
        once = f"x{len(extra)}"
        extra.append("")  # a rule of its own, since the body is written several times
        extra[int(once[1:])] = f"{once} ::= {show(body)}"
        parts = [once] * low
        parts += [f"{once}*"] if high is None else [f"{once}?"] * (high - low)
        return "(" + " ".join(parts) + ")"

    extra: list[str] = []
    lines = [f"r{index} ::= {show(rule)}" for index, rule in enumerate(rules)]
    return "\n".join(lines + extra)


def to_lark(rules: Sequence[Expression], ignored: str = "") -> str:
    """The grammar in Lark's notation, with a terminal to ignore."""
    used: set[int] = set()

    def show(node: Expression) -> str:
        kind = node[0]
        if kind == "text":
            return f'"{node[1]}"'
        if kind == "set":
            return f"/[{'^' * node[2]}{''.join(sorted(node[1]))}]/"
        if kind == "rule":
            return f"r{node[1]}"
        if kind == "terminal":
            used.add(node[1])
            return f"T{node[1]}"
        if kind == "alt":
            return "(" + " | ".join(map(show, node[1])) + ")"
        if kind == "seq":
            return "(" + " ".join(map(show, node[1])) + ")"
        _, body, low, high = node
        once = show(body)
        if (low, high) == (0, 1):
            return f"[{once}]"
        if high is None:
            return f"({once}~{low} ({once})*)" if low else f"({once})*"
        return f"{once}~{low}..{high}" if node[1][0] != "repeat" else f"({once})~{low}..{high}"

    lines = ["start: r0"] + [f"r{index}: {show(rule)}" for index, rule in enumerate(rules)]
    lines += [f"T{index}: {TERMINALS[index][0]}" for index in sorted(used)]
    return "\n".join(lines + [f"%ignore {ignored}"] * bool(ignored)) + "\n"
