"""`grammaton generate`: a model's answer to a prompt, under a grammar.

The answer goes to standard output as it is written, everything else to standard error, so that it
can be piped. `Session` is what this shares with `grammaton demo`: bringing the model, streaming an
answer, reporting what it cost.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from grammaton.cli.console import CommandError, Finite, Status, messages, print_json
from grammaton.cli.sources import GrammarChoice, grammar_options
from grammaton.cli.texts import read_file

if TYPE_CHECKING:
    from grammaton.engine import Generation
    from grammaton.grammar.grammar import Grammar

_EPILOG = """\
\b
examples:
  grammaton generate --schema person.json 'Describe Ada Lovelace in JSON.'
  grammaton generate --choices yes,no --temperature 0 'Is the sky blue?'
  grammaton generate --regex '[0-9]{4}-[0-9]{2}-[0-9]{2}' --model ./my-model 'Today is '
  grammaton generate --schema person.json --json - < prompt.txt

\b
exit status: 0 whole and in the grammar, 1 cut by --max-tokens, 2 wrong usage,
3 the grammar can't be used, 4 a package is missing or the model can't be loaded
"""

MODEL_PACKAGES = ("torch", "transformers", "tokenizers")


class Session:
    """A loaded model, and the clock since its loading began.

    Args:
        model: a transformers folder; None for the demo's model.
        packages: what has to be installed.
        extra: the extra that brings it.
        quiet: no progress on standard error.

    Raises:
        CommandError: a package is missing.
        EngineError: the model can't be loaded.
    """

    def __init__(
        self, model: str | None, *, packages: Sequence[str], extra: str, quiet: bool = False
    ) -> None:
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        if missing:
            raise CommandError(
                f"this needs {', '.join(missing)}; pip install 'grammaton[{extra}]' brings "
                f"{'it' if len(missing) == 1 else 'them'}",
                status=Status.MISSING,
            )
        # torch's threads burn their core while they wait for each other, which on a machine that is
        # busy with anything else makes every operation many times slower. Read when torch is
        # imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self._started = perf_counter()
        self._quiet = quiet
        from grammaton.engine import load, load_demo_model

        def progress(stage: str) -> None:
            self.say(f"{stage} …")

        self.engine = load(model) if model else load_demo_model(progress=progress)
        progress("reading the vocabulary")
        self.say(f"ready: {self.engine.vocabulary}")

    def say(self, stage: str) -> None:
        """A line of progress, with the seconds so far."""
        if not self._quiet:
            messages().print(f"[{perf_counter() - self._started:5.1f} s] {stage}", style="dim")

    def answer(
        self, prompt: Any, grammar: Grammar | None, *, show: bool = True, **options: Any
    ) -> Generation:
        """Generates, writing the answer to standard output as it comes."""
        stream = self.engine.stream(prompt, grammar, **options)
        with stream:
            for piece in stream:
                if show:
                    print(piece, end="", flush=True)
        if show:
            print(flush=True)
        return stream.result


def report(result: Generation) -> str:
    """What an answer cost, in a few lines."""
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


def _as_json(result: Generation) -> dict[str, Any]:
    metrics = result.metrics
    return {
        "text": result.text,
        "is_complete": result.is_complete,
        "finish_reason": result.finish_reason,
        "metrics": {
            "prompt_tokens": metrics.prompt_tokens,
            "completion_tokens": metrics.completion_tokens,
            "forced_tokens": metrics.forced_tokens,
            "forward_passes": metrics.forward_passes,
            "tokens_per_second": metrics.tokens_per_second,
            "ttft": metrics.ttft,
            "tpot": metrics.tpot,
            "end_to_end": metrics.end_to_end,
            "compile_time": metrics.compile_time,
            "mask_p50": metrics.mask_percentile(50),
            "mask_p99": metrics.mask_percentile(99),
            "mask_hidden_share": metrics.hidden_share,
        },
    }


@click.command(epilog=_EPILOG)
@click.argument("prompt")
@grammar_options(required=False)
@click.option(
    "--model", metavar="PATH", help="a transformers folder; the demo's small model by default"
)
@click.option("--system", metavar="TEXT", help="a system message before the prompt")
@click.option("--raw", is_flag=True, help="the prompt as it is, without the chat template")
@click.option(
    "--max-tokens", type=click.IntRange(1), default=512, show_default=True, help="most tokens"
)
@click.option("--temperature", type=Finite(0), default=0.7, show_default=True, help="0 is greedy")
@click.option(
    "--top-p",
    type=Finite(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="nucleus sampling",
)
@click.option("--top-k", type=click.IntRange(0), default=0, show_default=True, help="0 keeps all")
@click.option("--seed", type=int, help="makes the answer repeatable")
@click.option("--quiet", "-q", is_flag=True, help="nothing on standard error but failures")
@click.option("--json", "as_json", is_flag=True, help="print answer and metrics as JSON")
def generate(
    prompt: str,
    choice: GrammarChoice | None,
    model: str | None,
    system: str | None,
    raw: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Let a model answer PROMPT, saying only what a grammar allows.

    PROMPT goes through the model's chat template as a user's message; - reads it from standard
    input. The model isn't told of the grammar: a prompt that describes the wanted form gives better
    answers, and the grammar makes sure of it. Without a grammar, the model says what it likes.
    """
    if prompt == "-":
        if choice is not None and choice.uses_stdin:
            raise click.UsageError("the grammar and the prompt can't both be standard input")
        prompt = read_file("-", "the prompt").decode(errors="replace")
    if raw and system is not None:
        raise click.UsageError("--system is a message of the chat template; --raw has none")
    grammar = None if choice is None else choice.grammar()
    session = Session(model, packages=MODEL_PACKAGES, extra="demo", quiet=quiet)
    chat = [{"role": "user", "content": prompt}]
    if system is not None:
        chat.insert(0, {"role": "system", "content": system})
    use_chat = not raw and getattr(session.engine.tokenizer, "chat_template", None)
    result = session.answer(chat if use_chat else prompt, grammar, show=not as_json, **options)
    if as_json:
        print_json(_as_json(result))
    if not quiet:
        messages().print(report(result), style="dim")
    if grammar is None or result.is_complete:
        return Status.OK
    sys.stdout.flush()
    messages().print(
        f"the answer was cut ({result.finish_reason}) and is not whole; raise --max-tokens"
    )
    return Status.REFUSED
