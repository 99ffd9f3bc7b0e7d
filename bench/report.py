"""What `bench compare` found, as tables: markdown, a plot, and JSON with all the numbers.

Percentiles are over the steps of the schemas that all *compared* engines walk to the end; an engine
that fails on more than half of the schemas is left out of that (its own failures are listed) so
that it doesn't hide the rest. Each step's time is the least over the repeats.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.judge import VERDICTS
from bench.peers import PACKAGES
from bench.plot import tail_curves
from bench.walks import Walk

DISPUTES = ("verdict", "schema", "before", "token", "text")
"""What is kept of a judged dispute."""

TIMES = ("first", "steps", "again", "seen first", "seen steps", "kept first")
"""What a record has times of, if the way it was taken has."""

SHARES = (50.0, 99.0, 99.9, 100.0)
US = 1e6
MIB = 2.0**20


@dataclass
class Results:
    """All records of a run; a schema is named by its place in `walks`."""

    walks: list[Walk]
    repeats: int
    cpu_limit: float
    masks: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failures: dict[str, dict[int, tuple[str, str]]] = field(default_factory=dict)
    times: dict[tuple[str, str], dict[int, dict[str, Any]]] = field(default_factory=dict)
    memory: dict[tuple[str, str], int] = field(default_factory=dict)
    vocabulary: dict[str, float] = field(default_factory=dict)
    disputes: list[dict[str, Any]] = field(default_factory=list)

    def of_use(self, engine: str) -> list[int]:
        """The schemas that an engine has walked to the end every time so far."""
        failed = self.failures.setdefault(engine, {})
        for i, record in self.masks[engine].items():
            if "failed" in record:
                failed.setdefault(i, (record["failed"], record["why"]))
        return [i for i in range(len(self.walks)) if i not in failed]

    def add(self, way: str, engine: str, number: int, records: dict[int, dict[str, Any]]) -> None:
        """Takes the records of one pass, keeping the least time of each step."""
        kept = self.times.setdefault((way, engine), {})
        for i, record in records.items():
            if "failed" in record:
                self.failures[engine][i] = (record["failed"], record["why"])
                continue
            if number == 0:
                peak = max(self.memory.get((way, engine), 0), record["memory"])
                self.memory[way, engine] = peak
            if "vocabulary" in record:
                seconds = min(self.vocabulary.get(engine, np.inf), record["vocabulary"])
                self.vocabulary[engine] = seconds
            new: dict[str, Any] = {
                key: np.atleast_1d(record[key]) for key in TIMES if key in record
            }
            old = kept.setdefault(i, new)
            kept[i] = {key: np.minimum(old[key], times) for key, times in new.items()}

    @property
    def compared(self) -> list[str]:
        """The engines that walk at least half of the schemas."""
        half = len(self.walks) / 2
        return [engine for engine in self.masks if len(self.of_use(engine)) >= half]

    def common(self, way: str) -> list[int]:
        """The schemas that every compared engine has walked, in that way."""
        sets = [
            {*self.of_use(engine)} & {*self.times.get((way, engine), {})}
            for engine in self.compared
        ]
        return sorted(set.intersection(*sets)) if sets else []

    def flat(self, way: str, engine: str, key: str, schemas: Iterable[int]) -> NDArray[np.float64]:
        """The times of some schemas in one array, in microseconds; none where none were taken."""
        kept = self.times.get((way, engine), {})
        parts = [kept[i][key] for i in schemas if key in kept.get(i, ())]
        return np.concatenate(parts) * US if parts else np.zeros(0)

    def computed(self, schemas: Iterable[int]) -> NDArray[np.bool_] | None:
        """For each step, whether it was grammaton's first visit; None when it doesn't run."""
        record = self.masks.get("grammaton")
        if record is None:
            return None
        flags = [bool(did.get("mask_misses")) for i in schemas for did in record[i]["did"][1:]]
        return np.array(flags, dtype=bool)


def write_report(results: Results, folder: Path, *, command: str, worst: int) -> None:
    """Writes compare.md, compare.svg and compare.json, and prints the first."""
    common = results.common("shared")
    lines = [
        "# Engines side by side",
        "",
        f"`{command}`, {date.today()}, {os.cpu_count()} cores "
        f"({platform.machine()}, {platform.system()}), not idle.",
        "",
        f"{len(results.walks)} schemas with an instance each; {len(common)} of them are walked to "
        f"the end by all of {', '.join(results.compared)}. CPU microseconds; each step the least "
        f"of {results.repeats} fresh constraints; {_clock():.1f} of each time is reading the "
        "clock. A *step* is one accept and the mask after it.",
        "",
    ]
    numbers: dict[str, Any] = {"command": command, "schemas": len(results.walks)}
    lines += _coverage(results)
    lines += _times(results, numbers)
    lines += _memory(results, numbers)
    lines += _targets(numbers)
    lines += _masks(results, numbers)
    lines += _worst(results, common, worst)
    curves = {
        engine: results.flat("shared", engine, "steps", common) for engine in results.compared
    }
    if any(len(times) for times in curves.values()):
        title = f"One step: accept + mask, {len(common)} real schemas, first visits included"
        (folder / "compare.svg").write_text(
            tail_curves(title, {name: times.tolist() for name, times in curves.items()})
        )
        lines[6:6] = ["![tail curves](compare.svg)", ""]
    text = "\n".join(lines)
    (folder / "compare.md").write_text(text)
    (folder / "compare.json").write_text(json.dumps(numbers, indent=1) + "\n")
    print(text)


def _clock() -> float:
    """Microseconds of CPU time from one reading of it to the next."""
    readings = np.array([time.process_time() for _ in range(1000)])
    return float(np.median(np.diff(readings))) * US


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    ruler = ["---", *["--:"] * (len(head) - 1)]
    return ["| " + " | ".join(row) + " |" for row in (head, ruler, *rows)] + [""]


def _coverage(results: Results) -> list[str]:
    """Which schemas each engine takes, and how it judges the data set's instances."""
    rows = []
    for engine, masks in results.masks.items():
        results.of_use(engine)
        failures = results.failures[engine].values()
        kinds = Counter("rejected" if why.startswith("token ") else kind for kind, why in failures)
        judged = [pair for record in masks.values() for pair in record.get("right", [])]
        cells = [engine, importlib.metadata.version(PACKAGES[engine])]
        cells += [str(len(results.walks) - len(failures))]
        cells += [str(kinds[kind]) for kind in ("refused", "rejected", "timed out", "crashed")]
        for wanted in (True, False):
            right = [right for valid, right in judged if valid == wanted]
            cells.append(f"{len(right) - sum(right)} of {len(right)}")
        rows.append(cells)
    head = ["", "version", "walked", "refused", "instance rejected"]
    head += [f"over {results.cpu_limit:g} s", "crashed", "valid stopped", "invalid accepted"]
    notes = [f"{engine} could not be run: {why}" for engine, why in results.missing.items()]
    return [
        "## What each takes",
        "",
        *_table(head, rows),
        "The last two columns: the data set's own instances, of the schemas the engine compiles; "
        "keys out of the schema's order are stopped by convention.",
        "",
        *notes,
        *[""] * bool(notes),
    ]


