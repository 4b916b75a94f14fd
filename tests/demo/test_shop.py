"""The demo of a shop: its messages, and a short form of it with a real broker and a real database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo.shop.stream import CUSTOMERS, PRODUCTS, Shop

ROOT = Path(__file__).parents[2]


def test_the_table_row_of_a_key_equals_the_last_message_with_the_key() -> None:
    shop = Shop()
    sent = [*shop.opening(), *shop.round(3000)]
    folded: dict[str, dict[int, object]] = {"customers": {}, "products": {}, "orders": {}}
    for message in sent:
        folded[message.topic][message.key] = message.value
    assert len(sent) == CUSTOMERS + PRODUCTS + 3000
    assert folded["orders"] | shop.tables["orders"] == folded["orders"]
    left = {key for key, value in folded["orders"].items() if value is not None}
    assert left == set(shop.tables["orders"]) and len(left) < shop.begun
    tables = shop.arrow()
    assert tables["orders"].num_rows == len(left)
    assert {table.column_names[0] for table in tables.values()} == {"customer", "product", "order_id"}
    assert any(row["paid"] for row in shop.tables["orders"].values())


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.long("a broker, a database and Spark start")
def test_two_rounds_of_the_shop_demo_agree_with_duckdb() -> None:
    for package in ("pyspark", "confluent_kafka", "psycopg"):
        pytest.importorskip(package, reason=f"{package} is not installed; make setup installs it")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, "-m", "demo.shop", "--rounds", "2", "--messages", "500"]
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "120"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    if "cannot be fetched from Maven" in done.stderr or "no PostgreSQL is here" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" equal ") == 3
    rounds = [line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith("round")]
    assert rounds == ["round 1", "round 2"]
