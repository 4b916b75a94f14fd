"""Views with narrow sums of doubles agree with exact sums before and after a value does not fit."""

from __future__ import annotations

import math
import random
import struct
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.codegen import module
from freshviews.engine import database
from freshviews.engine.blocks import at_once, native, runtime
from freshviews.engine.views.view_block import ViewBlock
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.ring import REAL
from tests.in_threads import in_threads

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(6)]

TABLES = """
CREATE TABLE t (k BIGINT NOT NULL, g BIGINT NOT NULL, d DOUBLE){trusted};
CREATE TABLE u (g BIGINT NOT NULL, h BIGINT NOT NULL){trusted};
"""
VIEWS = {
    "groups": "SELECT k, SUM(d) AS s, AVG(d) AS a, COUNT(*) AS n FROM t GROUP BY k",
    "joined": "SELECT h, SUM(d) AS s, MAX(d) AS most, COUNT(*) AS n FROM t JOIN u USING (g) GROUP BY h",
    "total": "SELECT SUM(d) AS s, COUNT(d) AS n FROM t",
}
ABOVE = "CREATE MATERIALIZED VIEW above AS SELECT s, COUNT(*) AS c FROM groups WHERE n > 0 GROUP BY s;"

PLAIN = (0.1, -0.1, 0.7, 1e16, -1e22, 3.5e-19, 2.0**-114, 1e-16, 0.0, -0.0, math.nextafter(2.0**78, 0), None)
"""Doubles that fit narrow sums; the last bit of 3.5e-19 is the unit."""
EDGES = (2.0**-115, 3.5e-19 / 4, 5e-324, 2.0**78, 2.0**1023, -(2.0**1023), math.inf, -math.inf, math.nan)
"""Doubles that do not fit narrow sums."""
STRATEGIES = ("first_order", "higher_order", "view_tree", "change_propagation")

STEPS_OF_A_ROW = 2 * REAL.words
"""Most words read and written, plus kernel calls, to widen a row of one sum."""

Row = tuple[Any, ...]


def code(x: float) -> int:
    return 0x7FF8000000000000 if x != x else int(struct.unpack("<q", struct.pack("<d", x or 0.0))[0])


def summed(values: Sequence[tuple[float | None, int]]) -> float | None:
    """The sum of doubles with multiplicities, by fractions, rounded once; None without values."""
    known = [(x, m) for x, m in values if x is not None]
    if sum(m for _, m in known) == 0:
        return None
    total = REAL.zero
    for x, m in known:
        total = REAL.add(total, REAL.scale(REAL.lift(code(x)), m))
    return float(struct.unpack("<d", struct.pack("<q", REAL.value(total)))[0])


def blocks_of(db: fv.Database, view: str) -> Sequence[ViewBlock]:
    return db._relations.views[view].maintained.blocks.blocks


def shown(rows: Any) -> list[str]:
    return sorted(map(repr, rows))


