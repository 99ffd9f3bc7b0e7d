"""Sorts of keys put together, against each set of patterns that a key may have."""

from __future__ import annotations

from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from grammaton.grammar.json_schema.key_sorts import put_together
from grammaton.grammar.json_schema.strings import KeySort

PATTERNS = ("a", "b", "c", "d")
ALL = [
    frozenset(some)
    for some in chain.from_iterable(combinations(PATTERNS, size) for size in range(5))
]


@given(st.dictionaries(st.sampled_from(ALL), st.integers(0, 3), min_size=1))
def test_each_key_keeps_its_value(values: dict[frozenset[str], int]) -> None:
    """Keys without any pattern may be there although no sort says so; others may not."""
    sorts = [
        (
            KeySort(
                frozenset(),
                found=tuple(p for p in PATTERNS if p in found),
                missing=tuple(p for p in PATTERNS if p not in found),
            ),
            value,
        )
        for found, value in values.items()
    ]
    together = put_together(sorts)
    assert len(together) <= len(sorts)
    for found in {*values, frozenset[str]()}:
        taken = {
            value
            for sort, value in together
            if found.issuperset(sort.found) and found.isdisjoint(sort.missing)
        }
        assert taken == ({values[found]} if found in values else set())
