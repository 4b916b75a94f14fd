"""EXPLAIN shows the cost of updates, from measured degrees of tables and views."""

from __future__ import annotations

import re

import pytest

from freshviews import Database
from freshviews.engine.measured import samples

pytestmark = pytest.mark.compiled(3)

TABLES = """CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL){0};
CREATE TABLE s (b BIGINT NOT NULL, c BIGINT NOT NULL){0};"""
VIEW = """CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS
SELECT r.a, s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b {0} GROUP BY r.a, s.c;"""


def filled(where: str = "", properties: str = "") -> Database:
    """Each b is in one row of r and in four of s."""
    db = Database()
    db.execute(TABLES.format(properties) + VIEW.format(where))
    db.insert("r", [(i, i) for i in range(50)])
    db.insert("s", [(i % 50, i) for i in range(200)])
    return db


def costs(db: Database, view: str = "v", strategies: bool = False) -> list[str]:
    return re.findall(r"^cost +(.*)$", db.view(view).explain(strategies), re.MULTILINE)


def test_the_cost_of_an_update_is_measured_if_tables_have_rows() -> None:
    db = Database()
    db.execute(TABLES.format("") + VIEW.format(""))
    assert costs(db)[0] == "0.0 lookups, 10.0 rows walked, 11.0 writes per row of r (assumed)"
    assert costs(filled()) == [
        "0.0 lookups, 4.0 rows walked, 5.0 writes per row of r (measured)",
        "0.0 lookups, 1.0 rows walked, 2.0 writes per row of s (measured)",
    ]


def test_the_measured_cost_evaluates_filters_on_stored_rows() -> None:
    assert costs(filled("WHERE s.c < 100"))[0].startswith("0.0 lookups, 2.0 rows walked, 3.0 writes per row of r")


def test_degrees_of_trusted_tables_are_assumed() -> None:
    db = filled("", " TBLPROPERTIES ('freshviews.trusted' = 'true')")
    assert all(line.endswith("(assumed)") for line in costs(db))


def test_costs_of_views_over_views_are_measured() -> None:
    with filled() as db:
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT v.a, s.c FROM v JOIN s ON v.n = s.b;")
        assert all(line.endswith("(measured)") for line in costs(db, "w"))


def test_degrees_of_large_tables_come_from_the_same_sample_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST_SAMPLED", 1000)
    db = Database()
    db.execute(TABLES.format("") + VIEW.format(""))
    db.insert("r", [(i, i) for i in range(1500)])
    db.insert("s", [(i % 1500, i) for i in range(6000)])
    walked = [float(re.findall(r"([\d.]+) rows walked", line)[0]) for line in costs(db)]
    assert walked == [pytest.approx(4, rel=0.3), pytest.approx(1, rel=0.3)]
    assert costs(db) == costs(db)
    monkeypatch.setattr(samples, "MOST_READ", 5000)
    assert costs(db)[0].endswith("(assumed)")


def test_explain_suggests_a_strategy_with_half_the_steps() -> None:
    with Database() as db:
        db.execute(
            TABLES.format("") + "CREATE TABLE t (c BIGINT NOT NULL, d BIGINT NOT NULL);"
            "CREATE TABLE u (d BIGINT NOT NULL, e BIGINT NOT NULL);"
            "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS "
            "SELECT COUNT(*) AS n FROM r, s, t, u WHERE r.b = s.b AND s.c = t.c AND t.d = u.d;"
        )
        for name in "rstu":
            db.insert(name, [(i // 9, i % 9) for i in range(81)])
        text = db.view("v").explain(strategies=True)
        (steps,) = re.findall(r"^steps +(.*) per update \(measured\)$", text, re.MULTILINE)
        assert steps.startswith("view_tree ") and "first_order" in steps
        assert text.endswith("; db.replan('v', strategies=True) switches to view_tree\n")
        assert "steps" not in db.view("v").explain()
        before = list(db.view("v"))
        assert db.replan("v", strategies=True) and list(db.view("v")) == before
        text = db.view("v").explain(strategies=True)
        assert "strategy  view_tree" in text and "replan" not in text
        assert not db.replan("v", strategies=True)


def test_assumed_steps_never_cause_replanning() -> None:
    assert not filled("", " TBLPROPERTIES ('freshviews.trusted' = 'true')").replan("v", strategies=True)
