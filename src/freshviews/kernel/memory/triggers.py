"""Lets compiled code call generated functions by address: triggers, conditions, and readers of results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from freshviews.kernel.memory.mem import PURE_PYTHON

_plain: list[Callable[..., int]] = []


def entry_of(function: Any) -> int:
    """The address by which ``call_trigger`` and its relatives call a compiled function, which must stay alive."""
    if PURE_PYTHON:
        if function not in _plain:
            _plain.append(function)
        return _plain.index(function)
    return int(function.code.address)


def call_trigger(entry: int, state: int, batch: int, n: int) -> int:
    """Run the trigger of an entry over ``n`` rows."""
    return _call(entry, state, batch, n)


def call_condition(entry: int, state: int, binding: int) -> int:
    """Whether the condition of an entry is true for a binding, the codes of variables."""
    return _call(entry, state, binding)


def call_reader(entry: int, state: int, out: int) -> None:
    """Run the reader of an entry, which writes rows of a state to a buffer."""
    _call(entry, state, out)


def _call(entry: int, *words: int) -> int:
    if PURE_PYTHON:
        return _plain[entry](*words)
    result, error = ctypes.c_int64(), ctypes.c_void_p()
    pointers = [ctypes.c_void_p, ctypes.c_void_p]
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *pointers, *[ctypes.c_int64] * len(words))
    kind(entry)(ctypes.addressof(result), ctypes.addressof(error), *words)
    return result.value
