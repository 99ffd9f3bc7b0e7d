"""Machines stepped by characters: the same language as the reference, and lengths that prove
themselves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammaton._core import CharacterMachine, TermStore
from grammaton.errors import GrammarError, LimitExceeded, UnsatisfiableGrammar
from grammaton.grammar.grammar import Grammar
from grammaton.limits import Limits
from tests.reference import ReferenceStore
from tests.reference_language import Language
from tests.strategies import ALPHABET, Plan, framed_plans, plans, within_budget


def step(machine: CharacterMachine, state: int, code: int) -> int | None:
    targets = [
        target
        for ranges, target in machine.arcs(state)
        if any(low <= code <= high for low, high in ranges)
    ]
    assert len(targets) <= 1
    return targets[0] if targets else None


def check_arcs(machine: CharacterMachine, state: int) -> None:
    """Sets are sorted, disjoint and of characters; targets are distinct; the length of a state is
    the one that those of the states after it make."""
    arcs = machine.arcs(state)
    assert len({target for _, target in arcs}) == len(arcs)
    for ranges, _ in arcs:
        assert all(low <= high for low, high in ranges)
        assert all(left[1] < right[0] for left, right in pairwise(ranges))
        assert ranges[-1][1] <= 0x10FFFF
        assert not any(low <= 0xDFFF and high >= 0xD800 for low, high in ranges)
    every = sorted(one for ranges, _ in arcs for one in ranges)
    assert all(left[1] < right[0] for left, right in pairwise(every))
    lengths = [1 + machine.shortest(target) for _, target in arcs]
    assert machine.shortest(state) == (0 if machine.is_final(state) else min(lengths))


@given(st.one_of(plans(), framed_plans()), st.data())
@within_budget
def test_the_language_is_the_reference_s(plan: Plan, data: st.DataObject) -> None:
    """Along a random path each character leads on exactly if the reference finds the text viable.

    A state whose length is 0 is final, and any other is one more than some state after it; checked
    at every state on the way, that makes the lengths those of shortest texts.
    """
    store, reference = TermStore(), ReferenceStore()
    start = plan.build(store)
    language = Language(reference, plan.build(reference))
    if language.is_empty:
        with pytest.raises(UnsatisfiableGrammar):
            CharacterMachine(store, start)
        return
    machine = CharacterMachine(store, start)
    state, text = machine.start, ""
    for _ in range(4):
        check_arcs(machine, state)
        assert machine.is_final(state) == language.accepts(text.encode())
        ways = {}
        for char in ALPHABET:
            after = step(machine, state, ord(char))
            assert (after is not None) == language.viable((text + char).encode()), text + char
            if after is not None:
                ways[char] = after
        if not ways:
            break
        char = data.draw(st.sampled_from(sorted(ways)))
        state, text = ways[char], text + char


@given(plans())
@within_budget
def test_a_shortest_text_is_as_short_as_the_reference_s(plan: Plan) -> None:
    store, reference = TermStore(), ReferenceStore()
    start = plan.build(store)
    language = Language(reference, plan.build(reference))
    if language.is_empty:
        return
    machine = CharacterMachine(store, start)
    assert machine.shortest(machine.start) <= len(language.completion(b"").decode())


def test_lengths_of_large_things() -> None:
    deep = Grammar.from_text('start ::= "(" start ")" | [a-z]{70000}')
    machine = CharacterMachine(deep.store, deep.start)
    assert machine.shortest(machine.start) == 70000
    state = machine.start
    for _ in range(3000):
        (state,) = (target for ranges, target in machine.arcs(state) if ranges[0][0] == ord("("))
    assert machine.shortest(state) == 73000
    endless = Grammar.from_text("start ::= [a]{4000000000} [b]{4000000000}")
    machine = CharacterMachine(endless.store, endless.start)
    with pytest.raises(LimitExceeded, match="4 billion"):
        machine.shortest(machine.start)


def test_keys_in_any_order() -> None:
    """Twelve keys, three of them required, written before their values: 4,096 sets of keys."""
    keys = [f"k{i}é" for i in range(12)]
    schema = {
        "properties": {key: {"type": "boolean"} for key in keys},
        "required": keys[3:6],
        "type": "object",
        "additionalProperties": False,
    }
    grammar = Grammar.from_json_schema(schema, key_order="any", whitespace="compact")
    machine = CharacterMachine(grammar.store, grammar.start)
    assert machine.shortest(machine.start) == len('{"k3é":true,"k4é":true,"k5é":true}')
    state = machine.start
    for char in '{"k7é":false,"\\u006b8':
        check_arcs(machine, state)
        after = step(machine, state, ord(char))
        assert after is not None
        state = after
    assert machine.shortest(state) == len('é":true,"k3é":true,"k4é":true,"k5é":true}')


def test_a_met_limit_leaves_nothing_half_known() -> None:
    schema = {
        "properties": {f"k{i}": {"type": "boolean"} for i in range(12)},
        "type": "object",
        "additionalProperties": False,
    }
    grammar = Grammar.from_json_schema(schema, key_order="any", whitespace="compact")
    limits = Limits(max_step_terms=2000)
    machine = CharacterMachine(grammar.store, grammar.start, limits)
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="max_step_terms = 2000"):
            machine.shortest(machine.start)


def test_states_and_starts_are_checked() -> None:
    store = TermStore()
    machine = CharacterMachine(store, store.literal(b"a"))
    for state in (10_000, 2**40):
        for ask in (machine.is_final, machine.arcs, machine.shortest):
            with pytest.raises(GrammarError, match="not of this machine"):
                ask(state)
    with pytest.raises(GrammarError, match="not of this store"):
        CharacterMachine(store, 10_000)
