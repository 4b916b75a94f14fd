"""Public functions and methods of the pipeline refuse wrong arguments before Spark starts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from pyspark.sql import DataFrame, SparkSession

import freshviews as fv
from freshviews import spark
from freshviews.spark.definition import Definition

pytestmark = pytest.mark.plain_python

WRONG = (None, 3, -1, 1.5, "", " ", b"x", [None], {"a": 1}, object(), ("t", 3), "\0", Path("no\0where"))
SKIPPED = {"Query"}
"""Returned by ``start``; its only argument, a timeout, is checked by Spark."""


def doors() -> Iterator[str]:
    """Public functions of ``freshviews.spark``, and methods of its classes."""
    for name in spark.__all__:
        found = getattr(spark, name, None)
        if callable(found) and name not in SKIPPED:
            yield name
            if isinstance(found, type):
                yield from (f"{name}.{one}" for one in dir(found) if not one.startswith("_"))


def pipeline(folder: Path) -> spark.Pipeline:
    return spark.Pipeline(Mock(spec=SparkSession), folder / "shop.checkpoint")


def right_arguments(folder: Path) -> dict[str, Any]:
    frame = Mock(spec=DataFrame, columns=["a"])
    return {
        "spark": Mock(spec=SparkSession), "checkpoint": folder, "path": folder / "a.sql", "definition": Definition(),
        "name": "t", "frame": frame, "sql": "CREATE TABLE t (a INT)",
    }  # fmt: skip


def is_right(parameter: inspect.Parameter, value: object) -> bool:
    kind, name = str(parameter.annotation), parameter.name
    if value is None:
        return "None" in kind
    if isinstance(value, int):
        return ("int" in kind and value > 0) or (name == "after" and value >= 0)
    if isinstance(value, str):
        return name == "call" or (value == " " and ("PathLike" in kind or name == "bad_rows"))
    return isinstance(value, dict) and name == "trigger"


def test_the_list_of_tested_functions_includes_known_functions_of_pipelines() -> None:
    assert {"Pipeline", "Pipeline.table", "Pipeline.start", "register", "start_session"} <= set(doors())


@pytest.mark.parametrize("door", list(doors()))
def test_a_wrong_argument_is_refused_before_spark_is_called(door: str, tmp_path: Path) -> None:
    name, _, method = door.partition(".")
    call = getattr(pipeline(tmp_path), method) if method else getattr(spark, name)
    parameters = inspect.signature(call).parameters
    right = {one: value for one, value in right_arguments(tmp_path).items() if one in parameters}
    problems = []
    for wrong, parameter in parameters.items():
        for value in (one for one in WRONG if not is_right(parameter, one)):
            try:
                call(**right | {wrong: value})
                problems.append(f"{wrong}={value!r}: accepted")
            except fv.FreshviewsError as error:
                assert str(error)
            except Exception as error:
                problems.append(f"{wrong}={value!r}: {type(error).__name__}: {error}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("sql", ["CREATE TABLE t (a INT); CREATE TABLE u (a INT)", "-- nothing"])
def test_a_table_of_a_pipeline_is_defined_by_exactly_one_create_table_statement(sql: str, tmp_path: Path) -> None:
    with pytest.raises(fv.SqlError, match="one CREATE TABLE name"):
        pipeline(tmp_path).table_of(sql)


@pytest.mark.parametrize(("name", "reason"), [("no.sql", "No such file"), (".", "Is a directory"), ("b.sql", "byte 0")])
def test_the_error_names_a_script_that_cannot_be_read(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "b.sql").write_bytes(b"\xff")
    with pytest.raises(fv.FreshviewsError, match=f"{reason}.*name (a|another) file"):
        spark.Pipeline.from_script(Mock(spec=SparkSession), tmp_path / name)
