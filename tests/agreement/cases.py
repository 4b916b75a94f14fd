"""The table of cases that run under every strategy: shapes x payloads, and failures found at random.

Each row is a scenario without versions; its name is the claim that it makes. A scenario that failed at random is
reduced and becomes a row of ``FOUND``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text
from tests.agreement.sql_aggregates import average_texts, by_texts
from tests.agreement.sql_cofactors import matrix
from tests.agreement.sql_grouping_sets import NOT_EMPTY
from tests.ring.user_rings import bins, gauss, modulo, poly

_VALUES = (
    TableColumn("x", "INT"),
    TableColumn("y", "DECIMAL(6, 2)"),
    TableColumn("z", "DOUBLE"),
    TableColumn("w", "STRING"),
)


def _edges(name: str, first: str, second: str) -> BaseTable:
    """A table of edges from one join column to another, with a value of each ring."""
    return BaseTable(name, (TableColumn(first, "BIGINT"), TableColumn(second, "BIGINT"), *_VALUES))


R, S, T = _edges("r", "a", "b"), _edges("s", "b", "c"), _edges("t", "c", "a")
KEYED = BaseTable("keyed", (TableColumn("b", "BIGINT", False), TableColumn("c", "BIGINT"), *_VALUES), ("b",))
TRUSTED = BaseTable("trusted", R.columns, trusted=True)


@dataclass(frozen=True)
class Shape:
    """A FROM (and WHERE) whose sources p and q have the columns that payloads aggregate."""

    tables: tuple[BaseTable, ...]
    source: str


SHAPES: dict[str, Shape] = {
    "a join": Shape((R, S), "r AS p JOIN s AS q USING (b)"),
    "a path": Shape((R, S, T), "r AS p JOIN s ON p.b = s.b JOIN t AS q ON s.c = q.c"),
    "a star": Shape((R, S, T), "r AS p JOIN t AS q ON p.a = q.a JOIN r AS o ON p.a = o.a"),
    "a triangle": Shape((R, S, T), "r AS p JOIN s AS q ON p.b = q.b JOIN t ON q.c = t.c AND t.a = p.a"),
    "a triangle of one table": Shape((R,), "r AS p, r AS q, r AS o WHERE p.b = q.a AND q.b = o.a AND o.b = p.a"),
    "a self join": Shape((R,), "r AS p JOIN r AS q ON p.b = q.a"),
    "a condition across tables": Shape((R, S), "r AS p JOIN s AS q ON p.b = q.b WHERE p.a < q.c OR p.x <> q.x"),
    "an inequality join": Shape((R, S), "r AS p, s AS q WHERE p.b < q.b"),
    "a band": Shape((R, S), "r AS p JOIN s AS q ON q.b BETWEEN p.b - 1 AND p.b + 1"),
    "values apart": Shape((R, S), "r AS p JOIN s AS q ON p.b = q.b AND (p.x - q.x > 1 OR q.x - p.x > 1)"),
    "a chain of inequalities": Shape((R, S, T), "r AS p, s, t AS q WHERE p.b < s.b AND s.c >= q.c"),
    "a product": Shape((R, S), "r AS p CROSS JOIN s AS q"),
    "a join on a key": Shape((R, KEYED), "r AS p JOIN keyed AS q USING (b)"),
    "a join over Z": Shape((TRUSTED, S), "trusted AS p JOIN s AS q USING (b)"),
}

_AVERAGE = Text(*(text.format("p.y", rows="") for text in average_texts(2)))
_BOTH = "CASE WHEN p.x IS NOT NULL AND q.w IS NOT NULL THEN (p.x, q.w) END"

def _by(end: str, value: str, by: str) -> Text:
    return Text(*(text.format(value, by, rows="") for text in by_texts(end)))


_MODEST = "CASE WHEN {0} BETWEEN -1E9 AND 1E9 THEN {0} END"
"""A double that is neither NaN nor infinite."""


def _matrix(kind: str, *args: str, categories: Sequence[int] = (), rows: str | None = None) -> Text:
    where = None if rows is None else Text.same(rows)
    return matrix(kind, [Text.same(arg) for arg in args], f"{kind}_{len(args)}_", categories, where)


_FOUR = ("p.x", "q.x", "p.y", "COALESCE(q.x, 1)")
"""Variables whose sums of products are one cofactor."""

_DOUBLES = ("p.z", "CAST(p.x AS DOUBLE)", "(p.z - 1)", "(p.z + p.x)")
"""Doubles of one table, with enough products that a loop adds them."""

def _percentile(function: str, fraction: float, value: str, order: str = "ASC") -> Text:
    """A percentile, which is a DOUBLE; a descending order is counted from the other end."""
    spark = f"{function}({fraction}) WITHIN GROUP (ORDER BY {value} {order})"
    sort = "list_reverse_sort" if order == "DESC" else "list_sort"
    rows = f"{sort}(list(CAST({value} AS DOUBLE)) FILTER ({value} IS NOT NULL))"
    if function == "PERCENTILE_CONT":
        known = 1 - fraction if order == "DESC" else fraction
        return Text(spark, f"quantile_cont(CAST({value} AS DOUBLE), {known})")
    return Text(spark, f"({rows})[greatest(CAST(ceil({fraction} * COUNT({value})) AS INT), 1)]")


def _mode(value: str, order: str = "ASC") -> str:
    """The most frequent value, of several the first one in an order, in DuckDB."""
    rows = f"list({value}) FILTER ({value} IS NOT NULL)"
    times = f"len(list_filter({rows}, lambda other: other = one))"
    pairs = f"list_transform({rows}, lambda one: {{'n': {times}, 'v': one}})"
    most = f"list_max(list_transform({pairs}, lambda pair: pair.n))"
    found = f"list_transform(list_filter({pairs}, lambda pair: pair.n = {most}), lambda pair: pair.v)"
    return f"{'list_max' if order == 'DESC' else 'list_min'}({found})"


PAYLOADS: dict[str, tuple[str | Text, ...]] = {
    "counts": ("COUNT(*)", "COUNT(p.x)", Text("COUNT(p.x, q.w)", f"COUNT({_BOTH})")),
    "integers": ("SUM(p.x)", "SUM(p.x * q.x)", "AVG(q.x)", "SUM(p.x + q.x)", "SUM(q.x - p.x)"),
    "decimals": ("SUM(q.y)", "SUM(p.y * q.y)", _AVERAGE),
    "doubles": ("SUM(p.z)", "SUM(p.z * q.z)", "AVG(q.z)"),
    "many sums of doubles": (
        "AVG(q.z)",
        "SUM(p.z * q.z)",
        *(f"SUM({one})" for one in _DOUBLES),
        *(f"SUM({one} * {other})" for one, other in combinations_with_replacement(_DOUBLES, 2)),
    ),
    "extremes": ("MIN(p.x)", "MAX(q.y)", "MIN(q.z)", "MAX(p.w)", "BIT_OR(p.x)", _by("MAX", "q.w", "q.z")),
    "semigroups": (
        "BIT_AND(p.x)",
        "BIT_OR(q.x)",
        "BIT_XOR(p.x)",
        _by("MAX", "p.w", "q.z"),
        _by("MIN", "q.x", "p.y"),
        _by("MAX", "q.x", "p.y"),
        _by("MIN", "q.y", "q.w"),
    ),
    "percentiles": (
        _percentile("PERCENTILE_CONT", 0.3, "p.x"),
        _percentile("PERCENTILE_CONT", 0.25, "q.z", "DESC"),
        _percentile("PERCENTILE_DISC", 0.4, "p.x", "DESC"),
        _percentile("PERCENTILE_DISC", 0.75, "q.z"),
        Text("MODE(p.x)", _mode("p.x")),
        Text("MODE() WITHIN GROUP (ORDER BY q.w DESC)", _mode("q.w", "DESC")),
        Text("APPROX_PERCENTILE(q.y, 0.5)", "quantile_disc(q.y, 0.5)"),
        Text("MEDIAN(p.y)", "quantile_cont(CAST(p.y AS DOUBLE), 0.5)"),
        "MAX(p.x)",
    ),
    "moments": (
        "round(VAR_POP(p.x), 6)",
        "round(COVAR_SAMP(p.x, q.x), 6)",
        "round(STDDEV(q.x + p.x), 6)",
        "round(VAR_POP(DISTINCT p.x), 6)",
        "MAX(p.x)",
    ),
    "cofactors": (
        _matrix("cofactor", "p.x", "q.x"),
        _matrix("covar_matrix", "q.x", "p.x"),
        _matrix("cofactor", "q.y", "p.x", "p.y + p.x"),
        # A variable across tables, and a table without variables that decides whether a row counts.
        _matrix("cofactor", "NULLIF(p.x, q.x)", "p.y"),
        "SUM(p.x * q.x)",
        "MAX(q.x)",
    ),
    "sums that are shared": (
        *(f"SUM({one})" for one in _FOUR),
        *(f"SUM({one} * {other})" for one, other in combinations_with_replacement(_FOUR, 2)),
        "COUNT(*)",
        "AVG(p.x)",
        "SUM(p.z)",
    ),
    "categories": (
        _matrix("cofactor", "p.x", "p.w", categories=(1,)),
        # Categories of both tables and across them, before and after numbers, one of them with another scale.
        _matrix("cofactor", "q.w", "p.x", "q.x + p.x", "q.y", categories=(0, 2)),
        # No number, one category twice, and rows that a column of another table selects.
        _matrix("cofactor", "p.w", "q.x", "p.w", categories=(0, 1, 2), rows="q.x > 0"),
        "SUM(p.x)",
    ),
    "cofactors of doubles": (
        _matrix("cofactor", _MODEST.format("q.z"), "p.x", _MODEST.format("p.z")),
        _matrix("corr_matrix", "q.x", "p.x"),
        "SUM(p.z)",
    ),
    "users' rings": (
        gauss("p.x", "q.x"),
        poly("NULLIF(q.x, p.x)", "p.x"),
        bins("q.z"),
        "SUM(p.z)",
        "MAX(q.x)",
    ),
    "remainders": (modulo("p.x", "NULLIF(q.x, p.x)"), modulo("q.x", "q.x"), "SUM(q.x)"),
    "distinct values": (
        "COUNT(DISTINCT p.x)",
        "SUM(DISTINCT q.y)",
        Text("COUNT(DISTINCT p.x, q.w)", f"COUNT(DISTINCT {_BOTH})"),
    ),
    "texts": (
        Text(
            "STRING_AGG(q.w, ', ' ORDER BY p.x DESC, q.y)",
            "STRING_AGG(q.w, ', ' ORDER BY p.x DESC NULLS LAST, q.y NULLS FIRST, q.w)",
        ),
        Text(
            "LISTAGG(DISTINCT p.x, '-') WITHIN GROUP (ORDER BY p.x DESC)",
            "NULLIF(array_to_string(list_reverse_sort(list_distinct(list(p.x))), '-'), '')",
        ),
        Text("GROUP_CONCAT(p.y)", "STRING_AGG(CAST(p.y AS VARCHAR), ',' ORDER BY p.y)"),
        Text(
            "STRING_AGG(p.w, '|' ORDER BY q.w NULLS LAST) FILTER (WHERE q.x > 0)",
            "STRING_AGG(p.w, '|' ORDER BY q.w NULLS LAST, p.w) FILTER (WHERE q.x > 0)",
        ),
        "SUM(p.x)",
    ),
}


def shaped(shape: str, *payloads: str) -> Scenario:
    """Views of a shape: its payloads by group and over all rows, or, without payloads, its rows and distinct rows."""
    source = SHAPES[shape]
    if not payloads:
        texts = [
            Text.same(f"SELECT p.a AS a, p.x AS x, q.y AS y, q.w AS w FROM {source.source}"),
            Text.same(f"SELECT DISTINCT p.a AS a, q.w AS w FROM {source.source}"),
        ]
    else:
        items = [Text.same(i) if isinstance(i, str) else i for name in payloads for i in PAYLOADS[name]]
        spark = ", ".join(f"{item.spark} AS c{i}" for i, item in enumerate(items))
        duck = ", ".join(f"{item.duck} AS c{i}" for i, item in enumerate(items))
        rest = f"FROM {source.source}"
        texts = [
            Text(f"SELECT p.a AS a, {spark} {rest} GROUP BY p.a", f"SELECT p.a AS a, {duck} {rest} GROUP BY p.a"),
            Text(f"SELECT {spark} {rest}", f"SELECT {duck} {rest}"),
        ]
    views = tuple(NamedView(f"v{i}", text) for i, text in enumerate(texts, 1))
    return Scenario(source.tables, views)


def _keyed(name: str, key: str, *others: str) -> BaseTable:
    return BaseTable(name, (TableColumn(key, "BIGINT", False), *(TableColumn(c, "BIGINT") for c in others)), (key,))


def _scenario(*definitions: BaseTable | str) -> Scenario:
    """Tables and the queries of views v1, v2, ... over them."""
    tables = tuple(one for one in definitions if isinstance(one, BaseTable))
    queries = [one for one in definitions if isinstance(one, str)]
    views = tuple(NamedView(f"v{i}", Text.same(query)) for i, query in enumerate(queries, 1))
    return Scenario(tables, views)


_LOG = BaseTable("l", (TableColumn("a", "BIGINT"), TableColumn("b", "BIGINT"), TableColumn("w", "STRING")))


def _provenance(group: str, source: str, **columns: str) -> Text:
    """The provenance of the rows of a join, by a column of it or over all rows. ``columns``: by alias, the columns that
    identify its rows, as JSON."""
    by, rows = (f" GROUP BY {group}" if group else ""), ", ".join(columns.values())
    members = " || ', ' || ".join(
        f"'\"{alias}\": [' || concat_ws(', ', {', '.join(f'{alias}_{i}' for i in range(listed.count(',') + 1))}) || ']'"
        for alias, listed in columns.items()
    )
    keys = [f"{one} AS {alias}_{i}" for alias, listed in columns.items() for i, one in enumerate(listed.split(","))]
    json = [one.replace(" AS", ") AS VARCHAR), 'null') AS").replace("", "COALESCE(CAST(to_json(", 1) for one in keys]
    order = ", ".join(f"{one} NULLS FIRST" for one in ", ".join(columns.values()).split(","))
    head = f"{group} AS g, " if group else ""
    duck = (
        f"SELECT {'g, ' if group else ''}COALESCE('[' || STRING_AGG('{{' || {members} || ', \"times\": ' || n || '}}',"
        f" ', ' ORDER BY place) || ']', '[]') AS p FROM (SELECT {head}{', '.join(json)}, COUNT(*) AS n,"
        f" ROW_NUMBER() OVER (ORDER BY {order}) AS place FROM {source} GROUP BY {group + ', ' if group else ''}{rows})"
        f"{' GROUP BY g' if group else ''}"
    )
    return Text(f"SELECT {head}PROVENANCE() AS p FROM {source}{by}", duck)


_TWO_TRIANGLES = (
    "FROM trusted AS p JOIN s AS q ON p.b = q.b JOIN t AS o ON q.c = o.c AND o.a = p.a JOIN s AS u ON p.b = u.b"
    " JOIN t AS w ON u.c = w.c AND w.a = p.a"
)
_BY_CATEGORIES = _matrix("cofactor", "p.x", "p.w", "q.x", categories=(1, 2))


def _by_categories(columns: str, source: str, having: str = "") -> Text:
    """A cofactor with a category of each table. ``columns``: those of GROUP BY, or grouping sets of them."""
    listed = columns.removeprefix("ROLLUP (").removesuffix(")")
    spark, duck = (f"SELECT {listed}, {one} AS f" for one in (_BY_CATEGORIES.spark, _BY_CATEGORIES.duck))
    return Text(*(f"{head} FROM {source} GROUP BY {columns}{having}" for head in (spark, duck)))


def _guarded(*queries: str) -> Scenario:
    """Views over r and s that cast only texts that are numbers; DuckDB's dialect casts the others, too."""
    number = re.compile(r"([\w.]+) (NOT )?RLIKE ('[^']+')")
    duck = [number.sub(r"\2regexp_matches(\1, \3)", one) for one in queries]
    texts = [
        Text(spark, other.replace("CAST(", "TRY_CAST(").replace("10 / r.x", "10 / NULLIF(r.x, 0)"))
        for spark, other in zip(queries, duck, strict=True)
    ]
    return Scenario((R, S), tuple(NamedView(f"v{i}", one) for i, one in enumerate(texts, 1)))


