"""The log: records in segment files, appended and synced one commit at a time.

A segment ``log-<sequence>.fvlog`` is named after its first record. Unreadable records at the end of the last segment
are a torn tail, left by a process that was killed while writing: they are cut off, and ``dropped`` says so. Anything
unreadable before a valid record is corruption and raises StoreError. ``store.record`` has the bytes of a record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from freshviews.errors import StoreError
from freshviews.store.crash_points import reach
from freshviews.store.files import sync_directory
from freshviews.store.record import Record, read_record, valid_after


class LogUncertain(StoreError):
    """A record could neither be written nor be cut off: reopening shows whether it is in the log."""


class Log:
    """The segments of one directory. The caller reads ``records`` to its end, and begins a first segment where there is
    none, before it appends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
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
            with path.open("rb") as file:
                while (offset := file.tell()) < size:
                    record = read_record(file, size)
                    if record is None:
                        self._cut_tail(path, offset, size)
                        break
                    if record.sequence != expected:
                        raise StoreError(
                            f"{path}, offset {offset}: record {record.sequence} where {expected} should be"
                        )
                    expected += 1
                    yield record
            if path != self._segments[-1] and expected != _sequence_of(self._following(path)):
                raise StoreError(f"{path}, offset {size}: record {expected} is missing at the end")
        self.sequence = max(expected - 1, 0)

    def _following(self, path: Path) -> Path:
        return self._segments[self._segments.index(path) + 1]

    def _cut_tail(self, path: Path, offset: int, size: int) -> None:
        later = self._segments[self._segments.index(path) + 1 :]
        if valid_after(path, offset + 1) or any(one.stat().st_size for one in later):
            raise StoreError(
                f"{path}, offset {offset}: the record is corrupt, and valid ones follow; restore the file from a copy"
            )
        self.dropped_bytes = size - offset
        self.dropped = (
            f"{path}: {size - offset} bytes from offset {offset} on were no whole record and were dropped: "
            "the last commit did not finish"
        )
        number = os.open(path, os.O_WRONLY)
        try:
            os.ftruncate(number, offset)
            os.fsync(number)
        finally:
            os.close(number)

    def append(self, record: Record) -> None:
        """Write and sync a record.

        After StoreError the log does not contain it; after LogUncertain that is unknown.
        """
        if self._file is None:
            self._open_last()
        assert self._file is not None
        if os.fstat(self._file).st_nlink == 0:
            raise StoreError(f"{self._segments[-1]} was deleted while the database was open, so nothing is written")
        data = memoryview(record.to_bytes())
        half = len(data) // 2
        try:
            _write(self._file, data[:half])
            reach("record half written")
            _write(self._file, data[half:])
            reach("record written")
            os.fsync(self._file)
        except OSError as error:
            self._cut_off(error)
            raise StoreError(f"{self._segments[-1]}: the batch could not be written: {error}") from error
        self._size += len(data)
        self.sequence = record.sequence
        reach("record synced")

    def _cut_off(self, cause: OSError) -> None:
        assert self._file is not None
        try:
            os.ftruncate(self._file, self._size)
            os.fsync(self._file)
        except OSError as error:
            raise LogUncertain(
                f"{self._segments[-1]}: the batch could not be written ({cause}) nor cut off ({error}); "
                "open the database again to see whether it is in"
            ) from error

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
        sync_directory(self._directory)
        self.close()
        self._file, self._size = number, os.fstat(number).st_size
        if path not in self._segments:
            self._segments.append(path)

    def delete_before(self, sequence: int) -> None:
        """Delete the segments that end before a record."""
        while len(self._segments) > 1 and _sequence_of(self._segments[1]) <= sequence:
            self._segments.pop(0).unlink()
        sync_directory(self._directory)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


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
