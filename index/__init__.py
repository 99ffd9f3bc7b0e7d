"""From a vocabulary and a grammar to token masks.

`Vocabulary` holds the bytes of a model's tokens, `compile` puts a grammar on it, and the
`Constraint` it returns hands out one `Matcher` a sequence. For servers, `ConstraintCache` keeps
constraints between requests and `fill_masks` fills the masks of a batch. The trie and the mask
walks behind them are C++.
"""

from __future__ import annotations

from grammaton._core import Constraint, Matcher, fill_masks
from grammaton.index.cache import ConstraintCache
from grammaton.index.compile import compile
from grammaton.index.saved_constraint import load_constraint, save_constraint
from grammaton.index.vocabulary import Vocabulary

__all__ = [
    "Constraint",
    "ConstraintCache",
    "Matcher",
    "Vocabulary",
    "compile",
    "fill_masks",
    "load_constraint",
    "save_constraint",
]
