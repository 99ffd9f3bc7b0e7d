"""Runs of neighbouring chunks of a text, as one term (`%regex {"substring_words": …}`).

The runs of n chunks are n²/2 texts; their suffix automaton has at most 2n states and 3n moves, and
it has no cycles, so it is a term of that size with shared parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammaton._core import TermStore


def substring_term(store: TermStore, chunks: Sequence[str]) -> int:
    """Every run of neighbouring chunks, the empty one too.

    Raises:
        LimitExceeded: too many chunks for terms nested in each other (some 1,000).
    """
    moves = _suffix_automaton(chunks)
    terms: dict[int, int] = {}
    stack = [0]
    while stack:
        state = stack[-1]
        missing = [to for to in moves[state].values() if to not in terms]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        ways = [
            store.concat([store.literal(chunk.encode()), terms[to]])
            for chunk, to in moves[state].items()
        ]
        terms[state] = store.union([store.EMPTY, *ways])
    return terms[0]


def _suffix_automaton(chunks: Sequence[str]) -> list[dict[str, int]]:
    """The moves of each state; every state may end. State 0 is the start."""
    moves: list[dict[str, int]] = [{}]
    link = [-1]
    length = [0]
    last = 0
    for chunk in filter(None, chunks):
        new = len(moves)
        moves.append({})
        length.append(length[last] + 1)
        link.append(0)
        at = last
        while at >= 0 and chunk not in moves[at]:
            moves[at][chunk] = new
            at = link[at]
        if at >= 0:
            to = moves[at][chunk]
            if length[to] == length[at] + 1:
                link[new] = to
            else:
                copy = len(moves)
                moves.append(dict(moves[to]))
                length.append(length[at] + 1)
                link.append(link[to])
                while at >= 0 and moves[at].get(chunk) == to:
                    moves[at][chunk] = copy
                    at = link[at]
                link[to] = link[new] = copy
        last = new
    return moves
