r"""Reads the expressions of a Lark grammar: what stands on the right of rules and terminals.

Items, choices, repetitions, literals with Lark's escapes, regular expressions, ranges, uses of
templates, and what llguidance's dialect adds to them: `&`, `~`, counts in braces, token forms,
`%json`, `%regex` and `%lark` in a rule. parser.py reads the statements around them.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from ast import literal_eval
from collections.abc import Sequence
from typing import Any

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import MAX_NESTING, Span
from grammaton.grammar.lark.nodes import (
    Both,
    CharRange,
    Json,
    Name,
    Nested,
    Node,
    Not,
    Regex,
    Repeat,
    Scope,
    Special,
    Substring,
    Text,
    Use,
    alt,
    seq,
)
from grammaton.grammar.reader import Reader
from grammaton.grammar.token_forms import read_tokens

# Nothing here is tried twice: what does not match must not take longer than what does.
SPACE = re.compile(r"(?:[ \t\f]++|\\[ ]*+\r?\n|\s*+(?://|#)[^\n]*+)*+")
SPACE_AND_LINES = re.compile(r"(?:\s++|\\[ ]*+\r?\n|(?://|#)[^\n]*+)*+")
_NEXT_BRANCH = re.compile(r"(?:(?:\r?\n)++\s*+)?+\|")
_NAME = re.compile("_?[a-z][_a-z0-9]*|_?[A-Z][_A-Z0-9]*")
_STRING = re.compile(r'"((?:[^"\n\\]++|\\["\\]|\\)*+)"(i?)')
_REGEX = re.compile(r"/(?!/)((?:[^/\\]++|\\[/\\]|\\)*+)/([imslux]*)")
_DIGIT = re.compile(r"[ \t]*[0-9]")
_COUNTS = re.compile(r"\{[ \t]*[0-9,]")
STATEMENT = re.compile("%[a-z]+")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]+")
_EVALUATED = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[nftr])")
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class ExpressionParser(Reader):
    """Reads expressions; who derives from it reads the statements around them."""

    def __init__(self, text: str, scope: Scope, file: str) -> None:
        super().__init__(text, "a Lark grammar", file=file)
        self._scope = scope
        self._depth = 0

    @abstractmethod
    def statements(self, *, nested: bool = False) -> Sequence[object]:
        """The statements from here on; `nested`: up to a closing brace."""

    def _span(self, start: int, end: int | None = None) -> Span:
        return Span(self.source, start, self.at if end is None else end)

    def _name(self, what: str) -> Name:
        start = self.at
        found = self.match(_NAME)
        if found is None:
            raise self.expected(what)
        return Name(found[0], self._scope, self._span(start))

    def _alternatives(self) -> Node:
        branches: list[Node] = []
        while True:
            self.match(SPACE)
            branches.append(self._conjunction())
            if self.take("->"):
                self.match(SPACE)
                alias = self._name("an alias in lower case")
                if alias.is_terminal:
                    raise alias.span.error("an alias is a name in lower case")
                self.match(SPACE)
            if self.match(_NEXT_BRANCH) is None:
                return alt(branches)

    def _conjunction(self) -> Node:
        start = self.at
        parts = [self._sequence()]
        while self.take("&"):
            self.match(SPACE)
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Both(tuple(parts), self._span(start))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while (item := self._item()) is not None:
            items.append(item)
        return seq(items)

    def _item(self) -> Node | None:
        start = self.at
        if self.take("~"):
            self._enter(start)
            self.match(SPACE)
            body = self._item()
            if body is None:
                raise self.expected("a terminal after ~")
            self._depth -= 1
            return Not(body, self._span(start))
        atom = self._atom()
        if atom is None:
            return None
        self.match(SPACE)
        item = self._repetition(atom)
        self.match(SPACE)
        return item

    def _repetition(self, atom: Node) -> Node:
        start = self.at
        char = self.text[start : start + 1]
        low: int
        high: int | None
        if char in _QUANTIFIERS:
            self.at += 1
            return Repeat(atom, *_QUANTIFIERS[char])
        if char == "~" and _DIGIT.match(self.text, start + 1):
            self.at += 1
            self.match(SPACE)
            low = high = self.count("a number of repetitions")
            self.match(SPACE)
            if self.take(".."):
                self.match(SPACE)
                high = self.count("the largest number of repetitions")
        elif _COUNTS.match(self.text, start):
            self.at += 1
            self.match(SPACE)
            low = 0 if self.sees(",") else self.count("a number of repetitions")
            self.match(SPACE)
            high = low
            if self.take(","):
                self.match(SPACE)
                high = None if self.sees("}") else self.count("the largest number or }")
            self.match(SPACE)
            if not self.take("}"):
                raise self.expected(", or }" if high == low else "}")
        else:
            return atom
        if high is not None and high < low:
            raise self.error(f"the minimum {low} is above the maximum {high}", start, self.at)
        return Repeat(atom, low, high)

    def _atom(self) -> Node | None:
        start = self.at
        char = self.text[start : start + 1]
        if char in ("(", "["):
            body = self._group(")" if char == "(" else "]")
            return body if char == "(" else Repeat(body, 0, 1)
        if char == '"':
            return self._text_or_range()
        if char == "/":
            return self._regex()
        if char == "<":
            form = read_tokens(self, start)
            return Special(form.names, form.ids, form.negated, self._span(start))
        if char == "%":
            return self._embedded()
        found = self.match(_NAME)
        if found is None:
            return None
        name = Name(found[0], self._scope, self._span(start))
        if name.is_terminal or not self.sees("{") or _COUNTS.match(self.text, self.at):
            return name
        self.at += 1
        arguments: list[Node] = []
        self._enter(start)
        while True:
            self.match(SPACE)
            here = self.at
            argument = self._atom()
            if argument is None:
                raise self.expected("an argument")
            if self.text[here] in "([":
                raise self.error("an argument is a name, a literal or a template", here, self.at)
            arguments.append(argument)
            self.match(SPACE)
            if self.take("}"):
                self._depth -= 1
                return Use(name, tuple(arguments))
            if not self.take(","):
                raise self.expected(", or }")

    def _enter(self, start: int) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self.error(f"groups are nested deeper than {MAX_NESTING}", start)

    def _group(self, closing: str) -> Node:
        start = self.at
        self.at += 1
        self._enter(start)
        body = self._alternatives()
        if self.at == len(self.text):
            raise self.error(f"this group is never closed; expected {closing}", start)
        if not self.take(closing):
            raise self.expected(f"an item, | or {closing}")
        self._depth -= 1
        return body

    # Literals

    def _text_or_range(self) -> Node:
        start = self.at
        value, flags = self._string()
        here = self.at
        self.match(SPACE)
        if not self.take(".."):
            self.at = here
            return Text(value, flags, self._span(start))
        self.match(SPACE)
        second = self.at
        if not self.sees('"'):
            raise self.expected("the last character of the range, in quotes")
        last, more_flags = self._string()
        for found, position in ((value, start), (last, second)):
            if len(found) != 1:
                raise self.error("a range is between two single characters", position, self.at)
        if flags or more_flags:
            raise self.error("a range has no flags", start, self.at)
        if value > last:
            raise self.error("this range ends before its start", start, self.at)
        return CharRange(ord(value), ord(last))

    def _string(self) -> tuple[str, str]:
        start = self.at
        found = self.match(_STRING)
        if found is None:
            raise self.error('this literal is never closed; expected "', start)
        value, _ = self._evaluated(found[1], start + 1)
        return value.replace("\\\\", "\\"), found[2]

    def _regex(self) -> Regex:
        start = self.at
        found = self.match(_REGEX)
        if found is None:
            raise self.error("this regular expression is never closed; expected /", start)
        if "\n" in found[1] and "x" not in found[2]:
            raise self.error(
                "a regular expression goes over several lines only with the flag x", start
            )
        value, offsets = self._evaluated(found[1], start + 1)
        return Regex(value, found[2], offsets, self._span(start))

    def _evaluated(self, raw: str, start: int) -> tuple[str, tuple[int, ...]]:
        """Evaluates what Lark does: `\\n` and the like, code points, and `\\"`.

        Other escapes stay as they are, both characters of them: in a regular expression they mean
        something, and in a literal a backslash is a backslash.
        """
        pieces: list[str] = []
        offsets: list[int] = []
        at = 0
        while at < len(raw):
            char = raw[at]
            here = at
            at += 1
            if char == "\\":
                if at == len(raw):
                    raise self.error("a backslash before the closing quote", start + here)
                follow = raw[at]
                if follow in "Uuxnftr":
                    found = _EVALUATED.match(raw, here)
                    if found is None:
                        raise self.error(
                            f"incomplete escape \\{follow}", start + here, start + at + 1
                        )
                    try:
                        char = literal_eval(f'"{found[0]}"')
                        char.encode()
                    except (SyntaxError, UnicodeEncodeError):
                        raise self.error(
                            "this is no character", start + here, start + found.end()
                        ) from None
                    at = found.end()
                elif follow == '"':
                    char = '"'
                    at += 1
                else:
                    char += follow
                    at += 1
            pieces.append(char)
            offsets.extend([start + here] * len(char))
        return "".join(pieces), (*offsets, start + len(raw))

    # Extensions

    def _json(self, what: str) -> Any:
        self.match(SPACE_AND_LINES)
        start = self.at
        if not self.sees("{"):
            raise self.expected(what)
        try:
            value, self.at = json.JSONDecoder().raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            raise self.error(f"not JSON: {error.msg}", error.pos) from None
        except RecursionError:
            raise self.error("this JSON is nested too deep", start) from None
        return value

    def _embedded(self) -> Node:
        start = self.at
        directive = self.match(STATEMENT)
        name = directive[0] if directive else "%"
        if name == "%json":
            self._json("a JSON Schema")
            schema = self.text[start + len(name) : self.at]
            return Json(schema, self._span(start))
        if name == "%regex":
            return self._substring(self._json("an object"), start)
        if name == "%lark":
            return self._nested(start)
        raise self.error(
            f"{name} is not supported here; expected %json, %lark or %regex",
            start,
            start + len(name),
            kind=UnsupportedKeyword,
        )

    def _nested(self, start: int) -> Node:
        self.match(SPACE_AND_LINES)
        opening = self.at
        if not self.take("{"):
            raise self.expected("a grammar in braces")
        self._enter(start)
        outer, self._scope = self._scope, Scope()
        statements = tuple(self.statements(nested=True))
        if not self.take("}"):
            raise self.error("this grammar is never closed; expected }", opening)
        node = Nested(statements, self._scope, self._span(start))
        self._scope = outer
        self._depth -= 1
        return node

    def _substring(self, value: dict[str, Any], start: int) -> Node:
        known = ("substring_chars", "substring_words", "substring_chunks")
        if len(value) == 1:
            ((key, text),) = value.items()
            span = self._span(start)
            if key == "substring_chunks" and isinstance(text, list):
                if all(isinstance(chunk, str) for chunk in text):
                    return Substring(tuple(text), span)
            elif key == "substring_chars" and isinstance(text, str):
                return Substring(tuple(text), span)
            elif key == "substring_words" and isinstance(text, str):
                return Substring(tuple(_WORDS.findall(text)), span)
        raise self.error(
            f"expected one of {', '.join(known)}, with a string (chunks: a list of strings)",
            start,
            self.at,
        )
