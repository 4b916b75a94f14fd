"""Streams of batches, and freshviews keeping a view fresh over one."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import freshviews as fv
from benchmarks.measuring import Stopwatch

ROWS_PER_BATCH = 1000


@dataclass(frozen=True)
class Relation:
    """A table: its columns as SQL text, and the columns that tell its rows apart."""

    name: str
    columns: str
    identity: tuple[str, ...]

    def ddl(self, *, checked: bool) -> str:
        """CREATE TABLE for freshviews: with its primary key checked, or trusted."""
        if checked:
            return f"CREATE TABLE {self.name} ({self.columns}, PRIMARY KEY ({', '.join(self.identity)}));"
        return f"CREATE TABLE {self.name} ({self.columns}) TBLPROPERTIES ('freshviews.trusted' = 'true');"

    def plain_ddl(self) -> str:
        """CREATE TABLE without a key."""
        return f"CREATE TABLE {self.name} ({self.columns});"


@dataclass(frozen=True)
class Step:
    """A batch: rows of one table, inserted (``sign`` 1) or deleted (-1)."""

    sign: int
    table: str
    rows: pa.RecordBatch


@dataclass(frozen=True)
class Stream:
    """Batches in order, the view kept fresh over them, and the steps after which its answers are compared."""

    relations: tuple[Relation, ...]
    view: str
    steps: tuple[Step, ...]
    compared: tuple[int, ...]

    @property
    def rows(self) -> int:
        return sum(len(step.rows) for step in self.steps)

    def relation(self, name: str) -> Relation:
        return next(r for r in self.relations if r.name == name)


def spread_over(steps: int, count: int) -> tuple[int, ...]:
    """Positions of ``count`` steps spread evenly over a stream, its last one among them."""
    return tuple(sorted({round(i) for i in np.linspace(0, steps - 1, min(count, steps) + 1)[1:]}))


def interleaved(tables: dict[str, pa.Table], rows: int = ROWS_PER_BATCH) -> list[Step]:
    """Inserts of all rows of all tables, each batch of one table, tables in proportion to their sizes."""
    placed = []
    for name, table in tables.items():
        done = 0
        for batch in table.combine_chunks().to_batches(max_chunksize=rows):
            placed.append((done / table.num_rows, name, batch))
            done += len(batch)
    return [Step(1, name, batch) for _, name, batch in sorted(placed, key=lambda p: p[0])]


def answer(rows: Iterable[Iterable[Any]]) -> list[list[str]]:
    """Rows in an order of their own, every value as text, for comparing across processes."""
    return sorted([repr(v) if isinstance(v, float) else str(v) for v in row] for row in rows)


def keep_fresh(stream: Stream, *, checked: bool = False) -> dict[str, Any]:
    """Run a stream through ``Database.insert`` and ``Database.delete``, one batch a call, and time it."""
    script = "\n".join(r.ddl(checked=checked) for r in stream.relations)
    script += f"\nCREATE MATERIALIZED VIEW v AS {stream.view};"

    def fresh() -> fv.Database:
        db = fv.Database()
        db.execute(script)
        return db

    # What is compiled or loaded at the first batches is not the stream's cost: see ``first_use``.
    with fresh() as warm:
        for step in stream.steps[:40]:
            warm.insert(step.table, step.rows)
        warm.delete(stream.steps[0].table, stream.steps[0].rows)
        answer(warm.view("v"))
    with fresh() as db:
        batches = [(db.insert if step.sign > 0 else db.delete, step.table, step.rows) for step in stream.steps]
        compared = frozenset(stream.compared)
        answers = {}
        gc.collect()
        gc.freeze()
        watch = Stopwatch()
        for i, (call, table, rows) in enumerate(batches):
            call(table, rows)
            if i in compared:
                watch.pause()
                answers[str(i)] = answer(db.view("v"))
                watch.go()
        watch.pause()
        strategy = db.stats()["views"]["v"]["strategy"]
    return {**watch.rates(stream.rows), "answers": answers, "strategy": strategy}
