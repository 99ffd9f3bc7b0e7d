"""The command `grammaton`.

`grammaton demo` lets a small real model answer under a JSON Schema or a regular expression, on this
machine's CPU, and reports what the constraint cost. The answer goes to standard output as it is
written, everything else to standard error, so that the answer can be piped.

Exit status: 0 when the answer is whole and valid, 1 when it is not or something failed, 2 for wrong
usage, 130 when interrupted. Nothing heavy is imported before it is needed: the help works without
torch, and a missing package is named together with the extra that brings it.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from grammaton.errors import GrammatonError

if TYPE_CHECKING:
    from grammaton.engine import Generation
    from grammaton.grammar.grammar import Grammar

_DESCRIPTION = """\
Constrained decoding: a language model that can only say what a grammar allows.
"""

_EPILOG = """\
examples:
  grammaton demo
  grammaton demo --prompt "Invent a board game." --seed 7
  grammaton demo --schema person.json --prompt "Describe Ada Lovelace."
  grammaton demo --regex '(red|green|blue) [0-9]{2}' --prompt "Pick a colour and a number."
"""

_DEMO = """\
Lets SmolLM2-135M-Instruct, a small model that runs on any CPU, answer a prompt under a JSON Schema
or a regular expression. The first start converts the model (about 20 s) and caches it; later ones
take seconds. Every token mask is worked out on a CPU thread while the model runs.
"""

_PROMPT = "Invent a friendly robot: its name, its job, its age, what it likes and its motto."

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 24},
        "job": {"enum": ["gardener", "librarian", "cook", "astronomer"]},
        "age": {"type": "integer", "minimum": 1, "maximum": 99},
        "likes": {
            "type": "array",
            "items": {"type": "string", "minLength": 3, "maxLength": 24},
            "minItems": 2,
            "maxItems": 3,
        },
        "motto": {"type": "string", "minLength": 8, "maxLength": 80},
    },
    "required": ["name", "job", "age", "likes", "motto"],
    "additionalProperties": False,
}

_NEEDED = ("torch", "transformers", "tokenizers", "jsonschema", "gguf", "accelerate")


class _CommandError(Exception):
    """A message for the person at the terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: those after the command's name; `sys.argv[1:]` by default.

    Returns:
        The exit status.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return _demo(options)
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except (GrammatonError, _CommandError) as error:
        _say(f"grammaton: {error}")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grammaton",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"grammaton {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    demo = commands.add_parser(
        "demo",
        help="watch a real model answer under a schema or a regex",
        description=_DEMO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = demo.add_mutually_exclusive_group()
    what.add_argument(
        "--schema", metavar="FILE", type=Path, help="a JSON Schema; a built-in one by default"
    )
    what.add_argument("--regex", metavar="RE", help="a regular expression, Python's dialect")
    demo.add_argument("--prompt", metavar="TEXT", help="what to ask the model")
    demo.add_argument(
        "--max-tokens", metavar="N", type=int, default=256, help="most tokens (default: 256)"
    )
    demo.add_argument(
        "--temperature", metavar="T", type=float, default=0.7, help="0 is greedy (default: 0.7)"
    )
    demo.add_argument("--seed", metavar="N", type=int, default=0, help="default: 0")
    demo.add_argument(
        "--model",
        metavar="DIR",
        type=Path,
        help="a transformers folder to use instead of the demo's model",
    )
    return parser


def _version() -> str:
    try:
        return importlib.metadata.version("grammaton")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _demo(options: argparse.Namespace) -> int:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise _CommandError(
            f"the demo needs {', '.join(missing)}; pip install 'grammaton[demo]' brings "
            f"{'it' if len(missing) == 1 else 'them'}"
        )
    schema = None if options.regex is not None else _read_schema(options.schema)
    grammar = _grammar(schema, options.regex)
    prompt = options.prompt or (_PROMPT if options.schema is None else "Make up an example.")
    if options.regex is not None and options.prompt is None:
        prompt = f"Write one text that matches the regular expression {options.regex}"

    # torch's threads burn their core while they wait for each other, which on a machine that is
    # busy with anything else makes every operation many times slower. Read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    started = perf_counter()
    from grammaton.engine import load, load_demo_model

    def progress(stage: str) -> None:
        _say(f"[{perf_counter() - started:5.1f} s] {stage} …")

    engine = load(options.model) if options.model else load_demo_model(progress=progress)
    progress("reading the vocabulary")
    _say(f"[{perf_counter() - started:5.1f} s] ready: {engine.vocabulary}\n\n> {prompt}\n")

    content = prompt
    if schema is not None:
        content += f"\n\nAnswer briefly, in JSON of this schema:\n{json.dumps(schema)}"
    stream = engine.stream(
        [{"role": "user", "content": content}],
        grammar,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        seed=options.seed,
    )
    with stream:
        for piece in stream:
            print(piece, end="", flush=True)
    print(flush=True)
    verdict, is_good = _verdict(stream.result, schema, options.regex)
    _say(f"\n{verdict}\n{_report(stream.result)}")
    return 0 if is_good else 1


def _read_schema(path: Path | None) -> Any:
    if path is None:
        return _SCHEMA
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise _CommandError(f"can't read the schema: {error}") from error
    except ValueError as error:
        raise _CommandError(f"{path} is not JSON: {error}") from error


def _grammar(schema: Any, regex: str | None) -> Grammar:
    from grammaton.grammar.grammar import Grammar

    if regex is not None:
        return Grammar.from_regex(regex)
    return Grammar.from_json_schema(schema)


def _verdict(result: Generation, schema: Any, regex: str | None) -> tuple[str, bool]:
    """What an independent check says of the answer, and whether all is well."""
    if not result.is_complete:
        return (
            f"CUT after {result.metrics.completion_tokens} tokens ({result.finish_reason}): "
            "the answer is not whole; raise --max-tokens"
        ), False
    if regex is not None:
        matches = re.fullmatch(regex, result.text) is not None
        return (
            "matches" if matches else "DOES NOT match"
        ) + " the regex (checked with re)", matches
    import jsonschema

    checker = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    errors = checker(schema, format_checker=checker.FORMAT_CHECKER).iter_errors(result.value)
    first = next(iter(errors), None)
    if first is not None:
        return f"INVALID against the schema: {first.message} (at {first.json_path})", False
    return "valid against the schema (checked with jsonschema)", True


def _report(result: Generation) -> str:
    metrics = result.metrics
    lines = [
        f"{metrics.completion_tokens} tokens ({metrics.forced_tokens} forced), "
        f"{metrics.tokens_per_second:.1f} tokens/s, ended by {result.finish_reason}",
    ]
    if metrics.ttft is not None:
        lines.append(
            f"first token after {metrics.ttft * 1e3:.0f} ms, of which "
            f"{metrics.compile_time * 1e3:.1f} ms compiling"
        )
    p50, p99 = metrics.mask_percentile(50), metrics.mask_percentile(99)
    share = metrics.hidden_share
    if p50 is not None and p99 is not None and share is not None:
        lines.append(
            f"masks: p50 {p50 * 1e6:.0f} us, p99 {p99 * 1e6:.0f} us of a CPU thread, "
            f"{share:.1%} hidden behind the model"
        )
    return "\n".join(lines)
