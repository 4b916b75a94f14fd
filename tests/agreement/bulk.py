"""Many rows per version, so that tables grow, shrink and chain: the engine against DuckDB alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from freshviews.errors import PlanError
from tests.agreement.duckdb_peer import DuckDb, comparable
from tests.agreement.evaluators import Engine, updates_of
from tests.agreement.scenario import BaseTable, Row, Scenario, TableColumn, Update, Version
from tests.agreement.views_of_script import Definitions, definitions_of

DOMAIN = 30
"""Values of a join column."""


def check_bulk(scenario: Scenario, strategies: Iterable[str | None], rows: int, seed: int) -> None:
    """Views and the sums of their changes equal DuckDB's after every version, under every strategy."""
    definitions = definitions_of(scenario)
    engines = {s: engine for s in strategies if (engine := _engine(definitions, s)) is not None}
    sums: dict[tuple[str | None, str], Counter[Row]] = {}
    for strategy, engine in engines.items():
        for view in scenario.views:
            sums[strategy, view.name] = Counter(engine.contents(view.name, 1 << 16))
    peer = DuckDb(scenario)
    stored: dict[str, Counter[Row]] = {table.name: Counter() for table in scenario.tables}
    for version in _versions(scenario.tables, stored, rows, random.Random(seed)):
        for name, _ in version:
            peer.fill(name, stored[name])
        expected = {view.name: peer.rows(view.name) for view in scenario.views}
        batches = {name: definitions.batch(name, updates) for name, updates in version}
        for strategy, engine in engines.items():
            changes = engine.apply(batches)
            for view in scenario.views:
                held = engine.contents(view.name, 1000)
                found: Counter[Row] = Counter()
                for key, m in held.items():
                    found[comparable(definitions.values(view.name, key))] += m
                assert found == expected[view.name], f"{view.name} under {strategy} differs from DuckDB"
                reported = sums[strategy, view.name]
                for key, m in updates_of(changes[view.name]):
                    reported[key] += m
                assert +reported == held and not -reported, f"changes of {view.name} under {strategy} do not add up"
    for engine in engines.values():
        engine.close()


def _engine(definitions: Definitions, strategy: str | None) -> Engine | None:
    """An engine under a strategy; None if the strategy refuses a view. The planner may not refuse one."""
    try:
        return Engine(definitions.under(strategy))
    except PlanError:
        assert strategy is not None
        return None


def _versions(
    tables: tuple[BaseTable, ...], stored: dict[str, Counter[Row]], rows: int, choose: random.Random
) -> Iterator[Version]:
    """Inserts with some deletes, then mostly deletes, then deletes of all rows, then a few rows again."""
    for deletes in (0.0, 0.3, 0.3, 0.8, 1.0, 0.0):
        version = []
        for table in tables:
            held = stored[table.name]
            wanted = len(held) if deletes == 1.0 else rows
            updates = [one for _ in range(wanted) for one in _updates(table, held, deletes, choose)]
            choose.shuffle(updates)
            version.append((table.name, tuple(updates)))
        yield tuple(version)


def _updates(table: BaseTable, held: Counter[Row], deletes: float, choose: random.Random) -> list[Update]:
    if held and choose.random() < deletes:
        row = next(iter(held))
        return [(row, -held.pop(row))]
    row = tuple(_value(column, choose) for column in table.columns)
    if table.key_of(row) is not None and any(table.key_of(one) == table.key_of(row) for one in held):
        return []
    held[row] += 1
    return [(row, 1)]


def _value(column: TableColumn, choose: random.Random) -> Any:
    if column.nullable and choose.random() < 0.05:
        return None
    match column.type:
        case "BIGINT":
            return choose.randrange(DOMAIN)
        case "INT":
            return choose.randint(-100, 100)
        case "DECIMAL(6, 2)":
            return Decimal(choose.randint(-999, 999)).scaleb(-2)
        case "DOUBLE":
            return choose.randint(-4000, 4000) / 8
        case _:
            return "".join(choose.choice("abcé") for _ in range(choose.randint(0, 3)))
