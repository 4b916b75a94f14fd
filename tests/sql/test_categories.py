"""COFACTOR with categories: the entries of a category are relations, as JSON."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.engine.change import Change
from freshviews.engine.database import Database
from freshviews.errors import PlanError, SqlError

pytestmark = pytest.mark.plain_python(only=True)

PAGE = Path(__file__).parents[2] / "docs" / "rings.md"
TABLES = (
    "CREATE TABLE t (k INT, x INT, z DOUBLE, y DECIMAL(6, 2), c STRING, d DATE, m TIMESTAMP, b BOOLEAN,"
    " n INT NOT NULL); CREATE TABLE u (k INT, e STRING, w INT)"
)
MOMENT = dt.datetime(2026, 1, 31, 8)
ROWS: list[tuple[Any, ...]] = [
    (1, 2, 0.5, Decimal("1.50"), "ä", dt.date(2026, 1, 31), MOMENT, True, 1),
    (1, 3, -0.0, Decimal("2.00"), 'b"', dt.date(2025, 1, 31), MOMENT, False, 2),
    (1, 3, 0.0, Decimal("2.00"), 'b"', dt.date(2025, 1, 31), MOMENT, False, 2),
    (2, None, float("nan"), None, None, None, None, None, 10),
]


def database(select: str, properties: str = "") -> Database:
    db = fv.Database()
    db.execute(f"{TABLES}; CREATE MATERIALIZED VIEW v {properties} AS {select}")
    return db


def values(select: str) -> list[dict[str, Any]]:
    """The rows of a view of ROWS, by column, without the alias f."""
    with database(select) as db:
        db.insert("t", ROWS)
        names = [name.removeprefix("f_") for name in db.view("v").schema.names]
        return [dict(zip(names, row, strict=True)) for row in sorted(db.view("v"), key=str)]


def test_the_category_example_of_the_rings_page_has_the_values_shown() -> None:
    page = PAGE.read_text().split("\n## Relations as payloads\n")[1].split("\n## ")[0]
    script, *_ = re.findall(r"```sql\n(CREATE TABLE .*?)```", page, re.DOTALL)
    rows = dict(re.findall(r"^\| `(f_\w+)` \| `(.*)` \|$", page, re.MULTILINE))
    with fv.Database() as db:
        db.execute(script)
        db.insert("sales", [("Oslo", "flat", 40), ("Oslo", "house", 60), ("Bergen", "flat", 30)])
        (row,) = db.view("v")
        assert {name: str(value) for name, value in zip(db.view("v").schema.names, row, strict=True)} == rows


def test_a_cofactor_with_categories_has_columns_of_numbers_and_of_json_lists() -> None:
    (row,) = values("SELECT COFACTOR(x, CATEGORY(c), n, CATEGORY(YEAR(d))) AS f FROM t")
    assert row == {
        "count": 3,
        "sum_x": 8,
        "sum_c": '[["b\\"", 2], ["ä", 1]]',
        "sum_n": 5,
        "sum_arg4": "[[2025, 2], [2026, 1]]",
        "sum_x_x": 22,
        "sum_x_c": '[["b\\"", 6], ["ä", 2]]',
        "sum_x_n": 14,
        "sum_x_arg4": "[[2025, 6], [2026, 2]]",
        "sum_c_n": '[["b\\"", 4], ["ä", 1]]',
        "sum_c_arg4": '[["b\\"", 2025, 2], ["ä", 2026, 1]]',
        "sum_n_n": 9,
        "sum_n_arg4": "[[2025, 4], [2026, 1]]",
    }


@pytest.mark.parametrize(
    "category, listed",
    [
        ("n", "[[1, 1], [2, 2], [10, 1]]"),
        ("y", "[[1.50, 1], [2.00, 2]]"),
        ("d", '[["2025-01-31", 2], ["2026-01-31", 1]]'),
        ("m", '[["2026-01-31T08:00:00", 3]]'),
        ("b", "[[false, 2], [true, 1]]"),
        ("z", '[[0.0, 2], [0.5, 1], ["NaN", 1]]'),
        ("CAST(n AS STRING)", '[["1", 1], ["10", 1], ["2", 2]]'),
        ("COALESCE(c, '')", '[["", 1], ["b\\"", 2], ["ä", 1]]'),
        ("'one'", '[["one", 4]]'),
        ("NULL", "[]"),
    ],
)
def test_values_of_a_category_are_in_the_order_of_their_type(category: str, listed: str) -> None:
    (row,) = values(f"SELECT COFACTOR(CATEGORY({category})) FROM t")
    total, found = row.values()
    assert (found, total) == (listed, sum(number for *_, number in json.loads(listed)))


@pytest.mark.parametrize(
    "items, found",
    [
        ("COFACTOR(CATEGORY(n)) FILTER (WHERE x > 2) AS f", {"count": 2, "sum_n": "[[2, 2]]"}),
        ("COFACTOR(CATEGORY(n)) FILTER (WHERE x > 9) AS f", {"count": 0, "sum_n": "[]"}),
        (
            "COFACTOR(y, CATEGORY(n)) FILTER (WHERE b) AS f",
            {"count": 1, "sum_y": Decimal("1.50"), "sum_n": "[[1, 1]]", "sum_y_y": Decimal("2.2500")}
            | {"sum_y_n": "[[1, 1.50]]"},
        ),
        (
            "COFACTOR(CATEGORY(b), CATEGORY(b)) AS f",
            {"count": 3, "sum_b": "[[false, 2], [true, 1]]", "sum_b_2": "[[false, 2], [true, 1]]"}
            | {"sum_b_b_2": "[[false, false, 2], [true, true, 1]]"},
        ),
        # The argument is computed only for rows that FILTER keeps.
        ("COFACTOR(CATEGORY(6 / x)) FILTER (WHERE z > 0) AS f", {"count": 1, "sum_arg1": "[[3.0, 1]]"}),
    ],
)
def test_a_cofactor_may_have_a_filter_or_only_categories(items: str, found: dict[str, Any]) -> None:
    assert values(f"SELECT {items} FROM t") == [found]


def test_groups_with_only_nulls_have_empty_relations() -> None:
    nothing = {"count": 0, "sum_x": None, "sum_c": "[]", "sum_x_x": None, "sum_x_c": "[]"}
    rows = values("SELECT k, COFACTOR(x, CATEGORY(c)) AS f FROM t GROUP BY k")
    assert rows[1] == {"k": 2, **nothing}
    with database("SELECT COFACTOR(x, CATEGORY(c)) FROM t") as db:
        assert list(db.view("v")) == [tuple(nothing.values())]
        db.insert("t", ROWS[:1])
        assert list(db.view("v")) == [(1, 2, '[["ä", 1]]', 4, '[["ä", 2]]')]
        db.delete("t", ROWS[:1])
        assert list(db.view("v")) == [tuple(nothing.values())]
        assert db.stats()["views"]["v#2"]["rows"] == 0


def test_cofactors_with_categories_work_with_grouping_sets() -> None:
    rows = values(
        "SELECT k, COFACTOR(CATEGORY(b)) AS f, STRING_AGG(n, ',') AS s, GROUPING(k) AS g FROM t"
        " GROUP BY ROLLUP (k) HAVING f_count > 1 AND MAX(n) < 11"
    )
    listed = "[[false, 2], [true, 1]]"
    assert rows == [
        {"k": 1, "count": 3, "sum_b": listed, "s": "1,2,2", "g": 0},
        {"k": None, "count": 3, "sum_b": listed, "s": "1,2,2,10", "g": 1},
    ]
    assert values("SELECT COFACTOR(CATEGORY(b)) AS f FROM t GROUP BY b") == [
        {"count": 0, "sum_b": "[]"},
        {"count": 1, "sum_b": "[[true, 1]]"},
        {"count": 2, "sum_b": "[[false, 2]]"},
    ]


def test_sums_of_doubles_over_a_join_are_right_after_random_updates() -> None:
    """The texts have the sums rounded once, and the changes add up to the rows."""
    select = "SELECT t.k, COFACTOR(z, w, CATEGORY(c), CATEGORY(e)) AS f FROM t JOIN u ON t.k = u.k GROUP BY t.k"
    choose, seen = random.Random(4), Counter[tuple[Any, ...]]()
    t, u = list[tuple[Any, ...]](), list[tuple[Any, ...]]()

    def add(change: Change) -> None:
        for row, m in change:
            seen[tuple(row)] += m

    with database(select) as db:
        db.view("v").subscribe(add)
        for _ in range(40):
            z, c = choose.choice((None, 0.1, 1e9, -0.3)), choose.choice((None, "p", "q"))
            new_t = (choose.randint(1, 2), 0, z, None, c, None, None, None, 1)
            new_u = (choose.randint(1, 2), choose.choice((None, "r", "s")), choose.choice((None, 1, 2)))
            with db.batch() as batch:
                for name, rows, new in (("t", t, new_t), ("u", u, new_u)):
                    rows.append(new)
                    batch.insert(name, [new])
                    if len(rows) > 5:
                        batch.delete(name, [rows.pop(choose.randrange(len(rows)))])
            joined = [(a[0], a[2], b[2], a[4], b[1]) for a in t for b in u if a[0] == b[0]]
            assert sorted(db.view("v")) == sorted(expected(joined))
            assert +seen == Counter(list(db.view("v")))


def expected(joined: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of a cofactor of two numbers and two categories, by group."""
    found = []
    for k in {row[0] for row in joined}:
        rows = [row[1:] for row in joined if row[0] == k and None not in row]

        def total(*places: int, rows: list[tuple[Any, ...]] = rows) -> float | None:
            return float(sum(product(row, places) for row in rows)) if rows else None

        def relation(place: int, *more: int, rows: list[tuple[Any, ...]] = rows) -> str:
            keys = (place, *(i for i in more if i > 1))
            sums = dict[tuple[str, ...], Fraction]()
            for row in rows:
                key = tuple(row[i] for i in sorted(keys))
                sums[key] = sums.get(key, Fraction()) + product(row, [i for i in more if i < 2])
            shown = (lambda n: float(n)) if any(i < 2 for i in more) else int
            return json.dumps([[*key, shown(sums[key])] for key in sorted(sums)])

        entries = [len(rows), total(0), total(1), relation(2), relation(3), total(0, 0), total(0, 1)]
        entries += [relation(2, 0), relation(3, 0), total(1, 1), relation(2, 1), relation(3, 1), relation(2, 3)]
        found.append((k, *entries))
    return found


