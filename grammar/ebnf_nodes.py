"""What a grammar's text says, after parsing and before lowering: the same for GBNF, EBNF and Lark.

A *rule* is a named expression; an expression is a tree of the nodes below. Leaves are characters,
literals, terms that a front end has already made (a terminal's regular expression), and mentions
of rules. A *mention* keeps its span in the source, so that a name without a rule is reported where
it stands.

`Rules` holds the rules of one grammar with the source each came from, since a grammar can import
others. Trees are as deep as their source nests, which the front ends bound (`MAX_NESTING`), so that
functions over trees may recurse. Chains of rules have no such bound: functions over them do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from grammaton.errors import GrammarError, PlacedError
from grammaton.grammar.regex.ranges import Ranges

MAX_NESTING = 50
"""How deep groups may stand within each other."""

MAX_REPEAT = 2**32 - 2
"""The largest bound of a repetition."""


class Blame(Protocol):
    """Makes the error for a place: `error` of a source's span, a rule or a node."""

    def __call__(self, message: str, /, *, kind: type[PlacedError]) -> PlacedError:
        """The error; it is for the caller to raise."""


@contextmanager
def blamed(error: Blame) -> Iterator[None]:
    """Errors from within that have no place get this one."""
    try:
        yield
    except PlacedError as found:
        if found.position is not None or found.pointer is not None:
            raise
        raise error(found.message, kind=type(found)) from found


@dataclass(frozen=True, slots=True)
class Source:
    """A text that rules were read from.

    Attributes:
        text: the whole text; spans are code-point offsets into it.
        file: where it was read, for messages; empty for the text that the caller handed in.
    """

    text: str
    file: str = ""

    def error(
        self,
        message: str,
        position: int,
        end: int | None = None,
        *,
        kind: type[PlacedError] = GrammarError,
    ) -> PlacedError:
        """The error for a span; it is for the caller to raise."""
        if self.file:
            message = f"{message}, in {self.file}"
        return kind(message, source=self.text, position=position, end=end)


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a range set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this text; it may be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """A regular term of the store that the grammar is lowered into."""

    term: int
    length: int | None
    """Characters of its longest text; None when there is no bound, or it is unknown."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A mention of a rule."""

    name: str
    source: Source
    position: int
    end: int


@dataclass(frozen=True, slots=True)
class Seq:
    """All parts in turn; none is the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """Any of the branches."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`body` between `min` and `max` times; None is any number."""

    body: Node
    min: int
    max: int | None


@dataclass(frozen=True, slots=True)
class Without:
    """A text of `body` that is none of `removed`; both without recursion. The span is `-`'s."""

    body: Node
    removed: Node
    source: Source
    position: int
    end: int

    def error(self, message: str, *, kind: type[PlacedError] = GrammarError) -> PlacedError:
        """The error for the place; it is for the caller to raise."""
        return self.source.error(message, self.position, self.end, kind=kind)


@dataclass(frozen=True, slots=True)
class Tokens:
    """One token out of some, taken whole; `negated`: out of all others."""

    names: tuple[str, ...]
    ids: tuple[tuple[int, int], ...]
    negated: bool
    source: Source = field(compare=False)
    position: int = field(compare=False)
    end: int = field(compare=False)

    def error(self, message: str) -> PlacedError:
        """The error for the place; it is for the caller to raise."""
        return self.source.error(message, self.position, self.end)


@dataclass(frozen=True, slots=True)
class Margin:
    """The blanks before a line of the block under way; `some`: only where there are any.

    Attributes:
        tab: the columns that a tab counts as.
    """

    tab: int
    some: bool


@dataclass(frozen=True, slots=True)
class Indent:
    """Blanks that are wider than the margin, by at most `most` columns, then a block with them as
    its margin."""

    block: Ref
    tab: int
    most: int


TokenKey = tuple[tuple[str, ...], tuple[tuple[int, int], ...], bool]
"""What `TermStore.node` says of a set of tokens: names, ids, negated."""

TokenPlaces = dict[TokenKey, Tokens]
"""Where a grammar's text mentions tokens, for errors that only a vocabulary can find."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where something stands."""

    source: Source
    position: int
    end: int

    def error(self, message: str, *, kind: type[PlacedError] = GrammarError) -> PlacedError:
        """The error for the place; it is for the caller to raise."""
        return self.source.error(message, self.position, self.end, kind=kind)

    def blamed(self) -> AbstractContextManager[None]:
        """Errors from within that have no place get this one."""
        return blamed(self.error)


RulePlaces = dict[str, Span]
"""Where rules are defined, by the names that the core has of them, for errors that it finds. That
of "" is for what no single rule is at fault for: the start's."""

Node = Chars | Literal | Term | Ref | Seq | Alt | Repeat | Without | Tokens | Margin | Indent


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What else a rule says of its texts; see `TermStore.set_attributes`."""

    capture: str = ""
    stop_capture: str = ""
    suffix: int = 0
    max_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A named expression, with the span of its name where it is defined."""

    name: str
    body: Node
    source: Source
    position: int
    end: int
    attributes: Attributes | None = None

    def error(self, message: str, *, kind: type[PlacedError] = GrammarError) -> PlacedError:
        """The error for the rule as a whole; it is for the caller to raise."""
        return self.source.error(message, self.position, self.end, kind=kind)


@dataclass
class Rules:
    """The rules of one grammar by name, in the order of their definition, and its text."""

    source: Source = Source("")
    by_name: dict[str, Rule] = field(default_factory=dict)

    def add(self, rule: Rule) -> None:
        """Adds a rule.

        Raises:
            GrammarError: the name is taken; the place is the second definition's.
        """
        if rule.name in self.by_name:
            raise rule.error(f"rule {rule.name} is defined twice")
        self.by_name[rule.name] = rule


def seq(parts: list[Node]) -> Node:
    """A sequence; one part stands for itself."""
    return parts[0] if len(parts) == 1 else Seq(tuple(parts))


def alt(branches: list[Node]) -> Node:
    """A choice; one branch stands for itself."""
    return branches[0] if len(branches) == 1 else Alt(tuple(branches))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below one."""
    match node:
        case Seq(parts):
            return parts
        case Alt(branches):
            return branches
        case Repeat(body):
            return (body,)
        case Indent(block):
            return (block,)
        case Without(body, removed):
            return body, removed
    return ()


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node with others in place of those directly below it. An indent keeps a mention."""
    match node:
        case Seq(parts):
            return Seq(tuple(map(change, parts)))
        case Alt(branches):
            return Alt(tuple(map(change, branches)))
        case Repeat(body, low, high):
            return Repeat(change(body), low, high)
        case Indent(block):
            ref = change(block)
            assert isinstance(ref, Ref)
            return replace(node, block=ref)
        case Without(body, removed):
            return replace(node, body=change(body), removed=change(removed))
    return node


def mentions(node: Node) -> Iterator[Ref]:
    """The mentions of rules in an expression, from left to right."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Ref):
            yield top
        stack.extend(reversed(children(top)))
