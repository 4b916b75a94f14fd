"""Lets SQLAlchemy open a database: ``create_engine("freshviews:///folder")``, or ``"freshviews://"`` in memory.

Each statement is committed at once, so ``rollback`` undoes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlalchemy import types
from sqlalchemy.engine import default
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.pool import StaticPool
from sqlalchemy.sql import compiler

from freshviews.wire import Relation

_TYPES: Mapping[pa.DataType, types.TypeEngine[Any]] = {
    pa.bool_(): types.BOOLEAN(),
    pa.int8(): types.SMALLINT(),
    pa.int16(): types.SMALLINT(),
    pa.int32(): types.INTEGER(),
    pa.int64(): types.BIGINT(),
    pa.float32(): types.REAL(),
    pa.float64(): types.DOUBLE(),
    pa.date32(): types.DATE(),
}


class _Names(compiler.IdentifierPreparer):
    """Names stand in backquotes."""

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`", escape_quote="`")


class _TypeNames(compiler.GenericTypeCompiler):
    """The names of Spark's types."""

    def visit_VARCHAR(self, type_: Any, **named: Any) -> str:
        return f"VARCHAR({type_.length})" if type_.length else "STRING"

    def visit_TEXT(self, type_: Any, **named: Any) -> str:
        return "STRING"

    visit_NVARCHAR = visit_VARCHAR
    visit_CLOB = visit_TEXT

    def visit_INTEGER(self, type_: Any, **named: Any) -> str:
        return "INT"

    def visit_REAL(self, type_: Any, **named: Any) -> str:
        return "FLOAT"

    def visit_FLOAT(self, type_: Any, **named: Any) -> str:
        return "DOUBLE"

    visit_DOUBLE = visit_FLOAT
    visit_DOUBLE_PRECISION = visit_FLOAT

    def visit_DATETIME(self, type_: Any, **named: Any) -> str:
        return "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME

    def visit_NUMERIC(self, type_: Any, **named: Any) -> str:
        return f"DECIMAL({type_.precision or 18}, {type_.scale or 0})"

    visit_DECIMAL = visit_NUMERIC


class FreshviewsDialect(default.DefaultDialect):
    """Tables, views and plain views, their columns and keys, and SELECT; DDL of tables without foreign keys.

    An engine has one connection, which its threads share, because a folder can be opened only once at a time.
    SQLAlchemy's transactions do not begin a batch: each statement is a version, and ``rollback`` takes nothing back
    (``Connection``).
    """

    name = "freshviews"
    driver = "dbapi"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = False
    supports_default_values = False
    supports_sequences = False
    preparer = _Names
    type_compiler_cls = _TypeNames

    @classmethod
    def import_dbapi(cls) -> Any:
        from freshviews import dbapi

        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> Any:
        return StaticPool

    def create_connect_args(self, url: URL) -> tuple[Sequence[Any], dict[str, Any]]:
        return [url.database or None], dict(url.query)

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **named: Any) -> bool:
        return _named(connection, table_name) is not None

    def get_table_names(self, connection: Any, schema: str | None = None, **named: Any) -> list[str]:
        return [one.name for one in _relations(connection) if one.is_table]

    def get_view_names(self, connection: Any, schema: str | None = None, **named: Any) -> list[str]:
        return [one.name for one in _relations(connection) if not one.is_table]

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **named: Any) -> Any:
        return [
            {"name": field.name, "type": _type(field.type), "nullable": field.nullable, "default": None}
            for field in _found(connection, table_name).schema
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **named: Any) -> Any:
        return {"name": None, "constrained_columns": [*_found(connection, table_name).key]}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **named: Any) -> Any:
        return []

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **named: Any) -> Any:
        return []

    def get_schema_names(self, connection: Any, **named: Any) -> list[str]:
        return []

    def _get_server_version_info(self, connection: Any) -> Any:
        return None

    def _get_default_schema_name(self, connection: Any) -> Any:
        return None


def _relations(connection: Any) -> Sequence[Relation]:
    found: Sequence[Relation] = connection.connection.dbapi_connection.relations()
    return found


def _named(connection: Any, name: str) -> Relation | None:
    return next((one for one in _relations(connection) if one.name.lower() == name.lower()), None)


def _found(connection: Any, name: str) -> Relation:
    found = _named(connection, name)
    if found is None:
        raise NoSuchTableError(name)
    return found


def _type(kind: pa.DataType) -> types.TypeEngine[Any]:
    if pa.types.is_decimal(kind):
        return types.DECIMAL(kind.precision, kind.scale)
    if pa.types.is_duration(kind):
        return types.Interval()
    return types.TIMESTAMP() if pa.types.is_timestamp(kind) else _TYPES.get(kind, types.TEXT())
