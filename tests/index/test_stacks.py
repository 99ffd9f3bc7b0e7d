"""`Matcher.stacks` and `Matcher.state`: what is still to be said, read back from its terms."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grammaton import Grammar, UnsatisfiableGrammar, Vocabulary, VocabularyError, compile
from grammaton._core import Constraint, Recognizer, TermStore
from grammaton.errors import GrammarError
from tests.strategies import ALPHABET, Plan, regular_plans, within_budget

BYTES = Vocabulary([*(bytes([i]) for i in range(256)), b""], eos_token_ids=256)

texts = st.text(st.sampled_from(ALPHABET), max_size=5)


class ResidualError(Exception):
    """A term has no form that a store can be given."""


def copied(constraint: Constraint, store: TermStore, term: int) -> int:
    """A term of a constraint in another store, by what `node` says of it."""
    node: Any = constraint.node(term)
    match node[0]:
        case "nothing":
            return store.NOTHING
        case "empty":
            return store.EMPTY
        case "chars":
            return store.chars(node[1])
        case "concat" | "union" | "intersect":
            parts = [copied(constraint, store, part) for part in node[1]]
            return int(getattr(store, node[0])(parts))
        case "repeat":
            return store.repeat(copied(constraint, store, node[1]), node[2], node[3])
        case "multiples":
            return store.multiples(node[1], node[2])
        case "json":
            return store.json(copied(constraint, store, node[1]))
    raise ResidualError(node[0])


@given(regular_plans(), texts, st.lists(texts, min_size=3, max_size=3))
@within_budget
def test_stacks_say_what_may_follow(plan: Plan, text: str, more: list[str]) -> None:
    store = TermStore()
    grammar = Grammar(store, plan.build(store))
    try:
        constraint = compile(grammar, BYTES)
    except UnsatisfiableGrammar:
        assume(False)
        raise
    matcher = constraint.matcher()
    prefix = ""
    for char in text:
        prefix += char * matcher.accept_bytes(char.encode())
    rest = TermStore()
    stacks = matcher.stacks()
    try:
        ways = [rest.concat([copied(constraint, rest, term) for term in stack]) for stack in stacks]
    except ResidualError:
        return
    recognizer = Recognizer(rest, rest.union(ways))
    for suffix in ("", *more):
        assert recognizer.accepts(suffix.encode()) == grammar.accepts(prefix + suffix)


def test_nesting_is_a_stack() -> None:
    grammar = Grammar.from_text('start ::= "(" start ")" | "[" start "]" | "x"')
    constraint = compile(grammar, BYTES)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b"([[")
    (stack,) = matcher.stacks()
    assert len(stack) == 3
    top: Any = constraint.node(stack[0])
    assert top[0] == "concat"
    start, close = top[1]
    call: Any = constraint.node(start)
    assert call[0] == "call"
    assert constraint.rule_name(call[1]) == "start"
    assert [constraint.node(term) for term in (close, *stack[1:])] == [
        ("chars", ((ord(char), ord(char)),)) for char in "]])"
    ]
    assert matcher.accept_bytes(b"x]])")
    (stack,) = matcher.stacks()
    assert [constraint.node(term) for term in stack] == [("empty",)]
    assert matcher.accept(256)
    assert matcher.stacks() == []


def test_parameters_are_shown() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}
    constraint = compile(Grammar.from_json_schema(schema, key_order="any"), BYTES)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'{"b":1,')
    (stack,) = matcher.stacks()
    calls = []
    todo = list(stack)
    while todo:
        node: Any = constraint.node(todo.pop())
        if node[0] == "call":
            calls.append(constraint.param_value(node[2]))
        elif node[0] in ("concat", "union"):
            todo += node[1]
    assert any(len(bits) == 1 for bits, _ in calls)


def test_keys_are_a_trie() -> None:
    """Of branches: what is left of a text after the last one is a lifted literal."""
    schema = {"properties": {"ab": {}, "ac": {}, "née": {}}, "additionalProperties": False}
    constraint = compile(Grammar.from_json_schema({"type": "object", **schema}), BYTES)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'{"')
    (stack,) = matcher.stacks()
    texts = set()
    todo = [(b"", stack[0])]
    while todo:
        text, term = todo.pop()
        node: Any = constraint.node(term)
        if node[0] == "keys":
            todo += [(text + bytes([byte]), after) for byte, after in node[1]]
        elif node[0] == "concat" and constraint.node(node[1][0])[0] == "json":
            _, tail = constraint.node(node[1][0])
            texts.add(text.decode() + literal_text(constraint, tail))
        else:
            texts.add(text.decode())
    assert texts == {"ab", "ac", "née"}


def literal_text(constraint: Constraint, term: Any) -> str:
    """The text of a term that is a chain of single characters."""
    kind, parts = constraint.node(term)
    chain: Any = parts if kind == "concat" else (term,)
    text = ""
    for character in chain:
        kind, ranges = constraint.node(character)
        ((low, high),) = cast(Any, ranges)
        assert low == high
        text += chr(low)
    return text


def test_many_ways_are_bounded() -> None:
    text = "start ::= " + " | ".join(f'a{i} "{i}"' for i in range(9))
    rules = "\n".join(f'a{i} ::= "a" a{i} "{i}" | "a"' for i in range(9))
    matcher = compile(Grammar.from_text(f"{text}\n{rules}"), BYTES).matcher()
    assert matcher.accept_bytes(b"aa")
    assert len(matcher.stacks()) >= 9
    assert len(matcher.stacks(limit=3)) == 3
    with pytest.raises(VocabularyError, match="limit"):
        matcher.stacks(limit=0)


def test_equal_states_are_equal_positions() -> None:
    constraint = compile(Grammar.from_regex("(ab|cd)*x{3}"), BYTES)
    first, second = constraint.matcher(), constraint.matcher()
    start = first.state
    assert first.accept_bytes(b"ab")
    assert second.accept_bytes(b"cdcd")
    assert first.state == second.state
    assert second.accept_bytes(b"x")
    assert first.state != second.state
    second.rollback(2)
    assert second.state == start == constraint.matcher().state


def test_terms_of_others_are_refused() -> None:
    constraint = compile(Grammar.from_regex("a"), BYTES)
    for ask in (constraint.node, constraint.rule_name, constraint.param_value):
        with pytest.raises(GrammarError):
            ask(1_000_000)


def test_only_what_the_next_byte_can_begin_is_entered() -> None:
    """Forty operands are forty frames each time one may begin, if all of them are entered."""
    names = [chr(0x41 + i) for i in range(26)] + [chr(0x61 + i) for i in range(14)]
    rules = [f'{"r" * (i + 1)} ::= "{name}" (start "]")?' for i, name in enumerate(names)]
    operands = " | ".join(f'{"r" * (i + 1)} "{name}!"?' for i, name in enumerate(names))
    text = "\n".join([f'start ::= operand ("+" operand)*\noperand ::= {operands}', *rules])
    constraint = compile(Grammar.from_text(text), BYTES)
    matcher = constraint.matcher()
    before = constraint.stats()["frames"]
    assert matcher.accept_bytes(b"A" * 20 + b"]" * 19 + b"+B+C")
    assert matcher.is_complete
    assert constraint.stats()["frames"] - before < 5 * 42
    assert not matcher.accept_bytes(b"]")
