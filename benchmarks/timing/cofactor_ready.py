"""Seconds from CREATE until a view of a cofactor of m variables over a star of six tables is ready for any batch.

A process creates the view, inserts a row into each table, deletes one and reads the view: all programs are loaded, or
compiled where the cache lacks them. Importing the package is not part of it. ``empty cache``: nothing was compiled
before, as on a new machine. ``another view``: the cache has what a cofactor of fewer columns needs. ``second process``:
the same view was created before.
"""

from __future__ import annotations

import tempfile
import time
from typing import Any

import pyarrow as pa

import freshviews as fv
from benchmarks.measuring.processes import in_own_process
from benchmarks.workloads import cofactor

TITLE = "cofactor, ready"
UNIT = "s"
SIZES = (6, 13, 27)
BEFORE = "m = 4"
"""The view that was created before the measured one."""
STATES = ("empty cache", "another view", "second process")
CASES = tuple(f"m = {m}, {state}" for m in SIZES for state in STATES if state != "empty cache" or m == SIZES[-1])
STRATEGIES = ("freshviews",)


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Run the earlier processes in a cache of their own, then the measured one; ``once m = 9`` is one process."""
    if case.startswith("once "):
        return _once(case.removeprefix("once "))
    size, state = case.split(", ")
    views = {"empty cache": [size], "another view": [BEFORE, size], "second process": [size, size]}[state]
    with tempfile.TemporaryDirectory() as folder:
        for view in views:
            found = in_own_process("cofactor_ready", f"once {view}", strategy, {"FRESHVIEWS_CACHE_DIR": folder})
    return found


def _once(size: str) -> dict[str, Any]:
    made = cofactor.stream(f"{size}, small")
    rows = {}
    for step in made.steps:
        rows.setdefault(step.table, pa.table(step.rows.slice(0, 1).to_pydict() | {"postcode": [1]}))
    start, cpu = time.perf_counter(), time.process_time()
    with fv.Database() as db:
        db.execute("\n".join(relation.ddl(checked=False) for relation in made.relations))
        db.execute(f"CREATE MATERIALIZED VIEW v AS {made.view}")
        created = time.perf_counter()
        for table, row in rows.items():
            db.insert(table, row)
        ((count, *_),) = db.view("v")
        assert count == 1, count
        db.delete(made.relations[0].name, rows[made.relations[0].name])
        ((count, *_),) = db.view("v")
        assert count == 0, count
    end, cpu = time.perf_counter(), time.process_time() - cpu
    return {"value": end - start, "cpu": cpu, "create": created - start}
