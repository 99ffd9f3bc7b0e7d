"""Applying masks to logits in CPU memory, in place, beside XGrammar's and llguidance's kernels.

    python -m bench.apply [--sizes 1 8 64] [--threads 1] [--repeats 30] [--out bench/results]

Logits of 129,280 tokens in float32, bfloat16 and float16. Three masks: *narrow* allows 5 tokens,
*string* 97 in 100, in runs as the inside of a JSON string does, *mixed* every second one at random.
Times are microseconds a call, the least of the repeats, kernels taking turns: of CPU on one thread,
so that a busy machine decides less, of wall clock on several. *ratio* is the best peer's by ours.
llguidance's kernel is torch code that torch.compile compiles; where that finds no compiler it runs
uncompiled.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from bench.arguments import positive
from grammaton.engine.masking import apply_mask

TOKENS = 129_280
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MASKS = ("narrow", "string", "mixed")

Apply = Callable[[torch.Tensor, torch.Tensor], object]
"""Masks logits (B, V) by words (B, W) in place."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.apply", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--sizes", type=positive, nargs="+", default=[1, 8, 64], help="rows")
    parser.add_argument("--threads", type=int, default=1, help="of torch (1)")
    parser.add_argument("--repeats", type=positive, default=30)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    kernels = {"grammaton": _grammaton} | peers()
    lines = [
        "# Applying masks in place",
        "",
        f"`python -m bench.apply`: CPU, {options.threads} thread(s), 129,280 tokens, us a"
        " call; what is measured: its docstring.",
        "",
        "| rows | dtype | mask | " + " | ".join(kernels) + " | ratio |",
        "|--:|---|---|" + "--:|" * (len(kernels) + 1),
    ]
    for size in options.sizes:
        for dtype in DTYPES:
            for kind in MASKS:
                times = measure(kernels, size, dtype, kind, options.repeats)
                ours, *others = times.values()
                ratio = min(others) / ours if others else float("nan")
                cells = [f"{spent * 1e6:,.1f}" for spent in times.values()]
                lines.append(
                    f"| {size} | {str(dtype)[6:]} | {kind} | {' | '.join(cells)} | {ratio:.2f} |"
                )
                print(lines[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "apply.md").write_text("\n".join(lines) + "\n")


def measure(
    kernels: dict[str, Apply], size: int, dtype: torch.dtype, kind: str, repeats: int
) -> dict[str, float]:
    """The seconds of each kernel. All must leave the same logits."""
    words = torch.from_numpy(np.stack([mask_of_kind(kind, seed) for seed in range(size)]))
    source = torch.randn(size, TOKENS, dtype=dtype)
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    results, best = {}, dict.fromkeys(kernels, float("inf"))
    for name, apply in kernels.items():
        results[name] = source.clone()
        apply(results[name], words)
    for _ in range(repeats):
        for name, apply in kernels.items():
            logits = results[name]
            logits.copy_(source)  # and in the cache as far as it fits, for each of them
            start = clock()
            apply(logits, words)
            best[name] = min(best[name], clock() - start)
    for name, logits in results.items():
        if not torch.equal(logits, results["grammaton"]):
            raise AssertionError(f"{name} leaves other logits")
    return best


def mask_of_kind(kind: str, seed: int) -> np.ndarray:
    """One row of words, int32."""
    rng = np.random.default_rng(seed)
    bits = np.zeros(TOKENS, dtype=np.uint8)
    if kind == "narrow":
        bits[rng.choice(TOKENS, 5, replace=False)] = 1
    elif kind == "mixed":
        bits[:] = rng.integers(0, 2, TOKENS)
    else:
        bits[:] = 1
        for start in rng.choice(TOKENS - 8, TOKENS // 200, replace=False):
            bits[start : start + rng.integers(1, 12)] = 0
    return np.packbits(bits, bitorder="little").view(np.int32)


def peers() -> dict[str, Apply]:
    """The kernels of the peers that are installed."""
    found: dict[str, Apply] = {}
    try:
        import xgrammar
    except ImportError:
        print("xgrammar is not installed")
    else:
        found["xgrammar"] = lambda logits, words: xgrammar.apply_token_bitmask_inplace(
            logits, words, vocab_size=TOKENS
        )
    try:
        import llguidance.torch as llguidance
    except ImportError:
        print("llguidance is not installed")
    else:
        try:
            llguidance.apply_token_bitmask_inplace(
                torch.zeros(1, 64), torch.zeros(1, 2, dtype=torch.int32)
            )
        except Exception as error:  # torch.compile fails in many ways
            print(f"llguidance's kernel runs uncompiled: {type(error).__name__}")
            torch.compiler.set_stance("force_eager")
        found["llguidance"] = llguidance.apply_token_bitmask_inplace
    return found


def _grammaton(logits: torch.Tensor, words: torch.Tensor) -> None:
    apply_mask(logits, words, out=logits)


if __name__ == "__main__":
    main()
