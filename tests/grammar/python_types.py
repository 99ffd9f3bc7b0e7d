"""Types for the tests of `Grammar.from_type`: at module level, where their annotations resolve."""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar

import annotated_types as at
from pydantic import (
    UUID4,
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    NaiveDatetime,
    RootModel,
    StringConstraints,
)
from typing_extensions import NotRequired, Required, TypedDict

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    ODD = "a.b|c"
    ONE = 1
    NONE = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 20


class Unit(str, enum.Enum):
    KG = "kg"
    G = "g"


class Point(NamedTuple):
    x: Annotated[float, at.Interval(ge=0, lt=1)]
    y: int = 3


class Options(TypedDict, total=False):
    name: Required[str]
    size: int
    level: Level


class Person(TypedDict):
    name: Annotated[str, at.Len(1, 5)]
    nick: NotRequired[str | None]


@dataclass
class Item:
    name: str
    count: Annotated[int, at.Ge(1), at.MultipleOf(3)]
    units: set[Unit] = field(default_factory=set)


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)
    parent: Tree | None = None


@dataclass
class Box(Generic[T]):
    content: T
    spare: list[T]


@dataclass
class Boxes:
    numbers: Box[int]
    nested: Box[Box[bool]]


@dataclass
class Times:
    at: datetime.datetime
    day: datetime.date
    clock: datetime.time
    gap: datetime.timedelta


@dataclass
class Circle:
    kind: Literal["circle"]
    radius: float


@dataclass
class Square:
    kind: Literal["square"]
    side: float


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = Field(gt=0, le=9, alias="Lives")


class Dog(BaseModel):
    kind: Literal["dog", "hound"]
    name: str = Field(pattern=r"^\w+$", max_length=4)
    friends: list[Pet] = Field(default=[], max_length=2)


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
Dog.model_rebuild()


class Order(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)

    number: uuid.UUID
    placed: AwareDatetime
    due: NaiveDatetime | None = None
    lines: Annotated[list[Item], at.Len(1, 2)]
    note: str = Field("", validation_alias=AliasChoices("note", "remark"))


class Amounts(BaseModel):
    total: Annotated[Decimal, Field(max_digits=5, decimal_places=2)]
    factor: FiniteFloat
    rate: Annotated[float, Field(gt=0, lt=0.5)]
    step: Annotated[float, Field(multiple_of=0.25)]
    small: Annotated[int, Field(gt=-3, lt=1000)]


class Keys(BaseModel):
    model_config = ConfigDict(extra="forbid")

    by_int: dict[int, bool] = {}
    by_unit: dict[Unit, bool] = {}
    by_day: dict[datetime.date, bool] = {}
    by_word: dict[Annotated[str, Field(pattern="^[a-c]+$")], bool] = {}
    by_length: dict[Annotated[str, StringConstraints(max_length=2)], bool] = {}


class Names(RootModel[dict[str, int]]):
    pass


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")

    a: int


PLAIN: list[Any] = [
    int,
    float,
    str,
    bool,
    None,
    bytes,
    uuid.UUID,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    Color,
    Level,
    Literal["a", 1, None, True, Unit.KG],
    Optional[int],  # noqa: UP045
    int | bool | None,
    list[bool],
    Sequence[int],
    tuple[int, str],
    tuple[int, ...],
    tuple[()],
    set[int],
    frozenset[Literal["a", "b"]],
    dict[str, int],
    Mapping[int, bool],
    dict[datetime.date, int],
    dict[Annotated[str, at.MaxLen(2)], bool],
    dict[Unit, None],
    Annotated[str, at.Len(2, 4)],
    Annotated[list[bool], at.Len(1, 2)],
    Annotated[int | None, at.Gt(3)],
    Annotated[float, at.Gt(-1), at.Lt(0.1)],
    Annotated[int, at.MultipleOf(7), at.Ge(-20)],
    Point,
    Options,
    Person,
    Item,
    Tree,
    Boxes,
    Box[int],
    Times,
    Circle | Square,
]
"""Types of the standard library whose values both readings agree on."""

DRAWN = [
    kind for kind in PLAIN if kind not in (Tree, Boxes, Box[int], Annotated[int | None, at.Gt(3)])
]
"""Those of which hypothesis makes values."""

MODELS: list[Any] = [
    Cat,
    Dog,
    Pet,
    Order,
    Keys,
    Names,
    Loose,
    list[Cat],
    Annotated[str, Field(min_length=1, max_length=2)],
    UUID4,
]
"""Types that pydantic reads."""
