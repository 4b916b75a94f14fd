"""Random scenarios of ``ORDER BY``, with LIMIT and without.

They read tables, joins, groups, set operations and views; joins read them.
"""

from __future__ import annotations

from tests.agreement.choices import Choices
from tests.agreement.random_tables import versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text

_R = BaseTable("r", (TableColumn("a", "BIGINT"), TableColumn("z", "DOUBLE"), TableColumn("w", "STRING")))
_S = BaseTable("s", (TableColumn("a", "BIGINT"), TableColumn("d", "DATE"), TableColumn("y", "DECIMAL(6, 2)")))
_T = BaseTable("t", (TableColumn("a", "BIGINT"), TableColumn("w", "STRING")), trusted=True)
_SELECTS = (
    ("a, z, w", "SELECT a, z, w FROM r"),
    ("w, z", "SELECT w, z FROM r"),
    ("w, b", "SELECT w, a + 1 AS b FROM r WHERE z < 1 OR a > 0"),
    ("u, a", "SELECT upper(w) AS u, a FROM r"),
    ("d, y", "SELECT d, y FROM s"),
    ("a, w", "SELECT a, w FROM t"),
    ("w", "SELECT DISTINCT w FROM r"),
    ("w, y, d", "SELECT r.w, s.y, s.d FROM r JOIN s ON r.a = s.a"),
    ("w, v", "SELECT r.w, t.w AS v FROM r JOIN t ON r.a = t.a"),
    ("w, n, d", "SELECT r.w, COUNT(*) AS n, MAX(s.d) AS d FROM r JOIN s ON r.a = s.a GROUP BY r.w"),
    ("n", "SELECT COUNT(*) AS n FROM s"),
    ("w, a", "SELECT w, a FROM (SELECT DISTINCT ON (w) w, a FROM r ORDER BY w, a NULLS FIRST) AS q"),
    ("b, n", "SELECT time_bucket(INTERVAL '3 days', d) AS b, COUNT(*) AS n FROM s GROUP BY 1"),
    ("w, a", "SELECT w, a FROM r UNION ALL SELECT w, a FROM t"),
    ("w, a", "SELECT w, a FROM r EXCEPT SELECT w, a FROM t"),
)
_SPARK_ORDERS = ("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
_DUCK_ORDERS = (" ASC NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST")


def top_scenario(choose: Choices) -> Scenario:
    """One view, or two of which the second reads the first, and some versions."""
    columns, select = choose.pick(_SELECTS)
    first = choose.pick((_ordered, _ordered, _ordered, _first_of_groups, _first_of_groups, _with_neighbours))
    views = [NamedView("v1", first(choose, select, columns.split(", ")))]
    if choose.chance(60):
        x = columns.split(", ")[0]
        text, shown = choose.pick(
            (
                (f"SELECT {columns} FROM v1", columns),
                (f"SELECT {x} AS k, COUNT(*) AS n FROM v1 GROUP BY {x}", "k, n"),
                (f"SELECT p.{x} AS p, q.{x} AS q FROM v1 AS p JOIN v1 AS q ON p.{x} = q.{x}", "p, q"),
            )
        )
        query = _ordered(choose, text, shown.split(", ")) if choose.chance(60) else Text.same(text)
        views.append(NamedView("v2", query))
    tables = (_R, _S, _T)
    return Scenario(tables, tuple(views), versions(choose, tables, False))


def _first_of_groups(choose: Choices, select: str, columns: list[str]) -> Text:
    """The rows of a query with the first numbers, or ranks, in each group."""
    call, how = choose.pick(("ROW_NUMBER", "ROW_NUMBER", "RANK", "DENSE_RANK")), choose.between(0, 3)
    by = choose.pick(("", *columns))
    at = choose.pick([column for column in columns if column != by] or columns)
    rest = [column for column in columns if column != at] if call == "ROW_NUMBER" else []
    partition = f"PARTITION BY {by} " if by else ""
    overs = [
        f"{partition}ORDER BY {', '.join((at + orders[how], *(column + orders[0] for column in rest)))}"
        for orders in (_SPARK_ORDERS, _DUCK_ORDERS)
    ]
    test = choose.pick(("<= 2", "<= 3", "< 2", "= 1", "= 2", "BETWEEN 2 AND 4", "> 1", "IS NOT NULL"))
    if choose.chance(30):
        return Text(*(f"SELECT * FROM ({select}) AS q QUALIFY {call}() OVER ({over}) {test}" for over in overs))
    shown = choose.pick((", place", "", f", {columns[0]} AS c"))
    numbered = [f"SELECT *, {call}() OVER ({over}) AS place FROM ({select}) AS q" for over in overs]
    return Text(*(f"SELECT {', '.join(columns)}{shown} FROM ({one}) AS p WHERE place {test}" for one in numbered))


def _with_neighbours(choose: Choices, select: str, columns: list[str]) -> Text:
    """The rows of a query with a value of an earlier or later row, or of the first or last one, or with their
    numbers."""
    by, of, how = choose.pick(("", *columns)), choose.pick(columns), choose.between(0, 3)
    at = choose.pick([column for column in columns if column != by] or columns)
    whole = " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    call, frame = choose.pick(
        (
            (f"LAG({of})", ""),
            (f"LEAD({of}, {choose.between(1, 3)})", ""),
            (f"LAG({of}, 2, {of})", ""),
            (f"FIRST_VALUE({of})", ""),
            (f"LAST_VALUE({of})", whole),
            (f"NTH_VALUE({of}, 2)", whole),
            ("ROW_NUMBER()", ""),
            (f"COUNT({of})", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
            (f"COUNT({of})", " RANGE UNBOUNDED PRECEDING"),
            (f"MAX({of})", " RANGE UNBOUNDED PRECEDING"),
        )
    )
    # Rows that are equal in ORDER BY have one value.
    rest = [] if frame.startswith(" RANGE") and choose.chance(80) else [column for column in columns if column != at]
    made = []
    for orders in (_SPARK_ORDERS, _DUCK_ORDERS):
        keys = ", ".join((at + orders[how], *(column + orders[0] for column in rest)))
        over = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {keys}{frame}"
        made.append(f"SELECT *, {call} OVER ({over}) AS value FROM ({select}) AS q")
    return Text(*made)


def _ordered(choose: Choices, select: str, columns: list[str]) -> Text:
    """The first rows of a query, or all. DuckDB sorts by all columns, Spark's SQL by some of them."""
    spark, duck, rest = [], [], list(columns)
    if choose.chance(25) and "DISTINCT" not in select:
        # A column that the view does not show.
        spark.append(f"{columns[-1]} IS NULL")
        duck.append(f"{columns[-1]} IS NULL")
    for _ in range(choose.between(1, len(columns))):
        column, how = choose.pick(columns), choose.between(0, 3)
        if choose.chance(20):
            spark.append(f"{columns.index(column) + 1}{_SPARK_ORDERS[how]}")
        else:
            spark.append(f"{column}{_SPARK_ORDERS[how]}")
        duck.append(f"{column}{_DUCK_ORDERS[how]}")
        if column in rest:
            rest.remove(column)
    duck += [f"{column}{_DUCK_ORDERS[0]}" for column in rest]
    limit = f"LIMIT {choose.pick((1, 2, 2, 3, 3, 5, 0))}"
    if choose.chance(30):
        limit += f" OFFSET {choose.between(0, 3)}"
    limit = "" if choose.chance(20) else limit
    if limit and choose.chance(15):
        # LIMIT alone keeps the least rows.
        every = ", ".join(f"{column}{_DUCK_ORDERS[0]}" for column in columns)
        return Text(f"{select} {limit}", f"SELECT * FROM ({select}) AS q ORDER BY {every} {limit}")
    return Text(
        f"{select} ORDER BY {', '.join(spark)} {limit}",
        f"SELECT * FROM ({select}) AS q ORDER BY {', '.join(duck)} {limit}",
    )
