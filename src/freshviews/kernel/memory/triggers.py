"""Triggers called by address, from compiled code.

A trigger is a function of three words to a word, compiled by Numba for Python alone: it has no C function. So it is
called as Numba's functions call each other: the result goes to an address, as would an exception, and a status comes
back. Triggers raise nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from freshviews.kernel.memory.mem import PURE_PYTHON, primitive

_WORD = ir.IntType(64)
_STATUS = ir.IntType(32)
_plain: list[Callable[[int, int, int], int]] = []


def trigger_entry(function: Any) -> int:
    """What ``call_trigger`` calls a trigger by. The function must live as long as it is called."""
    if PURE_PYTHON:
        if function not in _plain:
            _plain.append(function)
        return _plain.index(function)
    (overload,) = getattr(function, "dispatcher", function).overloads.values()
    return int(overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name))


def call_trigger(entry: int, state: int, batch: int, n: int) -> int:
    """Run the trigger of an entry over ``n`` rows."""
    return _plain[entry](state, batch, n)


def _lower(builder: Any, entry: Any, state: Any, batch: Any, n: Any) -> Any:
    nowhere = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(_STATUS, [_WORD.as_pointer(), nowhere.as_pointer(), _WORD, _WORD, _WORD])
    with builder.goto_entry_block():
        result = builder.alloca(_WORD)
        error = builder.alloca(nowhere)
    builder.call(builder.inttoptr(entry, kind.as_pointer()), [result, error, state, batch, n])
    return builder.load(result)


primitive(call_trigger, types.int64, _lower, types.int64, types.int64, types.int64, types.int64)
