"""From a deterministic automaton over classes of characters to terms.

States that no match can be reached from are dropped, like ones merged (Moore's refinement), and the
rest are eliminated one by one, the cheapest first, each of its ways through becoming a way between
its neighbours (Kleene's theorem).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammaton.grammar.lark.needs import Pieces
from grammaton.grammar.lark.preference import Table, TooIntricate
from grammaton.grammar.regex.ranges import Ranges, unite

if TYPE_CHECKING:
    from grammaton._core import TermStore

MAX_ELIMINATED = 200
"""States left after like ones were merged."""


def table_pieces(store: TermStore, table: Table, parts: list[Ranges]) -> Pieces:
    """The texts that a table matches, by what they need.

    Raises:
        TooIntricate: more than `MAX_ELIMINATED` states.
    """
    live = _live(table)
    if not live:
        return {}
    groups = _merged(table, live)
    if len(set(groups.values())) > MAX_ELIMINATED:
        raise TooIntricate(f"it has more than {MAX_ELIMINATED} states")
    ways: dict[object, dict[object, int]] = {"start": {groups[0]: store.EMPTY}}
    ends = sorted({needs for state in live for needs in table.matches[state]}, key=repr)
    for state in sorted(live):
        here = groups[state]
        if here in ways:
            continue
        ways[here] = {}
        targets: dict[int, list[Ranges]] = {}
        for part, to in table.moves[state].items():
            if to in live:
                targets.setdefault(groups[to], []).append(parts[part])
        for to, sets in targets.items():
            ways[here][to] = store.chars(unite(*sets))
        for needs in table.matches[state]:
            ways[here]["end", needs] = store.EMPTY
    _eliminate(store, ways, sorted(set(groups.values())))
    found = {(table.before, needs): ways["start"].get(("end", needs)) for needs in ends}
    return {key: term for key, term in found.items() if term is not None}


def _eliminate(store: TermStore, ways: dict[object, dict[object, int]], states: list[int]) -> None:
    into: dict[object, set[object]] = {}
    for source, targets in ways.items():
        for to in targets:
            into.setdefault(to, set()).add(source)
    left = set(states)
    while left:
        state = min(left, key=lambda each: (len(into.get(each, ())) * len(ways[each]), each))
        left.discard(state)
        out = ways.pop(state)
        loop = out.pop(state, None)
        star = store.EMPTY if loop is None else store.repeat(loop, 0, None)
        sources = into.pop(state, set()) - {state}
        for to in out:
            into[to].discard(state)
        for source in sources:
            first = ways[source].pop(state)
            for to, last in out.items():
                way = store.concat([first, star, last])
                known = ways[source].get(to)
                ways[source][to] = way if known is None else store.union([known, way])
                into[to].add(source)


def _live(table: Table) -> set[int]:
    """The states that a match can be reached from."""
    sources: dict[int, list[int]] = {}
    for state, moves in enumerate(table.moves):
        for to in moves.values():
            sources.setdefault(to, []).append(state)
    live = {state for state, needs in enumerate(table.matches) if needs}
    queue = list(live)
    while queue:
        for source in sources.get(queue.pop(), ()):
            if source not in live:
                live.add(source)
                queue.append(source)
    return live if 0 in live else set()


def _merged(table: Table, live: set[int]) -> dict[int, int]:
    """A group for each live state: those in one group match the same from there on."""
    kinds: dict[object, int] = {}
    groups = {state: kinds.setdefault(table.matches[state], len(kinds)) for state in live}
    while True:
        found: dict[object, int] = {}
        finer = {}
        for state in sorted(live):
            moves = table.moves[state]
            row = tuple(sorted((part, groups[to]) for part, to in moves.items() if to in live))
            finer[state] = found.setdefault((groups[state], row), len(found))
        if len(found) == len(set(groups.values())):
            return finer
        groups = finer
