"""Hypothesis strategies for regular expressions, with texts that they match and nearly match.

A pattern is drawn as a tree of tuples and rendered for a dialect. `matching` walks the tree
and draws a text of it, assertions taken for granted; `near` mutates such a text. Alphabets are
small so that mutations often stay inside the language.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

Tree = tuple[Any, ...]
"""("char", c) | ("dot",) | ("class", negated, items) | ("named", letter) | ("cat" | "alt", trees) |
("group", opening, tree) | ("repeat", tree, min, max, suffix) | ("anchor", text) |
("look", opening, tree); a class item is a character, a pair of them, or ("named", letter)"""

LETTERS = "ab1_"
ODD = "\n é漢😀-^]$\\{}.,\x00\u2028"
NAMED = {"d": "17٣", "D": "ab é", "w": "ab1_é漢", "W": " -\n", "s": " \n\u2028", "S": "ab漢"}
ASCII_NAMED = {**NAMED, "d": "17", "w": "ab1_", "W": " -é"}

_CHARS = st.sampled_from(LETTERS * 4 + ODD)


def examples(times: int) -> settings:
    """The settings of the profile, with more examples."""
    default = settings.default
    assert default is not None
    return settings(default, max_examples=default.max_examples * times)


def _class_items() -> st.SearchStrategy[Any]:
    pairs = st.tuples(_CHARS, _CHARS).map(lambda pair: tuple(sorted(pair)))
    return st.one_of(_CHARS, _CHARS, pairs, st.tuples(st.just("named"), st.sampled_from("dDwWsS")))


def _leaves() -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.tuples(st.just("char"), _CHARS),
        st.tuples(st.just("char"), st.sampled_from(LETTERS)),
        st.tuples(
            st.just("class"), st.booleans(), st.lists(_class_items(), min_size=1, max_size=3)
        ),
        st.tuples(st.just("named"), st.sampled_from("dDwWsS")),
        st.just(("dot",)),
    )


def counts() -> st.SearchStrategy[tuple[int, int | None]]:
    """Bounds of a repetition."""
    return st.one_of(
        st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (2, None), (0, 0)]),
        st.tuples(st.integers(0, 2), st.integers(0, 2)).map(lambda c: (c[0], c[0] + c[1])),
    )


def trees(*, anchors: str, look: bool = False, python: bool = False) -> st.SearchStrategy[Tree]:
    """Patterns. With `anchors`, some of "^$AZbB", and `look`, anchors and look-aheads stand
    anywhere in sequences; with `python`, look-behinds too, and there are groups and quantifiers
    that only that dialect has."""
    openings = ["(", "(?:", "(?name"]
    suffixes = ["", "?"]
    if python:
        openings += ["(?>", "(?i:", "(?a:", "(?s:", "(?m:", "(?x:", "(?-i:"]
        suffixes += ["", "+"]
    behind = st.lists(_leaves(), min_size=1, max_size=2).map(lambda parts: ("cat", parts))

    def grow(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        part = inner
        if look:
            part |= st.tuples(st.just("look"), st.sampled_from(["(?=", "(?!"]), inner)
        if look and python:
            part |= st.tuples(st.just("look"), st.sampled_from(["(?<=", "(?<!"]), behind)
        if anchors:
            spelled = ["\\" + each if each.isalpha() else each for each in anchors]
            part |= st.tuples(st.just("anchor"), st.sampled_from(spelled))
        many = st.lists(part, min_size=1, max_size=4)
        return st.one_of(
            st.tuples(st.just("cat"), many),
            st.tuples(st.just("cat"), many),
            st.tuples(
                st.just("alt"), st.lists(inner | st.just(("cat", [])), min_size=2, max_size=3)
            ),
            st.tuples(st.just("group"), st.sampled_from(openings), inner),
            st.builds(
                lambda t, c, z: ("repeat", t, *c, z), inner, counts(), st.sampled_from(suffixes)
            ),
        )

    return st.recursive(_leaves(), grow, max_leaves=8)


class Render:
    """Writes a tree as a pattern; `for_re` spells what another dialect means in Python's `re`."""

    def __init__(self, dialect: str, *, for_re: bool = False) -> None:
        self.dialect = dialect
        self.for_re = for_re
        self.names = 0

    def __call__(self, tree: Tree) -> str:
        match tree:
            case ("char", str(char)):
                return self._char(char, "\\^$.|?*+()[]{}")
            case ("dot",):
                return r"[^\n\r\u2028\u2029]" if self.for_re and self.dialect == "ecma" else "."
            case ("named", str(letter)):
                return self._named(letter)
            case ("class", bool(negated), items):
                return f"[{'^' * negated}{''.join(map(self._item, items))}]"
            case ("cat", parts):
                return "".join(
                    f"(?:{self(part)})" if part[0] == "alt" else self(part) for part in parts
                )
            case ("alt", parts):
                return "|".join(self(part) for part in parts)
            case ("group", str(opening), inner):
                if opening == "(?name":
                    self.names += 1
                    python = self.dialect == "python" or self.for_re
                    opening = f"(?{'P' * python}<n{self.names}>"
                return f"{opening}{self(inner)})"
            case ("repeat", inner, int(low), high, str(suffix)):
                body = self(inner)
                if inner[0] not in ("char", "dot", "named", "class", "group"):
                    body = f"(?:{body})"
                return body + self._count(low, high) + suffix
            case ("anchor", str(text)):
                return r"\Z" if text == "$" and self.for_re and self.dialect == "ecma" else text
            case ("look", str(opening), inner):
                return f"{opening}{self(inner)})"
        raise AssertionError(tree)

    def _char(self, char: str, special: str) -> str:
        if char in special:
            return "\\" + char
        if char in " #":
            return "\\" + char if self.dialect == "python" else char
        if char == "\x00":
            return r"\x00"  # \0 would run into a digit behind it
        return {"\n": r"\n", "\u2028": r"\u2028"}.get(char, char)

    def _item(self, item: Any) -> str:
        if isinstance(item, str):
            return self._char(item, "\\]^-[")
        if item[0] == "named":
            return self._named(item[1], bare=True)
        return "-".join(self._char(char, "\\]^-[") for char in item)

    def _named(self, letter: str, *, bare: bool = False) -> str:
        if not (self.for_re and self.dialect == "ecma") or letter in "sS":
            return "\\" + letter
        ascii_only = {"d": "0-9", "w": "0-9A-Z_a-z"}[letter.lower()]
        if letter.islower():
            return ascii_only if bare else f"[{ascii_only}]"
        outside = {
            "d": r"\x00-/:-\U0010ffff",
            "w": r"\x00-/:-@\[-\^`{-\U0010ffff",
        }[letter.lower()]
        return outside if bare else f"[{outside}]"

    @staticmethod
    def _count(low: int, high: int | None) -> str:
        short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high))
        if short:
            return short
        if low == high:
            return f"{{{low}}}"
        return f"{{{low},{'' if high is None else high}}}"


