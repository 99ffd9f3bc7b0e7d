"""Engines side by side on real schemas: times, memory, and whose masks are right.

    python -m bench compare --data FILE [--engines grammaton glrmask ...] [--schemas 100]

Takes the first schemas of a shuffled data set that have a valid instance, asking no engine which it
likes, and has every engine compile each and walk that instance token by token. Every engine runs in
processes of its own, with a limit of CPU time for each schema; one that takes longer, crashes or
refuses is counted and the rest goes on. `bench.measure` says what is timed and how, `bench.judge`
how disputed tokens are judged, `bench.isolation` how limits are kept.

Writes `compare.md`, `compare.svg` (tail curves) and `compare.json` to --out.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.arguments import existing, positive
from bench.isolation import WorkerFailed, run_items
from bench.judge import UNDECIDED
from bench.peers import PEERS, whitespace_of
from bench.report import DISPUTES, Results, write_report
from bench.walks import Walk, save, shuffled_walks, vocabulary

DATA = Path("../shared/data/jsonschemabench-dev.jsonl.xz")
RESULTS = Path("bench/results")
ENGINES = ["grammaton", "llguidance", "xgrammar-jit", "glrmask"]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench compare", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=existing, default=DATA, help=f"the data set ({DATA})")
    parser.add_argument("--engines", nargs="+", choices=PEERS, default=ENGINES)
    parser.add_argument("--schemas", type=positive, default=100, help="schemas to walk (100)")
    parser.add_argument("--cold", type=int, default=20, help="of them on fresh vocabularies (20)")
    parser.add_argument("--repeats", type=positive, default=3, help="fresh runs of each engine (3)")
    parser.add_argument(
        "--disputes", type=int, default=100, help="judged, each way of a pair (100)"
    )
    parser.add_argument("--cpu-limit", type=float, default=10.0, help="CPU s a schema (10)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of schemas (1)")
    parser.add_argument("--compact", action="store_true", help="no whitespace between JSON tokens")
    parser.add_argument("--worst", type=int, default=10, help="slowest steps to list (10)")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"folder to write to ({RESULTS})")
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("jsonschema") is None:
        parser.error("the judge needs jsonschema: pip install '.[bench]'")
    shuffled = shuffled_walks(options.data, options.seed, compact=options.compact)
    walks = list(itertools.islice(shuffled, options.schemas))
    with tempfile.TemporaryDirectory() as name:
        run = Run(walks, Path(name), options)
        results = run.measure()
        results.disputes = run.judge(results)
    options.out.mkdir(parents=True, exist_ok=True)
    write_report(results, options.out, command=_command(options), worst=options.worst)


def _command(options: argparse.Namespace) -> str:
    """What to say to run this again, wherever the data lies."""
    names = ("schemas", "cold", "repeats", "disputes", "cpu_limit", "seed")
    parts = [f"--{name.replace('_', '-')} {getattr(options, name):g}" for name in names]
    parts.insert(0, "--engines " + " ".join(options.engines))
    return " ".join(
        ["python -m bench compare --data FILE", *parts, *["--compact"] * options.compact]
    )


class Run:
    """One run of the command: which schemas are still of use to which engine, and the processes."""

    def __init__(self, walks: list[Walk], folder: Path, options: argparse.Namespace) -> None:
        self.walks = walks
        self.folder = folder
        self.options = options
        self.compact = ["--compact"] * options.compact
        self.began = time.monotonic()
        save(walks, folder / "walks.json")

    def measure(self) -> Results:
        """All engines over all schemas, every way; engines take turns pass by pass."""
        results = Results(self.walks, self.options.repeats, self.options.cpu_limit)
        everything = list(range(len(self.walks)))
        for engine in self.options.engines:
            try:
                results.masks[engine] = self._pass("masks", engine, everything)
            except WorkerFailed as error:
                results.missing[engine] = str(error)
                self._say(f"{engine} can't be run: {error}")
        for number in range(self.options.repeats):
            for way, count in (("shared", len(self.walks)), ("alone", self.options.cold)):
                for engine in results.masks:
                    of_use = [i for i in results.of_use(engine) if i < count]
                    if of_use:
                        records = self._pass(way, engine, of_use)
                        results.add(way, engine, number, records)
        return results

    def _pass(self, way: str, engine: str, chosen: list[int]) -> dict[int, dict[str, Any]]:
        self._say(f"{engine}: {way}, {len(chosen)} schemas")
        (self.folder / "chosen.json").write_text(json.dumps(chosen))
        command = ["bench.measure", way, engine, str(self.folder), *self.compact]
        records = run_items(
            command,
            count=len(chosen),
            out=self.folder / "lines",
            cpu_limit=self.options.cpu_limit,
        )
        return dict(zip(chosen, records, strict=True))

    def judge(self, results: Results) -> list[dict[str, Any]]:
        """Where masks of the first engine and another differ: how often, and who is right."""
        found = []
        first, *others = results.masks or [""]
        for other in others:
            for allower, forbidder in ((first, other), (other, first)):
                disputes = self._disputes(results, allower, forbidder)
                counts = {key: disputes[key] for key in ("masks", "differ", "tokens")}
                verdicts = self._verdicts(results, allower, disputes["sample"])
                found.append(
                    {"allower": allower, "forbidder": forbidder, **counts, "verdicts": verdicts}
                )
        return found

    def _disputes(self, results: Results, allower: str, forbidder: str) -> dict[str, Any]:
        """Masks that allow what the other's forbid: how many, and a sample to judge."""
        allowing, forbidding = (
            np.load(self.folder / f"{engine}.npy", mmap_mode="r") for engine in (allower, forbidder)
        )
        source = random.Random(self.options.seed)
        whitespace = whitespace_of(forbidder, compact=self.options.compact)
        firsts = np.cumsum([0, *(len(walk.in_string) for walk in self.walks)])
        masks = differ = tokens = 0
        sample = []
        for i in sorted({*results.of_use(allower)} & {*results.of_use(forbidder)}):
            for place in range(len(self.walks[i].in_string)):
                row = firsts[i] + place
                extra = allowing[row].view(np.uint32) & ~forbidding[row].view(np.uint32)
                masks += 1
                if extra.any():
                    bits = np.unpackbits(extra.view(np.uint8), bitorder="little")
                    ids = np.flatnonzero(bits)
                    differ += 1
                    tokens += len(ids)
                    sample.append((i, place, int(source.choice(list(ids))), whitespace))
        source.shuffle(sample)
        # One walk must not fill the sample: all walks take turns.
        sample.sort(key=_turn(sample))
        chosen = sample[: self.options.disputes]
        return {"masks": masks, "differ": differ, "tokens": tokens, "sample": chosen}

    def _verdicts(self, results: Results, allower: str, sample: list[Any]) -> list[dict[str, Any]]:
        by_walk: dict[int, list[Any]] = {}
        for i, *dispute in sorted(sample):
            by_walk.setdefault(i, []).append(dispute)
        if not by_walk:
            return []
        self._say(f"judging {len(sample)} tokens that {allower} allows")
        (self.folder / "disputes.json").write_text(json.dumps(list(by_walk.items())))
        records = run_items(
            ["bench.judge", allower, str(self.folder), *self.compact],
            count=len(by_walk),
            out=self.folder / "lines",
            cpu_limit=6 * self.options.cpu_limit,
        )
        verdicts = []
        tokens = vocabulary()
        for (i, disputes), record in zip(by_walk.items(), records, strict=True):
            judged = record.get("verdicts", [(UNDECIDED, record.get("why", ""))] * len(disputes))
            for (place, token_id, _), (verdict, text) in zip(disputes, judged, strict=True):
                before = self.walks[i].text[: self.walks[i].starts[place]]
                token = tokens.token_bytes(token_id)
                verdicts.append(
                    dict(
                        zip(
                            DISPUTES,
                            (verdict, self.walks[i].name, before, token, text),
                            strict=True,
                        )
                    )
                )
        return verdicts

    def _say(self, what: str) -> None:
        print(f"{time.monotonic() - self.began:6.0f} s  {what}", file=sys.stderr, flush=True)


def _turn(sample: list[Any]) -> Any:
    """A sort key: how many disputes of the same walk stand before this one."""
    turns: dict[int, int] = {}
    ranks = {}
    for dispute in sample:
        turns[dispute[0]] = turns.get(dispute[0], 0) + 1
        ranks[dispute] = turns[dispute[0]]
    return ranks.__getitem__
