"""Blocks by indentation, without a lexer: where the blanks before a line go, and how wide they are.

Lark's indenter reads the column at which a line begins off the newline before it, and puts an
indent or dedents between that newline and the line. None of them has a text, so the same text comes
out when the blanks move behind them: a newline up to its last line break, the dedents, and then
blanks as wide as the level of the block that the line is in, its *margin*; an indent is blanks that
are wider than the margin, and their width is the margin of its block. So a block is a rule called
with its margin as the parameter, and no column has to be told to anyone else.

Whether a margin is still to come is the state of a place (product.py):

- `IN_LINE`: no. Text goes on, a newline leads to `AT_LINE`.
- `AT_LINE`: before text, yes. Only here can a block open, or close without an end of the text.
- `AT_BLOCK`: no, since an indent was it. Text follows.
- `AT_END`: the text is over, and open blocks close by themselves.
- `IN_PARENS`: between parentheses, where newlines are ignored text, and no block opens or closes.

In which order the ways lead is Lark's: newlines take all blanks, so that none may follow a margin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from grammaton.errors import LimitExceeded, PlacedError, UnsupportedKeyword
from grammaton.grammar.ebnf_nodes import (
    Alt,
    Indent,
    Literal,
    Margin,
    Node,
    Ref,
    Repeat,
    Rule,
    Rules,
    Seq,
    Term,
    mapped,
)
from grammaton.grammar.lark.product import MAX_WORK, Entry, Product

State = OneOf["in line", "at line", "at block", "at end", "in parens"]
IN_LINE: State = "in line"
AT_LINE: State = "at line"
AT_BLOCK: State = "at block"
AT_END: State = "at end"
IN_PARENS: State = "in parens"

PARENS = "parens"

PAREN_TEXTS = {"LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "LBRACE": "{", "RBRACE": "}"}
"""Lark's names for the literals of parentheses."""


@dataclass(frozen=True)
class Layout:
    """What the rules of a grammar say of lines.

    Attributes:
        newline, indent, dedent: the names of the rules that stand for them.
        tab: the columns that a tab counts as, 0 where newlines take none.
        max_step: the most columns from one level to the next.
        ignored: the rule that follows every other terminal, for ignored text.
        ignored_in_parens: the same between parentheses, where newlines are ignored, too.
        after_margin: ignored text that does not begin with a blank, or none.
        at_end: ignored text without blanks, or none.
        at_line: what is left of a terminal where it must not begin with a blank; None for all.
        opens, closes: the parentheses, as ("text", literal) and ("rule", name of a terminal's).
    """

    newline: str
    indent: str
    dedent: str
    tab: int
    max_step: int
    ignored: str
    ignored_in_parens: str
    after_margin: Term
    at_end: Term
    at_line: Callable[[Node], Term | None]
    opens: frozenset[tuple[str, str]]
    closes: frozenset[tuple[str, str]]


def with_indentation(rules: Rules, start: str, layout: Layout) -> tuple[Rules, str]:
    """The rules with blanks at the start of lines, and the name of the start among them.

    Raises:
        UnsupportedKeyword: an indent or a parenthesis that is not closed in the same sequence.
    """
    return _Indentation(_Blocks(rules, layout).rewritten(), layout).whole(start)


