"""Records the calls on a Spark session by which a function of a project defines its query.

While the function runs, a stand-in replaces the session and executes nothing. The recorded calls are then turned into
SQL, or made on the real session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from pyspark.sql import SparkSession

READS = ("read", "readStream", "range", "createDataFrame")
"""Attributes of a session by which rows come from outside of the project."""


class UsedTooEarly(Exception):
    """A function uses the contents of a DataFrame, which exist only when the pipeline runs."""


class Recorded:
    """A value that calls of the stand-in would make: each is the name of an attribute, or the arguments of a call."""

    def __init__(self, calls: tuple[Any, ...] = ()) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Recorded:
        if name.startswith("__"):
            raise AttributeError(name)
        return Recorded((*self._calls, name))

    def __call__(self, *args: Any, **named: Any) -> Recorded:
        return Recorded((*self._calls, (args, named)))

    def __getitem__(self, item: Any) -> Recorded:
        return Recorded((*self._calls, "__getitem__", ((item,), {})))

    def __iter__(self) -> Iterator[Any]:
        raise UsedTooEarly

    def __bool__(self) -> bool:
        raise UsedTooEarly

    __len__ = __int__ = __index__ = __bool__


def _operator(name: str) -> Callable[..., Recorded]:
    return lambda self, *others: Recorded((*calls_of(self), name, (others, {})))


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_LOGIC = ("and", "or", "rand", "ror", "invert", "neg")
_ARITHMETIC = ("add", "sub", "mul", "truediv", "mod", "pow", "radd", "rsub", "rmul", "rtruediv")
for _name in (*_COMPARISONS, *_LOGIC, *_ARITHMETIC):
    setattr(Recorded, f"__{_name}__", _operator(f"__{_name}__"))


def calls_of(recorded: Recorded) -> tuple[Any, ...]:
    """The recorded calls."""
    return object.__getattribute__(recorded, "_calls")  # type: ignore[no-any-return]


def query_of(recorded: Recorded) -> str | None:
    """The SQL of ``sql(text)``, ``table(name)``, ``read.table(name)`` and ``readStream.table(name)``; None for other
    calls."""
    match calls_of(recorded):
        case ("sql", ((str(text),), named)) if not named:
            return text
        case ("table", call) | ("read", "table", call) if (name := _only_text(call)) is not None:
            return f"SELECT * FROM {name}"
        case ("readStream", "table", call) if (name := _only_text(call)) is not None:
            return f"SELECT * FROM STREAM {name}"
    return None


def _only_text(call: Any) -> str | None:
    args, named = call
    given = [*args, *named.values()]
    return given[0] if len(given) == 1 and isinstance(given[0], str) else None


def reads_from_outside(recorded: Recorded) -> bool:
    """True if all rows come from outside of the project, so that the calls can be replayed at once."""
    calls = calls_of(recorded)
    if not calls or calls[0] not in READS or "table" in calls:
        return False
    inner = [value for call in calls if isinstance(call, tuple) for value in (*call[0], *call[1].values())]
    return all(reads_from_outside(value) for value in inner if isinstance(value, Recorded))


def replayed(recorded: Recorded, session: Any) -> Any:
    """The value that the session makes of the calls."""

    def given(value: Any) -> Any:
        return replayed(value, session) if isinstance(value, Recorded) else value

    found = session
    for call in calls_of(recorded):
        if isinstance(call, str):
            found = getattr(found, call)
        else:
            args, named = call
            found = found(*map(given, args), **{name: given(value) for name, value in named.items()})
    return found


def described(recorded: Recorded) -> str:
    """The calls, as a program has them."""
    text = "spark"
    for call in calls_of(recorded):
        if isinstance(call, str):
            text += f".{call}"
            continue
        shown = [described(value) if isinstance(value, Recorded) else repr(value) for value in call[0]]
        shown += [f"{name}={value!r}" for name, value in call[1].items()]
        text += f"({', '.join(shown)})"
    return text


def select_of(recorded: Recorded) -> str:
    """A SELECT like the calls on a DataFrame, as far as it can be written from them."""
    clauses = {"SELECT": "...", "FROM": "...", "WHERE": "", "GROUP BY": "", "ORDER BY": "", "LIMIT": ""}
    calls = calls_of(recorded)
    for name, call in pairwise(calls):
        if not isinstance(name, str) or not isinstance(call, tuple):
            continue
        args = ", ".join(_expression(value) for value in call[0])
        match name:
            case "table":
                clauses |= {"FROM": f"STREAM {args}" if calls[0] == "readStream" else args}
            case "sql":
                clauses |= {"FROM": f"({args})"}
            case "filter" | "where":
                clauses |= {"WHERE": args}
            case "select" | "selectExpr":
                clauses |= {"SELECT": args}
            case "groupBy" | "groupby":
                clauses |= {"GROUP BY": args, "SELECT": args}
            case "agg" | "count":
                added = args if name == "agg" else "COUNT(*) AS count"
                clauses |= {"SELECT": ", ".join(part for part in (clauses["GROUP BY"], added) if part)}
            case "distinct":
                clauses |= {"SELECT": f"DISTINCT {clauses['SELECT'].replace('...', '*')}"}
            case "orderBy" | "sort":
                clauses |= {"ORDER BY": args}
            case "limit":
                clauses |= {"LIMIT": args}
            case _:
                clauses |= {"SELECT": "..."}
    return " ".join(f"{word} {text}" for word, text in clauses.items() if text)


def _expression(value: Any) -> str:
    """A column as SQL: PySpark shows it as Column<'...'>."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_expression, value))
    if isinstance(value, Recorded):
        return "..."
    found = re.fullmatch(r"Column<'(.*)'>", str(value), re.DOTALL)
    return found[1] if found else str(value)


class _Sessions:
    """A stand-in for the class SparkSession, each of whose ways to a session leads to the stand-in for it."""

    def __init__(self, session: Recorded) -> None:
        self.builder = self
        self._session = session

    def active(self) -> Recorded:
        return self._session

    getActiveSession = getOrCreate = active

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **named: self


@contextmanager
def standing_in(function: Any, session: Recorded) -> Iterator[None]:
    """Give a function the stand-in in place of each session that it finds by a name of its module or around it."""
    names: dict[str, Any] = getattr(function, "__globals__", {})
    sessions = _Sessions(session)

    def stand_in(value: Any) -> Any:
        if value is SparkSession:
            return sessions
        return session if isinstance(value, SparkSession) else value

    before = dict(names)
    cells = [cell for cell in getattr(function, "__closure__", None) or () if isinstance(_held(cell), SparkSession)]
    held = [cell.cell_contents for cell in cells]
    try:
        for name, value in before.items():
            if (other := stand_in(value)) is not value:
                names[name] = other
        for cell in cells:
            cell.cell_contents = session
        yield
    finally:
        for name, value in before.items():
            if stand_in(value) is not value:
                names[name] = value
        for cell, value in zip(cells, held, strict=True):
            cell.cell_contents = value


def _held(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None
