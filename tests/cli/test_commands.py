"""The command line, called as a user calls it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from freshviews.cli import main as commands
from freshviews.cli import planned_script, source
from freshviews.cli.main import app

SHOP = """CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust BIGINT, day DATE);
CREATE TABLE items (o_id BIGINT, part STRING, qty INT);
CREATE MATERIALIZED VIEW by_part AS
  SELECT part, SUM(qty) AS qty FROM orders JOIN items USING (o_id) GROUP BY part;
CREATE MATERIALIZED VIEW pairs AS
  SELECT o_id, cust FROM orders UNION ALL SELECT o_id, qty FROM items;
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sql"
    path.write_text(SHOP)
    return path


def run(*arguments: str | Path, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], input=text)


def test_check_prints_strategy_and_bounds_of_every_view(script: Path) -> None:
    result = run("check", script)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["view", "strategy", "update", "delay", "space"]
    assert lines[1][:2] == ["by_part", "first_order"]
    assert lines[2][:4] == ["pairs", "(1", "of", "2)"]
    assert result.stdout.splitlines()[-1] == f"{script}: 2 tables, 2 views, all views can be maintained"


def test_check_prints_where_each_view_runs_and_the_reason(script: Path) -> None:
    script.write_text(SHOP + "CREATE MATERIALIZED VIEW few AS SELECT part FROM by_part WHERE qty < 3;")
    result = run("check", script, "--cells", "8")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    begun = lines.index("in cells where why one engine")
    assert lines[begun + 1 : -2] == [
        "by_part 8 cells, merged in the second stage a group may have rows in several cells",
        "pairs (1 of 2) 8 cells",
        "pairs (2 of 2) 8 cells",
        "few second stage it reads only views, whose rows are in all cells",
        "table orders 8 cells",
        "table items 8 cells",
    ]
    assert "in cells" not in run("check", script, "--cells", "1").stdout


def test_check_prints_the_engine_that_maintains_a_window() -> None:
    windowed = "CREATE TABLE t (a INT) TBLPROPERTIES ('freshviews.window' = '10 rows')"
    result = run("check", "-", "--cells", "2", text=windowed)
    found = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "table t a window before 2 cells which rows leave depends on all rows" in found


def test_check_and_run_refuse_the_same_numbers_of_cells(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    (tmp_path / "in").mkdir()
    script = tmp_path / "shop.sql"
    script.write_text("CREATE STREAMING TABLE t (a INT) USING text OPTIONS (path 'in', changes 'debezium')")
    result = run("check", script, "--cells", "2")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "table t: rows of Debezium envelopes are split by the PRIMARY KEY of the table, but the table has none; use "
        "one cell, with --cells 1\n"
    )
    assert run("check", script, "--cells", "1").exit_code == 0


