"""Texts in and near a language, out of a stream of choices.

Nouns:

- *source*: makes choices: a number below a bound, a character of a set, a run of such characters.
  Random numbers, a list of choices made before (`Replayed`) or hypothesis stand behind it. A text
  is a function of the choices, and fewer and smaller ones give shorter and simpler texts: that is
  what shrinking rests on, by hypothesis and by `grammaton fuzz` alike.
- *sentence*: a text of the language.
- *near miss*: a text outside it that is one edit away from a sentence.
- *way*: what a text may do next: end, or take an arc.

How a sentence is drawn: first how long it may get, and a *mood*; then, state by state, a way and a
character of its arc, or, where an arc leads back to its state, a run of characters before the way
out. A way is open only while the shortest way from behind it to an end fits into what is left, so
that there are no dead ends and no draw is thrown away, and every sentence of the wanted size can
come. Choice 0 is always the shortest way to an end.

The mood makes some ways likely and others unlikely for the whole of one text, as in swarm testing
(Groce and others, 2012). Without it texts are all alike: each has an escape, none has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from grammaton.errors import GrammarError, UnsatisfiableGrammar
from grammaton.fuzz.paths import (
    ANY,
    Arc,
    Paths,
    Ranges,
    count,
    has,
    nth,
    outside,
    simplest,
    zones,
)

EXTRA_SIZE = 100
"""Characters beyond the shortest sentence that texts may have where no `max_size` is given."""

_MOODS = 256
_END = -1
_EDITS = 20

Choice = int | str


class Source(Protocol):
    """Where choices come from."""

    def below(self, bound: int) -> int:
        """A number from 0 to `bound - 1`; 0 is the simplest."""

    def char(self, ranges: Ranges) -> str:
        """A character of a set."""

    def run(self, ranges: Ranges, longest: int) -> str:
        """Up to `longest` characters of a set."""


class Drawn:
    """Random choices, kept in `choices`."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.choices: list[Choice] = []

    def below(self, bound: int) -> int:
        number = self._rng.randrange(bound)
        self.choices.append(number)
        return number

    def char(self, ranges: Ranges) -> str:
        char = self._char(ranges)
        self.choices.append(char)
        return char

    def run(self, ranges: Ranges, longest: int) -> str:
        size = self._rng.choice((0, 0, 1, 1, 2, 3, 5, 9, longest))
        run = "".join(self._char(ranges) for _ in range(min(size, longest)))
        self.choices.append(run)
        return run

    def _char(self, ranges: Ranges) -> str:
        # Plain characters half of the time, where there are some.
        groups = zones(ranges)
        group = groups[0] if self._rng.random() < 0.5 else self._rng.choice(groups)
        return chr(nth(group, self._rng.randrange(count(group))))


