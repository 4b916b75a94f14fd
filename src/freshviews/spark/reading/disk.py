"""Counts the objects and bytes of each part of a checkpoint in its store."""

from __future__ import annotations

from freshviews.spark.state.stores.store import Store

_PARTS = {
    "manifest": "versions",
    "state": "state of the cells",
    "changes": "changes and contents of the views",
    "bad": "rows set aside",
    "spark": "offsets of Spark",
}


def on_disk(store: Store) -> dict[str, dict[str, int]]:
    """``objects`` and ``bytes`` of each part of a checkpoint; together they are all objects of the store.

    Files whose names begin with a dot are not counted: checksums of Spark, and files that are being written.
    """
    found: dict[str, dict[str, int]] = {}
    for one in store.list(""):
        folder, slash, _ = one.name.partition("/")
        part = found.setdefault(_PARTS.get(folder, "notes") if slash else "notes", {"objects": 0, "bytes": 0})
        part["objects"] += 1
        part["bytes"] += one.size
    order = [*_PARTS.values(), "notes"]
    return {part: found[part] for part in order if part in found}
