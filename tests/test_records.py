"""Frozen dataclasses of ``freshviews.records`` do what those of ``dataclasses`` do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from freshviews.records import dataclass

pytestmark = pytest.mark.plain_python(only=True)


def record(make: Any) -> Any:
    """A class with fields of all kinds."""

    @make(frozen=True)
    class Record:
        a: int
        b: float = 2.5
        c: list[int] = dataclasses.field(default_factory=list, compare=False)
        d: str = dataclasses.field(default="hidden", repr=False, hash=False)
        e: int = dataclasses.field(default=7, init=False)
        f: int = dataclasses.field(default=1, kw_only=True)
        shared: ClassVar[int] = 3

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("a is negative")

    return Record


OWN, STANDARD = record(dataclass), record(dataclasses.dataclass)


@dataclass(frozen=True)
class Pair:
    """Two values."""

    left: Any
    right: Any = None


@dataclass(frozen=True)
class Triple(Pair):
    """A third value."""

    third: int = 0


@dataclass(frozen=True)
class Empty:
    """No fields."""


@dataclass(frozen=True)
class Named:
    """Methods of its own."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return 5

    def __repr__(self) -> str:
        return "own"


def outcome(act: Callable[[], Any]) -> Any:
    """The result of a call, or the class and the text of its error."""
    try:
        return act()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


ACTS: dict[str, Callable[[Any], Any]] = {
    "positional": lambda made: repr(made(1, 2.0, [3], "x")),
    "by name": lambda made: repr(made(a=1, f=4)),
    "missing": lambda made: made(),
    "unknown": lambda made: made(1, g=2),
    "too many": lambda made: made(1, 2.0, [3], "x", 5),
    "refused after": lambda made: made(-1),
    "fresh lists": lambda made: made(1).c is not made(1).c,
    "not of init": lambda made: made(1).e,
    "equal": lambda made: (made(1, c=[1]) == made(1), made(1) == made(1, d="x"), made(1) == 1, made(1) != made(2)),
    "hash": lambda made: hash(made(1, 2.5, [1], "x", f=2)),
    "hash of equals": lambda made: len({made(1), made(1, c=[2]), made(2)}),
    "assigned": lambda made: setattr(made(1), "a", 2),
    "assigned, unknown": lambda made: setattr(made(1), "z", 2),
    "deleted": lambda made: delattr(made(1), "a"),
    "replaced": lambda made: repr(dataclasses.replace(made(1, c=[9]), b=0.5)),
    "as a dict": lambda made: dataclasses.asdict(made(1)),
    "fields": lambda made: [(field.name, field.type, field.init, field.kw_only) for field in dataclasses.fields(made)],
    "signature": lambda made: str(inspect.signature(made)),
    "match": lambda made: made.__match_args__,
    "not a number": lambda made: (made(1, math.nan) == made(1, math.nan), made(1, float("nan")) == made(1, math.nan)),
    "copied": lambda made: copy.deepcopy(made(1, c=[2])) == made(1),
}  # fmt: skip


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_record_does_what_a_standard_dataclass_does(act: Callable[[Any], Any]) -> None:
    assert outcome(lambda: act(OWN)) == outcome(lambda: act(STANDARD))


def test_a_subclass_has_the_fields_of_its_base_first() -> None:
    assert repr(Triple(1, 2, 3)) == "Triple(left=1, right=2, third=3)"
    assert Triple(1, 2) != Pair(1, 2)
    assert pickle.loads(pickle.dumps(Triple(1, "x"))) == Triple(1, "x")


def test_one_field_is_compared_as_in_a_tuple() -> None:
    number = float("nan")
    assert Pair(number) == Pair(number)
    assert Empty() == Empty()
    assert hash(Empty()) == hash(())


def test_methods_that_a_record_defines_stay() -> None:
    assert Named("A") == Named("a")
    assert (hash(Named("A")), repr(Named("A"))) == (5, "own")


def test_a_record_that_contains_itself_has_a_repr() -> None:
    inner: list[Any] = []
    inner.append(Pair(inner))
    assert repr(inner[0]) == "Pair(left=[...], right=None)"


def test_a_record_that_would_set_attributes_is_refused() -> None:
    class Writable:
        a: int

        def __setattr__(self, name: str, value: object) -> None: ...

    with pytest.raises(TypeError, match="Writable is frozen, so it cannot define __setattr__"):
        dataclass(frozen=True)(Writable)


def test_an_init_is_compiled_when_the_first_record_is_made() -> None:
    @dataclass(frozen=True)
    class Late:
        a: int

    assert not inspect.isfunction(vars(Late)["__init__"])
    assert Late(3).a == 3
    assert inspect.isfunction(vars(Late)["__init__"])


def test_options_other_than_frozen_are_those_of_dataclasses() -> None:
    @dataclass(order=True)
    class Ordered:
        a: int

    @dataclass
    class Plain:
        a: int

    assert Ordered(1) < Ordered(2)
    plain = Plain(1)
    plain.a = 4
    assert plain == Plain(4)
