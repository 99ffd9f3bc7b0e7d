"""Cache pressure: ten thousand different schemas through one vocabulary and one `ConstraintCache`.

    python -m bench.pressure [--schemas 10000] [--steps 12] [--cache-mib 64] [--frame-mib 2]

Each schema has keys, a pattern and lengths of its own, so that neither its constraint nor the masks
of its strings serve another; each is walked for some steps. Printed ten times on the way: the
constraints kept, the bytes they count, what frame masks the vocabulary holds, evictions, the
resident memory of the process above what it was with the vocabulary, and the CPU time a schema. The
bounds are `max_bytes` of the cache and `frame_cache_bytes` of the vocabulary's limits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.arguments import positive
from bench.isolation import resident
from bench.walks import vocabulary
from grammaton import ConstraintCache, Limits, Matcher


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.pressure", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--schemas", type=positive, default=10_000)
    parser.add_argument("--steps", type=positive, default=12)
    parser.add_argument("--cache-mib", type=int, default=64)
    parser.add_argument("--frame-mib", type=int, default=2)
    options = parser.parse_args(arguments)
    tokens = vocabulary().with_limits(Limits(frame_cache_bytes=options.frame_mib * 2**20))
    cache = ConstraintCache(max_bytes=options.cache_mib * 2**20)
    out = np.zeros(tokens.mask_words, dtype=np.int32)
    tokens.index.stats()
    before, start = resident(), time.process_time()
    print(
        f"{'schemas':>8}{'kept':>6}{'MiB':>6}{'evicted':>9}{'frame MiB':>10}{'above':>7}{'ms':>6}"
    )
    for number in range(1, options.schemas + 1):
        matcher = cache.get("json_schema", schema(number), tokens).matcher()
        walk(matcher, out, number, options.steps)
        if number % max(options.schemas // 10, 1) == 0:
            stats, frames = cache.stats(), tokens.index.stats()
            mib = 2**20
            print(
                f"{number:>8}{stats['entries']:>6}{stats['bytes'] / mib:>6.0f}"
                f"{stats['evictions']:>9}{frames['frame_mask_bytes'] / mib:>10.1f}"
                f"{(resident() - before) / mib:>7.0f}"
                f"{(time.process_time() - start) / number * 1e3:>6.2f}",
                flush=True,
            )


def schema(number: int) -> dict[str, Any]:
    """A schema like no other."""
    letters = "".join(chr(97 + number // 26**place % 26) for place in range(3))
    return {
        "type": "object",
        "properties": {
            f"{letters}_id": {"type": "string", "pattern": f"^[{letters}0-9 ]*x{{1,{number}}}$"},
            f"count_{number}": {"type": "integer", "minimum": number},
            "note": {"type": "string", "minLength": number % 90, "maxLength": 90 + number},
        },
        "required": [f"{letters}_id", f"count_{number}", "note"],
    }


def walk(matcher: Matcher, out: np.ndarray, seed: int, steps: int) -> None:
    """Some steps by tokens that a seed decides."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        matcher.fill_mask(out)
        allowed = np.flatnonzero(np.unpackbits(out.view(np.uint8), bitorder="little"))
        if not len(allowed):
            return
        matcher.accept(int(rng.choice(allowed)))


if __name__ == "__main__":
    main()
