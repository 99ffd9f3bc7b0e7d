"""`Indenter`: what indentation means in a Lark grammar, which is no matter of the grammar alone.

Lark leaves it to code, `lark.indenter.Indenter`, that runs between lexer and parser: after each
newline it compares the blanks at the start of the line with the *levels* of the blocks around, and
puts an indent or dedents in. `Indenter` here is the same as a value. indentation.py says what it
makes of a grammar.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from grammaton.errors import GrammarError

MAX_COLUMNS = 10_000
"""The widest tab, and the largest step from one level to the next."""


@dataclass(frozen=True, kw_only=True)
class Indenter:
    """Names and widths for `Grammar.from_lark(…, indenter=…)`; the defaults are Python's.

    Attributes:
        newline: the terminal of line breaks. It takes the blanks after a line break with it; what
            it matches up to its last line break, and any blanks, are one line break of the text.
        indent, dedent: the terminals, declared only, that open and close a block.
        tab_length: the columns that a tab counts as, wherever it stands.
        open_parens, close_parens: the terminals between which line breaks don't count, by name;
            the literals of Python's parentheses go by Lark's names for them.
        max_step: the most columns by which a block may be further in than the one around it, so
            that a model can't loop in them.
    """

    newline: str = "_NEWLINE"
    indent: str = "_INDENT"
    dedent: str = "_DEDENT"
    tab_length: int = 8
    open_parens: tuple[str, ...] = ("LPAR", "LSQB", "LBRACE")
    close_parens: tuple[str, ...] = ("RPAR", "RSQB", "RBRACE")
    max_step: int = 32

    def __post_init__(self) -> None:
        for name in ("newline", "indent", "dedent"):
            if not isinstance(getattr(self, name), str):
                raise GrammarError(f"Indenter.{name} is the name of a terminal")
        for name in ("open_parens", "close_parens"):
            names = getattr(self, name)
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise GrammarError(f"Indenter.{name} is a list of names of terminals")
            object.__setattr__(self, name, tuple(names))
        for name in ("tab_length", "max_step"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= MAX_COLUMNS:
                raise GrammarError(f"Indenter.{name} is between 1 and {MAX_COLUMNS}, not {value!r}")

    @classmethod
    def from_lark(cls, indenter: object, *, max_step: int = 32) -> Indenter:
        """The same as an indenter of Lark, a `lark.indenter.Indenter` or its class.

        Raises:
            GrammarError: it lacks one of the attributes of an indenter.
        """
        attributes = {
            "newline": "NL_type",
            "indent": "INDENT_type",
            "dedent": "DEDENT_type",
            "tab_length": "tab_len",
            "open_parens": "OPEN_PAREN_types",
            "close_parens": "CLOSE_PAREN_types",
        }
        values = {}
        for field in fields(cls):
            if field.name in attributes:
                if not hasattr(indenter, attributes[field.name]):
                    raise GrammarError(f"an indenter of Lark has {attributes[field.name]}")
                values[field.name] = getattr(indenter, attributes[field.name])
        return cls(**values, max_step=max_step)
