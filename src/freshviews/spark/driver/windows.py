"""Runs the engine that maintains the windows of tables, before rows go to the cells.

A window keeps the newest rows of a table. The engine runs in one Python worker. It sends the cells inserts, and deletes
of the rows that leave a window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from freshviews.catalog.window import window_of
from freshviews.cells import Role
from freshviews.spark.driver.homes import Homes
from freshviews.spark.driver.stages import Results
from freshviews.spark.driver.stored_rows import defined, stored_source
from freshviews.spark.driver.version import Input, taken_through
from freshviews.spark.io.sources import feed_of, one_frame
from freshviews.spark.layout.layout import Layout
from freshviews.spark.phases import Phases
from freshviews.spark.state.bundle import read_all
from freshviews.spark.state.cell import EMPTY, changes_schema
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.probe import run_of
from freshviews.spark.state.stores.store import Store
from freshviews.spark.worker.advance import Wanted
from freshviews.spark.worker.intake import Feed
from freshviews.spark.worker.rows import TABLE
from freshviews.spark.worker.worker import Task


def through_windows(
    spark: SparkSession,
    store: Store,
    layout: Layout,
    base: Manifest,
    given: Input,
    phases: Phases,
    homes: Homes,
) -> tuple[Results, Input]:
    """Run the rows of tables with a window through their engine, for the version after ``base``. Return its results,
    and the input with the changes of the windows instead of these rows. Raises PipelineError.

    The engine gets all rows of the tables with a window. Like a cell, it has an image and a log. Inserted rows, and
    deletes of rows that leave the window, go to the cells as signed rows. One manifest commits the states of this
    engine and of the cells.
    """
    number = layout.cells
    views = tuple(layout.windowed.values())
    known = base.sizes.get(str(number), {})
    wanted = Wanted(base.version + 1, views, frozenset(views) - known.keys())
    tables = sorted(given.windowed)
    task = Task(
        store.address,
        run_of(store),
        (*((),) * number, layout.window_statements),
        tuple(given.windowed[table] for table in tables),
        (*(EMPTY,) * number, base.cells.get(str(number), EMPTY)),
        wanted,
        False,
        dict(homes.processes),
    )
    places = " ".join(f"WHEN {table} THEN {place}" for place, table in enumerate(tables))
    own = given.frame.where(F.col(TABLE).isin(tables)).withColumn(TABLE, F.expr(f"CASE {TABLE} {places} END"))
    # All rows go to the one engine, which is the only cell of this job.
    feeds = [(given.windowed[table],) for table in tables]
    roles = [(Role(feed.table, feed.source, number + 1, (), number),) for (feed,) in feeds]
    before = Input(own, feeds, roles, given.ordered, given.text, given=given.frame)
    results = taken_through(spark, store, before, task, range(number, number + 1), phases, homes)
    changes = {name: section for result in results for name, section in result.get("changes", {}).items()}
    moved = {table: changes[view] for table, view in layout.windowed.items() if view in changes}
    return results, _with_windows(spark, store, layout, given, moved)


def _with_windows(spark: SparkSession, store: Store, layout: Layout, given: Input, moved: dict[str, str]) -> Input:
    """An input with the changes of windows, by table a section, instead of their rows."""
    rest = given.frame.where(~F.col(TABLE).isin(sorted(given.windowed)))
    if not moved:
        return replace(given, frame=rest, feeds=_without_rows(given), windowed={}, given=given.frame)
    found = [
        stored_source(layout.catalog, table, _signed_rows(spark, store, layout, table, section))
        for table, section in moved.items()
    ]
    frame, slots = one_frame(found)
    renamed = {slot: f"w{slot}" for names in slots for slot in names.values()}
    frame = frame.withColumnsRenamed(renamed).withColumn(TABLE, F.col(TABLE) + len(given.feeds))
    roles = [layout.plan.roles_of(table) for table in moved]
    feeds = [
        tuple(
            feed_of(source, {name: renamed[slot] for name, slot in names.items()}, role.name, frozenset())
            for role in own
        )
        for source, names, own in zip(found, slots, roles, strict=True)
    ]
    whole = rest.unionByName(frame, allowMissingColumns=True)
    return Input(
        whole,
        [*_without_rows(given), *feeds],
        [*given.roles, *roles],
        given.ordered,
        given.text,
        given=given.frame,
    )


def _without_rows(given: Input) -> list[tuple[Feed, ...]]:
    """The feeds of an input in which tables with a window have no rows of their own: none is a whole contents."""
    return [
        tuple(replace(feed, snapshot=feed.snapshot and number not in given.windowed) for feed in own)
        for number, own in enumerate(given.feeds)
    ]


def _signed_rows(spark: SparkSession, store: Store, layout: Layout, table: str, section: str) -> DataFrame:
    """The signed rows of a section, read by a task."""
    schema = changes_schema(defined(layout.catalog, table))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            rows = read_all(store, [section])
            assert rows is not None
            yield from rows.cast(schema).to_batches()

    return spark.range(0, 1, 1, 1).mapInArrow(read, from_arrow_schema(schema))


def windows_without_cells(before: Manifest, old: Layout, new: Layout, changed: Sequence[str]) -> Manifest:
    """A version without cells, but with the engine that maintains windows, for newly planned cells. ``changed``: the
    tables with other columns. Raises CheckpointError if the order of rows in a window would be lost."""
    bare = replace(before, cells={}, sizes={})
    if not (old.windowed or new.windowed):
        return bare
    at = {one.cells: f"{one.cells} cells" if one.cells > 1 else "one cell" for one in (old, new)}
    for name in (*old.windowed, *new.windowed):
        reason = None
        kind = "watermark" if window_of(defined(old.catalog, name)) is None else "window"
        if new.cells == 1:
            reason = f"its rows in {at[old.cells]} have no common order in which to leave the window"
            if kind == "watermark":
                reason = "only the engine before the cells has it"
        elif name in changed:
            reason = "the table has other columns than the rows in the window"
        elif not old.windowed and defined(old.catalog, name).foreign_keys:
            reason = "only the one cell with the window checks the foreign key of the table"
        if reason is not None:
            raise CheckpointError(
                f"the {kind} of table {name} cannot continue in {at[new.cells]}: {reason}; leave columns and cells as "
                "they were, or begin with a new checkpoint"
            )
    # A single cell maintains windows itself: its image and log have them, and their other content is left out.
    entry = before.cells.get(str(old.cells) if old.windowed else "0", EMPTY)
    views = {view: 0 for table, view in new.windowed.items() if table in before.tables}
    return replace(bare, cells={str(new.cells): entry}, sizes={str(new.cells): views})