FOUND: dict[str, Scenario] = {
    "a guard keeps values from what fails for them": _guarded(
        "SELECT a, CASE WHEN w RLIKE '^[0-9]+$' THEN CAST(w AS INT) END AS n FROM r",
        "SELECT CAST(w AS INT) AS n, COUNT(*) AS m FROM (SELECT * FROM r WHERE w RLIKE '^[0-9]+$') AS q GROUP BY 1",
        "SELECT a FROM r WHERE w RLIKE '^[0-9]+$' AND CAST(w AS INT) > 1",
        "SELECT a, SUM(CAST(w AS INT)) FILTER (WHERE w RLIKE '^[0-9]+$') AS n, MAX(b) AS m FROM r GROUP BY a",
        "SELECT r.a, s.c FROM r JOIN s ON r.w RLIKE '^[0-9]+$' AND CAST(r.w AS INT) = s.b",
        "SELECT r.a, s.c FROM r LEFT JOIN s ON r.w RLIKE '^[0-9]+$' AND CAST(r.w AS INT) = s.b",
    ),
    "a row that a join leaves out fails nowhere": _guarded(
        "SELECT r.a, CAST(r.w AS INT) AS n FROM r JOIN s ON r.w = s.w WHERE s.w RLIKE '^[0-9]+$'",
        "SELECT r.a FROM r JOIN s ON r.w = s.w WHERE s.w RLIKE '^[0-9]+$' AND CAST(r.w AS INT) > 1",
        "SELECT r.a FROM r WHERE r.x IN (SELECT x FROM s WHERE x <> 0) AND 10 / r.x > 1",
        "SELECT r.a, s.c FROM r JOIN s ON r.w = s.w WHERE s.w RLIKE '^[0-9]+$' AND CAST(r.w AS INT) > s.b",
        "SELECT r.b, COUNT(*) AS n, SUM(s.c) AS m FROM r JOIN s ON r.w = s.w"
        " WHERE s.w RLIKE '^[0-9]+$' AND (CAST(r.w AS INT) < s.b OR CAST(s.w AS INT) + r.a > 1) GROUP BY r.b",
        "SELECT r.a FROM r WHERE NOT EXISTS (SELECT 1 FROM r AS q WHERE q.w = r.w AND q.w NOT RLIKE '^[0-9]+$')"
        " AND CAST(r.w AS INT) > 1",
    ),
    "rows of set operations are counted where expressions of a join may fail": _guarded(
        "SELECT r.a, CASE WHEN r.w RLIKE '^[0-9]+$' THEN CAST(r.w AS INT) END AS n FROM r JOIN s ON r.b = s.b"
        " EXCEPT ALL SELECT b, c FROM s",
        "SELECT r.a, CASE WHEN s.w RLIKE '^[0-9]+$' THEN CAST(s.w AS INT) END AS n FROM r LEFT JOIN s ON r.b = s.b"
        " INTERSECT ALL SELECT a, b FROM r",
        "SELECT CAST(r.w AS INT) AS n FROM r JOIN s ON r.w = s.w WHERE s.w RLIKE '^[0-9]+$' UNION SELECT a FROM r",
        "SELECT DISTINCT CAST(r.w AS INT) AS n FROM r JOIN s ON r.w = s.w WHERE s.w RLIKE '^[0-9]+$' EXCEPT ALL"
        " SELECT a FROM r",
    ),
    "sums and groups of a join are of the rows that it has": _guarded(
        "SELECT r.b, SUM(CAST(r.w AS INT)) AS n, MAX(CAST(r.w AS INT)) AS m, COUNT(DISTINCT CAST(s.w AS INT)) AS d"
        " FROM r JOIN s ON r.w = s.w WHERE s.w RLIKE '^[0-9]+$' GROUP BY r.b",
        "SELECT DISTINCT CAST(r.w AS INT) AS n FROM r JOIN s ON r.w = s.w WHERE s.w RLIKE '^[0-9]+$'",
        "SELECT COUNT(*) AS n, SUM(r.b) AS m FROM r JOIN s ON r.w = s.w"
        " WHERE s.w RLIKE '^[0-9]+$' AND CAST(r.w AS INT) > 1",
        "SELECT CAST(r.w AS INT) AS n, s.c, COUNT(*) AS m FROM r JOIN s ON r.w = s.w WHERE s.w RLIKE '^[0-9]+$'"
        " GROUP BY ROLLUP (CAST(r.w AS INT), s.c) HAVING COUNT(*) > 0",
        "SELECT r.a, SUM(CAST(CASE WHEN s.w RLIKE '^[0-9]+$' THEN s.w END AS INT)) AS n FROM r LEFT JOIN s"
        " ON r.b = s.b GROUP BY r.a",
        "SELECT r.a, SUM(r.x * CAST(s.w AS INT)) AS n FROM r JOIN s ON r.b = s.b JOIN (SELECT w FROM r WHERE"
        " w RLIKE '^[0-9]+$') AS q ON q.w = s.w GROUP BY r.a",
    ),
    "sums by categories of both tables, and what is made of their texts": Scenario(
        (R, S),
        (
            NamedView("v1", _by_categories("p.a", "r AS p JOIN s AS q USING (b)")),
            NamedView(
                "v2",
                _by_categories("ROLLUP (p.w, p.a)", "r AS p LEFT JOIN s AS q ON p.b = q.b", f" HAVING {NOT_EMPTY}"),
            ),
            NamedView(
                "v3",
                Text(
                    "SELECT f_sum_w_x_3 AS t, COUNT(*) AS n, STRING_AGG(f_sum_w, ' ' ORDER BY f_sum_w) AS all FROM v1"
                    " GROUP BY f_sum_w_x_3",
                    "SELECT f AS t, COUNT(*) AS n, STRING_AGG(cofactor_3_2, ' ' ORDER BY cofactor_3_2) AS all FROM v1"
                    " GROUP BY f",
                ),
            ),
        ),
    ),
    "the rows that made a row are listed by their keys, with how often they made it": Scenario(
        (_keyed("k", "a", "b"), _LOG),
        (
            NamedView("v1", _provenance("k.b", "k JOIN l ON l.a = k.a", k="k.a", l="l.a,l.b,l.w")),
            NamedView("v2", _provenance("p.b", "k AS p JOIN k AS q ON q.a = p.b", p="p.a", q="q.a")),
            NamedView("v3", _provenance("", "k AS p, k AS q WHERE p.b < q.b", p="p.a", q="q.a")),
            NamedView("v4", _provenance("g", "v2", v2="g")),
        ),
    ),
    "texts of rows that outer joins and NOT EXISTS leave, and of other texts": _scenario(
        R,
        S,
        "SELECT r.a, STRING_AGG(r.w, ',' ORDER BY r.w) AS t FROM r LEFT JOIN s ON r.b = s.b WHERE s.c IS NULL"
        " GROUP BY r.a HAVING COUNT(*) < 5 AND LENGTH(STRING_AGG(r.w, ',' ORDER BY r.w)) > 1",
        "SELECT STRING_AGG(t, ';' ORDER BY t) AS t, COUNT(*) AS n FROM v1 WHERE t <> ','",
        "SELECT a, (SELECT STRING_AGG(s.w, ' ' ORDER BY s.w) FROM s WHERE s.b = r.b) AS t FROM r",
        "SELECT STRING_AGG(r.w, ' ' ORDER BY r.w) AS t FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
        "SELECT DISTINCT STRING_AGG(w, '' ORDER BY w) AS t FROM r GROUP BY a UNION SELECT w FROM s",
    ),
    "texts of several grouping sets, alone and beside sums, also of joins": _scenario(
        R,
        S,
        "SELECT a, b, STRING_AGG(w, ',' ORDER BY w) AS t FROM r GROUP BY ROLLUP (a, b) HAVING COUNT(*) > 0",
        "SELECT r.a, COUNT(*) AS n, STRING_AGG(s.w, ' ' ORDER BY s.w) AS t, GROUPING_ID(r.a, s.c) AS g, MAX(r.x) AS m"
        " FROM r JOIN s ON r.b = s.b GROUP BY CUBE (r.a, s.c) HAVING COUNT(*) > 1",
        "SELECT STRING_AGG(t, ';' ORDER BY t) AS t FROM v1 GROUP BY GROUPING SETS ((a), (a), (a, b))"
        " HAVING COUNT(*) > 0",
    ),
    "rows are selected by a running sum, in groups and out of them, over several kinds of order": _scenario(
        R,
        S,
        "SELECT p.a, SUM(p.x) AS x FROM r AS p WHERE"
        " 2 * (SELECT SUM(o.x) FROM r AS o) > 3 * (SELECT SUM(q.x) FROM r AS q WHERE q.b > p.b) GROUP BY p.a",
        "SELECT p.b, p.w, s.x FROM r AS p JOIN s ON p.b = s.b WHERE 0.5 * (SELECT SUM(o.y) FROM r AS o WHERE o.a = s.c)"
        " >= (SELECT SUM(q.y) FROM r AS q WHERE q.a = p.a AND q.w <= p.w) AND s.c = p.a",
        "SELECT COUNT(*) AS n FROM r AS p WHERE (SELECT COUNT(*) FROM s JOIN r AS q USING (b) WHERE q.z < p.z) < 3",
        "SELECT p.a FROM r AS p WHERE 1 < (SELECT COALESCE(SUM(q.x), 0) FROM s AS q WHERE p.y <= q.y)",
        "SELECT p.a, p.x FROM r AS p, s AS q WHERE -p.x < 0.1 * (SELECT SUM(x) FROM r)"
        " AND q.y <= (SELECT MAX(y) FROM r)",
    ),
    "groups come and go with their distinct values, also where these may be NULL": _scenario(
        _keyed("k", "a", "b"),
        R,
        S,
        "SELECT k.b, COUNT(DISTINCT k.a) AS n, MIN(k.a) AS m FROM k JOIN r ON r.b = k.b GROUP BY k.b",
        "SELECT r.a, COUNT(DISTINCT r.x) AS n, SUM(DISTINCT r.x) AS x, COUNT(DISTINCT r.w) AS w FROM r GROUP BY r.a",
        "SELECT r.a, COUNT(DISTINCT s.b) AS b, AVG(DISTINCT s.x) AS x FROM r LEFT JOIN s ON r.b = s.b GROUP BY r.a",
        "SELECT r.a, COUNT(DISTINCT s.x) AS n FROM r LEFT JOIN s ON r.b = s.b GROUP BY r.a HAVING COUNT(DISTINCT s.x)"
        " < 2",
        "SELECT r.a, COUNT(DISTINCT r.x) AS n FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b) GROUP BY r.a",
        "SELECT COUNT(DISTINCT r.x) AS n, MAX(r.b) AS b, MIN(s.c) AS c FROM r JOIN s ON r.b = s.b",
    ),
    "the least and greatest sums over several tables": _scenario(
        R,
        S,
        T,
        "SELECT MIN(r.x + s.y) AS m FROM r JOIN s USING (b)",
        "SELECT r.a, MIN(r.x - s.x) AS m, MAX(r.x - s.x) AS n, MAX(r.z) AS z FROM r JOIN s USING (b) GROUP BY r.a",
        "SELECT p.a, q.b, MIN(p.x + q.x) AS m FROM r AS p JOIN r AS q ON p.b = q.a GROUP BY p.a, q.b",
        "SELECT r.a + s.c AS g, MAX(-(r.x - s.x)) AS m FROM r JOIN s ON r.b = s.b AND r.a < s.c WHERE r.x > 0"
        " GROUP BY r.a + s.c HAVING MAX(s.x - r.x) < 3",
        "SELECT r.a, MIN(t.x + r.x - s.x) AS m FROM r JOIN s USING (b) JOIN t USING (c) WHERE s.x <> 1 GROUP BY r.a",
        "SELECT s.c, MAX(LEAST(r.a, s.c)) AS m, MIN(GREATEST(r.x, s.x)) AS n FROM r JOIN s USING (b) GROUP BY s.c",
    ),
    "a sum at a leaf never meets the NULLs that a condition across tables keeps out": _scenario(
        R, S, "SELECT SUM(abs(r.a)) AS c1, COUNT(*) AS c2 FROM r, s WHERE r.a < s.b"
    ),
    "outer joins along a chain and beside a triangle, with NOT EXISTS": _scenario(
        R,
        S,
        T,
        "SELECT r.a, r.b, s.c, t.x FROM r LEFT JOIN s ON r.b = s.b LEFT JOIN t ON s.c = t.c"
        " WHERE NOT EXISTS (SELECT 1 FROM t AS u WHERE u.a = r.x)",
        "SELECT DISTINCT r.a, r.b, s.c FROM r LEFT JOIN s ON r.b = s.b LEFT JOIN t ON t.a = r.a",
        "SELECT r.a, r.b, s.c, COUNT(*) AS n, SUM(s.x) AS x, SUM(t.x) AS tx FROM r LEFT JOIN s ON r.b = s.b"
        " LEFT JOIN t ON t.a = r.a GROUP BY r.a, r.b, s.c",
        "SELECT r.a, u.x, COUNT(*) AS n, COUNT(u.a) AS m FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND t.a = r.a"
        " LEFT JOIN r AS u ON u.b = r.a AND u.x > 0 WHERE r.b NOT IN (SELECT b FROM s WHERE x = 1 AND b IS NOT NULL)"
        " GROUP BY r.a, u.x",
    ),
    "the smaller of two slices, where a condition bounds the rows of one": _scenario(
        R,
        S,
        "SELECT MAX(p.x) AS c1 FROM r AS p, r AS q, s WHERE p.a = q.b AND q.b = s.b AND p.b = s.c AND p.b < q.a"
        " GROUP BY p.a",
    ),
    "rows of a star of keys, whose arms have keys of their own": _scenario(
        _keyed("ti", "k", "oid", "pid", "q"),
        _keyed("tp", "pid", "sid", "name"),
        _keyed("ts", "sid", "sname"),
        _keyed("tor", "oid", "uid", "st"),
        _keyed("tc", "uid", "tier"),
        "SELECT i.k, i.oid, i.pid, p.sid, o.uid FROM ti i JOIN tp p ON i.pid = p.pid JOIN ts s ON p.sid = s.sid"
        " JOIN tor o ON i.oid = o.oid JOIN tc c ON o.uid = c.uid",
    ),
    "a column may be called like a function of a kernel": _scenario(
        BaseTable("k", tuple(TableColumn(name, "BIGINT") for name in ("find", "load", "range", "abs_int"))),
        "SELECT find, abs(find) AS d, SUM(load) AS store, MAX(abs_int) AS plus FROM k GROUP BY find",
        "SELECT p.find, abs(q.abs_int) AS range FROM k AS p JOIN k AS q ON p.abs_int = q.find WHERE p.load < q.range",
    ),
    "what is looked up for the rows of the next update depends on columns that its slice does not": _scenario(
        BaseTable("t1", (TableColumn("a", "BIGINT"), TableColumn("b", "BIGINT"), TableColumn("c", "BIGINT"))),
        BaseTable("t2", (TableColumn("b", "BIGINT", nullable=False), TableColumn("d", "BIGINT")), key=("b",)),
        BaseTable("t3", (TableColumn("d", "BIGINT"), TableColumn("c", "BIGINT"))),
        "SELECT p.a, COUNT(*) AS n FROM t3 r JOIN t1 p ON p.c = r.c JOIN t2 q ON q.b = p.b AND q.d = r.d GROUP BY p.a",
    ),
    "a trie join does not tabulate along a relation that it has entered in another order": _scenario(
        BaseTable("t1", (TableColumn("k", "BIGINT"), TableColumn("c", "BIGINT"))),
        BaseTable("t2", (TableColumn("a", "BIGINT"),)),
        BaseTable("t3", tuple(TableColumn(name, "BIGINT") for name in ("k", "a", "c"))),
        "SELECT COUNT(*) AS n FROM t3 AS p CROSS JOIN t1 AS q JOIN t3 AS r ON q.c = r.a JOIN t3 AS s ON r.k + 1 = s.a"
        " WHERE p.c < r.c AND EXISTS (SELECT 1 FROM t2 AS u WHERE u.a = p.k)",
    ),
    "an edge of two triangles restricts what both join, and counts in one": _scenario(
        TRUSTED,
        S,
        T,
        f"SELECT p.a, COUNT(*) AS n, SUM(p.x) AS x, SUM(q.z) AS z {_TWO_TRIANGLES} GROUP BY p.a",
        f"SELECT DISTINCT p.a, p.b, p.x {_TWO_TRIANGLES}",
    ),
    "a group over Z is there where it counts above zero": _scenario(
        TRUSTED,
        "SELECT a, SUM(x) AS x, MIN(z) AS z FROM trusted GROUP BY a",
        "SELECT DISTINCT b FROM trusted",
        "SELECT COUNT(*) AS n, COUNT(DISTINCT a) AS d FROM trusted",
        "SELECT v1.x, v2.b FROM v1 JOIN v2 ON v1.a = v2.b",
    ),
    "a self join of a shared store sums doubles under first-order deltas": _scenario(
        R, "SELECT p.a, SUM(0.5E0 * 0.5E0) AS z FROM r AS p JOIN r AS q ON p.b = q.b GROUP BY p.a"
    ),
    "rows over Z that a projection makes one cancel out for a reader": _scenario(
        TRUSTED,
        R,
        "SELECT r.x, abs(trusted.x) AS y FROM trusted JOIN r USING (b)",
        "SELECT a FROM trusted UNION ALL SELECT a FROM r",
    ),
    "a sum of NULLs alone is NULL, filtered across tables or not": _scenario(
        R,
        S,
        "SELECT SUM(NULLIF(1.5, 1.5)) FILTER (WHERE r.a <= s.c) AS y, AVG(NULLIF(1E0, 1E0)) AS z,"
        " COUNT(NULLIF(1, 1)) FILTER (WHERE r.a < s.c) AS n FROM r CROSS JOIN s",
    ),
    "subqueries in WHERE, with columns of the query around them": _scenario(
        R,
        S,
        "SELECT a, x FROM r WHERE b IN (SELECT b FROM s WHERE c > 0)",
        "SELECT a, COUNT(*) AS n FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b AND s.c = r.a) GROUP BY a",
        "SELECT a, x FROM r WHERE x >= (SELECT MIN(s.x) FROM s WHERE s.b = r.b)",
        "SELECT SUM(x) AS x FROM r WHERE a < (SELECT COUNT(*) FROM s) AND EXISTS (SELECT b FROM s WHERE c > 1)",
        "SELECT DISTINCT a FROM r WHERE b IN (SELECT b FROM s GROUP BY b HAVING COUNT(*) > 1)",
    ),
    "rows that are absent, of tables and of what is made of them": _scenario(
        R,
        S,
        TRUSTED,
        "SELECT r.a, r.b, s.c FROM r JOIN s USING (b) WHERE r.a < s.c AND r.x <> s.x"
        " AND NOT EXISTS (SELECT 1 FROM r AS o WHERE o.b = r.a AND o.a = s.c)",
        "SELECT r.a, COUNT(*) AS n, SUM(r.z) AS z, MIN(r.x) AS x, COUNT(DISTINCT r.b) AS d FROM r"
        " WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b AND s.c = r.b AND s.x > 0) GROUP BY r.a",
        "SELECT r.x FROM r WHERE NOT EXISTS (SELECT 1 FROM r AS p JOIN s USING (b) WHERE p.a = r.b AND NOT EXISTS"
        " (SELECT 1 FROM v2 WHERE v2.a = s.c)) AND NOT EXISTS (SELECT 1 FROM trusted AS t WHERE t.w = r.w)",
        "SELECT DISTINCT b FROM (SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.c = r.x)) AS q"
        " WHERE EXISTS (SELECT 1 FROM s WHERE s.c = q.a AND NOT EXISTS (SELECT 1 FROM r WHERE r.a = s.b))",
        "SELECT r.a, s.c, MAX(r.x) AS x FROM r JOIN s USING (b) WHERE NOT EXISTS (SELECT 1 FROM r AS o WHERE o.a > 3)"
        " AND NOT EXISTS (SELECT 1 FROM r AS o WHERE o.x = r.x + s.x AND o.w = r.w) GROUP BY r.a, s.c",
    ),
    "strings that are not like a pattern": _scenario(
        R,
        S,
        "SELECT a, w FROM r WHERE w NOT LIKE 'a%'",
        "SELECT r.a, COUNT(*) AS n FROM r JOIN s USING (b) WHERE r.w NOT LIKE '%b' OR s.w NOT ILIKE '_' GROUP BY r.a",
    ),
    "values that are in no subquery, of which none is NULL": _scenario(
        R,
        S,
        "SELECT a, x FROM r WHERE b IS NOT NULL AND b NOT IN (SELECT b FROM s WHERE c > 0 AND b IS NOT NULL)",
        "SELECT a, COUNT(DISTINCT x) AS n FROM r WHERE a + 1 > 0"
        " AND NOT a IN (SELECT c FROM s WHERE c >= 0 AND s.b = r.b) GROUP BY a",
        "SELECT r.a, s.c FROM r JOIN s USING (b) WHERE b NOT IN (SELECT a FROM r WHERE a > 1 UNION SELECT c FROM s"
        " WHERE c IS NOT NULL) AND 2 NOT IN (SELECT x FROM s WHERE x > 1)",
    ),
    "two lookups by one value, of which a condition reads both": _scenario(
        R,
        S,
        "SELECT p.b AS a FROM r AS p WHERE p.b IN (SELECT s.c FROM s WHERE s.b >= p.b) OR p.a = p.b",
        "SELECT p.a, p.b, (p.a, p.b) IN (SELECT s.b, s.c FROM s) AS x FROM r AS p",
    ),
    "what a subquery compares with the query around it is not NULL in its groups": _scenario(
        R, S, "SELECT r.x FROM r WHERE b >= (SELECT MAX(s.b) FROM s WHERE s.b = r.b)"
    ),
    "rows of a join over Z, each known by its output, are enumerated": _scenario(
        TRUSTED,
        R,
        "SELECT trusted.a, trusted.b, trusted.x, r.b AS c FROM trusted JOIN r ON trusted.b = r.a",
        "SELECT p.a, p.b, q.b AS c, o.b AS d FROM trusted p JOIN trusted q ON p.b = q.a JOIN trusted o ON q.b = o.a",
        "SELECT p.a, q.a AS c FROM trusted p JOIN trusted q ON p.b = q.b",
    ),
    "a view reads the one row of aggregates without groups from the start": _scenario(
        R,
        "SELECT COUNT(*) AS n, SUM(x) AS x FROM r",
        "SELECT n + 1 AS n1, x FROM v1",
        "SELECT v1.n, r.a FROM v1 JOIN r ON v1.n = r.b",
    ),
    "a view and its input read one table in one version": _scenario(
        R,
        S,
        "SELECT b, COUNT(*) AS n FROM r GROUP BY b",
        "SELECT r.a, v1.n, s.c FROM v1 JOIN r ON v1.b = r.b JOIN s ON s.b = r.b",
        "SELECT DISTINCT v2.n FROM v2 JOIN v1 ON v1.n = v2.n",
    ),
    "a row below set operations comes and goes while others have it": _scenario(
        R,
        S,
        "SELECT r.a, r.b, s.c FROM r JOIN s USING (b) UNION SELECT a, b, x FROM r EXCEPT SELECT b, c, c FROM s",
        "SELECT p.a, q.b FROM r AS p JOIN r AS q ON p.b = q.a INTERSECT SELECT b, a FROM v1",
        "SELECT w, x FROM r UNION ALL (SELECT w, x FROM s EXCEPT SELECT w, MAX(x) FROM r GROUP BY w)",
    ),
    "rows below EXCEPT ALL and INTERSECT ALL are there as often as they came": _scenario(
        R,
        S,
        "SELECT a, b FROM r EXCEPT ALL SELECT b, c FROM s",
        "(SELECT r.a FROM r JOIN s USING (b) UNION ALL SELECT a FROM r) EXCEPT ALL SELECT c FROM s",
        "SELECT w, x FROM r INTERSECT ALL (SELECT w, x FROM s EXCEPT ALL SELECT w, MAX(x) FROM r GROUP BY w)",
        "SELECT COUNT(*) AS n FROM r GROUP BY a EXCEPT ALL SELECT COUNT(*) FROM s GROUP BY b",
        "SELECT w FROM r UNION (SELECT w FROM s EXCEPT ALL SELECT w FROM r)",
    ),
    "constants beside tables, and alone": _scenario(
        R,
        S,
        "SELECT r.a, k.y FROM r JOIN (VALUES (1, 2), (2, NULL), (1, 2)) AS k(x, y) ON r.b = k.x",
        "SELECT k.x, COUNT(*) AS n, SUM(s.c) AS c FROM (VALUES (0), (1)) AS k(x) JOIN s ON s.b = k.x GROUP BY k.x",
        "SELECT 1 AS one, 'x' AS x WHERE 1 < 2",
        "SELECT a FROM r EXCEPT SELECT 1",
        "SELECT v1.y, r.a FROM v1 JOIN r ON r.b = v1.y JOIN (SELECT 2 AS two) AS k ON k.two = v1.y",
    ),
    "values that many rows share are handed out once, below two joins": _scenario(
        R,
        T,
        "SELECT p.x AS x1, q.x AS x2, COUNT(*) AS n, SUM(p.y) AS y, AVG(q.z) AS z FROM r AS p JOIN r AS q"
        " ON p.a = q.a AND p.b = q.b JOIN t ON t.a = p.a GROUP BY p.x, q.x",
        "SELECT DISTINCT p.w FROM r AS p JOIN r AS q ON p.a = q.a AND p.b = q.b JOIN t ON t.a = p.a",
        "SELECT p.w, t.c FROM r AS p JOIN t ON t.a = p.a AND t.x = p.x",
        "SELECT DISTINCT p.w FROM r AS p JOIN t ON t.a = p.a UNION SELECT t.w FROM t JOIN r AS q ON t.a = q.a",
    ),
    "the first rows of an order, by what is shown and by what is not": _scenario(
        R,
        S,
        "SELECT b, w FROM r ORDER BY x DESC NULLS LAST, b NULLS FIRST, w NULLS FIRST LIMIT 3 OFFSET 1",
        "SELECT p.w, COUNT(*) AS n FROM r AS p JOIN s AS q USING (b) GROUP BY p.w"
        " ORDER BY SUM(q.x) DESC NULLS LAST, p.w NULLS FIRST, COUNT(*) LIMIT 2",
        "SELECT w, COUNT(*) AS n FROM v1 WHERE b IN (SELECT b FROM s ORDER BY c NULLS FIRST, b NULLS FIRST LIMIT 2)"
        " GROUP BY w",
    ),
    "conditions across tables compute, choose and compare strings, beside rows that are absent": _scenario(
        R,
        S,
        T,
        "SELECT p.a, q.c, COUNT(*) AS n, SUM(o.x) AS x FROM r AS p JOIN s AS q ON p.b = q.b JOIN t AS o ON q.c = o.c"
        " WHERE p.a + q.c >= o.a AND (p.x < q.x + o.x OR p.x IS NULL) GROUP BY p.a, q.c",
        "SELECT p.x, q.x AS y FROM r AS p JOIN s AS q USING (b) WHERE CASE WHEN p.a < q.c THEN p.w ELSE 'a' END = q.w"
        " AND NOT (p.x * 2 = q.x AND abs(p.a - q.c) < 2)",
        "SELECT p.a, MAX(q.z) AS z, COUNT(DISTINCT q.w) AS w FROM r AS p JOIN s AS q USING (b)"
        " WHERE p.a + q.c <> p.x AND (p.z + q.z > 1 OR coalesce(p.y, q.y) > 0.5)"
        " AND NOT EXISTS (SELECT 1 FROM t WHERE t.c = q.c AND t.a = p.a) GROUP BY p.a",
    ),
    "branches of a union take rows from each other's tables": _scenario(
        R, S, "SELECT a, x FROM r UNION ALL SELECT c, x FROM s UNION ALL SELECT r.a, s.x FROM r JOIN s USING (b)"
    ),
}


