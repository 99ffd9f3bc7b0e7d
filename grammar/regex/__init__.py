"""Regular expressions as terms: a parser for each dialect, one lowering.

    ranges          code point sets, and the named classes of the dialects
    casing          case as Python's `re` folds it
    unicode_table   properties and case as ECMA-262 has them, out of `unicode.json`
    nodes           what a pattern says, free of any dialect
    parser          what the dialects' parsers share; python, ecma: what they do not
    atomic          atomic groups and possessive quantifiers rewritten as look-ahead
    contexts        what can be told about the text on either side of a place
    terms, lower    nodes to terms, look-around included; loops: repetitions of it

Patterns of schemas that need none of this are read by the core (`TermStore.plain_pattern`), in a
hundredth of the time, to the same terms.

A pattern is parsed in linear time, and lowering makes a number of terms linear in the pattern, with
a factor for the contexts that its look-behinds tell apart: nested counts stay counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from grammaton.errors import GrammarError
from grammaton.grammar.regex.ecma import EcmaParser
from grammaton.grammar.regex.lower import Lowering, edge_term
from grammaton.grammar.regex.parser import Parser
from grammaton.grammar.regex.python import PythonParser
from grammaton.grammar.utf8 import check_utf8

if TYPE_CHECKING:
    from grammaton._core import TermStore

Dialect = Literal["python", "ecma"]


def pattern_term(
    store: TermStore,
    pattern: str,
    *,
    dialect: Dialect = "ecma",
    search: bool = True,
    flags: str = "",
    lenient: bool = True,
) -> int:
    """The regular term, over decoded code points, of the texts that a pattern matches.

    Args:
        store: where the term is made.
        pattern: the regular expression.
        dialect: "ecma" (ECMA-262 with `u` semantics, what JSON Schema uses) or "python" (str
            patterns of `re`).
        search: whether a text matches when it contains a match (JSON Schema's rule), or only when
            it is one from end to end.
        flags: letters of flags for the whole pattern, of "imsu" (ecma) or "aimsux" (python).
        lenient: in the dialect "ecma", whether some forms that are wrong under the flag `u` but
            frequent in schemas are taken (see `ecma`).

    Raises:
        GrammarError: a syntax error or an unsupported construct, with its span in the pattern; an
            unknown dialect or flag.
    """
    parser: Parser
    if dialect == "ecma" and search and lenient and not flags:
        plain = store.plain_pattern(check_utf8(pattern, "a pattern"))
        if plain is not None:
            return plain
    if not isinstance(flags, str):
        raise GrammarError(f"flags must be a str of letters, not {type(flags).__name__}")
    if dialect == "python":
        parser = PythonParser(pattern, flags)
    elif dialect == "ecma":
        parser = EcmaParser(pattern, flags, lenient=lenient)
    else:
        raise GrammarError(f"unknown regex dialect {dialect!r}; expected 'python' or 'ecma'")
    node = parser.parse()
    term = edge_term(store, node, search=search)
    if term is not None:
        return term
    lowering = Lowering(store, pattern, node)
    return lowering.search() if search else lowering.whole()
