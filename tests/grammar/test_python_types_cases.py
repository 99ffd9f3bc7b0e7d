"""Types by example: what is refused and where, tools' arguments, options, values that travel."""

from __future__ import annotations

import collections
import dataclasses
import enum
import pickle
import re
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict, TypeVar

import annotated_types as at
import pydantic
import pytest

from grammaton import Grammar, GrammarError, GrammatonError, UnsupportedType
from tests.grammar.python_types import Amounts, Cat, Circle, Dog, Item, Square, Tree

T = TypeVar("T")


class Movie(TypedDict):
    title: str
    year: int


class Flags(enum.Flag):
    A = 1
    B = 2


class Odd(enum.Enum):
    A = (1, 2)


class Plain:
    def __init__(self, a: int) -> None:
        self.a = a


@dataclasses.dataclass
class Outer:
    inner: dict[str, list[complex]]


@dataclasses.dataclass
class Init:
    a: int
    b: dataclasses.InitVar[int]


@dataclasses.dataclass
class Fielded:
    a: int = pydantic.Field(gt=3)


@dataclasses.dataclass
class Picky:
    a: int

    def __post_init__(self) -> None:
        if self.a == 3:
            raise ValueError("not three")


class Bounded(pydantic.BaseModel):
    counts: list[Annotated[Decimal, pydantic.Field(ge=0, lt=1)]]


class Validated(pydantic.BaseModel):
    a: int

    @pydantic.field_validator("a")
    @classmethod
    def odd(cls, a: int) -> int:
        if a % 2 == 0:
            raise ValueError("even")
        return a


class Holder(pydantic.BaseModel):
    urls: dict[str, pydantic.AnyUrl]


class Worded(pydantic.BaseModel):
    word: Annotated[str, pydantic.Field(pattern=r"^\W$")]


class Path(pydantic.BaseModel):
    a: int = pydantic.Field(validation_alias=pydantic.AliasPath("b", "c"))


class Late(pydantic.BaseModel):
    day: pydantic.PastDate


class Digits(pydantic.BaseModel):
    d: Annotated[Decimal, pydantic.Field(max_digits=3)]


Pair = collections.namedtuple("Pair", "a b")


def loose(a, b: int) -> None: ...  # type: ignore[no-untyped-def]


def spread(*rest: int) -> None: ...


REFUSED: list[tuple[Any, str]] = [
    (complex, "complex"),
    (Outer, "Outer.inner.value.item"),
    (Plain, "Plain"),
    (Flags, "Flags"),
    (Odd, "Odd"),
    (Init, "Init.b"),
    (Fielded, "Fielded.a"),
    (Pair, "Pair.a"),
    (loose, "loose.a"),
    (spread, "spread.rest"),
    (T, "T"),
    (list["Nowhere"], "list.item"),  # type: ignore[name-defined]  # noqa: F821
    (dict[float, int], "dict.key"),
    (Annotated[str, at.Ge(3)], "Annotated"),
    (Annotated[bytes, at.MinLen(3)], "Annotated"),
    (Annotated[int, at.Predicate(bool)], "Annotated"),
    (Annotated[set[int], at.MinLen(2)], "Annotated"),
    (Annotated[int, at.Ge("x")], "Annotated"),
    (list[Annotated[int, pydantic.Field(gt=3), pydantic.AfterValidator(abs)]], "list.item"),
    (Validated, "Validated.a"),
    (Holder, "Holder.urls.value"),
    (Worded, "Worded.word"),
    (Path, "Path.a"),
    (Late, "Late.day"),
    (Digits, "Digits.d"),
]


@pytest.mark.parametrize(
    ("kind", "path"), REFUSED, ids=lambda each: re.sub(" at 0x.*>", ">", str(each))
)
def test_what_has_no_exact_grammar_is_refused_by_its_path(kind: Any, path: str) -> None:
    with pytest.raises(UnsupportedType) as caught:
        Grammar.from_type(kind)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")


def test_impossible_bounds_are_refused() -> None:
    with pytest.raises(GrammarError, match="no values"):
        Grammar.from_type(Annotated[int, at.Gt(3), at.Lt(4)])


def test_validators_run_on_request() -> None:
    grammar = Grammar.from_type(Validated, validators="run")
    assert grammar.value('{"a": 3}') == Validated(a=3)
    assert grammar.accepts('{"a": 2}')
    with pytest.raises(GrammarError, match="even"):
        grammar.value('{"a": 2}')


