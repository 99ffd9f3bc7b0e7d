"""The command `grammaton`: generate, check, explain and show from a terminal.

Each command is a module of this package, and each says the same in JSON with `--json`. What was
asked for goes to standard output, everything else to standard error.

Exit status:

    0    done; a text is accepted, an answer is whole and valid
    1    refused: the text is not in the language, the answer is cut or wrong
    2    wrong usage, or a file that can't be read
    3    the grammar or the vocabulary can't be used; the message shows where
    4    something that is needed is missing or failed: a package, a program, a model
    130  interrupted
    141  whoever read the output has gone

Nothing heavy is imported before it is needed: only `generate` and `demo` want torch. click and rich
come with the extra `cli`; this module alone works without them, to say so.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

_NEEDED = ("click", "rich")
_MISSING = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: those after the command's name; `sys.argv[1:]` by default.

    Returns:
        The exit status.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"grammaton: the command line needs {' and '.join(missing)}; "
            "pip install 'grammaton[cli]' brings what is missing",
            file=sys.stderr,
        )
        return _MISSING
    from grammaton.cli.app import run

    return run(sys.argv[1:] if arguments is None else arguments)
