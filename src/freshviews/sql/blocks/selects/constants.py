"""Binds VALUES: converts the rows to constants, and finds the types of the columns."""

from __future__ import annotations

from sqlglot import exp

from freshviews.catalog.definitions import ColumnDef, ConstantRow
from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import VOID, Fault
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import STRING


def constant_rows(text: SqlText, node: exp.Values) -> tuple[tuple[ColumnDef, ...], tuple[ConstantRow, ...]]:
    """The columns, named col1, col2, ... as in Spark, and the rows of VALUES. Raises SqlError with the place."""

    def refused(column: exp.Column) -> Expr:
        raise text.error(
            column,
            f"{text.of(column)} is a column, and VALUES accepts only constants; write SELECT ... FROM for columns",
        )

    binder = Binder(text, refused, "VALUES")
    nodes = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    for row, of_row in zip(node.expressions, nodes, strict=True):
        if len(of_row) != len(nodes[0]):
            raise text.error(row, f"a row of VALUES has {len(of_row)} columns, but the first one has {len(nodes[0])}")
    bound = [[binder.bind(one) for one in of_row] for of_row in nodes]
    columns: list[ColumnDef] = []
    values: list[list[str | int | float | bool | None]] = []
    for i in range(len(nodes[0])):
        try:
            of = logic.common_type([row[i] for row in bound], f"column {i + 1} of VALUES")
            found = [_constant(text, row[i], cast(one[i], of)) for row, one in zip(nodes, bound, strict=True)]
        except Fault as fault:
            raise text.error(node, str(fault)) from None
        columns.append(ColumnDef(f"col{i + 1}", STRING if of == VOID else of, any(one.value is None for one in found)))
        values.append([one.value for one in found])
    return tuple(columns), tuple(zip(*values, strict=True))


def _constant(text: SqlText, node: Node, expr: Expr) -> Literal:
    if not isinstance(expr, Literal):
        what = f"{text.of(node)} in VALUES, which is not computed at CREATE,"
        raise text.unsupported(node, what, "write SELECT ... UNION ALL SELECT ..., which accepts any expression")
    return expr
