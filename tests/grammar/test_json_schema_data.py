"""Schemas that others wrote, against ratchets: files of what is refused, which must not grow.

`ratchet-suite.json` lists the schemas of the official test suite that are refused or, where a
format's language is a stated approximation, wrong; `ratchet-data.json` those of JSONSchemaBench
that are refused. A schema that is refused and not
listed fails the test, and so does one that is listed and is right: its line is to be taken out.
The data is outside the repository (see conftest.py); a run takes every 40th of JSONSchemaBench,
`GRAMMATON_FULL_DATA=1` all of them (some minutes).
`GRAMMATON_UPDATE_RATCHETS=1` writes the files anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.schemas import DRAFTS, Verdict, data_verdicts, suite_verdicts

CASES = Path(__file__).resolve().parents[1] / "cases" / "json_schema"
UPDATE = os.environ.get("GRAMMATON_UPDATE_RATCHETS") == "1"
FULL = UPDATE or os.environ.get("GRAMMATON_FULL_DATA") == "1"


def _read(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CASES / name).read_text(encoding="utf-8"))
    return loaded


def _write(name: str, found: dict[str, Any]) -> None:
    lines = [f" {json.dumps(key)}: {json.dumps(found[key])}" for key in sorted(found)]
    (CASES / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _entry(verdict: Verdict) -> str | list[str]:
    """What a ratchet keeps: the reason of a refusal, or the tests that are wrong."""
    return verdict.wrong if verdict.reason is None else verdict.reason


@pytest.mark.parametrize("draft", list(DRAFTS))
def test_official_suite(data_path: Path, draft: str) -> None:
    listed = _read("ratchet-suite.json")
    found = {
        f"{draft}/{name}: {description}": _entry(verdict)
        for name, description, verdict in suite_verdicts(
            data_path / "json-schema-test-suite", draft
        )
        if verdict.kind != "right"
    }
    others = {key: entry for key, entry in listed.items() if not key.startswith(f"{draft}/")}
    if UPDATE:
        _write("ratchet-suite.json", {**others, **found})
        return
    mine = {key: entry for key, entry in listed.items() if key.startswith(f"{draft}/")}
    assert {key: type(entry) for key, entry in found.items()} == {
        key: type(entry) for key, entry in mine.items()
    }
    wrong = {key: entry for key, entry in found.items() if isinstance(entry, list)}
    assert wrong == {key: mine[key] for key in wrong}
    assert all("optional/" in key for key in wrong), wrong


def test_compiled_schemas_are_never_wrong(data_path: Path) -> None:
    listed = _read("ratchet-data.json")
    path = data_path / "jsonschemabench-dev.jsonl.xz"
    verdicts = dict(data_verdicts(path, 1 if FULL else 40))
    wrong = {name: verdict for name, verdict in verdicts.items() if verdict.kind == "wrong"}
    assert not wrong
    refused = {name: verdict.reason for name, verdict in verdicts.items() if verdict.reason}
    if UPDATE:
        _write("ratchet-data.json", refused)
        return
    assert set(refused) == {name for name in verdicts if name in listed}
