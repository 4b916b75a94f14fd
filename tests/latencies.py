"""``python -m tests.latencies``: how long small calls take, in wall time, for a quiet machine.

It prints the median and the 99th percentile of: a SELECT by ``db.sql`` with a text that was asked before, and with a
new text each time; one upsert, beside a view; the page of a view by ``freshviews serve``, with a new connection each
time. Then it prints the CPU seconds of whole processes, as the median of five: of ``freshviews query`` over the
checkpoint, and of a program from its start to the first answer of a view. Both run with the bytecode and the machine
code of earlier runs. The database and the checkpoint have 1,000 rows. ``--calls`` sets the number of calls.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import freshviews as fv
from tests.cli.sales import commit, sale

ROWS = 1_000
WARM = 20
"""Calls before the time counts."""
FIRST = """
import freshviews as fv
db = fv.Database()
db.execute("CREATE TABLE items (part STRING, qty INT);"
           "CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part")
db.insert("items", [("bolt", 3), ("nut", 5)])
assert db.view("by_part")["bolt"] == ("bolt", 3)
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.latencies", description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000)
    calls = parser.parse_args().calls
    with fv.Database() as db:
        db.execute(
            "CREATE TABLE items (id INT PRIMARY KEY, part STRING, qty INT);"
            "CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part"
        )
        db.insert("items", [(i, f"p{i % 50}", i % 9) for i in range(ROWS)])
        text = "SELECT part, qty FROM by_part WHERE qty > ? ORDER BY qty LIMIT 5"
        report("db.sql, the same text", calls, lambda i: db.sql(text, [i % 100]).fetchall())
        new = "SELECT part, qty + {} AS q FROM by_part WHERE qty > 3 ORDER BY q LIMIT 5"
        report("db.sql, a new text", calls // 10, lambda i: db.sql(new.format(i)).fetchall())
        report("one upsert", calls, lambda i: db.upsert("items", {"id": i % ROWS, "part": f"p{i % 50}", "qty": i % 7}))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        script = Path(folder, "shop.sql")
        script.write_text("-- a checkpoint has the definitions of its views\n")
        commit(script.with_suffix(".checkpoint"), None, [sale(i, f"p{i % 50}") for i in range(ROWS)])
        serve(script, calls // 4)
        command = ["-m", "freshviews", "query", str(script), "SELECT * FROM by_part ORDER BY part LIMIT 3"]
        process("freshviews query", folder, command)
        process("a first answer", folder, ["-c", FIRST])


def report(what: str, calls: int, call: Callable[[int], object]) -> None:
    """Print the median and the 99th percentile of a call, which gets the number of the call."""
    taken = []
    for number in range(WARM + calls):
        start = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - start)
    taken = sorted(taken[WARM:])
    median, late = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
    print(f"{what:28} median {median * 1e3:9.3f} ms  99 % {late * 1e3:9.3f} ms  {calls:,} calls", flush=True)


def serve(script: Path, calls: int) -> None:
    """The page of a view, by ``freshviews serve``."""
    command = [sys.executable, "-m", "freshviews", "serve", str(script), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = next(word for line in process.stderr for word in line.split() if word.startswith("http://"))
            page = f"{address}view/by_part"
            report("page of a view", calls, lambda number: urlopen(page, timeout=60).read())
        finally:
            process.terminate()


def process(what: str, folder: str, arguments: list[str]) -> None:
    """Print the CPU seconds of a process of Python, and of the processes it starts."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode"))}
    # Without bytecode more than half of the time is spent on compiling Python sources.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    taken = []
    for _ in range(6):
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
        after = os.times()
        taken.append(sum(after[2:4]) - sum(before[2:4]))
    print(f"{what:28} median {sorted(taken[1:])[2]:9.2f} s of CPU  5 calls", flush=True)


if __name__ == "__main__":
    main()
