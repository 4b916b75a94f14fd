"""What a view costs that is kept by its trace: ``python -m benchmarks.kept_traces`` prints it.

- All triangles of Epinions listed, in a window that a fifth of the edges fill, batches of 1000 changes, the changes of
  the view taken, beside ``first_order``. EPINIONS names the file, see ``benchmarks.graphs``; without it the graph has a
  skew. FRESHVIEWS_CHANGES: so many changes at most.
- Five relations in two cycles that share an edge, counted, under single edits, beside evaluating anew. FRESHVIEWS_ROWS
  is the number of rows of all of them, 10^6 if not given.

CPU seconds of the process, all threads; programs are compiled before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import freshviews as fv
from benchmarks.graphs import Edges, chung_lu, epinions, window_of, windowed

BATCH = 1000
EDITS = 100
TRUSTED = "TBLPROPERTIES ('freshviews.trusted' = 'true')"
TRIANGLES = (
    "SELECT r.src AS a, r.dst AS b, s.dst AS c FROM edge r JOIN edge s ON r.dst = s.src "
    "JOIN edge t ON s.dst = t.src AND t.dst = r.src"
)
FIVE = {"r": "ab", "s": "bc", "t": "ca", "u": "cd", "w": "da"}
TWO_CYCLES = (
    "SELECT COUNT(*) AS n FROM r JOIN s ON s.b = r.b JOIN t ON t.c = s.c AND t.a = r.a "
    "JOIN u ON u.c = t.c JOIN w ON w.d = u.d AND w.a = r.a"
)


def kept(query: str, strategy: str) -> str:
    return f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{strategy}') AS {query};"


def batches(edges: Edges, count: int) -> Iterator[pa.Table]:
    """The first so many changes of a window over edges, in batches."""
    which, sign = windowed(len(edges), window_of(len(edges)))
    for start in range(0, min(len(which), count), BATCH):
        rows = edges[which[start : start + BATCH]]
        m = sign[start : start + BATCH].astype(np.int64)
        yield pa.table({"src": rows[:, 0], "dst": rows[:, 1], "_multiplicity": m})


def listing(edges: Edges, strategy: str, changes: int) -> tuple[float, int, str]:
    """CPU seconds for so many changes, how many rows of the view they change, and what EXPLAIN says of the trace at
    the end."""
    with fv.Database() as db:
        db.execute(f"CREATE TABLE edge (src BIGINT NOT NULL, dst BIGINT NOT NULL) {TRUSTED};")
        db.execute(kept(TRIANGLES, strategy))
        told = 0

        def listen(change: fv.Change) -> None:
            nonlocal told
            told += len(change)

        db.view("v").subscribe(listen)
        few = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]})
        db.insert("edge", few)
        db.delete("edge", few)
        told = 0
        start = time.process_time()
        for batch in batches(edges, changes):
            db.apply("edge", batch)
        seconds = time.process_time() - start
        explained = db.view("v").explain().splitlines()
        said = [line.strip() for line in explained if line.startswith(("trace of", "    intervals of"))]
        return seconds, told, "\n    ".join(said)


def single_edits(rows: int, strategy: str, edits: int) -> float:
    """CPU seconds per edit of one row of five relations, the view read after each."""
    chosen = np.random.default_rng(1)
    codes = round((rows / 5) ** 0.75)
    with fv.Database() as db:
        for name, (x, y) in FIVE.items():
            db.execute(f"CREATE TABLE {name} ({x} BIGINT NOT NULL, {y} BIGINT NOT NULL) {TRUSTED};")
        db.execute(kept(TWO_CYCLES, strategy))
        for name, (x, y) in FIVE.items():
            pairs = np.unique(chosen.integers(0, codes, (rows // 5, 2)), axis=0)
            db.insert(name, pa.table({x: pairs[:, 0], y: pairs[:, 1]}))
        list(db.view("v"))
        seconds = 0.0
        for i in range(edits):
            name = list(FIVE)[i % 5]
            x, y = FIVE[name]
            one = chosen.integers(0, codes, 2)
            row = pa.table({x: one[:1], y: one[1:], "_multiplicity": pa.array([1 if i % 4 else -1])})
            start = time.process_time()
            db.apply(name, row)
            list(db.view("v"))
            seconds += time.process_time() - start
        return seconds / edits


def main() -> None:
    edges = epinions()
    graph = "Epinions"
    if edges is None:
        edges, graph = chung_lu(20_000, 100_000, 2.5), "skew 2.5"
    changes = int(os.environ.get("FRESHVIEWS_CHANGES", 2 * len(edges)))
    for strategy in ("incremental_trie_join", "first_order"):
        seconds, told, said = listing(edges, strategy, changes)
        print(f"triangles, {graph}, {strategy}: {changes / seconds:,.0f} changes a second, {told:,} changed rows")
        if said:
            print(f"    {said}", flush=True)
    rows = int(os.environ.get("FRESHVIEWS_ROWS", 1_000_000))
    by_trace = single_edits(rows, "incremental_trie_join", EDITS)
    anew = single_edits(rows, "trie_join", 5)
    times = f"{1e6 * by_trace:,.0f} us an edit, anew {1e6 * anew:,.0f} us: {anew / by_trace:,.0f} times"
    print(f"two cycles, {rows:,} rows: {times}")


if __name__ == "__main__":
    main()
