"""A SELECT over the views of a checkpoint, at its last committed version, evaluated by Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException

from freshviews.errors import SqlError
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.session import start_session

_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(\w+)", re.DOTALL)
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")


def select(root: Path, sql: str) -> pa.Table:
    """Return the result of a SELECT. Only the views that it names are loaded.

    Raises StoreError if there is no version yet, SqlError if Spark refuses the SELECT.
    """
    found = _FIRST_WORD.match(sql)
    word = found.group(1).upper() if found is not None else ""
    if word not in _QUERIES:
        raise SqlError(f"a SELECT over the views is accepted, not {word or 'an empty text'}")
    manifest = latest(root)
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    spark = start_session("local[1]", quiet=True)
    try:
        for view in manifest.views:
            if view.lower() in words:
                spark.createDataFrame(contents(root, manifest, view)).createOrReplaceTempView(view)
        return spark.sql(sql).toArrow()
    except PySparkException as error:
        message = (str(error).strip().splitlines() or ["the query failed"])[0]
        if message.startswith("[TABLE_OR_VIEW_NOT_FOUND]"):
            message += f" The views are {', '.join(manifest.views)}."
        raise SqlError(message) from error
    finally:
        spark.stop()
