"""Rows of token ids, each followed by a matcher, for loops that say only what the rows are now.

A loop that runs somewhere else (`transformers.generate`) shows its rows at every step and nothing
more: beams change places and come twice, drafts are taken back, rows that are over are filled up.
So where a row stands is worked out from its ids alone.

Nouns:
  answer   the ids of a row after its prompt.
  filler   what a loop puts behind a row that is over: the padding token, or an end of sequence.
  track    an answer and the matcher that took it. It is *open* while text may follow, *ended* once
           the answer has an end of sequence or a filler, *lost* from the first token that its mask
           forbids.

Cost: rows that grew in their places are one comparison of arrays, a copy of what is new and one
`accept` each. Otherwise each row goes on from the track that shares most with it: a rollback to
where they part, and a fork when two rows go on from one track (a fork copies 4 bytes a token).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grammaton._core import same_rows
from grammaton.engine.forced import SupportsMatching

Ids: TypeAlias = "NDArray[np.int64]"
"""Token ids, shape `(B, L)`."""


_MORE = 64
"""Columns of room for more tokens, at least."""


class BranchingMatcher(SupportsMatching, Protocol):
    """A matcher that can be copied; `grammaton.index.Matcher` is one."""

    def fork(self) -> BranchingMatcher: ...
    @property
    def is_finished(self) -> bool: ...


class Constraining(Protocol):
    """What makes matchers; `grammaton.index.Constraint` is one."""

    def matcher(self) -> BranchingMatcher: ...


class Track:
    """One answer, token by token.

    Args:
        matcher: at its start; None when any text will do.
        ends: ids that end a sequence.
        fillers: ids that may stand behind an answer, those among them.
        size: ids from this one on are unknown to the matcher.

    Attributes:
        length: tokens of the answer.
        ended: tokens in front of the one that ended the answer; None while there is none.
        is_complete: whether the answer ended where its text may.
        lost: the place of the first token that was forbidden; None while there is none.
    """

    __slots__ = (
        "_accepted",
        "_ends",
        "_fillers",
        "_size",
        "_tail",
        "ended",
        "is_complete",
        "length",
        "lost",
        "matcher",
    )

    def __init__(
        self,
        matcher: BranchingMatcher | None,
        *,
        ends: frozenset[int],
        fillers: frozenset[int],
        size: int,
    ) -> None:
        self.matcher = matcher
        self._ends = ends
        self._fillers = fillers
        self._size = size
        self._accepted = 0
        self._tail: int | None = None
        self.length = 0
        self.ended: int | None = None
        self.is_complete = False
        self.lost: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether a mask says what comes next."""
        return self.ended is None and self.lost is None

    def extend(self, tokens: Sequence[int]) -> None:
        """Takes the next tokens of the answer, whatever they are."""
        for token in tokens:
            if self.is_open:
                self._take(token)
            elif self.lost is None and not self._is_filler(token):
                self.lost = self.length
            self.length += 1

    def _take(self, token: int) -> None:
        matcher = self.matcher
        if matcher is None:
            if token in self._ends:
                self.ended, self.is_complete = self.length, True
        elif 0 <= token < self._size and matcher.accept(token):
            self._accepted += 1
            if matcher.is_finished:
                self.ended, self.is_complete = self.length, True
        elif token in self._fillers:
            self.ended = self.length
        else:
            self.lost = self.length

    def _is_filler(self, token: int) -> bool:
        """Whether the token goes on filling: with known fillers, or always the same other token."""
        if token in self._fillers:
            return True
        if self._tail is None:
            self._tail = token
        return token == self._tail

    def retreat(self, length: int) -> None:
        """Takes back all but the first `length` tokens."""
        if length >= self.length:
            return
        if self.matcher is not None and self._accepted > length:
            self.matcher.rollback(self._accepted - length)
            self._accepted = length
        if self.lost is not None and self.lost >= length:
            self.lost = None
        if self.ended is not None and self.ended >= length:
            self.ended, self.is_complete = None, False
        # Which of the fillers are left is not known, so the next one may be any again.
        self._tail = None
        self.length = length

    def fork(self) -> Track:
        """A track of its own with the same answer."""
        other = Track(
            None if self.matcher is None else self.matcher.fork(),
            ends=self._ends,
            fillers=self._fillers,
            size=self._size,
        )
        other._accepted, other._tail = self._accepted, self._tail
        other.length, other.ended = self.length, self.ended
        other.is_complete, other.lost = self.is_complete, self.lost
        return other


