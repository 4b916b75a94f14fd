"""Streaming SQL is parsed, and refused with its place, without Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from freshviews.catalog.row_keys import row_keys
from freshviews.cli.planned_script import plan_script
from freshviews.errors import SqlError
from freshviews.spark.connectors.declarations import remedy
from freshviews.spark.connectors.message_format import Written
from freshviews.spark.definition import catalog_of, views_of
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


def test_unknown_options_are_passed_to_spark(folder: Path) -> None:
    definition = read_script(TEXT, folder, {})
    (table,) = definition.tables
    assert table.options == {"path": str(folder / "in"), "header": "true", "sep": ";"}
    assert (table.changes, table.form_options, table.bad_rows) == ("upsert", {"order": "a"}, str(folder / "bad"))
    v, w = definition.views
    assert (v.provider, v.output, v.options) == ("parquet", "complete", {"path": str(folder / "out")})
    assert w.provider is None


def test_options_may_contain_environment_variables(folder: Path) -> None:
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
        ("CREATE STREAMING TABLE", "DROP TABLE", "DROP TABLE", "DROP is refused here"),
        ("header 'true'", "PATH 'in'", "PATH", "given twice"),
        ("changes 'upsert'", "chnges 'upsert'", "'upsert'", "unknown option chnges; did you mean changes?"),
        ("output 'complete'", "ouput 'complete'", "'complete'", "unknown option ouput; did you mean output?"),
        ("header 'true'", "header 'true', mode 'DropMalformed'", "'DropMalformed'", "set them aside with bad_rows"),
        ("header 'true'", "ignoreCorruptFiles 'true'", "'true'", "would be lost unnoticed; leave it out"),
        ("path 'in'", "path 'in/a.csv'", "'in/a.csv'", "a.csv is a file; a folder"),
    ],
)
def test_errors_in_scripts_have_their_line_and_column(folder: Path, old: str, new: str, at: str, message: str) -> None:
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


def test_settings_must_be_at_the_top_of_a_script(folder: Path) -> None:
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
        ("SET spark.ui.enabled;", r"line 1, column 1: SET must have the form"),
        ("SET = 3;", r"line 1, column 1: SET must have the form"),
        ("SET a = 1;\nSET a = 1;", r"line 2, column 1: a is set twice"),
        (TEXT.replace("\n", " ") + ";\nSET a = 1", r"line 2, column 1: SET must come before the first CREATE"),
        ("SET a = '${NONE}';", r"NONE is not set"),
    ],
)
def test_invalid_settings_are_refused(folder: Path, text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        read_script(text, folder, {})


def test_a_table_without_a_source_is_refused(folder: Path) -> None:
    with pytest.raises(SqlError, match="has no source"):
        read_script("CREATE TABLE t (a INT)", folder, {})


def test_the_check_and_explain_commands_also_read_streaming_scripts() -> None:
    planned = plan_script(TEXT)
    assert [one.view.name for one in planned.views] == ["v", "w"]


def test_option_values_may_be_punctuation(tmp_path: Path) -> None:
    options = "path '.', sep '-', quote ')', escape '(', comment '=', nullValue ','"
    (table,) = read_script(f"CREATE STREAMING TABLE t (a INT) USING csv OPTIONS ({options});", tmp_path).tables
    assert [table.options[name] for name in ("sep", "quote", "escape", "comment", "nullValue")] == list("-)(=,")


def test_the_sql_of_a_view_includes_its_plain_views(folder: Path) -> None:
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


KAFKA = """CREATE STREAMING TABLE t (a INT PRIMARY KEY, b STRING) USING kafka
  OPTIONS (kafka.bootstrap.servers 'x:1', subscribe 't', values 'json', changes 'upsert', from.a 'key');
CREATE MATERIALIZED VIEW v USING kafka OPTIONS (kafka.bootstrap.servers 'x:1', topic 'v', output 'upsert')
  AS SELECT a, b FROM t WHERE b > 'x';
CREATE MATERIALIZED VIEW w USING kafka OPTIONS (kafka.bootstrap.servers 'x:1', topic 'w', output 'changes')
  AS SELECT b FROM t
