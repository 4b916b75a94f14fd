"""Calls users' Python functions with values of SQL types.

The name of an operation says which function it calls. This name contains the SQL types, and ``module:function``, from
which Spark's workers import the function. If the user gave the function as an object, the name contains a number
instead. Only this process and its forked children know the number.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from freshviews.errors import FreshviewsError, said, shown
from freshviews.records import dataclass
from freshviews.types.columns import arrow_type
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import BINARY, TIMESTAMP_LTZ, SqlType, declared_decimal
from freshviews.types.values import decoder_for, encoder_for, number_code, number_value, unscaled_encoder

Value = str | int | float | bool | None
"""A value in the form of ``freshviews.expr.nodes.Literal``."""

ROWS = 1 << 16
"""Most rows of the arrays that a function of Arrow arrays gets."""

MARK = "@"
_TYPE = re.compile(r"([A-Z_]+)(?:\((\d+), (\d+)\))?")
_NAMED = {str(kind): kind for kind in (BINARY, TIMESTAMP_LTZ)}
"""Types that share the name of another one within."""
_NO_STRINGS = Dictionary()


@dataclass(frozen=True)
class PythonFunction:
    """A deterministic Python function that SQL calls.

    ``arrow``: it takes and returns Arrow arrays, else one value each. ``nulls``: it gets NULL as None; else the result
    is NULL where an argument is. ``reference``: ``module:function``, or a number if the function is an object.
    """

    name: str
    takes: tuple[SqlType, ...]
    returns: SqlType
    function: Callable[..., Any] = field(repr=False)
    arrow: bool = False
    nulls: bool = False
    reference: str = ""

    @property
    def operation(self) -> str:
        """The name of the operation that calls it."""
        kind = ("arrow" * self.arrow, "nulls" * self.nulls)
        types = written_types(self.returns, self.takes)
        return f"{self.name.lower()}{MARK}{self.reference}|{types}|{' '.join(filter(None, kind))}"

    @cached_property
    def _readers(self) -> tuple[Callable[[Any], Any], ...]:
        return tuple(map(reader_of, self.takes))

    @cached_property
    def _writer(self) -> Callable[[Any], Value]:
        return writer_of(self.returns)

    def value(self, *given: Value) -> Value:
        """The result for one row. Raises ValueError with the function, its arguments and the reason."""
        return self._result([read(one) for read, one in zip(self._readers, given, strict=True)])

    def values(self, rows: Sequence[tuple[Value, ...]]) -> list[Value] | None:
        """The results of an ``arrow`` function for several rows; None if it raises, so that each row is computed."""
        return self._results([[read(one) for read, one in zip(self._readers, row, strict=True)] for row in rows])

    def array(self, count: int, columns: Sequence[pa.ChunkedArray]) -> pa.Array:
        """The results for ``count`` rows of Arrow columns; equal rows are computed once. Raises ValueError."""
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True)) if columns else [()] * count
        distinct = list(dict.fromkeys(rows))
        found = self._results(distinct) if self.arrow else None
        values = found if found is not None else [self._result(row) for row in distinct]
        read = reader_of(self.returns)
        by_row = {row: read(value) for row, value in zip(distinct, values, strict=True)}
        return pa.array([by_row[row] for row in rows], arrow_type(self.returns))

    def _result(self, values: Sequence[Any]) -> Value:
        if not self.nulls and any(one is None for one in values):
            return None
        call = f"function {self.name}({', '.join(map(shown, values))})"
        try:
            found = self._of_arrays([values])[0] if self.arrow else self.function(*values)
        except Exception as error:
            raise ValueError(f"{call} raised {said(error)}") from error
        try:
            return self._writer(found)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{call} returned {shown(found)}: {error}") from None

    def _results(self, rows: Sequence[Sequence[Any]]) -> list[Value] | None:
        called = [self.nulls or not any(one is None for one in row) for row in rows]
        kept = [row for row, calls in zip(rows, called, strict=True) if calls]
        try:
            found = iter([self._writer(one) for one in self._of_arrays(kept)] if kept else [])
        except Exception:
            return None
        return [next(found) if calls else None for calls in called]

    def _of_arrays(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, arrow_type(kind)) for column, kind in zip(columns, self.takes, strict=True)]
        found = self.function(*arrays)
        listed: list[Any] = found.to_pylist() if isinstance(found, pa.Array | pa.ChunkedArray) else list(found)
        if len(listed) != len(rows):
            raise ValueError(f"it returned {len(listed)} values for {len(rows)} rows")
        return listed


_known: dict[str, PythonFunction] = {}


def remember(function: PythonFunction) -> PythonFunction:
    """The function, known to this process by its operation. One that is given as an object gets a number."""
    if not function.reference:
        number = 1
        while True:
            named = _numbered(function, number)
            other = _known.get(named.operation)
            if other is None or other.function is function.function:
                function = named
                break
            number += 1
    return _known.setdefault(function.operation, function)


def _numbered(function: PythonFunction, number: int) -> PythonFunction:
    return PythonFunction(
        *(function.name, function.takes, function.returns, function.function, function.arrow, function.nulls),
        reference=f"#{number}",
    )


def is_operation(name: str) -> bool:
    """True for the name of an operation that calls a Python function."""
    return MARK in name


def function_of(operation: str) -> PythonFunction | None:
    """The function that an operation calls, imported if need be; None if it is no operation of a Python function.

    Raises FreshviewsError for a function that cannot be imported."""
    name, mark, rest = operation.partition(MARK)
    if not mark:
        return None
    known = _known.get(operation)
    if known is None:
        reference, types, flags = rest.split("|")
        returns, takes = types_in(types)
        if reference.startswith("#"):
            raise FreshviewsError(f"function {name} is not known to this process; register it here, or name its module")
        try:
            function = imported(reference)
        except ValueError as error:
            where = "put the module on the Python path of this process"
            raise FreshviewsError(f"function {name}: {error}; {where}") from error
        known = PythonFunction(name, takes, returns, function, "arrow" in flags, "nulls" in flags, reference)
        _known[operation] = known
    return known


def imported(reference: str) -> Callable[..., Any]:
    """The function ``module:function``. Raises ValueError with the reason."""
    module, _, path = reference.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:
        raise ValueError(f"{reference} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ValueError(f"{reference} is of type {type(found).__name__}, and not a function")
    return found  # type: ignore[no-any-return]


def name_of(operation: str) -> str:
    """The name of an operation as EXPLAIN prints it: of a Python function without what finds it."""
    return operation.partition(MARK)[0]


def written_types(returns: SqlType, takes: Sequence[SqlType]) -> str:
    """The types of the result and the arguments, as ``types_in`` reads them."""
    return "; ".join(map(str, (returns, *takes)))


def types_in(text: str) -> tuple[SqlType, tuple[SqlType, ...]]:
    """The types of the result and of the arguments."""
    returns, *takes = map(_type, text.split("; "))
    return returns, tuple(takes)


def _type(text: str) -> SqlType:
    found = _TYPE.fullmatch(text)
    assert found is not None, text
    if found[1] == "DECIMAL":
        return declared_decimal(int(found[2]), int(found[3]))
    return _NAMED.get(text) or SqlType(found[1], int(found[2] or 0), int(found[3] or 0))


def reader_of(kind: SqlType) -> Callable[[Any], Any]:
    """The Python value of a value in the form of literals."""
    if kind == BINARY:
        return lambda value: None if value is None else value.encode("latin-1")
    if kind.name in ("STRING", "BOOLEAN") or kind.is_integer or kind.is_float:
        return lambda value: value
    decode = decoder_for(replace(kind, wide=False), _NO_STRINGS)
    return lambda value: decode(number_code(kind, value))


def writer_of(kind: SqlType) -> Callable[[Any], Value]:
    """The form of literals of a Python value; raises TypeError, ValueError or OverflowError."""
    if kind == BINARY:
        return _bytes
    if kind.name == "STRING":
        return _text
    if kind.wide:
        unscaled = unscaled_encoder(kind)
        return lambda value: number_value(kind, unscaled(value))
    encode = encoder_for(kind, True, _NO_STRINGS)
    return lambda value: number_value(kind, encode(value))


def _bytes(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"BINARY accepts bytes, not {type(value).__name__}")
    return bytes(value).decode("latin-1")


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"STRING accepts str, not {type(value).__name__}")
    value.encode()  # a surrogate is no text
    return str(value)
