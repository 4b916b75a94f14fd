"""Steps and space of the triangle count with heavy and light parts, counted on hard streams.

The streams are those of ``benchmarks.workloads.hard``, with three shapes of matrix. ``square``: n x n, with rows of
length N^(1/2). ``wide``: four rows as long as the relations, so that a scan of one row takes linear time.
``matched``: rows as long as is worst for the exponent: just light from 1/2 on, just heavy below it. A step is defined
in ``benchmarks.counting.steps``. The figure is the largest mean over a phase. A phase loads the matrix, rebalancing
included, or one vector. The matrix is in the relation, of the three, for which the figure is largest.

``python -m benchmarks full --only eps_steps`` measures all cases. ``python -m benchmarks.counting.eps_steps [N]``
prints each figure and the slopes of the logarithms, up to N rows (10^5); up to 10^6 it takes five minutes and less
than 0.7 GB. Every strategy runs at the largest N: those with linear time have few updates there.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from benchmarks.measuring.machine import most_resident_bytes
from benchmarks.measuring.strategies import PLANNED
from benchmarks.workloads.hard import Update, oumv_stream
from freshviews.catalog.catalog import Catalog, ViewDefs
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.host_columns import lift_program
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.plan.planner import plan_block
from freshviews.program.program import Program
from freshviews.query.block import Block
from freshviews.sql.statements.sql_script import parse_script
from freshviews.types.dictionary import Dictionary

TITLE = "hard stream"
UNIT = "steps/update"
TARGETS: dict[str, float] = {}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SHAPES = ("square", "wide", "matched")
CASES = tuple(f"{shape}, N = {n:,}" for shape in SHAPES for n in SIZES)
EXPONENTS = ("0", "1/4", "1/3", "1/2", "2/3", "3/4", "1")
LINEAR = ("1/2", "2/3", "3/4")
STRATEGIES = (
    PLANNED,
    *(f"ivm_eps, eps = {eps}" for eps in EXPONENTS),
    *(f"ivm_eps_linear, eps = {eps}" for eps in LINEAR),
    "first_order",
    "view_tree",
)
ROUNDS = 3
BATCH = 1000

Batch = tuple[str, Codes, Codes]
"""A table, its rows (one word per column), and their multiplicities."""

SCRIPT = """
    CREATE TABLE r (c0 BIGINT NOT NULL, c1 BIGINT NOT NULL) TBLPROPERTIES ('freshviews.trusted' = 'true');
    CREATE TABLE s (c0 BIGINT NOT NULL, c1 BIGINT NOT NULL) TBLPROPERTIES ('freshviews.trusted' = 'true');
    CREATE TABLE t (c0 BIGINT NOT NULL, c1 BIGINT NOT NULL) TBLPROPERTIES ('freshviews.trusted' = 'true');
    CREATE MATERIALIZED VIEW v {} AS
        SELECT COUNT(*) AS n FROM r JOIN s ON r.c1 = s.c0 JOIN t ON s.c1 = t.c0 AND t.c1 = r.c0;
