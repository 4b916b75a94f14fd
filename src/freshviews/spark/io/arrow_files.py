"""Which files workers read themselves, by Arrow, and which Spark reads.

Spark finds the files of each micro-batch and notes them; their rows need not pass through Java if Arrow reads them as
Spark does. A source whose options or types are not listed here is read by Spark. What cannot be known before a file is
there, ``worker.files`` decides for each file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import types as T

from freshviews.catalog.definitions import TableDef
from freshviews.cells import Role
from freshviews.spark.connectors.declarations import value_of
from freshviews.spark.definition import TableSpec
from freshviews.spark.io.columns import spark_type
from freshviews.spark.io.sources import Source
from freshviews.spark.reading.arrival import files_of_batch, local_path
from freshviews.spark.worker.files import Files, arrow_kind, not_routed
from freshviews.stream import DebeziumJson

_LISTING = {
    "path", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "filenameonly", "pathglobfilter",
    "recursivefilelookup", "cleansource", "sourcearchivedir", "maxcachedfiles", "discardcachedinputratio",
}  # fmt: skip
"""Options that say which files are read, and not how."""


def read_by_spark(spec: TableSpec, table: TableDef) -> str | None:
    """The reason for which Spark reads the rows of a table of a script; None if workers read its files."""
    if spec.provider != "parquet":
        return f"the format is {spec.provider}"
    if spec.message is not None:
        return "its rows are in messages"
    if spec.changes == "snapshot":
        return "a snapshot is read as a whole"
    path = value_of(spec.options, "path")
    if "://" in path:
        return f"the files are at {path.partition('://')[0]}"
    others = [name for name in spec.options if name.lower() not in _LISTING]
    if others:
        return f"the option {others[0]}"
    for column in table.columns:
        if arrow_kind(spark_type(column.type)) is None:
            return f"column {column.name} is {column.type}"
    return None


def opened_by_spark(zone: str, source: Source, roles: Sequence[Role]) -> str | None:
    """The reason for which Spark reads the rows of an open source; None if workers can. ``zone``: the time zone of the
    session. ``roles``: those of its table."""
    reason = read_by_spark(source.spec, source.table)
    if reason is not None:
        return reason
    if source.absent:
        return f"the files have no column {next(iter(source.absent))}"
    for name, kind in columns_of(source).items():
        if arrow_kind(kind) is None:
            return f"column {name} is {kind}"
        if kind == "timestamp" and zone != "UTC":
            return f"column {name} has times in the zone {zone}"
    if isinstance(source.form, DebeziumJson) and any(role.dims for role in roles):
        return "its keys are read from envelopes"
    return not_routed(roles, columns_of(source))


def columns_of(source: Source) -> dict[str, str]:
    """The columns of a source with the types with which Spark reads them."""
    kinds: Mapping[str, T.DataType] = {one.name: one.dataType for one in source.frame.schema.fields}
    return {name: kinds[name].simpleString() if name in kinds else "" for name in source.columns}


def files_for_workers(
    folder: Path, batch: int, sources: Sequence[Source], roles: Sequence[Sequence[Role]]
) -> tuple[Files, ...] | None:
    """The files of a micro-batch, for workers; None if they are not known, or not on this machine. ``folder``: Spark's
    files of the pipeline, which number the sources. ``roles[t]``: the roles of table t."""
    found = []
    first = 0
    for number, (source, own) in enumerate(zip(sources, roles, strict=True)):
        listed = files_of_batch(folder, batch, number)
        if listed is None:
            return None
        paths = [path for path in (local_path(address) for _, address in listed) if path is not None]
        # A folder like day=1 has the value of a column.
        if len(paths) != len(listed) or any("=" in path for path in paths):
            return None
        if paths:
            found.append(Files(tuple(paths), columns_of(source), first, tuple(own)))
        first += len(own)
    return tuple(found)
