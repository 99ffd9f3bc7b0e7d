"""Coverage-guided fuzzing: bytes as random numbers, and a finding as it is printed."""

from __future__ import annotations

import json
import shlex

import pytest

from grammaton.fuzz.__main__ import TARGETS
from grammaton.fuzz.coverage import BytesRandom, check_bytes, main
from grammaton.grammar.grammar import Grammar


def test_bytes_are_the_random_numbers() -> None:
    rng = BytesRandom(bytes([5, 1, 0, 0x80, 7]))
    assert rng.getrandbits(3) == 5
    assert rng.choice("abcd") == "b"
    assert rng.random() == 0.5
    assert rng.randrange(8) == 7
    assert [rng.randrange(100), rng.random(), rng.choice("xy")] == [0, 0.0, "x"]


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_draws_from_any_bytes(name: str) -> None:
    for data in (b"", b"\0" * 50, b"\xff" * 4000, bytes(range(256))):
        check_bytes(TARGETS[name], data)


def test_a_finding_is_printed_with_its_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    accepts = Grammar.accepts
    monkeypatch.setattr(Grammar, "accepts", lambda self, text: not accepts(self, text))
    with pytest.raises(SystemExit):
        check_bytes(TARGETS["patterns"], b"\x80" * 64)  # bytes that draw a pattern that is taken
    line = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert line[:5] == ["python", "-m", "grammaton.fuzz", "--target", "patterns"]
    case = json.loads(line[-1])
    assert len(case["pattern"]) <= 1
    assert len(case["texts"]) == 1


def test_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "atheris" in (said := capsys.readouterr().err) or "which target?" in said
