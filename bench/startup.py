"""What a process pays before its first mask: the import, and reading a large tokenizer.

    python -m bench.startup

Each import runs in a fresh interpreter and is timed after numpy is there. Times are CPU
milliseconds, the least of ten.
"""

from __future__ import annotations

import subprocess
import sys
import time

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


def vocabulary_seconds() -> float:
    """CPU seconds from the tokenizer's file to a vocabulary."""
    start = time.thread_time()
    Vocabulary.from_tokenizers(tokenizer_path(), eos_token_ids=[EOS_TOKEN_ID])
    return time.thread_time() - start


def main() -> None:
    """The command line."""
    for name, measure in (("import", import_seconds), ("vocabulary", vocabulary_seconds)):
        print(f"{name:12s}{min(measure() for _ in range(REPEATS)) * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
