"""Contents of strings: draft 7's `contentEncoding` and `contentMediaType`.

Draft 7 (validation, section 8) lets them assert, and so they do there: `base64` (RFC 4648, section
4, without line breaks; a format like others), and `application/json`: the string is a JSON text
(RFC 8259). Those nest, so that is no regular language but a rule of its own, which stands alone,
not beside formats, patterns or lengths. Its white space is bounded as in `text`, and it has no lone
surrogates. Other encodings and media types, and other drafts, assert nothing. Cost: 30 terms.
"""

from __future__ import annotations

from grammaton.grammar.json_schema.text import MAX_WHITESPACE, TextPieces
from grammaton.grammar.regex import pattern_term

JSON_CONTENT = "JSON text"
"""The name of that language beside the formats' names."""

_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?"


def json_content_frame(pieces: TextPieces) -> int:
    """A string's body and closing quote, the string being any JSON text."""
    store = pieces.store
    concat, union = store.concat, store.union

    def text(pattern: str) -> int:
        return pieces.lift(pattern_term(store, pattern, search=False))

    space = text(f"[ \\t\\n\\r]{{0,{MAX_WHITESPACE}}}")
    quote = store.literal(b'"')
    characters = store.json(store.repeat(pieces.any_char, 0, None))
    string = pieces.lift(concat([quote, characters, quote]))
    rule = store.rule("JSON_TEXT")
    value = store.call(rule)

    def members(opening: str, member: int, closing: str) -> int:
        more = store.repeat(concat([text(","), space, member]), 0, None)
        filled = concat([member, more])
        return int(concat([text(opening), space, union([store.EMPTY, filled]), text(closing)]))

    item = concat([value, space])
    pair = concat([string, space, text(":"), space, value, space])
    scalars = [string, text(_NUMBER), text("true|false|null")]
    store.define(rule, union([*scalars, members(r"\[", item, r"\]"), members(r"\{", pair, r"\}")]))
    return int(pieces.string_frame("JSON TEXT", concat([space, value, space])))
