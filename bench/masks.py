"""Mask times on a vocabulary of 129,280 tokens, beside llguidance and XGrammar.

    python -m bench.masks [--schemas 50] [--repeats 3] [--compact] [--out masks.json]

Takes the first schemas of a shuffled data set that grammaton compiles and whose first valid
instance it accepts, and lets each engine walk the instance: for every token, `accept` and then the
mask, timed together. What is measured:

- *vocabulary*: from the tokens' bytes to the first constraint on them, with the masks of the frames
  common to all JSON (a generic schema's instance is walked once), before any schema is seen.
- *first mask*: from the schema as Python objects to its first mask, on a fresh constraint.
- *cold*: masks of the first walk on a fresh constraint. *warm*: of the second walk on it.
- *in strings*: those inside a JSON string. *first visits*: those that grammaton had to compute.
- *mask alone*: without the `accept` before it.
- *memory*: growth of the process from before the vocabulary to the end.

Each engine runs in a process of its own. Times are CPU seconds of the thread, so that whatever else
the machine does counts less, and each mask's time is the least over the repeats, every one of which
starts again from a fresh vocabulary. Reading the clock costs a fraction of a microsecond, printed
with the table and not taken off. The masks of the engines are compared too: tokens that differ are
counted, not judged, because the languages are not the same (whitespace, number spellings).
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench.peers import PEERS, Driven, Mask, Peer, Refused
from bench.walks import EOS_TOKEN_ID, Walk, load, save, shuffled_walks, tokenizer_path
from grammaton import Grammar, GrammatonError, Vocabulary, compile

DATA = Path("../shared/data/jsonschemabench-dev.jsonl.xz")

GENERIC_SCHEMA = {"type": "object"}
GENERIC_TEXT = '{"a": ["é\\n", -1.5e+3, 12, true, false, null, {"b": {}}], "c": []}'

Times = list[list[float]]
"""Seconds of each mask of each walk."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.masks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--schemas", type=int, default=50, help="schemas to walk (50)")
    parser.add_argument("--repeats", type=int, default=3, help="fresh runs of each engine (3)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of schemas (1)")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the data set ({DATA})")
    parser.add_argument("--engines", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--compact", action="store_true", help="no whitespace between JSON tokens")
    parser.add_argument("--worst", type=int, default=0, help="list the slowest cold masks (0)")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--worker", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        _work(options.worker, options.folder, options.repeats, options.compact)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        walks = _choose(options.data, options.seed, options.schemas, options.compact)
        save(walks, folder / "walks.json")
        results = {}
        for engine in options.engines:
            print(f"{engine} …", file=sys.stderr, flush=True)
            command = [sys.executable, "-m", "bench.masks", "--worker", engine]
            command += ["--folder", name, "--repeats", str(options.repeats)]
            subprocess.run(command + ["--compact"] * options.compact, check=True)
            results[engine] = json.loads((folder / f"{engine}.json").read_text())
        report = _report(walks, results, folder)
    _print(report)
    _print_worst(walks, results, options.worst)
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


def _choose(data: Path, seed: int, count: int, compact: bool) -> list[Walk]:
    """The first walks that grammaton compiles and accepts to the end."""
    whitespace: Literal["compact", "flexible"] = "compact" if compact else "flexible"
    vocabulary = _vocabulary()
    chosen: list[Walk] = []
    seen = 0
    for walk in shuffled_walks(data, seed, compact=compact):
        if len(chosen) == count:
            break
        seen += 1
        try:
            grammar = Grammar.from_json_schema(walk.schema, whitespace=whitespace)
            matcher = compile(grammar, vocabulary).matcher()
        except GrammatonError:
            continue
        if all(map(matcher.accept, walk.token_ids)):
            chosen.append(walk)
    print(f"{len(chosen)} schemas out of the first {seen} compile and accept their instance")
    return chosen


def _vocabulary() -> Vocabulary:
    return Vocabulary.from_tokenizers(tokenizer_path(), eos_token_ids=EOS_TOKEN_ID)


# The worker: one engine, in a process of its own.


def _work(engine: str, folder: Path, repeats: int, compact: bool) -> None:
    """Runs one engine over the saved walks and writes `ENGINE.json` and `ENGINE.npy`."""
    walks = load(folder / "walks.json")
    generic = _generic_tokens(compact)
    vocabulary = _vocabulary()
    tokens = [vocabulary.token_bytes(i) for i in range(len(vocabulary))]
    special = vocabulary.special_tokens
    out = np.zeros(vocabulary.mask_words, dtype=np.int32)
    shape = (sum(len(walk.in_string) for walk in walks), vocabulary.mask_words)
    masks = np.lib.format.open_memmap(
        folder / f"{engine}.npy", mode="w+", dtype=np.int32, shape=shape
    )
    runs: list[dict[str, Any]] = []
    for _ in range(repeats):
        before = _resident()
        start = time.thread_time()
        peer = PEERS[engine](tokens, special, compact)
        sequence = peer.start(peer.compile(GENERIC_SCHEMA), out)
        sequence.fill()
        for token_id in generic:
            sequence.accept(token_id)
            sequence.fill()
        spent = time.thread_time() - start
        # The first run alone keeps its masks: comparing them once is enough.
        run = _run(peer, walks, out, None if runs else masks)
        runs.append({**run, "vocabulary": spent, "memory": _resident() - before})
        del peer, sequence
    result = {
        "vocabulary": min(run["vocabulary"] for run in runs),
        "memory": runs[0]["memory"],
        "problems": runs[0]["problems"],
        "fresh": runs[0]["fresh"],
        "first": [min(times) for times in zip(*(run["first"] for run in runs), strict=True)],
        "cold": _least([run["cold"] for run in runs]),
        "alone": _least([run["alone"] for run in runs]),
        "warm": _least([run["warm"] for run in runs]),
        "clock": _clock_cost(),
    }
    (folder / f"{engine}.json").write_text(json.dumps(result))


def _run(peer: Peer, walks: list[Walk], out: Mask, masks: Mask | None) -> dict[str, Any]:
    """One run over all walks with fresh constraints, all of them kept alive to its end."""
    run: dict[str, Any] = {"problems": {}}
    run |= {key: [] for key in ("first", "cold", "alone", "warm", "fresh")}
    constraints = []
    row = 0
    gc.collect()
    gc.disable()
    for walk in walks:
        first = 0.0
        cold: list[float] = []
        alone: list[float] = []
        warm: list[float] = []
        fresh: list[bool] = []
        try:
            start = time.thread_time()
            constraint = peer.compile(walk.schema)
            sequence = peer.start(constraint, out)
            sequence.fill()
            first = time.thread_time() - start
            constraints.append(constraint)
            cold, alone, fresh = _timed_walk(peer, constraint, sequence, walk)
            warm, _, _ = _timed_walk(peer, constraint, peer.start(constraint, out), walk)
            if masks is not None:
                _keep_masks(peer.start(constraint, out), walk, out, masks[row:])
        except Refused as error:
            run["problems"][walk.name] = str(error).split("\n")[0][:200]
            cold, alone, warm = [], [], []
        run["first"].append(first)
        run["cold"].append(cold)
        run["alone"].append(alone)
        run["warm"].append(warm)
        run["fresh"].append(fresh)
        row += len(walk.in_string)
    gc.enable()
    return run


def _generic_tokens(compact: bool) -> list[int]:
    from tokenizers import Tokenizer

    text = GENERIC_TEXT
    if compact:
        text = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    return Tokenizer.from_file(str(tokenizer_path())).encode(text, add_special_tokens=False).ids


def _timed_walk(
    peer: Peer, constraint: Any, sequence: Driven, walk: Walk
) -> tuple[list[float], list[float], list[bool]]:
    """Seconds of each mask with the accept before it and without, and which were first visits."""
    accept, fill, states, clock = sequence.accept, sequence.fill, peer.states, time.thread_time
    start = clock()
    fill()
    times, visits = [clock() - start], [True]
    alone = times.copy()
    known = states(constraint)
    for token_id in walk.token_ids:
        start = clock()
        taken = accept(token_id)
        between = clock()
        fill()
        end = clock()
        if not taken:
            raise Refused(f"token {len(times) - 1} of the valid instance was rejected")
        times.append(end - start)
        alone.append(end - between)
        count = states(constraint)
        visits.append(count > known)
        known = count
    return times, alone, visits


def _keep_masks(sequence: Driven, walk: Walk, out: Mask, rows: Mask) -> None:
    sequence.fill()
    rows[0] = out
    for i, token_id in enumerate(walk.token_ids, 1):
        sequence.accept(token_id)
        sequence.fill()
        rows[i] = out


def _least(runs: list[Times]) -> Times:
    return [[min(times) for times in zip(*walks, strict=True)] for walks in zip(*runs, strict=True)]


def _resident() -> int:
    """Bytes of its own that this process holds (Linux), or its peak size elsewhere."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (int(fields[1]) - int(fields[2])) * 4096


def _clock_cost() -> float:
    clock = time.thread_time
    spans = []
    for _ in range(1000):
        start = clock()
        spans.append(clock() - start)
    return float(np.median(spans))


# The report.


def _report(walks: list[Walk], results: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The numbers over the schemas that every engine walks to the end."""
    usable = [
        i
        for i, walk in enumerate(walks)
        if not any(walk.name in result["problems"] for result in results.values())
    ]
    inside = _flat([walks[i].in_string for i in usable])
    ours = results.get("grammaton")
    fresh = _flat([ours["fresh"][i] for i in usable]) if ours else np.ones_like(inside)
    report: dict[str, Any] = {
        "schemas": [walks[i].name for i in usable],
        "masks": len(inside),
        "engines": {},
        "differences": {},
    }
    kinds = {
        "all": np.ones_like(inside),
        "in strings": inside,
        "first visits": fresh,
        "first visits in strings": inside & fresh,
    }
    for engine, result in results.items():
        first = [result["first"][i] for i in usable]
        rows = {"first mask": _percentiles(first)}
        for temperature in ("cold", "warm"):
            times = _flat([result[temperature][i] for i in usable])
            for kind, chosen in kinds.items():
                if temperature == "cold" or "visits" not in kind:
                    rows[f"{temperature}, {kind}"] = _percentiles(times[chosen])
        alone = _flat([result["alone"][i] for i in usable])
        rows["cold, in strings, mask alone"] = _percentiles(alone[inside])
        report["engines"][engine] = {
            "vocabulary_s": result["vocabulary"],
            "memory_bytes": result["memory"],
            "clock_s": result["clock"],
            "refused": result["problems"],
            "seconds": rows,
        }
    starts = np.cumsum([0, *(len(walk.in_string) for walk in walks)])
    chosen_rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in usable])
    engines = list(results)
    for other in engines[1:]:
        report["differences"][f"{engines[0]} / {other}"] = _differences(
            np.load(folder / f"{engines[0]}.npy", mmap_mode="r"),
            np.load(folder / f"{other}.npy", mmap_mode="r"),
            chosen_rows,
            inside,
        )
    return report