_SPREAD = "COUNT(*) AS n, SUM(p.x) AS i, AVG(q.z) AS d, SUM(p.y * q.y) AS y, SUM(q.z) AS z"
_PATH = "r AS p JOIN s AS o ON p.b = o.b JOIN t AS q ON o.c = q.c"

def _with_rings(scenario: Scenario) -> Scenario:
    """The first view of a scenario, with aggregates over users' rings."""
    (view, *_) = scenario.views
    rings = (gauss("p.x", "q.x"), poly("p.x", "p.b"), bins("q.z"))
    spark, duck = view.query.spark.split(" FROM ", 1), view.query.duck.split(" FROM ", 1)
    added = [(f"{one.spark} AS u{i}", f"{one.duck} AS u{i}") for i, one in enumerate(rings)]
    text = Text(
        f"{', '.join([spark[0], *(one for one, _ in added)])} FROM {spark[1]}",
        f"{', '.join([duck[0], *(one for _, one in added)])} FROM {duck[1]}",
    )
    return replace(scenario, views=(replace(view, query=text),))


GROUPS: dict[str, Scenario] = {
    "groups by columns of several tables": _scenario(
        R,
        S,
        T,
        f"SELECT p.a, p.b, o.c, {_SPREAD} FROM {_PATH} GROUP BY p.a, p.b, o.c",
        f"SELECT p.a, p.b, q.c, {_SPREAD} FROM r AS p JOIN s AS q USING (b) GROUP BY p.a, p.b, q.c HAVING COUNT(*) > 1",
        "SELECT n, COUNT(*) AS groups, SUM(i) AS i FROM v1 GROUP BY n",
        "SELECT a, c, i + n AS k FROM v1 UNION SELECT b, a, n FROM v2",
    ),
    "groups by columns of several tables, some of them left out of the output": _scenario(
        R, S, "SELECT p.a, COUNT(p.x) AS n FROM r AS p JOIN s AS q USING (b) GROUP BY p.a, p.b, q.c"
    ),
    "groups of a product": _scenario(
        R, S, f"SELECT p.a, q.c, {_SPREAD} FROM r AS p CROSS JOIN s AS q GROUP BY p.a, q.c"
    ),
    "groups of a join over Z by columns of several tables": _scenario(
        TRUSTED, S, f"SELECT p.a, p.b, q.c, {_SPREAD} FROM trusted AS p JOIN s AS q USING (b) GROUP BY p.a, p.b, q.c"
    ),
    "groups by columns of several tables, over users' rings": _with_rings(
        _scenario(
            R,
            S,
            T,
            f"SELECT p.a, p.b, o.c, COUNT(*) AS n FROM {_PATH} GROUP BY p.a, p.b, o.c",
        )
    ),
    "groups of a join over Z, over users' rings": _with_rings(
        _scenario(TRUSTED, S, "SELECT p.a, q.c FROM trusted AS p JOIN s AS q USING (b) GROUP BY p.a, q.c")
    ),
    "outer joins, over users' rings": _with_rings(
        _scenario(R, S, "SELECT p.a, q.c FROM r AS p LEFT JOIN s AS q ON p.b = q.b GROUP BY p.a, q.c")
    ),
    "groups with conditions and sums across tables": _scenario(
        R,
        S,
        "SELECT p.a, p.b, q.c, SUM(p.a + q.c) AS n, COUNT(q.w) AS w FROM r AS p JOIN s AS q USING (b)"
        " WHERE p.a < q.c GROUP BY p.a, p.b, q.c",
        "SELECT p.a, p.b, q.c, SUM(p.x + q.x) AS n FROM r AS p JOIN s AS q USING (b) GROUP BY p.a, p.b, q.c",
    ),
    "groups of a triangle and what hangs on it": _scenario(
        R,
        S,
        T,
        "SELECT p.a, p.b, o.b AS o, COUNT(*) AS n, SUM(q.x) AS x, SUM(o.z) AS z FROM r AS p JOIN s AS q ON p.b = q.b"
        " JOIN t ON q.c = t.c AND t.a = p.a JOIN r AS o ON o.a = p.a GROUP BY p.a, p.b, o.b",
    ),
    "groups by one table's columns, by values of all, and by what is not free-connex": _scenario(
        R,
        S,
        "SELECT p.a, COUNT(*) AS n FROM r AS p JOIN s AS q USING (b) GROUP BY p.a",
        "SELECT p.a, p.b, q.c, COUNT(DISTINCT q.x) AS n, MIN(p.z) AS z FROM r AS p JOIN s AS q USING (b)"
        " GROUP BY p.a, p.b, q.c",
        "SELECT p.a, q.c, COUNT(*) AS n, SUM(q.x) AS x FROM r AS p JOIN s AS q USING (b) GROUP BY p.a, q.c",
    ),
}
"""Groups that ``crown`` combines from rows of several relations, and groups that it does not."""


