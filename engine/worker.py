"""The thread that works out masks while the device runs the model.

A *job* is one step of one sequence: take the token just chosen, take what the grammar forces after
it, and fill the mask of the place reached. The decode loop submits it, starts the forward pass, and
comes back for the result when it has logits; by then the job is nearly always done. One thread
serves all rows of a batch, so a matcher is never used by two threads, and jobs run in the order
they were submitted.

Two moments can be waited for: `advanced`, when the forced tokens are known, and `done`, when the
mask is filled too. Whatever a job raises is kept and raised again in the loop, for its row alone.

A handover costs about 30 us of queueing on top of the matcher's own time; a matcher call releases
the GIL, and so do the torch calls beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from time import perf_counter
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from grammaton.errors import TokenRejected

ForcedMode = Literal["off", "exact", "canonical"]
"""`exact`: tokens that are the only one allowed; `canonical`: the usual tokens of forced text."""


class SupportsMatching(Protocol):
    """What the engine needs of a matcher; `grammaton.index.Matcher` is one."""

    def fill_mask(self, out: NDArray[np.int32], row: int = 0) -> None: ...
    def accept(self, token_id: int) -> bool: ...
    def accept_bytes(self, data: bytes) -> bool: ...
    def forced_tokens(self, *, mode: Literal["exact", "canonical"] = "exact") -> list[int]: ...
    @property
    def is_complete(self) -> bool: ...


class MaskJob:
    """One step of one row, and what came of it.

    Attributes:
        forced: tokens the grammar forced, already taken by the matcher.
        is_complete: whether the text may end here.
        only_eos: whether it can do nothing but end.
        seconds: time of the job, waiting in the queue not counted.
        waited: seconds the loop stood still for it.
        error: what it raised.
    """

    def __init__(
        self, matcher: SupportsMatching, *, row: int, token: int | None, room: int
    ) -> None:
        self.matcher = matcher
        self.row = row
        self.token = token
        self.room = room
        self.forced: list[int] = []
        self.is_complete = False
        self.only_eos = False
        self.seconds = 0.0
        self.waited = 0.0
        self.error: Exception | None = None
        self._advanced = threading.Event()
        self._done = threading.Event()

    @property
    def is_done(self) -> bool:
        """Whether the mask is filled, without waiting."""
        return self._done.is_set()

    def wait_advanced(self) -> None:
        """Waits until the forced tokens are known."""
        self._wait(self._advanced)

    def wait_done(self) -> None:
        """Waits until the mask is filled."""
        self._wait(self._done)

    def _wait(self, event: threading.Event) -> None:
        if not event.is_set():
            start = perf_counter()
            event.wait()
            self.waited += perf_counter() - start


class MaskWorker:
    """Runs jobs on a thread of its own; use it as a context manager.

    Args:
        buffer: int32 `(B, W)`; a job writes the row it names.
        eos_mask: int32 `(W,)`, the bits of the ids that end a sequence.
        forced: which forced tokens a job takes.
    """

    def __init__(
        self, buffer: NDArray[np.int32], *, eos_mask: NDArray[np.int32], forced: ForcedMode
    ) -> None:
        self._buffer = buffer
        self._not_eos = ~eos_mask
        self._forced: ForcedMode = forced
        self._queue: SimpleQueue[MaskJob | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="grammaton-mask", daemon=True)

    def __enter__(self) -> MaskWorker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.put(None)
        self._thread.join()

    def submit(
        self, matcher: SupportsMatching, *, row: int, token: int | None, room: int
    ) -> MaskJob:
        """Queues a step.

        Args:
            matcher: the row's matcher, not to be touched until the job is done.
            row: row of the buffer.
            token: the token to take; None for the mask of the start.
            room: how many forced tokens the answer still has room for.
        """
        job = MaskJob(matcher, row=row, token=token, room=room)
        self._queue.put(job)
        return job

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            start = perf_counter()
            try:
                self._run(job)
            except Exception as error:
                job.error = error
            job.seconds = perf_counter() - start
            job._advanced.set()
            job._done.set()

    def _run(self, job: MaskJob) -> None:
        matcher = job.matcher
        if job.token is not None:
            _take(matcher, [job.token])
        if self._forced != "off" and job.room > 0:
            job.forced = matcher.forced_tokens(mode=self._forced)[: job.room]
            _take(matcher, job.forced)
        job._advanced.set()
        matcher.fill_mask(self._buffer, job.row)
        job.is_complete = matcher.is_complete
        job.only_eos = job.is_complete and not (self._buffer[job.row] & self._not_eos).any()


def _take(matcher: SupportsMatching, tokens: Sequence[int]) -> None:
    for token in tokens:
        if not matcher.accept(token):
            raise TokenRejected(f"token {token} is forbidden by the mask it was chosen under")
