"""Names the steps by which a commit or a snapshot becomes durable.

The code of each step calls ``reach`` when the step is done, so that tests can stop the process there.
"""

from __future__ import annotations

from collections.abc import Callable

COMMIT = (
    "batch applied",  # in memory only
    "record half written",
    "record written",
    "record synced",  # from here on the batch is durable
    "version visible",
)
"""Steps of a commit, in order."""

SNAPSHOT = (
    "strings written",
    "image written",  # of each view
    "images written",
    "snapshot begun",
    "snapshot half written",
    "snapshot synced",
    "snapshot renamed",
    "snapshot in directory",
    "segment begun",
    "segment recorded",
    "segments deleted",
)
"""Steps of a snapshot, in order."""

hook: Callable[[str], None] | None = None


def reach(step: str) -> None:
    """Report that a step is done."""
    if hook is not None:
        hook(step)
