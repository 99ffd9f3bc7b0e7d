"""Grammars made to be slow, on a vocabulary of 129,280 tokens: the worst step of each.

    python -m bench.hostile [--steps 16] [--only NAME ...] [--out bench/results]

Each grammar is walked along tokens drawn from its masks, the longest of a few every second time, on
three fresh constraints and vocabularies, so that no mask is there already. *compile* is `compile`,
which tries masks of terms that look hard, *first* the first mask, *worst* the slowest accept and
mask after it, all CPU milliseconds, the least of the three; no mask may take 20. Where a limit is
met, it is named, and whether at compile or later.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.arguments import positive
from bench.walks import vocabulary
from grammaton import Grammar, LimitExceeded, Limits, Vocabulary, compile

FRESH = 3
WORST_MS = 20.0


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.hostile", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--steps", type=positive, default=16)
    parser.add_argument("--only", nargs="+", choices=HOSTILE, default=list(HOSTILE))
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args(arguments)
    tokens = vocabulary()
    lines = [
        "# Grammars made to be slow",
        "",
        f"`python -m bench.hostile`: CPU ms on 129,280 tokens, {options.steps} steps; what is"
        " measured: its docstring.",
        "",
        "| grammar | compile | first | worst | |",
        "|---|--:|--:|--:|---|",
    ]
    for name in options.only:
        lines.append(f"| {name} | {measured(HOSTILE[name], tokens, options.steps)} |")
        print(lines[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "hostile.md").write_text("\n".join(lines) + "\n")


def measured(make: Callable[[], Grammar], tokens: Vocabulary, steps: int) -> str:
    """The cells of one grammar."""
    walks = []
    for _ in range(FRESH):
        fresh = tokens.with_limits(Limits())
        fresh.index.stats()
        try:
            walks.append(walk(make(), fresh, steps))
        except LimitExceeded as error:
            said = str(error).split(";")[0].replace("\n", " ")
            return f"| | | refused at compile: {said}"
    if any(stopped for _, stopped in walks):
        met = next(stopped for _, stopped in walks if stopped)
        return f"| | | **{met}**"
    made, firsts, *rest = np.min([times for times, _ in walks], axis=0) * 1e3
    worst = max(rest, default=0.0)
    over = "**over**" if max(firsts, worst) > WORST_MS else ""
    return f"{made:.1f} | {firsts:.1f} | {worst:.1f} | {over}"


def walk(grammar: Grammar, tokens: Vocabulary, steps: int) -> tuple[list[float], str]:
    """CPU seconds of compiling, the first mask and each step, and the limit that ended them or "".

    Raises:
        LimitExceeded: it can't be compiled.
    """
    begun = time.thread_time()
    matcher = compile(grammar, tokens).matcher()
    out = np.zeros(tokens.mask_words, dtype=np.int32)
    rng = random.Random(1)
    times = [time.thread_time() - begun]
    token: int | None = None
    for number in range(steps):
        start = time.thread_time()
        try:
            if token is not None:
                matcher.accept(token)
            matcher.fill_mask(out)
        except LimitExceeded as error:
            return times, f"limit at step {number}: {error}"
        times.append(time.thread_time() - start)
        allowed = np.flatnonzero(np.unpackbits(out.view(np.uint8), bitorder="little"))
        some = [id_ for id_ in rng.choices(allowed.tolist(), k=8) if tokens.token_bytes(id_)]
        if not some:
            break
        token = some[0] if number % 2 else max(some, key=lambda i: len(tokens.token_bytes(i)))
    return times, ""


def _regex(pattern: str, *, search: bool = False) -> Callable[[], Grammar]:
    return lambda: Grammar.from_regex(pattern, search=search)


def _string(**keywords: object) -> Callable[[], Grammar]:
    return lambda: Grammar.from_json_schema({"type": "string", **keywords})


def _all_of(*patterns: str) -> Callable[[], Grammar]:
    def made() -> Grammar:
        grammar = Grammar.from_regex(patterns[0])
        for pattern in patterns[1:]:
            grammar &= Grammar.from_regex(pattern)
        return grammar

    return made


def _enum() -> list[str]:
    rng = random.Random(5)
    return [f"the same beginning {''.join(rng.choices('ab', k=14))}{i}" for i in range(10_000)]


_RUNS = """
start: "a" m~0..5 ";"
m: T | "(" m~1..3 ")"
T: /[^\\n]{1,3}/
%ignore " "
"""

HOSTILE: dict[str, Callable[[], Grammar]] = {
    "(a or b)*a(a or b){20}": _regex("(a|b)*a(a|b){20}"),
    ".*a.{20}": _regex(".*a.{20}"),
    "not .*a.{20}": lambda: ~Grammar.from_regex(".*a.{20}"),
    ".{0,1000}x.{0,1000}": _regex(".{0,1000}x.{0,1000}"),
    "& of three counts": _all_of("(ab|a|b){0,60}c", "(a|b|c){3,50}", "(ab?|b|c)*"),
    "& of three places": _all_of(".*a.{12}b.*", ".*[0-9].{10}x.*", ".*(foo|bar).{6}q.*"),
    "password by look-ahead": _regex(r"(?=.*a)(?=.*\d)(?=.*[A-Z])(?!.*\s\s).{8,100}"),
    "enum of 10,000": lambda: Grammar.from_choices(_enum()),
    "enum of 10,000, JSON": lambda: Grammar.from_json_schema({"enum": _enum()}),
    "(?:\\S+\\s+){0,50}\\S+": _regex(r"(?:\S+\s+){0,50}\S+"),
    "the same, JSON": _string(pattern=r"^(?:\S+\s+){0,50}\S+$"),
    "nested counts": _regex("((((a{0,9}b){0,9}c){0,9}d){0,9}e){0,9}f"),
    "nested counts of \\w": _regex(r"(((\w{1,30}\s?){1,30}[,;]?){1,30}\n){1,30}"),
    "rounds that look behind": _regex(r"( .{1,2}(?<=a)|\w|(|#.|b|[aé])){1,30}(|x+y)a", search=True),
    "rounds that look ahead": _regex(r"((?!foo).|(?=b)\w\w|x){1,40}"),
    "not (.{3,7}a){2,20}": lambda: (
        ~Grammar.from_regex("(.{3,7}a){2,20}") & Grammar.from_regex(r"\w{0,90}")
    ),
    "a before the last 12, JSON": _string(
        pattern="^(a|b)*a(a|b){12}$", minLength=14, maxLength=300
    ),
    "three patterns, JSON": _string(
        allOf=[{"pattern": "a.{8}b"}, {"pattern": "[0-9].{9}x"}, {"pattern": "q.{7}z"}]
    ),
    "600 optional parts": _regex("(?:a?){300}a{300}"),
    ".*a.{300}": _regex(".*a.{300}"),
    "look-behind in a row": _regex(r"(\w(?<![aeiou]{3})(?<!\d\d)(?<!th)){1,60}"),
    "counts in counts, commas": _regex(r"(.{0,50},){0,30}.{0,50}"),
    "letters of any case": _regex(r"(?i)(?:[\w-]+[ß-é]{0,5}\.){1,20}straße"),
    "& of three ends": _all_of(".*a.{8}", ".*b.{5}", ".*c.{3}"),
    "& of three lengths": _all_of("(.{7})*", "(.{11})*", "(.{13})*"),
    "& of what is not there": lambda: (
        Grammar.from_regex(r"\w{5,60}")
        & ~Grammar.from_regex(".*a.{9}b.*")
        & ~Grammar.from_regex(".*b.{7}c.*")
    ),
    "six patterns, JSON": _string(
        allOf=[{"pattern": p} for p in ("[a-z]", "[A-Z]", "[0-9]", "[!@#]", "foo", r"^\S")],
        minLength=8,
    ),
    "neither pattern, JSON": _string(
        allOf=[{"not": {"pattern": "a.{9}b"}}, {"not": {"pattern": "(foo|bar).{5}x"}}]
    ),
    "one of three patterns, JSON": _string(
        oneOf=[{"pattern": "a.{4}b"}, {"pattern": "c.{5}d"}, {"pattern": "[0-9].{3}"}]
    ),
    "long names, JSON": _string(
        pattern=r"^(?:[a-z]{1,9}-?){1,30}(?:\.(?:[a-z0-9]{1,9}_?){1,20}){0,9}$", maxLength=200
    ),
    "eight patterns of keys, JSON": lambda: Grammar.from_json_schema(
        {
            "type": "object",
            "patternProperties": {f".{{{i}}}{c}": {"minimum": i} for i, c in enumerate("abcdefgh")},
            "additionalProperties": {"type": "number"},
        }
    ),
    "eight patterns, eight kinds of values, JSON": lambda: Grammar.from_json_schema(
        {
            "type": "object",
            "patternProperties": {
                f".{{{i}}}{c}": {"properties": {c: {"type": "integer"}}}
                for i, c in enumerate("abcdefgh")
            },
        }
    ),
    "five usual patterns of keys, JSON": lambda: Grammar.from_json_schema(
        {
            "type": "object",
            "patternProperties": {
                "^x-": {},
                "[0-9]": {"type": "integer"},
                "_id$": {"type": ["string", "integer"]},
                "^.{1,20}$": {"not": {"type": "array"}},
                "[A-Z]": {"type": ["string", "object", "integer"]},
            },
        }
    ),
    "names of keys, JSON": lambda: Grammar.from_json_schema(
        {
            "type": "object",
            "properties": {f"key{i}": {"type": "integer"} for i in range(40)},
            "propertyNames": {"pattern": "^(?:[a-z]{1,5}[0-9]{0,3}){1,6}$"},
            "additionalProperties": {"type": "string", "pattern": "x.{5}y"},
        }
    ),
    "short, and no cc": lambda: Grammar.from_regex(".{0,5}") & ~Grammar.from_regex(".*cc.*"),
    "three-way & in Lark": lambda: Grammar.from_lark(
        'start: "<" A ">"\nA: /.*a.{9}[0-9].*/ & /.*b.{7}[a-f].*/ & ~/.*c.{8}[x-z].*/\n'
    ),
    "runs split in many ways, Lark": lambda: Grammar.from_lark(_RUNS),
    "the same, tokens counted": lambda: Grammar.from_lark(
        _RUNS.replace("m: T", "m: t") + "t[max_tokens=9]: T\n"
    ),
    "runs within runs, GBNF": lambda: Grammar.from_gbnf('root ::= ([^a] | [ab]{1,4}) root | "b"'),
    "a part thrice a line, JSON": _string(
        pattern="(?:(?:(?:.+[^a]){12}(?:ab|a|b){1,})+(?:foo|bar))$",
        allOf=[{"pattern": "(?:foo|bar)é\\w?[0-9]*"}],
        maxLength=83,
    ),
    "words after a capital": lambda: (
        Grammar.from_regex("[0-9]+")
        | Grammar.from_regex(r"(?=.*[A-Z])\w{11}[^a](?:[A-Z]\w\S){8,11}")
    ),
    "blanks and rounds, JSON": _string(
        pattern="\\s+(?:-{8,110}-x+(?:[A-Z]|[a-f]é+){3,131}|(?:ab|a|b)){2,138}", maxLength=17
    ),
    "a format and a length, JSON": _string(format="idn-hostname", maxLength=60),
    "a format of many letters, JSON": _string(format="idn-hostname"),
    "rounds of no text that look ahead": _regex("(?:(?:.|(?:(?:foo){0,1}|éa)|é(?=[A-Z]))){0,120}"),
    "rounds of a few": _regex("(?:[^a]{1,9}){8,9}字+"),
    "letters up to a word's": _regex(r"\Sé[^a]{1,40}\w"),
    "a format and no more, JSON": _string(format="idn-email", minLength=250),
    "multiples within bounds, JSON": lambda: Grammar.from_json_schema(
        {"type": "integer", "multipleOf": 256, "minimum": 1, "maximum": 1_000_000}
    ),
    "multiples of many digits, JSON": lambda: Grammar.from_json_schema(
        {"type": "integer", "multipleOf": 123_456, "minimum": -123_456, "maximum": 10**18}
    ),
    "multiples and no multiples, JSON": lambda: Grammar.from_json_schema(
        {"type": "number", "multipleOf": 1024, "minimum": 1, "not": {"multipleOf": 11}}
    ),
    "at most two of a pattern, JSON": lambda: Grammar.from_json_schema(
        {"contains": {"type": "string", "pattern": "a.{6}b"}, "maxContains": 2, "type": "array"}
    ),
}


if __name__ == "__main__":
    main()
