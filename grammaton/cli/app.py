"""The command group: what `grammaton --help` says, and how failures end."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import click
from rich.text import Text

from grammaton.cli.check import check
from grammaton.cli.console import CommandError, Status, messages, print_json
from grammaton.cli.demo import demo
from grammaton.cli.explain import explain
from grammaton.cli.fuzz import fuzz
from grammaton.cli.generate import generate
from grammaton.cli.show import show
from grammaton.cli.sources import SourceError
from grammaton.errors import GrammatonError, PlacedError

_HELP = """\
Constrained decoding: a language model that can only say what a grammar allows.

\b
  grammaton demo                             see it work, with a small real model
  grammaton generate --schema FILE PROMPT    an answer that satisfies a schema
  grammaton check --schema FILE TEXT         is a text allowed, and if not, where not
  grammaton explain --regex RE TEXT          token by token: what was allowed, what forced
  grammaton show --schema FILE               what grammaton made of a grammar
  grammaton fuzz --schema FILE --target CMD  where a program and a grammar disagree

Each command takes --help, and all but demo take --json.
"""

_EPILOG = """\
\b
examples:
  grammaton demo --prompt "Invent a board game." --seed 7
  grammaton demo --schema person.json --prompt "Describe Ada Lovelace."
  grammaton check --regex '[0-9]{4}-[0-9]{2}' 2024-2
  grammaton check --schema person.json --file answer.json
  curl -s https://example.org/person | grammaton check --schema person.json -

\b
exit status:
  0    done; a text is accepted, an answer is whole and valid
  1    refused: the text is not in the language, the answer is cut or wrong
  2    wrong usage, or a file that can't be read
  3    the grammar or the vocabulary can't be used; the message shows where
  4    something that is needed is missing or failed: a package, a program, a model
  130  interrupted
  141  whoever read the output has gone
"""


def _version() -> str:
    try:
        return importlib.metadata.version("grammaton")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


@click.group(
    "grammaton",
    help=_HELP,
    epilog=_EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(_version(), prog_name="grammaton", message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """The group; without a command it prints its help."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (demo, generate, check, explain, show, fuzz):
    commands.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Runs a command line and returns its exit status; failures are printed."""
    if sys.stdout is not None and sys.stderr is not None:
        return _run(arguments)
    with (  # whoever started this has closed one of them
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(sys.stdout or nowhere),
        redirect_stderr(sys.stderr or nowhere),
    ):
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding shows what it can; it never ends in a traceback.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        status = commands.main(list(arguments), prog_name="grammaton", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else Status.OK
    except click.ClickException as error:
        error.show()
        _say_json(arguments, error, error.format_message())
        return Status.USAGE
    except (click.Abort, KeyboardInterrupt):
        messages().print("interrupted")
        return Status.INTERRUPTED
    except SourceError as error:
        return _fail(arguments, error.error, str(error), Status.GRAMMAR)
    except CommandError as error:
        return _fail(arguments, error, str(error), error.status)
    except GrammatonError as error:
        return _fail(arguments, error, str(error), _status(error))
    except SystemExit:  # click's, when the reader of a pipe has gone
        return Status.PIPE
    except MemoryError as error:
        return _fail(arguments, error, "not enough memory", Status.MISSING)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - flushed at exit
        return Status.PIPE
    except OSError as error:
        messages().print(Text.assemble(("grammaton: ", "bold red"), f"can't write: {error}"))
        return Status.MISSING


def _status(error: GrammatonError) -> Status:
    if isinstance(error, ValueError):  # InvalidOption, which is of the engine and not imported here
        return Status.USAGE
    return (
        Status.MISSING if type(error).__module__.startswith("grammaton.engine") else Status.GRAMMAR
    )


def _fail(arguments: Sequence[str], error: Exception, message: str, status: Status) -> int:
    messages().print(Text.assemble(("grammaton: ", "bold red"), message))
    _say_json(arguments, error, message)
    return status


def _say_json(arguments: Sequence[str], error: Exception, message: str) -> None:
    if "--json" not in arguments:
        return
    described: dict[str, Any] = {"type": type(error).__name__, "message": message}
    if isinstance(error, PlacedError):
        described["message"] = error.message
        described |= {"line": error.line, "column": error.column, "pointer": error.pointer}
    print_json({"error": described})
