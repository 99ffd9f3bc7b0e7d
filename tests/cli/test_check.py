"""`grammaton check`, and what all commands share: sources, failures, colours, statuses."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from grammaton import Grammar, cli
from grammaton.cli import sources
from grammaton.cli.texts import place
from tests.cli.conftest import Run

OPTIONS = ("--regex", "--schema", "--grammar")


def test_accepted(run: Run) -> None:
    done = run("check", "--regex", "(red|blue) [0-9]+", "red 7")
    assert done == (0, "accepted (5 bytes)\n", "")
    assert run("check", "--regex", "é", "é", "--json").value == {"accepted": True, "bytes": 2}


def test_refused_in_place(run: Run, person: str) -> None:
    done = run("check", "--schema", person, '{"name": "Ada",\n "age": 151}')
    assert done.status == 1
    first, line, caret, sentence = done.out.splitlines()
    assert "byte 26 (line 2, column 11): found `1`" in first
    assert line.index("151") + 2 == caret.index("^")
    assert "`0`" in sentence
    assert "`}`" in sentence
    assert "whitespace" in sentence


def test_ended_too_early(run: Run) -> None:
    done = run("check", "--choices", "yes,no", "ye")
    assert done.status == 1
    assert "found the end of the text" in done.out
    assert "expected `s`" in done.out
    assert done.out.splitlines()[2].index("^") == done.out.splitlines()[1].index("ye") + 2


def test_refused_as_json(run: Run, person: str) -> None:
    done = run("check", "--json", "--schema", person, '{"name": 1}')
    value = done.value
    assert done.status == 1
    assert {key: value[key] for key in ("accepted", "byte", "line", "column", "found")} == {
        "accepted": False,
        "byte": 9,
        "line": 1,
        "column": 10,
        "found": "`1`",
    }
    assert value["expected"]["characters"] == '[\\t\\n\\r "]'
    assert value["expected"]["may_end"] is False


def test_where_the_text_comes_from(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"ab\n")
    path = str(tmp_path / "text")
    assert run("check", "--regex", "ab\n", "--file", path).status == 0
    assert run("check", "--regex", "ab", "--chomp", "-f", path).status == 0
    assert run("check", "--regex", "ab", "-", stdin=b"ab").status == 0
    assert run("check", "--regex", "ab", "-", "--chomp", stdin=b"ab\r\n").status == 0
    done = run("check", "--regex", "ab", "-", stdin=b"ab\n")
    assert done.status == 1
    assert "found a newline" in done.out
    assert "--chomp" in done.out
    assert run("check", "--regex", "", "").status == 0
    assert run("check", "--regex", "-5", "--", "-5").status == 0


def test_quiet(run: Run) -> None:
    assert run("check", "-q", "--regex", "a", "a") == (0, "", "")
    assert run("check", "-q", "--regex", "a", "b") == (1, "", "")


def test_sources(run: Run, tmp_path: Path) -> None:
    grammar = tmp_path / "g"
    grammar.write_text('start ::= "(" start ")" | ""')
    assert run("check", "--grammar", str(grammar), "(())").status == 0
    assert run("check", "--grammar", "-", "(())", stdin=b'start ::= "(())"').status == 0
    grammar.write_text('root ::= "(" root ")" | other\nother ::= "x"')
    assert run("check", "--gbnf", str(grammar), "((x))").status == 0
    assert run("check", "--gbnf", str(grammar), "--start", "other", "(x)").status == 1
    assert run("check", "--ebnf", str(grammar), "((x))").status == 0
    assert run("check", "--schema", '{"const": 1}', "1").status == 0
    assert run("check", "--schema", "-", "1", stdin=b'{"const": 1}').status == 0
    assert run("check", "--choices", "a,b", "--choices", '["c,d"]', "c,d").status == 0
    assert run("check", "--regex", r"\u{61}", "--dialect", "ecma", "a").status == 0


def test_refinements_of_a_schema(run: Run, person: str) -> None:
    swapped = '{"age":1,"name":""}'
    done = run("check", "--schema", person, swapped)
    assert done.status == 1
    assert "--key-order any" in done.out
    assert run("check", "--schema", person, "--key-order", "any", swapped).status == 0
    ordered = '{"name":"", "age":1}'
    assert run("check", "--schema", person, "--whitespace", "compact", ordered).status == 1
    indented = '{\n  "name": ""\n}'
    assert run("check", "--schema", person, "--whitespace", "2", indented).status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x",), "which grammar? Give one of --schema, --regex"),
        (("--regex", "a"), "which text?"),
        (("--regex", "a", "--choices", "b", "x"), "--choices is not allowed with --regex"),
        (("--regex", "a", "--regex", "b", "x"), "--regex is given twice"),
        (("--regex", "a", "--key-order", "any", "x"), "--key-order says nothing about --regex"),
        (("--regex", "a", "x", "--file", "y"), "which text?"),
        (("--schema", "-", "-"), "can't both be standard input"),
        (("--schema", '{"const":1}', "--whitespace", "wide", "1"), "--whitespace is flexible"),
        (("--choices", "[", "x"), "not a JSON array"),
        (("--choices", '["a", ["b"]]', "x"), 'a choice is a text, and /1 is ["b"]'),
        (("--lark", "\0", "x"), "can't read the grammar"),
        (("--lark", "/dev/zero", "x"), "larger than 0 MiB"),
        (("--lark", "/", "x"), "can't read the grammar, /: Is a directory"),
        (("--schema", "/nowhere/s.json", "x"), "can't read the schema"),
        (("--regex", "a", "--file", "/nowhere/t"), "can't read the text"),
    ],
)
def test_wrong_usage(
    run: Run, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grammaton.cli.texts.MAX_FILE", 1000)
    done = run("check", *arguments)
    assert done.status == 2
    assert message in done.err
    assert done.out == ""


def test_grammars_that_mean_nothing(run: Run, tmp_path: Path) -> None:
    done = run("check", "--regex", "ab(", "x")
    assert done.status == 3
    message, pattern, caret = done.err.splitlines()
    assert message.startswith("grammaton: --regex: ")
    assert caret.index("^") == pattern.index("(")

    done = run("check", "--json", "--schema", '{"properties": {"a": {"type": "frog"}}}', "x")
    assert done.status == 3
    assert done.value["error"]["pointer"].startswith("/properties/a")
    assert done.value["error"]["column"] > len('{"properties"')
    message, schema, caret = done.err.splitlines()
    assert "frog" in message
    assert schema[caret.index("^") :].startswith('"type"')

    done = run("check", "--regex", "a(?!a)a", "--dialect", "ecma", "--json", "x")
    assert done.status == 3
    assert done.value["error"]["type"] == "UnsatisfiableGrammar"

    (tmp_path / "g").write_bytes(b"start ::= \xff")
    done = run("check", "--grammar", str(tmp_path / "g"), "x")
    assert done.status == 3
    assert "not UTF-8: byte 10, in line 1, is 0xFF" in done.err

    path = tmp_path / "rules.lark"
    path.write_bytes(b"\xef\xbb\xbfstart: a\n")
    done = run("check", "--lark", str(path), "x")
    assert done.status == 3
    assert done.err.startswith(f"grammaton: {path}: rule a is not defined (line 1, column 8)")


def test_usage_errors_as_json(run: Run) -> None:
    done = run("check", "--json", "x")
    assert done.status == 2
    assert "which grammar?" in done.value["error"]["message"]


def test_colours_only_where_they_are_wanted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run("check", "--regex", "a", "[b]").out
    assert "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = run("check", "--regex", "a", "[b]").out
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in run("check", "--regex", "a", "[b]").out
    assert "[b]" in plain  # text is never taken for markup


def test_interruptions_and_full_disks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, status, message in (
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 4, "can't write: [Errno 28] No space"),
        (MemoryError(), 4, "not enough memory"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (SystemExit(1), 141, ""),  # how click ends when a pipe is closed
    ):

        def fail(error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("grammaton.cli.check.output", fail)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", sys.stdout)  # put back, since a broken pipe replaces it
            done = run("check", "--regex", "a", "a")
        assert done.status == status
        assert message in done.err


def test_streams_that_are_closed(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for name in ("stdin", "stdout", "stderr"):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, None)
            assert cli.main(["check", "--regex", "a", "b"]) == 1
            assert cli.main(["check", "--regex", "(", "b"]) == 3
    monkeypatch.setattr(sys, "stdin", None)
    assert cli.main(["check", "--regex", "a", "-"]) == 2
    assert "standard input is closed" in capsys.readouterr().err


def test_bytes_that_are_no_text(run: Run) -> None:
    done = run("check", "--regex", "é*", "-", stdin="é".encode() + b"\xc3(")
    assert done.status == 1
    assert "byte 3" in done.out
    assert "\\xC3(" in done.out


@pytest.mark.parametrize(
    ("text", "byte", "line", "column", "found", "caret"),
    [
        ("ab", 1, 1, 2, "`b`", 1),
        ("ab", 2, 1, 3, "the end of the text", 2),
        ("ab\ncd", 4, 2, 2, "`d`", 1),
        ("ab\ncd", 2, 1, 3, "a newline", 2),
        ("\tx", 1, 1, 2, "`x`", 2),
        ("漢b", 3, 1, 2, "`b`", 2),
        ("é漢b", 3, 1, 2, "`漢`", 1),
        ("", 0, 1, 1, "the end of the text", 0),
        ("a\n", 2, 2, 1, "the end of the text", 0),
        ("\x00", 0, 1, 1, "\\u{0}", 0),
    ],
)
def test_places(text: str, byte: int, line: int, column: int, found: str, caret: int) -> None:
    where = place(text.encode(), byte)
    assert (where.line, where.column, where.found, where.caret) == (line, column, found, caret)


@pytest.mark.parametrize("at", [0, 100, 1000, 1999])
def test_long_lines_are_cut_around_the_place(at: int) -> None:
    text = "".join(chr(ord("a") + i % 26) for i in range(2000))
    where = place(text.encode(), at)
    assert len(where.shown) <= 90
    assert where.shown[where.caret] == text[at]


def test_a_new_source_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every source that `Grammar` has a constructor for is an option of every command."""
    named = {source.option for source in sources.available()}
    assert {"schema", "regex", "choices", "grammar"} <= named
    for command in ("check", "explain", "show", "generate"):
        text = run(command, "--help").out
        for source in sources.SOURCES:
            assert (f"--{source.option} " in text) == (source.option in named)


def test_imports_are_looked_for_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []

    def from_imports(text: str, *, import_paths: list[Path]) -> Grammar:
        seen.extend(import_paths)
        return Grammar.literal(text)

    monkeypatch.setattr(Grammar, "from_imports", from_imports, raising=False)
    source = sources.Source("imports", "FILE", "", "from_imports", sources._file)
    (tmp_path / "g").write_text("x")
    assert sources.GrammarChoice(source, (str(tmp_path / "g"),), {}).grammar().accepts("x")
    assert seen == [tmp_path]


def test_grammars_in_the_examples_of_the_help(run: Run, person: str, tmp_path: Path) -> None:
    (tmp_path / "balanced.txt").write_text('start ::= "(" start ")" start | ""')
    seen = 0
    for command in ("check", "explain", "show"):
        text = run(command, "--help").out.split("examples:")[1].split("exit status")[0]
        for line in filter(None, map(str.strip, text.splitlines())):
            words = shlex.split(line)
            at = next(i for i, word in enumerate(words) if word in OPTIONS)
            named = words[at + 1].replace("person.json", person)
            named = named.replace("balanced.txt", str(tmp_path / "balanced.txt"))
            assert run("show", words[at], named).status == 0, line
            seen += 1
    assert seen >= 10
