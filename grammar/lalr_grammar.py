"""`LalrGrammar`: a Lark grammar with the parser and the lexers of Lark's `parser="lalr"`.

It is no term of the expression language but a machine of its own (docs/lark-lalr.md), made of
*tables* (`grammaton._core.LalrTables`): the parser's, and the patterns of its lexers. So it is
asked, compiled and followed like any grammar, but does not combine with others.
"""

from __future__ import annotations

from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from grammaton._core import LalrRecognizer
from grammaton.errors import GrammarError, PlacedError, UnsatisfiableGrammar
from grammaton.grammar.grammar import Grammar, question

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grammaton._core import LalrTables
    from grammaton.grammar.lark.lalr import Places

LalrLexer = Literal["contextual", "basic"]


class LalrGrammar(Grammar):
    """The texts that `lark.Lark(text, parser="lalr", lexer=lexer, start=start)` parses.

    Made by `Grammar.from_lark`. Its text form is the Lark text.

    Attributes:
        tables: what the core runs. Internal to the library.
    """

    __slots__ = ("_arguments", "_lalr", "_places", "tables")

    tables: LalrTables
    _arguments: tuple[str, str, LalrLexer, tuple[str, ...]]
    _lalr: LalrRecognizer | None
    _places: Places

    def __init__(
        self,
        text: str,
        *,
        start: str,
        lexer: LalrLexer,
        import_paths: Sequence[str | PathLike[str]],
    ) -> None:
        from grammaton.grammar.lark.lalr import lalr_tables

        tables, places = lalr_tables(text, start, lexer, import_paths)
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "_places", places)
        paths = tuple(str(path) for path in import_paths)
        object.__setattr__(self, "_arguments", (text, start, lexer, paths))
        object.__setattr__(self, "rehearsed", False)
        object.__setattr__(self, "_lalr", None)
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "token_places", {})
        object.__setattr__(self, "rule_places", {})
        object.__setattr__(self, "_reader", None)

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("store", "start"):
            raise GrammarError(
                'a Lark grammar with parser="lalr" is a machine of its own: it does not combine '
                "with other grammars and has no rules to look at or to print; the scannerless "
                "semantics, which is the default, has"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def accepts(self, text: str | bytes) -> bool:
        """Whether Lark parses a text; bytes are taken as UTF-8.

        Raises:
            GrammarError: not a text.
            LimitExceeded: see `grammaton.Limits`.
        """
        data = question(text)
        recognizer = self._ask()
        if data is None or recognizer is None:
            return False
        with self._placing():
            return recognizer.accepts(data)

    def accepts_prefix(self, text: str | bytes) -> bool:
        """Whether Lark parses some text that starts with `text`; bytes may end in a character.

        Raises:
            As `accepts`.
        """
        data = question(text)
        recognizer = self._ask()
        if data is None or recognizer is None:
            return False
        with self._placing():
            return recognizer.accepts_prefix(data)

    def _ask(self) -> LalrRecognizer | None:
        """The recognizer, None when Lark parses no text at all."""
        if self._lalr is None:
            try:
                with self._placing():
                    object.__setattr__(self, "_lalr", LalrRecognizer(self.tables))
            except UnsatisfiableGrammar:
                return None
        return self._lalr

    def placed(self, error: PlacedError) -> PlacedError:
        """An error of the core, with the place of the terminal at fault. Internal to the
        library."""
        if error.position is not None:
            return error
        return self._places.error(error.part, error.message, kind=type(error))

    @contextmanager
    def _placing(self) -> Iterator[None]:
        try:
            yield
        except PlacedError as error:
            raise self.placed(error) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LalrGrammar) and self._arguments == other._arguments

    def __hash__(self) -> int:
        return hash(self._arguments)

    def __repr__(self) -> str:
        _, start, lexer, _ = self._arguments
        return f"<LalrGrammar start={start!r} lexer={lexer!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._arguments


def _restored(
    text: str, start: str, lexer: LalrLexer, import_paths: tuple[str, ...]
) -> LalrGrammar:
    return LalrGrammar(text, start=start, lexer=lexer, import_paths=import_paths)