def _flat(lists: Iterable[Iterable[Any]]) -> NDArray[Any]:
    return np.concatenate([np.asarray(list(values)) for values in lists])


def _percentiles(seconds: Any) -> dict[str, float]:
    if len(seconds) == 0:
        return {"n": 0}
    p50, p99 = np.percentile(seconds, [50, 99])
    return {"n": len(seconds), "p50": float(p50), "p99": float(p99), "max": float(max(seconds))}


def _differences(
    left: Mask, right: Mask, rows: NDArray[np.int64], inside: NDArray[np.bool_]
) -> dict[str, int]:
    """How many masks differ, and how many tokens one engine alone allows, over all of them."""
    counts = dict.fromkeys(("masks", "masks in strings", "only left", "only right"), 0)
    for row, in_string in zip(rows, inside, strict=True):
        a, b = left[row].view(np.uint32), right[row].view(np.uint32)
        if not np.array_equal(a, b):
            counts["masks"] += 1
            counts["masks in strings"] += int(in_string)
            counts["only left"] += _bits(a & ~b)
            counts["only right"] += _bits(b & ~a)
    return counts


def _bits(words: NDArray[np.uint32]) -> int:
    return int(np.unpackbits(words.view(np.uint8)).sum())


def _print(report: dict[str, Any]) -> None:
    engines = report["engines"]
    print(f"{len(report['schemas'])} schemas that every engine walks, {report['masks']} masks")
    for engine, numbers in engines.items():
        print(
            f"{engine:11} vocabulary {numbers['vocabulary_s'] * 1e3:7.1f} ms, "
            f"memory {numbers['memory_bytes'] / 2**20:6.1f} MiB, "
            f"refused {len(numbers['refused'])}, clock {numbers['clock_s'] * 1e6:.2f} us"
        )
    header = "".join(f"{engine:>32}" for engine in engines)
    print(f"\n{'CPU us, p50 / p99 / max':32}{'n':>7}{header}")
    for row in next(iter(engines.values()))["seconds"]:
        cells = [numbers["seconds"][row] for numbers in engines.values()]
        if cells[0]["n"]:
            columns = "".join(
                f"{cell['p50'] * 1e6:>10.1f}{cell['p99'] * 1e6:>11.1f}{cell['max'] * 1e6:>11.1f}"
                for cell in cells
            )
            print(f"{row:32}{cells[0]['n']:>7}{columns}")
    for pair, counts in report["differences"].items():
        left, right = pair.split(" / ")
        print(
            f"\n{pair}: {counts['masks']} masks differ, {counts['masks in strings']} of them in "
            f"strings; tokens allowed by {left} only {counts['only left']}, by {right} only "
            f"{counts['only right']}"
        )


def _print_worst(walks: list[Walk], results: dict[str, Any], count: int) -> None:
    """The slowest cold masks of each engine, with the text before them."""
    for engine, result in results.items():
        masks = [
            (seconds, walk, i)
            for walk, times in zip(walks, result["cold"], strict=True)
            for i, seconds in enumerate(times)
        ]
        masks.sort(key=lambda mask: -mask[0])
        for seconds, walk, i in masks[:count]:
            before = walk.text[max(0, walk.starts[i] - 50) : walk.starts[i]]
            place = "in a string" if walk.in_string[i] else ""
            print(f"{engine:11}{seconds * 1e6:9.1f} us {walk.name:32} {before!r} {place}")


if __name__ == "__main__":
    main()
