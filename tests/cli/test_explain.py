"""`grammaton explain` against a matcher asked step by step, and `grammaton show`."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grammaton import Grammar, Vocabulary, compile
from tests.cli.conftest import PERSON, Run


def steps(run: Run, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("explain", "--json", *arguments).value["steps"]
    return found


def test_bytes_without_a_vocabulary(run: Run) -> None:
    done = run("explain", "--json", "--regex", "(red|green) [0-9]+", "green 7")
    assert done.status == 0
    found = done.value["steps"]
    assert done.value["accepted"]
    assert [step["byte"] for step in found] == list(range(8))
    assert [step["allowed"] for step in found] == [2, 1, 1, 1, 1, 1, 10, 11]
    assert [step["forced"] for step in found[:3]] == ["", "reen ", "een "]
    assert [step["may_end"] for step in found] == [False] * 7 + [True]
    assert "".join(step["token"]["text"] for step in found[:-1]) == "green 7"
    assert found[-1]["token"] is None
    assert found[1]["stacks"] == [['"reen " [0-9]+']]


def test_a_refused_token(run: Run) -> None:
    done = run("explain", "--regex", "[a-z]+@x", "abé")
    assert done.status == 1
    assert "refused at byte 2 (line 1, column 3): found `é`" in done.out
    assert "expected `@x` or a lowercase letter" in done.out
    last = steps(run, "--regex", "[a-z]+@x", "abé")[-1]
    assert last["token"] == {"id": 0xC3, "text": "\\xC3", "hex": "c3", "accepted": False}


def test_a_text_that_ends_early(run: Run) -> None:
    done = run("explain", "--regex", "abc", "ab")
    assert done.status == 1
    assert "found the end of the text" in done.out
    assert "expected `c`" in done.out


def test_the_stack(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "g"
    path.write_text('start ::= "(" start ")" | "[" start "]" | "x"')
    found = steps(run, "--grammar", str(path), "([x])")
    assert [step["stacks"] for step in found] == [
        [["start"]],
        [['start ")"']],
        [['start "]"', '")"']],
        [['"]"', '")"']],
        [['")"']],
        [[]],
    ]
    table = run("explain", "--grammar", str(path), "([x])").out.splitlines()
    assert len(table) == 1 + 1 + 6 + 1
    assert '▸ ")"' in table[4]
    assert table[-1] == "accepted"


def test_keys_half_written_are_frames_too(run: Run) -> None:
    schema = {
        "type": "object",
        "properties": {"ab": {"const": 1}, 'a"': {"const": 2}},
        "additionalProperties": False,
        "required": ["ab"],
    }
    arguments = ("--schema", json.dumps(schema), "--whitespace", "compact", "--key-order", "any")
    found = steps(run, *arguments, '{"ab":1}')
    tops = [step["stacks"][0][0] for step in found[2:5]]
    assert tops[:2] == [r'json("a\"" | "ab") …', r'json("\"" | "b") …']
    assert tops[2].startswith(r'"\":1"')


def test_frames_are_in_the_notation_of_the_text_form(run: Run, tmp_path: Path) -> None:
    """What a stack shows of a grammar at its start is what `show` prints of it."""
    for pattern in (
        r'"(" (start | "x")? ")"',
        r'[a-c]{2} ("d" | "ef")* ~"g"',
        r'"\"" json([a-c]{2,}) "\n"',
        "multiples(25, 2)",
        "[^a]{3,5}",
    ):
        path = tmp_path / "g"
        path.write_text(f"start ::= {pattern}")
        shown = str(Grammar.from_text(f"start ::= {pattern}")).removeprefix("start ::= ").strip()
        first = steps(run, "--grammar", str(path), "")[0]["stacks"][0][0]
        assert first in (shown, "start"), pattern


def test_ambiguity_is_several_stacks(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "g"
    path.write_text('start ::= x "b" | y "c"\nx ::= "a" x | "a"\ny ::= "a" y "." | "a"')
    found = steps(run, "--grammar", str(path), "aab")
    assert [len(step["stacks"]) for step in found] == [1, 2, 2, 1]
    assert "or 1 other way" in run("explain", "--grammar", str(path), "aab").out


def write_tokenizer(folder: Path) -> Vocabulary:
    """A byte-level tokenizer.json with a few merges; the last id ends a text."""
    tokenizers = pytest.importorskip("tokenizers")
    pairs = [("a", "b"), ("ab", "c"), ('"', ":")]
    tokens = [*sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()), *map("".join, pairs)]
    ids = {token: i for i, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=pairs))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return Vocabulary.from_tokenizers(tokenizer, eos_token_ids=len(tokens))


def test_a_tokenizer(run: Run, tmp_path: Path, person: str) -> None:
    vocabulary = write_tokenizer(tmp_path)
    eos = ("--eos", str(vocabulary.eos_token_ids[0]))
    text = '{"name":"abc"}'
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        done = run("explain", "--json", "--schema", person, "--vocabulary", str(path), *eos, text)
        assert done.status == 0, done.err
        assert done.value["tokens"] == "the tokenizer's own"
        matcher = compile(Grammar.from_json_schema(PERSON), vocabulary).matcher()
        for step in done.value["steps"]:
            mask = matcher.mask().view(np.uint8)
            assert step["allowed"] == int(np.unpackbits(mask).sum())
            assert step["may_end"] == matcher.is_complete
            assert step["forced"] == matcher.forced_bytes().decode()
            if step["token"] is not None:
                token = step["token"]["id"]
                assert vocabulary.token_bytes(token).hex() == step["token"]["hex"]
                assert matcher.accept(token)
        assert matcher.is_complete


def test_texts_are_cut_without_the_library(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary = write_tokenizer(tmp_path)
    monkeypatch.setattr("grammaton.cli.vocabularies._encoded", lambda *_: None)
    eos = str(vocabulary.eos_token_ids[0])
    arguments = ("--regex", ".*", "--vocabulary", str(tmp_path), "--eos", eos)
    done = run("explain", "--json", *arguments, "abcab")
    assert done.value["tokens"] == "the longest that fit"
    assert [step["token"]["text"] for step in done.value["steps"][:-1]] == ["abc", "ab"]


def test_other_kinds_of_vocabularies(run: Run, tmp_path: Path) -> None:
    texts = [*(bytes([i]) for i in range(256)), b"ab", b"abab"]
    Vocabulary([*texts, b""], eos_token_ids=258).save(tmp_path / "saved")
    ranks = (base64.b64encode(text) + b" %d\n" % i for i, text in enumerate(texts))
    (tmp_path / "ranks").write_bytes(b"".join(ranks))
    for name, eos in (("saved", ()), ("ranks", ("--eos", "258"))):
        path = str(tmp_path / name)
        found = steps(run, "--regex", "(ab)*", "--vocabulary", path, *eos, "ababab")
        assert [step["token"]["id"] for step in found[:-1]] == [257, 256]
        assert found[0]["allowed"] == 4  # a, ab, abab and the end
    done = run("explain", "--regex", "a", "--vocabulary", str(tmp_path / "ranks"), "a")
    assert done.status == 3
    assert "--eos ID" in done.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--vocabulary", "/nowhere"), 2, "no tokenizer at /nowhere"),
        (("--eos", "3"), 2, "--eos belongs to a --vocabulary"),
        (("--vocabulary", "{}"), 3, "grammaton: "),
    ],
)
def test_vocabularies_that_cannot_be_used(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    (tmp_path / "broken.json").write_text("{}")
    given = [str(tmp_path / "broken.json") if item == "{}" else item for item in arguments]
    done = run("explain", "--regex", "a", *given, "a")
    assert done.status == status
    assert message in done.err


def test_show_text(run: Run, person: str, tmp_path: Path) -> None:
    done = run("show", "--regex", "(ab|ac)*")
    assert done == (0, 'start ::= ("a" [bc])*\n', "")
    done = run("show", "--schema", person, "-o", str(tmp_path / "out"))
    assert done == (0, "", "")
    assert Grammar.from_text((tmp_path / "out").read_text()) == Grammar.from_json_schema(PERSON)


def test_show_in_another_notation(run: Run, tmp_path: Path) -> None:
    done = run("show", "--choices", "red,green", "--as", "gbnf")
    assert done == (0, Grammar.from_choices(["red", "green"]).to_gbnf(), "")
    assert run("show", "--regex", "a", "--as", "gbnf", "--dot").status == 2
    (tmp_path / "g").write_text('start ::= [ab]+ & ~"a"')
    done = run("show", "--grammar", str(tmp_path / "g"), "--as", "gbnf")
    assert done.status == 3
    assert "intersection" in done.err


def test_show_automaton(run: Run) -> None:
    value = run("show", "--json", "--regex", '(ab|a")*').value
    assert value["text"] == str(Grammar.from_regex('(ab|a")*'))
    assert value["automaton"] == {
        "states": 2,
        "start": 0,
        "accepting": [0],
        "edges": [
            {"from": 0, "characters": '"a"', "to": 1},
            {"from": 1, "characters": '["b]', "to": 0},
        ],
    }
    dot = run("show", "--dot", "--regex", r'a[\\"]').out
    assert dot.startswith("digraph automaton {")
    assert r'1 -> 2 [label="[\"\\\\]"];' in dot
    assert "2 [shape=doublecircle];" in dot


def test_no_automaton_of_a_recursive_grammar(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "g"
    path.write_text('start ::= "(" start ")" | "x"')
    assert run("show", "--json", "--grammar", str(path)).value["automaton"] is None
    for flag in ("--dot", "--svg"):
        done = run("show", flag, "--grammar", str(path), "--max-states", "20")
        assert done.status == 3
        assert "more than 20 states" in done.err


def test_pictures(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn by whatever `dot` the path has: here one that answers what it was asked."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("show", "--svg", "--regex", "a")
    assert done.status == 4
    assert "graphviz" in done.err
    assert "--dot" in done.err

    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\necho "<svg>$1"; while read -r line; do echo "$line"; done\n')
    program.chmod(0o755)
    target = tmp_path / "a.svg"
    assert run("show", "--svg", "--regex", "a", "-o", str(target)).status == 0
    drawn = target.read_text()
    assert drawn.startswith("<svg>-Tsvg\ndigraph automaton {")

    program.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    done = run("show", "--svg", "--regex", "a")
    assert done.status == 4
    assert "dot failed: broken" in done.err


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_output_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    done = run("show", "--regex", "a", "-o", str(tmp_path / "no" / "where"))
    assert done.status == 2
    assert "can't write" in done.err
    assert run("show", "--regex", "a", "--dot", "--svg").status == 2
    assert run("show", "--regex", "a", "--json", "-o", "x").status == 2
    assert json.loads(run("show", "--regex", "a", "--json").out)["text"] == 'start ::= "a"\n'
