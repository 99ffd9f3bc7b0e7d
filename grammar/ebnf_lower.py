"""From the rules of a grammar to terms of a store, in a form that makes masks cheap.

What is a call and what stands in line decides what a mask costs. A *frame* is a rule without calls
inside: the machine computes its masks once for a vocabulary and shares them (docs/machine.md). So

- a mention of a rule with short texts only, without recursion (an escape, a digit, a keyword), is
  replaced by what the rule says, since `("a" | escape)*` should be one frame, not a call for each
  character;
- every other mention is a call, so that a string or a run of white space is one frame wherever it
  is used;
- in a rule with calls, runs of other parts that have many continuations (a wide class, an
  unbounded repetition) become frames of their own.

`-` needs languages without recursion, so its operands are written out whole. Time and terms are
linear in the grammar, but for the rules that are written out, which are at most `MAX_INLINE` nodes
each, or the operands of `-`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from grammaton.errors import UnsatisfiableGrammar
from grammaton.grammar.ebnf_nodes import (
    MAX_REPEAT,
    Alt,
    Chars,
    Indent,
    Literal,
    Margin,
    Node,
    Ref,
    Repeat,
    Rule,
    RulePlaces,
    Rules,
    Seq,
    Span,
    Term,
    TokenKey,
    TokenPlaces,
    Tokens,
    Without,
    blamed,
    children,
    mentions,
)
from grammaton.grammar.missing_start import missing_start
from grammaton.grammar.regex.ranges import Ranges, invert, normalize

if TYPE_CHECKING:
    from grammaton._core import Alternative, Condition, TermStore, Update

MAX_INLINE = 256
"""Nodes of a rule that may replace its mention."""

MAX_INLINE_LENGTH = 24
"""Characters of the longest text of a rule that may replace its mention."""

WIDE = 64
"""Characters of a class from which on it has many continuations."""


def lower_rules(
    store: TermStore,
    rules: Rules,
    start: str,
    *,
    places: TokenPlaces | None = None,
    rule_places: RulePlaces | None = None,
) -> int:
    """Lowers a grammar and returns the term of its start rule.

    Args:
        store: where the terms are made.
        rules: every rule of the grammar.
        start: the name of the start rule.
        places: filled with where tokens are mentioned.
        rule_places: filled with where rules are defined.

    Raises:
        GrammarError: no such start, a mention of no rule, `-` of something recursive.
        UnsatisfiableGrammar: the start can never end.
    """
    if start not in rules.by_name:
        raise missing_start(
            start, {name: rule.error for name, rule in rules.by_name.items()}, rules.source
        )
    for rule in rules.by_name.values():
        for mention in mentions(rule.body):
            if mention.name not in rules.by_name:
                written = mention.source.text[mention.position : mention.end]
                raise mention.source.error(
                    f"{written} is not defined", mention.position, mention.end
                )
    lowering = _Lowering(store, rules, {} if places is None else places)
    with blamed(rules.by_name[start].error):
        term = lowering.start(start)
        empty = store.is_empty(term)
    if empty:
        shown = start.split("#")[0].split("@")[0]  # what stands behind it, front ends added
        raise rules.by_name[start].error(
            f"{shown} can never end: every way through it needs a rule that needs itself, "
            "or a part that no text matches",
            kind=UnsatisfiableGrammar,
        )
    if rule_places is not None:
        for name, rule in rules.by_name.items():
            rule_places[name] = Span(rule.source, rule.position, rule.end)
        rule_places[""] = rule_places[start]
    return term


class _Lowering:
    def __init__(self, store: TermStore, rules: Rules, places: TokenPlaces) -> None:
        self._store = store
        self._places = places
        self._rules = rules.by_name
        self._called: dict[str, int] = {}
        self._queue: list[str] = []
        self._frames: dict[int, int] = {}
        self._wide: dict[int, bool] = {}
        self._whole: dict[str, int] = {}
        """The rules that were written out, as terms."""
        self._plain_nodes: dict[int, bool] = {}
        """By the identity of nodes, which the rules keep alive."""
        self._small: set[str] = set()
        self._without_recursion: set[str] = set()
        """The rules of which that was made sure."""
        self._inheriting = _with_margins(self._rules)
        self._indents: dict[tuple[str, int, int], int] = {}
        order, self._recursive = _dependency_order(self._rules)
        sizes: dict[str, tuple[int, int]] = {}
        for name in order:
            plain = name not in self._recursive and name not in self._inheriting
            if plain and self._rules[name].attributes is None:
                size, length = self._measure(self._rules[name].body, sizes)
                if size <= MAX_INLINE and length <= MAX_INLINE_LENGTH:
                    sizes[name] = size, length
                    self._small.add(name)

    def start(self, name: str) -> int:
        term = (
            self._call(name, inherited=False) if name in self._inheriting else self._mention(name)
        )
        while self._queue:
            rule = self._rules[self._queue.pop()]
            with blamed(rule.error):
                self._store.define(self._called[rule.name], self._body(rule.body))
        return term

    def _measure(self, node: Node, known: dict[str, tuple[int, int]]) -> tuple[int, int]:
        """Nodes when written out, and characters of the longest text; both capped."""
        size, length = 1, 0
        match node:
            case Chars():
                length = 1
            case Literal(text):
                size, length = 1 + len(text), len(text)
            case Tokens():
                length = MAX_INLINE_LENGTH + 1
            case Term(_, known_length):
                length = MAX_INLINE_LENGTH + 1 if known_length is None else known_length
            case Ref(name):
                size, length = known.get(name, (MAX_INLINE + 1, MAX_INLINE_LENGTH + 1))
            case Alt(branches):
                for branch in branches:
                    one, longest = self._measure(branch, known)
                    size, length = size + one, max(length, longest)
            case Repeat(body, _, high):
                size, length = self._measure(body, known)
                length = MAX_INLINE_LENGTH + 1 if high is None else length * high
            case _:
                for part in children(node):
                    one, longest = self._measure(part, known)
                    size, length = size + one, length + longest
        return min(size, MAX_INLINE + 1), min(length, MAX_INLINE_LENGTH + 1)

    def _mention(self, name: str) -> int:
        """What a mention of a rule stands for in a rule with calls."""
        if name in self._small:
            return self._written_out(name)
        return self._call(name, inherited=name in self._inheriting)

    def _call(self, name: str, *, inherited: bool) -> int:
        return self._store.call(self._rule(name), None if inherited else 0)

    def _rule(self, name: str) -> int:
        if name not in self._called:
            self._called[name] = made = self._store.rule(name)
            self._queue.append(name)
            given = self._rules[name].attributes
            if given is not None:
                self._store.set_attributes(
                    made,
                    given.capture,
                    given.stop_capture,
                    given.suffix,
                    given.max_tokens,
                    given.temperature,
                )
        return self._called[name]

    def _indent(self, node: Indent) -> int:
        """Blanks of more columns than the margin, counter 0; counter 1 is those read so far."""
        key = node.block.name, node.tab, node.most
        if key not in self._indents:
            store = self._store
            rule = store.rule(f"{node.block.name}_indent")
            self._indents[key] = rule
            block = self._rule(node.block.name)
            alternatives: list[Alternative] = []
            for blank, width in ((b" ", 1), (b"\t", node.tab)) if node.tab else ((b" ", 1),):
                head = store.literal(blank)
                on: list[Condition] = [("below", 1, 0, node.most - width)]
                alternatives.append((head, rule, store.EMPTY, on, [("add", 1, width, MAX_REPEAT)]))
                enough: list[Condition] = [
                    ("below", 0, 1, width),
                    ("below", 1, 0, node.most - width + 1),
                ]
                level: list[Update] = [("copy", 0, 1, width), ("set", 1, 0)]
                alternatives.append((head, block, store.EMPTY, enough, level))
            store.define_template(rule, alternatives)
        return self._store.call(self._indents[key], None)

    def _is_plain(self, node: Node) -> bool:
        """Whether a node has no calls and tokens, once rules with short texts are written out."""
        known = self._plain_nodes.get(id(node))
        if known is None:
            known = all(map(self._is_plain, children(node)))
            if isinstance(node, Ref):
                known = node.name in self._small
            elif isinstance(node, Tokens | Margin | Indent):
                known = False
            self._plain_nodes[id(node)] = known
        return known

    def _body(self, node: Node) -> int:
        """A node as a term; the parts of one with calls are frames where that pays."""
        store = self._store
        if self._is_plain(node):
            return self._plain(node)
        match node:
            case Ref(name):
                return self._mention(name)
            case Margin(tab, some):
                return store.margin(0, tab, some)
            case Indent():
                return self._indent(node)
            case Repeat(body, low, high):
                return store.repeat(self._body(body), low, high)
            case Seq(parts):
                terms: list[int] = []
                run: list[int] = []
                for part in parts:
                    if self._is_plain(part):
                        run.append(self._plain(part))
                        continue
                    terms += (self._frame(store.concat(run)), self._body(part))
                    run = []
                return store.concat([*terms, self._frame(store.concat(run))])
            case Alt(branches):
                plain = [self._plain(branch) for branch in branches if self._is_plain(branch)]
                others = [self._body(branch) for branch in branches if not self._is_plain(branch)]
                return store.union([self._frame(store.union(plain)), *others])
        return self._plain(node)

    def _frame(self, term: int) -> int:
        if not self._is_wide(term):
            return term
        if term not in self._frames:
            rule = self._store.rule("part")
            self._store.define(rule, term)
            self._frames[term] = self._store.call(rule)
        return self._frames[term]

    def _is_wide(self, term: int) -> bool:
        stack = [term]
        while stack:
            top = stack[-1]
            if top in self._wide:
                stack.pop()
                continue
            parts: Iterable[int] = ()
            wide = False
            match self._store.node(top):
                case ("concat" | "union", tuple(inner)):
                    parts = inner
                case ("repeat", int(inner), _, None):
                    wide = True
                case ("repeat", int(inner), _, int(high)):
                    parts, wide = (inner,), high > WIDE
                case ("chars" | "bytes", ranges):
                    assert isinstance(ranges, tuple | list)
                    wide = sum(high - low + 1 for low, high in ranges) >= WIDE
                case ("intersect" | "complement" | "json", *_):
                    wide = True
            missing = [part for part in parts if part not in self._wide]
            if missing and not wide:
                stack.extend(missing)
                continue
            self._wide[top] = wide or any(self._wide[part] for part in parts)
            stack.pop()
        return self._wide[term]

    # Without calls

    def _written_out(self, name: str) -> int:
        """The term of a rule without recursion, those that it mentions made first."""
        stack = [name]
        while stack:
            top = stack[-1]
            body = self._rules[top].body
            missing = {ref.name for ref in mentions(body) if ref.name not in self._whole}
            if missing and top not in self._whole:
                stack.extend(missing)
                continue
            stack.pop()
            if top not in self._whole:
                self._whole[top] = self._plain(body)
        return self._whole[name]

    def _plain(self, node: Node) -> int:
        """A node whose mentions are of rules without recursion, which are written out."""
        store = self._store
        match node:
            case Chars(ranges):
                return store.chars(ranges)
            case Literal(text):
                return store.literal(text.encode())
            case Term(term):
                return term
            case Tokens(names, ids, negated):
                term = store.tokens(names, ids, negated)
                _, *key = store.node(term)
                self._places.setdefault(_token_key(key), node)
                return term
            case Ref(name):
                return self._written_out(name)
            case Seq(parts):
                return store.concat([self._plain(part) for part in parts])
            case Alt(branches):
                words = [branch.text for branch in branches if isinstance(branch, Literal)]
                terms = [store.literals([word.encode() for word in words])] if words else []
                terms += [self._plain(each) for each in branches if not isinstance(each, Literal)]
                return store.union(terms)
            case Repeat(body, low, high):
                return store.repeat(self._plain(body), low, high)
            case Without(body, removed):
                self._check_without_recursion(node)
                with blamed(node.error):
                    term = self._without(self._plain(body), self._plain(removed))
                    store.is_empty(term)  # met here, a limit has its place
                return term
        raise AssertionError(node)

    def _without(self, term: int, removed: int) -> int:
        store = self._store
        characters, others = self._characters(term), self._characters(removed)
        if characters is None or others is None:
            return store.intersect([term, store.complement(removed)])
        return store.chars(invert(normalize((*invert(characters), *others))))

    def _characters(self, term: int) -> Ranges | None:
        """The set of a term that is one character."""
        match self._store.node(term):
            case ("chars" | "bytes", tuple(ranges)):
                return ranges
            case ("union", tuple(parts)):
                sets = [self._characters(part) for part in parts]
                known = [ranges for ranges in sets if ranges is not None]
                if len(known) == len(sets):
                    return normalize(pair for ranges in known for pair in ranges)
        return None

    def _check_without_recursion(self, node: Without) -> None:
        self._check_without_tokens(node, node)
        queue = [ref.name for ref in mentions(node)]
        while queue:
            name = queue.pop()
            if name in self._without_recursion:
                continue
            self._without_recursion.add(name)
            if name in self._recursive:
                raise node.error(f"- takes expressions without recursion, and {name} is recursive")
            self._check_without_tokens(self._rules[name].body, node)
            queue.extend(ref.name for ref in mentions(self._rules[name].body))

    @staticmethod
    def _check_without_tokens(body: Node, node: Without) -> None:
        stack = [body]
        while stack:
            top = stack.pop()
            if isinstance(top, Tokens):
                raise node.error("- takes expressions of characters, without tokens")
            stack.extend(children(top))


def _token_key(parts: list[object]) -> TokenKey:
    names, ids, negated = parts
    assert isinstance(names, tuple)
    assert isinstance(ids, tuple)
    assert isinstance(negated, bool)
    return names, ids, negated


def _with_margins(rules: dict[str, Rule]) -> set[str]:
    """The rules that depend on the margin of the block they stand in."""
    users: dict[str, list[str]] = {}
    found: set[str] = set()
    queue: list[str] = []
    for name, rule in rules.items():
        stack = [rule.body]
        while stack:
            top = stack.pop()
            if isinstance(top, Margin | Indent) and name not in found:
                found.add(name)
                queue.append(name)
            elif isinstance(top, Ref):
                users.setdefault(top.name, []).append(name)
            stack.extend(children(top))
    while queue:
        for user in users.get(queue.pop(), ()):
            if user not in found:
                found.add(user)
                queue.append(user)
    return found


def _dependency_order(rules: dict[str, Rule]) -> tuple[list[str], set[str]]:
    """The rules, each after those it mentions where that can be, and which are recursive.

    Tarjan's algorithm for strongly connected components, with a stack of its own.
    """
    order: list[str] = []
    recursive: set[str] = set()
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    component: list[str] = []
    inside: set[str] = set()
    targets = {
        name: list(dict.fromkeys(ref.name for ref in mentions(rule.body)))
        for name, rule in rules.items()
    }
    for root in rules:
        if root in index:
            continue
        path = [(root, iter(targets[root]))]
        index[root] = low[root] = len(index)
        component.append(root)
        inside.add(root)
        while path:
            name, rest = path[-1]
            follow = next(rest, None)
            if follow is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == index[name]:
                    members: list[str] = []
                    while not members or members[-1] != name:
                        members.append(component.pop())
                        inside.discard(members[-1])
                    order.extend(members)
                    if len(members) > 1 or name in targets[name]:
                        recursive.update(members)
            elif follow not in index:
                index[follow] = low[follow] = len(index)
                component.append(follow)
                inside.add(follow)
                path.append((follow, iter(targets[follow])))
            elif follow in inside:
                low[name] = min(low[name], index[follow])
    return order, recursive
