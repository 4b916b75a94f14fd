"""A SELECT over the views of a checkpoint, at its last committed version, evaluated by Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException

from freshviews.errors import SqlError
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.session import start_session


def select(root: Path, sql: str) -> pa.Table:
    """Return the result of a SELECT. Only the views that it names are loaded.

    Raises StoreError if there is no version yet, SqlError if Spark refuses the SELECT.
    """
    manifest = latest(root)
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    spark = start_session("local[1]", quiet=True)
    try:
        for view in manifest.views:
            if view.lower() in words:
                spark.createDataFrame(contents(root, manifest, view)).createOrReplaceTempView(view)
        return spark.sql(sql).toArrow()
    except PySparkException as error:
        raise SqlError((str(error).strip().splitlines() or ["the query failed"])[0]) from error
    finally:
        spark.stop()
