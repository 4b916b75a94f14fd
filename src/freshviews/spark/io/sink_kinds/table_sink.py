"""Writes the rows of a version into a table of a database, in one transaction per version.

Spark writes the rows to a staging table. With ``upsert``, one transaction then runs::

    DELETE FROM t WHERE EXISTS (SELECT 1 FROM staging s WHERE s.k = t.k)
    INSERT INTO t (k, v) SELECT k, v FROM staging WHERE _here = 1
    UPDATE freshviews_versions SET version = 7 WHERE target = 't' AND version = 6 AND ...
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from freshviews.catalog.definitions import TableDef
from freshviews.spark.connectors.declarations import COMPLETE, SECONDS, UPSERT, value_of, with_driver, with_timeouts
from freshviews.spark.crash_points import reach
from freshviews.spark.definition import TableSpec, ViewSpec
from freshviews.spark.io.polled import polled_column
from freshviews.spark.io.sink_kinds.key_changes import last_rows
from freshviews.spark.io.sink_kinds.noted import Noted, OtherTable, has_version
from freshviews.spark.io.sources import open_source

VERSIONS = "freshviews_versions"
"""The table with the version of each table."""
_HERE = "_here"


def deliver_rows(
    spark: SparkSession, view: ViewSpec, rows: pa.Table, version: int, checkpoint: str, begun: bool
) -> None:
    """Bring a table to a version; nothing if it is there. ``rows``: the change of the view, or its contents, as
    delivered. ``checkpoint``: the identity of the checkpoint that counts versions. ``begun``: the table has had an
    earlier version of this view.

    Raises OtherTable, BadKey and what Spark and Py4J raise.

    A staged row with ``_here`` 0 only deletes. With ``changes`` rows are only inserted; with ``complete`` all old rows
    are deleted first.
    """
    target = value_of(view.options, "dbtable")
    with _connected(spark, view.options) as database:
        noted = _noted_version(database, target)
        line = f"delete the rows of {target} and its line in {VERSIONS}"
        if has_version(target, noted, Noted(view.name, checkpoint, version), begun, view.output == COMPLETE, line):
            return
        if noted is None:
            _begin(database, spark, view, rows, target)
        statements = _stage_rows(database, spark, view, rows, target)
        before = None if noted is None else noted.version
        with database.transaction():
            for statement in statements:
                database.run(statement)
            reach("rows in the transaction")
            _note(database, target, view.name, checkpoint, before, version)
        database.run(f"DROP TABLE {_staging_table(target)}")


class _Database:
    """A connection of the driver to a database, over Spark's Java."""

    def __init__(self, jvm: Any, options: dict[str, str]) -> None:
        self.options = with_driver(options)
        held = jvm.java.util.HashMap()
        for name, value in self.options.items():
            held.put(name, value)
        self._jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc
        self._given = self._jdbc.JdbcOptionsInWrite(jvm.PythonUtils.toScalaMap(held))
        self._dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(value_of(options, "url"))
        self._connection = self._dialect.createConnectionFactory(self._given).apply(-1)

    def close(self) -> None:
        self._connection.close()

    def quoted(self, name: str) -> str:
        return str(self._dialect.quoteIdentifier(name))

    def has(self, table: str) -> bool:
        """True if a table exists."""
        try:
            self.rows(str(self._dialect.getTableExistsQuery(table)))
        except Py4JError:
            if not self._connection.isValid(5):
                raise
            return False
        return True

    def run(self, statement: str, *values: str | int) -> int:
        """Run a statement; returns the number of rows that it changes."""
        prepared = self._prepared(statement, values)
        try:
            return int(prepared.executeUpdate())
        finally:
            prepared.close()

    def rows(self, query: str, *values: str | int) -> list[tuple[str, ...]]:
        """The first rows of a query, at most two, as texts."""
        prepared = self._prepared(query, values)
        try:
            prepared.setMaxRows(2)
            found = prepared.executeQuery()
            width = found.getMetaData().getColumnCount()
            rows: list[tuple[str, ...]] = []
            while found.next():
                rows.append(tuple(str(found.getString(i + 1)) for i in range(width)))
            return rows
        finally:
            prepared.close()

    def _prepared(self, statement: str, values: Sequence[str | int]) -> Any:
        prepared = self._connection.prepareStatement(statement)
        for i, value in enumerate(values, 1):
            if isinstance(value, str):
                prepared.setString(i, value)
            else:
                prepared.setLong(i, value)
        return prepared

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements inside take effect, or none."""
        self._connection.setAutoCommit(False)
        try:
            yield
            self._connection.commit()
        except BaseException:
            with suppress(Py4JError):
                self._connection.rollback()
            raise
        finally:
            with suppress(Py4JError):
                self._connection.setAutoCommit(True)


@contextmanager
def _connected(spark: SparkSession, options: dict[str, str]) -> Iterator[_Database]:
    database = _Database(spark._jvm, options)
    try:
        yield database
    finally:
        with suppress(Py4JError):
            database.close()


def database_is_read(session: Callable[[], SparkSession], spec: TableSpec, table: TableDef) -> None:
    """Connect to a database, and ask it for the columns of a table. Raises SourceError, and errors of Py4J."""
    # Spark's own error of a connection has no cause.
    spec = replace(spec, options=with_timeouts(spec.options, SECONDS, SECONDS))
    plain = {name: value for name, value in spec.options.items() if name.lower() != "query"}
    with _soon(session()), _connected(session(), _for_table(plain, value_of(plain, "dbtable") or "a query")):
        source = open_source(session(), spec, table)
        if spec.poll is not None:
            polled_column(source)


def database_is_written(session: Callable[[], SparkSession], view: ViewSpec) -> None:
    """Connect to the database of a view. Raises what Spark and Py4J raise."""
    options = with_timeouts(view.options, SECONDS, SECONDS)
    with _soon(session()), _connected(session(), options) as database:
        database.has(value_of(view.options, "dbtable"))


@contextmanager
def _soon(spark: SparkSession) -> Iterator[None]:
    """Makes drivers without ``with_timeouts`` fail soon if a server does not answer."""
    drivers = spark._jvm.java.sql.DriverManager
    before = drivers.getLoginTimeout()
    drivers.setLoginTimeout(SECONDS)
    try:
        yield
    finally:
        drivers.setLoginTimeout(before)


def _noted_version(database: _Database, target: str) -> Noted | None:
    """The recorded version of a table; None if there is none."""
    if not database.has(VERSIONS):
        database.run(
            f"CREATE TABLE {VERSIONS} (target VARCHAR(200) PRIMARY KEY, view_name VARCHAR(200) NOT NULL, "
            "checkpoint VARCHAR(64) NOT NULL, version BIGINT NOT NULL)"
        )
    found = database.rows(f"SELECT view_name, checkpoint, version FROM {VERSIONS} WHERE target = ?", target)
    return Noted(found[0][0], found[0][1], int(found[0][2])) if found else None


def _note(database: _Database, target: str, view: str, checkpoint: str, before: int | None, version: int) -> None:
    """Note the version of a table, within the transaction that writes it. Raises OtherTable if another process did."""
    if before is None:
        database.run(f"INSERT INTO {VERSIONS} VALUES (?, ?, ?, ?)", target, view, checkpoint, version)
        return
    where = "target = ? AND view_name = ? AND checkpoint = ? AND version = ?"
    values = (version, target, view, checkpoint, before)
    if database.run(f"UPDATE {VERSIONS} SET version = ? WHERE {where}", *values) != 1:
        raise OtherTable(f"{target} was changed by another process: two pipelines write to it; stop one of them")


def _begin(database: _Database, spark: SparkSession, view: ViewSpec, rows: pa.Table, target: str) -> None:
    """Make the table if it is not there. Raises OtherTable if it has rows, which would be mixed with the view's."""
    if database.has(target):
        if database.rows(f"SELECT 1 FROM {target}"):
            raise OtherTable(f"{target} has rows that are not of this view; delete these rows, or name another table")
        return
    # As an append: a table that exists but is invisible is not replaced.
    _write(spark, database, _table(view, rows).slice(0, 0), target, "append")
    if view.output == UPSERT:
        # Changes are looked up by the key. A key may have NULLs, so it cannot be declared.
        assert view.written is not None
        key = ", ".join(map(database.quoted, view.written.key))
        database.run(f"CREATE INDEX {database.quoted(_plain_name(target) + '_key')} ON {target} ({key})")


