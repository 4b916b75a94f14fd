"""COFACTOR and the matrices in both spellings of SQL: DuckDB recomputes each number by plain sums."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement

from tests.agreement.choices import Choices
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import Expressions, Term


def cofactor_item(choose: Choices, expressions: Expressions) -> Term:
    """An item of a SELECT list that is several columns, of integer arguments. Its kind is ``matrix``."""
    args = [expressions.any("int", choose.between(0, 1)).text for _ in range(choose.between(2, 3))]
    kind = choose.pick(("cofactor", "cofactor", "covar_matrix", "corr_matrix"))
    return Term(matrix(kind, args, "m"), "matrix")


def sums_item(choose: Choices, expressions: Expressions) -> Term:
    """The sums of all products of four doubles, enough for a loop to add them. The kind is ``matrix``."""
    args = [expressions.any("double", choose.between(0, 1)).text for _ in range(4)]
    return Term(Text(_sums([arg.spark for arg in args]), _sums([arg.duck for arg in args])), "matrix")


def _sums(args: Sequence[str]) -> str:
    """The sums of all products as columns, without a name for the last one."""
    columns = [f"SUM(({one}) * ({other}))" for one, other in combinations_with_replacement(args, 2)]
    return ", ".join([*(f"{column} AS product{i}" for i, column in enumerate(columns[:-1])), columns[-1]])


def matrix(kind: str, args: Sequence[Text], tag: str) -> Text:
    """The call, and the columns by their definitions, without a name for the last one. ``tag`` begins their names.

    Of covariances and correlations, the arguments must be integers: DuckDB's numerators are then exact.
    """
    known = " AND ".join(f"({arg.duck}) IS NOT NULL" for arg in args)

    def total(*factors: int) -> str:
        product = " * ".join(f"({args[i].duck})" for i in factors)
        return f"SUM({product}) FILTER (WHERE {known})"

    count = f"COUNT(*) FILTER (WHERE {known})"
    numbers = range(len(args))
    pairs = list(combinations_with_replacement(numbers, 2))

    def comoment(i: int, j: int) -> str:
        return f"CAST({count} * {total(i, j)} - {total(i)} * {total(j)} AS DOUBLE)"

    if kind == "cofactor":
        columns = [count, *(total(i) for i in numbers), *(total(*pair) for pair in pairs)]
    elif kind == "covar_matrix":
        columns = [f"CASE WHEN {count} > 1 THEN {comoment(*pair)} / {count} / ({count} - 1) END" for pair in pairs]
    else:
        columns = [
            f"CASE WHEN {comoment(i, i)} > 0 AND {comoment(j, j)} > 0"
            f" THEN {comoment(i, j)} / sqrt({comoment(i, i)}) / sqrt({comoment(j, j)}) END"
            for i, j in combinations(numbers, 2)
        ]
    named = [f"{column} AS {tag}{i}" for i, column in enumerate(columns[:-1])]
    return Text(f"{kind.upper()}({', '.join(arg.spark for arg in args)})", ", ".join([*named, columns[-1]]))
