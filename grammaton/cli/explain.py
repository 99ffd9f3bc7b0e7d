"""`grammaton explain`: a text token by token, as a model under the grammar would write it.

A *step* is the position before a token: how many tokens were allowed, what text was forced, which
stacks of frames were open, and the token that the text has there. A *frame* is something still to
be said; a stack is read from the innermost frame outwards, which is the order in which they will be
said. An ambiguous grammar has several stacks at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from rich.cells import cell_len
from rich.text import Text

from grammaton._core import Constraint, Matcher
from grammaton.cli.characters import CharacterMachine
from grammaton.cli.check import given_text, text_arguments
from grammaton.cli.console import Status, output, print_json
from grammaton.cli.expected import expected
from grammaton.cli.sketch import sketch
from grammaton.cli.sources import GrammarChoice, grammar_options
from grammaton.cli.texts import place, show_text
from grammaton.cli.vocabularies import Tokens, cut, read_vocabulary
from grammaton.grammar.grammar import Grammar
from grammaton.index import Vocabulary, compile

_EPILOG = """\
\b
examples:
  grammaton explain --regex '(red|green|blue) [0-9]+' 'green 7'
  grammaton explain --schema person.json --vocabulary tokenizer.json '{"name": "Ada"}'
  grammaton explain --grammar balanced.txt --json '(()())'

