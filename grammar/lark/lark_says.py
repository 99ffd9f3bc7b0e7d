"""Where what Lark says of a grammar stands in its text.

Lark's errors are sentences: they name a rule or terminal, give a line, or show a pattern that has
no name, or one that Lark made up (`__IGNORE_0`, `__ANON_3`). What none of that tells is said of the
start.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator

from grammaton.errors import LimitExceeded, PlacedError
from grammaton.grammar.ebnf_nodes import Span
from grammaton.grammar.lark.loader import Loaded
from grammaton.grammar.lark.nodes import Node, Regex, Text, children
from grammaton.grammar.lark.terminals import parsed_regex

_NAMED = re.compile(r"<(\w+) :|(?:erminals?|oken) '?(\w+)|[Rr]ule '?(\w+)|\((\w+): |in rule (\w+)")
_IGNORED = re.compile(r"\(__IGNORE_(\d+): ")
_SHOWN = re.compile(r"__ANON_\d+: ('.*'|\".*\")", re.DOTALL)
_UNCOMPILED = re.compile(r"Cannot compile token \w+: ('.*'|\".*\")", re.DOTALL)
_AT = re.compile(r"at line (\d+),? col(?:umn)? (\d+)")
_FLAGS = re.compile(r"\(\?[imslux]+:(.*)\)", re.DOTALL)


def refusal(said: str, loaded: Loaded, start: str) -> PlacedError:
    """The error for what Lark says; it is for the caller to raise.

    Raises:
        PlacedError: what our own reader says of a regular expression that Lark cannot compile, with
            the place within it.
    """
    if at := _UNCOMPILED.search(said):
        pattern = literal_eval(at[1])
        for node in _nodes(loaded):
            if isinstance(node, Regex) and node.value in pattern:
                parsed_regex(node)
    return _place(said, loaded, start).error(f"Lark refuses the grammar: {said}")


def too_deep(loaded: Loaded, start: str) -> PlacedError:
    """The error for recursion of Lark or of `re` that went too deep; it is for the caller to raise.

    Raises:
        PlacedError: what our own reader says of a regular expression with too many groups.
    """
    for node in _nodes(loaded):
        if isinstance(node, Regex):
            parsed_regex(node)
    return loaded.scope.names[start].span.error(
        "the rules of the grammar stand too deep within each other for Lark, whose analysis recurs",
        kind=LimitExceeded,
    )


def _place(said: str, loaded: Loaded, start: str) -> Span:
    if at := _AT.search(said):
        lines = loaded.source.text.split("\n")
        position = sum(len(line) + 1 for line in lines[: int(at[1]) - 1]) + int(at[2]) - 1
        return Span(loaded.source, position, position + 1)
    if (at := _IGNORED.search(said)) and int(at[1]) < len(loaded.ignored):
        return loaded.ignored[int(at[1])].span
    names = (name for found in _NAMED.finditer(said) for name in found.groups() if name)
    spans = [loaded.scope.names[name].span for name in names if name in loaded.scope.names]
    if spans:
        return next((span for span in spans if span.source == loaded.source), spans[0])
    if 'Empty terminals are not allowed ("")' in said:
        for node in _nodes(loaded):
            if isinstance(node, Text) and not node.value:
                return node.span
    if at := _SHOWN.search(said):
        pattern = literal_eval(at[1])
        if flagged := _FLAGS.fullmatch(pattern):
            pattern = flagged[1]
        for node in _nodes(loaded):
            if isinstance(node, Regex) and node.value == pattern:
                return node.span
    return loaded.scope.names[start].span


def _nodes(loaded: Loaded) -> Iterator[Node]:
    bodies = [each.body for each in loaded.scope.names.values()]
    pending = [*(each.body for each in loaded.ignored), *(body for body in bodies if body)]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(children(node))
