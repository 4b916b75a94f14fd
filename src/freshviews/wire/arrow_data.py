"""Converts Arrow tables to the messages of a Flight stream, and the messages of a client to rows."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import pyarrow as pa

from freshviews.wire.messages import BadMessage, parsed

MOST_VALUES = 1 << 22
"""Most parameters of a statement: rows times columns."""
BYTES_SENT = 4 << 20
"""Bytes that a message is about to have: clients refuse messages of 16 MB, some of 4 MB and their own part."""
_ROWS_SENT = 1 << 16
_CONTINUES = b"\xff\xff\xff\xff"
_HEADER, _BODY = b"\x12", b"\xc2\x3e"
"""Tags of the fields ``data_header`` (2) and ``data_body`` (1000) of FlightData."""


_PLAIN = (
    *(pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    *(pa.types.is_temporal, pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    pa.types.is_fixed_size_binary,
)


def schema_bytes(schema: pa.Schema) -> bytes:
    """A schema as a message of Arrow's IPC."""
    content: bytes = schema.serialize().to_pybytes()
    return content


def sendable(table: pa.Table) -> pa.Table:
    """A table whose columns are no dictionaries, as clients that know few types read it."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.with_type(field.type.value_type), column)
    return table


def stream_of(table: pa.Table) -> Iterator[bytes]:
    """The messages of a table: its schema, then record batches."""
    yield _flight_data(pa.ipc.read_message(table.schema.serialize()))
    rows = _ROWS_SENT
    if table.nbytes > BYTES_SENT:
        rows = max(1, min(rows, table.num_rows * BYTES_SENT // table.nbytes))
    for batch in table.to_batches(max_chunksize=rows):
        if batch.num_rows:
            yield _flight_data(pa.ipc.read_message(batch.serialize()))


def _flight_data(message: pa.Message) -> bytes:
    # Written out: a message of protobuf would copy the body twice more.
    header, body = message.metadata, message.body
    parts = [_HEADER, _length(header.size), header]
    return b"".join([*parts, _BODY, _length(body.size), body] if body is not None else parts)


def _length(number: int) -> bytes:
    """A varint."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _is_compressed(header: bytes) -> bool:
    """Whether the body after a message's header is compressed, by the fields of its flatbuffer. Raises BadMessage."""
    try:
        message = _reference(header, 0)
        kind = _field(header, message, 1)
        batch = _field(header, message, 2)
        if not kind or not batch or header[kind] not in (_DICTIONARY, _BATCH):
            return False
        found: int | None = _reference(header, batch)
        if header[kind] == _DICTIONARY:
            inner = _field(header, found or 0, 1)
            found = None if inner is None else _reference(header, inner)
        return found is not None and _field(header, found, 3) is not None
    except (struct.error, IndexError):
        raise BadMessage("the header of the parameters is not an Arrow message") from None


_DICTIONARY, _BATCH = 2, 3


def _reference(content: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", content, at)[0])


def _field(content: bytes, table: int, number: int) -> int | None:
    """The place of a field of a flatbuffer's table; None if it is absent."""
    fields = table - int(struct.unpack_from("<i", content, table)[0])
    if fields < 0:
        raise IndexError
    size = struct.unpack_from("<H", content, fields)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", content, fields + place)[0] if place + 2 <= size else 0
    return table + offset if offset else None


def rows_of(messages: Iterable[bytes], most: int) -> list[tuple[object, ...]]:
    """The rows of a stream from a client, of at most ``most`` bytes and ``MOST_VALUES`` values. Raises BadMessage.

    A few bytes can stand for many rows: a compressed body, a column of NULL, runs, lists, or views of one text. So only
    plain columns are read, and they are counted before Python's values are made.
    """
    parts: list[bytes] = []
    size = 0
    for content in messages:
        one = parsed("FlightData", content)
        size += len(content)
        if size > most:
            raise BadMessage(f"the parameters have more than {most >> 20} MB; send them in several statements")
        if one.data_header:
            if _is_compressed(one.data_header):
                raise BadMessage("the parameters are compressed; send them uncompressed")
            header = one.data_header + b"\0" * (-len(one.data_header) % 8)
            parts += [_CONTINUES, len(header).to_bytes(4, "little"), header, one.data_body]
    if not parts:
        return []
    try:
        with pa.ipc.open_stream(pa.BufferReader(b"".join(parts))) as reader:
            for field in reader.schema:
                if not any(check(field.type) for check in _PLAIN):
                    raise BadMessage(
                        f"parameter {field.name} is of type {str(field.type)[:100]}; send a number, text, binary, "
                        "boolean, date or timestamp"
                    )
            table = reader.read_all()
        if table.num_rows * max(table.num_columns, 1) > MOST_VALUES:
            raise BadMessage(f"there are more than {MOST_VALUES:,} parameters; send them in several statements")
        table.validate(full=True)
        columns = [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise BadMessage(f"the parameters are not an Arrow record batch: {type(error).__name__}") from None
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
