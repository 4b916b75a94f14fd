"""Calls users' aggregates of plain Python, which fold the values of a group.

The name of an operation says which aggregate it calls (see ``python_functions``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, fields
from functools import cached_property
from typing import Any

from freshviews.errors import FreshviewsError, said, shown
from freshviews.records import dataclass
from freshviews.types.python_functions import MARK, Value, imported, types_in, writer_of, written_types
from freshviews.types.sqltype import SqlType

Rows = Iterable[tuple[Sequence[Any], int]]
"""The Python values of rows, and how often each row occurs."""


@dataclass(frozen=True)
class Methods:
    """The functions of an aggregate: ``zero()`` makes a state, ``add(state, *values)`` and ``remove(state, *values)``
    return the next one, and ``output(state)`` is the result. A state is never None."""

    zero: Callable[[], Any]
    add: Callable[..., Any]
    output: Callable[[Any], Any]
    remove: Callable[..., Any] | None = None


@dataclass(frozen=True)
class PythonAggregate:
    """A deterministic aggregate of plain Python.

    ``made``: a class whose objects are the states, or functions over states. ``nulls``: it gets NULL as None; else a
    row in which an argument is NULL is passed over. ``reference``: ``module:class``, or a number if ``made`` is an
    object of this process.
    """

    name: str
    takes: tuple[SqlType, ...]
    returns: SqlType
    made: type | Methods = field(repr=False)
    nulls: bool = False
    reference: str = ""

    @property
    def operation(self) -> str:
        """The name by which processes find it."""
        types = written_types(self.returns, self.takes)
        return f"{self.name.lower()}{MARK}{self.reference}|{types}|{'nulls' * self.nulls}"

    @property
    def removes(self) -> bool:
        """True if a value can be removed from a state."""
        return self._methods.remove is not None

    @cached_property
    def _methods(self) -> Methods:
        return self.made if isinstance(self.made, Methods) else _of_class(self.made)

    @cached_property
    def _write(self) -> Callable[[Any], Value]:
        return writer_of(self.returns)

    def added(self, state: Any, rows: Rows) -> Any:
        """The state after rows were added; ``state`` is None for a new one. Raises ValueError with the reason."""
        if state is None:
            state = self._stepped("zero", self._methods.zero, ())
        return self._after("add", self._methods.add, state, rows)

    def removed(self, state: Any, rows: Rows) -> Any:
        """The state after rows that were added are removed. Raises ValueError with the reason."""
        assert self._methods.remove is not None
        return self._after("remove", self._methods.remove, state, rows)

    def result(self, state: Any) -> Value:
        """The result, in the form of literals. Raises ValueError with the reason."""
        try:
            found = self._methods.output(state)
        except Exception as error:
            raise self._raised("output", "state", error) from error
        try:
            return self._write(found)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"aggregate {self.name}: output returned {shown(found)}: {error}") from None

    def _after(self, name: str, method: Callable[..., Any], state: Any, rows: Rows) -> Any:
        for values, times in rows:
            for _ in range(times):
                state = self._stepped(name, method, values, state)
        return state

    def _stepped(self, name: str, method: Callable[..., Any], values: Sequence[Any], *state: Any) -> Any:
        try:
            made = method(*state, *values)
        except Exception as error:
            raise self._raised(name, ", ".join(["state"] * len(state) + [*map(shown, values)]), error) from error
        if made is None:
            raise ValueError(f"aggregate {self.name}: {name} returned None; it must return the state")
        return made

    def _raised(self, name: str, values: str, error: Exception) -> ValueError:
        return ValueError(f"aggregate {self.name}: {name}({values}) raised {said(error)}")


def lacking(made: type) -> str:
    """The method that the class of an aggregate needs and lacks; empty if there is none."""
    return next((name for name in ("add", "output") if not callable(getattr(made, name, None))), "")


def _of_class(made: Any) -> Methods:
    """The functions of a class whose objects are the states."""

    def add(state: Any, *values: Any) -> Any:
        made.add(state, *values)
        return state

    def remove(state: Any, *values: Any) -> Any:
        made.remove(state, *values)
        return state

    return Methods(made, add, made.output, remove if callable(getattr(made, "remove", None)) else None)


_known: dict[str, PythonAggregate] = {}


def remember(aggregate: PythonAggregate) -> PythonAggregate:
    """The aggregate, known to this process by its operation. One that is given as an object gets a number."""
    number = 0
    named = aggregate
    while not aggregate.reference:
        number += 1
        named = _named(aggregate, f"#{number}")
        other = _known.get(named.operation)
        if other is None or _are_same(other.made, aggregate.made):
            break
    known = _known.get(named.operation)
    if known is None or (known.reference == aggregate.reference and isinstance(known.made, Methods)):
        # The class of a module takes the place of functions that would import it.
        known = _known[named.operation] = named
    return known


def _are_same(one: type | Methods, other: type | Methods) -> bool:
    """True if two aggregates consist of the same objects. Objects of a user may compare themselves in any way."""
    if isinstance(one, Methods) and isinstance(other, Methods):
        return all(getattr(one, each.name) is getattr(other, each.name) for each in fields(Methods))
    return one is other


def _named(one: PythonAggregate, reference: str) -> PythonAggregate:
    return PythonAggregate(one.name, one.takes, one.returns, one.made, one.nulls, reference)


def aggregate_of(operation: str) -> PythonAggregate:
    """The aggregate of an operation, imported if need be. Raises FreshviewsError if it cannot be imported."""
    known = _known.get(operation)
    if known is None:
        name, _, rest = operation.partition(MARK)
        reference, types, flags = rest.split("|")
        returns, takes = types_in(types)
        if reference.startswith("#"):
            raise FreshviewsError(f"aggregate {name} is not known to this process; register it, or name its module")
        try:
            made = class_of(reference)
        except ValueError as error:
            where = "put the module on the Python path of this process"
            raise FreshviewsError(f"aggregate {name}: {error}; {where}") from error
        known = remember(PythonAggregate(name, takes, returns, made, flags == "nulls", reference))
    return known


def class_of(reference: str) -> type:
    """The class ``module:class``. Raises ValueError with the reason."""
    return checked(reference, imported(reference))


def checked(reference: str, found: Any) -> type:
    """The class of an aggregate. Raises ValueError for something else."""
    if not isinstance(found, type):
        raise ValueError(f"{reference} is of type {type(found).__name__}, and not a class")
    lacks = lacking(found)
    if lacks:
        raise ValueError(f"class {reference} has no method {lacks}; the states of an aggregate have add and output")
    return found
