"""Triangle counts of graphs with large hubs: inserts, then deletes, in batches of 1,000.

Random graphs are drawn with weight ``i ** -w`` (Chung and Lu); ``hubs``: one million edges, each with one of ten hubs;
``Epinions``: SNAP's soc-Epinions1, where each edge is deleted once a fifth of all have followed it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.measuring.strategies import PLANNED
from benchmarks.measuring.stream import MULTIPLICITY, ROWS_PER_BATCH, Relation, Step, Stream, spread_over
from benchmarks.workloads.graph import TRIANGLE, view_of
from benchmarks.workloads.graphs import Edges, chung_lu, epinions, window_of, windowed

TITLE = "triangles"
UNIT = "rows/s"
STRATEGIES = (PLANNED, "ivm_eps", "first_order", "view_tree", "higher_order", "plain Python", "DuckDB")
TARGETS = {
    "i^-0.5, 20k nodes, 300k edges": 3e6,
    "i^-0.7, 20k nodes, 300k edges": 2e6,
    "i^-0.6, 100k nodes, 3M edges": 1e6,
    "Epinions, windowed": 1e6,
}
GRAPHS = {
    "i^-0.5, 20k nodes, 300k edges": (20_000, 300_000, 0.5),
    "i^-0.7, 20k nodes, 300k edges": (20_000, 300_000, 0.7),
    "i^-0.6, 100k nodes, 3M edges": (100_000, 3_000_000, 0.6),
}
HUBS = "ten hubs, 1M edges"
EPINIONS = "Epinions, windowed"
CASES = (*GRAPHS, EPINIONS, HUBS)


def stream(case: str) -> Stream:
    if case == EPINIONS:
        edges = epinions()
        if edges is None:
            raise FileNotFoundError("the file of Epinions is missing: see benchmarks.workloads.graphs.epinions")
        steps = _windowed(edges)
    else:
        edges = hubs() if case == HUBS else chung_lu(*GRAPHS[case][:2], 1 + 1 / GRAPHS[case][2])
        gone = edges[np.random.default_rng(2).permutation(len(edges))]
        steps = [
            Step(sign, "edge", batch)
            for sign, rows in ((1, edges), (-1, gone))
            for batch in pa.table({"src": rows[:, 0], "dst": rows[:, 1]}).to_batches(max_chunksize=ROWS_PER_BATCH)
        ]
    relation = Relation("edge", "src BIGINT NOT NULL, dst BIGINT NOT NULL", ("src", "dst"))
    pattern = {"name": "triangle", "atoms": TRIANGLE}
    return Stream((relation,), view_of("triangle"), tuple(steps), spread_over(len(steps), 10), pattern=pattern)


def _windowed(edges: Edges) -> list[Step]:
    """Arrivals; before an arrival into a full window the oldest edge is deleted."""
    number, sign = windowed(len(edges), window_of(len(edges)))
    rows = {"src": edges[number, 0], "dst": edges[number, 1], MULTIPLICITY: sign}
    return [Step(0, "edge", batch) for batch in pa.table(rows).to_batches(max_chunksize=ROWS_PER_BATCH)]


def hubs(count: int = 1_000_000, nodes: int = 200_000, hubs: int = 10) -> Edges:
    """Distinct edges between a hub and another node, in either direction, in random order."""
    random = np.random.default_rng(1)
    chosen = random.choice(2 * hubs * nodes, count, replace=False)
    hub, rest = chosen % hubs, chosen // hubs
    node, outward = hubs + rest // 2, rest % 2 == 1
    return np.column_stack([np.where(outward, hub, node), np.where(outward, node, hub)])
