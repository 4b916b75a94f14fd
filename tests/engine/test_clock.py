"""Views that compare moments with the clock: rows enter and leave as time passes."""

from __future__ import annotations

import datetime as dt
import random
import re
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.catalog.clock import CLOCK
from freshviews.plan.planner import plan_block
from freshviews.program.reference.interpreter import State
from tests.sql.printed import catalog, views

pytestmark = [pytest.mark.compiled(2), pytest.mark.plain_python]

TABLES = """
    CREATE TABLE t (id INT PRIMARY KEY, k INT, ts TIMESTAMP, d DATE);
    CREATE TABLE a (id INT PRIMARY KEY, k INT);
"""
HOUR = "INTERVAL '1' HOUR"
SHAPES = (
    f"SELECT k, COUNT(*) AS n FROM t WHERE ts > now() - {HOUR} GROUP BY k",
    f"SELECT id FROM t WHERE ts + {HOUR} > current_timestamp AND ts <= NOW()",
    f"SELECT id FROM t WHERE ts BETWEEN now() - {HOUR} AND now()",
    f"SELECT id FROM t WHERE localtimestamp() BETWEEN ts AND ts + {HOUR}",
    f"SELECT id FROM t WHERE NOT (ts < now() - {HOUR})",
    f"SELECT id FROM t WHERE now() - ts < {HOUR}",
    "SELECT id FROM t WHERE NOT ts <> now()",
    "SELECT id FROM t WHERE d = current_date",
    "SELECT k, MAX(d) AS m FROM t WHERE d >= current_date() - 1 GROUP BY k",
    "SELECT id FROM t WHERE d <= now() AND CAST(ts AS DATE) >= curdate()",
    "SELECT id FROM t WHERE date_trunc('HOUR', ts) = date_trunc('HOUR', now())",
    "SELECT id FROM t WHERE ts > now() - INTERVAL '1' MONTH",
    f"SELECT k, MAX(ts) AS m FROM t GROUP BY k HAVING MAX(ts) > now() - {HOUR} AND COUNT(*) > 1",
    f"SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k) HAVING MIN(ts) + {HOUR} < now()",
    f"SELECT a.id, COUNT(t.id) AS n FROM a LEFT JOIN t ON t.k = a.k AND t.ts > now() - {HOUR} GROUP BY a.id",
    f"SELECT a.id, t.id AS i FROM a JOIN t ON t.k = a.k AND t.ts > now() - {HOUR}",
    f"SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k AND ts > now() - {HOUR})",
    f"SELECT id, (SELECT COUNT(*) FROM t WHERE t.k = a.k AND ts > now() - {HOUR}) AS n FROM a",
    "SELECT id FROM a LEFT SEMI JOIN t ON t.k = a.k AND t.ts > now()",
    f"SELECT x.id, y.id AS i FROM t AS x JOIN t AS y ON x.k = y.k AND x.ts < y.ts AND x.ts > now() - {HOUR}"
    " WHERE y.ts <= now()",
    f"SELECT id, RANK() OVER (PARTITION BY k ORDER BY ts) AS r FROM t WHERE ts > now() - {HOUR}",
    "SELECT id FROM t WHERE ts > now() ORDER BY ts, id LIMIT 3",
    f"SELECT k FROM t WHERE ts > now() - {HOUR} EXCEPT SELECT k FROM a",
)
_CLOCK = re.compile(r"\b(now|current_timestamp|localtimestamp|current_date|curdate)\b(\(\))?", re.IGNORECASE)
START = dt.datetime(2026, 1, 31, 22, 0)


def at(minute: float) -> dt.datetime:
    return START + dt.timedelta(minutes=minute)


def fixed(query: str, time: dt.datetime) -> str:
    """The query with the time as a constant."""

    def constant(found: re.Match[str]) -> str:
        return f"DATE '{time:%Y-%m-%d}'" if "da" in found[1].lower() else f"TIMESTAMP '{time}'"

    return _CLOCK.sub(constant, query)


def rows_of(db: fv.Database, view: str) -> list[Any]:
    return sorted(db.view(view), key=repr)