_EDGES = BaseTable("e", (TableColumn("a", "BIGINT"), TableColumn("b", "BIGINT")))
_DUMBBELL = (
    "FROM e AS o, e AS p, e AS q, e AS r, e AS s, e AS t, e AS u WHERE o.a = p.a AND o.b = q.a AND p.b = q.b"
    " AND q.b = r.a AND r.b = s.a AND s.a = t.a AND s.b = u.a AND t.b = u.b"
)
ALIKE: dict[str, Scenario] = {
    "triangles at both ends of an edge": _scenario(
        _EDGES,
        f"SELECT o.a AS a, o.b AS b, r.a AS c, r.b AS d, s.b AS e, t.b AS f {_DUMBBELL}",
        f"SELECT DISTINCT r.a AS c, r.b AS d {_DUMBBELL}",
    ),
    "two triangles with a corner in common": _scenario(
        _EDGES,
        "SELECT o.a, COUNT(*) AS n FROM e AS o, e AS p, e AS q, e AS r, e AS s, e AS t WHERE o.b = p.a AND p.b = q.a"
        " AND q.b = o.a AND r.a = o.a AND r.b = s.a AND s.b = t.a AND t.b = o.a GROUP BY o.a",
    ),
}
"""Cyclic views with isomorphic bags: for ``crown`` alone; other strategies take minutes over these joins."""


