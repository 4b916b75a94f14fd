"""The front end emits only operations of the table, with the right number of arguments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from freshviews.catalog.definitions import ViewDef
from freshviews.errors import SqlError
from freshviews.expr.nodes import Call, Column, Expr
from freshviews.expr.ops import OPS
from freshviews.sql.expressions.build import nodes_of
from freshviews.sql.expressions.functions import FUNCTIONS
from freshviews.sql.text.refuse import REFUSED_FUNCTIONS
from tests.sql.printed import TABLES, catalog, view
from tests.sql.test_types import AGGREGATES, SCALARS

# Two or three arguments of each kind, so that some fit each function.
ARGUMENTS = [
    "", "a", "x", "p", "s", "d", "ts", "t", "a, b", "x, x", "p, 1", "s, 'b'", "s, 2", "d, 1", "'MONTH', ts",
    "d, 'MONTH'", "ts, 'yyyy'", "t, a, b", "s, 'b', 'c'", "s, 'b', 1", "s, 2, 'c'", "s, 1, 2", "a, b, c", "p, p",
    "MONTH, 1, ts", "d, d", "d, 'MON'", "s, 'yyyy'", "a, a, a", "'1 hour', ts", "ts, '1 hour'", "a, 1, 's', 's'",
    "ts, '1 hour', '2 hours', 1", "s, 256", "MONTH, ts, ts",
    "s, 'HOST'", "ts, 'UTC'", "'UTC', 'UTC', ts", "s, s, 1", "s, 10, 16", "x, x, x, 4", "2024, a, b, 1, 2, x",
    "c, c", "'YEAR', d", "unhex(s)", "s, 'utf-8'", "s, '999'", "p, '9.9'", "x, 1", "x, '9.9'",
]  # fmt: skip

OF_BINARY = ("binary", "unhex", "unbase64", "encode", "to_binary", "try_to_binary")
"""Functions whose value is no column."""


def expressions(one: ViewDef) -> Iterator[Expr]:
    for block in one.blocks:
        for query in (block.query, *(d.query for d in block.distinct)):
            for atom in query.atoms:
                yield from (*atom.columns, *atom.filters)
            yield from query.conditions
            yield from (lift.expr for a in query.aggregates for lift in a.lifts)
        yield from (o.expr for o in block.outputs)
        if block.having is not None:
            yield block.having


def check(one: ViewDef) -> set[str]:
    """The operations of a view, each checked against the table."""
    used = set()
    for expr in expressions(one):
        for node in nodes_of(expr):
            assert node.type.name != "VOID", expr
            if isinstance(node, Call):
                least, greatest = OPS[node.op].arity
                assert least <= len(node.args) <= (greatest or len(node.args)), node
                used.add(node.op)
            if isinstance(node, Column):
                assert node.name.isprintable(), expr
    return used


def test_every_operation_is_used_by_a_function() -> None:
    used: set[str] = set()
    for name in FUNCTIONS:
        taken = 0
        for arguments in ARGUMENTS:
            if not FUNCTIONS[name].least <= arguments.count(",") + bool(arguments) <= FUNCTIONS[name].greatest:
                continue
            try:
                called = f"{name}({arguments})"
                used |= check(view(f"SELECT {f'hex({called})' if name in OF_BINARY else called} AS y FROM r"))
                taken += 1
            except SqlError:
                continue
        assert taken, f"{name} takes none of the arguments"
    operators = [sql for sql, _ in SCALARS] + [
        "a < b", "a <> b", "s <= 'a'", "x <= x", "s > 'a'", "s >= 'b'", "s < e2", "x <> 1", "x = x", "x > 1",
        "x >= 1", "x < 1",
        f"a IN ({', '.join(map(str, range(1001)))})",
        "s IN ('a')", "s ILIKE 'a'", "s RLIKE 'a'", "x % 2", "x / 2", "-x", "t AND a = 1 OR t", "p > 1.5",
        "CAST(x AS INT)", "CAST(x AS DECIMAL(5, 1))", "CAST(x AS BOOLEAN)", "CAST(a AS BOOLEAN)",
        "CAST(s AS DOUBLE)", "CAST(s AS DECIMAL(5, 1))", "CAST(s AS DATE)", "CAST(s AS TIMESTAMP)",
        "CAST(s AS BOOLEAN)", "CAST(ts AS DATE)", "CAST(ts AS STRING)", "CAST(t AS STRING)",
        "CAST(x AS STRING)", "CAST(f AS STRING)", "CAST(p AS STRING)", "CAST(p AS DOUBLE)",
        "CAST(p AS INT)", "CAST(a AS DECIMAL(5, 2))", "p * p * p * p", "p / a", "x - 1", "p <=> 1",
        "ts + INTERVAL 1 MONTH", "CAST(c AS TIMESTAMP)", "ceil(p)", "greatest(s, 'a')", "least(s, 'a')",
        "greatest(x, 1)", "least(x, 1)", "least(a, 1)", "d IS NOT NULL", "NOT t", "trim(LEADING 'x' FROM s)",
        "s - 1", "ltrim(s)", "rtrim(s)", "CAST(p AS DECIMAL(5, 1))", "a & b", "a | b", "a ^ b", "TRY_CAST(s AS INT)",
        "TRY_CAST(s AS DOUBLE)", "TRY_CAST(s AS DECIMAL(5, 1))", "TRY_CAST(s AS DATE)", "TRY_CAST(s AS TIMESTAMP)",
        "TRY_CAST(s AS BOOLEAN)", "CAST(s AS INTERVAL DAY)", "TRY_CAST(s AS INTERVAL MONTH)", "CAST(ts - ts AS STRING)",
        "w < p", "w <= p", "w > p", "w >= p", "w + p", "w - p", "w * w", "p * CAST(p AS DECIMAL(20, 2))", "w / p", "-w",
        "abs(w)", "w div p", "w % p", "pmod(w, p)", "round(w, 2)", "bround(w, 2)", "floor(w)", "ceil(w)",
        "CAST(w AS DOUBLE)", "CAST(w AS BOOLEAN)", "CAST(w AS BIGINT)", "CAST(x AS DECIMAL(38, 2))", "greatest(w, p)",
        "least(w, p)", "signum(w)",
    ]  # fmt: skip
    for sql in operators:
        inner = "SELECT *, s AS e2, CAST(p AS DECIMAL(38, 10)) AS w FROM r, k"
        used |= check(view(f"SELECT {sql} AS y FROM ({inner}) AS q"))
    for sql in ["sum(CAST(p AS DECIMAL(20, 2)))", *(sql for sql, _ in AGGREGATES)]:
        used |= check(view(f"SELECT {sql} AS y FROM r, k GROUP BY b"))
    moments = "CAST(s AS TIMESTAMP_LTZ) + INTERVAL 1 MONTH AS a, TRY_CAST(s AS TIMESTAMP_LTZ) AS b"
    used |= check(view(f"SELECT {moments} FROM r", catalog("SET TIME ZONE 'Europe/Berlin';" + TABLES)))
    # Decimals are rounded by scale_down and scale_up, which set the scale of the result; ASOF JOIN has
    # disjoint, and frames of windows have in_frame.
    # An @ is in the name of a user's function, which other tests register.
    unused = {op for op in OPS if "@" not in op} - used
    assert unused == {"round_decimal", "unless_failed", "disjoint", "in_frame", "third_moment", "fourth_moment"}


def test_no_function_is_both_accepted_and_refused() -> None:
    assert not set(FUNCTIONS) & set(REFUSED_FUNCTIONS)


@pytest.mark.parametrize("name", REFUSED_FUNCTIONS)
def test_the_error_says_that_a_refused_function_is_not_supported(name: str) -> None:
    with pytest.raises(SqlError, match="is not supported; "):
        view(f"SELECT {name}(a) AS y FROM r")
