"""Kernels that compiled code calls by name, instead of holding a copy of them.

Numba links what a function calls into the function, to the last callee: every trigger would be optimised and
emitted with the growth of slots and the bookkeeping of indexes in it, and so would each kernel in between. A
kernel marked ``outside`` is compiled once per machine, entered into the process under a symbol, and called
there. That is for rare and for long paths; what must be inlined or is called per row stays with ``jit``.
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
    """Compile a kernel of words to a word, or to None, for being called by name.

    From Python it is called as it is; in plain-Python mode it is left as it is.
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

    def lower(builder: Any, *arguments: Any) -> Any:
        enter()
        kind = ir.FunctionType(_WORD, [_WORD] * words)
        found = builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), arguments)
        return None if result == types.none else found

    primitive(call, result, lower, *[types.int64] * words)
    return call  # type: ignore[return-value]
