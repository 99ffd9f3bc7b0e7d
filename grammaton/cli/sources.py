"""Where a grammar comes from: the options that every command shares, and how each is read.

`SOURCES` is the table of them. A source is there when `Grammar` has its constructor, and takes
those refinements (`--dialect`, `--key-order` and the like) that the constructor has keywords for;
so a new front end is one line here. One that imports other files looks beside the one it reads.
"""

from __future__ import annotations

import functools
import inspect
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from grammaton.cli.console import CommandError, Status
from grammaton.cli.pointers import located
from grammaton.cli.texts import read_file
from grammaton.errors import GrammarError, GrammatonError
from grammaton.grammar.grammar import Grammar

Command = TypeVar("Command", bound=Callable[..., Any])


class SourceError(Exception):
    """A grammar that can't be read, with what it was read from."""

    def __init__(self, label: str, error: GrammatonError) -> None:
        super().__init__(f"{label}: {error}")
        self.error = error


@dataclass(frozen=True)
class Source:
    """A kind of grammar.

    Attributes:
        option: the option's name, without dashes.
        metavar, help: how `--help` shows it.
        constructor: the class method of `Grammar`.
        read: what the constructor is given, out of the option's values.
    """

    option: str
    metavar: str
    help: str
    constructor: str
    read: Callable[[tuple[str, ...]], Any]

    def keywords(self) -> set[str]:
        """Keyword arguments of the constructor."""
        return set(inspect.signature(getattr(Grammar, self.constructor)).parameters)


def _inline(values: tuple[str, ...]) -> str:
    return values[0]


def _schema(values: tuple[str, ...]) -> bytes:
    value = values[0]
    return value.encode() if value.lstrip()[:1] == "{" else read_file(value, "the schema")