class World:
    """A database of these views, the rows of its tables, and the changes that its subscribers got."""

    def __init__(self, db: fv.Database, strategy: str = "view_tree", trusted: bool = False, above: bool = True) -> None:
        self.db = db
        self.t: Counter[Row] = Counter()
        self.u: Counter[Row] = Counter()
        self.told: dict[str, Counter[str]] = {}
        with_ = " TBLPROPERTIES ('freshviews.trusted' = 'true')" if trusted else ""
        db.execute(TABLES.format(trusted=with_))
        for name, select in VIEWS.items():
            properties = f" TBLPROPERTIES ('freshviews.strategy' = '{strategy}')" if name == "joined" else ""
            db.execute(f"CREATE MATERIALIZED VIEW {name}{properties} AS {select}")
        if above:
            db.execute(ABOVE)
        self.subscribe()

    def subscribe(self) -> None:
        for name in self.db.views:
            self.told[name] = Counter(map(repr, self.db.view(name)))
            self.db.view(name).subscribe(self._add)

    def _add(self, change: Any) -> None:
        for *row, m in zip(*(column.to_pylist() for column in change.to_arrow().columns), strict=True):
            self.told[change.view][repr(tuple(row))] += m

    def apply(self, t: Sequence[tuple[Row, int]], u: Sequence[tuple[Row, int]] = ()) -> None:
        with self.db.batch() as batch:
            batch.apply("t", [(*row, m) for row, m in t])
            if u:
                batch.apply("u", [(*row, m) for row, m in u])
        for rows, changes in ((self.t, t), (self.u, u)):
            for row, m in changes:
                rows[row] += m

    def insert(self, *rows: Row) -> None:
        """Insert a few rows, the direct way if possible."""
        self.db.insert("t", list(rows))
        self.t.update(rows)

    def delete(self, *rows: Row) -> None:
        self.db.delete("t", list(rows))
        self.t.subtract(rows)

    def expected(self) -> dict[str, list[str]]:
        groups: dict[int, list[tuple[float | None, int]]] = {}
        joined: dict[int, list[tuple[float | None, int]]] = {}
        every: list[tuple[float | None, int]] = []
        for (k, g, d), m in self.t.items():
            if m:
                groups.setdefault(k, []).append((d, m))
                every.append((d, m))
                for (other, h), n in self.u.items():
                    if g == other and n:
                        joined.setdefault(h, []).append((d, m * n))
        found: dict[str, list[Row]] = {"groups": [], "joined": [], "above": []}
        for k, values in groups.items():
            n, known = sum(m for _, m in values), sum(m for x, m in values if x is not None)
            s = summed(values)
            if n:
                found["groups"].append((k, s, None if s is None else s / known or 0.0, n))
        for h, values in joined.items():
            n = sum(m for _, m in values)
            counts: Counter[Any] = Counter()
            for x, m in values:
                counts["nan" if x is not None and x != x else (x and x) or 0.0 if x is not None else None] += m
            there = [x for x, m in counts.items() if m and x is not None]
            most = math.nan if "nan" in there else max(there, default=None)
            if n:
                found["joined"].append((h, summed(values), most, n))
        found["total"] = [(summed(every), sum(m for x, m in every if x is not None))]
        by_sum = Counter(repr(row[1]) for row in found["groups"])
        said = {name: shown(rows) for name, rows in found.items()}
        return {**said, "above": sorted(f"({s}, {c})" for s, c in by_sum.items())}

    def agree(self) -> None:
        expected = self.expected()
        for name in self.db.views:
            assert shown(self.db.view(name)) == expected[name], name
            assert sorted((+self.told[name]).elements()) == expected[name], f"told of {name}"

    def goes_on(self) -> None:
        """Check that views are as before a refused batch, and apply another one."""
        self.agree()
        self.insert((1, 1, 0.7))
        self.agree()

    def widens(self) -> None:
        """Insert and delete a double that does not fit narrow sums."""
        self.insert((1, 1, 1e300), (3, 1, 0.3))
        self.agree()
        self.delete((1, 1, 1e300))
        self.agree()

    def wide(self, view: str) -> bool:
        """Whether the sums of a view are reals."""
        (block,) = blocks_of(self.db, view)
        rings = {component.ring for one in block.state.program.views for component in one.components} - {"integer"}
        assert rings == {"real" if block.wide is None else "real.narrow"}
        return block.wide is None

    def reopened(self, path: Path) -> None:
        self.db.close()
        self.db = fv.Database(path)
        self.subscribe()


def rows_of(draw: random.Random, values: Sequence[float | None], count: int) -> list[Row]:
    return [(draw.randrange(4), draw.randrange(3), draw.choice(values)) for _ in range(count)]


def changes(draw: random.Random, world: World, values: Sequence[float | None]) -> list[tuple[Row, int]]:
    """Inserts and deletes of some rows."""
    gone = [(row, -1) for row, m in world.t.items() if m > 0 and draw.random() < 0.3]
    return [*((row, 1) for row in rows_of(draw, values, 8)), *gone]


