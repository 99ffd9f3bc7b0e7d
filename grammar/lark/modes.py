"""Which of Lark's parsers and lexers a grammar is meant for.

A *mode* is a pair of Lark's options `parser` and `lexer`. Each means a language of its own, so a
pair is either supported exactly or refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError, UnsupportedKeyword

if TYPE_CHECKING:
    from grammaton.grammar.lalr_grammar import LalrLexer

_SUPPORTED = {
    "earley": ("dynamic_complete",),
    "lalr": ("contextual", "basic"),
}
"""Lexers by parser, the default first."""

_REFUSED = {
    ("earley", "dynamic"): "its results depend on the order in which Lark tries terminals",
    ("earley", "basic"): "only LALR is supported with a lexer that goes first",
    ("cyk", "basic"): "only LALR is supported with a lexer that goes first",
}
"""Pairs that Lark has and we have not, with the reason."""


def check_mode(
    parser: object,
    lexer: object,
    declared: Mapping[str, str | None] | None,
    indenter: object = None,
    max_ignored: object = None,
) -> LalrLexer | None:
    """The lexer of an LALR grammar; None for the scannerless semantics.

    Raises:
        UnsupportedKeyword: a pair of Lark's that is not supported, or LALR with an indenter or
            a bound on ignored text.
        GrammarError: no pair of Lark's; `declared` with patterns for an LALR grammar.
    """
    if parser == "cyk" and lexer is None:
        lexer = "basic"
    if isinstance(parser, str) and isinstance(lexer, str) and (parser, lexer) in _REFUSED:
        raise UnsupportedKeyword(
            f"parser={parser!r} with lexer={lexer!r} is not supported: {_REFUSED[parser, lexer]}; "
            f"supported are {_pairs()}"
        )
    if isinstance(lexer, type):
        raise UnsupportedKeyword(
            f"a lexer of one's own ({lexer.__name__}) is code that no grammar can say; supported "
            f"are {_pairs()}"
        )
    lexers = _SUPPORTED.get(parser) if isinstance(parser, str) else None
    if lexers is None:
        raise GrammarError(f"unknown parser {parser!r}; supported are {_pairs()}")
    if lexer is None:
        lexer = lexers[0]
    if lexer not in lexers:
        raise GrammarError(f"parser={parser!r} has no lexer {lexer!r}; supported are {_pairs()}")
    if parser != "lalr":
        return None
    if indenter is not None:
        raise UnsupportedKeyword(
            'parser="lalr" with an indenter is not supported; read scannerless, which is the '
            "default, the grammar has its blocks by indentation"
        )
    if max_ignored not in (None, "default"):
        raise UnsupportedKeyword(
            f'parser="lalr" with max_ignored={max_ignored!r} is not supported: the language is all '
            "that Lark parses, and Lark bounds no run of ignored text; read scannerless, which is "
            "the default, it is bounded"
        )
    for name, pattern in (declared or {}).items():
        if pattern is not None:
            raise GrammarError(
                f"declared has a pattern for {name}, but Lark's lexers never produce a terminal "
                "that is only declared; define it in the grammar"
            )
    return "basic" if lexer == "basic" else "contextual"


def _pairs() -> str:
    pairs = [(parser, lexer) for parser, lexers in _SUPPORTED.items() for lexer in lexers]
    return ", ".join(f"parser={parser!r} with lexer={lexer!r}" for parser, lexer in pairs)
