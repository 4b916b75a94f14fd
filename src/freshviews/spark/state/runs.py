"""Runs of a checkpoint: the lock that one holds, and counts over all, in the object ``runs``: how often it was started,
and what its sinks refused.

A folder has a lock. Other stores have none: there two runs are noticed when both commit the same version. A count that
cannot be written is lost: no run fails for it.
"""

from __future__ import annotations

import fcntl
import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import BinaryIO

from freshviews.spark.state.stores.store import Store
from freshviews.store.files import lock

LOCK = "lock"


@dataclass(frozen=True)
class Runs:
    """``starts``: runs that began; ``failures``: versions that the sink of a view refused, by view."""

    starts: int = 0
    failures: dict[str, int] = field(default_factory=dict)


class Held:
    """The lock of a checkpoint, held by this process until ``close``. Raises StoreError that names another holder."""

    def __init__(self, store: Store) -> None:
        self._file: BinaryIO | None = None
        if store.is_local:
            store.local.mkdir(parents=True, exist_ok=True)
            self._file = lock(store.local / LOCK)

    def close(self) -> None:
        """Give it up."""
        if self._file is not None:
            self._file.close()


def is_running(store: Store) -> bool | None:
    """True if a process holds the checkpoint's lock; None where there is none. Takes the lock for an instant, which
    ``Held`` tolerates."""
    if not store.is_local:
        return None
    path = store.local / LOCK
    if not path.exists():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def runs_of(store: Store) -> Runs:
    """The counts of a checkpoint; zeros if there are none that can be read."""
    try:
        found = json.loads(store.read("runs"))
        return Runs(int(found["starts"]), {str(view): int(count) for view, count in found["failures"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Runs()


def note_start(store: Store) -> None:
    """Count a start. The caller holds the checkpoint's lock."""
    before = runs_of(store)
    _write(store, replace(before, starts=before.starts + 1))


def note_failure(store: Store, view: str) -> None:
    """Count a version that the sink of a view refused. The caller holds the checkpoint's lock."""
    before = runs_of(store)
    _write(store, replace(before, failures={**before.failures, view: before.failures.get(view, 0) + 1}))


def _write(store: Store, runs: Runs) -> None:
    with suppress(OSError):
        store.write("runs", json.dumps(asdict(runs)).encode())
