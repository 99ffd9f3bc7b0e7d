"""`grammaton demo`: a small real model answers under a JSON Schema or a regular expression.

It runs on this machine's CPU, and says what the constraint cost and what an independent check makes
of the answer.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grammaton.cli.console import CommandError, Finite, Status, messages
from grammaton.cli.generate import Session, report
from grammaton.cli.sources import SourceError
from grammaton.errors import GrammatonError

if TYPE_CHECKING:
    from grammaton.engine import Generation
    from grammaton.grammar.grammar import Grammar

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

_EPILOG = """\
\b
examples:
  grammaton demo
  grammaton demo --prompt "Invent a board game." --seed 7
  grammaton demo --schema person.json --prompt "Describe Ada Lovelace."
  grammaton demo --regex '(red|green|blue) [0-9]{2}' --prompt "Pick a colour and a number."
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--schema", metavar="FILE", type=Path, help="a JSON Schema; a built-in one by default"
)
@click.option("--regex", metavar="RE", help="a regular expression, Python's dialect")
@click.option("--prompt", metavar="TEXT", help="what to ask the model")
@click.option("--max-tokens", type=int, default=256, show_default=True, help="most tokens")
@click.option("--temperature", type=Finite(0), default=0.7, show_default=True, help="0 is greedy")
@click.option("--seed", type=int, default=0, show_default=True, help="makes it repeatable")
@click.option("--model", metavar="DIR", help="a transformers folder instead of the demo's model")
def demo(
    schema: Path | None, regex: str | None, prompt: str | None, model: str | None, **options: Any
) -> int:
    """Watch a real model answer under a schema or a regex.

    Lets SmolLM2-135M-Instruct, a small model that runs on any CPU, answer a prompt under a JSON
    Schema or a regular expression. The first start converts the model (about 20 s) and caches it;
    later ones take seconds. Every token mask is worked out on a CPU thread while the model runs.
    """
    if schema is not None and regex is not None:
        raise click.UsageError("--regex is not allowed with --schema: give one grammar")
    wanted = None if regex is not None else _read_schema(schema)
    grammar = _grammar(wanted, regex)
    session = Session(model, packages=_NEEDED, extra="demo")
    content = prompt or (_PROMPT if schema is None else "Make up an example.")
    if regex is not None and prompt is None:
        content = f"Write one text that matches the regular expression {regex}"
    messages().print(f"\n> {content}\n")
    if wanted is not None:
        content += f"\n\nAnswer briefly, in JSON of this schema:\n{json.dumps(wanted)}"
    result = session.answer([{"role": "user", "content": content}], grammar, **options)
    verdict, is_good = _verdict(result, wanted, regex)
    messages().print(f"\n{verdict}\n{report(result)}")
    return Status.OK if is_good else Status.REFUSED


def _read_schema(path: Path | None) -> Any:
    if path is None:
        return _SCHEMA
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise CommandError(f"can't read the schema: {error}", status=Status.USAGE) from error
    except ValueError as error:
        raise CommandError(f"{path} is not JSON: {error}", status=Status.GRAMMAR) from error


def _grammar(schema: Any, regex: str | None) -> Grammar:
    from grammaton.grammar.grammar import Grammar

    option = "--regex" if regex is not None else "--schema"
    try:
        return Grammar.from_regex(regex) if regex is not None else Grammar.from_json_schema(schema)
    except GrammatonError as error:
        raise SourceError(option, error) from error


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
