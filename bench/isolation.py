"""Work in processes of their own, with bounds that hold inside foreign compiled code too.

A *worker* is a module run with `python -m` that does *items*, numbered from 0, in order, and writes
one line of JSON for each. Its parent reads the CPU time that the process has used (/proc; wall time
where there is none) and ends it when no line came within an item's limit. CPU time, so that a busy
machine fails nothing; from outside, because a timer of the process's own makes its CPU clock as
coarse as the kernel's tick. An item that crashes, or allocates past the memory limit, ends the
process too. The parent notes how the item ended and starts the worker again behind it.

Cost: a look every fifth of a second; a start of Python and of the worker for each item that fails.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

MEMORY_LIMIT = 8 * 2**30
"""Bytes of address space beyond what the worker has when it is ready."""

INTERVAL = 0.2
"""Seconds between two looks at a worker."""

START = 120.0
"""Seconds more than an item that a worker may take until it is ready."""

REFUSED, TIMED_OUT, CRASHED = "refused", "timed out", "crashed"


class WorkerFailed(Exception):
    """A worker ended before it was ready: its engine is not installed, or its code is wrong."""


def run_items(
    command: Sequence[str], *, count: int, out: Path, cpu_limit: float
) -> list[dict[str, Any]]:
    """Has a worker do items 0 to count - 1.

    Args:
        command: arguments after `python -m`; `--out FILE --first ITEM` are added.
        count: how many items there are.
        out: a file for the worker's lines; overwritten.
        cpu_limit: CPU seconds an item may take.

    Returns:
        One record an item: what the worker wrote, or `{"failed": kind, "why": text}`.

    Raises:
        WorkerFailed: the worker ended before it was ready.
    """
    records: list[dict[str, Any]] = []
    while len(records) < count:
        out.write_text("")
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "--out", str(out), "--first", str(len(records))],
            stderr=subprocess.PIPE,
            text=True,
        )
        errors, timed_out = _watch(process, out, cpu_limit)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        if not lines:
            raise WorkerFailed(_last_line(errors) or f"ended with status {process.returncode}")
        records += lines[1:]
        if process.returncode and len(records) < count:
            why = _last_line(errors) or f"ended with status {process.returncode}"
            records.append(
                {"failed": TIMED_OUT, "why": f"more than {cpu_limit:g} s of CPU"}
                if timed_out
                else {"failed": CRASHED, "why": why}
            )
        elif len(records) < count:
            raise WorkerFailed(f"ended after {len(records)} of {count} items, saying all was well")
    return records


def _watch(process: subprocess.Popen[str], out: Path, cpu_limit: float) -> tuple[str, bool]:
    """Waits for a process, or ends it; what it wrote as errors, and whether it was ended."""
    size, cpu, wall = -1, 0.0, 0.0
    while True:
        try:
            return process.communicate(timeout=INTERVAL)[1], False
        except subprocess.TimeoutExpired:
            now, used = time.monotonic(), _cpu_seconds(process.pid)
        if out.stat().st_size != size:
            # The first line stands for the worker's own start, which gets more time.
            size, cpu, wall = out.stat().st_size, used, now
        elif used - cpu > cpu_limit + START * (size == 0) or now - wall > 20 * cpu_limit + START:
            process.kill()
            return process.communicate()[1], True


def _cpu_seconds(pid: int) -> float:
    """CPU seconds that a process has used, or the clock where the system doesn't tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return time.monotonic()
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else ""


def do_items(items: Iterable[Callable[[], dict[str, Any]]], *, out: Path) -> None:
    """The worker's side: does items and writes their records.

    Args:
        items: what to do, from the first that is asked for; each gives its record.
        out: the file of `run_items`.
    """
    with out.open("a") as file:
        _write(file, {"ready": True})
        held = _status("VmSize:")
        if held:
            limit = held + MEMORY_LIMIT
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for item in items:
            _write(file, item())


def _write(file: Any, record: dict[str, Any]) -> None:
    file.write(json.dumps(record) + "\n")
    file.flush()


def resident() -> int:
    """Bytes of memory that this process holds now (Linux), or its peak elsewhere."""
    return _status("VmRSS:") or peak_resident()


def peak_resident() -> int:
    """Bytes of memory that this process held at most."""
    # Linux's ru_maxrss would count what the parent held when it started this process.
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM:") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int:
    """A number of bytes out of Linux's account of this process; 0 elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
