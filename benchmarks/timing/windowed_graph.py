"""Paths, stars, combs and a dumbbell over a window of a graph's edges: the table of docs/crown.md.

The graph is SNAP's soc-Epinions1 (``benchmarks.workloads.graphs.epinions``). Edges arrive in file order; a window
holds a fifth of them. Once it is full, each arrival first deletes the oldest edge; at the end the window drains. Each
update is applied to all occurrences of the edge table before the next.

``deltas``: the change of each update is written into Arrow batches (``Database.apply_in_order``). ``full``: the
result is read and summed ten times, after every half window of arrivals and at the end. ``one at a time``: updates of
a full window, each a batch with its change. ``window 1/4``: a window of a quarter, with ten points spread evenly.

Every figure is of one process, in CPU seconds. ``freshviews`` is the strategy ``crown``. Other strategies take
batches of 1,000 updates and emit their changes; DuckDB recomputes the result at the ten points. Tables are trusted.
For DISTINCT they are checked: then no row occurs twice, so sets are enough. The dumbbell has up to 401 billion rows,
of which the first million are read at each point. Sizes at the ten points are compared with each other, and with the
known sizes where there are any.

``python -m benchmarks full --only windowed_graph`` runs all strategies; ``--scale 0.1`` takes a tenth of the edges.
``python -m benchmarks.timing.windowed_graph [case ...]`` runs one strategy.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.measuring.answers import answer
from benchmarks.measuring.strategies import PLANNED
from benchmarks.workloads.graphs import epinions, window_of, windowed
from freshviews import Database

TITLE = "window"
STRATEGIES = (PLANNED, "change_propagation", "higher_order", "first_order", "DuckDB")
UNIT = "s CPU"
TARGETS = {
    "3-hop, deltas": 6.0,
    "3-hop projected, deltas": 4.0,
    "3-hop projected, full": 4.0,
    "star, COUNT": 4.0,
    "2-comb, full": 4.0,
    "dumbbell projected, full": 4.0,
    "dumbbell, first million": 4.0,
}
PATIENCE = 60.0
"""CPU seconds of updates and reading after which a measurement is cut off."""
SECONDS = 120.0
"""Seconds, beyond those of the start, after which its process is ended: some plans take longer to compile."""
TABLE = "CREATE TABLE g (src BIGINT NOT NULL, dst BIGINT NOT NULL) TBLPROPERTIES ('freshviews.trusted' = '{trusted}');"
HALF = 32684


@dataclass(frozen=True)
class Case:
    """A query, whether it is asked for deltas or for the full result, and the known sizes at ten points."""

    sql: str
    deltas: bool
    sizes: tuple[int, ...] = ()
    trusted: bool = True
    most: int = 0
    """Rows that are read at each point; 0: all."""


HOP3 = f"""SELECT g1.src AS a, g2.src AS b, g3.src AS c, g3.dst AS d FROM g g1, g g2, g g3
    WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst > {HALF}"""
SIZES3 = (1554038, 6132351, 3290821, 2124710, 1355336, 1015433, 1522058, 1441585, 786998, 298576)

CASES = {
    "3-hop, deltas": Case(HOP3, True, SIZES3),
    "3-hop, full": Case(HOP3, False, SIZES3),
    "3-hop projected, deltas": Case(
        "SELECT DISTINCT g2.src AS b, g3.src AS c FROM g g1, g g2, g g3 WHERE g1.dst = g2.src AND g2.dst = g3.src",
        True,
        (22126, 61963, 36280, 25418, 23427, 18662, 18422, 23424, 24179, 18691),
        trusted=False,
    ),
    "3-hop projected, full": Case(
        "SELECT DISTINCT g2.src AS b, g3.src AS c FROM g g1, g g2, g g3 WHERE g1.dst = g2.src AND g2.dst = g3.src",
        False,
        (22126, 61963, 36280, 25418, 23427, 18662, 18422, 23424, 24179, 18691),
        trusted=False,
    ),
    "star, COUNT": Case(
        """SELECT g1.src AS k, COUNT(*) AS n FROM g g1, g g2, g g3, g g4
        WHERE g1.src = g2.src AND g2.src = g3.src AND g3.src = g4.src GROUP BY g1.src""",
        False,
    ),
    "2-comb, full": Case(
        f"""SELECT g1.dst AS c, g1.src AS a, g2.dst AS b, g3.dst AS d FROM g g1, g g2, g g3
        WHERE g1.src = g2.src AND g2.dst = g3.src AND g1.dst > {HALF} AND g3.dst > {HALF}""",
        False,
    ),
    "dumbbell projected, full": Case(
        """SELECT DISTINCT g4.src AS c, g4.dst AS d FROM g g1, g g2, g g3, g g4, g g5, g g6, g g7
        WHERE g1.src = g2.src AND g1.dst = g3.src AND g2.dst = g3.dst AND g3.dst = g4.src
        AND g4.dst = g5.src AND g5.src = g6.src AND g5.dst = g7.src AND g6.dst = g7.dst""",
        False,
        trusted=False,
    ),
    "dumbbell, first million": Case(
        """SELECT g1.src AS a, g1.dst AS b, g4.src AS c, g4.dst AS d, g5.dst AS e, g6.dst AS f
        FROM g g1, g g2, g g3, g g4, g g5, g g6, g g7
        WHERE g1.src = g2.src AND g1.dst = g3.src AND g2.dst = g3.dst AND g3.dst = g4.src
        AND g4.dst = g5.src AND g5.src = g6.src AND g5.dst = g7.src AND g6.dst = g7.dst""",
        False,
        most=1_000_000,
    ),
    "4-hop, full": Case(
        f"""SELECT g1.src AS a, g2.src AS b, g3.src AS c, g4.src AS d, g4.dst AS e FROM g g1, g g2, g g3, g g4
        WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst = g4.src AND g4.dst > {HALF}""",
        False,
    ),
}


CASES["3-hop, one at a time"] = Case(HOP3, True)
SHARES = (16, 8, 4, 2)
CASES |= {f"3-hop, full, window 1/{share}": Case(HOP3, False) for share in SHARES}
SINGLE = 20_000
STRATEGIES_OF = {"3-hop, one at a time": STRATEGIES[:-1]}
"""Cases that some strategies do not run: DuckDB emits no changes."""


def through_window(part: float = 1.0, share: int = 1) -> tuple[pa.Table, list[int], int] | None:
    """The signed updates of the first part of the edges, the number of them before each of the ten points, and the
    edges of a window, which is a share of the whole one. None if the graph is missing."""
    edges = epinions()
    if edges is None:
        return None
    edges = edges[: round(part * len(edges))]
    window = window_of(len(edges)) // share
    which, signs = windowed(len(edges), window)
    arrived = np.cumsum(signs > 0)
    step = window // 2 if share == 1 else len(edges) // 10
    points = [*(step * i for i in range(1, 10)), len(edges)]
    places = [int(np.searchsorted(arrived, point)) + 1 for point in points]
    return pa.table({"src": edges[which, 0], "dst": edges[which, 1], "_multiplicity": signs}), places, window


def measure(name: str, strategy: str) -> dict[str, Any]:
    """A case for ``python -m benchmarks``."""
    part = float(os.environ.get("BENCHMARK_SCALE", "1"))
    share = int(name.rpartition("window 1/")[2]) if "window 1/" in name else 1
    found = through_window(part, share)
    if found is None:
        return {"missing": "the graph of Epinions: see benchmarks/workloads/graphs.py"}
    case = CASES[name]
    sizes = case.sizes if part == 1 else ()
    if strategy == "DuckDB":
        return recomputed(case, sizes, found[0], found[1])
    named = "crown" if strategy == PLANNED else strategy
    if name.endswith("one at a time"):
        return one_at_a_time(case, named, found[0], found[2])
    return kept(case, named, sizes, *found)


def kept(
    case: Case, strategy: str, sizes: tuple[int, ...], updates: pa.Table, places: list[int], window: int
) -> dict[str, Any]:
    """CPU seconds for updates and for reading, rows, bytes per edge in the window."""
    start = time.process_time()
    db = _database(case, strategy)
    compiled = time.process_time() - start
    emitted = _Emitted()
    if case.deltas:
        # The driver of single updates is compiled at its first use.
        for sign in (1, -1):
            _emit(db, strategy, updates.slice(0, 1).set_column(2, "_multiplicity", pa.array([sign])), emitted)
        emitted = _Emitted()
    found: list[int] = []
    most = writing = reading = 0.0
    at = 0
    for place in [*places, len(updates)]:
        for first in range(at, place, 1 << 16):
            start = time.process_time()
            _emit(db, strategy, updates.slice(first, min(place - first, 1 << 16)), emitted, case.deltas)
            writing += time.process_time() - start
            if writing + reading > PATIENCE:
                return {"cut": f"cut off after {writing + reading:.0f} s: {first / len(updates):.0%} of the updates"}
        at = place
        most = max(most, db.bytes_of("v") / window)
        if place != len(updates):
            start = time.process_time()
            found.append(emitted.inserted - emitted.deleted if case.deltas else _checksum(db, case.most))
            reading += time.process_time() - start
    assert not sizes or tuple(found) == sizes, f"{found} is not {sizes}"
    db.close()
    rows = emitted.inserted + emitted.deleted if case.deltas else sum(found)
    return {
        "value": writing + reading,
        "updates": writing,
        "reading": reading,
        "compiled": compiled,
        "rows": rows,
        "window": window,
        "bytes per edge": most,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "strategy_taken": strategy,
        "note": f"{rows:,} rows, {most:,.0f} bytes per edge in the window",
        "answers": _answers(found),
    }


def one_at_a_time(case: Case, strategy: str, updates: pa.Table, at: int) -> dict[str, Any]:
    """CPU time of single updates of a full window, each with its change in Arrow; at most 10,000 changed rows each."""
    db = _database(case, strategy)
    _emit(db, strategy, updates.slice(0, at), _Emitted(), False)
    emitted = _Emitted()
    db.view("v").subscribe(lambda change: emitted.add(change.to_arrow()))
    taken = []
    singles = updates.slice(at, SINGLE).to_batches(max_chunksize=1)
    for i, one in enumerate(singles):
        before, start = emitted.inserted + emitted.deleted, time.process_time()
        db.apply("g", one)
        spent = time.process_time() - start
        if i >= 20 and emitted.inserted + emitted.deleted - before <= 10_000:
            taken.append(spent)
        if sum(taken) > PATIENCE:
            return {"cut": f"cut off after {PATIENCE:.0f} s: {i / len(singles):.0%} of the updates"}
    db.close()
    quantiles = {f"p{q}_ms": float(np.percentile(taken, p)) * 1e3 for q, p in (("50", 50), ("99", 99), ("999", 99.9))}
    note = f"{len(taken):,} updates with at most 10,000 rows of change"
    answers = _answers([emitted.inserted, emitted.deleted])
    return {"value": sum(taken), "strategy_taken": strategy, "note": note, "answers": answers, **quantiles}


def recomputed(case: Case, sizes: tuple[int, ...], updates: pa.Table, places: list[int]) -> dict[str, Any]:
    """CPU seconds of DuckDB for the result at the ten points, with the window as an Arrow table."""
    db = duckdb.connect()
    columns = [updates[name].to_numpy() for name in ("src", "dst", "_multiplicity")]
    limited = f"{case.sql} LIMIT {case.most}" if case.most else case.sql
    found: list[int] = []
    reading = 0.0
    for place in places:
        src, dst, signs = (column[:place] for column in columns)
        # First in, first out: the oldest rows are deleted.
        gone = int((signs < 0).sum())
        window = pa.table({"src": src[signs > 0][gone:], "dst": dst[signs > 0][gone:]})
        db.register("g", window)
        start = time.process_time()
        names = [f"SUM({column[0]})" for column in db.execute(f"DESCRIBE {case.sql}").fetchall()]
        ((rows, *_),) = db.execute(f"SELECT COUNT(*), {', '.join(names)} FROM ({limited})").fetchall()
        reading += time.process_time() - start
        found.append(int(rows))
        if reading > PATIENCE:
            return {"cut": f"cut off after {reading:.0f} s: {len(found)} of 10 results", "answers": _answers(found)}
    assert not sizes or tuple(found) == sizes, f"{found} is not {sizes}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    note = "only the results at ten points, no changes" if case.deltas else ""
    return {"value": reading, "reading": reading, "peak MB": peak, "note": note, "answers": _answers(found)}


def _answers(sizes: list[int]) -> dict[str, Any]:
    return {str(i): answer([(size,)]) for i, size in enumerate(sizes, 1)}


def _database(case: Case, strategy: str) -> Database:
    db = Database()
    db.execute(TABLE.format(trusted=str(case.trusted).lower()))
    properties = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
    db.execute(f"CREATE MATERIALIZED VIEW v {properties} AS {case.sql}")
    return db


@dataclass
class _Emitted:
    """Rows of emitted changes."""

    inserted: int = 0
    deleted: int = 0

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        multiplicities = rows.column("_multiplicity").to_numpy()
        self.inserted += int(multiplicities[multiplicities > 0].sum())
        self.deleted -= int(multiplicities[multiplicities < 0].sum())


def _emit(db: Database, strategy: str, updates: pa.Table, emitted: _Emitted, wanted: bool = True) -> None:
    """Apply updates and count the emitted changes: of each update under ``crown``, of each batch under others."""
    if wanted and strategy == "crown":
        for batch in db.apply_in_order("g", updates, "v"):
            emitted.add(batch)
        return
    listen: Callable[[Any], None] = lambda change: emitted.add(change.to_arrow())  # noqa: E731
    listening = db.view("v").subscribe(listen) if wanted else None
    for batch in updates.to_batches(max_chunksize=1000):
        db.apply("g", batch)
    if listening is not None:
        listening.unsubscribe()


def _checksum(db: Database, most: int) -> int:
    """The number of rows; ``most`` of them are read, or all; every column is summed up."""
    rows = 0
    total: npt.NDArray[np.int64] = np.zeros(8, np.int64)
    for batch in db.view("v").to_batches():
        if most and rows + batch.num_rows >= most:
            batch = batch.slice(0, most - rows)
        rows += batch.num_rows
        for i, column in enumerate(batch.columns):
            total[i] += column.to_numpy().sum()
        if rows == most:
            break
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timing.windowed_graph", description=__doc__)
    parser.add_argument("case", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}")
    parser.add_argument("--strategy", default=PLANNED, help=f"of {', '.join(STRATEGIES)}")
    options = parser.parse_args()
    for name in options.case:
        found = measure(name, options.strategy)
        shown = {key: f"{value:,.2f}" if isinstance(value, float) else str(value) for key, value in found.items()}
        parts = [f"{key} {value}" for key, value in shown.items() if key != "answers"]
        print(f"{name}, {options.strategy}: {'; '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
