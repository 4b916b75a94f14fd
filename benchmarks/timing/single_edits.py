"""Five relations in two cycles that share an edge, counted under single edits, with a read of the count after each.

Values are CPU milliseconds of the process for an edit and the read. ``freshviews`` is the named strategy
``incremental_trie_join``; ``trie_join`` and DuckDB, with one thread, recompute. Rows are random pairs; all of the
hundred thousand or million rows are stored before the clock starts. Programs are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import freshviews as fv
from benchmarks.measuring.strategies import PLANNED

TITLE = "single edits"
UNIT = "ms CPU"
TARGETS: dict[str, float] = {}
SIZES = {"100,000 rows": 100_000, "1,000,000 rows": 1_000_000}
CASES = tuple(SIZES)
STRATEGIES = (PLANNED, "first_order", "crown", "trie_join", "DuckDB")
ANEW = ("trie_join", "DuckDB")
TARGET_RATIOS = {"trie_join": {"1,000,000 rows": 100.0}, "DuckDB": {"1,000,000 rows": 100.0}}
EDITS, EDITS_ANEW = 300, 5
"""Timed edits: of strategies that maintain the count, and of those that recompute it."""
RELATIONS = {"r": "ab", "s": "bc", "t": "ca", "u": "cd", "w": "da"}
TWO_CYCLES = (
    "SELECT COUNT(*) AS n FROM r JOIN s ON s.b = r.b JOIN t ON t.c = s.c AND t.a = r.a "
    "JOIN u ON u.c = t.c JOIN w ON w.d = u.d AND w.a = r.a"
)
TRUSTED = "TBLPROPERTIES ('freshviews.trusted' = 'true')"


def measure(case: str, strategy: str) -> dict[str, Any]:
    """CPU milliseconds of an edit and a read, and the count after the first edits, which are the same for all
    strategies."""
    random = np.random.default_rng(1)
    codes = round((SIZES[case] / 5) ** 0.75)
    rows = {name: np.unique(random.integers(0, codes, (SIZES[case] // 5, 2)), axis=0) for name in RELATIONS}
    new = random.integers(0, codes, (EDITS, 2))
    edits = [(list(RELATIONS)[i % 5], pair, -1 if i % 4 == 3 else 1) for i, pair in enumerate(new)]
    # Only stored rows are deleted.
    edits = [(name, rows[name][i] if sign < 0 else pair, sign) for i, (name, pair, sign) in enumerate(edits)]
    if strategy == "DuckDB":
        return _timed(*_duckdb(rows), edits[:EDITS_ANEW])
    taken = "incremental_trie_join" if strategy == PLANNED else strategy
    found = _timed(*_ours(rows, taken), edits[:EDITS_ANEW] if strategy in ANEW else edits)
    return found | {"strategy_taken": taken}


Edit = tuple[str, np.ndarray, int]
"""The relation, the row, and +1 or -1."""


def _timed(edit: Callable[[Edit], None], count: Callable[[], int], edits: list[Edit]) -> dict[str, Any]:
    count()
    seconds = 0.0
    first = 0
    for i, one in enumerate(edits):
        start = time.process_time()
        edit(one)
        found = count()
        seconds += time.process_time() - start
        if i == EDITS_ANEW - 1:
            first = found
    return {"value": 1e3 * seconds / len(edits), "answers": {"count": [[str(first)]]}}


def _ours(rows: dict[str, np.ndarray], strategy: str) -> tuple[Callable[[Edit], None], Callable[[], int]]:
    db = fv.Database()
    for name, (x, y) in RELATIONS.items():
        db.execute(f"CREATE TABLE {name} ({x} BIGINT NOT NULL, {y} BIGINT NOT NULL) {TRUSTED};")
    properties = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
    db.execute(f"CREATE MATERIALIZED VIEW v {properties} AS {TWO_CYCLES};")
    view = db.view("v")

    def edit(one: Edit) -> None:
        name, row, sign = one
        x, y = RELATIONS[name]
        (db.insert if sign > 0 else db.delete)(name, pa.record_batch({x: row[:1], y: row[1:]}))

    def count() -> int:
        return int(view.to_arrow()["n"][0].as_py())

    for name, (x, y) in RELATIONS.items():
        db.insert(name, pa.table({x: rows[name][:, 0], y: rows[name][:, 1]}))
    return edit, count


def _duckdb(rows: dict[str, np.ndarray]) -> tuple[Callable[[Edit], None], Callable[[], int]]:
    con = duckdb.connect()
    con.execute("SET threads = 1")
    for name, (x, y) in RELATIONS.items():
        con.register("given", pa.table({x: rows[name][:, 0], y: rows[name][:, 1]}))
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")

    def edit(one: Edit) -> None:
        name, row, sign = one
        x, y = RELATIONS[name]
        values = [int(row[0]), int(row[1])]
        change = f"INSERT INTO {name} VALUES (?, ?)" if sign > 0 else f"DELETE FROM {name} WHERE {x} = ? AND {y} = ?"
        con.execute(change, values)

    def count() -> int:
        return int(con.execute(TWO_CYCLES).fetchall()[0][0])

    return edit, count
