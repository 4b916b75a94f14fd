"""Derives the engines of a pipeline from its plan of cells: the cells, and the merge, which combines their results.

Each engine is given as the SQL statements that create its tables and views.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from freshviews.catalog.clock import CLOCK
from freshviews.catalog.kept_rings import aggregate_to_json
from freshviews.catalog.rings import aggregate_of
from freshviews.cells import (
    CellPlan,
    Output,
    Role,
    cell_statements,
    extended,
    merge_inputs,
    merge_statements,
    outputs,
    window_statements,
    windowed_tables,
)
from freshviews.errors import StoreError
from freshviews.records import dataclass
from freshviews.spark.definition import Definition, catalog_of
from freshviews.spark.state.manifest import Manifest
from freshviews.sql import Catalog, Statement, ViewDefs

MERGE = "merge"
"""The key of the second stage among the cells."""


@dataclass(frozen=True)
class Layout:
    """The two stages: ``cells`` engines, each with its statements, and the merge of their changes. One more engine may
    run before them, which maintains the windows of tables; it counts as the cell after the last one."""

    plan: CellPlan
    catalog: Catalog

    @property
    def cells(self) -> int:
        return self.plan.cells

    @property
    def roles(self) -> tuple[Role, ...]:
        return self.plan.roles

    @cached_property
    def statements(self) -> tuple[tuple[Statement, ...], ...]:
        """Per cell, the statements that create its engine."""
        return tuple(cell_statements(self.plan, self.catalog, cell) for cell in range(self.cells))

    @cached_property
    def merge_statements(self) -> tuple[Statement, ...]:
        return merge_statements(self.plan, self.catalog)

    @cached_property
    def windowed(self) -> Mapping[str, str]:
        """By table with a window in several cells, the view of its rows in the engine that maintains the window."""
        return windowed_tables(self.plan, self.catalog)

    @cached_property
    def window_statements(self) -> tuple[Statement, ...]:
        return window_statements(self.plan, self.catalog)

    @property
    def reads_clock(self) -> bool:
        """True if a view reads the clock."""
        return self.catalog.table(CLOCK.name) is not None

    @cached_property
    def rings(self) -> dict[str, Any]:
        """The users' rings of the views, in the form of a manifest."""
        rings = {ring.label.lower(): ring for view in self.catalog.views.values() for ring in view.rings}
        return {name: aggregate_to_json(aggregate_of(ring)) for name, ring in rings.items()}

    @cached_property
    def inputs(self) -> Mapping[str, tuple[str, ...]]:
        """Per table of the merge, the cell views whose changes it gets."""
        return merge_inputs(self.plan, self.catalog)

    @cached_property
    def outputs(self) -> Mapping[str, Output]:
        """Per view, the place of its rows."""
        return outputs(self.plan, self.catalog)

    @cached_property
    def cell_views(self) -> tuple[str, ...]:
        """Cell views whose changes leave the cells, each once."""
        reported = [name for output in self.outputs.values() if output.stage == "cells" for name in output.views]
        return tuple(dict.fromkeys([*reported, *(name for names in self.inputs.values() for name in names)]))

    @cached_property
    def merge_views(self) -> tuple[str, ...]:
        """Views of the merge whose changes leave it."""
        return tuple(n for output in self.outputs.values() if output.stage == "merge" for n in output.views)

    def held(self, view: str) -> frozenset[str]:
        """Views of both stages that implement a view."""
        partial = [name for name in self.cell_views if name.lower().startswith(f"{view.lower()}@")]
        return frozenset([*self.outputs[view].views, *partial])

    def parts(self, view: str) -> frozenset[str]:
        """The parts that a view's stored contents have: ``view@cell``, for each engine that has a part of its rows."""
        output = self.outputs[view]
        stages = {MERGE: self.merge_statements} if output.stage == "merge" else dict(enumerate(self.statements))
        return frozenset(
            f"{one.view.name}@{number}"
            for number, statements in stages.items()
            for one in statements
            if isinstance(one, ViewDefs) and one.view.name in output.views
        )

    def counted(self, role: Role) -> frozenset[int]:
        """The cells in which a role's rows count as the table's, so that each row counts once over all roles and cells.
        """
        if role not in self.plan.sources(role.table):
            return frozenset()
        return frozenset(cell for cell in range(self.cells) if role.counted_in(cell))

    def stage_views(self, stage: str, views: frozenset[str]) -> frozenset[str]:
        """Views of a stage that implement some views of the pipeline."""
        chosen = [output for name, output in self.outputs.items() if name in views and output.stage == stage]
        return frozenset(name for output in chosen for name in output.views)


def layout_of(manifest: Manifest) -> Layout:
    """The cells of a version. Raises StoreError if another release planned them."""
    try:
        plan = CellPlan.from_json(manifest.plan)
    except ValueError as error:
        raise StoreError(f"version {manifest.version}: {error}; begin with a new checkpoint") from error
    return Layout(plan, catalog_of(manifest.script, manifest.aggregates))


def next_layout(old: Layout, definition: Definition, manifest: Manifest, replaced: Collection[str] = ()) -> Layout:
    """The cells after views were added, dropped or ``replaced``; stored rows stay in their cells."""
    catalog = definition.catalog
    sizes = {name: float(rows) for name, rows in manifest.totals.get("rows", {}).items()}
    # Internal views have the parts of the view to which they belong.
    parts = tuple(part for part in old.plan.parts if part.view.partition("#")[0] not in replaced)
    return Layout(extended(replace(old.plan, parts=parts), catalog, sizes), catalog)
