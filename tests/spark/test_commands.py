"""``freshviews run``, ``status`` and ``query`` from the user's side."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.errors import SqlError
from freshviews.spark import Pipeline
from freshviews.spark.reading.contents import latest
from freshviews.spark.reading.select import select as evaluated
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault, command_of, descendants, environment, gone, kill
from tests.spark.shop import Shop, delivered
from tests.spark.test_java import fake

pytestmark = [pytest.mark.spark, pytest.mark.full]

COMMAND = [sys.executable, "-m", "freshviews.cli"]
SECONDS = 120
CTRL_C = b"\x03"


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = environment() | variables
    return subprocess.run([*COMMAND, *words], cwd=folder, env=given, capture_output=True, text=True, timeout=SECONDS)


class Terminal:
    """A command at a terminal: its output, and key presses."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process = process
        self._screen = screen
        self.shown = b""

    def press(self, key: bytes) -> None:
        os.write(self._screen, key)

    def until(self, condition: Callable[[], object]) -> None:
        """Read until a condition holds, or the command has ended."""
        end = time.time() + SECONDS
        while not condition():
            assert time.time() < end, self.shown.decode()
            ended = self.process.poll() is not None
            while select.select([self._screen], [], [], 0.05)[0]:
                try:
                    self.shown += os.read(self._screen, 65536)
                except OSError:
                    break  # the last process of the terminal has gone
            if ended:
                return

    def wait(self) -> int:
        self.until(lambda: False)
        return self.process.wait()

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.shown.decode())


@contextmanager
def terminal(folder: Path, *words: str, fault: Fault | None = None) -> Iterator[Terminal]:
    screen, inside = pty.openpty()

    def own() -> None:
        # So that a key is a signal to all processes of the terminal, including Java.
        os.setsid()
        fcntl.ioctl(inside, termios.TIOCSCTTY, 0)

    given = environment(fault) | {"TERM": "xterm", "COLUMNS": "150", "LINES": "40"}
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=folder, env=given, stdin=inside, stdout=inside, stderr=inside, preexec_fn=own
    )
    os.close(inside)
    try:
        yield Terminal(process, screen)
    finally:
        left = descendants(process.pid)
        process.kill()
        process.wait()
        for one in gone(left, 10):
            kill(one)
        os.close(screen)


def version(folder: Path) -> int:
    return max((int(one.stem) for one in (folder / "shop.checkpoint" / "manifest").glob("[0-9]*.json")), default=0)


def test_after_ctrl_c_the_micro_batch_is_finished(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    fault = Fault(tmp_path / "fault")
    words = ("run", "shop.sql", "--master", "local[2]", "--cells", "1")
    with terminal(tmp_path, *words, fault=fault) as shell:
        shell.until(lambda: "version 2: 80 rows" in shell.text)
        fault.plan("log written", "pause", "worker", seconds=2)
        shop.write(orders=0)
        shell.until(lambda: fault.met)
        assert version(tmp_path) == 2
        below = descendants(shell.process.pid)
        shell.press(CTRL_C)
        assert shell.wait() == 0, shell.text
        assert not gone(below)
    assert "finishing the current version; press again to stop at once" in shell.text
    assert "stopped at version 3; resume with: freshviews run shop.sql --master local[2]" in shell.text
    for name in ("by_part", "all_of_it", "rows/s", "lag", "state", "changes out"):
        assert name in shell.text
    # The cursor is visible again, and no traceback is shown.
    assert shell.shown.rindex(b"\x1b[?25h") > shell.shown.rindex(b"\x1b[?25l")
    assert "Traceback" not in shell.text and "Exception" not in shell.text
    assert version(tmp_path) == 3
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()


@pytest.mark.large(2)
@pytest.mark.parametrize("who, step", [("worker", "log written"), ("driver", "sink half written")])
def test_ctrl_c_twice_stops_immediately(spark: Any, tmp_path: Path, who: str, step: str) -> None:
    shop = Shop(tmp_path)
    shop.write()
    fault = Fault(tmp_path / "fault")
    with terminal(tmp_path, "run", "shop.sql", "--master", "local[2]", fault=fault) as shell:
        shell.until(lambda: "version 2: 80 rows" in shell.text)
        fault.plan(step, "pause", who, seconds=100)
        shop.write(orders=0)
        shell.until(lambda: fault.met)
        below = descendants(shell.process.pid)
        shell.press(CTRL_C)
        shell.until(lambda: "press again to stop at once" in shell.text)
        pressed = time.time()
        shell.press(CTRL_C)
        assert shell.wait() == 130, shell.text
        assert not gone(below)
        assert time.time() - pressed < 60
    committed = 2 if who == "worker" else 3
    assert f"stopped immediately at version {committed}; resume with: freshviews run shop.sql" in shell.text
    assert shell.shown.rindex(b"\x1b[?25h") > shell.shown.rindex(b"\x1b[?25l")
    assert version(tmp_path) == committed
    Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True).awaitTermination()
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()