def _times(results: Results, numbers: dict[str, Any]) -> list[str]:
    common, alone = results.common("shared"), results.common("alone")
    computed = results.computed(common)
    samples: dict[str, dict[str, NDArray[np.float64]]] = {}
    for engine in results.compared:
        steps = results.flat("shared", engine, "steps", common)
        rows = samples.setdefault(engine, {})
        rows["first mask"] = results.flat("shared", engine, "first", common)
        rows["step"] = steps
        if computed is not None:
            rows["step, first visits"] = steps[computed]
            rows["step, states seen before"] = steps[~computed]
        rows["step, second walk (warm)"] = results.flat("shared", engine, "again", common)
        rows["first mask, seen"] = results.flat("shared", engine, "seen first", common)
        rows["step, seen"] = results.flat("shared", engine, "seen steps", common)
        rows["first mask, cached"] = results.flat("shared", engine, "kept first", common)
        rows["first mask, cold vocabulary"] = results.flat("alone", engine, "first", alone)
        rows["step, cold vocabulary"] = results.flat("alone", engine, "steps", alone)
    numbers["us"] = {
        engine: {name: _percentiles(times) for name, times in rows.items()}
        for engine, rows in samples.items()
    }
    table = []
    for name in next(iter(samples.values()), {}):
        count = len(next(iter(samples.values()))[name])
        cells = [_cells(rows[name]) for rows in samples.values()]
        table.append([name, str(count), *cells])
    return [
        "## Times",
        "",
        "CPU us: p50 / p99 / p99.9 / max.",
        "",
        *_table(["", "n", *samples], table),
        "*First mask*: from the schema as Python objects. *First visits*: the steps whose mask "
        "grammaton had to compute, for every engine. *Cold vocabulary*: a new vocabulary for "
        f"each schema (ours prepared), over {len(alone)} schemas; else one vocabulary for all, "
        "warmed by a generic JSON text. *Seen*: fresh constraints of schemas that the vocabulary "
        "has had before. "
        "*Cached*: of schemas in the engine's own cache, where it has one (ours: "
        "`ConstraintCache`).",
        "",
    ]


def _percentiles(times: NDArray[np.float64]) -> dict[str, float]:
    if len(times) == 0:
        return {"n": 0}
    values = np.percentile(times, SHARES)
    names = ("p50", "p99", "p99.9", "max")
    return {"n": len(times)} | {
        name: float(value) for name, value in zip(names, values, strict=True)
    }


def _cells(times: NDArray[np.float64]) -> str:
    found = _percentiles(times)
    values = [found[name] for name in found if name != "n"]
    return " / ".join(f"{value:,.1f}" if value < 100 else f"{value:,.0f}" for value in values)