def run(world: World, seed: int, again: Callable[[], None] = lambda: None) -> None:
    """Insert values that fit, then others, then delete all."""
    draw = random.Random(seed)
    world.agree()
    for step in range(3):
        u = [((draw.randrange(3), draw.randrange(3)), 1) for _ in range(3)]
        world.apply(changes(draw, world, PLAIN), u)
        world.insert(*rows_of(draw, PLAIN, 2))
        world.agree()
        assert not any(map(world.wide, VIEWS))
        if step == 1:
            again()
    for step in range(4):
        world.apply(changes(draw, world, EDGES + PLAIN if step else EDGES), [((0, step), 1)])
        world.agree()
        if step == 1:
            again()
        assert world.wide("groups") and world.wide("total")
        world.insert(*rows_of(draw, EDGES, 2))
        world.agree()
    world.apply([(row, -m) for row, m in world.t.items() if m], [(row, -m) for row, m in world.u.items() if m])
    world.agree()
    for view in VIEWS:
        stored = world.db._relations.views[view].maintained.sizes().values()
        assert sum(rows for rows, _ in stored) == 0, view
    world.insert((1, 1, 0.1), (1, 1, 0.2))
    world.agree()


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sums_stay_exact_beyond_the_narrow_range(strategy: str, trusted: bool) -> None:
    world = World(fv.Database(), strategy, trusted)
    run(world, len(strategy) + trusted)
    world.db.close()


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("snapshot", [False, True])
def test_narrow_and_wide_sums_survive_a_reopen(trusted: bool, snapshot: bool, tmp_path: Path) -> None:
    world = World(fv.Database(tmp_path), trusted=trusted)

    def again() -> None:
        if snapshot:
            world.db.snapshot()
        before = {view: world.wide(view) for view in VIEWS}
        world.reopened(tmp_path)
        world.agree()
        assert {view: world.wide(view) for view in VIEWS} == before

    run(world, 7, again)
    again()
    world.db.close()


@pytest.mark.parametrize("edge", EDGES)
def test_a_large_value_widens_only_views_that_sum_its_column(edge: float) -> None:
    db = fv.Database()
    db.execute(TABLES.format(trusted="") + f"CREATE MATERIALIZED VIEW groups AS {VIEWS['groups']};")
    db.execute("CREATE MATERIALIZED VIEW positive AS SELECT g, SUM(d) AS s FROM t WHERE g > 1 GROUP BY g")
    db.insert("t", [(1, 1, 0.1), (2, 2, -0.1)])
    db.insert("t", [(1, 1, edge)])
    assert dict(row[:2] for row in db.view("groups")) == pytest.approx({1: 0.1 + edge, 2: -0.1}, rel=0, nan_ok=True)
    assert [block.wide is None for name in ("groups", "positive") for block in blocks_of(db, name)] == [True, False]
    db.delete("t", [(1, 1, edge)])
    assert shown(db.view("groups")) == ["(1, 0.1, 0.1, 1)", "(2, -0.1, -0.1, 1)"]
    assert dict(db.view("positive")) == {2: -0.1}
    db.close()


def test_explain_and_stats_say_how_sums_of_doubles_are_stored() -> None:
    db = fv.Database()
    db.execute(TABLES.format(trusted="") + f"CREATE MATERIALIZED VIEW v AS {VIEWS['groups']};")
    db.execute("CREATE MATERIALIZED VIEW counted AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    db.execute(
        "CREATE MATERIALIZED VIEW two AS SELECT SUM(d) AS s FROM t UNION ALL SELECT VARIANCE(d) AS s FROM t GROUP BY k"
    )

    def said(view: str) -> tuple[str | None, list[str]]:
        lines = db.view(view).explain().splitlines()
        return db.stats()["views"][view]["double_sums"], [line for line in lines if line.startswith("sums")]

    narrow, real = "narrow, of 4 words each", "real, of 37 words each"
    assert said("v") == ("narrow", [f"sums of doubles: {narrow}"])
    assert said("two") == ("narrow, real", [f"sums of doubles: {narrow}; {real}"])
    db.insert("t", [(1, 1, 1e300)])
    db.delete("t", [(1, 1, 1e300)])
    assert said("v") == ("real", [f"sums of doubles: {real}"])
    assert said("two") == ("real", [f"sums of doubles: {real}"])
    assert said("counted") == (None, [])
    db.close()


