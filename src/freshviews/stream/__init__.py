"""Converts batches of changes to signed rows, which a database applies.

A change format says which rows of a batch are inserted or deleted. A signed row has a multiplicity: 1 inserts the row
once, -1 deletes it once.

The examples in the docstrings of this package continue from here::

    >>> import freshviews as fv
    >>> import pyarrow as pa
    >>> from freshviews import stream
    >>> from freshviews.sql import Catalog, parse_script
    >>> [orders] = parse_script("CREATE TABLE orders (o_id INT PRIMARY KEY, qty INT)", Catalog())
    >>> db = fv.Database()
    >>> db.define([orders])
    >>> batch = pa.record_batch({"o_id": [1, 2, 2], "qty": [5, 7, 7], "op": ["insert", "insert", "delete"]})
    >>> signed = stream.signed_rows(batch, orders, stream.format_for("op"))
    >>> db.apply("orders", signed.rows)
    1
    >>> list(db.table("orders"))
    [(1, 5)]
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
