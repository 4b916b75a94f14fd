"""Writes the rows of a version into a lakehouse table, which is a Delta or an Iceberg table.

Each version is one commit of the table. A note in the commit names the version, so that no version is written twice.
If new rows replace old rows with the same keys, MERGE writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from freshviews.spark.connectors.declarations import COMPLETE, UPSERT, Merging, connector_of, value_of
from freshviews.spark.definition import ViewSpec
from freshviews.spark.io.columns import quoted
from freshviews.spark.io.sink_kinds.key_changes import last_rows
from freshviews.spark.io.sink_kinds.noted import Noted, OtherTable, has_version

_HERE = "_here"
_NEAR = 20
"""Number of notes that are read first: other commits, such as compactions, have none."""


def merge_rows(
    spark: SparkSession, view: ViewSpec, merging: Merging, rows: pa.Table, version: int, checkpoint: str, begun: bool
) -> None:
    """Bring a table to a version; nothing if it is there. ``rows``: the change of the view, or its contents, as
    delivered. ``checkpoint``: the identity of the checkpoint that counts versions. ``begun``: the table has had an
    earlier version of this view.

    Raises OtherTable, BadKey and what Spark and Py4J raise.

    The note names the view, the checkpoint and the version. A version whose note exists is not written again. Notes are
    in the history of the table. If the table has rows but no note is left, the table is refused. ``Merging`` has the
    operations that depend on the table format.
    """
    target = _target(view, merging)
    # The settings are for this version alone: sinks that are behind have threads of their own.
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    key = view.written.key if view.output == UPSERT and view.written is not None else ()
    if key:
        last, here = last_rows(rows, key)
        names = last.schema.names
        rows = last.append_column(_HERE, here)
    else:
        names = rows.schema.names
    frame = session.createDataFrame(rows)
    columns = ", ".join(f"{quoted(name)} {frame.schema[name].dataType.simpleString()}" for name in names)
    session.sql(f"CREATE TABLE IF NOT EXISTS {target} ({columns}) USING {view.provider}")
    noted, due = _noted_version(session, merging, target), Noted(view.name, checkpoint, version)
    if has_version(target, noted, due, begun, view.output == COMPLETE, f"drop {target}"):
        return
    table = session.table(target)
    if noted is None and not table.isEmpty():
        raise OtherTable(f"{target} has rows that are not of this view; delete these rows, or name another table")
    there = {name.lower() for name in table.columns}
    lacking = next((name for name in names if name.lower() not in there), None)
    if lacking is not None:
        columns = ", ".join(table.columns)
        raise OtherTable(f"{target} has no column {lacking} (only {columns}); add the column, or name another table")
    owner = f"freshviews {checkpoint} {view.name}"
    for name, value in merging.commits.items():
        session.conf.set(name, value.format(note=_note(due), owner=owner, version=version))
    if key:
        _merge(session, frame, target, names, key)
        return
    writer = frame.writeTo(target).options(**{n: v for n, v in view.options.items() if n.lower() != "path"})
    if view.output == COMPLETE:
        writer.overwrite(F.lit(True))
    else:
        writer.append()


def lake_is_written(session: Callable[[], SparkSession], view: ViewSpec) -> None:
    """Look for the table of a view; it is created with the first version. Raises what Spark and Py4J raise."""
    merging = connector_of(view.provider).merging
    assert merging is not None
    try:
        session().table(_target(view, merging))
    except AnalysisException as error:
        if error.getCondition() not in _ABSENT:
            raise


_ABSENT = ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "PATH_NOT_FOUND")
"""The conditions of errors that report a missing table."""


def _target(view: ViewSpec, merging: Merging) -> str:
    return merging.target.format(value_of(view.options, "path").replace("`", "``"))


def _merge(session: SparkSession, frame: DataFrame, target: str, names: list[str], key: tuple[str, ...]) -> None:
    """Replace the rows of the frame's keys; rows of keys that no longer exist are deleted."""
    frame.createOrReplaceTempView("_changed")
    pairs = {name: (f"t.{quoted(name)}", f"s.{quoted(name)}") for name in names}
    same = " AND ".join("{} <=> {}".format(*pairs[name]) for name in key)
    values = ", ".join(value for _, value in pairs.values())
    clauses = [f"WHEN MATCHED AND NOT s.{_HERE} THEN DELETE"]
    rest = ", ".join("{} = {}".format(*pair) for name, pair in pairs.items() if name not in key)
    if rest:
        clauses.append(f"WHEN MATCHED THEN UPDATE SET {rest}")
    clauses.append(
        f"WHEN NOT MATCHED AND s.{_HERE} THEN INSERT ({', '.join(map(quoted, names))}) VALUES ({values})"
    )
    session.sql(f"MERGE INTO {target} t USING _changed s ON {same} {' '.join(clauses)}")


def _noted_version(session: SparkSession, merging: Merging, target: str) -> Noted | None:
    """The last version noted in a table; None if there is none."""
    query, column = merging.notes
    for most in (f" LIMIT {_NEAR}", ""):
        for row in session.sql(f"{query.format(target=target)}{most}").select(column).collect():
            found = _parse_note(row[0])
            if found is not None:
                return found
    return None


def _note(due: Noted) -> str:
    return json.dumps({"freshviews": [due.view, due.checkpoint, due.version]})


def _parse_note(note: str | None) -> Noted | None:
    """A version that is noted; None if the commit is not ours."""
    if note is None or not note.startswith('{"freshviews": '):
        return None
    view, checkpoint, version = json.loads(note)["freshviews"]
    return Noted(view, checkpoint, version)
