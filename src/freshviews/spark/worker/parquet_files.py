"""Reads Parquet files by Arrow, if Arrow and Spark read the same values from them.

This depends on the types, codecs, encodings and times in a file. For other files, ``NotByArrow`` is raised, and Spark
reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from freshviews.records import dataclass
from freshviews.spark.worker.arrow_kinds import NotByArrow, arrow_kind, check_times

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


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file, with the columns to read as of ``files.Files``."""

    path: str
    columns: Mapping[str, str]
    metadata: pq.FileMetaData
    number: int


def row_groups(path: str, columns: Mapping[str, str]) -> list[RowGroup]:
    """The row groups of a file. Raises NotByArrow if Spark may read it otherwise."""
    try:
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            leaves = {file.schema.column(i).path: i for i in range(len(file.schema))}
            names = [name.lower() for name in schema.names]
            for name, kind in columns.items():
                if name not in leaves or names.count(name.lower()) != 1:
                    raise NotByArrow(f"{path} has no column {name}, or more than one")
                leaf = file.schema.column(leaves[name])
                found = schema.field(name).type
                if not _is_read(kind, found):
                    raise NotByArrow(f"{path}: column {name} is {found}, but Spark reads {kind}")
                if pa.types.is_timestamp(found):
                    written = json.loads(leaf.logical_type.to_json())
                    if written.get("isAdjustedToUTC") is not (found.tz is not None):
                        raise NotByArrow(f"{path}: column {name} does not say whether its times are in UTC")
                for group in groups:
                    chunk = group.column(leaves[name])
                    if chunk.compression not in _CODECS or not _ENCODINGS.issuperset(chunk.encodings):
                        raise NotByArrow(
                            f"{path}: column {name} has a compression or encoding that is not supported: "
                            f"{chunk.compression}, {chunk.encodings}"
                        )
    except (pa.ArrowException, OSError) as error:
        raise NotByArrow(f"{path} cannot be read by Arrow: {error}") from error
    return [RowGroup(path, columns, metadata, number) for number in range(len(groups)) if groups[number].num_rows]


def read_row_group(group: RowGroup, threads: bool) -> pa.Table:
    """The rows of a row group, in the types of Spark's Arrow batches. Raises NotByArrow."""
    names = list(group.columns)
    try:
        with pq.ParquetFile(group.path, metadata=group.metadata) as file:
            table = file.read_row_group(group.number, columns=names, use_threads=threads)
        columns = [_as_spark(table.column(name), kind) for name, kind in group.columns.items()]
    except (pa.ArrowException, OSError) as error:
        raise NotByArrow(f"{group.path} cannot be read by Arrow: {error}") from error
    for name, column in zip(names, columns, strict=True):
        check_times(group.path, name, column)
    return pa.table(columns, names)


def _is_read(kind: str, found: pa.DataType) -> bool:
    """Whether a column of a file that Spark reads as ``kind`` is read here."""
    same = arrow_kind(kind)
    return found in _OTHERS.get(kind, ()) or (found == same and kind != "timestamp")


def _as_spark(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    if kind == "timestamp":
        column = column.cast(pa.timestamp("us", "UTC"))
    wanted = arrow_kind(kind)
    return column if column.type == wanted else column.cast(wanted)
