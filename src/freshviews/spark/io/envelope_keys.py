"""Extracts primary keys from Debezium envelopes, so that Spark can send each envelope to the cell for its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from freshviews.spark.io.columns import spark_type
from freshviews.spark.io.sources import PLACED, Source, places_of
from freshviews.stream import DebeziumJson, keys_of_envelopes

_KEY = "_key"
TAKEN = (_KEY, *PLACED)
"""Names of the extra columns for routing, next to those of a key."""


def routable(sources: Sequence[Source], cells: int) -> list[Source]:
    """Sources whose frames have the columns by which rows are routed to this many cells."""
    if cells == 1:
        return list(sources)
    return [_keyed(one, one.form) if isinstance(one.form, DebeziumJson) else one for one in sources]


def _keyed(source: Source, form: DebeziumJson) -> Source:
    table = source.table
    names = {name.lower() for name in table.keys[0]}
    kinds = {column.name: spark_type(column.type) for column in table.columns if column.name.lower() in names}

    def keys(texts: pa.Array) -> pa.Array:
        return keys_of_envelopes(pa.RecordBatch.from_arrays([texts], names=[form.column]), table, form)

    key_of = F.arrow_udf(keys, T.StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in kinds.items())))
    places = [place.alias(name) for name, place in zip(PLACED, places_of(source), strict=True)]
    frame = source.frame.select(*(F.col(f"`{name}`") for name in source.columns), *places)
    frame = frame.withColumn(_KEY, key_of(F.col(f"`{form.column}`"))).select("*", f"{_KEY}.*")
    return replace(source, frame=frame, columns={**source.columns, **kinds})