def test_each_version_writes_a_log_line(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    command = [*COMMAND, "run", "shop.sql", "--master", "local[2]"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            lines = [process.stdout.readline() for _ in range(2)]
            below = descendants(process.pid)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
            assert not gone(below)
            assert process.stdout.read() == ""
            error = process.stderr.read()
        finally:
            process.kill()
    shape = (
        r"version 2: 80 rows in \d+\.\d\d s(?: \(\d+ s compiling\))?, [\d,.]+ rows/s, lag [\d.]+ (s|min); "
        r"changes: by_part \d, all_of_it 2\n"
    )
    assert re.fullmatch(shape, lines[1]), lines
    stopped = r"stopped at version 2; resume with: freshviews run shop\.sql --master local\[2\]"
    stages = r"starting Spark\nSpark has started in \d+ s; making by_part, all_of_it\nreading orders, items\n"
    error = error.replace("compiling the functions of the views, once per machine\n", "", 1)
    # No other output: Java's start-up messages are hidden.
    finishing = r"\nfinishing the current version; press again to stop at once\n"
    assert re.fullmatch(stages + finishing + stopped + r"\n", error), error
    assert re.match(r"version 1: the views are made in \d+\.\d\d s", lines[0]), lines


def test_a_signal_before_the_stream_runs_ends_the_command_immediately(tmp_path: Path) -> None:
    Shop(tmp_path).write()
    command = [*COMMAND, "run", "shop.sql", "--master", "local[2]"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            end = time.monotonic() + SECONDS
            while not (below := descendants(process.pid)) or not any("java" in command_of(one) for one in below):
                assert time.monotonic() < end and process.poll() is None
                time.sleep(0.05)
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 0 and time.monotonic() - sent < 10
            assert process.stderr is not None
            resume = "resume with: freshviews run shop.sql --master local[2]"
            assert process.stderr.read() == f"starting Spark\n\nstopped immediately at version 0; {resume}\n"
            assert not gone(below)
        finally:
            process.kill()


@pytest.mark.parametrize(("sql", "word"), [("DROP TABLE v", "DROP"), ("", "an empty text"), ("-- a\n(use x", "USE")])
def test_a_statement_other_than_select_is_refused_without_spark(tmp_path: Path, sql: str, word: str) -> None:
    with pytest.raises(SqlError, match=f"a SELECT over the views is accepted, not {word}"):
        evaluated(tmp_path, sql, on_spark=True)
    with pytest.raises(SqlError):
        evaluated(tmp_path, sql)


def test_status_and_query_print_the_last_version_as_json(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    with subprocess.Popen(
        [*COMMAND, "run", "shop.sql", "--json", "--master", "local[2]"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            seen = [json.loads(process.stdout.readline()), json.loads(process.stdout.readline())]
            written = time.time()
            shop.write(orders=0)
            seen.append(json.loads(process.stdout.readline()))
            assert [line["version"] for line in seen] == [1, 2, 3]
            assert seen[2]["rows"] == {"items": 60}
            # From the time of the file to that of the version, which includes the micro-batch.
            assert seen[2]["seconds"] <= seen[2]["lag"] <= time.time() - written + 1
            found = json.loads(run(tmp_path, "status", "shop.sql", "--json").stdout)
            assert (found["version"], found["running"], found["error"]) == (3, True, None)
            assert found["waiting"] == {"orders": 0, "items": 0}
            asked = run(tmp_path, "query", "shop.sql", "SELECT * FROM by_part", "--json")
            assert Counter(tuple(json.loads(line).values()) for line in asked.stdout.splitlines()) == shop.by_part()
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.wait(180) == 0
            assert "stopped at version 3; resume with: freshviews run shop.sql" in process.stderr.read()
        finally:
            process.kill()
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()
    shop.write()
    found = json.loads(run(tmp_path, "status", "shop.sql", "--json").stdout)
    assert (found["version"], found["delivered"], found["running"]) == (3, 3, False)
    orders = found["tables"]["orders"]
    assert (orders["rows"], orders["bad"], found["error"]) == (20, 0, None) and orders["bytes"] > 0
    assert found["waiting"] == {"orders": 1, "items": 1}
    told = run(tmp_path, "status", "shop.sql").stdout
    assert "waiting files: 1 of orders, 1 of items" in told
    asked = run(tmp_path, "query", "shop.sql", "SELECT * FROM by_prt")
    assert asked.returncode == 1 and "by_prt" in asked.stderr and len(asked.stderr.splitlines()) < 8
    assert "did you mean by_part?" in asked.stderr and "at org.apache" not in asked.stderr
    assert "Traceback" not in asked.stderr


def test_an_unknown_source_gives_one_message(tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text("CREATE STREAMING TABLE t (a INT)\n  USING cvs OPTIONS (path 'in');\n")
    done = run(tmp_path, "run", "bad.sql", "--once")
    assert done.returncode == 1
    assert re.search(r"^bad\.sql: table t: cvs cannot be read: .*cvs", done.stderr, re.MULTILINE)
    assert "\tat " not in done.stderr and "Traceback" not in done.stderr


def test_a_script_without_a_streaming_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.sql").write_text("-- nothing\n")
    done = run(tmp_path, "run", "empty.sql")
    assert done.returncode == 1
    assert done.stderr.startswith("empty.sql: the script has no streaming table; write CREATE STREAMING TABLE")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.sql"]


def test_an_error_in_the_script_is_shown_at_its_place_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text("CREATE STREAMING TABLE t (a INT)\n  USING csv OPTIONS (path 'nowhere');\n")
    done = run(tmp_path, "run", "bad.sql")
    assert done.returncode == 1
    assert done.stderr.startswith("bad.sql:2:27: table t: there is no folder")
    assert "^" in done.stderr.splitlines()[2]
    (tmp_path / "typo.sql").write_text("CREATE STREAMING TABEL t (a INT)\n  USING csv OPTIONS (path '.');\n")
    done = run(tmp_path, "run", "typo.sql")
    assert done.returncode == 1 and re.match(r"typo\.sql:1:\d+: ", done.stderr), done.stderr
    for words in (("run", "nowhere.sql"), ("status", "nowhere.sql"), ("run", "bad.sql", "--onec")):
        done = run(tmp_path, *words)
        assert done.returncode in (1, 2) and "Traceback" not in done.stderr and done.stderr, words


def test_status_reports_that_there_was_no_run(tmp_path: Path) -> None:
    Shop(tmp_path)
    done = run(tmp_path, "status", "shop.sql")
    assert done.returncode == 1 and "no version yet" in done.stderr


def test_environment_errors_are_printed_in_one_line(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    (tmp_path / "file").write_text("in the way")
    done = run(tmp_path, "run", "shop.sql", "--once", "--checkpoint", "file/ckpt")
    assert done.returncode == 1
    assert re.search(r"the checkpoint .*/file/ckpt cannot be written: Not a directory; .*--checkpoint", done.stderr)
    done = run(tmp_path, "run", "shop.sql", "--once", "--checkpoint", "gopher://host/ckpt")
    assert done.returncode == 1
    assert "addresses that begin with gopher: are not supported; accepted: a path" in done.stderr
    done = run(tmp_path, "run", "shop.sql", "--once", "--master", "lokal[2]")
    assert done.returncode == 1
    assert re.search(r"Spark does not start with the master lokal\[2\]: .*", done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    done = run(tmp_path, "run", "shop.sql", "--once", "--conf", "spark.driver.memory=1k")
    assert done.returncode == 1 and done.stdout == ""
    said = "Error occurred during initialization of VM / Too small maximum heap"
    assert f"\nSpark does not start: Java ended, and printed: {said}" in done.stderr, done.stderr
    home = fake(tmp_path / "java8", "1.8.0_412")
    done = run(tmp_path, "run", "shop.sql", "--once", JAVA_HOME=str(home))
    assert done.returncode == 1
    assert f"the Java of JAVA_HOME ({home}) is version 8, but Spark 4 runs on 17 to 21" in done.stderr, done.stderr
    with pytest.raises(Exception, match="no version yet"):
        latest(store_of(tmp_path / "shop.checkpoint"))
