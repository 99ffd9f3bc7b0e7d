"""Questions about whole languages: is one empty, inside another, equal to another, how large.

*Regular* grammars, those without rules, are decided: an answer is certain. For grammars with rules
no program can decide whether two are equal, so the search for a text in which they differ is
bounded. It may find one, it may come to an end of its own (then the answer is certain too), or it
runs out and raises `Undecided`, which says up to what size the grammars agree.

A text's size is its number of characters (code points).

Cost: deciding about regular grammars takes a few us for every state of a product of the two;
comparing others some 50 us a pair of states; `size` about 2 us for each arc of each state at each
length.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from grammaton.errors import GrammarError, LimitExceeded, UnsatisfiableGrammar
from grammaton.fuzz.paths import ANY, Arc, Paths, check_grammar, count, rank, simplest, within
from grammaton.grammar.grammar import Grammar
from grammaton.limits import Limits

_LIMITS = Limits(max_step_terms=300_000)
"""One question here is about a whole language, which may well take more than a step of decoding."""


class Undecided(LimitExceeded):
    """Two grammars with rules agree as far as they were compared, and may differ beyond.

    Attributes:
        size: every text of at most so many characters was compared; -1 when none.
    """

    def __init__(self, message: str, *, size: int) -> None:
        self.size = size
        super().__init__(message)


@dataclass(frozen=True)
class Counterexample:
    """A text in one of two languages and not in the other.

    Attributes:
        text: the text.
        in_first: whether it is in the first language; else it is in the second.
        is_shortest: whether no text of fewer characters tells the two apart; False only when a
            grammar has rules and `max_pairs` were compared before that was certain.
    """

    text: str
    in_first: bool
    is_shortest: bool = True


def is_empty(grammar: Grammar) -> bool:
    """Whether no text is in the language: decided for every grammar.

    Raises:
        GrammarError: not a Grammar.
        LimitExceeded: see `grammaton.Limits`.
    """
    check_grammar(grammar)
    return grammar.store.is_empty(grammar.start)


def counterexample(
    a: Grammar, b: Grammar, *, max_size: int | None = None, max_pairs: int = 100_000
) -> Counterexample | None:
    """A shortest text in one language and not in the other. None means that there is none, for
    certain: the languages are equal.

    Args:
        a, b: the two grammars.
        max_size: ask about texts of at most so many characters alone.
        max_pairs: the pairs of states to compare at most, when a grammar has rules.

    Raises:
        Undecided: a grammar has rules, and `max_pairs` were compared without finding a difference.
        GrammarError: not grammars, or a bound that is not a number from 0.
        LimitExceeded: see `grammaton.Limits`.
    """
    _check(a, b, max_size, max_pairs)
    if _are_regular(a, b):
        return _decide((a & ~b) | (b & ~a), a, max_size)
    if a == b:
        return None
    return _Comparison(a, b, one_way=False).search(max_size, max_pairs)


def is_subset(
    a: Grammar, b: Grammar, *, max_size: int | None = None, max_pairs: int = 100_000
) -> bool:
    """Whether every text of `a` is in `b`. Both answers are certain.

    Args and raises as `counterexample`; Undecided when no text of `a` outside `b` was found.
    """
    _check(a, b, max_size, max_pairs)
    if _are_regular(a, b):
        return _decide(a & ~b, a, max_size) is None
    if a == b:
        return True
    return _Comparison(a, b, one_way=True).search(max_size, max_pairs) is None


def size(grammar: Grammar, n: int, *, exactly: bool = False, max_states: int = 100_000) -> int:
    """How many sentences have at most `n` characters, or, with `exactly`, `n` characters.

    Exact for every grammar, ambiguous ones too: texts are counted, not their derivations.

    Args:
        grammar: the grammar.
        n: a number of characters (code points).
        max_states: the states that texts of one length may lead to, at most.

    Raises:
        LimitExceeded: more than `max_states`, or see `grammaton.Limits`.
        GrammarError: not a Grammar, or `n` is not a number from 0.
    """
    check_grammar(grammar)
    _check_number("n", n)
    _check_number("max_states", max_states)
    try:
        paths = Paths(grammar, limits=_LIMITS)
    except UnsatisfiableGrammar:
        return 0
    _refuse_memory(paths)
    ways = {paths.start: 1} if paths.shortest(paths.start) <= n else {}
    total = 0
    for left in range(n, -1, -1):
        if left == 0 or not exactly:
            total += sum(number for state, number in ways.items() if paths.is_final(state))
        after: dict[int, int] = {}
        for state, number in ways.items():
            for arc in paths.arcs(state):
                if arc.shortest < left:
                    after[arc.target] = after.get(arc.target, 0) + number * count(arc.ranges)
        if len(after) > max_states:
            raise LimitExceeded(
                f"texts of {n - left + 1} characters lead to more than max_states = {max_states} "
                "states"
            )
        ways = after
    return total


def _check(a: object, b: object, max_size: object, max_pairs: object) -> None:
    check_grammar(a)
    check_grammar(b)
    if max_size is not None:
        _check_number("max_size", max_size)
    _check_number("max_pairs", max_pairs)


def _refuse_memory(paths: Paths) -> None:
    if paths.remembers:
        raise GrammarError(
            "texts in which values must differ, as with uniqueItems, are not counted or compared"
        )


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise GrammarError(f"{name} must be an int from 0, not {value!r}")


def _are_regular(*grammars: Grammar) -> bool:
    return all(grammar.store.is_regular(grammar.start) for grammar in grammars)


def _decide(difference: Grammar, first: Grammar, max_size: int | None) -> Counterexample | None:
    """A shortest text of the difference of two languages."""
    try:
        paths = Paths(difference, limits=_LIMITS)
    except UnsatisfiableGrammar:
        return None
    if max_size is not None and paths.shortest(paths.start) > max_size:
        return None
    text = paths.shortest_text()
    return Counterexample(text, first.accepts(text))


_Pair = tuple[int | None, int | None]
"""Where a text stands in either grammar; None where no sentence of it begins so."""


class _Comparison:
    """A search through the texts of two grammars at once, the shortest first.

    Both stand in one machine, so that a state that they share is one number, and pairs of equal
    states, of which there is nothing to find, go no further.
    """

    def __init__(self, a: Grammar, b: Grammar, *, one_way: bool) -> None:
        self._one_way = one_way
        self._starts: _Pair = (None, None)
        self._from: dict[_Pair, tuple[_Pair, int] | None] = {}
        self._best: tuple[int, _Pair] | None = None
        marked = [
            Grammar.literal(mark) + grammar
            for mark, grammar in (("a", a), ("b", b))
            if not is_empty(grammar)
        ]
        if marked:
            self._paths = Paths(marked[0] if len(marked) == 1 else marked[0] | marked[1])
            _refuse_memory(self._paths)
            start = self._paths.start
            self._starts = (self._paths.step(start, "a"), self._paths.step(start, "b"))

    def search(self, max_size: int | None, max_pairs: int) -> Counterexample | None:
        """The counterexample, None when there is none for certain."""
        if self._starts == (None, None):
            return None
        pending: deque[tuple[_Pair, int]] = deque()
        self._meet(self._starts, None, 0, pending, max_size)
        while pending:
            pair, size = pending.popleft()
            if self._best is not None and size >= self._best[0]:
                break
            if len(self._from) > max_pairs:
                if self._best is not None:
                    return self._found(is_shortest=False)
                raise Undecided(
                    f"no difference found in texts of up to {size} characters, after max_pairs = "
                    f"{max_pairs} pairs of states; grammars with rules cannot be compared for "
                    "certain, but max_size bounds the question",
                    size=size,
                )
            for after, code in self._after(pair):
                self._meet(after, (pair, code), size + 1, pending, max_size)
        return self._found(is_shortest=True)

    def _meet(
        self,
        pair: _Pair,
        way: tuple[_Pair, int] | None,
        size: int,
        pending: deque[tuple[_Pair, int]],
        max_size: int | None,
    ) -> None:
        """Takes note of a pair when it is first reached."""
        a, b = pair
        if a == b or pair in self._from or (self._one_way and a is None):
            return
        self._from[pair] = way
        alone = b if a is None else a if b is None else None
        if alone is not None:
            differs = self._paths.shortest(alone)
        elif a is not None and b is not None and self._differ(a, b):
            differs = 0
        else:
            if max_size is None or size < max_size:
                pending.append((pair, size))
            return
        whole = size + differs
        if (max_size is None or whole <= max_size) and (
            self._best is None or whole < self._best[0]
        ):
            self._best = whole, pair

    def _differ(self, a: int, b: int) -> bool:
        """Whether a text that leads here is in one language and not in the other."""
        if self._one_way and not self._paths.is_final(a):
            return False
        return self._paths.is_final(a) != self._paths.is_final(b)

    def _after(self, pair: _Pair) -> list[tuple[_Pair, int]]:
        """The pairs one character on, each with the simplest character that leads there."""
        a, b = pair
        assert a is not None
        assert b is not None
        simple: dict[_Pair, int] = {}
        for after, code in _overlay(self._paths.arcs(a), self._paths.arcs(b)):
            if after not in simple or rank(code) < rank(simple[after]):
                simple[after] = code
        return sorted(simple.items(), key=lambda item: rank(item[1]))

    def _found(self, *, is_shortest: bool) -> Counterexample | None:
        if self._best is None:
            return None
        pair = self._best[1]
        text = ""
        at = pair
        while (way := self._from[at]) is not None:
            at, code = way
            text = chr(code) + text
        a, b = pair
        if a is not None and b is not None:
            return Counterexample(text, self._paths.is_final(a), is_shortest)
        alone = a if a is not None else b
        assert alone is not None
        text += self._paths.shortest_text(alone)
        return Counterexample(text, a is not None, is_shortest)


def _overlay(first: tuple[Arc, ...], second: tuple[Arc, ...]) -> Iterator[tuple[_Pair, int]]:
    """What both do on each run of characters that neither tells apart."""
    edges = [
        sorted((low, high, arc.target) for arc in arcs for low, high in arc.ranges)
        for arcs in (first, second)
    ]
    cuts = sorted({cut for side in edges for low, high, _ in side for cut in (low, high + 1)})
    at = [0, 0]
    for low, end in pairwise(cuts):
        targets: list[int | None] = []
        for side, sorted_edges in enumerate(edges):
            while at[side] < len(sorted_edges) and sorted_edges[at[side]][1] < low:
                at[side] += 1
            here = sorted_edges[at[side]] if at[side] < len(sorted_edges) else None
            targets.append(here[2] if here is not None and here[0] <= low else None)
        if targets != [None, None]:
            yield (targets[0], targets[1]), simplest(within(ANY, low, end - 1))
