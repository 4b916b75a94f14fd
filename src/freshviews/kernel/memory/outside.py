"""Kernels that compiled code calls by name instead of linking a copy of them.

Numba links into a function everything it calls, down to the last callee. Without this module every trigger would
contain its own copy of the growth of slots and the bookkeeping of indexes. A kernel marked ``outside`` is compiled once
per machine, defined in the process under a symbol, and called there. Use it for rare and for long paths. What must be
inlined or runs per row stays with ``jit``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils

from freshviews.kernel.cache import SYMBOL_PREFIX, symbols
from freshviews.kernel.memory.mem import PURE_PYTHON, called, entry_of, primitive

F = TypeVar("F", bound=Callable[..., Any])

_WORD = ir.IntType(64)


def outside(function: F) -> F:
    """Compile a kernel of words to a word or None, to be called by name.

    A call from Python works as usual. In plain-Python mode the kernel is unchanged.
    """
    if PURE_PYTHON:
        return function
    made: Any = called(function)
    words = function.__code__.co_argcount
    result = types.none if function.__annotations__["return"] == "None" else types.int64
    symbol = SYMBOL_PREFIX + function.__name__
    assert symbol not in symbols, f"two kernels are called {function.__name__}"

    def enter() -> None:
        if entered:
            return
        made.compile((types.int64,) * words)
        address = entry_of(made)
        binding.add_symbol(symbol, address)
        entered.append(address)

    entered: list[int] = []
    symbols[symbol] = enter

    def call(*arguments: int, **named: int) -> Any:
        return made(*arguments, **named)

    update_wrapper(call, function)
    call.dispatcher = made  # type: ignore[attr-defined]

    def lower(builder: Any, *arguments: Any) -> Any:
        enter()
        kind = ir.FunctionType(_WORD, [_WORD] * words)
        found = builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), arguments)
        return None if result == types.none else found

    primitive(call, result, lower, *[types.int64] * words)
    return call  # type: ignore[return-value]
