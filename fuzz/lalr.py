"""Target `lalr`: random grammars under Lark's LALR parser and its lexers, with Lark as the judge.

A case is a grammar, a lexer, texts to try and the tokens of a small vocabulary. What Lark refuses
must be refused, and nothing else but what is too intricate; a text must be accepted as Lark parses
it; no prefix of a text that parses may be dead. On the vocabulary a mask must be exactly the tokens
after which the text can go on, token by token; and a walk that can end must end in a text that Lark
parses.

Grammars have lazy quantifiers, look-around, priorities, keywords and loops over nothing, over three
characters. Needs the package lark.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

from grammaton.errors import (
    GrammatonError,
    LimitExceeded,
    UnsatisfiableGrammar,
    UnsupportedKeyword,
)
from grammaton.fuzz.target import Case, Fault, Target, without_parts
from grammaton.grammar.grammar import Grammar
from grammaton.index import Matcher, Vocabulary, compile

_ATOMS = (
    *("a", "b", "[ab]", ".", "(a|ab)", "(ab|a)", "(|a)", "a?", "b*", "a+", "a*?", "(ab)*"),
    *("(a?)*", "(a|b*)*?", "(?=a)", "(?!b)", "(?<!a)", "(?<=b)", r"\b", r"\B", "$", "^"),
    *(r"(?!a\b)", "(?=.b)", "b{1,2}", "(a|b){0,2}?", r"\s"),
)
_IGNORED = ('" "', "/ +/", "/\\s/", "/ a/", '"b"')
_CHARACTERS = "ab A"
_TEXTS = 40
_STEPS = 5
_LONG = 1.0  # s of CPU time


class Lalr(Target):
    """Grammars against Lark. A case: {"grammar": str, "lexer": "contextual" or "basic", "texts":
    [str, …], "tokens": [str, …], "seed": int}."""

    name = "lalr"

    def lacks(self) -> str | None:
        return None if importlib.util.find_spec("lark") else "package lark"

    def draw(self, rng: Random) -> Case:
        grammar = drawn(rng)
        texts = ["".join(rng.choices(_CHARACTERS, k=rng.randint(0, 6))) for _ in range(_TEXTS)]
        tokens = ["".join(rng.choices(_CHARACTERS, k=rng.randint(2, 4))) for _ in range(25)]
        return {
            "grammar": grammar,
            "lexer": rng.choice(("contextual", "basic")),
            "texts": list(dict.fromkeys(texts)),
            "tokens": list(dict.fromkeys([*_CHARACTERS, *tokens])),
            "seed": rng.randrange(2**32),
        }

    def check(self, case: Case) -> None:
        began = time.process_time()
        parses = _parser(case["grammar"], case["lexer"])
        if time.process_time() - began > _LONG:  # and again for us, who ask Lark for its tables
            return
        try:
            grammar = Grammar.from_lark(case["grammar"], parser="lalr", lexer=case["lexer"])
        except (UnsupportedKeyword, LimitExceeded):
            return
        except GrammatonError as error:
            if parses is not None:
                raise Fault("refused, and Lark takes it", error) from error
            return
        if parses is None:
            raise Fault("taken, and Lark refuses it")
        try:
            _check_texts(grammar, parses, case["texts"])
            tokens = [token.encode() for token in case["tokens"]]
            # With every byte, since what no token spells is in no mask.
            others = [bytes([byte]) for byte in range(256)]
            every = [*tokens, *(byte for byte in others if byte not in tokens)]
            vocabulary = Vocabulary([*every, b""], eos_token_ids=len(every))
            constraint = compile(grammar, vocabulary)
        except UnsatisfiableGrammar:
            if any(map(parses, case["texts"])) and set(_CHARACTERS) <= set(case["tokens"]):
                raise Fault("said to be empty, and is not") from None
            return
        except LimitExceeded:
            return
        rng = Random(case["seed"])
        for _ in range(3):
            _walk(grammar, parses, constraint.matcher(), tokens, len(every), rng)

    def smaller(self, case: Case) -> Iterator[Case]:
        for key in ("texts", "tokens"):
            for less in without_parts(case[key]):
                if less:
                    yield {**case, key: less}
        for lines in without_parts(case["grammar"].splitlines(keepends=True)):
            yield {**case, "grammar": "".join(lines)}
        for text in without_parts(case["grammar"]):
            yield {**case, "grammar": text}


def _parser(text: str, lexer: str) -> Callable[[str], bool] | None:
    """Whether Lark parses a text; None when it refuses the grammar."""
    lark: Any = importlib.import_module("lark")
    lexers: Any = importlib.import_module("lark.lexer")
    lexers.has_interegular = False  # it is only there for warnings, and fails on a \b
    try:
        parser = lark.Lark(text, parser="lalr", lexer=lexer)
    except Exception:  # its own, those of Python's `re`, and others on what shrinking leaves
        return None

    def parses(text: str) -> bool:
        try:
            parser.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    return parses


def _check_texts(grammar: Grammar, parses: Callable[[str], bool], texts: list[str]) -> None:
    for text in texts:
        accepted = parses(text)
        if grammar.accepts(text) != accepted:
            raise Fault("not accepted as Lark parses it", (text, accepted))
        dead = [
            end
            for end in range(len(text) + 1)
            if accepted and not grammar.accepts_prefix(text[:end])
        ]
        if dead:
            raise Fault("a prefix of a text that parses is none", (text, dead))


def _walk(
    grammar: Grammar,
    parses: Callable[[str], bool],
    matcher: Matcher,
    tokens: list[bytes],
    eos: int,
    rng: Random,
) -> None:
    text = b""
    for _ in range(_STEPS):
        bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
        ends = bool(bits[eos])
        allowed: list[int] = np.flatnonzero(bits[: len(tokens)]).tolist()
        wanted = [i for i, token in enumerate(tokens) if grammar.accepts_prefix(text + token)]
        complete = grammar.accepts(text)
        if (allowed, ends) != (wanted, complete):
            raise Fault("a mask is not what can go on", (text, allowed, wanted, complete))
        if complete and not parses(text.decode()):
            raise Fault("a text at its end does not parse", text)
        if not wanted:
            return
        token = rng.choice(wanted)
        if not matcher.accept(token):
            raise Fault("accept does not do as the mask says", (text, token))
        text += tokens[token]


def drawn(source: Random) -> str:
    """A random grammar over `a`, `b` and the space, with the start `start`."""
    return _Draw(source).grammar()


class _Draw:
    def __init__(self, source: Random) -> None:
        self._source = source
        self._terminals = list("TUVW"[: source.randint(1, 4)])
        self._rules = ["start", "x", "y"][: source.randint(1, 3)]

    def grammar(self) -> str:
        lines = [f"{rule}: {self._alternatives(0)}" for rule in self._rules]
        if self._source.random() < 0.5:
            lines.append(f"%ignore {self._source.choice([*_IGNORED, self._terminals[0]])}")
        lines += [f"{name}{self._priority()}: {self._terminal()}" for name in self._terminals]
        return "\n".join(lines) + "\n"

    def _priority(self) -> str:
        return self._source.choice(["", "", "", ".2", ".-1"])

    def _terminal(self) -> str:
        if self._source.random() < 0.65:
            return f"/{self._pattern()}/"
        text = self._source.choice(["a", "b", "ab", "ba", "aa", "aab"])
        return f'"{text}"{self._source.choice(["", "", "i"])}'

    def _pattern(self) -> str:
        choose = self._source.choice
        parts = [choose(_ATOMS) for _ in range(self._source.randint(1, 4))]
        if self._source.random() < 0.25:
            parts += ["|", *[choose(_ATOMS) for _ in range(self._source.randint(1, 2))]]
        return "".join(parts)

    def _alternatives(self, depth: int) -> str:
        return " | ".join(self._sequence(depth) for _ in range(self._source.randint(1, 2)))

    def _sequence(self, depth: int) -> str:
        fewest = 0 if depth == 0 and self._source.random() < 0.2 else 1
        return " ".join(self._item(depth) for _ in range(self._source.randint(fewest, 3)))

    def _item(self, depth: int) -> str:
        kind = self._source.random()
        if kind < 0.15:
            item = f'"{self._source.choice(["a", "b", "ab", "aa", "ba"])}"'
        elif kind < 0.35:
            item = self._source.choice(self._rules)
        elif kind < 0.5 and depth < 2:
            item = f"({self._alternatives(depth + 1)})"
        else:
            item = self._source.choice(self._terminals)
        return item + self._source.choice(["", "", "", "?", "*", "+"])
