"""The steps of making a micro-batch a version, by name, in order; a test stops a process at each.

Those of WORKER are reached in the Python worker of an executor, those of DRIVER in the process of the pipeline.
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

FILLING = ("image filled", "images filled")
"""Reached, in a worker and in the driver, where views that come later are filled while the stream goes on."""

hook: Callable[[str], None] | None = None


def reach(step: str) -> None:
    """Say that a step is done."""
    if hook is not None:
        hook(step)
