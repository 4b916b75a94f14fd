"""Two workers against one: triangles of a dense graph, where the engine takes nearly all time.

``local-cluster`` starts workers with one core each, on this machine: with two, each has one of two cells. Of the three
tables two are split and one is copied to both, so a worker has two thirds of the rows and half of the work.
"""

from __future__ import annotations

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
CASES = ("",)
STRATEGIES = ("freshviews", "one worker")
UNIT = "rows/s"
TARGETS: dict[str, float] = {}
TARGET_RATIOS = {"one worker": 1.6}

WORKERS = {"freshviews": 2, "one worker": 1}
FILES = 8
ROWS = scaled(40_000)
"""Edges in a file of each of the three tables."""
NODES = max(100, round(1_000 * (ROWS / 40_000) ** 0.5))
TABLES = {"r": ("x", "y"), "s": ("y", "z"), "t": ("z", "x")}
SCRIPT = "\n".join(
    f"CREATE STREAMING TABLE {name} ({a} BIGINT, {b} BIGINT) USING parquet "
    f"OPTIONS (path '{name}', maxFilesPerTrigger '1');"
    for name, (a, b) in TABLES.items()
)
VIEW = "SELECT COUNT(*) AS n FROM r JOIN s USING (y) JOIN t ON t.z = s.z AND t.x = r.x"


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Rows per second of the median micro-batch."""
    workers = WORKERS[strategy]
    random = np.random.default_rng(1)
    with folder() as place:
        for name, columns in TABLES.items():
            pairs = random.choice(NODES * NODES, FILES * ROWS, replace=False)
            for number, part in enumerate(np.split(pairs, FILES)):
                rows = dict(zip(columns, (part // NODES, part % NODES), strict=True))
                put(pa.table(rows), place / name / f"{number}.parquet")
        script = place / "workers.sql"
        script.write_text(f"{SCRIPT}\nCREATE MATERIALIZED VIEW counted AS {VIEW};")
        with session(f"local-cluster[{workers},1,2048]") as spark:
            versions = run_once(spark, script, cells=workers, view="counted")
    answers = {str(batch): answer([(n,)]) for batch, n in counts_of(versions).items() if batch >= 0}
    made = [version.manifest.seconds for version in versions]
    return {**rate(len(TABLES) * ROWS, after_warming(seconds_of(versions))), "made": made, "answers": answers}
