"""Defines the SQL types, and represents each value by a code, an int64. Strings get their codes from a dictionary.

Converts Python values and Arrow columns to codes, and back.
"""

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
    "frames",
    "json_text",
    "python_aggregates",
    "python_functions",
    "sorting",
    "sqltype",
    "values",
]
