"""Writes and reads snapshots of a database.

A snapshot file has the executed scripts, the rows of stored tables, and the names of the files with the views. It gets
its final name when it is complete.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from freshviews.errors import StoreError
from freshviews.records import dataclass
from freshviews.store.crash_points import reach
from freshviews.store.files import TEMPORARY, open_regular, sync_directory
from freshviews.store.record import END, Record, read_record

_END = struct.Struct("<Q")


@dataclass(frozen=True)
class Snapshot:
    """A snapshot file; ``sequence`` is the last log record it contains."""

    path: Path
    sequence: int

    def records(self) -> Iterator[Record]:
        """Its records without END. Raises StoreError with file and offset of an invalid one."""
        size = self.path.stat().st_size
        with open_regular(self.path) as file:
            count = 0
            while True:
                offset = file.tell()
                record = read_record(file, size)
                if record is None or record.sequence != self.sequence:
                    raise self._corrupt(offset)
                if record.kind == END:
                    break
                count += 1
                yield record
            if file.tell() != size or _END.unpack(record.payload)[0] != count:
                raise self._corrupt(offset)

    @property
    def state(self) -> Path:
        """The folder that holds the images of the views."""
        return state_folder(self.path.parent, self.sequence)

    @property
    def bytes(self) -> int:
        """Size of the snapshot, images included."""
        return sum(path.stat().st_size for path in (self.path, *self.state.glob("*")))

    def _corrupt(self, offset: int) -> StoreError:
        return StoreError(f"{self.path}, offset {offset}: the snapshot is corrupt; restore the file from a copy")


def latest(directory: Path) -> Snapshot | None:
    """The newest snapshot of a directory."""
    found = sorted(directory.glob("snapshot-*.fvsnap"))
    if not found:
        return None
    try:
        return Snapshot(found[-1], int(found[-1].stem.removeprefix("snapshot-")))
    except ValueError:
        raise StoreError(f"{found[-1]}: not the name of a snapshot") from None


def state_folder(directory: Path, sequence: int) -> Path:
    """The folder for the images of a snapshot."""
    return directory / f"state-{sequence:012}"


def write(directory: Path, sequence: int, records: Iterable[Record]) -> Snapshot:
    """Write a snapshot, after its images, and make it the newest.

    A failure leaves the directory as it was.

    A snapshot ``snapshot-<sequence>.fvsnap`` holds the executed scripts, the rows of the stored tables with their
    multiplicities, and the names of the files with the views. Its last record, END, has the number of records. Before
    the snapshot, the images of the views are written into the folder ``state-<sequence>``.

    The snapshot is written under a temporary name, synced and renamed; then the directory is synced. So a file with the
    final name is complete; if unreadable, it is corrupt.
    """
    path = directory / f"snapshot-{sequence:012}.fvsnap"
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            reach("snapshot begun")
            count = version = 0
            for record in records:
                file.write(record.to_bytes())
                count, version = count + 1, record.version
            file.flush()
            reach("snapshot half written")
            file.write(Record(END, sequence, version, _END.pack(count)).to_bytes())
            file.flush()
            os.fsync(file.fileno())
        reach("snapshot synced")
        os.replace(temporary, path)
        reach("snapshot renamed")
        sync_directory(directory)
        reach("snapshot in directory")
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{path}: the snapshot could not be written: {error}") from error
    return Snapshot(path, sequence)


def delete_before(directory: Path, snapshot: Snapshot) -> None:
    """Delete older snapshots, and all images except the newest snapshot's."""
    for path in directory.glob("snapshot-*.fvsnap"):
        if path != snapshot.path:
            path.unlink()
    delete_states(directory, snapshot)


def delete_states(directory: Path, snapshot: Snapshot | None) -> None:
    """Delete the images of all snapshots but one, incomplete ones included."""
    for folder in directory.glob("state-*"):
        if snapshot is None or folder != snapshot.state:
            shutil.rmtree(folder)
