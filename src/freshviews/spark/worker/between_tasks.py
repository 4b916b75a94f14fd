"""Shortens the pause between two tasks in a Python worker that has cells.

In the pause, Spark collects garbage and clears import caches. Without this module, it takes tenths of a second.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zipimport import zipimporter

from freshviews.spark.state.cell import cells_here

_LONG = 0.01
"""CPU seconds of a collection after which its objects are set apart."""
_STATE: dict[str, Any] = {"tasks": 0, "start": 0.0, "cells": frozenset()}


@contextmanager
def task() -> Iterator[None]:
    """A task runs; its own objects are not set apart, as they go when it ends. Objects of closed cells go, too.

    After each task Spark runs Python's garbage collection, which visits all objects of the engines and of compiled
    code. These objects stay, so after a long collection they are set apart (``gc.freeze``). Before each task Spark
    invalidates the caches of imports, and so reads the directories of all zip files on ``sys.path`` again. Therefore
    this module removes the finders of zip files. Python makes a finder again when an import needs it.
    """
    if _freeze not in gc.callbacks:
        gc.callbacks.append(_freeze)
    _STATE["tasks"] += 1
    try:
        yield
    finally:
        _STATE["tasks"] -= 1
        cells, _STATE["cells"] = _STATE["cells"], cells_here()
        if cells - _STATE["cells"]:
            gc.unfreeze()
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimporter):
                del sys.path_importer_cache[path]


def _freeze(phase: str, about: dict[str, Any]) -> None:
    if phase == "start":
        _STATE["start"] = time.thread_time()
    elif about["generation"] == 2 and not _STATE["tasks"] and time.thread_time() - _STATE["start"] > _LONG:
        gc.freeze()
