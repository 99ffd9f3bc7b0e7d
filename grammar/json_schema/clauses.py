"""Choices that are kept: conditions on an object as clauses, not multiplied out.

Where an object meets many choices, as under a `oneOf` whose schemas overlap or beside a dozen
dependencies, each way to make them would be a shape of its own: 2**n of them. Instead the choices
stay one shape. A *literal* says one thing of an object: it has a key or lacks it, a property
satisfies a schema or does not, all the properties of some sort of key do or one of them does not.
A *clause* is a disjunction of literals, and a choice is a conjunction of clauses.

While an object is read, the value of a property falls into one of the *classes* of its key: the
schemas that the clauses ask of it, each satisfied or not. A class decides what it does to every
clause: fulfil it for good, or take one support away, and the machine counts the supports that are
lost (objects.py). So n choices cost n counters.

Some choices are too tangled for few clauses; those are multiplied out (normal.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from grammaton.grammar.json_schema.nodes import OBJECT, Node, Nodes
from grammaton.grammar.json_schema.strings import KeySort

MAX_CLAUSES = 12
"""Clauses that one choice may become."""
MAX_LITERALS = 64
"""Literals of one clause."""


class TooTangled(Exception):
    """A choice is no small conjunction of clauses."""


class Literal(NamedTuple):
    """One thing said of an object; `holds` is false where it is denied.

    With a `key` alone: the key is there. With a key and a `node`: the property satisfies it, if it
    is there. Without a key: so do all properties of a sort, which is that of a `pattern` (with its
    pointer), or all but those with `others` or with a pattern of `but`.
    """

    holds: bool
    key: str | None
    node: Node | None = None
    pattern: tuple[str, str] | None = None
    others: frozenset[str] = frozenset()
    but: tuple[tuple[str, str], ...] = ()


Clause = frozenset[Literal]
"""A disjunction; the empty one holds of nothing."""
_Clauses = list[Clause]


class ClauseReader:
    """Reads choices as clauses about objects; each choice once.

    Args:
        nodes: the document's.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._known: dict[tuple[int, ...], _Clauses | None] = {}
        self._read_before: dict[tuple[Node, bool], _Clauses | None] = {}

    def choice(self, options: list[Node]) -> _Clauses | None:
        """The clauses of a choice between schemas, or None if it is too tangled."""
        key = tuple(option.id for option in options)
        if key not in self._known:
            try:
                parts = [self._read(option, True, ()) for option in options]
                self._known[key] = self._any(parts)
            except TooTangled:
                self._known[key] = None
        return self._known[key]

    def _read(self, node: Node, holds: bool, path: tuple[Node, ...]) -> _Clauses:
        """The clauses of a schema, or of its negation."""
        if node in path:
            raise TooTangled
        if node.negates is not None:
            return self._read(node.negates, not holds, path)
        key = (node, holds)
        if key not in self._read_before:
            self._read_before[key] = None
            self._read_before[key] = self._read_new(node, holds, path)
        found = self._read_before[key]
        if found is None:
            raise TooTangled
        return found

    def _read_new(self, node: Node, holds: bool, path: tuple[Node, ...]) -> _Clauses:
        self.nodes.parse(node)
        path = (*path, node)
        if not node.kinds & OBJECT:
            return _never(holds)
        if node.values is not None or node.is_loose or node.refused is not None:
            raise TooTangled
        parts = [self._read(other, holds, path) for other in node.same or () if other is not None]
        for keyword, options in node.choices or ():
            if keyword == "oneOf" and len(options) > 1:
                raise TooTangled
            inner = [self._read(option, holds, path) for option in options]
            parts.append(self._any(inner) if holds else self._all(inner))
        parts.extend(self._facts(node, holds))
        return self._all(parts) if holds else self._any(parts)

    def _facts(self, node: Node, holds: bool) -> Iterator[_Clauses]:
        """What a schema's own keywords say of objects, each part by itself."""
        facts = node.objects
        if facts is None:
            return
        if facts.min or facts.max is not None or facts.names:
            raise TooTangled
        for sort, wanted in facts.some:
            yield self._one_of_sort(holds, sort, wanted)
        both = [key for key in facts.required if key in facts.properties]
        for key in facts.required:
            if key not in both:
                yield [frozenset([Literal(holds, key)])]
        for key, value in facts.properties.items():
            if key in both:
                yield self._needed(holds, key, value)
            else:
                yield self._member(holds, value, Literal(holds, key, value))
        patterns = tuple((pattern, pointer) for pattern, pointer, _ in facts.patterns)
        for pattern, pointer, value in facts.patterns:
            literal = Literal(holds, None, value, pattern=(pattern, pointer))
            yield self._member(holds, value, literal)
        if facts.other is not None:
            others = frozenset(facts.properties)
            literal = Literal(holds, None, facts.other, others=others, but=patterns)
            yield self._member(holds, facts.other, literal)

    def _needed(self, holds: bool, key: str, value: Node) -> _Clauses:
        """That a property is there and satisfies a schema: one literal, not two."""
        self.nodes.parse(value)
        if value.never:
            return _never(holds)
        if value.trivial:
            return [frozenset([Literal(holds, key)])]
        return [frozenset([Literal(not holds, key, self.nodes.negation(value, value.pointer))])]

    def _one_of_sort(self, holds: bool, sort: KeySort, wanted: Node) -> _Clauses:
        """That some property of a sort satisfies a schema: not all have its negation."""
        if sort.named or sort.within or len(sort.found) > 1 or (sort.found and sort.missing):
            raise TooTangled
        wrong = self.nodes.negation(wanted, wanted.pointer)
        literal = Literal(
            not holds,
            None,
            wrong,
            pattern=(sort.found[0], wanted.pointer) if sort.found else None,
            others=sort.excluded,
            but=tuple((pattern, wanted.pointer) for pattern in sort.missing),
        )
        return self._member(not holds, wrong, literal)

    def _member(self, holds: bool, value: Node, literal: Literal) -> _Clauses:
        self.nodes.parse(value)
        if value.trivial:
            return _never(not holds)
        if value.never and literal.key is not None:
            return [frozenset([Literal(not holds, literal.key)])]
        return [frozenset([literal])]

    def _all(self, parts: Iterable[_Clauses]) -> _Clauses:
        found = list(dict.fromkeys(clause for part in parts for clause in part))
        if len(found) > MAX_CLAUSES:
            raise TooTangled
        return found

    def _any(self, parts: list[_Clauses]) -> _Clauses:
        found: _Clauses = [frozenset()]
        for part in parts:
            joined = (one | other for one, other in product(found, part))
            found = [clause for clause in dict.fromkeys(joined) if not _is_sure(clause)]
            found = [clause for clause in found if not any(other < clause for other in found)]
            if len(found) > MAX_CLAUSES or any(len(clause) > MAX_LITERALS for clause in found):
                raise TooTangled
        return found


def _never(holds: bool) -> _Clauses:
    """What holds of no object, or its negation."""
    return [frozenset()] if holds else []


def _is_sure(clause: Clause) -> bool:
    """Whether a clause holds of everything."""
    return any(literal._replace(holds=not literal.holds) in clause for literal in clause) or any(
        literal.key is not None
        and literal.node is not None
        and literal.holds
        and Literal(True, literal.key) in clause
        for literal in clause
    )
