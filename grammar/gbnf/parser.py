r"""Reads GBNF: rules `name ::= alternatives`, the language being that of the rule `root`.

As llama.cpp reads it (grammars/README.md there): a rule ends with its line, except inside
parentheses and after `::=` or `|`; `#` begins a comment; literals and classes know the escapes
`\n \r \t \\ \" \[ \]`, `\xNN`, `\uNNNN` and `\UNNNNNNNN`; `.` is any character; a quantifier
(`?`, `*`, `+`, `{m}`, `{m,}`, `{m,n}`) repeats the item before it, a literal as a whole.

Beyond llama.cpp, left recursion and repetitions of any size are accepted, names may contain `_`,
and a line may begin with the `|` of the rule above it. What it would read but hardly as meant is
refused: a rule that is defined twice, and an empty class. A token form (`<think>`, `<[1000]>`,
`!<think>`) is one token as itself; lists and ranges of ids are read, too.
"""

from __future__ import annotations

import re

from grammaton.grammar.ebnf_nodes import (
    MAX_NESTING,
    Chars,
    Literal,
    Node,
    Ref,
    Rule,
    Rules,
    alt,
    seq,
)
from grammaton.grammar.reader import Reader
from grammaton.grammar.regex.ranges import ANY
from grammaton.grammar.token_forms import read_tokens

_NAME = re.compile("[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t]|#[^\n\r]*)*")
_SPACE_OR_LINES = re.compile(r"(?:[ \t\r\n]|#[^\n\r]*)*")
_LINE = re.compile(r"\r?\n|\r")
_CONTINUED = re.compile(r"(?:[ \t\r\n]|#[^\n\r]*)*(?=\|)")
_PLAIN = re.compile(r'[^"\\\r\n]+')
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def read_gbnf(text: str) -> Rules:
    """The rules of a GBNF grammar.

    Raises:
        GrammarError: a syntax error or a rule defined twice, with its place.
    """
    return _Parser(text).rules()


class _Parser(Reader):
    def __init__(self, text: str) -> None:
        super().__init__(text, "a GBNF grammar")
        self._depth = 0

    def rules(self) -> Rules:
        rules = Rules(self.source)
        self.match(_SPACE_OR_LINES)
        while self.at < len(self.text):
            start = self.at
            name = self.match(_NAME)
            if name is None:
                raise self.expected("the name of a rule")
            self.match(_SPACE)
            if not self.take("::="):
                raise self.expected("::=")
            self.match(_SPACE_OR_LINES)
            body = self._alternatives()
            rules.add(Rule(name[0], body, self.source, start, name.end()))
            if self.at < len(self.text) and self.match(_LINE) is None:
                raise self.expected("an item, | or the end of the line")
            self.match(_SPACE_OR_LINES)
        return rules

    def _space(self) -> None:
        self.match(_SPACE_OR_LINES if self._depth else _SPACE)

    def _alternatives(self) -> Node:
        branches = [self._sequence()]
        while self.match(_CONTINUED) is not None:
            self.at += 1
            self.match(_SPACE_OR_LINES)
            branches.append(self._sequence())
        return alt(branches)

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                items.append(Literal(self._literal()))
            elif char == "[":
                items.append(self._class())
            elif char == ".":
                self.at += 1
                items.append(Chars(ANY))
            elif char == "(":
                items.append(self._group())
            elif char in "*+?{":
                self._quantifier(items)
            elif char in "<!":
                start = self.at
                negated = self.take("!")
                items.append(read_tokens(self, start, negated=negated))
            else:
                start = self.at
                name = self.match(_NAME)
                if name is None:
                    break
                items.append(Ref(name[0], self.source, start, self.at))
            self._space()
        return seq(items) if items else Literal("")

    def _group(self) -> Node:
        start = self.at
        self.at += 1
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self.error(f"groups are nested deeper than {MAX_NESTING}", start)
        self.match(_SPACE_OR_LINES)
        body = self._alternatives()
        if self.at == len(self.text):
            raise self.error("this group is never closed; expected )", start)
        if not self.take(")"):
            raise self.expected("an item, | or )")
        self._depth -= 1
        return body

    def _quantifier(self, items: list[Node]) -> None:
        start = self.at
        low: int
        high: int | None
        if self.take("{"):
            self._space()
            low = self.count("the least number of repetitions")
            high = low
            self._space()
            if self.take(","):
                self._space()
                high = None if self.sees("}") else self.count("the largest number or }")
                self._space()
            if not self.take("}"):
                raise self.expected(", or }" if high == low else "}")
        else:
            self.at += 1
            low, high = _QUANTIFIERS[self.text[start]]
        if not items:
            raise self.error("there is nothing to repeat before this", start, self.at)
        if high is not None and high < low:
            raise self.error(f"the minimum {low} is above the maximum {high}", start, self.at)
        items.append(self.repeated(items.pop(), low, high, start))

    def _literal(self) -> str:
        start = self.at
        self.at += 1
        pieces: list[str] = []
        while True:
            plain = self.match(_PLAIN)
            if plain is not None:
                pieces.append(plain[0])
            if self.take('"'):
                return "".join(pieces)
            if not self.sees("\\"):
                raise self.error('this literal is never closed; expected "', start)
            pieces.append(self._escape())

    def _class(self) -> Node:
        start = self.at
        self.at += 1
        return Chars(self.class_ranges(start, self._class_char, hint=" (any character is .)"))

    def _class_char(self, start: int) -> int:
        if self.at == len(self.text) or self.text[self.at] in "\r\n":
            raise self.error("this class is never closed; expected ]", start)
        if self.sees("\\"):
            return ord(self._escape())
        self.at += 1
        return ord(self.text[self.at - 1])

    def _escape(self) -> str:
        start = self.at
        found = self.match(_ESCAPE)
        digits = found and (found[1] or found[2] or found[3])
        if digits:
            return chr(self.hexadecimal(digits, start))
        if found is None or found[4] not in _ESCAPED:
            raise self.error(
                r"unknown escape; expected one of \n \r \t \\ \" \[ \] \xNN \uNNNN \UNNNNNNNN",
                start,
                start + 2,
            )
        return _ESCAPED[found[4]]
