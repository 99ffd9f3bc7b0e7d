"""What a Lark text says: definitions of rules and terminals, and the expressions they are made of.

A *scope* maps names to definitions; every grammar file has its own, and a name keeps the scope in
which it was written, so that an imported rule finds its own neighbours. Definitions can change
after they were made (`%extend`, and `%override` of an imported rule), which every mention then
sees, as in Lark. Nodes are equal when they say the same, wherever they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from grammaton.grammar.ebnf_nodes import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What a rule says in brackets after its name.

    Attributes:
        capture, stop_capture: names for what the rule, and its stop or suffix, match.
        lazy: the first place where the rule may end is where it ends.
        stop, suffix: what ends the rule, left out of its texts or the last part of them.
        max_tokens: the most tokens that may hold a part of a text.
        temperature: at which its tokens are sampled.
    """

    capture: str = ""
    stop_capture: str = ""
    lazy: bool = False
    stop: Node | None = None
    suffix: Node | None = None
    max_tokens: int | None = None
    temperature: float | None = None

    @property
    def of_terminals(self) -> bool:
        """Whether the rule must be one terminal."""
        ends = self.lazy or self.stop is not None or self.suffix is not None
        return ends or self.max_tokens is not None or self.temperature is not None


@dataclass(slots=True, eq=False)
class Definition:
    """A rule or a terminal.

    Attributes:
        name: as written where it was defined.
        params: the parameters of a template.
        body: what it says; None when it was only declared.
    """

    name: str
    params: tuple[str, ...]
    body: Node | None
    span: Span
    attributes: Attributes | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the name is a terminal's."""
        return is_terminal_name(self.name)


@dataclass(slots=True, eq=False)
class Scope:
    """The definitions that the names of one grammar file mean."""

    names: dict[str, Definition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Name:
    """A mention of a rule, a terminal or a template's parameter."""

    name: str
    scope: Scope
    span: Span = field(compare=False)

    @property
    def is_terminal(self) -> bool:
        """Whether the name is a terminal's."""
        return is_terminal_name(self.name)


@dataclass(frozen=True, slots=True)
class Text:
    """A literal; flags are some of "i"."""

    value: str
    flags: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression of Python's `re`, with flags out of "imslux".

    Attributes:
        offsets: for each character of `value` where it comes from in the source, and one more.
    """

    value: str
    flags: str
    offsets: tuple[int, ...] = field(compare=False)
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class CharRange:
    """One character between two, both included."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Use:
    """A template with its arguments."""

    template: Name
    arguments: tuple[Node, ...]


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
class Both:
    """A text of every part (`&`); terminals only."""

    parts: tuple[Node, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """A text that is none of `body` (`~`); terminals only."""

    body: Node
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Json:
    """The instances of a JSON Schema, given as its text."""

    schema: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Substring:
    """Any run of neighbouring chunks, the empty one too."""

    chunks: tuple[str, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Nested:
    """A grammar within a grammar, with names and ignored text of its own; the loader knows it by
    its scope."""

    statements: tuple[object, ...] = field(compare=False)
    scope: Scope
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Special:
    """One token out of some, taken whole; `negated`: out of all others."""

    names: tuple[str, ...]
    ids: tuple[tuple[int, int], ...]
    negated: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Instance:
    """A template with its arguments that was made a rule, as an argument of another.

    Attributes:
        rule: the name of the rule.
        depth: how deep templates stand within its arguments, itself counted.
    """

    rule: str
    depth: int
    span: Span = field(compare=False)


Node = (
    Name
    | Text
    | Regex
    | CharRange
    | Use
    | Seq
    | Alt
    | Repeat
    | Both
    | Not
    | Json
    | Substring
    | Special
    | Nested
    | Instance
)


def is_terminal_name(name: str) -> bool:
    """Whether a name is a terminal's: capital letters, after an underscore perhaps."""
    return name.lstrip("_")[:1].isupper()


def seq(parts: list[Node]) -> Node:
    """A sequence; one part stands for itself."""
    return parts[0] if len(parts) == 1 else Seq(tuple(parts))


def alt(branches: list[Node]) -> Node:
    """A choice; one branch stands for itself."""
    return branches[0] if len(branches) == 1 else Alt(tuple(branches))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below one."""
    match node:
        case Seq(parts) | Both(parts):
            return parts
        case Alt(branches):
            return branches
        case Repeat(body) | Not(body):
            return (body,)
        case Use(template, arguments):
            return (template, *arguments)
    return ()


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node with others in place of those directly below it, but for templates and arguments."""
    match node:
        case Seq(parts):
            return Seq(tuple(map(change, parts)))
        case Alt(branches):
            return Alt(tuple(map(change, branches)))
        case Both(parts, span):
            return Both(tuple(map(change, parts)), span)
        case Repeat(body, low, high):
            return Repeat(change(body), low, high)
        case Not(body, span):
            return Not(change(body), span)
    return node
