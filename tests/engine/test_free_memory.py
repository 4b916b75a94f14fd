"""Rows and views are refused before memory runs out on the machine or in a control group."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.engine.commit import free_memory
from freshviews.engine.commit.free_memory import Limit, limits_of_process

MB = 1 << 20
SCRIPT = """
    CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT);
    CREATE MATERIALIZED VIEW v AS SELECT g, COUNT(*) AS n FROM t GROUP BY g;
"""


class Machine:
    """A machine that has only a database; ``total``: its memory in bytes."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.others = 0
        self.db: fv.Database | None = None

    def limits(self, root: Path) -> list[Limit]:
        held = self.others + (0 if self.db is None else self.db.stats()["bytes"])
        return [Limit("the machine", self.total, self.total - held)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(16 * MB)
    monkeypatch.setattr(free_memory, "limits_of_process", made.limits)
    monkeypatch.setattr(free_memory, "SHORTEST", 0.0)
    monkeypatch.setattr(free_memory, "LONGEST", 0.0)
    return made


@pytest.fixture
def db(machine: Machine) -> Iterator[fv.Database]:
    with fv.Database() as made:
        machine.db = made
        yield made
        machine.db = None


def rows(first: int, count: int) -> pa.RecordBatch:
    keys = np.arange(first, first + count)
    return pa.record_batch({"k": keys, "g": keys % 10})


def filled(db: fv.Database, count: int) -> int:
    """Insert batches until one is refused; returns the number of stored rows."""
    there = 0
    with pytest.raises(fv.OutOfMemory):
        while there < 10_000_000:
            db.insert("t", rows(there, count))
            there += count
    return there


def contents(db: fv.Database) -> dict[int, int]:
    return {row["g"]: row["n"] for row in db.view("v").to_arrow().to_pylist()}


@pytest.mark.parametrize("count", [1_000, 20_000])
def test_rows_that_memory_cannot_hold_are_refused(db: fv.Database, count: int) -> None:
    db.execute(SCRIPT)
    there = filled(db, count)
    assert there > 50_000
    while count > 1:
        # Down to batches that take the direct way.
        count = max(count // 10, 1)
        shown = r"memory: \d+ MB of 17 MB \(the machine\) are left, the rows may take \d+ MB, and \d+ MB must stay"
        with pytest.raises(fv.OutOfMemory, match=shown):
            while there < 1_000_000:
                db.insert("t", rows(there, count) if count > 1 else [(there, there % 10)])
                there += count
    assert 10 * MB < db.stats()["bytes"] < 16 * MB
    before = contents(db)
    assert sum(before.values()) == there
    shown = r"the batch is refused and the state is as before\. Delete rows, drop a view"
    with pytest.raises(fv.OutOfMemory, match=shown):
        db.insert("t", rows(there, 1))
    with pytest.raises(fv.OutOfMemory), db.batch() as batch:
        batch.insert("t", rows(there, 1))
    with pytest.raises(fv.OutOfMemory, match="nothing has changed"):
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT k, g FROM t")
    assert contents(db) == before and db.views == ("v",)
    for first in range(0, there, 1_000):
        db.delete("t", rows(first, min(1_000, there - first)))
    db.insert("t", [(1, 1)])
    assert contents(db) == {1: 1}


def test_a_batch_without_new_rows_needs_no_free_memory(db: fv.Database, machine: Machine) -> None:
    db.execute(SCRIPT + "CREATE TABLE w (k BIGINT) TBLPROPERTIES ('freshviews.window' = '100 rows');")
    db.execute("CREATE MATERIALIZED VIEW newest AS SELECT MIN(k) AS k FROM w")
    db.insert("w", pa.record_batch({"k": np.arange(100)}))
    there = filled(db, 1_000)
    machine.others = 2 * MB
    version = db.version
    with db.batch() as batch:
        batch.delete("t", [(0, 0)])
        batch.insert("t", [(0, 7)])
    signed = [(1, 1, -1), (1, 7, 1)]
    db.apply("t", pa.table([pa.array(column) for column in zip(*signed, strict=True)], ["k", "g", "_multiplicity"]))
    db.insert("w", [(100,)])
    db.insert("w", pa.record_batch({"k": np.arange(101, 150)}))
    assert db.version == version + 4
    assert db.view("newest").to_arrow().to_pylist() == [{"k": 50}]
    assert contents(db)[7] == there // 10 + 2


def test_refused_rows_leave_no_strings_behind(db: fv.Database, machine: Machine) -> None:
    db.execute("CREATE TABLE s (a STRING); CREATE MATERIALIZED VIEW n AS SELECT a, COUNT(*) AS n FROM s GROUP BY a")
    db.insert("s", [(f"first {i}",) for i in range(10_000)])
    machine.others = machine.total
    strings = db.stats()["strings"]
    for given in (1, 1_000):
        with pytest.raises(fv.OutOfMemory):
            db.insert("s", [(f"refused {i}",) for i in range(given)])
    assert db.stats()["strings"] == strings
    # Strings of an open batch enter the dictionary before the commit; a collection removes them if unused.
    for round_ in range(20):
        with pytest.raises(fv.OutOfMemory), db.batch() as batch:
            batch.insert("s", [(f"refused {round_} {i}",) for i in range(1_000)])
    assert db.stats()["strings"] < strings + 11_000
    db.delete("s", [(f"first {i}",) for i in range(5_000)])
    machine.others = 0
    db.insert("s", [("there",)])
    assert len(db.view("n")) == 5_001


def test_rows_that_replace_deleted_rows_need_no_free_memory(db: fv.Database, machine: Machine) -> None:
    """Deletes release no memory until a table shrinks."""
    db.execute(SCRIPT)
    there = filled(db, 1_000)
    db.execute("CREATE TABLE other (k BIGINT)")
    machine.others = 100_000
    for turn in range(20):
        db.delete("t", rows(turn * 1_000, 1_000))
        with pytest.raises(fv.OutOfMemory):
            # Free places of one table are useless to another.
            db.insert("other", [(1,)])
        db.insert("t", rows(there + turn * 1_000, 999))
        db.insert("t", [(-turn - 1, 0)])
        with pytest.raises(fv.OutOfMemory):
            db.insert("t", rows(there + 1_000_000, 2_000))


def test_updates_applied_in_pieces_are_accepted_or_refused_as_a_whole(db: fv.Database, machine: Machine) -> None:
    db.execute(SCRIPT + "CREATE MATERIALIZED VIEW w AS SELECT k, g FROM t;")
    db.insert("t", rows(0, 50_000))
    held = db.stats()["bytes"]
    # Between what has to stay free and a half of it.
    machine.others = machine.total - int(1.5 * held)
    changes = [(k, k % 10, -1) for k in range(1_000)] + [(k, 11, 1) for k in range(1_000)]
    assert sum(len(one) for one in db.apply_net("t", changes, "w", rows=10)) == 2_000
    assert contents(db)[11] == 1_000
    before = contents(db)
    with pytest.raises(fv.OutOfMemory):
        list(db.apply_in_order("t", [(0, 11, -1), (0, 12, 1), (60_000, 1, 1)], "w", rows=10))
    assert contents(db) == before


def test_the_memory_check_estimates_the_bytes_of_many_strings(db: fv.Database, machine: Machine) -> None:
    db.execute("CREATE TABLE s (a STRING)")
    machine.total = 1 << 40
    before = db.stats()["string_bytes"]
    for first in range(0, 200_000, 50_000):
        db.insert("s", pa.record_batch({"a": [f"a string with number {i}" for i in range(first, first + 50_000)]}))
    exact = db.stats()["string_bytes"]
    assert exact > before + 7 * MB
    assert db._held().sizes["strings"] == pytest.approx(exact, rel=0.01)


def test_dropping_a_view_makes_room_for_rows(db: fv.Database) -> None:
    db.execute(SCRIPT + "CREATE MATERIALIZED VIEW w AS SELECT k, g FROM t;")
    there = filled(db, 1_000)
    db.execute("DROP MATERIALIZED VIEW w")
    db.insert("t", rows(there, 1_000))
    assert sum(contents(db).values()) == there + 1_000


def test_the_memory_check_counts_a_view_during_its_backfill(
    db: fv.Database, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute(SCRIPT)
    db.insert("t", rows(0, 50_000))
    seen: list[int] = []
    real = free_memory.held_by

    def spied(relations: object, dictionary: object) -> object:
        found = real(relations, dictionary)  # type: ignore[arg-type]
        seen.append(found.sizes.get("view w", 0))
        return found

    monkeypatch.setattr("freshviews.engine.draft.held_by", spied)
    machine.total = 20 * MB
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT k, g FROM t")
    assert max(seen) > MB


def test_replayed_batches_are_accepted_without_free_memory(db: fv.Database, machine: Machine) -> None:
    db.execute(SCRIPT)
    db.insert("t", rows(0, 10_000))
    machine.others = machine.total
    with db.batch(replayed=True) as batch:
        batch.insert("t", rows(10_000, 1_000))
    assert sum(contents(db).values()) == 11_000


def test_a_database_that_fills_memory_can_be_opened(machine: Machine, tmp_path: Path) -> None:
    with fv.Database(tmp_path / "kept") as kept:
        kept.execute(SCRIPT)
        kept.insert("t", rows(0, 10_000))
    machine.others = machine.total
    with fv.Database(tmp_path / "kept") as again:
        assert sum(contents(again).values()) == 10_000
        with pytest.raises(fv.OutOfMemory):
            again.insert("t", [(10_000, 1)])
        again.delete("t", [(0, 0)])
        assert sum(contents(again).values()) == 9_999


def test_a_small_database_needs_little_free_memory(db: fv.Database, machine: Machine) -> None:
    machine.total = 1000 * MB
    machine.others = 995 * MB
    db.execute(SCRIPT)
    db.insert("t", rows(0, 1_000))
    db.insert("t", [(1_000, 0)])
    assert sum(contents(db).values()) == 1_001


def test_the_argument_spare_memory_sets_the_reserve_and_0_disables_the_check(machine: Machine) -> None:
    machine.others = 15 * MB
    shown = "1 MB of .* are left, the rows may take 0 MB, and 2 MB must stay free; the database holds 0 MB"
    with fv.Database(spare_memory=2 * MB) as careful:
        careful.execute(SCRIPT)
        with pytest.raises(fv.OutOfMemory, match=shown):
            careful.insert("t", rows(0, 1))
    with fv.Database(spare_memory=0) as careless:
        careless.execute(SCRIPT)
        careless.insert("t", rows(0, 100_000))
        assert sum(contents(careless).values()) == 100_000


@pytest.mark.parametrize("spared", [-1, 1.5, True, "1 GB"])
def test_a_value_of_spare_memory_that_is_not_a_number_of_bytes_is_refused(spared: object) -> None:
    with pytest.raises(ValueError, match="spare_memory must be a whole number of bytes of 0 or more, not"):
        fv.Database(spare_memory=spared)  # type: ignore[arg-type]


def test_memory_is_always_checked_before_large_batches(
    db: fv.Database, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def counted(root: Path) -> list[Limit]:
        looks.append(1)
        return machine.limits(root)

    monkeypatch.setattr(free_memory, "limits_of_process", counted)
    monkeypatch.setattr(free_memory, "LONGEST", 3600.0)
    machine.total = 1 << 50
    db.execute(SCRIPT)
    looks.clear()
    for key in range(2_000):
        db.insert("t", [(key, 1)])
    assert len(looks) <= 2
    # More rows than are known to fit are always checked.
    machine.total = 32 * MB
    monkeypatch.setattr(free_memory, "SHORTEST", 3600.0)
    db._memory.forget()
    db.insert("t", rows(2_000, 1))
    looks.clear()
    db.insert("t", rows(3_000, 1_000))
    assert not looks
    with pytest.raises(fv.OutOfMemory):
        db.insert("t", rows(10_000, 1_000_000))
    assert looks


def test_an_unreferenced_database_is_freed(machine: Machine) -> None:
    gc.disable()
    try:
        made = fv.Database()
        made.execute(SCRIPT)
        made.insert("t", rows(0, 10))
        machine.others = machine.total
        with pytest.raises(fv.OutOfMemory):
            made.insert("t", rows(10, 10))
        named = weakref.ref(made)
        del made
        assert named() is None
    finally:
        gc.enable()


def test_memory_limits_of_the_machine_and_of_control_groups_are_found(tmp_path: Path) -> None:
    def put(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def found() -> list[tuple[str, int, int]]:
        return [(limit.what, limit.total, limit.left) for limit in limits_of_process(tmp_path)]

    assert found() == []
    put("proc/meminfo", "MemTotal:  1000 kB\nMemFree:  10 kB\n")
    assert found() == []
    put("proc/meminfo", "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:   300 kB\n")
    machine = ("the machine", 1000 << 10, 300 << 10)
    assert found() == [machine]
    put("proc/self/cgroup", "0::/a/b\n")
    put("sys/fs/cgroup/a/memory.max", "max\n")
    put("sys/fs/cgroup/a/b/memory.max", "500000\n")
    assert found() == [machine]
    put("sys/fs/cgroup/a/b/memory.current", "400000\n")
    put("sys/fs/cgroup/a/b/memory.stat", "anon 5\ninactive_file 100\nactive_file 7\nslab_reclaimable 1000\n")
    assert found() == [machine, ("its control group", 500_000, 101_107)]
    put("sys/fs/cgroup/a/b/memory.high", "450000\n")
    assert found() == [machine, ("its control group", 450_000, 51_107)]
    # The first version, in a container that sees its own group as the root.
    put("proc/self/cgroup", "5:cpu,memory:/docker/x\n4:pids:/\n")
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n")
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n")
    put("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\ntotal_active_file 5\n")
    assert found() == [machine, ("its control group", 600_000, 120_005)]
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert found() == [machine]


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of 700 MB."""
    folder = Path("/sys/fs/cgroup/memory") / f"freshviews-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(700 * MB))
    except OSError as error:
        pytest.skip(f"no control group of the first version can be made here: {error}")
    yield folder
    folder.rmdir()


IN_GROUP = """
import os, sys
open(os.path.join(sys.argv[1], "cgroup.procs"), "w").write(str(os.getpid()))
import numpy as np, pyarrow as pa
import freshviews as fv
db = fv.Database()
"""
FILLING = {
    "integers": """
db.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT);"
           "CREATE MATERIALIZED VIEW v AS SELECT g, k, COUNT(*) AS n FROM t GROUP BY g, k")
there = 0
try:
    while True:
        keys = np.arange(there, there + 20_000)
        db.insert("t", pa.record_batch({"k": keys, "g": keys % 10}))
        there += 20_000
except fv.OutOfMemory as error:
    print(there == len(db.view("v")), db.stats()["bytes"] > 200 << 20, error)
""",
    "strings, and all of them deleted": """
db.execute("CREATE TABLE t (a STRING, b STRING);"
           "CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a")
def rows(first):
    numbers = range(first, first + 10_000)
    a, b = [f"the name of {i:0150}" for i in numbers], [f"another, {i:0150}" for i in numbers]
    return pa.record_batch({"a": a, "b": b})
there = 0
try:
    while True:
        db.insert("t", rows(there))
        there += 10_000
except fv.OutOfMemory as error:
    refused = error
whole = there == len(db.view("v"))
for first in range(0, there, 10_000):
    db.delete("t", rows(first))
db.insert("t", rows(0))
print(whole, len(db.view("v")) == 10_000, refused)
""",
    "an open batch": """
db.execute("CREATE TABLE t (k BIGINT, g BIGINT); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
there = 0
try:
    with db.batch() as batch:
        while True:
            keys = np.arange(there, there + 100_000)
            batch.insert("t", pa.record_batch({"k": keys, "g": keys % 10}))
            there += 100_000
except fv.OutOfMemory as error:
    print(list(db.view("v")) == [(0,)], there > 1_000_000, error)
""",
}


@pytest.mark.parametrize("filling", FILLING)
def test_a_process_with_a_memory_limit_refuses_rows_before_it_is_killed(filling: str, group: Path) -> None:
    environment = {**os.environ, "FRESHVIEWS_PURE_PYTHON": "0"}
    command = [sys.executable, "-c", IN_GROUP + FILLING[filling], str(group)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)
    refused = r"True True memory: \d+ MB of 734 MB \(its control group\) are left, the rows may take \d+ MB"
    assert re.match(refused, done.stdout), done.stdout


def test_the_variable_freshviews_spare_memory_sets_the_default_reserve(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.others = machine.total
    monkeypatch.setenv("FRESHVIEWS_SPARE_MEMORY", "0")
    with fv.Database() as db:
        db.execute(SCRIPT)
        db.insert("t", rows(0, 10))
    monkeypatch.setenv("FRESHVIEWS_SPARE_MEMORY", "2 GB")
    with pytest.raises(ValueError, match="_SPARE_MEMORY must be a whole number of bytes of 0 or more, not '2 GB'"):
        fv.Database()
