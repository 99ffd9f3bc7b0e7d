"""Mask times of real grammars on a vocabulary of 129,280 tokens, beside llguidance and XGrammar.

    python -m bench.grammars [--repeats 3] [--engines grammaton …] [--only lua …]

Each engine walks the texts of each grammar in this folder: for every token, `accept` and then the
mask, timed together.

- *first*: from the grammar's text to the first mask, on a fresh constraint.
- *cold*: masks of the first walk over each text, on a constraint that is fresh for each text.
- *warm*: of the second walk on it.

Grammars named `lalr_…` are Lark's LALR parser with its contextual lexer; peers read what they can.
llguidance reads Lark grammars as they are and the others by its own translation from GBNF;
XGrammar reads what `Grammar.to_gbnf` prints, where GBNF can say it. Times are CPU seconds of the
thread, each the least over the repeats, which start from fresh vocabularies. A text that an engine
doesn't accept to its end is listed with the place, and its masks up to there count.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from bench import peers
from bench.arguments import positive
from bench.grammars import Sample, load_all
from bench.walks import EOS_TOKEN_ID, tokenizer_path
from grammaton import GrammatonError, Vocabulary


class Grammaton(peers.Grammaton):
    """This library."""

    def compile(self, schema: Any) -> Any:
        try:
            return self._compile(schema.grammar(), self._vocabulary)
        except GrammatonError as error:
            raise peers.Refused(str(error)) from error


class LLGuidance(peers.LLGuidance):
    """llguidance, on the Lark grammar itself or its own translation."""

    def compile(self, schema: Any) -> Any:
        from llguidance.gbnf_to_lark import any_to_lark

        source = schema.source
        if schema.notation == "ebnf":
            source = _gbnf(schema)
        if schema.notation not in ("lark", "lalr"):
            source = any_to_lark(source)
        matcher = self._matcher(
            self._tokenizer, self._matcher.grammar_from_lark(source), log_level=0
        )
        if matcher.is_error():
            raise peers.Refused(matcher.get_error())
        return matcher


class XGrammar(peers.XGrammar):
    """XGrammar, on GBNF."""

    def compile(self, schema: Any) -> Any:
        source = schema.source if schema.notation == "gbnf" else _gbnf(schema)
        try:
            return self._compiler.compile_grammar(source)
        except RuntimeError as error:
            raise peers.Refused(str(error)) from error


ENGINES: dict[str, Callable[[list[bytes], dict[str, int], bool], peers.Peer]] = {
    "grammaton": Grammaton,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
}


def _gbnf(sample: Sample) -> str:
    try:
        return sample.grammar().to_gbnf()
    except GrammatonError as error:
        raise peers.Refused(str(error)) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.grammars", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--repeats", type=positive, default=3, help="fresh runs of each engine (3)")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--only", nargs="+", help="names of grammars")
    parser.add_argument("--generate", action="store_true", help="texts by the real model instead")
    parser.add_argument("--texts", type=positive, default=20, help="generated of each grammar (20)")
    parser.add_argument(
        "--max-tokens", type=positive, default=256, help="of a generated text (256)"
    )
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--show", action="store_true", help="print the generated texts")
    options = parser.parse_args(arguments)
    samples = [sample for sample in load_all() if not options.only or sample.name in options.only]
    if options.generate:
        from bench.grammars.generation import generate  # needs torch

        if not generate(
            [sample for sample in samples if sample.notation != "lalr"],
            texts=options.texts,
            max_tokens=options.max_tokens,
            dtype=options.dtype,
            show=options.show,
        ):
            raise SystemExit(1)
        return
    vocabulary = Vocabulary.from_tokenizers(tokenizer_path(), eos_token_ids=EOS_TOKEN_ID)
    tokens = [vocabulary.token_bytes(i) for i in range(len(vocabulary))]
    tokenizer = Tokenizer.from_file(str(tokenizer_path()))
    tokenizer.encode_special_tokens = True
    walks = {
        sample.name: [tokenizer.encode(text, add_special_tokens=False).ids for text in sample.texts]
        for sample in samples
    }
    columns = "".join(f"{name:>10}{'p99':>9}{'max':>9}" for name in ("cold µs", "warm µs"))
    print(f"{'':24}{'first ms':>9}{columns}")
    for engine in options.engines:
        runs = [
            _run(
                ENGINES[engine](tokens, vocabulary.special_tokens, False),
                samples,
                walks,
                vocabulary,
            )
            for _ in range(options.repeats)
        ]
        for sample in samples:
            _print(engine, sample.name, [run[sample.name] for run in runs])


def _run(
    engine: peers.Peer,
    samples: list[Sample],
    walks: dict[str, list[list[int]]],
    vocabulary: Vocabulary,
) -> dict[str, Any]:
    """Times of one engine by grammar, or why it doesn't take one."""
    out = np.zeros(vocabulary.mask_words, dtype=np.int32)
    found: dict[str, Any] = {}
    for sample in samples:
        first: list[float] = []
        cold: list[float] = []
        warm: list[float] = []
        problems: list[str] = []
        gc.collect()
        gc.disable()
        try:
            for token_ids in walks[sample.name]:
                start = time.thread_time()
                constraint = engine.compile(sample)
                sequence = engine.start(constraint, out)
                sequence.fill()
                first.append(time.thread_time() - start)
                problem = _walk(sequence, token_ids, cold)
                _walk(engine.start(constraint, out), token_ids, warm)
                if problem:
                    problems.append(problem)
        except peers.Refused as error:
            found[sample.name] = str(error).split("\n")[0][:100]
            continue
        finally:
            gc.enable()
        found[sample.name] = first, cold, warm, problems
    return found


def _walk(sequence: peers.Driven, token_ids: list[int], times: list[float]) -> str:
    for at, token_id in enumerate(token_ids):
        start = time.thread_time()
        if not sequence.accept(token_id):
            return f"token {at} of {len(token_ids)} is not accepted"
        sequence.fill()
        times.append(time.thread_time() - start)
    return ""


def _print(engine: str, name: str, runs: list[Any]) -> None:
    label = f"{engine:12}{name:12}"
    if isinstance(runs[0], str):
        print(f"{label}refused: {runs[0]}")
        return
    first, cold, warm = (
        np.min(np.array([run[index] for run in runs]), axis=0) for index in range(3)
    )
    cells = [f"{np.median(first) * 1e3:9.2f}"]
    for times in (cold, warm):
        micro = times * 1e6
        cells += [
            f"{np.median(micro):10.1f}",
            f"{np.percentile(micro, 99):9.1f}",
            f"{micro.max():9.1f}",
        ]
    print(label + "".join(cells) + "".join(f"\n{'':24}{each}" for each in runs[0][3]))


if __name__ == "__main__":
    main()
