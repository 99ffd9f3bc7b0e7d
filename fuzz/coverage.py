"""`python -m grammaton.fuzz.coverage TARGET [libFuzzer options]`: a target guided by coverage.

atheris (libFuzzer for Python; `pip install atheris`) draws bytes and keeps those that reach new
lines of the library. Here they stand in for the random numbers that a target draws its cases from,
so that every target can be run so without knowing of it. A finding is made small and printed with
the command that replays it, as `python -m grammaton.fuzz` does.

    python -m grammaton.fuzz.coverage schemas corpus/ -max_total_time=60

keeps in `corpus/` what reached new lines, and goes on from there the next time.
"""

from __future__ import annotations

import json
import shlex
import sys
from random import Random
from typing import Any

from grammaton.fuzz.target import Target, failure_of, shrink


class BytesRandom(Random):
    """Random numbers that are bytes given before, and zeros when those have run out."""

    def __new__(cls, data: bytes) -> BytesRandom:
        return super().__new__(cls)

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data = data
        self._at = 0

    def getrandbits(self, k: int, /) -> int:
        """The next bytes, as many as hold `k` bits."""
        size = (k + 7) // 8
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "little") & ((1 << k) - 1)

    def random(self) -> float:
        """A float in [0, 1) of the next two bytes: no target needs finer ones."""
        return self.getrandbits(16) / (1 << 16)


def check_bytes(target: Target, data: bytes) -> None:
    """Checks the case that a target draws from bytes.

    Raises:
        SystemExit: it fails; the smallest case found and how to replay it are printed.
    """
    case = target.draw(BytesRandom(data))
    failure = failure_of(target, case)
    if failure is None:
        return
    case, message = shrink(target, case, *failure)
    print(f"{target.name}: {message}")
    again = shlex.quote(json.dumps(case))
    print(f"again with\n    python -m grammaton.fuzz --target {target.name} --replay {again}")
    raise SystemExit(1)


def main(arguments: list[str]) -> int:
    """Runs libFuzzer on one target until it finds something or its own options end it."""
    try:
        import atheris
    except ImportError:
        print("this needs atheris: pip install atheris", file=sys.stderr)
        return 2
    with atheris.instrument_imports(include=["grammaton"]):
        # Front ends are imported when first used; here, so that they are instrumented too.
        from grammaton.fuzz.__main__ import TARGETS

    name = arguments[0] if arguments else ""
    if name not in TARGETS:
        print(f"which target? One of {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    chosen: Any = TARGETS[name]
    atheris.Setup([sys.argv[0], *arguments[1:]], lambda data: check_bytes(chosen, data))
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
