"""Tables and views that stay in one engine for any number of cells are listed, with the reason."""

from __future__ import annotations

import pytest

from freshviews.cells import Location, locations, plan_cells
from tests.cells.simulated import catalog_of

TABLES = """
CREATE TABLE orders (o_id BIGINT, cust BIGINT, total DOUBLE, PRIMARY KEY (o_id));
CREATE TABLE items (o_id BIGINT, part STRING, qty INT);
CREATE TABLE pairs (a INT, b INT, PRIMARY KEY (a), UNIQUE (b));
CREATE TABLE sensors (s INT, v INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW by_item AS SELECT o_id, SUM(qty) AS qty FROM items GROUP BY o_id;
CREATE MATERIALIZED VIEW all_sensors AS SELECT SUM(v) AS t FROM sensors;
"""
NOT_ADDED = "partial groups over the trusted table sensors cannot be added up"
MERGED = "8 cells, merged in the second stage"


@pytest.mark.parametrize(
    "select, where, reason",
    [
        ("SELECT o_id, part, total FROM orders JOIN items USING (o_id)", "8 cells", ""),
        ("SELECT part, SUM(qty) AS q FROM orders JOIN items USING (o_id) GROUP BY part", MERGED,
         "a group may have rows in several cells"),
        ("SELECT part, qty FROM items ORDER BY qty LIMIT 3", MERGED,
         "the first rows are chosen among the rows of all cells"),
        ("SELECT SUM(total) AS t FROM orders", MERGED, "a group may have rows in several cells"),
        ("SELECT cust, COFACTOR(total) AS t FROM orders GROUP BY cust", MERGED,
         "a group may have rows in several cells"),
        ("SELECT o_id, SUM(total) AS t FROM orders GROUP BY o_id", "8 cells", ""),
        ("SELECT o_id, STRING_AGG(part, ',') AS t FROM items GROUP BY o_id", "second stage",
         "it reads only views, whose rows are in all cells"),
        ("SELECT o_id, COFACTOR(qty, CATEGORY(part)) AS f FROM items GROUP BY o_id", "second stage",
         "it reads only views, whose rows are in all cells"),
        ("SELECT COUNT(*) AS n FROM sensors", "1 cell", f"it has no GROUP BY, and {NOT_ADDED}"),
        ("SELECT s + 1 AS s, COUNT(*) AS n FROM sensors GROUP BY s + 1", "1 cell",
         f"its GROUP BY has no column that splits its rows, and {NOT_ADDED}"),
        ("SELECT s, COUNT(*) AS n FROM sensors GROUP BY s", "8 cells", ""),
        ("SELECT a, COUNT(*) AS n FROM pairs GROUP BY a", "1 cell", "the keys of pairs have no column in common"),
        ("SELECT o_id FROM by_item WHERE qty > 3", "second stage",
         "it reads only views, whose rows are in all cells"),
        ("SELECT t, a FROM all_sensors JOIN pairs ON TRUE", "1 cell",
         "it reads views and tables, and no column splits all of them"),
    ],
)  # fmt: skip
def test_views_that_need_one_engine_are_listed_with_the_reason(select: str, where: str, reason: str) -> None:
    catalog = catalog_of(f"{TABLES} CREATE MATERIALIZED VIEW v AS {select}")
    found = {one.name: one for one in locations(plan_cells(catalog, 8, {}), catalog, {})}
    assert found["v"] == Location("v", where, reason)
    assert found["table pairs"] == Location("table pairs", "1 cell", "its keys have no column in common")
    assert found["table items"].where == "8 cells"


def test_a_table_is_in_one_cell_if_a_view_needs_all_its_rows() -> None:
    catalog = catalog_of(
        f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT o_id FROM orders EXCEPT SELECT a FROM pairs;"
        "CREATE TABLE numbers (x DOUBLE) TBLPROPERTIES ('freshviews.trusted' = 'true');"
        "CREATE MATERIALIZED VIEW s AS SELECT SUM(x) AS s FROM numbers"
    )
    found = {one.name: one for one in locations(plan_cells(catalog, 8, {}), catalog, {})}
    assert found["v (1 of 2)"].reason == "a set operation compares rows of all cells"
    assert found["v (2 of 2)"].where == "1 cell"
    assert found["table numbers"] == Location("table numbers", "1 cell", "view s needs all its rows there")


def test_a_view_with_frames_of_rows_is_in_one_cell() -> None:
    frame = "SUM(total) OVER (PARTITION BY cust ORDER BY o_id ROWS 3 PRECEDING)"
    catalog = catalog_of(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT o_id, {frame} AS s FROM orders")
    found = {one.name: one for one in locations(plan_cells(catalog, 8, {}), catalog, {})}
    assert found["v#1"].where == "1 cell"
    assert found["v#1"].reason.endswith("the frame of a row needs the rows around it")
