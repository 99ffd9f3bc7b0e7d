"""A worker for `test_isolation`: items that end in the ways that engines' do."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.isolation import do_items

ITEMS = ("fine", "spin", "fine", "crash", "fine")


def do(kind: str, place: int) -> dict[str, Any]:
    """Ends well, never, or with the process."""
    while kind == "spin":
        pass
    if kind == "crash":
        os.abort()
    return {"place": place}


def main() -> None:
    """Does ITEMS from --first on; says it is ready unless --broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--first", type=int)
    options = parser.parse_args()
    if options.broken:
        raise SystemExit("no such engine")
    items: Iterator[Any] = (partial(do, ITEMS[i], i) for i in range(options.first, len(ITEMS)))
    do_items(items, out=options.out)


if __name__ == "__main__":
    main()
