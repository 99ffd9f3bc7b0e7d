"""What is installed, what importing it costs, and who may import whom."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("grammar", "automata", "index", "engine", "fuzz")
"""Each may import from those before it."""

SOURCES = (ROOT / "grammar").is_dir()
"""Whether the tests stand beside the sources; CI also runs them away from there."""

BELOW_ALL = {"grammaton._core", "grammaton.errors", "grammaton.limits"}


def run_python(code: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def imported(path: Path) -> set[str]:
    """The modules of grammaton that a file names in its imports, at any depth of the code."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            # `from grammaton import errors` names a module as much as `import grammaton.errors`.
            whole = node.module == "grammaton"
            names.update(
                f"grammaton.{alias.name}" if whole else node.module for alias in node.names
            )
    return {name for name in names if name.split(".")[0] == "grammaton"}


@pytest.mark.skipif(not SOURCES, reason="needs the source tree")
@pytest.mark.parametrize("folder", LAYERS)
def test_a_layer_imports_only_from_those_below_it(folder: str) -> None:
    allowed = {f"grammaton.{layer}" for layer in LAYERS[: LAYERS.index(folder) + 1]}
    for path in (ROOT / folder).rglob("*.py"):
        for name in imported(path):
            known = ".".join(name.split(".")[:2])
            assert known in allowed | BELOW_ALL, f"{path.relative_to(ROOT)} imports {name}"


def test_importing_grammaton_is_light() -> None:
    heavy = run_python(
        "import sys, grammaton\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'jsonschema', 'click', 'rich'}\n"
        "print(*heavy & sys.modules.keys())"
    )
    assert heavy.split() == []


def test_importing_grammaton_loads_little_beyond_numpy() -> None:
    """48 modules; front ends come when they are used. `python -m bench startup` times it."""
    new = run_python(
        "import sys, numpy\nbefore = set(sys.modules)\nimport grammaton\n"
        "grammaton.Grammar, grammaton.Vocabulary, grammaton.compile\n"
        "print(*(set(sys.modules) - before))"
    ).split()
    assert len(new) < 55, sorted(new)
    for heavy in ("torch", "transformers", "tokenizers", "jsonschema", "lark"):
        assert heavy not in new


def test_nothing_but_the_package_is_installed() -> None:
    distribution = importlib.metadata.distribution("grammaton")
    files = distribution.files or []
    assert files
    for file in files:
        assert not file.name.endswith((".cpp", ".hpp")), file
        assert file.parts[0] not in LAYERS, file
    (script,) = distribution.entry_points.select(group="console_scripts")
    assert (script.name, script.value) == ("grammaton", "grammaton.cli:main")


def test_every_layer_is_a_package_of_grammaton() -> None:
    run_python("import grammaton.grammar, grammaton.automata, grammaton.index, grammaton.fuzz")
    run_python("import grammaton.engine")


def test_modules_open_by_saying_what_they_are() -> None:
    folder = Path(run_python("import grammaton; print(grammaton.__path__[0])").strip())
    for path in [*folder.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if text.strip():
            assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"
