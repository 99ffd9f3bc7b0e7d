"""Threads that are inside of the core when the process ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import threading, time
import numpy as np
from grammaton import Grammar, Vocabulary, compile, fill_masks

tokens = [bytes([byte]) for byte in range(256)] + [b"%d" % n for n in range(40_000)] + [b""]
vocabulary = Vocabulary(tokens, eos_token_ids=len(tokens) - 1)

def one(number):
    matcher, mask = constraint(number).matcher(), np.zeros(vocabulary.mask_words, dtype=np.int32)
    matcher.fill_mask(mask)

def several(number):
    rows = np.zeros((8, vocabulary.mask_words), dtype=np.int32)
    fill_masks([constraint(number).matcher() for _ in rows], rows, threads=2)

def steps(number):
    matcher = constraint(number).matcher()
    matcher.accept(ord("1"))
    matcher.validate([ord("1")] * 5)
    matcher.forced_tokens()

def constraint(number):
    grammar = Grammar.from_regex(f"[0-9]{{{number % 50}}}[a-z]*.*1.*|x{{{number}}}")
    return compile(grammar, vocabulary)

class TakesTime:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)  # so that calls come back while the interpreter is taken down

def run(work):
    for number in range(1, 1_000_000):
        work(number)
        begun[work].set()

begun = {work: threading.Event() for work in WORKS}
for work in WORKS:
    threading.Thread(target=run, args=[work], daemon=True).start()
for event in begun.values():
    event.wait()
at_the_end = TakesTime()
print("ends", flush=True)
"""


@pytest.mark.parametrize("works", ["one", "several", "steps", "one, several, steps"])
def test_a_process_ends_while_daemon_threads_work(works: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("WORKS", f"[{works}]")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


FORKS = """
import os, threading
import numpy as np
from grammaton import Grammar, Vocabulary, compile

tokens = [bytes([byte]) for byte in range(256)] + [b"%d" % n for n in range(40_000)] + [b""]
vocabulary = Vocabulary(tokens, eos_token_ids=len(tokens) - 1)

def work():
    for number in range(1, 1_000_000):
        grammar = Grammar.from_regex(f".*1.*|x{{{number}}}")
        compile(grammar, vocabulary).matcher().fill_mask(np.zeros(vocabulary.mask_words, np.int32))
        begun.set()

begun = threading.Event()
threading.Thread(target=work, daemon=True).start()
begun.wait()
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
print("ends", flush=True)
"""


@pytest.mark.forks
@pytest.mark.skipif(not hasattr(sys.modules["os"], "fork"), reason="no fork here")
def test_a_child_does_not_wait_for_its_parents_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ends\nends\n"), done.stderr
