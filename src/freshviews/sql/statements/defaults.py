"""Computes the constant of a DEFAULT once, when the column is declared."""

from __future__ import annotations

from math import isinf

from sqlglot import exp

from freshviews.catalog.definitions import ColumnDef, Default
from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.expressions.build import VOID, Fault
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import Dictionary, SqlType
from freshviews.types.values import NULL_REFUSED, literal_code, text_in, too_long

_CONSTANTS = "a constant such as 5, 'new' or DATE '2026-01-01' is accepted"


def default_of(text: SqlText, node: Node, column: ColumnDef, what: str = "") -> Default:
    """The constant after DEFAULT, or ``what`` is a constant of the type of a column. Raises SqlError with the place."""
    what = what or f"DEFAULT of column {column.name}"

    def refused(named: exp.Column) -> Expr:
        raise text.error(named, f"{what}: {text.of(named)} is a column; {_CONSTANTS}")

    given = Binder(text, refused, what).bind(node)
    try:
        found = _as(given, column.type)
    except Fault as fault:
        raise text.error(node, f"{what}, {text.of(node)} for {column.type}: {fault}") from None
    if not isinstance(found, Literal):
        raise text.unsupported(node, f"{what}: {text.of(node)}, which is not computed at CREATE,", _CONSTANTS)
    value = found.value
    if isinstance(value, str):
        if 0 < column.length < len(value):
            raise text.error(node, f"{what}: {too_long(column.length, len(value))}")
        return Default(value)
    kept = text_in(column.type, value)
    if kept is not None:
        return Default(kept)
    return Default(None if value is None else literal_code(column.type, value, Dictionary()))


def check_null(text: SqlText, node: Node, column: ColumnDef) -> None:
    """Refuse DEFAULT NULL of a column that is NOT NULL."""
    if not column.nullable and column.default == Default(None):
        raise text.error(node, f"DEFAULT of column {column.name}: {NULL_REFUSED}; leave out DEFAULT NULL")


def _as(given: Expr, to: SqlType) -> Expr:
    """A constant as a type that holds it. Raises Fault."""
    source = given.type
    found = cast(given, to)
    if VOID in (source, to) or source == to or (isinstance(given, Literal) and given.value is None):
        return found
    if "BOOLEAN" in (source.name, to.name) and to.name != "STRING":
        example = "TRUE or FALSE" if to.name == "BOOLEAN" else "a number"
        raise Fault(f"a constant of {source} is not a {to}; write {example}")
    infinite = isinstance(found, Literal) and isinstance(found.value, float) and isinf(found.value)
    if infinite and source.name != "STRING" and given != found:
        raise Fault(f"the value does not fit {to}")
    loses = source.name != "STRING" and to.name != "STRING" and (source.is_integer or not to.is_float)
    if loses and isinstance(found, Literal) and cast(found, source) != given:
        raise Fault("the value would be rounded; write the exact value")
    return found
