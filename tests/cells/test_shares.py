"""The search for shares finds the results of the papers, and brute force finds nothing better."""

from __future__ import annotations

import random
import time
from itertools import product
from math import prod

import pytest

from freshviews.cells import CellPlan, plan_cells
from freshviews.cells.planning import fullest_of
from freshviews.cells.shares import Grid, Layout, best_layout, is_local, loads_of, routing_of
from freshviews.cells.splitting import SplitAtom, Splitting
from tests.cells.simulated import catalog_of

EDGES = "CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT); CREATE TABLE t (c BIGINT, a BIGINT);"
TRIANGLE = EDGES + (
    "CREATE MATERIALIZED VIEW v AS SELECT r.a, r.b, s.c FROM r JOIN s ON r.b = s.b JOIN t ON t.c = s.c AND t.a = r.a;"
)
TWO_WAY = (
    "CREATE TABLE orders (id BIGINT, cust BIGINT); CREATE TABLE items (id BIGINT, part BIGINT);"
    "CREATE MATERIALIZED VIEW v AS SELECT cust, part FROM orders JOIN items USING (id);"
)


def planned(script: str, cells: int, sizes: dict[str, float] | None = None) -> CellPlan:
    return plan_cells(catalog_of(script), cells, sizes or {})


def shares_of(plan: CellPlan, view: str = "v") -> dict[str, int]:
    (part,) = plan.parts_of(view)
    return dict(part.shares)


@pytest.mark.parametrize("cells, share", [(8, 2), (27, 3), (64, 4)])
def test_a_triangle_of_equal_tables_gets_equal_shares(cells: int, share: int) -> None:
    assert shares_of(planned(TRIANGLE, cells)) == {"a": share, "b": share, "c": share}


def test_a_triangle_over_one_table_has_three_roles_of_that_table() -> None:
    script = (
        "CREATE TABLE e (x BIGINT, y BIGINT); CREATE MATERIALIZED VIEW v AS SELECT p.x, q.x AS y, o.x AS z"
        " FROM e p, e q, e o WHERE p.y = q.x AND q.y = o.x AND o.y = p.x;"
    )
    plan = planned(script, 8)
    assert sorted(dict(plan.parts[0].shares).values()) == [2, 2, 2]
    assert [role.name for role in plan.roles] == ["e", "e@2", "e@3"]
    assert [role.copies for role in plan.roles] == [2, 2, 2]


def test_a_variable_in_all_atoms_is_split_without_copies() -> None:
    plan = planned(TWO_WAY, 8, {"orders": 1000, "items": 4000})
    assert shares_of(plan) == {"id": 8}
    assert all(role.copies == 1 for role in plan.roles)


def test_a_small_table_is_copied_to_all_cells() -> None:
    script = (
        "CREATE TABLE sales (day DATE, shop BIGINT, amount INT); CREATE TABLE shops (shop BIGINT, town STRING);"
        "CREATE TABLE days (day DATE, week INT);"
        "CREATE MATERIALIZED VIEW v AS SELECT sales.shop, town, week, amount"
        " FROM sales JOIN shops USING (shop) JOIN days USING (day);"
    )
    plan = planned(script, 8, {"sales": 1_000_000, "shops": 50_000, "days": 365})
    assert shares_of(plan) == {"shop": 8}
    assert {role.table: role.copies for role in plan.roles} == {"sales": 1, "shops": 1, "days": 8}


def test_a_table_is_split_only_by_columns_of_all_its_keys() -> None:
    script = (
        "CREATE TABLE p (id BIGINT, x BIGINT, PRIMARY KEY (id)); CREATE TABLE q (x BIGINT, y BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT id, y FROM p JOIN q USING (x);"
    )
    plan = planned(script, 4, {"p": 1000, "q": 10})
    assert [dim.column for dim in plan.role("p").dims] == ["id"]
    assert plan.role("q").copies == 4
    none = "CREATE TABLE p (id BIGINT NOT NULL, x BIGINT NOT NULL, PRIMARY KEY (id), UNIQUE (x));"
    plan = planned(none, 4)
    assert plan.role("p").dims == ()
    both = "CREATE TABLE p (id BIGINT, x BIGINT NOT NULL, PRIMARY KEY (id, x), UNIQUE (x));"
    assert [dim.column for dim in planned(both, 4).role("p").dims] == ["x"]


