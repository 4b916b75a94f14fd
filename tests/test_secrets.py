"""No message shows a secret of a script, wherever the script is wrong; harmless options stay readable."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshviews.catalog.catalog import Catalog
from freshviews.cli.main import app
from freshviews.errors import FreshviewsError, SourceError, SqlError
from freshviews.secrets import is_secret, masked, starred
from freshviews.spark.definition import Definition, TableSpec
from freshviews.spark.script import read_script
from freshviews.spark.state.stores.addresses import store_of
from freshviews.sql import parse_script
from freshviews.sql.statements.streaming import split_streaming
from tests.cli.sales import commit, sale

SECRET = "hunter2x"
OPTIONS = (
    f"password '{SECRET}'",
    f'"password" "{SECRET}"',
    f"`sasl.password` = '{SECRET}'",
    f"'spark.secret' = '{SECRET}'",
    f"api_key '{SECRET}'",
    f"fs.s3a.access.key '{SECRET}'",
    f"authToken '{SECRET}'",
    f"credentials '{SECRET}'",
    f"'kafka.sasl.jaas.config' 'org.Plain required username=\"a\" password=\"{SECRET}\";'",
    f"url 'http://me:{SECRET}@host/path'",
    f"url 'jdbc:postgresql://db/shop?user=ann&password={SECRET}'",
    f"url 'jdbc:sqlserver://db;user=ann;password={SECRET}'",
    f"url 'jdbc:oracle:thin:ann/{SECRET}@db:1521/shop'",
    f"path 's3://key:se/{SECRET}@bucket/x'",
    f"password {SECRET}",
    f"password {SECRET}'",
    f"password '{SECRET}",
    f"password 'a' '{SECRET}'",
    f"password = {SECRET}",
)
SCRIPTS = (
    "CREATE STREAMING TABLE t (a INT) USING jdbc OPTIONS ({})",
    "CREATE STREAMING TABLE t (a INT) USING jdbc OPTIONS ({}, dbtable §)",
    "CREATE STREAMING TABLE t (a INT) USING jdbc OPTIONS (dbtable, {})",
    "CREATE STREAMING TABLE t (a INT) USING jdbc OPTIONS ({}",
    "CREATE STREAMING TABLE t (a INT) USING jdbc OPTIONS {}",
    "CREATE STREAMING TABLE t (a INT) USING jdbc OPTION ({})",
    "CREATE STREAMING TABEL t (a INT) USING jdbc OPTIONS ({})",
    "CREATE STREAMING TABLE t (a NIT) USING jdbc OPTIONS ({})",
    "CREATE STREAMING TABLE t (a INT) USING jdbc OPTIONS ({}) PARTITIONED BY (a)",
    "CREATE TABLE t (a INT) USING jdbc OPTIONS ({})",
    "CREATE TABLE t (a INT) TBLPROPERTIES ({})",
    "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v USING jdbc OPTIONS ({}) AS SELECT b FROM t",
    "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT OPTIONS({}) FROM t",
    "SELCT 1 FROM t OPTIONS ({})",
    "OPTIONS ({})",
)


def messages_of(script: str, folder: Path) -> list[str]:
    """The messages of everything that reads a script."""
    found = []
    for read in (
        split_streaming,
        lambda text: parse_script(text, Catalog()),
        lambda text: read_script(text, folder, {}, folders=True),
    ):
        try:
            read(script)
        except FreshviewsError as error:
            found += [str(error), repr(error)]
    return found


@pytest.mark.parametrize("option", OPTIONS)
def test_no_error_of_a_script_shows_a_secret(option: str, tmp_path: Path) -> None:
    said = 0
    for script in SCRIPTS:
        found = messages_of(script.format(option), tmp_path)
        assert not [one for one in found if SECRET in one], script
        said += len(found)
    assert said > len(SCRIPTS)


@pytest.mark.parametrize("option", OPTIONS)
def test_no_output_of_a_command_shows_a_secret(option: str) -> None:
    for script in SCRIPTS:
        shown = starred(script.format(option))
        assert SECRET not in shown and len(shown) == len(script.format(option))
    assert SECRET not in CliRunner().invoke(app, ["check", "-"], input=SCRIPTS[1].format(option)).output


HARMLESS = (
    "message.key.columns 'a, b'",
    "primaryKey 'o_id'",
    "key 'o_id'",
    "url 'http://host:8080/path'",
    "url 'http://host/path?mail=a@b'",
    "path 'abfss://box@mine.core/x'",
    "path 'four'",
    "key.deserializer = 'Bytes'",
    "partitionKey=day",
)


@pytest.mark.parametrize("option", HARMLESS)
def test_harmless_options_are_shown(option: str) -> None:
    assert str(SqlError(f"unknown option {option}", 1, 2)) == f"line 1, column 2: unknown option {option}"
    assert starred(f"OPTIONS ({option})") == f"OPTIONS ({option})"


def test_secret_options_are_recognised() -> None:
    spark = ("my.secret", "password", "TOKEN", "access.key", "accesskey")
    assert all(map(is_secret, (*spark, "pwd", "credentials", "api-key", "fs.azure.account.key.x", "sslkeystore.key")))
    assert not any(map(is_secret, ("key", "keys", "primary_key", "message.key.columns", "url", "passenger", "compass")))


def test_an_error_replaces_the_secrets_in_its_text_by_asterisks() -> None:
    error = SourceError(f"cannot connect: {{\"password\": \"{SECRET}\"}} to ftp://a:{SECRET}@host/x, pwd={SECRET}")
    assert str(error) == 'cannot connect: {"password": "***"} to ftp://***@host/x, pwd=***'
    assert masked("a password is needed; the token 'x'") == "a password is needed; the token '***'"


def test_a_printed_definition_has_no_secrets() -> None:
    table = TableSpec("t", "CREATE TABLE t (a INT)", "jdbc", {"password": SECRET})
    definition = Definition((table,), settings={"spark.hadoop.fs.s3a.secret.key": "longsecret"})
    assert SECRET not in repr(definition) and "longsecret" not in repr(definition)
    error = SourceError(f"Java says {SECRET} and longsecret")
    definition.hide_secrets(error)
    assert str(error) == "Java says <password> and <spark.hadoop.fs.s3a.secret.key>"


@pytest.mark.parametrize("chain", ["cause", "context", "deep"])
def test_a_traceback_hides_secrets_of_its_cause(chain: str) -> None:
    definition = Definition((TableSpec("t", "CREATE TABLE t (a INT)", "jdbc", {"password": SECRET}),))
    for text, hidden in ((f"Java has {SECRET}", True), ("no table t", False), (f"x://a:{SECRET}@b", True)):
        foreign = ValueError(text)
        error: BaseException = SourceError("table t: jdbc cannot be read")
        if chain == "deep":
            between = OSError("no answer")
            between.__context__ = foreign
            error.__cause__ = between
        elif chain == "cause":
            error.__cause__ = foreign
        else:
            error.__context__ = foreign
        definition.hide_secrets(error)
        assert (text not in "".join(traceback.format_exception(error))) == hidden


def test_no_command_shows_a_secret(tmp_path: Path) -> None:
    script = tmp_path / "shop.sql"
    script.write_text(
        f"SET spark.hadoop.fs.s3a.secret.key = {SECRET};\n"
        f"CREATE STREAMING TABLE t (a INT, b INT) USING jdbc OPTIONS (url 'jdbc:postgresql://u:{SECRET}@h/db', "
        f"password '{SECRET}', dbtable 'x', poll 'b');\n"
        f"CREATE MATERIALIZED VIEW v USING jdbc OPTIONS (url 'jdbc:postgresql://h/db', password '{SECRET}', "
        "dbtable 'y') AS SELECT a, SUM(b) AS s FROM t GROUP BY a;"
    )
    store = store_of(tmp_path / "shop.checkpoint")
    commit(tmp_path / "shop.checkpoint", None, [sale(1, "bolt")])
    store.write("error", masked(f"jdbc says password={SECRET}").encode())
    for command in ("check", "check --cells 2", "explain", "status", "status --json"):
        name, *options = command.split()
        result = CliRunner().invoke(app, [name, str(script), *options])
        assert result.exit_code == 0 and SECRET not in result.output, result.output
    assert "password=***" in CliRunner().invoke(app, ["status", str(script)]).output
    definition = read_script(script.read_text(), tmp_path, folders=False)
    assert SECRET not in definition.script + repr(definition)


def test_hiding_secrets_in_long_text_takes_linear_time() -> None:
    for text in ("x" * 300_000, "'" * 100_000, "password" * 40_000, "//" * 100_000, "a:" * 100_000, "//a:" * 20_000):
        masked(text)
        starred(f"OPTIONS ({text}")
