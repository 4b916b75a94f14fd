"""Infers a CREATE TABLE statement from a data frame: each Arrow type becomes the SQL type that Spark uses for it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from freshviews.errors import ArgumentError
from freshviews.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    SqlType,
    declared_decimal,
)

_TYPES = {
    pa.bool_(): BOOLEAN,
    pa.int8(): TINYINT,
    pa.int16(): SMALLINT,
    pa.int32(): INT,
    pa.int64(): BIGINT,
    # Unsigned integers, as Spark reads those of Parquet.
    pa.uint8(): SMALLINT,
    pa.uint16(): INT,
    pa.uint32(): BIGINT,
    pa.uint64(): declared_decimal(20, 0),
    pa.float16(): FLOAT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.date32(): DATE,
    pa.date64(): DATE,
}


def sql_type(kind: pa.DataType) -> SqlType | None:
    """The SQL type of an Arrow type; None if there is none."""
    if pa.types.is_dictionary(kind):
        return sql_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_duration(kind):
        return DAY_TO_SECOND
    if pa.types.is_fixed_size_binary(kind):
        return BINARY
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return declared_decimal(kind.precision, kind.scale)
    return _TYPES.get(kind)


def table_statement(table: str, schema: pa.Schema, key: Sequence[str]) -> str:
    """The CREATE TABLE of a frame. Raises ArgumentError if a column has no SQL type, or ``key`` names none."""
    if not len(schema):
        raise ArgumentError(f"table {table}: the frame has no columns")
    names: dict[str, str] = {}
    for name in schema.names:
        if name.lower() in names:
            raise ArgumentError(
                f"table {table}: columns {names[name.lower()]} and {name} have the same name; rename one"
            )
        names[name.lower()] = name
    for name in key:
        if name.lower() not in names:
            raise ArgumentError(
                f"table {table}: the key names {name}, which is no column; the columns are {', '.join(schema.names)}"
            )
    parts = []
    for column in schema:
        kind = sql_type(column.type)
        if kind is None:
            of = "only NULLs" if pa.types.is_null(column.type) else f"values of the type {column.type}"
            of = "INTERVALs of months, days and nanoseconds" if pa.types.is_interval(column.type) else of
            raise ArgumentError(
                f"table {table}, column {column.name}: {of} have no SQL type; convert or drop the column, or "
                "execute CREATE TABLE and insert the rows"
            )
        parts.append(f"{quoted(column.name)} {kind}{'' if column.nullable else ' NOT NULL'}")
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
    return f"CREATE TABLE {quoted(table)} ({', '.join(parts)})"


def quoted(name: str) -> str:
    """A name in backquotes."""
    return "`" + name.replace("`", "``") + "`"
