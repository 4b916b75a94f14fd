"""SQL types, their 64-bit codes, NULL, the dictionary of strings, and conversions between values and codes."""

from freshviews.types.sqltype import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NAN,
    NULL,
    RESERVED,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    NotHeldError,
    SqlType,
    decimal,
)

# Imports the types above.
from freshviews.types.dictionary import Dictionary  # isort: skip

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "NAN",
    "NULL",
    "RESERVED",
    "SMALLINT",
    "STRING",
    "TIMESTAMP",
    "TINYINT",
    "Dictionary",
    "NotHeldError",
    "SqlType",
    "arrow_check",
    "arrow_compute",
    "calendar",
    "columns",
    "decimal",
    "dictionary",
    "json_text",
    "sorting",
    "sqltype",
    "values",
]
