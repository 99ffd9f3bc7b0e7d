"""Real schemas: every one is compiled or refused by pointer, and compiled ones are never wrong.

The data is JSONSchemaBench (see the folder's README): schemas with instances marked valid or not.
A run takes every 40th schema; `GRAMMATON_FULL_DATA=1` takes all of them (some minutes).
"""

from __future__ import annotations

import json
import lzma
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grammaton._core import Recognizer
from grammaton.errors import (
    GrammatonError,
    LimitExceeded,
    UnsatisfiableGrammar,
    UnsupportedKeyword,
)
from grammaton.grammar.json_schema import grammar_from_json_schema

STEP = 1 if os.environ.get("GRAMMATON_FULL_DATA") == "1" else 40


def _lines(folder: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(folder / "jsonschemabench-dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if i % STEP == 0:
                yield json.loads(line)


def test_compiled_schemas_are_never_wrong(data_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    wrong = []
    for line in _lines(data_path):
        try:
            grammar = grammar_from_json_schema(line["schema"], key_order="any")
            language = Recognizer(*grammar)
        except UnsupportedKeyword as refusal:
            outcomes["refused"] += 1
            wrong += [(line["id"], "no pointer")] if refusal.pointer is None else []
            continue
        except UnsatisfiableGrammar:
            outcomes["unsatisfiable"] += 1
            wrong += [(line["id"], test) for test in line["tests"] if test["valid"]]
            continue
        except LimitExceeded:
            outcomes["too large"] += 1
            continue
        except GrammatonError as error:
            wrong.append((line["id"], repr(error)))
            continue
        outcomes["compiled"] += 1
        for test in line["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False).encode()
            if language.accepts(text) != test["valid"]:
                wrong.append((line["id"], test))
    assert not wrong
    assert outcomes["compiled"] > 0.93 * sum(outcomes.values()), outcomes
