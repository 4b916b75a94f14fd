"""SQL types, their 64-bit codes, NULL, and the dictionary of strings."""

from freshviews.types.sqltype import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    SqlType,
    decimal,
)

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "NULL",
    "SMALLINT",
    "STRING",
    "TIMESTAMP",
    "TINYINT",
    "SqlType",
    "decimal",
]
