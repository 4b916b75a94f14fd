"""Removes the frames inside freshviews from the traceback of an error that a public function raises on purpose.

With FRESHVIEWS_TRACEBACK=1 in the environment these frames are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from freshviews.errors import FreshviewsError

VARIABLE = "FRESHVIEWS_TRACEBACK"

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def end_here(error: Exception) -> None:
    """Forget the frames below the running one, which a bare ``raise`` does not add again."""
    if VARIABLE not in os.environ:
        error.__traceback__ = None
        error.__suppress_context__ = True


def ends_at_the_call(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """A public function whose errors on purpose have no frames of freshviews."""
    return _ending(function, FreshviewsError)


def lookup_ends_at_the_call(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """As ``ends_at_the_call``, of a function that raises KeyError as well."""
    return _ending(function, (FreshviewsError, KeyError))


def _ending(
    function: Callable[_Given, _Made], kinds: type[Exception] | tuple[type[Exception], ...]
) -> Callable[_Given, _Made]:
    @wraps(function)
    def called(*args: _Given.args, **named: _Given.kwargs) -> _Made:
        try:
            return function(*args, **named)
        except kinds as error:
            end_here(error)
            raise

    return called
