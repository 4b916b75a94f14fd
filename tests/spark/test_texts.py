"""Texts of groups in a pipeline: all rows of a group are in one cell, and a restart begins with the same texts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.full]

VIEW = """SELECT part, STRING_AGG(qty, '-' ORDER BY qty DESC) AS all_qty, PROVENANCE() AS made_by
    FROM orders o JOIN items i ON i.o_id = o.o_id GROUP BY part"""
SUMS = "SELECT COFACTOR(qty, CATEGORY(part), CATEGORY(cust)) AS f FROM orders o JOIN items i ON i.o_id = o.o_id"
VERSIONS = [
    (
        [("insert", 1, 7), ("insert", 2, 7)],
        [("insert", 1, "bolt", 3), ("insert", 2, "bolt", 9), ("insert", 2, "nut", 1)],
    ),
    ([("insert", 3, 8)], [("insert", 1, "bolt", 3), ("delete", 2, "nut", 1), ("insert", 3, "screw", 4)]),
    ([("delete", 2, 7)], [("delete", 1, "bolt", 3)]),
]


def test_text_aggregates_are_exact_in_cells(spark: Any, tmp_path: Path) -> None:
    orders: Counter[tuple[Any, ...]] = Counter()
    items: Counter[tuple[Any, ...]] = Counter()
    for version, (of_orders, of_items) in enumerate(VERSIONS, 1):
        pipeline = Pipeline(spark, tmp_path / "ckpt", cells=3)
        pipeline.table_of("CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust BIGINT)", changes="op")
        pipeline.table_of("CREATE TABLE items (o_id BIGINT, part STRING, qty INT)", changes="op")
        pipeline.view("parts", VIEW, sink=None)
        pipeline.view("sums", SUMS, sink=None)
        given = {
            "orders": spark.createDataFrame(of_orders, "op STRING, o_id BIGINT, cust BIGINT"),
            "items": spark.createDataFrame(of_items, "op STRING, o_id BIGINT, part STRING, qty INT"),
        }
        for held, changes in ((orders, of_orders), (items, of_items)):
            for op, *row in changes:
                held[tuple(row)] += 1 if op == "insert" else -1
        assert pipeline.advance(given, call=f"version {version}") == version
        found = {part: (texts, json.loads(made_by)) for part, texts, made_by in pipeline.view("parts").collect()}
        known = {o_id for o_id, _ in +orders}
        expected: dict[str, tuple[str, list[dict[str, Any]]]] = {}
        for part in {part for o_id, part, _ in +items if o_id in known}:
            of_part = [(o_id, qty, n) for (o_id, other, qty), n in (+items).items() if other == part]
            rows = sorted(row for row in of_part if row[0] in known)
            quantities = sorted((qty for _, qty, n in rows for _ in range(n)), reverse=True)
            made_by = [{"o": [o_id], "i": [o_id, part, qty], "times": n} for o_id, qty, n in rows]
            expected[part] = ("-".join(map(str, quantities)), made_by)
        assert found == expected
        cust = dict(list(+orders))
        rows = [(part, cust[o_id], qty) for o_id, part, qty in (+items).elements() if o_id in cust]
        ((count, total, of_part, of_cust, squares, qty_part, qty_cust, pairs),) = pipeline.view("sums").collect()
        assert (count, total, squares) == (len(rows), sum(q for *_, q in rows), sum(q * q for *_, q in rows))
        assert json.loads(of_part) == sums([((part,), 1) for part, _, _ in rows])
        assert json.loads(of_cust) == sums([((number,), 1) for _, number, _ in rows])
        assert json.loads(qty_part) == sums([((part,), qty) for part, _, qty in rows])
        assert json.loads(qty_cust) == sums([((number,), qty) for _, number, qty in rows])
        (parsed,) = pipeline.view("sums").selectExpr("from_json(f_sum_qty_part, 'array<array<string>>')").first()
        assert parsed == [list(map(str, one)) for one in json.loads(qty_part)]
        assert json.loads(pairs) == sums([((part, number), 1) for part, number, _ in rows])


def sums(rows: list[tuple[tuple[Any, ...], int]]) -> list[list[Any]]:
    """The sum of each key, in order."""
    found: Counter[tuple[Any, ...]] = Counter()
    for key, number in rows:
        found[key] += number
    return [[*key, number] for key, number in sorted(found.items())]
