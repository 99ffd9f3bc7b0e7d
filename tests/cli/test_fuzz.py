"""`grammaton fuzz`: what it prints and how it ends."""

from __future__ import annotations

import os

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="targets are POSIX programs")


def test_agreement(run: Run) -> None:
    done = run("fuzz", "--regex", "a+b", "--target", "grep -qxE a+b", "--cases", "12")
    assert done.status == 0
    assert "no disagreement" in done.out


def test_disagreement(run: Run) -> None:
    line = ("fuzz", "--regex", "a+b?", "--target", "grep -qxE a+", "--cases", "12")
    done = run(*line)
    assert done.status == 1
    assert "refuses a text of the grammar" in done.out
    assert "'ab'" in done.out
    report = run(*line, "--json")
    assert report.status == 1
    (found,) = report.value["disagreements"]
    assert (found["kind"], found["text"], found["is_sentence"]) == ("refuses", "ab", True)


def test_hang(run: Run) -> None:
    done = run("fuzz", "--choices", "a", "--target", "sleep 60", "--cases", "1", "--timeout", "0.2")
    assert done.status == 1
    assert "hangs on a text of the grammar" in done.out


def test_failures(run: Run) -> None:
    assert run("fuzz", "--regex", "a").status == 2
    done = run("fuzz", "--regex", "a", "--target", "no-such-program {}")
    assert done.status == 4
    assert "there is no program 'no-such-program'" in done.err
    assert run("fuzz", "--regex", "(", "--target", "true").status == 3
    assert "timeout" in run("fuzz", "--help").out
