"""Backfill at once: joining all rows gives the same view as deltas row by row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import freshviews as fv
from freshviews.engine.blocks import at_once
from freshviews.engine.blocks.at_once import hand_over
from freshviews.engine.blocks.parts.tracing import Tracing
from freshviews.kernel.memory.mem import PURE_PYTHON

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(8)]

TABLES = """
CREATE TABLE r (a BIGINT, b BIGINT, x DOUBLE);
CREATE TABLE s (b BIGINT NOT NULL, c BIGINT, q DECIMAL(9, 2));
CREATE TABLE t (c BIGINT, a BIGINT);
CREATE TABLE e (src BIGINT NOT NULL, dst BIGINT NOT NULL, PRIMARY KEY (src, dst));
CREATE TABLE p (a BIGINT, w STRING);
"""
TRIANGLE = "r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND t.a = r.a"
CYCLE = (
    "e e1 JOIN e e2 ON e1.dst = e2.src JOIN e e3 ON e2.dst = e3.src JOIN e e4 ON e3.dst = e4.src AND e4.dst = e1.src"
)
LOOP = "e e1 JOIN e e2 ON e1.dst = e2.src JOIN e e3 ON e2.dst = e3.src AND e3.dst = e1.src"
VIEWS = {
    "count": f"SELECT COUNT(*) AS n FROM {TRIANGLE}",
    "sums by group": f"SELECT r.a, SUM(r.x) AS x, SUM(s.q) AS q, COUNT(*) AS n FROM {TRIANGLE} GROUP BY r.a",
    "rows": f"SELECT r.a, r.b, s.c, r.x FROM {TRIANGLE}",
    "distinct rows": f"SELECT DISTINCT r.a, s.c FROM {TRIANGLE}",
    "filtered": f"SELECT r.a, COUNT(*) AS n FROM {TRIANGLE} WHERE r.b < 4 AND r.a + s.c > 2 GROUP BY r.a",
    "product across": f"SELECT SUM(r.x * s.q) AS p FROM {TRIANGLE}",
    "cycle of four": f"SELECT COUNT(*) AS n FROM {CYCLE}",
    "rows of a cycle of four": f"SELECT e1.src AS a, e3.src AS c FROM {CYCLE}",
    "ends by group": f"SELECT r.a, MIN(s.c) AS m, MAX(r.x) AS x, COUNT(*) AS n FROM {TRIANGLE} GROUP BY r.a",
    "first and last word": f"SELECT MIN(p.w) AS least, MAX(p.w) AS most FROM {TRIANGLE} JOIN p ON p.a = r.a",
    "ends over one table": f"SELECT e1.src AS a, MAX(e2.dst) AS m FROM {LOOP} GROUP BY e1.src",
    "ends of grouping sets": f"SELECT r.a, r.b, MAX(r.x) AS x, COUNT(*) AS n FROM {TRIANGLE} GROUP BY CUBE (r.a, r.b)",
    "triangles beside words": f"SELECT r.a, COUNT(p.a) AS n FROM {TRIANGLE} LEFT JOIN p ON p.a = r.a GROUP BY r.a",
    "triangles without words": (
        f"SELECT r.a, COUNT(*) AS n FROM {TRIANGLE} WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.a = r.a) GROUP BY r.a"
    ),
    "distinct values": f"SELECT r.b, COUNT(DISTINCT s.q) AS n, SUM(DISTINCT r.x) AS x FROM {TRIANGLE} GROUP BY r.b",
}
NOT_AT_ONCE = {
    "path": ("first_order", "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b"),
    "words in capitals": (
        "first_order",
        f"SELECT upper(p.w) AS w, COUNT(*) AS n FROM {TRIANGLE} JOIN p ON p.a = r.a GROUP BY upper(p.w)",
    ),
    "cycle of four by a view of its paths": ("view_tree", VIEWS["cycle of four"]),
    "triangles counted from parts": ("ivm_eps_linear", VIEWS["count"]),
}


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Join at once even for few rows."""
    monkeypatch.setattr(at_once, "WORTH", 0.1)


def rows_of(seed: int) -> dict[str, list[tuple[object, ...]]]:
    draw = random.Random(seed)

    def code() -> int | None:
        return None if draw.random() < 0.05 else draw.randrange(7)

    return {
        "r": [(code(), code(), draw.choice([0.1, 1e16, -1e16, 2.5, None])) for _ in range(60)],
        "s": [(draw.randrange(7), code(), draw.choice([Decimal("0.25"), Decimal("3.10")])) for _ in range(60)],
        "t": [(code(), code()) for _ in range(60)],
        "e": sorted({(draw.randrange(9), draw.randrange(9)) for _ in range(40)}),
        "p": [(code(), draw.choice(["", "ash", "birch", "elm", None])) for _ in range(20)],
    }


def sorted_rows(db: fv.Database) -> list[str]:
    return sorted(map(repr, db.view("v")))


def kept(db: fv.Database) -> dict[str, int]:
    """Rows of each store."""
    return {name: rows for name, (rows, _) in db._relations.views["v"].maintained.sizes().items()}


def made(
    query: str, seed: int, before: bool, path: Path | None = None, strategy: str = "first_order"
) -> fv.Database:
    """A database whose view is made before its rows come, or after."""
    db = fv.Database(path)
    db.execute(TABLES)
    view = f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{strategy}') AS {query}"
    for statement in (True, False) if before else (False, True):
        if statement:
            db.execute(view)
        else:
            for table, rows in rows_of(seed).items():
                db.insert(table, rows)
    return db


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """The results of each ``hand_over``."""
    found: list[bool] = []

    def noted(fed: object, state: object) -> bool:
        found.append(hand_over(fed, state))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr("freshviews.engine.views.maintained.hand_over", noted)
    yield found


