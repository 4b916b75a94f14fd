"""From generated source to callable functions: files named by their content, compiled once, cached on disk.

The cache folder of this version has one module per program, named by the hash of its source. In that file the name of
every function ends in the hash as well: Numba can mix up functions of one name that sibling processes compiled, and
worker processes are often forked.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from freshviews.kernel.beside import machine_code
from freshviews.kernel.cache import cache_folder, load_generated
from freshviews.kernel.memory import mem

Function = Callable[..., int]

_loaded: dict[str, ModuleType] = {}
_lock = threading.Lock()


def hash_of(source: str) -> str:
    """The hash that names a generated module and its functions."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def build(source: str, signatures: Mapping[str, str]) -> dict[str, Function]:
    """Load a generated module; returns the functions that ``source`` defines, by their names in it.

    Functions with a Numba signature in ``signatures`` are compiled now, others when they are first called.
    """
    digest = hash_of(source)
    names = re.findall(r"^def (\w+)\(", source, re.MULTILINE)
    with _lock:
        module = _loaded.get(digest)
        if module is None:
            module = _load(_renamed(source, names, digest), digest)
            _loaded[digest] = module
    functions: dict[str, Function] = {name: getattr(module, f"{name}_{digest}") for name in names}
    if not mem.PURE_PYTHON:
        with _no_collection():
            for name, signature in signatures.items():
                function: Any = functions[name]
                if not function.signatures:
                    machine_code(function, signature)
    return functions


def compile_ahead(*functions: Callable[..., int | None]) -> bool:
    """Compile functions of words now, so that no commit compiles them: kernels, and functions that ``build`` loaded.

    False if some of them run as plain Python for a while (``kernel.beside``).
    """
    if mem.PURE_PYTHON:
        return True
    ready = True
    with _no_collection():
        for function in functions:
            # A kernel that is called by name has its dispatcher aside, see ``kernel.memory.outside``.
            compiled: Any = getattr(function, "dispatcher", function)
            if not compiled.signatures:
                words = f"({'int64,' * compiled.py_func.__code__.co_argcount})"
                ready = machine_code(compiled, words) is not None and ready
    return ready


def _renamed(source: str, names: list[str], digest: str) -> str:
    """The source with the digest behind the names of its functions, which no local variable has."""
    renamed = {name: f"{name}_{digest}" for name in names}
    # One alternative for all numbered names of a kind: there may be hundreds.
    kinds = "|".join(dict.fromkeys(re.sub(r"\d+$", r"\\d+", name) for name in names))
    return re.sub(rf"\b(?:{kinds})\b", lambda found: renamed.get(found[0], found[0]), source)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch garbage collection off: a compiler makes many objects, and nearly all of them stay."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _load(source: str, digest: str) -> ModuleType:
    path = cache_folder() / f"p{digest}.py"
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(source)
        os.replace(temporary, path)
    return load_generated(digest)
