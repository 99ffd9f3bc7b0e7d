"""The thread that works out masks while the device runs the model.

A *job* is one step of one sequence: take the token just chosen, take what the grammar forces after
it, and fill the mask of the place reached. The decode loop submits it, starts the forward pass, and
comes back for the result when it has logits; by then the job is nearly always done. One thread
serves all rows of a batch, so a matcher is never used by two threads, and jobs run in the order
they were submitted.

Two moments can be waited for: `advanced`, when canonical forced tokens are known, and `done`, when
the mask is filled too. Whatever a job raises is kept and raised again in the loop, for its row
alone.

A job is timed by two clocks. Its wall-clock time has in it the waits for the interpreter lock,
which the loop holds between the operations of a forward pass; its CPU time is the matcher's work
alone, without the handover between the threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from time import perf_counter, thread_time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grammaton.engine.forced import Spell, SupportsMatching, take_canonical
from grammaton.errors import TokenRejected

ForcedMode = Literal["off", "exact", "canonical"]
"""`exact`: tokens that are the only one allowed; `canonical`: the tokenizer's, for forced text."""


class MaskJob:
    """One step of one row, and what came of it.

    Attributes:
        forced: tokens the grammar forced, already taken by the matcher.
        is_complete: whether the text may end here.
        only_eos: whether it can do nothing but end.
        temperature: what the grammar asks for the next token; None where it says nothing.
        seconds: wall-clock time of the job, waiting in the queue not counted.
        cpu_seconds: CPU time of the job.
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
        self.temperature: float | None = None
        self.seconds = 0.0
        self.cpu_seconds = 0.0
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
        spell: the tokenizer's tokens of a text, empty when they do not spell it exactly.
    """

    def __init__(
        self,
        buffer: NDArray[np.int32],
        *,
        eos_mask: NDArray[np.int32],
        forced: ForcedMode,
        spell: Spell,
    ) -> None:
        self._buffer = buffer
        self._spell = spell
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
                self._advance(job)
                job._advanced.set()
                self._fill(job)
            except Exception as error:
                job.error = error
            job.seconds = perf_counter() - start
            job._advanced.set()
            job._done.set()

    def _advance(self, job: MaskJob) -> None:
        start, matcher = thread_time(), job.matcher
        if job.token is not None:
            _take(matcher, [job.token])
        if self._forced == "canonical":
            job.forced = take_canonical(matcher, self._spell, room=job.room)
        job.cpu_seconds += thread_time() - start

    def _fill(self, job: MaskJob) -> None:
        start, matcher = thread_time(), job.matcher
        matcher.fill_mask(self._buffer, job.row)
        if self._forced == "exact" and job.room > 0:
            # After the mask is filled: the matcher has then only to look at it.
            job.forced = matcher.forced_tokens()[: job.room]
            if job.forced:
                _take(matcher, job.forced)
                matcher.fill_mask(self._buffer, job.row)
        job.is_complete = matcher.is_complete
        job.temperature = getattr(matcher, "temperature", None)
        job.only_eos = job.is_complete and not (self._buffer[job.row] & self._not_eos).any()
        job.cpu_seconds += thread_time() - start


def _take(matcher: SupportsMatching, tokens: Sequence[int]) -> None:
    for token in tokens:
        if not matcher.accept(token):
            raise TokenRejected(f"token {token} is forbidden by the mask it was chosen under")
