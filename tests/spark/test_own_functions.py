"""Functions of users in scripts of pipelines: a view's statement has those that it calls, and workers import Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

import freshviews as fv
from freshviews.catalog import functions
from freshviews.errors import SqlError
from freshviews.spark import Pipeline
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.script import read_script
from freshviews.spark.state.stores.addresses import store_of

SCRIPT = """CREATE STREAMING TABLE t (a INT, b STRING) USING csv OPTIONS (path 'in');
CREATE FUNCTION more(x INT) RETURN x;
CREATE FUNCTION plus(x INT, y INT DEFAULT 3) RETURNS INT RETURN x + y;
CREATE OR REPLACE FUNCTION more(x INT) RETURN plus(x) * 2;
CREATE FUNCTION doubled(x INT) RETURNS INT USING python 'functions_of_a_shop:twice';
CREATE AGGREGATE FUNCTION longest(s STRING) RETURNS STRING USING python 'functions_of_a_shop:Longest';
CREATE VIEW p AS SELECT more(a) AS m, b FROM t;
CREATE MATERIALIZED VIEW v USING parquet OPTIONS (path 'out') AS SELECT doubled(m) AS x, b FROM p;
CREATE MATERIALIZED VIEW w AS SELECT plus(a) AS x FROM t;
CREATE MATERIALIZED VIEW g AS SELECT a, longest(b) AS x FROM t GROUP BY a
"""

MODULE = """def twice(x):
    return 2 * x

class Longest:
    best = ""
    def add(self, text):
        self.best = max(self.best, text, key=len)
    def output(self):
        return self.best
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "functions_of_a_shop.py").write_text(MODULE)
    (tmp_path / "in").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("FRESHVIEWS_FUNCTIONS", "functions_of_a_shop")
    return tmp_path


@pytest.mark.plain_python
def test_the_stored_sql_of_a_view_includes_the_functions_that_it_calls(module: Path) -> None:
    definition = read_script(SCRIPT, module)
    statements = [[" ".join(part.split()[:6]) for part in view.sql.split(";\n")] for view in definition.views]
    assert statements == [
        [
            "CREATE FUNCTION IF NOT EXISTS plus(x",
            "CREATE FUNCTION IF NOT EXISTS more(x",
            "CREATE FUNCTION IF NOT EXISTS doubled(x",
            "CREATE VIEW IF NOT EXISTS p",
            "CREATE MATERIALIZED VIEW v AS SELECT",
        ],
        ["CREATE FUNCTION IF NOT EXISTS plus(x", "CREATE MATERIALIZED VIEW w AS SELECT"],
        ["CREATE AGGREGATE FUNCTION IF NOT EXISTS", "CREATE MATERIALIZED VIEW g AS SELECT"],
    ]
    assert list(definition.catalog.functions) == ["plus", "more", "doubled", "longest"]
    assert definition.catalog.views["v"].functions == ("more", "plus", "doubled")


@pytest.mark.plain_python
def test_a_script_calls_python_only_of_modules_that_an_environment_variable_lists(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FRESHVIEWS_FUNCTIONS")
    with pytest.raises(SqlError, match=r"line 5, column 57: function doubled: .* add functions_of_a_shop to"):
        read_script(SCRIPT, module)


@pytest.mark.plain_python
def test_a_pipeline_refuses_a_function_that_is_registered_only_in_this_process(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "_registered", {})
    fv.register_function("of_the_process", len, takes=["STRING"], returns="INT")
    script = f"{SCRIPT.splitlines()[0]}CREATE MATERIALIZED VIEW v AS SELECT of_the_process(b) AS n FROM t"
    with pytest.raises(SqlError, match="view v: function of_the_process is registered only in this process"):
        read_script(script, module)
    fv.register_aggregate("of_the_process", takes=["STRING"], returns="INT", zero=int, add=lambda n, s: n, output=int)
    with pytest.raises(SqlError, match=r"view v: function of_the_process .* for an aggregate CREATE AGGREGATE"):
        read_script(script, module)


@pytest.mark.long("Spark starts, and compiles the kernels of two views")
@pytest.mark.spark
@pytest.mark.full
def test_workers_import_the_functions_of_their_views(spark: Any, module: Path) -> None:
    (module / "script.sql").write_text(SCRIPT)
    spark.sparkContext.addPyFile(str(module / "functions_of_a_shop.py"))
    pipeline = Pipeline.from_script(spark, module / "script.sql", cells=2)
    for a in (1, 5):
        (module / "in" / f"{a}.csv").write_text(f"{a},u\n{a + 1},w\n5,{'x' * a}\n")
        pipeline.start(once=True).awaitTermination()
    store = store_of(module / "script.checkpoint")
    found = {view: contents(store, latest(store), view)["x"].to_pylist() for view in ("v", "w", "g")}
    assert {view: sorted(rows) for view, rows in found.items()} == {
        "v": [16, 20, 32, 32, 32, 36], "w": [4, 5, 8, 8, 8, 9], "g": ["u", "w", "w", "xxxxx"],
    }  # fmt: skip