@st.composite
def matching(draw: st.DrawFn, tree: Tree, named: dict[str, str] = NAMED) -> str:
    """A text that the tree matches, if its anchors and look-aheads allow."""
    match tree:
        case ("char", str(char)):
            return char
        case ("dot",):
            return draw(st.sampled_from(LETTERS + "é漢😀"))
        case ("named", str(letter)):
            return draw(st.sampled_from(named[letter]))
        case ("class", bool(negated), items):
            if negated:
                return draw(st.sampled_from(LETTERS + "é漢"))
            item = draw(st.sampled_from(items))
            if isinstance(item, str):
                return item
            return str(draw(st.sampled_from(named[item[1]] if item[0] == "named" else item)))
        case ("cat", parts):
            return "".join(draw(matching(part, named)) for part in parts)
        case ("alt", parts):
            return draw(matching(draw(st.sampled_from(parts)), named))
        case ("group", _, inner):
            return draw(matching(inner, named))
        case ("repeat", inner, int(low), high, _):
            times = draw(st.integers(low, low + 2 if high is None else high))
            return "".join(draw(matching(inner, named)) for _ in range(times))
    return ""


@st.composite
def near(draw: st.DrawFn, tree: Tree, named: dict[str, str] = NAMED) -> str:
    """A text that the tree matches, or one a small step away; at most 7
    characters, since `re` is exponential in them on some patterns."""
    text = draw(matching(tree, named))
    kind = draw(st.sampled_from(["same", "insert", "drop", "swap", "newline"]))
    at = draw(st.integers(0, len(text)))
    char = draw(st.sampled_from(LETTERS + "é \n"))
    if kind == "insert":
        text = text[:at] + char + text[at:]
    elif kind == "drop":
        text = text[:at] + text[at + 1 :]
    elif kind == "swap":
        text = text[:at] + char + text[at + 1 :]
    elif kind == "newline":
        text += "\n"
    return text[:7]
