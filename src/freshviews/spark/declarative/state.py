"""Finds the checkpoint of a project's last run, in the storage of the project.

The checkpoint has the state of the materialized views. Finding it does not start Spark.
"""

from __future__ import annotations

import shutil
from contextlib import suppress

from freshviews.spark.declarative.spec import ProjectError, ProjectSpec
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import AddressError, Store

_FOLDER = "_freshviews"
"""The folder of the state, in the storage of a project."""
_LAST = "last"


def root_of(spec: ProjectSpec) -> Store:
    """The place of all that is kept of a project. Raises ProjectError."""
    try:
        return store_of(f"{spec.storage.rstrip('/')}/{_FOLDER}")
    except AddressError as error:
        raise ProjectError(f"{spec.file}: storage: {error}") from None


def state_of(spec: ProjectSpec) -> Store:
    """The checkpoint of the last run; before one, a place without a version. Raises ProjectError."""
    root = root_of(spec)
    try:
        return state_at(root, root.read(_LAST).decode())
    except FileNotFoundError:
        return root
    except OSError as error:
        raise ProjectError(f"{spec.file}: storage: {root.address} cannot be read: {error.strerror or error}") from None


def state_at(root: Store, name: str) -> Store:
    """The checkpoint of this name. Raises AddressError."""
    return store_of(f"{root.address}/{name}")


def begin_state(root: Store, name: str) -> None:
    """Let this checkpoint be that of the last run, if there is none. Raises OSError."""
    with suppress(FileExistsError):
        root.write_if_absent(_LAST, name.encode())


def keep_state(root: Store, name: str) -> None:
    """Let this checkpoint be that of the last run, and delete the others. Raises OSError."""
    root.write(_LAST, name.encode())
    others = {found.name for found in root.list("") if found.name.partition("/")[0] not in (name, found.name)}
    root.delete(others)
    if root.is_local:
        for folder in {other.partition("/")[0] for other in others}:
            shutil.rmtree(root.local / folder, ignore_errors=True)  # what Spark hides in it
