"""Translates column types between SQL and Spark, and writes the constants of DEFAULTs for Spark."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack

from pyspark.sql import types as T

from freshviews.catalog.catalog import column_named
from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.expr import casts
from freshviews.types import SqlType
from freshviews.types.sqltype import value_of_text

_DEFAULT = ("EXISTS_DEFAULT", "CURRENT_DEFAULT")
"""Spark's key of a DEFAULT's constant in the metadata of a field. Spark's file readers give the constant to rows
without the column."""

_TEXTS: dict[str, Callable[[int], str]] = {
    "BOOLEAN": lambda code: casts.bool_to_string(bool(code)),
    "FLOAT": lambda code: casts.float32_to_string(_double(code)),
    "DOUBLE": lambda code: casts.float_to_string(_double(code)),
    "DATE": casts.date_to_string,
    "TIMESTAMP": casts.timestamp_to_string,
}


def default_text(column: ColumnDef) -> str | None:
    """The constant of a column's DEFAULT as text that can be cast to its type; None for NULL, and without a DEFAULT."""
    value = None if column.default is None else column.default.value
    if column.type.wide and isinstance(value, str):
        value = value_of_text(value)
    if value is None or isinstance(value, str):
        return value
    if column.type.is_decimal:
        return casts.decimal_to_string(value, column.type.scale)
    return _TEXTS.get(column.type.name, str)(value)


def default_expression(column: ColumnDef) -> str:
    """The constant of a column's DEFAULT in SQL, of the column's type; NULL without one."""
    text = default_text(column)
    return f"CAST({'NULL' if text is None else text_literal(text)} AS {spark_type(column.type)})"


def with_defaults(schema: T.StructType, table: TableDef, every: bool = False) -> T.StructType:
    """A schema to read files with, in which rows without a column of the table have its DEFAULT. Columns that the
    schema lacks are added if they have a DEFAULT; with ``every``, the others are added, too, as NULL."""
    fields = []
    for one in schema.fields:
        column = column_named(table.columns, one.name)
        fields.append(one if column is None else _field(one, column))
    there = {one.name.lower() for one in schema.fields}
    for column in table.columns:
        if (every or column.default is not None) and column.name.lower() not in there:
            fields.append(_field(T.StructField(column.name, T._parse_datatype_string(spark_type(column.type))), column))
    return T.StructType(fields)


def _field(one: T.StructField, column: ColumnDef) -> T.StructField:
    if default_text(column) is None:
        return one
    return T.StructField(one.name, one.dataType, True, {**one.metadata, **dict.fromkeys(_DEFAULT, _cast(one, column))})


def with_default(schema: T.StructType) -> list[str]:
    """The fields of a schema that have a DEFAULT."""
    return [one.name for one in schema.fields if not set(_DEFAULT).isdisjoint(one.metadata)]


def _cast(one: T.StructField, column: ColumnDef) -> str:
    """The constant as a value of the type that is read, which may differ from the column's."""
    return f"CAST({text_literal(default_text(column) or '')} AS {one.dataType.simpleString()})"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A text as SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _double(code: int) -> float:
    found: float = unpack("<d", pack("<q", code))[0]
    return found


def spark_type(kind: SqlType) -> str:
    """The Spark name of a SQL type; timestamps have no zone."""
    return "timestamp_ntz" if kind.name == "TIMESTAMP" else str(kind).lower()


def sql_type(kind: T.DataType) -> str | None:
    """The SQL type of a column of a DataFrame; None if there is none."""
    if isinstance(kind, T.DecimalType):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    known: dict[type[T.DataType], str] = {
        T.BooleanType: "BOOLEAN",
        T.ByteType: "TINYINT",
        T.ShortType: "SMALLINT",
        T.IntegerType: "INT",
        T.LongType: "BIGINT",
        T.FloatType: "FLOAT",
        T.DoubleType: "DOUBLE",
        T.StringType: "STRING",
        T.DateType: "DATE",
        T.TimestampType: "TIMESTAMP",
        T.TimestampNTZType: "TIMESTAMP",
    }
    return known.get(type(kind))
