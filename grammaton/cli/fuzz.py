"""`grammaton fuzz`: does a program accept what a grammar says, and nothing else."""

from __future__ import annotations

import click
from rich.text import Text

from grammaton.cli.console import CommandError, Status, output, print_json
from grammaton.cli.sources import GrammarChoice, grammar_options
from grammaton.fuzz.command import Disagreement, TargetError, run

_EPILOG = """\
\b
examples:
  grammaton fuzz --schema person.json --target './read-person {}'
  grammaton fuzz --regex '[0-9]{4}-[0-9]{2}' --target 'grep -qxE [0-9]{4}-[0-9]+'
  grammaton fuzz --grammar json.txt --target 'python -m json.tool' --cases 5000 --seconds 600

\b
exit status: 0 they agree on all that was tried, 1 they don't, 2 wrong usage,
             3 the grammar can't be used, 4 there is no such program
"""

_SAYS = {
    ("refuses", True): "refuses a text of the grammar",
    ("accepts", False): "accepts a text that is not of the grammar",
    ("crashes", True): "crashes on a text of the grammar",
    ("crashes", False): "crashes on a text that is not of the grammar",
    ("hangs", True): "hangs on a text of the grammar",
    ("hangs", False): "hangs on a text that is not of the grammar",
}


@click.command(epilog=_EPILOG)
@grammar_options()
@click.option(
    "--target",
    required=True,
    metavar="COMMAND",
    help="the program: exit status 0 says that it accepts; {} is the path of a file with the "
    "text, and without it the text is standard input",
)
@click.option("--cases", type=click.IntRange(1), default=500, show_default=True, help="texts")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="when to stop trying new texts",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=5.0,
    show_default=True,
    help="seconds until a run counts as hung",
)
@click.option("--seed", type=int, default=0, show_default=True, help="which texts")
@click.option("--max-size", type=click.IntRange(0), help="the most characters of a text")
@click.option("--json", "as_json", is_flag=True, help="print the report as JSON")
def fuzz(
    choice: GrammarChoice,
    target: str,
    cases: int,
    seconds: float,
    timeout: float,
    seed: int,
    max_size: int | None,
    as_json: bool,
) -> int:
    """Where do a program and a grammar disagree?

    Feeds the program texts of the grammar, which it should accept, and near misses, which it should
    refuse. The first text of each kind on which it does otherwise, crashes or hangs is made small
    and shown.
    """
    grammar = choice.grammar()
    try:
        report = run(
            grammar,
            target,
            cases=cases,
            seconds=seconds,
            timeout=timeout,
            seed=seed,
            max_size=max_size,
        )
    except TargetError as error:
        raise CommandError(str(error), status=Status.MISSING) from error
    if as_json:
        print_json(report.as_json())
    else:
        for each in report.disagreements:
            _show(each)
        verdict = "they disagree" if report.disagreements else "no disagreement"
        output().print(
            Text.assemble(
                (verdict, "bold red" if report.disagreements else "bold green"),
                f": {report.sentences} texts of the grammar and {report.near_misses} near misses "
                f"in {report.seconds:.1f} s",
            )
        )
    return Status.REFUSED if report.disagreements else Status.OK


def _show(found: Disagreement) -> None:
    out = output()
    says = f"the program {_SAYS[found.kind, found.is_sentence]}"
    out.print(Text.assemble((says, "bold red"), f" ({found.count} in all; {found.detail})"))
    out.print(Text(f"    {found.text!r}"))