def _memory(results: Results, numbers: dict[str, Any]) -> list[str]:
    numbers["mib"], rows = {}, []
    for engine in results.masks:
        kept, alone = (results.memory.get((way, engine), 0) / MIB for way in ("shared", "alone"))
        numbers["mib"][engine] = {"all kept": kept, "one at a time": alone}
        seconds = results.vocabulary.get(engine, 0.0)
        rows.append([engine, f"{seconds * 1e3:,.0f}", f"{alone:,.1f}", f"{kept:,.1f}"])
    head = ["", "vocabulary, CPU ms", "peak MiB, one at a time", "peak MiB, all constraints kept"]
    return [
        "## Vocabulary and memory",
        "",
        *_table(head, rows),
        "Growth of the process from before the vocabulary. *Vocabulary*: from the tokens' bytes to "
        "the masks of one generic JSON text. Each column over the schemas that the engine walks.",
        "",
    ]


def _targets(numbers: dict[str, Any]) -> list[str]:
    """The goals as ratios of this run."""
    us, mib = numbers["us"], numbers["mib"]
    if "grammaton" not in us:
        return []
    ours = us["grammaton"]
    goals = [
        (f"{what}{seen}", share, peer, most)
        for seen in ("", ", seen")
        for what, share, peer, most in (
            ("first mask", "p50", "llguidance", 0.5),
            ("first mask", "p99", "llguidance", 0.2),
            ("step", "p50", "glrmask", 0.2),
            ("step", "p99", "glrmask", 0.5),
        )
    ]
    rows = []
    for what, share, peer, most in goals:
        if peer in us and us[peer][what]["n"]:
            ratio = ours[what][share] / us[peer][what][share]
            holds = "holds" if ratio <= most else "fails"
            rows.append([f"{what} {share} / {peer}'s", f"{ratio:.2f}", f"{most:g}", holds])
    if ours["step"]["n"]:
        slowest = ours["step"]["max"]
        holds = "holds" if slowest < 2000 else "fails"
        rows.append(["step max, us", f"{slowest:,.0f}", "2,000", holds])
    for kind in ("one at a time", "all kept"):
        peers = [mib[engine][kind] for engine in mib if engine != "grammaton" and mib[engine][kind]]
        if peers:
            mine = mib["grammaton"][kind]
            holds = "holds" if mine < min(peers) else "fails"
            rows.append([f"peak MiB, {kind}", f"{mine:.1f}", f"{min(peers):.1f}", holds])
    return ["## Targets", "", *_table(["", "measured", "at most", ""], rows)]


def _masks(results: Results, numbers: dict[str, Any]) -> list[str]:
    rows, examples = [], []
    numbers["disputes"] = []
    for pair in results.disputes:
        counts = Counter(found["verdict"] for found in pair["verdicts"])
        cells = [f"{pair['allower']} allows, {pair['forbidder']} forbids"]
        cells += [f"{pair['differ']:,} of {pair['masks']:,}", f"{pair['tokens']:,}"]
        rows.append([*cells, *(str(counts[verdict]) for verdict in VERDICTS)])
        numbers["disputes"].append({**pair, "verdicts": dict(counts)})
        for verdict in VERDICTS[:2]:
            of_kind = [found for found in pair["verdicts"] if found["verdict"] == verdict]
            for found in of_kind[:3]:
                wrong = pair["forbidder"] if verdict == VERDICTS[0] else pair["allower"]
                examples.append(
                    f"- {wrong} wrong, {found['schema']}: after `{_tail(found['before'])}` "
                    f"token `{found['token']!r}`, text `{_tail(found['text'], 90)}`"
                )
    if not rows:
        return []
    return [
        "## Masks",
        "",
        *_table(["", "masks", "tokens", *VERDICTS], rows),
        "One token of each such mask was drawn, a sample of them judged (how: `bench/judge.py`). "
        "*Forbidder wrong*: there is a completion, in plain spelling, that jsonschema accepts: the "
        "mask over-constrains. *Allower wrong*: all texts its masks led to from there are invalid. "
        "*Undecided* clears nobody.",
        "",
        *examples,
        *[""] * bool(examples),
    ]


def _tail(text: str, length: int = 50) -> str:
    text = text.replace("`", "'").replace("\n", "\\n")
    return text if len(text) <= length else "…" + text[-length:]


def _worst(results: Results, common: list[int], count: int) -> list[str]:
    """Grammaton's slowest steps with what they did."""
    if "grammaton" not in results.masks or not count:
        return []
    steps = [
        (seconds * US, i, place)
        for i, record in results.times.get(("shared", "grammaton"), {}).items()
        if i in common
        for place, seconds in enumerate(record["steps"], 1)
    ]
    steps.sort(reverse=True)
    rows = []
    for microseconds, i, place in steps[:count]:
        walk = results.walks[i]
        did = results.masks["grammaton"][i]["did"][place]
        did = {name: n for name, n in did.items() if not name.startswith("mask")}
        before = _tail(walk.text[: walk.starts[place]], 40).replace("|", "\\|")
        what = ", ".join(f"{name} {n:,}" for name, n in did.items()) or "nothing new"
        rows.append([f"{microseconds:,.0f}", walk.name, f"`{before}`", what])
    return [
        "## grammaton's slowest steps",
        "",
        *_table(["us", "schema", "after", "what the step did"], rows),
    ]
