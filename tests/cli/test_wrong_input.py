"""Each command refuses wrong input with one line on standard error and an exit code, without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from freshviews.cli import source
from freshviews.cli.main import app
from tests.cli.test_commands import run

pytestmark = pytest.mark.plain_python

FINE = "CREATE TABLE t (a INT, b INT NOT NULL); CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS s FROM t GROUP BY a"
COMMANDS: dict[str, list[str]] = {
    "check": [],
    "check --cells 2": [],
    "check --connect": [],
    "explain": [],
    "explain --cells 2": [],
    "advise --stream .": [],
    "status": [],
    "status --json": [],
    "query": ["SELECT 1"],
    "serve --port 0": [],
    "run": [],
}
SQL = "name a file with SQL"
UNREADABLE = {
    "missing.sql": f"missing.sql: no such file; {SQL}, or - for standard input",
    "folder.sql": f"folder.sql is a directory; {SQL}",
    "binary.sql": f"binary.sql: byte 3 is not UTF-8 text; {SQL}",
    "fine.sql/x": "fine.sql/x: cannot be read: Not a directory; make the file readable, or name another file with SQL",
    "": f"the name of the script is empty; {SQL}, or - for standard input",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fine.sql").write_text(FINE)
    (tmp_path / "folder.sql").mkdir()
    (tmp_path / "binary.sql").write_bytes(b"SQL\xff\0\x01")
    (tmp_path / "empty.sql").write_text("")
    (tmp_path / "comment.sql").write_text("-- nothing\n;;\n")
    (tmp_path / "tables.sql").write_text("CREATE TABLE t (a INT)")
    (tmp_path / "nul.sql").write_text("CREATE TABLE t (a INT);\nCREATE\0")
    return tmp_path


def refused(*arguments: str | Path, code: int = 1, text: str | None = None) -> str:
    """The line with which a command refuses its input."""
    result = run(*arguments, text=text)
    assert (result.exit_code, result.stdout) == (code, "")
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_error_of_an_unreadable_script_names_the_script_and_the_remedy(command: str, name: str) -> None:
    assert refused(*command.split(), name, *COMMANDS[command]) == UNREADABLE[name]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_error_names_a_script_without_read_permission(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", deny)
    line = refused(*command.split(), "fine.sql", *COMMANDS[command])
    assert line == "fine.sql: cannot be read: Permission denied; make the file readable, or name another file with SQL"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_script_name_with_a_nul_character_is_refused(command: str) -> None:
    line = refused(*command.split(), "a\0b.sql", *COMMANDS[command])
    assert r"a\x00b" in line and "NUL" in line and ("name a file with SQL" in line or "accepted" in line)


@pytest.mark.parametrize("name", ["empty.sql", "comment.sql"])
@pytest.mark.parametrize("command", [one for one in COMMANDS if not one.startswith("serve")])
def test_an_empty_script_is_refused(command: str, name: str) -> None:
    line = refused(*command.split(), name, *COMMANDS[command])
    if command.startswith(("status", "query")):
        assert line.endswith(f"{Path(name).stem}.checkpoint has no version yet; run the pipeline first")
    else:
        assert line.startswith(f"{name}: the script has no ") and "CREATE " in line


@pytest.mark.parametrize("command", ["explain", "explain --cells 2", "advise --stream ."])
def test_commands_that_show_views_refuse_a_script_without_views(command: str) -> None:
    wanted = "tables.sql: the script has no view; write CREATE MATERIALIZED VIEW name AS SELECT ..."
    assert refused(*command.split(), "tables.sql") == wanted


@pytest.mark.parametrize("command", ["check", "explain", "explain --cells 2", "advise --stream ."])
def test_a_nul_character_in_a_script_is_an_error_at_its_place(command: str) -> None:
    result = run(*command.split(), "nul.sql")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("nul.sql:2:") and "\0" not in result.stderr


@pytest.mark.parametrize("command", ["check", "explain", "explain --cells 2", "advise --stream .", "run"])
def test_empty_or_closed_standard_input_gives_one_message(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(*command.split(), "-", text="").startswith("<stdin>: " if command != "run" else "-: ")
    monkeypatch.setattr(source, "sys", SimpleNamespace(stdin=None))
    assert refused(*command.split(), "-") == "standard input is closed; name a file, or pipe the SQL in"


def test_a_process_with_closed_standard_input_prints_one_message() -> None:
    command = ["sh", "-c", 'exec "$0" -m freshviews.cli check - <&-', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "standard input is closed; name a file, or pipe the SQL in\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_command_line_prints_one_line_that_mentions_the_help(command: str) -> None:
    name = command.split()[0]
    arguments = [*command.split(), "fine.sql", *COMMANDS[command]]
    see = f"; see freshviews {name} --help"
    assert refused(*arguments, "--chekpoint", "x", code=2).startswith(f"freshviews {name}: no such option: --chekpoint")
    assert refused(*command.split(), code=2) == f"freshviews {name}: missing argument 'SCRIPT'{see}"
    assert "unexpected extra argument" in (line := refused(*arguments, "more", "words", code=2)) and line.endswith(see)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("chek fine.sql", ["freshviews: no such command 'chek'", "'check'"]),
        ("zzz", ["freshviews: no such command 'zzz'; see freshviews --help"]),
        ("--vers", ["freshviews: no such option: --vers", "--version"]),
        ("status fine.sql --jsn", ["freshviews status: no such option: --jsn", "--json"]),
        ("version x", ["freshviews version: got unexpected extra argument"]),
        ("warm x", ["freshviews warm: got unexpected extra argument"]),
        ("check fine.sql --cells x", ["freshviews check: invalid value for '--cells'"]),
        ("check fine.sql --cells 0", ["freshviews check: invalid value for '--cells'"]),
        ("serve fine.sql --port 99999", ["freshviews serve: invalid value for '--port'"]),
        ("serve fine.sql --port", ["freshviews serve: option '--port' requires an argument"]),
        ("advise fine.sql", ["freshviews advise: missing option '--stream'"]),
        ("query fine.sql", ["freshviews query: missing argument 'SELECT'"]),
    ],
)
def test_a_misspelt_command_or_option_gets_a_suggestion(arguments: str, parts: list[str]) -> None:
    line = refused(*arguments.split(), code=2)
    assert all(part in line for part in parts), line


@pytest.mark.parametrize("address", ["", "a\0b"])
@pytest.mark.parametrize("command", ["status", "query", "serve --port 0"])
def test_a_checkpoint_with_an_invalid_address_is_refused(command: str, address: str) -> None:
    line = refused(*command.split(), "fine.sql", *COMMANDS[command], "--checkpoint", address)
    assert line.startswith(f"checkpoint {address!r}: the address is empty or has a NUL character; accepted: a path")


STREAM = ("with _order and the columns of table t is accepted",)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (None, ["t.csv cannot be read: it is a directory; a csv file", *STREAM]),
        (b"", ["t.csv cannot be read: ", *STREAM]),
        (b"\x89PNG\r\n\x1a\n\0\0\xff\xfe,\n\0", ["t.csv", "_order"]),
        (b"a,b,_order\n1,2\n", ["t.csv cannot be read: ", *STREAM]),
        (b"a,b\n1,2\n", ["t.csv needs a column _order, a BIGINT with the position of each update"]),
        (b"a,b,_order\n1,2,x\n", ["t.csv, column _order: ", "the position of an update must be a BIGINT"]),
        (b"a,b,c,_order\n1,2,3,4\n", ["t.csv: table t: ", "column c"]),
        (b"a,_order\n1,4\n", ["t.csv: table t", "column b"]),
        (b"a,b,_order\nx,2,4\n", ["t.csv: table t", "column a"]),
        (b"a,b,_multiplicity,_order\n1,2,x,4\n", ["t.csv: ", "_multiplicity"]),
        (b"a,a,b,_order\n1,1,2,4\n", ["t.csv: ", "a"]),
    ],
)
def test_the_error_of_a_wrong_file_of_updates_names_the_file_and_the_remedy(
    folder: Path, data: bytes | None, parts: list[str]
) -> None:
    if data is None:
        (folder / "t.csv").mkdir()
    else:
        (folder / "t.csv").write_bytes(data)
    line = refused("advise", "fine.sql", "--stream", folder)
    assert line.startswith(str(folder)) and all(part in line for part in parts), line


@pytest.mark.parametrize("command", ["explain fine.sql", "--help"])
def test_a_command_with_a_closed_pipe_ends_silently(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "freshviews.cli", *command.split()], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupted_command_exits_with_130_and_prints_nothing(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(path: Path) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "read_bytes", interrupt)
    result = run(*command.split(), "fine.sql", *COMMANDS[command])
    assert (result.exit_code, result.output) == (130, "")


@pytest.mark.parametrize("command", ["check -", "serve fine.sql --port 0"])
def test_ctrl_c_ends_a_command_without_a_traceback(command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", f"print(flush=True); from freshviews.cli.main import app; app({command.split()})"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if command.startswith("serve"):
            assert process.stderr is not None
            assert "until Ctrl-C" in process.stderr.readline()
        else:
            stat = Path(f"/proc/{process.pid}/wchan")
            until = time.monotonic() + 60
            while stat.exists() and "pipe" not in stat.read_text() and time.monotonic() < until:
                time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors.strip()) == (0 if command.startswith("serve") else 130, "")


def test_freshviews_without_arguments_prints_the_help_and_fails() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 2
    assert "check" in result.output and "Error" not in result.output
