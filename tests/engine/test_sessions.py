"""Session windows: rows that follow each other within a gap, merged and split by inserts and deletes."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest

import freshviews as fv
from freshviews.expr.nodes import columns_of
from freshviews.program.reference.interpreter import State

pytestmark = [pytest.mark.compiled(2), pytest.mark.plain_python]

TABLES = "CREATE TABLE t (id INT, k INT, ts TIMESTAMP, x INT); CREATE TABLE u (k INT, z INT);"
Row = tuple[int, int | None, dt.datetime | None, int]


def at(minutes: float) -> dt.datetime:
    return dt.datetime(2026, 1, 1) + dt.timedelta(minutes=minutes)


SECOND = 1 / 60
ROWS: list[Row] = [
    (1, 1, at(0), 5), (2, 1, at(10), 6), (3, 1, at(20 + SECOND), 7), (4, 2, at(5), 8), (5, None, at(5), 9),
    (6, 1, None, 1), (7, None, at(6), 9),
]  # fmt: skip
OF_SPARK: dict[str, list[Any]] = {
    "SELECT k, session_window.start, session_window.end, COUNT(*) AS n FROM t"
    " GROUP BY k, session_window(ts, '10 minutes')": [
        (1, at(0), at(20), 2), (1, at(20 + SECOND), at(30 + SECOND), 1),
        (2, at(5), at(15), 1), (None, at(5), at(16), 2),
    ],
    "SELECT session_window.start AS s, session_window.end AS e, SUM(x) AS n FROM t"
    " GROUP BY session_window(ts, '5 minutes')": [(at(0), at(15), 37), (at(20 + SECOND), at(25 + SECOND), 7)],
    "SELECT k, session_window(ts, '10 minutes').start AS s, COUNT(*) AS n FROM t"
    " GROUP BY k, session_window(ts, '10 minutes')": [
        (1, at(0), 2), (1, at(20 + SECOND), 1), (2, at(5), 1), (None, at(5), 2),
    ],
    "SELECT k, session_window.start, session_window.end, COUNT(*) AS n FROM t GROUP BY k, session_window(ts,"
    " CASE WHEN x = 5 THEN '30 minutes' WHEN x = 9 THEN '-1 minutes' ELSE '1 minutes' END)": [
        (1, at(0), at(30), 3), (2, at(5), at(6), 1),
    ],
    "SELECT k, session_window.start, session_window.end, COUNT(*) AS n FROM t GROUP BY k, session_window(ts,"
    " CASE WHEN x = 5 THEN '30 minutes' WHEN x = 8 THEN NULL ELSE '0 minutes' END)": [(1, at(0), at(30), 1)],
    "SELECT session_window.start, x % 2 AS p, COUNT(*) AS c FROM t GROUP BY session_window(ts, '6 minutes'), p": [
        (at(0), 1, 3), (at(20 + SECOND), 1, 1), (at(5), 0, 2),
    ],
    "SELECT session_window.start, COUNT(*) AS c FROM t GROUP BY session_window(ts, '-1 minutes')": [],
    "SELECT session_window.start, COUNT(*) AS c FROM t GROUP BY session_window(ts, '1 month')": [(at(0), 6)],
    "SELECT session_window.start AS s, COUNT(*) AS n FROM t GROUP BY session_window(to_date(ts), '10 minutes')": [
        (at(0), 6),
    ],
    "SELECT COUNT(*) AS n FROM t GROUP BY k, session_window(ts, '10 minutes')": [(1,), (1,), (2,), (2,)],
    "SELECT session_window.start, COUNT(*) AS c FROM t WHERE x > 5 GROUP BY session_window(ts, '10 minutes')"
    " HAVING COUNT(*) > 1 AND session_window.end > TIMESTAMP '2026-01-01 00:30:00'": [],
}  # fmt: skip
"""Questions about ``ROWS`` with the answers of Spark."""


@pytest.mark.plain_python(only=True)
@pytest.mark.parametrize("query", OF_SPARK)
def test_session_windows_return_the_same_rows_as_spark(query: str) -> None:
    db = fv.Database()
    db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS {query}")
    db.insert("t", ROWS)
    assert sorted(db.view("v"), key=repr) == sorted(OF_SPARK[query], key=repr)


def test_selects_return_the_same_sessions_and_asof_joins_as_views() -> None:
    db = fv.Database()
    db.execute(f"{TABLES} CREATE VIEW p AS SELECT k, session_window.start AS s, COUNT(*) AS n FROM t"
               " GROUP BY k, session_window(ts, '10 minutes')")
    db.insert("t", ROWS)
    expected = [(1, at(0), 2), (1, at(20 + SECOND), 1), (2, at(5), 1), (None, at(5), 2)]
    assert sorted(db.sql("SELECT * FROM p").fetchall(), key=repr) == sorted(expected, key=repr)
    nearest = "SELECT a.id, b.id FROM t AS a ASOF JOIN t AS b {} a.k = b.k {}"
    assert sorted(db.sql(nearest.format("ON", "AND a.ts > b.ts")).fetchall()) == [(2, 1), (3, 2)]
    found = db.sql(nearest.format("MATCH_CONDITION (a.ts > b.ts) ON", "")).fetchall()
    assert sorted(found, key=repr) == [(1, None), (2, 1), (3, 2), (4, None), (5, None), (6, None), (7, None)]


def gap(row: Row, dynamic: bool) -> float:
    return (0, 4, 9)[row[3] % 3] if dynamic else 5


def sessions(rows: list[Row], dynamic: bool) -> list[tuple[dt.datetime, dt.datetime, list[Row]]]:
    """The sessions of rows of one key: start, end, rows."""
    found: list[tuple[dt.datetime, dt.datetime, list[Row]]] = []
    for row in sorted(rows, key=lambda row: str(row[2])):
        if row[2] is None or not gap(row, dynamic):
            continue
        end = row[2] + dt.timedelta(minutes=gap(row, dynamic))
        if found and row[2] <= found[-1][1]:
            start, last, own = found.pop()
            found.append((start, max(last, end), [*own, row]))
        else:
            found.append((row[2], end, [row]))
    return found


DYNAMIC = "CASE x % 3 WHEN 0 THEN '0 minutes' WHEN 1 THEN INTERVAL '4' MINUTE ELSE '9 minutes' END"
LISTED = "session_window.start AS s, session_window.end AS e"
VIEWS = {
    "sums": f"SELECT k, {LISTED}, COUNT(*) AS n, SUM(x) AS x FROM t GROUP BY k, session_window(ts, '5 minutes')",
    "most": f"SELECT k, {LISTED}, COUNT(*) AS n, MAX(x) AS x FROM t GROUP BY k, session_window(ts, '5 minutes')",
    "dynamic": f"SELECT k, {LISTED}, COUNT(*) AS n, SUM(x) AS x FROM t GROUP BY k, session_window(ts, {DYNAMIC})",
    "everywhere": f"SELECT {LISTED}, COUNT(*) AS n FROM t WHERE k = 1 GROUP BY session_window(ts, '5 minutes')",
    "joined": f"SELECT z, {LISTED}, COUNT(*) AS n FROM t JOIN u ON t.k = u.k"
    " GROUP BY z, session_window(ts, '5 minutes')",
    "rows": "SELECT id, window_start, window_end"
    " FROM SESSION(TABLE t, DESCRIPTOR(ts), DESCRIPTOR(k), INTERVAL 5 MINUTE)",
}


def expected(view: str, rows: list[Row]) -> list[tuple[Any, ...]]:
    made: list[tuple[Any, ...]] = []
    for key in (1, 2, None):
        of_key = [row for row in rows if row[1] == key]
        for start, end, own in sessions(of_key, view == "dynamic"):
            if view == "rows":
                made += [(row[0], start, end) for row in own]
            elif view == "everywhere" and key == 1:
                made.append((start, end, len(own)))
            elif view == "joined" and key is not None:
                made.append((10 * key, start, end, len(own)))
            elif view in ("sums", "most", "dynamic"):
                values = [row[3] for row in own]
                made.append((key, start, end, len(own), max(values) if view == "most" else sum(values)))
    return sorted(made, key=repr)


@pytest.mark.plain_python(only=True)
@pytest.mark.seeds(1)
def test_sessions_merge_and_split_by_inserts_and_deletes(seed: int) -> None:
    draw = random.Random(seed)
    db = fv.Database()
    db.execute(TABLES + ";".join(f"CREATE MATERIALIZED VIEW `{name}` AS {sql}" for name, sql in VIEWS.items()))
    db.insert("u", [(1, 10), (2, 20)])
    held: list[Row] = []
    for number in range(40):
        changes = []
        for i in range(draw.choice((1, 1, 2, 6))):
            if held and draw.random() < 0.4:
                changes.append((*held.pop(draw.randrange(len(held))), -1))
                continue
            minute = draw.choice((None, *range(40)))
            ts = None if minute is None else at(minute)
            held.append((10 * number + i, draw.choice((1, 1, 2, None)), ts, draw.randrange(9)))
            changes.append((*held[-1], 1))
        db.apply("t", changes)
        for view in VIEWS:
            assert sorted(db.view(view), key=repr) == expected(view, held), view


def test_explain_shows_that_an_update_of_session_sums_takes_o_log_n() -> None:
    db = fv.Database()
    db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS {VIEWS['sums']}; CREATE MATERIALIZED VIEW w AS {VIEWS['most']}")
    text = str(db.view("v").explain())
    assert "v     per row of t or changed row of v#15: O(log N)\n" in text
    assert "in last of sessions#_2_by_start" in text
    found = str(db.view("w").explain())
    assert "w    per row of t or changed row of w#7: O(log N), and again O(log N) for each row whose match ch" in found


def test_the_steps_of_an_update_grow_neither_with_rows_nor_with_sessions() -> None:
    db = fv.Database()
    db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS {VIEWS['sums']}")
    (block,) = db.view("v").state.maintained.blocks.blocks
    program = block.state.program
    of_rows, of_sessions = program.triggers
    if of_rows.relation != "t":
        of_rows, of_sessions = of_sessions, of_rows
    costs = []
    for count in (60, 240):
        state = State(program)
        for i in range(count):
            row = {"k1#": 1, "start#": 20 * i, "till#": 20 * i + 15, "end": 20 * i + 19}
            state.apply(of_sessions.relation, [({c: row[c] for c in _columns(of_sessions)}, 1)])
        rows = [{"id": 0, "k": 1, "ts": 10 * i, "x": 1, "till": 10 * i + 5} for i in range(2 * count)]
        state.apply("t", [({c: row[c] for c in _columns(of_rows)}, 1) for row in rows])
        before = state.steps
        state.apply("t", [({c: rows[count][c] for c in _columns(of_rows)}, 1)])
        row = {"k1#": 1, "start#": 400, "till#": 415, "end": 419}
        state.apply(of_sessions.relation, [({c: row[c] for c in _columns(of_sessions)}, -1)])
        costs.append(state.steps - before)
    assert costs[0] == costs[1] < 60


def _columns(trigger: Any) -> list[str]:
    """The columns of the relation that a trigger reads."""
    exprs = [*(one.expr for one in trigger.parameters), *trigger.filters]
    return sorted({name for one in exprs for name in columns_of(one)})


def test_errors_of_session_windows_list_the_accepted_forms() -> None:
    db = fv.Database()
    db.execute(TABLES)
    for query, message in (
        ("SELECT COUNT(*) AS n FROM t GROUP BY session_window(ts, concat(x, ' minutes'))", "a session takes a gap"),
        ("SELECT COUNT(*) AS n FROM t GROUP BY ROLLUP (k, session_window(ts, '1 minute'))", "without ROLLUP, CUBE and"),
        ("SELECT 1 AS n FROM t GROUP BY session_window(ts, '1 day'), window(ts, '1 day')", "only one time window"),
        ("SELECT session_window FROM t GROUP BY session_window(ts, '1 day')", "write session_window.start"),
        ("SELECT session_window(ts, '1 day') AS s FROM t", "session_window here is not supported; GROUP BY session_w"),
        ("SELECT * FROM SESSION(TABLE t, DESCRIPTOR(ts))", "as in SESSION(TABLE t, DESCRIPTOR(ts), DESCRIPTOR(key)"),
        ("SELECT * FROM SESSION(TABLE t, DESCRIPTOR(ts), k, INTERVAL '1' DAY)", "the key of SESSION as a DESCRIPTOR"),
    ):  # fmt: skip
        with pytest.raises(fv.SqlError) as error:
            db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert message in str(error.value)
