"""Rows are refused before memory runs out: by a limit, by the machine, by a control group."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.engine.commit.room import limits_of_process

MB = 1 << 20
SCRIPT = """
    CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT);
    CREATE MATERIALIZED VIEW v AS SELECT g, COUNT(*) AS n FROM t GROUP BY g;
"""


def rows(first: int, count: int) -> pa.RecordBatch:
    keys = np.arange(first, first + count)
    return pa.record_batch({"k": keys, "g": keys % 10})


def filled(db: fv.Database, count: int) -> tuple[int, fv.OutOfMemory]:
    """Insert batches until one is refused; the number of rows that are there, and the error."""
    there = 0
    with pytest.raises(fv.OutOfMemory) as refused:
        while there < 10_000_000:
            db.insert("t", rows(there, count))
            there += count
    return there, refused.value


def contents(db: fv.Database) -> dict[int, int]:
    return {row["g"]: row["n"] for row in db.view("v").to_arrow().to_pylist()}


@pytest.mark.parametrize("count", [1_000, 20_000])
def test_rows_beyond_a_limit_are_refused_and_deletes_are_taken(count: int) -> None:
    with fv.Database(memory_limit=16 * MB) as db:
        db.execute(SCRIPT)
        there, error = filled(db, count)
        assert re.fullmatch(
            r"memory: of 17 MB \(memory_limit\) \d+ MB are left; the database has \d+ MB \(table t \d+ MB.*\); the "
            r"batch is refused and the state is as before\. Delete rows, drop a view, or give it more memory",
            str(error),
        )
        with pytest.raises(fv.OutOfMemory):
            while there < 1_000_000:
                db.insert("t", [(there, there % 10)])
                there += 1
        assert there > 50_000 and db.stats()["bytes"] < 1.35 * 16 * MB
        before = contents(db)
        assert sum(before.values()) == there
        for refused in (rows(there, 1), rows(there, count)):
            with pytest.raises(fv.OutOfMemory):
                db.insert("t", refused)
        with pytest.raises(fv.OutOfMemory), db.batch() as batch:
            batch.insert("t", rows(there, 1))
        with pytest.raises(fv.OutOfMemory, match="nothing has changed"):
            db.execute("CREATE MATERIALIZED VIEW w AS SELECT k, g FROM t")
        assert contents(db) == before and db.views == ("v",)
        for first in range(0, there, count):
            db.delete("t", rows(first, min(count, there - first)))
        db.insert("t", [(1, 1)])
        assert contents(db) == {1: 1}


def test_a_view_that_is_dropped_makes_room() -> None:
    with fv.Database(memory_limit=16 * MB) as db:
        db.execute(SCRIPT + "CREATE MATERIALIZED VIEW w AS SELECT k, g FROM t;")
        there, error = filled(db, 1_000)
        assert "view w" in str(error)
        db.execute("DROP MATERIALIZED VIEW w")
        db.insert("t", rows(there, 1_000))
        assert sum(contents(db).values()) == there + 1_000


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "1 GB"])
def test_a_limit_that_is_none_is_refused(limit: object) -> None:
    with pytest.raises(ValueError, match="memory_limit is a whole number of bytes of 1 or more, not"):
        fv.Database(memory_limit=limit)  # type: ignore[arg-type]


def test_limits_are_those_of_the_machine_and_of_the_groups_of_the_process(tmp_path: Path) -> None:
    def put(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def found() -> list[tuple[str, int, int]]:
        return [(limit.what, limit.total, limit.left()) for limit in limits_of_process(tmp_path)]

    assert found() == []
    put("proc/meminfo", "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:   300 kB\n")
    machine = ("the machine", 1000 << 10, 300 << 10)
    assert found() == [machine]
    put("proc/self/cgroup", "0::/a/b\n")
    put("sys/fs/cgroup/a/memory.max", "max\n")
    put("sys/fs/cgroup/a/b/memory.max", "500000\n")
    put("sys/fs/cgroup/a/b/memory.current", "400000\n")
    put("sys/fs/cgroup/a/b/memory.stat", "anon 5\ninactive_file 100\nactive_file 7\n")
    assert found() == [machine, ("its control group", 500_000, 100_100)]
    # The first version, in a container that sees its own group as the root.
    put("proc/self/cgroup", "5:cpu,memory:/docker/x\n4:pids:/\n")
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n")
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n")
    put("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n")
    assert found() == [machine, ("its control group", 600_000, 120_000)]
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


FILLING = """
import os, sys
open(os.path.join(sys.argv[1], "cgroup.procs"), "w").write(str(os.getpid()))
import numpy as np, pyarrow as pa
import freshviews as fv
db = fv.Database()
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
"""


def test_a_process_in_a_group_refuses_rows_before_it_is_killed(group: Path) -> None:
    environment = {**os.environ, "FRESHVIEWS_PURE_PYTHON": "0"}
    command = [sys.executable, "-c", FILLING, str(group)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout.startswith("True True memory: of 734 MB (its control group) "), done.stdout
