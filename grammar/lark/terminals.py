"""Terminals to pieces: what a terminal matches, as terms (needs.py says what pieces are).

A terminal is put together from literals, ranges and regular expressions of Python's `re` as Lark
puts it together: into one regular expression, alternatives sorted by the most characters they
match, then the fewest, then the length of their pattern. Patterns in a row are joined as they are
written, so that `"a" /b|c/` is `ab|c`: such a pattern, or terminal, is *open*. Which texts it
matches whole is the matter of preference.py; most terminals are plain there, and become terms as
they stand.

`&`, `~` and `%regex`, which Lark has not, make languages without preferences, and so does what
they are put together with. Each definition is read once; one that mentions others holds them whole,
which `MAX_SIZE` and `MAX_DEPTH` bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError, LimitExceeded, PlacedError, UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import Span
from grammaton.grammar.lark.elimination import table_pieces
from grammaton.grammar.lark.loader import resolve
from grammaton.grammar.lark.needs import NO_NEEDS, Pieces
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
    children,
)
from grammaton.grammar.lark.preference import Steps, TooIntricate, always_preferred, tables
from grammaton.grammar.lark.substring import substring_term
from grammaton.grammar.regex import nodes as regex
from grammaton.grammar.regex.alphabet import Alphabet
from grammaton.grammar.regex.python import PythonParser
from grammaton.grammar.regex.terms import Terms

if TYPE_CHECKING:
    from grammaton._core import TermStore


MAX_SIZE = 100_000
"""Nodes of a terminal's regular expression."""

MAX_DEPTH = 100
"""How deep terminals, groups and repetitions may stand within each other."""


@dataclass(frozen=True)
class Terminal:
    """What a terminal matches.

    Attributes:
        pieces: its terms by what they need of their surroundings.
        length: characters of its longest text; None when there is no bound or it is unknown.
    """

    pieces: Pieces
    length: int | None


@dataclass(frozen=True)
class _Shape:
    """A part of a terminal, as a node or, where there are no preferences, as a term.

    Attributes:
        fewest, most: characters that it matches; None is no bound.
        written: the length of the pattern that Lark would write for it, by which it sorts.
        size, depth: of the node as a tree.
        branches: of a pattern that is open.
    """

    node: regex.Node | None
    term: int | None
    fewest: int
    most: int | None
    written: int
    size: int = 1
    depth: int = 1
    branches: tuple[regex.Node, ...] = ()


