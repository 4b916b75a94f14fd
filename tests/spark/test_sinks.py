"""Sinks deliver a version exactly once, also after failed tries."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.errors import SqlError
from freshviews.spark import Pipeline
from freshviews.spark import crash_points as steps
from freshviews.spark.definition import Definition, ViewSpec
from freshviews.spark.io.sinks import Due, SinkError, check_new, deliver, publish_bad
from freshviews.spark.state.runs import runs_of
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.shop import Shop, delivered

ROWS = pa.table(
    {
        "name": ["a", 'q"\\\n\x01 é', None],
        "n": pa.array([1, None, -3], pa.int32()),
        "price": pa.array([Decimal("1.20"), Decimal("-0.05"), None], pa.decimal128(9, 2)),
        "x": [1.5, float("nan"), float("-inf")],
        "good": [True, False, None],
        "_multiplicity": [1, -1, 2],
    }
)


def give(view: ViewSpec, rows: pa.Table = ROWS, version: int = 3, again: bool = False) -> None:
    no_session: Any = None
    deliver(no_session, view, rows, Due(version, again), None)


def sink(provider: str, folder: Path, output: str = "changes", **options: str) -> ViewSpec:
    return ViewSpec("v", "", provider, {"path": str(folder), **options}, output)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_json_has_an_object_per_row_and_loses_no_digits(tmp_path: Path) -> None:
    give(sink("json", tmp_path / "not" / "there"))
    (file,) = (tmp_path / "not" / "there").iterdir()
    assert file.name == "version-000000000003.json"
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["name"] for row in found] == ROWS["name"].to_pylist()
    assert [row["n"] for row in found] == [1, None, -3]
    assert [row["price"] for row in found] == ["1.20", "-0.05", None]
    assert [row["x"] for row in found] == [1.5, "NaN", "-Infinity"]
    assert [row["good"] for row in found] == [True, False, None]
    assert [(row["_multiplicity"], row["_version"]) for row in found] == [(1, 3), (-1, 3), (2, 3)]


def test_csv_is_read_back_unchanged(tmp_path: Path) -> None:
    give(sink("csv", tmp_path, sep=";"))
    with (tmp_path / "version-000000000003.csv").open(newline="") as file:
        found = list(csv.DictReader(file, delimiter=";"))
    assert [row["name"] for row in found] == ["a", 'q"\\\n\x01 é', ""]
    assert [row["price"] for row in found] == ["1.20", "-0.05", ""]
    assert [row["_version"] for row in found] == ["3", "3", "3"]
    give(sink("csv", tmp_path / "bare", header="false"))
    assert (tmp_path / "bare" / "version-000000000003.csv").read_text().startswith('"a",1,1.20,')


@pytest.mark.parametrize("provider", ["parquet", "json", "csv"])
def test_the_output_mode_complete_replaces_the_previous_file_of_contents(tmp_path: Path, provider: str) -> None:
    view = sink(provider, tmp_path, "complete")
    rows = ROWS.drop_columns(["_multiplicity"]).select(["n"])
    for version, part in ((1, rows), (2, rows.slice(0, 1))):
        give(view, part, version)
        assert names(tmp_path) == [f"contents.{provider}"]
    if provider == "parquet":
        assert pq.read_table(tmp_path / "contents.parquet").to_pylist() == [{"n": 1}]
    else:
        text = (tmp_path / f"contents.{provider}").read_text()
        assert text == ('{"n": 1}\n' if provider == "json" else '"n"\n1\n')


@pytest.mark.diagonal
@pytest.mark.parametrize("provider", ["parquet", "json", "csv"])
@pytest.mark.parametrize("output", ["changes", "complete"])
def test_a_version_delivered_twice_is_in_the_sink_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, output: str
) -> None:
    view = sink(provider, tmp_path, output)

    class Killed(BaseException):
        pass

    def die(step: str) -> None:
        if step == "sink half written":
            raise Killed

    # As a kill leaves it: nothing is cleaned up.
    with monkeypatch.context() as killed:
        killed.setattr(steps, "hook", die)
        killed.setattr(Path, "unlink", lambda *given, **options: None)
        with pytest.raises(Killed):
            give(view)
    assert len(names(tmp_path)) == 1 and names(tmp_path)[0].startswith(".")
    for _ in range(2):
        give(view)
        assert len(names(tmp_path)) == 1 and not names(tmp_path)[0].startswith(".")
    first = next(tmp_path.iterdir()).read_bytes()
    give(view)
    assert next(tmp_path.iterdir()).read_bytes() == first


def test_the_error_of_an_unwritable_folder_names_the_folder_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(SinkError, match=r"view v, version 3: .*out did not take it: .*delivered at the next start"):
        give(sink("json", tmp_path / "out"))
    with pytest.raises(SinkError, match=r"table t, version 3: .*rows set aside could not be written to .*out"):
        (tmp_path / "bad.json").write_text("{}\n")
        publish_bad(tmp_path / "bad.json", tmp_path / "out", "t", 3)


def test_the_console_marks_versions_that_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    view = ViewSpec("v", "", "console", {"numRows": "1"})
    give(view, ROWS.select(["n", "_multiplicity"]))
    give(view, ROWS.select(["n", "_multiplicity"]), again=True)
    block = "   n=1, _multiplicity=1, _version=3\n   and 2 more\n"
    expected = f"-- v, version 3: 3 rows\n{block}-- v, version 3 (perhaps shown before): 3 rows\n{block}"
    assert capsys.readouterr().out == expected


def test_a_folder_with_changes_of_another_view_is_refused(tmp_path: Path) -> None:
    view = sink("parquet", tmp_path / "out")
    definition = Definition(views=(view,))
    check_new(definition, ())
    give(view)
    check_new(definition, {"v"})
    with pytest.raises(SinkError, match=r"view v is new, but .*out has .*, such as version-0+3\.parquet"):
        check_new(definition, ())
    check_new(Definition(views=(sink("parquet", tmp_path / "out", "complete"),)), ())


def test_two_views_with_the_same_folder_are_refused(tmp_path: Path) -> None:
    definition = Definition().with_view(sink("parquet", tmp_path / "out"))
    other = ViewSpec("w", "", "csv", {"path": f"{tmp_path}/x/../out"})
    with pytest.raises(SqlError, match="views v and w both write to"):
        definition.with_view(other)


@pytest.mark.spark
@pytest.mark.full
def test_a_version_that_a_sink_refused_is_delivered_once_later(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    root = tmp_path / "shop.checkpoint"
    Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True).awaitTermination()
    by_part = tmp_path / "out" / "by_part"
    by_part.rename(tmp_path / "kept")
    by_part.write_text("in the way")
    shop.write()
    for _ in range(2):
        # The second try fails at its start, with the same version.
        with pytest.raises(SinkError, match=r"view by_part, version 3: .*by_part did not take it"):
            Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True).awaitTermination()
        assert (root / "delivered").read_text() == "2"
        # The next sink has the version all the same.
        total = json.loads((tmp_path / "out" / "all_of_it" / "contents.json").read_text())
        assert total["qty"] == sum(row[1] for row in shop.by_part())
        runs = runs_of(store_of(root))
        assert (runs.part, runs.have) == (3, ["all_of_it"])
        assert re.match(".*by_part did not take it: .*File exists|Not a directory", runs.refused["by_part"])
        assert "view by_part, version 3" in (root / "error").read_text()
    by_part.unlink()
    (tmp_path / "kept").rename(by_part)
    Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True).awaitTermination()
    assert delivered(by_part) == shop.by_part()
    assert (root / "delivered").read_text() == "3"
    assert runs_of(store_of(root)).refused == {}


@pytest.mark.spark
def test_a_sink_function_that_fails_gets_the_version_again(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"a": 1}\n')
    seen: list[tuple[int, list[int]]] = []

    def take(frame: Any, version: int) -> None:
        seen.append((version, sorted(row["a"] for row in frame.collect())))
        if len(seen) == 1:
            raise ValueError("no room at the inn")

    def start() -> None:
        p = Pipeline(spark, tmp_path / "ckpt")
        p.table("t", spark.readStream.schema("a int").json(str(tmp_path / "in")))
        p.view("v", "SELECT a FROM t", sink=take).start(once=True).awaitTermination()

    with pytest.raises(SinkError, match=r"view v, version 2: its function failed: ValueError: no room at the inn"):
        start()
    start()
    assert seen == [(2, [1]), (2, [1])]
    (tmp_path / "in" / "2.json").write_text('{"a": 5}\n')
    start()
    assert seen[2:] == [(3, [5])]
    assert Counter(a for _, rows in seen[1:] for a in rows) == {1: 1, 5: 1}
