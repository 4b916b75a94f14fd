"""Views that are not materialised: expanded where they are named; and CREATE OR REPLACE."""

from __future__ import annotations

from pathlib import Path

import pytest

import freshviews as fv
from freshviews.errors import CatalogError, SqlError

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(8)]

SCRIPT = """
CREATE TABLE t (a INT, b STRING);
CREATE VIEW p (x, y) AS SELECT a + 1, b FROM t WHERE a > 0;
CREATE VIEW q AS SELECT y, COUNT(*) AS n FROM p GROUP BY y;
CREATE MATERIALIZED VIEW v AS SELECT p.x, q.n FROM p JOIN q ON p.y = q.y JOIN q AS r ON r.n = q.n;
"""


@pytest.fixture
def db() -> fv.Database:
    made = fv.Database()
    made.execute(SCRIPT)
    made.insert("t", [(1, "u"), (2, "u"), (-1, "w"), (5, "w")])
    return made


def test_a_plain_view_is_expanded_in_every_query_that_uses_the_view(
    db: fv.Database
) -> None:
    assert sorted(db.view("v")) == [(2, 2), (3, 2), (6, 1)]
    db.delete("t", [(2, "u")])
    assert sorted(db.view("v")) == [(2, 1), (2, 1), (6, 1), (6, 1)]
    assert (db.views, db.plain_views) == (("v",), ("p", "q"))
    assert "q" not in db.stats()["views"]


REFUSED = [
    ("DROP VIEW p", "p is still needed by v, q"),
    ("DROP VIEW q", "q is still needed by v"),
    ("DROP TABLE t", "t is still needed by v, p, q"),
    ("CREATE OR REPLACE VIEW p AS SELECT a FROM t", "p is still needed by v, q"),
    ("DROP MATERIALIZED VIEW q", "not a materialized view; write DROP VIEW"),
    ("CREATE VIEW p AS SELECT a FROM t", "view p exists already; DROP it or write CREATE OR REPLACE"),
    ("CREATE OR REPLACE VIEW t AS SELECT a FROM t", "t is not a view; write DROP TABLE"),
    ("ALTER VIEW p SET TBLPROPERTIES ('x' = 'y')", "view p is not materialised"),
    ("CREATE OR REPLACE VIEW v AS SELECT * FROM v", "unknown table or view v"),
]


def test_errors_of_plain_views_name_the_view_and_the_remedy(db: fv.Database) -> None:
    for sql, message in REFUSED:
        with pytest.raises(SqlError, match=message):
            db.execute(sql)
    assert sorted(db.view("v")) == [(2, 2), (3, 2), (6, 1)]


def test_reading_or_inserting_rows_of_a_plain_view_is_refused(db: fv.Database) -> None:
    with pytest.raises(CatalogError, match="view p is not materialised"):
        db.view("p")
    with pytest.raises(CatalogError, match="p is a view"):
        db.insert("p", [(1, "u")])


def test_create_or_replace_drops_the_old_view(db: fv.Database) -> None:
    old = db.view("v")
    db.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT y FROM p; DROP VIEW q")
    assert sorted(db.view("v")) == [("u",), ("u",), ("w",)]
    with pytest.raises(CatalogError, match="v was dropped"):
        list(old)
    db.execute("CREATE OR REPLACE VIEW v AS SELECT x FROM p; CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT x FROM v")
    assert (db.views, db.plain_views) == (("w",), ("p", "v"))
    with pytest.raises(SqlError, match="unknown column zz"):
        db.execute("CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT zz FROM v")
    assert sorted(db.view("w")) == [(2,), (3,), (6,)]


def test_a_durable_database_keeps_its_plain_views(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "db") as db:
        db.execute(SCRIPT)
        db.insert("t", [(1, "u")])
        db.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT x FROM p")
    with fv.Database(tmp_path / "db") as db:
        db.insert("t", [(2, "u")])
        db.snapshot()
    with fv.Database(tmp_path / "db") as db:
        assert (db.views, db.plain_views) == (("v",), ("p", "q"))
        assert sorted(db.view("v")) == [(2,), (3,)]
        db.execute("DROP VIEW q; DROP MATERIALIZED VIEW v; DROP VIEW p; DROP TABLE t")
        assert db.plain_views == ()
