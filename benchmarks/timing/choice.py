"""The planner's choice compared with each strategy that accepts the view: CPU time of the same batches, in one process.

Each strategy has two databases, created in opposite orders; the faster one counts, as two databases of one program
differ by several percent. The planner's choice is mostly the program of a strategy by name; it then shares the
databases of that strategy: databases of its own would favour it or not. All run the next batches of the stream in turn,
and each time another one begins. A strategy that falls far behind is left out from then on.

``replanned`` is the strategy that ``db.replan(view, strategies=True)`` chooses by the rows of stored tables after half
of the stream.
"""

from __future__ import annotations

import gc
import time
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from typing import Any

from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.strategies import PLANNED
from benchmarks.measuring.stream import Step, Stream
from benchmarks.workloads import flights, graph, orderbook, snb, tpch_queries
from freshviews import Database, PlanError
from freshviews.program.program import Program

TITLE = "choice"
UNIT = "times the best"
STRATEGIES = (PLANNED,)
SLOW = ("4-hop", "4-cycle", "dumbbell")
CASES = (
    *(f"graph: {pattern}, skew 2.5{' tenth' if pattern in SLOW else ' half'}" for pattern in graph.PATTERNS),
    *(f"graph: {pattern}, skew {skew} half" for skew in ("3.0", "2.2") for pattern in ("3-hop", "triangle")),
    *(f"graph: {listed}, skew 3.0 half, deltas" for listed in ("triangle listed", "2-hop listed")),
    *(f"compiled: {view}, batches of 1000" for view in ("2-hop", "3-hop", "triangle", "star", "q3")),
    *(f"star: {order}" for order in ("in key order", "shuffled", "shuffled, SUM")),
    *(f"snb: {view}" for view in snb.VIEWS),
    *(f"orderbook: {view}" for view in orderbook.VIEWS),
    *(f"oumv: n = {n}" for n in (100, 300)),
    *(f"flights: {view}" for view in flights.VIEWS),
    *(f"tpch: {query}, small" for query in tpch_queries.QUERIES),
)
TARGETS = dict.fromkeys(CASES, 1.05)

NAMED = ("view_tree", "first_order", "higher_order", "change_propagation", "crown", "ivm_eps", "ivm_eps_linear")
ENOUGH = 8.0
"""CPU seconds after which a case ends."""
ROUNDS = 7
PIECES = 60
BEHIND = 4.0
"""A strategy that takes this many times as long as the best is left out."""


def prepare() -> None:
    """Generate the tables of TPC-H if they are missing."""
    module_of("tpch").prepare()


def measure(case: str, strategy: str) -> dict[str, Any]:
    """The CPU time of the planner's choice relative to the best strategy: the median of some rounds."""
    workload, _, inner = case.partition(": ")
    stream = module_of(workload).stream(inner)
    replanned = _replanned(stream)
    shares: dict[str, list[float]] = {}
    begun, rounds, rows, taken = time.process_time(), 0, 0, ""
    while rounds < ROUNDS and (rounds == 0 or time.process_time() - begun < ENOUGH):
        times, rows, taken = _round(stream)
        rounds += 1
        for name, seconds in times.items():
            shares.setdefault(name, []).append(seconds / times[PLANNED])
    # A strategy that was left out in a round was far behind.
    medians = {name: median(found) for name, found in shares.items() if len(found) == rounds}
    order = sorted(medians, key=lambda name: medians[name])
    note = ", ".join(f"{name} {medians[name]:.2f}" for name in order if name != PLANNED)
    best = min([1.0, *(share for name, share in medians.items() if name != taken)])
    found = {"value": 1 / best, "rows": rows, "rounds": rounds, "strategy_taken": taken, "note": note}
    # A name that is not a strategy is the planner's choice; a strategy that was left out has no time.
    share = 1.0 if replanned == taken else medians.get(replanned)
    found["replanned"] = replanned
    found["note"] += f"; replanned {replanned}" + ("" if share is None else f" {share / best:.2f} times the best")
    return found


