"""The command group, the overview without torch or click, and a whole demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grammaton import cli
from grammaton.cli.demo import _SCHEMA

ROOT = Path(__file__).parents[2]

# Blocks imports the way a missing package does, before the command runs.
WITHOUT = """
import importlib.util, sys
hidden = {names!r}
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in hidden else find(name, *rest)
for name in hidden:
    sys.modules[name] = None
from grammaton.cli import main
sys.exit(main(sys.argv[1:]))
"""


def run(*arguments: str, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(names=without), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_help_without_torch() -> None:
    for arguments in ((), ("--help",)):
        done = run(*arguments, without=("torch", "transformers"))
        assert done.returncode == 0
        assert "grammaton demo --schema" in done.stdout
        assert done.stderr == ""
    done = run("demo", "--help", without=("torch", "transformers"))
    assert "--temperature" in done.stdout


def test_the_missing_extra_is_named() -> None:
    done = run("demo", without=("torch", "gguf"))
    assert done.returncode == 4
    assert "needs torch, gguf; pip install 'grammaton[demo]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_command_line_s_own_packages() -> None:
    done = run("check", "--regex", "a", "a", without=("click", "rich"))
    assert done.returncode == 4
    assert "needs click and rich; pip install 'grammaton[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_usage() -> None:
    done = run("demo", "--schema", "a", "--regex", "b")
    assert done.returncode == 2
    assert "not allowed with" in done.stderr
    assert run("dance").returncode == 2


def test_version() -> None:
    assert run("--version").stdout.startswith("grammaton ")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with a tiny random model, so that the demo runs in no time."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.engine.conftest import make_model, make_tokenizer

    monkeypatch.setattr("grammaton.cli.demo._NEEDED", ("torch", "transformers", "jsonschema"))
    tokenizer = make_tokenizer()
    make_model(len(tokenizer), max_position_embeddings=4096).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def demo(tiny: Path, *arguments: str) -> int:
    return cli.main(["demo", "--model", str(tiny), *arguments])


def test_demo_with_a_schema(tiny: Path, tmp_path: Path, capsys: Any) -> None:
    schema = {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 3}
    (tmp_path / "s.json").write_text(json.dumps(schema))
    assert demo(tiny, "--schema", str(tmp_path / "s.json"), "--prompt", "letters?") == 0
    said = capsys.readouterr()
    assert set(json.loads(said.out)) <= {"a", "b"}
    assert "> letters?" in said.err
    assert "valid against the schema (checked with jsonschema)" in said.err
    for fact in ("tokens/s", "masks: p50", "p99", "hidden behind the model", "first token after"):
        assert fact in said.err


def test_demo_with_its_own_schema(tiny: Path, capsys: Any) -> None:
    assert demo(tiny, "--max-tokens", "900", "--seed", "3") == 0
    assert set(json.loads(capsys.readouterr().out)) == set(_SCHEMA["properties"])


def test_demo_with_a_regex(tiny: Path, capsys: Any) -> None:
    assert demo(tiny, "--regex", "(red|blue) [0-9]{2}", "--temperature", "0") == 0
    said = capsys.readouterr()
    assert said.out.strip()[:-3] in ("red", "blue")
    assert "matches the regex" in said.err


def test_a_cut_answer_fails_and_says_so(tiny: Path, capsys: Any) -> None:
    assert demo(tiny, "--max-tokens", "3") == 1
    assert "CUT after 3 tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (None, 2, "can't read the schema"),
        ("{", 3, "is not JSON"),
        ('{"type": "frog"}', 3, "grammaton: --schema: "),
        ('{"allOf": [{"type": "null"}, {"type": "string"}]}', 3, "grammaton: --schema: "),
    ],
)
def test_bad_schemas(
    tiny: Path, tmp_path: Path, capsys: Any, content: str | None, status: int, message: str
) -> None:
    path = tmp_path / "schema.json"
    if content is not None:
        path.write_text(content)
    assert demo(tiny, "--schema", str(path)) == status
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("option", "value", "status"),
    [("--regex", "a(", 3), ("--temperature", "-1", 2), ("--max-tokens", "0", 2)],
)
def test_bad_arguments(tiny: Path, capsys: Any, option: str, value: str, status: int) -> None:
    assert demo(tiny, option, value) == status
    assert capsys.readouterr().err.splitlines()[-1]


def test_a_folder_without_a_model(tiny: Path, capsys: Any) -> None:
    assert cli.main(["demo", "--model", str(tiny.parent), "--regex", "a"]) == 2
    assert "config.json" in capsys.readouterr().err


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grammaton", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0
    assert "grammaton demo" in done.stdout
