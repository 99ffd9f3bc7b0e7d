"""Simple schemas: those that the core reads and lowers by itself.

A schema is *simple* when all it asserts is `type`, `properties`, `required`,
`additionalProperties`, `patternProperties` of keys apart, `items` (one schema), `minItems`,
`maxItems`, lengths, a `pattern`, a
`format` with a term, bounds, `multipleOf`, strings by `enum` or `const`, a choice between simple
schemas of different kinds or, by `anyOf`, of arrays and objects, or a `$ref` within the document's
own resource. Nineteen schemas of twenty are, and nothing about them needs the algebra of normal.py.
Their positions have a number in the core instead of scalars and shapes, which are filled in only
where Python has to look inside: beside other schemas of the same value, or for an error. The
schemas that are not simple are read here, so simple ones and others may be members of each other;
what both say the same of, they say in the same terms.

Simple schemas are read only where texts are written in the usual way (no indentation, any spelling
of strings) and references depend on nothing but their place.

Cost: about a microsecond for a schema, against 15 in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from grammaton.errors import GrammarError
from grammaton.grammar.json_schema.document import DRAFT_6, DRAFT_7, Document
from grammaton.grammar.json_schema.formats import (
    IRREGULAR_FORMATS,
    OLD_HOSTNAME,
    SUPPORTED_FORMATS,
)
from grammaton.grammar.json_schema.keywords import TYPES, asserting_keywords
from grammaton.grammar.json_schema.nodes import NUMBER, Node
from grammaton.grammar.json_schema.numbers import Bounds, exact
from grammaton.grammar.json_schema.positions import Position, settle
from grammaton.grammar.json_schema.ready import Builders
from grammaton.grammar.json_schema.strings import KeySort, StringFacts, StringTexts


class SimplePositions:
    """The simple schemas of one document and their positions.

    Args:
        document: none of whose schemas is read yet; its root is a dict.
        made: where terms are made, and what is ready.
        any_order, closed: as in `grammar_from_json_schema`.
        most: how many there may be.
    """

    def __init__(
        self, document: Document, made: Builders, *, any_order: bool, closed: bool, most: int
    ) -> None:
        from grammaton._core import SimpleSchemas

        pieces, resource, root = made.pieces, document.resource, document.root
        assert isinstance(root, dict)
        self._resource = resource
        self._strings = made.strings
        self._numbers = made.numbers
        self._positions: dict[int, Position] = {}
        self._core = SimpleSchemas(
            made.store,
            root,
            keywords=_keywords(resource.draft, resource.lacking),
            types=TYPES,
            formats=_formats(resource.draft),
            identity=resource.id_keyword,
            lone_references=resource.draft <= DRAFT_7,
            pieces=(
                *(pieces.quote, pieces.colon, pieces.quote_colon, pieces.comma(0), pieces.space),
                *(pieces.open("{"), pieces.close_brace, pieces.open("["), pieces.close_bracket),
                pieces.any_string_rest,
            ),
            key_sorts=partial(_key_sorts, made.strings),
            ready=made.ready_terms,
            any_order=any_order,
            closed=closed,
            most=most,
        )

    def of(self, node: Node) -> Position | None:
        """The position of a simple schema; None for others, and for those that only say which
        kinds of values there are."""
        if node.id < 0 or node.resource is not self._resource:
            return None
        number = self._core.read(node.raw, node)
        if number is None:
            return None
        position = self._positions.get(number)
        if position is None:
            position = self._positions[number] = Position((node,))
            position.simple = number
            if self._core.alive(number):
                position.height = 1
        return position

    def reach(self, simple: int, meet: Callable[[dict[str, Any], str], Position]) -> None:
        """Reads what is reached from a schema through simple ones; `meet` gives the positions of
        others, by what they are and their pointer."""
        self._core.reach(
            simple, meet=meet, string=self._string, number=self._number, values=self._values
        )

    def settle(self, found: dict[Position, None]) -> None:
        """Decides what can hold a value: simple schemas and others in turns, until both know."""
        known = 0
        while (count := self._core.settle()) > known:
            known = count
            for number, position in self._positions.items():
                if position.height > 1 and self._core.alive(number):
                    position.height = 1
            settle(reversed(found))

    def term(self, simple: int, lower: Callable[[Position], int]) -> int:
        """The term of a schema; `lower` gives that of a position."""
        return self._core.term(simple, lower)

    def define(self, lower: Callable[[Position], int]) -> bool:
        """Defines the rules that terms made so far call; False when there were none."""
        return self._core.define(lower)

    def _string(
        self, least: int, most: int | None, name: str | None, pattern: str | None, pointer: str
    ) -> int:
        patterns = () if pattern is None else (pattern,)
        for each in patterns:
            self._strings.pattern_at(each, f"{pointer}/pattern")
        formats = () if name is None else (name,)
        return self._strings.string(StringFacts(least, most, patterns, formats))

    def _number(
        self,
        kinds: int,
        low: float | None,
        high: float | None,
        above: float | None,
        below: float | None,
        step: float | None,
    ) -> int:
        bounds = Bounds(low=exact(low), high=exact(high), step=exact(step))
        if above is not None:
            bounds = bounds.meet(Bounds(low=exact(above), low_open=True))
        if below is not None:
            bounds = bounds.meet(Bounds(high=exact(below), high_open=True))
        return self._numbers.number(bounds, "number" if kinds == NUMBER else "integer")

    def _values(self, values: list[str]) -> int:
        return self._strings.values(tuple(dict.fromkeys(values)))


def simple_positions(
    document: Document, made: Builders, *, any_order: bool, closed: bool, most: int
) -> SimplePositions | None:
    """The simple schemas of a document; None where none are looked for."""
    free = made.pieces.spelling.is_free and made.pieces.indent is None
    if not free or document.tracking or not isinstance(document.root, dict):
        return None
    return SimplePositions(document, made, any_order=any_order, closed=closed, most=most)


def _key_sorts(
    strings: StringTexts, patterns: list[str], keys: list[str], is_open: bool
) -> list[tuple[int, int]] | None:
    """See `SimpleSchemas.key_sorts` in the core; None for a wrong pattern, too."""
    try:
        if any(strings.found(pattern, key) for pattern in patterns for key in keys):
            return None
        sorts = [KeySort(frozenset(keys))]
        for pattern in patterns:
            split = []
            for sort in sorts:
                split.append(sort._replace(found=(*sort.found, pattern)))
                split.append(sort._replace(missing=(*sort.missing, pattern)))
            sorts = [sort for sort in split if strings.has_keys(sort)]
            if any(len(sort.found) > 1 for sort in sorts):
                return None
    except GrammarError:
        return None
    return [
        (patterns.index(sort.found[0]) if sort.found else -1, strings.key_rest(sort))
        for sort in sorts
        if sort.found or is_open
    ]


@cache
def _keywords(draft: int, lacking: frozenset[str]) -> dict[str, int]:
    """The keywords that assert something, by the core's number for them, 0 for the others."""
    from grammaton._core import SimpleSchemas

    known = SimpleSchemas.keywords()
    return {word: known.get(word, 0) for word in asserting_keywords(draft, lacking)}


@cache
def _formats(draft: int) -> dict[str, str | None]:
    """The formats that assert something, by the name of their language; None: it has no term."""
    formats = {name: None if name in IRREGULAR_FORMATS else name for name in SUPPORTED_FORMATS}
    if draft <= DRAFT_6:
        formats["hostname"] = OLD_HOSTNAME
    return formats
