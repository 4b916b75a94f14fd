"""Columns with a DEFAULT that a source lacks, and columns added by ALTER TABLE."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews import Database
from freshviews.errors import SqlError
from freshviews.spark import Pipeline
from freshviews.spark.definition import tables_of, views_of
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.script import read_script
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store
from tests.spark.faults import Fault, environment
from tests.tiers import CHANGE

DEFAULTS = r"""name STRING NOT NULL DEFAULT 'it\'s \\ new', price DECIMAL(8, 2) DEFAULT 1.5, x FLOAT DEFAULT 'NaN',
    day DATE DEFAULT '2026-01-31', at TIMESTAMP DEFAULT '2026-01-02 03:04:05.000006', big BIGINT DEFAULT NULL"""
NEW = ("it's \\ new", 1.5, "nan", dt.date(2026, 1, 31), dt.datetime(2026, 1, 2, 3, 4, 5, 6), None)


def held(store: Store, view: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in contents(store, latest(store), view).to_pylist())


def comparable(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Replaces NaN, which is not equal to itself in Python."""
    return Counter({tuple("nan" if value != value else value for value in row): n for row, n in rows.items()})


def write(folder: Path, name: str, text: str) -> None:
    """Write a file that appears complete, and is newer than earlier ones."""
    folder.mkdir(exist_ok=True)
    (folder.parent / f"aside-{name}").write_text(text)
    (folder.parent / f"aside-{name}").rename(folder / name)
    os.utime(folder / name, (1_000_000_000 + len(list(folder.iterdir())),) * 2)


def lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.mark.spark
def test_columns_missing_from_a_source_get_their_default(spark: Any, tmp_path: Path) -> None:
    files = {
        "json": ("json OPTIONS (path 'json')", "0.json", lines({"id": 1}, {"id": 2, "price": None, "big": 3})),
        "texts": (
            "text OPTIONS (path 'texts', values 'json')",
            "0.txt",
            lines({"id": 1}, {"id": 2, "price": None, "big": 3}),
        ),
        "csv": ("csv OPTIONS (path 'csv', header 'true')", "0.csv", "id,price,big\n1,1.5,\n2,,3\n"),
    }
    script = ""
    for name, (using, file, text) in files.items():
        write(tmp_path / name, file, text)
        script += f"CREATE STREAMING TABLE t_{name} (id INT NOT NULL, {DEFAULTS}) USING {using};\n"
        script += f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM t_{name};\n"
    # The newer of two Parquet files has more columns.
    (tmp_path / "parquet").mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "parquet" / "0.parquet")
    rows = [{"id": 2, "price": None, "big": 3}]
    schema = pa.schema([("id", pa.int32()), ("price", pa.decimal128(8, 2)), ("big", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "parquet" / "1.parquet")
    os.utime(tmp_path / "parquet" / "0.parquet", (1_000_000_000,) * 2)
    script += f"CREATE STREAMING TABLE t_parquet (id INT NOT NULL, {DEFAULTS}) USING parquet OPTIONS (path 'parquet');"
    script += "CREATE MATERIALIZED VIEW parquet AS SELECT * FROM t_parquet"
    (tmp_path / "all.sql").write_text(script)
    Pipeline.from_script(spark, tmp_path / "all.sql", cells=2).start(once=True).awaitTermination()
    store = store_of(tmp_path / "all.checkpoint")
    expected = Counter([(1, *NEW), (2, NEW[0], None, *NEW[2:5], 3)])
    for view in (*files, "parquet"):
        assert comparable(held(store, view)) == expected, view


FIRST = """CREATE STREAMING TABLE sales (id BIGINT, shop INT, PRIMARY KEY (id)) USING json
  OPTIONS (path 'in', changes 'upsert', op 'op');
CREATE VIEW plain AS SELECT * FROM sales;
CREATE MATERIALIZED VIEW everything AS SELECT * FROM sales;
CREATE MATERIALIZED VIEW by_shop USING parquet OPTIONS (path 'out/by_shop') AS
  SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop;
"""
GREW = """ALTER TABLE sales ADD COLUMN city STRING NOT NULL DEFAULT 'Oslo';
ALTER TABLE sales ADD COLUMNS (amount DECIMAL(9, 2));
CREATE MATERIALIZED VIEW by_city AS SELECT city, SUM(amount) AS amount, COUNT(*) AS n FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW of_plain AS SELECT * FROM plain;
"""


def delivered(folder: Path, view: str) -> Counter[tuple[Any, ...]]:
    """The sum of the changes that a sink has."""
    found: Counter[tuple[Any, ...]] = Counter()
    for path in (folder / "out" / view).glob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            found[tuple(v for n, v in row.items() if not n.startswith("_"))] += row["_multiplicity"]
    return Counter({row: m for row, m in found.items() if m})


def run(spark: Any, folder: Path, script: str) -> None:
    (folder / "sales.sql").write_text(script)
    Pipeline.from_script(spark, folder / "sales.sql", cells=2).start(once=True).awaitTermination()


@pytest.mark.spark
def test_a_table_that_a_script_alters_keeps_its_stored_rows(spark: Any, tmp_path: Path, fault: Fault) -> None:
    store = store_of(tmp_path / "sales.checkpoint")
    write(tmp_path / "in", "1.json", lines(*({"op": "upsert", "id": i, "shop": i % 2} for i in range(6))))
    run(spark, tmp_path, FIRST)
    # Rows of the old form and of the new one; one updates the key of an earlier row, and one deletes a row.
    rows = [
        {"op": "upsert", "id": 0, "shop": 1},
        {"op": "upsert", "id": 7, "shop": 1, "city": "Rome", "amount": 2.5},
        {"op": "delete", "id": 1},
    ]
    write(tmp_path / "in", "2.json", lines(*rows))
    before = latest(store).version
    # The run ends while the rows are routed again: this has no effect.
    fault.plan("cells done", "raise", "driver")
    with pytest.raises(RuntimeError, match="a fault"):
        run(spark, tmp_path, FIRST + GREW)
    assert fault.met and latest(store).version == before
    fault.forget()
    run(spark, tmp_path, FIRST + GREW)
    assert held(store, "by_city") == Counter([("Oslo", None, 5), ("Rome", 2.5, 1)])
    assert held(store, "by_shop") == delivered(tmp_path, "by_shop") == Counter([(0, 2), (1, 4)])
    everything = Counter([(0, 1), (2, 0), (3, 1), (4, 0), (5, 1), (7, 1)])
    assert held(store, "everything") == held(store, "of_plain") == everything
    # A view that names the columns is added later, and backfilled in the background.
    later = "CREATE MATERIALIZED VIEW later AS SELECT * FROM sales WHERE city <> 'Oslo'"
    write(tmp_path / "in", "3.json", lines({"op": "upsert", "id": 8, "shop": 2, "city": "Bern"}))
    run(spark, tmp_path, FIRST + GREW + later)
    assert held(store, "later") == Counter([(7, 1, "Rome", 2.5), (8, 2, "Bern", None)])
    assert held(store, "everything") == everything + Counter([(8, 2)])
    with pytest.raises(CheckpointError, match=r"column more is new and NOT NULL.*give it a DEFAULT"):
        run(spark, tmp_path, FIRST + GREW + "ALTER TABLE sales ADD COLUMN more INT NOT NULL")
    # If the column is in CREATE TABLE, SELECT * includes it, but the changes in the sink lack it.
    changed = FIRST.replace("PRIMARY KEY", "more INT, PRIMARY KEY")
    with pytest.raises(CheckpointError, match=r"view everything has other columns.*ALTER TABLE"):
        run(spark, tmp_path, changed.replace("everything AS", "everything USING json OPTIONS (path 'out/e') AS"))
    run(spark, tmp_path, changed)
    assert held(store, "everything") == Counter((*row, None) for row in [*everything, (8, 2)])


def run_apart(folder: Path, script: str, fault: Fault | None = None) -> tuple[int, str]:
    """Run the pipeline in a process of its own; returns the exit code and the output."""
    (folder / "sales.sql").write_text(script)
    command = [sys.executable, "-m", "freshviews.cli", "run", "sales.sql", "--once", "--master", "local[2]"]
    done = subprocess.run(
        [*command, "--cells", "2"], cwd=folder, env=environment(fault), capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stderr


@pytest.mark.long("a pipeline starts anew after each kill, which takes seconds")
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.kills
def test_a_pipeline_killed_while_a_table_gets_columns_loses_nothing(tmp_path: Path) -> None:
    store, fault = store_of(tmp_path / "sales.checkpoint"), Fault(tmp_path / "fault")
    write(tmp_path / "in", "first.json", lines(*({"op": "upsert", "id": i, "shop": i % 2} for i in range(6))))
    code, error = run_apart(tmp_path, FIRST)
    assert code == 0, error
    script = FIRST
    steps = ("manifest in place",) if CHANGE else ("cells done", "manifest in place", "sink written")
    for number, step in enumerate(steps):
        # Each run would add a column, and accept a row that has it.
        script += f"ALTER TABLE sales ADD COLUMN c{number} INT NOT NULL DEFAULT {number};\n"
        row = {"op": "upsert", "id": 10 + number, "shop": 5, f"c{number}": 100}
        write(tmp_path / "in", f"{number}.json", lines(row))
        fault.plan(step, "kill", "driver")
        code, error = run_apart(tmp_path, script, fault)
        assert (code, fault.met) == (-signal.SIGKILL, True), (step, code, error)
    code, error = run_apart(tmp_path, script + "CREATE MATERIALIZED VIEW later AS SELECT * FROM sales")
    assert code == 0, error
    n = len(steps)
    new = [(10 + i, 5, *(100 if i == j else j for j in range(n))) for i in range(n)]
    assert held(store, "later") == Counter([*((i, i % 2, *range(n)) for i in range(6)), *new])
    assert held(store, "by_shop") == delivered(tmp_path, "by_shop") == Counter([(0, 3), (1, 3), (5, n)])


def test_views_defined_before_an_alter_table_statement_keep_their_columns(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    definition = read_script(FIRST + GREW, tmp_path)
    views = {view.name: [column.name for column in view.columns] for view in views_of(definition.script).values()}
    assert views["everything"] == views["of_plain"] == ["id", "shop"]
    assert list(tables_of(definition.table_statements["sales"])["sales"].columns)[2].name == "city"
    # Leaving out some views does not change the meaning of the others.
    assert definition.added(["by_city", "of_plain"]) == ("everything", "by_shop")
    left = views_of(definition.without(["everything", "by_shop"]).script)
    assert [column.name for column in left["of_plain"].columns] == ["id", "shop"]
    assert list(left) == ["by_city", "of_plain"]
    # A checkpoint's views keep their meaning, whatever the script says now.
    views_there = {view.name: view.sql for view in definition.views if view.name != "by_city"}
    other = read_script(FIRST.replace("SELECT *", "SELECT shop"), tmp_path)
    going_on = other.over(views_there, definition.script, {})
    assert views_of(going_on.script) == views_of(definition.script)
    sinks = {view.name: (view.sql, view.provider) for view in going_on.views}
    assert sinks["by_shop"] == (views_there["by_shop"], "parquet") and sinks["of_plain"][1] is None
    # A plain view that is created again below has the new columns.
    made = "CREATE OR REPLACE VIEW plain AS SELECT * FROM sales;\nCREATE MAT"
    again = read_script(FIRST + GREW.replace("CREATE MAT", made, 1), tmp_path)
    assert len(views_of(again.script)["of_plain"].columns) == 4


@pytest.mark.parametrize(
    ("statement", "place", "message"),
    [
        ("ALTER TABLE zz ADD COLUMN x INT", (7, 13), "unknown table zz"),
        ("ALTER TABLE sales ADD COLUMN shop INT", (7, 30), "table sales already has a column shop"),
        ("ALTER TABLE sales DROP COLUMN shop", (7, 1), "this ALTER TABLE"),
        ("ALTER VIEW by_shop SET TBLPROPERTIES ('a' = 'b')", (7, 1), "begins with ALTER is refused here"),
        ("ALTER TABLE", (7, 1), "begins with ALTER is refused here"),
    ],
)
def test_errors_in_alter_table_statements_have_their_line_and_column(
    tmp_path: Path, statement: str, place: tuple[int, int], message: str
) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(SqlError, match=message) as raised:
        read_script(FIRST + statement, tmp_path)
    assert (raised.value.line, raised.value.column) == place


def test_plain_views_keep_their_definition_after_alter_table(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    definition = read_script(
        "CREATE STREAMING TABLE t (a INT, b INT, PRIMARY KEY (a)) USING json OPTIONS (path 'in', changes 'upsert');"
        "CREATE VIEW P AS SELECT a AS x FROM t; CREATE OR REPLACE VIEW p AS SELECT b AS x FROM t;"
        "ALTER TABLE t ADD COLUMN c INT; CREATE MATERIALIZED VIEW m AS SELECT x FROM p;",
        tmp_path,
    )
    db = Database()
    db.execute(definition.script)
    db.insert("t", [(1, 2, 3)])
    assert list(db.view("m")) == [(2,)]
