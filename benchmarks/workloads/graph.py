"""Patterns in a window over the edges of a graph: a view counts or lists the matches.

Every pattern is a self-join of one table of edges. Edges arrive in order; once the window is full, each arrival first
deletes the oldest edge; in the end the window is drained. Answers are compared at ten points. The graphs are random,
with a power-law degree (``skew``), 20,000 nodes and 100,000 edges with a window of 50,000, or a tenth, half or ten
times of all three, or the trust network of Epinions with a fifth of it in the window.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from benchmarks.measuring.stream import ROWS_PER_BATCH, Relation, Step, Stream, signed, spread_over
from benchmarks.workloads.graphs import chung_lu, epinions, window_of, windowed

TITLE = "graph"
UNIT = "updates/s"
POINTS = 10

TRIANGLE = (("r", "a", "b"), ("s", "b", "c"), ("t", "c", "a"))
PATTERNS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "2-hop": (("r", "a", "b"), ("s", "b", "c")),
    "3-hop": (("r", "a", "b"), ("s", "b", "c"), ("t", "c", "d")),
    "4-hop": (("r", "a", "b"), ("s", "b", "c"), ("t", "c", "d"), ("u", "d", "e")),
    "star": (("r", "a", "b"), ("s", "a", "c"), ("t", "a", "d")),
    "2-comb": (("r", "a", "b"), ("s", "a", "c"), ("t", "b", "d")),
    "triangle": TRIANGLE,
    "4-cycle": (("r", "a", "b"), ("s", "b", "c"), ("t", "c", "d"), ("u", "d", "a")),
    "dumbbell": (*TRIANGLE, ("m", "a", "x"), ("u", "x", "y"), ("v", "y", "z"), ("w", "z", "x")),
}
"""The edges of each pattern: alias, and the variables at its ends. A pattern by its name alone is counted."""
LISTED = {
    "2-hop listed": ("2-hop", "a b c", ""),
    "triangle listed": ("triangle", "a b c", ""),
    "3-hop filtered": ("3-hop", "a b c d", "t.dst > 32684"),
    "3-hop projected": ("3-hop", "b c", ""),
}
"""Patterns whose matches are rows of the view: the pattern, the columns, a filter. ``projected`` is DISTINCT."""


def view_of(name: str) -> str:
    """The view of a pattern, counted or listed."""
    pattern, columns, where = LISTED.get(name, (name, "", ""))
    place: dict[str, str] = {}
    joins = []
    for alias, *ends in PATTERNS[pattern]:
        equal = []
        for column, variable in zip(("src", "dst"), ends, strict=True):
            if variable in place:
                equal.append(f"{place[variable]} = {alias}.{column}")
            else:
                place[variable] = f"{alias}.{column}"
        joins.append(f"edge {alias} ON {' AND '.join(equal)}" if joins else f"edge {alias}")
    chosen = ", ".join(f"{place[variable]} AS {variable}" for variable in columns.split()) or "COUNT(*) AS n"
    distinct = "DISTINCT " if "projected" in name else ""
    return f"SELECT {distinct}{chosen} FROM {' JOIN '.join(joins)}{f' WHERE {where}' if where else ''}"


def stream(case: str) -> Stream:
    """The stream of a case: ``pattern, graph[, batches of 100][, deltas]``; the same one at every call."""
    name, graph, *more = case.split(", ")
    rows, window = edges_of(graph)
    size = next((int(word.split()[-1]) for word in more if word.startswith("batches of")), ROWS_PER_BATCH)
    which, signs = windowed(len(rows), window)
    table = pa.table({"src": rows[which, 0], "dst": rows[which, 1]})
    steps: list[Step] = []
    points = []
    for start, end in pairwise((0, *_ends(name, graph, signs, window), len(signs))):
        steps += signed("edge", table.slice(start, end - start), signs[start:end], size)
        points.append(len(steps) - 1)
    # Without prescribed points they are spread evenly.
    compared = tuple(points) if len(points) > 1 else spread_over(len(steps), POINTS)
    relation = Relation("edge", "src BIGINT, dst BIGINT", ("src", "dst"))
    listed = name in LISTED
    deltas = "deltas" in more
    pattern = {"name": name, "atoms": PATTERNS[LISTED.get(name, (name,))[0]]}
    read = listed and not deltas
    return Stream((relation,), view_of(name), tuple(steps), compared, deltas=deltas, read=read, pattern=pattern)


def _ends(name: str, graph: str, signs: np.ndarray, window: int) -> list[int]:
    """Positions at which a batch must end for a comparison: after every half window of arrivals and after the last one,
    as in CROWN's experiments with paths of three edges on Epinions; empty for other cases."""
    if not name.startswith("3-hop") or graph != "Epinions":
        return []
    arrived = np.cumsum(signs > 0)
    count = int(arrived[-1])
    return [int(np.searchsorted(arrived, n)) + 1 for n in (*range(window // 2, count, window // 2), count)]


def edges_of(graph: str) -> tuple[np.ndarray, int]:
    """The edges of a graph by its name, and its window."""
    if graph == "Epinions":
        found = epinions()
        if found is None:
            found = chung_lu(76_000, 508_000, 2.2)
        return found, window_of(len(found))
    words = graph.split()
    skew = float(words[1])
    times = {"tenth": 0.1, "half": 0.5, "tenfold": 10}.get(words[-1], 1)
    nodes, edges, window = (round(times * size) for size in (20_000, 100_000, 50_000))
    return chung_lu(nodes, edges, skew), window
