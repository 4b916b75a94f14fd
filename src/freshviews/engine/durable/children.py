"""Calls methods in each child process right after a fork. Databases use it to close, in the child, the parent's files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakMethod

_functions: list[WeakMethod[Callable[[], None]]] = []


def call_in_children(method: Callable[[], None]) -> None:
    """Call a bound method in each child that this process forks from now on, while its object is alive."""
    _functions[:] = [one for one in _functions if one() is not None]
    _functions.append(WeakMethod(method))


def _in_child() -> None:
    for one in _functions:
        method = one()
        if method is not None:
            method()
    _functions.clear()


os.register_at_fork(after_in_child=_in_child)
