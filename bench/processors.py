"""What a logits processor adds to `transformers.generate`, beside XGrammar's and llguidance's.

    python -m bench.processors [--rows 1 8] [--repeats 5] [--model tiny|demo]

Every run writes the same tokens: a processor in front of the measured one raises the score of the
next token of a given JSON text, so plain `generate` and all engines do the same steps and what
differs is the constraint. The tokenizer is the demo model's (49,152 tokens). The model is by
default a tiny random one with as many logits, so that its own time does not drown what is
measured; `--model demo` takes the real one.

- *generate*: CPU microseconds a step of a whole call, the least of the repeats; *over plain*: the
  difference from `generate` without a constraint.
- *p50*, *p99*: CPU microseconds of one call of the processor, all rows, over all repeats.

XGrammar's processor is its own (`xgrammar.contrib.hf`); it changes the scores in place. llguidance
ships the parts of one, which are put together here as its documentation does. Each engine has one
run before the clock starts, so that nothing is compiled on it. The engines take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from time import thread_time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor

from bench.arguments import positive
from grammaton import Grammar, compile
from grammaton.engine import Engine, GrammatonLogitsProcessor, load_demo_model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "born": {"type": "integer", "minimum": 1800, "maximum": 2000},
        "genres": {"type": "array", "items": {"enum": ["fantasy", "poetry", "drama"]}},
        "alive": {"type": "boolean"},
    },
    "required": ["name", "born", "genres", "alive"],
    "additionalProperties": False,
}
TEXT = '{"name":"J. R. R. Tolkien","born":1892,"genres":["fantasy","poetry"],"alive":false}'
PROMPT = "Who wrote The Lord of the Rings? Answer as JSON."

Make = Callable[[], Any]
"""Makes the processor of one call of generate."""


class Script(LogitsProcessor):
    """Raises the score of the text's next token over all others."""

    def __init__(self, tokens: Sequence[int], prompt: int) -> None:
        self.tokens = tokens
        self.prompt = prompt

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        place = min(input_ids.shape[1] - self.prompt, len(self.tokens) - 1)
        raised = scores.clone()
        raised[:, self.tokens[place]] = 1e4
        return raised


class Timed(LogitsProcessor):
    """A processor with a clock on it."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.seconds: list[float] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Any:
        start = thread_time()
        scores = self.inner(input_ids, scores)
        self.seconds.append(thread_time() - start)
        return scores


class LLGuidanceProcessor(LogitsProcessor):
    """llguidance's matcher and its torch functions, one matcher a row."""

    def __init__(self, matcher: Any, size: int) -> None:
        import llguidance.torch as parts

        self.parts = parts
        self.first = matcher
        self.size = size
        self.matchers: list[Any] = []
        self.mask = torch.empty(0)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if not self.matchers:
            self.matchers = [self.first.deep_copy() for _ in range(input_ids.shape[0])]
            self.mask = self.parts.allocate_token_bitmask(input_ids.shape[0], self.size)
        else:
            for matcher, token in zip(self.matchers, input_ids[:, -1].tolist(), strict=True):
                matcher.consume_token(token)
        for row, matcher in enumerate(self.matchers):
            self.parts.fill_next_token_bitmask(matcher, self.mask, row)
        self.parts.apply_token_bitmask_inplace(scores, self.mask)
        return scores


def grammaton_maker(engine: Engine) -> Make:
    grammar = Grammar.from_json_schema(SCHEMA, whitespace="compact")
    constraint = compile(grammar, engine.vocabulary)
    return lambda: GrammatonLogitsProcessor(constraint, engine.vocabulary)


def xgrammar_maker(engine: Engine) -> Make:
    import xgrammar
    from xgrammar.contrib.hf import LogitsProcessor as Processor

    info = xgrammar.TokenizerInfo.from_huggingface(
        engine.tokenizer, vocab_size=engine.vocabulary.logits_size
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1)
    compiled = compiler.compile_json_schema(SCHEMA, any_whitespace=False, separators=(",", ":"))
    return lambda: Processor(compiled)


