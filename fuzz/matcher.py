"""Target `matcher`: matchers after any history, on odd vocabularies.

A case is a grammar, the tokens of a vocabulary, and steps: accepts of tokens and of bytes,
rollbacks, forks, resets and validations, on any of the matchers there are by then. The case keeps
for each matcher the list of what it took. After every step the matcher at hand must equal a fresh
one that takes that list again: mask, `is_complete` and `is_finished`. Its mask must allow exactly
the ids that a fork accepts, and its text must be one that the grammar's recognizer accepts, or the
start of one; a vocabulary with every byte can spell all that the grammar says, so then the two must
agree both ways.

Vocabularies are small: a few characters whole and in pieces, longer tokens out of the same
characters, the same text under several ids, ids without text, special ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from grammaton.errors import GrammatonError, LimitExceeded
from grammaton.fuzz.drawn_patterns import PythonPatterns
from grammaton.fuzz.schemas import draw_schema
from grammaton.fuzz.target import Case, Fault, Target, smaller_value, without_parts
from grammaton.grammar.grammar import Grammar
from grammaton.index import Constraint, Matcher, Vocabulary, compile

_TEXTS = [
    "a",
    "b",
    "1",
    "_",
    "é",
    "漢",
    " ",
    "-",
    '"',
    "{",
    "}",
    ":",
    ",",
    "[",
    "]",
    "true",
    "null",
]
_RECURSIVE = [
    {"type": "array", "items": {"$ref": "#"}},
    {"properties": {"a": {"$ref": "#"}, "b": {"type": "integer"}}, "additionalProperties": False},
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}]},
]

_History = list["int | bytes"]


def _draw_tokens(rng: Random) -> list[str]:
    """Token texts, a character for each byte. The first ids are the end and a special token."""
    pieces = [text.encode() for text in _TEXTS]
    tokens = [bytes([byte]) for byte in range(256)] if rng.random() < 0.3 else []
    for _ in range(rng.randint(3, 40)):
        token = b"".join(rng.choices(pieces, k=rng.choice((1, 1, 2, 3))))
        start = rng.choice((0, 0, 1))
        tokens.append(token[start : start + rng.randint(1, 8)])
    tokens += [*rng.choices(tokens, k=3), b""]
    return ["", "<s>", *(token.decode("latin-1") for token in tokens)]


def _draw_step(rng: Random) -> list[Case]:
    name = rng.choice(
        (
            "take",
            "take",
            "take",
            "take",
            "accept",
            "bytes",
            "rollback",
            "fork",
            "switch",
            "validate",
        )
        + ("reset",) * (rng.random() < 0.2)
    )
    if name == "bytes":
        text = "".join(rng.choices(_TEXTS, k=rng.randint(1, 2))).encode()
        return [name, text[rng.choice((0, 0, 1)) :].decode("latin-1")]
    if name == "validate":
        return [name, *(rng.randrange(1000) for _ in range(rng.randint(0, 4)))]
    return [name, rng.randrange(1000)]


class _Run:
    """The matchers of a case, each with what it took, and the one at hand."""

    def __init__(self, grammar: Grammar, constraint: Constraint, tokens: list[bytes]) -> None:
        self.grammar = grammar
        self.constraint = constraint
        self.tokens = tokens
        self.size = len(tokens)
        self.all_bytes = {bytes([byte]) for byte in range(256)} <= set(tokens)
        self.matchers: list[tuple[Matcher, _History]] = [(constraint.matcher(), [])]
        self.at = 0

    def step(self, name: str, *values: Case) -> None:
        matcher, history = self.matchers[self.at]
        number = values[0] if values and isinstance(values[0], int) else 0
        if name == "take":
            allowed = _allowed(matcher)
            if allowed:
                self._accept(matcher, history, allowed[number % len(allowed)], expected=True)
        elif name == "accept":
            token_id = number % self.size
            self._accept(matcher, history, token_id, expected=token_id in _allowed(matcher))
        elif name == "bytes":
            data = str(values[0]).encode("latin-1")
            if data and not matcher.is_finished and matcher.accept_bytes(data):
                history.append(data)
        elif name == "rollback":
            count = number % (len(history) + 1)
            matcher.rollback(count)
            del history[len(history) - count :]
        elif name == "fork":
            self.matchers.append((matcher.fork(), list(history)))
        elif name == "switch":
            self.at = number % len(self.matchers)
        elif name == "reset":
            matcher.reset()
            history.clear()
        elif name == "validate":
            self._validate(matcher, values)

    def _accept(
        self, matcher: Matcher, history: _History, token_id: int, *, expected: bool
    ) -> None:
        if matcher.accept(token_id) != expected:
            raise Fault("accept does not do as the mask says", (history, token_id))
        if expected:
            history.append(token_id)

    def _validate(self, matcher: Matcher, numbers: Sequence[int]) -> None:
        trial = matcher.fork()
        ids: list[int] = []
        count = 0
        for number in numbers:
            allowed = _allowed(trial)
            # Mostly ids that go on, for drafts of which more than nothing can be accepted.
            follow = bool(allowed) and number % 4 > 0
            ids.append(allowed[number % len(allowed)] if follow else number % self.size)
            if count == len(ids) - 1 and trial.accept(ids[-1]):
                count += 1
        if matcher.validate(ids) != count:
            raise Fault("validate does not count what accept takes", (ids, count))

    def check(self) -> None:
        matcher, history = self.matchers[self.at]
        again = self.constraint.matcher()
        for each in history:
            if not (again.accept(each) if isinstance(each, int) else again.accept_bytes(each)):
                raise Fault("a replay is refused", history)
        if not np.array_equal(again.mask(), matcher.mask()):
            raise Fault("another mask than after a replay", history)
        if (again.is_complete, again.is_finished) != (matcher.is_complete, matcher.is_finished):
            raise Fault("complete or finished otherwise than after a replay", history)
        allowed = _allowed(matcher)
        accepted = [i for i in range(self.size) if matcher.fork().accept(i)]
        if allowed != accepted:
            raise Fault("the mask is not what accept takes", (history, allowed, accepted))
        self._check_text(matcher, history, bool(allowed))

    def _check_text(self, matcher: Matcher, history: _History, goes_on: bool) -> None:
        if matcher.is_finished:
            if goes_on:
                raise Fault("a finished matcher allows tokens", history)
            return
        if not goes_on:
            raise Fault("a dead end", history)
        text = b"".join(self.tokens[each] if isinstance(each, int) else each for each in history)
        if not self.grammar.accepts_prefix(text):
            raise Fault("a text outside the grammar was taken", text)
        complete = self.grammar.accepts(text)
        if matcher.is_complete != complete and (self.all_bytes or matcher.is_complete):
            raise Fault("complete otherwise than the grammar says", text)


def _allowed(matcher: Matcher) -> list[int]:
    bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
    ids: list[int] = np.flatnonzero(bits).tolist()
    return ids


class Matchers(Target):
    """Histories of matchers. A case: {"grammar": {"regex": str} or {"schema": any value},
    "tokens": [str, …], "steps": [[name, …], …]}; tokens and the bytes of steps are latin-1."""

    name = "matcher"

    def draw(self, rng: Random) -> Case:
        grammar: Case = {"regex": PythonPatterns().draw(rng).pattern}
        if rng.random() < 0.5:
            grammar = {"schema": rng.choice([*_RECURSIVE, draw_schema(rng, 2)])}
        steps = [_draw_step(rng) for _ in range(rng.randint(1, 12))]
        return {"grammar": grammar, "tokens": _draw_tokens(rng), "steps": steps}

    def check(self, case: Case) -> None:
        tokens = [token.encode("latin-1") for token in case["tokens"]]
        vocabulary = Vocabulary(tokens, eos_token_ids=0, special_tokens={"<s>": 1})
        source = case["grammar"]
        try:
            if "regex" in source:
                grammar = Grammar.from_regex(source["regex"])
            else:
                grammar = Grammar.from_json_schema(source["schema"], whitespace="compact")
            constraint = compile(grammar, vocabulary)
        except GrammatonError:
            return  # Refused, or not to be spelled with these tokens.
        run = _Run(grammar, constraint, tokens)
        try:
            run.check()
            for step in case["steps"]:
                run.step(*step)
                run.check()
        except LimitExceeded:
            return  # A typed answer, as for other targets; a pattern in 10,000 needs that much.

    def smaller(self, case: Case) -> Iterator[Case]:
        for steps in without_parts(case["steps"]):
            yield {**case, "steps": steps}
        for tokens in without_parts(case["tokens"][2:]):
            yield {**case, "tokens": [*case["tokens"][:2], *tokens]}
        for kind, source in case["grammar"].items():
            for less in smaller_value(source):
                yield {**case, "grammar": {kind: less}}
        for at, (name, *values) in enumerate(case["steps"]):
            for less in smaller_value(values):
                if isinstance(less, list) and len(less) >= min(len(values), 1):
                    yield {
                        **case,
                        "steps": [*case["steps"][:at], [name, *less], *case["steps"][at + 1 :]],
                    }
