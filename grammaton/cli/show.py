"""`grammaton show`: the text form of a grammar, or its automaton.

The automaton is over characters and the smallest one there is. A grammar has one if it is regular;
whether it is, is found by looking: positions are listed up to `--max-states`, and a recursive
grammar never runs out of them. Pictures are drawn by graphviz's `dot`, when it is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from grammaton.cli.characters import Automaton, CharacterMachine, Ranges, automaton
from grammaton.cli.console import CommandError, Status, print_json
from grammaton.cli.sources import GrammarChoice, grammar_options
from grammaton.errors import LimitExceeded
from grammaton.grammar.grammar import Grammar
from grammaton.grammar.text_printer import character_class

_EPILOG = """\
\b
examples:
  grammaton show --regex '(ab|ac)*'
  grammaton show --schema person.json
  grammaton show --regex '(ab|ac)*' --as gbnf
  grammaton show --regex '-?[0-9]+(\\.[0-9]+)?' --svg -o number.svg
  grammaton show --regex '(ab|ac)*' --dot | dot -Tpng > picture.png

\b
exit status: 0 shown, 2 wrong usage, 3 the grammar can't be used or has no such automaton,
4 graphviz is not installed
"""

_NOTATIONS = tuple(name for name in ("gbnf", "ebnf", "lark") if hasattr(Grammar, f"to_{name}"))
_LONGEST_LABEL = 40
_DRAWING_SECONDS = 120


@click.command(epilog=_EPILOG)
@grammar_options()
@click.option(
    "--as",
    "notation",
    type=click.Choice(["text", *_NOTATIONS]),
    default="text",
    show_default=True,
    help="the notation to print in",
)
@click.option("--dot", "as_dot", is_flag=True, help="the automaton, in graphviz's language")
@click.option("--svg", "as_svg", is_flag=True, help="the automaton, drawn by graphviz's `dot`")
@click.option(
    "--output", "-o", "path", metavar="FILE", help="where to write to; standard output by default"
)
@click.option(
    "--max-states",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    help="positions that an automaton may have, before it is made smallest",
)
@click.option("--json", "as_json", is_flag=True, help="text form and automaton as JSON")
def show(
    choice: GrammarChoice,
    notation: str,
    as_dot: bool,
    as_svg: bool,
    path: str | None,
    max_states: int,
    as_json: bool,
) -> int:
    """Show what grammaton made of a grammar.

    Prints its text form, which `--grammar` reads back, or another notation that can say it; or, for
    a regular grammar, the smallest automaton over characters, as a picture or as JSON.
    """
    if as_dot + as_svg + as_json + (notation != "text") > 1:
        raise click.UsageError("--as, --dot, --svg and --json exclude each other")
    if as_json and path is not None:
        raise click.UsageError("--json goes to standard output; --output is for the other forms")
    grammar = choice.grammar()
    if as_json:
        print_json({"text": str(grammar), "automaton": _if_regular(grammar, max_states)})
        return Status.OK
    if not as_dot and not as_svg:
        text = str(grammar) if notation == "text" else getattr(grammar, f"to_{notation}")()
        _write(text.encode(), path)
        return Status.OK
    dot = to_dot(automaton(CharacterMachine(grammar), max_states=max_states)).encode()
    _write(_draw(dot) if as_svg else dot, path)
    return Status.OK


def to_dot(found: Automaton) -> str:
    """An automaton in graphviz's language."""
    lines = [
        "digraph automaton {",
        "  rankdir=LR;",
        '  node [shape=circle, fontname="sans-serif"];',
        '  edge [fontname="monospace"];',
        "  begin [shape=point, style=invis];",
    ]
    lines += [f"  {state} [shape=doublecircle];" for state in found.accepting]
    lines.append("  begin -> 0;")
    lines += [f"  {start} -> {end} [label={_label(on)}];" for start, on, end in found.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _label(ranges: Ranges) -> str:
    text = character_class(ranges)
    if len(text) > _LONGEST_LABEL:
        text = text[: _LONGEST_LABEL - 1] + "…"
    # A backslash would begin one of graphviz's own escapes.
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _draw(dot: bytes) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise CommandError(
            "--svg needs the program dot, which graphviz brings (https://graphviz.org); "
            "--dot writes what it would read",
            status=Status.MISSING,
        )
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=dot,
            capture_output=True,
            check=True,
            timeout=_DRAWING_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise CommandError(f"dot failed: {said}", status=Status.MISSING) from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(
            f"dot took longer than {_DRAWING_SECONDS} s", status=Status.MISSING
        ) from error
    return done.stdout


def _write(data: bytes, path: str | None) -> None:
    if path is None or path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise CommandError(f"can't write {path}: {error}", status=Status.USAGE) from error


def _if_regular(grammar: Grammar, max_states: int) -> dict[str, Any] | None:
    try:
        found = automaton(CharacterMachine(grammar), max_states=max_states)
    except LimitExceeded:
        return None
    return {
        "states": found.states,
        "start": 0,
        "accepting": found.accepting,
        "edges": [
            {"from": start, "characters": character_class(ranges), "to": end}
            for start, ranges, end in found.edges
        ],
    }
