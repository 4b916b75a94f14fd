"""Locks the checkpoint of a running pipeline. Counts the starts of the pipeline, and the refusals of its sinks.

The counts are in the object ``runs``. Only a checkpoint in a folder has a lock. In other stores, a second run fails
when it commits a version that exists.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, field, replace
from threading import Lock
from typing import BinaryIO

from freshviews.records import dataclass
from freshviews.spark.state.stores.store import Store
from freshviews.store.files import json_of, lock

LOCK = "lock"
_changing = Lock()
"""Held while the counts are read and written: sinks that are behind have threads of their own."""


@dataclass(frozen=True)
class Runs:
    """``starts``: runs that began; ``failures``: how often the sink of a view refused a version, by view.

    ``part``: the version that only some sinks have, those of the views ``have``; 0 if there is none. ``refused``: the
    errors of the others, by view.
    """

    starts: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    part: int = 0
    have: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


class Held:
    """The lock of a checkpoint, held by this process until ``close``. Raises StoreError that names another holder."""

    def __init__(self, store: Store) -> None:
        self._file: BinaryIO | None = None
        if store.is_local:
            store.local.mkdir(parents=True, exist_ok=True)
            self._file = lock(store.local / LOCK)

    def close(self) -> None:
        """Release the lock."""
        if self._file is not None:
            self._file.close()


def is_running(store: Store) -> bool | None:
    """True if a process holds the checkpoint's lock; None without locks. Takes the lock for an instant, which ``Held``
    tolerates."""
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
    """The counts of a checkpoint; zeros if they cannot be read."""
    try:
        found = json_of(store.read("runs"))
        failures = {str(view): int(count) for view, count in found["failures"].items()}
        refused = {str(view): str(cause) for view, cause in found.get("refused", {}).items()}
        have = [str(view) for view in found.get("have", [])]
        return Runs(int(found["starts"]), failures, int(found.get("part", 0)), have, refused)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Runs()


def note_start(store: Store) -> None:
    """Count a start. The caller holds the checkpoint's lock."""
    _change(store, lambda before: replace(before, starts=before.starts + 1))


def note_failure(store: Store, view: str) -> None:
    """Count that the sink of a view refused a version. The caller holds the checkpoint's lock."""
    _change(
        store,
        lambda before: replace(before, failures={**before.failures, view: before.failures.get(view, 0) + 1}),
    )


def note_part(store: Store, version: int, have: Iterable[str], refused: Mapping[str, str]) -> None:
    """Record which sinks have a version, and the errors of the others. The caller holds the checkpoint's lock."""
    held = sorted(have)
    _change(store, lambda before: replace(before, part=version, have=held, refused=dict(refused)))


def note_refused(store: Store, refused: Mapping[str, str]) -> None:
    """Record the last errors of sinks that are behind, by view. The caller holds the checkpoint's lock."""
    _change(store, lambda before: replace(before, refused=dict(refused)))


def _change(store: Store, changed: Callable[[Runs], Runs]) -> None:
    with _changing, suppress(OSError):
        store.write("runs", json.dumps(asdict(changed(runs_of(store)))).encode())
