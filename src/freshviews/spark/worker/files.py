"""Reads files of a micro-batch in a worker, by Arrow, and routes their rows to cells.

Only what Arrow reads as Spark does is read here: types, codecs, encodings and values of a list. For anything else
``ByArrow`` is raised before the version counts, and Spark reads the micro-batch.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshviews.cells import Dim, Role
from freshviews.errors import FreshviewsError
from freshviews.spark.worker.spark_hash import hashes

_ROWS = 65_536
"""Rows of a batch."""
_KINDS: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us"),
}
"""By the type with which Spark reads a column, the type of its Arrow batches."""
_OTHERS: Mapping[str, tuple[pa.DataType, ...]] = {
    "smallint": (pa.int8(),),
    "int": (pa.int8(), pa.int16()),
    "bigint": (pa.int8(), pa.int16(), pa.int32()),
    "double": (pa.float32(),),
    "string": (pa.large_string(),),
    "timestamp_ntz": (pa.timestamp("ms"),),
    "timestamp": (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")),
}
"""Types in files that Arrow converts to the same values as Spark."""
_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}
_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_FIRST_DATE = pa.scalar(date(1582, 10, 15))
"""Files may have older days in another calendar."""
_FIRST_TIME = pa.scalar(datetime(1900, 1, 1), pa.timestamp("us"))
"""Before it, zones have offsets that Spark may apply to times of old files."""


class NotByArrow(FreshviewsError):
    """A file that Arrow may read otherwise than Spark; the text says which and why."""


@dataclass(frozen=True)
class Files:
    """The files of a table in a micro-batch: their paths in the order in which their rows count, and the columns by
    name with the types with which Spark reads them. ``first``: the number of the table's first feed; ``roles``: how the
    rows of each feed are routed."""

    paths: tuple[str, ...]
    columns: Mapping[str, str]
    first: int
    roles: tuple[Role, ...]


@dataclass(frozen=True)
class _Piece:
    """A row group of a file."""

    files: Files
    path: str
    metadata: pq.FileMetaData
    group: int


def rows_of_files(given: Sequence[Files]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The rows of files, in order, as (cell, feed, rows). Raises NotByArrow, for the form of a file before any row."""
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as threads:
        paths = [(files, path) for files in given for path in files.paths]
        pieces = [piece for found in threads.map(_checked, *zip(*paths, strict=True)) for piece in found]
        waiting: deque[tuple[Files, Future[list[pa.RecordBatch]]]] = deque()
        for piece in (*pieces, *[None] * cores):
            if piece is not None:
                waiting.append((piece.files, threads.submit(_read, piece, len(pieces) < cores)))
            if waiting and (piece is None or len(waiting) > cores):
                files, reading = waiting.popleft()
                for batch in reading.result():
                    yield from _routed(files, batch)


def arrow_kind(kind: str) -> pa.DataType | None:
    """The Arrow type of a column that Spark reads as a type; None if only Spark reads it."""
    if kind.startswith("decimal("):
        precision, scale = map(int, kind[len("decimal(") : -1].split(","))
        return pa.decimal128(precision, scale)
    return _KINDS.get(kind)


def _is_read(kind: str, found: pa.DataType) -> bool:
    """Whether a column of a file that Spark reads as ``kind`` is read here."""
    same = arrow_kind(kind)
    return found in _OTHERS.get(kind, ()) or (found == same and kind != "timestamp")


def _checked(files: Files, path: str) -> list[_Piece]:
    """The row groups of a file. Raises NotByArrow if Spark may read it otherwise."""
    try:
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            leaves = {file.schema.column(i).path: i for i in range(len(file.schema))}
            names = [name.lower() for name in schema.names]
            for name, kind in files.columns.items():
                if name not in leaves or names.count(name.lower()) != 1:
                    raise NotByArrow(f"{path} has no one column {name}")
                leaf = file.schema.column(leaves[name])
                found = schema.field(name).type
                if not _is_read(kind, found):
                    raise NotByArrow(f"{path}: column {name} is {found}, and Spark reads {kind}")
                if pa.types.is_timestamp(found):
                    written = json.loads(leaf.logical_type.to_json())
                    if written.get("isAdjustedToUTC") is not (found.tz is not None):
                        raise NotByArrow(f"{path}: the times of column {name} may have a zone or none")
                for group in groups:
                    chunk = group.column(leaves[name])
                    if chunk.compression not in _CODECS or not _ENCODINGS.issuperset(chunk.encodings):
                        raise NotByArrow(f"{path}: column {name} is encoded as {chunk.compression}, {chunk.encodings}")
    except (pa.ArrowException, OSError) as error:
        raise NotByArrow(f"{path} cannot be read by Arrow: {error}") from error
    return [_Piece(files, path, metadata, number) for number in range(len(groups)) if groups[number].num_rows]


def _read(piece: _Piece, alone: bool) -> list[pa.RecordBatch]:
    """The rows of a row group, in the types of Spark's Arrow batches."""
    names = list(piece.files.columns)
    try:
        with pq.ParquetFile(piece.path, metadata=piece.metadata) as file:
            table = file.read_row_group(piece.group, columns=names, use_threads=alone)
        columns = [_as_spark(table.column(name), kind) for name, kind in piece.files.columns.items()]
    except (pa.ArrowException, OSError) as error:
        raise NotByArrow(f"{piece.path} cannot be read by Arrow: {error}") from error
    for name, column in zip(names, columns, strict=True):
        least = {pa.date32(): _FIRST_DATE, pa.timestamp("us"): _FIRST_TIME}.get(column.type)
        if least is not None and pc.any(pc.less(column, least)).as_py():
            raise NotByArrow(f"{piece.path}: column {name} has times before {least}")
    batches: list[pa.RecordBatch] = pa.table(columns, names).to_batches(_ROWS)
    return batches


def _as_spark(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    if kind == "timestamp":
        column = column.cast(pa.timestamp("us", "UTC"))
    wanted = arrow_kind(kind)
    return column if column.type == wanted else column.cast(wanted)


def _routed(files: Files, rows: pa.RecordBatch) -> Iterator[tuple[int, int, pa.RecordBatch]]:
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
    for start, end in zip(bounds, bounds[1:], strict=False):
        if end > start:
            yield int(ordered[start]), taken.slice(start, end - start)


def _coordinates(dim: Dim, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The coordinate of each row, as of ``driver.routing``."""
    names = {name.lower(): name for name in rows.schema.names}
    assert dim.column is not None
    values = rows.column(names[dim.column.lower()])
    if dim.kind in ("bigint", "double"):
        values = values.cast(_KINDS[dim.kind])
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
