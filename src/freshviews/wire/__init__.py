"""Serves tables and views to clients of Arrow Flight SQL, over gRPC.

The server reads a database or a checkpoint through the interface ``Served``.
"""

__all__ = [
    "LOCKED_SECONDS",
    "RESULT_BYTES",
    "SELECT_SECONDS",
    "TOKEN",
    "FlightServer",
    "RefusedStatement",
    "Relation",
    "Rows",
    "Served",
    "ServedDatabase",
    "read_token",
]

from freshviews.wire.database import ServedDatabase
from freshviews.wire.served import (
    LOCKED_SECONDS,
    RESULT_BYTES,
    SELECT_SECONDS,
    RefusedStatement,
    Relation,
    Rows,
    Served,
)
from freshviews.wire.server import FlightServer
from freshviews.wire.tokens import TOKEN, read_token