def test_among_equal_layouts_a_layout_without_merge_is_preferred() -> None:
    script = (
        "CREATE TABLE r (a BIGINT, b BIGINT, c BIGINT); CREATE MATERIALIZED VIEW v AS SELECT {} FROM r GROUP BY {};"
    )
    for column in "abc":
        plan = planned(script.format(f"{column}, COUNT(*) AS n", column), 8)
        assert shares_of(plan) == {column: 8}
        assert not plan.parts[0].merged
    joined = TWO_WAY.replace("SELECT cust, part", "SELECT cust, COUNT(*) AS n")[:-1] + " GROUP BY cust;"
    plan = planned(joined, 8)
    assert shares_of(plan) == {"id": 8}
    assert plan.parts[0].merged


TRUSTED = "TBLPROPERTIES ('freshviews.trusted' = 'true')"


@pytest.mark.parametrize("sums", ["SUM(z) AS s", "COFACTOR(z, a) AS s", "VAR_POP(z) AS s, MIN(z) AS m"])
def test_groups_over_any_ring_are_merged(sums: str) -> None:
    script = (
        "CREATE TABLE r (a BIGINT, z DOUBLE); CREATE TABLE s (a BIGINT, g BIGINT);"
        f"CREATE MATERIALIZED VIEW v AS SELECT g, {sums} FROM r JOIN s USING (a) GROUP BY g;"
        f"CREATE MATERIALIZED VIEW w AS SELECT {sums} FROM r;"
    )
    plan = planned(script, 8)
    assert shares_of(plan, "v") == {"a": 8}
    assert shares_of(plan, "w") == {"r.a": 8}
    assert all(part.merged for part in plan.parts)


def test_views_of_a_trusted_table_are_never_merged() -> None:
    script = (
        f"CREATE TABLE r (a BIGINT, z DOUBLE) {TRUSTED}; CREATE TABLE s (a BIGINT, g BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT g, SUM(z) AS z FROM r JOIN s USING (a) GROUP BY g;"
        "CREATE MATERIALIZED VIEW w AS SELECT SUM(z) AS z FROM r;"
    )
    plan = planned(script, 8)
    assert shares_of(plan, "v") == {"g": 8}
    assert shares_of(plan, "w") == {}
    assert not any(part.merged for part in plan.parts)


def test_a_view_reuses_the_roles_of_another_view() -> None:
    script = TWO_WAY + (
        "CREATE MATERIALIZED VIEW w AS SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust;"
        "CREATE MATERIALIZED VIEW u AS SELECT id, COUNT(*) AS n FROM items GROUP BY id;"
    )
    plan = planned(script, 8)
    assert sorted(role.name for role in plan.roles) == ["items", "orders"]
    assert plan.parts_of("w")[0].merged
    assert not plan.parts_of("u")[0].merged


def test_a_split_view_never_reuses_the_role_of_a_view_in_one_cell() -> None:
    script = TWO_WAY.replace("cust BIGINT)", f"cust BIGINT) {TRUSTED}") + (
        "CREATE MATERIALIZED VIEW w AS SELECT cust, SUM(id) AS z, COUNT(*) AS n FROM orders JOIN items USING (id)"
        " GROUP BY cust HAVING MIN(part) > 1;"
        "CREATE MATERIALIZED VIEW all_in_one AS SELECT SUM(id) AS z FROM orders JOIN items USING (id);"
        "CREATE MATERIALIZED VIEW by_cust AS SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust;"
    )
    plan = planned(script, 8)
    assert shares_of(plan, "all_in_one") == {}
    assert shares_of(plan, "by_cust") == {"cust": 8}


def test_views_that_are_not_split_go_to_different_cells() -> None:
    script = "".join(
        f"CREATE TABLE t{i} (a DOUBLE) {TRUSTED}; CREATE MATERIALIZED VIEW v{i} AS SELECT SUM(a) AS a FROM t{i};"
        for i in range(4)
    )
    plan = planned(script, 4)
    assert sorted(part.offset for part in plan.parts) == [0, 1, 2, 3]


def random_splitting(rng: random.Random) -> Splitting:
    labels = tuple("abcde"[: rng.randint(1, 5)])
    tables = [f"t{i}" for i in range(3)]
    atoms = []
    for i in range(rng.randint(1, 4)):
        table = rng.choice(tables)
        mine = [label for label in labels if rng.random() < 0.6]
        size = {"t0": 10.0, "t1": 1000.0, "t2": 70.0}[table]
        atoms.append(SplitAtom(f"x{i}", table, size, {label: rng.choice("kl") + label for label in mine}))
    bound = tuple(label for label in labels if any(label in atom.columns for atom in atoms))
    free = frozenset(label for label in bound if rng.random() < 0.5)
    grouped = rng.random() < 0.6
    return Splitting(tuple(atoms), bound, dict.fromkeys(bound, "bigint"), free, grouped, grouped and rng.random() < 0.3)


