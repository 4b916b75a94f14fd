"""Long chains of outer joins: the work of the front end grows with the size of the internal views, and no faster."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from freshviews.sql import Catalog, parse_script
from tests.sql.printed import catalog, views

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]


def _chain(tables: int, kind: str) -> str:
    """A chain of joins USING one column, each table with a number and a text."""
    made = [f"CREATE TABLE t{i} (k INT, v{i} INT, w{i} STRING)" for i in range(tables)]
    columns = ", ".join(f"v{i}, w{i}" for i in range(tables))
    joins = " ".join(f"{kind} JOIN t{i} USING (k)" for i in range(1, tables))
    return "; ".join([*made, f"CREATE MATERIALIZED VIEW v AS SELECT k, {columns} FROM t0 {joins}"])


def _calls(tables: int, kind: str) -> int:
    """The calls of Python functions, generators included, that reading a chain takes."""
    count = 0

    def counting(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    text = _chain(tables, kind)
    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        parse_script(text, Catalog())
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(("kind", "factor"), [("FULL OUTER", 4.5), ("LEFT", 3.0), ("INNER", 3.0)])
def test_the_work_of_planning_a_chain_of_joins_grows_at_most_quadratically(
    kind: str, factor: float
) -> None:
    _calls(4, kind)
    short, long = _calls(12, kind), _calls(24, kind)
    assert long < factor * short


def test_views_of_a_chain_of_full_joins_store_the_joined_column_only_once() -> None:
    known = catalog("; ".join(f"CREATE TABLE t{i} (k INT, v{i} INT)" for i in range(9)))
    joins = " ".join(f"FULL JOIN t{i} USING (k)" for i in range(1, 9))
    assert max(len(one.columns) for one in views(f"SELECT k, v0 FROM t0 {joins}", known)) <= 4
