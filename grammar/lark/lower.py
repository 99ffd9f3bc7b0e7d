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

from grammaton.errors import GrammarError, LimitExceeded, PlacedError, UnsupportedKeyword
from grammaton.grammar import ebnf_nodes as ebnf
from grammaton.grammar.ebnf_lower import lower_rules
from grammaton.grammar.ebnf_nodes import Span
from grammaton.grammar.json_schema.lower import grammar_from_json_schema
from grammaton.grammar.lark.context import in_context
from grammaton.grammar.lark.indentation import PAREN_TEXTS, Layout, with_indentation
from grammaton.grammar.lark.indenter import Indenter
from grammaton.grammar.lark.loader import Loaded, load_lark, resolve
from grammaton.grammar.lark.merge import merge_equal
from grammaton.grammar.lark.needs import NO_NEEDS, Pieces, Settling
from grammaton.grammar.lark.nodes import (
    Alt,
    Both,
    CharRange,
    Definition,
    Instance,
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
    mapped,
)
from grammaton.grammar.lark.split import split
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

Environment = Mapping[str, Node]
_Key = tuple[int, tuple[Node, ...]]


def lower_lark(
    store: TermStore,
    text: str,
    *,
    start: str,
    import_paths: Sequence[str | PathLike[str]],
    max_ignored: int | None,
    declared: Mapping[str, str | None],
    indenter: Indenter | None,
    places: ebnf.TokenPlaces,
    rule_places: ebnf.RulePlaces,
) -> int:
    """The term of a Lark grammar's start rule; `Grammar.from_lark` says what the arguments are.

    `places` is filled with where tokens are mentioned, `rule_places` with where rules are defined.

    Raises:
        As `Grammar.from_lark`.
    """
    _check_bound(max_ignored)
    loaded = load_lark(text, import_paths)
    _check_declared(declared, loaded.declared)
    if indenter is not None and not isinstance(indenter, Indenter):
        raise GrammarError(f"indenter is an Indenter, not a {type(indenter).__name__}")
    lowering = _Lowering(store, loaded, declared, indenter, places)
    lowering.make_ignored(max_ignored)
    return lowering.term(start, indenter, rule_places)


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
        self,
        store: TermStore,
        loaded: Loaded,
        declared: Mapping[str, str | None],
        indenter: Indenter | None,
        places: ebnf.TokenPlaces,
    ) -> None:
        self._indenter = indenter
        self._declared = declared
        self._places = places
        self._most_ignored: int | None = None
        self._store = store
        self._loaded = loaded
        self.terminals = Terminals(store, declared)
        self.rules = ebnf.Rules()
        self.pieces: dict[str, Pieces] = {}
        """By the name of its rule, what a terminal matches and needs."""
        self._names: dict[_Key, str] = {}
        self._anonymous: dict[Node, str] = {}
        self._queue: list[tuple[str, Definition, tuple[Node, ...]]] = []
        self._skip: tuple[ebnf.Ref, ...] = ()
        self._taken: dict[str, int] = {}
        self._ignored = store.EMPTY
        self._lines: dict[str, tuple[int, Span]] = {}
        """The newline terminal, by its name: what it matches."""
        self._named: dict[str, str] = {}
        """By the name of a terminal, its rule."""

    @property
    def needs_context(self) -> bool:
        """Whether some terminal looks beyond itself."""
        return any(key != NO_NEEDS for pieces in self.pieces.values() for key in pieces)

    def make_ignored(self, most: int | None) -> None:
        """Makes the rule for text between terminals, at most `most` characters of it."""
        store = self._store
        self._most_ignored = most
        if not self._loaded.ignored or most == 0:
            if self._indenter is not None:
                self._skip_with(store.EMPTY, next(iter(self._loaded.scope.names.values())).span)
            return
        found = [
            self.terminals.ignored(ignore.body, ignore.span) for ignore in self._loaded.ignored
        ]
        single = [chars for _, chars in found if chars is not None]
        if len(single) == len(found):
            term = store.repeat(store.union(single), 0, most)
        else:
            term = store.repeat(store.union([term for term, _ in found]), 0, None)
            term = self._at_most(term, most)
        self._skip_with(term, self._loaded.ignored[0].span)

    def _at_most(self, term: int, most: int | None) -> int:
        if most is None:
            return term
        store = self._store
        return store.intersect([term, store.repeat(store.chars([(0, 0x10FFFF)]), 0, most)])

    def _skip_with(self, term: int, span: Span) -> None:
        name = self._new_name(IGNORED)
        self._add(name, ebnf.Term(term, None), span)
        self._skip = (ebnf.Ref(name, span.source, span.position, span.end),)
        self._ignored = term

    def layout(self, indenter: Indenter, most: int | None) -> Layout:
        """What the rules that were made say of lines."""
        store = self._store
        newline = self._lines.get(indenter.newline)
        if newline is None:
            raise GrammarError(f"no rule of the grammar uses {indenter.newline}, its newline")
        whole, span = newline
        anything = store.repeat(store.chars([(0, 0x10FFFF)]), 0, None)
        lines, _ = split(store, whole, ((0x0A, 0x0A),), first=False)
        if not self._goes_on(lines, [(0x20, 0x20)], whole):
            raise span.error(
                f"{indenter.newline} must match a line break and any blanks after it, as "
                r"/(\r?\n[\t ]*)+/ does",
                kind=UnsupportedKeyword,
            )
        tabs = self._goes_on(lines, [(0x09, 0x09), (0x20, 0x20)], whole)
        self._add(indenter.newline, ebnf.Term(lines, None), span)
        for name in (indenter.indent, indenter.dedent):
            if name not in self.rules.by_name:
                self._add(name, ebnf.Term(store.NOTHING, 0), span)
        in_parens = self._new_name("ignored_in_parens")
        ignored = store.repeat(store.union([self._ignored, whole]), 0, None)
        self._add(in_parens, ebnf.Term(self._at_most(ignored, most), None), span)
        no_blank = store.repeat(store.chars([(0, 0x08), (0x0B, 0x1F), (0x21, 0x10FFFF)]), 0, None)
        begins = store.concat([store.chars([(0, 0x08), (0x0A, 0x1F), (0x21, 0x10FFFF)]), anything])
        after_margin, at_end = (
            store.union([store.EMPTY, store.NOTHING if store.is_empty(some) else some])
            for some in (
                store.intersect([self._ignored, begins]),
                store.intersect([self._ignored, no_blank]),
            )
        )
        return Layout(
            indenter.newline,
            indenter.indent,
            indenter.dedent,
            indenter.tab_length if tabs else 0,
            indenter.max_step,
            self._skip[0].name,
            in_parens,
            ebnf.Term(after_margin, None),
            ebnf.Term(at_end, None),
            self._at_line,
            self._parens(indenter.open_parens),
            self._parens(indenter.close_parens),
        )

    def _at_line(self, node: ebnf.Node) -> ebnf.Term | None:
        """What is left of a terminal where it must not begin with a blank; None for all of it."""
        store = self._store
        needs = False
        match node:
            case ebnf.Literal(text):
                return ebnf.Term(store.NOTHING, 0) if text[0] in " \t" else None
            case ebnf.Chars(ranges):
                term = store.chars(ranges)
            case ebnf.Term(term) if store.is_regular(term):
                pass
            case ebnf.Ref(name) if name in self.pieces:
                needs = any(key != NO_NEEDS for key in self.pieces[name])
                term = store.union(list(self.pieces[name].values()))
            case _:
                return None
        anything = store.repeat(store.chars([(0, 0x10FFFF)]), 0, None)
        blank = store.concat([store.chars([(0x09, 0x09), (0x20, 0x20)]), anything])
        if store.is_empty(store.intersect([term, blank])):
            return None
        if needs:
            raise UnsupportedKeyword(
                "a terminal that may begin with a blank and looks beyond itself is not supported "
                "beside an indenter"
            )
        return ebnf.Term(store.intersect([term, store.complement(blank)]), None)

    def _goes_on(self, lines: int, blanks: list[tuple[int, int]], whole: int) -> bool:
        """Whether any of these blanks may follow each of some texts within a language."""
        store = self._store
        longer = store.concat([lines, store.repeat(store.chars(blanks), 0, None)])
        outside = store.intersect([longer, store.complement(whole)])
        return not store.is_empty(lines) and store.is_empty(outside)

    def _parens(self, names: Sequence[str]) -> frozenset[tuple[str, str]]:
        """The literals, and the rules of terminals, that are parentheses by name."""
        found = {("text", PAREN_TEXTS[name]) for name in names if name in PAREN_TEXTS}
        found |= {("rule", self._named[name]) for name in names if name in self._named}
        return frozenset(found)

    def rules_from(self, start: str) -> tuple[ebnf.Rules, str]:
        """Every rule that the start needs, and the name of the one that is the whole text."""
        definition = self._loaded.scope.names.get(start)
        if definition is None:
            raise self._loaded.missing_start(start)
        if definition.is_terminal or definition.params:
            raise definition.span.error("the start must be a rule without parameters")
        whole = self._new_name(start) if self._skip else ""
        name = self._rule(definition, ())
        while self._queue:
            named, rule, arguments = self._queue.pop()
            assert rule.body is not None
            environment = dict(zip(rule.params, arguments, strict=True))
            self._define(named, rule, environment)
        if not self._skip:
            return self.rules, name
        first = ebnf.Ref(name, definition.span.source, definition.span.position, 0)
        self._add(whole, ebnf.Seq((*self._skip, first)), definition.span)
        return self.rules, whole

    def _define(self, name: str, rule: Definition, environment: Environment) -> None:
        assert rule.body is not None
        given = rule.attributes
        if given is None:
            self._add(name, self._node(rule.body, environment), rule.span)
            return
        if not _is_terminal(rule):
            attributes = ebnf.Attributes(capture=given.capture)
            self._add(name, self._node(rule.body, environment), rule.span, attributes)
            return
        store = self._store
        term = self._one_terminal(_substituted(rule.body, environment), rule.span)
        suffix = store.NOTHING
        if given.suffix is not None:
            suffix = self._one_terminal(given.suffix, rule.span)
            term = store.concat([term, suffix])
        if given.lazy or given.suffix is not None:
            term = self._first_ends(term)
        if given.stop is not None:
            stop = self._one_terminal(given.stop, rule.span)
            anything = store.repeat(store.chars([(0, 0x10FFFF)]), 0, None)
            stopped = store.concat([term, stop, anything])
            term = store.intersect([term, store.complement(stopped)])
        with rule.span.blamed():
            store.is_empty(term)  # met here, a limit has its place
        self.pieces[name] = {NO_NEEDS: term}
        attributes = ebnf.Attributes(
            capture=given.capture,
            stop_capture=given.stop_capture,
            suffix=suffix,
            max_tokens=given.max_tokens,
            temperature=given.temperature,
        )
        self._add(name, ebnf.Term(term, None), rule.span, attributes)

    def _one_terminal(self, node: Node, span: Span) -> int:
        pieces = self.terminals.anonymous(node, span).pieces
        if any(key != NO_NEEDS for key in pieces):
            raise span.error(
                "a terminal with attributes must not look beyond itself", kind=UnsupportedKeyword
            )
        return pieces.get(NO_NEEDS, self._store.NOTHING)

    def _first_ends(self, term: int) -> int:
        """The texts that don't begin with a shorter one."""
        store = self._store
        longer = store.concat([term, store.repeat(store.chars([(0, 0x10FFFF)]), 1, None)])
        return store.intersect([term, store.complement(longer)])

    def _add(
        self,
        name: str,
        body: ebnf.Node,
        span: Span,
        attributes: ebnf.Attributes | None = None,
    ) -> None:
        place = span.source, span.position, span.end
        self.rules.add(ebnf.Rule(name, body, *place, attributes))

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
                raise definition.span.error(
                    f"the grammar uses more than {MAX_TEMPLATES} templates", kind=LimitExceeded
                )
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
                mention = self._mention(self._rule(definition, ()), node.span)
                return self._skipped(mention) if _is_terminal(definition) else mention
            case Use():
                return self._node(self._instance(node, environment), {})
            case Instance(rule, _, span):
                return self._mention(rule, span)
            case Json(schema):
                return self._skipped(ebnf.Term(self._schema(schema, node.span), None))
            case Nested():
                return self._skipped(ebnf.Term(self._nested(node), None))
            case Special(names, ids, negated, span):
                place = span.source, span.position, span.end
                return self._skipped(ebnf.Tokens(names, ids, negated, *place))
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

    def _nested(self, node: Nested) -> int:
        """The term of a grammar within a rule, whose look-around ends where it ends."""
        loaded = self._loaded.nested[id(node.scope)]
        if "start" not in loaded.scope.names:
            raise node.span.error("a nested grammar begins with its rule start, and has none")
        inner = _Lowering(self._store, loaded, self._declared, None, self._places)
        inner.make_ignored(self._most_ignored)
        return inner.term("start")

    def term(
        self,
        start: str,
        indenter: Indenter | None = None,
        rule_places: ebnf.RulePlaces | None = None,
    ) -> int:
        """The term of the whole grammar."""
        rules, first = self.rules_from(start)
        if indenter is not None:
            layout = self.layout(indenter, self._most_ignored)
            rules, first = with_indentation(rules, first, layout)
        if self.needs_context:
            rules, first = in_context(Settling(self._store), rules, first, self.pieces)
            rules, first = merge_equal(rules, first)
        return lower_rules(self._store, rules, first, places=self._places, rule_places=rule_places)

    @staticmethod
    def _mention(name: str, span: Span) -> ebnf.Ref:
        return ebnf.Ref(name, span.source, span.position, span.end)

    def _skipped(self, node: ebnf.Node) -> ebnf.Node:
        return ebnf.Seq((node, *self._skip)) if self._skip else node

    def _terminal(self, definition: Definition, span: Span) -> ebnf.Node:
        if self._indenter is not None and self._is_line(definition):
            return self._mention(definition.name, span)
        key = id(definition), ()
        if key not in self._names:
            terminal = self.terminals.named(definition)
            self._names[key] = self._terminal_rule(definition.name, terminal, definition.span)
            self._named[definition.name] = self._names[key]
        return self._skipped(self._mention(self._names[key], span))

    def _is_line(self, definition: Definition) -> bool:
        """Whether a terminal is the indenter's; what a newline matches is noted."""
        indenter = self._indenter
        assert indenter is not None
        if definition.name in (indenter.indent, indenter.dedent):
            return True
        if definition.name != indenter.newline:
            return False
        if definition.name not in self._lines:
            pieces = self.terminals.named(definition).pieces
            if any(key != NO_NEEDS for key in pieces):
                raise definition.span.error(
                    "a newline must not look beyond itself", kind=UnsupportedKeyword
                )
            term = pieces.get(NO_NEEDS, self._store.NOTHING)
            self._lines[definition.name] = term, definition.span
        return True

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
        except PlacedError as error:
            raise span.error(str(error), kind=type(error)) from error
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


def _is_terminal(rule: Definition) -> bool:
    """Whether a rule with attributes is one terminal: ignored text follows it, and is not in it."""
    if rule.attributes is None:
        return False
    if rule.attributes.of_terminals:
        return True
    match rule.body:
        case Name() as name:
            return name.is_terminal
        case Text() | Regex() | CharRange() | Both() | Not() | Substring():
            return True
    return False


def _substituted(node: Node, environment: Environment) -> Node:
    """An expression of terminals with arguments in place of parameters."""
    if isinstance(node, Name):
        return environment.get(node.name, node)
    return mapped(node, lambda part: _substituted(part, environment)) if environment else node