"""


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Steps of an update, rows and bytes of all views."""
    shape, _, size = case.partition(", N = ")
    n = int(size.replace(",", ""))
    rows, columns = _sides(shape, n, exponent_of(strategy))
    found = [_measured(strategy, rows, columns, turn) for turn in range(3)]
    steps, stored, size_in_bytes = (max(column) for column in zip(*found, strict=True))
    return {"value": steps, "rows": rows * columns // 2, "stored": stored, "peak_bytes": size_in_bytes}


def exponent_of(strategy: str) -> float:
    """The exponent with which a strategy is measured, 1/2 if its name has none."""
    _, _, eps = strategy.partition(", eps = ")
    return float(Fraction(eps)) if eps else 0.5


def _sides(shape: str, n: int, epsilon: float) -> tuple[int, int]:
    """Rows and columns of a matrix of 2 n bits, about half of them 1."""
    if shape == "wide":
        return 4, n // 2
    if shape == "square":
        return math.isqrt(2 * n), math.isqrt(2 * n)
    # The threshold is that of a base between n and 4 n, and of a value that is heavy in part of the stream.
    columns = round(2 * n**epsilon if epsilon >= 0.5 else 6 * n**epsilon)
    return max(2 * n // columns, 2), columns


def _measured(strategy: str, rows: int, columns: int, turn: int) -> tuple[float, int, int]:
    """Steps, rows and bytes on the stream with its matrix in s, in t, or in r: one of them is hard for a view tree."""
    state, counted = _state(strategy)
    names = {name: "rst"[("RST".index(name) + turn) % 3] for name in "RST"}
    steps, stored, size_in_bytes = [], 0, 0
    for phase in _phases(rows, columns):
        taken: dict[str, int] = {}
        updates: dict[str, int] = {}
        for name, values, multiplicities in phase:
            before = int(state.status[STATUS_STEPS])
            _run(state, counted, names[name], values, multiplicities)
            taken[name] = taken.get(name, 0) + int(state.status[STATUS_STEPS]) - before
            updates[name] = updates.get(name, 0) + len(multiplicities)
        steps += [taken[name] / updates[name] for name in taken]
        sizes = state.sizes().values()
        stored = max(stored, sum(number for number, _ in sizes))
        size_in_bytes = max(size_in_bytes, sum(size for _, size in sizes))
    state.close()
    return max(steps), stored, size_in_bytes


@lru_cache(maxsize=1)
def _phases(rows: int, columns: int) -> tuple[tuple[Batch, ...], ...]:
    """The phases of the stream in batches; cached, as drawing them takes longer than most strategies do."""
    return tuple(tuple(_batches(phase)) for phase in oumv_stream(rows, columns, ROUNDS))


def _batches(phase: list[Update]) -> Iterator[Batch]:
    for table, updates in groupby(phase, itemgetter(0)):
        words = np.array([(*row, m) for _, row, m in updates], np.int64)
        for i in range(0, len(words), BATCH):
            yield table, words[i : i + BATCH, :2], words[i : i + BATCH, 2]


def _state(strategy: str) -> tuple[BlockState, Mapping[str, tuple[str, ...]]]:
    name, given = strategy.partition(", eps = ")[0], exponent_of(strategy)
    program, block = _planned(name, given)
    # The choice of partitions is compiled; the exponent is a word of the state.
    source, _ = _planned(name, 0.5) if 0 < given < 1 else (program, block)
    lifted, _ = lift_program(source)
    compiled = compile_block(lifted, block, (), (), None, counted=True)
    width = len(block.query.free) + len(block.results) + 1
    state = BlockState(lift_program(program)[0], compiled, width, Dictionary())
    return state, {trigger.relation: trigger.columns for trigger in compiled.triggers}


def _planned(name: str, epsilon: float) -> tuple[Program, Block]:
    properties = "" if name == PLANNED else f"TBLPROPERTIES ('freshviews.strategy' = '{name}')"
    if name.startswith("ivm_eps"):
        properties = f"TBLPROPERTIES ('freshviews.strategy' = '{name}', 'freshviews.epsilon' = '{epsilon!r}')"
    definitions: dict[str, TableDef | ViewDef] = {}
    for statement in parse_script(SCRIPT.format(properties), Catalog()):
        if isinstance(statement, TableDef):
            definitions[statement.name] = statement
        elif isinstance(statement, ViewDefs):
            (view,) = statement.views
    (block,) = view.blocks
    return plan_block(view, block, definitions).program, block


def _run(
    state: BlockState, columns: Mapping[str, tuple[str, ...]], table: str, rows: Codes, multiplicities: Codes
) -> None:
    places = {name: address_of(rows[:, int(name[1])]) for name in columns[table]}
    state.run(table, places, address_of(multiplicities), len(multiplicities))


def slope(points: list[tuple[float, float]]) -> float:
    """The slope of the regression line through the logarithms."""
    x, y = np.log(np.array(points, float)).T
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    largest = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000
    sizes = [n for n in (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000) if n <= largest]
    for shape in SHAPES:
        found: dict[str, list[dict[str, Any]]] = {strategy: [] for strategy in STRATEGIES}
        for n in sizes:  # outermost, so that the stream of a size is drawn once
            for strategy, measured in found.items():
                measured.append(measure(f"{shape}, N = {n}", strategy))
                steps, stored = measured[-1]["value"], measured[-1]["stored"]
                print(f"{shape}, {n:,}, {strategy}: {steps:,.1f} steps, {stored:,} rows", flush=True)
            print(f"-- {time.process_time():.0f} CPU s, {most_resident_bytes() / 1e6:.0f} MB", flush=True)
        for strategy, measured in found.items():
            slopes = [slope([(one["rows"], one[key]) for one in measured]) for key in ("value", "stored")]
            print(f"{shape}, {strategy}: steps N^{slopes[0]:.2f}, space N^{slopes[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
