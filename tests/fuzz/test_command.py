"""`run`: programs that are right, wrong, that crash and that hang."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from grammaton.errors import GrammarError, UnsatisfiableGrammar
from grammaton.fuzz.command import Disagreement, ProgramReport, TargetError, run
from grammaton.grammar.grammar import Grammar

WORDS = Grammar.from_regex("[a-z]+(?:,[a-z]+)*")
BRACKETS = Grammar.from_text('start ::= "(" start ")" | "[" start "]" | "x"')
QUICK: dict[str, Any] = {"cases": 40, "seconds": 30.0}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="targets are POSIX programs")


def only(report: ProgramReport) -> Disagreement:
    (found,) = report.disagreements
    return found


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


def test_a_program_that_is_right() -> None:
    report = run(WORDS, "grep -qxE [a-z]+(,[a-z]+)*", **QUICK)
    assert report.disagreements == ()
    assert report.sentences > 15
    assert report.near_misses > 5


def test_a_text_arrives_exactly(tmp_path: Path) -> None:
    """By path or as standard input, without a newline that is not the text's."""
    grammar = Grammar.from_choices(["é\n\r\n 漢", "", "\0"])
    code = "import sys; sys.exit(sys.stdin.buffer.read() not in {!r})"
    texts = ["é\n\r\n 漢".encode(), b"", b"\0"]
    assert run(grammar, python(code.format(texts)), **QUICK).disagreements == ()
    by_path = "import sys; sys.exit(open(sys.argv[1][2:], 'rb').read() not in {!r})"
    assert run(grammar, python(by_path.format(texts), "f={}"), **QUICK).disagreements == ()


def test_a_program_that_refuses_too_much() -> None:
    found = only(run(WORDS, "grep -qxE [a-z]+", **QUICK))
    assert (found.kind, found.is_sentence, found.text) == ("refuses", True, "a,a")
    assert found.detail == "exit status 1"
    assert found.count > 1


def test_a_program_that_accepts_too_much() -> None:
    found = only(run(WORDS, "grep -qxE [a-z,]*", **QUICK))
    assert (found.kind, found.is_sentence) == ("accepts", False)
    assert found.text in ("", ",")


def test_nested_texts_shrink_by_their_brackets() -> None:
    found = run(BRACKETS, ["sh", "-c", "! grep -qF '[('"], cases=40).disagreements
    assert [each.text for each in found if each.kind == "refuses"] == ["[(x)]"]


def test_a_program_that_crashes() -> None:
    code = "import os, sys; print('ouch', file=sys.stderr, flush=True); os.abort()"
    found = only(run(Grammar.from_regex("[b-d]{2}"), python(code), **QUICK))
    assert (found.kind, found.is_sentence, found.text) == ("crashes", True, "bb")
    assert found.detail == "SIGABRT: ouch"
    by_shell = ["sh", "-c", "kill -SEGV $$"]
    assert only(run(Grammar.literal("a"), by_shell, **QUICK)).detail == "SIGSEGV"
    says = ["sh", "-c", "exit 139"]
    assert only(run(Grammar.literal("a"), says, **QUICK)).detail == "SIGSEGV"


def test_a_program_that_hangs() -> None:
    """It is timed out with what it started, and reported; other texts are tried all the same."""
    began = time.monotonic()
    code = "grep -q , && { sleep 1000 & wait; } || exit 0"
    report = run(
        Grammar.from_regex("a(?:,a)?"), ["sh", "-c", code], cases=10, seconds=20, timeout=0.5
    )
    found = {each.kind: each for each in report.disagreements}
    assert found["hangs"].detail == "not done after 0.5 s"
    assert "," in found["hangs"].text
    assert time.monotonic() - began < 60
    assert found["accepts"].text == ""


def test_a_program_that_is_slow_once_is_reported_as_it_was(tmp_path: Path) -> None:
    """A hang that does not happen again is reported with the text on which it did."""
    marker = tmp_path / "was here"
    script = f"test -e '{marker}' || {{ touch '{marker}'; sleep 60; }}"
    found = only(run(Grammar.literal("abc"), ["sh", "-c", script], cases=1, timeout=0.5))
    assert (found.kind, found.text) == ("hangs", "abc")


def test_a_language_of_all_texts_has_sentences_alone() -> None:
    report = run(Grammar.from_regex(r"[\s\S]*"), "true", cases=10)
    assert report.near_misses == 0
    assert report.sentences > 0
    assert report.as_json()["disagreements"] == []


def test_the_same_seed_tries_the_same() -> None:
    first, again = (run(WORDS, "grep -qxE [a-z]+", cases=10, seed=4) for _ in range(2))
    assert first.disagreements == again.disagreements
    assert (first.sentences, first.near_misses) == (again.sentences, again.near_misses)


def test_what_cannot_be_run() -> None:
    for target, message in [
        ("no-such-program {}", "there is no program 'no-such-program'"),
        ("", "the target is empty"),
        ("grep 'a", "can't be split"),
    ]:
        with pytest.raises(TargetError, match=message):
            run(WORDS, target)
    for wrong in ({"cases": 0}, {"timeout": -1.0}, {"seconds": True}):
        arguments: dict[str, Any] = wrong
        with pytest.raises(TargetError, match="must be a number above 0"):
            run(WORDS, "true", **arguments)
    with pytest.raises(UnsatisfiableGrammar):
        run(Grammar.from_text("start ::= nothing"), "true")
    with pytest.raises(GrammarError, match="max_size = 0"):
        run(WORDS, "true", max_size=0)
