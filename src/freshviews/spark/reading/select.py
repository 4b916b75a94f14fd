"""Evaluates a SELECT over the views of a checkpoint, at its last committed version.

A plain SELECT (``plain_select``) is evaluated here, because Spark takes seconds to start. Spark evaluates all other
SELECTs, and reports their errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pyarrow as pa

from freshviews.catalog.catalog import unknown
from freshviews.errors import SqlError
from freshviews.spark.reading.contents import contents, latest, view_schema
from freshviews.spark.reading.plain_rows import selected
from freshviews.spark.reading.plain_select import NotPlain, UnknownName, parsed
from freshviews.spark.settings import need_spark, spark_home, sql_settings_of
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.store import Store

_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(\w+)", re.DOTALL)
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")


def select(store: Store, sql: str, manifest: Manifest | None = None) -> pa.Table:
    """Return the result of a SELECT at a version; None: the last one. Only the views that it names are loaded.

    Raises StoreError if there is no version yet, SqlError if the SELECT is refused, NoSpark if it is not plain
    and pyspark is not installed.
    """
    found = _FIRST_WORD.match(sql)
    word = found.group(1).upper() if found is not None else ""
    if word not in _QUERIES:
        raise SqlError(f"a SELECT over the views is accepted, not {word or 'an empty text'}")
    manifest = manifest or latest(store)
    try:
        return plainly_selected(store, manifest, sql)
    except UnknownName as error:
        raise SqlError(str(error)) from None
    except NotPlain:
        pass
    need_spark()
    from freshviews.spark.reading.spark_select import select_on_spark

    return select_on_spark(store, manifest, sql)


def plainly_selected(
    store: Store, manifest: Manifest, sql: str, read: Callable[[Store, Manifest, str], pa.Table] = contents
) -> pa.Table:
    """The result of a plain SELECT at a version, without Spark. ``read`` gives the contents of a view. Raises NotPlain
    for others."""
    query = parsed(sql)
    view = next((name for name in manifest.views if name.lower() == query.view.lower()), None)
    home = spark_home()
    # A setting of the user may change the meaning of the SELECT, such as case-sensitive names.
    if home is not None and sql_settings_of(os.environ, home):
        raise NotPlain
    if view is None:
        raise UnknownName(unknown("view", query.view, manifest.views))
    try:
        # Whether it is plain is decided without the rows, which are loaded afterwards.
        selected(query, view, pa.Table.from_batches([], view_schema(manifest, view)[1]))
        return selected(query, view, read(store, manifest, view))
    except RecursionError as error:
        raise NotPlain from error
