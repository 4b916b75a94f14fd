"""The cost of an update by the enclosureness of the stream: Figure 7 of Change Propagation Without Joins.

``R(a, b), S(b, c), T(a, d)`` over streams with a given lambda. Rows of R form groups. Within the lifespan of each group
as many rows of S are inserted and deleted, one after the other; each joins with an eighth of the group. T is empty, so
only propagation is measured. Over the tree r(s, t) every row of S is propagated to the rows of R: lambda_T steps. Over
the tree with r and s below [b] none is: lambda_T is 1 for every lambda. The case names the number of rows of S that a
row of R encloses; lambda_T is computed from the stream. Both trees store the rows of one group.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring.strategies import PLANNED
from freshviews import Database
from freshviews.advice.enclosure import Spans, lifespans, of_stream, of_tree
from freshviews.query.acyclic import JoinTree, with_children

TITLE = "enclosed"
UNIT = "us CPU/update"
STRATEGIES = (PLANNED,)
TREES = {"r(s, t)": "r(s, t)", "[b] with r(t), s": "[r_y](r(t), s)"}
WITHIN = (1, 4, 16, 64, 256, 1024)
CASES = tuple(f"{tree}, {within}" for tree in TREES for within in WITHIN)
TARGETS: dict[str, float] = {}
UPDATES = 1 << 17
SPREAD = 8
"""Values of b."""

SCRIPT = """CREATE TABLE g (kind BIGINT NOT NULL, x BIGINT NOT NULL, y BIGINT NOT NULL)
  TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.join_tree' = '{tree}') AS
  SELECT r.x AS a, r.y AS b, s.y AS c, t.y AS d FROM g r, g s, g t
  WHERE r.kind = 0 AND s.kind = 1 AND t.kind = 2 AND r.y = s.x AND r.x = t.x;"""


def updates_within(within: int, updates: int = UPDATES) -> pa.Table:
    """Signed updates with as many rows of R as of S; each row of R encloses ``within`` rows of S."""
    groups = updates // (4 * within)
    kind = np.concatenate([np.zeros(within, np.int64), np.ones(2 * within, np.int64), np.zeros(within, np.int64)])
    signs = np.concatenate([np.ones(within), np.tile([1, -1], within), -np.ones(within)]).astype(np.int64)
    number = np.concatenate([np.arange(within), np.repeat(np.arange(within), 2), np.arange(within)])
    every = np.tile(number, groups) + np.repeat(np.arange(groups) * within, 4 * within)
    is_r = np.tile(kind, groups) == 0
    b = np.tile(number % SPREAD, groups)
    columns = {"kind": np.tile(kind, groups), "x": np.where(is_r, every, b), "y": np.where(is_r, b, every)}
    return pa.table({**columns, "_multiplicity": np.tile(signs, groups)})


def spans_of(updates: pa.Table) -> dict[str, Spans]:
    """The lifespans of the rows of r, s and t."""
    kind, x, y, m = (updates[name].to_numpy() for name in ("kind", "x", "y", "_multiplicity"))
    times = np.arange(len(updates))
    found = {}
    for number, name in enumerate("rst"):
        own = kind == number
        found[name] = lifespans(np.column_stack([x[own], y[own]]), m[own], times[own])
    return found


def tree_of(name: str) -> JoinTree:
    """A tree by its name, for ``freshviews.advice.enclosure``."""
    r, s, t = (JoinTree(one, frozenset(variables)) for one, variables in (("r", "ab"), ("s", "bc"), ("t", "ad")))
    if name.startswith("["):
        return with_children(JoinTree(None, frozenset("b")), (with_children(r, (t,)), s))
    return with_children(r, (s, t))


def measure(case: str, strategy: str) -> dict[str, Any]:
    """CPU time of an update, in microseconds, and the stream's lambda and lambda_T."""
    tree, _, within = case.rpartition(", ")
    updates = updates_within(int(within))
    spans = spans_of(updates)
    with Database() as db:
        db.execute(SCRIPT.format(tree=TREES[tree]))
        # The driver of single updates is compiled at its first use.
        warm = pa.table({"kind": [0, 0], "x": [-1, -1], "y": [-1, -1], "_multiplicity": [1, -1]})
        rows = sum(len(batch) for batch in db.apply_in_order("g", warm, "v"))
        start = time.process_time()
        rows += sum(len(batch) for batch in db.apply_in_order("g", updates, "v"))
        spent = time.process_time() - start
        size = db.bytes_of("v")  # tables do not shrink
    assert rows == 0
    found = of_tree(tree_of(tree), spans)
    note = f"lambda {of_stream(spans):.1f}, lambda_T {found:.1f}, {size:,} bytes"
    value = spent / len(updates) * 1e6
    return {"value": value, "lambda_t": found, "bytes": size, "note": note, "strategy_taken": "crown"}
