"""F-IVM's matrix chain: A1 A2 A3 as views over tables (row, column, value), exact and with counted steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.counting.steps import counted_state, run
from freshviews import Database
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState

pytestmark = pytest.mark.plain_python(only=True)

PAGE = Path(__file__).parents[2] / "docs" / "rings.md"
TABLES = """
    CREATE TABLE a1 (i BIGINT NOT NULL, j BIGINT NOT NULL, x BIGINT NOT NULL);
    CREATE TABLE a2 (j BIGINT NOT NULL, k BIGINT NOT NULL, x BIGINT NOT NULL);
    CREATE TABLE a3 (k BIGINT NOT NULL, l BIGINT NOT NULL, x BIGINT NOT NULL);
    CREATE TABLE b (j BIGINT NOT NULL, l BIGINT NOT NULL, x BIGINT NOT NULL);
"""
ONE = "SELECT i, l, SUM(a1.x * a2.x * a3.x) AS x FROM a1 JOIN a2 USING (j) JOIN a3 USING (k) GROUP BY i, l"
INNER = "SELECT j, l, SUM(a2.x * a3.x) AS x FROM a2 JOIN a3 USING (k) GROUP BY j, l"
OUTER = "SELECT i, l, SUM(a1.x * b.x) AS x FROM a1 JOIN b USING (j) GROUP BY i, l"
SIZES = (4, 8, 16)

Matrix = Any


def test_the_product_of_three_matrices_equals_numpy() -> None:
    """The second matrix is U V: an update of rank 1 is a column of U and a row of V, in one version."""
    db = Database()
    db.execute("""
        CREATE TABLE a (i BIGINT NOT NULL, j BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE TABLE u (j BIGINT NOT NULL, r BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE TABLE v (r BIGINT NOT NULL, k BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE TABLE c (k BIGINT NOT NULL, l BIGINT NOT NULL, x DOUBLE NOT NULL);
        CREATE MATERIALIZED VIEW au AS SELECT i, r, SUM(a.x * u.x) AS x FROM a JOIN u USING (j) GROUP BY i, r;
        CREATE MATERIALIZED VIEW vc AS SELECT r, l, SUM(v.x * c.x) AS x FROM v JOIN c USING (k) GROUP BY r, l;
        CREATE MATERIALIZED VIEW p AS SELECT i, l, SUM(au.x * vc.x) AS x FROM au JOIN vc USING (r) GROUP BY i, l;
    """)
    n, random = 5, np.random.default_rng(1)
    a, c = (random.integers(-9, 9, (n, n)).astype(float) for _ in range(2))
    middle = np.zeros((n, n))
    db.insert("a", cells(a))
    db.insert("c", cells(c))
    vectors: list[tuple[Matrix, Matrix]] = []
    for r in range(6):
        column, row = (random.integers(-9, 9, n).astype(float) for _ in range(2))
        vectors.append((column, row))
        with db.batch() as batch:
            batch.insert("u", [(j, r, float(x)) for j, x in enumerate(column)])
            batch.insert("v", [(r, k, float(x)) for k, x in enumerate(row)])
        middle += np.outer(column, row)
        if r == 3:
            with db.batch() as batch:
                batch.delete("u", [(j, 1, float(x)) for j, x in enumerate(vectors[1][0])])
                batch.delete("v", [(1, k, float(x)) for k, x in enumerate(vectors[1][1])])
            middle -= np.outer(*vectors[1])
        if r == 4:
            db.delete("a", cells(a)[:n])
            a[0] = random.integers(-9, 9, n)
            db.insert("a", cells(a)[:n])
        found = np.zeros((n, n))
        for i, j, x in db.view("p"):
            found[i, j] = x
        np.testing.assert_array_equal(found, a @ middle @ c)


def cells(matrix: Matrix) -> list[tuple[int, int, float]]:
    return [(i, j, float(x)) for (i, j), x in np.ndenumerate(matrix)]


def counted(select: str, kind: str) -> BlockState:
    state, _ = counted_state(f"{TABLES} CREATE MATERIALIZED VIEW product AS {select};", kind)
    return state


def steps(state: BlockState, table: str, first: Matrix, second: Matrix) -> int:
    """The steps of inserting cells of a matrix; their values do not matter."""
    names = {"a1": "ij", "a2": "jk", "a3": "kl", "b": "jl"}[table]
    before = int(state.status[STATUS_STEPS])
    columns = (*np.broadcast_arrays(first, second), np.ones(np.broadcast(first, second).size))
    values = {name: np.ascontiguousarray(c.ravel(), np.int64) for name, c in zip((*names, "x"), columns, strict=True)}
    run(state, table, values, 1)
    state.enter_pending()
    return int(state.status[STATUS_STEPS]) - before


def measured(n: int) -> dict[str, int]:
    """Steps of the last row of A2 after all other cells, and of an update of rank 1."""
    every, row = np.arange(n), np.array([n - 1])
    one, inner, outer = counted(ONE, "acyclic"), counted(INNER, "delta_1"), counted(OUTER, "delta_1")
    for state, table, rows in (
        (one, "a1", n), (one, "a3", n), (one, "a2", n - 1), (inner, "a3", n), (inner, "a2", n - 1),
        (outer, "a1", n), (outer, "b", n - 1),
    ):  # fmt: skip
        steps(state, table, np.arange(rows)[:, None], every)
    found = {"one view, a row of A2": steps(one, "a2", row, every)}
    # The change of A2 A3 is one row: n cells, for any number of derivations.
    found["two views, a row of A2"] = steps(inner, "a2", row, every) + steps(outer, "b", row, every)
    # A1 U, V A3 and their product, for one more column of U and row of V.
    left, right, product = counted(INNER, "delta_1"), counted(INNER, "delta_1"), counted(OUTER, "delta_1")
    steps(left, "a2", every[:, None], every)
    steps(right, "a3", every[:, None], every)
    found["three views, rank 1"] = (
        steps(left, "a3", every, row)
        + steps(right, "a2", row, every)
        + steps(product, "a1", every, row)
        + steps(product, "b", row, every)
    )
    for state in (one, inner, outer, left, right, product):
        state.close()
    return found


def test_the_rings_page_states_the_counted_steps_of_the_matrix_chain() -> None:
    by_size = {n: measured(n) for n in SIZES}
    lines = [f"| {kind} | {' | '.join(f'{by_size[n][kind]:,}' for n in SIZES)} |" for kind in by_size[SIZES[0]]]
    assert "\n".join(lines) in PAGE.read_text(), "\n".join(lines)
    small, large = by_size[8], by_size[16]
    assert large["one view, a row of A2"] > 7 * small["one view, a row of A2"]
    for kind in ("two views, a row of A2", "three views, rank 1"):
        assert large[kind] < 4.1 * small[kind]


def test_the_rings_page_shows_the_triggers_of_the_matrix_chain() -> None:
    db = Database()
    db.execute(f"""{TABLES.replace('CREATE TABLE b', 'CREATE TABLE other')}
        CREATE MATERIALIZED VIEW b AS {INNER};
        CREATE MATERIALIZED VIEW product AS {OUTER};
        CREATE MATERIALIZED VIEW one AS {ONE};
    """)
    page = PAGE.read_text()
    for view, table in (("one", "a2"), ("b", "a2"), ("product", "b")):
        parts = str(db.view(view).explain()).split("\n\n")
        (trigger,) = (part for part in parts if part.lstrip().startswith(f"on {table}("))
        assert trigger in page, trigger