def steps_of_widening(groups: int) -> int:
    """Calls of kernels, including each word read or written, when a row widens a view of ``groups`` groups."""
    db = fv.Database()
    db.execute(TABLES.format(trusted="") + f"CREATE MATERIALIZED VIEW v AS {VIEWS['groups']}")
    db.insert("t", [(k, 0, 0.1) for k in range(groups)])
    counted = 0

    def count(frame: Any, event: str, _: object) -> None:
        nonlocal counted
        counted += event == "call" and "/freshviews/kernel/" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        db.insert("t", [(0, 0, 1e300)])
    finally:
        sys.setprofile(None)
    assert all(block.wide is None for block in blocks_of(db, "v"))
    db.close()
    return counted


@pytest.mark.skipif(not PURE_PYTHON, reason="calls are counted in plain Python")
def test_widening_takes_steps_in_proportion_to_the_rows() -> None:
    # The first of all reads a few words that later ones have.
    _, few, some, many = map(steps_of_widening, (1, 100, 200, 400))
    assert many - some == 2 * (some - few) <= 2 * 100 * STEPS_OF_A_ROW


def test_a_view_is_widened_if_its_sums_leave_the_narrow_range() -> None:
    """Although each count fits 64 bits, and each value is small enough."""
    db = fv.Database()
    trusted = " TBLPROPERTIES ('freshviews.trusted' = 'true')"
    db.execute(TABLES.format(trusted=trusted) + f"CREATE MATERIALIZED VIEW v AS {VIEWS['groups']}")
    large = math.nextafter(2.0**78, 0)
    db.apply("t", [(1, 1, 0.5, 1), (1, 1, large, 2**62), (1, 1, -large, -(2**62))])
    (block,) = blocks_of(db, "v")
    for times in (1, 2, 3):
        assert list(db.view("v")) == [(1, (2**63 * times) * large, (2**63 * times) * large, 1)]
        assert (block.wide is None) == (times > 1)
        db.apply("t", [(1, 1, large, 2**62), (1, 1, -large, -(2**62))])
    for _ in range(4):
        db.apply("t", [(1, 1, large, -(2**62)), (1, 1, -large, 2**62)])
    assert list(db.view("v")) == [(1, 0.5, 0.5, 1)]
    db.close()


def test_a_refused_batch_with_a_large_value_changes_nothing() -> None:
    world = World(fv.Database(), above=False)
    world.db.execute("CREATE MATERIALIZED VIEW zquotient AS SELECT SUM(10 / (k - 9)) AS q FROM t")
    world.insert((1, 1, 0.1), (2, 1, 0.2), (2, 1, -1e20))
    told = {name: +rows for name, rows in world.told.items()}
    for many in (1, 40):
        with pytest.raises(fv.EvaluationError, match="zquotient"):
            world.db.insert("t", [(1, 1, math.nan), (2, 1, 5e-324)] * many + [(9, 1, 0.1)])
        for name, rows in world.expected().items():
            if name in VIEWS:
                assert shown(world.db.view(name)) == rows
        assert {name: +rows for name, rows in world.told.items()} == told
    world.db.execute("DROP VIEW zquotient")
    world.insert((9, 1, -1e300))
    world.agree()
    world.db.close()


