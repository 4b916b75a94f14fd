"""Measurements at the start of a pipeline, and limits of Spark's batches."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark.driver import stages
from freshviews.spark.driver.stages import _BYTES, _limit_bytes
from freshviews.spark.layout.measure import SAMPLE_ROWS, _heavy
from freshviews.spark.pipeline import Pipeline

pytestmark = pytest.mark.spark


def test_heavy_values_of_a_large_table_are_found_in_a_sample(spark: Any) -> None:
    rows = 3 * SAMPLE_ROWS
    frame = spark.range(rows).selectExpr("IF(id % 3 = 0, -1, id) AS Key", "id AS other", "IF(id < 10, id, NULL) AS nil")
    names = {"key": "Key", "other": "other", "nil": "nil"}
    found = _heavy(frame, names, rows, 4)
    assert list(found["key"]) == [-1] and found["key"][-1] == pytest.approx(1 / 3, rel=0.05)
    assert found["other"] == {} and found["nil"] == {}
    assert _heavy(frame, names, rows, 4) == found


TIME = "'2026-01-02 03:04:05'"


@pytest.mark.parametrize("value", [f"TIMESTAMP {TIME}", f"TIMESTAMP_NTZ {TIME}", "'x'", "1.5BD"])
def test_heavy_values_keep_the_types_in_which_spark_returns_them(value: str, spark: Any) -> None:
    frame = spark.range(1000).selectExpr(f"{value} AS v")
    (row,) = frame.limit(1).collect()
    assert _heavy(frame, {"v": "v"}, 1000, 1) == {"v": {row["v"]: 1.0}}
    assert not isinstance(row["v"], datetime) or row["v"].tzinfo is None


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_zeros_of_both_signs_are_one_heavy_value(kind: str, spark: Any) -> None:
    frame = spark.range(1000).selectExpr(f"CAST(IF(id < 400, 0, IF(id < 700, -0D, id)) AS {kind}) AS v")
    assert _heavy(frame, {"v": "v"}, 1000, 1) == {"v": {0.0: 0.7}}


def test_bytes_of_a_batch_are_limited_only_if_rows_may_be_long(spark: Any) -> None:
    own = spark.newSession()
    usual = own.conf.get(_BYTES)
    _limit_bytes(spark, own.range(3).selectExpr("id", "CAST(id AS DECIMAL(38, 2)) AS d", "TIMESTAMP '2026-01-01' AS t"))
    assert own.conf.get(_BYTES) == str(2**31 - 1)
    for long in ("CAST(id AS STRING)", "CAST('a' AS BINARY)", "array(id)", "struct(id)"):
        _limit_bytes(spark, own.range(3))
        _limit_bytes(spark, own.range(3).selectExpr("id", f"{long} AS long"))
        assert own.conf.get(_BYTES) == usual
    _limit_bytes(spark, own.range(3).selectExpr(*(f"id AS c{i}" for i in range(101))))
    assert own.conf.get(_BYTES) == usual
    _limit_bytes(spark, spark.range(3))
    assert spark.conf.get(_BYTES) == usual


def test_a_micro_batch_has_a_session_of_its_own(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"k": [1]}), tmp_path / "in" / "1.parquet")
    (tmp_path / "script.sql").write_text(
        "CREATE STREAMING TABLE t (k BIGINT) USING parquet OPTIONS (path 'in', mergeSchema 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;"
    )
    usual, limited = spark.conf.get(_BYTES), []

    def noted(own: Any, sent: Any) -> None:
        _limit_bytes(own, sent)
        limited.append((sent.sparkSession is own, sent.sparkSession.conf.get(_BYTES) == usual))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stages, "_limit_bytes", noted)
        Pipeline.from_script(spark, tmp_path / "script.sql").start(once=True).awaitTermination()
    assert limited == [(True, True), (False, False)]


def test_a_limit_of_bytes_set_by_the_user_is_kept() -> None:
    settings = SimpleNamespace(contains=lambda name: name == _BYTES)
    session = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: settings))
    _limit_bytes(None, SimpleNamespace(sparkSession=session))  # type: ignore[arg-type]
