"""The number of directed triangles of a power-law graph: a self-join of one edge table.

300,000 edges among 20,000 nodes, drawn with weight i ** -0.5 (Chung and Lu), without loops and repeats. All are
inserted, then all deleted in another order, in batches of 1000.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.peers import count_triangles, recompute
from benchmarks.stream import ROWS_PER_BATCH, Relation, Step, Stream, keep_fresh, spread_over

TITLE = "triangle"
CASES = ("",)
STRATEGIES = ("freshviews", "plain Python", "DuckDB")
UNIT = "rows/s"
TARGETS = {"": 2e6}
TARGET_RATIOS = {"plain Python": 3.0}

NODES = 20_000
EDGES = 300_000
VIEW = """
    SELECT COUNT(*) AS n FROM edge r JOIN edge s ON r.dst = s.src JOIN edge t ON s.dst = t.src AND t.dst = r.src
"""


def edges() -> npt.NDArray[np.int64]:
    """Distinct edges, shape (EDGES, 2), always the same ones."""
    random = np.random.default_rng(1)
    weights = np.cumsum(np.arange(1, NODES + 1) ** -0.5)
    found = np.empty(0, np.int64)
    while len(found) < EDGES:
        ends = np.searchsorted(weights, random.random((2, EDGES)) * weights[-1])
        drawn = ends[0] * NODES + ends[1]
        found = np.concatenate([found, drawn[ends[0] != ends[1]]])
        _, first = np.unique(found, return_index=True)
        found = found[np.sort(first)]
    names = random.permutation(NODES)
    return np.column_stack([names[found[:EDGES] // NODES], names[found[:EDGES] % NODES]])


def stream() -> Stream:
    inserted = edges()
    deleted = inserted[np.random.default_rng(2).permutation(EDGES)]
    steps = tuple(
        Step(sign, "edge", batch)
        for sign, rows in ((1, inserted), (-1, deleted))
        for batch in pa.table({"src": rows[:, 0], "dst": rows[:, 1]}).to_batches(max_chunksize=ROWS_PER_BATCH)
    )
    relation = Relation("edge", "src BIGINT, dst BIGINT", ("src", "dst"))
    return Stream((relation,), VIEW, steps, spread_over(len(steps), 10))


def measure(case: str, strategy: str) -> dict[str, Any]:
    run = {"freshviews": keep_fresh, "plain Python": count_triangles, "DuckDB": recompute}[strategy]
    return run(stream())
