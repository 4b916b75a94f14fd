"""The functions that a SELECT may call: Spark's names, and what they are in sqlglot and in DuckDB.

A call of any other name is refused before DuckDB sees it, so nothing reaches its files, settings and extensions.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser

from freshviews.catalog.catalog import near
from freshviews.errors import SqlError
from freshviews.sql import FUNCTION_NAMES
from freshviews.sql.expressions.functions import FUNCTIONS
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.refuse import REFUSED_FUNCTIONS
from freshviews.sql.text.typenames import type_of

_REFUSED = frozenset(REFUSED_FUNCTIONS) | {"cofactor", "provenance", "covar_matrix", "corr_matrix", "category"}
ACCEPTED = FUNCTION_NAMES - _REFUSED
"""Names of functions that a SELECT may call, in lower case."""


_CASTS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date", "timestamp")


def name_functions(text: SqlText, tree: Node) -> None:
    """Replace calls that are kept as written by sqlglot's nodes. Raises SqlError for an unknown function, and for
    arguments that it does not take."""
    for node in reversed(list(tree.find_all(exp.Anonymous, exp.Cast))):
        made = _call(text, node) if isinstance(node, exp.Anonymous) else _cast(text, node)
        if made is not node:
            for key, value in node.meta.items():
                made.meta.setdefault(key, value)
            node.replace(made)


def _cast(text: SqlText, node: exp.Func) -> Node:
    """A CAST; sqlglot reads Spark's as TRY_CAST, and TRY_CAST as one that is safe."""
    if node.args.get("format"):
        raise text.unsupported(node, "CAST with a FORMAT", "use CAST without it, or date_format")
    type_of(text, node.args["to"])
    return node if node.args.get("safe") else exp.Cast(this=node.this, to=node.args["to"])


def _call(text: SqlText, call: exp.Anonymous) -> Node:
    name = call.name.lower()
    if name in _REFUSED:
        raise text.unsupported(call, f"function {name}", "a view may have it")
    if name not in ACCEPTED:
        raise SqlError(f"unknown function {name}{near(name, ACCEPTED)}", *text.at(call))
    arguments = list(call.expressions)
    known = FUNCTIONS.get(name)
    if known is not None and not known.least <= len(arguments) <= known.greatest:
        raise _misused(text, call)
    if name in _CASTS and len(arguments) == 1:
        return exp.Cast(this=arguments[0], to=exp.DataType.build(name, dialect="spark"))
    build = SparkParser.FUNCTIONS.get(name.upper())
    if build is None:
        return call
    try:
        made: Node = build(arguments)
        wrong = made.error_messages(arguments)
    except Exception:  # A builder reads arguments that are not there.
        raise _misused(text, call) from None
    if wrong:
        raise _misused(text, call)
    return made


def _misused(text: SqlText, call: exp.Anonymous) -> SqlError:
    return SqlError(f"{call.name.lower()} takes another number of arguments, or others", *text.at(call))
