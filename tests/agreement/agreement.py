"""Runs one scenario through every evaluator, and compares them after every version.

The oracle computes each view from the definition alone. DuckDB recomputes the user's views from their own
SQL, and the oracle must agree with it. Each strategy's programs, compiled (or as plain Python) in the engine and
interpreted over dicts, must agree with the oracle, in codes, to the last bit of a double.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.query.sharing import with_shared_sums
from tests.agreement.database_run import check_database
from tests.agreement.duckdb_peer import PEER_FAILED, DuckDb, comparable, restart
from tests.agreement.evaluators import Engine, Interpreter, Oracle, Rows, change_of, is_determined, updates_of
from tests.agreement.scenario import Row, Scenario
from tests.agreement.views_of_script import FACTORISED, Definitions, definitions_of
from tests.plan.oracle import Relation

EVERY_STRATEGY: tuple[str | None, ...] = (None, *STRATEGIES, FACTORISED)
"""None is the planner's choice."""
BAGS_BY_TRACE = "crown over incremental_trie_join"

_RAW_ROWS = 3
"""Few raw rows per read, so that readers have to resume."""

Step = tuple[dict[str, CodeBatch], dict[str, Rows]]


def check(
    scenario: Scenario,
    strategies: Iterable[str | None] = EVERY_STRATEGY,
    interpreted: bool = True,
    database: str | None = None,
) -> list[str | None]:
    """All evaluators agree on every view after every version, and on the change that led there.

    Returns the strategies that maintain the views; strategies that refused them were skipped. ``database`` adds the
    public API: "live", "late" (views are created over tables with rows) or "durable" (it is reopened after every
    version).
    """
    definitions = definitions_of(scenario)
    steps = list(_oracle_steps(scenario, definitions))
    maintained = []
    for strategy in strategies:
        try:
            check_strategy(definitions.under(strategy), steps, interpreted)
            maintained.append(strategy)
        except PlanError:
            # A strategy may refuse a view, the planner may not.
            assert strategy is not None
    contents = [after for _, after in steps]
    if database == "durable":
        with TemporaryDirectory() as directory:
            check_database(scenario, definitions, contents, directory=Path(directory))
    elif database is not None:
        check_database(scenario, definitions, contents, late=database == "late")
    return maintained


def _oracle_steps(scenario: Scenario, definitions: Definitions) -> Iterable[Step]:
    """For each version its batches and the contents of every relation after it, on which DuckDB agrees."""
    oracle = Oracle(definitions)
    peer = DuckDb(scenario) if scenario.duckdb else None
    stored: dict[str, Counter[Row]] = {table.name: Counter() for table in scenario.tables}
    stale = set(stored)
    for version in scenario.versions:
        batches = {table: definitions.batch(table, updates) for table, updates in version}
        oracle.apply(batches)
        for table, updates in version:
            stale.add(table)
            for row, m in updates:
                stored[table][row] += m
        if peer is not None and oracle.is_bag():
            try:
                for table in stale:
                    peer.fill(table, stored[table])
                stale.clear()
                _check_duckdb(scenario, definitions, oracle, peer)
            except PEER_FAILED:
                restart()
                peer = None
        yield batches, {name: Counter(one.rows) for name, one in oracle.relations.items()}


def _check_duckdb(scenario: Scenario, definitions: Definitions, oracle: Oracle, peer: DuckDb) -> None:
    for view in scenario.views:
        ours: Counter[Row] = Counter()
        for key, m in oracle.relations[view.name].rows.items():
            ours[comparable(definitions.values(view.name, key))] += m
        theirs = peer.rows(view.name)
        assert ours == theirs, _difference(f"the oracle and DuckDB on {view.name}", ours, theirs)


def check_strategy(definitions: Definitions, steps: list[Step], interpreted: bool) -> None:
    """The engine and the interpreter under the strategies that the views name."""
    engine = Engine(definitions)
    try:
        if interpreted:
            _check_interpreter(engine, definitions, steps)
        _check_engine(engine, definitions, steps)
    finally:
        engine.close()


