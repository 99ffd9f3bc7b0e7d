"""What a process pays before its first mask: the import, a large tokenizer, the trie over it.

`read` is from a tokenizer.json, `load` from what `Vocabulary.save` wrote; `trie` follows either.

    python -m bench startup

Each import runs in a fresh interpreter and is timed after numpy is there. Times are CPU
milliseconds, the least of ten.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.walks import EOS_TOKEN_ID, tokenizer_path
from grammaton import Vocabulary

REPEATS = 10
IMPORT = """
import time, numpy
start = time.process_time()
import grammaton
grammaton.Grammar, grammaton.Vocabulary, grammaton.compile
print(time.process_time() - start)
"""


def import_seconds() -> float:
    """CPU seconds of one import in a fresh interpreter, numpy not counted."""
    run = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    return float(run.stdout)


def seconds(action: Callable[[], object]) -> float:
    """CPU seconds of an action."""
    start = time.thread_time()
    action()
    return time.thread_time() - start


def read() -> Vocabulary:
    """The vocabulary of a tokenizer.json."""
    return Vocabulary.from_tokenizers(tokenizer_path(), eos_token_ids=[EOS_TOKEN_ID])


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench startup", description=(__doc__ or "").split("\n")[0]
    )
    parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        saved = Path(folder, "vocabulary")
        read().save(saved)

        def trie() -> float:
            vocabulary = Vocabulary.load(saved)
            return seconds(lambda: vocabulary.index)

        measures: dict[str, Callable[[], float]] = {
            "import": import_seconds,
            "read": lambda: seconds(read),
            "load": lambda: seconds(lambda: Vocabulary.load(saved)),
            "trie": trie,
        }
        for name, measure in measures.items():
            print(f"{name:12s}{min(measure() for _ in range(REPEATS)) * 1e3:8.1f} ms")
