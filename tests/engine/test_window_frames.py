"""Frames of windows, values of their rows, and functions of places have the recorded answers of Spark after updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

from freshviews import BatchError, Change, Database
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.words import address
from freshviews.engine.views import view_block
from freshviews.errors import EvaluationError, SqlError
from freshviews.kernel.ordered import index, places, ranges, sums
from freshviews.plan.planner import plan_block
from freshviews.sql.blocks.windows import binding
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary
from tests.agreement.choices import seeded
from tests.agreement.evaluators import Engine, Interpreter, change_of, updates_of
from tests.agreement.random_tables import versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text
from tests.agreement.views_of_script import definitions_of
from tests.sql.printed import catalog, views

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]

T = [(1, 1, 10), (2, 1, None), (3, 1, 30), (4, 2, None), (5, None, 50), (6, 4, 60), (7, 5, None), (8, None, 80)]
D = [
    (1, "2026-01-31", "2026-01-31 10:00:00", 1.5),
    (2, "2026-02-28", "2026-01-31 10:30:00", float("nan")),
    (3, "2026-02-03", None, 2.5),
    (4, None, "2026-01-31 12:00:00", None),
]
PASSING = [(0, 0, 0), (9, 2, 90)]
"""Rows that come and go again."""
SPARK: dict[str, str] = {
    "SELECT id, ntile(3) OVER (ORDER BY id) FROM t":
        "[(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 3), (8, 3)]",
    "SELECT id, ntile(20) OVER (ORDER BY id) FROM t":
        "[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8)]",
    "SELECT id, percent_rank() OVER (ORDER BY y), cume_dist() OVER (ORDER BY y) FROM t":
        "[(1, 0.2857142857142857, 0.625), (2, 0.2857142857142857, 0.625), (3, 0.2857142857142857, 0.625), (4, "
        "0.7142857142857143, 0.75), (5, 0.0, 0.25), (6, 0.8571428571428571, 0.875), (7, 1.0, 1.0), (8, 0.0, 0.25)]",
    "SELECT id, percent_rank() OVER (PARTITION BY y ORDER BY x DESC), cume_dist() OVER (PARTITION BY y ORDER BY "
    "x) FROM t":
        "[(1, 0.5, 0.6666666666666666), (2, 1.0, 0.3333333333333333), (3, 0.0, 1.0), (4, 0.0, 1.0), (5, 1.0, 0.5),"
        " (6, 0.0, 1.0), (7, 0.0, 1.0), (8, 0.0, 1.0)]",
    "SELECT id, sum(x) OVER (ORDER BY y RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) s, count(*) OVER (ORDER BY y "
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) c FROM t":
        "[(1, 40, 4), (2, 40, 4), (3, 40, 4), (4, 40, 4), (5, 130, 2), (6, 60, 2), (7, 60, 2), (8, 130, 2)]",
    "SELECT id, count(*) OVER (ORDER BY y DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) c FROM t":
        "[(1, 4), (2, 4), (3, 4), (4, 1), (5, 2), (6, 2), (7, 1), (8, 2)]",
    "SELECT id, count(*) OVER (ORDER BY y NULLS LAST RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) c FROM t":
        "[(1, 5), (2, 5), (3, 5), (4, 4), (5, 2), (6, 3), (7, 2), (8, 2)]",
    "SELECT id, count(*) OVER (ORDER BY y RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) c FROM t":
        "[(1, 2), (2, 2), (3, 2), (4, 5), (5, 2), (6, 6), (7, 7), (8, 2)]",
    "SELECT id, count(*) OVER (ORDER BY y RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) c, sum(x) OVER (ORDER BY y "
    "RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) s FROM t":
        "[(1, 0, None), (2, 0, None), (3, 0, None), (4, 3, 40), (5, 2, 130), (6, 1, None), (7, 1, 60), (8, 2, "
        "130)]",
    "SELECT id, count(*) OVER (ORDER BY y, x RANGE BETWEEN CURRENT ROW AND CURRENT ROW) c FROM t":
        "[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1)]",
    "SELECT id, count(*) OVER (ORDER BY y RANGE BETWEEN 1.7 PRECEDING AND CURRENT ROW) c FROM t":
        "[(1, 3), (2, 3), (3, 3), (4, 4), (5, 2), (6, 1), (7, 2), (8, 2)]",
    "SELECT id, count(*) OVER (ORDER BY CAST(y AS DECIMAL(4,1)) RANGE BETWEEN 1.5 PRECEDING AND 5 FOLLOWING) a "
    "FROM t":
        "[(1, 6), (2, 6), (3, 6), (4, 6), (5, 2), (6, 2), (7, 2), (8, 2)]",
    "SELECT id, count(*) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) c FROM t":
        "[(1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2), (7, 2), (8, 2)]",
    "SELECT id, count(*) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND -1 FOLLOWING) c FROM t":
        "[(1, 0), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1)]",
    "SELECT id, count(*) OVER (ORDER BY id ROWS BETWEEN 1+1 PRECEDING AND CURRENT ROW) c FROM t":
        "[(1, 1), (2, 2), (3, 3), (4, 3), (5, 3), (6, 3), (7, 3), (8, 3)]",
    "SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) c FROM d":
        "[(1, 1), (2, 1), (3, 2), (4, 1)]",
    "SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) c FROM d":
        "[(1, 1), (2, 3), (3, 2), (4, 1)]",
    "SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) c FROM d":
        "[(1, 1), (2, 2), (3, 1), (4, 3)]",
    "SELECT id, string_agg(cast(x as string), ',') OVER (ORDER BY id) c FROM t":
        "[(1, '10'), (2, '10'), (3, '10,30'), (4, '10,30'), (5, '10,30,50'), (6, '10,30,50,60'), (7, "
        "'10,30,50,60'), (8, '10,30,50,60,80')]",
    "SELECT id, string_agg(cast(x as string), ',') OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) c "
    "FROM t":
        "[(1, '10'), (2, '10'), (3, '10,30'), (4, '30'), (5, '30,50'), (6, '50,60'), (7, '50,60'), (8, '60,80')]",
    "SELECT id, first_value(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) a, last_value(x) OVER "
    "(ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) b, nth_value(x, 2) OVER (ORDER BY id ROWS BETWEEN 1 "
    "PRECEDING AND 1 FOLLOWING) c FROM t":
        "[(1, 10, None, None), (2, 10, 30, None), (3, None, None, 30), (4, 30, 50, None), (5, None, 60, 50), (6, "
        "50, None, 60), (7, 60, 80, None), (8, None, 80, 80)]",
    "SELECT id, first_value(x) IGNORE NULLS OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) a, "
    "last_value(x) IGNORE NULLS OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) b, nth_value(x, 2) "
    "IGNORE NULLS OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) c FROM t":
        "[(1, 10, 10, None), (2, 10, 30, 30), (3, 30, 30, 30), (4, 30, 50, 50), (5, 50, 60, 50), (6, 50, 60, 60), "
        "(7, 60, 80, 60), (8, 80, 80, 80)]",
    "SELECT id, nth_value(x, 3) OVER (ORDER BY id) a, nth_value(x, 2) IGNORE NULLS OVER (ORDER BY id) b FROM t":
        "[(1, None, None), (2, None, None), (3, 30, 30), (4, 30, 30), (5, 30, 30), (6, 30, 30), (7, 30, 30), (8, "
        "30, 30)]",
    "SELECT id, last_value(x) OVER (ORDER BY y, id) a, last_value(x) IGNORE NULLS OVER (ORDER BY id) b FROM t":
        "[(1, 10, 10), (2, None, 10), (3, 30, 30), (4, None, 30), (5, 50, 50), (6, 60, 60), (7, None, 60), (8, 80,"
        " 80)]",
    "SELECT id, lag(x) IGNORE NULLS OVER (ORDER BY id) a, lag(x, 2) IGNORE NULLS OVER (ORDER BY id) b, lead(x, 1,"
    " -1) IGNORE NULLS OVER (ORDER BY id) c, lag(x, 0) IGNORE NULLS OVER (ORDER BY id) d, lag(x, -1) IGNORE NULLS"
    " OVER (ORDER BY id) e FROM t":
        "[(1, None, None, 30, 10, 30), (2, 10, None, 30, None, 30), (3, 10, None, 50, 30, 50), (4, 30, 10, 50, "
        "None, 50), (5, 30, 10, 60, 50, 60), (6, 50, 30, 80, 60, 80), (7, 60, 50, 80, None, 80), (8, 60, 50, -1, "
        "80, None)]",
    "SELECT id, lag(x) RESPECT NULLS OVER (ORDER BY id) a, first_value(x) RESPECT NULLS OVER (ORDER BY id) FROM t":
        "[(1, None, 10), (2, 10, 10), (3, None, 10), (4, 30, 10), (5, None, 10), (6, 50, 10), (7, 60, 10), (8, "
        "None, 10)]",
    "SELECT id, lag(x, 1, 7, true) OVER (ORDER BY id) a FROM t":
        "[(1, 7), (2, 10), (3, 10), (4, 30), (5, 30), (6, 50), (7, 60), (8, 60)]",
    "SELECT id, any_value(x) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) a, first(x) OVER (ORDER "
    "BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) b, last(x, true) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING "
    "AND 2 FOLLOWING) c FROM t":
        "[(1, None, None, 30), (2, 30, 30, 30), (3, None, None, 50), (4, 50, 50, 60), (5, 60, 60, 60), (6, None, "
        "None, 80), (7, 80, 80, 80), (8, None, None, None)]",
}
"""The answers of Spark 4.1."""


MIXED = [
    (1, 1, 3, 5, 1.5, "b", 10), (2, 1, None, None, None, None, None), (3, 1, 3, 5, 2.5, "a", 30),
    (4, 2, 1, -7, -0.5, "", 40), (5, 2, None, 9, 2.5, "ab", 50), (6, None, 2, None, 0.0, "B", None),
    (7, 1, 4, 1, None, "a", 70), (8, 2, 1, -7, 100.25, None, -80), (9, None, 2, 3, 1.5, "\u00e9", 90),
    (10, 1, None, 2, -3.0, "b", 30),
]  # fmt: skip
PASSING_MIXED = [(20, 1, 3, 5, 1.5, "b", 10), (21, *[None] * 5, 5), (22, 2, 2, 6, 7.5, "zz", -3)]
ANY_ORDER: dict[str, str] = {
    "SELECT id, max(s) OVER (PARTITION BY g ORDER BY s NULLS LAST, a DESC) u, count(*) OVER (PARTITION BY g ORDER "
    "BY s NULLS LAST, a DESC) v FROM t":
        "[(1, 'b', 3), (10, 'b', 4), (2, 'b', 5), (3, 'a', 2), (4, '', 1), (5, 'ab', 2), (6, 'B', 1), (7, 'a', 1),"
        " (8, 'ab', 3), (9, 'é', 2)]",
    "SELECT id, count(*) OVER (ORDER BY a DESC NULLS FIRST, b NULLS LAST, d RANGE BETWEEN CURRENT ROW AND UNBOUNDED"
    " FOLLOWING) u, avg(d) OVER (ORDER BY a DESC NULLS FIRST, b NULLS LAST, d RANGE BETWEEN CURRENT ROW AND "
    "UNBOUNDED FOLLOWING) v FROM t":
        "[(1, 6, 17.541666666666668), (10, 10, 13.09375), (2, 8, 17.541666666666668), (3, 5, 20.75), (4, 2, "
        "49.875), (5, 9, 15.392857142857142), (6, 3, 33.25), (7, 7, 17.541666666666668), (8, 1, 100.25), (9, 4, "
        "25.3125)]",
    "SELECT id, count(*) OVER (PARTITION BY g ORDER BY upper(s), x DESC, id ROWS BETWEEN UNBOUNDED PRECEDING AND 3 "
    "PRECEDING) u FROM t":
        "[(1, 2), (10, 1), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0)]",
    "SELECT id, min(x) OVER (PARTITION BY g ORDER BY d DESC, id ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) u"
    " FROM t":
        "[(1, 10), (10, 10), (2, 30), (3, 10), (4, 40), (5, -80), (6, 90), (7, 70), (8, -80), (9, 90)]",
    "SELECT id, min(x) OVER (ORDER BY s, id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING) u FROM t":
        "[(1, -80), (10, -80), (2, -80), (3, -80), (4, -80), (5, -80), (6, -80), (7, -80), (8, -80), (9, -80)]",
    "SELECT id, max(s) OVER (PARTITION BY g ORDER BY d DESC NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 3 FOLLOWING) "
    "u, sum(x) OVER (PARTITION BY g ORDER BY d DESC NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 3 FOLLOWING) v FROM t":
        "[(1, 'b', 40), (10, 'b', 30), (2, 'a', 70), (3, 'b', 40), (4, '', 40), (5, 'ab', 90), (6, 'B', None), (7,"
        " 'a', 70), (8, None, -80), (9, 'é', 90)]",
    "SELECT id, count(*) OVER (PARTITION BY g ORDER BY b NULLS LAST RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) u, "
    "min(x) OVER (PARTITION BY g ORDER BY b NULLS LAST RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) v FROM t":
        "[(1, 1, 30), (10, 1, 70), (2, 1, None), (3, 1, 30), (4, 0, None), (5, 0, None), (6, 1, None), (7, 0, "
        "None), (8, 0, None), (9, 0, None)]",
    "SELECT id, percentile(x, 0.5) OVER (ORDER BY id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) u FROM "
    "t":
        "[(1, 40.0), (10, None), (2, 40.0), (3, 45.0), (4, 50.0), (5, 50.0), (6, 50.0), (7, 30.0), (8, 60.0), (9, "
        "30.0)]",
    "SELECT id, percentile(x, 0.5) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) u FROM t":
        "[(1, 30.0), (10, 40.0), (2, 40.0), (3, 30.0), (4, -20.0), (5, 40.0), (6, 40.0), (7, 30.0), (8, -20.0), "
        "(9, 40.0)]",
    "SELECT id, sum(x) OVER (PARTITION BY a ORDER BY a RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) u FROM t":
        "[(1, None), (10, 80), (2, 80), (3, None), (4, None), (5, 80), (6, None), (7, None), (8, None), (9, None)]",
    "SELECT id, sum(x) OVER (PARTITION BY s ORDER BY upper(s), concat(s, cast(a as string)), id) u FROM t":
        "[(1, 40), (10, 30), (2, None), (3, 30), (4, 40), (5, 50), (6, None), (7, 100), (8, -80), (9, 90)]",
    "SELECT id, lag(x) IGNORE NULLS OVER (PARTITION BY g ORDER BY s DESC, id) u, last_value(x) IGNORE NULLS OVER "
    "(ORDER BY s, id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) v, nth_value(x, 2) OVER (ORDER BY b DESC, id"
    " ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) w FROM t":
        "[(1, None, 70, 10), (10, 10, 50, 30), (2, 70, None, None), (3, 30, 40, 30), (4, 50, None, 40), (5, None, "
        "30, 10), (6, 90, -80, None), (7, 30, 40, 70), (8, 40, None, -80), (9, None, 10, 90)]",
    "SELECT id, max_by(s, id) OVER (PARTITION BY g ORDER BY b, id) u, min_by(x, id) OVER (ORDER BY id DESC RANGE "
    "BETWEEN 2 PRECEDING AND CURRENT ROW) v, min_by(d, id) OVER (ORDER BY s, id ROWS BETWEEN CURRENT ROW AND "
    "UNBOUNDED FOLLOWING) w FROM t":
        "[(1, 'b', 10, 1.5), (10, 'b', 30, 1.5), (2, None, None, 1.5), (3, 'b', 30, 1.5), (4, '', 40, 1.5), (5, "
        "None, 50, 1.5), (6, 'B', None, 1.5), (7, 'a', 70, 1.5), (8, None, -80, 1.5), (9, 'é', 90, 1.5)]",
    "SELECT id, bit_and(x) OVER (PARTITION BY g ORDER BY b, id) u, bit_or(a) OVER (ORDER BY id DESC RANGE BETWEEN 2 "
    "PRECEDING AND CURRENT ROW) v, min(d) OVER (ORDER BY x, id ROWS UNBOUNDED PRECEDING) w FROM t":
        "[(1, 2, 3, 0.0), (10, 6, None, -3.0), (2, None, 3, None), (3, 2, 3, 0.0), (4, 40, 3, -3.0), (5, 32, 6, "
        "-3.0), (6, None, 7, 0.0), (7, 70, 7, -3.0), (8, 32, 3, 0.0), (9, 90, 2, -3.0)]",
    "SELECT id, max(d) OVER (PARTITION BY g ORDER BY a DESC NULLS FIRST) u, bool_or(x > 40) OVER (ORDER BY b RANGE "
    "BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) v, count_if(d > 0) OVER (ORDER BY b RANGE BETWEEN UNBOUNDED "
    "PRECEDING AND 2 PRECEDING) w FROM t":
        "[(1, 2.5, True, 2), (10, -3.0, True, 1), (2, -3.0, True, 0), (3, 2.5, True, 2), (4, 100.25, True, 0), (5, "
        "2.5, None, 4), (6, 1.5, True, 0), (7, -3.0, True, 1), (8, 100.25, True, 0), (9, 1.5, True, 1)]",
    "SELECT id, percentile(x, 0.9) OVER (PARTITION BY g ORDER BY id DESC ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) "
    "u, string_agg(s, '-') OVER (PARTITION BY g ORDER BY id DESC ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) v FROM t":
        "[(1, 10.0, 'b'), (10, 62.0, 'b-a'), (2, 10.0, 'a-b'), (3, 28.0, 'a-a'), (4, 40.0, 'ab-'), (5, 49.0, "
        "'ab-'), (6, None, 'é-B'), (7, 66.0, 'b-a-a'), (8, 48.0, 'ab'), (9, 90.0, 'é-B')]",
    "SELECT id, last_value(s) IGNORE NULLS OVER (PARTITION BY g ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 "
    "FOLLOWING) u, first_value(d, true) OVER (ORDER BY b NULLS LAST, id RANGE BETWEEN CURRENT ROW AND UNBOUNDED "
    "FOLLOWING) v, nth_value(s, 2) IGNORE NULLS OVER (ORDER BY id RANGE BETWEEN 3 PRECEDING AND 3 FOLLOWING) w FROM "
    "t":
        "[(1, 'b', 1.5, 'a'), (10, 'b', -3.0, 'é'), (2, 'a', 0.0, 'a'), (3, 'a', 2.5, 'a'), (4, 'ab', -0.5, 'a'), "
        "(5, 'ab', 2.5, ''), (6, 'é', 0.0, ''), (7, 'b', -3.0, 'ab'), (8, 'ab', 100.25, 'B'), (9, 'é', 1.5, 'a')]",
}
"""The answers of Spark 4.1 over ``MIXED``."""


def _view(db: Database, query: str) -> None:
    db.execute("CREATE TABLE t (id INT NOT NULL, y INT, x INT)")
    db.execute("CREATE TABLE d (id INT NOT NULL, d DATE, ts TIMESTAMP, f DOUBLE)")
    db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")


def _rows(db: Database) -> str:
    return str(sorted(map(tuple, db.view("v")), key=str))


@pytest.mark.parametrize("query", SPARK)
def test_a_view_with_frames_returns_the_same_rows_as_spark_after_updates(query: str) -> None:
    with Database() as db:
        _view(db, query)
        db.insert("t", T[:5])
        db.insert("t", PASSING)
        db.insert("d", D)
        db.insert("t", T[5:])
        db.delete("t", PASSING)
        assert _rows(db) == SPARK[query]


@pytest.mark.parametrize("query", [one for one in SPARK if "ROWS BETWEEN" in one and "IGNORE" not in one])
def test_frames_with_too_many_rows_to_pair_return_the_same_rows_as_spark(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding, "MOST_PAIRED", 0)
    with Database() as db:
        _view(db, query)
        db.insert("t", [*T[:5], *PASSING])
        db.insert("t", T[5:])
        db.delete("t", PASSING)
        assert _rows(db) == SPARK[query]


def test_min_over_a_large_frame_does_not_store_the_values_of_each_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "MOST_PAIRED", 3)
    with Database() as db:
        _view(db, "SELECT id, MIN(x) OVER (ORDER BY id ROWS 3 PRECEDING) AS least FROM t")
        assert "distinct values of each frame" not in str(db.view("v").explain())


@pytest.mark.parametrize("query", ANY_ORDER)
def test_frames_ordered_by_strings_nulls_or_several_expressions_return_the_same_rows_as_spark(query: str) -> None:
    with Database() as db:
        db.execute("CREATE TABLE t (id INT NOT NULL, g INT, a INT, b BIGINT, d DOUBLE, s STRING, x INT)")
        db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        db.insert("t", MIXED[:6])
        db.insert("t", PASSING_MIXED)
        db.insert("t", MIXED[6:])
        db.delete("t", [*MIXED[1:4], *PASSING_MIXED])
        db.insert("t", MIXED[1:4])
        assert _rows(db) == ANY_ORDER[query]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("COUNT(DISTINCT x) OVER (PARTITION BY y)", [2, 2, 2, 0, 2, 1, 0, 2]),
        ("SUM(DISTINCT y) OVER (ORDER BY id)", [1, 1, 1, 3, 3, 7, 12, 12]),
        ("SUM(x) FILTER (WHERE id > 2) OVER (ORDER BY id ROWS 1 PRECEDING)", [None, None, 30, 30, 50, 110, 60, 80]),
        ("FIRST_VALUE(x) OVER (PARTITION BY y)", [None, None, None, None, 50, 60, None, 50]),
        ("LAST(x) OVER (PARTITION BY y)", [30, 30, 30, None, 80, 60, None, 80]),
    ],
)
def test_a_window_function_that_spark_does_not_support_follows_the_sql_standard(call: str, answer: list[Any]) -> None:
    with Database() as db:
        db.execute("CREATE TABLE t (y INT, x INT, id INT)")
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {call} AS v FROM t")
        db.insert("t", [(y, x, one) for one, y, x in T])
        assert [value for _, value in sorted(db.view("v"))] == answer


def test_a_batch_is_refused_if_a_frame_bound_overflows_the_type_of_the_order_by_column() -> None:
    with Database() as db:
        _view(db, "SELECT id, COUNT(*) OVER (ORDER BY y RANGE 5 PRECEDING) AS n FROM t")
        db.insert("t", T)
        with pytest.raises(BatchError, match="overflow"):
            db.insert("t", [(9, -(2**31), 1)])


KEYED = "CREATE TABLE t (g INT NOT NULL, x INT NOT NULL, id INT PRIMARY KEY);"
OVER_TEN = "(PARTITION BY g ORDER BY id ROWS 9 PRECEDING)"


def steps(query: str, rows: int) -> set[int]:
    """The steps of inserts and deletes in the middle of a partition of this size, counted by generated code."""
    known = catalog(KEYED)
    view, table = views(query, known)[0], known.table("t")
    assert table is not None
    block = view.blocks[0]
    plan = plan_block(view, block, {"t": table})
    width = len(block.free) + len(block.results) + 1
    state = BlockState(plan.program, compile_block(plan.program, block, (), (), None, True), width, Dictionary())

    def update(x: int, m: int) -> int:
        before = int(state.status[STATUS_STEPS])
        words = {name: np.array([value], np.int64) for name, value in (("g", 1), ("x", x), ("id", x))}
        sign = np.array([m], np.int64)
        state.run("t", {name: (address(one), 1) for name, one in words.items()}, (address(sign), 1), 1)
        return int(state.status[STATUS_STEPS]) - before

    for x in range(rows):
        update(2 * x, 1)
    return {update(rows + 1 + 2 * i, m) for m in (1, -1) for i in range(3)}


@pytest.mark.parametrize(
    ("calls", "most"),
    [
        # 28 rows enter or leave frames, and each is a step of the report and one of the sum.
        (f"AVG(x) OVER {OVER_TEN} AS a, COUNT(x) OVER {OVER_TEN} AS n", 1 + 2 * 28),
        (f"MAX(x) OVER {OVER_TEN} AS a, COUNT(DISTINCT x) OVER {OVER_TEN} AS n", 1 + 4 * 28),
        ("SUM(x) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 9 PRECEDING AND 5 PRECEDING) AS s", 1 + 2 * 23),
    ],
)
def test_the_steps_of_an_update_of_frames_of_ten_rows_do_not_grow_with_the_partition(
    calls: str, most: int
) -> None:
    query = f"SELECT id, {calls} FROM t"
    assert max(steps(query, 50)) == max(steps(query, 400)) <= most


def steps_of_an_update(over: str, n: int, at: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The steps of an insert and a delete in a partition of n places, 2, 4, ... 2 n: those of all triggers, and the
    links of ordered trees that they follow."""
    links = 0

    def following(link: Callable[..., int]) -> Callable[..., int]:
        def followed(*args: int) -> int:
            nonlocal links
            links += 1
            return link(*args)

        return followed

    def steps() -> int:
        relations = db._relations.views.values()
        return links + sum(int(b.state.status[STATUS_STEPS]) for one in relations for b in one.maintained.blocks)

    def row(i: int) -> tuple[Any, ...]:
        return i, 1, i, float(i), f"{i:05}", 1

    with monkeypatch.context() as patch:
        patch.setattr(view_block, "compile_block", partial(compile_block, counted=True))
        for module in (index, places, ranges, sums):
            for name in ("left_link", "right_link"):
                if hasattr(module, name):
                    patch.setattr(module, name, following(getattr(module, name)))
        with Database() as db:
            db.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT NOT NULL, b BIGINT, d DOUBLE, s STRING, x INT)")
            total = f"SUM(x) OVER (PARTITION BY g ORDER BY {over})"
            db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {total} AS n FROM t")
            assert "O(1) for each place whose frame has the row" in str(db.view("v").explain())
            db.insert("t", [row(2 * i) for i in range(1, n + 1)])
            before = steps()
            db.insert("t", [row(at % (2 * n + 2))])
            db.delete("t", [row(at % (2 * n + 2))])
            return steps() - before


