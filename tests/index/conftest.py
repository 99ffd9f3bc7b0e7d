"""What several tests of masks begin with."""

from __future__ import annotations

import pytest

from grammaton._core import Constraint, Matcher, TermStore, TokenIndex


@pytest.fixture
def matcher() -> Matcher:
    """A matcher over 70 logits (three words) in the middle of a text."""
    store = TermStore()
    index = TokenIndex([b"a", b"b", b"ab", b"</s>"], [True] * 3 + [False], [3], 70)
    start = store.repeat(store.literal(b"ab"), 1, None)
    made = Constraint(store, start, index).matcher()
    assert made.accept(2)
    return made
