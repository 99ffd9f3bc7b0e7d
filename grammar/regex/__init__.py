"""Regular expressions as terms: a parser for each dialect, one lowering.

    ranges     code point sets, and the named classes of the dialects
    nodes      what a pattern says, free of any dialect
    parser     what the dialects' parsers share; python, ecma: what they do not
    lower      nodes to terms, anchors and look-ahead included

A pattern is parsed in linear time, and lowering makes a number of terms linear in the pattern:
nested counts stay counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from grammaton.errors import GrammarError
from grammaton.grammar.regex.ecma import EcmaParser
from grammaton.grammar.regex.lower import Lowering
from grammaton.grammar.regex.python import PythonParser

if TYPE_CHECKING:
    from grammaton._core import TermStore

Dialect = Literal["python", "ecma"]

_PARSERS = {"python": PythonParser, "ecma": EcmaParser}


def pattern_term(
    store: TermStore, pattern: str, *, dialect: Dialect = "ecma", search: bool = True
) -> int:
    """The regular term, over decoded code points, of the texts that a pattern matches.

    Args:
        store: where the term is made.
        pattern: the regular expression.
        dialect: "ecma" (ECMA-262 with `u` semantics, what JSON Schema uses) or "python" (str
            patterns of `re`).
        search: whether a text matches when it contains a match (JSON Schema's rule), or only when
            it is one from end to end.

    Raises:
        GrammarError: a syntax error or an unsupported construct, with its span in the pattern; an
            unknown dialect.
    """
    parser = _PARSERS.get(dialect)
    if parser is None:
        raise GrammarError(f"unknown regex dialect {dialect!r}; expected 'python' or 'ecma'")
    node = parser(pattern).parse()
    lowering = Lowering(store, pattern)
    return lowering.search(node) if search else lowering.whole(node)
