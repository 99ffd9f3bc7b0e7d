"""Hypothesis strategies for the texts in, near and on the way into a language.

    from hypothesis import given
    from grammaton import Grammar
    from grammaton.fuzz import sentences

    @given(sentences(Grammar.from_regex(r"\\d{4}-\\d\\d")))
    def test_reads_months(text): ...

Sizes are in characters (code points). Cost: a text takes about 10 us a character. Needs hypothesis
(the extra `grammaton[fuzz]`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from hypothesis import reject
from hypothesis import strategies as st

from grammaton.fuzz.draw import (
    EXTRA_SIZE,
    NearMisses,
    check_size,
    draw_prefix,
    draw_sentence,
    longest_size,
)
from grammaton.fuzz.paths import Paths, Ranges, count, nth, outside, zones
from grammaton.grammar.grammar import Grammar

_SPELLED = 2000
"""Sets of at most so many characters are spelled out."""


@cache
def _numbers(bound: int) -> st.SearchStrategy[int]:
    return st.integers(0, bound - 1)


@cache
def _chars(ranges: Ranges) -> st.SearchStrategy[str]:
    # hypothesis takes a set of characters as a list of those in it, or of those that are not, and
    # shrinks it best so; but a long list takes it a second.
    others = outside(ranges)
    if count(ranges) <= _SPELLED:
        return st.characters(categories=(), include_characters=_spelled(ranges))
    if count(others) <= _SPELLED:
        return st.characters(exclude_categories=["Cs"], exclude_characters=_spelled(others))
    return st.one_of(
        *(_chars(group) for group in zones(ranges)[:-1] if count(group) <= _SPELLED),
        st.integers(0, count(ranges) - 1).map(lambda index: chr(nth(ranges, index))),
    )


def _spelled(ranges: Ranges) -> str:
    return "".join(chr(code) for low, high in ranges for code in range(low, high + 1))


@cache
def _runs(ranges: Ranges, longest: int) -> st.SearchStrategy[str]:
    return st.text(_chars(ranges), max_size=longest)


class _Hypothesis:
    """A source whose choices hypothesis makes, keeps and shrinks."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def below(self, bound: int) -> int:
        return self._draw(_numbers(bound))

    def char(self, ranges: Ranges) -> str:
        return self._draw(_chars(ranges))

    def run(self, ranges: Ranges, longest: int) -> str:
        return self._draw(_runs(ranges, longest))


@st.composite
def _texts(draw: st.DrawFn, make: Callable[[_Hypothesis], str | None]) -> str:
    text = make(_Hypothesis(draw))
    return reject() if text is None else text


def sentences(grammar: Grammar, *, max_size: int | None = None) -> st.SearchStrategy[str]:
    """Texts of the language. Every one of at most `max_size` characters can come, and a failing
    one shrinks towards a short one of simple characters.

    Args:
        grammar: the language.
        max_size: the most characters; by default 100 more than the shortest sentence has.

    Raises:
        UnsatisfiableGrammar: there is no sentence.
        GrammarError: no sentence is as short as `max_size`.
        LimitExceeded: see `grammaton.Limits`; from a draw too.
    """
    paths = Paths(grammar)
    size = longest_size(paths, max_size)
    return _texts(lambda source: draw_sentence(paths, source, max_size=size))


def prefixes(grammar: Grammar, *, max_size: int | None = None) -> st.SearchStrategy[str]:
    """Texts that a sentence, of any size, begins with; whole sentences and the empty text too.

    Args and raises as `sentences`; `max_size` is that of the prefix and may be any number from 0,
    by default 100 more than the shortest sentence has.
    """
    paths = Paths(grammar)
    size = paths.shortest(paths.start) + EXTRA_SIZE if max_size is None else max_size
    check_size(size)
    return _texts(lambda source: draw_prefix(paths, source, max_size=size))


def mutations(grammar: Grammar, *, max_size: int | None = None) -> st.SearchStrategy[str]:
    """Near misses: texts outside the language, one edit away from a sentence.

    The edits are to cut a sentence off, to insert, replace, drop, double or move characters. Where
    they hardly leave the language, texts of the complement come instead (grammars without rules)
    or the example is rejected.

    Args and raises as `sentences`; `max_size` is that of the sentence. UnsatisfiableGrammar, too,
    when every text is a sentence.
    """
    return _texts(NearMisses(Paths(grammar), max_size=max_size).draw)
