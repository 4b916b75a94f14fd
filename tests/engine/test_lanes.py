"""Lanes of a trigger: contents, changes, errors and steps are those of one thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.codegen import compiled_block
from freshviews.codegen.compiled_block import compile_lanes
from freshviews.engine import database
from freshviews.engine.blocks import lanes
from freshviews.engine.blocks.lanes import Divided, run_together
from freshviews.kernel.memory.mem import PURE_PYTHON
from tests.engine.test_threads import Stream, contents, subscribed, updates
from tests.in_threads import in_threads

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(4)]

TABLES = """
CREATE TABLE r (k BIGINT NOT NULL, g BIGINT, x BIGINT, w STRING);
CREATE TABLE s (k BIGINT NOT NULL, g BIGINT, PRIMARY KEY (k));
"""
STAR = """
CREATE TABLE f (a BIGINT, b BIGINT, x BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE d (a BIGINT, p BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE e (b BIGINT, q BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW v AS SELECT p, q, SUM(x) AS s, COUNT(*) AS n FROM f JOIN d USING (a) JOIN e USING (b)
    GROUP BY p, q;
"""
MOMENTS = ", ".join(f"CORR(r.x / {n}, r.g / 7) AS c{n}, SUM(r.x / {n}) AS s{n}" for n in (3, 9, 11))
"""Many sums of doubles, which one kernel call adds."""
VIEWS = {
    "star": "SELECT s.g, r.w, SUM(r.x) AS x, COUNT(*) AS n FROM r JOIN s USING (k) GROUP BY s.g, r.w",
    "ends": "SELECT s.g, MAX(r.x) AS most, MIN(r.w) AS first FROM r JOIN s USING (k) GROUP BY s.g",
    "quotients": "SELECT s.g, SUM(100 / (r.x - 7)) AS q FROM r JOIN s USING (k) GROUP BY s.g",
    "doubles": "SELECT s.g, SUM(CAST(r.x AS DOUBLE) / 3) AS d FROM r LEFT JOIN s USING (k) GROUP BY s.g",
    "moments": f"SELECT s.g, {MOMENTS} FROM r JOIN s USING (k) GROUP BY s.g",
    "cofactor": "SELECT s.g AS h, COFACTOR(r.x, r.g, s.g) FROM r JOIN s USING (k) GROUP BY s.g",
    "rows": "SELECT r.w, s.g FROM r JOIN s USING (k)",
    "distinct": "SELECT s.g, COUNT(DISTINCT r.w) AS n, SUM(DISTINCT r.x) AS x FROM r JOIN s USING (k) GROUP BY s.g",
    "large": "SELECT r.g, SUM(s.g * r.x * 5000000000000000) AS b FROM r JOIN s USING (k) GROUP BY r.g",
    "self": "SELECT a.g, COUNT(*) AS n FROM r AS a JOIN r AS b USING (k) GROUP BY a.g",
    "words": "SELECT upper(r.w) AS u, SUM(s.g) AS n FROM r JOIN s USING (k) WHERE r.w LIKE 'a%' GROUP BY upper(r.w)",
}


@pytest.fixture(autouse=True)
def lanes_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with in_threads(monkeypatch, 2, views=False):
        yield


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of lanes that have run together."""
    sizes: list[int] = []

    def noted(jobs: Sequence[Callable[[], None]], count: int) -> None:
        sizes.append(len(jobs))
        run_together(jobs, count)

    monkeypatch.setattr(lanes, "run_together", noted)
    return sizes


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("strategy", ["", "view_tree", "first_order", "higher_order", "crown"])
def test_lanes_give_the_same_results_as_the_whole_trigger(view: str, strategy: str, ran: list[int]) -> None:
    named = f" TBLPROPERTIES ('freshviews.strategy' = '{strategy}')" if strategy else ""
    script = f"{TABLES} CREATE MATERIALIZED VIEW v{named} AS {VIEWS[view]};"
    one, several, both = (fv.Database(threads=count) for count in (1, 2, 1))
    try:
        for db in (one, several, both):
            db.execute(script)
    except fv.PlanError:
        return
    seed = len(view) + len(strategy)
    seen = [subscribed(db) for db in (one, several)] if seed % 2 else [[], []]
    stream = Stream(seed)
    for _ in range(12):
        commit, said = stream.batch(both), []
        for db in (one, several):
            try:
                commit(db)
                said.append("")
            except fv.FreshviewsError as error:
                said.append(f"{type(error).__name__}: {error}, {getattr(error, 'row', None)}")
        assert said[1] == said[0]
        assert contents(several) == contents(one) and several.version == one.version
        assert held(several) == held(one)
    assert seen[0] == seen[1]
    assert updates(several) == updates(one)
    assert ran or view in ("self", "large", "doubles", "words") or strategy == "crown"


def star() -> fv.Database:
    db = fv.Database(threads=2)
    db.execute(STAR)
    db.insert("d", [(i, i % 3) for i in range(10)])
    db.insert("e", [(i, i % 4) for i in range(10)])
    return db


def held(db: fv.Database) -> dict[str, int]:
    """The rows of each stored view of the program."""
    return {name: rows for name, (rows, _) in db._relations.views["v"].maintained.sizes().items()}


def read(db: fv.Database) -> list[Any]:
    """The rows of the view; its tables are trusted."""
    return sorted(db.view("v"), key=repr)


FACTS = [(i % 10, i % 7, i) for i in range(60)]


def drafts(db: fv.Database) -> list[int]:
    """The numbers of threads that shared the rows of a lane, by lane, in the last batch of each trigger."""
    made = [block for view in db._relations.views.values() for block in view.maintained.blocks]
    divided = [one for block in made for one in block.lanes._divided]
    return [len(lane._parts) for one in divided for lane in one._lanes or () if lane.drafted]


@pytest.mark.parametrize("aggregate", ["SUM(x)", "SUM(CAST(x AS DOUBLE) / 7)", "COUNT(*)", "COFACTOR(x, p, q)"])
def test_threads_share_the_rows_of_a_lane_that_only_adds(aggregate: str) -> None:
    found = []
    for threads in (1, 3):
        db = fv.Database(threads=threads)
        db.execute(STAR.replace("SUM(x)", aggregate))
        seen = subscribed(db)
        db.insert("d", [(i, i % 3) for i in range(10)])
        db.insert("e", [(i, i % 4) for i in range(10)])
        for sign in (db.insert, db.insert, db.delete):
            sign("f", FACTS)
        found.append((read(db), seen, held(db)))
        assert not list(db.view("v")) or threads == 1 or max(drafts(db)) == 3
    assert found[0] == found[1]


@pytest.mark.parametrize("strategy", ["ivm_eps_linear", "ivm_eps", "view_tree", "first_order"])
def test_triangles_of_three_tables_are_counted_in_lanes(strategy: str, ran: list[int]) -> None:
    databases = [fv.Database(threads=threads) for threads in (1, 2)]
    for db in databases:
        db.execute(
            "CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT); CREATE TABLE t (c INT, a INT);"
            f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{strategy}') AS "
            "SELECT COUNT(*) AS n FROM r JOIN s USING (b) JOIN t ON t.c = s.c AND t.a = r.a"
        )
    draw, stored = Random(len(strategy)), {name: [] for name in "rst"}
    for step in range(60):
        name = draw.choice("rst")
        skewed = [(draw.choice([0, 1, draw.randrange(12)]), draw.choice([2, draw.randrange(12)])) for _ in range(12)]
        if step < 40 or len(stored[name]) < 12:
            stored[name] += skewed
            for db in databases:
                db.insert(name, skewed)
        else:
            gone = [stored[name].pop(draw.randrange(len(stored[name]))) for _ in range(12)]
            for db in databases:
                db.delete(name, gone)
        assert list(databases[1].view("v")) == list(databases[0].view("v"))
        assert held(databases[1]) == held(databases[0])
    assert ran and (strategy == "ivm_eps" or max(drafts(databases[1])) == 2)


def test_threads_never_share_a_lane_of_an_ordered_view() -> None:
    db = fv.Database(threads=2)
    db.execute(STAR.replace("SUM(x)", "MAX(x)"))
    for name, rows in (("d", [(1, 1)] * 20), ("e", [(1, 2)] * 20), ("f", [(1, 1, i) for i in range(30)])):
        db.insert(name, rows)
        db.insert(name, rows)
    (made,) = db._relations.views["v"].maintained.blocks
    ordered = {view.name for view in made.plan.program.views if view.ordered}
    assert ordered
    for one in made.lanes._divided:
        for lane in one._lanes or ():
            assert not ordered & {view.name for view in lane._views}


def test_threads_share_the_rows_of_frames_and_each_thread_searches_separately(ran: list[int]) -> None:
    one, several = databases = [fv.Database(threads=count) for count in (1, 2)]
    draw = Random(3)
    stored: list[tuple[int, ...]] = []
    for db in databases:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT NOT NULL, y INT NOT NULL, x INT)")
        frame = "OVER (PARTITION BY g ORDER BY y RANGE BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING)"
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, SUM(x) {frame} AS s FROM t")
    for _ in range(6):
        gone = [stored.pop(draw.randrange(len(stored))) for _ in range(min(len(stored), 10))]
        come = [(draw.randrange(10**6), draw.randrange(3), draw.randrange(100), draw.randrange(50)) for _ in range(90)]
        stored += come
        for db in databases:
            db.insert("t", come)
            db.delete("t", gone)
        assert sorted(several.view("v"), key=str) == sorted(one.view("v"), key=str)
    assert ran and max(drafts(several)) == 2


def test_sums_that_overflow_in_a_thread_are_added_again_in_one_thread(
    monkeypatch: pytest.MonkeyPatch, ran: list[int]
) -> None:
    """The sum fits at the end; one thread overflows on the way."""
    said = []
    for threads in (1, 2):
        db = fv.Database(threads=threads)
        db.execute(STAR)
        db.insert("d", [(0, 0)])
        db.insert("e", [(0, 0)])
        db.insert("f", [(0, 0, 1)])
        rows = [*[(0, 0, 2**62)] * 2, *[(0, 0, -(2**62))] * 2, *[(0, 0, 0)] * 9]
        try:
            db.insert("f", rows)
        except fv.EvaluationError as error:
            said.append(str(error))
    assert len(said) == 2 and said[0] == said[1] and ran
    # A batch that one thread takes shows no error of the batch before.
    monkeypatch.setattr(lanes, "CHUNK", 1000)
    db.insert("f", FACTS)
    (made,) = db._relations.views["v"].maintained.blocks
    lanes_of_facts = [lane for one in made.lanes._divided if one._call.relation == "f" for lane in one._lanes or ()]
    assert lanes_of_facts and not any(layout[0] for lane in lanes_of_facts for layout in lane._layouts)


def test_lanes_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    db = star()
    db.insert("f", FACTS)
    meeting, names, run = threading.Barrier(2, timeout=180), set(), lanes._Run.run

    def met(self: Any, waiting: Any) -> None:
        if threading.current_thread().name not in names:
            names.add(threading.current_thread().name)
            meeting.wait()
        run(self, waiting)

    monkeypatch.setattr(lanes._Run, "run", met)
    db.insert("f", FACTS)
    assert names == {"freshviews", threading.current_thread().name}
    assert sum(n for *_, n in db.view("v")) == 2 * len(FACTS)


@pytest.mark.parametrize("row", [(0, 0, 2**62), (0, 0, 2**63 - 1)])
def test_an_overflow_in_a_lane_leaves_tables_and_views_unchanged(row: tuple[int, ...], ran: list[int]) -> None:
    said = []
    for threads in (1, 2):
        db = fv.Database(threads=threads)
        db.execute(STAR)
        db.insert("d", [(0, 0), (1, 0)])
        db.insert("e", [(0, 0), (1, 0)])
        db.insert("f", [(i % 2, i % 2, i) for i in range(40)])
        before, stored = read(db), held(db)
        seen = subscribed(db)
        with pytest.raises(fv.EvaluationError) as caught:
            db.insert("f", [*FACTS, row, (1, 1, 5), (1, 0, 2**63 - 5), row, *FACTS])
        said.append((str(caught.value), read(db)))
        assert read(db) == before and db.version == 3 and not seen
        assert held(db) == stored
        db.insert("f", FACTS)
    assert said[0] == said[1]
    assert "row" in said[0][0] and ran


def test_a_duplicate_key_is_refused_before_any_lane_runs(ran: list[int]) -> None:
    db = fv.Database(threads=2)
    db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS {VIEWS['star']}")
    db.insert("s", [(i, i) for i in range(20)])
    before = contents(db)
    ran.clear()
    with pytest.raises(fv.BatchError, match=r"row 2, column k: PRIMARY KEY \(k\) would have row \(3, 3\) twice"):
        db.insert("s", [(i, i) for i in (30, 31, 3)])
    assert contents(db) == before and not ran


def test_ctrl_c_while_lanes_run_takes_effect_after_the_commit(monkeypatch: pytest.MonkeyPatch, ran: list[int]) -> None:
    db, run = star(), lanes._Run.run

    def pressing(self: Any, waiting: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        run(self, waiting)

    monkeypatch.setattr(lanes._Run, "run", pressing)
    with pytest.raises(KeyboardInterrupt):
        db.insert("f", FACTS)
    assert ran and db.version == 3 and sum(n for *_, n in db.view("v")) == len(FACTS)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_batch_is_undone_if_a_lane_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    db, run = star(), lanes._Run.run
    db.insert("f", FACTS)
    before = read(db)

    def raising(self: Any, waiting: Any) -> None:
        run(self, waiting)
        raise RuntimeError("as no lane does")

    monkeypatch.setattr(lanes._Run, "run", raising)
    with pytest.raises(RuntimeError, match="as no lane does"):
        db.insert("f", FACTS)
    monkeypatch.undo()
    assert read(db) == before and db.version == 3


def test_deferred_rows_are_flushed_before_lanes_read_them(ran: list[int]) -> None:
    """Two lanes of ``s`` read the store of ``r``, whose rows were appended."""
    db, one = (fv.Database(threads=count) for count in (2, 1))
    rows = pa.table({"k": [i % 50 for i in range(3000)], "g": range(3000), "x": [1] * 3000, "w": ["a"] * 3000})
    for each in (db, one):
        each.execute(
            TABLES.replace("PRIMARY KEY (k)", "y BIGINT")
            + "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS "
            "SELECT s.y, COUNT(DISTINCT r.w) AS d, SUM(r.x) AS x FROM r JOIN s USING (k) GROUP BY s.y"
        )
        each.insert("r", rows)
        each.insert("r", rows)
        each.insert("s", [(i, i, i % 3) for i in range(50)])
        each.delete("r", rows)
    assert contents(db) == contents(one) and ran


class Counted:
    """Programs whose triggers and lanes count their steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from freshviews.engine.views import view_block

        compile_block = view_block.compile_block
        monkeypatch.setattr(view_block, "compile_block", lambda *a, **k: compile_block(*a, **{**k, "counted": True}))
        monkeypatch.setattr(lanes, "compile_lanes", lambda *a: compile_lanes(*a, counted=True))

    def steps(self, threads: int, text: str) -> tuple[int, list[float]]:
        """The steps of updates of a star, and the extra cost of the lanes of its triggers."""
        db = fv.Database(threads=threads)
        db.execute(text)
        draw = Random(1)
        db.insert("d", [(i, i % 3) for i in range(10)])
        db.insert("e", [(i, i % 4) for i in range(10)])
        for _ in range(3):
            rows = [(draw.randrange(10), draw.randrange(10), draw.randrange(9)) for _ in range(50)]
            db.insert("f", rows)
            db.delete("f", rows[::2])
        (one,) = db._relations.views["v"].maintained.blocks
        return int(one.state.status[2]), [each._cost for each in one.lanes._divided]


def test_lanes_take_at_most_60_percent_more_steps_than_a_whole_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    whole, _ = counted.steps(1, STAR)
    with monkeypatch.context() as patch:
        patch.setattr(lanes, "LEAST", 1e9)
        assert counted.steps(2, STAR)[0] == whole
    together, costs = counted.steps(2, STAR)
    assert whole < together < 1.6 * whole
    assert max(costs) <= 1.25


@pytest.mark.parametrize("few", ["rows", "seconds", "threads"])
def test_triggers_that_gain_nothing_from_lanes_run_as_a_whole(few: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if few == "rows":
        monkeypatch.setattr(database, "MANY", len(FACTS))
    elif few == "seconds":
        monkeypatch.setattr(lanes, "LEAST", 1000.0)
    db = fv.Database(threads=1 if few == "threads" else 2)
    db.execute(STAR)
    monkeypatch.setattr(Divided, "_compiled_lanes", lambda *_: pytest.fail("lanes are made"))
    db.insert("f", FACTS)
    db.insert("f", FACTS)


def test_lanes_are_made_after_large_batches_took_some_time(monkeypatch: pytest.MonkeyPatch, ran: list[int]) -> None:
    monkeypatch.setattr(lanes, "WORTH", 3.5)
    db = star()
    (made,) = db._relations.views["v"].maintained.blocks
    # Each look at the clock is a second later: a batch takes a second.
    seconds = count()
    monkeypatch.setattr(lanes, "time", SimpleNamespace(perf_counter=lambda: float(next(seconds))))
    for large in range(1, 8):
        for divided in made.lanes._divided:
            divided._pace = 1.0 / len(FACTS) if large > 1 else 0.0
        db.insert("f", FACTS)
        # The first batch does not count.
        assert bool(ran) == (large >= 5 + (lanes.LEAST > 0))


def test_lanes_without_gain_are_tried_again_later(monkeypatch: pytest.MonkeyPatch, ran: list[int]) -> None:
    db = star()
    db.insert("f", FACTS)
    (made,) = db._relations.views["v"].maintained.blocks
    (divided,) = (one for one in made.lanes._divided if one._call.relation == "f")
    assert len(ran) > 0
    monkeypatch.setattr(lanes, "LEAST", 1e-9)
    divided._pace, divided._saved = 1.0, -1.0
    ran.clear()
    for _ in range(lanes.REST - 1):
        db.insert("f", FACTS)
        divided._pace = 1.0
    assert not ran
    db.insert("f", FACTS)
    assert ran


@pytest.mark.skipif(PURE_PYTHON, reason="nothing is compiled")
def test_the_whole_trigger_runs_until_its_lanes_are_compiled(monkeypatch: pytest.MonkeyPatch, ran: list[int]) -> None:
    monkeypatch.setattr(lanes, "order", lambda *functions: False)
    db = star()
    db.insert("f", FACTS)
    assert not ran and sum(n for *_, n in db.view("v")) == len(FACTS)


@pytest.mark.skipif(not PURE_PYTHON, reason="triggers are written at once where they are compiled ahead")
def test_triggers_of_long_programs_have_lanes(monkeypatch: pytest.MonkeyPatch, ran: list[int]) -> None:
    monkeypatch.setattr(compiled_block, "MANY_STATEMENTS", 1)
    db = star()
    db.insert("f", FACTS)
    assert ran and sum(n for *_, n in db.view("v")) == len(FACTS)


def test_lanes_run_in_one_thread_if_a_second_thread_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, ran: list[int]
) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    db = star()
    monkeypatch.setattr(threading.Thread, "start", refused)
    db.insert("f", FACTS)
    assert ran and sum(n for *_, n in db.view("v")) == len(FACTS)