class Rows:
    """The tracks of a batch.

    Args:
        ids: the rows as they are first seen.
        prompt_length: columns that belong to the prompts.
        group: so many neighbours share a constraint and may change places.
        start: makes the track of an empty answer, given the row.

    Attributes:
        tracks: one a row.
    """

    def __init__(
        self, ids: Ids, *, prompt_length: int, group: int, start: Callable[[int], Track]
    ) -> None:
        self.prompt_length = prompt_length
        self._group = group
        self._room: Ids = np.empty((ids.shape[0], 0), dtype=np.int64)
        self._keep(ids[:, :prompt_length], 0)
        self.tracks = [start(row) for row in range(ids.shape[0])]
        self._grow(ids)

    @property
    def ids(self) -> Ids:
        """The rows as they were last seen."""
        return self._room[:, : self._length]

    def follow(self, ids: Ids, *, same_prompts: bool) -> bool:
        """Brings the tracks to where the rows are now; False, and nothing changes, where `ids`
        can't be the same rows at another moment.

        Args:
            ids: shape `(B, L)`.
            same_prompts: whether they must begin with the same prompts.
        """
        count, length = ids.shape
        if count != len(self.tracks) or length < self.prompt_length:
            return False
        known = self._length
        if length >= known and same_rows(ids, self._room, known):
            self._grow(ids)
            return True
        if same_prompts and not same_rows(ids, self._room, self.prompt_length):
            return False
        old, new = self.ids[:, self.prompt_length :], ids[:, self.prompt_length :]
        for first in range(0, count, self._group):
            self._reassign(range(first, first + self._group), old, new)
        self._keep(ids, 0)
        return True

    def _grow(self, ids: Ids) -> None:
        known = self._length
        if ids.shape[1] == known:
            return
        for track, tokens in zip(self.tracks, ids[:, known:].tolist(), strict=True):
            track.extend(tokens)
        self._keep(ids, known)

    def _keep(self, ids: Ids, known: int) -> None:
        """Copies the rows from column `known` on, into room for as many columns again."""
        count, length = ids.shape
        if length > self._room.shape[1]:
            self._room = np.empty((count, 2 * length + _MORE), dtype=np.int64)
            known = 0
        self._room[:, known:length] = ids[:, known:]
        self._length = length

    def _reassign(self, rows: range, old: Ids, new: Ids) -> None:
        places = {old[row].tobytes(): row for row in reversed(rows)}
        taken: set[int] = set()
        sources: list[tuple[Track, int]] = []
        for row in rows:
            answer = new[row]
            # A beam grows by one token, so its source is nearly always found by its bytes.
            source = places.get(answer[:-1].tobytes())
            shared = old.shape[1]
            if source is None:
                lengths = [_common(old[other], answer) for other in rows]
                shared = max(lengths)
                source = rows[lengths.index(shared)]
            track = self.tracks[source]
            # Every fork is made before any track moves.
            sources.append((track.fork() if source in taken else track, shared))
            taken.add(source)
        for row, (track, shared) in zip(rows, sources, strict=True):
            track.retreat(shared)
            track.extend(new[row, shared:].tolist())
            self.tracks[row] = track


def _common(a: Ids, b: Ids) -> int:
    """How many ids two answers share at their start."""
    size = min(a.shape[0], b.shape[0])
    differ = np.flatnonzero(a[:size] != b[:size])
    return int(differ[0]) if differ.size else size
