"""Bulk load of two BIGINT columns into an ordered tree (``engine.traces.ordered_tree``), sorted or not, by CPU time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.measuring.strategies import PLANNED
from freshviews.engine.traces.ordered_tree import OrderedTree

TITLE = "bulk load"
UNIT = "rows/s"
ROWS = 4_000_000
CASES = ("sorted", "unsorted")
STRATEGIES = (PLANNED,)
TARGETS = {"sorted": 20e6, "unsorted": 5e6}
MOST_BYTES = 24
"""The target of bytes per row."""


def measure(case: str, strategy: str, rows: int = ROWS) -> dict[str, Any]:
    """Rows loaded in a CPU second, and bytes per row."""
    random = np.random.default_rng(1)
    columns = [random.integers(0, 4 * rows, rows), random.integers(0, 1 << 40, rows)]
    if case == "sorted":
        order = np.lexsort(columns[::-1])
        columns = [np.ascontiguousarray(column[order]) for column in columns]
    OrderedTree(2).load([column[:0] for column in columns])  # compile first
    OrderedTree(2).load([np.sort(column[:100]) for column in columns])
    tree = OrderedTree(2)
    start = time.process_time()
    tree.load(columns)
    seconds = time.process_time() - start
    each = tree.bytes / rows
    held = "reached" if each <= MOST_BYTES else "missed"
    note = f"{each:.1f} bytes a row, target {MOST_BYTES}: {held}"
    return {"value": rows / seconds, "cpu_seconds": seconds, "bytes": each, "rows": len(tree), "note": note}
