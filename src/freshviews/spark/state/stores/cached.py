"""Caches, on this machine's disk, those objects of a remote store that never change."""

from __future__ import annotations

import atexit
import os
import shutil
import threading
import time
import uuid
from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa

from freshviews.spark.state.stores.store import Data, Found, Gathered, Objects, Writer
from freshviews.store.files import TEMPORARY

_KEPT = "state/"
UNUSED = 600.0
_LOOK_EVERY = 60.0


class Cached:
    """A store whose objects below ``state/`` are cached in a folder after they were written or read.

    Objects below ``state/`` have fresh names, so a file in the cache equals the object, and only missing files are
    requested. A driver or executor has its own cache, which is lost when the driver or executor ends. The Python
    workers of an executor share its cache. Files that were not read for ``UNUSED`` seconds are deleted.
    """

    is_local = False

    def __init__(self, store: Objects, folder: Path) -> None:
        self.address = store.address
        self.local = folder
        self._store = store
        self._looked = time.monotonic()
        self._looking = threading.Lock()

    def read(self, name: str) -> bytes:
        return self._store.read(name)

    def read_range(self, name: str, start: int, length: int) -> Data:
        if not name.startswith(_KEPT):
            return self._store.read_range(name, start, length) if length else b""
        path = self.local / name
        try:
            os.utime(path)
        except FileNotFoundError:
            _put(path, self._store.read(name))
        with pa.memory_map(str(path)) as file:
            file.seek(start)
            return file.read_buffer(length)

    def write(self, name: str, data: bytes) -> None:
        self._store.write(name, data)

    def write_if_absent(self, name: str, data: bytes) -> None:
        self._store.write_if_absent(name, data)

    def writer(self, name: str) -> Writer:
        self._clean()
        return Gathered(lambda data: self._write_and_keep(name, data))

    def list(self, prefix: str) -> list[Found]:
        return self._store.list(prefix)

    def delete(self, names: Collection[str]) -> None:
        self._store.delete(names)

    def _write_and_keep(self, name: str, data: bytes) -> None:
        self._store.write(name, data)
        if name.startswith(_KEPT):
            # Without the file, the object is read from the store.
            with suppress(OSError):
                _put(self.local / name, data)

    def _clean(self) -> None:
        """Delete files that were not used for long. A process that has mapped a file keeps its contents."""
        with self._looking:
            if time.monotonic() < self._looked + _LOOK_EVERY:
                return
            self._looked = time.monotonic()
        for path in list((self.local / _KEPT).glob("*/*")):
            with suppress(OSError):
                if TEMPORARY in path.name or path.stat().st_mtime > time.time() - UNUSED:
                    continue
                if path.is_dir():
                    # Renamed first, so that no reader finds it with a part of its files.
                    aside = path.with_name(f"{TEMPORARY}-{uuid.uuid4().hex}")
                    path.rename(aside)
                    shutil.rmtree(aside, ignore_errors=True)
                else:
                    path.unlink()


def _put(path: Path, data: bytes) -> None:
    """Put a file into the cache; other processes see it only complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{TEMPORARY}-{uuid.uuid4().hex}")
    aside.write_bytes(data)
    aside.rename(path)


def cache_of(address: str) -> Path:
    """The folder of this process for a store: within the disk space that Spark gave the executor, which deletes it;
    else a new one, deleted at the end of the process."""
    given = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    if Path(given).name.startswith("blockmgr-"):
        folder = Path(given) / f"freshviews-{sha256(address.encode()).hexdigest()[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    made = Path(mkdtemp(prefix="freshviews-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
