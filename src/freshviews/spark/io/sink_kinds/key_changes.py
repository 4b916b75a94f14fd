"""Reduces the change of a view to one row for each key that changed.

This row is the new row of the key, or the deleted row if no row has the key now.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshviews.errors import FreshviewsError
from freshviews.types.columns import MULTIPLICITY


class BadKey(FreshviewsError):
    """Rows cannot be delivered by their key."""


def with_gone(change: pa.Table | None, gone: pa.Table, key: Sequence[str]) -> pa.Table:
    """A change, with the rows ``gone`` that had other columns: they keep their key, and have NULL in all other
    columns."""
    keys = gone.select([*key, MULTIPLICITY])
    if change is None:
        return keys
    types = pa.schema([change.schema.field(name).with_nullable(True) for name in keys.schema.names])
    return pa.concat_tables([change, keys.cast(types)], promote_options="default")


def last_rows(rows: pa.Table, key: Sequence[str]) -> tuple[pa.Table, pa.BooleanArray]:
    """A row of each key that changed, without ``_multiplicity``, and whether it still exists.

    ``rows`` have ``_multiplicity``. Raises BadKey if a key has several rows.
    """
    signs = rows.column(MULTIPLICITY)
    come = rows.filter(pc.greater(signs, 0))
    both = pa.concat_tables([come, rows.filter(pc.less(signs, 0))])
    placed = both.append_column("_place", pa.array(np.arange(both.num_rows)))
    added = placed.append_column("_come", pc.max_element_wise(both.column(MULTIPLICITY), 0))
    found = added.group_by(list(key), use_threads=False).aggregate([("_place", "min"), ("_come", "sum")])
    repeated = found.filter(pc.greater(found.column("_come_sum"), 1)).select(list(key)).slice(0, 1).to_pylist()
    if repeated:
        raise BadKey(f"several rows have the key {repeated[0]}; set output 'changes'")
    # The new row of a key stands before the row that it replaces.
    chosen = np.sort(found.column("_place_min").to_numpy())
    return both.take(pa.array(chosen)).drop_columns([MULTIPLICITY]), pa.array(chosen < come.num_rows)
