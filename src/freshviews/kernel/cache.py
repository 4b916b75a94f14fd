"""Where compiled code is kept between processes, and what makes it stale.

The cache folder is ``FRESHVIEWS_CACHE_DIR``, else ``freshviews`` under the user's cache folder, else a folder of
this process. In it there is one folder per version of all that compiled code depends on: every kernel's
source, Numba, Python. Numba by itself looks only at the file of the function it loads, and would go on using a
kernel compiled against a callee that has since changed.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator


@cache
def cache_folder() -> Path:
    """Folder for generated modules and compiled code of this version; made where it is missing."""
    base = os.environ.get("FRESHVIEWS_CACHE_DIR")
    wish = Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "freshviews"
    try:
        folder = wish / _version()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="freshviews-"))


def _version() -> str:
    digest = hashlib.sha256()
    kernels = Path(__file__).parent
    for path in sorted(kernels.rglob("*.py")):
        digest.update(path.relative_to(kernels).as_posix().encode())
        digest.update(path.read_bytes())
    digest.update(f"{numba.__version__} {sys.version}".encode())
    return f"v{digest.hexdigest()[:16]}"


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Puts a function's compiled code into the folder of this version, whatever its file's time stamp."""

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return "by version"

    def get_disambiguator(self) -> str | None:
        return None

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls()


SYMBOL_PREFIX = "freshviews_outside_"

symbols: dict[str, Callable[[], None]] = {}
"""Symbols that compiled code may refer to, and what enters each into the process; see ``outside.py``."""


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    """Keeps with a function the symbols it refers to, which must be there when it is loaded."""

    _locator_classes = [_Locator]  # noqa: RUF012

    def reduce(self, data: Any) -> Any:
        functions = data.library._final_module.functions
        used = [f.name for f in functions if f.is_declaration and f.name.startswith(SYMBOL_PREFIX)]
        return used, super().reduce(data)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        used, rest = payload
        for symbol in used:
            symbols[symbol]()
        return super().rebuild(target_context, rest)


class VersionedCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of a function, in the folder of this version."""

    _impl_class = _Implementation
