"""Percentiles and MODE have Spark's values, types and refusals, and follow inserts and deletes."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from freshviews import Database
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.views import view_block
from freshviews.errors import SqlError
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.kernel.ordered import folds, index, index_updates, percentiles, places
from tests.sql.printed import catalog, column_types, view

pytestmark = pytest.mark.plain_python(only=True)

COLUMNS = "i INT, l BIGINT, x DOUBLE, f FLOAT, p DECIMAL(10, 2), s STRING, d DATE, t TIMESTAMP, b BOOLEAN"
ROWS = [
    (1, 1, math.nan, 1.5, Decimal("1.5"), "1", dt.date(2020, 1, 1), dt.datetime(1969, 1, 1), True),
    (2, 2, math.inf, 2.5, Decimal("2.25"), "2", dt.date(2020, 1, 3), None, None),
    (3, 2**53 + 1, 1.5, None, None, "-0", None, None, None),
    (10, None, None, None, None, None, None, None, None),
]

ANSWERS = [
    ("median(i)", 2.5),
    ("percentile(i, 0.5)", 2.5),
    ("percentile(i, '0.25')", 1.75),
    ("percentile(i, 0.25 + 0.25, 1)", 2.5),
    ("percentile_cont(0.3) WITHIN GROUP (ORDER BY i)", 1.9),
    ("percentile_cont(0.3) WITHIN GROUP (ORDER BY i DESC)", 3.7000000000000006),
    ("percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FILTER (WHERE i > 1)", 3.0),
    ("median(i) FILTER (WHERE i > 20)", None),
    *(
        (f"percentile_disc({fraction}) WITHIN GROUP (ORDER BY i{order})", value)
        for order, values in (
            ("", {0.0: 1.0, 0.25: 1.0, 0.26: 2.0, 0.3: 2.0, 0.5: 2.0, 0.75: 3.0, 1: 10.0}),
            (" DESC", {0.0: 10.0, 0.1: 10.0, 0.25: 10.0, 0.3: 3.0, 0.5: 3.0, 0.75: 2.0, 1: 1.0}),
        )
        for fraction, value in values.items()
    ),
    *(
        (f"percentile_approx(i, {fraction})", value)
        for fraction, value in {0.0: 1, 0.25: 1, 0.26: 2, 0.5: 2, 0.75: 3, 1: 10}.items()
    ),
    ("approx_percentile(i, 0.5, 100)", 2),
    ("median(x)", math.inf),
    ("percentile_disc(0.9) WITHIN GROUP (ORDER BY x)", math.nan),
    ("percentile_disc(0.1) WITHIN GROUP (ORDER BY x DESC)", math.nan),
    ("median(p)", 1.875),
    ("percentile_approx(p, 0.5)", Decimal("1.50")),
    ("median(s)", 1.0),
    ("percentile_approx(s, 0.5)", 1.0),
    ("percentile_approx(f, 0.5)", 1.5),
    ("percentile_approx(d, 0.5)", dt.date(2020, 1, 1)),
    ("percentile_approx(t, 1)", dt.datetime(1969, 1, 1)),
    ("percentile(l, 1)", 2.0**53),
    ("mode(i), mode(i, TRUE), mode() WITHIN GROUP (ORDER BY i DESC)", (1, 1, 10)),
    ("mode(x), mode() WITHIN GROUP (ORDER BY x DESC)", (1.5, math.nan)),
    ("mode(s), mode(p), mode(d), mode(b)", ("-0", Decimal("1.50"), dt.date(2020, 1, 1), True)),
    ("mode(i % 2), mode(i DIV 2, FALSE), mode(f - f), mode(NULL)", (0, 1, 0.0, None)),
    ("mode(i) FILTER (WHERE i > 1), mode(i) FILTER (WHERE i > 20)", (2, None)),
    ("median(NULL)", None),
    ("percentile_approx(NULL, 0.5)", None),
]


def rows_of(*items: str, rows: Any = ROWS) -> list[Any]:
    with Database() as database:
        database.execute(f"CREATE TABLE t ({COLUMNS})")
        listed = ", ".join(f"{item} AS y{i}" for i, item in enumerate(items))
        database.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {listed} FROM t")
        database.insert("t", rows)
        return list(database.view("v"))


def test_percentiles_equal_those_of_spark() -> None:
    texts, answers = [], []
    for text, answer in ANSWERS:
        several = text.split(", mode") if isinstance(answer, tuple) else [text]
        texts += [several[0], *(f"mode{one}" for one in several[1:])]
        answers += answer if isinstance(answer, tuple) else [answer]
    ((found),) = rows_of(*texts)
    differing = [one for one in zip(texts, found, answers, strict=True) if repr(one[1]) != repr(one[2])]
    assert not differing


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("median(i)", "DOUBLE"),
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY p)", "DOUBLE"),
        ("percentile_approx(i, 0.5)", "INT"),
        ("percentile_approx(p, 0.5)", "DECIMAL(10, 2)"),
        ("percentile_approx(d, 0.5)", "DATE"),
        ("percentile_approx(s, 0.5)", "DOUBLE"),
        ("mode(s)", "STRING"),
        ("mode() WITHIN GROUP (ORDER BY p)", "DECIMAL(10, 2)"),
    ],
)
def test_a_percentile_has_the_same_type_as_in_spark(call: str, kind: str) -> None:
    known = catalog(f"CREATE TABLE t ({COLUMNS});")
    assert column_types(view(f"SELECT {call} AS y FROM t", known)) == f"y {kind}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("median(d)", "median takes numbers, not DATE"),
        ("median(b)", "median takes numbers, not BOOLEAN"),
        ("median(i, 1)", "median takes 1 argument, not 2"),
        ("percentile(i)", r"percentile takes 2 arguments \(a value and a fraction\), not 1"),
        ("percentile(i, 1.5)", "the fraction of percentile must be a constant from 0 to 1"),
        ("percentile(i, -0.1)", "the fraction of percentile must be a constant from 0 to 1"),
        ("percentile(i, NULL)", "the fraction of percentile must be a constant from 0 to 1"),
        ("percentile(i, i)", "the fraction of percentile must be a constant from 0 to 1"),
        ("percentile(i, DATE '2020-01-01')", "must be a constant from 0 to 1, not DATE"),
        ("percentile(i, array(0.5))", "array"),
        ("percentile_approx(b, 0.5)", "percentile_approx takes numbers, not BOOLEAN"),
        ("percentile_approx(i, 0.5, 0)", "the accuracy of percentile_approx must be a constant integer above 0"),
        ("percentile_approx(i, 0.5, 1.5)", "the accuracy of percentile_approx must be a constant integer above 0"),
        ("percentile_cont(0.5)", r"percentile_cont needs an order; write PERCENTILE_CONT\(fraction\)"),
        ("percentile_cont(i, 0.5)", r"percentile_cont needs an order; write PERCENTILE_CONT\(fraction\)"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY i, i)", "takes one value in WITHIN GROUP"),
        ("mode()", r"mode takes 1 or 2 arguments, or WITHIN GROUP \(ORDER BY value\), not 0"),
        ("mode(i, 1)", "the second argument of mode must be TRUE or FALSE"),
        ("mode() WITHIN GROUP (ORDER BY i, l)", "mode takes one value in WITHIN GROUP"),
        ("mode(DISTINCT i)", "mode of DISTINCT values is not supported"),
    ],
)
def test_a_wrong_percentile_is_refused_with_the_reason(call: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        rows_of(call)


def test_percentiles_follow_inserts_and_deletes_in_groups_grouping_sets_and_windows() -> None:
    source = random.Random(5)
    size = 60 if PURE_PYTHON else 400
    rows = [(source.randrange(3), source.choice((None, source.randrange(-9, 9))), n) for n in range(size)]
    with Database() as database:
        database.execute("CREATE TABLE t (g INT, x INT, n INT)")
        database.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT g, MEDIAN(x) AS m, MAX(x) AS x, COUNT(*) AS n, MODE(x) AS o"
            " FROM t             GROUP BY ROLLUP (g) HAVING MEDIAN(x) IS NOT NULL OR COUNT(*) > 0"
        )
        database.execute("CREATE MATERIALIZED VIEW w AS SELECT n, MEDIAN(x) OVER (PARTITION BY g) AS m FROM t")
        kept: list[tuple[int, int | None, int]] = []
        for step in range(8):
            more = rows[step * size // 8 : (step + 1) * size // 8]
            gone = [row for row in kept if source.random() < 0.4] if step % 2 else []
            kept = [*(row for row in kept if row not in gone), *more]
            database.apply("t", [*((*row, 1) for row in more), *((*row, -1) for row in gone)])
            groups: dict[int | None, list[int]] = {g: [] for g, *_ in [*kept, (None,)]}
            for g, x, _ in kept:
                for group in (g, None):
                    groups[group] += [] if x is None else [x]
            medians = {g: _median(sorted(values)) for g, values in groups.items()}
            sizes = {g: sum(g in (None, row[0]) for row in kept) for g in groups}
            greatest = {g: max(values, default=None) for g, values in groups.items()}
            modes = {g: max(sorted(values), key=values.count, default=None) for g, values in groups.items()}
            assert set(database.view("v")) == {(g, medians[g], greatest[g], sizes[g], modes[g]) for g in groups}
            assert dict(database.view("w")) == {n: medians[g] for g, _, n in kept}


def _median(values: list[int]) -> float | None:
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2 if values else None


def steps_of_updates(call: str, n: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of inserting and deleting rows in a group of n: those of the triggers, and the links of ordered trees
    that they follow."""
    links = 0

    def following(link: Callable[..., int]) -> Callable[..., int]:
        def followed(*args: int) -> int:
            nonlocal links
            links += 1
            return link(*args)

        return followed

    def steps() -> int:
        views = database._relations.views.values()
        return links + sum(int(b.state.status[STATUS_STEPS]) for one in views for b in one.maintained.blocks)

    with monkeypatch.context() as patch:
        patch.setattr(view_block, "compile_block", partial(compile_block, counted=True))
        for module in (folds, index, index_updates, percentiles, places):
            for name in ("left_link", "right_link"):
                if hasattr(module, name):
                    patch.setattr(module, name, following(getattr(module, name)))
        with Database() as database:
            database.execute("CREATE TABLE t (g INT NOT NULL, x INT NOT NULL)")
            database.execute(f"CREATE MATERIALIZED VIEW v AS SELECT g, {call} AS a FROM t GROUP BY g")
            database.insert("t", [(1, 2 * x) for x in range(n)])
            found = []
            for x in (-1, n | 1, 2 * n + 1):
                before = steps()
                database.insert("t", [(1, x)])
                database.delete("t", [(1, x)])
                found.append(steps() - before)
            return found


