"""Tables whose columns change between two runs: stored rows stay, and views continue."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.definition import tables_of
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.growth import refusal
from freshviews.spark.state.stores.addresses import store_of

BEFORE = "CREATE TABLE t (k INT NOT NULL, a SMALLINT, b FLOAT, d DECIMAL(9, 2), v VARCHAR(5), PRIMARY KEY (k))"


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        ("k BIGINT NOT NULL, a BIGINT, b DOUBLE, d DECIMAL(12, 4), v STRING, c DATE, PRIMARY KEY (k)", None),
        ("k INT NOT NULL, c DATE, A INT, PRIMARY KEY (k)", None),
        ("k INT NOT NULL, a SMALLINT, v VARCHAR(9), PRIMARY KEY (k)", None),
        ("k INT NOT NULL, a TINYINT, PRIMARY KEY (k)", "column a was SMALLINT, and TINYINT does not hold all"),
        ("k INT NOT NULL, b INT, PRIMARY KEY (k)", "column b was FLOAT, and INT does not hold all"),
        ("k INT NOT NULL, a SMALLINT NOT NULL, PRIMARY KEY (k)", "column a was SMALLINT, and SMALLINT NOT NULL does"),
        ("k INT NOT NULL, d DECIMAL(10, 4), PRIMARY KEY (k)", "column d was DECIMAL.9, 2., and DECIMAL.10, 4. does"),
        ("k INT NOT NULL, v VARCHAR(4), PRIMARY KEY (k)", "column v was VARCHAR.5., and VARCHAR.4. does not"),
        ("k INT NOT NULL, c DATE NOT NULL, PRIMARY KEY (k)", "column c is new and NOT NULL.*; give it a DEFAULT"),
        ("k INT NOT NULL, c DATE NOT NULL DEFAULT '2026-01-01', PRIMARY KEY (k)", None),
        ("k INT NOT NULL, a SMALLINT", "only its columns may change"),
    ],
)
def test_a_changed_table_keeps_its_rows_or_is_refused(now: str, reason: str | None) -> None:
    found = refusal(tables_of(BEFORE)["t"], tables_of(f"CREATE TABLE t ({now})")["t"])
    if reason is None:
        assert found is None
    else:
        assert found is not None and re.search(reason, found), found


def test_a_window_keeps_its_column_when_a_second_date_column_is_added() -> None:
    made = "CREATE TABLE t (day DATE NOT NULL) TBLPROPERTIES ('freshviews.window' = '2 days')"
    before, now = (tables_of(text)["t"] for text in (made, f"{made}; ALTER TABLE t ADD COLUMN c DATE"))
    assert refusal(before, now) is None
    assert dict(now.properties) == {"freshviews.window": "2 days on day"}


def script(folder: Path, table: str, views: dict[str, str], provider: str) -> None:
    header = ", header 'true'" if provider == "csv" else ""
    made = f"CREATE STREAMING TABLE sales ({table}) USING {provider} OPTIONS (path 'in', changes 'signed'{header});"
    for name, select in views.items():
        made += f"CREATE MATERIALIZED VIEW {name} USING parquet OPTIONS (path 'out/{name}') AS {select};"
    (folder / "sales.sql").write_text(made)


def run(spark: Any, folder: Path, cells: int | None = None) -> None:
    Pipeline.from_script(spark, folder / "sales.sql", cells=cells).start(once=True).awaitTermination()


def write(folder: Path, number: int, rows: list[dict[str, Any]], provider: str) -> None:
    """Write a file that appears complete."""
    table = pa.Table.from_pylist(rows)
    aside = folder / f"aside-{number}"
    if provider == "csv":
        write_csv(table, aside)
    else:
        pq.write_table(table, aside)
    aside.rename(folder / "in" / f"{number}.{provider}")
    os.utime(folder / "in" / f"{number}.{provider}", (1_000_000_000 + number,) * 2)


def delivered(folder: Path, view: str) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for path in (folder / "out" / view).glob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            m, _ = row.pop("_multiplicity"), row.pop("_version")
            found[tuple(row.values())] += m
    return Counter({row: m for row, m in found.items() if m})


def held(folder: Path, view: str) -> Counter[tuple[Any, ...]]:
    store = store_of(folder / "sales.checkpoint")
    return Counter(tuple(row.values()) for row in contents(store, latest(store), view).to_pylist())


@pytest.mark.spark
@pytest.mark.parametrize("provider", ["parquet", "csv"])
@pytest.mark.full
def test_a_table_may_get_columns_and_wider_types(spark: Any, tmp_path: Path, provider: str) -> None:
    (tmp_path / "in").mkdir()
    by_shop = {"by_shop": "SELECT shop, SUM(amount) AS amount, COUNT(*) AS n FROM sales GROUP BY shop"}
    script(tmp_path, "id BIGINT, shop INT, amount INT", by_shop, provider)
    one = [{"id": i, "shop": i % 3, "amount": i, "_multiplicity": 1} for i in range(9)]
    write(tmp_path, 1, one, provider)
    run(spark, tmp_path, 2)
    # New files have another column, and amounts that do not fit an INT.
    two = [
        {"id": 10, "shop": 1, "amount": 2**40, "city": "Oslo", "_multiplicity": 1},
        {"id": 4, "shop": 1, "amount": 4, "city": None, "_multiplicity": -1},
    ]
    write(tmp_path, 2, two, provider)
    by_city = {"by_city": "SELECT city, COUNT(*) AS n, SUM(amount) AS amount FROM sales GROUP BY city"}
    script(tmp_path, "id BIGINT, shop INT, amount BIGINT, city STRING", {**by_shop, **by_city}, provider)
    run(spark, tmp_path)
    expected = {
        "by_shop": Counter([(0, 9, 3), (1, 1 + 7 + 2**40, 3), (2, 15, 3)]),
        "by_city": Counter([(None, 8, 32), ("Oslo", 1, 2**40)]),
    }
    for view, rows in expected.items():
        assert held(tmp_path, view) == delivered(tmp_path, view) == rows
    store = store_of(tmp_path / "sales.checkpoint")
    assert latest(store).totals["rows"] == {"sales": 11}
    # A column is removed again, with the view that reads it.
    write(tmp_path, 3, [{"id": 11, "shop": 5, "amount": 1, "city": "Rome", "_multiplicity": 1}], provider)
    script(tmp_path, "id BIGINT, shop INT, amount BIGINT", by_shop, provider)
    run(spark, tmp_path)
    assert held(tmp_path, "by_shop") == delivered(tmp_path, "by_shop") == expected["by_shop"] + Counter([(5, 1, 1)])
    # Another SELECT: rows delivered for the old one are withdrawn, also those of a view over it.
    views = {"by_shop": f"{by_shop['by_shop']} HAVING COUNT(*) > 1", "total": "SELECT SUM(n) AS n FROM by_shop"}
    script(tmp_path, "id BIGINT, shop INT, amount BIGINT", views, provider)
    run(spark, tmp_path)
    assert held(tmp_path, "total") == delivered(tmp_path, "total") == Counter([(9,)])
    views["by_shop"] = by_shop["by_shop"].replace("GROUP", "WHERE amount < 8 GROUP")
    script(tmp_path, "id BIGINT, shop INT, amount BIGINT", views, provider)
    write(tmp_path, 4, [{"id": 12, "shop": 7, "amount": 3, "city": "Rome", "_multiplicity": 1}], provider)
    run(spark, tmp_path)
    found = Counter([(0, 9, 3), (1, 8, 2), (2, 7, 2), (5, 1, 1), (7, 3, 1)])
    assert held(tmp_path, "by_shop") == delivered(tmp_path, "by_shop") == found
    assert held(tmp_path, "total") == delivered(tmp_path, "total") == Counter([(9,)])
    script(tmp_path, "id BIGINT, shop STRING, amount BIGINT", by_shop, provider)
    with pytest.raises(CheckpointError, match="column shop was INT, and STRING does not hold all of its values"):
        run(spark, tmp_path)
