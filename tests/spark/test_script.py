"""Streaming SQL is read, and refused at its place, before there is any Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshviews.cli.script import plan_script
from freshviews.errors import SqlError
from freshviews.spark.definition import views_of
from freshviews.spark.script import read_script

TEXT = """CREATE STREAMING TABLE t (a INT PRIMARY KEY, b STRING)
  USING csv OPTIONS (path 'in', header 'true', "sep" = ';', changes 'upsert', order 'a', bad_rows 'bad');
CREATE MATERIALIZED VIEW v USING parquet OPTIONS (path 'out', output 'complete') AS SELECT a FROM t;
CREATE MATERIALIZED VIEW w AS SELECT COUNT(*) AS n FROM v
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").touch()
    return tmp_path


def test_options_of_ours_are_taken_and_others_left_to_spark(folder: Path) -> None:
    definition = read_script(TEXT, folder, {})
    (table,) = definition.tables
    assert table.options == {"path": str(folder / "in"), "header": "true", "sep": ";"}
    assert (table.changes, table.form_options, table.bad_rows) == ("upsert", {"order": "a"}, str(folder / "bad"))
    v, w = definition.views
    assert (v.provider, v.output, v.options) == ("parquet", "complete", {"path": str(folder / "out")})
    assert w.provider is None


def test_variables_of_the_environment_stand_in_options(folder: Path) -> None:
    text = TEXT.replace("path 'in'", "path '${WHERE}'").replace("path 'out'", "path '${NOWHERE:-there}'")
    definition = read_script(text, folder, {"WHERE": "in"})
    assert definition.tables[0].options["path"] == str(folder / "in")
    assert definition.views[0].options["path"] == str(folder / "there")


@pytest.mark.parametrize(
    "old, new, at, message",
    [
        ("SELECT a FROM t", "SELECT c FROM t", "c FROM", "unknown column c"),
        ("path 'in'", "path '${NONE}'", "'${NONE}'", "NONE is not set"),
        ("path 'in'", "path 'nowhere'", "'nowhere'", "there is no folder"),
        ("path 'in', ", "", "USING csv", "needs OPTIONS (path"),
        ("'complete'", "'some'", "'some'", "'changes' or 'complete'"),
        ("header 'true'", "header", ', "sep"', "the value of option header"),
        (" PRIMARY KEY", "", "'upsert'", "need a PRIMARY KEY"),
        ("CREATE STREAMING TABLE", "DROP TABLE", "DROP TABLE", "DROP has no place here"),
        ("header 'true'", "PATH 'in'", "PATH", "given twice"),
        ("changes 'upsert'", "chnges 'upsert'", "'upsert'", "unknown option chnges; did you mean changes?"),
        ("output 'complete'", "ouput 'complete'", "'complete'", "unknown option ouput; did you mean output?"),
        ("path 'in'", "path 'in/a.csv'", "'in/a.csv'", "a.csv is a file; a folder"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(folder: Path, old: str, new: str, at: str, message: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new)
    with pytest.raises(SqlError) as caught:
        read_script(text, folder, {})
    assert message in str(caught.value)
    line = text.splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1 :].startswith(at)


SETTINGS = """-- of Spark; SET is no statement in here
SET spark.sql.shuffle.partitions = 8;
set spark.jars.packages=org.example:one_2.13:1.0-rc1,org.example:two:2;
SET spark.app.name = 'the ${NAME:-shop}';
"""


def test_settings_stand_at_the_top(folder: Path) -> None:
    assert read_script(SETTINGS + TEXT, folder, {}).settings == {
        "spark.sql.shuffle.partitions": "8",
        "spark.jars.packages": "org.example:one_2.13:1.0-rc1,org.example:two:2",
        "spark.app.name": "the shop",
    }
    assert [one.view.name for one in plan_script(SETTINGS + TEXT).views] == ["v", "w"]
    wrong = SETTINGS + TEXT.replace("SELECT a FROM t", "SELECT c FROM t")
    with pytest.raises(SqlError, match="unknown column c") as caught:
        read_script(wrong, folder, {})
    assert wrong.splitlines()[caught.value.line - 1][caught.value.column - 1 :].startswith("c FROM")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET spark.ui.enabled;", r"line 1, column 1: SET name = value is accepted"),
        ("SET = 3;", r"line 1, column 1: SET name = value is accepted"),
        ("SET a = 1;\nSET a = 1;", r"line 2, column 1: a is set twice"),
        (TEXT.replace("\n", " ") + ";\nSET a = 1", r"line 2, column 1: SET stands before the first CREATE"),
        ("SET a = '${NONE}';", r"NONE is not set"),
    ],
)
def test_settings_that_cannot_be_read_are_refused(folder: Path, text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        read_script(text, folder, {})


def test_a_table_without_a_source_is_refused(folder: Path) -> None:
    with pytest.raises(SqlError, match="has no source"):
        read_script("CREATE TABLE t (a INT)", folder, {})


def test_check_and_explain_read_streaming_scripts_too() -> None:
    planned = plan_script(TEXT)
    assert [one.view.name for one in planned.views] == ["v", "w"]


def test_values_that_look_like_marks_are_values(tmp_path: Path) -> None:
    options = "path '.', sep '-', quote ')', escape '(', comment '=', nullValue ','"
    (table,) = read_script(f"CREATE STREAMING TABLE t (a INT) USING csv OPTIONS ({options});", tmp_path).tables
    assert [table.options[name] for name in ("sep", "quote", "escape", "comment", "nullValue")] == list("-)(=,")


def test_plain_views_go_with_the_views_that_expand_them(folder: Path) -> None:
    script = read_script(
        "CREATE STREAMING TABLE t (a INT) USING rate;\n"
        "CREATE OR REPLACE VIEW p AS SELECT a + 1 AS b FROM t;\n"
        "CREATE VIEW q AS SELECT b FROM p;\n"
        "CREATE MATERIALIZED VIEW v AS SELECT b FROM q;\n"
        "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT b, b AS c FROM q;\n"
        "CREATE MATERIALIZED VIEW w AS SELECT a FROM t",
        folder,
    )
    assert [view.name for view in script.views] == ["v", "w"]
    made = script.views[0].sql
    assert made.startswith("CREATE VIEW IF NOT EXISTS p") and "IF NOT EXISTS q" in made
    assert "VIEW p" not in script.views[1].sql
    assert [c.name for c in views_of(script.script)["v"].columns] == ["b", "c"]
    with pytest.raises(SqlError, match="view p is not materialised, so it has no output"):
        read_script(
            "CREATE STREAMING TABLE t (a INT) USING rate;\nCREATE VIEW p USING console AS SELECT a FROM t", folder
        )
