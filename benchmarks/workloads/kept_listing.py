"""All triangles of a graph listed over a moving window, with each change of the view.

The planner's choice is compared with a traced trie join and with peers. The stream is that of ``graph``, in batches of
1,000.
"""

from __future__ import annotations

from benchmarks.measuring.strategies import PLANNED
from benchmarks.measuring.stream import Stream
from benchmarks.workloads import graph

TITLE = "window listed"
UNIT = "updates/s"
GRAPHS = ("skew 2.5", "Epinions")
CASES = tuple(f"triangle, {name}" for name in GRAPHS)
STRATEGIES = (PLANNED, "incremental_trie_join", "plain Python", "DuckDB, delta SQL")
TARGETS = {"triangle, Epinions": 1e5}


def stream(case: str) -> Stream:
    """The stream of a case; the same one at every call."""
    return graph.stream(f"triangle listed, {case.partition(', ')[2]}, deltas")
