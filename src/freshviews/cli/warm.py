"""Implements ``freshviews warm``, which compiles kernels and archives Spark's Java classes before the first run."""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from freshviews.engine.database import Database
from freshviews.kernel.machine.cache import COMPILED, cache_folder
from freshviews.records import dataclass

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

_TABLES = """
CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust BIGINT, day DATE);
CREATE TABLE items (o_id BIGINT, part STRING, qty INT, price DECIMAL(9, 2), rate DOUBLE);
"""
_VIEWS = """
CREATE MATERIALIZED VIEW by_part AS
  SELECT part, COUNT(*) AS n, SUM(qty) AS qty, MIN(price) AS least, MAX(price) AS most, AVG(rate) AS rate
  FROM items GROUP BY part;
CREATE MATERIALIZED VIEW by_customer AS
  SELECT cust, SUM(qty * price) AS total, COUNT(DISTINCT part) AS parts
  FROM orders JOIN items USING (o_id) GROUP BY cust;
CREATE MATERIALIZED VIEW lines AS SELECT o_id, cust, part, qty FROM orders LEFT JOIN items USING (o_id);
CREATE MATERIALIZED VIEW first_items AS SELECT part, qty FROM items ORDER BY qty DESC LIMIT 10;
"""


ROWS = 1500
"""Rows of a table: enough for the code of large batches."""


@dataclass(frozen=True)
class Prepared:
    """The folder of compiled code, and what it has."""

    folder: Path
    functions: int
    bytes: int


def compile_kernels(shared: bool) -> Prepared:
    """Compile the kernels that most views need, by a small database. ``shared``: let all users read the code.

    With FRESHVIEWS_COMPILE=ahead, set before the first import, it compiles all that the database uses.
    """
    with tempfile.TemporaryDirectory(prefix="freshviews-") as place:
        for path in (None, Path(place) / "durable"):
            with Database(path, threads=1) as db:
                db.execute(_TABLES + _VIEWS)
                _change_and_read(db)
                db.execute("CREATE MATERIALIZED VIEW again AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part")
        Database(Path(place) / "durable").close()
    folder = cache_folder()
    if shared:
        share(folder)
    sizes = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    return Prepared(folder, sum(name.endswith(COMPILED) for name in sizes), sum(sizes.values()))


def _change_and_read(db: Database) -> None:
    """Change tables and read views in the usual ways."""
    day = dt.date(2026, 1, 5)
    rows = [(number, f"part {number % 7}", number % 5, number % 9, number / 8) for number in range(ROWS)]
    most = ROWS * 4 // 5
    views = [db.view(name) for name in db.views]
    for view in views:
        view.subscribe(lambda change: None)
    db.insert("orders", [(0, 1, day)])
    db.insert("items", rows[:1])
    db.insert("orders", [(number, number % 9, day) for number in range(1, ROWS)])
    db.insert("items", rows)
    db.insert("items", db.table("items").to_arrow().slice(0, most))
    db.delete("items", rows[:3])
    db.delete("items", rows[3:most])
    db.upsert("orders", [(2, 5, day), (3, 5, day)])
    db.update("orders", {"o_id": 4, "cust": 6})
    db.delete("orders", keys=[5, 6])
    with db.batch() as batch:
        batch.insert("orders", [(5, 7, day)])
        batch.delete("items", rows[most : most + 10])
    for view in views:
        view.to_arrow()
        list(view)
    assert db.view("by_part")["part 3"] and db.table("orders")[2]


def share(folder: Path) -> None:
    """Let all users read a folder of compiled code and the folder that it is in; its user alone can write to it."""
    os.chmod(folder.parent, 0o755)
    for place, _, names in os.walk(folder):
        os.chmod(place, 0o755)
        for name in names:
            os.chmod(os.path.join(place, name), 0o644)


def has_spark() -> bool:
    """Whether pyspark is installed."""
    return importlib.util.find_spec("pyspark") is not None


def archive_classes(shared: bool) -> None:
    """Archive the classes of Spark, by a small pipeline in a temporary folder; it also compiles what cells need.

    Raises JavaError if there is no suitable Java, or if Java archives no classes.
    """
    from freshviews.spark.java import class_archive
    from freshviews.spark.pipeline import Pipeline
    from freshviews.spark.session import start_session

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
    if shared:
        share(cache_folder())
