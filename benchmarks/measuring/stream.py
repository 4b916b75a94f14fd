"""Streams of batches: the input, the view, and the points at which answers are compared.

This module does not import freshviews: each peer makes the same stream in its own environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS_PER_BATCH = 1000
MULTIPLICITY = "_multiplicity"


@dataclass(frozen=True)
class Relation:
    """A table: its columns as SQL text, and the columns of its key. ``declared``: a trusted table declares the key."""

    name: str
    columns: str
    identity: tuple[str, ...]
    declared: bool = False

    def ddl(self, *, checked: bool) -> str:
        """CREATE TABLE for freshviews: with its primary key checked, or trusted."""
        columns = f"{self.columns}, PRIMARY KEY ({', '.join(self.identity)})"
        if checked:
            return f"CREATE TABLE {self.name} ({columns});"
        columns = columns if self.declared else self.columns
        return f"CREATE TABLE {self.name} ({columns}) TBLPROPERTIES ('freshviews.trusted' = 'true');"

    def plain_ddl(self) -> str:
        """CREATE TABLE without a key."""
        return f"CREATE TABLE {self.name} ({self.columns});"

    def types(self) -> dict[str, str]:
        """Names of columns and their SQL types."""
        parts, depth, start = [], 0, 0
        for i, letter in enumerate(self.columns):
            depth += (letter == "(") - (letter == ")")
            if letter == "," and not depth:
                parts.append(self.columns[start:i])
                start = i + 1
        parts.append(self.columns[start:])
        return dict(part.strip().split(" ", 1) for part in parts)


@dataclass(frozen=True)
class Step:
    """A batch of one table: rows inserted (``sign`` 1), deleted (-1), or both (0: the last column says)."""

    sign: int
    table: str
    rows: pa.RecordBatch

    @cached_property
    def parts(self) -> list[tuple[int, pa.RecordBatch]]:
        """The deleted rows, then the inserted rows, each with its sign."""
        if self.sign:
            return [(self.sign, self.rows)]
        signs = self.rows.column(self.rows.num_columns - 1)
        rows = self.rows.select(self.rows.schema.names[:-1])
        both = [(-1, rows.filter(pc.less(signs, 0))), (1, rows.filter(pc.greater(signs, 0)))]
        return [(sign, part) for sign, part in both if len(part)]


class NoData(Exception):
    """The data of a workload is missing; the text says which variable names it."""


@dataclass(frozen=True)
class Stream:
    """Batches in order, the view over them, and the steps after which answers are compared."""

    relations: tuple[Relation, ...]
    view: str
    steps: tuple[Step, ...]
    compared: tuple[int, ...]
    checked: bool = False
    """Whether freshviews stores the tables and checks their keys."""
    deltas: bool = False
    """Whether the change of the view is emitted with every batch, and its rows are counted."""
    read: bool = False
    """Whether reading all of the view at the compared steps is part of the time."""
    before: int = 0
    """Steps that load the tables before the clock starts."""
    pattern: Mapping[str, object] = field(default_factory=dict)
    """Description of the pattern for peers without SQL: see ``benchmarks.workloads.graph``."""

    @property
    def rows(self) -> int:
        return sum(len(step.rows) for step in self.steps)

    @property
    def empty(self) -> list[tuple[int, ...]]:
        """The rows of the view over empty tables: a count of all rows is 0; some peers do not emit it."""
        return [(0,)] if self.view.lstrip().startswith("SELECT COUNT(*)") and "GROUP BY" not in self.view else []

    def relation(self, name: str) -> Relation:
        return next(r for r in self.relations if r.name == name)


def spread_over(steps: int, count: int) -> tuple[int, ...]:
    """Positions of ``count`` steps spread evenly over a stream, including its last one."""
    return tuple(sorted({round(i) for i in np.linspace(0, steps - 1, min(count, steps) + 1)[1:]}))


def interleaved(tables: Mapping[str, pa.Table], rows: int = ROWS_PER_BATCH) -> list[Step]:
    """Inserts of all rows of all tables, each batch of one table, tables in proportion to their sizes."""
    placed = []
    for name, table in tables.items():
        done = 0
        for batch in table.combine_chunks().to_batches(max_chunksize=rows):
            placed.append((done / table.num_rows, name, batch))
            done += len(batch)
    return [Step(1, name, batch) for _, name, batch in sorted(placed, key=lambda p: p[0])]


def with_deletes(inserts: Sequence[Step], every: int = 10) -> tuple[Step, ...]:
    """The inserts, followed by deletes of every n-th batch."""
    return (*inserts, *(Step(-1, step.table, step.rows) for step in inserts[::every]))


def signed(table: str, rows: pa.Table, signs: np.ndarray, size: int) -> list[Step]:
    """Batches of rows inserted (1) and deleted (-1), in order, without rows that cancel within a batch."""
    found = []
    for start in range(0, len(signs), size):
        part = rows.slice(start, size)
        many = part.append_column(MULTIPLICITY, pa.array(signs[start : start + size]))
        if len(set(signs[start : start + size].tolist())) > 1:
            many = many.group_by(part.column_names, use_threads=False).aggregate([(MULTIPLICITY, "sum")])
            many = many.rename_columns([*part.column_names, MULTIPLICITY])
            many = many.filter(pc.not_equal(many[MULTIPLICITY], 0))
        if len(many):
            found.append(Step(0, table, many.combine_chunks().to_batches()[0]))
    return found