"""


def test_the_options_of_message_tables_and_views_are_read(tmp_path: Path) -> None:
    definition = read_script(KAFKA, tmp_path, {})
    (table,) = definition.tables
    assert table.options == {"kafka.bootstrap.servers": "x:1", "subscribe": "t"}
    assert table.message == {"values": "json", "from.a": "key"}
    assert table.form_options == {"op": "_op"}
    v, w = definition.views
    assert v.options == {"kafka.bootstrap.servers": "x:1", "topic": "v"}
    assert (v.output, v.written, w.output, w.written) == ("upsert", Written(("a",)), "changes", Written(()))


@pytest.mark.parametrize(
    "old, new, at, message",
    [
        ("subscribe 't', ", "", "USING kafka", "needs the option subscribe or subscribePattern or assign"),
        ("topic 'v', ", "", "USING kafka OPTIONS (kafka.bootstrap.servers 'x:1', output", "needs the option topic"),
        ("subscribe 't'", "subscribe 't', failOnDataLoss 'false'", "'false'", "would be lost unnoticed; leave it out"),
        ("'json'", "'jsn'", "'jsn'", "values must be json, csv, avro or text, not 'jsn'"),
        ("'json'", "'avro'", "'avro'", "needs values.schema"),
        ("'json'", "'avro', values.schema 'no.avsc'", "'no.avsc'", "cannot be read: No such file"),
        ("from.a 'key'", "from.c 'key'", "'key'", "from.c names no column of table t; its columns are a, b, _op"),
        ("from.a 'key'", "from.a 'key.id'", "'key.id'", "keys is not set; set keys 'json' to read fields"),
        ("from.a 'key'", "from.a 'value'", "'value'", "name a field, as in value.id"),
        ("from.a 'key'", "from.a 'value.'", "'value.'", "a path such as value.customer.id"),
        ("from.a 'key'", "from.a 'value.a[x]'", "'value.a[x]'", "a path such as value.customer.id"),
        ("from.a 'key'", "from.a 'headers'", "'headers'", "write headers.NAME"),
        ("from.a 'key'", "from.a 'offset.x'", "'offset.x'", "only value, key and headers have fields"),
        ("'json', changes 'upsert', from.a 'key'", "'csv', values.fields 'b'", "'b'", "values.fields has no field a"),
        ("values 'json', ", "values 'csv', op 'what', ", "'csv'", "needs values.fields here"),
        ("output 'upsert'", "output 'complete'", "'complete'", "output of kafka must be 'changes' or 'upsert'"),
        ("output 'upsert'", "output 'upsert', key 'b'", "'b'", "several rows of the view may have the same b"),
        ("output 'upsert'", "output 'upsert', key 'z'", "'z'", "the view has no column 'z'"),
        ("output 'changes'", "output 'upsert'", "'upsert')\n  AS SELECT b", "needs a view with a key"),
        ("output 'changes'", "keys 'text'", "'text')\n  AS SELECT b", "keys 'text' needs a key of one column"),
        ("output 'changes'", "values 'csv'", "'csv'", "values of a view must be 'json'"),
    ],
)
def test_wrong_options_of_messages_are_refused_at_their_place(
    tmp_path: Path, old: str, new: str, at: str, message: str
) -> None:
    text = KAFKA.replace(old, new, 1)
    with pytest.raises(SqlError, match=re.escape(message)) as found:
        read_script(text, tmp_path, {})
    start = text.index(at)
    line = text.count("\n", 0, start) + 1
    assert (found.value.line, found.value.column) == (line, start - (text.rfind("\n", 0, start) + 1) + 1)


@pytest.mark.parametrize(
    "select, keys",
    [
        ("a, b FROM t", [("a",)]),
        ("b, a AS id FROM t WHERE b > 'x'", [("id",)]),
        ("b FROM t", []),
        ("b, COUNT(*) AS n FROM t GROUP BY b HAVING COUNT(*) > 1", [("b",)]),
        ("COUNT(*) AS n FROM t GROUP BY b", []),
        ("COUNT(*) AS n FROM t", [()]),
        ("DISTINCT b FROM t", [("b",)]),
        ("a, b FROM t UNION ALL SELECT a, b FROM t", []),
        ("x.a, y.b FROM t x JOIN t y ON x.b = y.b", []),
        ("a, c FROM u", []),
        ("b, SUM(a) AS a FROM t GROUP BY ROLLUP (b)", []),
        ("a, b FROM t ORDER BY b LIMIT 3", [("a",)]),
        # What the keys of several relations imply.
        ("a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.c = t.a)", [("a",)]),
        ("a, b FROM t WHERE a IN (SELECT c FROM u)", [("a",)]),
        ("b, (SELECT COUNT(*) FROM u WHERE u.c = t.a) AS n, a FROM t", [("a",)]),
        ("x.a, y.b FROM t x JOIN t y ON x.b = y.b AND y.a = x.a", [("a",)]),
        ("x.a, y.a AS c, y.b FROM t x JOIN t y ON x.b = y.b", [("a", "c")]),
        ("x.a, y.a AS c FROM t x, t y", [("a", "c")]),
        ("o.k, o.cust, c.b FROM o JOIN t c ON o.cust = c.a", [("k",)]),
        ("o.k, o.cust, c.b FROM o LEFT JOIN t c ON o.cust = c.a", [("k",)]),
        ("c.a, o.k FROM t c LEFT JOIN o ON o.cust = c.a", [("a", "k")]),
        ("c.b, o.k FROM t c LEFT JOIN o ON o.cust = c.a", []),
        ("c.a, o.c FROM t c LEFT JOIN u o ON o.c = c.a", []),
    ],
)
def test_keys_of_views_are_derived_from_keys_of_tables(select: str, keys: list[tuple[str, ...]]) -> None:
    catalog = catalog_of(
        "CREATE TABLE t (a INT PRIMARY KEY, b STRING); CREATE TABLE u (a INT UNIQUE, c INT);"
        "CREATE TABLE o (k INT PRIMARY KEY, cust INT);"
        f"CREATE MATERIALIZED VIEW v AS SELECT {select}; CREATE MATERIALIZED VIEW over AS SELECT * FROM v"
    )
    view, over = catalog.view("v"), catalog.view("over")
    assert view is not None and over is not None
    assert row_keys(view, catalog) == keys
    assert row_keys(over, catalog) == keys


@pytest.mark.parametrize(
    "message, providers, package",
    [
        ("[DATA_SOURCE_NOT_FOUND] delta", ["csv", "delta"], "io.delta:delta-spark_{}_2.13"),
        ("[DATA_SOURCE_NOT_FOUND] iceberg", ["iceberg"], "org.apache.iceberg:iceberg-spark-runtime-{}_2.13"),
        ("[DATA_SOURCE_NOT_FOUND] kafka", ["kafka"], "org.apache.spark:spark-sql-kafka-0-10_2.13"),
    ],
)
def test_the_error_names_the_package_of_the_installed_spark(message: str, providers: list[str], package: str) -> None:
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    named = package.format(pyspark.__version__.rpartition(".")[0])
    expected = f"; start with --packages {named}:VERSION, if there is one"
    assert remedy(message, providers) == expected
    assert remedy("a file is gone", providers) == ""
