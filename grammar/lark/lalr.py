"""Lark grammars as Lark itself reads them with `parser="lalr"`: its tables, and its lexers exactly.

The package lark reads the grammar and makes the LALR(1) tables, so that they are Lark's own,
conflicts resolved its way. What its lexers try, and in which order, is taken over as data: a
*scanner* for each set of terminals that some parser state can take (one for all of them with
`lexer="basic"`), terminals sorted by priority, longest text, length of the pattern and name;
strings that a regular expression of equal priority matches too are *keywords* and are decided on
the finished lexeme. The core runs all of it over bytes (`automata/lalr_machine.hpp`).

Before Lark sees a grammar, our own reader does, whose errors have a place, and what Lark would
write out without bound is refused: optional items multiply the alternatives of a rule, and a
template that grows never ends.

Cost: Lark's, some milliseconds for small grammars and half a second for Python's.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from grammaton._core import LalrTables
from grammaton.errors import GrammarError, LimitExceeded, PlacedError
from grammaton.grammar.lark.expansion import check_expansion
from grammaton.grammar.lark.lark_says import refusal, too_deep
from grammaton.grammar.lark.loader import Loaded, load_lark
from grammaton.grammar.lark.program import NONE, Program
from grammaton.grammar.lark.table_cost import TooCostly, check_beginning, check_cost
from grammaton.grammar.regex.python import PythonParser

if TYPE_CHECKING:
    from lark import Lark
    from lark.grammar import Rule
    from lark.lexer import TerminalDef
    from lark.parsers.lalr_analysis import LALR_Analyzer

_END = "$END"

MAX_COMPARED = 5_000_000
"""Terminals that scanners try, and pairs of a string and an expression in them: some seconds."""

_LARK_LOCK = Lock()
"""While Lark reads a grammar."""

_Node = TypeVar("_Node")

# What LalrTables takes of a scanner and of a parser state.
_Scanner = tuple[list[int], list[tuple[int, list[int]]]]
_State = tuple[int, list[tuple[int, int]], list[tuple[int, int]]]


class Places:
    """Where the names of a grammar stand, and its terminals without a name.

    Those are looked for in the text when there is something to say of them.
    """

    def __init__(self, loaded: Loaded, start: str) -> None:
        self._spans = {name: found.span for name, found in loaded.scope.names.items()}
        self._source = loaded.source
        self._start = self._spans[start]
        self._written: dict[str, str] = {}

    def add(self, terminals: Iterable[TerminalDef]) -> None:
        """Terminals that Lark made, some of which it named."""
        for terminal in terminals:
            if terminal.name not in self._spans and terminal.pattern.raw:
                self._written[terminal.name] = terminal.pattern.raw

    def error(self, part: str, message: str, *, kind: type[PlacedError]) -> PlacedError:
        """The error for a rule or terminal, or for the start where there is no such; it is for the
        caller to raise."""
        if part in self._spans:
            return self._spans[part].error(message, kind=kind)
        written = self._written.get(part, "")
        at = self._source.text.find(written) if written else -1
        if at < 0:
            return self._start.error(message, kind=kind)
        return self._source.error(message, at, at + len(written), kind=kind)


def lalr_tables(
    text: str, start: str, lexer: str, import_paths: Sequence[str | PathLike[str]]
) -> tuple[LalrTables, Places]:
    """What the core needs to parse as `lark.Lark(text, parser="lalr", lexer=lexer)` does, and the
    places for what it says.

    Raises:
        GrammarError: a syntax error, with its place, or whatever Lark refuses, in its words.
        UnsupportedKeyword: an extension of Lark's notation, or a terminal with an atomic group or
            a possessive quantifier.
        LimitExceeded: Lark would write the grammar out to too many alternatives.
    """
    loaded = load_lark(text, import_paths)
    check_expansion(loaded, start)
    _check(loaded, start, lambda: check_beginning(loaded.scope.names[start]))
    places = Places(loaded, start)
    made, has_conflicts = _read(loaded, start, lexer, import_paths)
    return _Tables(made, lexer, places, has_conflicts).made(), places


def _read(
    loaded: Loaded, start: str, lexer: str, import_paths: Sequence[str | PathLike[str]]
) -> tuple[Lark, bool]:
    """What Lark makes of a grammar, and whether it resolved conflicts."""
    try:
        import lark
        from lark.exceptions import LarkError
        from lark.load_grammar import GrammarBuilder
    except ImportError:
        raise GrammarError(
            'parser="lalr" takes its tables from the package lark: pip install grammaton[lark]'
        ) from None
    try:
        with _watched() as analyses:
            builder = GrammarBuilder(import_paths=[fspath(path) for path in import_paths])
            builder.load_grammar(loaded.source.text, str(Path.cwd() / "grammar.lark"))
            grammar = builder.build()
            rules = _compile_once(grammar, start)
            _check(loaded, start, lambda: check_cost(rules, start))
            made = lark.Lark(grammar, parser="lalr", lexer=lexer, start=start)
            return made, any(
                symbol in state.transitions
                for state in analyses[-1].lr0_itemsets
                for symbol in state.lookaheads
            )
    except RecursionError:
        raise too_deep(loaded, start) from None
    except (LarkError, re.error, AssertionError, ValueError, OSError) as error:
        raise refusal(str(error), loaded, start) from error


def _check(loaded: Loaded, start: str, check: Callable[[], None]) -> None:
    try:
        check()
    except TooCostly as error:
        raise loaded.scope.names[start].span.error(
            f"Lark would take too long to make a table of the grammar's rules: {error}",
            kind=LimitExceeded,
        ) from None


def _compile_once(grammar: Any, start: str) -> list[Rule]:
    """The rules that Lark writes a grammar out to, which it then takes as they are: that is half of
    the time of a grammar with thousands of terminals."""
    compiled = grammar.compile([start], set())
    grammar.compile = lambda _starts, _kept: compiled
    rules: list[Rule] = compiled[1]
    return rules


@contextmanager
def _watched() -> Iterator[list[LALR_Analyzer]]:
    """The analyses that Lark makes meanwhile, which it would not keep: one more takes as long.

    It is also kept from comparing each two regular expressions, which it does where interegular is
    installed, to warn of texts that both match: minutes for a thousand of them. And its search
    through chains of rules recurs, so that a thousand of them would be refused or not by the order
    in which sets are gone over, another one each time that Python starts: `_digraph` does not.
    """
    import lark.lexer
    import lark.parsers.lalr_parser
    from lark.parsers import lalr_analysis
    from lark.parsers.lalr_analysis import LALR_Analyzer

    analyses: list[LALR_Analyzer] = []

    def watched(*arguments: Any, **options: Any) -> LALR_Analyzer:
        analyses.append(LALR_Analyzer(*arguments, **options))
        return analyses[-1]

    module: Any = lark.parsers.lalr_parser
    analysis: Any = lalr_analysis
    with _LARK_LOCK, _uncollected():
        known = lark.lexer.has_interegular
        lark.lexer.has_interegular = False
        module.LALR_Analyzer = watched
        recurring, analysis.digraph = analysis.digraph, _digraph
        try:
            yield analyses
        finally:
            analysis.digraph = recurring
            lark.lexer.has_interegular = known
            module.LALR_Analyzer = LALR_Analyzer


def _digraph(
    nodes: Iterable[_Node], related: Mapping[_Node, set[_Node]], own: Mapping[_Node, set[Any]]
) -> dict[_Node, set[Any]]:
    """What each node has of its own or is related to, through others too: Lark's function of this
    name (DeRemer and Pennello's) with a stack in place of recursion."""
    found: dict[_Node, set[Any]] = {}
    depth = dict.fromkeys(nodes, 0)  # on the stack, 0 before and -1 afterwards
    stack: list[_Node] = []
    for root in depth:
        if depth[root] != 0:
            continue
        path: list[tuple[_Node, int, Iterator[_Node]]] = []
        entered: _Node | None = root
        while path or entered is not None:
            if entered is not None:
                stack.append(entered)
                depth[entered] = len(stack)
                found[entered] = own[entered]  # not a copy: Lark's are shared as well
                path.append((entered, len(stack), iter(related[entered])))
                entered = None
            node, place, others = path[-1]
            for other in others:
                if depth[other] == 0:
                    entered = other
                    break
                _learn(node, other, depth, found)
            if entered is not None:
                continue
            path.pop()
            if depth[node] == place:
                for member in stack[place - 1 :]:
                    depth[member] = -1
                    found[member] = found[node]
                del stack[place - 1 :]
            if path:
                _learn(path[-1][0], node, depth, found)
    return found


def _learn(
    node: _Node, other: _Node, depth: dict[_Node, int], found: Mapping[_Node, set[Any]]
) -> None:
    if 0 < depth[other] < depth[node]:
        depth[node] = depth[other]
    found[node].update(found[other])


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps Python from looking for cycles meanwhile: over the trees that Lark makes of ten
    thousand rules that is a third of the time, and few of them are in cycles."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Tables:
    """Takes tables and lexers out of a `lark.Lark`."""

    def __init__(self, lark: Lark, lexer: str, places: Places, has_conflicts: bool) -> None:
        self._has_conflicts = has_conflicts
        self._compared = 0
        self._compiled: dict[str, re.Pattern[str]] = {}
        """Expressions that strings are compared with, by the name of their terminal."""
        self._places = places
        places.add(lark.terminals)
        # lark types its parts as what they have in common.
        front: Any = lark.parser
        self._table = front.parser._parse_table
        self._start: str = lark.options.start[0]
        self._rules: list[Rule] = lark.rules
        names = sorted(
            {terminal.name for terminal in lark.terminals}
            | {symbol.name for rule in self._rules for symbol in rule.expansion if symbol.is_term}
        )
        self._terminals = {terminal.name: terminal for terminal in lark.terminals}
        self._numbers = {name: i for i, name in enumerate(names)}
        self._ignored = set(lark.ignore_tokens)
        lexers = front.lexer.lexers if lexer == "contextual" else {}
        self._lexer_of: Mapping[int, Any] = lexers or dict.fromkeys(self._table.states, front.lexer)

    def made(self) -> LalrTables:
        program = Program()
        patterns = self._patterns(program)
        scanners, scanner_of = self._scanners()
        rules = sorted({id(rule): rule for rule in self._used_rules()}.values(), key=str)
        lefts = {name: i for i, name in enumerate(sorted({rule.origin.name for rule in rules}))}
        numbers = {id(rule): i for i, rule in enumerate(rules)}
        states: list[_State] = []
        for state in range(len(self._table.states)):
            actions: list[tuple[int, int]] = []
            gotos: list[tuple[int, int]] = []
            for name, (action, target) in self._table.states[state].items():
                if name in lefts:
                    gotos.append((lefts[name], target))
                elif name == _END or name in self._numbers:
                    terminal = len(self._numbers) if name == _END else self._numbers[name]
                    shifts = action.name == "Shift"
                    actions.append((terminal, target + 1 if shifts else -numbers[id(target)] - 1))
            states.append((scanner_of[state], actions, gotos))
        inside = program.widest_behind <= 1 and not any(
            program.looks_behind_at(start) for start in patterns if start != NONE
        )
        return LalrTables(
            program=program.instructions,
            classes=program.classes,
            behinds=program.behinds,
            behinds_stay_inside=inside,
            terminals=[
                (name, start, name in self._ignored)
                for name, start in zip(self._numbers, patterns, strict=True)
            ],
            scanners=scanners,
            rules=[(lefts[rule.origin.name], len(rule.expansion)) for rule in rules],
            nonterminals=len(lefts),
            states=states,
            start=self._table.start_states[self._start],
            end=self._table.end_states[self._start],
            consistent=self._consistent(),
        )

    def _used_rules(self) -> list[Rule]:
        return [
            target
            for actions in self._table.states.values()
            for action, target in actions.values()
            if action.name != "Shift"
        ]

    def _patterns(self, program: Program) -> list[int]:
        """Where the pattern of each terminal starts, by number."""
        groups: dict[str, str] = {name: name for name in self._terminals}
        starts: list[int] = []
        for name, number in self._numbers.items():
            terminal = self._terminals.get(name)
            if terminal is None:  # only declared: no lexer produces it
                starts.append(NONE)
                continue
            pattern = terminal.pattern.to_regexp()
            try:
                if terminal.pattern.type == "str" and not terminal.pattern.flags:
                    starts.append(program.add_text(terminal.pattern.value, number))
                    continue
                starts.append(program.add(PythonParser(pattern).parse(), number))
                # As Lark puts it into its scanner: flags for all of it can't stand there.
                found = re.compile(f"(?P<{name}>{pattern})").groupindex
            except (PlacedError, re.error) as error:
                kind = type(error) if isinstance(error, PlacedError) else GrammarError
                reason = error.message if isinstance(error, PlacedError) else str(error)
                raise self._places.error(
                    name, f"terminal {terminal.user_repr()}: {reason}", kind=kind
                ) from None
            for group in found:
                if groups.setdefault(group, name) != name:
                    raise self._places.error(
                        name,
                        f"terminals {terminal.user_repr()} and {groups[group]} have groups of "
                        f"the same name {group}, which Lark's lexers cannot tell apart",
                        kind=GrammarError,
                    )
        return starts

    def _scanners(self) -> tuple[list[_Scanner], list[int]]:
        """What the lexers try, and the number of each state's."""
        found: dict[int, int] = {}
        scanners: list[_Scanner] = []
        embeds: dict[tuple[str, str], bool] = {}
        scanner_of: list[int] = []
        for state in range(len(self._table.states)):
            lexer = self._lexer_of[state]
            if id(lexer) not in found:
                found[id(lexer)] = len(scanners)
                scanners.append(self._scanner(lexer.terminals, embeds))
            scanner_of.append(found[id(lexer)])
        return scanners, scanner_of

    def _scanner(
        self, terminals: Sequence[TerminalDef], embeds: dict[tuple[str, str], bool]
    ) -> _Scanner:
        """Terminals in Lark's order without the embedded ones, and keywords by what matches them.

        Lark's `_create_unless`: a string that an expression of equal priority matches whole takes
        the place of that match; one without further flags is then not tried by itself.
        """
        strings = [terminal for terminal in terminals if terminal.pattern.type == "str"]
        self._compared += len(terminals) + len(strings) * (len(terminals) - len(strings))
        if self._compared > MAX_COMPARED:
            raise self._places.error(
                "",
                "Lark's lexers compare each string with each regular expression, and keep a list "
                f"of terminals for many states of the parser: here that is over {MAX_COMPARED} "
                "terminals and pairs of them",
                kind=LimitExceeded,
            )
        embedded: set[str] = set()
        keywords: list[tuple[int, list[int]]] = []
        for expression in terminals:
            if expression.pattern.type == "str":
                continue
            unless: list[int] = []
            for string in strings:
                if string.priority != expression.priority:
                    continue
                key = expression.name, string.name
                if key not in embeds:
                    value = string.pattern.value
                    if expression.name not in self._compiled:
                        pattern = re.compile(expression.pattern.to_regexp())
                        self._compiled[expression.name] = pattern
                    match = self._compiled[expression.name].match(value)
                    embeds[key] = match is not None and match[0] == value
                if embeds[key]:
                    unless.append(self._numbers[string.name])
                    if set(string.pattern.flags) <= set(expression.pattern.flags):
                        embedded.add(string.name)
            if unless:
                keywords.append((self._numbers[expression.name], unless))
        order = [
            self._numbers[terminal.name] for terminal in terminals if terminal.name not in embedded
        ]
        return order, keywords

    def _consistent(self) -> bool:
        """Whether no conflict was resolved and every symbol derives a text of terminals."""
        if self._has_conflicts or any(rule.options.priority for rule in self._rules):
            return False
        productive: set[str] = set(self._terminals)
        users: dict[str, list[int]] = {}
        missing = []
        for number, rule in enumerate(self._rules):
            names = {symbol.name for symbol in rule.expansion} - productive
            missing.append(len(names))
            for name in names:
                users.setdefault(name, []).append(number)
        ready = [number for number, count in enumerate(missing) if count == 0]
        for number in ready:  # which grows meanwhile
            name = self._rules[number].origin.name
            if name in productive:
                continue
            productive.add(name)
            for user in users.get(name, ()):
                missing[user] -= 1
                if missing[user] == 0:
                    ready.append(user)
        return not any(missing)