@pytest.mark.plain_python(only=True)
@pytest.mark.seeds(1)
def test_views_over_the_clock_equal_queries_with_the_time_as_a_constant(seed: int) -> None:
    draw = random.Random(seed)
    db = fv.Database()
    db.execute(TABLES)
    for i, query in enumerate(SHAPES):
        db.execute(f"CREATE MATERIALIZED VIEW v{i} AS {query}")
    held: dict[str, dict[int, tuple[Any, ...]]] = {"t": {}, "a": {}}
    minute, number = 0.0, 0
    for _ in range(7):
        with db.batch() as batch:
            for _ in range(draw.randrange(9)):
                name = draw.choice("ttta")
                if held[name] and draw.random() < 0.35:
                    batch.delete(name, [held[name].pop(draw.choice(list(held[name])))])
                    continue
                number += 1
                row: tuple[Any, ...] = (number, draw.randrange(3))
                if name == "t":
                    near = minute + draw.choice((-120, -60, -30, 0, 0, 30, 60))
                    ts = None if draw.random() < 0.1 else at(near)
                    row = (*row, ts, at(draw.randrange(-3, 3) * 1440).date())
                held[name][number] = row
                batch.insert(name, [row])
        minute += draw.choice((0, 15, 30, 60, 60, 300))
        db.advance(at(minute))
        other = fv.Database()
        other.execute(TABLES)
        for name, rows in held.items():
            other.insert(name, list(rows.values()))
        for i, query in enumerate(SHAPES):
            other.execute(f"CREATE MATERIALIZED VIEW v{i} AS {fixed(query, at(minute))}")
            assert rows_of(db, f"v{i}") == rows_of(other, f"v{i}"), (query, minute)


def test_moving_the_clock_forward_makes_a_version() -> None:
    db = fv.Database()
    with pytest.raises(fv.CatalogError, match=re.escape("no view reads the clock; create a view with now() in WHERE")):
        db.advance(at(0))
    db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE ts > now() - {HOUR}")
    assert db.clock is None
    db.insert("t", [(1, 1, at(0), None), (2, 1, at(30), None)])
    assert (list(db.view("v")), db.version) == ([], 1)
    assert (db.advance(at(10)), db.clock, sorted(db.view("v"))) == (2, at(10), [(1,), (2,)])
    assert db.advance(at(10)) == 2
    zone = dt.timezone(dt.timedelta(hours=2))
    assert db.advance((at(60) + dt.timedelta(hours=2)).replace(tzinfo=zone)) == 3
    assert (db.clock, list(db.view("v"))) == (at(60), [(2,)])
    with pytest.raises(fv.ArgumentError, match="the clock is at 2026-01-31 23:00:00; it only goes forward"):
        db.advance(at(59))
    with pytest.raises(fv.ArgumentError, match="must be a datetime, not 'noon'"):
        db.advance("noon")  # type: ignore[arg-type]
    db.advance()
    assert db.clock is not None and db.clock > at(60)
    db.advance(dt.datetime(9000, 1, 1))
    assert db.advance() == db.version
    assert db.clock == dt.datetime(9000, 1, 1)


def test_an_automatic_clock_moves_with_every_change_of_rows(tmp_path: Path) -> None:
    seen: list[fv.Change] = []
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    with fv.Database(tmp_path, clock="auto") as db:
        db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE ts > now() - {HOUR}")
        db.view("v").subscribe(seen.append)
        assert db.insert("t", [(1, 1, now, None), (2, 1, now - dt.timedelta(hours=2), None)]) == 1
        assert db.clock is not None and now <= db.clock and list(db.view("v")) == [(1,)]
        with db.batch() as batch:
            batch.upsert("t", [(3, 1, now, None)])
            batch.delete("t", keys=[2])
        db.advance(dt.datetime(9000, 1, 1))
        # The clock does not go back to the time of the machine.
        assert db.insert("t", [(4, 1, now, None)]) == 4
        assert (db.clock, list(db.view("v"))) == (dt.datetime(9000, 1, 1), [])
        assert [change.version for change in seen] == [1, 2, 3]
    with fv.Database(tmp_path) as db:
        assert (db.clock, db.version, list(db.view("v"))) == (dt.datetime(9000, 1, 1), 4, [])
    with pytest.raises(fv.ArgumentError, match="clock must be 'advance' or 'auto', not 'always'"):
        fv.Database(clock="always")  # type: ignore[arg-type]


def test_an_error_at_a_new_time_names_the_clock_and_the_remedy() -> None:
    for clock in ("advance", "auto"):
        with fv.Database(clock=clock) as db:  # type: ignore[arg-type]
            db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT 1 / SUM(k) AS q FROM t WHERE ts <= now()")
            now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
            db.insert("t", [(1, 1, now, None), (2, -1, now + dt.timedelta(hours=1), None)])
            message = rf"the clock at {now.date()} .*: view v cannot be computed: division by zero; .* at that time, as"
            with pytest.raises(fv.EvaluationError, match=message) as caught:
                db.advance(now + dt.timedelta(hours=1))
            assert str(caught.value).endswith("with try_divide, or change the rows that the view reads")
            with db.batch() as batch:
                batch.delete("t", keys=[2])
                batch.insert("a", [(1, 1)])
            db.advance(now + dt.timedelta(hours=1))


