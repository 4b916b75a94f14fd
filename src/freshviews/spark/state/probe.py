"""Proves that every worker process sees the same checkpoint as the driver, before a version is committed.

Each worker reads an object that the driver wrote, and writes an object that the driver reads.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Sequence

from freshviews.errors import StoreError
from freshviews.spark.state.stores.store import Store

_DRIVER = "probe/driver"
_REMEDY = (
    "all machines must see the same files at the address of a checkpoint: use a folder that is mounted everywhere "
    "under one path, an object store, or HDFS"
)
_RUNS: dict[str, str] = {}
"""In a driver: the name of the run, by checkpoint."""
_PROVEN: dict[tuple[str, str], str] = {}
"""In a worker: the object that this process has written, by checkpoint and run."""
_NAMES: dict[int, str] = {}
"""By process id, the name of the process."""
_READ: set[str] = set()
"""In a driver: objects of workers that it has read."""


class NotSeen(StoreError):
    """A process sees another checkpoint than the driver."""


def process_name() -> str:
    """A name of this process that no other one has; a fork has another one."""
    return _NAMES.setdefault(os.getpid(), uuid.uuid4().hex)


def announce(store: Store) -> None:
    """Begin the proofs of a run, in the driver. Raises OSError."""
    name = uuid.uuid4().hex
    store.write(_DRIVER, name.encode())
    _RUNS[store.address] = name


def run_of(store: Store) -> str:
    """The name of the run that this driver has announced last."""
    return _RUNS[store.address]


def prove(store: Store, run: str) -> str:
    """Prove once that this process sees the driver's file; return an object for the driver to read.

    Raises NotSeen.

    The driver writes the name of its run to ``probe/driver``. Before its first version, a worker process reads this
    object and writes an object of its own. The driver reads the worker's object before it commits that version. So a
    worker whose checkpoint is on a private disk is refused, even if it joins later.
    """
    if (store.address, run) in _PROVEN:
        return _PROVEN[store.address, run]
    own = f"probe/{run}-{uuid.uuid4().hex}"
    try:
        seen = store.read(_DRIVER) == run.encode()
        if seen:
            store.write(own, _here().encode())
    except FileNotFoundError:
        seen = False
    except OSError as error:
        raise NotSeen(f"{_here()} cannot use the checkpoint {store.address}: {error}; {_REMEDY}") from error
    if not seen:
        raise NotSeen(f"{_here()} does not see the checkpoint of the driver at {store.address}; {_REMEDY}")
    _PROVEN[store.address, run] = own
    return own


def check_proofs(store: Store, proofs: Sequence[str]) -> None:
    """Read the proofs of workers, each once, in the driver. Raises NotSeen."""
    new = [name for name in proofs if name not in _READ]
    for name in new:
        try:
            store.read(name)
        except FileNotFoundError:
            raise NotSeen(
                f"the driver does not see what a worker has written at {store.address}; {_REMEDY}"
            ) from None
    store.delete(new)
    _READ.update(new)


def _here() -> str:
    return f"the Python worker on {socket.gethostname()}"
