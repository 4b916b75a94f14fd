"""Cells simulated by databases in one process, and the second stage by another, compared with one engine."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from freshviews import Database
from freshviews.catalog.catalog import Catalog, Statement
from freshviews.catalog.clock import is_clock
from freshviews.catalog.definitions import TableDef
from freshviews.cells import (
    CellPlan,
    cell_statements,
    cells_of,
    merge_inputs,
    merge_statements,
    outputs,
    plan_cells,
    window_statements,
    windowed_tables,
)
from freshviews.engine.change import Change
from freshviews.sql.statements.sql_script import parse_script
from tests.agreement.duckdb_peer import exact
from tests.agreement.scenario import Row, Version

Rows = Counter[Row]


def hashed(value: Any, kind: str, seed: int) -> int:
    """Any hash that is the same for equal values."""
    return int.from_bytes(hashlib.blake2b(f"{value}/{kind}/{seed}".encode(), digest_size=4).digest(), "big")


def catalog_of(script: str) -> Catalog:
    catalog = Catalog()
    for statement in parse_script(script, catalog):
        catalog = catalog.after(statement)
    return catalog


class Engine:
    """A database that collects the changes of some views until they are taken."""

    def __init__(self, statements: Iterable[Statement], views: Iterable[str]) -> None:
        self.database = Database()
        self.statements = tuple(statements)
        self.database.define(self.statements)
        self.views = tuple(view for view in views if view in self.database.views)
        self.changes: dict[str, Rows] = {}
        self._subscribe()
        for view in self.views:
            self.changes[view] = self.contents(view)

    def _subscribe(self) -> None:
        for view in self.views:
            self.database.view(view).subscribe(self._add)

    def restart(self, folder: Path) -> None:
        """Continue from an image of the database."""
        self.database.write_image(folder)
        self.database.close()
        self.database = Database.from_image(folder, self.statements)
        self._subscribe()

    def _add(self, change: Change) -> None:
        self.changes.setdefault(change.view, Counter()).update(dict(change))

    def apply(self, tables: Mapping[str, list[tuple[Row, int]]]) -> None:
        with self.database.batch() as batch:
            for table, rows in tables.items():
                if rows:
                    batch.apply(table, [(*row, m) for row, m in rows])

    def take(self) -> dict[str, Rows]:
        """The changes since the last call; at the first call the contents."""
        taken, self.changes = self.changes, {}
        return taken

    def contents(self, view: str) -> Rows:
        if view not in self.database.views:
            return Counter()
        return Counter(self.database.view(view))


class Cells:
    """All cells of a plan, and the second stage. ``contents`` of views add up from their changes."""

    def __init__(self, plan: CellPlan, catalog: Catalog) -> None:
        self.plan, self.catalog = plan, catalog
        self.outputs, self.inputs = outputs(plan, catalog), merge_inputs(plan, catalog)
        wanted = {v for o in self.outputs.values() if o.stage == "cells" for v in o.views}
        wanted |= {v for views in self.inputs.values() for v in views}
        self.cells = [Engine(cell_statements(plan, catalog, cell), sorted(wanted)) for cell in range(plan.cells)]
        self.windowed = windowed_tables(plan, catalog)
        self.windows = Engine(window_statements(plan, catalog), self.windowed.values())
        merge = merge_statements(plan, catalog)
        asked = [v for o in self.outputs.values() if o.stage == "merge" for v in o.views]
        self.merge = Engine(merge, asked) if merge else None
        assert set(self.inputs) == {one.name for one in merge if isinstance(one, TableDef)}
        self.contents: dict[str, Rows] = {view: Counter() for view in self.outputs}
        self.collect()

    def apply(self, version: Version) -> dict[str, Rows]:
        """The change of every user's view."""
        for cell, tables in enumerate(self.routed(self.moved(version))):
            self.cells[cell].apply(tables)
        return self.collect()

    def moved(self, version: Version) -> Version:
        """The version with the changes of windows instead of the arriving rows."""
        self.windows.apply({table: updates for table, updates in version if table in self.windowed})
        changes = self.windows.take()
        return [
            (table, list(changes.get(self.windowed[table], {}).items()) if table in self.windowed else updates)
            for table, updates in version
        ]

    def routed(self, version: Version) -> list[dict[str, list[tuple[Row, int]]]]:
        """Per cell the changes of its tables."""
        found: list[dict[str, list[tuple[Row, int]]]] = [{} for _ in self.cells]
        for table, updates in version:
            definition = self.catalog.table(table)
            assert definition is not None
            names = [column.name for column in definition.columns]
            for role in self.plan.roles_of(table):
                for row, m in updates:
                    # Every cell sets the clock by itself.
                    reached = cells_of(role, dict(zip(names, row, strict=True)), hashed)
                    for cell in range(self.plan.cells) if is_clock(table) else reached:
                        found[cell].setdefault(role.name, []).append((row, m))
        return found

    def collect(self) -> dict[str, Rows]:
        taken = [engine.take() for engine in self.cells]

        def union(views: Iterable[str]) -> Rows:
            total: Rows = Counter()
            for view in views:
                for changes in taken:
                    total.update(changes.get(view, {}))
            return total

        merged: dict[str, Rows] = {}
        if self.merge is not None:
            self.merge.apply({table: list(union(views).items()) for table, views in self.inputs.items()})
            merged = self.merge.take()
        changes = {}
        for view, output in self.outputs.items():
            change = union(output.views) if output.stage == "cells" else merged.get(output.views[0], Counter())
            changes[view] = comparable(change)
            self.contents[view].update(changes[view])
        return changes

    def schemas(self) -> dict[str, Any]:
        """The columns of every user's view; they are the same in all cells."""
        found = {}
        for view, output in self.outputs.items():
            engines = self.cells if output.stage == "cells" else [self.merge]
            known = [e.database.view(v).schema for e in engines for v in output.views if e and v in e.database.views]
            assert known and all(one == known[0] for one in known), view
            found[view] = known[0]
        return found

    @property
    def engines(self) -> list[Engine]:
        return [*self.cells, *([self.merge] if self.merge else [])]

    def restart(self, folder: Path) -> None:
        """Continue from images of all engines."""
        for number, engine in enumerate(self.engines):
            engine.restart(folder / str(number))

    def close(self) -> None:
        for engine in self.engines:
            engine.database.close()