def llguidance_maker(engine: Engine) -> Make:
    import llguidance
    import llguidance.hf

    tokenizer = llguidance.hf.from_tokenizer(
        engine.tokenizer, n_vocab=engine.vocabulary.logits_size
    )
    matcher_type: Any = llguidance.LLMatcher
    grammar = matcher_type.grammar_from_json_schema(
        SCHEMA, overrides={"whitespace_flexible": False}
    )
    matcher = matcher_type(tokenizer, grammar, log_level=0)
    return lambda: LLGuidanceProcessor(matcher, engine.vocabulary.logits_size)


MAKERS: dict[str, Callable[[Engine], Make]] = {
    "grammaton": grammaton_maker,
    "xgrammar": xgrammar_maker,
    "llguidance": llguidance_maker,
}


def tiny(engine: Engine) -> Any:
    """A random model with as many logits and next to no work besides them."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=engine.vocabulary.logits_size,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    model: Any = LlamaForCausalLM
    return model(config).eval()


class Bench:
    """One model and text; runs calls of generate and checks what they write."""

    def __init__(self, engine: Engine, model: Any, rows: int) -> None:
        self.model = model
        eos = engine.vocabulary.eos_token_ids[0]
        self.options: dict[str, Any] = {"eos_token_id": eos, "pad_token_id": eos}
        self.tokens = [*engine.tokenizer.encode(TEXT), eos]
        self.ids = torch.tensor([engine.tokenizer.encode(PROMPT)] * rows)

    def run(self, make: Make | None) -> tuple[float, list[float]]:
        """CPU seconds of one call of generate, and of each call of its processor."""
        prompt, steps = self.ids.shape[1], len(self.tokens)
        timed = [] if make is None else [Timed(make())]
        start = thread_time()
        sequences = self.model.generate(
            self.ids,
            attention_mask=torch.ones_like(self.ids),
            logits_processor=[Script(self.tokens, prompt), *timed],
            do_sample=False,
            max_new_tokens=steps,
            **self.options,
        )
        seconds = thread_time() - start
        written = sequences[:, prompt:].tolist()
        if written != [self.tokens] * self.ids.shape[0]:
            raise SystemExit(f"the text was not written: {written[0]}")
        return seconds, [part for clock in timed for part in clock.seconds]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.processors", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--rows", type=positive, nargs="+", default=[1, 8], help="batch sizes (1 8)"
    )
    parser.add_argument("--repeats", type=positive, default=5, help="runs of each engine (5)")
    parser.add_argument("--model", choices=["tiny", "demo"], default="tiny")
    options = parser.parse_args()
    torch.set_num_threads(1)
    engine = load_demo_model(dtype="float32", device="cpu")
    model = tiny(engine) if options.model == "tiny" else engine.model
    for rows in options.rows:
        bench = Bench(engine, model, rows)
        steps = len(bench.tokens)
        print(f"\n{rows} rows, {steps} tokens each, {engine.vocabulary}, {options.model} model")
        print(f"{'us a step':16s}{'generate':>10s}{'over plain':>12s}{'p50':>8s}{'p99':>8s}")
        makers: dict[str, Make | None] = {"plain generate": None}
        makers |= {name: maker(engine) for name, maker in MAKERS.items()}
        for make in makers.values():
            bench.run(make)
        totals: dict[str, list[float]] = {name: [] for name in makers}
        inside: dict[str, list[float]] = {name: [] for name in makers}
        for _ in range(options.repeats):
            for name, make in makers.items():
                seconds, parts = bench.run(make)
                totals[name].append(seconds / steps * 1e6)
                inside[name] += [part * 1e6 for part in parts]
        plain = min(totals["plain generate"])
        for name, calls in inside.items():
            least = min(totals[name])
            cells = [f"{least:.0f}", f"{least - plain:.0f}", "", ""]
            if calls:
                cells[2:] = [f"{np.percentile(calls, share):.0f}" for share in (50, 99)]
            print(f"{name:16s}{cells[0]:>10s}{cells[1]:>12s}{cells[2]:>8s}{cells[3]:>8s}")


if __name__ == "__main__":
    main()
