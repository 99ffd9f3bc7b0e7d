"""Reads W3C EBNF: rules `name ::= expression`, as in XML 1.0 (section 6, "Notation").

| form | meaning |
|---|---|
| `#xN` | the character with that code point |
| `[a-z#x30-#x39]`, `[^<&]` | one character of a set, one outside it; only #xN escapes |
| `"text"`, `'text'` | exactly this text |
| `A B`, `A | B`, `A - B` | in turn, either, a text of A that is none of B |
| `A?`, `A*`, `A+`, `(A)` | as everywhere |

`-` binds tighter than a sequence, as the specifications use it, and takes expressions without
recursion. A rule ends where the next one begins; it may be numbered (`[17] PITarget ::= …`), at the
beginning of a line, since elsewhere `[17]` is a character.
`/* … */` is a comment. Constraints (`[ wfc: … ]`, `[ vc: … ]`) say in prose what no grammar can:
they are refused, not skipped.
"""

from __future__ import annotations

import re

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import (
    MAX_NESTING,
    Chars,
    Literal,
    Node,
    Ref,
    Rule,
    Rules,
    Without,
    alt,
    seq,
)
from grammaton.grammar.reader import Reader

_NAME = re.compile(r"[A-Za-z_][\w.-]*+")
_SPACE = re.compile(r"(?:\s++|(?>/\*.*?\*/))*+", re.DOTALL)
_HEAD = rf"{_NAME.pattern}{_SPACE.pattern}::="
_NUMBER = re.compile(rf"\[[0-9]++[a-z]?\](?={_SPACE.pattern}{_HEAD})", re.DOTALL)
_RULE = re.compile(rf"(?:\[[0-9]++[a-z]?\](?P<between>{_SPACE.pattern}))?{_HEAD}", re.DOTALL)
_CONSTRAINT = re.compile(r"\[\s*(?:wfc|vc|WFC|VC)\s*:[^\]]*\]?")
_CODE_POINT = re.compile("#x([0-9A-Fa-f]+)")
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def read_ebnf(text: str) -> Rules:
    """The rules of a W3C EBNF grammar.

    Raises:
        GrammarError: a syntax error, no rules, or a rule defined twice, with its place.
        UnsupportedKeyword: a constraint in prose.
    """
    return _Parser(text).rules()


class _Parser(Reader):
    def __init__(self, text: str) -> None:
        super().__init__(text, "an EBNF grammar")
        self._depth = 0

    def rules(self) -> Rules:
        rules = Rules(self.source)
        self._space()
        while self.at < len(self.text):
            self.match(_NUMBER)
            self._space()
            start = self.at
            name = self.match(_NAME)
            if name is None:
                what = "an item, | or a rule" if rules.by_name else "a rule, name ::= expression"
                raise self.expected(what)
            self._space()
            if not self.take("::="):
                raise self.expected("::=")
            self._space()
            body = self._choice()
            rules.add(Rule(name[0], body, self.source, start, name.end()))
        if not rules.by_name:
            raise self.expected("a rule, name ::= expression")
        return rules

    def _space(self) -> None:
        self.match(_SPACE)
        if self.sees("/*"):
            raise self.error("this comment is never closed; expected */", self.at, self.at + 2)

    def _choice(self) -> Node:
        branches = [self._sequence()]
        while self.take("|"):
            self._space()
            branches.append(self._sequence())
        return alt(branches)

    def _sequence(self) -> Node:
        items: list[Node] = []
        while (item := self._item()) is not None:
            while self.sees("-"):
                start = self.at
                self.at += 1
                self._space()
                removed = self._item()
                if removed is None:
                    raise self.expected("what to take away")
                item = Without(item, removed, self.source, start, start + 1)
            items.append(item)
        if items or self.at == len(self.text) or self.text[self.at] in "|)":
            return seq(items) if items else Literal("")
        if self._at_rule():
            return Literal("")
        raise self.expected("an item, | or the end of the rule")

    def _item(self) -> Node | None:
        """An item with its quantifiers, None where none begins."""
        if self.at == len(self.text):
            return None
        start = self.at
        char = self.text[start]
        item: Node
        if char in "\"'":
            item = self._literal()
        elif char == "#":
            code = self._code_point()
            item = Chars(((code, code),))
        elif char == "(":
            item = self._group()
        elif self._at_rule():
            return None
        elif char == "[":
            item = self._class()
        else:
            name = self.match(_NAME)
            if name is None:
                return None
            item = Ref(name[0], self.source, start, self.at)
        self._space()
        first = self.at
        while self.at < len(self.text) and self.text[self.at] in _QUANTIFIERS:
            self.at += 1
            item = self.repeated(item, *_QUANTIFIERS[self.text[self.at - 1]], first)
            self._space()
        return item

    def _at_rule(self) -> bool:
        """Whether the next rule begins here, with its number if it has one.

        Raises:
            GrammarError: a number that does not begin its line, or is alone on it: it could as well
                be a character.
        """
        found = _RULE.match(self.text, self.at)
        if found is None or self.text[self.at] != "[":
            return found is not None
        line = self.text.rfind("\n", 0, self.at) + 1
        begins = not self.text[line : self.at].strip()
        alone = "\n" in found["between"]
        if begins != alone:
            return begins
        number = found[0][: found[0].index("]") + 1]
        raise self.error(
            f"{number} may be a character or the number of the rule behind it; expected a rule's "
            "number at the beginning of the rule's line, and a character at the end of another",
            self.at,
            self.at + len(number),
        )

    def _group(self) -> Node:
        start = self.at
        self.at += 1
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self.error(f"groups are nested deeper than {MAX_NESTING}", start)
        self._space()
        body = self._choice()
        if self.at == len(self.text):
            raise self.error("this group is never closed; expected )", start)
        if not self.take(")"):
            raise self.expected("an item, | or )")
        self._depth -= 1
        return body

    def _literal(self) -> Node:
        start = self.at
        quote = self.text[start]
        stop = self.text.find(quote, start + 1)
        if stop < 0 or "\n" in self.text[start:stop]:
            raise self.error(f"this literal is never closed; expected {quote}", start)
        self.at = stop + 1
        return Literal(self.text[start + 1 : stop])

    def _code_point(self) -> int:
        start = self.at
        digits = self.match(_CODE_POINT)
        if digits is None:
            self.at += 1
            raise self.error("expected #x and hexadecimal digits", start)
        return self.hexadecimal(digits[1], start)

    def _class(self) -> Node:
        start = self.at
        constraint = _CONSTRAINT.match(self.text, start)
        if constraint is not None:
            raise self.error(
                "a constraint in prose cannot be enforced; remove it",
                start,
                constraint.end(),
                kind=UnsupportedKeyword,
            )
        self.at += 1
        return Chars(self.class_ranges(start, self._class_char))

    def _class_char(self, start: int) -> int:
        if self.at == len(self.text) or self.text[self.at] == "\n":
            raise self.error("this class is never closed; expected ]", start)
        if self.sees("#x"):
            return self._code_point()
        self.at += 1
        return ord(self.text[self.at - 1])
