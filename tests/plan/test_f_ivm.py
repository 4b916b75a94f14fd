"""F-IVM's example query R(A, B), S(A, C, E), T(C, D) over one view tree: counts, cofactors and a factorised result.

Source: Nikolic and Olteanu, Incremental View Maintenance with Triple Lock Factorization Benefits (SIGMOD 2018). The
third use of the view tree, a chain of matrices, is in ``tests.plan.test_matrix_chain``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.counting.steps import counted_state, run
from freshviews import Database
from freshviews.catalog.catalog import Catalog, ViewDefs
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState
from freshviews.errors import PlanError
from freshviews.plan.planner import plan_block
from freshviews.program.reference.interpreter import State
from freshviews.sql.statements.sql_script import parse_script

pytestmark = pytest.mark.plain_python(only=True)

PAGE = Path(__file__).parents[2] / "docs" / "rings.md"
TABLES = """
    CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE s (a BIGINT NOT NULL, c BIGINT NOT NULL, e BIGINT NOT NULL);
    CREATE TABLE t (c BIGINT NOT NULL, d BIGINT NOT NULL);
"""
JOIN = "FROM r JOIN s USING (a) JOIN t USING (c)"
COUNTED = f"SELECT COUNT(*) AS n {JOIN}"
COFACTOR = f"SELECT COFACTOR(a, b, c, d, e) AS f {JOIN}"
LISTED = f"SELECT a, b, c, d {JOIN}"
HELD = "TBLPROPERTIES ('freshviews.result' = 'held')"
FACTORISED = "TBLPROPERTIES ('freshviews.result' = 'factorised')"
VIEWS = {
    "counts": f"CREATE MATERIALIZED VIEW counts AS {COUNTED}",
    "cofactors": f"CREATE MATERIALIZED VIEW cofactors AS {COFACTOR}",
    "factorised": f"CREATE MATERIALIZED VIEW factorised {FACTORISED} AS {LISTED}",
    "held": f"CREATE MATERIALIZED VIEW held {HELD} AS {LISTED}",
}
SIZES = (4, 8, 16)
DANGLING = 1_000_000
"""Values of a and c above this number join nothing."""

Rows = list[tuple[int, ...]]


def rows(n: int) -> dict[str, Rows]:
    """n values of a, each with n values of b and of c, and n values of d for each c; and rows that join nothing."""
    every = range(n)
    return {
        "r": [(a, b) for a in every for b in every] + [(DANGLING + i, i) for i in range(10 * n)],
        "s": [(a, c, a + c) for a in every for c in every] + [(i, 2 * DANGLING + i, i) for i in range(10 * n)],
        "t": [(c, d) for c in every for d in every] + [(3 * DANGLING + i, i) for i in range(10 * n)],
    }


COLUMNS = {"r": "ab", "s": "ace", "t": "cd"}
UPDATES = {"r": (0, 99), "s": (0, 0, 99), "t": (0, 99)}
"""One row of each table that many rows of the others join."""


def apply(state: BlockState, table: str, taken: Rows, sign: int = 1) -> int:
    """The steps of inserting or deleting rows."""
    before = int(state.status[STATUS_STEPS])
    values = zip(COLUMNS[table], np.array(taken, np.int64).T, strict=True)
    run(state, table, {name: np.ascontiguousarray(column) for name, column in values}, sign)
    state.enter_pending()
    return int(state.status[STATUS_STEPS]) - before


def measured(view: str, n: int) -> dict[str, int]:
    """Steps of one more row of each table; the delete of the row takes as many."""
    state, _ = counted_state(f"{TABLES} {VIEWS[view]};", "free-connex")
    for table, taken in rows(n).items():
        apply(state, table, taken)
    found = {}
    for table, row in UPDATES.items():
        found[table] = apply(state, table, [row])
        assert apply(state, table, [row], -1) == found[table]
    state.close()
    return found


def longest_delay(n: int) -> tuple[int, int]:
    """The number of rows of the factorised result, and the most steps before, between and after them."""
    definitions: dict[str, TableDef | ViewDef] = {}
    for statement in parse_script(f"{TABLES} {VIEWS['factorised']};", Catalog()):
        if isinstance(statement, TableDef):
            definitions[statement.name] = statement
        elif isinstance(statement, ViewDefs):
            (view,) = statement.views
    state = State(plan_block(view, view.blocks[0], definitions).program)
    for table, taken in rows(n).items():
        state.apply(table, [(dict(zip(COLUMNS[table], row, strict=True)), 1) for row in taken])
    listed, before, gaps = 0, state.steps, [0]

    def note(row: tuple[int, ...], count: int) -> None:
        nonlocal listed, before
        listed += 1
        gaps.append(state.steps - before)
        before = state.steps

    state.enumerate(note)
    return listed, max(*gaps, state.steps - before)


def test_the_rings_page_states_the_counted_steps_of_the_view_tree() -> None:
    steps = {view: {n: measured(view, n) for n in SIZES} for view in VIEWS}
    assert steps["counts"] == steps["cofactors"]
    listed = {n: longest_delay(n) for n in SIZES}
    names = {"counts": "counts, and cofactors", "factorised": "factorised", "held": "held"}
    table = {
        f"{name}: a row of {which.upper()}": [steps[view][n][which] for n in SIZES]
        for view, name in names.items()
        for which in COLUMNS
    }
    table["rows that are listed"] = [listed[n][0] for n in SIZES]
    table["factorised: most steps between two of them"] = [listed[n][1] for n in SIZES]
    lines = [f"| {what} | {' | '.join(f'{number:,}' for number in numbers)} |" for what, numbers in table.items()]
    assert "\n".join(lines) in PAGE.read_text(), "\n".join(lines)
    for n in SIZES:
        assert listed[n][0] == n**4
        # T has no A, so its row meets the n values of A that S has with its C, in every form of the result.
        assert steps["counts"][n] == {"r": 3, "s": 5, "t": 4 * n + 2}
        assert steps["factorised"][n] == {"r": 4, "s": 6, "t": 5 * n + 3}
        assert min(steps["held"][n].values()) >= n**2
    assert len({delay for _, delay in listed.values()}) == 1


def test_the_rings_page_shows_the_programs_of_the_view_tree() -> None:
    db = Database()
    db.execute(f"{TABLES} {'; '.join(VIEWS.values())};")
    page = PAGE.read_text()
    shown = {view: str(db.view(view).explain()).split("\n\n") for view in VIEWS}
    parts = {
        "counts": ("    s(", "    on r(", "    on s(", "    on t("),
        "cofactors": ("    s(", "    on t("),
        "factorised": ("    r(", "    on r(", "    on s(", "    on t(", "    result("),
    }
    for view, wanted in parts.items():
        text = [part.removeprefix("program:\n") for part in shown[view]]
        for beginning in wanted:
            (one,) = (part for part in text if part.startswith(beginning))
            assert one in page, one
    for view in ("counts", "cofactors", "factorised"):
        assert "strategy  view_tree" in "\n".join(shown[view])
    orders = {view: next(p for p in shown[view] if "order     " in p).split("order     ")[1] for view in VIEWS}
    assert orders["counts"] == orders["cofactors"]
    for view in ("counts", "factorised"):
        assert orders[view].replace("\n          ", "\n    ") in page, orders[view]


def test_counts_cofactors_and_factorised_rows_agree_with_the_recomputed_join() -> None:
    """Over the rows of a small database that are inserted and deleted."""
    db = Database()
    db.execute(f"{TABLES} {'; '.join(VIEWS.values())};")
    stored = {
        "r": [(1, 1), (1, 2), (2, 3), (3, 4)],
        "s": [(1, 1, 1), (1, 1, 2), (1, 2, 3), (2, 2, 4)],
        "t": [(1, 1), (2, 2), (2, 3), (3, 4)],
    }
    for table, taken in stored.items():
        db.insert(table, taken)
    for gone in (None, (1, 1, 2)):
        if gone is not None:
            db.delete("s", [gone])
            stored["s"].remove(gone)
        joined = [
            (a, b, c, d, e) for a, b in stored["r"] for a2, c, e in stored["s"] if a2 == a
            for c2, d in stored["t"] if c2 == c
        ]  # fmt: skip
        assert list(db.view("counts")) == [(len(joined),)]
        expected = Counter(row[:4] for row in joined)
        assert Counter(db.view("factorised")) == Counter(db.view("held")) == expected
        (found,) = db.view("cofactors")
        matrix = np.array(joined)
        sums = (matrix.T @ matrix)[np.triu_indices(5)]
        assert found == (len(joined), *matrix.sum(axis=0), *sums)


@pytest.mark.parametrize(
    ("properties", "select", "message"),
    [
        (FACTORISED, f"SELECT a, COUNT(*) AS n {JOIN} GROUP BY a", "groups are stored; only a SELECT of rows"),
        (FACTORISED, f"SELECT DISTINCT a, b, c, d {JOIN}", "groups are stored; only a SELECT of rows"),
        (FACTORISED, "SELECT a, b, c FROM r LEFT JOIN s USING (a)", "view tree with outer joins has its result stored"),
        (FACTORISED, f"SELECT a, b, c, d {JOIN} WHERE b < e AND e < d", "select all columns of conditions"),
        (FACTORISED, "SELECT b, x FROM r JOIN u USING (a)", "multiplicities of u may be negative"),
        ("TBLPROPERTIES ('freshviews.result' = 'kept')", LISTED, "takes 'held' or 'factorised', not 'kept'"),
        (
            "TBLPROPERTIES ('freshviews.result' = 'factorised', 'freshviews.strategy' = 'crown')", LISTED,
            "'freshviews.result' is an option of strategy view_tree, but the view names strategy crown",
        ),
    ],
)  # fmt: skip
def test_an_unsupported_form_of_result_is_refused_with_the_reason(properties: str, select: str, message: str) -> None:
    db = Database()
    db.execute(f"""{TABLES}
        CREATE TABLE u (a BIGINT NOT NULL, x BIGINT NOT NULL) TBLPROPERTIES ('freshviews.trusted' = 'true');""")
    with pytest.raises(PlanError, match=message):
        db.execute(f"CREATE MATERIALIZED VIEW v {properties} AS {select}")