class Terminals:
    """Makes terminals in one store, each definition once.

    Args:
        store: where the terms are made.
        declared: what declared terminals match, by name: a regular expression, or None for
            nothing.
    """

    def __init__(self, store: TermStore, declared: Mapping[str, str | None]) -> None:
        self._store = store
        self._declared = declared
        self._steps = Steps()
        self._plain = Terms(store, Alphabet(store, ())).plain
        self._shapes: dict[int, _Shape] = {}
        """By the identity of definitions, which live as long as the grammar is read."""

    def named(self, definition: Definition) -> Terminal:
        """What a definition matches."""
        self._make_ready(definition)
        with definition.span.blamed():
            return self._finished(self._shapes[id(definition)], definition.span)

    def anonymous(self, node: Node, span: Span) -> Terminal:
        """What a literal or an expression of terminals in a rule matches."""
        for name in _names(node):
            definition = self._terminal(name)
            self._make_ready(definition)
        with span.blamed():
            return self._finished(self._shape(node), span)

    def ignored(self, node: Node, span: Span) -> tuple[int, int | None]:
        """The term of what is ignored, and the set of characters that it is a run of, if it is one:
        a term of one character.

        Raises:
            UnsupportedKeyword: it looks beyond itself.
        """
        terminal = self.anonymous(node, span)
        if any(key != NO_NEEDS for key in terminal.pieces):
            raise span.error("what is ignored must not look beyond itself", kind=UnsupportedKeyword)
        term = terminal.pieces.get(NO_NEEDS, self._store.NOTHING)
        match self._store.node(term):
            case ("chars" | "bytes", *_):
                return term, term
            case ("repeat", int(inner), 0 | 1, None):
                if self._store.node(inner)[0] in ("chars", "bytes"):
                    return term, inner
        return term, None

    def _make_ready(self, definition: Definition) -> None:
        """Makes the shapes of a terminal and of those it mentions, without recursion in Python."""
        stack = [definition]
        path: set[int] = set()
        while stack:
            top = stack[-1]
            if id(top) in self._shapes:
                stack.pop()
                path.discard(id(top))
                continue
            if top.body is None:
                self._shapes[id(top)] = self._declared_shape(top)
                continue
            missing: list[Definition] = []
            for name in _names(top.body):
                found = self._terminal(name)
                if id(found) not in self._shapes:
                    if id(found) in path or found is top:
                        raise name.span.error(
                            f"terminal {found.name} is recursive; only rules may be"
                        )
                    missing.append(found)
            if missing:
                path.add(id(top))
                stack.append(missing[0])
                continue
            with top.span.blamed():
                self._shapes[id(top)] = self._shape(top.body)

    def _terminal(self, name: Name) -> Definition:
        definition = resolve(name, ())
        assert definition is not None
        if not definition.is_terminal:
            raise name.span.error(f"a terminal cannot contain a rule, and {name.name} is one")
        return definition

    def _declared_shape(self, definition: Definition) -> _Shape:
        if definition.name not in self._declared:
            raise definition.span.error(
                f"{definition.name} is only declared; say what it matches with "
                f"declared={{{definition.name!r}: …}}, None being nothing"
            )
        pattern = self._declared[definition.name]
        if pattern is None:
            return _Shape(None, self._store.NOTHING, 0, 0, 0)
        return _of_node(PythonParser(pattern).parse(), len(pattern))

    def _finished(self, shape: _Shape, span: Span) -> Terminal:
        if shape.term is not None:
            self._store.is_empty(shape.term)  # met here, a limit has its place
        return Terminal(self._pieces(shape, span), shape.most)

    def _pieces(self, shape: _Shape, span: Span) -> Pieces:
        node = shape.node
        if node is None:
            assert shape.term is not None
            return {NO_NEEDS: shape.term}
        if always_preferred(node):
            return {NO_NEEDS: self._plain(node)}
        try:
            found, parts = tables(node, self._steps)
            if not node.asserts and not any(table.preferring for table in found):
                return {NO_NEEDS: self._plain(node)}
            pieces: Pieces = {}
            for table in found:
                pieces.update(table_pieces(self._store, table, parts))
        except TooIntricate as error:
            raise span.error(
                f"what this terminal matches cannot be told: {error}", kind=UnsupportedKeyword
            ) from None
        return pieces

    def _term(self, shape: _Shape, span: Span, what: str) -> int:
        """A part as a term without needs."""
        if shape.term is not None:
            return shape.term
        pieces = self._pieces(shape, span)
        if any(key != NO_NEEDS for key in pieces):
            raise span.error(f"{what} must not look beyond itself", kind=UnsupportedKeyword)
        return pieces.get(NO_NEEDS, self._store.NOTHING)

    def _shape(self, node: Node) -> _Shape:
        store = self._store
        match node:
            case Text(value, flags):
                pattern = re.escape(value)
                shape = _of_node(PythonParser(pattern, flags).parse(), len(value))
                return replace(shape, written=len(value))
            case Regex(value, flags):
                parsed, branches = parsed_regex(node)
                shape = _of_node(parsed, len(value))
                # Lark writes flags as a group, (?i:…).
                return shape if flags or len(branches) < 2 else replace(shape, branches=branches)
            case CharRange(low, high):
                return _of_node(regex.Chars(((low, high),)), len("[a-z]"))
            case Name():
                return self._shapes[id(self._terminal(node))]
            case Seq(parts):
                return self._together([self._shape(part) for part in parts], choice=False)
            case Alt(branches):
                return self._together([self._shape(branch) for branch in branches], choice=True)
            case Repeat(body, low, high):
                return self._repeated(self._shape(body), low, high)
            case Both(parts, span):
                terms = [self._term(self._shape(part), span, "an operand of &") for part in parts]
                return _of_term(store.intersect(terms))
            case Not(body, span):
                term = self._term(self._shape(body), span, "the operand of ~")
                return _of_term(store.complement(term))
            case Substring(chunks):
                return _of_term(substring_term(store, chunks))
            case Json():
                raise node.span.error("a JSON Schema can stand in a rule, not in a terminal")
            case Nested():
                raise node.span.error("a grammar can stand in a rule, not in a terminal")
            case Special():
                raise node.span.error("a special token can stand in a rule, not in a terminal")
            case Use() | Instance():
                raise _template_in_terminal(node)

    def _together(self, shapes: list[_Shape], *, choice: bool) -> _Shape:
        if len(shapes) == 1:
            return shapes[0]
        if any(shape.term is not None for shape in shapes):
            terms = [self._plain_term(shape) for shape in shapes]
            return _of_term(self._store.union(terms) if choice else self._store.concat(terms))
        size = sum(shape.size for shape in shapes) + 1
        depth = max((shape.depth for shape in shapes), default=0) + 1
        written = sum(shape.written for shape in shapes) + len("(?:)") * choice
        if size > MAX_SIZE or depth > MAX_DEPTH:
            raise LimitExceeded(
                f"a terminal has more than {MAX_SIZE} parts, or more than {MAX_DEPTH} within each "
                "other"
            )
        if choice:
            shapes = sorted(shapes, key=_preference)
        if choice:
            branches = [shape.node for shape in shapes if shape.node is not None]
        else:
            branches = _joined(shapes)
        node = regex.alt(branches)
        fewest, most = regex.length(node)
        open_branches = tuple(branches) if len(branches) > 1 and not choice else ()
        return _Shape(node, None, fewest, most, written, size, depth, open_branches)

    def _repeated(self, shape: _Shape, low: int, high: int | None) -> _Shape:
        if shape.node is None:
            return _of_term(self._store.repeat(self._plain_term(shape), low, high))
        node = regex.Repeat(shape.node, low, high, 0, 0, shape.node.asserts)
        fewest, most = regex.length(node)
        if shape.depth > MAX_DEPTH:
            raise LimitExceeded(f"terminals stand more than {MAX_DEPTH} within each other")
        written = shape.written + len("(?:)*")
        return _Shape(node, None, fewest, most, written, shape.size + 1, shape.depth + 1)

    def _plain_term(self, shape: _Shape) -> int:
        """A part that stands beside one without preferences."""
        if shape.term is not None:
            return shape.term
        assert shape.node is not None
        if shape.node.asserts:
            raise UnsupportedKeyword(
                "look-around beside &, ~ or %regex in one terminal is not supported"
            )
        return self._plain(shape.node)


