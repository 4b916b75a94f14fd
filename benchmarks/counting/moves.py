"""Moves of cursors in a leapfrog triejoin, counted in its compiled program, compared with the steps of a binary plan.

The rows are those of ``benchmarks.counting.worst_cases``, for the triangle and for the Loomis-Whitney query of four
variables. ``change_propagation`` joins two relations at a time and stores the intermediate result; it is left out
if that would be too large. ``python -m benchmarks full --only moves`` measures all cases;
``python -m benchmarks.counting.moves`` prints the slopes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.counting.worst_cases import LOOMIS_WHITNEY, TRIANGLE, slope, worst_case
from benchmarks.measuring.strategies import PLANNED
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.expr.nodes import Column
from freshviews.plan import STRATEGIES as BY_NAME
from freshviews.program.upkeep import Evaluated
from freshviews.query.block import Block, Output, Result
from freshviews.query.query import Atom, Query
from freshviews.types import BIGINT
from freshviews.types.dictionary import Dictionary

TITLE = "worst case"
UNIT = "moves"
TARGETS: dict[str, float] = {}
QUERIES = {"triangle": TRIANGLE, "Loomis-Whitney of four": LOOMIS_WHITNEY}
SLOPES = {"triangle": 1.55, "Loomis-Whitney of four": 1.40}
"""Maximum growth of the moves, as a power of the rows."""
SIZES = (2_000, 8_000, 32_000, 128_000, 512_000, 1_024_000)
BINARY = "change_propagation"
MOST_OF_BINARY = 32_000
"""Maximum rows for the plan of two relations at a time, which stores quadratically many."""
CASES = tuple(f"{query}, N = {n:,}" for query in QUERIES for n in SIZES)
STRATEGIES = (PLANNED, BINARY)
STRATEGIES_OF = {case: (PLANNED,) for case in CASES if int(case.rpartition("= ")[2].replace(",", "")) > MOST_OF_BINARY}


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Moves, or steps of the plan of two relations at a time."""
    name, _, size = case.partition(", N = ")
    n = int(size.replace(",", ""))
    taken = "trie_join" if strategy == PLANNED else strategy
    steps, found = counted(count_of(QUERIES[name]), taken, worst_case(QUERIES[name], n))
    return {"value": steps, "rows": n, "strategy_taken": taken, "answers": {"count": [[str(found)]]}}


def count_of(atoms: Mapping[str, str]) -> Query:
    """The count of a join: relations by name, with a letter per column for its variable."""
    columns = {name: tuple(Column(f"c{i}", BIGINT, False) for i in range(len(key))) for name, key in atoms.items()}
    return Query("v", (), tuple(Atom(name, name, tuple(key), columns[name]) for name, key in atoms.items()))


def counted(query: Query, strategy: str, rows: Mapping[str, Codes]) -> tuple[int, int]:
    """Steps to compute a count over the rows of its relations, shape (rows, columns), and the count."""
    program = BY_NAME[strategy].of_query(query)
    result = Result("n", "count", ("count",), BIGINT, BIGINT, False)
    block = Block("global", query, (Output("n", Column("n", BIGINT, False)),), (result,))
    compiled = compile_block(program, block, (), (), None, counted=True)
    state = BlockState(program, compiled, 2, Dictionary())
    for name, table in rows.items():
        columns = {f"c{i}": np.ascontiguousarray(table[:, i]) for i in range(table.shape[1])}
        ones = np.ones(len(table), np.int64)
        state.run(name, {c: address_of(column) for c, column in columns.items()}, address_of(ones), len(table))
    state.end_version()
    if isinstance(program.upkeep, Evaluated):
        # Storing the rows moves no cursor.
        state.status[STATUS_STEPS] = 0
        state.evaluate()
    found = int(next(state.rows(1))[0, 0])
    steps = int(state.status[STATUS_STEPS])
    state.close()
    return steps, found


def main() -> None:
    for name in QUERIES:
        for strategy in STRATEGIES:
            sizes = [n for n in SIZES if strategy == PLANNED or n <= MOST_OF_BINARY]
            steps = [measure(f"{name}, N = {n:,}", strategy)["value"] for n in sizes]
            shown = ", ".join(f"{one:,}" for one in steps)
            print(f"{name}, {strategy}: N^{slope(sizes, steps):.2f} ({shown})", flush=True)


if __name__ == "__main__":
    main()
