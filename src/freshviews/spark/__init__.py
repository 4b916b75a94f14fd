"""Reads streams of changes with Spark, maintains views over them exactly, and writes the changes of the views.

::

    from freshviews.spark import Pipeline

    p = Pipeline(spark, checkpoint="ckpt")
    p.table("items", items_stream_df, changes="op")
    p.view("by_part", "SELECT part, SUM(qty) AS qty FROM items GROUP BY part")
    query = p.start()

Needs pyspark: ``pip install 'freshviews[spark]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freshviews.spark.pipeline import Pipeline
    from freshviews.spark.reading.data_source import register
    from freshviews.spark.running_query import Query
    from freshviews.spark.session import start_session

__all__ = [
    "Pipeline",
    "Query",
    "connectors",
    "declarative",
    "definition",
    "driver",
    "io",
    "java",
    "layout",
    "phases",
    "pipeline",
    "reading",
    "register",
    "running_query",
    "script",
    "session",
    "settings",
    "start_session",
    "state",
]

_PLACES = {"Pipeline": "pipeline", "Query": "running_query", "register": "reading.data_source", "start_session":
"session"}


def __getattr__(name: str) -> Any:
    """Import names that need pyspark on first use, so that reading a script does not need it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
