"""Plans are stored, extended and described; views that cannot be planned are refused by name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from freshviews.catalog.catalog import Catalog, ViewDefs
from freshviews.catalog.definitions import TableDef
from freshviews.cells import (
    CellPlan,
    cell_statements,
    cells_of,
    describe,
    extended,
    loads,
    merge_inputs,
    merge_statements,
    outputs,
    plan_cells,
)
from freshviews.errors import PlanError
from freshviews.sql.statements.sql_script import parse_script
from tests.cells.simulated import catalog_of, hashed

SHOP = """
CREATE TABLE orders (o_id BIGINT, cust BIGINT, day DATE, total DECIMAL(12, 2), PRIMARY KEY (o_id));
CREATE TABLE items (o_id BIGINT, part STRING, qty INT);
CREATE TABLE parts (part STRING, price DECIMAL(8, 2));
CREATE MATERIALIZED VIEW by_part AS
  SELECT part, SUM(qty) AS qty, COUNT(*) AS n FROM orders JOIN items USING (o_id) GROUP BY part;
CREATE MATERIALIZED VIEW priced AS SELECT o_id, part, qty, price FROM items JOIN parts USING (part);
CREATE MATERIALIZED VIEW many AS SELECT part, n FROM by_part WHERE n > 3;
CREATE MATERIALIZED VIEW mixed AS SELECT orders.cust, many.n FROM many JOIN items USING (part) JOIN orders USING (o_id);
"""
SIZES = {"orders": 100_000.0, "items": 400_000.0, "parts": 2_000.0}
HEAVY = {("items", "o_id"): {7: 90_000.0, 8: 60_000.0}}


def after(catalog: Catalog, script: str) -> Catalog:
    for statement in parse_script(script, catalog):
        catalog = catalog.after(statement)
    return catalog


def names(statements: tuple[object, ...]) -> list[str]:
    return [s.view.name if isinstance(s, ViewDefs) else s.name for s in statements]  # type: ignore[attr-defined]


def test_a_plan_for_one_cell_contains_the_tables_and_views_of_the_catalog() -> None:
    catalog = catalog_of(SHOP)
    plan = plan_cells(catalog, 1, SIZES)
    assert [role.name for role in plan.roles] == ["orders", "items", "parts"]
    assert cells_of(plan.role("items"), {"o_id": 1, "part": "x", "qty": 1}, hashed) == (0,)
    assert [s for s in cell_statements(plan, catalog, 0) if isinstance(s, TableDef)] == list(catalog.tables.values())
    views = [s.view for s in cell_statements(plan, catalog, 0) if isinstance(s, ViewDefs)]
    assert views == list(catalog.views.values())
    assert merge_statements(plan, catalog) == ()
    assert merge_inputs(plan, catalog) == {}
    assert {(o.stage, o.views) for o in outputs(plan, catalog).values()} == {("cells", (v.name,)) for v in views}


def test_views_are_read_from_cells_or_from_the_second_stage() -> None:
    catalog = catalog_of(SHOP)
    plan = plan_cells(catalog, 8, SIZES)
    found = outputs(plan, catalog)
    assert (found["by_part"].stage, found["by_part"].views) == ("merge", ("by_part",))
    assert (found["priced"].stage, found["priced"].views) == ("cells", ("priced",))
    assert (found["many"].stage, found["many"].views) == ("merge", ("many",))
    assert (found["mixed"].stage, found["mixed"].views) == ("cells", ("mixed",))
    assert names(merge_statements(plan, catalog)) == ["by_part@1", "by_part", "many"]
    assert merge_inputs(plan, catalog) == {"by_part@1": ("by_part@1",)}
    for cell in range(8):
        kept = names(cell_statements(plan, catalog, cell))
        assert kept[-4:] == ["priced", "by_part@mixed", "many@mixed", "mixed"]


def test_a_view_is_split_if_one_column_splits_every_input() -> None:
    script = (
        "CREATE TABLE orders (id BIGINT, cust BIGINT, total INT); CREATE TABLE custs (cust BIGINT, name STRING);"
        "CREATE MATERIALIZED VIEW above AS SELECT name, id, total FROM orders JOIN custs USING (cust)"
        " JOIN (SELECT cust, AVG(total) AS mean FROM orders GROUP BY cust) AS m USING (cust) WHERE total > mean;"
    )
    catalog = catalog_of(script)
    plan = plan_cells(catalog, 8, {"orders": 1000, "custs": 100})
    (part,) = plan.parts_of("above")
    assert (part.shares, part.merged) == ((("cust", 8),), False)
    assert [(copy.name, copy.view) for copy in part.copies] == [("above#1@above", "above#1")]
    assert [(role.name, role.copies, role.span) for role in plan.roles] == [("orders", 1, 8), ("custs", 1, 8)]


def test_a_view_is_in_one_cell_if_no_column_splits_every_input() -> None:
    script = (
        "CREATE TABLE r (a BIGINT, z DOUBLE); CREATE MATERIALIZED VIEW u AS SELECT SUM(z) AS z FROM r;"
        "CREATE MATERIALIZED VIEW v AS SELECT SUM(r.z * u.z) AS z FROM r CROSS JOIN u;"
    )
    catalog = catalog_of(script)
    plan = plan_cells(catalog, 4, {})
    (part,) = plan.parts_of("v")
    assert part.span == 1
    for cell in range(4):
        kept = names(cell_statements(plan, catalog, cell))
        assert ("v" in kept) == ("u@v" in kept) == (cell == part.offset)


@pytest.mark.parametrize(
    "by, total, span, merged",
    [
        ("a, ROLLUP (b)", "SUM(i)", 4, False),
        ("a, ROLLUP (b)", "SUM(z)", 4, False),
        ("ROLLUP (a, b)", "SUM(i)", 4, True),
        ("GROUPING SETS ((a), (b))", "MAX(z)", 4, True),
        ("ROLLUP (a, b)", "SUM(z)", 4, True),
    ],
)
def test_grouping_sets_stay_in_cells_if_a_column_splits_each_set(by: str, total: str, span: int, merged: bool) -> None:
    """Otherwise the finest groups are merged."""
    catalog = catalog_of(
        "CREATE TABLE t (a BIGINT, b BIGINT, i INT, z DOUBLE);"
        f"CREATE MATERIALIZED VIEW v AS SELECT a, b, {total} AS s, GROUPING(b) AS g FROM t GROUP BY {by};"
    )
    plan = plan_cells(catalog, 4, {})
    (part,) = plan.parts_of("v")
    assert (part.span, part.merged) == (span, merged)
    (kept,) = [s.view.blocks[0] for s in cell_statements(plan, catalog, part.offset) if isinstance(s, ViewDefs)]
    assert bool(kept.sets) is not merged
    if merged:
        assert kept.query.free == ("a", "b")
        (second,) = [s.view.blocks[0] for s in merge_statements(plan, catalog) if isinstance(s, ViewDefs)]
        (whole,) = [view.blocks[0] for view in catalog.views.values()]
        assert second.sets == whole.sets


def test_a_plan_survives_a_round_trip_through_json() -> None:
    script = "CREATE TABLE t (d DATE, m DECIMAL(8, 2), s STRING, z DOUBLE, at TIMESTAMP, b BOOLEAN, i INT);" + "".join(
        f"CREATE MATERIALIZED VIEW v{c} AS SELECT {c}, COUNT(*) AS n FROM t GROUP BY {c};" for c in "dmszi"
    )
    heavy = {
        ("t", "d"): (dt.date(2024, 1, 31),),
        ("t", "m"): (Decimal("1.50"), Decimal("2")),
        ("t", "s"): ("", "x'\"", None),
        ("t", "z"): (1.5, float("inf"), float("nan")),
        ("t", "at"): (dt.datetime(2024, 1, 31, 1, 2, 3, 4),),
        ("t", "b"): (True,),
        ("t", "i"): {7: 10.0},
    }
    for plan in (plan_cells(catalog_of(script), 6, {}, heavy), plan_cells(catalog_of(SHOP), 6, SIZES, HEAVY)):
        assert CellPlan.from_json(plan.to_json()) == plan
    with pytest.raises(ValueError, match="format 99"):
        CellPlan.from_json('{"format": 99}')


def test_adding_views_changes_no_role_and_dropping_views_removes_roles() -> None:
    catalog = catalog_of(SHOP)
    plan = plan_cells(catalog, 8, SIZES)
    added = (
        "CREATE MATERIALIZED VIEW by_cust AS SELECT cust, SUM(total) AS t FROM orders GROUP BY cust;"
        "CREATE MATERIALIZED VIEW by_qty AS SELECT p.o_id, q.part FROM items p JOIN items q ON p.qty = q.qty;"
    )
    more = after(catalog, added)
    grown = extended(plan, more, SIZES)
    assert set(plan.roles) < set(grown.roles)
    assert set(plan.parts) < set(grown.parts)
    assert {part.view for part in set(grown.parts) - set(plan.parts)} == {"by_cust", "by_qty"}
    new = sorted(role.name for role in set(grown.roles) - set(plan.roles))
    assert all("@" in name for name in new)
    less = after(more, "DROP VIEW by_qty")
    shrunk = extended(grown, less, SIZES)
    assert {part.view for part in shrunk.parts} == {"by_part", "priced", "mixed", "by_cust"}
    again = extended(shrunk, more, SIZES)
    gone = set(grown.roles) - set(shrunk.roles)
    assert gone
    # The name of a former role is never used for another routing.
    assert {role.name for role in gone}.isdisjoint(role.name for role in again.roles)
    assert extended(again, more, SIZES) == again


def test_a_table_keeps_its_role_when_all_views_are_dropped() -> None:
    catalog = catalog_of(SHOP)
    plan = plan_cells(catalog, 4, SIZES)
    bare = extended(plan, Catalog(catalog.tables), SIZES)
    assert [role.name for role in bare.roles] == ["orders", "items", "parts"]
    assert bare.parts == ()
    assert extended(plan, Catalog(), SIZES).roles == ()


@pytest.mark.parametrize("heavy", [None, HEAVY])
@pytest.mark.parametrize("cells", [2, 3, 8])
def test_every_row_of_a_table_is_counted_in_exactly_one_cell(
    heavy: dict[tuple[str, str], dict[str, float]] | None, cells: int
) -> None:
    plan = plan_cells(catalog_of(SHOP), cells, SIZES, heavy)
    for i in range(50):
        row = {"o_id": i, "part": ("bolt", "nut", None, f"p{i}")[i % 4], "qty": i}
        counted = [
            (role.name, cell)
            for role in plan.sources("items")
            for cell in cells_of(role, row, hashed)
            if role.counted_in(cell)
        ]
        assert len(counted) == 1
        for role in plan.roles_of("items"):
            reached = cells_of(role, row, hashed)
            assert len(set(reached)) == len(reached) == (role.copies if reached else 0)
            assert set(reached) <= set(role.reached)


def test_a_value_is_heavy_if_its_rows_would_overfill_a_cell() -> None:
    catalog = catalog_of(
        "CREATE TABLE r (x BIGINT, a BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM r JOIN s USING (x);"
    )
    plan = plan_cells(catalog, 4, {"r": 1000, "s": 1000}, {("r", "x"): {7: 260.0, 8: 250.0, 9: 300.0}})
    assert {one.values for role in plan.roles for one in role.heavy} == {(7, 9)}
    plan = plan_cells(catalog, 4, {"r": 1000, "s": 1000}, {("r", "x"): {8: 250.0}})
    assert len(plan.parts_of("v")) == 1


def test_rows_of_heavy_values_are_counted_once_after_a_drop() -> None:
    catalog = catalog_of(
        "CREATE TABLE r (x BIGINT, a BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM r JOIN s USING (x);"
    )
    plan = plan_cells(catalog, 4, {}, {("r", "x"): {7: 1.0}, ("s", "x"): {7: 1.0, 8: 1.0}})
    bare = extended(plan, Catalog(catalog.tables), {})
    for made in (plan, bare):
        assert all(role.heavy for role in made.roles)
        for x in (7, 8, 9, None):
            row = {"x": x, "a": 1}
            counted = [c for r in made.sources("r") for c in cells_of(r, row, hashed) if r.counted_in(c)]
            assert len(counted) == 1


def test_heavy_values_have_roles_and_shares_of_their_own() -> None:
    script = (
        "CREATE TABLE r (x BIGINT, a BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM r JOIN s USING (x);"
    )
    catalog = catalog_of(script)
    plan = plan_cells(catalog, 16, {"r": 1000, "s": 1000}, {("r", "x"): {7: 500.0}, ("s", "x"): {7: 500.0}})
    light, heavy = plan.parts_of("v")
    assert (light.shares, light.heavy) == ((("x", 16),), (("x", False),))
    assert (heavy.shares, heavy.heavy) == ((("a", 4), ("b", 4)), (("x", True),))
    rows = {"r": {"x": [7] * 500 + list(range(500)), "a": list(range(1000))}}
    sent = dict(loads(plan, hashed, rows))
    roles = {part.heavy[0][1]: dict(part.reads)["r"] for part in (light, heavy)}
    assert sum(sent[roles[False]]) == 499
    assert sum(sent[roles[True]]) == 501 * 4
    # Without a role of their own, one cell would have all of them.
    plain = dict(loads(plan_cells(catalog, 16, {}), hashed, rows))["r"]
    assert max(plain) > 500 > max(map(sum, zip(sent[roles[False]], sent[roles[True]], strict=True)))


def test_bad_names_and_unknown_columns_are_refused() -> None:
    with pytest.raises(PlanError, match="the name a@2 has an @"):
        plan_cells(catalog_of("CREATE TABLE `a@2` (x INT);"), 2, {})
    with pytest.raises(PlanError, match=r"heavy values of p\.y: table p has no column y"):
        plan_cells(catalog_of("CREATE TABLE p (x INT);"), 2, {}, {("p", "y"): (1,)})
    with pytest.raises(ValueError, match="at least 1, not 0"):
        plan_cells(Catalog(), 0, {})


def test_the_function_describe_prints_the_plan_of_the_cells() -> None:
    catalog = catalog_of(SHOP)
    text = describe(plan_cells(catalog, 8, SIZES, HEAVY), catalog, SIZES)
    assert text == TOLD
    assert describe(plan_cells(catalog, 1, SIZES), catalog, SIZES).startswith("1 cell\n")


TOLD = """\
8 cells

view     shares              cells  reads                                               result
by_part  o_id 8, o_id light  8      orders, items                                       merged
by_part  part 8, o_id heavy  8      orders@2 as orders, items@2 as items                merged
priced   part 8              8      items@3 as items, parts                             union of cells
many                                by_part                                             second stage
mixed    part 8              8      copy of many, items@3 as items, orders@3 as orders  union of cells

table      rows  role      split by            copies  rows per cell
orders  100,000  orders    o_id 8, o_id light       1         12,500
orders        0  orders@2  o_id heavy               8              0
orders  100,000  orders@3  to all of 8 cells        8        100,000
items   250,000  items     o_id 8, o_id light       1         31,250
items   150,000  items@2   part 8, o_id heavy       1         18,750
items   400,000  items@3   part 8                   1         50,000
parts     2,000  parts     part 8                   1            250
orders  100,000  all                                9
items   400,000  all                                2

rows expected in a cell: mean 212,750, largest 212,750

heavy values of     rows  values
items.o_id       150,000  7, 8
"""
