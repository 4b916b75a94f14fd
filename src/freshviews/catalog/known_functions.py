"""Finds users' functions by name while a statement is translated. Notes which functions the statement calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from freshviews.catalog.functions import FunctionDef, registered, registered_names


@dataclass
class Calls:
    """The functions of a catalog, by lower-case name, and those that a statement calls."""

    functions: Mapping[str, FunctionDef] = field(default_factory=dict)
    called: dict[str, None] = field(default_factory=dict)


_calls: ContextVar[Calls] = ContextVar("calls of users' functions")


@contextmanager
def calling(functions: Mapping[str, FunctionDef]) -> Iterator[Calls]:
    """The context for binding a statement that may call these functions; it notes those that are called."""
    calls = Calls(functions)
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def function_named(name: str) -> FunctionDef | None:
    """The function of a user with this name, noted as called; those of the catalog come first."""
    calls = _calls.get(None)
    found = _found(name)
    if found is not None and calls is not None:
        calls.called[name.lower()] = None
    return found


def is_own_aggregate(name: str) -> bool:
    """True if a user's aggregate has this name; it is not noted as called."""
    found = _found(name)
    return found is not None and found.aggregate


def _found(name: str) -> FunctionDef | None:
    calls = _calls.get(None)
    key = name.lower()
    return registered(key) if calls is None else calls.functions.get(key) or registered(key)


def is_called(name: str) -> bool:
    """True if the statement that is bound has called a function of a user with this name."""
    calls = _calls.get(None)
    return calls is not None and name.lower() in calls.called


def function_names() -> tuple[str, ...]:
    """The names of all functions of users that a statement may call."""
    calls = _calls.get(None)
    own = () if calls is None else tuple(one.name for one in calls.functions.values())
    return (*own, *registered_names())
