"""The dialect of ECMA-262: against node where it is, and where the standard differs from Python.

`dialects.json` is a table of patterns that the two dialects do not read alike, with what each makes
of a text: true or false as a search finds something, null where the pattern is wrong.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from grammaton import Grammar, GrammarError
from grammaton.fuzz.ecma_patterns import Ecma, Node
from grammaton.fuzz.patterns import asks_re
from grammaton.grammar.regex import Dialect

TABLE: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "cases" / "regex" / "dialects.json").read_text("utf-8")
)
EVERY_ROW = pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['why']}: {row['pattern']}")
CONSTRUCTS = {
    *("(?:", "(?=", "(?!", "(?<=", "(?<!", "|", "[", "[^", ".", "^", "$", "\\b", "\\B"),
    *("\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\p{", "\\P{", "\\x", "\\u{", "\\ud83d\\ude00"),
    *("?", "*", "+", "{2}", "{1,2}", "{2,}", "??", "*?", "+?", "{2}?"),
}


@pytest.fixture(scope="module")
def node() -> Node:
    if not Node.is_there():
        pytest.skip("there is no node: ECMA patterns are NOT compared with RegExp")
    return Node()


def found(row: dict[str, Any], dialect: Dialect) -> bool | None:
    """What a grammar makes of a row."""
    try:
        grammar = Grammar.from_regex(
            row["pattern"], dialect=dialect, search=True, flags=row.get("flags", "")
        )
    except GrammarError:
        return None
    return grammar.accepts(row["text"])


@EVERY_ROW
def test_each_dialect_says_what_the_table_says(row: dict[str, Any]) -> None:
    assert found(row, "ecma") == row["ecma"]
    assert found(row, "python") == row["python"]


@EVERY_ROW
def test_the_table_says_what_python_says(row: dict[str, Any]) -> None:
    try:
        answer = asks_re(row["pattern"], flags=row.get("flags", ""), search=True)(row["text"])
    except re.error:
        assert row["python"] is None
    else:
        assert answer == row["python"]


@EVERY_ROW
def test_the_table_says_what_node_says(row: dict[str, Any], node: Node) -> None:
    answer = node.answers(row["pattern"], [row["text"]], flags=row.get("flags", ""))
    assert row["ecma"] == (None if isinstance(answer, str) else answer[0])


def test_every_construct_agrees_with_node(node: Node) -> None:
    """Cases of the fuzz target, with a look at what they cover."""
    target = Ecma()
    inside = outside = taken = 0
    refused: list[str] = []
    covered: set[str] = set()
    for number in range(800):
        case = target.draw(Random(f"node {number}"))
        pattern, options = case["pattern"], {"flags": case["flags"], "search": case["search"]}
        answers = node.answers(pattern, case["texts"], **options)
        if isinstance(answers, str):
            assert target.check(case) == 0  # refused here too
            continue
        try:
            grammar = Grammar.from_regex(pattern, dialect="ecma", **options)
        except GrammarError as error:
            refused.append(error.message)
            continue
        taken += 1
        covered |= {construct for construct in CONSTRUCTS if construct in pattern}
        for text, match in zip(case["texts"], answers, strict=True):
            assert grammar.accepts(text) == match, (pattern, options, text)
            inside += match
            outside += not match
    assert covered == CONSTRUCTS
    assert inside >= 0.3 * (inside + outside)
    assert outside >= 0.3 * (inside + outside)
    assert len(refused) <= 0.1 * taken
    assert all("not supported" in message for message in refused)


def test_node_is_asked_about_texts_as_they_are(node: Node) -> None:
    assert node.answers("^.$", ["😀", "漢", "ab", "\n"]) == [True, True, False, False]
    assert node.answers("a|b$", ["a", "ab", "b"], search=False) == [True, False, True]
    assert node.answers("\\B", ["a😀K"]) == [False]  # never between two surrogates
    assert isinstance(node.answers("(", [""]), str)
    endless = node.answers("(?:a|a)*b", ["ab", "a" * 60, "b"], search=False, seconds=0.2)
    assert endless == [True]
