"""grammaton: constrained decoding. A grammar and a vocabulary give the exact mask of next tokens.

    Grammar      what text is allowed                      grammaton.Grammar.from_json_schema(…)
    Vocabulary   the bytes of a model's tokens             grammaton.Vocabulary.from_transformers(…)
    Constraint   grammar x vocabulary, shared by threads   grammaton.compile(grammar, vocabulary)
    Matcher      one sequence's position                   constraint.matcher()
    Engine       model, tokenizer and decode loop          grammaton.Engine(model, tokenizer)

Names are imported at first use, so that `import grammaton` costs next to nothing and never imports
torch or transformers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammaton._core import Constraint, Matcher
    from grammaton.engine import Engine
    from grammaton.errors import (
        GrammarError,
        GrammatonError,
        LimitExceeded,
        TokenRejected,
        UnsatisfiableGrammar,
        UnsupportedKeyword,
        UnsupportedType,
        VocabularyError,
    )
    from grammaton.grammar.grammar import Grammar
    from grammaton.index import Vocabulary, compile
    from grammaton.limits import Limits

__all__ = [
    "Constraint",
    "Engine",
    "Grammar",
    "GrammarError",
    "GrammatonError",
    "LimitExceeded",
    "Limits",
    "Matcher",
    "TokenRejected",
    "UnsatisfiableGrammar",
    "UnsupportedKeyword",
    "UnsupportedType",
    "Vocabulary",
    "VocabularyError",
    "compile",
]

_HOMES = {
    "Constraint": "grammaton._core",
    "Matcher": "grammaton._core",
    "Grammar": "grammaton.grammar.grammar",
    "Vocabulary": "grammaton.index",
    "compile": "grammaton.index",
    "Engine": "grammaton.engine",
    "Limits": "grammaton.limits",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'grammaton' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES.get(name, "grammaton.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
