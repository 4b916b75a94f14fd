"""Projects of Spark's declarative pipelines: the tables are those that Spark's own command writes."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark.declarative.project import Project
from freshviews.spark.declarative.spec import ProjectError, read_spec
from freshviews.spark.driver import version
from tests.spark.faults import environment
from tests.spark.spark_pipelines import SparkPipelines, lacking, server

pytestmark = [pytest.mark.spark, pytest.mark.full]

SPEC = """\
name: shop
storage: file://{folder}/storage
database: {database}
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "1"
  {more}
"""

PYTHON = """\
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

FOLDER = Path(__file__).parents[1]
spark = SparkSession.active()

@dp.table(comment="each file is read once")
def arrived():
    reader = spark.readStream.format("csv").schema("o_id BIGINT, part STRING, qty INT, price DECIMAL(8, 2), day DATE")
    return reader.load(str(FOLDER / "in")).filter(F.col("qty") > 0)

@dp.materialized_view
def numbers():
    return spark.range(4)

@dp.materialized_view(name="odd_numbers")
def chosen():
    return SparkSession.active().sql("SELECT id FROM numbers WHERE id % 2 = 1")

for part in ("bolt", "nut"):
    @dp.temporary_view(name=f"only_{part}")
    def only():
        return spark.sql(f"SELECT * FROM orders WHERE part = '{part}'")

dp.create_sink("copies", "json", {"path": str(FOLDER / "copies")})

@dp.append_flow(target="copies", name="to_copies")
def copied():
    return spark.readStream.table("orders")
"""

SQL = """\
CREATE STREAMING TABLE orders (o_id BIGINT, part STRING, qty INT, price DECIMAL(8, 2), day DATE);
CREATE FLOW to_orders AS INSERT INTO orders BY NAME SELECT * FROM STREAM arrived;
CREATE TEMPORARY VIEW large AS SELECT * FROM orders WHERE qty > 2;
-- the sum; of all parts
CREATE MATERIALIZED VIEW by_part COMMENT 'sums; of parts' AS
  SELECT part, SUM(qty) AS qty, SUM(qty * price) AS total, COUNT(*) AS n FROM {database}.orders GROUP BY part;
CREATE MATERIALIZED VIEW shares AS
  WITH best AS (SELECT part, MAX(price) AS price FROM large GROUP BY part)
  SELECT b.part, b.qty, best.price FROM spark_catalog.{database}.by_part AS b JOIN best ON b.part = best.part;
CREATE MATERIALIZED VIEW large_by_day PARTITIONED BY (day) AS
  SELECT COUNT(DISTINCT part) AS parts, large.day FROM large GROUP BY large.day;
CREATE MATERIALIZED VIEW both AS SELECT part, o_id FROM only_bolt UNION ALL SELECT part, o_id FROM only_nut;
"""

TABLES = ("arrived", "orders", "numbers", "odd_numbers", "by_part", "shares", "large_by_day", "both")
FIRST = "1,bolt,3,1.50,2026-01-01\n2,nut,4,0.25,2026-01-01\n3,bolt,5,2.00,2026-01-02\n4,nut,0,9.00,2026-01-02\n"
SECOND = "5,cog,7,3.00,2026-01-02\n6,bolt,1,1.75,2026-01-03\n"
THIRD = "7,nut,9,0.50,2026-01-03\n"


def write(folder: Path, sql: str = SQL, python: str = "", more: str = "", database: str = "default") -> Path:
    """Write a project; returns its specification."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "in").mkdir()
    (folder / "in" / "1.csv").write_text(FIRST)
    (folder / "transformations" / "views.sql").write_text(sql.format(database=database))
    if python:
        (folder / "transformations" / "sources.py").write_text(python)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(SPEC.format(folder=folder, database=database, more=more))
    return spec


@pytest.fixture
def database(spark: Any, tmp_path: Path) -> Iterator[str]:
    """A database of its own in the session's catalog."""
    name = f"project_{abs(hash(tmp_path))}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{tmp_path / 'warehouse'}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


