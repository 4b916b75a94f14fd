"""Arrival times of input, and waiting files, from the notes that Spark writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from freshviews.spark.definition import TableSpec
from freshviews.spark.reading import arrival
from freshviews.spark.reading.arrival import arrived, waiting


def offsets(root: Path, batch: int, *sources: Any) -> None:
    lines = [
        "v1",
        json.dumps({"batchTimestampMs": 50_000 + batch}),
        *("-" if s is None else json.dumps(s) for s in sources),
    ]
    (root / "offsets").mkdir(parents=True, exist_ok=True)
    (root / "offsets" / str(batch)).write_text("\n".join(lines))


def entry(root: Path, source: int, name: str, *files: tuple[str, int, int]) -> None:
    folder = root / "sources" / str(source)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"path": f"file://{path}", "timestamp": time, "batchId": number}) for path, time, number in files
    ]
    (folder / name).write_text("\n".join(["v1", *lines]))


def test_the_arrival_time_of_a_micro_batch_is_the_time_of_its_newest_file(tmp_path: Path) -> None:
    offsets(tmp_path, 0, {"logOffset": 0}, {"logOffset": 0})
    offsets(tmp_path, 1, {"logOffset": 2}, {"logOffset": 0})
    entry(tmp_path, 0, "0", ("/a", 9_000, 0))
    entry(tmp_path, 0, "1", ("/b", 2_500, 1), ("/c", 2_000, 1))
    entry(tmp_path, 0, "2", ("/d", 1_000, 2))
    entry(tmp_path, 1, "0", ("/e", 8_000, 0))
    assert (arrived(tmp_path, 0), arrived(tmp_path, 1)) == (9.0, 2.5)


@pytest.mark.parametrize("tail", [1 << 20, 300])
def test_arrival_times_are_found_in_a_compacted_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: int) -> None:
    monkeypatch.setattr(arrival, "_TAIL", tail)
    offsets(tmp_path, 7, {"logOffset": 8})
    offsets(tmp_path, 8, {"logOffset": 10})
    entry(tmp_path, 0, "9.compact", *((f"/{n}", 1000 * n, n) for n in range(10)))
    entry(tmp_path, 0, "10", ("/10", 500, 10))
    assert arrived(tmp_path, 8) == 9.0


def test_a_micro_batch_without_files_arrives_when_planned(tmp_path: Path) -> None:
    offsets(tmp_path, 0, {"some": "offset"}, None, 5)
    assert arrived(tmp_path, 0) == 50.0
    assert arrived(tmp_path, 3) is None


def test_files_that_are_not_in_the_log_of_spark_count_as_waiting(tmp_path: Path) -> None:
    folder = tmp_path / "in put"
    folder.mkdir()
    for name in ("1.csv", "2.csv", "3.csv", "_hidden", ".other"):
        (folder / name).touch()
    place = str(folder).replace(" ", "%20")
    entry(tmp_path, 0, "9.compact", (f"{place}/1.csv", 1, 4))
    entry(tmp_path, 0, "10", (f"{place}/2.csv", 1, 10))
    table = TableSpec("t", "", "csv", {"path": str(folder)})
    assert waiting(tmp_path, 0, table) == 1
    assert waiting(tmp_path, 1, table) == 3
    assert waiting(tmp_path, 0, TableSpec("t", "", "csv", {"path": f"{folder}/*.csv"})) is None
    assert waiting(tmp_path, 0, TableSpec("t", "", "rate", {})) is None
