"""A SELECT of a stranger reaches nothing but the relations that it names."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.asking import Limits, Translation, run

pytestmark = pytest.mark.plain_python(only=True)


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute('CREATE TABLE t (a INT, `b"; DROP TABLE t; --` STRING)')
        made.insert("t", [(number, "x' --") for number in range(300)])
        yield made


HOSTILE = r"""
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM read_text('/etc/passwd')
SELECT * FROM '/etc/passwd'
SELECT * FROM `/etc/passwd`
SELECT * FROM glob('*')
SELECT * FROM arrow_scan(1, 2, 3)
SELECT * FROM duckdb_settings()
SELECT * FROM duckdb_settings
SELECT * FROM pragma_version()
SELECT * FROM information_schema.tables
SELECT * FROM sqlite_master
SELECT * FROM r0
SELECT * FROM temp.t
SELECT * FROM db
SELECT getenv('HOME')
SELECT current_setting('threads')
SELECT current_database()
SELECT version()
SELECT query('SELECT 1')
SELECT * FROM query('SELECT 1')
SELECT * FROM query_table('t')
SELECT java_method('java.lang.System', 'exit', 0)
SELECT reflect('java.lang.System', 'exit', 0)
SELECT fv_digits(a, '0') FROM t
SELECT error('x')
SELECT write_log('x')
COPY t TO '/tmp/x'
ATTACH '/tmp/x.db'
INSTALL httpfs
LOAD httpfs
PRAGMA version
SET threads = 1
SET VARIABLE a = 1
CALL pragma_version()
EXPLAIN SELECT 1
DESCRIBE t
SHOW TABLES
CREATE TABLE x (a INT)
DELETE FROM t
SELECT 1; COPY t TO '/tmp/x'
SELECT a INTO x FROM t
SELECT * FROM t TABLESAMPLE (1 ROWS)
SELECT transform(array(1), x -> x)
SELECT /*+ */ * FROM read_parquet('https://example.com/x.parquet')
WITH w AS (DELETE FROM t) SELECT * FROM w
WITH RECURSIVE w AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM w) SELECT * FROM w
SELECT * FROM t WHERE a IN (SELECT * FROM read_csv('/etc/passwd'))
""".strip().splitlines()


@pytest.mark.parametrize("sql", HOSTILE)
def test_only_a_select_over_tables_and_views_is_accepted(db: fv.Database, sql: str) -> None:
    with pytest.raises(fv.FreshviewsError):
        db.sql(sql)
    assert len(db.sql("SELECT a FROM t")) == 300


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO '{folder}/x.csv'",
        "ATTACH '{folder}/x.db'",
        "SET lock_configuration = false",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM rows",
        "EXPORT DATABASE '{folder}'",
    ],
)
def test_duckdb_refuses_files_extensions_settings_and_python_variables(tmp_path: Path, sql: str) -> None:
    rows = pa.table({"a": [1]})  # a variable of Python, which DuckDB would find by its name
    with pytest.raises(fv.FreshviewsError):
        run(Translation(sql.format(folder=tmp_path), (), ("a",)), {})
    assert list(tmp_path.iterdir()) == [] and rows.num_rows == 1


def test_a_quoted_name_or_string_is_never_read_as_sql(db: fv.Database) -> None:
    answer = db.sql('SELECT `b"; DROP TABLE t; --` AS "y" FROM t LIMIT 1'.replace('AS "y"', "AS `y\"'`"))
    assert answer.columns == ("y\"'",) and answer.fetchall() == [("x' --",)]
    assert db.sql(r"SELECT 'a\'b' AS y, '\\' AS z, '\'; DROP TABLE t; --' AS w").fetchall() == [
        ("a'b", "\\", "'; DROP TABLE t; --")
    ]


def test_a_select_is_stopped_at_its_limit_of_seconds_or_bytes(db: fv.Database) -> None:
    rows = {"r0": db.table("t").to_arrow()}
    product = "SELECT COUNT(*) AS n FROM r0 a, r0 b, r0 c, r0 d, r0 e WHERE a.a + b.a + c.a + d.a + e.a = 7"
    with pytest.raises(fv.FreshviewsError, match=r"took more than 0\.2 s and was stopped"):
        run(Translation(product, (), ("n",)), rows, (), Limits(seconds=0.2))
    with pytest.raises(fv.FreshviewsError, match="more than 1 MB"):
        run(Translation("SELECT a.a FROM r0 a, r0 b, r0 c", (), ("a",)), rows, (), Limits(size=1 << 20))
    assert run(Translation("SELECT a FROM r0", (), ("a",)), rows, (), Limits(5.0, 1 << 20)).num_rows == 300


def test_ctrl_c_stops_a_select(db: fv.Database) -> None:
    product = "SELECT COUNT(*) AS n FROM t a, t b, t c, t d, t e WHERE a.a + b.a + c.a + d.a + e.a = 7"
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        db.sql(product)
    assert len(db.sql("SELECT a FROM t")) == 300
