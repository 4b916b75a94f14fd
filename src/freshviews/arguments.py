"""Checks the arguments of public functions. An error names the argument, what is expected, and what was passed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real

from freshviews.errors import ArgumentError, shown


def text(argument: str, value: object) -> None:
    """A string that is not blank."""
    fine = isinstance(value, str) and bool(value.strip()) and "\0" not in value
    _expect(fine, argument, "text that is not empty", value)


def texts(argument: str, value: object) -> None:
    """A list or tuple of strings."""
    fine = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    _expect(fine and all(isinstance(one, str) for one in value), argument, "a list of texts", value)  # type: ignore[attr-defined]


def path(argument: str, value: object) -> None:
    """The name of a file or folder."""
    fine = isinstance(value, str | os.PathLike) and "\0" not in os.fspath(value)
    _expect(fine and bool(os.fspath(value)), argument, "a path, as text or a pathlib.Path", value)  # type: ignore[call-overload]


def flag(argument: str, value: object) -> None:
    """True or False."""
    _expect(isinstance(value, bool), argument, "True or False", value)


def count(argument: str, value: object, least: int = 0, most: int | None = None) -> None:
    """A whole number in a range."""
    fine = isinstance(value, int) and not isinstance(value, bool) and least <= value and (most is None or value <= most)
    limit = f"{least} or more" if most is None else f"{least} to {most}"
    _expect(fine, argument, f"a whole number, {limit},", value)


def number(argument: str, value: object) -> None:
    """A number, whole or not."""
    _expect(isinstance(value, Real) and not isinstance(value, bool), argument, "a number", value)


def seconds(argument: str, value: float) -> None:
    """A number of seconds, 0 or more."""
    number(argument, value)
    _expect(value >= 0, argument, "0 or more seconds", value)


def function(argument: str, value: object) -> None:
    """A function, or another object that can be called."""
    _expect(callable(value), argument, "a function", value)


def pairs(argument: str, value: object) -> None:
    """A mapping of text to text."""
    fine = isinstance(value, Mapping) and all(isinstance(one, str) for pair in value.items() for one in pair)
    _expect(fine, argument, "a dict of texts by name", value)


def values_of(kind: type, argument: str, value: object) -> None:
    """A mapping of names to objects of a class."""
    fine = isinstance(value, Mapping) and all(isinstance(one, str) for one in value)
    fine = fine and all(isinstance(one, kind) for one in value.values())  # type: ignore[attr-defined]
    _expect(fine, argument, f"a dict of a {kind.__name__} by name", value)


def of(kind: type | tuple[type, ...], argument: str, value: object) -> None:
    """An object of a class, or of one of several."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    _expect(isinstance(value, kinds), argument, " or ".join(f"a {one.__name__}" for one in kinds), value)


def optional(check: Callable[[str, object], None], argument: str, value: object) -> None:
    """None, or what ``check`` accepts."""
    if value is not None:
        check(argument, value)


def _expect(fine: bool, argument: str, expected: str, value: object) -> None:
    if not fine:
        came = "None" if value is None else f"{shown(value)} of type {type(value).__name__}"
        raise ArgumentError(f"{argument}: {expected} is expected, not {came}")

