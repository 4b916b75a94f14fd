"""Keeps a checkpoint in a folder of this machine, or in a shared folder that driver and workers mount at one path."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from freshviews.spark.crash_points import reach
from freshviews.spark.state.stores.store import Data, Found
from freshviews.store.files import open_regular, read_regular, sync_directory, write_whole


class Folder:
    """The files below a folder, which is created with the first file."""

    is_local = True

    def __init__(self, root: Path) -> None:
        self.local = root

    @property
    def address(self) -> str:
        return str(self.local)

    def read(self, name: str) -> bytes:
        return read_regular(self.local / name)

    def read_range(self, name: str, start: int, length: int) -> Data:
        """The bytes, mapped."""
        path = self.local / name
        with open_regular(path), pa.memory_map(str(path)) as file:
            file.seek(start)
            return file.read_buffer(length)

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        write_whole(path, data)

    def write_if_absent(self, name: str, data: bytes) -> None:
        path = self._path(name)
        aside = path.with_name(f".{uuid.uuid4().hex}")
        try:
            with aside.open("wb") as file:
                file.write(data[: len(data) // 2])
                reach("manifest half written")
                file.write(data[len(data) // 2 :])
                file.flush()
                os.fsync(file.fileno())
            reach("manifest written")
            os.link(aside, path)
        finally:
            aside.unlink(missing_ok=True)
        sync_directory(path.parent)

    def writer(self, name: str) -> FileWriter:
        return FileWriter(self._path(name))

    def list(self, prefix: str) -> list[Found]:
        folder = prefix.rpartition("/")[0]
        found = []
        for top, _, names in os.walk(self.local / folder):
            for name in names:
                path = os.path.join(top, name)
                own = os.path.relpath(path, self.local)
                if own.startswith(prefix) and not name.startswith("."):
                    with suppress(FileNotFoundError):  # renamed or deleted meanwhile
                        about = os.stat(path)
                        found.append(Found(own, about.st_size, about.st_mtime))
        return found

    def delete(self, names: Collection[str]) -> None:
        """Delete files, and the folders below the first level that this leaves empty."""
        for name in names:
            path = self.local / name
            path.unlink(missing_ok=True)
            if path.parent.parent != self.local and path.parent != self.local:
                with suppress(OSError):  # not empty
                    path.parent.rmdir()

    def _path(self, name: str) -> Path:
        path = self.local / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class FileWriter:
    """A new file, synced when it is finished; its fresh name is in no manifest before that."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")

    def write(self, data: Data) -> None:
        self._file.write(data)

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        sync_directory(self._path.parent)

    def wait(self) -> None:
        pass  # it is durable

    def discard(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def try_to_write(folder: Path) -> None:
    """Write a file without a name into a folder, or into the folder where it would be created. Raises OSError."""
    while not folder.exists():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b" ")
        file.flush()
        os.fsync(file.fileno())
