"""COFACTOR and the matrices in both dialects of SQL: DuckDB recomputes each number by plain sums."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations, combinations_with_replacement

from tests.agreement.choices import Choices
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import Expressions, Term


def cofactor_item(choose: Choices, expressions: Expressions) -> Term:
    """An item of a SELECT list with several columns, over integers and categories. Its kind is ``matrix``."""
    args = [expressions.any("int", choose.between(0, 1)).text for _ in range(choose.between(2, 3))]
    kind = choose.pick(("cofactor", "cofactor", "covar_matrix", "corr_matrix"))
    if kind != "cofactor" or not choose.chance(60):
        return Term(matrix(kind, args, "m"), "matrix")
    categories = [_category(choose, expressions) for _ in range(choose.pick((1, 1, 2, 2, 3)))]
    args = [*args[: choose.between(0, 2)], *categories]
    rows = expressions.predicate(depth=1).text if choose.chance(20) else None
    return Term(matrix(kind, args, "m", range(len(args) - len(categories), len(args)), rows), "matrix")


def _category(choose: Choices, expressions: Expressions) -> Text:
    """A category: a column that both sides print alike in JSON, or an expression."""
    columns = [one for one in expressions.columns if one.kind in ("int", "string", "date", "bool")]
    if columns and choose.chance(70):
        return choose.pick(columns).text
    return expressions.any(choose.pick(("int", "string", "date", "bool")), 1).text


def sums_item(choose: Choices, expressions: Expressions) -> Term:
    """The sums of all products of four doubles, enough for a loop to add them. The kind is ``matrix``."""
    args = [expressions.any("double", choose.between(0, 1)).text for _ in range(4)]
    return Term(Text(_sums([arg.spark for arg in args]), _sums([arg.duck for arg in args])), "matrix")


def _sums(args: Sequence[str]) -> str:
    """The sums of all products as columns; the last one has no name."""
    columns = [f"SUM(({one}) * ({other}))" for one, other in combinations_with_replacement(args, 2)]
    return ", ".join([*(f"{column} AS product{i}" for i, column in enumerate(columns[:-1])), columns[-1]])


def matrix(
    kind: str, args: Sequence[Text], tag: str, categories: Collection[int] = (), rows: Text | None = None
) -> Text:
    """The call, and the columns by their definitions; the last one has no name. ``tag`` begins their names.

    Arguments of covariances and correlations must be integers: DuckDB's numerators are then exact. ``categories``:
    positions of the categories of a cofactor. ``rows``: the predicate of FILTER.
    """
    known = " AND ".join(f"({arg.duck}) IS NOT NULL" for arg in args)
    known += f" AND ({rows.duck})" if rows is not None else ""

    def total(*factors: int) -> str:
        product = " * ".join(f"({args[i].duck})" for i in factors)
        return f"SUM({product}) FILTER (WHERE {known})"

    count = f"COUNT(*) FILTER (WHERE {known})"
    numbers = range(len(args))
    pairs = list(combinations_with_replacement(numbers, 2))

    def comoment(i: int, j: int) -> str:
        return f"CAST({count} * {total(i, j)} - {total(i)} * {total(j)} AS DOUBLE)"

    if kind == "cofactor":
        entries = [*((i,) for i in numbers), *((i, j) for i, j in pairs if i != j or i not in categories)]
        columns = [count]
        for entry in entries:
            keys = [args[i].duck for i in entry if i in categories]
            number = next((args[i].duck for i in entry if i not in categories), "1")
            columns.append(_relation(keys, number, known) if keys else total(*entry))
    elif kind == "covar_matrix":
        columns = [f"CASE WHEN {count} > 1 THEN {comoment(*pair)} / {count} / ({count} - 1) END" for pair in pairs]
    else:
        columns = [
            f"CASE WHEN {comoment(i, i)} > 0 AND {comoment(j, j)} > 0"
            f" THEN {comoment(i, j)} / sqrt({comoment(i, i)}) / sqrt({comoment(j, j)}) END"
            for i, j in combinations(numbers, 2)
        ]
    named = [f"{column} AS {tag}{i}" for i, column in enumerate(columns[:-1])]
    given = ", ".join(f"CATEGORY({arg.spark})" if i in categories else arg.spark for i, arg in enumerate(args))
    filtered = f" FILTER (WHERE {rows.spark})" if rows is not None else ""
    return Text(f"{kind.upper()}({given}){filtered}", ", ".join([*named, columns[-1]]))


def _relation(keys: Sequence[str], number: str, known: str) -> str:
    """A sum for each combination of values, as a JSON array of arrays."""
    columns = ", ".join(f"k{i} := {one}" for i, one in enumerate(keys))
    rows = f"list(struct_pack({columns}, n := {number})) FILTER (WHERE {known})"
    own = ", ".join(f"k{i} := _row.k{i}" for i in range(len(keys)))
    shown = " || ', ' || ".join(f"CAST(to_json(_key.k{i}) AS VARCHAR)" for i in range(len(keys)))
    distinct = f"list_sort(list_distinct(list_transform({rows}, lambda _row: struct_pack({own}))))"
    same = f"list_filter({rows}, lambda _row: struct_pack({own}) = _key)"
    total = f"list_sum(list_transform({same}, lambda _row: _row.n))"
    listed = f"list_transform({distinct}, lambda _key: '[' || {shown} || ', ' || {total} || ']')"
    return f"COALESCE('[' || array_to_string({listed}, ', ') || ']', '[]')"
