"""Writes an example project: a folder of orders, a streaming table that reads the folder, and two views."""

from __future__ import annotations

import json
from pathlib import Path

from freshviews.spark.declarative.spec import ProjectError

_SPEC = """\
name: {name}
storage: {storage}
database: default
libraries:
  - glob:
      include: transformations/**
"""

_ORDERS = """\
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

ORDERS = Path(__file__).parents[1] / "in" / "orders"
spark = SparkSession.active()

# Each new file in the folder is read once.
@dp.table
def orders() -> DataFrame:
    reader = spark.readStream.format("csv").option("header", "true")
    return reader.schema("o_id BIGINT, part STRING, qty INT").load(str(ORDERS))
"""

_VIEWS = """\
CREATE MATERIALIZED VIEW by_part AS
SELECT part, SUM(qty) AS qty, COUNT(*) AS n FROM orders GROUP BY part;

CREATE MATERIALIZED VIEW large_parts AS
SELECT part, qty FROM by_part WHERE qty > 5;
"""

_ROWS = "o_id,part,qty\n1,bolt,3\n2,nut,4\n3,bolt,5\n"


def write_project(name: str) -> Path:
    """Write a project into a new folder of this name; returns its specification. Raises ProjectError."""
    folder = Path(name)
    if not name or "\0" in name:
        raise ProjectError(f"{name!r} cannot be the name of a new folder; give a name, as in: freshviews init shop")
    if folder.exists():
        raise ProjectError(f"{name} exists already; give another name, or delete it")
    path = folder.absolute()
    texts = {"name": path.name, "storage": f"file://{path}/pipeline-storage"}
    files = {
        "spark-pipeline.yml": _SPEC.format(**{key: json.dumps(text) for key, text in texts.items()}),
        "transformations/orders.py": _ORDERS,
        "transformations/views.sql": _VIEWS,
        "in/orders/1.csv": _ROWS,
    }
    try:
        for place, text in files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text, encoding="utf-8")
        (folder / "pipeline-storage").mkdir()
    except OSError as error:
        raise ProjectError(f"{name}: cannot be written: {error.strerror}; choose a folder that is writable") from None
    return folder / "spark-pipeline.yml"