def parsed_regex(node: Regex) -> tuple[regex.Node, tuple[regex.Node, ...]]:
    """A pattern, and its branches outside of all groups."""
    if "l" in node.flags:
        raise node.span.error("the flag l is for bytes, and a Lark grammar is text")
    parser = PythonParser(node.value, node.flags)
    try:
        parsed = parser.parse()
    except GrammarError as error:
        if error.position is None:
            raise node.span.error(error.message) from None
        start = node.offsets[min(error.position, len(node.value))]
        end = node.offsets[min(error.end or error.position + 1, len(node.value))]
        raise node.span.source.error(error.message, start, max(end, start + 1)) from None
    return parsed, tuple(parser.group.branches)


def _joined(shapes: list[_Shape]) -> list[regex.Node]:
    """The branches of patterns in a row, each `|` of an open one reaching as far as it does."""
    rows: list[list[regex.Node]] = [[]]
    for shape in shapes:
        assert shape.node is not None
        first, *others = shape.branches or (shape.node,)
        rows[-1].append(first)
        rows.extend([other] for other in others)
    return [regex.cat(row) for row in rows]


def _of_node(node: regex.Node, written: int) -> _Shape:
    fewest, most = regex.length(node)
    return _Shape(node, None, fewest, most, written)


def _of_term(term: int) -> _Shape:
    return _Shape(None, term, 0, None, 0)


def _preference(shape: _Shape) -> tuple[int, int, int]:
    """The key by which Lark sorts alternatives of a terminal."""
    most = 2**62 if shape.most is None else shape.most
    return -most, -shape.fewest, -shape.written


def _template_in_terminal(node: Use | Instance) -> PlacedError:
    span = node.template.span if isinstance(node, Use) else node.span
    return span.error("a template can be used in a rule, not in a terminal")


def _names(node: Node) -> list[Name]:
    found: list[Name] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Name):
            found.append(top)
        elif isinstance(top, Use | Instance):
            raise _template_in_terminal(top)
        stack.extend(children(top))
    return found
