"""`python -m bench COMMAND`: compare (engines over a data set), scaling, startup."""

from __future__ import annotations

import sys
from importlib import import_module

COMMANDS = {
    "compare": "masks of several engines over a data set: times, memory, and who is right",
    "scaling": "vocabulary, schema and output size, nesting, memory for each constraint",
    "startup": "the import, reading a tokenizer, the trie over it",
}


def main() -> None:
    """The command line."""
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in COMMANDS:
        import_module(f"bench.{name}").main(arguments)
        return
    print("usage: python -m bench COMMAND [--help]\n")
    for command, what in COMMANDS.items():
        print(f"  {command:10}{what}")
    if name not in ("-h", "--help"):
        print(f"\nthere is no command {name!r}", file=sys.stderr)
        raise SystemExit(2)


if __name__ == "__main__":
    main()
