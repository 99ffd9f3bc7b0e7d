"""`Engine`: a model and its tokenizer, answering under a grammar.

    engine = Engine(model, tokenizer)
    answer = engine.generate("Name a colour.", Grammar.from_choices(["red", "blue"]))
    answer.text, answer.finish_reason, answer.metrics.ttft

A *prompt* is a text, a list of token ids, or messages (`[{"role": "user", "content": "…"}]`), which
go through the tokenizer's chat template. A *constraint* is a `Grammar`, compiled on the spot for
this model's vocabulary and remembered, or a `Constraint` made by `grammaton.compile`.

Costs: the vocabulary is read from the tokenizer when first needed (about half a second for 129,000
tokens) and kept. Each generation starts one worker thread. Everything else is the model's own time;
see `grammaton.engine.decode` for how masks hide behind it.

An engine may be used from several threads at once; generations share nothing but the model's
weights and the vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from grammaton.engine.decode import Request, Run, SupportsConstraint
from grammaton.engine.errors import EngineError, InvalidOption
from grammaton.engine.forced import speller
from grammaton.engine.kv import CachedModel
from grammaton.engine.options import Options, Plan, checked
from grammaton.engine.result import Generation
from grammaton.errors import VocabularyError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from grammaton.grammar.grammar import Grammar
    from grammaton.index import Vocabulary

Prompt: TypeAlias = "str | Sequence[int] | Sequence[Mapping[str, Any]]"
"""A text, token ids, or chat messages."""

ConstraintLike: TypeAlias = "Grammar | SupportsConstraint"
"""What an answer must satisfy."""

_REMEMBERED = 32


class Engine:
    """Runs a transformers model under constraints.

    Args:
        model: a causal language model with a KV cache, on any device.
        tokenizer: its fast tokenizer.
        vocabulary: the tokenizer's tokens; read from it when first needed by default.

    Raises:
        InvalidOption: the model is not a decoder-only language model.
        VocabularyError: the vocabulary has more tokens than the model has logits.
    """

    def __init__(self, model: Any, tokenizer: Any, *, vocabulary: Vocabulary | None = None) -> None:
        if getattr(getattr(model, "config", None), "is_encoder_decoder", True):
            raise InvalidOption(
                f"{type(model).__name__} is not a decoder-only transformers model; load one with "
                "AutoModelForCausalLM"
            )
        self.model = model
        self.tokenizer = tokenizer
        # The head's rows, not config.vocab_size: resized models may disagree with their config.
        head = model.get_output_embeddings()
        self._logits_size: int = model.config.vocab_size if head is None else head.weight.shape[0]
        if vocabulary is not None:
            self._check(vocabulary)
        self._vocabulary = vocabulary
        self._lock = threading.RLock()
        self._compiled: dict[int, tuple[Grammar, SupportsConstraint]] = {}

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's vocabulary, with the end-of-sequence ids of its generation config."""
        with self._lock:
            if self._vocabulary is None:
                from grammaton.index import Vocabulary

                vocabulary = Vocabulary.from_transformers(
                    self.tokenizer,
                    eos_token_ids=self._eos_token_ids(),
                    logits_size=self._logits_size,
                )
                self._check(vocabulary)
                self._vocabulary = vocabulary
            return self._vocabulary

    def compile(self, grammar: Grammar) -> SupportsConstraint:
        """The constraint of a grammar on this model's vocabulary; the last few are remembered.

        Raises:
            GrammarError, UnsatisfiableGrammar, LimitExceeded: see `grammaton.compile`.
        """
        from grammaton.index import compile as compile_grammar

        with self._lock:
            # The grammar is kept beside its constraint, so that its id cannot be used again.
            known = self._compiled.pop(id(grammar), None)
            if known is None:
                known = (grammar, compile_grammar(grammar, self.vocabulary))
                if len(self._compiled) >= _REMEMBERED:
                    del self._compiled[next(iter(self._compiled))]
            self._compiled[id(grammar)] = known
            return known[1]

    def generate(
        self,
        prompt: Prompt,
        constraint: ConstraintLike | None = None,
        **options: Unpack[Options],
    ) -> Generation:
        """Answers a prompt.

        Args:
            prompt: a text, token ids, or messages.
            constraint: what the answer must satisfy; None leaves the model free.
            options: keyword arguments, see `Options`.

        Returns:
            The answer. When it was cut or cancelled, `finish_reason` says so.

        Raises:
            InvalidOption: an option is out of range, or the prompt is empty or too long.
            GrammarError: the grammar can't be compiled.
            VocabularyError: the constraint was made for another vocabulary.
            TokenRejected, LimitExceeded: from the matcher.
            EngineError: the model failed.
        """
        stream = self.stream(prompt, constraint, **options)
        for _ in stream:
            pass
        return stream.result

    def stream(
        self,
        prompt: Prompt,
        constraint: ConstraintLike | None = None,
        **options: Unpack[Options],
    ) -> Stream:
        """Answers a prompt piece by piece; arguments and errors as for `generate`.

        Returns:
            An iterator over pieces of text, with the answer in `result` at its end. Bad arguments
            are raised here, failures of the generation by the iterator.
        """
        started = perf_counter()
        plan = checked(**options)
        return Stream(self._run([self._request(prompt, constraint, plan)], plan, started))

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        constraints: ConstraintLike | Sequence[ConstraintLike | None] | None = None,
        *,
        seeds: Sequence[int] | None = None,
        **options: Unpack[Options],
    ) -> list[Generation]:
        """Answers several prompts in one batch, each forward pass serving all of them.

        A row's answer is what `generate` gives with its seed, up to the rounding of a larger batch.

        Args:
            prompts: at least one.
            constraints: one for all, or one a prompt.
            seeds: one a prompt, in place of the option `seed`, which is every row's.
            options: keyword arguments, see `Options`.

        Returns:
            One answer a prompt. An answer that failed has the finish reason `error` and the
            exception in `error`: one row's failure does not take the others with it.

        Raises:
            InvalidOption: an argument is out of range.
            GrammarError: a grammar can't be compiled.
        """
        started = perf_counter()
        plan = checked(**options)
        count = len(prompts)
        each = list(constraints) if isinstance(constraints, Sequence) else [constraints] * count
        if not count:
            raise InvalidOption("a batch needs at least one prompt")
        if len(each) != count or (seeds is not None and len(seeds) != count):
            raise InvalidOption(
                f"{count} prompts need {count} constraints and seeds, or one constraint for all"
            )
        plans = [plan] * count
        if seeds is not None:
            plans = [replace(plan, sampling=replace(plan.sampling, seed=seed)) for seed in seeds]
        run = self._run([*map(self._request, prompts, each, plans)], plan, started)
        for _ in run.pieces():
            pass
        return run.results

    def _run(self, requests: list[Request], plan: Plan, started: float) -> Run:
        return Run(
            CachedModel(self.model),
            self.vocabulary,
            requests,
            forced=plan.forced,
            spell=speller(self.tokenizer, self.vocabulary),
            cancel=plan.cancel,
            started=started,
        )

    def _request(self, prompt: Prompt, constraint: ConstraintLike | None, plan: Plan) -> Request:
        ids = self._encode(prompt)
        room = plan.max_tokens
        context = getattr(self.model.config, "max_position_embeddings", None)
        if context is not None:
            if len(ids) >= context:
                raise InvalidOption(
                    f"the prompt has {len(ids)} tokens and the model's context holds {context}, "
                    "the answer included; shorten the prompt"
                )
            room = min(room, context - len(ids))
        from grammaton.grammar.grammar import Grammar

        started = perf_counter()
        made = self._constraint(constraint)
        return Request(
            prompt=ids,
            constraint=made,
            sampling=plan.sampling,
            max_tokens=room,
            stops=plan.stops,
            compile_time=perf_counter() - started,
            grammar=constraint if isinstance(constraint, Grammar) else None,
        )

    def _constraint(self, constraint: ConstraintLike | None) -> SupportsConstraint | None:
        if constraint is None:
            return None
        if callable(getattr(constraint, "matcher", None)):
            made: Any = constraint
            return made  # type: ignore[no-any-return]
        from grammaton.grammar.grammar import Grammar

        if not isinstance(constraint, Grammar):
            raise InvalidOption(
                f"a constraint is a Grammar or a Constraint, not {type(constraint).__name__}; "
                "Grammar.from_json_schema(schema) and Grammar.from_regex(pattern) make one"
            )
        return self.compile(constraint)

    def _encode(self, prompt: object) -> list[int]:
        if isinstance(prompt, str):
            ids = self.tokenizer(prompt)["input_ids"]
        elif not isinstance(prompt, Sequence) or isinstance(prompt, bytes) or not prompt:
            raise InvalidOption(f"a prompt is a text, token ids or messages, not {prompt!r}")
        elif all(isinstance(part, Mapping) for part in prompt):
            ids = self._apply_template(prompt)
        else:
            ids = list(prompt)
        bad = [i for i in ids if not isinstance(i, int) or not 0 <= i < self._logits_size]
        if bad:
            raise InvalidOption(f"the prompt holds {bad[0]!r}, which is no token id of the model")
        if not ids:
            raise InvalidOption(
                "the prompt is empty: a model needs at least one token to go on from"
            )
        return list(ids)

    def _apply_template(self, messages: Any) -> list[int]:
        for message in messages:
            if not isinstance(message.get("role"), str) or "content" not in message:
                raise InvalidOption(f"a message needs a role and its content: {message!r}")
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise EngineError(
                "the tokenizer has no chat template, so messages can't be put into one prompt; "
                "pass a text, or set tokenizer.chat_template"
            )
        made = self.tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=True, return_dict=True
        )
        ids: list[int] = made["input_ids"]
        return ids

    def _eos_token_ids(self) -> list[int] | None:
        """Chat models end a turn with ids that only their generation config names."""
        config = getattr(self.model, "generation_config", None)
        ids = getattr(config, "eos_token_id", None)
        if ids is None:
            return None
        return [ids] if isinstance(ids, int) else list(ids)

    def _check(self, vocabulary: Vocabulary) -> None:
        if vocabulary.logits_size > self._logits_size:
            raise VocabularyError(
                f"the vocabulary has {vocabulary.logits_size} ids, the model {self._logits_size} "
                "logits; they do not belong together"
            )


class Stream(Iterator[str]):
    """Pieces of an answer as they are written; made by `Engine.stream`.

    A piece ends at a character boundary, and the pieces joined are the text of the result. Closing
    it, or leaving its `with` block, cancels what is not written yet. When the generation fails the
    iterator raises, and `result` has the text so far, the finish reason `error` and the exception.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pieces = run.pieces()

    def __next__(self) -> str:
        for _, piece in self._pieces:
            return piece
        error = self.result.error
        if error is not None:
            raise error
        raise StopIteration

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def result(self) -> Generation:
        """The answer.

        Raises:
            EngineError: it is not finished; read the stream to its end or close it.
        """
        results = self._run.results
        if not results:
            raise EngineError("the answer is still being written; read the stream to its end")
        return results[0]

    def close(self) -> None:
        """Cancels the generation if it is not over."""
        self._pieces.close()
        self._run.cancel_all()
