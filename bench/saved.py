"""Loading saved constraints beside compiling them.

    python -m bench.saved [--schemas 60] [--seed 1]

For real schemas on 129,280 tokens, CPU microseconds of the least of five: *compile* is from the
schema as Python objects to the first mask, *load* from the bytes of the file to the first mask,
*bytes* the size of the file, as quantiles over the schemas.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.arguments import existing, positive
from bench.walks import shuffled_walks, vocabulary
from grammaton import Constraint, Grammar, GrammatonError, Vocabulary, compile
from grammaton.index.saved_constraint import pack_constraint, unpack_constraint

DATA = Path("../shared/data/jsonschemabench-dev.jsonl.xz")
REPEATS = 5


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.saved", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--schemas", type=positive, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the order of schemas (1)")
    parser.add_argument("--data", type=existing, default=DATA)
    options = parser.parse_args(arguments)
    tokens = vocabulary()
    start = time.thread_time()
    size = len(tokens.fingerprint)
    print(f"fingerprint ({size} bytes): {(time.thread_time() - start) * 1e3:.1f} ms")
    rows: dict[str, list[float]] = {"compile": [], "load": [], "bytes": []}
    for walk in shuffled_walks(options.data, options.seed, compact=False):
        try:
            grammar = Grammar.from_json_schema(walk.schema)
            data = pack_constraint(grammar, tokens)
            compile(grammar, tokens)
        except GrammatonError:
            continue
        measured = {
            "compile": partial(compiled, walk.schema, tokens),
            "load": partial(loaded, data, tokens),
        }
        for name, make in measured.items():
            rows[name].append(spent(make))
        rows["bytes"].append(len(data))
        if len(rows["load"]) == options.schemas:
            break
    for name, values in rows.items():
        p50, p90, p99 = np.percentile(values, (50, 90, 99))
        print(f"{name:8} p50 {p50:9,.0f}  p90 {p90:9,.0f}  p99 {p99:9,.0f}")


def compiled(schema: Any, tokens: Vocabulary) -> Constraint:
    """From a schema as Python objects."""
    return compile(Grammar.from_json_schema(schema), tokens)


def loaded(data: bytes, tokens: Vocabulary) -> Constraint:
    """From the bytes of a file."""
    return compile(unpack_constraint(data, tokens), tokens)


def spent(make: Callable[[], Constraint]) -> float:
    """CPU microseconds until the first mask."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.thread_time()
        make().matcher().mask()
        best = min(best, time.thread_time() - start)
    return best * 1e6


if __name__ == "__main__":
    main()
