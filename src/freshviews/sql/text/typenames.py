"""Converts SQL type names to types."""

from __future__ import annotations

from sqlglot import exp

from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    SqlType,
    declared_decimal,
    interval,
)

NAMED = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "BIGINT": BIGINT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "DATE": DATE,
    "BINARY": BINARY,
    # sqlglot reads Spark's TIMESTAMP as one with a time zone; here it has none, as TIMESTAMP_NTZ.
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP_LTZ,
}
"""Types by the names that sqlglot gives them."""

_ACCEPTED = (
    "accepted: BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, VARCHAR(n), BINARY, "
    "DATE, TIMESTAMP, TIMESTAMP_LTZ and INTERVAL with its fields, as in INTERVAL YEAR TO MONTH and INTERVAL DAY TO "
    "SECOND"
)
_LONGEST = 2**31 - 1


def type_of(text: SqlText, node: Node) -> SqlType:
    """The type that a DataType node names. Raises UnsupportedSql for another type, SqlError for invalid digits."""
    if not isinstance(node, exp.DataType):
        raise text.unsupported(node, f"type {text.of(node)}", _ACCEPTED)
    if isinstance(node.this, exp.Interval):
        return _interval(text, node)
    name = str(getattr(node.this, "value", node.this))
    if name == "DECIMAL":
        return _decimal(text, node)
    if name not in NAMED or node.expressions:
        raise text.unsupported(node, f"type {text.of(node)}", _ACCEPTED)
    return NAMED[name]


def column_type(text: SqlText, node: Node) -> tuple[SqlType, int]:
    """The type with which a column is declared, and the most characters of its values, 0 for no limit."""
    if not isinstance(node, exp.DataType) or node.this != exp.DataType.Type.VARCHAR or not node.expressions:
        return type_of(text, node), 0
    digits = node.expressions[0].name
    if len(node.expressions) > 1 or not digits.isdecimal() or not 1 <= int(digits) <= _LONGEST:
        raise text.error(node, f"{text.of(node)} is not a type; the length of a VARCHAR is one number, 1 to {_LONGEST}")
    return STRING, int(digits)


def _interval(text: SqlText, node: exp.DataType) -> SqlType:
    unit = node.this.args["unit"]
    first, last = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit, unit)
    try:
        return interval(first.name, last.name)
    except ValueError as error:
        raise text.error(node, str(error)) from None


def _decimal(text: SqlText, node: exp.DataType) -> SqlType:
    words = [part.name for part in node.expressions]
    if len(words) > 2 or not all(word.removeprefix("-").isdecimal() and len(word) < 10 for word in words):
        what = f"{text.of(node)} is not a type; a DECIMAL has a precision and a scale, as in DECIMAL(12, 2)"
        raise text.error(node, what)
    digits = list(map(int, words))
    precision = digits[0] if digits else 10
    scale = digits[1] if len(digits) > 1 else 0
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise text.error(
            node,
            f"DECIMAL({precision}, {scale}) is not a type; the precision is 1 to 38, the scale at most the precision",
        )
    return declared_decimal(precision, scale)