def test_batches_take_the_direct_way_after_a_view_was_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(fv.Database(), above=False)
    world.apply([((1, 1, 0.5), 1)], [((1, 1), 1)])
    taken: list[bool] = []
    make = database.Database._directly

    def noted(self: Any, *given: Any) -> Any:
        found = make(self, *given)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(database.Database, "_directly", noted)
    for row in ((1, 1, 0.1), (1, 1, 1e300), (1, 1, 0.2), (1, 1, 0.3), (1, 1, -1e300)):
        world.insert(row)  # world.agree would open readers, which are drained first.
    world.delete((1, 1, 1e300))
    world.agree()
    if not PURE_PYTHON:
        # The second row is refused, the third meets another program.
        assert taken == [True, False, False, True, True, True]
    world.db.close()


def test_batches_of_other_tables_run_the_widened_program_too() -> None:
    world = World(fv.Database(), above=False)
    world.db.insert("u", [(1, 1)])
    world.u[1, 1] += 1
    world.insert((1, 1, 0.1))
    world.insert((1, 1, 2.0**1000))
    for h in (1, 2, 3):
        world.db.insert("u", [(1, h)])
        world.u[1, h] += 1
        world.agree()
    world.db.close()


def test_the_narrow_sums_of_several_views_are_widened_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_threads(monkeypatch, 2):
        world = World(fv.Database())
        run(world, 3)
        world.db.close()


def test_the_narrow_sums_of_a_view_are_widened_during_its_backfill(tmp_path: Path) -> None:
    draw = random.Random(5)
    world = World(fv.Database(), above=False)
    world.apply([(row, 1) for row in rows_of(draw, PLAIN, 40)], [((1, 1), 1), ((0, 2), 2)])
    for values in (PLAIN, EDGES):
        world.apply([(row, 1) for row in rows_of(draw, values, 3)])
        for name, select in VIEWS.items():
            world.db.execute(f"DROP VIEW {name}; CREATE MATERIALIZED VIEW {name} AS {select}")
        world.subscribe()
        world.agree()
        assert world.wide("groups") == (values is EDGES)
        world.apply(changes(draw, world, PLAIN))
        world.agree()
    world.db.close()


@pytest.mark.parametrize("edge", [0.25, 1e300])
def test_a_cyclic_view_backfilled_by_one_join_is_widened(edge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "WORTH", 0.0)
    db = fv.Database()
    db.execute("CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL, d DOUBLE NOT NULL)")
    rows = [(a, b, 0.1 * a + b) for a in range(5) for b in range(5) if a != b] + [(0, 1, edge)]
    db.insert("e", rows)
    db.execute(
        "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS SELECT x.a, SUM(z.d) AS s "
        "FROM e x JOIN e y ON x.b = y.a JOIN e z ON y.b = z.a AND z.b = x.a GROUP BY x.a"
    )
    expected = {}
    for a in range(5):
        found = [
            (z[2], 1) for x in rows if x[0] == a for y in rows if x[1] == y[0] for z in rows if z[:2] == (y[1], a)
        ]
        expected[a] = summed(found)
    assert dict(db.view("v")) == expected
    (block,) = blocks_of(db, "v")
    assert (block.wide is None) == (edge == 1e300)
    db.close()


def test_sums_of_select_and_having_are_widened_together() -> None:
    sums = ", ".join(f"SUM(d * {n}) AS s{n}, AVG(d / {n}) AS a{n}" for n in range(1, 7))
    select = f"SELECT k, {sums} FROM t GROUP BY k HAVING SUM(d) IS NULL OR SUM(d) < 1E200"
    one, other = fv.Database(), fv.Database()
    draw = random.Random(1)
    for db, first in ((one, ()), (other, [(9, 9, math.nan), (9, 9, 1e300)])):
        db.execute(TABLES.format(trusted="") + f"CREATE MATERIALIZED VIEW v AS {select}")
        if first:
            db.insert("t", list(first))
            db.delete("t", list(first))
    for values in (PLAIN, PLAIN, EDGES, PLAIN):
        rows = rows_of(draw, values, 12)
        for db in (one, other):
            db.insert("t", rows)
        assert shown(one.view("v")) == shown(other.view("v"))
    assert all(block.wide is None for db in (one, other) for block in blocks_of(db, "v"))
    one.close()
    other.close()


