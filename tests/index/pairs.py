"""The same grammar on the same vocabulary twice: compiled, and in the reference.

A *pair* is a compiled constraint and the reference's; `drawn_pair` makes one from plans and rejects
the example when the vocabulary can spell no text (after checking that both say so).
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import reject
from hypothesis import strategies as st

from grammaton._core import Constraint, Matcher, TermStore, TokenIndex
from grammaton.errors import UnsatisfiableGrammar
from tests.reference import (
    ReferenceConstraint,
    ReferenceIndex,
    ReferenceMatcher,
    ReferenceStore,
    mask_to_ids,
)
from tests.strategies import Plan, VocabularyPlan, plans, vocabularies


@dataclass(frozen=True)
class Pair:
    """A compiled constraint and the reference's."""

    plan: Plan
    vocabulary: VocabularyPlan
    index: TokenIndex
    constraint: Constraint
    expected: ReferenceConstraint

    def matchers(self) -> tuple[Matcher, ReferenceMatcher]:
        """A fresh matcher of each."""
        return self.constraint.matcher(), self.expected.matcher()


def constrain(plan: Plan, index: TokenIndex) -> Constraint:
    """The plan as a compiled constraint on an index."""
    store = TermStore()
    return Constraint(store, plan.build(store), index)


def pair_of(plan: Plan, vocabulary: VocabularyPlan, index: TokenIndex | None = None) -> Pair | None:
    """Both constraints; None when nothing can be spelled, and then both must have said so."""
    index = index or TokenIndex(*vocabulary.arguments())
    reference = ReferenceStore()
    start = plan.build(reference)
    try:
        expected = ReferenceConstraint(reference, start, ReferenceIndex(*vocabulary.arguments()))
    except UnsatisfiableGrammar:
        with pytest.raises(UnsatisfiableGrammar):
            constrain(plan, index)
        return None
    return Pair(plan, vocabulary, index, constrain(plan, index), expected)


def drawn_pair(data: st.DataObject, kinds: st.SearchStrategy[Plan] | None = None) -> Pair:
    """A pair of a drawn plan on a vocabulary drawn to suit it."""
    plan = data.draw(kinds if kinds is not None else plans(), label="plan")
    pair = pair_of(plan, data.draw(vocabularies(plan), label="vocabulary"))
    return pair if pair is not None else reject()


def walk(data: st.DataObject, pair: Pair, longest: int = 8) -> tuple[Matcher, ReferenceMatcher]:
    """Matchers after some random tokens, checked for equal masks on the way."""
    matcher, expected = pair.matchers()
    for _ in range(data.draw(st.sampled_from(range(longest, -1, -1)), label="steps")):
        allowed = sorted(expected.allowed() - set(pair.vocabulary.eos_ids))
        if not allowed:
            break
        token_id = data.draw(st.sampled_from(allowed), label="token")
        assert mask_to_ids(matcher.mask()) == expected.allowed(), expected.text
        assert matcher.accept(token_id)
        assert expected.accept(token_id)
    return matcher, expected
