"""Computes deletes of the rows that a view had before its SELECT was replaced.

The deletes are part of the change of the first version with the new SELECT. If the old and the new rows have different
columns, the deletes are stored separately.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

import numpy as np
import pyarrow as pa

from freshviews.records import dataclass
from freshviews.spark.reading.contents import contents
from freshviews.spark.state.bundle import Bundle, net, read_change
from freshviews.spark.state.growth import holds_columns
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.store import Store
from freshviews.sql import Catalog
from freshviews.types.columns import MULTIPLICITY, arrow_type


@dataclass(frozen=True)
class TakenBack:
    """The rows that ``views`` had before a version, with the multiplicities to delete. By view, a section: in
    ``changes`` with the view's present columns, in ``gone`` with its former ones, if they differ."""

    views: tuple[str, ...] = ()
    changes: Mapping[str, str] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)


def rows_taken_back(store: Store, at: Manifest, views: Collection[str]) -> dict[str, pa.Table]:
    """The rows of each view at a version, with -1 as their ``_multiplicity``. Loads the cells of the views.

    In the first version with the new rows, the change of the view is its new rows minus its old rows. If the old rows
    do not fit the new columns, the change has only the new rows, and the old rows are stored separately
    (``Manifest.gone``). A sink that is written by key (``upsert``) then deletes the keys that have no new row.
    """
    found = {}
    for name in views:
        rows = contents(store, at, name)
        found[name] = rows.append_column(MULTIPLICITY, pa.array(np.full(rows.num_rows, -1, np.int64)))
    return found


def taken_back(
    store: Store, rows: Mapping[str, pa.Table], later: Iterable[Manifest], before: Catalog, now: Catalog
) -> TakenBack:
    """Write the ``rows`` of views that are deleted, less those of the changes in ``later`` versions. ``before`` and
    ``now`` have the views as they were, and as they are."""
    versions = list(later)
    bundle = Bundle(store, "changes")
    for name, held in rows.items():
        since = [read_change(store, manifest.changes.get(name, [])) for manifest in versions]
        parts = [held, *(_negated(change) for change in since if change is not None)]
        signed = parts[0] if len(parts) == 1 else net(pa.concat_tables(parts, promote_options="default"))
        same = holds_columns(before.views[name], now.views[name])
        columns = (now if same else before).views[name].columns
        fields = [pa.field(column.name, arrow_type(column.type)) for column in columns]
        signed = signed.cast(pa.schema([*fields, pa.field(MULTIPLICITY, pa.int64())]))
        if signed.num_rows:
            bundle.add(f"{'changes' if same else 'gone'} {name}", signed.schema, signed.combine_chunks().to_batches())
    sections = bundle.finish()
    bundle.wait()
    kinds: dict[str, dict[str, str]] = {"changes": {}, "gone": {}}
    for section, place in sections.items():
        kind, _, name = section.partition(" ")
        kinds[kind][name] = place
    return TakenBack(tuple(rows), kinds["changes"], kinds["gone"])


def _negated(change: pa.Table) -> pa.Table:
    place = change.schema.get_field_index(MULTIPLICITY)
    signs = change.column(place).to_numpy()
    return change.set_column(place, MULTIPLICITY, pa.array(-signs))
