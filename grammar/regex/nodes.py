"""What a regular expression says, after parsing and before lowering.

The nodes are the same for every dialect: escapes and classes have become code point ranges, groups
have dissolved. A node *asserts* when an anchor or a look-ahead is inside it, that is, when what it
matches depends on what surrounds it; every other node denotes a plain set of texts. Nodes carry
the span of the source they came from where an error could still be raised about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from grammaton.grammar.regex.ranges import Ranges


@dataclass(frozen=True)
class Empty:
    """The empty text."""

    asserts = False


@dataclass(frozen=True)
class Chars:
    """One character of a range set; no text at all when the set is empty."""

    ranges: Ranges
    asserts = False


@dataclass(frozen=True)
class Cat:
    """All parts in turn; at least two."""

    parts: tuple[Node, ...]
    asserts: bool


@dataclass(frozen=True)
class Alt:
    """Any of the branches; at least two."""

    branches: tuple[Node, ...]
    asserts: bool


@dataclass(frozen=True)
class Repeat:
    """`body` between `min` and `max` times (None: any number); the span is the quantifier's."""

    body: Node
    min: int
    max: int | None
    position: int
    end: int
    asserts: bool


@dataclass(frozen=True)
class Anchor:
    """A place in the text: its start, its end, or its end or the newline before it."""

    kind: Literal["start", "end", "end_or_newline"]
    asserts = True


@dataclass(frozen=True)
class LookAhead:
    """What follows starts (or, negative, does not start) with a text of `body`."""

    negative: bool
    body: Node
    asserts = True


Node = Empty | Chars | Cat | Alt | Repeat | Anchor | LookAhead


def cat(parts: Sequence[Node]) -> Node:
    """A concatenation; one part stands for itself."""
    if len(parts) == 1:
        return parts[0]
    return Cat(tuple(parts), any(part.asserts for part in parts)) if parts else Empty()


def alt(branches: Sequence[Node]) -> Node:
    """An alternation; one branch stands for itself."""
    if len(branches) == 1:
        return branches[0]
    return Alt(tuple(branches), any(branch.asserts for branch in branches))
