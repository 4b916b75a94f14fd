"""Names the steps by which a micro-batch becomes a committed and delivered version.

The code of each step calls ``reach`` when the step is done, so that tests can stop the process there.
"""

from __future__ import annotations

from collections.abc import Callable

WORKER = ("rows applied", "log written", "changes written")
DRIVER = (
    "batch begun",
    "cells done",
    "manifest half written",
    "manifest written",
    "manifest in place",  # from here on the version is committed
    "sink half written",
    "sink written",
    "delivery noted",
)

CALLS = ("call noted",)
"""The last step of a version of ``Pipeline.advance``, in the driver."""

TABLES = ("rows in the transaction",)
"""A step of the delivery to a table of a database, in the driver: the transaction is not committed yet."""

hook: Callable[[str], None] | None = None


def reach(step: str) -> None:
    """Announce that a step is done."""
    if hook is not None:
        hook(step)
