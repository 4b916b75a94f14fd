"""``freshviews run`` says what it does before rows arrive, and how long its versions take."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest

from freshviews.cli import progress
from freshviews.cli.progress import Progress, Watching, headline
from freshviews.cli.source import Source
from freshviews.cli.streaming_script import definition_in
from freshviews.spark.phases import Phases
from freshviews.spark.state.manifest import Manifest
from tests.terminals import on_terminal

SCRIPT = """CREATE STREAMING TABLE items (part STRING, qty INT) USING csv OPTIONS (path 'in');
CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part"""
DEFINITION = definition_in(Source("shop.sql", SCRIPT), "shop.sql", folders=False)


def version(number: int, rows: int, seconds: float) -> Manifest:
    changed = {"by_part": 2} if rows else {}
    return Manifest(number, 0, None, time.time(), {}, {"by_part": ""}, rows={"items": rows} if rows else {},
                    changed=changed, seconds=seconds, arrived=None)  # fmt: skip


@pytest.mark.parametrize(
    ("made", "compiling", "expected"),
    [
        (version(1, 0, 105.77), 80.4, "version 1: the views are made in 105.77 s (80 s compiling); no rows yet"),
        (version(1, 0, 3.0), 0.2, "version 1: the views are made in 3.00 s; no rows yet"),
        (version(4, 0, 3.0), 0.0, "version 4: no rows, 3.00 s"),
        (version(2, 5, 20.0), 15.0, "version 2: 5 rows in 20.00 s (15 s compiling), 0.2 rows/s, lag "),
        (version(2, 5000, 2.0), 0.0, "version 2: 5,000 rows in 2.00 s, 2,500 rows/s, lag "),
    ],
)
def test_the_line_of_a_version_shows_rows_seconds_and_rate(
    made: Manifest, compiling: float, expected: str
) -> None:
    assert re.sub(r"lag .*", "lag ", headline(made, compiling)) == expected


def test_stages_are_printed_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "cache_folder", lambda: tmp_path)
    phases = Phases()
    with Progress(DEFINITION, False, phases) as shown:
        shown.stage("starting Spark")
        shown.stage("making by_part")
        (tmp_path / "find.nbi").touch()
        assert shown._watching is not None and shown._watching.found.wait(30)
        phases.add("compile", 7.0)
        shown.version(version(1, 0, 9.0))
        shown.started()
        shown.version(version(2, 4, 2.0))
    out, error = capsys.readouterr()
    assert error.splitlines() == [
        "starting Spark", "making by_part", "compiling the functions of the views, once per machine", "reading items",
    ]  # fmt: skip
    first, second = out.splitlines()
    assert first == "version 1: the views are made in 9.00 s (7 s compiling); no rows yet"
    assert second.startswith("version 2: 4 rows in 2.00 s, 2.0 rows/s") and second.endswith("; changes: by_part 2")


def test_a_resumed_run_prints_the_tables_that_it_reads(
    capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(DEFINITION, False, Phases()) as shown:
        shown.stage("going on from version 7")
        shown.started()
        shown.version(version(8, 3, 1.0))
    out, error = capsys.readouterr()
    assert error == "going on from version 7\nreading items\n" and out.startswith("version 8: 3 rows in 1.00 s, 3.0 ")


def test_the_option_json_prints_only_lines_of_versions(
    capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(DEFINITION, True, Phases()) as shown:
        shown.stage("starting Spark")
        shown.version(version(1, 0, 9.0))
    out, error = capsys.readouterr()
    assert error == "starting Spark\nreading items\n" and out.startswith('{"version": 1') and out.count("\n") == 1


def test_functions_compiled_before_the_run_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "cache_folder", lambda: tmp_path)
    (tmp_path / "old.nbi").touch()
    watching = Watching()
    (tmp_path / "new.nbi").touch()
    (tmp_path / "new.code").touch()
    assert watching.found.wait(30) and watching.functions == 1
    watching.end()


ON_TERMINAL = """
import time
from freshviews.cli.progress import Progress
from freshviews.spark.phases import Phases
from tests.cli.test_progress import DEFINITION, version
with Progress(DEFINITION, False, Phases()) as shown:
    shown.stage("starting Spark")
    time.sleep(0.1)
    shown.stage("Spark has started in 3 s; making by_part")
    shown.version(version(1, 0, 9.0))
    shown.started()
    shown.version(version(2, 4, 2.0))
"""


def test_the_status_line_shows_stages_then_the_last_version() -> None:
    path = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", ON_TERMINAL]
    code, written = on_terminal(command, {**os.environ, "PYTHONPATH": path, "TERM": "xterm"}, output=True)
    titles = list(dict.fromkeys(re.findall(r"starting Spark|making by_part|version \d: [^;,]*|reading items", written)))
    assert code == 0, written
    assert titles == [
        "starting Spark", "making by_part", "version 1: the views are made in 9.00 s", "reading items",
        "version 2: 4 rows in 2.00 s",
    ]  # fmt: skip


STAGES = """
import time
from freshviews.cli.progress import Stages
from freshviews.printable import say
with Stages(False) as shown:
    shown.stage("starting Spark")
    time.sleep(0.1)
    say("orders: streaming table, updated by Spark")
    shown.stage("reading orders")
"""


def test_the_terminal_erases_the_stage_line_of_a_project_and_keeps_the_lines_of_its_tables() -> None:
    path = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", STAGES]
    code, written = on_terminal(command, {**os.environ, "PYTHONPATH": path, "TERM": "xterm"}, output=True)
    assert code == 0, written
    found = re.findall(r"starting Spark, 0 s|updated by Spark|reading orders, 0 s", written)
    assert [*dict.fromkeys(found)] == ["starting Spark, 0 s", "updated by Spark", "reading orders, 0 s"]
    last = written.rpartition("reading orders")[2]
    assert "\x1b[2K" in last and "updated by Spark" not in last
