"""JSON Schemas that others wrote: which are compiled, whether rightly, and how long it takes.

    python -m bench.schemas [--data DIR] [--only suite|data] [--every N] [--out FILE]

Two collections, both outside the repository: the official test suite of the specification, drafts 4
to 2020-12, optional tests included, and the schemas of JSONSchemaBench with instances marked valid
or not. A *verdict* on a schema is "right" (it compiles, and every instance is accepted or stopped
as it should be), "refused" or "limit" with the reason, or "wrong". Instances are written by
`json.dumps`, keys in any order. Time is CPU time of one thread, to the machine's start, told by
split; the memory is that of all schemas, one after the other in one process.
"""

from __future__ import annotations

import argparse
import json
import lzma
import resource
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bench.arguments import existing, positive
from grammaton._core import Recognizer
from grammaton.errors import (
    GrammatonError,
    LimitExceeded,
    UnsatisfiableGrammar,
    UnsupportedKeyword,
)
from grammaton.grammar.json_schema import grammar_from_json_schema

DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
REMOTES = "http://localhost:1234/"
"""Where the suite's schemas expect its remotes."""


@dataclass
class Verdict:
    """How one schema fared.

    Attributes:
        kind: "right", "wrong", "refused" or "limit".
        reason: the error's message; None when it compiles.
        wrong: descriptions of the instances on which it was wrong.
        right: the number of instances on which it was right.
        total: the number of its instances.
        seconds: CPU time to compile.
    """

    kind: str
    reason: str | None = None
    wrong: list[str] = field(default_factory=list)
    right: int = 0
    total: int = 0
    seconds: float = 0.0


def judge(
    schema: object,
    tests: list[tuple[str, Any, bool]],
    *,
    resources: dict[str, Any] | None = None,
    ensure_ascii: bool = True,
) -> Verdict:
    """The verdict on a schema.

    Args:
        tests: (description, instance, whether it is valid).
        resources: the schemas that it may refer to.
        ensure_ascii: as in `json.dumps`.
    """
    verdict = Verdict("right", total=len(tests))
    language = None
    began = time.process_time()
    try:
        grammar = grammar_from_json_schema(schema, key_order="any", resources=resources)
        language = Recognizer(*grammar)
    except UnsatisfiableGrammar:
        pass
    except (UnsupportedKeyword, LimitExceeded) as error:
        verdict.kind = "limit" if isinstance(error, LimitExceeded) else "refused"
        verdict.reason = str(error)
    except GrammatonError as error:
        verdict.kind, verdict.reason = "wrong", repr(error)
    verdict.seconds = time.process_time() - began
    if verdict.reason is not None:
        return verdict
    try:
        for description, instance, valid in tests:
            text = json.dumps(instance, ensure_ascii=ensure_ascii).encode()
            if (language is not None and language.accepts(text)) == valid:
                verdict.right += 1
            else:
                verdict.wrong.append(description)
    except LimitExceeded as error:
        verdict.kind, verdict.reason = "limit", str(error)
    if verdict.wrong:
        verdict.kind = "wrong"
    return verdict


def suite_verdicts(folder: Path, draft: str) -> Iterator[tuple[str, str, Verdict]]:
    """(file, description, verdict) of every schema of a draft.

    Args:
        folder: the suite's.
        draft: a key of `DRAFTS`.
    """
    resources = _suite_resources(folder, draft)
    root = folder / "tests" / draft
    for path in sorted(root.rglob("*.json")):
        name = path.relative_to(root).as_posix()
        for group in json.loads(path.read_text(encoding="utf-8")):
            # Formats assert here; format.json has the same instances taken for annotated.
            tests = [
                (test["description"], test["data"], test["valid"])
                for test in group["tests"]
                if name != "format.json" or "annotation by default" not in test["description"]
            ]
            schema = _with_dialect(group["schema"], DRAFTS[draft])
            yield name, group["description"], judge(schema, tests, resources=resources)


def _with_dialect(schema: Any, uri: str) -> Any:
    if isinstance(schema, dict) and "$schema" not in schema:
        return {"$schema": uri, **schema}
    return schema


@cache
def _suite_resources(folder: Path, draft: str) -> dict[str, Any]:
    """The suite's remotes, and the specification's own schemas."""
    from jsonschema_specifications import REGISTRY

    found = {uri: REGISTRY[uri].contents for uri in REGISTRY}
    root = folder / "remotes"
    for path in sorted(root.rglob("*.json")):
        name = path.relative_to(root).as_posix()
        dialect = DRAFTS.get(name.partition("/")[0], DRAFTS[draft])
        schema = json.loads(path.read_text(encoding="utf-8"))
        found[REMOTES + name] = _with_dialect(schema, dialect)
    return found


def data_verdicts(path: Path, every: int = 1) -> Iterator[tuple[str, Verdict]]:
    """(id, verdict) of every n-th schema of JSONSchemaBench."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if i % every == 0:
                entry = json.loads(line)
                tests = [
                    (json.dumps(test["data"])[:200], test["data"], test["valid"])
                    for test in entry["tests"]
                ]
                yield entry["id"], judge(entry["schema"], tests, ensure_ascii=False)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _report_suite(folder: Path, out: dict[str, Any]) -> None:
    for draft in DRAFTS:
        counts: Counter[str] = Counter()
        for name, description, verdict in suite_verdicts(folder, draft):
            counts["right"] += verdict.right
            counts["wrong"] += len(verdict.wrong)
            counts["all"] += verdict.total
            if verdict.kind != "right":
                out[f"{draft}/{name}: {description}"] = asdict(verdict)
        unanswered = counts["all"] - counts["right"] - counts["wrong"]
        print(
            f"{draft}: {counts['all']} tests, {counts['right']} right "
            f"({counts['right'] / counts['all']:.1%}), {counts['wrong']} wrong, "
            f"{unanswered} of schemas refused"
        )


def _report_data(path: Path, every: int, out: dict[str, Any]) -> None:
    splits: dict[str, list[Verdict]] = {}
    for name, verdict in data_verdicts(path, every):
        split, mark, _ = name.partition("---")
        splits.setdefault(split if mark else name.partition("_")[0], []).append(verdict)
        splits.setdefault("all", []).append(verdict)
        if verdict.kind != "right":
            out[name] = asdict(verdict)
    for split, verdicts in sorted(splits.items()):
        kinds = Counter(verdict.kind for verdict in verdicts)
        seconds = [1000 * verdict.seconds for verdict in verdicts]
        print(
            f"{split}: {len(verdicts)} schemas, {kinds['right']} right "
            f"({kinds['right'] / len(verdicts):.1%}), {kinds['wrong']} wrong, "
            f"{kinds['refused']} refused, {kinds['limit']} beyond a limit; ms to compile: "
            f"p50 {_quantile(seconds, 0.5):.2f}, p99 {_quantile(seconds, 0.99):.1f}, "
            f"most {max(seconds):.0f}, all {sum(seconds) / 1000:.1f} s"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"memory of the process at its peak: {peak:.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=existing, default=Path("../shared/data"))
    parser.add_argument("--only", choices=["suite", "data"])
    parser.add_argument(
        "--every", type=positive, default=1, help="take every n-th schema of the data"
    )
    parser.add_argument("--out", type=Path, help="write what is not right as JSON")
    arguments = parser.parse_args()
    out: dict[str, Any] = {}
    if arguments.only != "data":
        _report_suite(arguments.data / "json-schema-test-suite", out)
    if arguments.only != "suite":
        _report_data(arguments.data / "jsonschemabench-dev.jsonl.xz", arguments.every, out)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
