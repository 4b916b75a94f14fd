"""Prepares a machine for runs: compiles kernels, and archives Spark's Java classes, so that runs start faster."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from freshviews.kernel.machine.cache import cache_folder
from freshviews.spark.java import class_archive
from freshviews.spark.pipeline import Pipeline
from freshviews.spark.session import start_session

_SCRIPT = """
CREATE STREAMING TABLE orders (o_id BIGINT PRIMARY KEY, cust BIGINT, day DATE)
  USING parquet OPTIONS (path 'orders', changes 'upsert');
CREATE STREAMING TABLE items (o_id BIGINT, part TEXT, qty BIGINT, price DECIMAL(9, 2), rate DOUBLE)
  USING csv OPTIONS (path 'items', header 'true');
CREATE MATERIALIZED VIEW by_part USING parquet OPTIONS (path 'by_part', output 'complete') AS
  SELECT part, COUNT(*) AS n, SUM(qty) AS qty, MAX(price) AS most, SUM(rate) AS rate FROM items GROUP BY part;
CREATE MATERIALIZED VIEW by_customer USING parquet OPTIONS (path 'by_customer', output 'changes') AS
  SELECT cust, SUM(qty * price) AS total, COUNT(DISTINCT part) AS parts
  FROM orders JOIN items USING (o_id) GROUP BY cust;
CREATE MATERIALIZED VIEW lines AS
  SELECT o_id, cust, part, qty FROM orders LEFT JOIN items USING (o_id);
"""


def warm() -> Path:
    """Compile kernels for this machine and archive the classes of Spark, by a small pipeline in a temporary folder.

    Returns the folder with both. With FRESHVIEWS_COMPILE=ahead, set before the first import, it compiles all that the
    pipeline uses. Takes about a minute of a core. Raises JavaError if there is no suitable Java, or if Java archives no
    classes.
    """
    with tempfile.TemporaryDirectory(prefix="freshviews-") as place, class_archive.making() as options:
        folder = Path(place)
        (folder / "script.sql").write_text(_SCRIPT)
        (folder / "orders").mkdir()
        (folder / "items").mkdir()
        session = start_session("local[1]", {"spark.driver.extraJavaOptions": options}, quiet=True)
        for number in range(2):
            keys = list(range(3 * number, 3 * number + 4))
            orders = pa.table({"o_id": keys, "cust": [key % 2 for key in keys], "day": pa.array([0] * 4, pa.date32())})
            items = {"o_id": keys, "part": ["bolt", "nut"] * 2, "qty": keys, "price": [1.5] * 4, "rate": [0.5] * 4}
            pq.write_table(orders, folder / "orders" / f"{number}.parquet")
            csv.write_csv(pa.table(items), folder / "items" / f"{number}.csv")
            Pipeline.from_script(session, folder / "script.sql").start(once=True).awaitTermination()
        session.stop()
    return cache_folder()