@pytest.mark.parametrize(
    ("over", "at"),
    [
        # The frames of three or four places have the row.
        ("b", -7),
        ("s, b DESC RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", 7),
        ("UPPER(s) NULLS LAST, d", -7),
        ("d % 2, s DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", 7),
        ("s ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING", -3),
        ("b NULLS LAST RANGE BETWEEN 3 FOLLOWING AND 8 FOLLOWING", 21),
        ("d DESC RANGE BETWEEN 3.5 PRECEDING AND 4.5 FOLLOWING", 13),
    ],
)
def test_an_update_visits_only_the_rows_whose_frames_contain_the_updated_row(
    over: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (steps_of_an_update(over, n, at, monkeypatch) for n in (66, 132))
    assert large <= 1.25 * small + 60, (small, large)


def test_an_update_of_one_row_changes_a_moving_average_over_ten_rows_in_ten_rows() -> None:
    with Database() as db:
        db.execute(KEYED)
        average = f"AVG(x) OVER {OVER_TEN} AS a, FIRST_VALUE(x) OVER {OVER_TEN} AS f"
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {average} FROM t")
        db.insert("t", [(1, i % 7, i) for i in range(300)])
        changes: list[Change] = []
        db.view("v").subscribe(changes.append)
        with db.batch() as batch:
            batch.delete("t", [(1, 150 % 7, 150)])
            batch.insert("t", [(1, 100, 150)])
        assert sorted({row[0] for row in changes[0].to_polars().rows()}) == list(range(150, 160))
        assert "O(log N), for each of 28 rows that enter or leave frames" in str(db.view("v").explain())


@pytest.mark.parametrize(
    ("call", "numbered"),
    [
        ("SUM(x) OVER (PARTITION BY g ORDER BY id ROWS UNBOUNDED PRECEDING)", False),
        ("SUM(x) OVER (PARTITION BY g ORDER BY x ROWS UNBOUNDED PRECEDING)", False),
        ("LAST_VALUE(x) OVER (PARTITION BY g ORDER BY id)", False),
        ("FIRST_VALUE(x) IGNORE NULLS OVER (PARTITION BY g ORDER BY id)", False),
        ("NTH_VALUE(x, 2) OVER (PARTITION BY g ORDER BY id)", False),
        ("NTH_VALUE(x, 2) OVER (PARTITION BY g ORDER BY id ROWS 3 PRECEDING)", False),
        ("STRING_AGG(CAST(x AS STRING), ',') OVER (PARTITION BY g ORDER BY id ROWS 3 PRECEDING)", False),
        ("LAST_VALUE(x) OVER (PARTITION BY g ORDER BY id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)", False),
        ("LAST_VALUE(x) OVER (PARTITION BY g ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)", True),
    ],
)
def test_frames_number_rows_only_if_neither_a_key_nor_a_place_identifies_each_row(call: str, numbered: bool) -> None:
    with Database() as db:
        db.execute(KEYED)
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {call} AS s FROM t")
        assert ("for each row whose number changes" in str(db.view("v").explain())) == numbered


def test_each_copy_of_a_row_has_its_own_frame() -> None:
    with Database() as db:
        db.execute("CREATE TABLE t (x INT)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT x, SUM(x) OVER (ORDER BY x ROWS 1 PRECEDING) AS s FROM t")
        db.insert("t", [(2,), (2,), (2,), (1,)])
        assert sorted(db.view("v")) == [(1, 1), (2, 3), (2, 4), (2, 4)]
        db.delete("t", [(2,), (1,)])
        assert sorted(db.view("v")) == [(2, 2), (2, 4)]


def test_aggregates_over_frames_may_use_string_functions_and_expressions_that_may_fail() -> None:
    with Database() as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, s STRING)")
        frame = "OVER (ORDER BY id ROWS 1 PRECEDING)"
        calls = f"SUM(LENGTH(s)) {frame} AS n, COUNT(*) FILTER (WHERE s LIKE 'a%') {frame} AS m, MAX(s) {frame} AS g"
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {calls}, SUM(1 / (id - 9)) {frame} AS q FROM t")
        db.insert("t", [(1, "ab"), (2, None), (10, "bcd")])
        with pytest.raises(BatchError, match=r"view v cannot be computed: 1.0 / .* fails for a row"):
            db.insert("t", [(3, "a"), (9, "x")])
        assert sorted(row[:4] for row in db.view("v")) == [(1, 2, 1, "ab"), (2, 2, 1, "ab"), (10, 3, 0, "bcd")]


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        ("max_by(0, 1) OVER (ORDER BY x DESC)", [(0,), (0,)]),
        ("max_by(x, 1) OVER (ORDER BY x DESC)", [(3.0,), (3.0,)]),
        ("COUNT(DISTINCT 1) OVER (ORDER BY x)", [(1,), (1,)]),
        ("COUNT(DISTINCT 1, 0) OVER (ORDER BY x)", [(1,), (1,)]),
    ],
)
def test_aggregates_of_constants_over_frames_return_the_expected_values(
    call: str, rows: list[tuple[object, ...]]
) -> None:
    db = Database()
    db.execute(f"CREATE TABLE t (x DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT {call} AS y FROM t")
    db.insert("t", [(3.0,), (1.0,)])
    assert list(db.view("v")) == rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT i, SUM(x) OVER (ORDER BY 10 / i) AS y FROM t", [(1, 3), (2, 2)]),
        ("SELECT i, SUM(x) OVER (ORDER BY i, 10 / i DESC) AS y FROM t", [(1, 1), (2, 3)]),
        ("SELECT i, SUM(MAX(x)) OVER (ORDER BY variance(i), i) AS y FROM t GROUP BY i", [(1, 1), (2, 3)]),
    ],
)
def test_an_order_by_expression_that_may_fail_is_computed_before_the_frames(
    query: str, rows: list[tuple[int, int]]
) -> None:
    db = Database()
    db.execute(f"CREATE TABLE t (i INT, x INT); CREATE MATERIALIZED VIEW v AS {query}")
    db.insert("t", [(1, 1), (2, 2)])
    assert sorted(db.view("v")) == rows


