"""Texts of every grammar by the real model: how many finish, and are they right?

A *task* asks for a text of one grammar about several subjects, after two examples, at temperature
1 and at most so many tokens. A finished text goes to the grammar's independent parser; what the
token limit cut must begin some text of the language, which the recognizer decides without masks.
Some minutes a grammar on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from bench.grammars import Sample
from grammaton.engine import Generation, load_demo_model

WANTED = 0.75
"""The share of texts of each grammar that should finish."""


@dataclass(frozen=True)
class Task:
    """What to ask for: `ask` with each of `subjects`; `examples` are (subject, text)."""

    ask: str
    examples: tuple[tuple[str, str], ...]
    subjects: tuple[str, ...]

    def messages(self, subject: str) -> list[dict[str, str]]:
        """A chat in which the examples were answered already."""
        turns = []
        for known, answer in self.examples:
            turns.append({"role": "user", "content": self.ask.format(subject=known)})
            turns.append({"role": "assistant", "content": answer})
        return [*turns, {"role": "user", "content": self.ask.format(subject=subject)}]


TASKS = {
    "arithmetic": Task(
        "A formula for {subject}, in one line.",
        (
            ("the area of a rectangle", "x * y"),
            ("the length of a diagonal", "sqrt(x ** 2 + y ** 2)"),
        ),
        ("the area of a circle", "the mean of two numbers", "a tenth of a number"),
    ),
    "json": Task(
        "A small JSON object about {subject}, in one line.",
        (
            ("a lamp", '{"name": "lamp", "watts": 40, "colors": ["red", "white"]}'),
            ("a dog", '{"kind": "dog", "age": 3, "owner": {"name": "Ann"}, "friendly": true}'),
        ),
        ("a book", "a city", "a car", "a meal", "a song"),
    ),
    "lua": Task(
        "A short Lua function that gives {subject}.",
        (
            (
                "the greater of two numbers",
                "function greater(a, b)\n  if a > b then\n    return a\n  end\n  return b\nend\n",
            ),
            ("the square of a number", "function square(x)\n  return x * x\nend\n"),
        ),
        ("the smaller of two numbers", "the sum of two numbers", "the double of a number"),
    ),
    "python": Task(
        "A short Python function that gives {subject}.",
        (
            (
                "the greater of two numbers",
                "def greater(a, b):\n    if a > b:\n        return a\n    return b\n",
            ),
            ("the square of a number", "def square(x):\n    return x * x\n"),
        ),
        ("the smaller of two numbers", "the sum of two numbers", "the double of a number"),
    ),
    "regex": Task(
        "A short regular expression for {subject}.",
        (("a number", r"^-?\d+(\.\d+)?$"), ("a word in lower case", "^[a-z]+$")),
        ("a date", "a time", "a phone number", "a name", "a file name"),
    ),
    "sql": Task(
        "An SQL query over users(id, name, age) and orders(user_id, total, placed) for {subject}.",
        (
            ("all adults", "SELECT name FROM users WHERE age >= 18;"),
            (
                "the sum of orders by user",
                "SELECT user_id, SUM(total) FROM orders GROUP BY user_id;",
            ),
        ),
        ("all users", "the oldest user", "the number of orders", "orders above 100", "all names"),
    ),
    "xml": Task(
        "A very short document in XML about {subject}.",
        (
            ("cats", "<doc><p>Cats <b>sleep</b> a lot.</p></doc>"),
            ("tea", "<doc><ul><li>green</li><li>black</li></ul></doc>"),
        ),
        ("rain", "trains", "bread", "the sea", "music"),
    ),
}


def generate(
    samples: Sequence[Sample], *, texts: int, max_tokens: int, dtype: str, show: bool
) -> bool:
    """Generates and prints a line a grammar.

    Args:
        samples: grammars; each has its task here.
        texts: how many to make of each, in one batch.
        max_tokens: the limit a text.
        dtype: of the model's weights, "float32" or "bfloat16".
        show: print every text as well.

    Returns:
        Whether enough finished, all of them parse, and what was cut could go on.
    """
    engine = load_demo_model(dtype="bfloat16" if dtype == "bfloat16" else "float32")
    good = True
    for sample in samples:
        task = TASKS[sample.name]
        grammar = sample.grammar()
        started = perf_counter()
        results = engine.generate_batch(
            [task.messages(task.subjects[i % len(task.subjects)]) for i in range(texts)],
            grammar,
            seeds=range(texts),
            max_tokens=max_tokens,
        )
        seconds = perf_counter() - started
        finished = [r for r in results if r.finish_reason in ("grammar", "eos")]
        problems = [problem for r in finished if (problem := _problem(sample, r.text))]
        cut = [result for result in results if result.finish_reason == "length"]
        problems += [f"not a prefix: {r.text!r}" for r in cut if not grammar.accepts_prefix(r.text)]
        problems += [f"failed: {r.error}" for r in results if r.finish_reason == "error"]
        good = good and not problems and len(finished) >= WANTED * len(results)
        _print(sample.name, results, len(finished), len(cut), problems, seconds)
        for result in results if show else ():
            print(f"  {result.finish_reason:8}{result.text!r}")
    return good


def _problem(sample: Sample, text: str) -> str:
    try:
        sample.check(text)
    except Exception as error:  # parsers raise what they like
        return f"{text!r}: {error}"
    return ""


def _print(
    name: str,
    results: Sequence[Generation],
    finished: int,
    cut: int,
    problems: Sequence[str],
    seconds: float,
) -> None:
    masks = sorted(time for result in results for time in result.metrics.mask_cpu_times)
    tokens = sum(result.metrics.completion_tokens for result in results)
    at = [f"{masks[int((len(masks) - 1) * share)] * 1e6:.1f}" for share in (0.5, 0.99, 1)]
    print(
        f"{name:12}{finished} of {len(results)} finished, {cut} cut, {len(problems)} wrong; "
        f"{tokens} tokens in {seconds:.0f} s; step and mask p50 {at[0]}, p99 {at[1]}, "
        f"max {at[2]} us",
        flush=True,
    )
    for problem in problems:
        print("  " + problem)
