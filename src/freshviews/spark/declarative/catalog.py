"""Stores the definitions of a project's tables, so that the next run can declare the tables again.

This is needed if Spark keeps its catalog in memory, because the catalog then ends with the session.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from freshviews.spark.declarative.graph import Dataset
from freshviews.spark.state.stores.store import Store
from freshviews.store.files import json_of

_NOTED = "tables"
_ROOM = "org.apache.spark.sql.catalyst."


def is_in_memory(spark: SparkSession) -> bool:
    """True if the catalog of Spark's sessions ends with them."""
    return str(spark.conf.get("spark.sql.catalogImplementation")) == "in-memory"


def created(spark: SparkSession, dataset: Dataset) -> int:
    """When the table of a dataset was created, in milliseconds since 1970; 0 if another catalog has it."""
    found = _metadata(spark, dataset.parts)
    return 0 if found is None else int(found.createTime())


def location(spark: SparkSession, parts: Iterable[str]) -> str | None:
    """The folder of a table; None if there is no such table, or another catalog has it."""
    found = _metadata(spark, parts)
    return None if found is None else str(found.location().toString())


def note_tables(spark: SparkSession, store: Store, datasets: Iterable[Dataset]) -> None:
    """Note the tables of a project, if they are in a catalog in memory. Raises OSError."""
    if not is_in_memory(spark):
        return
    noted = {}
    for one in datasets:
        found = _metadata(spark, one.parts)
        if found is not None:
            statement = spark.sql(f"SHOW CREATE TABLE {one.quoted}").collect()[0][0]
            place = str(found.location().toString())
            noted[one.quoted] = [list(one.parts), statement, place, int(found.createTime())]
    store.write(_NOTED, json.dumps(noted).encode())


def declare_tables(spark: SparkSession, store: Store) -> None:
    """Declare the noted tables whose files are there. Raises OSError, and what Spark raises."""
    if not is_in_memory(spark):
        return
    try:
        noted = json_of(store.read(_NOTED))
    except FileNotFoundError:
        return
    for quoted, (parts, statement, place, when) in noted.items():
        if spark.catalog.tableExists(quoted) or not _exists(spark, place):
            continue
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {quoted.rpartition('.')[0]}")
        spark.sql(f"{statement} LOCATION '{place.replace(chr(39), chr(92) + chr(39))}'")
        # A table with a LOCATION is not one that Spark empties; it is one of the session's own, as before.
        kinds = _jvm(spark).java.lang.Class.forName(_ROOM + "catalog.CatalogTableType$").getField("MODULE$").get(None)
        table = _with(spark, _metadata(spark, parts), tableType=kinds.MANAGED(), createTime=when)
        spark._jsparkSession.sessionState().catalog().alterTable(table)


def _metadata(spark: SparkSession, parts: Iterable[str]) -> Any:
    """Spark's description of a table; None if there is none, or another catalog has it."""
    catalog, database, table = parts
    option = _jvm(spark).scala.Option.apply
    identifier = _jvm(spark).org.apache.spark.sql.catalyst.TableIdentifier(table, option(database), option(catalog))
    known = spark._jsparkSession.sessionState().catalog()
    is_there = catalog == "spark_catalog" and known.tableExists(identifier)
    return known.getTableMetadata(identifier) if is_there else None


def _with(spark: SparkSession, made: Any, **changes: Any) -> Any:
    """A copy of an object of a Scala case class with other values."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    values = gateway.new_array(_jvm(spark).java.lang.Object, made.productArity())
    names = made.productElementNames()
    for i in range(made.productArity()):
        values[i] = changes.get(names.next(), made.productElement(i))
    return made.getClass().getConstructors()[0].newInstance(values)


def _exists(spark: SparkSession, place: str) -> bool:
    path = _jvm(spark).org.apache.hadoop.fs.Path(place)
    return bool(path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(path))


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm
