"""Counts of patterns in a whole graph: ``trie_join`` compared with DuckDB, each with one thread.

The value is CPU seconds from an Arrow table in the order of arrival to the count: rows are inserted, sorted and joined.
Before, programs are compiled and a small graph is counted. ``freshviews`` is the named strategy ``trie_join``;
``first_order`` runs the rows through its triggers, in batches. A measurement that is cut off has its time so far: a
lower bound.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

import freshviews as fv
from benchmarks.measuring.strategies import PLANNED
from benchmarks.workloads.graph import view_of
from benchmarks.workloads.graphs import Edges, chung_lu, epinions

TITLE = "whole graph"
UNIT = "s CPU"
TARGETS: dict[str, float] = {}
GRAPHS: dict[str, Callable[[], Edges | None]] = {
    "skew 2.5": lambda: chung_lu(20_000, 100_000, 2.5),
    "Epinions": lambda: epinions(),
}
PATTERNS = ("triangle", "4-clique", "4-cycle")
CASES = tuple(f"{pattern}, {graph}" for graph in GRAPHS for pattern in PATTERNS)
STRATEGIES = (PLANNED, "first_order", "DuckDB")
TARGET_RATIOS = {"DuckDB": {"triangle, Epinions": 2.0, "4-clique, Epinions": 10.0, "4-cycle, Epinions": 10.0}}
PATIENCE = 120.0
"""CPU seconds after which a measurement is cut off."""
SECONDS = 600.0
"""Seconds after which its process is killed, in case other processes slow it down."""
ROWS = 1 << 13
FEW = 50
TABLE = "CREATE TABLE edge (src BIGINT NOT NULL, dst BIGINT NOT NULL) TBLPROPERTIES ('freshviews.trusted' = 'true');"

CLIQUE = (
    "SELECT COUNT(*) AS n FROM edge ab JOIN edge ac ON ab.src = ac.src JOIN edge ad ON ac.src = ad.src "
    "JOIN edge bc ON ab.dst = bc.src AND ac.dst = bc.dst JOIN edge bd ON bc.src = bd.src AND ad.dst = bd.dst "
    "JOIN edge cd ON bc.dst = cd.src AND bd.dst = cd.dst"
)


def query_of(pattern: str) -> str:
    """The count of a pattern."""
    return CLIQUE if pattern == "4-clique" else view_of(pattern)


def measure(case: str, strategy: str) -> dict[str, Any]:
    """CPU seconds to the count."""
    pattern, graph = case.split(", ", 1)
    edges = GRAPHS[graph]()
    if edges is None:
        return {"missing": "the graph of Epinions: see benchmarks/workloads/graphs.py"}
    table = pa.table({"src": edges[:, 0], "dst": edges[:, 1]})
    taken = "trie_join" if strategy == PLANNED else strategy
    seconds, count = _duckdb(pattern, table) if strategy == "DuckDB" else _ours(pattern, table, taken)
    found: dict[str, Any] = {"value": seconds}
    if count is None:
        return found | {"cut": f"cut off after {seconds:.0f} s: it would have taken longer"}
    found |= {"answers": {"count": [[str(count)]]}, "note": f"{count:,} found"}
    return found if strategy == "DuckDB" else found | {"strategy_taken": taken}


def _ours(pattern: str, table: pa.Table, strategy: str) -> tuple[float, int | None]:
    with fv.Database() as db:
        properties = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
        db.execute(f"{TABLE} CREATE MATERIALIZED VIEW v {properties} AS {query_of(pattern)};")
        few = table.slice(0, FEW)
        for change in (db.insert, db.delete):
            change("edge", few)
            list(db.view("v"))
        start = time.process_time()
        # Strategies that recompute get all rows at once.
        size = len(table) if strategy == "trie_join" else ROWS
        for batch in table.combine_chunks().to_batches(max_chunksize=size):
            db.insert("edge", batch)
            if time.process_time() - start > PATIENCE:
                return time.process_time() - start, None
        ((count,),) = db.view("v")
        return time.process_time() - start, count


def _duckdb(pattern: str, table: pa.Table) -> tuple[float, int | None]:
    with duckdb.connect() as con:
        con.execute("SET threads = 1")
        con.register("few", table.slice(0, FEW))
        con.execute("CREATE TABLE edge AS SELECT * FROM few")
        con.execute(query_of(pattern)).fetchall()
        con.execute("DROP TABLE edge")
        con.register("given", table)
        done = threading.Event()
        start = time.process_time()

        def watch() -> None:
            while not done.wait(0.2):
                if time.process_time() - start > PATIENCE:
                    con.interrupt()
                    return

        threading.Thread(target=watch, daemon=True).start()
        try:
            con.execute("CREATE TABLE edge AS SELECT * FROM given")
            ((count,),) = con.execute(query_of(pattern)).fetchall()
        except duckdb.InterruptException:
            return time.process_time() - start, None
        finally:
            done.set()
        return time.process_time() - start, int(count)
