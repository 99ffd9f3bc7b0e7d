"""The documentation does what it says: its Python runs, and its commands are the ones CI runs.

The blocks of a page share one namespace, in order, so that a page reads as one session.
"""

from __future__ import annotations

import re
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
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)


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
