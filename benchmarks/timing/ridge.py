"""A ridge regression updated after each batch of 1,000 sales over a join of five tables, compared with scikit-learn.

The value is wall milliseconds from a batch in memory to the coefficients after it, the mean over the batches. A batch
inserts 500 sales and deletes the oldest 500, so the join keeps its size. ``freshviews`` is ``freshviews.learn.Ridge``.
``scikit-learn`` retrains: DuckDB applies the same batch to its tables and makes the join as numpy arrays, on which
``Ridge`` is fitted; both use all cores. Coefficients are compared after each batch that both have done. ``fill`` is the
seconds until the first model, and memory is that of the process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring.answers import answer
from benchmarks.measuring.machine import most_resident_bytes
from benchmarks.measuring.strategies import PLANNED
from benchmarks.workloads import retail
from benchmarks.workloads.retail import Batch

TITLE = "ridge"
UNIT = "ms"
CASES = ("join of 10,000 rows", "join of 100,000 rows", "join of 1,000,000 rows")
STRATEGIES = (PLANNED, "scikit-learn")
BATCHES, SIZE = 50, 1_000
ALPHA = 10.0
PATIENCE = 60.0
"""Seconds of batches after which no other batch begins."""
SECONDS = 600.0


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Refresh the model after each batch; milliseconds of a batch, and the coefficients after each."""
    rows = int(case.split()[2].replace(",", ""))
    first, batches = retail.window(rows, BATCHES, SIZE)
    tables = {**retail.dimensions(), "sales": first}
    run = _ours if strategy == PLANNED else _retrained
    taken: list[float] = []
    answers: dict[str, Any] = {}
    begin = time.perf_counter()
    cpu = 0.0
    fill = 0.0
    for number, (seconds, cpu_seconds, coefficients) in enumerate(run(tables, batches)):
        answers[str(number)] = answer([[float(x) for x in coefficients]])
        if number == 0:
            fill = time.perf_counter() - begin
            continue
        taken.append(seconds)
        cpu += cpu_seconds
        if sum(taken) > PATIENCE:
            break
    milliseconds = np.array(taken) * 1e3
    return {
        "value": float(milliseconds.mean()),
        "rows": rows,
        "batches": len(taken),
        "fill": fill,
        "cpu": cpu / len(taken) * 1e3,
        "p50_ms": float(np.percentile(milliseconds, 50)),
        "most": float(milliseconds.max()),
        "peak_bytes": most_resident_bytes(),
        "note": f"{len(taken)} batches; the first model after {fill:.1f} s",
        "answers": answers,
    }


Refreshed = Iterator[tuple[float, float, Sequence[float]]]
"""Seconds, CPU seconds, and the coefficients with the intercept last: first those of the filled tables."""


def _ours(tables: dict[str, pa.Table], batches: Iterator[Batch]) -> Refreshed:
    import freshviews as fv
    from freshviews.learn import Ridge

    with fv.Database() as db:
        db.execute(retail.TABLES)
        model = Ridge(db, retail.JOIN, retail.FEATURES, retail.TARGET, name="units_sold", alpha=ALPHA)
        for name, rows in tables.items():
            db.insert(name, rows)
        yield 0.0, 0.0, [*model.coef_, model.intercept_]
        for batch in batches:
            start, cpu = time.perf_counter(), time.process_time()
            db.insert("sales", batch.inserted)
            db.delete("sales", batch.deleted)
            found = [*model.coef_, model.intercept_]
            yield time.perf_counter() - start, time.process_time() - cpu, found


def _retrained(tables: dict[str, pa.Table], batches: Iterator[Batch]) -> Refreshed:
    import duckdb
    from sklearn.linear_model import Ridge

    names = (*retail.FEATURES, retail.TARGET)
    select = f"SELECT {', '.join(f'{name}::DOUBLE AS {name}' for name in names)} FROM {retail.JOIN}"

    def trained() -> list[float]:
        columns = con.execute(select).fetchnumpy()
        rows = np.column_stack([columns[name] for name in retail.FEATURES])
        model = Ridge(alpha=ALPHA).fit(rows, columns[retail.TARGET])
        return [*model.coef_, model.intercept_]

    with duckdb.connect() as con:
        con.execute(retail.TABLES)
        # DuckDB finds the rows to delete by a number that the data lacks.
        con.execute("ALTER TABLE sales ADD COLUMN number BIGINT")
        for name, rows in tables.items():
            con.register("given", rows)
            if name == "sales":
                con.execute("INSERT INTO sales SELECT *, row_number() OVER () FROM given")
            else:
                con.execute(f"INSERT INTO {name} SELECT * FROM given")
            con.unregister("given")
        yield 0.0, 0.0, trained()
        oldest, newest = 0, len(tables["sales"])
        for batch in batches:
            start, cpu = time.perf_counter(), time.process_time()
            con.register("given", batch.inserted)
            con.execute(f"INSERT INTO sales SELECT *, {newest} + row_number() OVER () FROM given")
            con.unregister("given")
            newest += len(batch.inserted)
            oldest += len(batch.deleted)
            con.execute(f"DELETE FROM sales WHERE number <= {oldest}")
            found = trained()
            yield time.perf_counter() - start, time.process_time() - cpu, found