def _check_engine(engine: Engine, definitions: Definitions, steps: list[Step]) -> None:
    before = start = {view.name: engine.contents(view.name, _RAW_ROWS) for view in definitions.views}
    stored = engine.stored_rows()
    for batches, after in steps:
        changes = engine.apply(batches)
        for view in definitions.views:
            place = f"{view.name} under {view.strategy}"
            found = engine.contents(view.name, _RAW_ROWS)
            if is_determined(definitions, after):
                assert found == after[view.name], _difference(f"engine and oracle on {place}", found, after[view.name])
            reported = updates_of(changes[view.name])
            sums: Rows = Counter()
            for key, m in reported:
                sums[key] += m
            assert len(sums) == len(reported) and 0 not in sums.values(), f"the change of {place} is not consolidated"
            expected = updates_of(change_of(view.name, before[view.name], found, definitions))
            assert sums == Counter(dict(expected)), f"the change of {place}: {sums} is not {dict(expected)}"
            _check_get(engine, definitions, view.name, found)
            before = before | {view.name: found}
    # Undoing everything leaves each view as it was, and no row stored.
    for batches, _ in reversed(steps):
        engine.apply({name: batch.negated() for name, batch in reversed(batches.items())})
    for view in definitions.views:
        found = engine.contents(view.name, _RAW_ROWS)
        assert found == start[view.name], _difference(f"{view.name} taken back and at first", found, start[view.name])
    left = engine.stored_rows()
    assert left == stored, f"stored after everything was taken back: {left}, at first: {stored}"


def _check_get(engine: Engine, definitions: Definitions, view: str, rows: Rows) -> None:
    """Each row is found by the key of its group; absent keys are not found."""
    maintained = engine.views[view]
    if not maintained.group_columns:
        return
    names = [c.name for c in definitions.relations[view].columns]
    places = [names.index(name) for name in maintained.group_columns]
    for row in rows:
        assert maintained.get(tuple(row[i] for i in places)) == [(row, rows[row])], f"{view}: get of {row}"
    absent = tuple(-(2**40) for _ in places)
    assert maintained.get(absent) == []


def _check_interpreter(engine: Engine, definitions: Definitions, steps: list[Step]) -> None:
    """The programs of every block, given the oracle's changes of the block's inputs."""
    running = [
        (view.name, Interpreter(block, plan.program, definitions))
        for view in definitions.views
        for block, plan in zip(map(with_shared_sums, view.blocks), engine.views[view.name].plans, strict=True)
    ]
    before: dict[str, Rows] = {name: Counter() for name in definitions.relations}
    if any(view.constants or any(block.kind == "global" for block in view.blocks) for view in definitions.views):
        oracle = Oracle(definitions)
        oracle.apply({})
        start = {view.name: oracle.relations[view.name].rows for view in definitions.views}
        for _, interpreter in running:
            interpreter.apply({n: change_of(n, Counter(), rows, definitions) for n, rows in start.items()})
        before |= start
    for _, after in steps:
        changes = {name: change_of(name, before[name], after[name], definitions) for name in after}
        relations = {
            name: Relation(tuple(c.name for c in definitions.relations[name].columns), rows)
            for name, rows in after.items()
        }
        for name, interpreter in running:
            interpreter.apply(changes)
            found, expected = interpreter.output(), interpreter.expected(relations)
            if is_determined(definitions, after):
                assert found == expected, f"interpreter and oracle on {name}: {found} is not {expected}"
        before = after


def _difference(what: str, ours: Rows | Counter[Row], theirs: Rows | Counter[Row]) -> str:
    more = {row: m - theirs[row] for row, m in ours.items() if m > theirs[row]}
    less = {row: m - ours[row] for row, m in theirs.items() if m > ours[row]}
    return f"{what}: only the first has {more}, only the second {less}"
