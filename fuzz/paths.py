"""The texts of a grammar as paths through a deterministic automaton over characters.

Nouns:

- *state*: where a text may stand between two characters; an int. From every state some sentence can
  be finished, and each sentence is exactly one path from `start` to a *final* state.
- *arc*: the characters that lead from one state to another.
- *rank* of a character: how simple it looks. Letters and digits come first, so that a text chosen
  for people is `a0` rather than a control character.

Grammars with rules have infinitely many states; they are made when first reached, and kept. Cost: a
state's arcs take 10 to 100 us the first time, then a dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from grammaton._core import CharacterMachine
from grammaton.errors import GrammarError
from grammaton.grammar.grammar import Grammar
from grammaton.limits import Limits

Ranges = tuple[tuple[int, int], ...]
"""Inclusive ranges of code points, sorted and disjoint."""

LAST_CODE_POINT = 0x10FFFF
ANY: Ranges = ((0, 0xD7FF), (0xE000, LAST_CODE_POINT))

_SIMPLE = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PRINTED = _SIMPLE + "".join(c for c in map(chr, range(0x21, 0x7F)) if c not in _SIMPLE) + " "
_RANKS = {ord(char): rank for rank, char in enumerate(_PRINTED)}
_NOTABLE = sorted(
    map(
        ord,
        "\t\n\r\x00\x1f\x7f\x85\xa0éßñıſİΩжא٣ก漢字あ가Aﬀ😀👩\u0301\u200b\u200d\u2028\u3000\ud7ff\ue000\ufeff\ufffd"
        "\U00010000\U0001f1e6\U0010ffff",
    )
)
_MOST_STATES = 50_000


@dataclass(frozen=True)
class Arc:
    """The characters that lead to a state.

    Attributes:
        ranges: the characters.
        target: the state.
        shortest: how few characters can follow there to the end of a sentence.
    """

    ranges: Ranges
    target: int
    shortest: int


class Paths:
    """A grammar's automaton, with what was asked of it remembered.

    Args:
        grammar: the grammar.
        limits: bounds on the work of one question.

    Raises:
        UnsatisfiableGrammar: no text is in the language.
        GrammarError: not a Grammar, or one that can't be run (see `grammaton.compile`).
        LimitExceeded: see `grammaton.Limits`. So may any question.
    """

    def __init__(self, grammar: Grammar, *, limits: Limits | None = None) -> None:
        self.grammar = check_grammar(grammar)
        self._limits = limits or Limits(max_step_terms=300_000)
        self.renew()

    def renew(self) -> None:
        """Forgets all states, when they have become many; the ids of old ones mean nothing then."""
        self._machine = CharacterMachine(self.grammar.store, self.grammar.start, self._limits)
        self._arcs: dict[int, tuple[Arc, ...]] = {}
        self._finals: dict[int, bool] = {}
        self.start = self._machine.start
        self.remembers = self._machine.remembers

    @property
    def is_crowded(self) -> bool:
        """Whether so many states are kept that `renew` is due before the next text."""
        return len(self._arcs) > _MOST_STATES

    def arcs(self, state: int) -> tuple[Arc, ...]:
        """The arcs out of a state, those nearest to an end first."""
        known = self._arcs.get(state)
        if known is None:
            known = tuple(
                sorted(
                    (
                        Arc(ranges, target, self._machine.shortest(target))
                        for ranges, target in self._machine.arcs(state)
                    ),
                    key=lambda arc: (arc.shortest, arc.ranges),
                )
            )
            self._arcs[state] = known
        return known

    def is_final(self, state: int) -> bool:
        """Whether a sentence may end here."""
        known = self._finals.get(state)
        if known is None:
            known = self._finals[state] = self._machine.is_final(state)
        return known

    def shortest(self, state: int) -> int:
        """The characters of the shortest way from here to the end of a sentence."""
        return self._machine.shortest(state)

    def step(self, state: int, char: str) -> int | None:
        """Where a character leads; None when no sentence goes on with it."""
        if self.remembers:
            return self._machine.step(state, ord(char))
        for arc in self.arcs(state):
            if has(arc.ranges, char):
                return arc.target
        return None

    def states(self, text: str) -> list[int]:
        """The states of a text from the start, up to where no sentence goes on with it."""
        found = [self.start]
        for char in text:
            after = self.step(found[-1], char)
            if after is None:
                break
            found.append(after)
        return found

    def accepts(self, text: str) -> bool:
        """Whether the text is a sentence."""
        states = self.states(text)
        return len(states) == len(text) + 1 and self.is_final(states[-1])

    def shortest_text(self, state: int | None = None) -> str:
        """A shortest way from a state, by default the start, to the end of a sentence, with the
        simplest of the characters that one may begin with. A short one where values must differ."""
        text = ""
        state = self.start if state is None else state
        while self.remembers and not self.is_final(state):
            nearest = self.arcs(state)[0]
            text += chr(simplest(nearest.ranges))
            after = self.step(state, text[-1])
            assert after is not None
            state = after
        if self.remembers:
            return text
        for left in range(self.shortest(state), 0, -1):
            arcs = [arc for arc in self.arcs(state) if arc.shortest == left - 1]
            code, state = min(
                ((simplest(arc.ranges), arc.target) for arc in arcs), key=lambda way: rank(way[0])
            )
            text += chr(code)
        return text


def check_grammar(grammar: object) -> Grammar:
    """The grammar itself.

    Raises:
        GrammarError: it is none.
    """
    if not isinstance(grammar, Grammar):
        raise GrammarError(f"a Grammar is needed, not {type(grammar).__name__}")
    return grammar


def rank(code: int) -> int:
    """How far from simple a character is; less is simpler."""
    return _RANKS.get(code, len(_RANKS) + code)


def simplest(ranges: Ranges) -> int:
    """The simplest character of a set that is not empty."""
    printed = [
        code
        for low, high in ranges
        if low < 0x7F
        for code in range(max(low, 0x20), min(high, 0x7E) + 1)
    ]
    return min(printed, key=rank) if printed else ranges[0][0]


def count(ranges: Ranges) -> int:
    """How many characters a set has."""
    return sum(high - low + 1 for low, high in ranges)


def within(ranges: Ranges, low: int, high: int) -> Ranges:
    """The part of a set between two code points, both included."""
    return tuple((max(a, low), min(b, high)) for a, b in ranges if a <= high and b >= low)


def outside(ranges: Ranges) -> Ranges:
    """The characters that are not in a set; surrogates are none."""
    return tuple(_gaps(ranges))


def _gaps(ranges: Ranges) -> Iterator[tuple[int, int]]:
    at = 0
    for low, high in (*sorted((*ranges, (0xD800, 0xDFFF))), (LAST_CODE_POINT + 1, 0)):
        if at < low:
            yield at, low - 1
        at = max(at, high + 1)


def has(ranges: Ranges, char: str) -> bool:
    """Whether a character is in a set."""
    code = ord(char)
    return any(low <= code <= high for low, high in ranges)


def nth(ranges: Ranges, index: int) -> int:
    """The character at this place of a set in code point order."""
    for low, high in ranges:
        if index <= high - low:
            return low + index
        index -= high - low + 1
    raise IndexError(index)


@cache
def zones(ranges: Ranges) -> tuple[Ranges, ...]:
    """The characters of a set in groups: the plain ones, those that often make trouble, and the
    rest by how common they are. Together they are the whole set."""
    groups: tuple[Ranges, ...] = (
        within(ranges, 0x20, 0x7E),
        tuple((code, code) for code in _NOTABLE if has(ranges, chr(code))),
        (*within(ranges, 0, 0x1F), *within(ranges, 0x7F, 0x7F)),
        within(ranges, 0x80, 0x2FF),
        within(ranges, 0x300, 0xFFFF),
        within(ranges, 0x10000, LAST_CODE_POINT),
    )
    return tuple(group for group in groups if group)
