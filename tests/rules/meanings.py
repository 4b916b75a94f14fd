"""Rules, with hand-written SQL of the same meaning for DuckDB."""

from __future__ import annotations

from collections.abc import Mapping

from freshviews.catalog.catalog import Catalog
from freshviews.rules import script_of
from freshviews.sql.statements.sql_script import parse_script
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text
from tests.agreement.sql_cofactors import matrix

R = BaseTable("r", (TableColumn("a", "BIGINT"), TableColumn("b", "BIGINT")))
S = BaseTable("s", (TableColumn("b", "BIGINT"), TableColumn("c", "BIGINT")))
T = BaseTable("t", (TableColumn("c", "BIGINT", False), TableColumn("a", "BIGINT", False)), ("c", "a"))
W = BaseTable("w", (TableColumn("a", "BIGINT"), TableColumn("x", "INT"), TableColumn("name", "STRING")))
TABLES = (R, S, T, W)

_R = "(SELECT DISTINCT a, b FROM r)"
_WITH_CATEGORIES = matrix("cofactor", [*map(Text.same, ("r.b", "r.a", "r.a + t.a"))], "m", (0, 2))
MEANINGS = {
    "join": ("v(a, b, c) <- r(a, b), s(b, c), t(c, a).",
             "SELECT DISTINCT r.a, r.b, s.c FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND t.a = r.a"),
    "projection": ("v(a) <- r(a, b), s(b, _).", "SELECT DISTINCT r.a FROM r JOIN s USING (b)"),
    "repeated variable": ("v(a) <- r(a, a).", "SELECT DISTINCT a FROM r WHERE a = b"),
    "constants": ("v(b) <- r(2, b), w(_, x, 'a'), x > 0.",
                  "SELECT DISTINCT r.b FROM r, w WHERE r.a = 2 AND w.name = 'a' AND w.x > 0"),
    "comparison and arithmetic": ("v(a, d) <- r(a, b), d = 2 * (a - b) + 1, d != 3, -a <= b.",
                                  "SELECT DISTINCT a, 2 * (a - b) + 1 FROM r WHERE 2 * (a - b) + 1 <> 3 AND -a <= b"),
    "an argument that is computed": ("v(a) <- r(a, b), s(a + 1, b).",
                                     "SELECT DISTINCT r.a FROM r, s WHERE s.b = r.a + 1 AND s.c = r.b"),
    "negation": ("v(a, b) <- r(a, b), !t(b, a).",
                 "SELECT DISTINCT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.c = r.b AND t.a = r.a)"),
    "negation over a projection": ("v(a) <- r(a, b), !s(b, _).",
                                   "SELECT DISTINCT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b)"),
    "two negations": ("v(a) <- r(a, b), !s(b, _), !t(_, a).",
                      "SELECT DISTINCT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b) "
                      "AND NOT EXISTS (SELECT 1 FROM t WHERE t.a = r.a)"),
    "disjunction": ("v(a) <- r(a, b), (s(b, _) ; b > 2).",
                    "SELECT DISTINCT a FROM r WHERE b > 2 OR EXISTS (SELECT 1 FROM s WHERE s.b = r.b)"),
    "several rules": ("v(a) <- r(a, _). v(x) <- t(x, y), !r(x, y).",
                      "SELECT a FROM r UNION SELECT c FROM t "
                      "WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.a = t.c AND r.b = t.a)"),
    "a head in a body": ("v(a) <- one(a), !two(a). one(a) <- r(a, _). two(b) <- s(b, c), c > 1.",
                         "SELECT DISTINCT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.a AND c > 1)"),
    "count": ("v(a, n) <- agg<<n = count()>> r(a, b).", f"SELECT a, COUNT(*) FROM {_R} GROUP BY a"),
    "sum, min and max": ("v(a, s, l, m) <- agg<<s = sum(b + c), l = min(c), m = max(b)>> r(a, b), t(b, c).",
                         "SELECT r.a, SUM(r.b + t.a), MIN(t.a), MAX(r.b) "
                         f"FROM {_R} r JOIN t ON t.c = r.b GROUP BY r.a"),
    "bits, and values by others": ("v(a, s, l, m, n) <- agg<<s = bit_and(b + c), l = bit_or(c), m = max_by(b, c), "
                                   "n = min_by(c - 1, b)>> r(a, b), t(b, c).",
                                   "SELECT r.a, BIT_AND(r.b + t.a), BIT_OR(t.a), "
                                   "struct_extract(MAX({'c': t.a, 'b': r.b}), 'b'), "
                                   "struct_extract(MIN({'b': r.b, 'c': t.a}), 'c') - 1 "
                                   f"FROM {_R} r JOIN t ON t.c = r.b GROUP BY r.a"),
    "an aggregate of what is not there": ("v(a, n) <- agg<<n = count()>> r(a, b), !s(b, _).",
                                          f"SELECT a, COUNT(*) FROM {_R} r "
                                          "WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b) GROUP BY a"),
    "an aggregate of either": ("v(a, n) <- agg<<n = count()>> (r(a, b) ; t(a, b), !s(b, _)).",
                               "SELECT a, COUNT(*) FROM (SELECT a, b FROM r UNION SELECT c, a FROM t WHERE NOT EXISTS "
                               "(SELECT 1 FROM s WHERE s.b = t.a)) GROUP BY a"),
    "a functional head": ("v[a] = d <- r(a, b), d = 2 * a + 1.", "SELECT DISTINCT a, 2 * a + 1 FROM r"),
    "functional heads of several bodies": (
        "v[a, b] = d <- r(a, b), !s(b, _), d = a - b ; t(a, b), g[] = e, d = a - b. g[] = e <- s(_, _), e = 1.",
        f"SELECT a, b, a - b FROM {_R} r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b) "
        "UNION SELECT c, a, c - a FROM t WHERE EXISTS (SELECT 1 FROM s)",
    ),
    "a functional head that is read, with an aggregate": (
        "v[a] = n <- agg<<n = count()>> g[a] = l, r(a, b), b >= l. g[a] = l <- agg<<l = min(b)>> r(a, b).",
        f"SELECT a, COUNT(b) FROM {_R} r WHERE a IS NOT NULL AND b IS NOT NULL GROUP BY a",
    ),
    "an aggregate of all": ("v(n) <- agg<<n = sum(c)>> t(c, _).",
                            "SELECT SUM(c) FROM (SELECT DISTINCT c FROM t) HAVING COUNT(*) > 0"),
    "a cofactor": ("v(a, f) <- agg<<f = cofactor(b, c)>> r(a, b), t(b, c).",
                   "SELECT r.a, COUNT(*), SUM(r.b), SUM(t.a), SUM(r.b * r.b), SUM(r.b * t.a), SUM(t.a * t.a) "
                   f"FROM {_R} r JOIN t ON t.c = r.b GROUP BY r.a"),
    "a cofactor with categories": ("v(a, f) <- agg<<f = cofactor(category(b), a, category(a + c))>> r(a, b), t(b, c).",
                                   f"SELECT r.a, {_WITH_CATEGORIES.duck} FROM {_R} r JOIN t ON t.c = r.b GROUP BY r.a"),
    "a cofactor of what is not there": ("v(f) <- agg<<f = cofactor(d)>> r(a, b), !s(b, _), d = a + b.",
                                        f"SELECT COUNT(a + b), SUM(a + b), SUM((a + b) * (a + b)) FROM {_R} r "
                                        "WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b) HAVING COUNT(*) > 0"),
    "texts": ("v(a, t) <- agg<<t = string_agg(b, ', ' order by b desc, a)>> r(a, b), t(b, _).",
              "SELECT a, STRING_AGG(CAST(b AS VARCHAR), ', ' ORDER BY b DESC) "
              f"FROM {_R} r WHERE EXISTS (SELECT 1 FROM t WHERE t.c = r.b) GROUP BY a"),
}  # fmt: skip
"""By topic: rules, whose head ``v`` is compared, and the query of ``v``."""


