"""Steps of single edits of cyclic queries under each strategy.

``python -m benchmarks.counting.cyclic_steps`` prints them. FRESHVIEWS_ROWS sets the rows of all relations together
(100,000). Values are drawn uniformly, with as many rows per value as the fourth root of the rows of a relation, or
from a power law. Every fourth edit deletes a row; the others insert one. A step is a lookup, a change of a stored
view, a turn of a loop, or an operation of an iterator.
"""

from __future__ import annotations

import os

import numpy as np

from benchmarks.counting.steps import counted_state, run
from benchmarks.workloads.graphs import Edges, chung_lu
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.codes.code_batch import Codes

EDITS = 200
STRATEGIES = ("first_order", "crown", "incremental_trie_join")
TWO_CYCLES = {"r": "ab", "s": "bc", "t": "ca", "u": "cd", "w": "da"}
CYCLE = {"r": "ab", "s": "bc", "t": "cd", "u": "da"}
CLIQUE = {"r": "ab", "s": "ac", "t": "ad", "u": "bc", "w": "bd", "x": "cd"}
TRIANGLE = {"r": "ab", "s": "bc", "t": "ca"}
CASES = {
    "triangles, listed": ("r.a, r.b, s.c", TRIANGLE),
    "4-cycles, counted": ("COUNT(*) AS n", CYCLE),
    "4-cliques, counted": ("COUNT(*) AS n", CLIQUE),
    "two cycles of five, counted": ("COUNT(*) AS n", TWO_CYCLES),
}


def script_of(columns: str, atoms: dict[str, str], strategy: str) -> str:
    """Tables with two columns each and a view of their join."""
    tables = "".join(
        f"CREATE TABLE {name} ({x} BIGINT NOT NULL, {y} BIGINT NOT NULL) "
        "TBLPROPERTIES ('freshviews.trusted' = 'true');"
        for name, (x, y) in atoms.items()
    )
    first: dict[str, str] = {}
    equal = []
    for name, variables in atoms.items():
        for v in variables:
            if v in first:
                equal.append(f"{first[v]} = {name}.{v}")
            first.setdefault(v, f"{name}.{v}")
    view = f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{strategy}') AS SELECT {columns}"
    return f"{tables}{view} FROM {', '.join(atoms)} WHERE {' AND '.join(equal)};"


def edges_of(rows: int, uniform: bool) -> Edges:
    if not uniform:
        return chung_lu(rows // 5, rows, 2.5)
    return np.unique(np.random.default_rng(1).integers(0, round(rows**0.75), (rows, 2)), axis=0)


def steps_of(case: str, strategy: str, rows: int, uniform: bool) -> tuple[float, int, int]:
    """Mean and maximum steps of an edit, and bytes."""
    columns, atoms = CASES[case]
    state, read = counted_state(script_of(columns, atoms, strategy), "cyclic")
    random = np.random.default_rng(2)
    edges = edges_of(rows // len(atoms), uniform)

    def given(name: str, some: Edges) -> dict[str, Codes]:
        columns = {v: np.ascontiguousarray(some[:, i]) for i, v in enumerate(atoms[name])}
        return {v: columns[v] for v in read[name]}

    for name in atoms:
        run(state, name, given(name, edges), 1)
    state.enter_pending()
    taken = []
    for i in range(EDITS):
        name = list(atoms)[i % len(atoms)]
        one, other = edges[random.integers(len(edges), size=2)]
        sign = 1 if i % 4 else -1
        row = np.array([one]) if sign < 0 else np.array([[one[0], other[1]]])
        before = int(state.status[STATUS_STEPS])
        run(state, name, given(name, row), sign)
        taken.append(int(state.status[STATUS_STEPS]) - before)
    held = sum(size for _, size in state.sizes().values())
    state.close()
    return float(np.mean(taken)), max(taken), held


def main() -> None:
    rows = int(os.environ.get("FRESHVIEWS_ROWS", 100_000))
    for case in CASES:
        for uniform in (True, False):
            for strategy in STRATEGIES:
                mean, most, held = steps_of(case, strategy, rows, uniform)
                name = f"{case}, {'uniform' if uniform else 'skew 2.5'}, {strategy}"
                print(f"{name}: {mean:,.0f} steps, at most {most:,}; {held / 1e6:,.1f} MB", flush=True)


if __name__ == "__main__":
    main()
