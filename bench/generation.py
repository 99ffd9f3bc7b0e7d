"""Whole answers on the real model: do they finish, are they valid, how fast are they?

Runs topics x schemas x seeds at temperature 1 through SmolLM2-135M-Instruct, in batches, validates
every finished text with `jsonschema`, and prints the share that finished, the cut ones, tokens per
second and mask times. The exit status is 1 when a finished text is invalid, a row failed, or less
than 90 % finish.

    python -m bench.generation                                     20 x 5 x 3 answers, some minutes
    python -m bench.generation --prompts 5 --schemas 1 --seeds 1   what CI runs

Tokens per second are those of the batch: all tokens by the wall time. Mask times are the
worker's CPU time, one matcher step and one mask each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any

import jsonschema

# As in `grammaton demo`: torch's threads shall not burn their core while they wait.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

from bench.arguments import positive
from grammaton.engine import Engine, Generation, load_demo_model
from grammaton.grammar.grammar import Grammar

TOPICS = [
    "a lighthouse",
    "a village bakery",
    "a night train",
    "a chess club",
    "a city garden",
    "a school play",
    "a mountain hut",
    "a second-hand bookshop",
    "a robot that waters plants",
    "a jazz evening",
    "a bicycle repair stand",
    "a weather balloon",
    "a pottery course",
    "a ferry to an island",
    "a family of owls",
    "a solar oven",
    "a language exchange",
    "a marathon",
    "a beehive on a roof",
    "a museum of clocks",
]


@dataclass(frozen=True)
class Task:
    """A schema, what to ask for, and an answer to another topic for a small model to go by."""

    name: str
    ask: str
    example: dict[str, Any]
    schema: dict[str, Any]


def _text(high: int, low: int = 3) -> dict[str, Any]:
    return {"type": "string", "minLength": low, "maxLength": high}


def _closed(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TASKS = [
    Task(
        "listing",
        "Write a short listing for {topic}: its name, a category, the price in euros, whether it "
        "is open, and up to three tags.",
        {
            "name": "Blue Lagoon Pool",
            "category": "sport",
            "price": 12,
            "open": True,
            "tags": ["water", "family"],
        },
        _closed(
            name=_text(40),
            category={"enum": ["food", "culture", "sport", "travel", "nature", "other"]},
            price={"type": "integer", "minimum": 0, "maximum": 500},
            open={"type": "boolean"},
            tags={"type": "array", "items": _text(16), "minItems": 1, "maxItems": 3},
        ),
    ),
    Task(
        "event",
        "Announce an event at {topic}: a title, the date, the starting time, a contact address, "
        "and the number of seats.",
        {
            "title": "Harvest Dinner",
            "date": "2025-09-14",
            "start": "18:30",
            "contact": "info@harvest.org",
            "seats": 40,
        },
        _closed(
            title=_text(50),
            date={"type": "string", "format": "date"},
            start={"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"},
            contact={"type": "string", "pattern": "^[a-z]{2,12}@[a-z]{2,12}\\.(org|com|net)$"},
            seats={"type": "integer", "minimum": 1, "maximum": 2000},
        ),
    ),
    Task(
        "plan",
        "Plan a visit to {topic} in two steps: each step says what to do, for how many minutes, "
        "and which step is next, null after the last.",
        {
            "do": "See the old harbour",
            "minutes": 45,
            "next": {"do": "Have lunch", "minutes": 60, "next": None},
        },
        {
            "$ref": "#/$defs/step",
            "$defs": {
                "step": _closed(
                    do=_text(40),
                    minutes={"type": "integer", "minimum": 1, "maximum": 240},
                    next={"anyOf": [{"type": "null"}, {"$ref": "#/$defs/step"}]},
                )
            },
        },
    ),
    Task(
        "quiz",
        "Write a quiz question about {topic} with three possible answers, the number of the right "
        "one, and how hard it is.",
        {
            "question": "Which planet is nearest to the sun?",
            "answers": ["Venus", "Mercury", "Mars"],
            "right": 2,
            "level": "easy",
        },
        _closed(
            question=_text(90, 10),
            answers={"type": "array", "items": _text(30, 1), "minItems": 3, "maxItems": 3},
            right={"enum": [1, 2, 3]},
            level={"enum": ["easy", "medium", "hard"]},
        ),
    ),
    Task(
        "review",
        "Review {topic}: stars, one sentence, what was good, what was bad (or null), and whether "
        "you would come again.",
        {
            "stars": 4,
            "sentence": "A quiet place with very kind people.",
            "good": "The soup",
            "bad": None,
            "again": True,
        },
        _closed(
            stars={"type": "integer", "minimum": 1, "maximum": 5},
            sentence=_text(100, 10),
            good=_text(40),
            bad={"anyOf": [{"type": "null"}, _text(40)]},
            again={"type": "boolean"},
        ),
    ),
]


@dataclass(frozen=True)
class Case:
    """One answer to be made."""

    task: Task
    topic: str
    seed: int

    @property
    def messages(self) -> list[dict[str, str]]:
        ask = self.task.ask.format(topic=self.topic)
        example = json.dumps(self.task.example)
        content = f"{ask} Be brief. Answer in one line of JSON, like this: {example}"
        return [{"role": "user", "content": content}]

    def __str__(self) -> str:
        return f"{self.task.name}, {self.topic}, seed {self.seed}"


def main() -> int:
    options = _options()
    if options.threads:
        torch.set_num_threads(options.threads)
    started = perf_counter()
    engine = load_demo_model(dtype=options.dtype, progress=lambda stage: print(f"… {stage}"))
    print(f"loaded {engine.vocabulary} in {perf_counter() - started:.1f} s, {options.dtype}")
    tasks = TASKS[: options.schemas]
    grammars = {task.name: Grammar.from_json_schema(task.schema) for task in tasks}
    cases = [
        Case(task, topic, seed)
        for task, topic, seed in product(tasks, TOPICS[: options.prompts], range(options.seeds))
    ]
    started = perf_counter()
    results = list(_answers(engine, cases, grammars, options))
    return _report(cases, results, perf_counter() - started)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Whole answers on the real model.")
    parser.add_argument("--prompts", type=positive, default=len(TOPICS), help="topics a schema")
    parser.add_argument("--schemas", type=positive, default=len(TASKS))
    parser.add_argument("--seeds", type=positive, default=3)
    parser.add_argument("--max-tokens", type=positive, default=256)
    parser.add_argument("--batch", type=positive, default=64, help="rows decoded together")
    parser.add_argument("--forced", default="canonical", choices=["off", "exact", "canonical"])
    parser.add_argument("--threads", type=int, default=0, help="torch's threads; 0 for its default")
    parser.add_argument("--dtype", default=_fastest(), choices=["float32", "bfloat16"])
    return parser.parse_args()


def _fastest() -> str:
    """Floats for a batch: bfloat16 where the CPU multiplies matrices of it, or on a GPU."""
    has_amx = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)()
    return "bfloat16" if has_amx or torch.cuda.is_available() else "float32"


def _answers(
    engine: Engine,
    cases: list[Case],
    grammars: dict[str, Grammar],
    options: argparse.Namespace,
) -> Iterator[Generation]:
    for first in range(0, len(cases), options.batch):
        batch = cases[first : first + options.batch]
        started = perf_counter()
        results = engine.generate_batch(
            [case.messages for case in batch],
            [grammars[case.task.name] for case in batch],
            seeds=[case.seed for case in batch],
            max_tokens=options.max_tokens,
            forced=options.forced,
        )
        seconds = perf_counter() - started
        tokens = sum(result.metrics.completion_tokens for result in results)
        print(f"  {len(batch)} answers, {tokens} tokens, {seconds:.1f} s", flush=True)
        yield from results


def _report(cases: list[Case], results: list[Generation], seconds: float) -> int:
    pairs = list(zip(cases, results, strict=True))
    finished = [pair for pair in pairs if pair[1].finish_reason in ("grammar", "eos")]
    failed = [pair for pair in pairs if pair[1].finish_reason == "error"]
    cut = [pair for pair in pairs if pair[1].finish_reason == "length"]
    invalid = [pair for pair in finished if not _is_valid(*pair)]
    for case, result in cut:
        print(f"cut: {case} after {result.metrics.completion_tokens} tokens: {result.text[-60:]!r}")
    for case, result in failed:
        print(f"FAILED: {case}: {result.error}")
    for case, result in invalid:
        print(f"INVALID: {case}: {result.text}")
    share = len(finished) / len(pairs)
    print(
        f"{len(pairs)} answers: {len(finished)} finished ({share:.1%}), "
        f"{len(finished) - len(invalid)} of them valid; {len(cut)} cut, {len(failed)} failed"
    )
    _report_times([result for _, result in pairs], seconds)
    return 0 if share >= 0.9 and not invalid and not failed else 1


def _is_valid(case: Case, result: Generation) -> bool:
    checker = jsonschema.Draft202012Validator
    validator = checker(case.task.schema, format_checker=checker.FORMAT_CHECKER)
    return not list(validator.iter_errors(result.value))


def _report_times(results: list[Generation], seconds: float) -> None:
    tokens = sum(result.metrics.completion_tokens for result in results)
    forced = sum(result.metrics.forced_tokens for result in results)
    print(f"{tokens} tokens ({forced} forced) in {seconds:.1f} s: {tokens / seconds:.0f} tokens/s")
    masks = sorted(time for result in results for time in result.metrics.mask_cpu_times)
    if masks:
        p50, p99 = masks[len(masks) // 2], masks[min(len(masks) - 1, len(masks) * 99 // 100)]
        spent = sum(result.metrics.mask_time for result in results)
        hidden = sum(result.metrics.mask_hidden for result in results) / spent
        print(
            f"{len(masks)} masks: p50 {p50 * 1e6:.1f} us, p99 {p99 * 1e6:.1f} us, "
            f"max {masks[-1] * 1e6:.0f} us, {hidden:.1%} hidden behind the model"
        )


if __name__ == "__main__":
    sys.exit(main())
