"""Records, for each view whose sink is a table, whether the table has had rows (object ``tables`` of a checkpoint).

Each delivery notes its version in the table. With this record, the next delivery can detect a lost note.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from threading import Lock

from freshviews.spark.state.stores.store import Store
from freshviews.store.files import json_of

_NAME = "tables"
_changing = Lock()
"""Held while the object is read and written: sinks that are behind have threads of their own."""


def begun(store: Store) -> dict[str, bool]:
    """By view, whether its table has had rows. Raises OSError."""
    try:
        return {str(view): bool(had) for view, had in json_of(store.read(_NAME)).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError) as error:
        raise OSError(f"{store.address}/{_NAME} cannot be read: {error}") from None


def note_begun(store: Store, view: str, had_rows: bool) -> None:
    """Record that the table of a view has had its first version, or rows. Raises OSError."""
    with _changing:
        known = begun(store)
        if known.get(view) != had_rows:
            store.write(_NAME, json.dumps({**known, view: had_rows}).encode())


def forget_others(store: Store, views: Collection[str]) -> None:
    """Forget views that are dropped: a new one of the name begins anew. Raises OSError."""
    with _changing:
        known = begun(store)
        if not known.keys() <= set(views):
            store.write(_NAME, json.dumps({view: known[view] for view in known if view in views}).encode())