_ONLY = "SELECT r.a, {0}(CASE WHEN r.a > 1 THEN r.a END) AS x, {0}(s.b - s.b) AS y FROM r JOIN s USING (b) GROUP BY r.a"

ONE_VALUE: dict[str, Scenario] = {
    "the one value of a group, which may be NULL": Scenario(
        (R, S), (NamedView("v1", Text(_ONLY.format("ONLY_VALUE"), _ONLY.format("ANY_VALUE"))),)
    ),
}


def _in_sets(tables: tuple[BaseTable, ...], *queries: str) -> Scenario:
    """Queries with grouping sets; {0} becomes the HAVING by which DuckDB returns no row of an empty set over no
    rows."""
    texts = (Text(query.format(""), query.format(f" HAVING {NOT_EMPTY}")) for query in queries)
    return Scenario(tables, tuple(NamedView(f"v{i}", text) for i, text in enumerate(texts, 1)))


SETS: dict[str, Scenario] = {
    "a rollup over two tables, of each kind of aggregate": _in_sets(
        (R, S),
        "SELECT p.a, q.c, p.w, COUNT(*) AS n, COUNT(p.x) AS nx, SUM(p.x * q.x) AS s, SUM(q.z) AS z, AVG(p.x) AS m,"
        " MIN(p.w) AS least, MAX(q.y) AS most, BIT_OR(p.x) AS o, COUNT(DISTINCT q.w) AS d, SUM(DISTINCT q.y) AS sd"
        " FROM r AS p JOIN s AS q USING (b) GROUP BY ROLLUP (p.a, q.c, p.w){0}",
    ),
    "a cube, and what tells its sets apart": _in_sets(
        (R, S, T),
        "SELECT r.a, s.c, t.x, COUNT(*) AS n, MAX(t.y) AS m, GROUPING(s.c) AS g, GROUPING_ID(r.a, s.c, t.x) AS id"
        " FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c GROUP BY CUBE (r.a, s.c, t.x){0}",
        "SELECT a, x, COUNT(*) AS n FROM r GROUP BY a, CUBE (x, b){0}",
    ),
    "a rollup and sets that are no chain, over users' rings": Scenario(
        (R, S),
        tuple(
            NamedView(
                name,
                Text(
                    f"SELECT p.a, q.c, {one.spark} AS u, COUNT(*) AS n FROM r AS p JOIN s AS q USING (b) {sets}",
                    f"SELECT p.a, q.c, {one.duck} AS u, COUNT(*) AS n FROM r AS p JOIN s AS q USING (b) {sets}",
                ),
            )
            for name, one, sets in (
                ("v1", poly("p.x", "q.x"), "GROUP BY ROLLUP (p.a, q.c) HAVING COUNT(*) > 0"),
                ("v2", gauss("q.x", "q.x"), "GROUP BY GROUPING SETS ((p.a), (q.c))"),
                ("v3", modulo("q.x", "p.x"), "GROUP BY CUBE (p.a, q.c) HAVING COUNT(*) > 0"),
            )
        ),
    ),
    "sets that are the same, that have no column, and that are no chain": _in_sets(
        (R,),
        "SELECT a, b, COUNT(*) AS n, MIN(x) AS m FROM r GROUP BY GROUPING SETS ((a), (b), (a), (), ()){0}",
        "SELECT COUNT(*) AS n, MAX(w) AS m FROM r GROUP BY GROUPING SETS ((), ()){0}",
        "SELECT COUNT(*) AS n, MAX(w) AS m FROM r GROUP BY GROUPING SETS (())",
    ),
    "columns that are never NULL are where a set lacks them": _in_sets(
        (R, KEYED),
        "SELECT b, COALESCE(b, -1) AS c, b IS NULL AS i, CASE WHEN b IS NOT NULL THEN COUNT(b) ELSE 0 END AS n,"
        " COALESCE(COALESCE(x, 0), -1) AS k FROM keyed GROUP BY ROLLUP (COALESCE(x, 0), b){0}",
        "SELECT k.b, COUNT(*) AS n FROM r JOIN keyed AS k USING (b) GROUP BY CUBE (k.b, r.a) HAVING k.b IS NULL"
        " AND COUNT(*) > 0",
    ),
    "groups that a join makes equal, or that are one column of two names, are in sets of their own": _in_sets(
        (R, S),
        "SELECT r.b, s.b AS o, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY ROLLUP (r.b, s.b){0}",
        "SELECT x, y, k, COUNT(*) AS n FROM (SELECT a AS x, a AS y, 1 AS k FROM r) AS q GROUP BY CUBE (x, y, k){0}",
        "SELECT x + 1 AS x1, k, COUNT(*) AS n FROM (SELECT a AS x, a + 1 AS k FROM r) AS q GROUP BY ROLLUP (x, k){0}",
    ),
    "groups that are computed from several tables": _in_sets(
        (R, S),
        "SELECT r.a + s.c AS k, upper(r.w) AS u, COUNT(*) AS n FROM r JOIN s USING (b)"
        " GROUP BY CUBE (k, upper(r.w)){0}",
        "SELECT r.w || s.w AS k, r.a, MAX(s.x) AS m FROM r JOIN s USING (b) GROUP BY ROLLUP (r.w || s.w, r.a){0}",
    ),
    "what is made of a view with grouping sets": _in_sets(
        (R,),
        "SELECT a, x, COUNT(*) AS n FROM r GROUP BY ROLLUP (a, x){0}",
        "SELECT p.a, p.n, q.n AS o FROM v1 AS p JOIN v1 AS q ON p.a = q.a WHERE q.x IS NULL",
        "SELECT DISTINCT a, COUNT(*) AS n FROM r GROUP BY CUBE (a, x){0}",
        "SELECT a, n FROM v1 UNION SELECT x, COUNT(*) FROM r GROUP BY CUBE (x, b){0}",
        "SELECT a, x, SUM(n) AS n FROM v1 GROUP BY CUBE (a, x){0}",
    ),
    "ends of the sets of a triangle, along chains": _in_sets(
        (R, S, T),
        "SELECT r.a, s.c, MIN(r.z) AS least, MAX(s.w) AS most, MIN(t.y) AS y, COUNT(*) AS n"
        " FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND t.a = r.a GROUP BY CUBE (r.a, s.c){0}",
    ),
    "groups over Z": _in_sets(
        (TRUSTED, S),
        "SELECT a, c, COUNT(*) AS n, SUM(q.x) AS s FROM trusted JOIN s AS q USING (b) GROUP BY CUBE (a, c){0}",
    ),
}


