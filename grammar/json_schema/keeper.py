"""Clauses that meet a shape: the classes of each key's values, and what each does (kept.py).

The schemas that clauses ask of a key's property split its values into classes: each schema is
satisfied or not. Classes that are seen to be empty are left out, so that a tag with n values makes
n + 1 classes, not 2**n. Each class is a position with all that is said of the property besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from grammaton.errors import LimitExceeded
from grammaton.grammar.json_schema.clauses import Clause, Literal
from grammaton.grammar.json_schema.document import Resource
from grammaton.grammar.json_schema.kept import Effect, Kept, Supports
from grammaton.grammar.json_schema.nodes import Node, Nodes
from grammaton.grammar.json_schema.positions import ObjectShape, Position
from grammaton.grammar.json_schema.strings import KeySort, StringTexts

MAX_CLASSES = 64
"""Classes that the values of one key may fall into."""
MAX_SCHEMAS = 32
"""Schemas that choices may ask of one key's values."""
MAX_UNIVERSALS = 3
"""Things that clauses may say of all properties of a sort."""
FEW_SCHEMAS = 2
"""So many schemas split a key's values without a look at what is empty."""

_Class = tuple[Position, dict[Node, bool]]


class Places(Protocol):
    """Where positions come from."""

    nothing: Position

    def position(self, nodes: Sequence[Node]) -> Position: ...
    def is_void(self, nodes: Sequence[Node]) -> bool: ...