COMPILED = [name for name in VIEWS if name not in ("first and last word", "distinct values") and "ends " not in name]


@pytest.mark.parametrize("name", VIEWS if PURE_PYTHON else COMPILED)
def test_a_view_backfilled_by_one_join_is_maintained_like_an_older_view(name: str, handed: list[bool]) -> None:
    for seed in range(3):
        with made(VIEWS[name], seed, before=False) as late, made(VIEWS[name], seed, before=True) as early:
            assert sorted_rows(late) == sorted_rows(early)
            # Stored rows and indexes exist, too: updates of every relation find them.
            for table, rows in rows_of(seed).items():
                for db in (late, early):
                    db.delete(table, rows[::3])
                assert sorted_rows(late) == sorted_rows(early)
            for table, rows in rows_of(seed).items():
                for db in (late, early):
                    db.insert(table, rows[::3])
            assert sorted_rows(late) == sorted_rows(early)
            assert kept(late) == kept(early)
            for table, rows in rows_of(seed).items():
                late.delete(table, rows)
            assert not any(kept(late).values())
    assert handed == [True] * 3


@pytest.mark.parametrize("name", NOT_AT_ONCE if PURE_PYTHON else ["path"])
def test_views_that_one_join_cannot_backfill_are_backfilled_by_deltas(name: str, handed: list[bool]) -> None:
    strategy, query = NOT_AT_ONCE[name]
    with made(query, 1, False, strategy=strategy) as late, made(query, 1, True, strategy=strategy) as early:
        assert sorted_rows(late) == sorted_rows(early)
    assert handed == []


def test_a_backfill_of_few_rows_uses_deltas(monkeypatch: pytest.MonkeyPatch, handed: list[bool]) -> None:
    monkeypatch.setattr(at_once, "WORTH", 2e8)
    made(VIEWS["cycle of four"], 1, before=False).close()
    assert handed == []


def test_every_kind_of_backfill_reports_an_overflow(handed: list[bool]) -> None:
    query = f"SELECT SUM(s.c) AS n FROM {TRIANGLE}"
    with fv.Database() as db:
        db.execute(TABLES)
        db.insert("r", [(1, 1, 0.0)])
        db.insert("s", [(1, 2**62, 0)])
        db.insert("t", [(2**62, 1)] * 3)
        with pytest.raises(fv.EvaluationError, match="overflow"):
            db.execute(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS {query}")
        assert handed == [False] and db.views == ()
        db.delete("t", [(2**62, 1)] * 2)
        db.execute(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS {query}")
        assert list(db.view("v")) == [(2**62,)]
    assert handed == [False, True]


def test_a_view_backfilled_by_one_join_has_its_rows_after_a_reopen(tmp_path: Path, handed: list[bool]) -> None:
    with made(VIEWS["sums by group"], 2, before=False, path=tmp_path / "db") as db:
        rows = sorted_rows(db)
        db.snapshot()
    with fv.Database(tmp_path / "db") as again:
        assert sorted_rows(again) == rows
        again.delete("t", rows_of(2)["t"])
        assert sorted_rows(again) == []
    assert handed[0]


@pytest.mark.parametrize("name", ("rows", "filtered", "ends over one table") if PURE_PYTHON else ())
def test_a_backfill_maintains_a_traced_join_only_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = "incremental_trie_join"
    walks: list[int] = []
    original = Tracing.end_version

    def noted(tracing: Tracing, *args: object) -> None:
        walks.append(1)
        original(tracing, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Tracing, "end_version", noted)
    late = made(VIEWS[name], 1, before=False, strategy=strategy)
    assert len(walks) == 1
    with late, made(VIEWS[name], 1, before=True, strategy=strategy) as early:
        for table, rows in {"": [], **rows_of(1)}.items():
            for change in ("delete", "insert") if table else ():
                for db in (late, early):
                    getattr(db, change)(table, rows[::3])
            assert sorted_rows(late) == sorted_rows(early)
            assert kept(late) == kept(early)


@pytest.mark.plain_python(only=True)
def test_a_failing_backfill_of_a_traced_join_names_the_row_at_fault() -> None:
    query = "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND t.a = r.a WHERE 10 % (r.a - s.c) > 0"
    view = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'incremental_trie_join') AS " + query
    with fv.Database() as db:
        db.execute(TABLES)
        db.insert("r", [(4, 1, 0.0), (2, 1, 0.0)])
        db.insert("s", [(1, 2, 0), (1, 3, 0)])
        db.insert("t", [(3, 4), (2, 2)])
        with pytest.raises(fv.EvaluationError) as told:
            db.execute(view)
        assert told.value.table == "t" and "c = 2, a = 2" in str(told.value)
        db.delete("t", [(2, 2)])
        db.execute(view)
        assert list(db.view("v")) == []
        db.insert("r", [(6, 1, 0.0)])
        db.insert("t", [(3, 6)])
        assert list(db.view("v")) == [(6, 3)]


@pytest.mark.plain_python(only=True)
@pytest.mark.parametrize(("name", "rows"), [("count", 1_400_000), ("cycle of four", 350_000)])
def test_large_triangles_are_backfilled_by_one_join(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deltas of triangles compare eight rows in a step; deltas of cycles of four take a step per row."""
    monkeypatch.setattr(at_once, "WORTH", 2e8)
    with made(VIEWS[name], 1, before=True) as db:
        view = db._relations.views["v"]
        for more, joins in ((1.0, True), (0.95, False)):
            sizes = {table: more * rows / len(view.maintained.inputs) for table in view.maintained.inputs}
            list(view.maintained.passes(sizes, at_once=True)[1])
            assert [part.fed is not None for part in view.maintained.blocks] == [joins]
