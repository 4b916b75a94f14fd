"""Finds the streaming tables and file sinks of a project in which Spark 4.1 would leave out rows.

A *flow* is a query that writes rows into a table or sink, and Spark logs the files that it writes there. Spark leaves
out rows if several flows share this log, or if the log has entries from before a reset of a flow.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from freshviews.spark.declarative.catalog import location
from freshviews.spark.declarative.graph import Graph, Outlet, Selection

_FILES = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
_LOG = "_spark_metadata"


def lost_rows(graph: Graph, spark: SparkSession, chosen: Selection) -> list[str]:
    """A message for each table and sink of which a run leaves out rows, with the remedy."""
    found = (_lost(graph, spark, one, chosen) for one in graph.outlets() if one.format.lower() in _FILES)
    return [message for message in found if message]


def _lost(graph: Graph, spark: SparkSession, outlet: Outlet, chosen: Selection) -> str | None:
    name = outlet.parts[-1]
    kind = "sink" if outlet.is_sink else "streaming table"
    what = f"{outlet.place}: {kind} {name}"
    if len(outlet.flows) > 1:
        remedy = " to another path" if outlet.is_sink else f", then --full-refresh {name}"
        return (
            f"{what}: Spark leaves out rows of its flows {', '.join(outlet.flows)}, which share the log of its files; "
            f"write one flow with UNION ALL{remedy}; or give each flow a {kind} of its own"
        )
    where = outlet.path or location(spark, outlet.parts)
    resets = chosen.reset is None if outlet.is_sink else chosen.resets(".".join(outlet.parts).lower())
    # Spark empties a table that it resets, and not a sink.
    if where is None or (resets and not outlet.is_sink):
        return None
    log = graph.last_number(f"{where}/{_LOG}")
    for flow in outlet.flows:
        if (-1 if resets else graph.last_version(outlet, flow)) < log:
            remedy = "give it another path" if outlet.is_sink else f"--full-refresh {name} recomputes it"
            return (
                f"{what}: the log of its files has version {log} of another flow, or of this one before a reset, and "
                f"Spark leaves out the rows of flow {flow} up to that version; {remedy}"
            )
    return None
