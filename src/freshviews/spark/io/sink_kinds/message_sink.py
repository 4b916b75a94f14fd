"""Writes the rows of a version as messages. Headers of each message have the version, and the number of the message.

After a crash, a version may be sent again, with equal messages in equal order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from freshviews.catalog.definitions import TableDef
from freshviews.spark.connectors.declarations import SECONDS, UPSERT, value_of
from freshviews.spark.definition import TableSpec, ViewSpec
from freshviews.spark.io.sink_kinds.key_changes import BadKey, last_rows
from freshviews.spark.io.sink_kinds.sink_files import json_objects
from freshviews.spark.io.sources import can_be_opened
from freshviews.types.columns import MULTIPLICITY

VIEW, VERSION, ROW, ROWS = "_view", "_version", "_row", "_rows"
"""Headers of a message: the view, the version, the message's number in the version from 0, and how many there are."""

_CLOCKS = 600
"""Maximum difference of the clocks of driver, executors and brokers, in seconds."""


def deliver_messages(spark: SparkSession, view: ViewSpec, rows: pa.Table, version: int, since: float | None) -> None:
    """Write the messages of a version. ``since``: the version may have been delivered in part after this time, in
    seconds since 1970; messages that exist are not written again. Raises Spark's errors, and BadKey."""
    found = messages(view, rows, version)
    if since is not None:
        found = without(found, _delivered_numbers(spark, view, version, since))
    if found.num_rows:
        # One task, so that a partition of the topic gets them in order.
        frame = spark.createDataFrame(found).coalesce(1)
        frame.write.format(str(view.provider)).options(**view.options).mode("append").save()


def messages(view: ViewSpec, rows: pa.Table, version: int) -> pa.Table:
    """Columns key, value and headers. Changes: a message per row, with its sign. Upsert: a message per key, with the
    new row or no value. ``rows`` have ``_multiplicity``. Raises BadKey."""
    written = view.written
    assert written is not None
    whole = rows.combine_chunks()
    if view.output == UPSERT:
        keyed, here = last_rows(whole, written.key)
        texts = _texts(keyed)
        values = pc.if_else(here, texts, pa.scalar(None, texts.type))
    else:
        values = _texts(whole.append_column(VERSION, pa.array(np.full(whole.num_rows, version, np.int64))))
        keyed = whole
    names = written.key or tuple(name for name in keyed.schema.names if name != MULTIPLICITY)
    keys = keyed.select(list(names))
    shown = _key_text(keys) if written.text else _texts(keys)
    return pa.table({"key": shown, "value": values, "headers": _headers(view.name, version, keyed.num_rows)})


def without(found: pa.Table, numbers: Collection[int]) -> pa.Table:
    """Messages except those with these numbers."""
    kept = np.ones(found.num_rows, np.bool_)
    kept[[number for number in numbers if number < found.num_rows]] = False
    return found.filter(pa.array(kept))


def _texts(rows: pa.Table) -> pa.Array:
    batches = rows.combine_chunks().to_batches()
    return pa.concat_arrays([json_objects(batch) for batch in batches]) if batches else pa.array([], pa.string())


def _key_text(keys: pa.Table) -> pa.Array:
    (column,) = keys.columns
    if column.null_count:
        raise BadKey(
            f"a row has NULL in its key {keys.schema.names[0]}, which cannot be written as text; set keys 'json'"
        )
    return column.cast(pa.string())


def _headers(view: str, version: int, rows: int) -> pa.Array:
    """A list of the four headers for each row."""
    names = pa.array([VIEW, VERSION, ROW, ROWS]).take(pa.array(np.tile(np.arange(4), rows)))
    same = pa.array([view, str(version), str(rows)])
    numbers = pa.array(np.arange(rows)).cast(pa.string())
    places = np.tile([0, 1, 3, 2], rows)
    places[2::4] = 3 + np.arange(rows)
    values = pa.concat_arrays([same, numbers]).take(pa.array(places)).cast(pa.binary())
    each = pa.StructArray.from_arrays([names, values], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1) * 4, pa.int32()), each)


def _delivered_numbers(spark: SparkSession, view: ViewSpec, version: int, since: float) -> set[int]:
    """The numbers of the messages of a version that the topic has since a time. Raises Spark's errors."""
    options: dict[str, Any] = {name: value for name, value in view.options.items() if name.lower() != "topic"}
    options |= {
        "subscribe": value_of(view.options, "topic"),
        "includeHeaders": "true",
        "startingTimestamp": str(int((since - _CLOCKS) * 1000)),
        "startingOffsetsByTimestampStrategy": "latest",
    }

    def header(name: str) -> str:
        return f"CAST(try_element_at(filter(headers, h -> h.key = '{name}'), 1).value AS STRING)"

    try:
        frame = spark.read.format(str(view.provider)).options(**options).load()
        same = frame.where(F.expr(header(VIEW)) == F.lit(view.name)).where(F.expr(header(VERSION)) == str(version))
        return {int(row["number"]) for row in same.selectExpr(f"{header(ROW)} AS number").distinct().collect()}
    except PySparkException as error:
        if "UnknownTopicOrPartition" in str(error):
            return set()  # the topic is made with its first message
        raise


def broker_is_read(session: Callable[[], SparkSession], spec: TableSpec, table: TableDef) -> None:
    """Ask a broker for the topics that a table subscribes to. Raises SourceError, ConnectionError, what Py4J raises."""
    can_be_opened(session, spec, table)
    topics = [topic.strip() for topic in value_of(spec.options, "subscribe").split(",")]
    _ask(session(), spec.options, [topic for topic in topics if topic])


def broker_is_written(session: Callable[[], SparkSession], view: ViewSpec) -> None:
    """Ask a broker for its cluster; the topic is created with its first message. Raises ConnectionError, and errors of
    Spark and Py4J."""
    topic = value_of(view.options, "topic")
    # Spark connects later, but reports a missing connector now.
    session().read.format(str(view.provider)).options(**{**view.options, "subscribe": topic}).load()
    _ask(session(), view.options, [])


def _ask(spark: SparkSession, options: Mapping[str, str], topics: Sequence[str]) -> None:
    """Ask a broker for its nodes and for topics. Options with ``kafka.`` before their name are those of its clients."""
    jvm = spark._jvm
    own = "kafka."
    given = jvm.java.util.Properties()
    for name, value in options.items():
        if name.lower().startswith(own):
            given.setProperty(name[len(own) :], value)
    for name in ("request.timeout.ms", "default.api.timeout.ms"):
        given.setProperty(name, str(SECONDS * 1000))
    client = jvm.org.apache.kafka.clients.admin.AdminClient.create(given)
    try:
        unit = jvm.java.util.concurrent.TimeUnit.SECONDS
        client.describeCluster().nodes().get(2 * SECONDS, unit)
        wanted = jvm.java.util.ArrayList()
        for topic in topics:
            wanted.add(topic)
        client.describeTopics(wanted).allTopicNames().get(2 * SECONDS, unit)
    except Py4JJavaError as error:
        if "TimeoutException" in str(error.java_exception.toString()):
            raise ConnectionError(f"no broker answers within {SECONDS} seconds") from error
        raise
    finally:
        client.close(jvm.java.time.Duration.ZERO)