def test_views_are_backfilled_if_memory_runs_out_while_they_are_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(fv.Database(), above=False)
    world.insert((1, 1, 0.1), (2, 1, 0.2))
    with monkeypatch.context() as patch:
        patch.setattr(native, "widen_table", lambda *_: 0)
        with pytest.raises(fv.OutOfMemory, match="the state is as before"):
            world.db.insert("t", [(1, 1, math.inf)])
    world.agree()
    world.insert((1, 1, math.inf))
    world.agree()
    world.db.close()


TWO_BLOCKS = """
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS
  SELECT x.a AS k, SUM(z.d) AS s FROM e x JOIN e y ON x.b = y.a JOIN e z ON y.b = z.a AND z.b = x.a GROUP BY x.a
  UNION ALL SELECT k, SUM(d) AS s FROM t GROUP BY k
"""


@pytest.mark.parametrize("edges", [(), ("e",), ("t",), ("e", "t")])
def test_a_backfill_widens_a_block_before_it_joins_the_next_block(
    edges: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_once, "WORTH", 0.0)
    db = fv.Database()
    db.execute(TABLES.format(trusted="") + "CREATE TABLE e (a BIGINT NOT NULL, b BIGINT NOT NULL, d DOUBLE NOT NULL)")
    e = [(a, b, 0.1 * a + b) for a in range(5) for b in range(5) if a != b]
    t = [(k, k, 0.1 * k) for k in range(3)]
    db.insert("e", e)
    db.insert("t", t)
    more: dict[str, Row] = {"e": (1, 0, 1e300), "t": (2, 2, 1e300)}
    for name in edges:
        db.insert(name, [more[name]])
    db.execute(TWO_BLOCKS)
    assert [block.wide is None for block in blocks_of(db, "v")] == [bool(edges)] * 2

    def agree() -> None:
        e, t = list(db.table("e")), list(db.table("t"))
        found = Counter({(k, summed([(d, 1) for one, _, d in t if one == k])): 1 for k in {row[0] for row in t}})
        for a in range(5):
            met = [(z[2], 1) for x in e if x[0] == a for y in e if x[1] == y[0] for z in e if z[:2] == (y[1], a)]
            found[a, summed(met)] += 1
        assert Counter(db.view("v")) == found

    agree()
    for name in ("e", "t"):
        for change in (db.delete, db.insert) if name in edges else (db.insert, db.delete):
            change(name, [more[name]])
            agree()
    db.delete("e", list(db.table("e")))
    db.delete("t", list(db.table("t")))
    assert list(db.view("v")) == []
    db.close()


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "raised"), [(OSError("no space left"), OSError), (MemoryError(), fv.OutOfMemory)], ids=["disk", "memory"]
)
@pytest.mark.parametrize("many", [1, 40])
def test_a_batch_is_refused_if_reals_cannot_be_compiled(
    many: int, error: BaseException, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views that took it before undo it."""
    world = World(fv.Database())
    world.apply([((1, 1, 0.1), 1), ((2, 1, 0.2), 1)], [((1, 1), 1)])
    for view in VIEWS:
        (block,) = blocks_of(world.db, view)
        assert block.wide is not None
        with monkeypatch.context() as patch:
            patch.setattr(block, "wide", replace(block.wide, compile=raising(error)))
            with pytest.raises(raised):
                world.db.insert("t", [(1, 1, 1e300), (3, 1, 0.3)] * many)
            assert not world.wide(view)
            world.goes_on()
    world.widens()
    assert all(map(world.wide, VIEWS))
    world.db.close()


@pytest.mark.parametrize("written", [0, 1])
def test_a_view_without_a_writable_program_is_refused(
    written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first program has narrow sums, the second one reals."""
    db = fv.Database()
    db.execute(TABLES.format(trusted=""))
    db.insert("t", [(1, 1, 0.1), (1, 2, 1e300)])
    load = module._load
    loaded: list[str] = []

    def failing(source: str, digest: str) -> Any:
        if len(loaded) == written:
            raise OSError("no space left")
        loaded.append(digest)
        return load(source, digest)

    create = "CREATE MATERIALIZED VIEW v AS SELECT k, SUM(d) AS s FROM t GROUP BY k"
    with monkeypatch.context() as patch:
        patch.setattr(module, "_load", failing)
        with pytest.raises(OSError, match="no space left"):
            db.execute(create)
    assert list(db.views) == []
    db.execute(create)
    assert list(db.view("v")) == [(1, 1e300)]
    db.delete("t", [(1, 2, 1e300)])
    assert list(db.view("v")) == [(1, 0.1)]
    db.close()


@pytest.mark.parametrize("part", ["scratch_words", "call_of"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_stays_narrow_if_memory_runs_out_before_it_is_widened(
    view: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(fv.Database(), above=False)
    world.apply([((1, 1, 0.1), 1), ((2, 1, 0.2), 1)], [((1, 1), 1)])
    for other in VIEWS.keys() - {view}:
        world.db.execute(f"DROP VIEW {other}")
    with monkeypatch.context() as patch:
        patch.setattr(runtime, part, raising(MemoryError()))
        with pytest.raises(fv.OutOfMemory, match="the state is as before"):
            world.db.insert("t", [(1, 1, 1e300), (3, 1, 0.3)])
    assert not world.wide(view)
    world.goes_on()
    world.widens()
    world.db.close()


KEPT = {
    "a variance": ("SELECT k, VARIANCE(d) AS s FROM t GROUP BY k", "first_order"),
    "sums of an order": ("SELECT x.k, SUM(y.d) AS s FROM t x JOIN t y ON x.k < y.k GROUP BY x.k", "first_order"),
    "groups that are enumerated": (
        "SELECT t.k, g, u.h, SUM(d) AS s FROM t JOIN u USING (g) GROUP BY t.k, g, u.h",
        "crown",
    ),
    "an evaluation": (
        "SELECT x.k, SUM(z.d) AS s FROM t x JOIN t y ON x.g = y.k JOIN t z ON y.g = z.k AND z.g = x.k GROUP BY x.k",
        "trie_join",
    ),
    "recomputed": ("SELECT k, SUM(d) AS s FROM t GROUP BY k", "recompute"),
}
"""Views whose sums are reals from the beginning."""


@pytest.mark.parametrize("name", KEPT)
def test_views_without_narrow_sums_use_reals_from_the_beginning(name: str) -> None:
    select, strategy = KEPT[name]
    db = fv.Database()
    properties = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
    db.execute(f"{TABLES.format(trusted='')} CREATE MATERIALIZED VIEW v {properties} AS {select}")
    assert all(block.wide is None for block in blocks_of(db, "v"))
    db.close()


def test_an_inequality_join_is_widened() -> None:
    db = fv.Database()
    db.execute(
        TABLES.format(trusted="")
        + "CREATE MATERIALIZED VIEW v AS SELECT x.k, SUM(x.d) AS s FROM t x JOIN t y ON x.k < y.k GROUP BY x.k"
    )
    rows = [(k, k, d) for k in range(4) for d in (0.1, -0.7, 0.25)]
    for more, wide in ((rows, False), ([(1, 1, 1e300), (3, 3, 5e-324)], True), ([(0, 0, -1e300)], True)):
        db.insert("t", more)
        every = list(db.table("t"))
        expected = {k: summed([(x[2], 1) for x in every for y in every if x[0] == k < y[0]]) for k in range(3)}
        assert dict(db.view("v")) == expected
        assert [block.wide is None for block in blocks_of(db, "v")] == [wide]
    db.close()