def brute_force(splitting: Splitting, cells: int) -> tuple[float, bool]:
    """The least load over every vector of shares, and whether it needs a merge."""

    best = (float("inf"), True)
    for shares in product(range(1, cells + 1), repeat=len(splitting.labels)):
        if prod(shares) > cells:
            continue
        chosen = [(label, share) for label, share in zip(splitting.labels, shares, strict=True) if share > 1]
        layout = Layout(tuple(chosen))
        if splitting.local and not is_local(splitting, layout):
            continue
        load, _ = loads_of(splitting, layout)
        best = min(best, (round(load, 6), not is_local(splitting, layout)))
    return best


@pytest.mark.parametrize("seed", range(150))
def test_brute_force_finds_no_better_layout_than_the_search(seed: int) -> None:
    rng = random.Random(seed)
    splitting = random_splitting(rng)
    cells = rng.choice((2, 3, 4, 6, 8, 12))
    layout = best_layout(splitting, cells)
    found = round(loads_of(splitting, layout)[0], 6), not is_local(splitting, layout)
    assert found == brute_force(splitting, cells)
    assert layout.span <= cells


@pytest.mark.parametrize("seed", range(40))
def test_a_layout_that_reuses_existing_roles_costs_nothing(seed: int) -> None:
    rng = random.Random(seed)
    splitting = random_splitting(rng)
    first = best_layout(splitting, 8)
    grids = tuple(Grid(*routing_of(atom, first), 0) for atom in splitting.atoms)
    again = best_layout(splitting, 8, grids)
    assert again.offset == 0
    assert {routing_of(atom, again) for atom in splitting.atoms} <= {(grid.table, grid.dims) for grid in grids}


@pytest.mark.parametrize("length", [5, 8])
def test_shares_of_a_cycle_over_4096_cells_are_found_in_seconds(length: int) -> None:
    """Without the bound by the product of loads, the search took more than a minute."""
    atoms = ", ".join(f"e e{i}" for i in range(length))
    joins = " AND ".join(f"e{i}.y = e{(i + 1) % length}.x" for i in range(length))
    view = f"CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM {atoms} WHERE {joins};"
    script = f"CREATE TABLE e (x BIGINT, y BIGINT); {view}"
    start = time.process_time()
    plan = planned(script, 4096, {"e": 1e6})
    assert time.process_time() - start < 15
    # Real-valued shares would give 1e6 / 4096 ** (2 / length) rows of each atom.
    loads = [1e6 / prod(dim.share for dim in role.dims if dim.column is not None) for role in plan.roles]
    assert len(loads) == length and sum(loads) < 1.1 * length * 1e6 / 4096 ** (2 / length)


@pytest.mark.parametrize("cells", [1, 2, 5, 16])
def test_the_greatest_load_equals_the_result_of_a_plain_search(cells: int) -> None:
    rng = random.Random(cells)
    loads = [float(rng.randrange(4)) for _ in range(cells)]
    for span in range(1, cells + 1):
        plain = [max(loads[(first + i) % cells] for i in range(span)) for first in range(cells)]
        assert fullest_of(loads, span) == plain


@pytest.mark.parametrize("free", ["x1", "x1, x2, x3, x4, x5, x6, x7, x8"])
def test_shares_of_eight_variables_over_64_cells_are_found_in_a_second(free: str) -> None:
    tables = "".join(f"CREATE TABLE t{i} (x{i} BIGINT, x{i % 8 + 1} BIGINT);" for i in range(1, 9))
    joins = " AND ".join(f"t{i}.x{i % 8 + 1} = t{i % 8 + 1}.x{i % 8 + 1}" for i in range(1, 9))
    items = ", ".join(f"t{name[1:]}.{name}" for name in free.split(", "))
    script = f"{tables} CREATE MATERIALIZED VIEW v AS SELECT {items} FROM t1, t2, t3, t4, t5, t6, t7, t8 WHERE {joins};"
    catalog = catalog_of(script)
    start = time.process_time()
    plan = plan_cells(catalog, 64, {f"t{i}": 100.0 * i for i in range(1, 9)})
    assert time.process_time() - start < 1
    assert prod(shares_of(plan).values()) <= 64
