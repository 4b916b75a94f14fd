"""Range sums give the rows and the errors of loops over all rows, in a logarithmic number of steps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import freshviews as fv
from benchmarks.counting import steps
from benchmarks.counting.steps import counted_state
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.errors import FreshviewsError
from freshviews.plan import planner
from freshviews.plan.delta.range_sums.ranges import with_ranges
from freshviews.program.printer import print_program
from freshviews.program.program import Program
from freshviews.program.statements import Loop, RangeLoop, RangeSum
from freshviews.program.structure import visit

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(3)]

TABLES = """
    CREATE TABLE r (g BIGINT, p BIGINT, v BIGINT, s INT, d DOUBLE, e DECIMAL(8, 2), t DATE)
        TBLPROPERTIES ('freshviews.trusted' = 'true');
    CREATE TABLE q (g BIGINT, p BIGINT, v BIGINT, s INT, d DOUBLE, e DECIMAL(8, 2), t DATE)
        TBLPROPERTIES ('freshviews.trusted' = 'true');
"""
AXFINDER = (
    "SELECT r.g, SUM(q.v - r.v) AS s FROM r, q WHERE r.g = q.g AND (q.p - r.p > 1 OR r.p - q.p > 1) GROUP BY r.g"
)
SUMS = (
    AXFINDER,
    "SELECT COUNT(*) AS n, SUM(r.v) AS s FROM r JOIN q ON r.p < q.p",
    "SELECT r.g, SUM(q.v) AS s, AVG(q.e) AS a FROM r JOIN q ON r.g = q.g AND q.p BETWEEN r.p - 2 AND r.p + 2"
    " GROUP BY r.g",
    "SELECT r.g, SUM(q.d) AS s FROM r JOIN q ON r.d >= q.d GROUP BY r.g",
    "SELECT r.s, SUM(q.s - r.s) AS n, SUM(q.s * r.v) AS m FROM r JOIN q ON r.g = q.g AND NOT q.s + 1 <= r.s"
    " GROUP BY r.s",
    "SELECT SUM(r.v * q.v) AS s FROM r JOIN q ON r.g = q.g AND r.p <> q.p",
    "SELECT r.g, SUM(q.e - r.e) AS s FROM r JOIN q ON r.g = q.g WHERE r.e - q.e < 1.5 AND r.e + 2 > q.e GROUP BY r.g",
    "SELECT r.g, COUNT(*) AS n FROM r JOIN q ON r.t > q.t - INTERVAL 2 DAYS GROUP BY r.g",
    "SELECT r.g, SUM(q.d - r.d) AS s FROM r, q WHERE r.g = q.g AND (q.d - r.d > 1 OR r.d - q.d > 1) GROUP BY r.g",
    "SELECT SUM(q.d - (r.d + 0.5)) AS s FROM r JOIN q ON r.g = q.g AND q.d - 0.5 <= r.d + 2",
    "SELECT r.g, SUM(q.v + r.d - q.d) AS s, AVG(-(r.d - q.d)) AS a FROM r, q WHERE r.g = q.g AND r.p > q.p GROUP BY 1",
)
WALKS = (
    "SELECT r.p, r.v, (SELECT SUM(q.v) FROM q WHERE q.p <= r.p) AS s FROM r",
    "SELECT r.g, r.p, (SELECT COUNT(*) FROM q WHERE q.g = r.g AND q.p > r.p) AS n FROM r",
    "SELECT r.g, MAX(q.v) AS m FROM r JOIN q ON q.p < r.p GROUP BY r.g",
    "SELECT r.p, q.v FROM r JOIN q ON q.p < r.p AND q.v > r.v",
    "SELECT r.v, COUNT(*) AS n FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.p > r.p) GROUP BY r.v",
    "SELECT r.g, BIT_XOR(q.v - r.v) AS x, SKEWNESS(q.s - r.s) AS s FROM r JOIN q ON r.g = q.g AND q.p < r.p"
    " GROUP BY r.g",
    "SELECT r.g, COUNT(*) AS n FROM r, q, q AS o WHERE r.p < q.p AND q.v < o.v GROUP BY r.g",
)


def views(text: str) -> fv.Database:
    db = fv.Database()
    db.execute(TABLES + f"CREATE MATERIALIZED VIEW v AS {text}")
    return db


def programs(db: fv.Database) -> Iterator[Program]:
    """The programs of all views, internal ones included."""
    for state in db._relations.views.values():
        for block in state.maintained.blocks:
            yield block.plan.program


WHOLE = (None, 0.5, -1.0, 2.0, 3.25)
ANY = (*WHOLE, float("nan"), float("inf"), 0.1, 0.7, 2.0**-11, 1e300, -(2.0**41))
"""Doubles with exact sums, and others."""


def rows(order: random.Random, n: int, values: list[int | None]) -> list[tuple[object, ...]]:
    doubles = WHOLE if values is SMALL else ANY

    def one() -> tuple[object, ...]:
        p, v, s = order.choice(values), order.choice(values), order.choice((None, -3, 0, 1, 2, 2**31 - 1))
        date = order.choice((None, "2024-01-01", "2024-01-02", "2024-01-05"))
        d = order.choice(doubles)
        e = order.choice((None, "1.25", "-0.50", "3.00"))
        return (order.randrange(2), p, v, s, d, e, date)

    return [one() for _ in range(n)]


def run(db: fv.Database, order: random.Random, values: list[int | None]) -> list[object]:
    """The contents after each batch, or its error."""
    seen: list[object] = []
    stored: dict[str, list[tuple[object, ...]]] = {"r": [], "q": []}
    for _ in range(14):
        table = order.choice(("r", "q"))
        batch = rows(order, order.randrange(1, 4), values)
        gone = order.sample(stored[table], len(stored[table]) // 3)
        try:
            if gone:
                db.delete(table, gone)
                for row in gone:
                    stored[table].remove(row)
            db.insert(table, batch)
            stored[table] += batch
            seen.append(sorted(map(repr, db.view("v"))))
        except FreshviewsError as error:
            seen.append(str(error))
    return seen


APART = (
    "SELECT r.g, AVG(q.v - r.v) AS s FROM r JOIN q ON r.g = q.g GROUP BY r.g",
    "SELECT SUM((q.p - r.p) * q.v) AS s, SUM(COALESCE(r.p + q.v, 0)) AS t FROM r JOIN q ON r.g = q.g",
)
"""Lifts across tables that are split by table, without bounds on the rows."""
TOGETHER = ("SELECT r.g, BIT_XOR(q.s + r.s) AS x, SUM(q.s + r.s) AS s FROM r, q GROUP BY r.g",)
"""A lift across tables that cannot be split, beside one that can."""
GROUPED = (
    "SELECT r.v, SUM(q.v) AS s, COUNT(*) AS n FROM r JOIN q ON r.p < q.p GROUP BY r.v",
    "SELECT r.s, q.v, SUM(q.p - r.p) AS d FROM r JOIN q ON r.g = q.g AND r.p >= q.p - 1 GROUP BY ALL",
    "SELECT r.s, AVG(q.d) AS a FROM r JOIN q ON q.p > r.p + r.v GROUP BY r.s",
)
"""A range sum for each group of the other side."""
BANDS = (
    "SELECT r.s, q.v, SUM(q.p - r.p) AS d FROM r JOIN q ON r.g = q.g AND r.p BETWEEN q.p - 1 AND q.p + 2 GROUP BY ALL",
)
"""Few rows between two bounds, which are visited."""
GROUPED_APART = (
    "SELECT r.v, SUM(q.p - r.p) AS s FROM r, q GROUP BY r.v",
    "SELECT r.v, SUM(q.d - r.d) AS s FROM r, q GROUP BY r.v",
    "SELECT r.v, q.s, SUM(q.p - r.p) AS m, SUM(r.p + q.p) AS t FROM r JOIN q ON r.g = q.g GROUP BY r.v, q.s",
)
"""Lifts across tables that are split by table, summed for each group of the other side."""
SMALL = [None, -2, -1, 0, 1, 2, 3]
WIDE = [*SMALL, 2**63 - 1, -(2**63) + 1, 2**62, 2**41]


@pytest.mark.sample(5)
@pytest.mark.parametrize("values", [SMALL, WIDE], ids=["small", "wide"])
@pytest.mark.parametrize("text", (*SUMS, *WALKS, *APART, *TOGETHER, *GROUPED, *BANDS, *GROUPED_APART))
def test_range_sums_give_the_same_rows_as_loops(
    text: str, values: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    db = views(text)
    made = [s for program in programs(db) for t in program.triggers for s in visit(t.body)]
    assert text in (*APART, *TOGETHER, *GROUPED_APART) or any(isinstance(s, RangeSum | RangeLoop) for s in made)
    monkeypatch.setattr(planner, "with_ranges", lambda program, *_: program)
    loops = views(text)
    for seed in range(6):
        one, other = (run(each, random.Random(seed), values) for each in (db, loops))
        assert one == other


OWN = "SELECT SUM(r.v) AS s FROM r, q, q AS o WHERE r.g = o.g AND q.g = o.g AND r.p < q.p AND o.v > 0"
"""A row of o joins rows of r and q, whose views are looped over and summed."""


def test_a_stored_view_with_the_same_key_serves_as_the_range_view(monkeypatch: pytest.MonkeyPatch) -> None:
    db = views(OWN)
    (made,) = programs(db)
    looped = {s.view for t in made.triggers for s in visit(t.body) if isinstance(s, Loop)}
    summed = {s.rows.view for t in made.triggers for s in visit(t.body) if isinstance(s, RangeSum)}
    assert looped & summed
    monkeypatch.setattr(planner, "with_ranges", lambda program, *_: program)
    loops = views(OWN)
    # The group of 0 gets too many rows to scan, so it enters the tree of its index, and leaves it again.
    order = random.Random(3)
    inserted = [(int(order.random() < 0.1), *(order.randrange(200) for _ in range(2)), *[None] * 4) for _ in range(90)]
    for times in (1, -1):
        for start in range(0, len(inserted), 30):
            for table in ("r", "q"):
                for one in (db, loops):
                    one.apply(table, [(*row, times) for row in inserted[start : start + 30]])
            assert list(db.view("v")) == list(loops.view("v"))


def test_a_program_without_range_conditions_is_not_rewritten() -> None:
    db = views("SELECT r.g, SUM(q.v) AS s FROM r JOIN q ON r.g = q.g GROUP BY r.g")
    for program in programs(db):
        assert with_ranges(program) is program


SUMMED = (SUMS[0], SUMS[1], SUMS[2], SUMS[5], SUMS[6], *SUMS[-3:])


@pytest.mark.parametrize("text", (*SUMMED, *APART))
def test_a_range_sum_visits_no_rows(text: str) -> None:
    db = views(text)
    (made,) = programs(db)
    bounds = dict(made.bounds)
    assert bounds["update"] == ("O(1)" if text in APART else "O(log N)")
    # The remaining loops are for values whose arithmetic might overflow.
    loops = [s for t in made.triggers for s in visit(t.body) if isinstance(s, Loop)]
    assert bool(loops) == ("beyond" in bounds or "rounded" in bounds)
    assert not any(isinstance(s, RangeLoop) for t in made.triggers for s in visit(t.body))


@pytest.mark.parametrize("text", (*GROUPED, *GROUPED_APART))
def test_an_update_with_sums_by_group_visits_only_groups(text: str) -> None:
    (made,) = programs(views(text))
    bounds = dict(made.bounds)
    update = bounds["update"]
    assert update.startswith("O(G): an addition" if text in GROUPED_APART else "O(G log N): a range sum")
    for view in made.views:
        grouped = [s for t in made.triggers for s in visit(t.body) if isinstance(s, Loop) and s.view == view.name]
        assert not grouped or view.name in update or bounds.keys() & {"beyond", "rounded"}


def test_a_range_with_two_bounds_is_read_row_by_row_without_range_sums() -> None:
    """For connections of flights within two hours, a range sum for each destination took 14 times as long as a loop."""
    db = views(BANDS[0])
    (made,) = programs(db)
    assert any(isinstance(s, RangeLoop) for t in made.triggers for s in visit(t.body))
    assert not any(isinstance(s, RangeSum) for t in made.triggers for s in visit(t.body))
    assert dict(made.bounds)["update"].startswith("O(N): O(log N) for each row whose range contains the value")
    # Each side is stored once, in the order of its range.
    sides = [view for view in made.views if view.name.split("_")[0] in ("r", "q") and "wide" not in view.name]
    assert len(sides) == 2 and all(view.ordered for view in sides)


def test_groups_of_one_row_are_visited_as_rows() -> None:
    """Each key has one row: the rows in the range are visited, and no other groups."""
    keyed = "CREATE TABLE k (id BIGINT PRIMARY KEY, p BIGINT); CREATE TABLE o (id BIGINT PRIMARY KEY, p BIGINT);"
    db = fv.Database()
    text = "SELECT k.id, COUNT(*) AS n FROM k, o WHERE k.p < o.p GROUP BY k.id"
    db.execute(f"{keyed} CREATE MATERIALIZED VIEW v AS {text}")
    (made,) = programs(db)
    assert any(isinstance(s, RangeLoop) for t in made.triggers for s in visit(t.body))
    assert not any(isinstance(s, Loop) for t in made.triggers for s in visit(t.body))


def test_the_program_of_axfinder_equals_its_golden_file(golden: Callable[[str, str], None]) -> None:
    (made,) = programs(views(AXFINDER))
    golden("programs/axfinder.first_order.txt", print_program(made))


def most_steps(text: str, kind: str, n: int, few: str) -> float:
    """The most steps of statements that an update takes among n rows of each table, whose column ``few`` has five
    values; tests/kernel/test_ordered_sums.py counts the rows that a range sum reads."""
    order = np.random.default_rng(4)
    state, columns = counted_state(f"{TABLES} CREATE MATERIALIZED VIEW v AS {text};", kind)
    taken = []
    for times in (n, *[1] * 20):
        for table, names in columns.items():
            values = {name: order.integers(0, 5 if name == few else 1000, times) for name in names}
            if "d" in values:
                values["d"] = values["d"].astype(float).view(np.int64)
            before = int(state.status[STATUS_STEPS])
            steps.run(state, table, values, 1)
            taken.append((int(state.status[STATUS_STEPS]) - before) / times)
        state.enter_pending()
    state.close()
    return max(taken[2:])


@pytest.mark.compiled(2)
@pytest.mark.parametrize("text", (AXFINDER, SUMS[-3]), ids=["integers", "doubles"])
def test_the_steps_of_axfinder_do_not_grow_with_the_number_of_orders(text: str) -> None:
    assert most_steps(text, "cyclic", 200, "g") == most_steps(text, "cyclic", 2_000, "g") <= 8


@pytest.mark.compiled(1)
def test_steps_of_an_update_grow_with_groups_not_rows() -> None:
    text = GROUPED[0]
    assert most_steps(text, "acyclic", 100, "v") == most_steps(text, "acyclic", 1_000, "v") <= 5 * 4