def test_the_error_names_the_clock_if_a_view_fails_when_an_insert_moves_the_clock() -> None:
    with fv.Database(clock="auto") as db:
        db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT 1 / SUM(k) AS q FROM t WHERE ts <= now()")
        past = dt.datetime(2026, 1, 1)
        db.insert("t", [(1, 1, past, None)])
        before = db.clock
        with pytest.raises(fv.EvaluationError, match=r"^the clock at .*: view v cannot be computed: division by zero"):
            db.insert("t", [(2, -1, past, None)])
        assert (db.clock, list(db.view("v"))) == (before, [(1.0,)])


def test_a_change_of_another_table_waits_for_readers_of_views_over_the_clock() -> None:
    with fv.Database(clock="auto") as db:
        db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE ts <= now()")
        changes = db.view("v").changes("now", size=1, full="wait", timeout=0.01)
        db.insert("t", [(1, 1, dt.datetime(2026, 1, 1), None), (2, 1, dt.datetime(2026, 1, 1), None)])
        with pytest.raises(fv.QueueFull):
            db.insert("a", [(1, 1)])
        with pytest.raises(fv.QueueFull):
            db.upsert("a", [(1, 1)])
        with pytest.raises(fv.QueueFull), db.batch() as batch:
            batch.insert("a", [(1, 1)])
        assert [row for row, _ in next(changes)] == [(1,), (2,)]
        db.insert("a", [(1, 1)])


def test_users_do_not_see_the_table_of_the_clock() -> None:
    db = fv.Database()
    db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE ts > now()")
    assert db.tables == ("t", "a")
    with pytest.raises(fv.CatalogError, match="unknown table #clock; there are t, a"):
        db.insert("#clock", [(at(0),)])
    with pytest.raises(fv.CatalogError, match="unknown table or view #clock"):
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT * FROM `#clock`")
    assert [name for name, *_ in db.execute("SHOW TABLES").fetchall()] == ["t", "a"]


def test_a_plain_view_over_the_clock_is_read_by_views_and_by_selects() -> None:
    db = fv.Database()
    db.execute(f"{TABLES} CREATE VIEW p AS SELECT id FROM t WHERE ts > now();")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM p")
    db.insert("t", [(1, 1, at(0), None), (2, 1, at(30), None)])
    db.advance(at(10))
    assert list(db.view("v")) == db.sql("SELECT * FROM p").fetchall() == [(2,)]


def test_a_column_named_current_date_is_not_read_as_the_clock() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE q (current_date DATE, d DATE);"
               "CREATE MATERIALIZED VIEW v AS SELECT d FROM q WHERE d > current_date")
    db.insert("q", [(at(0).date(), at(1440).date()), (at(0).date(), at(0).date())])
    assert list(db.view("v")) == [(at(1440).date(),)]
    with pytest.raises(fv.CatalogError, match="no view reads the clock"):
        db.advance(at(0))


def test_a_durable_database_recovers_the_clock_from_its_log_and_from_a_snapshot(tmp_path: Path) -> None:
    with fv.Database(tmp_path) as db:
        db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE ts > now() - {HOUR}")
        db.insert("t", [(1, 1, at(0), None), (2, 1, at(30), None)])
        db.advance(at(60))
    for snapshot in (False, True):
        with fv.Database(tmp_path) as db:
            assert (db.clock, list(db.view("v")), db.version) == (at(60), [(2,)], 2)
            if snapshot:
                db.snapshot()
    with fv.Database(tmp_path) as db:
        assert db.advance(at(90)) == 3
        assert (db.clock, list(db.view("v"))) == (at(90), [])


def test_explain_shows_that_the_cost_of_the_clock_grows_with_rows_that_enter_or_leave_the_view() -> None:
    db = fv.Database()
    db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM t WHERE ts > now() GROUP BY k")
    text = str(db.view("v").explain())
    assert "v#1  per row of #clock: O(1)" in text
    assert "per row of t or changed row of v#1: O(log N), and again O(log N) for each row that enters or" in text


def test_the_steps_of_a_clock_advance_hardly_grow_with_the_number_of_stored_rows() -> None:
    known = catalog(TABLES)
    known = known.after(CLOCK)
    made = views(f"SELECT id FROM t WHERE ts > now() - {HOUR}", known)
    view = next(one for one in made if one.blocks[0].selection is not None)
    inputs: dict[str, Any] = {**known.tables, **{one.name: one for one in made}}
    program = plan_block(view, view.blocks[0], inputs).program
    limits = program.triggers[-1].relation
    costs = []
    for count in (200, 3200):
        state = State(program)
        state.apply("t", [({"id": i, "k": 0, "ts": i, "d": 0}, 1) for i in range(count)])
        state.apply(limits, [({"limit": 0}, 1)])
        before = state.steps
        state.apply(limits, [({"limit": 0}, -1), ({"limit": -10}, 1)])
        costs.append(state.steps - before)
    assert costs[1] <= costs[0] + 40, costs