def _grid() -> dict[str, Scenario]:
    apart = ("semigroups", "moments", "many sums of doubles", "texts", "categories", "remainders", "percentiles")
    linear = [payload for payload in PAYLOADS if payload not in apart]
    found = {f"{shape}, {payload}": shaped(shape, payload) for shape in SHAPES for payload in linear}
    found |= {f"{s}, semigroups": shaped(s, "semigroups") for s in ("a join", "a self join", "a join over Z")}
    found |= {f"{shape}, moments": shaped(shape, "moments") for shape in ("a join", "a triangle", "a join over Z")}
    found |= {f"{s}, percentiles": shaped(s, "percentiles") for s in ("a join", "a triangle", "a join over Z")}
    several = ("a join", "a triangle", "a self join", "a join over Z")
    found |= {f"{shape}, {payload}": shaped(shape, payload) for shape in several for payload in ("texts", "categories")}
    found["a join, many sums of doubles"] = shaped("a join", "many sums of doubles")
    # A view of remainders is recomputed after an overflow; a trusted table has no rows for that.
    stored = [shape for shape in SHAPES if shape != "a join over Z"]
    found |= {f"{shape}, remainders": shaped(shape, "remainders") for shape in stored}
    found |= {f"{shape}, all payloads": shaped(shape, *PAYLOADS) for shape in ("a path", "a triangle")}
    others = [payload for payload in PAYLOADS if payload != "remainders"]
    found["a join over Z, all payloads"] = shaped("a join over Z", *others)
    return found | {f"{shape}, rows": shaped(shape) for shape in SHAPES}