class _Blocks:
    """Makes what stands between indent and dedent, and between parentheses, rules of their own."""

    def __init__(self, rules: Rules, layout: Layout) -> None:
        self._old = rules
        self._layout = layout
        self._new = Rules()
        self._count = 0

    def rewritten(self) -> Rules:
        for rule in self._old.by_name.values():
            body = self._node(rule.body, rule)
            self._new.add(replace(rule, body=body))
        return self._new

    def _node(self, node: Node, rule: Rule) -> Node:
        match node:
            case Seq(parts):
                if is_terminal(node, self._layout):
                    self._check_free(node, rule)
                    return node
                return Seq(tuple(self._sequence(list(parts), rule)))
            case Alt() | Repeat():
                return mapped(node, lambda part: self._node(part, rule))
        self._check_free(node, rule)
        return node

    def _sequence(self, parts: list[Node], rule: Rule) -> list[Node]:
        layout = self._layout
        found: list[Node] = []
        at = 0
        while at < len(parts):
            part = parts[at]
            if _is_ref(part, layout.indent):
                end = self._closing(parts, at, rule)
                inner = self._rule("block", parts[at + 1 : end + 1], rule)
                found.append(Indent(inner, layout.tab, layout.max_step))
                at = end + 1
            elif self._opens(part):
                end = self._closing(parts, at, rule)
                found += (part, self._rule(PARENS, parts[at + 1 : end], rule), parts[end])
                at = end + 1
            else:
                found.append(self._node(part, rule))
                at += 1
        return found

    def _closing(self, parts: list[Node], start: int, rule: Rule) -> int:
        """Where in a sequence the indent or parenthesis at `start` is closed."""
        depth = 0
        block = _is_ref(parts[start], self._layout.indent)
        for at in range(start, len(parts)):
            part = parts[at]
            if _is_ref(part, self._layout.indent) if block else self._opens(part):
                depth += 1
            if _is_ref(part, self._layout.dedent) if block else self._closes(part):
                depth -= 1
                if depth == 0:
                    return at
        raise self._unbalanced(rule)

    def _rule(self, kind: str, parts: list[Node], rule: Rule) -> Ref:
        self._count += 1
        name = f"{kind}@{self._count}"
        last = parts.pop() if kind == "block" else None
        body: list[Node] = self._sequence(parts, rule)
        if last is not None:
            body.append(last)
        self._new.add(Rule(name, Seq(tuple(body)), rule.source, rule.position, rule.end))
        return Ref(name, rule.source, rule.position, rule.end)

    def _check_free(self, node: Node, rule: Rule) -> None:
        layout = self._layout
        if _is_ref(node, layout.indent) or _is_ref(node, layout.dedent):
            raise self._unbalanced(rule)
        if self._opens(node) or self._closes(node):
            raise self._unbalanced(rule)

    def _unbalanced(self, rule: Rule) -> UnsupportedKeyword:
        error = rule.error(
            f"beside an indenter, {self._layout.indent} and a parenthesis must be closed "
            f"in the sequence in which they stand, and in rule {rule.name} one is not",
            kind=UnsupportedKeyword,
        )
        assert isinstance(error, UnsupportedKeyword)
        return error

    def _opens(self, node: Node) -> bool:
        return self._paren(node) in self._layout.opens

    def _closes(self, node: Node) -> bool:
        return self._paren(node) in self._layout.closes

    def _paren(self, node: Node) -> tuple[str, str] | None:
        match _text_of(node, self._layout):
            case Literal(text):
                return "text", text
            case Ref(name):
                return "rule", name
        return None


