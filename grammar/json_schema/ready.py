"""What nearly every schema needs, made once for each way of writing texts.

Strings, numbers, booleans, null, and any value, array or object are *ready*: their terms stand at
the beginning of a store of which every schema's store is a copy, under the same ids. So neither
making them nor normalising them (`TermStore.keep`) is paid by a schema; the copy takes about 5 us,
where making them takes 150.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from grammaton.grammar.json_schema.document import Document
from grammaton.grammar.json_schema.keywords import read_keywords
from grammaton.grammar.json_schema.nodes import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Nodes,
)
from grammaton.grammar.json_schema.normal import Normaliser
from grammaton.grammar.json_schema.number_texts import NumberTexts
from grammaton.grammar.json_schema.positions import Position
from grammaton.grammar.json_schema.rules import Lowering
from grammaton.grammar.json_schema.spelling import Escapes
from grammaton.grammar.json_schema.strings import StringTexts
from grammaton.grammar.json_schema.text import TextPieces, Whitespace
from grammaton.limits import Limits

if TYPE_CHECKING:
    from grammaton._core import TermStore

_KINDS = (NULL, BOOLEAN, STRING, INTEGER, NUMBER, ARRAY, OBJECT, ANYTHING)


class Style(NamedTuple):
    """How texts are written; see `text` and `spelling`. Checked."""

    whitespace: Whitespace
    escapes: Escapes
    ensure_ascii: bool


class Builders(NamedTuple):
    """A store that begins with what is ready, and what builds the rest in it.

    `positions` are those of all values of some kinds, settled and lowered, `ready_terms` their
    terms. There are none where texts are indented, since a term then depends on the depth.
    """

    store: TermStore
    pieces: TextPieces
    strings: StringTexts
    numbers: NumberTexts
    positions: Mapping[int, Position]
    ready_terms: dict[int, int]


def builders(style: Style, *, plain_integers: bool, limits: Limits | None) -> Builders:
    """Builders in a store of their own.

    Args:
        plain_integers: see `NumberTexts`.
        limits: bounds for the store.
    """
    ready = _ready(style, plain_integers)
    store = ready.store.copy() if limits is None else ready.store.copy(limits)
    pieces = ready.pieces.on(store)
    strings, numbers = ready.strings.on(pieces), ready.numbers.on(pieces)
    return Builders(store, pieces, strings, numbers, ready.positions, ready.ready_terms)


@lru_cache(maxsize=16)
def _ready(style: Style, plain_integers: bool) -> Builders:
    from grammaton._core import TermStore

    store = TermStore()
    pieces = TextPieces(
        store, style.whitespace, escapes=style.escapes, ensure_ascii=style.ensure_ascii
    )
    strings = StringTexts(pieces)
    numbers = NumberTexts(pieces, plain_integers=plain_integers)
    nodes = Nodes(Document(True), read_keywords)
    normaliser = Normaliser(nodes, strings, numbers, closed=False)
    lowering = Lowering(normaliser, pieces, any_order=False)
    positions, terms = {}, {}
    for kinds in _KINDS:
        node = nodes.made("", kinds)
        node.only_kinds, node.trivial = True, kinds == ANYTHING
        position = normaliser.of(node)
        normaliser.reach(position)
        if pieces.indent is None:
            terms[kinds] = lowering.start(position)
            positions[kinds] = position
    store.keep()
    return Builders(store, pieces, strings, numbers, positions, terms)
