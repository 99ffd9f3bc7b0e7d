"""JSON Schema to a grammar over JSON text.

    document    the schema as read: drafts, references
    keywords    what each schema says; what is refused
    text        JSON text: white space, brackets, frames; spelling: escapes
    numbers     exact values, bounds
    strings, formats, number_texts, multiples    scalar languages; idn, regex_format: two formats
    values      enum and const
    positions, normal    conjunctions; branches, disjoint, negation, pruning, unevaluated: choices
    merge, merge_objects    branches, by kind
    clauses, keeper, kept    choices about objects that are kept, not multiplied out
    arrays, objects, rules       positions to rules
    ready       what nearly every schema needs, made once
    simple      the schemas that need none of this, read and lowered in the core
    lower       the entry point

What is enforced is enforced exactly, with respect to this text language: JSON (RFC 8259) with
white space as the option says, numbers as `number_texts` states, no lone surrogates, and no
declared property twice. What asserts something and is not enforced is refused with its JSON
Pointer.

Cost: linear in the schema's distinct positions, about 1 us for a simple one and 15 for another, 0.1
ms for most schemas of 700 bytes; recursion and sharing cost nothing twice.
"""

from __future__ import annotations

from grammaton.grammar.json_schema.lower import (
    KeyOrder,
    grammar_from_json_schema,
)
from grammaton.grammar.json_schema.spelling import Escapes
from grammaton.grammar.json_schema.text import Whitespace

__all__ = ["Escapes", "KeyOrder", "Whitespace", "grammar_from_json_schema"]
