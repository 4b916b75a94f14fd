"""The entries of quick runs, full runs and the guard: workloads, cases, and the strategies of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.strategies import IN_PROCESS, NAMED, OURS, PEERS, PLANNED
from benchmarks.workloads import cofactor, compiled, flights, graph, large_book, orderbook, snb, tpch_queries


@dataclass(frozen=True)
class Entry:
    """A case of a workload, the strategies that take turns in it, and the part of the pages that shows it."""

    group: str
    workload: str
    case: str
    strategies: tuple[str, ...]


GROUPS = {
    "graph": "Patterns in graphs",
    "batches": "Sizes of batches",
    "compiled": "Compiled programs",
    "tables": "Joins of tables",
    "engine": "The engine",
    "eps": "Heavy and light values",
    "windows": "Windows of a graph",
    "trie": "Leapfrog triejoin",
    "subqueries": "Outer joins and subqueries",
    "learning": "Models over joins",
    "choice": "The planner's choice",
    "pipeline": "The pipeline on Spark",
}
"""Parts of the pages, in order."""
APART = ("compiled", "eps", "windows", "trie", "subqueries", "learning", "choice", "pipeline")
"""Parts that run only if they are named. The results of such a part are a file of their own."""

PLAIN = "plain Python"
COMPILED = ("C++", "differential dataflow", "DBSP")
BIG = ("Pathway", "Flink", "Spark", "Spark, stream joins")
SQL = ("DuckDB", "DuckDB, delta SQL")
FEW = (PLANNED, "first_order", PLAIN, "DuckDB, delta SQL")
FIXED = ("single_rows", "memory", "first_use", "steps")
PIPELINES = (
    "pipeline_freshness",
    *("pipeline_star", "pipeline_upserts", "pipeline_fixed", "pipeline_graph", "pipeline_restart", "pipeline_workers"),
)
EPS = ("eps", "eps_steps")
WINDOWS = ("windowed_graph", "enclosure")
TRIE = ("trie", "moves", "tree_load", "kept_listing", "single_edits")
LEARNING = ("cofactor_ready", "ridge")
SIZES = (1, 10, 100, 1_000, 10_000)

PATTERNS = tuple(graph.PATTERNS)
WITH_SUBQUERIES = ("q4", "q13", "q16", "q22", "q2", "q11", "q15", "q17", "q18", "q20", "q21")
"""The queries of TPC-H with an outer join or a subquery."""
LISTED = ("2-hop listed", "triangle listed", "3-hop projected")
WITH_PROGRAM = (*PATTERNS, "2-hop listed", "triangle listed")
SLOW = {"4-hop", "4-cycle", "dumbbell", "3-hop projected"}
"""Patterns for which DuckDB needs minutes per answer; it runs them once, at the smallest size."""


def quick() -> Iterator[Entry]:
    """A few minutes: small sizes, every peer at least once."""
    for pattern in ("2-hop", "3-hop", "star", "triangle", "4-cycle", "triangle listed"):
        yield Entry("graph", "graph", f"{pattern}, skew 2.5 tenth", (PLANNED, *NAMED, *IN_PROCESS))
    for pattern in ("2-hop", "triangle"):
        yield Entry("graph", "graph", f"{pattern}, skew 3.0 tenth", (PLANNED, *BIG))
    for size in (10, 100, 1_000):
        yield Entry("batches", "graph", f"triangle, skew 2.5 tenth, batches of {size}", (PLANNED, PLAIN, SQL[1]))
    for view in ("2-hop", "triangle"):
        yield Entry("compiled", "compiled", f"{view}, small, batches of 100", (PLANNED, *COMPILED))
    for query in ("q1", "q3", "q4", "q6", "q12"):
        yield Entry("tables", "tpch", f"{query}, small", (PLANNED, *SQL))
    yield Entry("tables", "star", "shuffled", (PLANNED, *SQL))
    yield Entry("tables", "snb", "friends of friends", (PLANNED, *SQL))
    yield Entry("tables", "orderbook", "axf", (PLANNED, *SQL))
    yield Entry("tables", "oumv", "n = 100", (PLANNED, "first_order", *SQL))
    yield Entry("learning", "cofactor", "m = 9, small", (PLANNED, "numpy", "DuckDB"))
    yield Entry("learning", "ridge", "join of 10,000 rows", (PLANNED, "scikit-learn"))
    yield Entry("engine", "steps", "10,000 rows", (PLANNED,))
    yield Entry("engine", "single_rows", "trusted tables", (PLANNED, "SQLite", PLAIN, "DuckDB"))
    yield Entry("engine", "first_use", "second process", (PLANNED,))


def full() -> Iterator[Entry]:
    """Everything except the parts that run by themselves."""
    yield from _graphs()
    for pattern in ("triangle", "3-hop"):
        for size in SIZES:
            peers = (PLAIN, SQL[1], "Pathway") if size >= 100 else (PLAIN, SQL[1])
            yield Entry("batches", "graph", f"{pattern}, skew 2.5 half, batches of {size}", (PLANNED, *peers))
    yield from _tables()
    yield Entry("engine", "triangle", "", (*OURS, PLAIN, *SQL))
    yield from _of_modules("engine", FIXED)


def _graphs() -> Iterator[Entry]:
    for pattern in (*PATTERNS, *LISTED):
        plain = (PLAIN,) if pattern in WITH_PROGRAM else ()
        sql = SQL[1:] if pattern in SLOW else SQL
        named = {"dumbbell": ("view_tree",), "triangle": (*NAMED, "ivm_eps")}.get(pattern, NAMED)
        yield Entry("graph", "graph", f"{pattern}, skew 2.5", (PLANNED, *named, *plain, *sql))
    for pattern in ("2-hop", "3-hop", "star", "triangle", "4-cycle"):
        yield Entry("graph", "graph", f"{pattern}, skew 3.0 tenth", (PLANNED, "DuckDB", *BIG))
    for skew in ("3.0", "2.2"):
        for pattern in ("3-hop", "triangle", "4-cycle"):
            yield Entry("graph", "graph", f"{pattern}, skew {skew}", FEW)
    for pattern in ("2-comb", "triangle"):
        yield Entry("graph", "graph", f"{pattern}, skew 2.5 tenfold", (PLANNED, PLAIN, SQL[1]))
    for pattern in ("3-hop", "triangle"):
        yield Entry("graph", "graph", f"{pattern}, Epinions", FEW)
    yield Entry("graph", "graph", "3-hop filtered, Epinions", (PLANNED, "change_propagation", SQL[1]))
    yield Entry("graph", "graph", "3-hop filtered, Epinions, deltas", (PLANNED, "change_propagation", "higher_order"))
    yield Entry("graph", "graph", "3-hop projected, Epinions", (PLANNED, "view_tree", "change_propagation"))
    for listed in ("triangle listed", "2-hop listed"):
        yield Entry("graph", "graph", f"{listed}, skew 3.0, deltas", (PLANNED, "change_propagation", "first_order"))


def _tables() -> Iterator[Entry]:
    for query in tpch_queries.QUERIES:
        named = NAMED if query in ("q3", "q5", "q10") else ()
        yield Entry("tables", "tpch", query, (PLANNED, *named, *SQL))
    yield Entry("tables", "tpch", "q3, checked", (PLANNED, "DuckDB"))
    for query in ("q1", "q3", "q6"):
        yield Entry("tables", "tpch", f"{query}, small", (PLANNED, "Pathway", "Flink", "Spark"))
    for order in ("in key order", "shuffled", "shuffled, SUM"):
        named = NAMED if order == "shuffled" else ()
        yield Entry("tables", "star", order, (PLANNED, *named, *SQL))
    yield Entry("tables", "star", "shuffled, small", (PLANNED, "Pathway", "Flink", "Spark"))
    for view in snb.VIEWS:
        yield Entry("tables", "snb", view, (PLANNED, "first_order", *SQL))
    yield Entry("tables", "snb", "friends of friends", (PLANNED, "Pathway", "Flink", "Spark"))
    for view in orderbook.VIEWS:
        yield Entry("tables", "orderbook", view, (PLANNED, "first_order", *SQL))
    yield Entry("tables", "orderbook", "axf", (PLANNED, "Pathway", "Flink", "Spark"))
    for view in flights.VIEWS:
        yield Entry("tables", "flights", view, (PLANNED, *SQL))
    for n in (100, 300):
        yield Entry("tables", "oumv", f"n = {n}", (PLANNED, *NAMED, "ivm_eps", *SQL))


def apart() -> Iterator[Entry]:
    """The slow parts, which run only if named: ``--only pipeline_star``, ``--only windows``."""
    for case in compiled.CASES:
        yield Entry("compiled", "compiled", case, (PLANNED, *COMPILED))
    yield from _of_modules("compiled", ("cores",))
    yield from _of_modules("eps", EPS)
    yield from _of_modules("windows", WINDOWS)
    yield from _of_modules("trie", TRIE)
    yield from _subqueries()
    yield from _learning()
    yield from _of_modules("choice", ("choice",))
    yield from _of_modules("pipeline", PIPELINES)


def _subqueries() -> Iterator[Entry]:
    for join in ("INNER JOIN", "LEFT JOIN"):
        yield Entry("subqueries", "star", f"shuffled, {join}", (PLANNED, "DuckDB"))
    for query in WITH_SUBQUERIES:
        yield Entry("subqueries", "tpch", query, (PLANNED, "DuckDB"))
    for view in large_book.VIEWS:
        yield Entry("subqueries", "large_book", view, (PLANNED, PLAIN, "DuckDB"))


def _learning() -> Iterator[Entry]:
    for case in cofactor.CASES:
        # DuckDB has no COFACTOR; its doubles are not compared with sums of rounded products.
        yield Entry("learning", "cofactor", case, (PLANNED, "numpy", *(() if "DOUBLE" in case else SQL[:1])))
    yield from _of_modules("learning", LEARNING)


def guard() -> Iterator[Entry]:
    """The entries of ``make bench-check``: six workloads against plain Python or DuckDB, and counted steps."""
    for case in ("2-hop, skew 2.5", "3-hop, skew 2.5 half", "triangle, skew 2.5", "4-cycle, skew 2.5 half"):
        yield Entry("graph", "graph", case, (PLANNED, PLAIN))
    yield Entry("tables", "star", "shuffled", (PLANNED, "DuckDB"))
    yield Entry("tables", "tpch", "q3", (PLANNED, "DuckDB"))
    yield Entry("engine", "steps", "10,000 rows", (PLANNED,))
    yield Entry("engine", "steps", "100,000 rows", (PLANNED,))


def _of_modules(group: str, names: Sequence[str]) -> Iterator[Entry]:
    """Entries of workloads that list their own cases and strategies."""
    for name in names:
        module = module_of(name)
        for case in module.CASES:
            yield Entry(group, name, case, getattr(module, "STRATEGIES_OF", {}).get(case, module.STRATEGIES))


def merged(entries: Iterator[Entry]) -> list[Entry]:
    """Entries with one entry per case; a case that occurs twice has the strategies of both."""
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for entry in entries:
        key = (entry.group, entry.workload, entry.case)
        found[key] = tuple(dict.fromkeys((*found.get(key, ()), *entry.strategies)))
    return [Entry(*key, strategies) for key, strategies in found.items()]


def peers_of(entries: Sequence[Entry]) -> list[str]:
    """Peers that the entries name."""
    named = {strategy for entry in entries for strategy in entry.strategies}
    return [name for name in PEERS if name in named]
