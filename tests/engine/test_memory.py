"""Memory really runs out, at many points of a commit."""

from __future__ import annotations

import ctypes
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import freshviews as fv
from tests.engine.shop import seen


def rows(count: int) -> pa.Table:
    return pa.table({"a": np.random.default_rng(1).permutation(count), "b": np.arange(count)})


def stay_the_same_where_rows_cannot_be_entered(db: fv.Database) -> None:
    """The first delete flushes a million rows, which takes memory."""
    before = seen(db)
    found = re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    held = int(found[1]) << 10
    refused = 0
    for megabytes in (0, 1, 3, 1000):
        resource.setrlimit(resource.RLIMIT_AS, (held + (megabytes << 20), -1))
        try:
            db.delete("t", [(5, 0)] if refused % 2 else rows(3))
        except fv.OutOfMemory:
            refused += 1
        except fv.BatchError:
            assert refused % 2
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        if megabytes < 1000:
            assert seen(db) == before
    assert refused > 1


def give_freed_memory_back() -> None:
    """Make glibc map large blocks and unmap them when they are freed; otherwise freed blocks leave room under a
    limit."""
    m_mmap_threshold = -3
    assert ctypes.CDLL(None).mallopt(m_mmap_threshold, 1 << 20) == 1


def stay_the_same_under_limits() -> None:
    give_freed_memory_back()
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (a BIGINT, b BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n, SUM(b) AS s FROM t GROUP BY a;"
        "CREATE MATERIALIZED VIEW w AS SELECT n, COUNT(*) AS c FROM v GROUP BY n"
    )
    db.insert("t", rows(100))
    before = seen(db)
    large = rows(1_000_000)
    found = re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    held = int(found[1]) << 10
    refused = 0
    for megabytes in range(5, 250, 30):
        resource.setrlimit(resource.RLIMIT_AS, (held + (megabytes << 20), -1))
        try:
            db.insert("t", large)
        except fv.OutOfMemory:
            refused += 1
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
            assert seen(db) == before
        else:
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
            stay_the_same_where_rows_cannot_be_entered(db)
            db.delete("t", large)
            break
    assert refused > 3
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    db.insert("t", rows(10))
    assert sorted(db.view("w")) == [(1, 90), (2, 10)]


def test_the_version_is_unchanged_wherever_memory_runs_out() -> None:
    # In a separate process, because memory freed by other tests would be room under the limit.
    code = "from tests.engine.test_memory import stay_the_same_under_limits as run; run()"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
