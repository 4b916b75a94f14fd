"""Gives each checkpoint a random identity, stored in the object ``identity`` of the checkpoint.

Each delivery to a table notes the identity there. If the checkpoint is deleted and begun again, the next delivery
notices that the rows in the table are from another checkpoint.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

from freshviews.spark.state.stores.store import Store

_NAME = "identity"


def identity_of(store: Store) -> str:
    """The identity, made if there is none. Raises OSError."""
    with suppress(FileNotFoundError):
        return store.read(_NAME).decode()
    with suppress(FileExistsError):
        store.write_if_absent(_NAME, uuid.uuid4().hex.encode())
    return store.read(_NAME).decode()