def product(row: tuple[Any, ...], places: Any) -> Fraction:
    made = Fraction(1)
    for i in places:
        made *= Fraction(row[i])
    return made


def test_one_internal_view_stores_the_groups_of_all_relations() -> None:
    """The internal views have the numbers, the groups of all relations, and their texts."""
    with database("SELECT COFACTOR(x, w, n, CATEGORY(c), CATEGORY(e)) FROM t JOIN u USING (k)") as db:
        db.insert("t", [(1, i, None, None, "cd"[i % 2], None, None, None, i) for i in range(20)])
        db.insert("u", [(1, "ef"[i % 2], i) for i in range(20)])
        kept = {name: one["rows"] for name, one in db.stats()["views"].items()}
        assert kept == {"v": 1, "v#1": 1, "v#2": 2 + 2 + 4, "v#3": 1}, "400 rows are joined"
        (block,) = db._relations.views["v#3"].maintained.blocks
        assert block.texts is not None and block.texts.rows == 8


def test_a_category_is_not_a_variable_of_the_payload() -> None:
    """A category that may be NULL is a factor of 0 or 1; else the payload has the numbers alone."""
    calls = "COFACTOR(x, n, CATEGORY(c)) AS f, COFACTOR(x, n) AS g, COFACTOR(x, n, CATEGORY(n)) AS h"
    with database(f"SELECT {calls} FROM t") as db:
        (block,) = db._relations.views["v#1"].definition.blocks
        cofactors = [one for one in block.query.aggregates if one.ring == "cofactor.integer"]
        assert [{lift.place for lift in one.lifts} for one in cofactors] == [{0, 1, None}, {0, 1, None}]