def _table(view: ViewSpec, rows: pa.Table) -> pa.Table:
    """Rows with the columns that the view's table has."""
    return last_rows(rows, view.written.key)[0] if view.output == UPSERT and view.written is not None else rows


def _stage_rows(database: _Database, spark: SparkSession, view: ViewSpec, rows: pa.Table, target: str) -> list[str]:
    """Write rows to the staging table; returns the statements that copy them."""
    beside = _staging_table(target)
    if view.output != UPSERT:
        _write(spark, database, rows, beside)
        names = ", ".join(map(database.quoted, rows.schema.names))
        insert = f"INSERT INTO {target} ({names}) SELECT {names} FROM {beside}"
        return [f"DELETE FROM {target}", insert] if view.output == COMPLETE else [insert]
    assert view.written is not None
    last, here = last_rows(rows, view.written.key)
    _write(spark, database, last.append_column(_HERE, here.cast(pa.int32())), beside)
    names = ", ".join(map(database.quoted, last.schema.names))
    key = [database.quoted(name) for name in view.written.key]
    plain = " AND ".join(f"s.{name} = {target}.{name}" for name in key)
    deleted = [f"DELETE FROM {target} WHERE EXISTS (SELECT 1 FROM {beside} s WHERE {plain})"]
    if any(last.column(name).null_count for name in view.written.key):
        # In two statements, as no database uses a hash join where NULL equals NULL.
        same = " AND ".join(
            f"(s.{name} = {target}.{name} OR (s.{name} IS NULL AND {target}.{name} IS NULL))" for name in key
        )
        nulls = " OR ".join(f"s.{name} IS NULL" for name in key)
        deleted.append(f"DELETE FROM {target} WHERE EXISTS (SELECT 1 FROM {beside} s WHERE ({nulls}) AND {same})")
    here = database.quoted(_HERE)
    return [*deleted, f"INSERT INTO {target} ({names}) SELECT {names} FROM {beside} WHERE {here} = 1"]


def _write(spark: SparkSession, database: _Database, rows: pa.Table, table: str, mode: str = "overwrite") -> None:
    frame = spark.createDataFrame(rows)
    frame.write.format("jdbc").options(**_for_table(database.options, table)).mode(mode).save()


def _for_table(options: dict[str, str], table: str) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() != "dbtable"} | {"dbtable": table}


def _staging_table(target: str) -> str:
    """The name of the staging table, in the same schema. It is short: databases cut long names off."""
    schema, dot, _ = target.rpartition(".")
    return f"{schema}{dot}freshviews_{hashlib.sha256(target.encode()).hexdigest()[:16]}"


def _plain_name(target: str) -> str:
    """The last part of a table's name, without quotes."""
    return target.rpartition(".")[2].strip("\"`[]")
