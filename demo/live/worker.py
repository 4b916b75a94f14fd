"""A worker that mirrors a view into a table of SQLite, each version in one transaction.

``python -m demo.live.worker mirror.sqlite`` inserts random orders for two seconds, and compares the mirror with the
view.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path
from random import Random
from threading import Thread

import freshviews as fv

SCRIPT = """
CREATE TABLE orders (o_id BIGINT, part STRING, qty INT);
CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty, COUNT(*) AS n FROM orders GROUP BY part;
"""


def mirror(changes: fv.Changes, file: Path) -> None:
    """Follow the view until its database is closed."""
    with sqlite3.connect(file) as target:
        target.execute("CREATE TABLE IF NOT EXISTS by_part (part TEXT, qty INT, n INT)")
    for change in changes:
        with target:  # a transaction
            if change.is_snapshot:
                target.execute("DELETE FROM by_part")
            gone = [row for row, multiplicity in change if multiplicity < 0]
            new = [row for row, multiplicity in change if multiplicity > 0]
            target.executemany("DELETE FROM by_part WHERE part IS ? AND qty IS ? AND n IS ?", gone)
            target.executemany("INSERT INTO by_part VALUES (?, ?, ?)", new)
    target.close()


def run(file: Path, seconds: float) -> bool:
    """Insert for some seconds while a worker mirrors the view; returns whether the mirror equals the view."""
    random = Random(1)
    with fv.Database() as db:
        db.execute(SCRIPT)
        view = db.view("by_part")
        worker = Thread(target=mirror, args=(view.changes(full="wait"), file))
        worker.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rows = [(random.randrange(10**6), f"part {random.randrange(20)}", random.randrange(9)) for _ in range(10)]
            db.insert("orders", rows)
        expected = sorted(view)
    worker.join()
    source = sqlite3.connect(file)
    found = sorted(source.execute("SELECT * FROM by_part"))
    source.close()
    verdict = "equals" if found == expected else "DIFFERS FROM"
    print(f"{len(found)} rows at version {db.version}: the mirror {verdict} the view")
    return found == expected


if __name__ == "__main__":
    sys.exit(not run(Path(sys.argv[1]), 2.0))