@pytest.mark.parametrize(
    "call",
    ["MEDIAN(x)", "PERCENTILE(x, 0.9)", "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY x DESC)", "MODE(x)"],
)
def test_steps_of_an_update_grow_with_the_logarithm_of_the_group(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = {n: max(steps_of_updates(call, n, monkeypatch)) for n in (16, 128, 1024)}
    for n, steps in most.items():
        assert steps <= 32 * math.log2(n) + 40, most


def test_percentiles_of_a_trusted_table_are_null_while_its_deletes_outweigh_its_inserts() -> None:
    calls = "MEDIAN(x) AS a, PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x) AS b, MODE(x) AS c"
    calls += ", APPROX_PERCENTILE(x, 0.5) AS d"
    with Database() as db:
        db.execute("CREATE TABLE t (g INT NOT NULL, x INT) TBLPROPERTIES ('freshviews.trusted' = 'true')")
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT g, COUNT(*) AS n, {calls} FROM t GROUP BY g")
        # Rows without a value keep the group.
        db.insert("t", [(1, None)] * 5)
        for deletes, inserts, expected in (
            ([(1, 7)], [], (4, None, None, None, None)),
            ([(1, 8), (1, 8)], [(1, 3)], (3, None, None, None, None)),
            ([], [(1, 3)], (4, None, None, None, None)),
            ([], [(1, 4), (1, 4)], (6, 3.5, 4.0, 3, 3)),
            ([], [(1, 7), (1, 8), (1, 8)], (9, 3.5, 4.0, 3, 3)),
        ):
            with db.batch() as batch:
                batch.delete("t", deletes)
                batch.insert("t", inserts)
            assert db.view("v")[1][1:] == expected
