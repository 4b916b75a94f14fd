"""Progress of long calls: which records a callable gets, and what a terminal, a notebook and the log show."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from freshviews import ArgumentError, Database, Progress, progress
from freshviews.engine.blocks import at_once
from tests.terminals import on_terminal

pytestmark = pytest.mark.plain_python

TABLES = "CREATE TABLE sales (region STRING, qty INT); CREATE TABLE names (region STRING PRIMARY KEY, name STRING)"
VIEW = "CREATE MATERIALIZED VIEW by_region AS SELECT region, SUM(qty) AS qty FROM sales GROUP BY region"
JOIN = """CREATE MATERIALIZED VIEW by_name AS
  SELECT name, SUM(qty) AS qty FROM sales JOIN names USING (region) GROUP BY name"""
ROWS = [(f"r{i % 7}", i % 5) for i in range(3000)]


@pytest.fixture
def records() -> list[Progress]:
    return []


@pytest.fixture
def db(records: list[Progress]) -> Iterator[Database]:
    with Database(progress=records.append) as made:
        made.execute(TABLES)
        yield made


def seen(records: list[Progress]) -> list[tuple[str, str, int, int | None]]:
    """The records of rows without those that come only after some time."""
    ends = [one for one in records if one.phase != "compile" and (one.done in (0, one.total))]
    return [(one.phase, one.name, one.done, one.total) for one in ends]


def test_an_insert_of_many_rows_reports_its_phases(
    db: Database, records: list[Progress]
) -> None:
    db.execute(VIEW)
    db.insert("sales", ROWS)
    expected = [("encode", "sales", 0, 3000), ("encode", "sales", 3000, 3000)]
    expected += [("update", "by_region", 0, 3000), ("update", "by_region", 3000, 3000)]
    assert seen(records) == expected
    assert all(one.seconds >= 0 and one.rate >= 0 for one in records)


def test_rows_of_an_iterable_are_counted_while_read(
    db: Database, records: list[Progress]
) -> None:
    db.insert("sales", (ROWS[i % 3000] for i in range(9000)))
    assert seen(records)[0] == ("read", "sales", 9000, 9000)
    records.clear()
    table = pa.table({"region": ["a"] * 5000, "qty": pa.array([1] * 5000, pa.int32())})
    db.insert("sales", table.to_reader(1000))
    assert seen(records)[0] == ("read", "sales", 5000, 5000)
    assert len(db.table("sales")) == 14000


def test_a_batch_reports_encoding_then_views(
    db: Database, records: list[Progress]
) -> None:
    db.execute(f"{VIEW}; {JOIN}")
    with db.batch() as batch:
        batch.insert("names", [("r1", "north")])
        batch.insert("sales", ROWS)
    phases = dict.fromkeys((one.phase, one.name) for one in records if one.phase != "compile")
    assert [*phases] == [("encode", "sales"), ("update", "by_region, by_name")]


def test_small_batches_report_no_progress(db: Database, records: list[Progress]) -> None:
    db.execute(VIEW)
    db.insert("sales", [("a", 1)])
    db.insert("sales", ROWS[:1000])
    db.insert("sales", iter(ROWS[:1000]))
    with db.batch() as batch:
        batch.insert("sales", ROWS[:1000])
    assert not records


def test_a_backfill_reports_the_rows_of_its_passes(db: Database, records: list[Progress]) -> None:
    db.insert("sales", ROWS)
    db.insert("names", [(f"r{i}", f"name {i % 3}") for i in range(7)])
    records.clear()
    db.execute(JOIN)
    found = seen(records)
    assert found[0] == ("backfill", "by_name", 0, 3007) and ("backfill", "by_name", 3007, 3007) in found
    between = [one.done for one in records if one.phase == "backfill"]
    assert between == sorted(between) and len(between) > 1
    assert sorted(db.view("by_name"))[0][0] == "name 0"


def test_a_backfill_by_one_join_reports_the_progress_of_the_join(
    db: Database, records: list[Progress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_once, "WORTH", 0.1)
    edges = [(a, (a * 7 + b) % 60) for a in range(60) for b in range(40)]
    db.execute("CREATE TABLE edges (a INT, b INT)")
    db.insert("edges", edges)
    records.clear()
    db.execute("""CREATE MATERIALIZED VIEW triangles TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS
      SELECT x.a, COUNT(*) AS n FROM edges x JOIN edges y ON x.b = y.a JOIN edges z ON y.b = z.a AND z.b = x.a
      GROUP BY x.a""")
    assert ("join", "triangles", 2400, 2400) in seen(records)


def test_opening_a_durable_database_reports_its_backfills(records: list[Progress], tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        db.execute(TABLES)
        db.insert("sales", ROWS)
        db.execute(VIEW)
    with Database(tmp_path, progress=records.append) as db:
        assert db.version == 1 and len(db.view("by_region")) == 7
    assert {(one.phase, one.name) for one in records if one.phase != "compile"} <= {("backfill", "by_region")}


def test_a_progress_callable_that_raises_is_not_called_again(
    caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def fail(made: Progress) -> None:
        calls.append(made)
        raise ValueError("the window is closed")

    with Database(progress=fail) as db:
        db.execute(f"{TABLES}; {VIEW}")
        assert db.insert("sales", ROWS) == 1 and len(db.table("sales")) == 3000
    assert len(calls) == 1 and "the window is closed" in caplog.text


def test_a_progress_callable_that_changes_the_database_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with Database(progress=lambda made: db.insert("names", [("x", "y")])) as db:
        db.execute(TABLES)
        db.insert("sales", ROWS)
        assert len(db.table("names")) == 0 and "in the middle of a change" in caplog.text


@pytest.mark.parametrize("wrong", ["yes", 3, [print]])
def test_an_invalid_value_of_the_progress_argument_is_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=r"progress must be None, True, False or a callable, not "):
        Database(progress=wrong)


@pytest.mark.parametrize(
    ("setting", "variable", "shows"),
    [(None, "", False), (None, "1", True), (None, "0", False), (True, "0", True), (False, "1", False)],
)
def test_the_environment_variable_sets_the_default_progress(
    setting: bool | None, variable: str, shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(progress.VARIABLE, variable)
    assert progress.Reporter(setting).shows_rows == shows


def test_a_printed_progress_record_shows_phase_amount_and_rate() -> None:
    made = Progress("compile", "by_region", 41, 96, 7.0)
    assert str(made) == "compiling by_region: 41 of 96 functions; once per machine"
    assert str(Progress("compile", "", 96, 96, 12.34)) == "compiled: 96 functions in 12.3 s"
    made = Progress("read", "sales", 2_000_000, None, 2.0)
    assert str(made) == "reading sales: 2,000,000 rows, 1,000,000 rows/s" and made.rate == 1_000_000
    made = Progress("backfill", "v", 500, 1000, 2.0)
    assert str(made) == "backfilling v: 500 of 1,000 rows, 250 rows/s"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are shown at once."""
    monkeypatch.setattr(progress, "_SOON", 0.0)
    monkeypatch.setattr(progress, "_OFTEN", 0.0)


