"""Encodes rows of several tables as the payload of one record, in the log or in a snapshot.

For each table, the payload has the number and the name of the table, and the rows as an Arrow IPC stream.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import pyarrow as pa

from freshviews.records import dataclass

_PART = struct.Struct("<QIQ")


@dataclass(frozen=True)
class PayloadPart:
    """Rows of one table as values, with a signed ``_multiplicity`` column.

    ``number`` distinguishes tables that had the same name at different times.
    """

    number: int
    name: str
    rows: pa.RecordBatch


def parts_to_bytes(parts: Iterable[PayloadPart]) -> bytes:
    """The payload of a record: the parts one after the other."""
    pieces = []
    for part in parts:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.rows.schema) as writer:
            writer.write_batch(part.rows)
        stream = sink.getvalue()
        name = part.name.encode()
        pieces += [_PART.pack(part.number, len(name), stream.size), name, stream.to_pybytes()]
    return b"".join(pieces)


def parts_of(payload: bytes) -> Iterator[PayloadPart]:
    """The parts of a payload; the rows share its memory."""
    view = memoryview(payload)
    at = 0
    while at < len(payload):
        number, name_length, length = _PART.unpack_from(view, at)
        at += _PART.size
        name = bytes(view[at : at + name_length]).decode()
        at += name_length
        with pa.ipc.open_stream(pa.py_buffer(view[at : at + length])) as reader:
            for rows in reader:
                yield PayloadPart(number, name, rows)
        at += length
