"""Encodes the records of logs and snapshots. A record is this header (with sizes in bytes) and a payload::

    magic 4 | kind 1 | late 1 | format 2 | length 8 | sequence 8 | version 8 | crc32 of the payload 4 |
    crc32 of the header up to here 4

``sequence`` counts the records of a database. ``version`` is the version after the record. ``late`` is 1 if earlier
records may not have been on the disk yet when this record was written.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from freshviews.errors import StoreError
from freshviews.records import dataclass
from freshviews.store.files import open_regular

MAGIC = b"\xf5fvr"
FORMAT = 1
_HEADER = struct.Struct("<4sBBHQQQI")
_CHECK = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CHECK.size

# Kinds.
BATCH = 1  # changes of tables
SCRIPT = 2  # SQL text that was executed
TABLE = 3  # in a snapshot: contents of a table, in one or several records
END = 4  # in a snapshot: the last record
IMAGES = 5  # in a snapshot: the files that hold the views
WORDS = 6  # changes of one table, of few rows


@dataclass(frozen=True)
class Record:
    """A record: its kind, sequence number, version, payload, and whether it is late.

    ``sequence`` counts the records of a database, so a missing record is noticed; ``version`` is the version after the
    record. ``late`` is 0 if all earlier records were known to be on the disk when the record was written. If ``late``
    is 1, the file system may lose earlier records and keep this one.
    """

    kind: int
    sequence: int
    version: int
    payload: bytes
    late: bool = False

    def to_bytes(self) -> bytes:
        head = _HEADER.pack(
            MAGIC,
            self.kind,
            self.late,
            FORMAT,
            len(self.payload),
            self.sequence,
            self.version,
            zlib.crc32(self.payload),
        )
        return head + _CHECK.pack(zlib.crc32(head)) + self.payload


def read_record(file: BinaryIO, size: int) -> Record | None:
    """The record at the file's position; None if there is no valid one.

    ``size`` is that of the file. A record of another format raises StoreError.
    """
    head = file.read(HEADER_BYTES)
    if len(head) < HEADER_BYTES or head[:4] != MAGIC:
        return None
    if _CHECK.unpack(head[_HEADER.size :])[0] != zlib.crc32(head[: _HEADER.size]):
        return None
    _, kind, late, written_as, length, sequence, version, crc = _HEADER.unpack(head[: _HEADER.size])
    if written_as != FORMAT:
        raise StoreError(f"{file.name} has records of format {written_as}; this release of freshviews reads {FORMAT}")
    if length > size - file.tell():
        return None
    payload = file.read(length)
    if zlib.crc32(payload) != crc:
        return None
    return Record(kind, sequence, version, payload, bool(late))


def synced_before(path: Path, offset: int) -> bool:
    """True if the content of a file before an offset was on the disk once: a valid record that is not late follows."""
    size = path.stat().st_size
    with open_regular(path) as file:
        for place in _magics(file, offset):
            file.seek(place)
            record = read_record(file, size)
            if record is not None and not record.late:
                return True
    return False


def _magics(file: BinaryIO, offset: int) -> Iterator[int]:
    """Every offset, from ``offset`` on, of the magic bytes; reads blocks that overlap by their length."""
    block = 1 << 20
    while True:
        file.seek(offset)
        data = file.read(block)
        at = data.find(MAGIC)
        while at >= 0:
            yield offset + at
            at = data.find(MAGIC, at + 1)
        if len(data) < block:
            return
        offset += block - len(MAGIC) + 1
