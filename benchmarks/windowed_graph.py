"""Paths, stars and combs over a window of a graph's edges: ``python -m benchmarks.windowed_graph [case ...]``.

The graph is SNAP's soc-Epinions1 as ``src,dst`` in the file that EPINIONS names, or benchmarks/data/epinions.csv.
Edges arrive in file order; a window has a fifth of them. Once it is full, each arrival first deletes the oldest edge;
at the end the window drains. Each update goes through all occurrences of the edge table before the next. ``deltas``:
the change that each update makes is written into Arrow batches (``Database.apply_in_order``). ``full``: the result is
read ten times, after every half window of arrivals and at the end, and summed up. Every figure is of one process, in
CPU seconds; the other strategies take batches of 1000 updates, and their changes.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from benchmarks.measuring import ROOT
from freshviews import Database

FILE = Path(os.environ.get("EPINIONS", ROOT / "benchmarks" / "data" / "epinions.csv"))
TABLE = "CREATE TABLE g (src BIGINT NOT NULL, dst BIGINT NOT NULL) TBLPROPERTIES ('freshviews.trusted' = '{trusted}');"
HALF = 32684


@dataclass(frozen=True)
class Case:
    """A query, whether it is asked for deltas or for the full result, and the sizes it must have at ten points."""

    sql: str
    deltas: bool
    sizes: tuple[int, ...] = ()


HOP3 = f"""SELECT g1.src AS a, g2.src AS b, g3.src AS c, g3.dst AS d FROM g g1, g g2, g g3
    WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst > {HALF}"""
SIZES3 = (1554038, 6132351, 3290821, 2124710, 1355336, 1015433, 1522058, 1441585, 786998, 298576)

CASES = {
    "3-hop, deltas": Case(HOP3, True),
    "3-hop, full": Case(HOP3, False, SIZES3),
    "3-hop projected, deltas": Case(
        "SELECT DISTINCT g2.src AS b, g3.src AS c FROM g g1, g g2, g g3 WHERE g1.dst = g2.src AND g2.dst = g3.src", True
    ),
    "3-hop projected, full": Case(
        "SELECT DISTINCT g2.src AS b, g3.src AS c FROM g g1, g g2, g g3 WHERE g1.dst = g2.src AND g2.dst = g3.src",
        False,
        (22126, 61963, 36280, 25418, 23427, 18662, 18422, 23424, 24179, 18691),
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
    ),
    "4-hop, full": Case(
        f"""SELECT g1.src AS a, g2.src AS b, g3.src AS c, g4.src AS d, g4.dst AS e FROM g g1, g g2, g g3, g g4
        WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst = g4.src AND g4.dst > {HALF}""",
        False,
    ),
}


def stream() -> tuple[pa.Table, list[int]]:
    """The signed updates, and how many of them lie before each of the ten points."""
    options = pa.csv.ReadOptions(column_names=["src", "dst"])
    read = pa.csv.read_csv(FILE, options)
    edges = np.column_stack([read["src"].to_numpy(), read["dst"].to_numpy()])
    n = len(edges)
    window = -(-n // 5) + -(-n // 5) % 2
    rest = np.arange(window, n)
    turns = np.column_stack([rest - window, rest]).ravel()
    at = np.concatenate([np.arange(window), turns, np.arange(n - window, n)])
    signs = np.concatenate([np.ones(window), np.tile([-1, 1], len(rest)), -np.ones(window)]).astype(np.int64)
    arrived = np.cumsum(signs > 0)
    points = [*(window // 2 * i for i in range(1, 10)), n]
    places = [int(np.searchsorted(arrived, point)) + 1 for point in points]
    return pa.table({"src": edges[at, 0], "dst": edges[at, 1], "_multiplicity": signs}), places


def measure(case: Case, strategy: str, trusted: bool) -> dict[str, object]:
    """CPU seconds for updates and for reading, rows, bytes per edge in the window."""
    updates, places = stream()
    window = places[1]
    db = Database()
    properties = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
    db.execute(TABLE.format(trusted=str(trusted).lower()))
    start = time.process_time()
    db.execute(f"CREATE MATERIALIZED VIEW v {properties} AS {case.sql}")
    compiled = time.process_time() - start
    deltas = case.deltas
    if deltas:
        # The driver of single updates is compiled at its first use.
        for sign in (1, -1):
            _told(db, updates.slice(0, 1).set_column(2, "_multiplicity", pa.array([sign])))
    rows = inserted = 0
    sizes: list[int] = []
    most = writing = reading = 0.0
    at = 0
    for place in [*places, len(updates)]:
        piece = updates.slice(at, place - at)
        at = place
        start = time.process_time()
        if deltas and strategy == "crown":
            more, new = _told(db, piece)
            rows += more
            inserted += new
        else:
            for batch in piece.to_batches(max_chunksize=1000):
                db.apply("g", batch)
        writing += time.process_time() - start
        most = max(most, db.view_bytes("v") / window)
        if not deltas and place != len(updates):
            start = time.process_time()
            sizes.append(_checksum(db))
            reading += time.process_time() - start
    assert not case.sizes or tuple(sizes) == case.sizes, f"{sizes} is not {case.sizes}"
    db.close()
    return {
        "compiled": compiled,
        "updates": writing,
        "reading": reading,
        "rows": rows or sum(sizes),
        "inserted": inserted,
        "bytes per edge": most,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _told(db: Database, updates: pa.Table) -> tuple[int, int]:
    """Rows of the changes of updates, told one by one, and how many were inserted."""
    rows = inserted = 0
    for batch in db.apply_in_order("g", updates, "v"):
        rows += batch.num_rows
        inserted += int((batch.column("_multiplicity").to_numpy() > 0).sum())
    return rows, inserted


def _checksum(db: Database) -> int:
    """The number of rows; every column is summed up."""
    rows = 0
    total: npt.NDArray[np.int64] = np.zeros(8, np.int64)
    for batch in db.view("v").to_batches():
        rows += batch.num_rows
        for i, column in enumerate(batch.columns):
            total[i] += column.to_numpy().sum()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windowed_graph", description=__doc__)
    parser.add_argument("case", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}")
    parser.add_argument("--strategy", default="crown")
    parser.add_argument("--checked", action="store_true", help="store the edges and check deletes")
    options = parser.parse_args()
    for name in options.case:
        found = measure(CASES[name], options.strategy, not options.checked)
        shown = {key: f"{value:,.2f}" if isinstance(value, float) else str(value) for key, value in found.items()}
        parts = [f"{key} {value}" for key, value in shown.items()]
        print(f"{name}, {options.strategy}: {'; '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