class Keeper:
    """The clauses of one object shape.

    Args:
        clauses: what holds of the object besides its facts.
        strings, places, nodes: the builders of the document.
    """

    def __init__(
        self, clauses: list[Clause], strings: StringTexts, places: Places, nodes: Nodes
    ) -> None:
        self.clauses = clauses
        self.strings = strings
        self.places = places
        self.nodes = nodes
        literals = dict.fromkeys(literal for clause in clauses for literal in clause)
        self._written: dict[tuple[Resource, str], Node] = {}
        self._named = [literal for literal in literals if literal.key is not None]
        self._sorted = [literal for literal in literals if literal.key is None]
        self._universals = [literal for literal in self._sorted if literal.holds]
        if len(self._universals) > MAX_UNIVERSALS:
            raise LimitExceeded(
                f"choices speak of all properties of over {MAX_UNIVERSALS} sorts "
                f"(at {self._place()})"
            )

    def _place(self) -> str:
        return next(
            (each.node.pointer for clause in self.clauses for each in clause if each.node), ""
        )

    def patterns(self) -> Iterator[str]:
        """The patterns of keys that clauses speak of.

        Raises:
            GrammarError: one is no regular expression.
        """
        for literal in self._sorted:
            for pattern, pointer in (*literal.but, *([literal.pattern] if literal.pattern else [])):
                self.strings.pattern_at(pattern, pointer)
                yield pattern

    def named_keys(self) -> Iterator[str]:
        """The keys that clauses name, in a fixed order."""
        for literal in self._named:
            assert literal.key is not None
            yield literal.key
        for literal in self._sorted:
            yield from sorted(literal.others)

    def keep(
        self, shape: ObjectShape, members: dict[str, list[Node]], others: list[list[Node]]
    ) -> None:
        """Adds the clauses to a shape.

        Args:
            members, others: the schemas that hold of each declared property, and of each sort of
                others, in any case.
        """
        if shape.duties or shape.max is not None or shape.min > len(shape.required):
            raise LimitExceeded(
                "choices multiply beside properties that are counted or must be found "
                f"(at {self._place()})"
            )
        nothing = self.places.nothing
        lacking = {
            key
            for key, place in shape.properties.items()
            if place is nothing or any(node.never for node in place.nodes)
        }
        self.clauses = [clause for clause in self.clauses if not _holds_without(clause, lacking)]
        kept = Kept([], {}, [])
        absent: list[set[str]] = [set() for _ in self.clauses]
        chances: list[set[str]] = [set() for _ in self.clauses]
        for key in shape.properties:
            asked = [literal for literal in self._named if literal.key == key]
            asked += [literal for literal in self._sorted if self._speaks_of(literal, key)]
            if asked and key not in lacking:
                kept.members[key] = self._member(
                    key, asked, members[key], absent, chances, needed=key in shape.required
                )
        open_to: set[int] = set()
        for (sort, _), said in zip(shape.others, others, strict=True):
            asked = [literal for literal in self._sorted if _speaks_of_sort(literal, sort)]
            for literal in asked:
                if literal.node is not None and not literal.holds:
                    # A reader takes the last value of a key only, so it must not be repeated.
                    shape.found = True
                    shape.counted = shape.counted or literal.node.pointer
            for position, signs in self._classes(self._tracked(asked), said):
                effect = self._effect(asked, signs, (), ())
                open_to |= effect.fulfils
                kept.others.append((sort, position, effect))
        for number, clause in enumerate(self.clauses):
            universals = frozenset(
                i for i, literal in enumerate(self._universals) if literal in clause
            )
            kept.clauses.append(
                Supports(
                    frozenset(absent[number]),
                    frozenset(chances[number]),
                    universals,
                    number in open_to,
                )
            )
        shape.kept = kept

    def _member(
        self,
        key: str,
        asked: list[Literal],
        said: list[Node],
        absent: list[set[str]],
        chances: list[set[str]],
        *,
        needed: bool,
    ) -> list[tuple[Position, Effect]]:
        """The classes of a declared property; notes which clauses its absence, unless it is needed,
        or a value of it fulfils."""
        classes = self._classes(self._tracked(asked), said)
        fulfilled = [self._fulfilled(asked, signs) for _, signs in classes]
        staying = frozenset(
            number
            for number, clause in enumerate(self.clauses)
            if not needed
            and any(literal in clause and _holds_without_key(literal, key) for literal in asked)
        )
        hoping = frozenset().union(*fulfilled) - staying
        for number in staying:
            absent[number].add(key)
        for number in hoping:
            chances[number].add(key)
        return [
            (position, self._effect(asked, signs, staying, hoping)) for position, signs in classes
        ]

    def _speaks_of(self, literal: Literal, key: str) -> bool:
        """Whether a declared key is of the sort that a literal speaks of."""
        if literal.pattern is not None:
            return self.strings.found(literal.pattern[0], key)
        return key not in literal.others and not any(
            self.strings.found(pattern, key) for pattern, _ in literal.but
        )

    def _tracked(self, asked: list[Literal]) -> list[Node]:
        """The schemas that split the values of a key that literals speak of."""
        nodes = [each.node for each in asked if each.node and not self.nodes.parse(each.node).never]
        return list(dict.fromkeys(self._base(node)[0] for node in nodes))

    def _base(self, node: Node) -> tuple[Node, bool]:
        """The schema whose sign tells a node's, and whether it is the same sign; schemas that are
        written alike in one place are one."""
        base, same = (node, True) if node.negates is None else (node.negates, False)
        if isinstance(base.raw, dict):
            base = self._written.setdefault((base.resource, repr(base.raw)), base)
        return base, same

    def _satisfied(self, node: Node | None, signs: dict[Node, bool]) -> bool:
        """Whether a property of a class satisfies a literal's schema."""
        if node is None:
            return True
        base, same = self._base(node)
        return base in signs and signs[base] == same

    def _classes(self, tracked: list[Node], said: list[Node]) -> list[_Class]:
        if len(tracked) > MAX_SCHEMAS:
            raise LimitExceeded(
                f"choices ask over {MAX_SCHEMAS} things of one property (at {tracked[0].pointer})"
            )
        known = {base: same for base, same in map(self._base, said) if base in tracked}
        classes: list[tuple[list[Node], dict[Node, bool]]] = [(said, known)]
        for node in tracked:
            if node in known:
                continue
            split = []
            for nodes, signs in classes:
                split.append(([*nodes, node], {**signs, node: True}))
                wrong = self.nodes.negation(node, node.pointer)
                split.append(([*nodes, wrong], {**signs, node: False}))
            classes = split
            if len(tracked) > FEW_SCHEMAS:
                classes = [each for each in split if not self.places.is_void(each[0])]
            if len(classes) > MAX_CLASSES:
                raise LimitExceeded(
                    f"choices tell over {MAX_CLASSES} classes of values apart (at {node.pointer})"
                )
        return [(self.places.position(nodes), signs) for nodes, signs in classes]

    def _fulfilled(self, asked: list[Literal], signs: dict[Node, bool]) -> frozenset[int]:
        """The clauses that a property of some class fulfils."""
        true = {
            literal
            for literal in asked
            if (literal.key is not None or not literal.holds)
            and literal.holds == self._satisfied(literal.node, signs)
        }
        return frozenset(
            number for number, clause in enumerate(self.clauses) if not true.isdisjoint(clause)
        )

    def _effect(
        self,
        asked: list[Literal],
        signs: dict[Node, bool],
        staying: Sequence[int] | frozenset[int],
        hoping: Sequence[int] | frozenset[int],
    ) -> Effect:
        fulfils = self._fulfilled(asked, signs)
        breaks = frozenset(
            i
            for i, literal in enumerate(self._universals)
            if literal in asked and not self._satisfied(literal.node, signs)
        )
        return Effect(fulfils, frozenset(staying) - fulfils, frozenset(hoping) - fulfils, breaks)


def _holds_without_key(literal: Literal, key: str) -> bool:
    """Whether a literal holds because a key is not there."""
    return literal.key == key and literal.holds == (literal.node is not None)


def _holds_without(clause: Clause, lacking: set[str]) -> bool:
    """Whether a clause holds because some keys are never there."""
    return any(
        literal.key in lacking and _holds_without_key(literal, literal.key) for literal in clause
    )


def _speaks_of_sort(literal: Literal, sort: KeySort) -> bool:
    """Whether undeclared keys of a sort are of the sort that a literal speaks of."""
    if literal.pattern is not None:
        return literal.pattern[0] in sort.found
    return not any(pattern in sort.found for pattern, _ in literal.but)
