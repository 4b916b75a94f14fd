"""Memory of a stored row: two BIGINTs, their multiplicity, and one secondary index on the first of them.

The table is the kernel's, with distinct random rows, ten for an index key on average. ``accounted`` is
``table_bytes`` per row; the value is the growth of the process per row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measuring.machine import resident_bytes
from freshviews.kernel.hash.table import LIVE, add_index, new_table, table_bytes, upsert
from freshviews.kernel.memory.mem import jit, load, mix, shift_right, store

TITLE = "memory"
CASES = ("750,000 rows", "800,000 rows", "1,000,000 rows", "1,500,000 rows", "1,600,000 rows", "3,000,000 rows")
STRATEGIES = ("freshviews",)
UNIT = "bytes/row"
TARGETS = dict.fromkeys(CASES, 64.0)


@jit
def fill(table: int, rows: int, keys: int) -> None:
    """Add rows ``(random key, i)``, each once."""
    state = 1
    for i in range(rows):
        state = mix(state, i)
        row = upsert(table, (shift_right(state, 1) % keys, i))
        store(row, 2, load(row, 2) + 1)


def measure(case: str, strategy: str) -> dict[str, Any]:
    rows = int(case.split()[0].replace(",", ""))
    positions = np.zeros(1, np.int64)
    _filled(positions, 1000)  # compile first, so that the compiler's memory does not count
    before = resident_bytes()
    table = _filled(positions, rows)
    resident = (resident_bytes() - before) / rows
    assert load(table, LIVE) == rows
    return {"value": resident, "resident": resident, "accounted": table_bytes(table) / rows, "rows": rows}


def _filled(positions: Any, rows: int) -> int:
    table: int = new_table(2, 1, 1, 0, 0)
    add_index(table, positions.ctypes.data, 1)
    fill(table, rows, max(rows // 10, 1))
    return table
