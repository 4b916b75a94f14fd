"""Random scenarios of set operations: terms of joins, projections and aggregates over three small tables."""

from __future__ import annotations

from tests.agreement.choices import Choices
from tests.agreement.random_tables import versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text

_NUMBER = "BIGINT"
_TABLES = (
    BaseTable("r", (TableColumn("a", _NUMBER), TableColumn("b", _NUMBER))),
    BaseTable("s", (TableColumn("b", _NUMBER), TableColumn("c", "INT"))),
    BaseTable("t", (TableColumn("c", _NUMBER, False), TableColumn("d", "INT"))),
)
_PAIRS = (
    "SELECT a, b FROM r",
    "SELECT c, b FROM s",
    "SELECT DISTINCT d, c FROM t",
    "SELECT a + 1, b FROM r WHERE b > 0",
    "SELECT r.a, r.b FROM r JOIN s ON r.b = s.b",
    "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "SELECT r.b, s.c FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c",
    "SELECT p.a, q.b FROM r AS p JOIN r AS q ON p.b = q.a AND p.a <= q.b",
    "SELECT p.b, p.b FROM r AS p JOIN r AS q ON p.b = q.b",
    "SELECT b, COUNT(*) FROM r GROUP BY b",
    "SELECT b, 1 FROM s",
    "SELECT r.a, t.d FROM r, t WHERE r.a = t.c + 0 OR r.b = t.d",
    "SELECT MAX(a), COUNT(b) FROM r",
    "SELECT k.x, k.y FROM (VALUES (1, 2), (1, 2), (0, NULL)) AS k(x, y)",
    "SELECT r.a, k.y FROM r JOIN (VALUES (1, 2), (2, 0), (1, 2)) AS k(x, y) ON r.b = k.x",
    "SELECT k.x, s.c FROM (SELECT 1 AS x) AS k JOIN s ON s.b = k.x",
)
_ONES = ("SELECT a FROM r", "SELECT c FROM s", "SELECT r.b FROM r JOIN s ON r.b = s.b", "SELECT SUM(d) FROM t")
_KINDS = ("UNION", "EXCEPT", "INTERSECT", "UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "EXCEPT ALL", "INTERSECT ALL")


def set_scenario(choose: Choices) -> Scenario:
    """One view, or two of which the second also reads the first, and some versions."""
    wide = choose.chance(80)
    selects = list(_PAIRS if wide else _ONES)
    names = ["x", "y"] if wide else ["x"]
    plain = []
    if choose.chance(30):
        plain.append(NamedView("p", Text.same(_aliased(_term(choose, selects, choose.between(0, 2)), names)), True))
        of_plain = ["SELECT x, y FROM p", "SELECT p.x, s.c FROM p JOIN s ON p.y = s.b"] if wide else ["SELECT x FROM p"]
        selects += of_plain * 3
    views = [NamedView("v1", Text.same(_aliased(_term(choose, selects, choose.between(1, 3)), names)))]
    if choose.chance(40):
        if wide:
            selects += ["SELECT x, y FROM v1", "SELECT v1.x, s.c FROM v1 JOIN s ON v1.y = s.b"] * 4
        else:
            selects += ["SELECT x FROM v1"] * 3
        views.append(NamedView("v2", Text.same(_aliased(_term(choose, selects, 1), names))))
    return Scenario(_TABLES, tuple(views), versions(choose, _TABLES, False), plain=tuple(plain))


def _term(choose: Choices, selects: list[str], depth: int) -> str:
    if depth == 0 or choose.chance(20):
        return choose.pick(selects)
    left, right = (_term(choose, selects, depth - 1) for _ in range(2))
    if choose.chance(50):
        left, right = (f"({one})" if one.count("SELECT") > 1 else one for one in (left, right))
    return f"{left} {choose.pick(_KINDS)} {right}"


def _aliased(term: str, names: list[str]) -> str:
    """The term with the columns of its first SELECT named: the whole set operation has these names."""
    head, rest = term.split("SELECT ", 1)
    distinct = "DISTINCT " if rest.startswith("DISTINCT ") else ""
    listed, rest = rest.removeprefix("DISTINCT ").split(" FROM ", 1)
    items = listed.split(", ")
    aliased = ", ".join(f"{item} AS {name}" for item, name in zip(items, names, strict=True))
    return f"{head}SELECT {distinct}{aliased} FROM {rest}"
