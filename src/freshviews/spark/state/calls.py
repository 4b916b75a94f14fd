"""Finds the version that a named call of ``advance`` committed. If the call is repeated, it commits nothing more."""

from __future__ import annotations

import hashlib
import json

from freshviews.errors import StoreError
from freshviews.spark.crash_points import reach
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.store import Store
from freshviews.store.files import json_of


def version_of(store: Store, call: str, latest: Manifest | None) -> int | None:
    """The version that has the rows of a call; None if none has. Raises StoreError."""
    if latest is not None and latest.call == call:
        return latest.version
    try:
        found = json_of(store.read(_name(call)))
        return int(found["version"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{store.address}/{_name(call)}, which has the version of call {call!r}, cannot be read: {error}"
        ) from None


def note_call(store: Store, manifest: Manifest) -> None:
    """Record the call of a version, if it has one. Raises OSError."""
    if manifest.call:
        text = json.dumps({"call": manifest.call, "version": manifest.version})
        store.write(_name(manifest.call), text.encode())
        reach("call noted")


def _name(call: str) -> str:
    return f"calls/{hashlib.sha256(call.encode()).hexdigest()[:32]}"