def comparable(rows: Mapping[Row, int]) -> Rows:
    total: Rows = Counter()
    for row, m in rows.items():
        total[exact(row)] += m
    return Counter({row: m for row, m in total.items() if m})


def check(plan: CellPlan, catalog: Catalog, versions: Iterable[Version], images: Path | None = None) -> None:
    """Check that after every version the change and the contents of every view equal those of one engine.

    ``images``: a folder for images, from which the cells continue after each second version.
    """
    whole = Engine(one_engine(catalog), [v.name for v in catalog.views.values() if not v.internal])
    cells = Cells(plan, catalog)
    try:
        assert cells.schemas() == {view: whole.database.view(view).schema for view in cells.outputs}
        same(cells.contents, {name: comparable(rows) for name, rows in whole.take().items()}, "at first")
        for number, version in enumerate(versions, 1):
            batch: dict[str, list[tuple[Row, int]]] = {}
            for table, updates in version:
                batch.setdefault(table, []).extend(updates)
            whole.apply(batch)
            expected = {name: comparable(rows) for name, rows in whole.take().items()}
            same(cells.apply(version), expected, f"the change of version {number}")
            stands = {name: Counter(dict(r)) for name, r in cells.contents.items()}
            same(stands, {name: comparable(whole.contents(name)) for name in stands}, f"version {number}", True)
            if images is not None and number % 2 == 0:
                cells.restart(images / str(number))
    finally:
        cells.close()
        whole.database.close()


def one_engine(catalog: Catalog) -> tuple[Statement, ...]:
    return cell_statements(plan_cells(catalog, 1, {}), catalog, 0)


def random_versions(catalog: Catalog, seed: int, values: int) -> list[Version]:
    """Batches of inserts and deletes of rows of small integers."""
    rng = random.Random(seed)
    stored: dict[str, list[tuple[int, ...]]] = {name: [] for name in catalog.tables}
    found = []
    for _ in range(6):
        version = []
        for name, table in catalog.tables.items():
            gone = [stored[name].pop(rng.randrange(len(stored[name]))) for _ in range(min(4, len(stored[name])))]
            new = [tuple(rng.randrange(values) for _ in table.columns) for _ in range(12)]
            stored[name] += new
            version.append((name, (*((row, -1) for row in gone), *((row, 1) for row in new))))
        found.append(tuple(version))
    return found


def same(found: Mapping[str, Rows], expected: Mapping[str, Rows], what: str, positive: bool = False) -> None:
    for view, rows in found.items():
        ours = {row: m for row, m in rows.items() if (m > 0 if positive else m)}
        theirs = {row: m for row, m in expected.get(view, Counter()).items() if m}
        assert ours == theirs, f"{view}, {what}: cells have {ours}, one engine {theirs}"
