"""The number of directed triangles of a power-law graph: a self-join of one edge table.

300,000 edges among 20,000 nodes, drawn with weight i ** -0.5 (Chung and Lu), without loops and repetitions. All are
inserted, then all deleted in another order, in batches of 1000.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.measuring.stream import ROWS_PER_BATCH, Relation, Step, Stream, spread_over
from benchmarks.workloads.graph import TRIANGLE, view_of
from benchmarks.workloads.graphs import chung_lu

TITLE = "triangle"
UNIT = "rows/s"
TARGETS = {"": 2e6}
TARGET_RATIOS = {"plain Python": 3.0}

NODES = 20_000
EDGES = 300_000


def stream(case: str) -> Stream:
    inserted = chung_lu(NODES, EDGES, 3.0)
    deleted = inserted[np.random.default_rng(2).permutation(EDGES)]
    steps = tuple(
        Step(sign, "edge", batch)
        for sign, rows in ((1, inserted), (-1, deleted))
        for batch in pa.table({"src": rows[:, 0], "dst": rows[:, 1]}).to_batches(max_chunksize=ROWS_PER_BATCH)
    )
    relation = Relation("edge", "src BIGINT, dst BIGINT", ("src", "dst"))
    pattern = {"name": "triangle", "atoms": TRIANGLE}
    return Stream((relation,), view_of("triangle"), steps, spread_over(len(steps), 10), pattern=pattern)
