"""Delivers a version of one view to the sink of the view: either the change of the view, or its whole contents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from freshviews.errors import FreshviewsError
from freshviews.printable import cell
from freshviews.records import dataclass
from freshviews.spark.connectors.declarations import CHANGES, COMPLETE, connector_of, remedy
from freshviews.spark.connectors.secrets import without_secrets
from freshviews.spark.crash_points import reach
from freshviews.spark.definition import Definition, ViewSpec
from freshviews.spark.io.java_errors import cause
from freshviews.spark.io.sink_kinds.key_changes import BadKey
from freshviews.spark.io.sink_kinds.merge_sink import merge_rows
from freshviews.spark.io.sink_kinds.message_sink import deliver_messages
from freshviews.spark.io.sink_kinds.noted import OtherTable
from freshviews.spark.io.sink_kinds.sink_files import FORMATS, encoded, publish
from freshviews.spark.io.sink_kinds.table_sink import deliver_rows

VERSION = "_version"
_PLACES = ("path", "topic", "dbtable")
"""Options that name the place of a sink."""

Receiver = Callable[[DataFrame, int], object]
"""A user's function, called like that of foreachBatch with the rows and the version. After a crash it may be called
again with the last version."""


class SinkError(FreshviewsError):
    """A sink refused a version. The version is committed and is delivered at the next start.

    ``cause``: the error of the sink. ``passes``: the sink may accept it a little later.
    """

    def __init__(self, text: str, cause: str | None = None, passes: bool = False) -> None:
        super().__init__(text)
        self.cause = text if cause is None else cause
        self.passes = passes


@dataclass(frozen=True)
class Due:
    """A version to deliver. ``committed``: the time of its commit, in seconds since 1970. ``again``: an earlier try may
    have delivered it. ``checkpoint``: the identity of its checkpoint. ``begun``: the table has rows of the view."""

    version: int
    again: bool = False
    committed: float = 0.0
    checkpoint: str = ""
    begun: bool = False


def deliver(spark: SparkSession, view: ViewSpec, rows: pa.Table, due: Due, receiver: Receiver | None) -> None:
    """Deliver the rows of a version to the sink of a view. Raises SinkError.

    A version is delivered after its commit and before the next commit, or later to a sink that is behind. Its output is
    fixed at the commit, and its files are named by the version. After a crash a version may be delivered again, with
    equal rows. In files and tables it takes effect once; messages are repeated (``sink_kinds.message_sink``).
    """
    version, connector = due.version, connector_of(view.provider)
    if view.output == CHANGES and view.written is None:
        rows = rows.append_column(pa.field(VERSION, pa.int64()), pa.array([version] * rows.num_rows, pa.int64()))
    named = next((view.options[name] for name in view.options if name.lower() in _PLACES), view.provider)
    where = named if receiver is None else "its function"
    try:
        if receiver is not None:
            receiver(spark.createDataFrame(rows), version)
        elif view.provider in FORMATS:
            publish(_file(view, version), encoded(str(view.provider), rows, view.options))
        elif view.provider == "console":
            _print(view, rows, version, due.again)
        elif connector.messages:
            deliver_messages(spark, view, rows, version, due.committed if due.again else None)
        elif connector.tables:
            deliver_rows(spark, view, rows, version, due.checkpoint, due.begun)
        elif connector.merging is not None:
            merge_rows(spark, view, connector.merging, rows, version, due.checkpoint, due.begun)
        elif view.provider is not None:
            frame = spark.createDataFrame(rows)
            mode = "overwrite" if view.output == COMPLETE else "append"
            frame.write.format(view.provider).options(**view.options).mode(mode).save()
    except (OSError, PySparkException, Py4JError, BadKey, OtherTable) as error:
        raise _refused(view, version, f"{where} did not take it", error) from error
    except Exception as error:
        if receiver is None:
            raise
        raise _refused(view, version, f"its function failed: {type(error).__name__}", error) from error
    reach("sink written")


def _refused(view: ViewSpec, version: int, what: str, error: Exception) -> SinkError:
    reason = cause(error)
    reason = without_secrets(reason + remedy(reason, [view.provider]), view.options)
    return SinkError(
        f"view {view.name}, version {version}: {what}: {reason}; the version is kept, and is delivered at the next "
        "start: correct the cause, then start again",
        f"{what}: {reason}",
        not isinstance(error, BadKey | OtherTable),
    )


def _file(view: ViewSpec, version: int) -> Path:
    stem = "contents" if view.output == "complete" else f"version-{version:012d}"
    return Path(view.options["path"]) / f"{stem}.{view.provider}"


def check_new(definition: Definition, known: Collection[str]) -> None:
    """Refuse to mix a view's changes with those of another view or of a deleted checkpoint; raises SinkError.

    ``known``: the views that have delivered before.
    """
    for view in definition.views:
        if view.name in known or view.provider not in FORMATS or view.output != "changes":
            continue
        folder = Path(view.options["path"])
        found = next(iter(sorted(folder.glob("version-*"))), None)
        if found is not None:
            raise SinkError(
                f"view {view.name} is new, but {folder} has changes of another view or checkpoint, such as "
                f"{found.name}; delete these changes, or name another folder"
            )


def publish_bad(lines: bytes, folder: Path, table: str, version: int) -> None:
    """Write the rows that a version set aside to the user's folder. Raises SinkError."""
    try:
        publish(folder / f"{table}-{version:012d}.json", lines)
    except OSError as error:
        raise SinkError(
            f"table {table}, version {version}: the rows set aside could not be written to {folder}: {error}; correct "
            "the cause, then start again to write them"
        ) from error


def _print(view: ViewSpec, rows: pa.Table, version: int, again: bool) -> None:
    """Print in one write, so that a kill leaves all of a version or nothing."""
    most = int(view.options.get("numRows", "20"))
    doubt = " (perhaps shown before)" if again else ""
    lines = [f"-- {cell(view.name)}, version {version}{doubt}: {rows.num_rows} rows"]
    for row in rows.slice(0, most).to_pylist():
        lines.append("   " + ", ".join(f"{cell(name)}={cell(value)}" for name, value in row.items()))
    if rows.num_rows > most:
        lines.append(f"   and {rows.num_rows - most} more")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
