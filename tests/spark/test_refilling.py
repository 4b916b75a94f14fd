"""Views with another SELECT are backfilled while the old ones continue, and replace them at one version."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.cli.reading import show_status
from freshviews.errors import FreshviewsError
from freshviews.spark import Pipeline
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.io.replaced_sinks import check_replaced
from freshviews.spark.io.sink_kinds.key_changes import last_rows, with_gone
from freshviews.spark.reading.contents import contents, latest, status
from freshviews.spark.running_query import Query
from freshviews.spark.script import read_script
from freshviews.spark.state.checkpoint import CheckpointError, difference
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault, environment
from tests.spark.test_filling import held, until
from tests.spark.world import TABLES, World
from tests.tiers import CHANGE

__all__ = ["held"]

Views = Mapping[str, tuple[str, str]]
"""Per view, its sink and its SELECT."""
CHANGES = "USING parquet OPTIONS (path 'out/{}')"
WHOLE = "USING parquet OPTIONS (path 'out/{}', output 'complete')"
OLD: Views = {
    "by_shop": (CHANGES, "SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop"),
    "shops": (WHOLE, "SELECT COUNT(*) AS shops, SUM(n) AS sales FROM by_shop"),
    "twice": (CHANGES, "SELECT shop, 2 * n AS n FROM by_shop"),
    "paths": ("", "SELECT a.src, b.dst FROM edges a JOIN edges b ON a.dst = b.src WHERE a.src < b.dst"),
    "hops": (CHANGES, "SELECT COUNT(*) AS n FROM edges a JOIN edges b ON a.dst = b.src"),
}
NEW: Views = {
    **OLD,
    "by_shop": (CHANGES, "SELECT shop, COUNT(DISTINCT node) AS n FROM sales WHERE price > 30 GROUP BY shop"),
    "shops": (WHOLE, "SELECT COUNT(*) AS shops, MAX(n) AS most, 'x' AS kind FROM by_shop"),
    "paths": ("", "SELECT DISTINCT a.src AS first, b.dst AS last, 1 AS one FROM edges a JOIN edges b ON a.dst = b.src"),
}
THIRD: Views = {**NEW, "by_shop": (CHANGES, "SELECT shop, MIN(node) AS n FROM sales GROUP BY shop")}
REFILLED = ["by_shop", "shops", "twice", "paths"]


def script(folder: Path, views: Views) -> Path:
    made = "\n".join(
        f"CREATE OR REPLACE MATERIALIZED VIEW {name} {sink.format(name)} AS {select};"
        for name, (sink, select) in views.items()
    )
    (folder / "script.sql").write_text(TABLES + made)
    return folder / "script.sql"


def once(spark: Any, folder: Path, views: Views, cells: int | None = None) -> None:
    Pipeline.from_script(spark, script(folder, views), cells=cells).start(once=True).awaitTermination()


def expected(world: World, views: Views, name: str) -> Counter[tuple[Any, ...]]:
    below = views["by_shop"][1]
    return world.expected(views[name][1].replace("FROM by_shop", f"FROM ({below}) AS by_shop"))


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def check(world: World, views: Views) -> None:
    store = store_of(world.folder / "script.checkpoint")
    for name, (sink, _) in views.items():
        rows, folder = expected(world, views, name), world.folder / "out" / name
        assert rows_of(contents(store, latest(store), name)) == rows, name
        if sink == WHOLE:
            assert rows_of(pq.read_table(folder / "contents.parquet")) == rows, name
        elif sink:
            reported: Counter[tuple[Any, ...]] = Counter()
            for path in folder.glob("*.parquet"):
                for row in pq.read_table(path).to_pylist():
                    sign, _ = row.pop("_multiplicity"), row.pop("_version")
                    reported[tuple(row.values())] += sign
            assert {row: n for row, n in reported.items() if n} == rows, name


def test_the_old_view_is_maintained_until_the_new_view_is_backfilled(
    spark: Any, tmp_path: Path, held: threading.Event, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    world.write()
    once(spark, tmp_path, OLD, 3)
    world.write()
    store = store_of(tmp_path / "script.checkpoint")
    place = {"checkpoint": str(tmp_path / "script.checkpoint"), "view": "paths"}
    query: Query = Pipeline.from_script(spark, script(tmp_path, NEW)).start()
    try:
        for _ in range(2):
            batch = latest(store).batch
            world.write()
            until(lambda before=batch: latest(store).batch > before, query)  # type: ignore[misc]
        query._query.processAllAvailable()  # type: ignore[union-attr]
        check(world, OLD)
        assert spark.read.format("freshviews").options(**place).load().columns == ["src", "dst"]
        assert query.refilling == query.filling == tuple(REFILLED)
        reported = status(store, read_script((tmp_path / "script.sql").read_text(), tmp_path))
        assert (reported.refilling, reported.filling) == (tuple(REFILLED), ())
        show_status(str(tmp_path / "script.sql"), None, False)
        line = "view paths: has the rows of the old SELECT; backfill with the new one is running"
        assert line in capsys.readouterr().out
        before = latest(store)
        held.set()
        query.processAllAvailable()
    finally:
        held.set()
        query.stop()
    check(world, NEW)
    after = latest(store)
    assert (after.version, after.refilled) == (before.version + 1, REFILLED)
    assert status(store, read_script((tmp_path / "script.sql").read_text(), tmp_path)).refilling == ()
    # A read of the changes across the swap would mix columns.
    read = spark.read.format("freshviews").options(**place, changes="true", after=before.version - 1)
    with pytest.raises(Exception, match=r"view paths has other columns at version"):
        read.load().collect()
    assert spark.read.format("freshviews").options(**place, changes="true", after=before.version).load().count()
    stream = spark.readStream.format("freshviews").options(**place, changes="true").load()
    out = tmp_path / "copy"
    writing = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "copied"))
    writing.trigger(availableNow=True).start(str(out)).awaitTermination()
    copied = pq.read_table(out).drop_columns(["_multiplicity", "_version"])
    assert rows_of(copied) == expected(world, NEW, "paths")
    world.write()
    once(spark, tmp_path, NEW)
    check(world, NEW)
    assert latest(store).refilled == []


def test_a_finite_run_replaces_a_view(spark: Any, tmp_path: Path, held: threading.Event) -> None:
    world = World(tmp_path)
    world.write()
    once(spark, tmp_path, OLD, 1)
    query = Pipeline.from_script(spark, script(tmp_path, NEW)).start()
    threading.Timer(0.5, held.set).start()
    query.stop()
    store = store_of(tmp_path / "script.checkpoint")
    assert query.exception() is None and latest(store).refilled == []
    # The old script again: it changes nothing.
    version = latest(store).version
    once(spark, tmp_path, OLD)
    assert latest(store).version == version
    # A script with a view that cannot be backfilled, then the corrected one: the version between them has no effect.
    select = "SELECT shop, SUM(9223372036854775807 + node) AS n FROM sales GROUP BY shop"
    third = {**OLD, "by_shop": (CHANGES, select)}
    query = Pipeline.from_script(spark, script(tmp_path, third)).start()
    with pytest.raises(PipelineError, match=r"by_shop.* cannot be backfilled: .*; write by_shop.* as before"):
        query.awaitTermination(120)
    third["by_shop"] = THIRD["by_shop"]
    del third["hops"]
    world.write()
    once(spark, tmp_path, third)
    check(world, third)
    assert "by_shop" in latest(store).totals["changed"] and "hops" not in latest(store).views
    with pytest.raises(CheckpointError, match=r"view by_shop has other columns.* and its sink cannot take"):
        once(spark, tmp_path, {"by_shop": (CHANGES, "SELECT shop, COUNT(*) AS m FROM sales GROUP BY shop")})


SWAP = ("cells done", "manifest half written", "manifest written", "manifest in place", "sink half written")
EVERY = [("images filled", False), *((step, ends) for step in (*SWAP, "delivery noted") for ends in (False, True))]
"""Steps of the swap, and whether the run ends by itself; ``make kills`` has all."""
KILLED = EVERY if "KILLS" in os.environ else EVERY[7:8] if CHANGE else [*EVERY[:2], EVERY[7], EVERY[10]]


@pytest.mark.long("a pipeline starts anew after each kill, which takes seconds")
@pytest.mark.full
@pytest.mark.kills
def test_a_pipeline_killed_while_it_replaces_views_stays_exact(tmp_path: Path) -> None:
    world, fault = World(tmp_path), Fault(tmp_path / "fault")
    command = [sys.executable, "-m", "freshviews.cli", "run", "script.sql", "--master", "local[2]", "--cells", "2"]

    def run(views: Views, ends: bool, step: str | None = None) -> str:
        script(tmp_path, views)
        if step is not None:
            fault.plan(step, "kill", "driver")
        more = ["--once"] if ends else []
        done = subprocess.run(
            [*command, *more], cwd=tmp_path, env=environment(fault), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == (0 if step is None else -signal.SIGKILL), (step, done.stderr)
        return done.stdout

    world.write()
    few = [{name: views[name] for name in ("by_shop", "shops")} for views in (NEW, OLD, THIRD)]
    there = tried = few[1]
    run(there, True)
    store = store_of(tmp_path / "script.checkpoint")
    for step, ends in KILLED:
        before = latest(store)
        if step in (*SWAP[3:], "delivery noted"):
            run(there, True)  # Else the version that the killed run before did not deliver would reach the step.
        # Other SELECTs than those of the checkpoint, and than those of the previous, killed run.
        tried = next(views for views in few if views not in (there, tried))
        run(tried, ends, step)
        if step == "images filled" or step in SWAP[:3]:
            assert latest(store) == before, (step, ends)
        else:
            found = latest(store)
            assert found.version > before.version and found.refilled == ["by_shop", "shops"], (step, ends)
            there = tried
    world.write()
    tried = next(views for views in few if views not in (there, tried))
    assert "; refilled: by_shop, shops;" in run(tried, True)
    check(world, tried)


KAFKA = "USING kafka OPTIONS ('kafka.bootstrap.servers' 'b', topic 't', output '{}')"
JDBC = "USING jdbc OPTIONS (url 'jdbc:h2:mem:x', dbtable 't', output '{}')"
BY_ID = "SELECT id, price FROM sales"


@pytest.mark.parametrize(
    ("sink", "old", "new", "reason"),
    [
        ("", BY_ID, "SELECT shop FROM sales", None),
        (WHOLE, BY_ID, "SELECT shop FROM sales", None),
        (CHANGES, BY_ID, f"{BY_ID} WHERE price > 1", None),
        (CHANGES, BY_ID, "SELECT id, node AS price FROM sales", "other columns.*, and its sink cannot take"),
        (KAFKA.format("upsert"), BY_ID, "SELECT id, shop FROM sales WHERE node > 2", None),
        (KAFKA.format("changes"), BY_ID, "SELECT id, shop FROM sales", "other columns.*, and its sink cannot take"),
        (
            KAFKA.format("upsert"),
            BY_ID,
            "SELECT node AS id, MAX(price) AS price FROM sales GROUP BY node",
            None,
        ),
        (
            KAFKA.format("upsert"),
            BY_ID,
            "SELECT shop AS id, MAX(price) AS price FROM sales GROUP BY shop",
            "a key whose column id was BIGINT before, and is now STRING",
        ),
        (
            JDBC.format("upsert"),
            "SELECT shop, node, COUNT(*) AS n FROM sales GROUP BY shop, node",
            "SELECT shop, MAX(node) AS node, COUNT(*) AS n FROM sales GROUP BY shop",
            r"is delivered by the key \(shop\), but was delivered by \(shop, node\)",
        ),
        (JDBC.format("upsert"), BY_ID, f"{BY_ID} WHERE price > 1", None),
        (JDBC.format("upsert"), BY_ID, "SELECT id, shop FROM sales", "other columns.* and its sink table has the old"),
        (JDBC.format("complete"), BY_ID, "SELECT shop FROM sales", "other columns.* and its sink table has the old"),
    ],
)
def test_changed_views_with_an_unsuitable_sink_are_refused(
    tmp_path: Path, sink: str, old: str, new: str, reason: str | None
) -> None:
    for name in ("edges", "sales"):
        (tmp_path / name).mkdir()
    before = read_script(script(tmp_path, {"v": (sink, old)}).read_text(), tmp_path)
    now = read_script(script(tmp_path, {"v": (sink, new)}).read_text(), tmp_path)
    keys = {v.name: list(v.written.key) for v in before.views if v.written is not None}
    views = {view.name: view.sql for view in before.views}
    made = Manifest(1, 0, None, 0.0, before.table_statements, views, keys=keys)
    replaced = difference(made, now, ()).views
    assert replaced == ("v",)
    if reason is None:
        check_replaced(now, made, replaced, (), False)
    else:
        with pytest.raises(FreshviewsError, match=f"^view v .*{reason}.*give the new view another name"):
            check_replaced(now, made, replaced, (), False)
    # A function that gets changes cannot undo earlier ones.
    if not sink:
        with pytest.raises(CheckpointError, match="view v has other columns"):
            check_replaced(now, made, replaced, {"v"}, False)


def test_old_rows_of_a_replaced_view_are_deleted_by_key() -> None:
    gone = pa.table({"a": ["x", "y"], "id": pa.array([1, 2], pa.int32()), "_multiplicity": [-1, -1]})
    change = pa.table({"id": [2, 3], "b": [5, 6], "_multiplicity": [1, 1]})
    rows, here = last_rows(with_gone(change, gone, ["id"]), ["id"])
    found = {row["id"]: there and row["b"] for row, there in zip(rows.to_pylist(), here.to_pylist(), strict=True)}
    assert found == {1: False, 2: 5, 3: 6}
    rows, here = last_rows(with_gone(None, gone, ["id"]), ["id"])
    assert (rows.to_pylist(), here.to_pylist()) == ([{"id": 1}, {"id": 2}], [False, False])
