"""Lists the files of a micro-batch, if Python workers can read all of them by Arrow in place of Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import types as T

from freshviews.cells import Role
from freshviews.spark.connectors.by_arrow import has_header, read_by_spark, separator_of
from freshviews.spark.io.columns import with_default
from freshviews.spark.io.sources import Source
from freshviews.spark.worker.arrow_kinds import arrow_kind
from freshviews.spark.worker.csv_files import CsvForm, read_as_text
from freshviews.spark.worker.files import Files, not_routed
from freshviews.spark.worker.rows import CORRUPT
from freshviews.stream import DebeziumJson


def opened_by_spark(zone: str, source: Source, roles: Sequence[Role]) -> str | None:
    """The reason for which Spark reads the rows of an open source; None if workers can. ``zone``: the time zone of the
    session. ``roles``: those of its table."""
    reason = read_by_spark(source.spec)
    if reason is not None:
        return reason
    if source.absent:
        return f"the files have no column {next(iter(source.absent))}"
    for name, kind in columns_of(source).items():
        if arrow_kind(kind) is None or (source.spec.provider != "parquet" and not read_as_text(kind)):
            return f"column {name} is {kind}"
        if kind == "timestamp" and zone != "UTC":
            return f"column {name} has times in the zone {zone}"
    if source.spec.provider == "json" and (filled := with_default(source.frame.schema)):
        return f"column {filled[0]} has a DEFAULT"
    if isinstance(source.form, DebeziumJson) and any(role.dims for role in roles):
        return "its keys are read from envelopes"
    return not_routed(roles, columns_of(source))


def columns_of(source: Source) -> dict[str, str]:
    """The columns of a source with the types with which Spark reads them."""
    kinds: Mapping[str, T.DataType] = {one.name: one.dataType for one in source.frame.schema.fields}
    return {name: kinds[name].simpleString() if name in kinds else "" for name in source.columns}


def files_for_workers(
    listed: Sequence[Sequence[str] | None], sources: Sequence[Source], roles: Sequence[Sequence[Role]]
) -> tuple[Files, ...] | None:
    """The files of a micro-batch, for workers; None if workers cannot read them. ``listed``: the paths of each source,
    None if they are not known or not on this machine. ``roles[t]``: the roles of table t."""
    found = []
    first = 0
    for paths, source, own in zip(listed, sources, roles, strict=True):
        # A folder like day=1 has the value of a column.
        if paths is None or any("=" in path for path in paths):
            return None
        if paths:
            found.append(Files(tuple(paths), columns_of(source), first, tuple(own), _form_of(source)))
        first += len(own)
    return tuple(found)


def _form_of(source: Source) -> CsvForm | Literal["json", "parquet"]:
    if source.spec.provider == "csv":
        names = tuple(name for name in source.frame.schema.names if name != CORRUPT)
        return CsvForm(names, separator_of(source.spec.options), has_header(source.spec.options))
    return "json" if source.spec.provider == "json" else "parquet"