def _rows_by_history(create: str, query: str, rows: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """The rows of a view over ``t``: after its rows came one by one, after some were deleted, and filled at once."""
    found = []
    kept = Database()
    kept.execute(f"{create}; CREATE MATERIALIZED VIEW v AS {query}")
    for row in rows:
        kept.insert("t", [row])
    found.append(sorted(kept.view("v"), key=str))
    for row in rows[::2]:
        kept.delete("t", [row])
        kept.insert("t", [row])
    found.append(sorted(kept.view("v"), key=str))
    filled = Database()
    filled.execute(create)
    filled.insert("t", rows)
    filled.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    return [*found, sorted(filled.view("v"), key=str)]


@pytest.mark.parametrize("kind", ["DECIMAL(38, 18)", "DECIMAL(9, 2)"])
def test_a_range_frame_over_a_decimal_of_any_scale_returns_the_same_rows_as_spark(kind: str) -> None:
    rows = [(1, 1, 1), (2, 2, 2), (3, 3, 4), (4, 5, 8), (5, None, 16)]
    query = "SELECT id, SUM(x) OVER (ORDER BY d RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS s FROM t"
    found = _rows_by_history(f"CREATE TABLE t (id INT, d {kind}, x INT)", query, rows)
    assert found == [[(1, 7), (2, 7), (3, 14), (4, 8), (5, 16)]] * 3


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("ts RANGE BETWEEN CURRENT ROW AND INTERVAL '1' MONTH FOLLOWING", [15, 6, 12, 8, 16]),
        ("ts DESC RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND CURRENT ROW", [15, 6, 12, 8, 16]),
        ("ts RANGE BETWEEN INTERVAL '1' MONTH FOLLOWING AND UNBOUNDED FOLLOWING", [None, 8, 8, None, 31]),
    ],
)
def test_a_range_frame_of_months_gives_the_same_rows_in_every_order_of_updates(frame: str, expected: list[Any]) -> None:
    days = [datetime(2026, 1, 30, 12), datetime(2026, 1, 31, 10), datetime(2026, 1, 31, 11), datetime(2026, 2, 28, 11)]
    rows = [(i + 1, day, 2**i) for i, day in enumerate([*days, None])]
    create = "CREATE TABLE t (id INT, ts TIMESTAMP, x INT)"
    found = _rows_by_history(create, f"SELECT id, SUM(x) OVER (ORDER BY {frame}) AS s FROM t", rows)
    assert found == [list(zip(range(1, 6), expected, strict=True))] * 3


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("ORDER BY 1 RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING", None),
        ("ORDER BY 1 RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", None),
        ("ORDER BY 1 RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING", 3),
        ("ORDER BY CAST(NULL AS INT) RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING", 3),
    ],
)
def test_a_frame_ordered_by_a_constant_contains_all_rows_or_none(window: str, expected: int | None) -> None:
    db = Database()
    db.execute(f"CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT SUM(x) OVER ({window}) AS y FROM t")
    db.insert("t", [(1,), (2,)])
    assert list(db.view("v")) == [(expected,)] * 2


