"""A grammar as a machine over characters: what may follow, and the automaton of all positions.

The core steps over bytes. What a person wants to see is characters, so this walks the bytes of one
at once: a *transition* is a range of code points that lead to one *position*, a matcher at the end
of a whole character. Positions are compared by `Matcher.state`.

The machine is that of the library itself, on a vocabulary in which every byte is a token; there is
no second implementation here that could disagree. Cost: a transition table takes some hundred
microseconds for a wide character class, less for others.
"""

from __future__ import annotations

from typing import NamedTuple

from grammaton._core import Constraint, Matcher
from grammaton.errors import LimitExceeded
from grammaton.grammar.grammar import Grammar
from grammaton.index import Vocabulary, compile

_END = 256
_LEADS = ((0xC2, 0xDF, 1, 0x1F), (0xE0, 0xEF, 2, 0x0F), (0xF0, 0xF4, 3, 0x07))
"""First bytes of characters beyond ASCII: low, high, bytes that follow, bits of the character."""


class Transition(NamedTuple):
    """The characters from `low` to `high`, both included, lead to `target`.

    Matchers of transitions are shared: fork one before moving it.
    """

    low: int
    high: int
    target: Matcher


class CharacterMachine:
    """Positions of a grammar between whole characters.

    Args:
        grammar: any grammar.

    Raises:
        UnsatisfiableGrammar: it has no text.
        GrammarError, LimitExceeded: as `grammaton.compile`.
    """

    def __init__(self, grammar: Grammar) -> None:
        tokens = [bytes([byte]) for byte in range(256)]
        vocabulary = Vocabulary([*tokens, b""], eos_token_ids=_END)
        self.constraint: Constraint = compile(grammar, vocabulary)
        self._inside: dict[tuple[int, int], list[Transition]] = {}

    def start(self) -> Matcher:
        """The position before the first character."""
        return self.constraint.matcher()

    def follow(self, text: bytes) -> tuple[int, Matcher]:
        """How far a text goes.

        Returns:
            The number of bytes that begin some text of the grammar, and the position before the
            character that the first byte too many belongs to (after the last one if there is none).
            A text that is cut within a character ends, for the position, before it.
        """
        matcher = self.start()
        count = 0
        while count < len(text) and matcher.accept(text[count]):
            count += 1
        matcher.rollback(_open_bytes(text[:count]))
        return count, matcher

    def transitions(self, position: Matcher) -> list[Transition]:
        """What leads on from a position, in the order of code points; neighbours are merged."""
        found: list[Transition] = []
        for low, high, more, bits in ((0, 0x7F, 0, 0x7F), *_LEADS):
            for byte in range(low, high + 1):
                target = position.fork()
                if target.accept(byte):
                    _extend(found, (byte & bits) << (6 * more), self._rest(target, more))
        return found

    def _rest(self, position: Matcher, more: int) -> list[Transition]:
        """The last `more` bytes of a character, as offsets from 0."""
        if more == 0:
            return [Transition(0, 0, position)]
        known = self._inside.get((position.state, more))
        if known is None:
            known = []
            for byte in range(0x80, 0xC0):
                target = position.fork()
                if target.accept(byte):
                    _extend(known, (byte & 0x3F) << (6 * (more - 1)), self._rest(target, more - 1))
            self._inside[position.state, more] = known
        return known


def _open_bytes(text: bytes) -> int:
    """How many bytes of an unfinished character a text ends with."""
    for back in range(1, min(4, len(text)) + 1):
        if text[-back] & 0xC0 != 0x80:
            wanted = next((more for low, high, more, _ in _LEADS if low <= text[-back] <= high), 0)
            return back if back <= wanted else 0
    return 0


def _extend(found: list[Transition], offset: int, more: list[Transition]) -> None:
    for low, high, target in more:
        last = found[-1] if found else None
        if last and last.high + 1 == low + offset and last.target.state == target.state:
            found[-1] = Transition(last.low, high + offset, last.target)
        else:
            found.append(Transition(low + offset, high + offset, target))


Ranges = tuple[tuple[int, int], ...]
"""Inclusive ranges of code points, ascending."""


class Automaton(NamedTuple):
    """The smallest deterministic automaton over characters.

    States are numbered from 0, the start, in the order in which the shortest texts reach them.
    `accepting` are those in which a text may end; `edges` are (from, characters, to).
    """

    states: int
    accepting: tuple[int, ...]
    edges: tuple[tuple[int, Ranges, int], ...]


def automaton(machine: CharacterMachine, *, max_states: int) -> Automaton:
    """The automaton of a grammar.

    Args:
        machine: the grammar.
        max_states: how many positions may be met. A recursive grammar has infinitely many.

    Raises:
        LimitExceeded: there are more.
    """
    rows, accepting = _explore(machine, max_states)
    kind = [int(ends) for ends in accepting]
    while True:  # Moore: told apart by what is known of their targets, until nothing changes
        seen: dict[tuple[int, tuple[tuple[Ranges, int], ...]], int] = {}
        finer = [
            seen.setdefault((kind[i], _by_target(row, kind)), len(seen))
            for i, row in enumerate(rows)
        ]
        if len(seen) == len(set(kind)):
            break
        kind = finer
    number: dict[int, int] = {}
    edges: list[tuple[int, Ranges, int]] = []
    ends: list[int] = []
    queue = [0]
    number[kind[0]] = 0
    for state in queue:
        if accepting[state]:
            ends.append(number[kind[state]])
        for ranges, target in _by_target(rows[state], kind):
            if target not in number:
                number[target] = len(number)
                queue.append(kind.index(target))
            edges.append((number[kind[state]], ranges, number[target]))
    return Automaton(len(number), tuple(ends), tuple(edges))


_Row = list[tuple[int, int, int]]


def _explore(machine: CharacterMachine, max_states: int) -> tuple[list[_Row], list[bool]]:
    positions = [machine.start()]
    index = {positions[0].state: 0}
    rows: list[_Row] = []
    for position in positions:
        row: _Row = []
        for low, high, target in machine.transitions(position):
            if target.state not in index:
                if len(positions) == max_states:
                    raise LimitExceeded(
                        f"the automaton has more than {max_states} states: the grammar is "
                        "recursive, or too large to look at"
                    )
                index[target.state] = len(positions)
                positions.append(target)
            row.append((low, high, index[target.state]))
        rows.append(row)
    return rows, [position.is_complete for position in positions]


def _by_target(row: _Row, kind: list[int]) -> tuple[tuple[Ranges, int], ...]:
    """The ranges that lead to each class of states, in the order of their first characters."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for low, high, target in row:
        known = ranges.setdefault(kind[target], [])
        if known and known[-1][1] + 1 == low:
            known[-1] = known[-1][0], high
        else:
            known.append((low, high))
    return tuple((tuple(found), target) for target, found in ranges.items())
