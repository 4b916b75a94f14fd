"""Printing escapes the control characters of values and names, and loses no other character."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from freshviews.cli.main import app
from freshviews.printable import cell, json_line, printable
from freshviews.spark.state.stores.addresses import store_of
from tests.cli.sales import commit, sale

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\x7f\r\n\t\u202eb[/]ä日"
SHOWN = r"a\x1b]0;title\x07\x1b[2J\x9b31m\x7f\r\n\t\u202eb[/]ä日"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that control a terminal, except line feeds."""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    commit(tmp_path / "shop.checkpoint", None, [sale(1, HOSTILE), sale(2, None)])
    (tmp_path / "shop.sql").write_text("-- in the checkpoint\n")
    return tmp_path / "shop.sql"


def test_values_in_a_printed_table_are_escaped(script: Path) -> None:
    result = run("query", script, "SELECT part, n FROM by_part")
    assert result.exit_code == 0, result.output
    assert not OBEYED.search(result.stdout)
    assert sorted(line.split() for line in result.stdout.splitlines()) == [["NULL", "1"], [SHOWN, "1"], ["part", "n"]]


def test_values_in_json_are_escaped_and_read_back_unchanged(script: Path) -> None:
    result = run("query", script, "SELECT part FROM by_part WHERE part IS NOT NULL", "--json")
    assert not OBEYED.search(result.stdout) and "ä日" in result.stdout
    assert json.loads(result.stdout) == {"part": HOSTILE}


def test_names_of_columns_are_escaped(script: Path) -> None:
    result = run("query", script, "SELECT n AS `\x1b[31mred` FROM by_part")
    assert result.exit_code == 0, result.output
    assert not OBEYED.search(result.stdout) and result.stdout.splitlines()[0].split() == [r"\x1b[31mred"]


def test_the_status_and_its_last_error_are_escaped(script: Path) -> None:
    store_of(script.with_suffix(".checkpoint")).write("error", f"the sink says {HOSTILE}".encode())
    result = run("status", script)
    assert result.exit_code == 0, result.output
    assert not OBEYED.search(result.stdout.replace("\t", "")) and r"last error: the sink says a\x1b]0" in result.stdout


def test_names_printed_by_check_and_explain_are_escaped(tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text("CREATE TABLE t (a INT);\nCREATE MATERIALIZED VIEW `v\x1b[2J` AS SELECT a FROM t")
    result = run("check", script)
    assert r"v\x1b[2J" in result.output and not OBEYED.search(result.output)
    result = run("explain", script)
    assert not OBEYED.search(result.output)
    script.write_text("CREATE TABLE t (a INT);\nCREATE MATERIALIZED VIEW v AS SELECT `b\x1b[2J` FROM t")
    result = run("check", script)
    assert result.exit_code == 1 and r"b\x1b[2J" in result.output and not OBEYED.search(result.output)


def test_letters_of_every_alphabet_are_printed_unchanged() -> None:
    text = "emoji 👩‍👩‍👧, עברית, \u3000wide, C:\\new"
    assert printable(text) == cell(text) == text and json.loads(json_line({"a": text})) == {"a": text}
    assert printable("a\tb\nc\x00") == "a\tb\nc\\x00" and cell("a\tb\nc\ud800") == r"a\tb\nc\ud800"
