"""Target `ecma`: regular expressions of ECMA-262, right and broken, against node's `RegExp`.

As the target `patterns`, with node as the judge: one process that is asked in lines of JSON, always
with the flag `u`. Both kinds of match are asked for with `y`, where a text begins: a search as
`[^]*?(?:…)`, since V8's own search tries a match between the two halves of a surrogate pair too
(`/\\B/u` on "a😀K"), and a whole match as `(?:…)(?![^])`, which the flag `m` does not change as
it changes `$`. Without node there is no target.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import weakref
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from grammaton.errors import LimitExceeded
from grammaton.fuzz.drawn_patterns import EcmaPatterns
from grammaton.fuzz.patterns import made, smaller_patterns
from grammaton.fuzz.target import SLOW_SECONDS, Case, Fault, Target, mutate_text

_DIALECT = EcmaPatterns()
_LONGEST = 7
_TEXTS = 60
_JUDGE = r"""
const vm = require('vm');
const context = vm.createContext({});
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const [pattern, flags, search, texts, timeout] = JSON.parse(line);
  let answer = [];
  try {
    new RegExp(pattern, flags);
    const source = search ? '[^]*?(?:' + pattern + ')' : '(?:' + pattern + ')(?![^])';
    const expression = new RegExp(source, flags + 'y');
    context.ask = () => {
      for (const text of texts) {
        expression.lastIndex = 0;
        answer.push(expression.test(text));
      }
    };
    vm.runInContext('ask()', context, {timeout});
  } catch (error) {
    if (error.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') answer = error.message;
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
});
"""
_NEWER = re.compile(r"\(\?[ims]*(?:[ims]|-[ims])+:")
"""Scoped flags, which ECMA-262 has since 2025 and node since version 23."""


class Node:
    """A node process that answers what its `RegExp` makes of patterns and texts.

    Raises:
        FileNotFoundError: there is no node.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", "-e", _JUDGE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        weakref.finalize(self, _end, self._process)

    @staticmethod
    def is_there() -> bool:
        """Whether node can be started."""
        return shutil.which("node") is not None

    def answers(
        self,
        pattern: str,
        texts: Sequence[str],
        *,
        flags: str = "",
        search: bool = True,
        unicode: bool = True,
        seconds: float = SLOW_SECONDS / 4,
    ) -> list[bool] | str:
        """Whether the texts contain a match, or are one; or why the pattern is refused.

        Args:
            flags: of "imsu".
            unicode: whether the flag `u` is there anyway.
            seconds: when to stop; then only the first texts are answered. Over some patterns V8
                goes back and forth for hours.
        """
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        flags += "u" * (unicode and "u" not in flags)
        line = [pattern, flags, search, list(texts), max(1, int(seconds * 1000))]
        asked.write(json.dumps(line) + "\n")
        asked.flush()
        answer: list[bool] | str = json.loads(answered.readline())
        return answer


def _end(process: subprocess.Popen[str]) -> None:
    process.communicate()


@cache
def _node() -> Node:
    return Node()


class Ecma(Target):
    """`Grammar.from_regex` with `dialect="ecma"` against node. A case: {"pattern": str, "flags":
    str, "search": bool, "texts": [str, …]}; flags and search may be missing."""

    name = "ecma"
    counts = "pairs of a pattern and a text"

    def lacks(self) -> str | None:
        return None if Node.is_there() else "node"

    def draw(self, rng: Random) -> Case:
        drawn = _DIALECT.draw(rng)
        pattern = drawn.pattern
        if rng.random() < 0.3:
            pattern = mutate_text(rng, pattern, _DIALECT.syntax)
        search = rng.random() < 0.5
        texts = _DIALECT.draw_texts(
            rng, drawn.sample, count=_TEXTS, longest=_LONGEST, search=search
        )
        flags = rng.choice(("", "", "u", "i", "m", "s", "imsu"))
        return {"pattern": pattern, "flags": flags, "search": search, "texts": texts}

    def check(self, case: Case) -> int:
        pattern, flags = case["pattern"], case.get("flags", "")
        search = case.get("search", False)
        theirs = _node().answers(pattern, case["texts"], flags=flags, search=search)
        taken = not isinstance(theirs, str)
        grammar = made(pattern, taken=taken, dialect="ecma", flags=flags, search=search)
        if grammar is None:
            return 0
        if isinstance(theirs, str):
            if _NEWER.search(pattern) or "Duplicate capture group name" in theirs:
                return 0
            raise Fault("a pattern that node refuses was taken", theirs)
        for number, (text, match) in enumerate(zip(case["texts"], theirs, strict=False)):
            try:
                ours = grammar.accepts(text)
            except LimitExceeded:
                return number
            if ours != match:
                name = "search" if search else "whole match"
                raise Fault(f"another answer than node's {name}", f"{pattern!r} on {text!r}")
        return len(theirs)

    def smaller(self, case: Case) -> Iterator[Case]:
        return smaller_patterns(case)
