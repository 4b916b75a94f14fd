"""Steps of updates, counted instead of timed: a q-hierarchical view from 10,000 to 10,000,000 rows.

A step is a lookup, a change of a stored view, or one turn of a loop. The triggers are compiled with a counter. The view
is initialised, and then 1,000 single updates of either table, inserts and deletes, are counted. The rows that were
deferred (``freshviews.kernel.hash.pending``) are flushed to the index before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freshviews.catalog.catalog import Catalog, ViewDefs
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.host_columns import lift_program
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.plan.planner import plan_block
from freshviews.sql.statements.sql_script import parse_script
from freshviews.types.dictionary import Dictionary

TITLE = "steps"
CASES = ("10,000 rows", "100,000 rows", "1,000,000 rows", "10,000,000 rows")
STRATEGIES = ("freshviews",)
UNIT = "steps/update"
TARGETS: dict[str, float] = {}

SCRIPT = """
    CREATE TABLE r (a BIGINT, b BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true');
    CREATE TABLE s (a BIGINT, c BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true');
    CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b * 1) AS b, COUNT(*) AS n FROM r JOIN s USING (a) GROUP BY a;
"""
UPDATES = 1000


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Maximum and mean steps of an update."""
    rows = int(case.split()[0].replace(",", ""))
    state, columns = counted_state(SCRIPT, "q-hierarchical")
    random = np.random.default_rng(1)
    keys = max(rows // 20, 1)
    taken = []
    for table, names in columns.items():
        values = {name: random.integers(0, keys if name == "a" else 1000, rows // 2) for name in names}
        run(state, table, values, 1)
    state.enter_pending()
    for table, names in columns.items():
        for _ in range(UPDATES // 4):
            values = {name: random.integers(0, keys if name == "a" else 1000, 1) for name in names}
            for sign in (1, -1):
                before = int(state.status[STATUS_STEPS])
                run(state, table, values, sign)
                taken.append(int(state.status[STATUS_STEPS]) - before)
    state.close()
    return {"value": max(taken), "most": max(taken), "mean": float(np.mean(taken)), "rows": rows}


def counted_state(script: str, kind: str) -> tuple[BlockState, dict[str, tuple[str, ...]]]:
    """As ``compiled_state``, with triggers that count their steps."""
    return compiled_state(script, kind, counted=True)


def compiled_state(script: str, kind: str, *, counted: bool) -> tuple[BlockState, dict[str, tuple[str, ...]]]:
    """The empty state of the one view of a script, and the columns that its triggers read of each table; ``counted``:
    the triggers count their steps. ``kind``: a prefix of the class of the query."""
    definitions: dict[str, TableDef | ViewDef] = {}
    for statement in parse_script(script, Catalog()):
        if isinstance(statement, TableDef):
            definitions[statement.name] = statement
        elif isinstance(statement, ViewDefs):
            (view,) = statement.views
    (block,) = view.blocks
    plan = plan_block(view, block, definitions)
    assert str(plan.kind).startswith(kind), plan.kind
    program, _ = lift_program(plan.program)
    compiled = compile_block(program, block, (), (), None, counted=counted)  # only triggers run
    width = len(block.query.free) + len(block.results) + 1
    state = BlockState(program, compiled, width, Dictionary())
    return state, {trigger.relation: trigger.columns for trigger in compiled.triggers}


def run(state: BlockState, table: str, values: dict[str, Codes], sign: int) -> None:
    """Run updates, all inserts or all deletes."""
    rows = len(next(iter(values.values())))
    multiplicities = np.full(rows, sign, np.int64)
    places = {name: address_of(column) for name, column in values.items()}
    state.run(table, places, address_of(multiplicities), rows)
    state.end_version()
