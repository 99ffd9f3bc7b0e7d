"""`grammaton check`: is a text in the language, and if not, where does it leave it."""

from __future__ import annotations

import os
from typing import Any

import click
from rich.text import Text

from grammaton.cli.characters import CharacterMachine
from grammaton.cli.console import Status, output, print_json
from grammaton.cli.expected import Expected, expected
from grammaton.cli.sources import GrammarChoice, grammar_options
from grammaton.cli.texts import Place, place, read_file

_EPILOG = """\
\b
examples:
  grammaton check --regex '(red|green|blue) [0-9]+' 'green 7'
  grammaton check --schema person.json --file answer.json
  printf '{"name": "Ada"}' | grammaton check --schema person.json -
  grammaton check --schema '{"type": "integer"}' --json 1.5

\b
exit status: 0 accepted, 1 refused, 2 wrong usage, 3 the grammar can't be used
"""


def text_arguments(command: Any) -> Any:
    """Adds TEXT and `--file`; `given_text` reads them."""
    command = click.option(
        "--file", "-f", "file", metavar="PATH", help="read the text from a file, - for stdin"
    )(command)
    return click.argument("text", required=False)(command)


def given_text(text: str | None, file: str | None, choice: GrammarChoice) -> bytes:
    """The text of a command line, exactly as it is: a last newline counts.

    Raises:
        click.UsageError: none, or two.
        CommandError: a file can't be read.
    """
    if (text is None) == (file is None):
        raise click.UsageError("which text? Give TEXT, - for standard input, or --file PATH")
    path = "-" if text == "-" else file
    if path == "-" and choice.uses_stdin:
        raise click.UsageError("the grammar and the text can't both be standard input")
    return os.fsencode(text or "") if path is None else read_file(path, "the text")


@click.command(epilog=_EPILOG)
@text_arguments
@grammar_options()
@click.option("--chomp", is_flag=True, help="leave out one newline at the end of the text")
@click.option("--quiet", "-q", is_flag=True, help="print nothing; the exit status tells")
@click.option("--json", "as_json", is_flag=True, help="print the verdict as JSON")
def check(
    text: str | None,
    file: str | None,
    choice: GrammarChoice,
    chomp: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Is TEXT in the language of a grammar?

    If it is not, shows where it leaves the language: the first byte after which no text of the
    grammar can follow, and what could have stood there instead. TEXT is taken exactly, a newline at
    its end included; - reads standard input.
    """
    data = given_text(text, file, choice)
    if chomp and data.endswith(b"\n"):
        data = data[: -2 if data.endswith(b"\r\n") else -1]
    machine = CharacterMachine(choice.grammar())
    count, position = machine.follow(data)
    accepted = count == len(data) and position.is_complete
    if quiet:
        pass
    elif accepted:
        _accept(len(data), as_json)
    else:
        _refuse(
            place(data, count), expected(machine, position), as_json, _hint(choice, data, count)
        )
    return Status.OK if accepted else Status.REFUSED


def _accept(size: int, as_json: bool) -> None:
    if as_json:
        print_json({"accepted": True, "bytes": size})
    else:
        said = f" ({size} byte{'' if size == 1 else 's'})"
        output().print(Text.assemble(("accepted", "bold green"), said))


def _refuse(where: Place, possible: Expected, as_json: bool, hint: str | None) -> None:
    if as_json:
        print_json(
            {
                "accepted": False,
                "byte": where.byte,
                "line": where.line,
                "column": where.column,
                "found": where.found,
                "expected": possible.as_json(),
                "hint": hint,
            }
        )
        return
    out = output()
    out.print(Text.assemble(("refused", "bold red"), f" at {where.name}: found {where.found}"))
    out.print(where.excerpt())
    out.print(possible.sentence())
    if hint is not None:
        out.print(Text(f"hint: {hint}", "dim"))


def _hint(choice: GrammarChoice, data: bytes, count: int) -> str | None:
    """An option with which the text would be accepted."""
    if data[count:] in (b"\n", b"\r\n"):
        if choice.grammar().accepts(data[:count]):
            return "the text is accepted without the newline at its end: --chomp"
    elif (
        "key_order" in choice.source.keywords()
        and "key_order" not in choice.refinements
        and choice.grammar(key_order="any").accepts(data)
    ):
        return "the text is accepted with its keys in another order: --key-order any"
    return None