class Replayed:
    """Choices made before. One that is impossible where it stands becomes the nearest possible, and
    when they have run out the rest is the simplest."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._choices = iter(choices)

    def below(self, bound: int) -> int:
        choice = next(self._choices, 0)
        return min(choice, bound - 1) if isinstance(choice, int) else 0

    def char(self, ranges: Ranges) -> str:
        choice = next(self._choices, "")
        fits = isinstance(choice, str) and len(choice) == 1 and has(ranges, choice)
        return str(choice) if fits else chr(simplest(ranges))

    def run(self, ranges: Ranges, longest: int) -> str:
        choice = next(self._choices, "")
        if not isinstance(choice, str):
            return ""
        return "".join(char for char in choice if has(ranges, char))[:longest]


def longest_size(paths: Paths, max_size: int | None) -> int:
    """The longest size of texts in characters, `EXTRA_SIZE` more than the shortest sentence where
    it is None.

    Raises:
        GrammarError: not a number of characters, or no sentence is that short.
    """
    shortest = paths.shortest(paths.start)
    if max_size is None:
        return shortest + EXTRA_SIZE
    check_size(max_size)
    if max_size < shortest:
        raise GrammarError(
            f"max_size = {max_size}, but the shortest sentence has {shortest} characters"
        )
    return max_size


def check_size(max_size: object) -> None:
    """Checks a number of characters.

    Raises:
        GrammarError: it is none.
    """
    if not isinstance(max_size, int) or isinstance(max_size, bool) or max_size < 0:
        raise GrammarError(f"max_size must be a number of characters, not {max_size!r}")


def draw_sentence(paths: Paths, source: Source, *, max_size: int) -> str:
    """A sentence of at most `max_size` characters, which must be enough for the shortest."""
    if paths.is_crowded:
        paths.renew()
    shortest = paths.shortest(paths.start)
    left = shortest + _below(source, max_size - shortest + 1)
    return _draw(paths, source, left, to_the_end=True)


def draw_prefix(paths: Paths, source: Source, *, max_size: int) -> str:
    """A text of at most `max_size` characters that some sentence, of any size, begins with."""
    if paths.is_crowded:
        paths.renew()
    return _draw(paths, source, _below(source, max_size + 1), to_the_end=False)


def _draw(paths: Paths, source: Source, left: int, *, to_the_end: bool) -> str:
    mood = source.below(_MOODS)
    text = ""
    state = paths.start
    while True:
        open_arcs = [arc for arc in paths.arcs(state) if left > arc.shortest * to_the_end]
        ways: list[Arc | None] = [None] if paths.is_final(state) or not to_the_end else []
        for arc in open_arcs:
            if arc.target == state:
                run = source.run(arc.ranges, left - arc.shortest * to_the_end)
                text += run
                left -= len(run)
            else:
                ways.append(arc)
        ways = [way for way in ways if way is None or left > way.shortest * to_the_end]
        if not ways:  # values must differ, and the end is farther than it looked
            ways = [paths.arcs(state)[0]]
        if not to_the_end and len(ways) > 1 and left:
            del ways[0]  # A prefix ends when there is no room, or no way on.
        way = _choose(source, ways, mood)
        if way is None:
            return text
        text += source.char(way.ranges) if count(way.ranges) > 1 else chr(way.ranges[0][0])
        after = paths.step(state, text[-1]) if paths.remembers else way.target
        assert after is not None
        state = after
        left -= 1


def _choose(source: Source, ways: Sequence[Arc | None], mood: int) -> Arc | None:
    if len(ways) == 1:
        return ways[0]
    # An unlikely way has to be drawn three times in a row. Choices mean the same in every mood but
    # for the repeated ones, so that a text shrinks to mood 0.
    way = ways[source.below(len(ways))]
    for _ in range(2):
        if _is_likely(mood, _END if way is None else way.ranges[0][0]):
            break
        way = ways[source.below(len(ways))]
    return way


def _is_likely(mood: int, mark: int) -> bool:
    """Whether a way is likely in this mood, by the first character of its arc; always in mood 0."""
    return mood == 0 or (mood * (2 * mark + 3) * 0x9E3779B1) >> 16 & 1 == 0


def _below(source: Source, bound: int) -> int:
    """A choice, where there is one."""
    return source.below(bound) if bound > 1 else 0


class NearMisses:
    """Draws near misses of a grammar.

    Where one edit of a sentence hardly ever leaves the language, as in `~"secret"`, the texts are
    those of the complement instead. A language that has rules has no complement to write down, and
    then a draw may come to nothing.

    Raises:
        UnsatisfiableGrammar: every text is a sentence (grammars without rules).
        GrammarError: see `longest_size`.
    """

    def __init__(self, paths: Paths, *, max_size: int | None = None) -> None:
        self._paths = paths
        self._max_size = longest_size(paths, max_size)
        self._complement: Paths | None = None
        grammar = paths.grammar
        if grammar.store.is_regular(grammar.start):
            try:
                self._complement = Paths(~grammar)
            except UnsatisfiableGrammar:
                raise UnsatisfiableGrammar(
                    f"every text is a sentence of {grammar!r}: it has no near misses"
                ) from None

    def draw(self, source: Source) -> str | None:
        """A near miss; None when `_EDITS` edits of a sentence all were sentences."""
        sentence = draw_sentence(self._paths, source, max_size=self._max_size)
        for _ in range(_EDITS):
            text = self._edit(source, sentence)
            if not self._paths.accepts(text):
                return text
        if self._complement is None:
            return None
        shortest = self._complement.shortest(self._complement.start)
        return draw_sentence(
            self._complement, source, max_size=max(self._max_size, shortest + EXTRA_SIZE)
        )

    def _edit(self, source: Source, text: str) -> str:
        kind = source.below(6)
        at = _below(source, len(text) + 1)
        if kind == 0:
            return text[:at]
        if kind == 1:
            return text[:at] + self._wrong_char(source, text, at) + text[at:]
        if kind == 2:
            return text[:at] + self._wrong_char(source, text, at) + text[at + 1 :]
        end = min(len(text), at + 1 + source.below(3))
        if kind == 3:
            return text[:at] + text[end:]
        if kind == 4:
            return text[:end] + text[at:end] + text[end:]
        return text[:at] + text[at + 1 : end + 1] + text[at : at + 1] + text[end + 1 :]

    def _wrong_char(self, source: Source, text: str, at: int) -> str:
        """A character that ends every sentence there, if one does, or one of the text's own."""
        if text and source.below(2):
            return text[_below(source, len(text))]
        state = self._paths.states(text[:at])[-1]
        wrong = outside(tuple(r for arc in self._paths.arcs(state) for r in arc.ranges))
        return source.char(wrong or ANY)
