# pyright: strict, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
"""Public calls that take and return objects of pyarrow, which has no types of its own; else as ``examples``."""

from __future__ import annotations

from typing import Any

import freshviews as fv


def arrow(db: fv.Database, view: fv.View, table: fv.Table, change: fv.Change) -> list[Any]:
    frames = [view.to_arrow(), view.head(3), view.schema, *view.to_batches(10), table.lookup(table.to_arrow())]
    frames += [change.to_arrow(), *change.to_batches(10), change.to_pandas(), change.to_polars()]
    frames += db.apply_in_order("items", [(1, "bolt", 1)], "few")
    frames += db.apply_net("items", change.to_arrow(), "few", rows=10)
    db.insert("items", view.to_arrow())
    db.delete("items", keys=table.to_arrow())
    db.create_table("copy", view.to_arrow())
    return frames