@pytest.mark.parametrize("strategy", ["first_order", "crown", "incremental_trie_join"])
def test_the_strategy_of_a_view_also_maintains_its_internal_views(strategy: str) -> None:
    select = "SELECT t.k, COFACTOR(w, CATEGORY(c)) AS f FROM t JOIN u ON t.k = u.k GROUP BY t.k"
    with database(select, f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')") as db:
        views = db._relations.views
        assert {views[name].maintained.strategies for name in ("v", "v#1", "v#2")} == {(strategy,)}
        with pytest.raises(SqlError, match="which has a text of the rows of each group"):
            db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.strategy' = 'crown')")
    with pytest.raises(PlanError, match="ivm_eps"):
        database(select, "TBLPROPERTIES ('freshviews.strategy' = 'ivm_eps')")


def test_explain_lists_the_entries_in_the_json_of_cofactor_with_categories() -> None:
    with database("SELECT k, COFACTOR(x, CATEGORY(c), CATEGORY(d)) FROM t GROUP BY k") as db:
        shown = db._relations.views["v#3"].maintained.explain()
        first, second = "(c3, c5) where c2 = 0, (c3, c6) where c2 = 0", "(c4, c5) where c2 = 1, (c4, c6) where c2 = 1"
        assert f"text      JSON of {first}, {second}, (c3, c4, c5) where c2 = 2, of the rows of each (c1), in" in shown


@pytest.mark.parametrize(
    "select, message",
    [
        ("SELECT COVAR_MATRIX(x, CATEGORY(c)) FROM t", "CATEGORY in COVAR_MATRIX is not supported; use COFACTOR(x, "),
        ("SELECT CORR_MATRIX(CATEGORY(c), x, n) FROM t", "or freshviews.learn for models"),
        ("SELECT SUM(CATEGORY(n)) FROM t", "CATEGORY here is not supported; it is an argument of COFACTOR"),
        ("SELECT COFACTOR(x, CATEGORY(c) || 'x') FROM t", "CATEGORY here is not supported"),
        ("SELECT k FROM t GROUP BY CATEGORY(c)", "CATEGORY here is not supported"),
        ("SELECT COFACTOR(x, CATEGORY(c, d)) FROM t", "category takes 1 argument, not 2"),
        ("SELECT COFACTOR(x, CATEGORY()) FROM t", "category takes 1 argument, not 0"),
        ("SELECT COFACTOR(x, CATEGORY(SUM(n))) FROM t", "cannot stand in an aggregate function"),
        ("SELECT COFACTOR(DISTINCT CATEGORY(c)) FROM t", "cofactor of DISTINCT values is not supported"),
        ("SELECT COFACTOR(x, CATEGORY(c)) OVER (PARTITION BY k) FROM t", "returns several columns"),
    ],
)  # fmt: skip
def test_an_unsupported_cofactor_is_refused_with_its_place(select: str, message: str) -> None:
    with pytest.raises(SqlError, match=re.escape(message)) as caught:
        database(f"\n{select}")
    assert (caught.value.line, caught.value.column > 1) == (2, True)
