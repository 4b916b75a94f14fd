"""Reads the files of a micro-batch by Arrow, in a Python worker, and computes which cells get each row."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise, product
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.cells import Dim, Role
from freshviews.records import dataclass
from freshviews.spark.worker.arrow_kinds import KINDS
from freshviews.spark.worker.csv_files import CsvForm, read_csv
from freshviews.spark.worker.json_files import read_json
from freshviews.spark.worker.parquet_files import read_row_group, row_groups
from freshviews.spark.worker.spark_hash import hashes

_ROWS = 65_536
"""Rows of a batch."""
Piece = Callable[[bool], pa.Table]
"""Reads a part of a file; True: by several threads."""


@dataclass(frozen=True)
class Files:
    """The files of a table in a micro-batch: their paths in the order in which their rows count, and the columns by
    name with the types with which Spark reads them. ``first``: the number of the table's first feed; ``roles``: how the
    rows of each feed are routed. ``form``: that of the files, the provider where it has no choices."""

    paths: tuple[str, ...]
    columns: Mapping[str, str]
    first: int
    roles: tuple[Role, ...]
    form: CsvForm | Literal["json", "parquet"] = "parquet"


def rows_of_files(given: Sequence[Files]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The rows of files, in order, as (cell, feed, rows). Raises NotByArrow, of Parquet files before any row."""
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as threads:
        paths = [(files, path) for files in given for path in files.paths]
        found = threads.map(_pieces, *zip(*paths, strict=True))
        pieces = [(files, piece) for (files, _), own in zip(paths, found, strict=True) for piece in own]
        waiting: deque[tuple[Files, Future[pa.Table]]] = deque()
        for files, piece in pieces:
            waiting.append((files, threads.submit(piece, len(pieces) < cores)))
            if len(waiting) > cores:
                yield from _routed(*waiting.popleft())
        while waiting:
            yield from _routed(*waiting.popleft())


def _pieces(files: Files, path: str) -> list[Piece]:
    """The parts in which a file is read. Raises NotByArrow if Spark may read it otherwise."""
    if isinstance(files.form, CsvForm):
        return [partial(read_csv, path, files.columns, files.form)]
    if files.form == "json":
        return [partial(read_json, path, files.columns)]
    return [partial(read_row_group, group) for group in row_groups(path, files.columns)]


def _routed(files: Files, reading: Future[pa.Table]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    for rows in reading.result().to_batches(_ROWS):
        yield from _by_cell(files, rows)


def _by_cell(files: Files, rows: pa.RecordBatch) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Rows of a table by cell and feed, in order."""
    for number, role in enumerate(files.roles, files.first):
        if not role.dims:
            yield role.offset % role.cells, number, rows
            continue
        places = role.offset + sum(_coordinates(dim, rows) * dim.stride for dim in role.dims if dim.column is not None)
        for copied in product(*(range(dim.share) for dim in role.dims if dim.column is None)):
            open_dims = [dim for dim in role.dims if dim.column is None]
            offset = sum(at * dim.stride for at, dim in zip(copied, open_dims, strict=True))
            for cell, own in _split((places + offset) % role.cells, rows):
                yield cell, number, own


def _split(cells: npt.NDArray[np.int64] | int, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows by cell."""
    if isinstance(cells, int):
        yield cells, rows
        return
    order = np.argsort(cells.astype(np.int16) if cells.max(initial=0) < 2**15 else cells, kind="stable")
    taken, ordered = rows.take(pa.array(order)), cells[order]
    bounds = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]
    for start, end in pairwise(bounds):
        if end > start:
            yield int(ordered[start]), taken.slice(start, end - start)


def _coordinates(dim: Dim, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The coordinate of each row, as of ``driver.routing``."""
    names = {name.lower(): name for name in rows.schema.names}
    assert dim.column is not None
    values = rows.column(names[dim.column.lower()])
    if dim.kind in ("bigint", "double"):
        values = values.cast(KINDS[dim.kind])
    found: npt.NDArray[np.int64] = np.mod(hashes(dim.seed, values, dim.kind), dim.share)
    return found


_ROUTED: Mapping[str, tuple[str, ...]] = {
    "bigint": ("tinyint", "smallint", "int", "bigint"),
    "double": ("float", "double"),
    "string": ("string",),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "boolean": ("boolean",),
}
"""By the kind of a dimension: the types of columns whose rows are routed here."""


def not_routed(roles: Sequence[Role], columns: Mapping[str, str]) -> str | None:
    """The reason for which Spark routes the rows of these roles; None if workers can."""
    kinds = {name.lower(): kind for name, kind in columns.items()}
    for role in roles:
        if role.heavy:
            return "some of its values have cells of their own"
        for dim in role.dims:
            if dim.column is not None and kinds.get(dim.column.lower()) not in _ROUTED.get(dim.kind, ()):
                return f"rows are sent to cells by {dim.column} as {dim.kind}"
    return None
