"""The documentation does what it says: its Python and its console sessions run, and the commands
that README begins with are the ones CI runs.

The blocks of a page share one namespace, in order, so that a page reads as one session. A `console`
block has commands after `$ `, each followed by exactly what it prints; they run in a shell in an
empty folder, into which a `cat` of a file that isn't there yet writes the file as shown.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language: the line each one's code begins on, and the code."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start(2)) + 1, match[2])
        for match in _FENCE.finditer(text)
        if match[1] == language
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_blocks_run(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(page, "python"):
        # Padded, so that a traceback points into the page.
        padded = "\n" * (line - 1) + code
        exec(compile(padded, str(page), "exec", dont_inherit=True), namespace)


def commands(code: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    found = [part.split("\n", 1) for part in code.removeprefix("$ ").split("\n$ ")]
    return [(part[0], part[1].strip("\n") if len(part) > 1 else "") for part in found]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "console")],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_console_sessions_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    session = [pair for _, code in blocks(page, "console") for pair in commands(code)]
    mark = "-- next command --"
    script = [f'grammaton() {{ {sys.executable!r} -m grammaton "$@" 2>&1; }}']
    for command, printed in session:
        file = re.fullmatch(r"cat (\S+)", command)
        if file and not (tmp_path / file[1]).exists():
            (tmp_path / file[1]).write_text(printed + "\n", encoding="utf-8")
        script += [command, f'status=$?; echo "{mark}"; (exit $status)']
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env={**environment, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    outputs = [part.strip("\n") for part in done.stdout.split(mark)]
    for (command, expected), found in zip(session, outputs, strict=False):
        assert found == expected, command
    assert len(outputs) == len(session) + 1
    assert done.stderr == ""


def test_readme_has_the_two_commands_that_ci_runs() -> None:
    commands = [code for _, code in blocks(ROOT / "README.md", "sh")]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^\s*readme_command (\d)$", script, re.MULTILINE) == ["1", "2"]
    assert len(commands) == 2
    demo, tests = commands
    assert demo.rstrip().endswith("grammaton demo")
    assert "pytest" in tests.rstrip().splitlines()[-1]


def test_links_lead_somewhere() -> None:
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
