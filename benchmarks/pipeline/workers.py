"""Two workers compared with one, for work that is nearly all in the engine: triangles of a dense graph, and a cofactor.

``local-cluster`` starts workers with one core each, on this machine: with two, each has one of two cells. Of the three
tables of the graph two are split and one is copied to both, so a worker has two thirds of the rows and half of the
work. The cofactor has the 24 columns of three tables over their join by one key: all are split, and the sums of both
cells are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring.answers import answer
from benchmarks.pipeline.run import (
    after_warming,
    counts_of,
    folder,
    put,
    rate,
    run_once,
    scaled,
    seconds_of,
    session,
)

TITLE = "pipeline, two workers"
STRATEGIES = ("freshviews", "one worker")
UNIT = "rows/s"
TARGETS: dict[str, float] = {}
TARGET_RATIOS = {"one worker": 1.6}

WORKERS = {"freshviews": 2, "one worker": 1}
FILES = 8
ROWS = scaled(40_000)
"""Edges in a file of each of the three tables."""
NODES = max(100, round(1_000 * (ROWS / 40_000) ** 0.5))
KEYED_ROWS = scaled(100_000)
"""Rows in a file of each table of the cofactor; each key has three rows in a table."""
OWN = 8
"""Columns of such a table in the cofactor."""

GRAPH = {"r": ("x", "y"), "s": ("y", "z"), "t": ("z", "x")}
TRIANGLES = "SELECT COUNT(*) AS n FROM r JOIN s USING (y) JOIN t ON t.z = s.z AND t.x = r.x"
KEYED = {name: ("k", *(f"{name}{i}" for i in range(OWN))) for name in "abc"}
COFACTOR = (
    f"SELECT COFACTOR({', '.join(x for columns in KEYED.values() for x in columns[1:])}) AS f, COUNT(*) AS n "
    "FROM a JOIN b USING (k) JOIN c USING (k)"
)
CASES = ("", "cofactor")


def _edges() -> Iterator[tuple[str, list[pa.Table]]]:
    """The files of each table."""
    random = np.random.default_rng(1)
    for name, columns in GRAPH.items():
        pairs = random.choice(NODES * NODES, FILES * ROWS, replace=False)
        parts = np.split(pairs, FILES)
        yield name, [pa.table(dict(zip(columns, (one // NODES, one % NODES), strict=True))) for one in parts]


def _keyed() -> Iterator[tuple[str, list[pa.Table]]]:
    random = np.random.default_rng(2)
    for name, (key, *others) in KEYED.items():
        keys = random.permutation(np.arange(FILES * KEYED_ROWS) // 3)
        made = pa.table({key: keys, **{other: random.integers(0, 1000, len(keys)) for other in others}})
        yield name, [made.slice(i * KEYED_ROWS, KEYED_ROWS) for i in range(FILES)]


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Rows per second of the median micro-batch."""
    workers = WORKERS[strategy]
    tables, view, rows = (KEYED, COFACTOR, KEYED_ROWS) if case else (GRAPH, TRIANGLES, ROWS)
    with folder() as place:
        for name, files in _keyed() if case else _edges():
            for number, file in enumerate(files):
                put(file, place / name / f"{number}.parquet")
        declared = "\n".join(
            f"CREATE STREAMING TABLE {name} ({', '.join(f'{column} BIGINT NOT NULL' for column in columns)}) "
            f"USING parquet OPTIONS (path '{name}', maxFilesPerTrigger '1');"
            for name, columns in tables.items()
        )
        script = place / "workers.sql"
        script.write_text(f"{declared}\nCREATE MATERIALIZED VIEW counted AS {view};")
        with session(f"local-cluster[{workers},1,2048]") as spark:
            versions = run_once(spark, script, cells=workers, view="counted")
    answers = {str(batch): answer([(n,)]) for batch, n in counts_of(versions).items() if batch >= 0}
    made = [version.manifest.seconds for version in versions]
    return {**rate(len(tables) * rows, after_warming(seconds_of(versions))), "made": made, "answers": answers}
