"""Fuzz targets find nothing here, and find faults that are planted: a target that cannot fail
would tell nothing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grammaton.errors import GrammarError
from grammaton.fuzz import (
    Counterexample,
    Fault,
    Target,
    lalr,
    languages,
    matcher,
    schemas,
    search,
    target,
)
from grammaton.fuzz.__main__ import TARGETS, main
from grammaton.fuzz.kept import FOLDER, check_kept, kept_cases
from grammaton.fuzz.patterns import Patterns, asks_re
from grammaton.fuzz.target import failure_of, smaller_value, without_parts
from grammaton.grammar.grammar import Grammar
from grammaton.index import Vocabulary, compile

CASES = 200
EVERY_TARGET = pytest.mark.parametrize("name", TARGETS)


@pytest.fixture(autouse=True)
def _skip_without_its_program(request: pytest.FixtureRequest) -> None:
    name = getattr(request.node, "callspec", None) and request.node.callspec.params.get("name")
    if name in TARGETS and (lacking := TARGETS[name].lacks()) is not None:
        pytest.skip(f"there is no {lacking}: the target {name} is NOT run")


def found(name: str) -> tuple[str, Any]:
    """The kind and the smallest case of what a target finds."""
    finding = search(TARGETS[name], seed=1, cases=3 * CASES).finding
    assert finding is not None
    failure = failure_of(TARGETS[name], finding.case)
    assert failure is not None
    assert failure[0] == finding.kind
    return finding.kind, finding.case


class Lying:
    """A matcher whose methods are replaced by those of `lies`, each given the true matcher."""

    def __init__(self, true: Any, lies: dict[str, Callable[..., Any]]) -> None:
        self._true = true
        self._lies = lies

    def __getattr__(self, name: str) -> Any:
        if name in self._lies:
            return lambda *arguments: self._lies[name](self._true, *arguments)
        return getattr(self._true, name)

    def fork(self) -> Lying:
        return Lying(self._true.fork(), self._lies)


def plant(monkeypatch: pytest.MonkeyPatch, module: Any, **lies: Callable[..., Any]) -> None:
    """Makes the constraints that `module` compiles hand out lying matchers."""

    class Constraint:
        def __init__(self, *arguments: Any) -> None:
            self.true = compile(*arguments)

        def matcher(self) -> Lying:
            return Lying(self.true.matcher(), lies)

    monkeypatch.setattr(module, "compile", Constraint)


@EVERY_TARGET
def test_nothing_is_found(name: str) -> None:
    # Whole languages take their time, and so does Lark.
    cases = {"languages": CASES // 5, "lalr": CASES // 10}.get(name, CASES)
    report = search(TARGETS[name], seed=0, cases=cases)
    assert report.finding is None
    assert report.cases == cases


@EVERY_TARGET
def test_kept_cases_hold(name: str) -> None:
    assert check_kept(TARGETS[name]) is None


def test_kept_cases_are_of_a_target_and_say_why() -> None:
    files = sorted(path.stem for path in FOLDER.glob("*.json"))
    assert set(files) <= set(TARGETS)
    assert "patterns" in files
    for name in files:
        kept = kept_cases(name)
        assert kept
        assert all(each.why for each in kept)


def test_kept_cases_that_fail_are_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Grammar, "accepts", lambda self, text: False)
    finding = check_kept(TARGETS["patterns"])
    assert finding is not None
    assert finding.case == kept_cases("patterns")[finding.number].case
    assert main(["--seconds", "0.1", "--target", "patterns"]) == 1
    assert f"kept case {finding.number}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "wrong", "kind"),
    [
        ("draw_sentence", lambda paths, source, max_size: "\0", "a sentence does not match"),
        ("draw_prefix", lambda paths, source, max_size: "\0\1", "a prefix is none"),
        ("counterexample", lambda a, b: None, "equal languages that are not within each other"),
        ("counterexample", lambda a, b: Counterexample("\0", True), "a counterexample is none"),
        ("size", lambda grammar, n: n, "another number of sentences than there are"),
    ],
)
def test_wrong_answers_about_languages_are_found(
    monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[..., Any], kind: str
) -> None:
    monkeypatch.setattr(languages, name, wrong)
    failure = failure_of(TARGETS["languages"], {"patterns": ["ab", "c"], "seed": 0})
    assert failure is not None
    assert failure[0] == kind


def test_wrong_answers_of_patterns_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Grammar.accepts
    monkeypatch.setattr(Grammar, "accepts", lambda self, text: true(self, text) or text == "b")
    kind, case = found("patterns")
    assert kind == "another answer than re.fullmatch"
    assert case["texts"] == ["b"]
    assert len(case["pattern"]) <= 2


@pytest.mark.parametrize("name", ["ecma"])
def test_wrong_answers_of_ecma_patterns_are_found(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    true = Grammar.accepts
    monkeypatch.setattr(Grammar, "accepts", lambda self, text: true(self, text) or text == "b")
    kind, case = found(name)
    assert kind.startswith("another answer than node's")
    assert case["texts"] == ["b"]
    assert len(case["pattern"]) <= 2


@pytest.mark.parametrize("name", ["patterns", "ecma"])
def test_refusals_of_good_patterns_are_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def refuse(pattern: str, **options: object) -> Grammar:
        raise GrammarError("no", source=pattern, position=0)

    monkeypatch.setattr(Grammar, "from_regex", refuse)
    assert found(name) == ("a good pattern was refused", {"pattern": "", "texts": []})


def test_a_target_whose_program_is_missing_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["--seconds", "0.1", "--target", "ecma"]) == 2
    assert capsys.readouterr().out == "ecma: NOT RUN, there is no node\n"


def test_pairs_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    report = search(TARGETS["patterns"], seed=0, cases=20)
    assert report.counted > 20 * 20
    assert main(["--seconds", "0.2", "--target", "patterns"]) == 0
    assert "pairs of a pattern and a text)" in capsys.readouterr().out


def test_patterns_that_re_refuses_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Permissive:
        """Right about every pattern that `re` takes, and takes the others too."""

        def __init__(self, pattern: str, *, flags: str, search: bool) -> None:
            self.question = (pattern, flags, search)

        def accepts(self, text: str) -> bool:
            pattern, flags, search = self.question
            return asks_re(pattern, flags=flags, search=search)(text)

    monkeypatch.setattr(Grammar, "from_regex", Permissive)
    assert found("patterns")[0] == "a pattern that re refuses was taken"


@pytest.mark.parametrize("place", [{}, {"source": "a", "position": 99}])
def test_errors_without_a_place_are_found(
    monkeypatch: pytest.MonkeyPatch, place: dict[str, Any]
) -> None:
    def refuse(pattern: str, **options: object) -> Grammar:
        raise GrammarError("no", **place)

    monkeypatch.setattr(Grammar, "from_regex", refuse)
    kind, case = found("patterns")
    assert kind == "an error without a place in the pattern"
    assert case == {"pattern": "", "texts": []}


@EVERY_TARGET
def test_other_exceptions_are_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def fail(source: object, **options: object) -> Grammar:
        raise KeyError(source)

    monkeypatch.setattr(Grammar, "from_regex", fail)
    monkeypatch.setattr(Grammar, "from_json_schema", fail)
    monkeypatch.setattr(Grammar, "from_lark", fail)
    assert found(name)[0] == "KeyError came out"


def test_damage_that_goes_unnoticed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        """A checksum that fits everything."""

        def __init__(self, body: bytes) -> None:
            pass

        def digest(self) -> bytes:
            return bytes(32)

    monkeypatch.setattr("hashlib.sha256", Broken)
    assert found("vocabularies")[0] == "damage went unnoticed"


def test_a_vocabulary_that_comes_back_another_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Vocabulary.load.__func__  # type: ignore[attr-defined]

    def load(cls: type[Vocabulary], path: Any) -> Vocabulary:
        loaded: Vocabulary = true(cls, path)
        loaded._drops_leading_space = True
        return loaded

    monkeypatch.setattr(Vocabulary, "load", classmethod(load))
    kind, case = found("vocabularies")
    assert kind == "another vocabulary came back"
    assert (case["edits"], case["special"]) == ([], {})


def test_dead_ends_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def mask(true: Any) -> NDArray[np.int32]:
        whole: NDArray[np.int32] = true.mask()
        return whole if true.is_complete else np.zeros_like(whole)

    def accept(true: Any, token_id: int) -> bool:
        return bool(true.is_complete and true.accept(token_id))

    plant(monkeypatch, schemas, mask=mask)
    plant(monkeypatch, matcher, mask=mask, accept=accept)
    assert found("schemas")[0] == found("matcher")[0] == "a dead end"


def test_texts_that_are_not_json_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grammar, "from_json_schema", lambda s, **o: Grammar.from_regex("[{]+"))
    assert found("schemas")[0] == "a complete text is not JSON"


def test_texts_that_the_grammar_refuses_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grammar, "accepts", lambda self, text: False)
    assert "does not accept" in found("schemas")[0]
    assert found("matcher")[0] == "complete otherwise than the grammar says"


def one_too_few(true: Any, count: int) -> None:
    true.rollback(max(0, count - 1))


def all_but_the_last_bit(true: Any) -> NDArray[np.int32]:
    mask: NDArray[np.int32] = true.mask()
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    if bits.sum() > 1:
        bits[np.flatnonzero(bits)[-1]] = 0
    return np.packbits(bits, bitorder="little").view(np.int32)


@pytest.mark.parametrize(
    ("lies", "kind"),
    [
        ({"rollback": one_too_few}, "than after a replay"),
        ({"reset": lambda true: None}, "than after a replay"),
        ({"mask": all_but_the_last_bit}, "the mask"),
        ({"validate": lambda true, ids: len(ids)}, "validate does not count what accept takes"),
    ],
)
def test_faults_of_matchers_are_found(
    monkeypatch: pytest.MonkeyPatch, lies: dict[str, Callable[..., Any]], kind: str
) -> None:
    plant(monkeypatch, matcher, **lies)
    found_kind, case = found("matcher")
    assert kind in found_kind
    assert len(case["steps"]) <= 4


def test_forks_that_share_their_position_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lying, "fork", lambda self: self)
    plant(monkeypatch, matcher)
    found("matcher")


def test_slow_cases_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "SLOW_SECONDS", -1.0)
    assert found("patterns") == ("slow", {"pattern": "", "texts": []})


class Small(Target):
    """Lists of numbers that must not hold a 7, nor two numbers above 50."""

    name = "small"

    def draw(self, rng: Any) -> Any:
        return [rng.randrange(100) for _ in range(20)]

    def check(self, case: Any) -> None:
        if 7 in case:
            raise Fault("a seven", case)
        if sum(number > 50 for number in case) > 1:
            raise Fault("two large ones", case)

    def smaller(self, case: Any) -> Any:
        return (less for less in smaller_value(case) if isinstance(less, list))


def test_shrinking_keeps_the_kind_and_ends_with_the_smallest() -> None:
    finding = search(Small(), seed=0, cases=100).finding
    assert finding is not None
    if finding.kind == "a seven":
        assert finding.case == [7]
    else:
        assert len(finding.case) == 2
        assert all(50 < number <= 101 for number in finding.case)


def test_a_search_repeats() -> None:
    assert search(Small(), seed=3, cases=100) == search(Small(), seed=3, cases=100)
    with pytest.raises(ValueError, match="bound"):
        search(Small())


def test_parts_left_out() -> None:
    assert list(without_parts("abc")) == ["", "bc", "ac", "ab"]
    assert list(without_parts("")) == []
    inside = [{"a": 3}, {"a": []}, {"a": [0]}, {"a": [1]}]
    assert list(smaller_value({"a": [3]})) == [[3], 3, {}, *inside]


def test_the_command_replays_what_it_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--seconds", "0.1", "--target", "patterns"]) == 0
    assert "no finding" in capsys.readouterr().out
    with monkeypatch.context() as planted:
        planted.setattr(Grammar, "accepts", lambda self, text: False)
        assert main(["--seconds", "5", "--target", "patterns"]) == 1
        (command,) = (line for line in capsys.readouterr().out.splitlines() if "--replay" in line)
        replayed = shlex.split(command)[3:]
        assert json.loads(replayed[-1])["pattern"] is not None
        assert main(replayed) == 1
        assert "another answer than re.fullmatch" in capsys.readouterr().out
    assert main(replayed) == 0
    assert "everything holds" in capsys.readouterr().out
    assert main([*replayed[:-1], "{"]) == 2
    assert main([*replayed[:-1], "[]"]) == 2
    for seconds in ("0", "nan", "x"):
        with pytest.raises(SystemExit):
            main(["--seconds", seconds])


@pytest.mark.skipif(TARGETS["lalr"].lacks() is not None, reason="lark is not installed")
@pytest.mark.parametrize(
    ("lies", "kind"),
    [
        ({"mask": lambda true: np.zeros_like(true.mask())}, "a mask is not what can go on"),
        ({"accept": lambda true, token: False}, "accept does not do as the mask says"),
    ],
)
def test_faults_under_lalr_are_found(
    monkeypatch: pytest.MonkeyPatch, lies: dict[str, Callable[..., Any]], kind: str
) -> None:
    plant(monkeypatch, lalr, **lies)
    case = {
        "grammar": "start: A+\nA: /a|ab/\n",
        "lexer": "basic",
        "texts": ["aa"],
        "tokens": ["a", "b", "ab", " "],
        "seed": 0,
    }
    failure = failure_of(TARGETS["lalr"], case)
    assert failure is not None
    assert failure[0] == kind
    assert failure_of(TARGETS["lalr"], {**case, "grammar": "start: A\nA: /a*/\n"}) is None


def test_what_backtracks_for_ever_is_not_waited_for() -> None:
    case: dict[str, Any] = {"pattern": "(a|a)*b", "texts": ["ab", "a" * 60, "b"]}
    assert Patterns().check(case) == 1
