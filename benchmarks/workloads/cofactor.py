"""Cofactors of m variables over a join: the sums that a regression needs.

Over the star of ``benchmarks.workloads.star``: 350,000 rows of six tables, shuffled, in batches of 1,000; their join
has 2,025,000 rows. The view has the count, the sums of m columns and the sums of all their products, 1 + m + m (m + 1)
/ 2 numbers. With m = 27 these are all columns, including the post code; fewer are chosen from the tables in turn. Over
BIGINT the view is a list of SUMs, which every SQL has, and which freshviews stores as one cofactor. Over DOUBLE it is
``COFACTOR``, as freshviews stores sums of doubles separately. With m = 43 they are the columns of the snowflake of
``benchmarks.workloads.inventory``. No column can be NULL, as in the original data sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, zip_longest

import pyarrow as pa

from benchmarks.measuring.stream import Stream
from benchmarks.workloads import inventory, star

TITLE = "cofactor"
UNIT = "rows/s"
SIZES = (6, 9, 13, 18, 27)
SNOWFLAKE = "m = 43, snowflake"
CASES = (*(f"m = {m}" for m in SIZES), "m = 27, DOUBLE", SNOWFLAKE)


def variables_of(m: int) -> list[str]:
    """Columns as ``table.column``: one of each table, a second one of each, and so on; the post code is the last."""
    columns = [[f"{table}.{name}" for name in names.split()] for table, (_, names) in star.COLUMNS.items()]
    found = [one for row in zip_longest(*columns) for one in row if one is not None]
    return [*found, f"{star.FIRST}.postcode"][:m]


def sums_of(variables: Sequence[str]) -> str:
    """The numbers of a cofactor, each by an aggregate of its own."""
    products = combinations_with_replacement(variables, 2)
    terms = ["COUNT(*)", *(f"SUM({x})" for x in variables), *(f"SUM({x} * {y})" for x, y in products)]
    return ", ".join(f"{term} AS v{i}" for i, term in enumerate(terms))


def stream(case: str) -> Stream:
    """The stream of a case: ``m = 27``, then ``small`` for a tenth of the rows or ``DOUBLE`` for columns of doubles."""
    if case.startswith(SNOWFLAKE):
        variables = inventory.variables()
        view = f"SELECT {sums_of(variables)} {inventory.JOINED}"
        pattern = {"name": "cofactor", "variables": tuple(variables)}
        return replace(inventory.stream(view, case.endswith(", small")), pattern=pattern)
    size, _, more = case.partition(", ")
    variables = variables_of(int(size.removeprefix("m = ")))
    made = star.stream("shuffled, small" if more == "small" else "shuffled")
    described = {"name": "cofactor", "variables": tuple(variables)}
    kind = _double if more == "DOUBLE" else str
    relations = tuple(
        replace(one, columns=", ".join(f"{kind(column)} NOT NULL" for column in one.columns.split(", ")))
        for one in made.relations
    )
    if more != "DOUBLE":
        view = f"SELECT {sums_of(variables)} {star.JOINED}"
        return replace(made, relations=relations, view=view, pattern=described)
    steps = tuple(replace(step, rows=_doubles(step.rows)) for step in made.steps)
    view = f"SELECT COFACTOR({', '.join(variables)}) {star.JOINED}"
    return replace(made, relations=relations, steps=steps, view=view, pattern=described)


def _double(column: str) -> str:
    return column if column.startswith("postcode ") else column.replace("BIGINT", "DOUBLE")


def _doubles(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with all columns except the post code as doubles."""
    kinds = [(name, pa.int64() if name == "postcode" else pa.float64()) for name in rows.schema.names]
    return rows.cast(pa.schema(kinds))
