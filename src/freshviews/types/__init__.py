"""Defines the SQL types, and represents each value by a code, an int64. Strings get their codes from a dictionary.

Converts Python values and Arrow columns to codes, and back.
"""

from freshviews.types.sqltype import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FIELD_UNITS,
    FIELDS,
    FLOAT,
    INT,
    NAN,
    NULL,
    RESERVED,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    YEAR_TO_MONTH,
    NotHeldError,
    SqlType,
    decimal,
    interval,
)

# Imports the types above.
from freshviews.types.dictionary import Dictionary  # isort: skip

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DAY_TO_SECOND",
    "DOUBLE",
    "FIELDS",
    "FIELD_UNITS",
    "FLOAT",
    "INT",
    "NAN",
    "NULL",
    "RESERVED",
    "SMALLINT",
    "STRING",
    "TIMESTAMP",
    "TINYINT",
    "YEAR_TO_MONTH",
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
    "interval",
    "json_text",
    "python_functions",
    "sorting",
    "sqltype",
    "values",
]
