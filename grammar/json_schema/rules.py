"""Positions to rules: the last step, from the root outward.

Every position is lowered once for each depth (depth counts only when texts are indented). Scalars
stand where they are used; arrays and objects are rules, so recursion goes through them, and their
bodies are made from a queue, not by recursion in Python. Where several kinds meet, the union is a
rule of its own if an array or object is among them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from grammaton.grammar.json_schema.arrays import array_body
from grammaton.grammar.json_schema.normal import Normaliser
from grammaton.grammar.json_schema.objects import object_term
from grammaton.grammar.json_schema.positions import (
    INFINITE,
    ArrayShape,
    Position,
    Shape,
    shape_height,
)
from grammaton.grammar.json_schema.text import MAX_INDENTED_DEPTH, TextPieces


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
        self.any_order = any_order
        self.indented = pieces.indent is not None
        self._deepest = MAX_INDENTED_DEPTH if self.indented else INFINITE - 1
        self._terms: dict[tuple[Position, int], int] = {}
        self._params: dict[tuple[int, ...], int] = {(): 0}
        self._queue: deque[Callable[[], None]] = deque()

    def start(self, root: Position) -> int:
        """The term of the whole text."""
        term = self.term(root, 0)
        while self._queue:
            self._queue.popleft()()
        return term

    def later(self, define: Callable[[], None]) -> None:
        """Queues the definition of a rule."""
        self._queue.append(define)

    def param(self, counters: tuple[int, ...]) -> int:
        """The parameter with these counters and no bits."""
        param = self._params.get(counters)
        if param is None:
            param = self._params[counters] = self.store.param(counters=counters)
        return param

    def alive(self, position: Position, depth: int) -> bool:
        """Whether a value of the position can stand at this depth."""
        return position.height + (depth if self.indented else 0) <= self._deepest

    def term(self, position: Position, depth: int) -> int:
        """The term of a value of a position."""
        if not self.indented:
            depth = 0
        key = (position, depth)
        term = self._terms.get(key)
        if term is None:
            term = self._terms[key] = self._make(position, depth)
        return term

    def _make(self, position: Position, depth: int) -> int:
        parts = list(position.scalars)
        arrays = [shape for shape in position.arrays if self._fits(shape, depth)]
        objects = [shape for shape in position.objects if self._fits(shape, depth)]
        shared = len(parts) + len(arrays) + len(objects) > 1 and bool(arrays or objects)
        parts.extend(self._array(shape, depth) for shape in arrays)
        parts.extend(object_term(self, shape, depth) for shape in objects)
        if len(parts) == 1:
            return parts[0]
        union = int(self.store.union(parts))
        return self.pieces.frame("VALUE", union) if shared else union

    def _fits(self, shape: Shape, depth: int) -> bool:
        return shape_height(shape) + depth <= self._deepest

    def _array(self, shape: ArrayShape, depth: int) -> int:
        rule = self.store.rule("ARRAY")
        self.later(lambda: self.store.define(rule, array_body(self, shape, depth)))
        return int(self.store.concat([self.pieces.open("["), self.store.call(rule)]))
