"""Groups with elements of every ring, in parts in cells, give the bits of one engine: after restarts, without rows, and
after a refused version."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest

import tests.ring.user_rings  # noqa: F401 - registers the rings of this test
from freshviews.catalog.definitions import TableDef
from freshviews.cells import cell_statements, merge_inputs, merge_statements, plan_cells
from freshviews.errors import FreshviewsError
from tests.agreement.scenario import Row, Version
from tests.cells.simulated import Engine, catalog_of, check, one_engine

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(4)]

TABLES = (
    "CREATE TABLE r (x BIGINT, a BIGINT, z DOUBLE); CREATE TABLE s (x BIGINT, b INT, y DOUBLE, d DECIMAL(8, 2));"
)
JOIN = "FROM r JOIN s USING (x)"
FINITE = "FILTER (WHERE z BETWEEN -1E15 AND 1E15 AND y BETWEEN -1E15 AND 1E15)"
AGGREGATES = {
    "doubles": ("SUM(z) AS z, AVG(y) AS y, SUM(z * y) AS p, COUNT(*) AS n, MAX(y) AS m, COUNT(DISTINCT b) AS d,"
                " SUM(DISTINCT z) AS e"),
    "moments": "VAR_POP(a) AS v, STDDEV(z) AS s, CORR(z, y) AS c, REGR_SLOPE(b, a) AS g, COVAR_SAMP(d, a) AS w",
    "cofactors": f"COFACTOR(a, b) AS i, COFACTOR(z, b, y) {FINITE} AS f, COVAR_MATRIX(z, y) {FINITE} AS c",
    "rings": "GAUSS(a, b) AS g, MODULO(a, b) AS m, POLY(a, b) AS p, BINS(y) AS s, SUM(d) AS d",
    "higher moments": "SKEWNESS(a) AS s, KURTOSIS(DISTINCT b) AS k",
}  # fmt: skip
GROUPS = {
    "": (JOIN, ""),
    "a": (JOIN, "GROUP BY a"),
    "ROLLUP (a, b)": (JOIN, "GROUP BY ROLLUP (a, b)"),
    "having": ("FROM s LEFT JOIN r USING (x)", "GROUP BY b HAVING COUNT(*) > 1 AND COALESCE(SUM(z), 0) < 1E10"),
}
# The exact sum 8192 has a word equal to the least int64, the code of NULL.
NARROW = (8192.0, 0.1, -0.1, 1e16, -1e-15, 0.0, 3.7, None)
"""Doubles that fit narrow sums."""
DOUBLES = (*NARROW, -1e-300)
WILD = (*DOUBLES, math.inf, -math.inf, math.nan, 1e308)


def streams(seed: int) -> list[Version]:
    """Versions of inserts and deletes; the last but one deletes all rows."""
    rng = random.Random(seed)
    doubles = (NARROW, WILD, DOUBLES)[seed % 3]
    held: dict[str, list[Row]] = {"r": [], "s": []}

    def row(name: str) -> Row:
        if name == "r":
            return rng.randrange(3), rng.choice((None, 0, 1, -5)), rng.choice(doubles)
        return rng.randrange(3), rng.choice((None, 0, 1, 2)), rng.choice(doubles), rng.choice((None, 0, 3))

    found: list[Version] = []
    for number in range(8):
        version: list[tuple[str, tuple[tuple[Row, int], ...]]] = []
        for name, rows in held.items():
            rng.shuffle(rows)
            gone, rows[:] = (rows[:], []) if number == 6 else (rows[:3], rows[3:])
            new = [] if number == 6 else [row(name) for _ in range(rng.randrange(6))]
            rows += new
            version.append((name, (*((one, -1) for one in gone), *((one, 1) for one in new))))
        found.append(tuple(version))
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", AGGREGATES)
def test_cells_and_one_engine_give_the_same_results_bit_by_bit(kind: str, group: str, tmp_path: Path) -> None:
    source, by = GROUPS[group]
    own = group if group in ("", "a") else "a, b" if group != "having" else "b"
    shown = "".join(f"{one} AS k{i}, " for i, one in enumerate(filter(None, own.split(", "))))
    catalog = catalog_of(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT {shown}{AGGREGATES[kind]} {source} {by};")
    number = 4 * list(AGGREGATES).index(kind) + list(GROUPS).index(group)
    for cells, seed in ((2, number), (4, number + 1)):
        plan = plan_cells(catalog, cells, {})
        assert all(part.merged for part in plan.parts) and plan.parts
        check(plan, catalog, streams(seed), tmp_path / str(cells))


OVERFLOWS: dict[str, tuple[str, list[Row]]] = {
    "a sum of products of integers": ("COFACTOR(a, b)", [(1, 3_037_000_499, 3_037_000_499)] * 2),
    "a sum of integers": ("SUM(a)", [(1, 2**62 + 10, 0)] * 2),
    "a word of a user's ring": ("GAUSS(a, b)", [(1, 2**62, 1)] * 2),
    "sums of doubles and one of integers": ("SUM(CAST(b AS DOUBLE)) AS d, SUM(a)", [(1, 2**62 + 10, 7)] * 2),
}


@pytest.mark.parametrize("case", OVERFLOWS)
def test_a_version_that_the_second_stage_refuses_changes_nothing(case: str) -> None:
    """The part of each cell fits, but the total does not, in one engine either."""
    aggregates, large = OVERFLOWS[case]
    script = (
        "CREATE TABLE r (x BIGINT, a BIGINT, b BIGINT);"
        f"CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, {aggregates} AS s FROM r;"
    )
    catalog = catalog_of(script)
    plan = plan_cells(catalog, 2, {})
    (inputs,) = merge_inputs(plan, catalog).values()
    parts = [Engine(cell_statements(plan, catalog, cell), inputs) for cell in range(2)]
    merge = Engine(merge_statements(plan, catalog), ("v",))
    (table,) = (one.name for one in merge_statements(plan, catalog) if isinstance(one, TableDef))
    whole = Engine(one_engine(catalog), ("v",))

    def changes(versions: list[list[tuple[Row, int]]]) -> list[tuple[Row, int]]:
        found: list[tuple[Row, int]] = []
        for part, rows in zip(parts, versions, strict=True):
            part.apply({"r": rows})
            found += part.take().get(inputs[0], {}).items()
        return found

    for part in parts:
        part.take()
    first: list[list[tuple[Row, int]]] = [[((1, 5, 3), 1)], [((2, -7, 2), 1)]]
    merge.apply({table: changes(first)})
    whole.apply({"r": [one for rows in first for one in rows]})
    before = merge.contents("v")
    assert before == whole.contents("v")
    grown = changes([[(large[0], 1)], [(large[1], 1)]])
    reasons = []
    for engine, relation, rows in ((merge, table, grown), (whole, "r", [(one, 1) for one in large])):
        with pytest.raises(FreshviewsError) as refused:
            engine.apply({relation: rows})
        reasons.append(str(refused.value).partition("overflow: ")[2])
    assert reasons[0] == reasons[1] != ""
    assert merge.contents("v") == before
    net = Counter(dict(grown))
    net.update(dict(changes([[(large[0], -1)], [(large[1], -1), ((2, -7, 2), -1)]])))
    merge.apply({table: [(row, m) for row, m in net.items() if m]})
    whole.apply({"r": [((2, -7, 2), -1)]})
    assert merge.contents("v") == whole.contents("v")
    for engine in (*parts, merge, whole):
        engine.database.close()
