"""Appends a record to the log at each commit, and reads the records when a database is opened.

The log consists of segment files. It is synced to the disk at each commit, or after an interval.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Lock, Timer
from weakref import WeakSet

from freshviews.errors import StoreError
from freshviews.store import crash_points
from freshviews.store.crash_points import reach
from freshviews.store.files import open_regular, sync_directory
from freshviews.store.record import Record, read_record, synced_before

_LOGGER = logging.getLogger("freshviews.store")


class LogUncertain(StoreError):
    """The content of the log on disk is unknown: a sync failed, or a record could neither be written nor be cut off.

    Reopening shows the content of the log. A second sync would not: after a failure the system may count lost pages as
    written.
    """


class Log:
    """The segments of one directory. The caller reads ``records`` to its end, and begins a first segment if there is
    none, before it appends. One thread at a time appends; any may sync meanwhile.

    ``sync_seconds``: the longest time after which a thread syncs a written record; 0: ``append`` syncs it.

    A segment ``log-<sequence>.fvlog`` has the number of its first record in its name. A process that is killed, or a
    machine that fails before a sync, may leave a torn tail: unreadable records at the end of the last segment. The tail
    is cut off, with any late records after it, and ``dropped`` reports that. Unreadable bytes in an earlier segment, or
    before a valid record that is not late, are corruption and raise StoreError. ``store.record`` defines late records.
    """

    def __init__(self, directory: Path, sync_seconds: float = 0.0) -> None:
        self._directory = directory
        self._sync_seconds = sync_seconds
        self._syncing = Lock()
        """Held while the file is synced, closed or replaced."""
        self._synced = 0
        """Sequence number of the last record that is known to be on the disk."""
        self._timer: Timer | None = None
        """Waits to sync the records since the last sync; None if there are none."""
        self._failed: str | None = None
        """The reason why no more records are accepted."""
        self._process = os.getpid()
        if sync_seconds:
            _SYNCED_LATE.add(self)
        self._segments = sorted(directory.glob("log-*.fvlog"))
        self._file: int | None = None
        self._size = 0
        self.sequence = 0
        """Sequence number of the last record."""
        self.dropped: str | None = None
        """A message about the torn tail that was cut off, or None."""
        self.dropped_bytes = 0

    @property
    def first_sequence(self) -> int | None:
        """Sequence number of the first record of the first segment; None without segments."""
        return _sequence_of(self._segments[0]) if self._segments else None

    @property
    def begun(self) -> bool:
        """True if there is a segment."""
        return bool(self._segments)

    @property
    def last_segment(self) -> int | None:
        """Sequence number after which the last segment is named; None without segments."""
        return _sequence_of(self._segments[-1]) if self._segments else None

    @property
    def bytes(self) -> int:
        """Size of all segments."""
        return sum(path.stat().st_size for path in self._segments)

    def records(self) -> Iterator[Record]:
        """Every record, in order, over all segments. StoreError names file and offset of corruption."""
        expected = 0 if self.first_sequence is None else self.first_sequence
        for path in self._segments:
            size = path.stat().st_size
            with open_regular(path) as file:
                while (offset := file.tell()) < size:
                    record = read_record(file, size)
                    if record is None:
                        self._cut_tail(path, offset, size)
                        break
                    if record.sequence != expected:
                        raise StoreError(
                            f"{path}, offset {offset}: record {expected} is expected, but record {record.sequence} was "
                            "found"
                        )
                    expected += 1
                    yield record
            if path != self._segments[-1] and expected != _sequence_of(self._following(path)):
                raise StoreError(f"{path}, offset {size}: record {expected} is missing at the end of the file")
        self.sequence = max(expected - 1, 0)
        if self._segments:
            # A process that was killed may have left records that the disk does not have yet.
            try:
                with self._segments[-1].open("rb") as file:
                    os.fsync(file.fileno())
            except OSError as error:
                raise StoreError(f"{self._segments[-1]} could not be synced: {error}") from error
        self._synced = self.sequence

    def _following(self, path: Path) -> Path:
        return self._segments[self._segments.index(path) + 1]

    def _cut_tail(self, path: Path, offset: int, size: int) -> None:
        later = self._segments[self._segments.index(path) + 1 :]
        if synced_before(path, offset + 1) or any(one.stat().st_size for one in later):
            raise StoreError(
                f"{path}, offset {offset}: the record is corrupt, but valid records follow; restore the file from a "
                "copy"
            )
        self.dropped_bytes = size - offset
        self.dropped = (
            f"{path}: {size - offset} bytes from offset {offset} on were an incomplete record and were dropped: "
            "the last commit did not finish, or had not reached the disk"
        )
        number = os.open(path, os.O_WRONLY)
        try:
            os.ftruncate(number, offset)
            os.fsync(number)
        finally:
            os.close(number)

    @property
    def late(self) -> bool:
        """True if the next record is late: others are written, and may not be on the disk."""
        return self._synced < self.sequence

    def append(self, record: Record) -> None:
        """Write a record, and sync it, now or after the interval.

        After StoreError the log does not contain it; after LogUncertain that is unknown, and no more records are
        accepted.
        """
        if self._failed is not None:
            raise LogUncertain(self._failed)
        if self._file is None:
            self._open_last()
        assert self._file is not None
        self.check_there()
        data = memoryview(record.to_bytes())
        # In one piece, unless a test watches its halves.
        half = 0 if crash_points.hook is None else len(data) // 2
        try:
            if half:
                _write(self._file, data[:half])
                reach("record half written")
            _write(self._file, data[half:])
            reach("record written")
        except OSError as error:
            self._cut_off(error)
            raise StoreError(f"{self._segments[-1]}: the batch could not be written: {error}") from error
        self._size += len(data)
        self.sequence = record.sequence
        if self._sync_seconds:
            self._sync_soon()
        else:
            self.sync()
        reach("record synced")

    def check_there(self) -> None:
        """Raise StoreError if the file that is written was deleted."""
        if self._file is not None and os.fstat(self._file).st_nlink == 0:
            message = "was deleted while the database was open, so no batch can be written"
            raise StoreError(f"{self._segments[-1]} {message}")

    def _cut_off(self, cause: OSError) -> None:
        assert self._file is not None
        try:
            os.ftruncate(self._file, self._size)
            os.fsync(self._file)
        except OSError as error:
            self._failed = (
                f"{self._segments[-1]}: the batch could be neither written ({cause}) nor cut off ({error}); "
                "open the database again to see whether it was committed"
            )
            raise LogUncertain(self._failed) from error

    def sync(self) -> None:
        """Bring all records to the disk. After LogUncertain the content there is unknown; nothing more is written."""
        with self._syncing:
            self._sync_file()

    def _sync_file(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # An append from here on starts a new timer: this sync may miss its record.
        self._timer = None
        if self._failed is not None:
            raise LogUncertain(self._failed)
        if self._file is None:
            return
        written = self.sequence
        if self._synced == written:
            return
        try:
            os.fsync(self._file)
        except OSError as error:
            self._failed = (
                f"{self._segments[-1]} could not be synced: {error}; the disk may lack the records from "
                f"{self._synced + 1} on, so no further batch is written; reopen the database to see what was committed"
            )
            raise LogUncertain(self._failed) from error
        self._synced = written

    def _sync_soon(self) -> None:
        if self._timer is not None:
            return
        # Another thread that syncs now sets the attribute to None, and cancels this one.
        timer = Timer(self._sync_seconds, self._sync_late)
        timer.daemon = True
        self._timer = timer
        try:
            timer.start()
        except RuntimeError:  # No thread can be started, for example at the end of the interpreter.
            self.sync()

    def _sync_late(self) -> None:
        try:
            self.sync()
        except LogUncertain as error:
            _LOGGER.error("%s", error)

    def _open_last(self) -> None:
        """Open the last segment for appending."""
        try:
            self._file = os.open(self._segments[-1], os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise StoreError(f"{self._segments[-1]} cannot be opened for writing: {error}") from error
        self._size = os.fstat(self._file).st_size

    def begin_segment(self, sequence: int) -> None:
        """Start a new segment, whose first record will have this sequence number."""
        path = self._directory / segment_name(sequence)
        # A segment without records has the same name.
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            sync_directory(self._directory)
            self.close()
        except BaseException:
            os.close(number)
            raise
        self._file, self._size = number, os.fstat(number).st_size
        if path not in self._segments:
            self._segments.append(path)

    def delete_before(self, sequence: int) -> None:
        """Delete the segments that end before a record."""
        while len(self._segments) > 1 and _sequence_of(self._segments[1]) <= sequence:
            self._segments.pop(0).unlink()
        sync_directory(self._directory)

    def close(self) -> None:
        """Sync the remaining records, and close the file, even if syncing fails. Raises LogUncertain."""
        with self._syncing:
            try:
                self._sync_file()
            finally:
                self._close_file()

    def leave(self) -> None:
        """Close the file in a forked child, which has no thread to sync it, and leaves that to the parent."""
        self._syncing = Lock()
        self._timer = None
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


_SYNCED_LATE: WeakSet[Log] = WeakSet()
"""The logs with an interval."""


def _sync_all() -> None:
    """At the end of the process, after its threads: sync the logs that it did not close."""
    for log in list(_SYNCED_LATE):
        if log._process == os.getpid():
            log._sync_late()


atexit.register(_sync_all)


def segment_name(sequence: int) -> str:
    """The file name of the segment whose first record has a sequence number."""
    return f"log-{sequence:012}.fvlog"


def _sequence_of(path: Path) -> int:
    try:
        return int(path.stem.removeprefix("log-"))
    except ValueError:
        raise StoreError(f"{path}: not the name of a log segment") from None


def _write(file: int, data: memoryview) -> None:
    while data:
        data = data[os.write(file, data) :]
