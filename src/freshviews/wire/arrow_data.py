"""Arrow tables as the messages of a stream of Flight, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from freshviews.wire.messages import BadMessage, parsed

BYTES_SENT = 4 << 20
"""Bytes that a message is about to have: clients refuse messages of 16 MB, some of 4 MB and their own part."""
_ROWS_SENT = 1 << 16
_CONTINUES = b"\xff\xff\xff\xff"
_HEADER, _BODY = b"\x12", b"\xc2\x3e"
"""Tags of the fields ``data_header`` (2) and ``data_body`` (1000) of FlightData."""


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


def rows_of(messages: Iterable[bytes], most: int) -> list[tuple[object, ...]]:
    """The rows of a stream from a client, of at most ``most`` bytes. Raises BadMessage."""
    parts: list[bytes] = []
    size = 0
    for content in messages:
        one = parsed("FlightData", content)
        size += len(content)
        if size > most:
            raise BadMessage(f"the parameters have more than {most >> 20} MB; send them in several statements")
        if one.data_header:
            header = one.data_header + b"\0" * (-len(one.data_header) % 8)
            parts += [_CONTINUES, len(header).to_bytes(4, "little"), header, one.data_body]
    if not parts:
        return []
    try:
        with pa.ipc.open_stream(pa.BufferReader(b"".join(parts))) as reader:
            table = reader.read_all()
        table.validate(full=True)
        columns = [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise BadMessage(f"the parameters are no rows of Arrow: {type(error).__name__}") from None
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
