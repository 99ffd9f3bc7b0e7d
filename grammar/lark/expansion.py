"""Whether Lark can write a grammar out: its tables are made from plain alternatives.

Lark writes each optional item of a rule as two alternatives, so n of them make 2^n, and a template
once for each list of arguments, for ever if these grow. Terminals that mention each other twice
double, a rule of thousands of items costs Lark the cube of their number, and a run of blank lines
the square of its length. Counting first costs a walk over the grammar and turns all of it into
errors. What Lark's notation lacks is refused here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from grammaton.errors import LimitExceeded, PlacedError, UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import Span
from grammaton.grammar.lark.loader import Loaded, resolve
from grammaton.grammar.lark.nodes import (
    Alt,
    Both,
    CharRange,
    Definition,
    Json,
    Name,
    Nested,
    Node,
    Not,
    Regex,
    Repeat,
    Seq,
    Special,
    Substring,
    Text,
    Use,
    children,
    mapped,
)

MAX_ALTERNATIVES = 20_000
"""Alternatives of one rule, once written out."""

MAX_DEFINITIONS = 22_000
"""Rules and terminals, templates written out."""

MAX_WRITTEN = 4_000_000
"""Characters of all terminals' patterns, those of others within them written out."""

MAX_TERMINAL_DEPTH = 200
"""How deep terminals may stand within each other."""

MAX_BLANKS = 600_000_000
"""Squares of runs of blank lines: Lark's lexer goes over each as many times as it is long."""

MAX_ITEMS = 125_000_000
"""Cubes of rules' lengths, some hundredths of a microsecond each in Lark's analysis."""

MAX_TEMPLATES = 2_000
"""Templates with different arguments."""

MAX_TEMPLATE_DEPTH = 30
"""How deep the arguments of a template may hold templates."""

_REPEATS_AS_RULES = 50
"""Lark writes counts from here on as rules of their own."""

_BLANK_LINES = re.compile(r"\n\s+")

_ITEMS = Name | Text | Regex | CharRange | Use

_LARKS_OWN = Name | Text | Regex | CharRange | Use | Seq | Alt | Repeat


_EXTENSIONS: dict[type, str] = {
    Both: "& between terminals",
    Not: "~ before a terminal",
    Json: "%json",
    Nested: "%lark",
    Special: "special token",
    Substring: "%regex",
}


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
    _check_blanks(loaded)
    _check_terminals(loaded)
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
        if definition.body is None and not definition.is_terminal:
            raise definition.span.error(
                f"rule {definition.name} is only declared, and Lark reads no grammar with such"
            )
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
            _check_items(body, definition)
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
                f"Lark has no {_EXTENSIONS.get(type(top), 'such')}; it is an extension of the "
                "scannerless semantics",
                kind=UnsupportedKeyword,
            )
        pending.extend(children(top))


def _check_blanks(loaded: Loaded) -> None:
    work = 0
    for found in _BLANK_LINES.finditer(loaded.source.text):
        work += len(found[0]) ** 2
        if work > MAX_BLANKS:
            raise loaded.source.error(
                "Lark takes too long to read as many blank lines in a row",
                found.start(),
                kind=LimitExceeded,
            )


def _check_terminals(loaded: Loaded) -> None:
    """Checks what Lark writes each terminal out to, with those that it mentions."""
    sizes: dict[int, tuple[int, int]] = {}  # characters and depth
    total = 0
    for each in loaded.scope.names.values():
        path = [each] if each.is_terminal else []
        entered: set[int] = set()
        while path:
            top = path[-1]
            if id(top) in sizes:
                path.pop()
                continue
            entered.add(id(top))
            missing = None
            size, depth = 0, 0
            for node in _leaves(top.body):
                match node:
                    case Name():
                        other = resolve(node, ())
                        if other is not None and not other.is_terminal:
                            raise node.span.error(
                                f"a terminal cannot contain a rule, and {other.name} is one"
                            )
                        if other is not None and id(other) not in sizes:
                            if id(other) in entered:
                                raise node.span.error(
                                    f"terminal {other.name} is recursive; only rules may be"
                                )
                            missing = other
                            break
                        inner = sizes.get(id(other), (0, 0))
                        size, depth = size + inner[0] + 1, max(depth, inner[1] + 1)
                    case Text(value) | Regex(value):
                        size += len(value)
                    case _:
                        size += 1
            if missing is not None:
                path.append(missing)
                continue
            path.pop()
            entered.discard(id(top))
            sizes[id(top)] = size, depth
            total += size
            if total > MAX_WRITTEN or depth > MAX_TERMINAL_DEPTH:
                raise top.span.error(
                    f"Lark writes terminals out where others mention them: that is over "
                    f"{MAX_WRITTEN} characters in all, or {MAX_TERMINAL_DEPTH} of them within each "
                    "other",
                    kind=LimitExceeded,
                )


def _leaves(node: Node | None) -> Iterator[Node]:
    pending = [] if node is None else [node]
    while pending:
        top = pending.pop()
        below = children(top)
        if not below:
            yield top
        pending.extend(below)


def _check_items(body: Node, rule: Definition) -> None:
    """Checks how long an alternative is that has everything which stands beside each other."""
    longest = 0
    pending = [body]
    while pending:
        top = pending.pop()
        if isinstance(top, Seq):
            longest = max(longest, sum(isinstance(part, _ITEMS) for part in top.parts))
        pending.extend(children(top))
    if longest**3 > MAX_ITEMS:
        raise rule.span.error(
            "Lark would take too long to make a table of the grammar's rules: an alternative of "
            f"{rule.name} has {longest} items; make some of them rules of their own",
            kind=LimitExceeded,
        )


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