@pytest.mark.parametrize("bound", ["Infinity", "NaN"])
def test_a_frame_bound_that_is_not_finite_is_refused(bound: str) -> None:
    db = Database()
    db.execute("CREATE TABLE t (y DOUBLE)")
    frame = f"RANGE BETWEEN CURRENT ROW AND CAST('{bound}' AS DOUBLE) FOLLOWING"
    with pytest.raises(SqlError, match="must be a finite constant of 0 or more"):
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT SUM(y) OVER (ORDER BY y {frame}) AS s FROM t")


def test_a_batch_is_refused_if_an_order_by_over_the_partition_column_fails() -> None:
    db = Database()
    db.execute("CREATE TABLE t (y INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT SUM(y) OVER (PARTITION BY y ORDER BY 10 / y) AS s FROM t")
    with pytest.raises(EvaluationError, match="division by zero"):
        db.insert("t", [(0,)])
    assert len(db.table("t")) == 0


GROWING = [
    "MIN(c) OVER (PARTITION BY b ORDER BY a)",
    "MAX(c) OVER (ORDER BY b DESC, a RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "MIN_BY(c, b) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)",
    "BIT_AND(c) OVER (ORDER BY a DESC RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "MAX_BY(c, b) OVER (PARTITION BY c ORDER BY a)",
    "BIT_OR(c) OVER (ORDER BY b RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
]


