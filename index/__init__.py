"""From a vocabulary and a grammar to token masks.

`Vocabulary` holds the bytes of a model's tokens, `compile` puts a grammar on it, and the
`Constraint` it returns hands out one `Matcher` a sequence. The trie and the mask walks behind them
are C++.
"""

from __future__ import annotations

from grammaton._core import Constraint, Matcher
from grammaton.index.compile import compile
from grammaton.index.vocabulary import Vocabulary

__all__ = ["Constraint", "Matcher", "Vocabulary", "compile"]
