"""The strategies of freshviews and the peers, by the names that results and tables use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from benchmarks.measuring.stream import Stream

PLANNED = "freshviews"
"""The strategy that the planner chooses."""
NAMED = ("view_tree", "higher_order", "change_propagation", "first_order")
"""Strategies of freshviews that accept queries of any shape."""
OURS = (PLANNED, *NAMED, "ivm_eps")


@dataclass(frozen=True)
class Peer:
    """A module of ``benchmarks.peers``, its function, and its environment if it needs one of its own."""

    module: str
    function: str = "run"
    environment: str | None = None


PEERS = {
    "plain Python": Peer("plain_python"),
    "DuckDB": Peer("duckdb_sql", "recompute"),
    "DuckDB, delta SQL": Peer("duckdb_sql", "first_order"),
    "Pathway": Peer("pathway_sql", environment="pathway"),
    "Flink": Peer("flink_sql", environment="flink"),
    "Spark": Peer("spark_sql", "recompute"),
    "Spark, stream joins": Peer("spark_sql", "join_streams"),
    "C++": Peer("programs", "cpp"),
    "differential dataflow": Peer("programs", "differential"),
    "DBSP": Peer("programs", "dbsp"),
    "numpy": Peer("numpy_arrays", "recompute"),
}
BESIDE = ("shuffle through Python", "SQLite", "scikit-learn")
"""Peers that a workload runs by itself."""
IN_PROCESS = ("plain Python", "DuckDB", "DuckDB, delta SQL")


def is_peer(strategy: str) -> bool:
    """True for a peer, False for a strategy of freshviews."""
    return strategy in PEERS or strategy in BESIDE


def environment_of(strategy: str) -> str | None:
    """The environment in which a strategy runs; None for that of freshviews."""
    return PEERS[strategy].environment if strategy in PEERS else None


def run(stream: Stream, strategy: str) -> dict[str, Any]:
    """Measure a strategy over a stream, in this process."""
    if strategy in PEERS:
        peer = PEERS[strategy]
        function: Callable[[Stream], dict[str, Any]] = getattr(
            import_module(f"benchmarks.peers.{peer.module}"), peer.function
        )
        return function(stream)
    from benchmarks.measuring.ours import keep_fresh

    return keep_fresh(stream, None if strategy == PLANNED else strategy)
