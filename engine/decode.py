"""The decode loop: from requests to answers, one forward pass a step.

A *request* is a prompt with what constrains and ends its answer. A *row* is a request being
answered: its tokens, its text, its matcher, and `pending`, the tokens chosen but not yet run
through the model. One step of the loop is

    submit the row's token to the worker  ->  forward pass  ->  wait for the mask  ->  choose

so the mask of a step is worked out while the pass that gives its logits runs, and the first mask
while the prompt is prefilled. The loop serves any number of rows; a stream is a batch of one.

Forced tokens are pending without being chosen. With `canonical` they join the chosen token's own
pass: the loop waits for the worker to know them, before the pass, and that wait is counted. With
`exact` a token is forced when its mask has one bit, which is known only when the mask is; the loop
does not wait, and they go through the model together in the pass after. A batch runs as many
pending tokens a pass as its shortest row has, so that no row needs padding.

Whether the worker happened to be early never changes what is run, except that a text which can only
end is ended at once: the same seed gives the same passes and the same answer.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from grammaton.engine.forced import Spell, SupportsMatching
from grammaton.engine.kv import CachedModel
from grammaton.engine.masking import apply_mask, mask_of
from grammaton.engine.options import SupportsCancel
from grammaton.engine.result import FinishReason, Generation, Metrics
from grammaton.engine.sampling import Sampler, Sampling
from grammaton.engine.text import TextStream
from grammaton.engine.worker import ForcedMode, MaskJob, MaskWorker

if TYPE_CHECKING:
    from grammaton.grammar.grammar import Grammar


class SupportsConstraint(Protocol):
    """What the engine needs of a constraint; `grammaton.index.Constraint` is one."""

    def matcher(self) -> SupportsMatching: ...


class SupportsVocabulary(Protocol):
    """What the loop needs of a vocabulary; `grammaton.index.Vocabulary` is one."""

    @property
    def eos_token_ids(self) -> tuple[int, ...]: ...
    @property
    def mask_words(self) -> int: ...
    def token_bytes(self, token_id: int) -> bytes: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to answer.

    Attributes:
        prompt: token ids, at least one.
        constraint: what the answer must satisfy; None for nothing.
        sampling: how tokens are chosen.
        max_tokens: most tokens of the answer, at least 1.
        stops: texts that end the answer.
        compile_time: seconds that making the constraint took.
        grammar: what the constraint was made of, where the caller gave that.
    """

    prompt: Sequence[int]
    constraint: SupportsConstraint | None
    sampling: Sampling
    max_tokens: int
    stops: Sequence[str] = ()
    compile_time: float = 0.0
    grammar: Grammar | None = None


@dataclass(kw_only=True)
class _Row:
    """A request being answered."""

    request: Request
    index: int
    matcher: SupportsMatching | None
    sampler: Sampler
    stream: TextStream
    metrics: Metrics
    tokens: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    job: MaskJob | None = None
    must_end: bool = False
    may_end: bool = True
    temperature: float | None = None
    last_time: float = 0.0
    result: Generation | None = None

    @property
    def room(self) -> int:
        return self.request.max_tokens - len(self.tokens)


