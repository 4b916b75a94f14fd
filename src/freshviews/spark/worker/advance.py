"""Writes the files of a new version of a cell, after the cell's engine has applied the rows of this version.

The files have the applied rows, the changes of views, and whole views for sinks that need them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshviews.engine.change import Change
from freshviews.records import dataclass
from freshviews.spark.crash_points import reach
from freshviews.spark.state.bundle import Bundle, net
from freshviews.spark.state.cell import Cell, Segment, appended, keep, new_token
from freshviews.spark.state.cell_image import Entry
from freshviews.spark.state.stores.store import Store
from freshviews.types.columns import MULTIPLICITY

ViewChanges = dict[str, list[pa.Table]]
"""The changes of views, by name."""


@dataclass(frozen=True)
class Wanted:
    """The output to write for a version: the changes of ``views``, whole contents of ``new`` views, and contents beside
    the change of ``complete`` views. ``log_only``: see ``state.appended``."""

    version: int
    views: tuple[str, ...]
    new: frozenset[str] = frozenset()
    complete: frozenset[str] = frozenset()
    log_only: bool = False

    def within(self, views: Sequence[str]) -> Wanted:
        """The part of the output that concerns an engine with these views."""
        return replace(self, views=tuple(name for name in self.views if name in views))


@contextmanager
def listening(cell: Cell, wanted: Wanted) -> Iterator[ViewChanges]:
    """Collect the changes of the views that existed before."""
    emitted: ViewChanges = {}

    def tell(change: Change) -> None:
        emitted.setdefault(change.view, []).append(change.to_arrow())

    subscriptions = [cell.database.view(name).subscribe(tell) for name in wanted.views if name not in wanted.new]
    try:
        yield emitted
    finally:
        for subscription in subscriptions:
            subscription.unsubscribe()


def advanced(
    store: Store, number: str, entry: Entry, cell: Cell, segment: Segment, emitted: ViewChanges, wanted: Wanted
) -> dict[str, Any]:
    """Write the log, changes and contents of a cell that has applied ``segment``, and keep the cell in memory.

    That is one object for the log and one for the rest. Returns the fields of the manifest: the new entry; sections,
    rows and the sum of multiplicities of the change by view; bytes by view and table.
    """
    reach("rows applied")
    after = appended(store, number, entry, cell, segment, new_token(), log_only=wanted.log_only)
    reach("log written")
    bundle = Bundle(store, "changes", f"{wanted.version}-{number}-")
    result = {"cell": number, "entry": after, **_written(bundle, cell, emitted, wanted)}
    segment.wait()
    bundle.wait()
    reach("changes written")
    cell.token = after["token"]
    keep(store, number, cell)
    return result


def _written(bundle: Bundle, cell: Cell, emitted: ViewChanges, wanted: Wanted) -> dict[str, Any]:
    changed: dict[str, int] = {}
    net_rows: dict[str, int] = {}
    for name in wanted.views:
        view = cell.database.view(name)
        if name in wanted.new:
            whole = view.to_arrow()
            ones = pa.array(np.ones(whole.num_rows, np.int64))
            found = whole.append_column(pa.field(MULTIPLICITY, pa.int64(), nullable=False), ones)
        elif name in emitted:
            found = emitted[name][0] if len(emitted[name]) == 1 else net(pa.concat_tables(emitted[name]))
        else:
            continue
        if found.num_rows:
            bundle.add(f"changes {name}", found.schema, found.to_batches())
            changed[name] = found.num_rows
            net_rows[name] = pc.sum(found.column(MULTIPLICITY)).as_py()
        if name in wanted.complete:
            bundle.add(f"contents {name}", view.schema, view.to_batches())
    sizes = {name: cell.database.bytes_of(name) for name in (*wanted.views, *cell.tables)}
    names = bundle.finish()
    return {
        "changes": {view: names[f"changes {view}"] for view in changed},
        "changed": changed,
        "net": net_rows,
        "contents": {view: names[f"contents {view}"] for view in wanted.complete if f"contents {view}" in names},
        "sizes": sizes,
    }
