"""Compiles kernels and generated functions with Numba, and stores their machine code in files."""

from __future__ import annotations

import fcntl
import os
import threading
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numba
from llvmlite import binding
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

# Importing them registers their functions with Numba.
from freshviews.kernel.compiler import arithmetic as arithmetic
from freshviews.kernel.compiler import primitives
from freshviews.kernel.compiler.entries import entry_code, entry_name
from freshviews.kernel.machine.beside import report_wait
from freshviews.kernel.machine.cache import cache_folder
from freshviews.kernel.machine.functions import KIND, SYMBOL_PREFIX, Function, by_symbol
from freshviews.kernel.machine.native import Stored, file_of, write

_dispatchers: WeakKeyDictionary[Function, Any] = WeakKeyDictionary()
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


# A compiling thread may hold the lock while another thread forks.
os.register_at_fork(after_in_child=_renew_lock)

_RESULTS = {types.none: "n", types.int64: "w", types.boolean: "b", types.float64: "d"}


def type_of(function: Function) -> Any:
    """The type under which Numba sees a function that another one calls."""
    return _dispatcher(function)._numba_type_


def compile_and_store(function: Function, kinds: str) -> None:
    """Store the machine code of a function and of the functions that it calls by symbol, after compiling it if needed.

    Only one thread at a time: another one could find a noted symbol that Numba does not know yet.
    """
    with _lock:
        _compile_and_store(function, kinds)


def _compile_and_store(function: Function, kinds: str) -> None:
    _name_symbols()
    result, outside, code = _compiled(function, kinds)
    for symbol in outside:
        callee = by_symbol[symbol]
        if not file_of(callee, "w" * callee.arguments).exists():
            _compile_and_store(callee, "w" * callee.arguments)
    kind = _result_kind(result.signature.return_type)
    stored = Stored(result.fndesc.llvm_func_name, entry_name(kinds, kind), outside, code, entry_code(kinds, kind))
    write(file_of(function, kinds), stored)


def _dispatcher(function: Function) -> Any:
    """The Numba dispatcher, which compiles a function."""
    known = _dispatchers.get(function)
    if known is None:
        # ``forceinline`` is explicit, because a function compiled on behalf of an inlined one would inherit its flag.
        # Python calls functions by entries, and C calls none.
        known = numba.njit(
            error_model="numpy",
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            forceinline=function.inline,
        )(function.body)
        known._cache = _Cache(function.body)
        _dispatchers[function] = known
    return known


def _compiled(function: Function, kinds: str) -> tuple[Any, tuple[str, ...], bytes]:
    """Numba's result for a compiled function, the symbols of functions that it calls, and its object file."""
    dispatcher, arguments = _dispatcher(function), _types_of(kinds)
    dispatcher.compile(arguments)
    result = dispatcher.overloads[arguments]
    return result, *dispatcher._cache.code[result.fndesc.llvm_func_name]


def _types_of(kinds: str) -> tuple[Any, ...]:
    """Numba's types of arguments of these kinds."""
    found: list[Any] = []
    for part in KIND.finditer(kinds):
        if part[1] is not None:
            found.append(types.UniTuple(types.int64, int(part[1])))
        else:
            found.append(types.float64 if part[0] == "d" else types.int64)
    return tuple(found)


def _result_kind(kind: Any) -> str:
    """The kind of a result: see ``entries.entry_name``."""
    if isinstance(kind, types.BaseTuple):
        return "t" + "".join(_RESULTS[types.unliteral(one)] for one in kind.types)
    return _RESULTS[types.unliteral(kind)]


def _name_symbols() -> None:
    """Make Numba call functions that have symbols by symbol, including functions of modules imported since."""
    for symbol, function in by_symbol.items():
        if symbol not in _named:
            _named.add(symbol)
            primitives.by_symbol(function, partial(_enter, symbol))


def _enter(symbol: str) -> None:
    """Define the symbol of a function in this process, for Numba."""
    if symbol not in _entered:
        function = by_symbol[symbol]
        result, _, _ = _compiled(function, "w" * function.arguments)
        binding.add_symbol(symbol, result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
        _entered.add(symbol)


_named: set[str] = set()
_entered: set[str] = set()


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Stores the compiled code of a function in the folder of this version, ignoring the time stamp of its file."""

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return "by version"

    def get_disambiguator(self) -> str | None:
        return None

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls()


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    """Stores with a function the symbols it refers to; loading the function first defines them in the process.
    ``code``: these symbols, and the object file, of each stored or loaded function, by its name in Numba."""

    _locator_classes = [_Locator]  # noqa: RUF012

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        self.code: dict[str, tuple[tuple[str, ...], bytes]] = {}

    def reduce(self, data: Any) -> Any:
        name = data.fndesc.llvm_func_name
        declared = [one.name for one in data.library._final_module.functions if one.is_declaration]
        numbas = [one for one in declared if one.startswith(("numba_", "NRT_"))]
        assert not numbas, f"{name} needs {', '.join(numbas)}, which only Numba's runtime has"
        used = tuple(one for one in declared if one.startswith(SYMBOL_PREFIX))
        reduced = super().reduce(data)
        report_wait()
        self.code[name] = used, data.library._get_compiled_object()
        return used, reduced

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        used, rest = payload
        for symbol in used:
            _enter(symbol)
        (_, _, (code, _)), fndesc, *_ = rest
        self.code[fndesc.llvm_func_name] = used, code
        return super().rebuild(target_context, rest)


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, in the folder of this version."""

    _impl_class = _Implementation

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a result. One process at a time: Numba numbers the files of a function's signatures by those it finds.
        """
        with (cache_folder() / "numba.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            super().save_overload(sig, data)

    @property
    def code(self) -> dict[str, tuple[tuple[str, ...], bytes]]:
        """See ``_Implementation``."""
        found: dict[str, tuple[tuple[str, ...], bytes]] = self._impl.code
        return found
