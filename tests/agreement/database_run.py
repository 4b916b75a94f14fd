"""A scenario through the public API: the views that a user sees equal those of the oracle."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from freshviews import BatchError, Database
from freshviews.engine.change import Change
from tests.agreement.by_key import calls_of, commit_by_key, may_change_by_key
from tests.agreement.collecting import collecting, rows_in_steps
from tests.agreement.duckdb_peer import exact
from tests.agreement.evaluators import Rows, is_determined
from tests.agreement.scenario import Row, Scenario, Version
from tests.agreement.views_of_script import Definitions


def check_database(
    scenario: Scenario,
    definitions: Definitions,
    contents: list[dict[str, Rows]],
    late: bool = False,
    directory: Path | None = None,
) -> None:
    """Commit every version and compare every view.

    ``late``: the views are created after half of the versions, so they are backfilled from the tables.
    ``directory``: the database is stored there, and reopened after every version.
    """
    half = len(scenario.versions) // 2 if late and not any(t.trusted for t in scenario.tables) else 0
    database = collecting(Database(directory))
    database.execute("; ".join(table.text.spark for table in scenario.tables))
    sums: dict[str, Counter[Row]] = {}
    for i, (version, after) in enumerate(zip(scenario.versions, contents, strict=True)):
        if i == half:
            _create_views(database, scenario, sums)
        _commit(database, version, scenario, i)
        _refuse(database, scenario, version)
        if i >= half:
            for view in scenario.views:
                expected = _values(definitions, view.name, after[view.name])
                found = Counter(map(exact, rows_in_steps(database.view(view.name), 2 + i % 3)))
                seen = Counter({row: m for row, m in expected.items() if m > 0})
                if not is_determined(definitions, after):
                    continue
                assert found == seen, f"{view.name} in the database: {found} is not {seen}"
                reported = {row: m for row, m in sums[view.name].items() if m}
                assert reported == expected, f"changes of {view.name} add up to {reported}, not to {expected}"
        if directory is not None:
            database.close()
            database = collecting(Database(directory))
            if i >= half:
                _subscribe(database, scenario, sums)
    database.close()


def _create_views(database: Database, scenario: Scenario, sums: dict[str, Counter[Row]]) -> None:
    database.execute(";\n".join(view.text.spark for view in (*scenario.plain, *scenario.views)))
    for view in scenario.views:
        sums[view.name] = Counter(map(exact, database.view(view.name)))
    _subscribe(database, scenario, sums)


def _subscribe(database: Database, scenario: Scenario, sums: dict[str, Counter[Row]]) -> None:
    """Adds up the changes of every view."""

    def add(change: Change) -> None:
        for *row, m in zip(*(column.to_pylist() for column in change.to_arrow().columns), strict=True):
            sums[change.view][exact(tuple(row))] += m

    for view in scenario.views:
        database.view(view.name).subscribe(add)


def _commit(database: Database, version: Version, scenario: Scenario, number: int) -> None:
    """Commit a version; every other one by key, as far as tables have keys."""
    if number % 2 and any(may_change_by_key(scenario.table(name)) for name, _ in version):
        calls = (calls_of(scenario.table(name), updates, number // 2 % 4) for name, updates in version)
        commit_by_key(database, [*chain.from_iterable(calls)])
        return
    if len(version) == 1:
        ((table, updates),) = version
        database.apply(table, [(*row, m) for row, m in updates])
        return
    with database.batch() as batch:
        for table, updates in version:
            batch.apply(table, [(*row, m) for row, m in updates])


def _refuse(database: Database, scenario: Scenario, version: Version) -> None:
    """A version that deletes a missing row, or repeats a key, is refused as a whole."""
    for table, updates in version:
        stored = list(database.table(table)) if may_change_by_key(scenario.table(table)) else []
        if stored:
            with pytest.raises(BatchError):
                database.insert(table, stored * (1 + 40 // len(stored)))
        if scenario.table(table).trusted:
            continue
        with pytest.raises(BatchError), database.batch() as batch:
            for name, more in version:
                batch.apply(name, [(*row, abs(m)) for row, m in more])
            batch.apply(table, [(*updates[0][0], -1000)])


def _values(definitions: Definitions, view: str, rows: Rows) -> dict[Row, int]:
    found: Counter[Any] = Counter()
    for key, m in rows.items():
        found[exact(definitions.values(view, key))] += m
    return dict(found)
