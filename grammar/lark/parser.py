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

import json
import re
from ast import literal_eval
from dataclasses import dataclass
from typing import Any, Literal

from grammaton.errors import UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import MAX_NESTING
from grammaton.grammar.lark.nodes import (
    Attributes,
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
    Seq,
    Span,
    Special,
    Substring,
    Text,
    Use,
    alt,
    is_terminal_name,
    seq,
)
from grammaton.grammar.reader import Reader
from grammaton.grammar.token_forms import read_tokens

_SPACE = re.compile(r"(?:[ \t\f]|\\[ ]*\r?\n|\s*(?://|#)[^\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:\s|\\[ ]*\r?\n|(?://|#)[^\n]*)*")
_LINE = re.compile(r"(?:\r?\n)+\s*")
_NEXT_BRANCH = re.compile(r"(?:(?:\r?\n)+\s*)?\|")
_NAME = re.compile("_?[a-z][_a-z0-9]*|_?[A-Z][_A-Z0-9]*")
_MODIFIERS = re.compile("![?]?|[?]!?")
_PRIORITY = re.compile(r"\.[ \t]*[+-]?[0-9]+")
_STRING = re.compile(r'"((?:\\"|\\\\|[^"\n])*?)"(i?)')
_REGEX = re.compile(r"/(?!/)((?:\\/|\\\\|[^/])*?)/([imslux]*)")
_DIGIT = re.compile(r"[ \t]*[0-9]")
_COUNTS = re.compile(r"\{[ \t]*[0-9,]")
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
_STATEMENT = re.compile("%[a-z]+")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]+")
_EVALUATED = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[nftr])")
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


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


class _Parser(Reader):
    def __init__(self, text: str, scope: Scope, file: str) -> None:
        super().__init__(text, "a Lark grammar", file=file)
        self._scope = scope
        self._depth = 0

    def statements(self, *, nested: bool = False) -> list[Statement]:
        """All of them; of a nested grammar, those up to its closing brace."""
        found: list[Statement] = []
        self.match(_SPACE_AND_LINES)
        while self.at < len(self.text) and not (nested and self.sees("}")):
            start = self.at
            directive = self.match(_STATEMENT)
            self.match(_SPACE)
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
                while self.at < len(self.text) and self.match(_LINE) is None:
                    name = self._name("the name of a rule or terminal")
                    found.append(Declare(name.name, name.span))
                    self.match(_SPACE)
                self.match(_SPACE_AND_LINES)
                continue
            elif directive[0] == "%import":
                found.append(self._import(start))
            else:
                self._other_directive(directive[0], start)
            self.match(_SPACE)
            at_end = self.at == len(self.text) or (nested and self.sees("}"))
            if not at_end and self.match(_LINE) is None:
                raise self.expected("an item, | or the end of the line")
            self.match(_SPACE_AND_LINES)
        return found

    def _span(self, start: int, end: int | None = None) -> Span:
        return Span(self.source, start, self.at if end is None else end)

    def _name(self, what: str) -> Name:
        start = self.at
        found = self.match(_NAME)
        if found is None:
            raise self.expected(what)
        return Name(found[0], self._scope, self._span(start))

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
        self.match(_SPACE)
        names: list[tuple[str, str, Span]] = []
        if self.take("("):
            while True:
                self.match(_SPACE)
                name = self._name("a name to import")
                names.append((name.name, name.name, name.span))
                self.match(_SPACE)
                if self.take(")"):
                    break
                if not self.take(","):
                    raise self.expected(", or )")
        else:
            name = path.pop()
            alias = name.name
            if self.take("->"):
                self.match(_SPACE)
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
                self.match(_SPACE)
                param = self._name("a parameter")
                if param.is_terminal:
                    raise param.span.error("a parameter is a name in lower case")
                if param.name in params:
                    raise param.span.error(f"the parameter {param.name} is there twice")
                params.append(param.name)
                self.match(_SPACE)
                if self.take("}"):
                    break
                if not self.take(","):
                    raise self.expected(", or }")
        self.match(_SPACE)
        self.match(_PRIORITY)
        self.match(_SPACE)
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
            self.match(_SPACE_AND_LINES)
            here = self.at
            word = self.match(_ATTRIBUTE)
            known = word[0] if word else ""
            if known not in _ATTRIBUTES:
                raise self.error(
                    f"expected one of {', '.join(_ATTRIBUTES)}", here, max(self.at, here + 1)
                )
            if known in found:
                raise self.error(f"{known} is there twice", here, self.at)
            self.match(_SPACE)
            found[known] = self._attribute(known, rule, here)
            self.match(_SPACE_AND_LINES)
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
        self.match(_SPACE)
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

    def _alternatives(self) -> Node:
        branches: list[Node] = []
        while True:
            self.match(_SPACE)
            branches.append(self._conjunction())
            if self.take("->"):
                self.match(_SPACE)
                alias = self._name("an alias in lower case")
                if alias.is_terminal:
                    raise alias.span.error("an alias is a name in lower case")
                self.match(_SPACE)
            if self.match(_NEXT_BRANCH) is None:
                return alt(branches)

    def _conjunction(self) -> Node:
        start = self.at
        parts = [self._sequence()]
        while self.take("&"):
            self.match(_SPACE)
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
            self.match(_SPACE)
            body = self._item()
            if body is None:
                raise self.expected("a terminal after ~")
            self._depth -= 1
            return Not(body, self._span(start))
        atom = self._atom()
        if atom is None:
            return None
        self.match(_SPACE)
        item = self._repetition(atom)
        self.match(_SPACE)
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
            self.match(_SPACE)
            low = high = self.count("a number of repetitions")
            self.match(_SPACE)
            if self.take(".."):
                self.match(_SPACE)
                high = self.count("the largest number of repetitions")
        elif _COUNTS.match(self.text, start):
            self.at += 1
            self.match(_SPACE)
            low = 0 if self.sees(",") else self.count("a number of repetitions")
            self.match(_SPACE)
            high = low
            if self.take(","):
                self.match(_SPACE)
                high = None if self.sees("}") else self.count("the largest number or }")
            self.match(_SPACE)
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
            self.match(_SPACE)
            here = self.at
            argument = self._atom()
            if argument is None:
                raise self.expected("an argument")
            if isinstance(argument, Seq | Repeat):
                raise self.error("an argument is a name, a literal or a template", here, self.at)
            arguments.append(argument)
            self.match(_SPACE)
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
        self.match(_SPACE)
        if not self.take(".."):
            self.at = here
            return Text(value, flags, self._span(start))
        self.match(_SPACE)
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
        self.match(_SPACE_AND_LINES)
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
        directive = self.match(_STATEMENT)
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
        self.match(_SPACE_AND_LINES)
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
