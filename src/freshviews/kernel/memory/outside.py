"""Defines the decorator ``outside``. Compiled code calls a decorated kernel by name, instead of containing a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from freshviews.kernel.machine.beside import called_first
from freshviews.kernel.machine.functions import SYMBOL_PREFIX, Function
from freshviews.kernel.memory.mem import PURE_PYTHON

F = TypeVar("F", bound=Callable[..., Any])


def outside(function: F) -> F:
    """Compile a kernel of words to a word or None, to be called by name.

    A call from Python works as usual. In plain-Python mode the kernel is unchanged.

    Numba links into a function everything it calls, down to the last callee. So every trigger would contain its own
    copy of the code that grows slots and maintains indexes. A kernel marked ``outside`` is compiled once per machine,
    defined in the process under a symbol, and called there. Use ``outside`` for code that is long or rarely runs, and
    ``jit`` for functions that must be inlined or run per row.
    """
    if PURE_PYTHON:
        return function
    return Function(function, called_first, symbol=SYMBOL_PREFIX + function.__name__)  # type: ignore[return-value]