def _file(values: tuple[str, ...]) -> str:
    data = read_file(values[0], "the grammar").removeprefix(BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CommandError(
            f"{values[0]} is not UTF-8: byte {error.start}, in line {line}, is "
            f"0x{data[error.start]:02X}",
            status=Status.GRAMMAR,
        ) from error


def _choices(values: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for value in values:
        if value.lstrip()[:1] == "[":
            try:
                array = json.loads(value)
            except (ValueError, RecursionError) as error:
                raise click.UsageError(f"--choices: not a JSON array: {error}") from error
            for index, choice in enumerate(array):
                if not isinstance(choice, str):
                    raise click.UsageError(
                        f"--choices: a choice is a text, and /{index} is {json.dumps(choice)[:40]}"
                    )
            found += array
        else:
            found += value.split(",")
    return found


SOURCES = (
    Source("schema", "FILE", "a JSON Schema (or `{…}` itself)", "from_json_schema", _schema),
    Source("regex", "RE", "a regular expression, matched from end to end", "from_regex", _inline),
    Source("choices", "A,B,…", "any of these texts (or a JSON array)", "from_choices", _choices),
    Source("lark", "FILE", "a Lark grammar", "from_lark", _file),
    Source("gbnf", "FILE", "a GBNF grammar, as llama.cpp reads it", "from_gbnf", _file),
    Source("ebnf", "FILE", "a grammar in the W3C's EBNF", "from_ebnf", _file),
    Source("grammar", "FILE", "a grammar in grammaton's own text form", "from_text", _file),
)

_REFINEMENTS: tuple[tuple[str, Any, str], ...] = (
    ("dialect", click.Choice(["python", "ecma"]), "of --regex (default: python)"),
    ("search", None, "--regex may match anywhere in the text"),
    ("start", str, "the rule that a grammar begins with, where that can be chosen"),
    ("key_order", click.Choice(["schema", "any"]), "of objects of --schema (default: schema)"),
    ("ensure_ascii", None, "--schema lets no character beyond ASCII stand as itself"),
    ("escapes", click.Choice(["any", "canonical"]), "of strings of --schema (default: any)"),
    ("whitespace", str, "of --schema: flexible, compact or an indent (default: flexible)"),
)


def available() -> list[Source]:
    """The sources that this version of the library has."""
    return [source for source in SOURCES if hasattr(Grammar, source.constructor)]


@dataclass(frozen=True)
class GrammarChoice:
    """The grammar that a command line names.

    Attributes:
        source: its kind.
        values: what the option was given.
        refinements: `--key-order` and the like, by keyword.
    """

    source: Source
    values: tuple[str, ...]
    refinements: Mapping[str, Any]

    @property
    def uses_stdin(self) -> bool:
        """Whether standard input is the grammar."""
        return self.source.read in (_schema, _file) and self.values[0] == "-"

    @functools.cached_property
    def content(self) -> Any:
        """What the constructor is given: the text of a schema or grammar, or the choices."""
        return self.source.read(self.values)

    def grammar(self, **changed: Any) -> Grammar:
        """Reads the grammar, with some refinements changed.

        Raises:
            SourceError: it has no meaning.
            CommandError: it can't be read.
        """
        constructor = getattr(Grammar, self.source.constructor)
        given = {**self.refinements, **changed}
        if "import_paths" in self.source.keywords() and not self.uses_stdin:
            given["import_paths"] = [Path(self.values[0]).parent]
        try:
            made: Grammar = constructor(self.content, **given)
        except GrammatonError as error:
            if isinstance(error, GrammarError) and isinstance(self.content, bytes):
                error = located(error, self.content)
            raise SourceError(self.label, error) from error
        return made

    @property
    def label(self) -> str:
        """What messages call it: the file, or the option."""
        value = self.values[0]
        in_line = self.source.read is _schema and value.lstrip()[:1] == "{"
        is_file = self.source.read in (_schema, _file) and value != "-" and not in_line
        return value if is_file else f"--{self.source.option}"


def grammar_options(*, required: bool = True) -> Callable[[Command], Command]:
    """Adds the options that name a grammar; the command gets `choice: GrammarChoice | None`.

    Args:
        required: whether one has to be given.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(**given: Any) -> Any:
            values = {source: given.pop(source.option) for source in available()}
            refinements = {name: given.pop(name) for name, _, _ in _refinements()}
            return command(choice=_choose(values, refinements, required), **given)

        result: Any = wrapped
        for name, kind, text in reversed(_refinements()):
            flags = {"is_flag": True} if kind is None else {"type": kind}
            option = "--" + name.replace("_", "-")
            result = click.option(option, name, default=None, help=text, **flags)(result)
        for source in reversed(available()):
            option = "--" + source.option
            result = click.option(
                option, source.option, metavar=source.metavar, help=source.help, multiple=True
            )(result)
        return result  # type: ignore[no-any-return]

    return decorate


def _refinements() -> list[tuple[str, Any, str]]:
    known = set().union(*(source.keywords() for source in available()))
    return [item for item in _REFINEMENTS if item[0] in known]


def _choose(
    values: Mapping[Source, tuple[str, ...]], refinements: Mapping[str, Any], required: bool
) -> GrammarChoice | None:
    chosen = [(source, found) for source, found in values.items() if found]
    options = [f"--{source.option}" for source in values]
    if len(chosen) > 1:
        first, second = (f"--{source.option}" for source, _ in chosen[:2])
        raise click.UsageError(f"{second} is not allowed with {first}: give one grammar")
    given = {name: value for name, value in refinements.items() if value is not None}
    if not chosen:
        if required:
            raise click.UsageError(f"which grammar? Give one of {', '.join(options)}")
        if given:
            raise click.UsageError(f"{_flag(next(iter(given)))} needs a grammar to apply to")
        return None
    source, found = chosen[0]
    if len(found) > 1 and source.read is not _choices:
        raise click.UsageError(f"--{source.option} is given twice")
    for name in given:
        if name not in source.keywords():
            raise click.UsageError(f"{_flag(name)} says nothing about --{source.option}")
    if "whitespace" in given:
        given["whitespace"] = _whitespace(given["whitespace"])
    return GrammarChoice(source, found, given)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _whitespace(value: str) -> str | int:
    if value in ("flexible", "compact"):
        return value
    if value.isascii() and value.isdigit() and len(value) < 4:
        return int(value)
    raise click.UsageError(
        f"--whitespace is flexible, compact or the width of an indent, not {value!r}"
    )