def test_options_are_checked() -> None:
    with pytest.raises(GrammatonError, match="validators"):
        Grammar.from_type(int, validators="no")  # type: ignore[arg-type]
    with pytest.raises(GrammatonError, match="additional_properties"):
        Grammar.from_type(int, additional_properties=1)  # type: ignore[arg-type]
    with pytest.raises(GrammatonError, match="key_order"):
        Grammar.from_type(int, key_order="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Item, Cat, Movie], ids=lambda kind: kind.__name__)
def test_objects_are_closed_unless_opened(kind: Any) -> None:
    texts = {
        "Item": '{"name":"a","count":3,"zz":1}',
        "Cat": '{"Lives":3,"zz":1}',
        "Movie": '{"title":"a","year":3,"zz":1}',
    }
    text = texts[kind.__name__]
    assert not Grammar.from_type(kind).accepts(text)
    opened = Grammar.from_type(kind, additional_properties=True)
    assert opened.accepts(text)
    assert opened.value(text) == opened.value(text.replace(',"zz":1', ""))


def test_key_order_and_whitespace() -> None:
    swapped = '{"year":1,"title":"a"}'
    assert not Grammar.from_type(Movie).accepts(swapped)
    assert Grammar.from_type(Movie, key_order="any").accepts(swapped)
    assert not Grammar.from_type(Movie, whitespace="compact").accepts('{"title": "a","year":1}')


def test_integers_have_neither_fraction_nor_exponent() -> None:
    grammar = Grammar.from_type(int)
    assert grammar.accepts("-12")
    assert not any(map(grammar.accepts, ("1.0", "1e2", "true", '"1"')))
    assert type(Grammar.from_type(float).value("1")) is float


def test_exclusive_bounds_of_floats_hold_after_rounding() -> None:
    grammar = Grammar.from_type(Annotated[float, at.Lt(1)])
    assert grammar.accepts("0.9999999999999999")
    assert not grammar.accepts("0.99999999999999999")


def test_exponents_without_end_are_read() -> None:
    huge = "1e" + "9" * 30
    assert not Grammar.from_type(Decimal).accepts(huge)
    for kind in (float, float | str, Any):
        grammar = Grammar.from_type(kind)
        assert grammar.accepts(huge)
        assert grammar.value(huge) == float("inf")
        assert grammar.value("-1e-" + "9" * 30) == 0


def test_decimals_are_read_exactly_and_bounded_as_numbers() -> None:
    grammar = Grammar.from_type(Decimal)
    text = "12345678901234567890.000000000000000001"
    assert grammar.value(text) == Decimal(text) == grammar.value(f'"{text}"')
    bounded = Grammar.from_type(Bounded)
    assert bounded.accepts('{"counts":[0.5]}')
    assert not bounded.accepts('{"counts":["0.5"]}')
    assert not bounded.accepts('{"counts":[1]}')
    amounts = '{"total":%s,"factor":1,"rate":0.25,"step":0.5,"small":1}'
    grammar = Grammar.from_type(Amounts)
    for total, fits in (("999.99", True), ("1000", False), ("0.125", False), ('"12.5"', True)):
        assert grammar.accepts(amounts % total) is fits


def test_a_union_takes_the_member_that_fits() -> None:
    grammar = Grammar.from_type(list[Circle | Square])
    text = '[{"kind":"square","side":1},{"kind":"circle","radius":2}]'
    assert grammar.value(text) == [Square("square", 1.0), Circle("circle", 2.0)]
    numbers = Grammar.from_type(float | int)
    assert [type(numbers.value(text)) for text in ("1", "1.0")] == [int, float]
    small = Annotated[int, at.Lt(10)]
    ranged = Grammar.from_type(list[small] | tuple[int, ...])
    assert ranged.value("[1, 9]") == [1, 9]
    assert ranged.value("[1, 10]") == (1, 10)


def test_a_tag_must_be_written_even_where_it_has_a_default() -> None:
    grammar = Grammar.from_type(Dog)
    text = '{"kind":"dog","name":"a","friends":[{"kind":"cat","Lives":3}]}'
    assert grammar.value(text).friends == [Cat(Lives=3)]
    assert not grammar.accepts(text.replace('"kind":"cat",', ""))
    assert Grammar.from_type(Cat).accepts('{"Lives":3}')


def tool(query: str, *, limit: Annotated[int, at.Gt(0)] = 3, **more: Literal["a", "b"]) -> Any:
    return query, limit, more


class Service:
    def call(self, item: Item) -> Item:
        return item


def test_a_callable_gives_its_arguments() -> None:
    grammar = Grammar.from_type(tool)
    arguments = grammar.value('{"query": "x", "limit": 2, "extra": "a"}')
    assert tool(**arguments) == ("x", 2, {"extra": "a"})
    assert not grammar.accepts('{"query": "x", "extra": "c"}')
    service = Service()
    method = Grammar.from_type(service.call)
    assert service.call(**method.value('{"item":{"name":"a","count":3}}')) == Item("a", 3)


def test_a_constructor_that_refuses_is_an_error_of_ours() -> None:
    grammar = Grammar.from_type(Picky)
    assert grammar.value('{"a": 4}') == Picky(4)
    with pytest.raises(GrammarError, match="not three"):
        grammar.value('{"a": 3}')


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"value": "x"}', '{"value": NaN}'])
def test_other_texts_have_no_value(text: str) -> None:
    with pytest.raises(GrammarError):
        Grammar.from_type(Tree).value(text)


def test_value_of_other_grammars_is_json() -> None:
    assert Grammar.from_json_schema({}).value("[1.5]") == [1.5]
    with pytest.raises(GrammarError, match="not JSON"):
        Grammar.literal("x").value("x")
    either = Grammar.from_type(Movie) | Grammar.literal("null")
    assert either.value('{"title":"a","year":3}') == {"title": "a", "year": 3}


def test_a_pickled_grammar_keeps_its_type() -> None:
    grammar = pickle.loads(pickle.dumps(Grammar.from_type(Tree)))
    assert grammar.value('{"value": 1}') == Tree(1)


def test_equal_names_do_not_meet() -> None:
    @dataclasses.dataclass
    class Item:
        a: int

    Item.__annotations__["a"] = int
    other = dataclasses.make_dataclass("Item", [("b", str)])
    grammar = Grammar.from_type(tuple[Item, other])  # type: ignore[valid-type]
    assert grammar.value('[{"a": 1}, {"b": "x"}]') == (Item(1), other("x"))
