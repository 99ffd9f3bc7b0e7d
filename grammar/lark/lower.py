"""From the definitions of a Lark grammar to terms: templates, rules, ignored text.

Scannerless semantics: a text belongs to the grammar when it can be cut into terminals, in any way,
that the rules derive, each matching where it stands. This is Lark's Earley parser with
`lexer="dynamic_complete"`, except that Lark tries only some of the cuts that a regular expression
allows (for `/a|ab/` on "ab" only "a"): whatever Lark accepts is accepted, and more only in such
cases. Priorities choose between derivations and so change nothing; nor do `?`, `!`, `_`, aliases
and `maybe_placeholders`, which shape trees.

Ignored text may stand before, between and after terminals: a rule of its own after each terminal
and before the first one. Each run of it is at most `max_ignored` characters long.

Rules stay expressions (`[a] [b] [c]` is three optional parts, never eight alternatives). A template
is lowered once for each different list of arguments; one that grows has ever deeper arguments, and
meets `MAX_TEMPLATE_DEPTH`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError, LimitExceeded, UnsupportedKeyword
from grammaton.grammar import ebnf_nodes as ebnf
from grammaton.grammar.ebnf_lower import lower_rules
from grammaton.grammar.json_schema.lower import grammar_from_json_schema
from grammaton.grammar.lark.context import in_context
from grammaton.grammar.lark.loader import Loaded, load_lark, resolve
from grammaton.grammar.lark.needs import NO_NEEDS, Pieces, Settling
from grammaton.grammar.lark.nodes import (
    Alt,
    Both,
    CharRange,
    Definition,
    Instance,
    Json,
    Name,
    Node,
    Not,
    Regex,
    Repeat,
    Seq,
    Span,
    Substring,
    Text,
    Use,
)
from grammaton.grammar.lark.terminals import Terminal, Terminals

if TYPE_CHECKING:
    from grammaton._core import TermStore

MAX_TEMPLATE_DEPTH = 30
"""How deep the arguments of a template may hold templates."""

MAX_TEMPLATES = 20_000
"""Templates with different arguments."""

MAX_IGNORED = 100
"""Characters of ignored text in a row, unless the caller says otherwise."""

IGNORED = "ignored"
SEMANTICS = ("scannerless",)

Environment = Mapping[str, Node]
_Key = tuple[int, tuple[Node, ...]]


def lower_lark(
    store: TermStore,
    text: str,
    *,
    start: str,
    semantics: str,
    import_paths: Sequence[str | PathLike[str]],
    max_ignored: int | None,
    declared: Mapping[str, str | None],
) -> int:
    """The term of a Lark grammar's start rule; `Grammar.from_lark` says what the arguments are.

    Raises:
        As `Grammar.from_lark`.
    """
    if semantics not in SEMANTICS:
        raise GrammarError(f"unknown semantics {semantics!r}; expected 'scannerless'")
    _check_bound(max_ignored)
    loaded = load_lark(text, import_paths)
    _check_declared(declared, loaded.declared)
    lowering = _Lowering(store, loaded, declared)
    lowering.make_ignored(max_ignored)
    rules, first = lowering.rules_from(start)
    if lowering.needs_context:
        rules, first = in_context(Settling(store), rules, first, lowering.pieces)
    return lower_rules(store, rules, first)


def _check_bound(value: object) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise GrammarError(f"max_ignored must be an int from 0 on or None, not {value!r}")


def _check_declared(declared: Mapping[str, str | None], names: set[str]) -> None:
    if not isinstance(declared, Mapping):
        raise GrammarError(
            f"declared maps names to regular expressions; it is no {type(declared).__name__}"
        )
    for name, pattern in declared.items():
        if name not in names:
            known = ", ".join(sorted(names)) or "nothing"
            raise GrammarError(f"declared has {name}, but the grammar declares {known}")
        if pattern is not None and not isinstance(pattern, str):
            raise GrammarError(
                f"declared[{name!r}] is a regular expression or None, not a "
                f"{type(pattern).__name__}"
            )


class _Lowering:
    def __init__(
        self, store: TermStore, loaded: Loaded, declared: Mapping[str, str | None]
    ) -> None:
        self._store = store
        self._loaded = loaded
        self.terminals = Terminals(store, declared)
        self.rules = ebnf.Rules()
        self.pieces: dict[str, Pieces] = {}
        """By the name of its rule, what a terminal matches and needs."""
        self._names: dict[_Key, str] = {}
        self._anonymous: dict[Node, str] = {}
        self._queue: list[tuple[str, Definition, tuple[Node, ...]]] = []
        self._skip: tuple[ebnf.Node, ...] = ()
        self._taken: dict[str, int] = {}

    @property
    def needs_context(self) -> bool:
        """Whether some terminal looks beyond itself."""
        return any(key != NO_NEEDS for pieces in self.pieces.values() for key in pieces)

    def make_ignored(self, most: int | None) -> None:
        """Makes the rule for text between terminals, at most `most` characters of it."""
        if not self._loaded.ignored or most == 0:
            return
        store = self._store
        found = [
            self.terminals.ignored(ignore.body, ignore.span) for ignore in self._loaded.ignored
        ]
        single = [chars for _, chars in found if chars is not None]
        if len(single) == len(found):
            term = store.repeat(store.union(single), 0, most)
        else:
            term = store.repeat(store.union([term for term, _ in found]), 0, None)
            if most is not None:
                characters = store.repeat(store.chars([(0, 0x10FFFF)]), 0, most)
                term = store.intersect([term, characters])
        span = self._loaded.ignored[0].span
        name = self._new_name(IGNORED)
        self._add(name, ebnf.Term(term, None), span)
        self._skip = (ebnf.Ref(name, span.source, span.position, span.end),)

    def rules_from(self, start: str) -> tuple[ebnf.Rules, str]:
        """Every rule that the start needs, and the name of the one that is the whole text."""
        definition = self._loaded.scope.names.get(start)
        if definition is None:
            known = ", ".join(list(self._loaded.scope.names)[:10]) or "none"
            raise GrammarError(f"no rule is named {start}, the start; there are: {known}")
        if definition.is_terminal or definition.params:
            raise definition.span.error("the start must be a rule without parameters")
        whole = self._new_name(start) if self._skip else ""
        name = self._rule(definition, ())
        while self._queue:
            named, rule, arguments = self._queue.pop()
            assert rule.body is not None
            environment = dict(zip(rule.params, arguments, strict=True))
            self._add(named, self._node(rule.body, environment), rule.span)
        if not self._skip:
            return self.rules, name
        first = ebnf.Ref(name, definition.span.source, definition.span.position, 0)
        self._add(whole, ebnf.Seq((*self._skip, first)), definition.span)
        return self.rules, whole

    def _add(self, name: str, body: ebnf.Node, span: Span) -> None:
        self.rules.add(ebnf.Rule(name, body, span.source, span.position, span.end))

    def _new_name(self, wanted: str) -> str:
        """A name that no rule has; the first to want a name gets it."""
        self._taken[wanted] = count = self._taken.get(wanted, 0) + 1
        return wanted if count == 1 else f"{wanted}#{count}"

    def _rule(self, definition: Definition, arguments: tuple[Node, ...]) -> str:
        key = id(definition), arguments
        if key not in self._names:
            if definition.body is None:
                raise definition.span.error(f"rule {definition.name} is only declared")
            if len(self._names) == MAX_TEMPLATES + len(self._loaded.scope.names):
                raise LimitExceeded(f"the grammar uses more than {MAX_TEMPLATES} templates")
            self._names[key] = self._new_name(definition.name)
            self._queue.append((self._names[key], definition, arguments))
        return self._names[key]

    def _node(self, node: Node, environment: Environment) -> ebnf.Node:
        match node:
            case Seq(parts):
                return ebnf.Seq(tuple(self._node(part, environment) for part in parts))
            case Alt(branches):
                return ebnf.Alt(tuple(self._node(branch, environment) for branch in branches))
            case Repeat(body, low, high):
                return ebnf.Repeat(self._node(body, environment), low, high)
            case Name(name) if name in environment:
                return self._node(environment[name], {})
            case Name():
                definition = resolve(node, ())
                assert definition is not None
                if definition.is_terminal:
                    return self._terminal(definition, node.span)
                return self._mention(self._rule(definition, ()), node.span)
            case Use():
                return self._node(self._instance(node, environment), {})
            case Instance(rule, _, span):
                return self._mention(rule, span)
            case Json(schema):
                return self._skipped(ebnf.Term(self._schema(schema, node.span), None))
            case Text("", _):
                return ebnf.Literal("")
            case Text(value, ""):
                return self._skipped(ebnf.Literal(value))
            case CharRange(low, high):
                return self._skipped(ebnf.Chars(((low, high),)))
            case Text() | Regex() | Both() | Not() | Substring():
                whole = _substituted(node, environment)
                if whole not in self._anonymous:
                    terminal = self.terminals.anonymous(whole, node.span)
                    shown = node.value if isinstance(node, Text | Regex) else "terminal"
                    self._anonymous[whole] = self._terminal_rule(shown, terminal, node.span)
                return self._skipped(self._mention(self._anonymous[whole], node.span))

    @staticmethod
    def _mention(name: str, span: Span) -> ebnf.Ref:
        return ebnf.Ref(name, span.source, span.position, span.end)

    def _skipped(self, node: ebnf.Node) -> ebnf.Node:
        return ebnf.Seq((node, *self._skip)) if self._skip else node

    def _terminal(self, definition: Definition, span: Span) -> ebnf.Node:
        key = id(definition), ()
        if key not in self._names:
            terminal = self.terminals.named(definition)
            self._names[key] = self._terminal_rule(definition.name, terminal, definition.span)
        return self._skipped(self._mention(self._names[key], span))

    def _terminal_rule(self, wanted: str, terminal: Terminal, span: Span) -> str:
        name = self._new_name(wanted)
        self.pieces[name] = terminal.pieces
        whole = self._store.union(list(terminal.pieces.values()))
        self._add(name, ebnf.Term(whole, terminal.length), span)
        return name

    def _schema(self, schema: str, span: Span) -> int:
        try:
            other, start = grammar_from_json_schema(
                schema, key_order="schema", whitespace="flexible", additional_properties=None
            )
        except UnsupportedKeyword as error:
            raise span.error(str(error), kind=UnsupportedKeyword) from error
        except GrammarError as error:
            raise span.error(str(error)) from error
        return self._store.import_term(other, start)

    def _instance(self, use: Use, environment: Environment) -> Instance:
        """A template as a rule for its arguments."""
        template = use.template
        bound = environment.get(template.name)
        if bound is not None:
            if not isinstance(bound, Name):
                raise template.span.error(f"{template.name} is not a template here")
            template = bound
        definition = resolve(template, (), arguments=len(use.arguments))
        assert definition is not None
        arguments = tuple(self._argument(argument, environment) for argument in use.arguments)
        inside = (each.depth for each in arguments if isinstance(each, Instance))
        depth = max(inside, default=0) + 1
        if depth > MAX_TEMPLATE_DEPTH:
            raise template.span.error(
                f"template {template.name} grows without end: its arguments nest deeper than "
                f"{MAX_TEMPLATE_DEPTH}"
            )
        return Instance(self._rule(definition, arguments), depth, use.template.span)

    def _argument(self, node: Node, environment: Environment) -> Node:
        match node:
            case Name(name):
                return environment.get(name, node)
            case Use():
                return self._instance(node, environment)
        return node


def _substituted(node: Node, environment: Environment) -> Node:
    """An expression of terminals with arguments in place of parameters."""
    if not environment:
        return node
    match node:
        case Name(name):
            return environment.get(name, node)
        case Both(parts, span):
            return Both(tuple(_substituted(part, environment) for part in parts), span)
        case Not(body, span):
            return Not(_substituted(body, environment), span)
        case Seq(parts):
            return Seq(tuple(_substituted(part, environment) for part in parts))
        case Alt(branches):
            return Alt(tuple(_substituted(branch, environment) for branch in branches))
        case Repeat(body, low, high):
            return Repeat(_substituted(body, environment), low, high)
    return node
