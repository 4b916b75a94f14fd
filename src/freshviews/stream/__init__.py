"""Streams of changes: batches in a change format become signed rows that a database applies.

::

    from freshviews.stream import format_for, signed_rows

    form = format_for("op", batch.schema.names)              # or "delta", "debezium", "upsert", ...
    signed = signed_rows(batch, table, form)                 # BadChange names row, column, value and reason
    db.apply("orders", signed.rows)

    signed = signed_rows(batch, table, form, set_aside=True)
    signed.bad                                               # row, column, value, reason, input

``formats`` lists the formats, ``words`` the words of an op column. ``events`` resolves changes by key to the rows they
replace.
"""

from freshviews.stream.events import Lookup
from freshviews.stream.formats import (
    AppendOnly,
    ChangeFormat,
    DebeziumJson,
    DeltaFeed,
    FormatError,
    Multiplicities,
    OpColumn,
    Snapshots,
    Upserts,
    deletes_keys,
    format_for,
    looks_up,
    own_columns,
)
from freshviews.stream.problems import BAD_SCHEMA, BadChange
from freshviews.stream.signed import SignedRows, keys_of_envelopes, signed_rows
from freshviews.stream.words import REMOVES

__all__ = [
    "BAD_SCHEMA",
    "REMOVES",
    "AppendOnly",
    "BadChange",
    "ChangeFormat",
    "DebeziumJson",
    "DeltaFeed",
    "FormatError",
    "Lookup",
    "Multiplicities",
    "OpColumn",
    "SignedRows",
    "Snapshots",
    "Upserts",
    "deletes_keys",
    "format_for",
    "formats",
    "keys_of_envelopes",
    "looks_up",
    "own_columns",
    "signed_rows",
]