def catalog() -> Catalog:
    """The tables."""
    found = Catalog()
    for table in TABLES:
        for statement in parse_script(table.text.spark, found):
            found = found.after(statement)
    return found


def scenario_of(name: str, properties: Mapping[str, str] | None = None) -> Scenario:
    """The views of a meaning over the tables, with the SQL of its rules under the properties. Only ``v`` is compared
    with DuckDB."""
    rules, duck = MEANINGS[name]
    views = []
    for line in script_of(rules, catalog(), properties).text.rstrip(";\n").split(";\n"):
        head, body = line.removeprefix("CREATE MATERIALIZED VIEW ").split(" AS ", 1)
        view, *listed = head.split(" TBLPROPERTIES ")[0].removesuffix(")").split(" (", 1)
        view = view.strip("`")
        other = body.replace("`", '"').replace("ONLY_VALUE", "ANY_VALUE")
        columns = listed[0].replace("`", "") if listed else _columns(rules)
        own = f"SELECT * FROM ({duck}) AS q({columns})" if view == "v" else other
        views.append(NamedView(view, Text(body, own)))
    return Scenario(TABLES, tuple(views))


def _columns(rules: str) -> str:
    """The columns of the head of ``v``."""
    return rules.split("<-", 1)[0].strip().removeprefix("v")[1:].rstrip(")").replace("] =", ",").removeprefix(",")
