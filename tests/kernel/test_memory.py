from __future__ import annotations

import subprocess
import sys

import pytest

from freshviews.kernel.hash.table import KEY, table_bytes, upsert
from freshviews.kernel.memory.mem import PURE_PYTHON, jit, load, store
from tests.kernel.relation import Relation, relation

pytestmark = pytest.mark.skipif(PURE_PYTHON, reason="a million rows take machine code")

ROWS = 1_000_000
FAN_OUT = 10


@jit
def fill(t: int, start: int, count: int, fan_out: int) -> None:
    """Insert ``count`` rows, ``fan_out`` to a group of the index on the first column, in scattered order."""
    for i in range(start, start + count):
        # A permutation of the numbers below a million, so that the rows of a group are inserted far apart.
        n = (i * 7919) % 1000000
        row = upsert(t, (n // fan_out, n))
        store(row + 8 * load(t, KEY), 0, 1)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_an_indexed_row_takes_at_most_64_counted_bytes() -> None:
    with relation(2, 1, ((0,),)) as r:
        fill(r.t, 0, ROWS, FAN_OUT)
        assert len(r.slice(0, (5,))) == FAN_OUT
        assert table_bytes(r.t) / ROWS <= 64


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_indexed_row_takes_at_most_64_resident_bytes() -> None:
    # In a separate process, because memory released by other tests would hide the growth.
    script = "from tests.kernel.test_memory import grown; print(grown())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) <= 64


def grown() -> float:
    """Growth of the resident set per row."""
    small = Relation(2, 1, ((0,),))
    fill(small.t, 0, 1000, FAN_OUT)
    r = Relation(2, 1, ((0,),))
    before = resident()
    fill(r.t, 0, ROWS, FAN_OUT)
    return (resident() - before) / ROWS