@pytest.mark.parametrize("call", GROWING)
def test_folds_over_frames_give_the_same_values_as_the_interpreted_program(call: str) -> None:
    table = BaseTable("r", tuple(TableColumn(name, "INT", name != "a") for name in "abc"))
    view = NamedView("v", Text.same(f"SELECT a, b, c, {call} AS w FROM r"))
    for seed in range(3):
        scenario = Scenario((table,), (view,), versions(seeded(seed), (table,), False))
        definitions = definitions_of(scenario).under(None)
        engine = Engine(definitions)
        (name,) = (one.name for one in definitions.views if one.blocks[0].distinct)
        (block,) = definitions.relations[name].blocks
        program = engine.views[name].plans[0].program
        interpreter = Interpreter(block, program, definitions)
        at = [one.name for one in program.view("Q").components].index(block.distinct[0].name)
        before: dict[str, Counter[tuple[int, ...]]] = {one: Counter() for one in definitions.relations}
        for version in scenario.versions:
            batches = {one: definitions.batch(one, updates) for one, updates in version}
            engine.apply(batches)
            after = {one: Counter(rows) for one, rows in before.items()}
            for one, batch in batches.items():
                after[one].update(dict(updates_of(batch)))
                after[one] = Counter({key: m for key, m in after[one].items() if m})
            after |= {one.name: engine.contents(one.name, 100) for one in definitions.views}
            interpreter.apply({one: change_of(one, before[one], after[one], definitions) for one in after})
            rows = interpreter.state.views["Q"].items()
            found = {(*key, words[at] if words[at + 1] else NULL) for key, words in rows}
            assert found == {(*row[: len(program.free)], row[-1]) for row in after[name]}
            before = after
        engine.close()


