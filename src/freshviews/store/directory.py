"""Opens the directory of a durable database, appends to its log, and replaces its snapshot.

The directory has these files::

    meta.json                   the format version, and the sequence number of the newest segment
    lock                        locked while a process has the directory open; holds the process id
    log-<sequence>.fvlog        segments of the log
    snapshot-<sequence>.fvsnap  the newest snapshot
    state-<sequence>            the snapshot's images of views, and the strings in them
    *.tmp                       incomplete; deleted when the directory is opened

The rows of trusted tables, whose updates are not checked, are not stored. The views over these tables are stored.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from freshviews.errors import StoreError
from freshviews.store import snapshot as snapshots
from freshviews.store.crash_points import reach
from freshviews.store.files import TEMPORARY, is_at, json_of, lock, read_regular, sync_directory, unlock, write_whole
from freshviews.store.log import Log, segment_name
from freshviews.store.record import FORMAT, Record

_LOGGER = logging.getLogger("freshviews.store")
_META = "meta.json"
_LOCK = "lock"


def not_opened(path: Path, error: OSError) -> StoreError:
    """The error for a directory with a file that cannot be read or written."""
    return StoreError(f"{path} cannot be opened: {error}; it needs free space, and files that this user may write")


class Directory:
    """An open directory. The caller reads ``records`` to the end first; then it may append.

    ``sync_seconds``: see ``Log``. Raises StoreError if the directory is locked, is not a database, is of another
    format, or cannot be written. A directory with other files stays as it is.
    """

    def __init__(self, path: str | os.PathLike[str], snapshot_bytes: int, sync_seconds: float = 0.0) -> None:
        self.path = Path(path).absolute()
        self._snapshot_bytes = snapshot_bytes
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path} is not a directory and cannot be created: {error}") from error
        self._lock: BinaryIO | None = None
        self._lock_path = str(self.path / _LOCK)
        try:
            self._check_ours()
            self._lock = lock(self.path / _LOCK)
            recorded = self._check_format()
            for leftover in self.path.glob(f"*{TEMPORARY}"):
                leftover.unlink()
            self.snapshot = snapshots.latest(self.path)
            snapshots.delete_states(self.path, self.snapshot)
            self.log = Log(self.path, sync_seconds)
            self._check_complete(recorded)
        except OSError as error:
            self.close()
            raise not_opened(self.path, error) from error
        except BaseException:
            self.close()
            raise
        self._since_snapshot = 0
        self._snapshot_size = 0 if self.snapshot is None else self.snapshot.bytes

    def _check_ours(self) -> None:
        """Raise StoreError if the directory has files and is not a database."""
        if (self.path / _META).exists():
            return
        if any(p.name != _LOCK and p.suffix != TEMPORARY for p in self.path.iterdir()):
            raise StoreError(f"{self.path} is not empty and has no {_META}: it is not a freshviews database")

    def _check_format(self) -> int:
        """The newest segment of the log by meta.json, 0 if it names none."""
        meta = self.path / _META
        self._check_ours()
        if not meta.exists():
            write_whole(meta, json.dumps({"format": FORMAT}).encode())
            return 0
        try:
            read = json_of(read_regular(meta))
            found, recorded = read["format"], int(read.get("log", 0))
        except (ValueError, KeyError, TypeError, OverflowError):
            raise StoreError(f'{meta}, offset 0: the file is corrupt; it should be {{"format": {FORMAT}}}') from None
        if found != FORMAT:
            raise StoreError(f"{self.path} is a database of format {found}; this release of freshviews reads {FORMAT}")
        return recorded

    def _check_complete(self, recorded: int) -> None:
        if (self.log.last_segment or 0) < recorded:
            raise StoreError(
                f"{self.path}: {segment_name(recorded)}, the newest file of the log, is missing; restore it from a copy"
            )
        needed = 1 if self.snapshot is None else self.snapshot.sequence + 1
        first = self.log.first_sequence
        if first is not None and first > needed:
            raise StoreError(
                f"{self.path}: the log begins at record {first}, but record {needed} is needed; restore the missing "
                "file from a copy"
            )
        if first is None and self.snapshot is not None:
            raise StoreError(f"{self.path}: the log from record {needed} on is missing; restore it from a copy")

    def records(self) -> Iterator[Record]:
        """The log's records after the snapshot."""
        held = 0 if self.snapshot is None else self.snapshot.sequence
        for record in self.log.records():
            if record.sequence > held:
                yield record
                self._since_snapshot += len(record.payload)
        if self.log.sequence < held:
            raise StoreError(
                f"{self.path}: the log from record {self.log.sequence + 1} on is missing; restore it from a copy"
            )
        if self.log.dropped:
            _LOGGER.warning(self.log.dropped)

    def append(self, kind: int, version: int, payload: bytes) -> None:
        """Add a record to the log; errors as ``Log.append``."""
        self._check_there()
        if not self.log.begun:
            self._begin_segment(self.log.sequence + 1)
        self.log.append(Record(kind, self.log.sequence + 1, version, payload, self.log.late))
        self._since_snapshot += len(payload)

    def check_there(self) -> None:
        """Raise StoreError if the directory or the file that is written is gone. Nothing else may write meanwhile."""
        self._check_there()
        self.log.check_there()

    def sync(self) -> None:
        """Bring the log to the disk; errors as ``Log.sync``."""
        self.log.sync()

    def _check_there(self) -> None:
        """Raise StoreError if the files are no longer where the directory was opened."""
        if self._lock is None or not is_at(self._lock, self._lock_path):
            raise StoreError(
                f"{self.path} was removed, moved or replaced while it was open, so no batch can be written; the rows "
                "in memory can still be read"
            )

    def _begin_segment(self, sequence: int) -> None:
        """Start a segment of the log, and record that there is one, so that opening notices if it is gone."""
        try:
            self.log.begin_segment(sequence)
            reach("segment begun")
            write_whole(self.path / _META, json.dumps({"format": FORMAT, "log": sequence}).encode())
            reach("segment recorded")
        except OSError as error:
            raise StoreError(f"{self.path}: a new file of the log could not be created: {error}") from error

    @property
    def snapshot_due(self) -> bool:
        """True if the log has grown enough since the last snapshot to pay for another.

        Its growth must exceed ``snapshot_bytes`` and the size of the last snapshot, so writing snapshots costs at most
        a constant share of writing the log.
        """
        return self._since_snapshot > max(self._snapshot_bytes, self._snapshot_size)

    def postpone_snapshot(self) -> None:
        """Restart counting the log's growth: after a snapshot that failed."""
        self._since_snapshot = 0

    def write_snapshot(
        self, version: int, records: Iterable[tuple[int, bytes]], write_state: Callable[[Path], None]
    ) -> None:
        """Write a snapshot of the present state, from kinds and payloads; delete older files and the log before it.

        ``write_state`` writes the images of the views into a folder. Raises StoreError.
        """
        self._check_there()
        # The snapshot must not be on the disk before the log that it follows: were the machine lost then, the log
        # would end too early.
        self.log.sync()
        sequence = self.log.sequence
        state = snapshots.state_folder(self.path, sequence)
        made = (Record(kind, sequence, version, payload) for kind, payload in records)
        try:
            state.mkdir(exist_ok=True)
            write_state(state)
            sync_directory(self.path)
            reach("images written")
            self.snapshot = snapshots.write(self.path, sequence, made)
        except BaseException as error:
            snapshots.delete_states(self.path, self.snapshot)
            if isinstance(error, OSError):
                raise StoreError(f"{state} could not be written: {error}") from error
            raise
        self._snapshot_size = self.snapshot.bytes
        self._since_snapshot = 0
        self._begin_segment(sequence + 1)
        snapshots.delete_before(self.path, self.snapshot)
        self.log.delete_before(sequence + 1)
        reach("segments deleted")

    def close(self) -> None:
        """Sync and close the log, and unlock the directory, even if syncing fails. Raises LogUncertain."""
        try:
            if getattr(self, "log", None) is not None:
                self.log.close()
        finally:
            if self._lock is not None:
                unlock(self._lock)
            self._close_lock()

    def leave(self) -> None:
        """Close the files in a forked child; the directory stays locked by the parent."""
        if getattr(self, "log", None) is not None:
            self.log.leave()
        self._close_lock()

    def _close_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
