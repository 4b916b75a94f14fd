"""Writes the state of a cell's engine into files, called an image, by a child process.

Meanwhile, the cell takes new rows in its own process.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Mapping
from typing import Any

from freshviews.engine.database import Database
from freshviews.errors import StoreError
from freshviews.kernel.image import compile_writer
from freshviews.spark.state.child_process import can_fork, in_child
from freshviews.spark.state.image_files import Writing, is_whole
from freshviews.spark.state.stores.store import Store

_LOGGER = logging.getLogger("freshviews")

Entry = dict[str, Any]
"""The state of a cell, as JSON."""

SMALLEST_IMAGE = int(os.environ.get("FRESHVIEWS_SMALLEST_IMAGE", "5000000"))
"""Rows of log below which no image is written; replaying a row takes 0.25 to 2 microseconds."""
STALLED = 60.0
"""Seconds without a write after which an image is given up."""
IMAGE = "image-"
"""Prefix of the names of images in the folder of a cell."""


def new_image(number: str) -> str:
    """A fresh folder name for an image of a cell."""
    return f"state/{number}/{IMAGE}{uuid.uuid4().hex}"


def begun(store: Store, number: str, entry: Entry, database: Database) -> dict[str, Any] | None:
    """Begin an image of a cell in its current state, if one is due."""
    image = entry["image"]
    if sum(part["rows"] for part in entry["log"]) <= max(SMALLEST_IMAGE, image["rows"] if image else 0):
        return None
    name = new_image(number)
    writing = Writing(store, name)
    if can_fork():
        compile_writer()

    def write() -> None:
        database.write_image(writing.folder)

    def ended(code: int) -> None:
        try:
            if code != 0:
                raise StoreError(f"the image {writing.folder} was not finished (exit code {code})")
            writing.finish()
        except (StoreError, OSError) as error:
            _LOGGER.warning("%s; the log grows until another image is written", error)
        finally:
            writing.end()

    if not in_child(write, ended):
        try:
            write()
            writing.finish()
        except (StoreError, OSError) as error:
            _LOGGER.warning("%s; the log grows until an image is written", error)
            return None
        finally:
            writing.end()
    return {"token": entry["token"], "folder": name, "rows": database.stored_rows}


def settled(store: Store, entry: Entry) -> Entry:
    """The entry with the pending image as its image, if that is whole now."""
    pending = entry.get("pending")
    if pending is None or not is_whole(store, pending["folder"]):
        return entry
    log = entry["log"]
    known = next((i for i, segment in enumerate(log, 1) if segment["token"] == pending["token"]), None)
    if known is None:
        return {**entry, "pending": None}
    return {**entry, "image": pending, "pending": None, "log": log[known:]}


def is_given_up(store: Store, pending: Mapping[str, Any], written: str) -> bool:
    """True if an unfinished image has not been written to in the ``STALLED`` seconds before the object ``written``.

    Both times are of the store, whose clock may differ from this machine's.
    """
    name = pending["folder"]
    latest = max((one.modified for one in store.list(name)), default=0.0)
    now = max((one.modified for one in store.list(written)), default=0.0)
    return latest < now - STALLED and not is_whole(store, name)
