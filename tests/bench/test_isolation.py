"""Workers that loop or crash cost their item and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.isolation import CRASHED, TIMED_OUT, WorkerFailed, run_items

WORKER = "tests.bench._worker"


def test_items_that_fail_are_named_and_the_rest_is_done(tmp_path: Path) -> None:
    records = run_items([WORKER], count=5, out=tmp_path / "lines", cpu_limit=0.5)
    assert [record.get("place", record.get("failed")) for record in records] == [
        0,
        TIMED_OUT,
        2,
        CRASHED,
        4,
    ]


def test_a_worker_that_cannot_start_is_no_item(tmp_path: Path) -> None:
    with pytest.raises(WorkerFailed, match="no such engine"):
        run_items([WORKER, "--broken"], count=5, out=tmp_path / "lines", cpu_limit=0.5)
