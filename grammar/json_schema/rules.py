"""Positions to rules: the last step, from the root outward.

Every position is lowered once for each depth (depth counts only when texts are indented). Scalars
stand where they are used; arrays and objects are rules, so recursion goes through them, and their
bodies are made from a queue, not by recursion in Python. Where several kinds meet, the union is a
rule of its own if an array or object is among them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from grammaton.grammar.json_schema.arrays import array_body
from grammaton.grammar.json_schema.distinct import DistinctValues
from grammaton.grammar.json_schema.normal import Normaliser
from grammaton.grammar.json_schema.objects import object_term
from grammaton.grammar.json_schema.positions import (
    INFINITE,
    ArrayShape,
    ObjectShape,
    Position,
    shape_height,
)
from grammaton.grammar.json_schema.text import MAX_INDENTED_DEPTH, TextPieces

_Shape = TypeVar("_Shape", ArrayShape, ObjectShape)


class Lowering:
    """Lowers the positions of one schema into one store.

    Args:
        normaliser: the schema's positions, all reached and settled.
        any_order: object members in any order, else in the schema's.
    """

    def __init__(self, normaliser: Normaliser, pieces: TextPieces, *, any_order: bool) -> None:
        self.pieces = pieces
        self.store = pieces.store
        self.strings = normaliser.strings
        self.distinct = DistinctValues(pieces, normaliser.strings, normaliser.numbers)
        self.any_order = any_order
        self.indented = pieces.indent is not None
        self.deepest = MAX_INDENTED_DEPTH if self.indented else INFINITE - 1
        self._simple = normaliser.simple
        self._terms: dict[tuple[Position, int], int] = {}
        self._queue: deque[Callable[[], None]] = deque()

    def start(self, root: Position) -> int:
        """The term of the whole text."""
        term = self.term(root, 0)
        while True:
            while self._queue:
                self._queue.popleft()()
            if self._simple is None or not self._simple.define(self._lower):
                return term

    def _lower(self, position: Position) -> int:
        return self.term(position, 0)

    def later(self, define: Callable[[], None]) -> None:
        """Queues the definition of a rule."""
        self._queue.append(define)

    def highest(self, depth: int) -> int:
        """The height of the values that can stand at a depth."""
        return self.deepest - depth if self.indented else self.deepest

    def alive(self, position: Position, depth: int) -> bool:
        """Whether a value of the position can stand at this depth."""
        return position.height <= self.highest(depth)

    def term(self, position: Position, depth: int) -> int:
        """The term of a value of a position."""
        if not self.indented:
            if position.term is None:
                position.term = self._make(position, 0)
            return position.term
        key = (position, depth)
        term = self._terms.get(key)
        if term is None:
            term = self._terms[key] = self._make(position, depth)
        return term

    def _make(self, position: Position, depth: int) -> int:
        if position.simple is not None:
            assert self._simple is not None
            return self._simple.term(position.simple, self._lower)
        parts = list(position.scalars)
        scalars = len(parts)
        highest = self.highest(depth)
        for array in position.arrays:
            if shape_height(array) <= highest:
                parts.append(self._shape(array, depth, self._array))
        for shape in position.objects:
            if shape_height(shape) <= highest:
                parts.append(self._shape(shape, depth, self._object))
        if len(parts) == 1:
            return parts[0]
        union = int(self.store.union(parts))
        return self.pieces.frame("VALUE", union) if len(parts) > scalars else union

    def _shape(self, shape: _Shape, depth: int, make: Callable[[_Shape, int], int]) -> int:
        if self.indented:
            return make(shape, depth)
        if shape.term is None:
            shape.term = make(shape, depth)
        return shape.term

    def _array(self, shape: ArrayShape, depth: int) -> int:
        rule = self.store.rule("ARRAY")
        if shape.unique is not None:
            self.store.scope(rule)
        self.later(lambda: self.store.define(rule, array_body(self, shape, depth)))
        return int(self.store.concat([self.pieces.open("["), self.store.call(rule)]))

    def _object(self, shape: ObjectShape, depth: int) -> int:
        return object_term(self, shape, depth)