def test_check_prints_whether_workers_or_spark_read_each_table(tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    options = ["parquet OPTIONS (path 'in', maxFilesPerTrigger '1')", "parquet OPTIONS (path 'in', mergeSchema 'true')",
               "csv OPTIONS (path 'in')", "parquet OPTIONS (path 's3a://in')", "json OPTIONS (path 'in')",
               "json OPTIONS (path 'in', multiLine 'true')", "orc OPTIONS (path 'in')"]  # fmt: skip
    tables = "".join(f"CREATE STREAMING TABLE t{n} (k BIGINT) USING {one};" for n, one in enumerate(options))
    script.write_text(f"{tables}CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t0 JOIN t1 USING (k);")
    lines = [" ".join(line.split()) for line in run("check", script).stdout.splitlines()]
    assert lines[-10:-2] == [
        "table rows read by why Spark",
        "t0 workers, by Arrow",
        "t1 Spark it has the option mergeSchema",
        "t2 workers, by Arrow",
        "t3 Spark the files are at s3a://",
        "t4 workers, by Arrow",
        "t5 Spark it has the option multiLine",
        "t6 Spark the format is orc",
    ]


def test_check_reads_standard_input(script: Path) -> None:
    result = run("check", "-", text="CREATE TABLE t (a INT)")
    assert (result.exit_code, result.stdout) == (0, "-: 1 table, 0 views, all views can be maintained\n")


def test_an_error_is_printed_with_its_line_and_a_caret(script: Path) -> None:
    script.write_text(SHOP.replace("SUM(qty)", "SUM(qyt)"))
    for command in ("check", "explain"):
        result = run(command, script)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr.splitlines() == [
            f"{script}:4:20: unknown column qyt; did you mean qty?",
            "      SELECT part, SUM(qyt) AS qty FROM orders JOIN items USING (o_id) GROUP BY part;",
            "                       ^",
        ]


def test_the_caret_is_in_the_right_column_after_tabs(script: Path) -> None:
    script.write_text("CREATE TABLE t (a INT);\nCREATE MATERIALIZED VIEW v AS\n\tSELECT\tb FROM t")
    assert run("check", script).stderr.splitlines()[1:] == ["    \tSELECT\tb FROM t", "    \t      \t^"]


def test_text_that_is_not_sql_is_an_error_at_its_place(script: Path) -> None:
    script.write_text("CREATE TABLE t (a INT);\nCREATE CREATE x")
    result = run("check", script)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{script}:2:")


def test_an_unknown_strategy_is_an_error_at_the_place_of_its_view(script: Path) -> None:
    script.write_text(SHOP.replace("pairs AS", "pairs TBLPROPERTIES ('freshviews.strategy' = 'magic') AS"))
    result = run("check", script)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{script}:5:")
    assert "view_tree" in result.stderr


def test_explain_prints_the_program_of_every_view(script: Path) -> None:
    result = run("explain", script)
    assert result.exit_code == 0
    assert "view by_part(part STRING, qty BIGINT)" in result.stdout
    assert "on items(o_id, part) += m:" in result.stdout
    assert "view pairs(" in result.stdout


def test_explain_of_one_view_prints_no_other_view(script: Path) -> None:
    result = run("explain", script, "--view", "BY_PART")
    assert result.exit_code == 0
    assert "view by_part" in result.stdout
    assert "pairs" not in result.stdout


def test_explain_of_an_unknown_view_lists_the_known_views(script: Path) -> None:
    result = run("explain", script, "--view", "by_prat")
    assert (result.exit_code, result.stderr) == (1, "the script has no view by_prat; it has by_part, pairs\n")


def test_a_file_that_cannot_be_read_gives_one_message(tmp_path: Path) -> None:
    missing = tmp_path / "missing.sql"
    remedy = "name a file with SQL, or - for standard input"
    assert run("check", missing).stderr == f"{missing}: no such file; {remedy}\n"
    assert run("check", tmp_path).stderr == f"{tmp_path} is a directory; name a file with SQL\n"
    project = tmp_path / "spark-pipeline.yml"
    project.write_text("")
    assert run("check", tmp_path).stderr.endswith(f"; name a file with SQL, or the project {project}\n")
    binary = tmp_path / "binary.sql"
    binary.write_bytes(b"SELECT \xff")
    assert run("check", binary).stderr == f"{binary}: byte 7 is not UTF-8 text; name a file with SQL\n"
    crlf = tmp_path / "crlf.sql"
    crlf.write_bytes(b"CREATE TABLE t (\r\n  a INTT);")
    assert run("check", crlf).stderr.startswith(f"{crlf}:2:5: ")
    assert run("check", "").stderr.startswith("the name of the script is empty")


def test_unreadable_standard_input_gives_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["check", "-"], input=b"SELECT \xff")
    assert (result.exit_code, result.stderr) == (1, "<stdin>: byte 7 is not UTF-8 text; name a file with SQL\n")
    with pytest.raises(source.ReadError, match="standard input is closed"):
        monkeypatch.setattr(sys, "stdin", None)
        source.read("-")


def test_an_error_prints_only_the_wrong_part_of_a_long_line(script: Path) -> None:
    script.write_text(
        "CREATE TABLE t (a INT); /* " + "x" * 9999 + "*/ CREATE VIEW v AS SELECT zz FROM t -- " + "y" * 9999
    )
    lines = run("check", script).stderr.splitlines()
    assert [len(line) <= 500 for line in lines] == [True] * 3
    assert lines[1][lines[2].index("^") :].startswith("zz FROM t -- ")


@pytest.mark.parametrize("arguments", [("check",), ("explain",), ("version",)])
def test_output_that_cannot_be_written_gives_one_message(script: Path, arguments: tuple[str, ...]) -> None:
    given = [*arguments, *([] if arguments == ("version",) else [str(script)])]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "freshviews.cli", *given],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "the output cannot be read or written: No space left on device\n"


def test_an_internal_error_prints_no_traceback(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(planned_script, "plan_script", fail)
    result = run("check", script)
    assert result.exit_code == 1
    assert "ZeroDivisionError: inside" in result.stderr
    assert "Traceback" not in result.output
    monkeypatch.setenv(commands.TRACEBACK, "1")
    assert isinstance(run("check", script).exception, ZeroDivisionError)


def test_an_internal_error_prints_one_line(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError("Java has ended")

    for error, line in ((Gone(), "Gone"), (ValueError("[CLASS] why\n\tat org.apache"), "ValueError: [CLASS] why")):

        def fail(text: str, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(planned_script, "plan_script", fail)
        result = run("check", script)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"an error inside freshviews: {line}; ")
        assert len(result.stderr.splitlines()) == 1


def test_the_version_is_printed_by_command_and_by_option() -> None:
    assert run("version").stdout == run("--version").stdout
    assert run("version").stdout.startswith("freshviews")


def test_ctrl_c_prints_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "freshviews.cli", "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        # It waits for its input once it has been loaded.
        stat = Path(f"/proc/{process.pid}/wchan")
        until = time.monotonic() + 180
        while stat.exists() and "pipe" not in stat.read_text() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=180)
    finally:
        process.kill()
    assert process.returncode != 0
    assert b"Traceback" not in errors
