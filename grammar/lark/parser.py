r"""Reads the text of a Lark grammar, one file, into statements.

The syntax is that of Lark 1.3 (`lark/load_grammar.py`): names in lower case are rules, in capitals
terminals; a statement ends with its line unless the next one begins with `|`; a comment, `//` or
`#`, takes the white space and the lines before it along; escapes in literals and regular
expressions are evaluated as Lark evaluates them, so that `\x5d` in a class is a bracket. Of
llguidance's dialect: `&`, `~`, `{m,n}`, `%json`, `%regex`, the empty literal and token forms;
attributes of rules, and `%lark {…}`, a grammar in a rule.

Lark's own reader is not used because it drops the places that errors need, takes 8 s for a megabyte
(this one takes 1 s), and knows no extensions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import Span
from grammaton.grammar.lark.expressions import SPACE, SPACE_AND_LINES, STATEMENT, ExpressionParser
from grammaton.grammar.lark.nodes import (
    Attributes,
    Name,
    Node,
    Regex,
    Scope,
    Text,
    is_terminal_name,
)

_LINE = re.compile(r"(?:\r?\n)+\s*")
_MODIFIERS = re.compile("![?]?|[?]!?")
_PRIORITY = re.compile(r"\.[ \t]*[+-]?[0-9]+")
_ATTRIBUTE = re.compile("[a-z_]+")
_NUMBER = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,12})?")
_ATTRIBUTES = (
    "capture",
    "lazy",
    "max_tokens",
    "stop",
    "stop_capture",
    "suffix",
    "temperature",
)


@dataclass(frozen=True)
class Define:
    """A rule or terminal; `how` says whether it is new."""

    how: Literal["define", "override", "extend"]
    name: str
    params: tuple[str, ...]
    body: Node
    span: Span
    attributes: Attributes | None = None


@dataclass(frozen=True)
class Declare:
    """A name that code outside the grammar gives a meaning."""

    name: str
    span: Span


@dataclass(frozen=True)
class Ignore:
    """What may stand between terminals."""

    body: Node
    span: Span


@dataclass(frozen=True)
class Import:
    """Names from another file: (name there, name here, place)."""

    path: tuple[str, ...]
    relative: bool
    names: tuple[tuple[str, str, Span], ...]
    span: Span


Statement = Define | Declare | Ignore | Import


def read_lark(text: str, scope: Scope, file: str = "") -> list[Statement]:
    """The statements of one grammar file, whose names mean what `scope` will say.

    Raises:
        GrammarError: a syntax error, with its place.
        UnsupportedKeyword: an extension that is not supported yet.
    """
    return _Parser(text, scope, file).statements()


class _Parser(ExpressionParser):
    def statements(self, *, nested: bool = False) -> list[Statement]:
        """All of them; of a nested grammar, those up to its closing brace."""
        found: list[Statement] = []
        self.match(SPACE_AND_LINES)
        while self.at < len(self.text) and not (nested and self.sees("}")):
            start = self.at
            directive = self.match(STATEMENT)
            self.match(SPACE)
            if directive is None:
                found.append(self._definition("define"))
            elif directive[0] in ("%override", "%extend"):
                how: Literal["override", "extend"] = (
                    "override" if directive[0] == "%override" else "extend"
                )
                found.append(self._definition(how))
            elif directive[0] == "%ignore":
                found.append(Ignore(self._alternatives(), self._span(start)))
            elif directive[0] == "%declare":
                if self.at == len(self.text) or self.text[self.at] in "\r\n":
                    raise self.expected("the name of a rule or terminal")
                while self.at < len(self.text) and self.match(_LINE) is None:
                    name = self._name("the name of a rule or terminal")
                    found.append(Declare(name.name, name.span))
                    self.match(SPACE)
                self.match(SPACE_AND_LINES)
                continue
            elif directive[0] == "%import":
                found.append(self._import(start))
            else:
                self._other_directive(directive[0], start)
            self.match(SPACE)
            at_end = self.at == len(self.text) or (nested and self.sees("}"))
            if not at_end and self.match(_LINE) is None:
                raise self.expected("an item, | or the end of the line")
            self.match(SPACE_AND_LINES)
        return found

    def _other_directive(self, directive: str, start: int) -> None:
        if directive == "%llguidance":
            if self._json("an object of options"):
                raise self.error(
                    "options of llguidance are not supported",
                    start,
                    self.at,
                    kind=UnsupportedKeyword,
                )
            return
        raise self.error(
            f"{directive} is no statement; expected %import, %ignore, %declare, %override or "
            "%extend",
            start,
            start + len(directive),
        )

    def _import(self, start: int) -> Import:
        relative = self.take(".")
        path = [self._name("the path of a grammar")]
        while self.take("."):
            path.append(self._name("a name"))
        self.match(SPACE)
        names: list[tuple[str, str, Span]] = []
        if self.take("("):
            while True:
                self.match(SPACE)
                name = self._name("a name to import")
                names.append((name.name, name.name, name.span))
                self.match(SPACE)
                if self.take(")"):
                    break
                if not self.take(","):
                    raise self.expected(", or )")
        else:
            name = path.pop()
            alias = name.name
            if self.take("->"):
                self.match(SPACE)
                alias = self._name("the name to import it as").name
            names.append((name.name, alias, name.span))
        if not path:
            raise self.error(
                f"expected what to import from {names[0][0]}: %import {names[0][0]}.NAME",
                start,
                self.at,
            )
        for there, here, span in names:
            if is_terminal_name(there) != is_terminal_name(here):
                raise span.error(f"{there} cannot be imported as {here}: a terminal is no rule")
        return Import(tuple(name.name for name in path), relative, tuple(names), self._span(start))

    def _definition(self, how: Literal["define", "override", "extend"]) -> Define:
        self.match(_MODIFIERS)
        name = self._name("a rule, a terminal or a statement")
        attributes = self._attributes(name) if self.sees("[") else None
        params: list[str] = []
        if attributes is not None and self.sees("{"):
            raise self.error("a template has no attributes", self.at)
        if not name.is_terminal and self.take("{"):
            while True:
                self.match(SPACE)
                param = self._name("a parameter")
                if param.is_terminal:
                    raise param.span.error("a parameter is a name in lower case")
                if param.name in params:
                    raise param.span.error(f"the parameter {param.name} is there twice")
                params.append(param.name)
                self.match(SPACE)
                if self.take("}"):
                    break
                if not self.take(","):
                    raise self.expected(", or }")
        self.match(SPACE)
        self.match(_PRIORITY)
        self.match(SPACE)
        if not self.take(":"):
            raise self.expected(":")
        body = self._alternatives()
        return Define(how, name.name, tuple(params), body, name.span, attributes)

    def _attributes(self, rule: Name) -> Attributes:
        start = self.at
        if rule.is_terminal:
            raise self.error("attributes belong to rules, and this is a terminal", start)
        self.at += 1
        found: dict[str, Any] = {}
        while True:
            self.match(SPACE_AND_LINES)
            here = self.at
            word = self.match(_ATTRIBUTE)
            known = word[0] if word else ""
            if known not in _ATTRIBUTES:
                raise self.error(
                    f"expected one of {', '.join(_ATTRIBUTES)}", here, max(self.at, here + 1)
                )
            if known in found:
                raise self.error(f"{known} is there twice", here, self.at)
            self.match(SPACE)
            found[known] = self._attribute(known, rule, here)
            self.match(SPACE_AND_LINES)
            if self.take("]"):
                break
            if not self.take(","):
                raise self.expected(", or ]")
        if "stop" in found and ("suffix" in found or "stop_capture" in found):
            other = "suffix" if "suffix" in found else "stop_capture"
            raise self.error(f"stop and {other} don't go together", start, self.at)
        if "stop_capture" in found and "suffix" not in found:
            raise self.error("stop_capture names what a suffix matches", start, self.at)
        return Attributes(**found)

    def _attribute(self, name: str, rule: Name, start: int) -> object:
        if name == "lazy":
            return True
        if not self.take("="):
            if name == "capture":
                return rule.name
            raise self.expected("=")
        self.match(SPACE)
        here = self.at
        if name in ("capture", "stop_capture"):
            if not self.sees('"'):
                raise self.expected("a name in quotes")
            value, _ = self._string()
            if not value:
                raise self.error("a capture needs a name", here, self.at)
            return value
        if name in ("stop", "suffix"):
            terminal = self._atom()
            if not isinstance(terminal, Text | Regex | Name) or (
                isinstance(terminal, Name) and not terminal.is_terminal
            ):
                raise self.error("expected a literal, a regular expression or a terminal", here)
            if terminal == Text("", "", self._span(here)):
                raise self.error(
                    "an end of sequence can't stop a rule within a text",
                    here,
                    self.at,
                    kind=UnsupportedKeyword,
                )
            return terminal
        if name == "max_tokens":
            count = self.count("a number of tokens")
            if count == 0:
                raise self.error("max_tokens is at least 1", here, self.at)
            return count
        number = self.match(_NUMBER)
        if number is None:
            raise self.expected("a temperature from 0 on")
        return float(number[0])

    # Expressions