def _replanned(stream: Stream) -> str:
    """The strategy of the view after ``db.replan(view, strategies=True)`` in the middle of the stream."""
    with Database(threads=1) as db:
        for relation in stream.relations:
            db.execute(relation.ddl(checked=True) if stream.checked or relation.declared else relation.plain_ddl())
        db.execute(f"CREATE MATERIALIZED VIEW v AS {stream.view}")
        begun = time.process_time()
        for step in stream.steps[: max(len(stream.steps) // 2, stream.before)]:
            _take(db, step)
            if time.process_time() - begun > ENOUGH:
                break
        db.replan("v", strategies=True)
        found: str = db.stats()["views"]["v"]["strategy"]
        return found


def _round(stream: Stream) -> tuple[dict[str, float], int, str]:
    """CPU seconds of the remaining strategies, their rows, and the planner's strategy."""
    with ExitStack() as stack:
        rivals: dict[str, list[Database]] = {}
        for names in ((PLANNED, *NAMED), (*reversed(NAMED), PLANNED)):
            for name in names:
                found = _database(stream, name)
                if found is not None:
                    rivals.setdefault(name, []).append(stack.enter_context(found))
        taken = rivals[PLANNED][0].stats()["views"]["v"]["strategy"]
        if _programs(rivals[PLANNED][0]) == _programs(*rivals.get(taken, ())[:1]):
            for db in rivals.pop(PLANNED):
                db.close()
            rivals = {PLANNED: rivals.pop(taken), **rivals}
        gc.collect()
        seconds, rows = _run(stream, rivals)
    return {name: min(both) for name, both in seconds.items()}, rows, taken


def _database(stream: Stream, name: str) -> Database | None:
    """A database with the view under a strategy; None if the strategy refuses it."""
    db = Database(threads=1)
    db.execute("".join(relation.ddl(checked=stream.checked) for relation in stream.relations))
    named = "" if name == PLANNED else f"TBLPROPERTIES ('freshviews.strategy' = '{name}')"
    try:
        db.execute(f"CREATE MATERIALIZED VIEW v {named} AS {stream.view}")
    except PlanError:
        db.close()
        return None
    if stream.deltas:
        db.view("v").subscribe(lambda change: None)
    return db


def _programs(*databases: Database) -> list[list[Program]]:
    """The programs of the view in each database, without their bounds, which also name other strategies."""
    blocks = [db.view("v").state.maintained.blocks for db in databases]
    return [[replace(block.state.program, bounds=()) for block in found] for found in blocks]


def _run(stream: Stream, rivals: dict[str, list[Database]]) -> tuple[dict[str, list[float]], int]:
    """CPU seconds of the databases of each remaining strategy, and their rows."""
    steps = stream.steps
    size = max(1, len(steps) // PIECES)
    seconds = {name: [0.0] * len(both) for name, both in rivals.items()}
    rows, begun = 0, time.process_time()
    for turn, first in enumerate(range(0, len(steps), size)):
        piece = steps[first : first + size]
        # The first piece loads code and creates tables; before the clock starts, tables are loaded.
        counts = first > 0 and first >= stream.before
        order = [(name, i) for name in seconds for i in range(len(seconds[name]))]
        turned = turn * (len(order) // 2 + 1) % len(order)
        for name, i in (*order[turned:], *order[:turned]):
            start = time.process_time()
            for step in piece:
                _take(rivals[name][i], step)
            if counts:
                seconds[name][i] += time.process_time() - start
        rows += sum(len(step.rows) for step in piece) if counts else 0
        least = min(map(min, seconds.values()))
        if counts and turn > 3:
            for name in [name for name, both in seconds.items() if min(both) > BEHIND * least + 0.02]:
                if name != PLANNED:
                    del seconds[name]
                    for db in rivals.pop(name):
                        db.close()
        if counts and time.process_time() - begun > ENOUGH:
            break
    return seconds, rows


def _take(db: Database, step: Step) -> None:
    change = db.apply if step.sign == 0 else db.insert if step.sign > 0 else db.delete
    change(step.table, step.rows)
