"""The entry point: a schema to a term store and its start term."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from grammaton.errors import GrammatonError, LimitExceeded
from grammaton.grammar.json_schema.document import DRAFT_4, Document, NeedsScope, read
from grammaton.grammar.json_schema.keywords import read_keywords
from grammaton.grammar.json_schema.nodes import Nodes
from grammaton.grammar.json_schema.normal import MAX_POSITIONS, Normaliser
from grammaton.grammar.json_schema.positions import INFINITE, contradiction
from grammaton.grammar.json_schema.ready import Builders, Style, builders
from grammaton.grammar.json_schema.rules import Lowering
from grammaton.grammar.json_schema.simple import simple_positions
from grammaton.grammar.json_schema.spelling import Escapes, check_spelling
from grammaton.grammar.json_schema.text import Whitespace, check_whitespace
from grammaton.limits import Limits

if TYPE_CHECKING:
    from grammaton._core import TermStore

KeyOrder = Literal["schema", "any"]


def grammar_from_json_schema(
    schema: object,
    *,
    key_order: KeyOrder = "schema",
    whitespace: Whitespace = "flexible",
    additional_properties: bool | None = None,
    ensure_ascii: bool = False,
    escapes: Escapes = "any",
    resources: Mapping[str, object] | None = None,
    limits: Limits | None = None,
) -> tuple[TermStore, int]:
    """The texts of the JSON values that satisfy a schema.

    Args:
        schema: a schema as Python data (dict or bool), or its JSON text (str or UTF-8 bytes).
        key_order: "schema" writes declared properties in the order the schema mentions them, then
            undeclared required ones, then others; "any" allows every order.
        whitespace: "flexible" (bounded runs between tokens), "compact" (none) or the indent width
            of `json.dumps`.
        additional_properties: False closes every object whose schema has `properties` and does
            not say `additionalProperties`; None or True leave the standard's default, open.
        ensure_ascii: True lets no character beyond ASCII stand as itself, only as an escape.
        escapes: "any" spelling of a character, or the "canonical" one of `json.dumps` alone.
        resources: the schemas that references may lead to out of this one, by URI; as data or JSON
            text. Nothing is fetched.
        limits: bounds for the store.

    Returns:
        A term store and the start term in it.

    Raises:
        GrammarError: the schema is not JSON, is malformed, has a bad pattern or reference.
        UnsupportedKeyword: something that it asserts is not enforced.
        UnsatisfiableGrammar: no value satisfies it.
        LimitExceeded: it is too deep or too large.
        GrammatonError: an option has a value it can't have.
    """
    if key_order not in ("schema", "any"):
        raise GrammatonError(f'key_order is "schema" or "any", not {key_order!r}')
    if additional_properties not in (None, True, False):
        raise GrammatonError(
            f"additional_properties is True, False or None, not {additional_properties!r}"
        )
    check_whitespace(whitespace)
    check_spelling(escapes, ensure_ascii)
    closed = additional_properties is False
    any_order = key_order == "any"
    style = Style(whitespace, escapes, ensure_ascii)
    try:
        root = read(schema)
        try:
            document = Document(root, resources)
            made = builders(style, plain_integers=document.draft <= DRAFT_4, limits=limits)
            return _lowered(document, made, any_order=any_order, closed=closed)
        except NeedsScope:
            document = Document(root, resources, tracking=True)
            made = builders(style, plain_integers=document.draft <= DRAFT_4, limits=limits)
            return _lowered(document, made, any_order=any_order, closed=closed)
    except RecursionError:
        raise LimitExceeded("the schema nests too deeply") from None


def _lowered(
    document: Document,
    made: Builders,
    *,
    any_order: bool,
    closed: bool,
) -> tuple[TermStore, int]:
    nodes = Nodes(document, read_keywords)
    normaliser = Normaliser(
        nodes,
        made.strings,
        made.numbers,
        closed=closed,
        ready=made.positions,
        simple=simple_positions(
            document, made, any_order=any_order, closed=closed, most=MAX_POSITIONS
        ),
    )
    root = normaliser.position([nodes.root])
    normaliser.reach(root)
    lowering = Lowering(normaliser, made.pieces, any_order=any_order)
    if root.height >= INFINITE:
        raise contradiction(root, normaliser.expand)
    if not lowering.alive(root, 0):
        raise LimitExceeded(
            "the schema's values nest too deeply to be indented; "
            'use whitespace="flexible" or "compact"'
        )
    return made.store, lowering.start(root)
