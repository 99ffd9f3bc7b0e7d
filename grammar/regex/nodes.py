"""What a regular expression says, after parsing and before lowering.

The nodes are the same for every dialect: escapes, classes and flags have become code point ranges
and look-around, groups have dissolved. A node *asserts* when it holds something whose match depends
on what surrounds it; every other node denotes a plain set of texts. Nodes carry the span of the
source they came from where an error could still be raised about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from grammaton.grammar.regex.ranges import Ranges, invert


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
    """Any of the branches, the first that fits preferred; at least two."""

    branches: tuple[Node, ...]
    asserts: bool


@dataclass(frozen=True)
class Repeat:
    """`body` between `min` and `max` times (None: any number); the span is the quantifier's.

    `lazy` (as few times as possible) matters inside an atomic group alone.
    """

    body: Node
    min: int
    max: int | None
    position: int
    end: int
    asserts: bool
    lazy: bool = False


@dataclass(frozen=True)
class Anchor:
    """A place in the text: its start, its end, or its end or the newline before it."""

    kind: Literal["start", "end", "end_or_newline"]
    asserts = True


@dataclass(frozen=True)
class Look:
    """What follows starts (or, negative, does not start) with a text of `body`; with `behind`, what
    precedes ends with one. The span is the whole construct's."""

    behind: bool
    negative: bool
    body: Node
    position: int
    end: int
    asserts = True


@dataclass(frozen=True)
class Atomic:
    """The match of `body` that is preferred where it stands, and no other. The span is the whole
    group's, or a possessive quantifier's."""

    body: Node
    position: int
    end: int
    asserts = True


Node = Empty | Chars | Cat | Alt | Repeat | Anchor | Look | Atomic


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


def repeat(body: Node, min: int, max: int | None) -> Node:
    """A repetition that no source wrote, or none at all when it happens once."""
    return body if min == max == 1 else Repeat(body, min, max, 0, 0, body.asserts)


def not_followed_by(node: Node, position: int = 0, end: int = 0) -> Look:
    """`(?!node)`."""
    return Look(False, True, node, position, end)


def line_edge(terminators: Ranges, *, behind: bool, position: int, end: int) -> Look:
    """`^` (`behind`) or `$` under the flag `m`: beside no character, or a line terminator."""
    return Look(behind, True, Chars(invert(terminators)), position, end)


def boundary(word: Ranges, *, negative: bool, position: int, end: int) -> Node:
    """`\\b` or `\\B`: whether just one of the characters on both sides is of `word`."""

    def beside(behind: bool, is_word: bool) -> Look:
        return Look(behind, not is_word, Chars(word), position, end)

    return alt(
        [
            cat([beside(True, left), beside(False, left if negative else not left)])
            for left in (True, False)
        ]
    )


def length(node: Node) -> tuple[int, int | None]:
    """The fewest and the most characters that a node can match, assertions taken for granted; None
    when there is no bound. An empty class counts as one character."""
    if isinstance(node, Chars):
        return 1, 1
    if isinstance(node, Atomic):
        return length(node.body)
    if isinstance(node, Cat):
        sizes = [length(part) for part in node.parts]
        most = [high for _, high in sizes if high is not None]
        return sum(low for low, _ in sizes), sum(most) if len(most) == len(sizes) else None
    if isinstance(node, Alt):
        sizes = [length(branch) for branch in node.branches]
        most = [high for _, high in sizes if high is not None]
        return min(low for low, _ in sizes), max(most) if len(most) == len(sizes) else None
    if isinstance(node, Repeat):
        low, high = length(node.body)
        if node.max == 0 or high == 0:
            return 0, 0
        return low * node.min, None if node.max is None or high is None else high * node.max
    return 0, 0


def takes_nothing(node: Node) -> bool:
    """Whether the node is seen to match no text at all wherever it stands."""
    if isinstance(node, Cat):
        return all(takes_nothing(part) for part in node.parts)
    if isinstance(node, Alt):
        return any(takes_nothing(branch) for branch in node.branches)
    if isinstance(node, Repeat):
        return node.min == 0 or takes_nothing(node.body)
    return isinstance(node, Empty)


def not_empty(node: Node) -> Node:
    """The node without some of its ways to match no text at all; it matches every other text as
    before."""
    if isinstance(node, Alt):
        branches = [not_empty(branch) for branch in node.branches if length(branch)[1] != 0]
        return alt(branches) if branches else node
    if isinstance(node, Repeat) and node.max != 0 and (node.min <= 1 or takes_nothing(node.body)):
        return repeat(not_empty(node.body), 1, node.max)
    return node


def plain(node: Node) -> Node:
    """The node without its assertions and atomic groups: it matches what the node does, or more."""
    if not node.asserts:
        return node
    if isinstance(node, Cat):
        return cat([plain(part) for part in node.parts])
    if isinstance(node, Alt):
        return alt([plain(branch) for branch in node.branches])
    if isinstance(node, Repeat):
        return repeat(plain(node.body), node.min, node.max)
    return plain(node.body) if isinstance(node, Atomic) else Empty()


def classes(node: Node) -> list[Ranges]:
    """Every class of characters in a node, those of assertions too."""
    if isinstance(node, Chars):
        return [node.ranges]
    if isinstance(node, Anchor):
        return [((0x0A, 0x0A),)]
    return [ranges for child in children(node) for ranges in classes(child)]


def children(node: Node) -> Sequence[Node]:
    """The nodes right inside a node."""
    if isinstance(node, Cat):
        return node.parts
    if isinstance(node, Alt):
        return node.branches
    return (node.body,) if isinstance(node, Repeat | Look | Atomic) else ()


def looks_behind(node: Look | Anchor) -> bool:
    """Whether the text before a place decides if the node holds there."""
    return node.kind == "start" if isinstance(node, Anchor) else node.behind
