"""Checks whether a sink that is a table already has the version that must be delivered next.

Each delivery leaves a note in the table, with the view and the version. The next delivery reads this note.
"""

from __future__ import annotations

from freshviews.errors import FreshviewsError
from freshviews.records import dataclass


class OtherTable(FreshviewsError):
    """A table has rows that are not those of this view at the previous version. Trying again does not help."""


@dataclass(frozen=True)
class Noted:
    """A version of a view. ``checkpoint``: the identity of the checkpoint that counts versions."""

    view: str
    checkpoint: str
    version: int


def has_version(target: str, noted: Noted | None, due: Noted, begun: bool, complete: bool, empty: str) -> bool:
    """True if a table has the version that is due. Raises OtherTable if it has other rows than the view's earlier ones.

    ``noted``: the version recorded for the table, or None. ``begun``: it has had a version of this view before.
    ``complete``: each version replaces all rows. ``empty``: how the user empties it.
    """
    again = f"{empty}, and begin with a new checkpoint"
    if noted is None:
        if begun and not complete:
            raise OtherTable(
                f"{target} had versions of view {due.view}, but the record of its last version is missing; {again}"
            )
        return False
    if (noted.view, noted.checkpoint) != (due.view, due.checkpoint):
        other = "" if noted.view != due.view else " of another checkpoint"
        raise OtherTable(f"{target} belongs to view {noted.view}{other}; name another table, or {empty}")
    if noted.version > due.version:
        raise OtherTable(
            f"{target} has version {noted.version} of view {due.view}, but the checkpoint is at {due.version}: the "
            f"checkpoint was set back; {again}"
        )
    if noted.version < due.version and not begun and not complete:
        raise OtherTable(f"{target} has rows of an earlier view {due.view} that was dropped; {again}")
    return noted.version == due.version
