"""The entry points: a schema to a term store and its start term, or into a given store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from grammaton.errors import GrammatonError, LimitExceeded
from grammaton.grammar.json_schema.document import DRAFT_4, Document, NeedsScope, read
from grammaton.grammar.json_schema.keywords import read_keywords
from grammaton.grammar.json_schema.nodes import Nodes
from grammaton.grammar.json_schema.normal import Normaliser
from grammaton.grammar.json_schema.number_texts import NumberTexts
from grammaton.grammar.json_schema.positions import INFINITE, contradiction
from grammaton.grammar.json_schema.rules import Lowering
from grammaton.grammar.json_schema.spelling import Escapes
from grammaton.grammar.json_schema.strings import StringTexts
from grammaton.grammar.json_schema.text import TextPieces, Whitespace
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
    from grammaton._core import TermStore

    store = TermStore() if limits is None else TermStore(limits)
    start = lower_json_schema(
        store,
        schema,
        key_order=key_order,
        whitespace=whitespace,
        additional_properties=additional_properties,
        ensure_ascii=ensure_ascii,
        escapes=escapes,
        resources=resources,
    )
    return store, start


def lower_json_schema(
    store: Any,
    schema: object,
    *,
    key_order: KeyOrder = "schema",
    whitespace: Whitespace = "flexible",
    additional_properties: bool | None = None,
    ensure_ascii: bool = False,
    escapes: Escapes = "any",
    resources: Mapping[str, object] | None = None,
) -> int:
    """As `grammar_from_json_schema`, in a given store; returns the start term."""
    if key_order not in ("schema", "any"):
        raise GrammatonError(f'key_order is "schema" or "any", not {key_order!r}')
    if additional_properties not in (None, True, False):
        raise GrammatonError(
            f"additional_properties is True, False or None, not {additional_properties!r}"
        )
    pieces = TextPieces(store, whitespace, escapes=escapes, ensure_ascii=ensure_ascii)
    try:
        root = read(schema)
        try:
            document = Document(root, resources)
            return _lowered(document, pieces, key_order, closed=additional_properties is False)
        except NeedsScope:
            document = Document(root, resources, tracking=True)
            return _lowered(document, pieces, key_order, closed=additional_properties is False)
    except RecursionError:
        raise LimitExceeded("the schema nests too deeply") from None


def _lowered(document: Document, pieces: TextPieces, key_order: KeyOrder, *, closed: bool) -> int:
    nodes = Nodes(document, read_keywords)
    normaliser = Normaliser(
        nodes,
        StringTexts(pieces),
        NumberTexts(pieces, plain_integers=document.draft <= DRAFT_4),
        closed=closed,
    )
    root = normaliser.position([nodes.root])
    normaliser.reach(root)
    lowering = Lowering(normaliser, pieces, any_order=key_order == "any")
    if root.height >= INFINITE:
        raise contradiction(root)
    if not lowering.alive(root, 0):
        raise LimitExceeded(
            "the schema's values nest too deeply to be indented; "
            'use whitespace="flexible" or "compact"'
        )
    return lowering.start(root)
