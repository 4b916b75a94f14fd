"""Checks, without reading rows, whether the sources and sinks of a pipeline can be reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from freshviews.catalog.definitions import TableDef
from freshviews.errors import SourceError, StoreError
from freshviews.records import dataclass
from freshviews.spark.connectors.declarations import (
    FILES,
    MERGES,
    MESSAGES,
    OTHER,
    TABLES,
    connector_of,
    is_folder,
    place_of,
    remedy,
    value_of,
)
from freshviews.spark.connectors.secrets import without_secrets
from freshviews.spark.definition import Definition, TableSpec, ViewSpec, catalog_of
from freshviews.spark.io.java_errors import cause
from freshviews.spark.io.sink_kinds.merge_sink import lake_is_written
from freshviews.spark.io.sink_kinds.message_sink import broker_is_read, broker_is_written
from freshviews.spark.io.sink_kinds.table_sink import database_is_read, database_is_written
from freshviews.spark.io.sources import can_be_opened, files_can_be_read
from freshviews.spark.state.stores.folder import try_to_write

Session = Callable[[], SparkSession]
"""Starts Spark, the first time that a place needs it."""


@dataclass(frozen=True)
class Tried:
    """A place that was tried. ``name``: the table or view. ``cause``: why it cannot be reached; None if it can."""

    name: str
    place: str
    cause: str | None = None


def tried(session: Session, definition: Definition) -> Iterator[Tried]:
    """Each source, each folder of bad rows and each sink of a pipeline, as it is tried. A sink without a probe is left
    out. Raises the errors of ``session``."""
    tables = catalog_of(definition.script).tables
    for table in definition.tables:
        source = partial(_SOURCES[connector_of(table.provider).kind], session, table, tables[table.name])
        yield attempt(f"table {table.name}", place_of(table.provider, table.options), source, table)
        if table.bad_rows is not None:
            folder = Path(table.bad_rows)
            yield attempt(f"bad rows of table {table.name}", str(folder), partial(try_to_write, folder))
    for view in definition.views:
        sink = _SINKS.get(connector_of(view.provider).kind)
        if sink is not None:
            place = place_of(view.provider, view.options)
            yield attempt(f"view {view.name}", place, partial(sink, session, view), view)


def attempt(
    name: str, place: str, probe: Callable[[], object], of: TableSpec | ViewSpec | None = None
) -> Tried:
    """A place, tried by a probe. ``of``: its declaration."""
    options: Mapping[str, str] = MappingProxyType({}) if of is None else of.options
    try:
        probe()
    except (SourceError, StoreError) as error:
        reason = str(error).removeprefix(f"{name}: ")
        if of is not None:
            reason = reason.removeprefix(f"{of.provider} cannot be read: ")
    except OSError as error:
        reason = str(error.strerror or error)
    except (PySparkException, Py4JError) as error:
        reason = cause(error)
        reason += remedy(reason, [None if of is None else of.provider])
    else:
        return Tried(name, place)
    return Tried(name, place, without_secrets(reason, options))


def _files_are_written(session: Session, view: ViewSpec) -> None:
    """Write into a folder of this machine; for other places, let Spark look for the file system."""
    path = value_of(view.options, "path")
    if is_folder(path):
        try_to_write(Path(path))
        return
    spark = session()
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(place)


_SOURCES: Mapping[str, Callable[[Session, TableSpec, TableDef], None]] = {
    FILES: files_can_be_read,
    MESSAGES: broker_is_read,
    TABLES: database_is_read,
    MERGES: can_be_opened,
    OTHER: can_be_opened,
}
_SINKS: Mapping[str, Callable[[Session, ViewSpec], None]] = {
    FILES: _files_are_written,
    MESSAGES: broker_is_written,
    TABLES: database_is_written,
    MERGES: lake_is_written,
}
