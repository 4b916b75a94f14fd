"""CPU seconds and rows of state to initialise a view from a table that already holds a graph, per strategy.

``python -m benchmarks.timing.backfill [graphs [queries [strategies]]]`` prints them; each argument is a list of parts
of names, separated by commas. A view is initialised by deltas in the order of the rows, by deltas in passes
(``plan.passes``), or by a trie join (``engine.blocks.at_once``), if the strategy has these. A measurement is cut off
after ``PATIENCE`` seconds. Programs are compiled before, on a few rows. Cases in ``LARGE`` run only if their graph or
strategy is named.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import product

import pyarrow as pa

import freshviews as fv
from benchmarks.workloads.graphs import Edges, chung_lu, epinions
from freshviews.engine.blocks import at_once
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.view_state import ViewState

PATIENCE = 8.0
LARGE = ("Epinions", "incremental_trie_join")
ROWS = 1 << 13
"""Edges of a batch."""
SIZES = {"e": 1e6}
"""Maximum size at which every way of initialising is allowed."""
TABLE = "CREATE TABLE e (src BIGINT NOT NULL, dst BIGINT NOT NULL);"
GRAPHS: dict[str, Callable[[], Edges | None]] = {
    "skew 2.5": lambda: chung_lu(20_000, 100_000, 2.5),
    "Epinions": epinions,
}
TRIANGLE = "e r JOIN e s ON r.dst = s.src JOIN e t ON s.dst = t.src AND t.dst = r.src"
CYCLE = "e r JOIN e s ON r.dst = s.src JOIN e t ON s.dst = t.src JOIN e u ON t.dst = u.src AND u.dst = r.src"
OTHER = "JOIN e v ON w.dst = v.src JOIN e x ON v.dst = x.src JOIN e y ON x.dst = y.src AND y.dst = v.src"
HOPS = "e r JOIN e s ON r.dst = s.src JOIN e t ON s.dst = t.src"
QUERIES = {
    "triangle count": f"SELECT COUNT(*) AS n FROM {TRIANGLE}",
    "triangles, MAX by node": f"SELECT r.src AS a, MAX(s.dst) AS c FROM {TRIANGLE} GROUP BY r.src",
    "4-cycle count": f"SELECT COUNT(*) AS n FROM {CYCLE}",
    "dumbbell count": f"SELECT COUNT(*) AS n FROM {TRIANGLE} JOIN e w ON w.src = r.src {OTHER}",
    "triangles with a tail, listed": f"SELECT r.src AS a, r.dst AS b, s.dst AS c, w.dst AS d FROM {TRIANGLE} "
    "JOIN e w ON w.src = s.dst",
    "2-hop, listed": "SELECT r.src AS a, r.dst AS b, s.dst AS c FROM e r JOIN e s ON r.dst = s.src",
    "3-hop, projected": f"SELECT s.src AS b, s.dst AS c, COUNT(*) AS n FROM {HOPS} GROUP BY s.src, s.dst",
    "3-hop count": f"SELECT COUNT(*) AS n FROM {HOPS}",
    "star count": "SELECT COUNT(*) AS n FROM e r JOIN e s ON r.src = s.src JOIN e t ON s.src = t.src",
}
STRATEGIES = (
    "first_order",
    "crown",
    "view_tree",
    "higher_order",
    "change_propagation",
    "ivm_eps",
    "ivm_eps_linear",
    "incremental_trie_join",
)


WAYS = ("as they lie", "in passes", "joined")


def measure(source: TableState, query: str, strategy: str) -> tuple[dict[str, float | None], int] | None:
    """CPU seconds by way of initialising, None if cut off, and rows of the state; None if the strategy refuses the
    query."""
    with fv.Database() as db:
        db.execute(TABLE)
        db.insert("e", [(1, 2), (2, 3), (3, 1)])
        try:
            properties = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
            db.execute(f"CREATE MATERIALIZED VIEW v {properties} AS {query};")
        except fv.PlanError:
            return None
        relations = db._relations
        few, view = relations.get("e"), relations.views["v"]
        assert isinstance(few, TableState)
        found: dict[str, float | None] = {}
        rows = 0
        for way in WAYS:
            if passes_of(view, way):
                initialised(view, few, way)
                found[way] = initialised(view, source, way)
                rows = max(rows, sum(rows for rows, _ in view.maintained.sizes().values()))
        return found, rows


def passes_of(view: ViewState, way: str) -> list[str]:
    """The relations to pass to an emptied view, in order; empty if the strategy has no passes."""
    view.maintained.clear()
    names = list(view.maintained.passes(SIZES, at_once=True))
    is_joined = any(part.fed is not None or part.plan.program.upkeep.joins for part in view.maintained.blocks)
    names = list(view.maintained.passes(SIZES))
    if way == "as they lie":
        return ["e"]
    return names if is_joined == (way == "joined") and (is_joined or len(names) > 1) else []


def initialised(view: ViewState, source: TableState, way: str) -> float | None:
    """CPU seconds to initialise an emptied view; None if cut off."""
    view.maintained.clear()
    start = time.process_time()
    names = iter(["e"]) if way == "as they lie" else view.maintained.passes(SIZES, at_once=way == "joined")
    for _ in names:
        for batch in source.batches(ROWS):
            view.maintained.load(batch, more=way == "joined")
            if time.process_time() - start > PATIENCE:
                return None
    done = view.maintained.joined()
    return time.process_time() - start if done else None


def main() -> None:
    at_once.WORTH = 0.0
    graphs, queries, strategies = (
        [name for name in names if (any(word in name for word in wanted.split(",")) if wanted else name not in LARGE)]
        for names, wanted in zip((GRAPHS, QUERIES, STRATEGIES), [*sys.argv[1:], "", "", ""], strict=False)
    )
    for graph in graphs:
        edges = GRAPHS[graph]()
        if edges is None:
            continue
        with fv.Database() as db:
            db.execute(TABLE)
            db.insert("e", pa.table({"src": edges[:, 0], "dst": edges[:, 1]}))
            source = db._relations.get("e")
            assert isinstance(source, TableState)
            for query, strategy in product(queries, strategies):
                found = measure(source, QUERIES[query], strategy)
                if found is None:
                    continue
                seconds, rows = found
                shown = [f"{way} {'cut off' if one is None else f'{one:.2f} s'}" for way, one in seconds.items()]
                print(f"{graph}, {query}, {strategy}: {', '.join(shown)}; {rows:,} rows", flush=True)


if __name__ == "__main__":
    main()
