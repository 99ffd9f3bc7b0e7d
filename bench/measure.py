"""The worker of `bench compare`: one engine over all schemas, once, in one of three ways.

- *shared*: one vocabulary for all schemas, as in a server. Its caches are warmed first by walking a
  generic JSON text (that time is the engine's *vocabulary*), then by the schemas before. Each
  schema is compiled afresh, walked, and walked again on that constraint; constraints are all kept.
  Then it is compiled and walked once more, on the vocabulary that has *seen* it by then, and asked
  for twice of the engine's own cache of whole schemas, if there is one.
- *alone*: a new vocabulary for every schema, made as the engine makes one when a server starts
  (ours by `Vocabulary.prepare`), so that nothing else is cached for it. One walk.
- *masks*: not timed. Keeps the mask of every step in a file, has the schema's instances accepted
  or refused, and notes what each step did where the engine counts that.

Times are CPU seconds of the process, all threads together: one engine compiles on a thread of its
own, and its caller's time alone would hide that. For an engine of one thread it is the thread's CPU
time. A *step* is one accept and the mask after it. The *first mask* runs from the schema as Python
objects to the mask at its start.

Run by `bench.isolation`; a schema that fails or takes too long costs the process, and with it the
caches of the vocabulary and the memory so far.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from bench.isolation import REFUSED, do_items, peak_resident, resident
from bench.peers import PEERS, Driven, Mask, Peer, Refused, timed_steps
from bench.walks import EOS_TOKEN_ID, Walk, load, tokenizer_path, vocabulary

WAYS = ("shared", "alone", "masks")

GENERIC_SCHEMA = {"type": "object"}
GENERIC_TEXT = '{"a": ["é\\n", -1.5e+3, 12, true, false, null, {"b": {}}], "c": []}'


def main(arguments: Sequence[str] | None = None) -> None:
    """Does the schemas of `FOLDER/walks.json` that are named in `FOLDER/chosen.json`."""
    parser = argparse.ArgumentParser(description="The worker of `bench compare`.")
    parser.add_argument("way", choices=WAYS)
    add_worker_arguments(parser)
    options = parser.parse_args(arguments)
    walks = load(options.folder / "walks.json")
    worker = Worker(options.engine, compact=options.compact)
    if options.way == "alone":
        item: Callable[[int], dict[str, Any]] = lambda i: worker.alone(walks[i])  # noqa: E731
    else:
        worker.warm_vocabulary()
        if options.way == "shared":
            item = lambda i: worker.shared(walks[i])  # noqa: E731
        else:
            firsts = np.cumsum([0, *(len(walk.in_string) for walk in walks)])
            masks = open_masks(options.folder, options.engine, int(firsts[-1]), worker.words)
            item = lambda i: worker.masks(walks[i], masks[firsts[i] :])  # noqa: E731
    chosen = json.loads((options.folder / "chosen.json").read_text())
    gc.disable()
    do_items((partial(_tried, item, i) for i in chosen[options.first :]), out=options.out)


def add_worker_arguments(parser: argparse.ArgumentParser) -> None:
    """What every worker on one engine is told."""
    parser.add_argument("engine", choices=PEERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compact", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--first", type=int, required=True)


def _tried(item: Callable[[int], dict[str, Any]], i: int) -> dict[str, Any]:
    gc.collect()
    try:
        return item(i)
    except Refused as error:
        return {"failed": REFUSED, "why": str(error).split("\n")[0][:200]}


def open_masks(folder: Path, engine: str, rows: int, words: int) -> Mask:
    """The masks of all steps of an engine, one row each, in a file; made at the first call."""
    path = folder / f"{engine}.npy"
    if path.exists():
        kept: Mask = np.lib.format.open_memmap(path, mode="r+")
        return kept
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.int32, shape=(rows, words))


class Worker:
    """One engine with the vocabulary's tokens at hand."""

    def __init__(self, engine: str, *, compact: bool) -> None:
        source = vocabulary()
        self.tokens = [source.token_bytes(i) for i in range(len(source))]
        self.words = source.mask_words
        self._special = source.special_tokens
        self._make = PEERS[engine]
        self._compact = compact
        self._out = np.zeros(self.words, dtype=np.int32)
        self._kept: list[Any] = []
        self._resident = resident()
        self._peer: Peer | None = None
        self._vocabulary_seconds = 0.0
        if engine == "grammaton":  # a deeper import than the first `Grammar` would pay for
            import grammaton.grammar.json_schema  # noqa: F401

    def new_peer(self) -> Peer:
        """The engine with a vocabulary that nothing was done with."""
        return self._make(self.tokens, self._special, self._compact)

    def warm_vocabulary(self) -> None:
        """Makes the shared vocabulary and walks the generic text once."""
        text = GENERIC_TEXT
        if self._compact:
            text = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
        tokenizer = Tokenizer.from_file(str(tokenizer_path()))
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        start = time.process_time()
        self._peer = self.new_peer()
        sequence = self._peer.start(self._peer.compile(GENERIC_SCHEMA), self._out)
        for _ in _fills(sequence, ids):
            pass
        self._vocabulary_seconds = time.process_time() - start

    def shared(self, walk: Walk) -> dict[str, Any]:
        """Times of a fresh constraint, of a second walk on it, and of another fresh one."""
        assert self._peer is not None
        constraint, first, steps = self._timed(self._peer, walk)
        again = timed_steps(self._peer.start(constraint, self._out), walk.token_ids)
        self._kept.append(constraint)
        memory = peak_resident() - self._resident
        _, seen_first, seen_steps = self._timed(self._peer, walk)
        return self._kept_first(self._peer, walk) | {
            "first": first,
            "steps": steps,
            "again": again,
            "seen first": seen_first,
            "seen steps": seen_steps,
            "vocabulary": self._vocabulary_seconds,
            "memory": memory,
        }

    def _kept_first(self, peer: Peer, walk: Walk) -> dict[str, float]:
        if peer.lookup is None:
            return {}
        peer.start(peer.lookup(walk.schema), self._out).fill()
        start = time.process_time()
        peer.start(peer.lookup(walk.schema), self._out).fill()
        return {"kept first": time.process_time() - start}

    def alone(self, walk: Walk) -> dict[str, Any]:
        """Times of a fresh constraint on a vocabulary of its own."""
        _, first, steps = self._timed(self.new_peer(), walk)
        return {"first": first, "steps": steps, "memory": peak_resident() - self._resident}

    def _timed(self, peer: Peer, walk: Walk) -> tuple[Any, float, list[float]]:
        start = time.process_time()
        constraint = peer.compile(walk.schema)
        sequence = peer.start(constraint, self._out)
        sequence.fill()
        first = time.process_time() - start
        return constraint, first, timed_steps(sequence, walk.token_ids)

    def masks(self, walk: Walk, rows: Mask) -> dict[str, Any]:
        """The masks of a walk, what each step did, and which instances are judged right.

        A step did: {counter: how much it grew}, the first mask's first. An instance is right when
        a valid one is accepted to its end, or an invalid one is not.
        """
        peer = self._peer
        assert peer is not None
        constraint = peer.compile(walk.schema)
        counters = peer.counters(constraint)
        did = []
        for i, _ in enumerate(_fills(peer.start(constraint, self._out), walk.token_ids)):
            rows[i] = self._out
            now = peer.counters(constraint)
            did.append({name: now[name] - n for name, n in counters.items() if now[name] != n})
            counters = now
        return {
            "did": did,
            "counts": bool(counters),
            "right": [
                [valid, self._accepts(peer, constraint, ids) == valid]
                for valid, ids in walk.instances
            ],
        }

    def _accepts(self, peer: Peer, constraint: Any, token_ids: list[int]) -> bool:
        accept = peer.start(constraint, self._out).accept
        return all(map(accept, [*token_ids, EOS_TOKEN_ID]))


def _fills(sequence: Driven, token_ids: Sequence[int]) -> Iterator[None]:
    """Has the mask of every place written, from the start on; stops there each time."""
    sequence.fill()
    yield
    for i, token_id in enumerate(token_ids):
        if not sequence.accept(token_id):
            raise Refused(f"token {i} of the valid instance was rejected")
        sequence.fill()
        yield


if __name__ == "__main__":
    main()
