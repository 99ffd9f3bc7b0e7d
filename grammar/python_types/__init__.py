"""Python types to grammars over JSON text, and the text back to values.

    shape        a type's schema and what builds its value
    scalars, constraints, combine    the shapes of scalars, bounds, containers
    plain        the types of the standard library
    models, rewrite    pydantic's types; imported when one is met
    reading      the entry points

A type becomes a JSON Schema, which `grammar.json_schema` enforces. It is written in draft 4's
words, where an integer has neither fraction nor exponent. Every text of the grammar builds a value;
what can't be enforced so is refused by its path in the types. Which JSON a type has is what
pydantic reads and writes for it, with or without pydantic.

Cost: some ten microseconds a field, and the schema's own.
"""

from __future__ import annotations

from grammaton.grammar.python_types.reading import Reader, Validators

__all__ = ["Reader", "Validators"]