CASES: dict[str, Scenario] = {**FOUND, **GROUPS, **ONE_VALUE, **SETS, **_grid()}
"""All rows of the table, by name."""


def _first_view(scenario: Scenario, position: int) -> Scenario:
    return Scenario(scenario.tables, (scenario.views[position],))


COMPILED: dict[str, Scenario] = {
    name: _first_view(CASES[name], position)
    for name, position in (
        ("a join, many sums of doubles", 0),
        ("a join on a key, rows", 0),
        ("a path, cofactors", 0),
        ("a join, texts", 0),
        ("sums by categories of both tables, and what is made of their texts", 0),
        ("a star, sums that are shared", 1),
        ("a join, cofactors of doubles", 1),
        ("a path, users' rings", 0),
        ("a triangle, users' rings", 1),
        ("a star, remainders", 0),
        ("a join over Z, counts", 0),
        ("a join over Z, rows", 0),
        ("a path, rows", 0),
        ("a star, integers", 0),
        ("a triangle, decimals", 1),
        ("a triangle of one table, integers", 1),
        ("a self join, extremes", 0),
        ("a join, percentiles", 0),
        ("a condition across tables, distinct values", 0),
        ("an inequality join, doubles", 1),
        ("a product, rows", 1),
        ("groups by columns of several tables", 0),
        ("groups by columns of several tables, over users' rings", 0),
        ("rows that are absent, of tables and of what is made of them", 0),
        ("the first rows of an order, by what is shown and by what is not", 0),
        ("a cube, and what tells its sets apart", 0),
    )
}
"""One view each, because compiling takes seconds: every shape, and every payload."""
