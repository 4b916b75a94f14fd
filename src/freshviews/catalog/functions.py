"""Defines users' functions and aggregates. Registers functions that all databases of the process may call.

A call of an SQL function is replaced by the SQL text of its body. A call of a Python function
(``types.python_functions``) or of a Python aggregate (``types.python_aggregates``) becomes an operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from freshviews.records import dataclass
from freshviews.types import SqlType
from freshviews.types.python_aggregates import Methods, PythonAggregate, checked
from freshviews.types.python_aggregates import remember as remember_aggregate
from freshviews.types.python_functions import PythonFunction, imported, remember

MODULES = "FRESHVIEWS_FUNCTIONS"
"""The environment variable with the names of the modules from which SQL may take functions, separated by commas."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function. ``default``: the SQL of its DEFAULT, empty without one."""

    name: str
    type: SqlType
    default: str = ""


@dataclass(frozen=True)
class FunctionDef:
    """A function. ``returns``: None for the type of the body.

    ``sql``: its CREATE FUNCTION; empty for a Python function that a database was given as an object. ``body``: the SQL
    of the result; empty for a Python function, whose ``operation`` computes it. ``called``: the functions that the body
    calls. ``aggregate``: True for an aggregate of plain Python, whose ``operation`` names it.
    """

    name: str
    parameters: tuple[Parameter, ...]
    returns: SqlType | None
    sql: str = ""
    body: str = ""
    operation: str = ""
    called: tuple[str, ...] = ()
    aggregate: bool = False


@dataclass(frozen=True)
class DropFunction:
    """DROP FUNCTION."""

    name: str


_registered: dict[str, FunctionDef] = {}


def register(function: FunctionDef) -> None:
    """Let all databases of this process know a function."""
    _registered[function.name.lower()] = function


def registered(name: str) -> FunctionDef | None:
    """The function of this process with a name, in any spelling."""
    return _registered.get(name.lower())


def registered_names() -> tuple[str, ...]:
    """The names of the functions of this process."""
    return tuple(one.name for one in _registered.values())


def python_function(
    name: str,
    function: Callable[..., Any],
    takes: tuple[SqlType, ...],
    returns: SqlType,
    *,
    arrow: bool = False,
    nulls: bool = False,
    reference: str = "",
    sql: str = "",
    names: tuple[str, ...] = (),
) -> FunctionDef:
    """The definition of a Python function, whose operation this process then knows. ``names``: of its parameters."""
    made = remember(PythonFunction(name, takes, returns, function, arrow, nulls, reference))
    return FunctionDef(name, _parameters(takes, names), returns, sql, operation=made.operation)


def python_aggregate(
    name: str,
    made: type | Methods,
    takes: tuple[SqlType, ...],
    returns: SqlType,
    *,
    nulls: bool = False,
    reference: str = "",
) -> FunctionDef:
    """The definition of an aggregate of plain Python, which this process then knows."""
    known = remember_aggregate(PythonAggregate(name, takes, returns, made, nulls, reference))
    return FunctionDef(name, _parameters(takes), returns, operation=known.operation, aggregate=True)


def _parameters(takes: tuple[SqlType, ...], names: tuple[str, ...] = ()) -> tuple[Parameter, ...]:
    names = names or tuple(f"arg{place + 1}" for place in range(len(takes)))
    return tuple(map(Parameter, names, takes))


_unchecked: ContextVar[bool] = ContextVar("Python functions are imported when they are called", default=False)


@contextmanager
def unchecked(possible: bool = True) -> Iterator[None]:
    """The context for reading a script of a checkpoint: its Python functions are imported only when they are called, so
    that who reads rows needs no module."""
    token = _unchecked.set(possible)
    try:
        yield
    finally:
        _unchecked.reset(token)


def function_in(reference: str) -> Callable[..., Any]:
    """The function ``module:function``, of a module that FRESHVIEWS_FUNCTIONS names. Raises ValueError."""
    if _unchecked.get():
        return lambda *values: _allowed(reference)(*values)
    return _allowed(reference)


def class_in(reference: str) -> type | Methods:
    """The class of an aggregate, ``module:class``, of a module that FRESHVIEWS_FUNCTIONS names. Raises ValueError."""
    if not _unchecked.get():
        return checked(reference, _allowed(reference))

    def late() -> Any:
        return checked(reference, _allowed(reference))

    def add(state: Any, *values: Any) -> Any:
        state.add(*values)
        return state

    return Methods(lambda: late()(), add, lambda state: state.output())


def _allowed(reference: str) -> Callable[..., Any]:
    module, colon, name = reference.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ValueError(f"{reference!r} does not name a function; write 'module:function'")
    allowed = {one.strip() for one in os.environ.get(MODULES, "").split(",")}
    if module not in allowed:
        raise ValueError(
            f"{reference} was not called, because the environment variable {MODULES} does not list module {module}; "
            f"if you trust the script and the module, add {module} to {MODULES}"
        )
    return imported(reference)
