"""Stores machine code in files, and loads it into this process without Numba.

Code is for the processor of this machine, unless NUMBA_CPU_NAME and NUMBA_CPU_FEATURES name another one.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import binding

from freshviews.kernel.machine.cache import COMPILED, cache_folder
from freshviews.kernel.machine.functions import Function, MachineCode, by_symbol

_FASTCALL = 0x0080


class _Method(ctypes.Structure):
    """PyMethodDef of Python's C interface."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@dataclass(frozen=True)
class Stored:
    """The content of a file. ``symbol`` names the function, ``entry`` its entry, and ``outside`` the functions that it
    calls by name."""

    symbol: str
    entry: str
    outside: tuple[str, ...]
    code: bytes
    entry_code: bytes


def _target() -> tuple[str, str]:
    """The name and the features of the processor that code is for: this one, unless Numba's variables name another."""
    name = os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()
    features = "" if name == "generic" else binding.get_host_cpu_features().flatten()
    return name, os.environ.get("NUMBA_CPU_FEATURES", features)


@cache
def processor() -> str:
    """The processor that code is for, as a hash of its name and features."""
    text = " ".join([binding.get_default_triple(), *_target(), os.environ.get("NUMBA_OPT", "")])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@cache
def target_machine() -> Any:
    """LLVM's target, for object files that are loaded into a process on this processor."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    # As in Numba: static code only on x86.
    model = "static" if target.name.startswith("x86") else "pic" if target.name.startswith("ppc") else "default"
    name, features = _target()
    return target.create_target_machine(
        cpu=name,
        features=features,
        opt=2,
        reloc=model,
        codemodel="jitdefault",
        jit=True,
    )


def file_of(function: Function, kinds: str) -> Path:
    """The file of a function's machine code."""
    name = f"{function.__module__}.{function.__qualname__} {kinds} {processor()}"
    return cache_folder() / f"{function.__name__[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:20]}.code"


def is_compiled(function: Function) -> bool:
    """Whether Numba's cache has code of a function, also of one that is only called by others."""
    body = function.body.__code__
    python = f"py{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
    return (cache_folder() / f"{Path(body.co_filename).stem}.{function.__qualname__}-None.{python}{COMPILED}").exists()


def write(path: Path, stored: Stored) -> None:
    """Write a file, whole or not at all.

    A file of the cache folder has the code of one function for arguments of certain kinds. A line of JSON describes the
    two object files after it: the function, and an *entry*, through which Python calls the function
    (``kernel.compiler.entries``). Functions with the same kinds of arguments and result share an entry, which is loaded
    once.
    """
    rest = stored.code + stored.entry_code
    head = {
        "symbol": stored.symbol,
        "entry": stored.entry,
        "outside": stored.outside,
        "sizes": (len(stored.code), len(stored.entry_code)),
        "check": zlib.crc32(rest),
    }
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + rest)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path: Path) -> Stored | None:
    """The content of a file; None if it is missing or damaged."""
    try:
        line, _, rest = path.read_bytes().partition(b"\n")
        head = json.loads(line)
        size, entry_size = head["sizes"]
        if len(rest) != size + entry_size or zlib.crc32(rest) != head["check"]:
            return None
        return Stored(head["symbol"], head["entry"], tuple(head["outside"]), rest[:size], rest[size:])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def loaded(function: Function, kinds: str) -> MachineCode | None:
    """The machine code of a function, loaded from its file if needed; None if it is not stored."""
    made = function.made.get(kinds)
    if made is None:
        with _lock:
            made = function.made.get(kinds) or _load(function, kinds)
    return made


def _load(function: Function, kinds: str) -> MachineCode | None:
    stored = read(file_of(function, kinds))
    if stored is None or not all(map(_define_symbol, stored.outside)):
        return None
    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(stored.code))
    if not engine.get_function_address(stored.entry):
        engine.add_object_file(binding.ObjectFileRef.from_data(stored.entry_code))
    engine.finalize_object()
    address = engine.get_function_address(stored.symbol)
    made = MachineCode(_builtin(function.__name__, engine.get_function_address(stored.entry), address), address)
    function.take(kinds, made)
    if function.symbol:
        binding.add_symbol(function.symbol, address)
    return made


def _define_symbol(symbol: str) -> bool:
    """Define a symbol by its stored function; False if the function is not stored."""
    function = by_symbol[symbol]
    return loaded(function, "w" * function.arguments) is not None


def _builtin(name: str, entry: int, address: int) -> Callable[..., Any]:
    """A Python function that calls an entry with the address of machine code."""
    method = _for_good(_Method(name.encode(), entry, _FASTCALL, None))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    found: Callable[..., Any] = make(ctypes.addressof(method), address, None)
    return found


@cache
def _engine() -> Any:
    """The LLVM engine that has the machine code of this process."""
    return _for_good(binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine()))


def _for_good(made: Any) -> Any:
    """Keeps an object alive: at the end of a process, functions that refer to it may be freed after this module.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made


_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


# A loading thread may hold the lock while another thread forks.
os.register_at_fork(after_in_child=_renew_lock)