def test_a_call_that_takes_more_than_a_second_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "freshviews")
    with progress.Reporter(True).rows("backfill", "v", 10) as task:
        task.step(4)
    assert not caplog.messages
    monkeypatch.setattr(progress, "_SOON", 0.01)
    monkeypatch.setattr(progress, "_OFTEN", 0.0)
    with progress.Reporter(True).rows("backfill", "v", 10) as task:
        time.sleep(0.02)
        task.step(4)
        task.step(5)
        time.sleep(0.02)
    first, last = caplog.messages
    assert first.startswith("backfilling v: 4 of 10 rows") and last.startswith("backfilled v: 10 rows in ")
    with progress.Reporter(None).rows("backfill", "v", 10):
        time.sleep(0.02)
    assert len(caplog.messages) == 2


ON_TERMINAL = """
import time
from freshviews import progress
progress._SOON = progress._OFTEN = 0.0
with progress.Reporter(True).rows("backfill", "by_" + "\\x1b[31mregion", 10) as task:
    task.step(5)
task = progress.Task(progress.Reporter(), "compile", "by_region", 4)
with task:
    task.step(1)
with progress.Reporter().rows("backfill", "silent", 10) as task:
    task.step(5)
"""


def _terminal(columns: int, **settings: str) -> str:
    code, written = on_terminal([sys.executable, "-c", ON_TERMINAL], {**os.environ, **settings}, columns=columns)
    assert code == 0, written
    return written


def test_a_terminal_shows_a_progress_bar() -> None:
    lines = _terminal(100, PYTHONIOENCODING="utf-8").split("\r")
    assert lines[1].startswith(f"{'━' * 10}{' ' * 10} backfilling by_\\x1b[31mregion: 5 of 10 rows, ")
    assert lines[2].startswith("backfilled by_\\x1b[31mregion: 10 rows in ") and "\n" in lines[3][:1]
    assert lines[4].startswith("━━━━━") and "compiling by_region: 1 of 4 functions; once per machine" in lines[4]
    assert lines[-1] == "\x1b[K" and "silent" not in "".join(lines)


def test_a_narrow_terminal_shows_one_line_without_a_progress_bar() -> None:
    for line in _terminal(40, PYTHONIOENCODING="ascii").split("\r"):
        assert len(line.removesuffix("\x1b[K").strip("\n")) < 40 and "━" not in line and "=" not in line


def test_the_environment_variable_switches_progress_lines_off() -> None:
    assert "compiling" not in _terminal(100, **{progress.VARIABLE: "0"})


def test_no_progress_line_is_printed_outside_a_terminal_or_notebook(
    soon: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.Reporter(True).rows("backfill", "v", 10) as task:
        task.step(5)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_progress_in_one_output_that_is_updated(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(bundle: dict[str, str], raw: bool, display_id: bool | None = None) -> Any:
        shown.append(("new " if display_id else "") + bundle["text/plain"].partition(",")[0])
        return SimpleNamespace(update=display)

    kernel: Callable[[], Any] = lambda: SimpleNamespace(kernel=object())  # noqa: E731
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=kernel))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    with progress.Reporter(True).rows("backfill", "v", 10) as task:
        task.step(5)
    assert [text.partition(" in ")[0] for text in shown] == ["new backfilling v: 5 of 10 rows", "backfilled v: 10 rows"]
