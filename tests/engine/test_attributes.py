"""What the loop makes of a grammar's temperatures, budgets, captures and special tokens."""

from __future__ import annotations

from typing import Any

import pytest

from grammaton import Grammar
from grammaton.engine import Engine


@pytest.mark.parametrize("forced", ["off", "exact", "canonical"])
def test_temperature_budget_and_captures(engine: Engine, forced: Any) -> None:
    grammar = Grammar.from_lark(
        'start: word ";" free ";"\n'
        "word[capture, max_tokens=4, temperature=0]: /[a-z]+/\n"
        'free[capture="rest", max_tokens=3]: /[a-z]+/'
    )
    found = [
        engine.generate("say", grammar, temperature=30, seed=seed, forced=forced)
        for seed in range(4)
    ]
    for result in found:
        assert result.finish_reason == "grammar"
        word, rest, _ = result.text.encode().split(b";")
        assert result.captures == {"word": [word], "rest": [rest]}
        assert 2 <= len(result.token_ids) <= 9
    assert len({result.captures["word"][0] for result in found}) == 1
    assert len({result.captures["rest"][0] for result in found}) > 1


@pytest.mark.parametrize("forced", ["off", "exact", "canonical"])
def test_an_end_of_sequence_that_the_grammar_names(engine: Engine, forced: Any) -> None:
    (eos,) = engine.vocabulary.eos_token_ids
    name = next(name for name, i in engine.vocabulary.special_tokens.items() if i == eos)
    grammar = Grammar.from_lark(f'start: turn~2 "b"\nturn[capture]: "a" {name}')
    result = engine.generate("say", grammar, seed=1, forced=forced)
    assert result.token_ids.count(eos) == 2
    assert (result.text, result.finish_reason) == ("aab", "grammar")
    assert result.is_complete
    assert result.captures == {"turn": [b"a", b"a"]}


def test_a_cut_answer_with_tokens(engine: Engine) -> None:
    (eos,) = engine.vocabulary.eos_token_ids
    grammar = Grammar.from_lark(f"start: /a+/ <[{eos}]> /b*/")
    result = engine.generate("say", grammar, seed=1, max_tokens=40, temperature=5)
    assert result.is_complete == (eos in result.token_ids)
