"""Whether Lark can write a grammar out: its tables are made from plain alternatives.

Lark writes each optional item of a rule as two alternatives, so n of them make 2^n, and a template
once for each list of arguments, for ever if these grow. Counting first costs a walk over the
grammar and turns both into errors. What Lark's notation lacks is refused here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from grammaton.errors import LimitExceeded, PlacedError, UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import Span
from grammaton.grammar.lark.loader import Loaded, resolve
from grammaton.grammar.lark.nodes import (
    Alt,
    CharRange,
    Definition,
    Name,
    Node,
    Regex,
    Repeat,
    Seq,
    Text,
    Use,
    children,
    mapped,
)

MAX_ALTERNATIVES = 20_000
"""Alternatives of one rule, once written out."""

MAX_DEFINITIONS = 22_000
"""Rules and terminals, templates written out."""

MAX_TEMPLATES = 2_000
"""Templates with different arguments."""

MAX_TEMPLATE_DEPTH = 30
"""How deep the arguments of a template may hold templates."""

_REPEATS_AS_RULES = 50
"""Lark writes counts from here on as rules of their own."""

_LARKS_OWN = Name | Text | Regex | CharRange | Use | Seq | Alt | Repeat


def check_expansion(loaded: Loaded, start: str) -> None:
    """Checks that Lark can read a grammar in reasonable time.

    Raises:
        GrammarError: the start is missing or can't be one; a template that grows.
        UnsupportedKeyword: an extension that Lark has not.
        LimitExceeded: too many alternatives or templates.
    """
    definition = loaded.scope.names.get(start)
    if definition is None:
        raise loaded.missing_start(start)
    if definition.is_terminal or definition.params:
        raise definition.span.error("the start must be a rule without parameters")
    for ignore in loaded.ignored:
        _check_notation(ignore.body, ignore.span)
    reached: set[tuple[int, tuple[Node, ...]]] = set()
    pending: list[tuple[Definition, tuple[Node, ...]]] = [
        (each, ()) for each in loaded.scope.names.values() if not each.params
    ]
    templates = 0
    while pending:
        definition, arguments = pending.pop()
        key = id(definition), arguments
        if key in reached or definition.body is None:
            continue
        reached.add(key)
        templates += bool(arguments)
        if definition.attributes is not None:
            raise definition.span.error(
                "Lark has no attributes of rules; they are an extension of the scannerless "
                "semantics",
                kind=UnsupportedKeyword,
            )
        if templates > MAX_TEMPLATES:
            raise definition.span.error(
                f"the grammar uses more than {MAX_TEMPLATES} templates", kind=LimitExceeded
            )
        if len(reached) > MAX_DEFINITIONS:
            raise definition.span.error(
                f"the grammar has more than {MAX_DEFINITIONS} rules and terminals",
                kind=LimitExceeded,
            )
        _check_notation(definition.body, definition.span)
        environment = dict(zip(definition.params, arguments, strict=True))
        body = _substituted(definition.body, environment)
        if not definition.is_terminal:
            count = _alternatives(body, definition)
            if count > MAX_ALTERNATIVES:
                raise _too_many(definition)
        pending.extend(_mentions(body, definition.span))


def _check_notation(node: Node, span: Span) -> None:
    pending = [node]
    while pending:
        top = pending.pop()
        if not isinstance(top, _LARKS_OWN):
            where: Span = getattr(top, "span", span)
            raise where.error(
                f"Lark has no {type(top).__name__.lower()}; it is an extension of the scannerless "
                "semantics",
                kind=UnsupportedKeyword,
            )
        pending.extend(children(top))


def _substituted(node: Node, environment: Mapping[str, Node]) -> Node:
    """A template's body with its arguments in place."""
    if not environment:
        return node
    match node:
        case Name(name):
            return environment.get(name, node)
        case Use(template, arguments):
            given = environment.get(template.name)
            return replace(
                node,
                template=given if isinstance(given, Name) else template,
                arguments=tuple(_substituted(argument, environment) for argument in arguments),
            )
    return mapped(node, lambda part: _substituted(part, environment))


def _mentions(node: Node, span: Span) -> list[tuple[Definition, tuple[Node, ...]]]:
    """The definitions that a body mentions, templates with their arguments."""
    found: list[tuple[Definition, tuple[Node, ...]]] = []
    pending = [node]
    while pending:
        top = pending.pop()
        if isinstance(top, Use):
            if _depth(top) > MAX_TEMPLATE_DEPTH:
                raise span.error(
                    f"the template {top.template.name} grows: its arguments hold templates more "
                    f"than {MAX_TEMPLATE_DEPTH} deep"
                )
            definition = resolve(top.template, (), arguments=len(top.arguments))
            if definition is not None:
                found.append((definition, top.arguments))
            pending.extend(top.arguments)
        elif isinstance(top, Name):
            definition = resolve(top, (), arguments=None)
            if definition is not None and not definition.params:
                found.append((definition, ()))
        else:
            pending.extend(children(top))
    return found


def _depth(node: Node) -> int:
    deepest = 0
    pending = [(node, 0)]
    while pending:
        top, depth = pending.pop()
        depth += isinstance(top, Use)
        deepest = max(deepest, depth)
        pending.extend((child, depth) for child in children(top))
    return deepest


def _alternatives(node: Node, rule: Definition) -> int:
    """How many alternatives without options, choices and counts Lark makes of a body."""
    match node:
        case Seq(parts):
            count = 1
            for part in parts:
                count *= _alternatives(part, rule)
                if count > MAX_ALTERNATIVES:
                    raise _too_many(rule)
            return count
        case Alt(branches):
            return sum(_alternatives(branch, rule) for branch in branches)
        case Repeat(body, low, high):
            inner = _alternatives(body, rule)
            if (low, high) == (0, 1):
                return inner + 1
            if high is None:
                return 1 + (low == 0)
            if high >= _REPEATS_AS_RULES:
                return 2 * inner
            total = 0
            for times in range(low, high + 1):
                total += min(inner, MAX_ALTERNATIVES) ** min(times, _REPEATS_AS_RULES)
                if total > MAX_ALTERNATIVES:
                    raise _too_many(rule)
            return total
    return 1


def _too_many(rule: Definition) -> PlacedError:
    return rule.span.error(
        f"Lark writes out more than {MAX_ALTERNATIVES} alternatives of {rule.name}, one for each "
        "choice of its optional items; make some of them rules of their own",
        kind=LimitExceeded,
    )
