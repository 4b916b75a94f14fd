"""From generated source to callable functions: files named by their content, compiled once, cached on disk.

In the cache folder of this version there is one module per program, named by the hash of its source. Every
function's name ends in that hash as well: Numba can mix up equally named functions that sibling processes
compiled, and worker processes are often forked.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from freshviews.kernel.cache import cache_folder
from freshviews.kernel.memory import mem

Function = Callable[..., int]

_loaded: dict[str, ModuleType] = {}
_lock = threading.Lock()


def hash_of(source: str) -> str:
    """The hash that names a generated module and its functions."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def build(source: str, functions: dict[str, str]) -> dict[str, Function]:
    """Compile the functions of a generated module.

    ``source`` uses the marker ``__HASH__`` in every function name it defines; ``functions`` maps a function's
    name without the marker to its Numba signature. Returns the functions by that name.
    """
    digest = hash_of(source)
    with _lock:
        module = _loaded.get(digest)
        if module is None:
            module = _load(source.replace("__HASH__", f"_{digest}"), digest)
            _loaded[digest] = module
    compiled: dict[str, Function] = {}
    with _no_collection():
        for name, signature in functions.items():
            made = getattr(module, f"{name}_{digest}")
            if not mem.PURE_PYTHON and signature and not made.signatures:
                made.compile(signature)
            compiled[name] = made
    return compiled


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without collections of garbage: a compiler makes many objects, and nearly all of them stay."""
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
    spec = importlib.util.spec_from_file_location(f"freshviews_generated_{digest}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
