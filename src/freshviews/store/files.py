"""Writes small files durably, and locks the directory of a database.

To be durable, a file is written under a temporary name, synced, and renamed; then its directory is synced.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from freshviews.errors import StoreError

PATIENCE = 0.2
"""Seconds to wait for a lock: a process that only checks whether it is held holds it for an instant."""
TEMPORARY = ".tmp"
"""Suffix of incomplete files; they are deleted when a directory is opened."""


def sync_directory(path: Path) -> None:
    """Make creations, renames and deletions in a directory durable."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def open_regular(path: Path) -> BufferedReader:
    """Open a file to read it. Raises OSError if it is not a regular file: a FIFO would wait, a device may not end."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return os.fdopen(number, "rb")


def read_regular(path: Path) -> bytes:
    """The bytes of a file; errors as ``open_regular``."""
    with open_regular(path) as file:
        return file.read()


def json_of(data: bytes | str) -> Any:
    """The JSON of a file. Raises ValueError also if it is nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a small file completely or not at all."""
    temporary = path.with_name(path.name + TEMPORARY)
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(path.parent)


def lock(path: Path) -> BinaryIO:
    """Lock a directory by its lock file, until ``unlock``, or until the file is closed here and in forked children.

    Raises StoreError that names the process that holds the lock.
    """
    file = path.open("a+b")
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if time.monotonic() < until:
                time.sleep(0.01)
                continue
        file.seek(0)
        holder = file.read().decode(errors="replace").strip() or "unknown"
        file.close()
        raise StoreError(
            f"{path.parent} is open already in process {holder}; close the database in that process first"
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()).encode())
    file.flush()
    return file


def unlock(file: BinaryIO) -> None:
    """Give up a lock, even if a forked child still has the file open."""
    fcntl.flock(file, fcntl.LOCK_UN)


def is_at(file: BinaryIO, path: str | Path) -> bool:
    """True if a path still leads to an open file: False if the file was removed or replaced."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except OSError:
        return False
