"""grammaton: constrained decoding. A grammar and a vocabulary give the exact mask of next tokens.

    Grammar      what text is allowed                      grammaton.Grammar.from_json_schema(…)
    Vocabulary   the bytes of a model's tokens             grammaton.Vocabulary.from_transformers(…)
    Constraint   grammar x vocabulary, shared by threads   grammaton.compile(grammar, vocabulary)
    Matcher      one sequence's position                   constraint.matcher()
    fill_masks   the masks of a batch, on several threads  grammaton.fill_masks(matchers, out)
    Engine       model, tokenizer and decode loop          grammaton.Engine(model, tokenizer)

Names are imported at first use, so that `import grammaton` costs next to nothing and never imports
torch or transformers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammaton._core import Constraint, Matcher, fill_masks
    from grammaton.engine import Engine
    from grammaton.errors import (
        BatchLimitExceeded,
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
    from grammaton.grammar.lark.indenter import Indenter
    from grammaton.index import (
        ConstraintCache,
        Vocabulary,
        compile,
        load_constraint,
        save_constraint,
    )
    from grammaton.limits import Limits

__all__ = [
    "BatchLimitExceeded",
    "Constraint",
    "ConstraintCache",
    "Engine",
    "Grammar",
    "GrammarError",
    "GrammatonError",
    "Indenter",
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
    "fill_masks",
    "load_constraint",
    "save_constraint",
]

_HOMES = {
    "Constraint": "grammaton._core",
    "Matcher": "grammaton._core",
    "fill_masks": "grammaton._core",
    "ConstraintCache": "grammaton.index",
    "Grammar": "grammaton.grammar.grammar",
    "Indenter": "grammaton.grammar.lark.indenter",
    "Vocabulary": "grammaton.index",
    "compile": "grammaton.index",
    "load_constraint": "grammaton.index",
    "save_constraint": "grammaton.index",
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