class _Indentation(Product[State]):
    _sign = "@"

    def __init__(self, rules: Rules, layout: Layout) -> None:
        super().__init__(rules, IN_LINE)
        self._layout = layout
        self._margin = Margin(layout.tab, some=False)
        rule = rules.by_name[layout.ignored]
        self._in_parens = Ref(layout.ignored_in_parens, rule.source, rule.position, rule.end)
        self._with_text_first = _with_text_first(rules, layout)

    def whole(self, start: str) -> tuple[Rules, str]:
        for rule in self._old.values():
            if isinstance(rule.body, Term):  # terminals stand as they are
                self._rules.add(rule)
        name = self._make_whole(start)
        return self._rules, name

    def _too_much(self) -> PlacedError:
        return LimitExceeded(f"placing blanks at the start of lines takes over {MAX_WORK} steps")

    def _may_end(self, state: State) -> bool:
        return state != IN_PARENS

    def _leaf(self, node: Node, state: State) -> Mapping[State, Node] | None:
        layout = self._layout
        text = _text_of(node, layout)
        if text is not None:
            return self._text(node, text, state)
        match node:
            case Literal(""):
                return {state: node}
            case Ref(layout.ignored):
                return {state: node} if state == IN_LINE else {}
            case Ref(layout.newline):
                if state in (IN_LINE, AT_BLOCK):
                    return {AT_LINE: node}
                if state == AT_LINE:
                    return {AT_LINE: Seq((*self._before(state), node))}
                return {}
            case Ref(layout.dedent):
                return self._dedent(state)
            case Ref(name) if name.startswith(f"{PARENS}@") and state not in (IN_LINE, IN_PARENS):
                return {}
            case Indent() if state != AT_LINE:
                return {}
        return None

    def _text(self, node: Node, text: Node, state: State) -> Mapping[State, Node]:
        if state == IN_LINE:
            return {IN_LINE: node}
        if state in (AT_LINE, AT_BLOCK):
            left = self._layout.at_line(text)
            if left is not None:
                assert isinstance(node, Seq)
                node = Seq((left, *node.parts[1:]))
            return {IN_LINE: Seq((*self._before(state), node))}
        if state == IN_PARENS:
            return {IN_PARENS: Seq((text, self._in_parens))}
        return {}

    def _before(self, state: State) -> tuple[Node, ...]:
        """What comes before the first text of a line."""
        after = self._layout.after_margin
        return (self._margin, after) if state == AT_LINE else (after,)

    def _dedent(self, state: State) -> Mapping[State, Node]:
        if state == IN_PARENS:
            return {}
        ways: dict[State, Node] = {AT_END: Literal("")}
        if state == AT_LINE:
            last = Margin(self._layout.tab, some=True)
            ways = {AT_LINE: Literal(""), AT_END: Seq((last, self._layout.at_end))}
        return ways

    def _entered(self, node: Node, state: State) -> Entry[State] | None:
        if isinstance(node, Indent):
            tab, most = node.tab, node.most
            return Entry(node.block, AT_BLOCK, lambda ref: Indent(ref, tab, most), lambda out: out)
        if isinstance(node, Ref) and node.name.startswith(f"{PARENS}@") and state == IN_LINE:
            ignored = self._in_parens
            return Entry(node, IN_PARENS, lambda ref: Seq((ignored, ref)), lambda _: IN_LINE)
        at_start = state in (AT_LINE, AT_BLOCK)
        if isinstance(node, Ref) and at_start and node.name in self._with_text_first:
            before = self._before(state)
            return Entry(node, IN_LINE, lambda ref: Seq((*before, ref)), lambda out: out)
        return super()._entered(node, state)


def _with_text_first(rules: Rules, layout: Layout) -> set[str]:
    """The rules that begin with text, whatever way they go: a margin can stand before them."""
    empty: set[str] = set()
    other: set[str] = set()

    def visit(node: Node) -> tuple[bool, bool]:
        """Whether a part may be empty, and whether it may begin with something else than text."""
        text = _text_of(node, layout)
        if text is not None:
            return False, layout.at_line(text) is not None
        match node:
            case Ref(layout.dedent):
                return True, True
            case Ref(layout.newline):
                return False, True
            case Ref(name):
                return name in empty, name in other
            case Literal(""):
                return True, False
            case Seq(parts):
                begins = False
                for part in parts:
                    may_be_empty, part_begins = visit(part)
                    begins = begins or part_begins
                    if not may_be_empty:
                        return False, begins
                return True, begins
            case Alt(branches):
                found = [visit(branch) for branch in branches]
                return any(e for e, _ in found), any(b for _, b in found)
            case Repeat(body, low):
                may_be_empty, begins = visit(body)
                return may_be_empty or low == 0, begins
        return False, True

    size = -1
    while size != len(empty) + len(other):
        size = len(empty) + len(other)
        for name, rule in rules.by_name.items():
            may_be_empty, begins = visit(rule.body)
            if may_be_empty:
                empty.add(name)
            if begins:
                other.add(name)
    return set(rules.by_name) - empty - other


def is_terminal(node: Node, layout: Layout) -> bool:
    """Whether a node is a terminal with ignored text after it."""
    return _text_of(node, layout) is not None


def _text_of(node: Node, layout: Layout) -> Node | None:
    match node:
        case Seq((text, Ref(layout.ignored))) if not _is_ref(text, layout.ignored):
            return text
    return None


def _is_ref(node: Node, name: str) -> bool:
    return isinstance(node, Ref) and node.name == name
