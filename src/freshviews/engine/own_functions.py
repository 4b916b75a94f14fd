"""Defines ``register_function`` and ``register_aggregate``. They let the SQL of all databases call users' Python code.

``Database.function`` and ``Database.aggregate`` do the same for one database, and share the checks here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar, overload

from freshviews.catalog.functions import FunctionDef, python_aggregate, python_function, register
from freshviews.errors import ArgumentError, CatalogError, SqlError, shown
from freshviews.sql.statements.functions import name_refusal
from freshviews.sql.text.parse import SqlText, parse
from freshviews.sql.text.typenames import type_of
from freshviews.types import SqlType
from freshviews.types.python_aggregates import Methods, lacking

Function = TypeVar("Function", bound=Callable[..., Any])
State = TypeVar("State", bound=type)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE = re.compile(r"[A-Za-z_]+\s*(\(\s*\d+\s*(,\s*\d+\s*)?\))?")


@overload
def register_function(
    name: str | None = None,
    function: None = None,
    *,
    takes: Sequence[str] = (),
    returns: str,
    arrow: bool = False,
    nulls: bool = False,
) -> Callable[[Function], Function]: ...
@overload
def register_function(
    name: str | None,
    function: Function,
    *,
    takes: Sequence[str] = (),
    returns: str,
    arrow: bool = False,
    nulls: bool = False,
) -> Function: ...
def register_function(
    name: str | None = None,
    function: Callable[..., Any] | None = None,
    *,
    takes: Sequence[str] = (),
    returns: str = "",
    arrow: bool = False,
    nulls: bool = False,
) -> Any:
    """Register a Python function that the SQL of all databases of this process may call.

    A durable database whose views call a function needs it registered before the database is opened. A function of the
    database with the same name (``Database.function``, CREATE FUNCTION) comes first. A function may be registered again
    under its name; maintained views that are there keep the one that they were made with.

    Parameters
    ----------
    name, function
        Name of the function in SQL, and the function. Without ``function`` the call is a decorator, and without
        ``name`` the decorated function's name counts.
    takes, returns
        SQL types of the arguments and of the result.
    arrow
        True: the function gets Arrow arrays of distinct arguments, and returns an array or a list of as many values.
    nulls
        True: the function gets NULL as None. False, the default: it is not called, and the result is NULL.

    Returns
    -------
    function
        The function itself, or the decorator.

    Raises
    ------
    ArgumentError
        A name or type is none of SQL, or the function cannot be called.
    CatalogError
        SQL has a function with this name.

    Examples
    --------
    >>> @fv.register_function(takes=["STRING"], returns="STRING")
    ... def shout(text):
    ...     return text.upper() + "!"
    >>> db.execute("CREATE MATERIALIZED VIEW loud AS SELECT shout(part) AS part, COUNT(*) AS n FROM items GROUP BY 1")
    >>> list(db.view("loud"))
    [('BOLT!', 1), ('NUT!', 1)]
    """
    options = {"takes": takes, "returns": returns, "arrow": arrow, "nulls": nulls}
    return defined("register_function", name, function, options, register)


def defined(
    method: str,
    name: str | None,
    function: Callable[..., Any] | None,
    options: dict[str, Any],
    keep: Callable[[FunctionDef], None],
) -> Any:
    """Define a function and ``keep`` it, or return the decorator that does so. Raises ArgumentError, CatalogError."""
    takes, returns = _types(method, options["takes"]), _type(f"{method}(returns)", options["returns"])
    for option in ("arrow", "nulls"):
        if not isinstance(options[option], bool):
            raise ArgumentError(f"{method}({option}) must be True or False, not {shown(options[option])}")
    if options["arrow"] and not takes:
        raise ArgumentError(f"{method}: a function of Arrow arrays needs at least one argument; leave arrow out")

    def decorate(given: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(given):
            raise ArgumentError(f"{method} takes a function, not {shown(given)}")
        named = _named(method, name, given)
        keep(python_function(named, given, takes, returns, arrow=options["arrow"], nulls=options["nulls"]))
        return given

    return decorate if function is None else decorate(function)


@overload
def register_aggregate(
    name: str | None = None, *, takes: Sequence[str] = (), returns: str, nulls: bool = False
) -> Callable[[State], State]: ...
@overload
def register_aggregate(
    name: str,
    *,
    takes: Sequence[str] = (),
    returns: str,
    zero: Callable[[], Any],
    add: Callable[..., Any],
    output: Callable[[Any], Any],
    remove: Callable[..., Any] | None = None,
    nulls: bool = False,
) -> None: ...
def register_aggregate(
    name: str | None = None,
    *,
    takes: Sequence[str] = (),
    returns: str = "",
    zero: Callable[[], Any] | None = None,
    add: Callable[..., Any] | None = None,
    output: Callable[[Any], Any] | None = None,
    remove: Callable[..., Any] | None = None,
    nulls: bool = False,
) -> Any:
    """Register an aggregate of plain Python that the SQL of all databases of this process may call.

    A durable database whose views call an aggregate needs it registered before the database is opened. An aggregate of
    the database with the same name (``Database.aggregate``) comes first.

    Parameters
    ----------
    name, takes, returns, zero, add, output, remove, nulls
        As for ``Database.aggregate``.

    Returns
    -------
    decorator
        Of a class, if no functions are given; else None.

    Raises
    ------
    ArgumentError
        A name or type is none of SQL, or a function of the aggregate is missing.
    CatalogError
        SQL has a function with this name.

    Examples
    --------
    >>> fv.register_aggregate("longest", takes=["STRING"], returns="STRING",
    ...                       zero=str, add=lambda best, s: max(best, s, key=len), output=lambda best: best)
    >>> db.execute("CREATE MATERIALIZED VIEW long AS SELECT longest(part) AS part FROM items")
    >>> list(db.view("long"))
    [('bolt',)]
    """
    functions = {"zero": zero, "add": add, "output": output, "remove": remove}
    return defined_aggregate("register_aggregate", name, functions, (takes, returns, nulls), register)


def defined_aggregate(
    method: str,
    name: str | None,
    functions: dict[str, Any],
    options: tuple[Any, Any, Any],
    keep: Callable[[FunctionDef], None],
) -> Any:
    """Define an aggregate and ``keep`` it, or return the decorator that does so. ``options``: takes, returns, nulls.

    Raises ArgumentError, CatalogError."""
    takes, returns, nulls = options
    takes, returns = _types(method, takes), _type(f"{method}(returns)", returns)
    if not isinstance(nulls, bool):
        raise ArgumentError(f"{method}: the argument nulls must be True or False, not {shown(nulls)}")

    def decorate(made: Any) -> Any:
        if not isinstance(made, type):
            what = f"decorates a class, not {shown(made)}; functions are given as zero, add and output"
            raise ArgumentError(f"{method} {what}")
        lacks = lacking(made)
        if lacks:
            raise ArgumentError(f"{method}: class {made.__name__} has no method {lacks}; it needs add and output")
        keep(python_aggregate(_named(method, name, made), made, takes, returns, nulls=nulls))
        return made

    given = {key: one for key, one in functions.items() if one is not None}
    if not given:
        return decorate
    for key in ("zero", "add", "output", *given):
        if not callable(functions[key]):
            raise ArgumentError(f"{method}({key}) must be a function, not {shown(functions[key])}{_ZERO.get(key, '')}")
    keep(python_aggregate(_named(method, name, None), Methods(**given), takes, returns, nulls=nulls))
    return None


_ZERO = {"zero": "; it makes a new state without arguments, as list and lambda: 0 do"}


def _named(method: str, name: object, given: object) -> str:
    """The name that SQL calls. Raises ArgumentError, CatalogError."""
    named = getattr(given, "__name__", None) if name is None else name
    if not isinstance(named, str) or not _NAME.fullmatch(named):
        raise ArgumentError(f"{method}: {shown(named)} is not a valid name; use letters, digits and _")
    refusal = name_refusal(named)
    if refusal:
        raise CatalogError(refusal)
    return named


def _types(method: str, given: object) -> tuple[SqlType, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ArgumentError(f"{method}(takes) must be a list of types, as ['DOUBLE', 'DOUBLE'], not {shown(given)}")
    return tuple(_type(f"{method}(takes)", one) for one in given)


def _type(what: str, given: object) -> SqlType:
    """The SQL type with a name."""
    if isinstance(given, str) and _TYPE.fullmatch(given.strip()):
        text = SqlText(f"SELECT CAST(NULL AS {given})")
        with suppress(SqlError):
            (tree,) = parse(text)
            return type_of(text, tree.expressions[0].args["to"])
    raise ArgumentError(
        f"{what}: {shown(given)} is not a column type; write a type such as 'BIGINT', 'DECIMAL(12, 2)' or 'DATE'"
    )
