"""Outer, semi and anti joins become atoms and internal views, and have the rows of DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import duckdb
import pytest

from freshviews.catalog.definitions import ViewDef
from freshviews.errors import SqlError, UnsupportedSql
from freshviews.expr.nodes import Call
from freshviews.query.query import Atom
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import decode_value, encoder_for
from tests.plan.oracle import Relation, evaluate_view
from tests.sql.printed import catalog, views

TABLES = """
CREATE TABLE r (k INT, x INT NOT NULL, n STRING);
CREATE TABLE s (k INT, y INT NOT NULL, m STRING);
CREATE TABLE t (k INT NOT NULL, z INT, y INT);
"""

ROWS: dict[str, list[tuple[Any, ...]]] = {
    "r": [(1, 10, "a"), (2, 20, None), (None, 30, "b"), (1, 11, "c"), (5, 50, "a"), (5, 50, "a")],
    "s": [(1, 1, "a"), (1, 2, None), (3, 3, "b"), (None, 4, "z")],
    "t": [(1, 10, 1), (2, None, 2), (3, 30, 3), (9, 5, None)],
}

QUERIES = [
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k",
    "SELECT r.k, s.k AS sk, y FROM r LEFT JOIN s ON r.k = s.k WHERE s.k IS NULL",
    "SELECT r.k, count(*) c, count(s.k) cs, sum(y) sy, sum(coalesce(y,7)) s7, min(y) mn, count(DISTINCT s.k) "
    "cd, max(coalesce(y,100)) mx FROM r LEFT JOIN s ON r.k = s.k GROUP BY r.k",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k AND r.x > 10",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k AND s.y > 1",
    "SELECT * FROM r LEFT JOIN s ON r.k < s.k",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k OR r.x = s.y",
    "SELECT * FROM r LEFT JOIN s ON r.x = 10",
    "SELECT * FROM r LEFT JOIN s ON 1 = 0",
    "SELECT * FROM r LEFT JOIN s ON TRUE",
    "SELECT * FROM r LEFT JOIN s USING (k)",
    "SELECT * FROM r RIGHT JOIN s USING (k)",
    "SELECT * FROM r FULL JOIN s USING (k)",
    "SELECT * FROM r FULL JOIN s USING (k) FULL JOIN t USING (k)",
    "SELECT k, count(*) FROM r FULL JOIN s USING (k) LEFT JOIN t USING (k) GROUP BY k",
    "SELECT k, x, s.y, z FROM r FULL JOIN s USING (k) FULL JOIN t USING (k)",
    "SELECT k, count(*) AS n, sum(x) AS sx FROM r FULL JOIN s USING (k) FULL JOIN t USING (k) WHERE k > 1 GROUP BY k",
    "SELECT k, s.k AS sk, x FROM r FULL JOIN s USING (k) FULL JOIN t USING (k) WHERE z IS NULL OR s.k = 1",
    "SELECT k, x, z, y FROM r FULL JOIN s USING (k) FULL JOIN t USING (k, y)",
    "SELECT k, x, z FROM r RIGHT JOIN s USING (k) FULL JOIN (SELECT k, z FROM t WHERE z > 5) t USING (k) WHERE x > 1",
    "SELECT * FROM r NATURAL LEFT JOIN s",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON t.y = s.y",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON t.y = r.k",
    "SELECT * FROM r LEFT JOIN (s JOIN t ON s.k = t.k) ON r.k = s.k",
    "SELECT * FROM r LEFT JOIN (s LEFT JOIN t ON s.k = t.k) ON r.k = s.k",
    "SELECT * FROM r LEFT JOIN (s LEFT JOIN t ON s.y = t.k) ON r.k = t.z OR r.k = s.k",
    "SELECT * FROM r LEFT JOIN s JOIN t ON s.k = t.k ON r.k = s.k",
    "SELECT * FROM (r JOIN s ON r.k = s.k) RIGHT JOIN t ON t.k = s.y",
    "SELECT * FROM (r JOIN s ON r.k = s.k) FULL JOIN t ON t.k < s.y",
    "SELECT * FROM r FULL JOIN s ON r.k = s.k AND r.x > 10 AND s.y < 3",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON t.y = s.y OR s.y IS NULL",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON t.y <=> s.y",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON t.y + s.y = r.x",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k AND r.x = s.y + 9",
    "SELECT * FROM r a LEFT JOIN r b ON a.k = b.x - 9",
    "SELECT * FROM r LEFT JOIN (SELECT k, y + 1 AS w, 5 AS f FROM s WHERE y > 1) q ON q.k = r.k",
    "SELECT * FROM r LEFT JOIN (SELECT k, y + 1 AS w FROM s WHERE y > 1) q ON q.w = r.k",
    "SELECT * FROM r LEFT JOIN (SELECT k, sum(y) AS w FROM s GROUP BY k) q ON q.k = r.k",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k WHERE s.y > 1",
    "SELECT * FROM r FULL JOIN s ON r.k = s.k WHERE s.y > 1",
    "SELECT * FROM r FULL JOIN s ON r.k = s.k WHERE r.x > 10",
    "SELECT * FROM r FULL JOIN s ON r.k = s.k WHERE r.x > 10 AND s.y IS NOT NULL",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k WHERE coalesce(s.y, 3) > 2",
    "SELECT r.k, coalesce(s.m, 'none') AS m, upper(coalesce(s.m,'q')) u FROM r LEFT JOIN s ON r.k = s.k WHERE "
    "upper(coalesce(s.m,'q')) <> 'A'",
    "SELECT coalesce(s.m, 'none') AS m, count(*) c FROM r LEFT JOIN s ON r.k = s.k GROUP BY coalesce(s.m, 'none')",
    "SELECT DISTINCT s.k, y FROM r LEFT JOIN s ON r.k = s.k",
    "SELECT count(*), count(s.y), sum(s.y * r.x), sum(CASE WHEN s.y IS NULL THEN r.x ELSE 0 END), avg(s.y) "
    "FROM r LEFT JOIN s ON r.k = s.k",
    "SELECT * FROM r SEMI JOIN s ON r.k = s.k",
    "SELECT * FROM r ANTI JOIN s ON r.k = s.k",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.y = s.y)",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k WHERE r.k IN (SELECT k FROM t)",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k JOIN t ON t.k = r.k",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k JOIN t ON t.k = s.k",
    "SELECT * FROM r, s RIGHT JOIN t ON s.k = t.k",
    "SELECT n.a, n.b FROM (SELECT r.k AS a, s.y AS b FROM r LEFT JOIN s ON r.k = s.k) n JOIN t ON t.k = n.a",
    "SELECT * FROM t LEFT JOIN (SELECT r.k AS a, s.y AS b FROM r LEFT JOIN s ON r.k = s.k) n ON t.k = n.a",
    "SELECT r.k FROM r LEFT JOIN s ON r.k = s.k UNION SELECT y FROM t",
    "SELECT r.k, s.y FROM r LEFT JOIN s ON r.k = s.k ORDER BY r.k NULLS FIRST, s.y NULLS LAST LIMIT 3",
    "SELECT r.k, s.y, count(*) FROM r LEFT JOIN s ON r.k = s.k GROUP BY ROLLUP (r.k, s.y)",
    "SELECT r.k, min(s.m), max(upper(s.m)), count(DISTINCT y+1) FROM r LEFT JOIN s ON r.k = s.k GROUP BY r.k "
    "HAVING count(s.k) = 0 OR sum(y) > 1",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k AND s.m = 'a' WHERE s.m IS NULL OR s.y = 1",
    "SELECT * FROM (r LEFT JOIN s ON r.k = s.k) LEFT JOIN t ON t.k = r.k AND s.y = 1",
    "SELECT * FROM (r LEFT JOIN s ON r.k = s.k) ANTI JOIN t ON t.y = s.y",
    "SELECT * FROM (r LEFT JOIN s ON r.k = s.k) SEMI JOIN t ON t.y < s.y",
    "SELECT * FROM (r FULL JOIN s ON r.k = s.k) ANTI JOIN t ON t.y < s.y",
    "SELECT * FROM r LEFT JOIN s ON r.k = s.k AND r.x = s.y LEFT JOIN t ON t.k = r.k AND t.y = s.y AND t.z > r.x",
    "SELECT a.k, b.k, c.k FROM r a FULL JOIN r b ON a.k = b.k + 1 FULL JOIN s c ON c.k = b.k",
    "SELECT r.k, q.c FROM r LEFT JOIN (SELECT k, count(*) AS c FROM s GROUP BY k) q ON q.k = r.k WHERE "
    "coalesce(q.c, 0) = 0",
    "SELECT r.k, q.c FROM r LEFT JOIN (SELECT count(*) AS c FROM s) q ON TRUE",
    "SELECT r.x, s.y FROM r LEFT JOIN s ON r.k = s.k ANTI JOIN t ON s.y = t.k OR s.y IS NULL",
    "SELECT r.x, s.y FROM r LEFT JOIN s ON r.k = s.k SEMI JOIN t ON s.y = t.k OR s.y IS NULL",
    "SELECT r.x, s.y FROM r LEFT JOIN s ON r.x = s.y + 9 OR r.k IS NULL LEFT JOIN t ON r.k = t.z AND s.y IS NULL "
    "ANTI JOIN r AS o ON t.k + t.y = o.k",
]


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(TABLES)
    for name, rows in ROWS.items():
        made.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    return made


@pytest.mark.parametrize("sql", QUERIES)
def test_a_join_returns_the_same_rows_as_duckdb(duck: duckdb.DuckDBPyConnection, sql: str) -> None:
    answer = duck.execute(sql.replace("<=>", "IS NOT DISTINCT FROM"))
    names = ", ".join(f"c{i}" for i in range(len(answer.description)))
    found = views(sql, catalog(TABLES), f"v ({names})")
    rows = _rows(found)
    assert Counter(map(_plain, rows.elements())) == Counter(map(_plain, answer.fetchall()))
    for i, column in enumerate(found[-1].columns):
        assert column.nullable or all(row[i] is not None for row in rows), column


def _rows(found: tuple[ViewDef, ...]) -> Counter[tuple[Any, ...]]:
    """The rows of the last view, by the oracle."""
    dictionary = Dictionary()
    known: dict[str, Relation] = {}
    for name, table in catalog(TABLES).tables.items():
        known[name] = Relation(tuple(c.name for c in table.columns))
        for row in ROWS[name]:
            codes = (encoder_for(c.type, True, dictionary)(v) for c, v in zip(table.columns, row, strict=True))
            known[name].add(tuple(codes), 1)
    for one in found:
        known[one.name] = Relation(tuple(c.name for c in one.columns), evaluate_view(one, known, dictionary))
    rows = Counter[tuple[Any, ...]]()
    for codes, times in known[found[-1].name].rows.items():
        columns = found[-1].columns
        rows[tuple(decode_value(c.type, v, dictionary) for c, v in zip(columns, codes, strict=True))] += times
    return rows


def _plain(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(value if value is None or isinstance(value, (str, bool)) else float(value) for value in row)


def _atoms(sql: str) -> tuple[Atom, ...]:
    """The atoms of a view that is one block without internal views."""
    (view,) = views(sql, catalog(TABLES))
    (block,) = view.blocks
    return block.query.atoms


def _optional(sql: str) -> list[tuple[str, bool]]:
    return [(atom.name, atom.given is not None) for atom in _atoms(sql)]


def test_left_joins_of_tables_are_optional_atoms_of_one_block() -> None:
    sql = "SELECT r.x, s.y, t.z FROM r LEFT JOIN s ON r.k = s.k AND s.y > 1 LEFT JOIN t ON t.k = s.y"
    assert _optional(sql) == [("r", False), ("s", True), ("t", True)]
    _, s, t = _atoms(sql)
    assert (s.given, t.given) == (("k",), ("y",))
    assert "y" in s.opened


def test_a_nested_left_join_becomes_a_chain_of_optional_atoms() -> None:
    sql = "SELECT r.x, s.y, t.z FROM r LEFT JOIN (s LEFT JOIN t ON t.k = s.y) ON r.k = s.k"
    assert _optional(sql) == [("r", False), ("s", True), ("t", True)]


def test_a_predicate_over_the_left_side_keeps_the_right_side_optional() -> None:
    assert _optional("SELECT r.x, s.y FROM r LEFT JOIN s ON r.k = s.k AND r.x > 10") == [("r", False), ("s", True)]


@pytest.mark.parametrize(
    ("where", "inner"),
    [
        ("s.y > 1", True),
        ("coalesce(s.y, 0) > 1", True),
        ("s.y = 1 OR s.m = 'a'", True),
        ("s.k IS NOT NULL", True),
        ("s.k IS NULL", False),
        ("coalesce(s.y, 5) > 1", False),
        ("r.x > 1 OR s.y > 1", False),
        ("s.m <=> r.n", False),
    ],
)
def test_a_where_clause_may_turn_a_left_join_into_an_inner_join(where: str, inner: bool) -> None:
    sql = f"SELECT r.x, s.y FROM r LEFT JOIN s ON r.k = s.k WHERE {where}"
    assert _optional(sql) == [("r", False), ("s", not inner)]


def test_a_where_clause_turns_a_full_join_into_a_left_or_right_join() -> None:
    full = "SELECT r.x, s.y FROM r FULL JOIN s ON r.k = s.k WHERE "
    assert _optional(full + "r.x > 1") == [("r", False), ("s", True)]
    assert _optional(full + "s.y > 1") == [("s", False), ("r", True)]
    assert _optional(full + "s.y > r.x") == [("r", False), ("s", False)]


def test_a_later_inner_join_makes_a_left_join_inner() -> None:
    sql = "SELECT r.x, t.z FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON t.k = s.y WHERE t.z = 1"
    assert _optional(sql) == [("r", False), ("s", False), ("t", False)]


def test_a_filter_on_the_join_key_is_copied_to_the_right_side() -> None:
    r, s = _atoms("SELECT r.x, s.y FROM r LEFT JOIN s ON r.k = s.k AND s.k < 9 WHERE r.k > 3")
    assert len(r.filters) == 1
    assert [one.op for one in s.filters if isinstance(one, Call)] == ["lt", "gt"]


def test_left_joins_become_inner_joins_for_the_argument_of_min() -> None:
    sql = "SELECT r.x, min(t.z) AS m FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON t.k = s.y GROUP BY r.x"
    (view,) = views(sql, catalog(TABLES))
    (distinct,) = view.blocks[0].distinct
    assert [atom.given for atom in view.blocks[0].query.atoms] == [None, ("k",), ("y",)]
    assert [atom.given for atom in distinct.query.atoms] == [None, None, None]


def test_an_internal_view_of_a_join_has_only_columns_that_are_read() -> None:
    found = views("SELECT r.x, s.y FROM r LEFT JOIN (s JOIN t ON s.k = t.k) ON r.k = s.k", catalog(TABLES))
    assert [[c.name for c in view.columns] for view in found] == [["k", "y"], ["x", "y"]]


def test_a_right_join_does_not_include_tables_before_a_comma(duck: duckdb.DuckDBPyConnection) -> None:
    found = views("SELECT r.x, t.k FROM r, s RIGHT JOIN t ON s.k = t.k", catalog(TABLES))
    assert sum(_rows(found).values()) == len(ROWS["r"]) * 5


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT r.x FROM r RIGHT SEMI JOIN s ON r.k = s.k", "RIGHT SEMI JOIN is not supported; INNER, CROSS, LEFT"),
        ("SELECT s.y FROM r LEFT SEMI JOIN s ON r.k = s.k", "unknown table s"),
        ("SELECT r.x FROM r LEFT JOIN r ON TRUE", "r is given twice in FROM"),
        ("SELECT k FROM r LEFT JOIN s ON r.k = s.k", "column k is ambiguous; write r.k or s.k"),
        ("SELECT r.x FROM (r JOIN s ON r.k = s.k) AS q", "unknown table r"),
    ],
)
def test_the_error_of_a_refused_join_names_the_reason(sql: str, message: str) -> None:
    with pytest.raises(SqlError, match=message.replace("(", r"\(")) as caught:
        views(sql, catalog(TABLES))
    assert caught.value.line
    assert not isinstance(caught.value, UnsupportedSql) or "accepted" in str(caught.value)
