"""`grammaton generate` with a tiny random model: grammars hold, statuses and JSON tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny random model."""
    from tests.engine.conftest import make_model, make_tokenizer

    folder = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = make_tokenizer()
    make_model(len(tokenizer), max_position_embeddings=4096).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_an_answer(run: Run, tiny: str) -> None:
    done = run("generate", "--choices", "yes,no", "--model", tiny, "--seed", "1", "Well?")
    assert done.status == 0
    assert done.out in ("yes\n", "no\n")
    assert "tokens/s" in done.err
    quiet = run("generate", "-q", "--choices", "yes,no", "--model", tiny, "--seed", "1", "Well?")
    assert quiet == (0, done.out, "")


def test_as_json(run: Run, tiny: str, person: str) -> None:
    done = run(
        "generate", "-q", "--json", "--schema", '{"enum": [12, true]}', "--model", tiny, "-",
        stdin=b"a number",
    )  # fmt: skip
    value = done.value
    assert done.status == 0
    assert json.loads(value["text"]) in (12, True)
    assert value["is_complete"]
    assert value["finish_reason"] in ("grammar", "eos")  # `12` may go on: 12.0
    assert value["metrics"]["completion_tokens"] >= 1
    assert value["metrics"]["prompt_tokens"] > len("a number")


def test_prompts(run: Run, tiny: str) -> None:
    arguments = ("generate", "-q", "--json", "--regex", "a", "--model", tiny, "hi")
    chat = run(*arguments).value["metrics"]["prompt_tokens"]
    raw = run(*arguments, "--raw").value["metrics"]["prompt_tokens"]
    system = run(*arguments, "--system", "be brief").value["metrics"]["prompt_tokens"]
    assert raw < chat < system


def test_without_a_grammar(run: Run, tiny: str) -> None:
    done = run("generate", "-q", "--max-tokens", "3", "--model", tiny, "--seed", "0", "hi")
    assert done.status == 0


def test_a_cut_answer(run: Run, tiny: str) -> None:
    done = run("generate", "--regex", "[0-9]{40}", "--max-tokens", "3", "--model", tiny, "hi")
    assert done.status == 1
    assert len(done.out.strip()) >= 3
    assert "cut (length)" in done.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--regex", "a("), 3, "never closed"),
        (("--temperature", "-1"), 2, "temperature"),
        (("--max-tokens", "0"), 2, "--max-tokens': 0 is not in the range x>=1"),
        (("--temperature", "nan"), 2, "not a finite number"),
        (("--top-p", "0"), 2, "--top-p"),
        (("--max-tokens", "x"), 2, "not a valid integer"),
        (("--raw", "--system", "x"), 2, "--raw has none"),
        (("--key-order", "any"), 2, "needs a grammar"),
        (("--schema", "-", "-"), 2, "can't both be standard input"),
    ],
)
def test_bad_arguments(
    run: Run, tiny: str, arguments: tuple[str, ...], status: int, message: str
) -> None:
    prompt = () if arguments[-1] == "-" else ("hi",)
    done = run("generate", "--model", tiny, *arguments, *prompt)
    assert done.status == status
    assert message in done.err
    assert done.out == ""


def test_a_folder_without_a_model(run: Run, tmp_path: Path) -> None:
    done = run("generate", "--model", str(tmp_path), "hi")
    assert done.status == 2
    assert "config.json" in done.err