class Run:
    """Answers a batch of requests, once.

    Args:
        model: the model, with an empty cache.
        vocabulary: its tokens.
        requests: at least one.
        forced: which forced tokens are appended without sampling.
        spell: the tokenizer's tokens of a text, empty when they do not spell it exactly.
        cancel: checked before every forward pass; None never cancels.
        started: when the call began, by `time.perf_counter`.
    """

    def __init__(
        self,
        model: CachedModel,
        vocabulary: SupportsVocabulary,
        requests: Sequence[Request],
        *,
        forced: ForcedMode,
        spell: Spell,
        cancel: SupportsCancel | None,
        started: float,
    ) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._eos = frozenset(vocabulary.eos_token_ids)
        self._forced: ForcedMode = forced
        self._spell = spell
        self._cancel = cancel
        self._started = started
        # Pinned, so that a GPU copies a mask without the CPU standing still.
        self._buffer = torch.zeros(
            (len(requests), vocabulary.mask_words),
            dtype=torch.int32,
            pin_memory=model.device.type == "cuda",
        )
        self._rows = [
            _Row(
                request=request,
                index=index,
                matcher=None if request.constraint is None else request.constraint.matcher(),
                sampler=Sampler(request.sampling, prompt=request.prompt),
                stream=TextStream(request.stops),
                metrics=Metrics(
                    prompt_tokens=len(request.prompt), compile_time=request.compile_time
                ),
            )
            for index, request in enumerate(requests)
        ]

    @property
    def results(self) -> list[Generation]:
        """The answers, in the order of the requests; of a run that is over."""
        return [row.result for row in self._rows if row.result is not None]

    def pieces(self) -> Generator[tuple[int, str], None, None]:
        """Runs to the end, giving (index of the request, piece of its text) as they come.

        Nothing is raised for a row that fails: its result says `error`. What stops the whole run
        (the model failing) is an error of every row that was still being answered. Closing the
        iterator cancels.
        """
        eos_mask = mask_of(self._eos, self._vocabulary.mask_words)
        try:
            with MaskWorker(
                self._buffer.numpy(), eos_mask=eos_mask, forced=self._forced, spell=self._spell
            ) as worker:
                yield from self._loop(worker)
        except Exception as error:
            for row in self._rows:
                yield from self._finish(row, "error", error=error)
        finally:
            self.cancel_all()

    def cancel_all(self) -> None:
        """Ends every row that is still being answered as cancelled."""
        for row in self._rows:
            for _ in self._finish(row, "cancelled"):
                pass

    def _loop(self, worker: MaskWorker) -> Iterator[tuple[int, str]]:
        active = list(self._rows)
        for row in active:
            self._submit(worker, row, token=None)
        is_prefill = True
        while True:
            for row in active:
                yield from self._guarded(row, self._before_pass(row))
            kept = [place for place, row in enumerate(active) if row.result is None]
            active = [active[place] for place in kept]
            if self._cancel is not None and self._cancel.is_set():
                for row in active:
                    yield from self._finish(row, "cancelled")
                return
            if not active:
                return
            if is_prefill:
                logits = self._model.prefill(
                    [[*row.request.prompt, *row.pending] for row in active]
                )
                is_prefill = False
                size = max(len(row.pending) for row in active)
            else:
                self._model.keep(kept)
                size = min(len(row.pending) for row in active)
                logits = self._model.extend([row.pending[:size] for row in active])
            for place, row in enumerate(active):
                del row.pending[:size]
                row.metrics.forward_passes += 1
                if not row.pending:
                    yield from self._guarded(row, self._after_pass(worker, row, logits[place]))

    def _guarded(self, row: _Row, work: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """One row's work; its failure ends that row alone."""
        try:
            yield from work
        except Exception as error:
            yield from self._finish(row, "error", error=error)

    def _submit(self, worker: MaskWorker, row: _Row, *, token: int | None) -> None:
        if row.matcher is not None:
            room = row.room - (token is not None)
            row.job = worker.submit(row.matcher, row=row.index, token=token, room=room)

    def _collect(self, row: _Row, job: MaskJob) -> None:
        """Waits for the row's mask, which stays in the buffer until the next job."""
        row.job = None
        job.wait_done()
        row.metrics.mask_times.append(job.seconds)
        row.metrics.mask_waits.append(job.waited)
        row.metrics.mask_cpu_times.append(job.cpu_seconds)
        if job.error is not None:
            raise job.error
        row.must_end = job.only_eos
        row.may_end = job.is_complete
        row.temperature = job.temperature

    def _before_pass(self, row: _Row) -> Iterator[tuple[int, str]]:
        """Joins forced tokens to the pass, or ends the row if it is known to be over."""
        job = row.job
        if job is not None:
            if self._forced == "canonical":
                job.wait_advanced()
                forced, job.forced = job.forced, []
                yield from self._append(row, forced, sampled=False)
            # Asked in this order: a job that is done has its forced tokens set.
            if (job.is_done or not row.room) and not job.forced:
                self._collect(row, job)
        if row.must_end:
            yield from self._finish(row, "grammar")
        elif not row.room:
            yield from self._finish(row, "length")

    def _after_pass(
        self, worker: MaskWorker, row: _Row, logits: Tensor
    ) -> Iterator[tuple[int, str]]:
        """Appends what the mask leaves no choice about, or chooses a token."""
        job = row.job
        if job is not None:
            self._collect(row, job)
            yield from self._append(row, job.forced, sampled=False)
            if job.forced or row.must_end:
                return
        token = self._choose(row, logits)
        # Where the text can't end yet, an end of sequence is a token that the grammar names.
        if token in self._eos and row.may_end:
            row.tokens.append(token)
            self._count(row, sampled=True)
            yield from self._finish(row, "eos")
            return
        self._submit(worker, row, token=token)
        yield from self._append(row, [token], sampled=True)

    def _choose(self, row: _Row, logits: Tensor) -> int:
        with torch.inference_mode():
            scores = row.sampler.penalized(logits)
            if row.matcher is None:
                scores = scores[: len(self._vocabulary)]
            else:
                mask = self._buffer[row.index].to(scores.device, non_blocking=True)
                scores = apply_mask(scores, mask)
            return row.sampler.choose(scores, temperature=row.temperature)

    def _append(
        self, row: _Row, tokens: Sequence[int], *, sampled: bool
    ) -> Iterator[tuple[int, str]]:
        for token in tokens:
            row.tokens.append(token)
            row.pending.append(token)
            row.sampler.record(token)
            self._count(row, sampled=sampled)
            piece = row.stream.push(self._vocabulary.token_bytes(token))
            if piece:
                yield row.index, piece
            if row.stream.stopped_by is not None:
                yield from self._finish(row, "stop")
                return

    def _count(self, row: _Row, *, sampled: bool) -> None:
        now = perf_counter()
        metrics = row.metrics
        if metrics.ttft is None:
            metrics.ttft = now - self._started
        else:
            metrics.itls.append(now - row.last_time)
        row.last_time = now
        metrics.completion_tokens += 1
        if sampled:
            metrics.sampled_tokens += 1
        else:
            metrics.forced_tokens += 1

    def _finish(
        self, row: _Row, reason: FinishReason, *, error: Exception | None = None
    ) -> Iterator[tuple[int, str]]:
        """Makes the row's result, unless it has one, and gives the last piece of its text."""
        if row.result is not None:
            return
        piece = "" if reason == "stop" else row.stream.finish()
        row.metrics.end_to_end = perf_counter() - self._started
        row.result = Generation(
            text=row.stream.text,
            token_ids=row.tokens,
            finish_reason=reason,
            is_complete=_is_complete(row, reason),
            stopped_by=row.stream.stopped_by,
            error=error,
            metrics=row.metrics,
            grammar=row.request.grammar,
            captures=_captures(row),
        )
        if piece:
            yield row.index, piece


def _captures(row: _Row) -> dict[str, list[bytes]]:
    """What captured rules of the row's grammar matched; the row's matcher may be at work."""
    constraint = row.request.constraint
    if not getattr(constraint, "has_captures", False):
        return {}
    matcher: Any = constraint.matcher()  # type: ignore[union-attr]
    for token in row.tokens:
        matcher.accept(token)
    captures: dict[str, list[bytes]] = matcher.captures()
    return captures


def _is_complete(row: _Row, reason: FinishReason) -> bool:
    if reason in ("grammar", "eos"):
        return True
    if reason == "error":
        return False
    constraint = row.request.constraint
    if constraint is None:
        return reason == "stop"
    matcher = constraint.matcher()
    if reason == "stop":  # which may have cut inside a token, so the text is asked
        return matcher.accept_bytes(row.stream.text.encode()) and matcher.is_complete
    return all(map(matcher.accept, row.tokens)) and matcher.is_complete
