"""Evaluates a SELECT over the views of a checkpoint by Spark, which is started for this SELECT."""

from __future__ import annotations

import re

import pyarrow as pa
from pyspark.errors import PySparkException

from freshviews.errors import SqlError
from freshviews.spark.reading.contents import contents
from freshviews.spark.session import start_session
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.store import Store


def select_on_spark(store: Store, manifest: Manifest, sql: str) -> pa.Table:
    """The result of a SELECT at a version. Only the views that it names are loaded. Starts Spark, and ends it.

    Raises SqlError if Spark refuses the SELECT.
    """
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    spark = start_session("local[1]", quiet=True)
    try:
        for view in manifest.views:
            if view.lower() in words:
                spark.createDataFrame(contents(store, manifest, view)).createOrReplaceTempView(view)
        return spark.sql(sql).toArrow()
    except PySparkException as error:
        message = (str(error).strip().splitlines() or ["the query failed"])[0]
        if message.startswith("[TABLE_OR_VIEW_NOT_FOUND]"):
            message += f" The views are {', '.join(manifest.views)}."
        raise SqlError(message) from error
    finally:
        spark.stop()