def run(spark: Any, spec: Path, *, refresh: str = "", full: str = "", full_all: bool = False) -> dict[str, str]:
    """Run a project; returns by what each table was updated."""
    project = Project.open(spark, read_spec(str(spec)))
    done: dict[str, str] = {}
    chosen = project.graph.selection([*filter(None, [refresh])], [*filter(None, [full])], full_all)
    project.run(chosen, lambda one, how: done.update({one.name: how}))
    return done


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture(scope="module")
def spark_pipelines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkPipelines]:
    if lacking():
        pytest.skip(f"spark-pipelines needs {', '.join(lacking())}; pip install 'pyspark[connect]' pyyaml")
    with server(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.mark.long("seven runs each of Spark's command and of ours")
def test_tables_of_a_project_equal_the_tables_of_spark(
    spark: Any, tmp_path: Path, database: str, spark_pipelines: SparkPipelines
) -> None:
    ours = write(tmp_path / "ours", python=PYTHON, database=database)
    theirs = write(tmp_path / "theirs", python=PYTHON)
    steps: list[tuple[dict[str, str], str, bool]] = [
        ({}, "", False),
        ({"2.csv": SECOND}, "", False),
        ({"3.csv": THIRD}, "by_part", False),
        ({}, "arrived,orders", False),
        ({}, "shares,both", False),
        ({"4.csv": THIRD}, "", True),
        ({}, "", False),
    ]
    for number, (files, refresh, full_all) in enumerate(steps):
        for name, text in files.items():
            for spec in (ours, theirs):
                (spec.parent / "in" / name).write_text(text)
        options = [f"--refresh={refresh}"] * bool(refresh) + ["--full-refresh-all"] * full_all
        done = spark_pipelines.run(theirs, *options)
        assert done.returncode == 0, done.stderr
        project = Project.open(spark, read_spec(str(ours)))
        chosen = project.graph.selection([*filter(None, refresh.split(","))], [], full_all)
        project.run(chosen, lambda one, how: None)
        for table in TABLES:
            found = rows(spark.table(f"{database}.{table}"))
            expected = rows(spark.read.parquet(str(spark_pipelines.table(table))))
            assert found == expected, (number, table)
        copies = [rows(spark.read.json(str(spec.parent / "copies"))) for spec in (ours, theirs)]
        assert copies[0] == copies[1], number


SOURCE = PYTHON.partition("@dp.materialized_view")[0]
COUNTED = "CREATE MATERIALIZED VIEW counted AS SELECT part, COUNT(*) AS n FROM arrived GROUP BY part;\n"
MOST = "CREATE MATERIALIZED VIEW most AS SELECT MAX(n) AS n FROM counted;\n"
LISTED = "CREATE MATERIALIZED VIEW listed AS\n  SELECT part, collect_list(qty) AS q FROM arrived GROUP BY part;\n"


@pytest.mark.long("seven runs")
def test_each_refresh_updates_the_tables_that_it_names(spark: Any, tmp_path: Path, database: str) -> None:
    spec = write(tmp_path / "project", COUNTED + MOST, SOURCE, database=database)

    def tables() -> list[list[tuple[Any, ...]]]:
        return [rows(spark.table(f"{database}.{name}")) for name in ("counted", "most")]

    run(spark, spec)
    (spec.parent / "in" / "2.csv").write_text(SECOND)
    assert run(spark, spec, refresh="arrived") == {"arrived": "updated by Spark"}
    assert tables() == [[("bolt", 2), ("nut", 1)], [(2,)]]
    assert run(spark, spec, refresh=f"{database}.counted") == {"counted": "maintained"}
    assert tables() == [[("bolt", 3), ("cog", 1), ("nut", 1)], [(2,)]]
    assert run(spark, spec)["counted"] == "unchanged"
    (spec.parent / "in" / "1.csv").unlink()
    assert run(spark, spec, full="arrived") == {"arrived": "updated by Spark"}
    assert run(spark, spec)["most"] == "maintained"
    assert tables() == [[("bolt", 1), ("cog", 1)], [(1,)]]
    spark.sql(f"DROP TABLE {database}.counted")
    wider = COUNTED.replace("n FROM", "n, SUM(qty) AS q FROM")
    (spec.parent / "transformations" / "views.sql").write_text(wider + MOST)
    assert run(spark, spec)["counted"] == "maintained"
    assert tables() == [[("bolt", 1, 1), ("cog", 1, 7)], [(1,)]]


def test_a_view_over_the_clock_uses_the_time_of_each_run(
    spark: Any, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = "CREATE MATERIALIZED VIEW due AS SELECT part, qty FROM arrived WHERE day <= current_date() AND day < now();\n"
    spec = write(tmp_path / "project", due + COUNTED, SOURCE, database=database)
    done = []
    for hour in (12, 30, 60):
        time = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=hour)
        monkeypatch.setattr(version, "machine_time", lambda time=time: int(time.timestamp()) * 1_000_000)
        made = run(spark, spec)
        done.append((made["due"], made["counted"], rows(spark.table(f"{database}.due"))))
    first = [("bolt", 3), ("nut", 4)]
    assert done == [
        ("maintained", "maintained", first),
        ("maintained", "unchanged", [first[0], ("bolt", 5), first[1]]),  # no row arrives, and a day begins
        ("unchanged", "unchanged", [first[0], ("bolt", 5), first[1]]),
    ]


@pytest.mark.parametrize(
    "refresh, full, full_all, message",
    [
        ("nothing", "", False, "the project has no table nothing; it has arrived, counted"),
        ("counted", "counted", False, "counted is in --refresh and in --full-refresh; name the table in one"),
        ("counted", "", True, "--full-refresh-all resets every table; leave --refresh out"),
    ],
)
def test_wrong_names_of_tables_are_refused(
    refresh: str, full: str, full_all: bool, message: str, spark: Any, tmp_path: Path, database: str
) -> None:
    spec = write(tmp_path / "project", COUNTED, SOURCE, database=database)
    with pytest.raises(ProjectError, match=message):
        run(spark, spec, refresh=refresh, full=full, full_all=full_all)


def test_unsupported_views_are_refused_or_left_to_spark(spark: Any, tmp_path: Path, database: str) -> None:
    over = "CREATE MATERIALIZED VIEW lists AS SELECT COUNT(*) AS n FROM listed;\n"
    late = "CREATE MATERIALIZED VIEW numbers AS SELECT sort_array(collect_set(n)) AS x FROM counted;\n"
    sql = COUNTED + LISTED + over + late
    spec = write(tmp_path / "refused", sql, SOURCE, database=database)
    with pytest.raises(ProjectError) as found:
        run(spark, spec)
    first, _, remedy = str(found.value).splitlines()
    place = f"{spec.parent}/transformations/views.sql:3:16"
    assert first.startswith(f"{place}: materialized view listed: aggregate function collect_list")
    assert remedy.endswith("if the configuration has freshviews.unsupported: recompute")
    spec = write(tmp_path / "taken", sql, SOURCE, "freshviews.unsupported: recompute", database)
    done = run(spark, spec)
    assert [done[name] for name in ("counted", "lists")] == ["maintained"] * 2
    assert [done[name] for name in ("listed", "numbers")] == ["updated by Spark"] * 2
    assert rows(spark.table(f"{database}.lists")) == [(2,)]
    assert rows(spark.table(f"{database}.numbers")) == [([1, 2],)]


VIEW = "@dp.materialized_view\ndef v():\n    "


@pytest.mark.parametrize(
    "python, sql, message",
    [
        (
            VIEW + "return spark.table('arrived').filter('qty > 1').groupBy('part').agg(F.sum('qty').alias('q'))",
            "",
            "sources.py:15: v: its function returns spark.table.*"
            r"SELECT part, sum\(qty\) AS q FROM arrived WHERE qty > 1 GROUP BY part",
        ),
        (VIEW + "return 1 if spark.table('arrived').count() > 1 else 2", "", "v: its function reads rows, which"),
        (VIEW + "return 1 / 0", "", "sources.py:17: v: its function fails: ZeroDivisionError: .*; correct the file"),
        (VIEW.replace("()", "(a)") + "return 1", "", "sources.py:15: v: its function fails: TypeError"),
        (VIEW + "return spark.read.format('csvv').load('x')", "", "sources.py:15: v: .DATA_SOURCE_NOT_FOUND.*csvv"),
        (VIEW + "return None", "", "v: its function returns NoneType, not a DataFrame; write the query in SQL"),
        ("import nothing_there", "", "sources.py:15: ModuleNotFoundError: .*; correct the file"),
        ("def f(:", "", "sources.py:15: SyntaxError"),
        ("raise SystemExit(3)", "", "sources.py:15: SystemExit"),
        ("", "SET a = b;\n\nCREATE MATERIALIZED VIEW v AS\n SELEC 1", "views.sql:4:2: .PARSE_SYNTAX_ERROR.*42601$"),
        ("", "SELECT 1 AS a;\nCREATE MATERIALIZED VIEW v AS SELECT 1 AS a",
         "views.sql: .*Unsupported plan.*; CREATE STREAMING TABLE, CREATE FLOW, .* and SET are accepted"),
        (VIEW + "return spark.range(2)", "\nCREATE MATERIALIZED VIEW v AS SELECT 1 AS a",
         "sources.py:15, .*views.sql:2: .*DUPLICATE_IDENTIFIERS"),
        ("", "CREATE MATERIALIZED VIEW v AS SELECT * FROM w;\nCREATE MATERIALIZED VIEW w AS SELECT * FROM v",
         "views.sql:1, .*views.sql:2: .*Circular dependencies"),
        ("", "\nCREATE MATERIALIZED VIEW v AS SELECT * FROM STREAM arrived", "views.sql:2: .*defined by a batch"),
        ("", "-- v\n CREATE MATERIALIZED VIEW v AS\n  SELECT nope FROM arrived", "views.sql:3:10: .*nope"),
        ("", "CREATE MATERIALIZED VIEW u AS SELECT 1 AS a; /* ; */ CREATE MATERIALIZED VIEW v AS SELECT nope FROM u",
         "views.sql:1:91: .*nope"),
        ("", "CREATE MATERIALIZED VIEW v AS SELECT * FROM nowhere", "views.sql:1:45: .*nowhere"),
        ("", "CREATE STREAMING TABLE s", "views.sql:1: .*does not have any defined flows"),
        (
            "",
            "CREATE MATERIALIZED VIEW v AS SELECT part FROM arrived;"
            "CREATE STREAMING TABLE s AS SELECT * FROM STREAM v",
            "views.sql:1: materialized view v: a stream reads this view, .*, read the streaming tables",
        ),
        (
            "",
            "SET spark.sql.ansi.enabled = false; CREATE MATERIALIZED VIEW v AS SELECT part FROM arrived",
            "materialized view v: spark.sql.ansi.enabled is false, .*; leave the setting out",
        ),
    ],
)  # fmt: skip
def test_wrong_definitions_are_refused_with_place_and_remedy(
    python: str, sql: str, message: str, spark: Any, tmp_path: Path, database: str
) -> None:
    spec = write(tmp_path / "project", sql, SOURCE + python + "\n", database=database)
    with pytest.raises(ProjectError, match=message):
        Project.open(spark, read_spec(str(spec)))


def test_tables_outside_the_project_are_compared_with_their_previous_contents(
    spark: Any, tmp_path: Path, database: str
) -> None:
    prices = f"{database}.prices"
    spark.sql(f"CREATE TABLE {prices} (part STRING, price INT, tags ARRAY<STRING>) USING parquet")
    spark.sql(f"INSERT INTO {prices} VALUES ('bolt', 10, array('a')), ('nut', 20, NULL)")
    sql = "CREATE MATERIALIZED VIEW priced AS SELECT p.price, a.qty FROM prices p JOIN arrived a ON p.part = a.part"
    spec = write(tmp_path / "project", sql, SOURCE, database=database)
    run(spark, spec)
    assert rows(spark.table(f"{database}.priced")) == [(10, 3), (10, 5), (20, 4)]
    spark.sql(f"INSERT OVERWRITE {prices} VALUES ('bolt', 11, NULL), ('cog', 30, NULL)")
    (spec.parent / "in" / "2.csv").write_text(SECOND)
    run(spark, spec)
    assert rows(spark.table(f"{database}.priced")) == [(11, 1), (11, 3), (11, 5), (30, 7)]


TWO = """\
dp.create_sink("copies", "json", {"path": str(FOLDER / "copies")})
for number in (1, 2):
    @dp.append_flow(target="copies", name=f"copy_{number}")
    def copied(number=number):
        return spark.readStream.table(f"arrived")
"""
FLOW = "CREATE FLOW {name} AS INSERT INTO orders BY NAME SELECT part FROM STREAM arrived;\n"
ORDERS = "CREATE STREAMING TABLE orders (part STRING);\n"


@pytest.mark.long("three runs")
def test_a_warning_names_flows_with_lost_rows(spark: Any, tmp_path: Path, database: str) -> None:
    first, second = (FLOW.format(name=name) for name in ("first", "second"))
    spec = write(tmp_path / "project", ORDERS + first, SOURCE, database=database)
    sql, python = (spec.parent / "transformations" / name for name in ("views.sql", "sources.py"))

    def warnings(full: str = "") -> list[str]:
        project = Project.open(spark, read_spec(str(spec)))
        return project.lost_rows(project.graph.selection([], [*filter(None, [full])], False))

    assert warnings() == []
    run(spark, spec)
    assert warnings() == []
    sql.write_text(ORDERS + second)
    assert warnings() == [
        f"{sql}:1: streaming table orders: the log of its files has version 0 of another flow, or of this one before a "
        "reset, and Spark leaves out the rows of flow second up to that version; --full-refresh orders recomputes it"
    ]
    assert warnings("orders") == []
    (spec.parent / "in" / "2.csv").write_text(SECOND)
    run(spark, spec)
    assert spark.table(f"{database}.orders").count() == 3
    run(spark, spec, full="orders")
    assert spark.table(f"{database}.orders").count() == 5
    assert warnings() == []
    sql.write_text(ORDERS + first + second)
    python.write_text(SOURCE + TWO)
    table, sink = warnings()
    assert table == (
        f"{sql}:1: streaming table orders: Spark leaves out rows of its flows first, second, which share the log of "
        "its files; write one flow with UNION ALL, then --full-refresh orders; or give each flow a streaming table of "
        "its own"
    )
    assert "sink copies: Spark leaves out rows of its flows copy_1, copy_2" in sink
    sql.write_text(ORDERS + first[:-2] + " UNION ALL SELECT part FROM STREAM arrived")
    python.write_text(SOURCE)
    assert run(spark, spec, full="orders") == {"orders": "updated by Spark"}
    assert spark.table(f"{database}.orders").count() == 10


@pytest.mark.long("Spark starts three times")
def test_the_init_command_writes_a_project_that_runs(tmp_path: Path) -> None:
    errors: list[str] = []

    def command(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "freshviews.cli", *words],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=900,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        errors[:] = done.stderr.splitlines()
        return done.stdout

    assert command("init", "shop") == "shop has a project; to run it: freshviews run shop/spark-pipeline.yml\n"
    first = command("run", "shop/spark-pipeline.yml")
    assert first.splitlines()[1:] == [
        "by_part: materialized view, maintained",
        "large_parts: materialized view, maintained",
    ]
    stages = [line for line in errors if not line.startswith(("Spark has started in", "compiling "))]
    assert stages == [
        "starting Spark", "Spark updates orders", "making by_part, large_parts", "reading orders", "writing by_part",
        "writing large_parts",
    ]  # fmt: skip
    (tmp_path / "shop" / "in" / "orders" / "2.csv").write_text("o_id,part,qty\n4,cog,1\n")
    select = ("query", "shop/spark-pipeline.yml", "SELECT * FROM by_part ORDER BY part", "--json")
    assert [json.loads(line) for line in command(*select).splitlines()] == [
        {"part": "bolt", "qty": 8, "n": 2}, {"part": "nut", "qty": 4, "n": 1},
    ]  # fmt: skip
    status = json.loads(command("status", "shop/spark-pipeline.yml", "--json"))
    assert (status["tables"]["orders"]["rows"], status["views"]["by_part"]["rows"]) == (3, 2)
    plans = command("explain", "shop/spark-pipeline.yml", "--view", "by_part")
    assert plans.startswith("view by_part(part STRING, qty BIGINT, n BIGINT)")
    second = [json.loads(line) for line in command("run", "shop/spark-pipeline.yml", "--json").splitlines()]
    assert [one["update"] for one in second] == ["updated by Spark", "maintained", "unchanged"]
    assert pq.read_table(tmp_path / "spark-warehouse" / "by_part").num_rows == 3