\b
exit status: 0 accepted, 1 refused, 2 wrong usage, 3 the grammar or the vocabulary can't be used
"""

_STACKS = 16
_FRAMES = 4
_FORCED = 32


@dataclass(frozen=True)
class Step:
    """The position before a token.

    Attributes:
        byte: where in the text.
        allowed: how many tokens the mask has, ends of sequence included.
        may_end: whether the text may end here.
        forced: the text that must follow.
        stacks: up to 16 stacks, each its frames as text, innermost first.
        token_id: the text's token here; None at its end.
        token: its bytes.
        accepted: whether it was allowed.
    """

    byte: int
    allowed: int
    may_end: bool
    forced: bytes
    stacks: tuple[tuple[str, ...], ...]
    token_id: int | None
    token: bytes
    accepted: bool

    def as_json(self) -> dict[str, Any]:
        """For `--json`. Bytes are text where they are UTF-8, else escaped; `hex` is exact."""
        token = None
        if self.token_id is not None:
            token = {"id": self.token_id, "text": show_text(self.token), "hex": self.token.hex()}
            token["accepted"] = self.accepted
        return {
            "byte": self.byte,
            "allowed": self.allowed,
            "may_end": self.may_end,
            "forced": show_text(self.forced),
            "stacks": self.stacks,
            "token": token,
        }


@click.command(epilog=_EPILOG)
@text_arguments
@grammar_options()
@click.option(
    "--vocabulary",
    "vocabulary_path",
    metavar="PATH",
    help="a tokenizer's file of any kind that grammaton reads, or a model's folder; "
    "without it, every byte is a token",
)
@click.option(
    "--eos", "eos", metavar="ID", type=int, multiple=True, help="the token that ends a text"
)
@click.option("--json", "as_json", is_flag=True, help="print the steps as JSON")
def explain(
    text: str | None,
    file: str | None,
    choice: GrammarChoice,
    vocabulary_path: str | None,
    eos: tuple[int, ...],
    as_json: bool,
) -> int:
    """Follow TEXT token by token through a grammar.

    For each token: how many tokens of the vocabulary were allowed in its place, the text that was
    forced there, and the stack: what is still to be said, the innermost frame first. A text that is
    refused is followed to the token that is not allowed.
    """
    if eos and vocabulary_path is None:
        raise click.UsageError("--eos belongs to a --vocabulary")
    data = given_text(text, file, choice)
    grammar = choice.grammar()
    vocabulary = read_vocabulary(vocabulary_path, eos)
    tokens = cut(data, vocabulary, vocabulary_path)
    found = list(steps(compile(grammar, vocabulary), vocabulary, tokens.ids))
    last = found[-1]
    accepted = last.token_id is None and last.may_end
    if as_json:
        described = [step.as_json() for step in found]
        print_json({"accepted": accepted, "tokens": tokens.how, "steps": described})
    else:
        _print(found, tokens, vocabulary)
        _verdict(grammar, data, accepted, last)
    return Status.OK if accepted else Status.REFUSED


def steps(
    constraint: Constraint, vocabulary: Vocabulary, token_ids: tuple[int, ...]
) -> Iterator[Step]:
    """The steps of a sequence, up to the first token that is refused; one more for its end."""
    matcher = constraint.matcher()
    byte = 0
    for token_id in token_ids:
        token = vocabulary.token_bytes(token_id)
        before = matcher.fork()
        accepted = matcher.accept(token_id)
        yield _step(constraint, before, byte, token_id, token, accepted)
        if not accepted:
            return
        byte += len(token)
    yield _step(constraint, matcher, byte, None, b"", True)


def _step(
    constraint: Constraint,
    matcher: Matcher,
    byte: int,
    token_id: int | None,
    token: bytes,
    accepted: bool,
) -> Step:
    mask = matcher.mask()
    stacks = matcher.stacks(limit=_STACKS)
    return Step(
        byte=byte,
        allowed=int(np.unpackbits(mask.view(np.uint8)).sum()),
        may_end=matcher.is_complete,
        forced=matcher.forced_bytes(),
        stacks=tuple(tuple(_frames(constraint, stack)) for stack in stacks),
        token_id=token_id,
        token=token,
        accepted=accepted,
    )


def _frames(constraint: Constraint, stack: tuple[int, ...]) -> Iterator[str]:
    """The frames of a stack, those with nothing left to say not counted."""
    for term in stack:
        if constraint.node(term) != ("empty",):
            yield sketch(constraint, term)


def _print(found: list[Step], tokens: Tokens, vocabulary: Vocabulary) -> None:
    out = output()
    out.print(f"{len(tokens.ids)} tokens ({tokens.how}) of {len(vocabulary)}", style="dim")
    rows = [("byte", "token", "id", "allowed", "forced", "still to be said"), *map(_row, found)]
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for i, row in enumerate(rows):
        cells = [
            " " * (width - cell_len(cell)) + cell
            if name in ("byte", "id", "allowed")
            else cell + " " * (width - cell_len(cell))
            for name, cell, width in zip(rows[0], row, widths, strict=False)
        ]
        line = Text("  ".join([*cells, row[-1]]).rstrip())
        if out.is_terminal:  # a pipe has no width
            line.truncate(out.width, overflow="ellipsis")
        line.style = "bold" if i == 0 else "" if found[i - 1].accepted else "bold red"
        out.print(line)


def _row(step: Step) -> tuple[str, ...]:
    forced = show_text(step.forced[: _FORCED + 1])
    return (
        str(step.byte),
        "(end)" if step.token_id is None else f"`{show_text(step.token)}`",
        "" if step.token_id is None else str(step.token_id),
        str(step.allowed),
        forced if len(forced) <= _FORCED else forced[:_FORCED] + "…",
        _stacks(step),
    )


def _stacks(step: Step) -> str:
    if not step.stacks:
        return ""
    first = step.stacks[0]
    shown = " ▸ ".join(first[:_FRAMES]) or "(nothing)"
    if len(first) > _FRAMES:
        shown += f" ▸ {len(first) - _FRAMES} more"
    others = len(step.stacks) - 1
    if others:
        more = "+" if others + 1 == _STACKS else ""
        shown += f"   or {others}{more} other way{'' if others == 1 else 's'}"
    return shown


def _verdict(grammar: Grammar, data: bytes, accepted: bool, last: Step) -> None:
    out = output()
    if accepted:
        out.print(Text("accepted", "bold green"))
        return
    machine = CharacterMachine(grammar)
    count, position = machine.follow(data)
    if count == len(data) and position.is_complete:
        said = f" at byte {last.byte}: the grammar allows the text, but not in these tokens"
        out.print(Text.assemble(("refused", "bold red"), said))
        return
    where = place(data, count)
    out.print(Text.assemble(("refused", "bold red"), f" at {where.name}: found {where.found}"))
    out.print(where.excerpt())
    out.print(expected(machine, position).sentence())