def steps_and_stored_rows(call: str, n: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The steps of an insert and a delete in the middle of n places, and the number of stored rows."""

    def steps() -> int:
        blocks = [block for one in db._relations.views.values() for block in one.maintained.blocks]
        return sum(int(one.state.status[STATUS_STEPS]) for one in blocks)

    with monkeypatch.context() as patch, Database(threads=1) as db:
        patch.setattr(view_block, "compile_block", partial(compile_block, counted=True))
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT, y INT)")
        db.insert("t", [(2 * i, i * 7919 % 1000, i % 10) for i in range(n)])
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {call} AS m FROM t")
        before = steps()
        db.insert("t", [(n + 1, 500, 5)])
        db.delete("t", [(n + 1, 500, 5)])
        sizes = [one.maintained.sizes() for one in db._relations.views.values()]
        return steps() - before, sum(rows for one in sizes for rows, _ in one.values())


@pytest.mark.parametrize(
    "call",
    [
        "MIN(x) OVER (ORDER BY id)",
        "MAX(x) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "COUNT(DISTINCT y) OVER (ORDER BY id)",
        "BIT_OR(y) OVER (ORDER BY id DESC)",
        "MAX_BY(y, x) OVER (ORDER BY id)",
        "LAST_VALUE(x) IGNORE NULLS OVER (ORDER BY id)",
    ],
)
def test_an_unbounded_frame_stores_no_values_and_an_update_visits_only_rows_that_change(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (few, small), (many, large) = (steps_and_stored_rows(call, n, monkeypatch) for n in (60, 240))
    assert many <= few + 4
    assert large <= 4 * small


@pytest.mark.parametrize("seed", range(3))
def test_min_by_and_max_by_and_last_of_a_running_frame_follow_every_change(seed: int) -> None:
    draw, db = Random(seed), Database()
    live: dict[int, tuple[int, int | None, int]] = {}
    least_of, greatest_of = "MIN_BY(y, x) OVER (ORDER BY id) AS a", "MAX_BY(y, x) OVER (ORDER BY id DESC) AS b"
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT, y INT)")
    items = f"id, {least_of}, {greatest_of}, LAST(x, true) OVER (ORDER BY id) AS c"
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {items} FROM t")
    for _ in range(40):
        at = draw.randrange(20)
        if at in live:
            db.delete("t", [live.pop(at)])
        else:
            live[at] = (at, draw.choice([None, 0, 1, 2]), draw.choice([-1, 0, 1]))
            db.insert("t", [live[at]])
        expected = []
        for one in sorted(live):
            before = [(x, y) for at, x, y in sorted(live.values()) if at <= one and x is not None]
            after = [(x, y) for at, x, y in live.values() if at >= one and x is not None]
            least, greatest, last = min(before, default=None), max(after, default=None), (before or [None])[-1]
            expected.append((one, least and least[1], greatest and greatest[1], last and last[0]))
        assert sorted(db.view("v")) == expected
