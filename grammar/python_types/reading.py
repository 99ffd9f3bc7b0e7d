"""The entry points: a type's schema, and the reader of its texts."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from grammaton.errors import GrammarError, GrammatonError, UnsatisfiableGrammar, UnsupportedType
from grammaton.grammar.python_types.plain import Translator
from grammaton.grammar.python_types.rewrite import path_of
from grammaton.grammar.python_types.shape import Mismatch, Schema, Shape, read_json

if TYPE_CHECKING:
    from grammaton._core import TermStore
    from grammaton.grammar.json_schema import Escapes, KeyOrder, Whitespace

Validators = Literal["refuse", "run"]

DRAFT = "http://json-schema.org/draft-04/schema#"


class Reader:
    """Reads the texts of a type's grammar as its values.

    Args:
        kind: a type, or a callable, whose values are dicts of its arguments.
        additional_properties: whether unknown properties are passed over.
        validators: "refuse" or "run"; see `Grammar.from_type`.

    Attributes:
        name: the type's, for messages.
        schema: the JSON Schema of the texts.

    Raises:
        UnsupportedType: some part of the type has no exact translation.
        GrammatonError: an option has a value it can't have.
    """

    def __init__(
        self,
        kind: Any,
        *,
        additional_properties: bool = False,
        validators: Validators = "refuse",
    ) -> None:
        if validators not in ("refuse", "run"):
            raise GrammatonError(f'validators is "refuse" or "run", not {validators!r}')
        if not isinstance(additional_properties, bool):
            raise GrammatonError(
                f"additional_properties is True or False, not {additional_properties!r}"
            )
        self._kind = kind
        self._open = additional_properties
        self._validators: Validators = validators
        self._read: Callable[[str], Any] | None = None
        self.name: str = getattr(kind, "__name__", None) or repr(kind)
        translator = Translator(open=additional_properties, models=self._model)
        if inspect.isroutine(kind) or isinstance(kind, functools.partial):
            shape = translator.arguments(kind, self.name)
        else:
            shape = translator.shape(kind, self.name)
        self._shape = shape
        self.schema: Schema = {"$schema": DRAFT, **shape.schema}
        if "$ref" in shape.schema:
            self.schema = {"$schema": DRAFT, "allOf": [shape.schema]}
        if translator.definitions:
            self.schema["$defs"] = translator.definitions

    def grammar(
        self,
        *,
        key_order: KeyOrder = "schema",
        whitespace: Whitespace = "flexible",
        ensure_ascii: bool = False,
        escapes: Escapes = "any",
    ) -> tuple[TermStore, int]:
        """A term store with the texts, and the start term in it.

        Raises:
            UnsupportedType: JSON Schema can say a part of the type, and it is not enforced.
            UnsatisfiableGrammar: the type has no values.
            GrammatonError: an option has a value it can't have.
        """
        from grammaton.grammar.json_schema import grammar_from_json_schema

        try:
            return grammar_from_json_schema(
                self.schema,
                key_order=key_order,
                whitespace=whitespace,
                ensure_ascii=ensure_ascii,
                escapes=escapes,
                additional_properties=None if self._open else False,
            )
        except GrammarError as error:
            path = path_of(error.pointer or "", self.name)
            if isinstance(error, UnsatisfiableGrammar):
                raise UnsatisfiableGrammar(f"{path} has no values: {error.message}") from error
            raise UnsupportedType(error.message, path=path) from error

    def _model(self, kind: Any, path: str, prefix: str) -> Shape:
        from grammaton.grammar.python_types.models import translate

        run = self._validators == "run"
        shape, read = translate(kind, path, prefix=prefix, run_validators=run)
        if kind is self._kind:
            self._read = read
        return shape

    def __call__(self, text: str) -> Any:
        """The value of a text.

        Raises:
            GrammarError: the text is none of the type's, or its class or a validator refused it.
        """
        try:
            if self._read is not None:
                return self._read(text)
            return self._shape.build(read_json(text))
        except Mismatch as error:
            reason = f": {error}" if str(error) else ""
            raise GrammarError(f"the text is no {self.name}{reason}") from error
        except Exception as error:  # whatever a class or a validator raises
            raise GrammarError(f"no {self.name} can be made of the text: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return _reader, (self._kind, self._open, self._validators)


def _reader(kind: Any, additional_properties: bool, validators: Validators) -> Reader:
    return Reader(kind, additional_properties=additional_properties, validators=validators)
