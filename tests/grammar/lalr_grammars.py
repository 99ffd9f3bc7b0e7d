"""Grammars for Lark's LALR parser: chosen ones, and random ones over three characters.

Each chosen grammar comes with the characters that texts to try are made of. Random ones are drawn
from a `random.Random`, so that they are the same in every run; their terminals have lazy
quantifiers, look-around, priorities and loops over nothing. Lark refuses many of them.
"""

from __future__ import annotations

import random

CHOSEN = {
    "json": (
        r"""
start: value
?value: object | array | STRING | NUMBER | "true" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: /"[^"\\]*"/
NUMBER: /-?[0-9]+(\.[0-9]+)?/
%ignore " "
""",
        '[]{}:,"1.- ',
    ),
    "longest is not taken": ('start: A "b" | A A\nA: /a|ab/\n', "ab"),
    "empty": ('start: A B\nA: /a+/\nB: "ab"\n', "ab"),
    "only apart": ('start: A B\nA: /a+/\nB: "ab"\n%ignore " "\n', "ab "),
    "keyword": ('start: ("if" NAME ";" | NAME ";")+\nNAME: /[a-z]+/\n%ignore " "\n', "ifa; "),
    "keyword in any case": ('start: (NAME | "if"i "!")+\nNAME: /[a-z]+/i\n%ignore " "\n', "iF! "),
    "keyword of higher priority": ('start: (IF "!" | NAME)+\nIF.2: "if"\nNAME: /[a-z]+/\n', "if!"),
    "ignored keyword": ('start: NAME+\nNAME: /[a-z]+/\nIF: "if"\n%ignore IF\n', "ifa"),
    "keyword of what is ignored": ('start: ("if" | "a")+\nN: /[a-z]+/\n%ignore N\n', "ifa"),
    "lazy": ('start: S+\nS: /".*?"/\n', '"a'),
    "behind": ('start: (S "x")+\nS: /".*?(?<!\\\\)"/\n', '"a\\x'),
    "escapes": ("start: S+\n%import common.ESCAPED_STRING -> S\n", '"a\\'),
    "ahead": ("start: (A|B)+\nA: /a(?=b)/\nB: /b(?!b)/\n", "ab"),
    "far ahead": ("start: (A|B)+\nA: /a(?=.b..a)/s\nB: /a|b/\n", "ab"),
    "word boundary": ('start: (IF|N|W)+\nIF: /if\\b/\nN: /[a-z]+/\nW: " "\n', "if "),
    "boundary in look-ahead": ("start: (A|B)+\nA: /(?!ab\\b)[ab]+/\nB: / /\n", "ab "),
    "edges": ("start: (A|B)+\nA: /^a/ | /a$/\nB: /\\n|b/\n", "ab\n"),
    "priority": ("start: (A|B)+\nA.2: /a/\nB: /ab|b/\n", "ab"),
    "comment": ('start: ("a" | "/" )*\nC: /\\/\\*.*?\\*\\//\n%ignore C\n', "a/*"),
    "numbers": ('start: N ("." N)*\nN: /1+(\\.1+)?/\n', "1."),
    "nested": ('start: "a" start "a" | "b"\n', "ab"),
    "dangling else": ('start: s\ns: "i" s | "i" s "e" s | "x"\n', "iex"),
    "unproductive": ('start: "a" | x "b"\nx: "c" x\n', "abc"),
    "declared": ('start: "a" | X "b"\n%declare X\n', "abX"),
    "loops over nothing": ("start: A B?\nA: /(?:a?|b)*?b/\nB: /(?:|a)*(?:b|a?){0,2}a/\n", "ab"),
    "characters": ("start: (A|B)+\nA: /[é-ü]+(?=ж)/\nB: /[^a-zé]/\n", "éüж!"),
}

_ATOMS = (
    *("a", "b", "[ab]", ".", "(a|ab)", "(ab|a)", "(|a)", "a?", "b*", "a+", "a*?", "(ab)*"),
    *("(a?)*", "(a|b*)*?", "(?=a)", "(?!b)", "(?<!a)", "(?<=b)", r"\b", r"\B", "$", "^"),
    *(r"(?!a\b)", "(?=.b)", "b{1,2}", "(a|b){0,2}?", r"\s"),
)
_IGNORED = ('" "', "/ +/", "/\\s/", "/ a/", '"b"')


def drawn(source: random.Random) -> str:
    """A random grammar over `a`, `b` and the space, with the start `start`."""
    return _Draw(source).grammar()


class _Draw:
    def __init__(self, source: random.Random) -> None:
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
