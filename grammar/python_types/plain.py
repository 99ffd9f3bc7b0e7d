"""Plain types to shapes: those of the standard library, without pydantic.

    dataclass, TypedDict, a callable's arguments    objects with a property a field
    NamedTuple, tuple                               arrays of fixed places
    list, set, frozenset, Sequence …                arrays
    dict, Mapping                                   objects; keys whose JSON is a string or integer
    Enum, Literal                                   their values
    Union, Optional                                 any of; the first member that fits is taken
    Any, object                                     any JSON

Classes, parametrised classes and aliases become definitions, so recursion costs nothing and ends.
What pydantic knows (models, its dataclasses, annotations of its own) is handed over as a whole.
Translating costs some ten microseconds a field.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import enum
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

from grammaton.errors import UnsupportedType
from grammaton.grammar.python_types.combine import (
    ANY,
    BOOLEAN,
    FLOAT,
    INT,
    NULL,
    TEXT,
    Field,
    any_of,
    array,
    mapping,
    number,
    record,
    text,
    unique,
    values,
    vector,
)
from grammaton.grammar.python_types.constraints import Constraints, collect, is_pydantic
from grammaton.grammar.python_types.scalars import SCALARS
from grammaton.grammar.python_types.shape import Schema, Shape

_LISTS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.deque: collections.deque,
}
_SETS: dict[Any, Callable[[list[Any]], Any]] = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}
_DICTS: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    dict: dict,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
}
_PRIMITIVES: dict[Any, Shape] = {
    bool: BOOLEAN,
    int: INT,
    float: FLOAT,
    str: TEXT,
    object: ANY,
    Any: ANY,
    **SCALARS,
}


class Translator:
    """Translates the types of one grammar.

    Args:
        open: whether unknown properties may be written; they are dropped when the value is built.
        models: what translates pydantic's types: called with the type, its path, and the prefix
            of the definitions it may make; gives the shape, whose schema holds them in `$defs`.

    Attributes:
        definitions: the schemas that `$ref`s lead to, by name.
    """

    def __init__(self, *, open: bool, models: Callable[[Any, str, str], Shape]) -> None:
        self.definitions: dict[str, Schema] = {}
        self._open = open
        self._models = models
        self._known: dict[Any, Shape] = {}
        self._scope: dict[TypeVar, Any] = {}
        self._names: Mapping[str, Any] = {}
        self._handed = 0

    def shape(self, kind: Any, path: str) -> Shape:
        """The shape of a type.

        Raises:
            UnsupportedType: some part of it has none.
        """
        if kind is None or kind is type(None):
            return NULL
        if isinstance(kind, str):
            kind = ForwardRef(kind)
        if isinstance(kind, ForwardRef):
            return self._forward(kind, path)
        if isinstance(kind, TypeVar):
            if kind not in self._scope:
                raise UnsupportedType(f"the type variable {kind} stands for no type", path=path)
            return self.shape(self._scope[kind], path)
        origin = get_origin(kind)
        if origin is typing.Annotated:
            return self._annotated(kind, path)
        if _is_wrapper(origin):
            return self.shape(get_args(kind)[0], path)
        if hasattr(kind, "__supertype__"):
            return self.shape(kind.__supertype__, path)
        if hasattr(origin or kind, "__value__"):
            return self._alias(kind, origin, path)
        if origin is Literal:
            return values([(value, value) for value in get_args(kind)], path)
        if origin is Union or isinstance(kind, types.UnionType):
            return any_of([self.shape(member, path) for member in get_args(kind)])
        made = self._container(kind, origin, Constraints(), path)
        return self._class(kind, origin, path) if made is None else made

    def arguments(self, function: Callable[..., Any], path: str) -> Shape:
        """The shape of a callable's arguments, as a dict for `function(**arguments)`."""
        hints = _hints(function, path)
        fields = []
        rest: Shape | None = None
        for name, parameter in inspect.signature(function).parameters.items():
            where = f"{path}.{name}"
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
                raise UnsupportedType("arguments are given by name; this one has none", path=where)
            if name not in hints:
                raise UnsupportedType("the parameter has no annotation", path=where)
            shape = self.shape(hints[name], where)
            if parameter.kind is parameter.VAR_KEYWORD:
                rest = shape
            else:
                fields.append(Field(name, shape, parameter.default is parameter.empty))
        return record(fields, dict, open=self._open, rest=rest)

    # Names

    def _forward(self, reference: ForwardRef, path: str) -> Shape:
        name = reference.__forward_arg__
        module = getattr(reference, "__forward_module__", None)
        names = vars(sys.modules[module]) if isinstance(module, str) else self._names
        try:
            kind = eval(reference.__forward_code__, dict(names))
        except Exception as error:
            raise UnsupportedType(f"{name!r} can't be resolved: {error}", path=path) from None
        return self._defined((name, id(names)), name, lambda: self.shape(kind, path))

    def _alias(self, kind: Any, origin: Any, path: str) -> Shape:
        alias = origin or kind

        def make() -> Shape:
            module = sys.modules.get(alias.__module__)
            with_args = dict(zip(alias.__type_params__, get_args(kind), strict=False))
            return self._within(
                vars(module) if module else {},
                with_args,
                lambda: self.shape(alias.__value__, path),
            )

        return self._defined(self._key(kind), alias.__name__, make)

    def _key(self, kind: Any) -> Any:
        """What a definition is known by: the type, and what its variables stand for."""
        parameters = getattr(kind, "__parameters__", ())
        return (kind, tuple(self._scope.get(each) for each in parameters))

    def _within(
        self, names: Mapping[str, Any], variables: dict[TypeVar, Any], make: Callable[[], Shape]
    ) -> Shape:
        """Makes a shape where names and type variables mean something else."""
        outer = self._names, self._scope
        inner = {
            variable: self._scope.get(kind, kind) if isinstance(kind, TypeVar) else kind
            for variable, kind in variables.items()
        }
        self._names, self._scope = names, inner
        try:
            return make()
        finally:
            self._names, self._scope = outer

    def _defined(self, key: Any, name: str, make: Callable[[], Shape]) -> Shape:
        """A shape by reference; made once, so it may contain itself."""
        known = self._known.get(key)
        if known is not None:
            return known
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        slot = plain
        number = 1
        while slot in self.definitions:
            number += 1
            slot = f"{plain}-{number}"
        self.definitions[slot] = {}
        made: list[Shape] = []
        shape = Shape({"$ref": f"#/$defs/{slot}"}, lambda value: made[0].build(value))
        self._known[key] = shape
        made.append(make())
        if made[0].key is not None:
            # A name for a scalar, which can't contain itself.
            del self.definitions[slot]
            self._known[key] = made[0]
            return made[0]
        self.definitions[slot] = made[0].schema
        return shape

    # Annotated

    def _annotated(self, kind: Any, path: str) -> Shape:
        inner, metadata = kind.__origin__, kind.__metadata__
        if any(map(is_pydantic, metadata)):
            return self._model(kind, path)
        found = collect(metadata, path)
        return self._constrained(inner, found, path) if found else self.shape(inner, path)

    def _constrained(self, kind: Any, found: Constraints, path: str) -> Shape:
        """A type with constraints; those of a union hold for its members but None."""
        origin = get_origin(kind)
        if origin is typing.Annotated:
            if any(map(is_pydantic, kind.__metadata__)):
                raise UnsupportedType("constraints around pydantic's annotations", path=path)
            inner = collect(kind.__metadata__, path)
            both = Constraints(inner.bounds + found.bounds, inner.lengths + found.lengths)
            return self._constrained(kind.__origin__, both, path)
        if isinstance(kind, TypeVar) and kind in self._scope:
            return self._constrained(self._scope[kind], found, path)
        if _is_wrapper(origin):
            return self._constrained(get_args(kind)[0], found, path)
        if hasattr(kind, "__supertype__"):
            return self._constrained(kind.__supertype__, found, path)
        if origin is Union or isinstance(kind, types.UnionType):
            shapes = [
                NULL if member is type(None) else self._constrained(member, found, path)
                for member in get_args(kind)
            ]
            return any_of(shapes)
        if not found.lengths and kind in (int, float, Decimal):
            return number(kind, found, path)
        if not found.bounds:
            if kind is str:
                return text(found)
            shape = self._container(kind, origin, found, path)
            if shape is not None:
                return shape
        words = ", ".join(word for word, _ in (*found.bounds, *found.lengths))
        raise UnsupportedType(f"{words} can't be enforced on {_name(kind)}", path=path)

    # Containers

    def _container(self, kind: Any, origin: Any, found: Constraints, path: str) -> Shape | None:
        """The shape of a container; None when the type is none."""
        base, arguments = origin or kind, get_args(kind)
        if not isinstance(base, type):
            return None
        if base in _LISTS:
            item = self._argument(arguments, 0, f"{path}.item")
            return array(item, _LISTS[base], found)
        if base in _SETS:
            item = self._argument(arguments, 0, f"{path}.item")
            return unique(item, _SETS[base], found, path)
        if base in _DICTS:
            key = self._argument(arguments, 0, f"{path}.key") if arguments else TEXT
            value = self._argument(arguments, 1, f"{path}.value")
            return mapping(key, value, _DICTS[base], found, path)
        if base is not tuple:
            return None
        if origin is None or (len(arguments) == 2 and arguments[1] is Ellipsis):
            return array(self._argument(arguments, 0, f"{path}.item"), tuple, found)
        if found:
            raise UnsupportedType("the length of a tuple is fixed by its type", path=path)
        places = [self.shape(each, f"{path}.{place}") for place, each in enumerate(arguments)]
        return vector(places, len(places), tuple)

    def _argument(self, arguments: tuple[Any, ...], place: int, path: str) -> Shape:
        return self.shape(arguments[place], path) if arguments else ANY

    # Classes

    def _class(self, kind: Any, origin: Any, path: str) -> Shape:
        base = origin or kind
        if kind in _PRIMITIVES:
            return _PRIMITIVES[kind]
        if not isinstance(base, type):
            raise UnsupportedType(f"{kind!r} is not supported", path=path)
        if is_pydantic(base) or hasattr(base, "__pydantic_core_schema__"):
            return self._model(kind, path)
        if issubclass(base, enum.Flag):
            raise UnsupportedType("combinations of flags are not supported", path=path)
        if issubclass(base, enum.Enum):
            return values([(member.value, member) for member in base], path)
        make = self._maker(base)
        if make is None:
            raise UnsupportedType(f"{_name(kind)} is no type with a JSON form", path=path)
        module = sys.modules.get(base.__module__)
        names = vars(module) if module else {}
        variables = dict(zip(getattr(base, "__parameters__", ()), get_args(kind), strict=False))
        return self._defined(
            self._key(kind),
            base.__name__,
            lambda: self._within(names, variables, lambda: make(base, base.__name__)),
        )

    def _maker(self, kind: type) -> Callable[[Any, str], Shape] | None:
        if dataclasses.is_dataclass(kind):
            return self._dataclass
        if issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
            return self._typed_dict
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return self._named_tuple
        return None

    def _dataclass(self, kind: Any, path: str) -> Shape:
        hints = _hints(kind, path)
        fields = []
        for each in dataclasses.fields(kind):
            where = f"{path}.{each.name}"
            if not each.init:
                continue
            if is_pydantic(each.default):
                raise UnsupportedType(
                    "pydantic's Field works in pydantic's own dataclasses and models", path=where
                )
            required = (
                each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
            )
            fields.append(Field(each.name, self.shape(hints[each.name], where), required))
        known = {each.name for each in dataclasses.fields(kind)}
        for name, parameter in inspect.signature(kind).parameters.items():
            if name not in known and parameter.default is parameter.empty:
                raise UnsupportedType(
                    "it takes an argument that is no field", path=f"{path}.{name}"
                )
        return record(fields, lambda found: kind(**found), open=self._open)

    def _typed_dict(self, kind: Any, path: str) -> Shape:
        fields = []
        for name, hint in _hints(kind, path).items():
            required = name in kind.__required_keys__
            inner = hint
            # An annotation that was a string is not counted in __required_keys__.
            while _is_wrapper(get_origin(inner)) or get_origin(inner) is typing.Annotated:
                word = getattr(get_origin(inner), "_name", None)
                if word in ("Required", "NotRequired"):
                    required = word == "Required"
                inner = get_args(inner)[0]
            fields.append(Field(name, self.shape(hint, f"{path}.{name}"), required))
        return record(fields, dict, open=self._open)

    def _named_tuple(self, kind: Any, path: str) -> Shape:
        hints = _hints(kind, path)
        for name in kind._fields:
            if name not in hints:
                raise UnsupportedType("the field has no annotation", path=f"{path}.{name}")
        places = [self.shape(hints[name], f"{path}.{name}") for name in kind._fields]
        least = len(places) - len(kind._field_defaults)
        return vector(places, least, lambda found: kind(*found))

    def _model(self, kind: Any, path: str) -> Shape:
        self._handed += 1
        shape = self._models(kind, path, f"pydantic-{self._handed}.")
        self.definitions.update(shape.schema.pop("$defs", {}))
        return shape


def _hints(thing: Any, path: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except Exception as error:
        raise UnsupportedType(
            f"its annotations can't be resolved: {error}; names must be known in the module",
            path=path,
        ) from error


def _is_wrapper(origin: Any) -> bool:
    """Whether a form says something about a field and nothing about its type."""
    return getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly", "Final")


def _name(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) else repr(kind)
