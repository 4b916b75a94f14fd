"""Checks, for a view that gets a new SELECT, whether its sink can replace the old rows by the new rows.

If the sink cannot, the new SELECT is refused before a row is read. For example, a database table keeps its columns, so
a SELECT with other columns is refused.
"""

from __future__ import annotations

from collections.abc import Collection

from freshviews.catalog.definitions import ViewDef
from freshviews.spark.connectors.declarations import CHANGES, UPSERT, connector_of
from freshviews.spark.definition import Definition, ViewSpec, catalog_of
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.growth import holds_columns
from freshviews.spark.state.manifest import Manifest

_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
"""Types whose keys have the same text."""


def check_replaced(
    definition: Definition, before: Manifest, replaced: Collection[str], functions: Collection[str], grown: bool
) -> None:
    """Refuse views of a checkpoint whose sinks would have wrong rows: those that are ``replaced``, and those that are
    delivered by another key. ``functions``: the views whose sink is a function of the user. ``grown``: tables have
    other columns, too. Raises CheckpointError, which names the view.

    If the columns stay, every sink works: the change of the version deletes the old rows. If the columns change, two
    outputs work: ``complete`` delivers the whole contents, and ``upsert`` to a topic replaces or withdraws the message
    of each key. Output ``changes`` and database tables do not work. Delivered changes cannot be withdrawn, and a
    database table keeps its columns.
    """
    known, wanted = catalog_of(before.script, before.aggregates), definition.catalog
    for view in definition.views:
        old, new = known.view(view.name), wanted.view(view.name)
        if old is None or new is None or not (view.provider is not None or view.name in functions):
            continue
        reason = _of_key(view, old, new, before.keys.get(view.name))
        if reason is None and view.name in replaced and not holds_columns(old, new):
            reason = _of_columns(view)
            if reason is not None and grown:
                reason += "; if its SELECT * has new columns, write ALTER TABLE ... ADD COLUMN below the view instead"
        if reason is not None:
            raise CheckpointError(
                f"view {view.name} {reason}; give the new view another name and sink, or first run the pipeline once "
                "without the view"
            )


def _of_key(view: ViewSpec, old: ViewDef, new: ViewDef, key: list[str] | None) -> str | None:
    """The reason for which rows by the view's key do not replace the earlier ones. ``key``: the key of the earlier
    ones."""
    if view.output != UPSERT or view.written is None:
        return None
    if key is not None and key != list(view.written.key):
        return f"is delivered by the key ({', '.join(view.written.key)}), but was delivered by ({', '.join(key)})"
    if not connector_of(view.provider).messages:
        return None
    before, now = ({column.name: column.type for column in one.columns} for one in (old, new))
    for name in view.written.key:
        one, other = before.get(name), now[name]
        if one != other and not (one is not None and one.name in _WHOLE and other.name in _WHOLE):
            return f"has a key whose column {name} was {one or 'not there'} before, and is now {other}"
    return None


def _of_columns(view: ViewSpec) -> str | None:
    """The reason for which the sink of a view cannot have other columns."""
    others = "has other columns than in this checkpoint"
    if view.output == CHANGES:
        return f"{others}, and its sink cannot take back the rows with the old columns"
    if connector_of(view.provider).keeps:
        return f"{others}, and its sink table has the old columns"
    return None
