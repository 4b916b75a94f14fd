"""Converts a batch to its record in the log, and back."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.relations import Relations
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import FreshviewsError, StoreError
from freshviews.store.payload import PayloadPart, parts_of, parts_to_bytes
from freshviews.store.record import BATCH, WORDS, Record
from freshviews.types.sqltype import NULL, text_of

FEW = 128
"""Most rows of a batch that are logged as words: starting a stream of Arrow costs as much as some 300 rows of words."""
_WORDS = struct.Struct("<QII")


def are_words(table: TableState, rows: int) -> bool:
    """Whether a batch of one table with ``rows`` rows is logged as words. Wide decimals are logged as Arrow columns."""
    return 0 < rows <= FEW and not any(column.type.wide for column in table.definition.columns)


def record_of(changes: Changes) -> tuple[int, bytes]:
    """The kind and the payload of the record of a batch. Every column must have been encoded."""
    if len(changes) == 1 and are_words(changes[0][0], len(changes[0][1].batch)):
        table, batch = changes[0][0], changes[0][1].batch
        columns = [batch.columns[column.name].tolist() for column in table.definition.columns]
        return words_record(table, columns, batch.multiplicities.tolist())
    parts = [
        PayloadPart(table.number, table.name, table.decoder.change(encoded.batch))
        for table, encoded in changes
        if len(encoded.batch)
    ]
    return BATCH, parts_to_bytes(parts)


def words_record(table: TableState, columns: Sequence[list[int]], multiplicities: list[int]) -> tuple[int, bytes]:
    """As ``record_of``, from the codes of each column of a table.

    The payload has the table's number, the rows and the columns; then the codes of each column and the multiplicities,
    in little-endian byte order, lengths in bytes in place of the codes of strings; then these strings as UTF-8.
    """
    decode = table.decoder.dictionary.decode
    texts: list[bytes] = []
    words: list[int] = []
    for column, codes in zip(table.definition.columns, columns, strict=True):
        if column.type.name == "STRING":
            for code in codes:
                if code == NULL:
                    words.append(NULL)
                else:
                    text = decode(code).encode()
                    words.append(len(text))
                    texts.append(text)
        else:
            words += codes
    words += multiplicities
    head = _WORDS.pack(table.number, len(multiplicities), len(columns))
    return WORDS, b"".join((head, struct.pack(f"<{len(words)}q", *words), *texts))


def _words_of(payload: bytes, tables: Mapping[int, TableState]) -> list[tuple[TableState, Encoded]]:
    """The changes in a payload of words. ValueError if they do not fit the table."""
    number, rows, width = _WORDS.unpack_from(payload)
    table = tables.get(number)
    if table is None:
        return []
    columns = table.definition.columns
    if len(columns) != width:
        raise ValueError(f"table {table.name} has {len(columns)} columns, but the record has {width}")
    at = _WORDS.size + 8 * rows * (width + 1)
    words = np.frombuffer(payload[_WORDS.size : at], "<i8").reshape(width + 1, rows).astype(np.int64)
    found: dict[str, Codes] = {}
    for column, codes in zip(columns, words, strict=False):
        if column.type.name == "STRING":
            for row, length in enumerate(codes.tolist()):
                if length != NULL:
                    codes[row] = table.decoder.dictionary.encode(payload[at : at + length].decode())
                    at += length
        elif column.type.wide:  # logged as words when all decimals were
            encode = table.decoder.dictionary.encode
            codes[:] = [NULL if one == NULL else encode(text_of(one)) for one in codes.tolist()]
        found[column.name] = codes
    return [(table, Encoded(CodeBatch(table.name, found, words[width])))]


def changes_of(record: Record, relations: Relations) -> list[tuple[TableState, Encoded]]:
    """The changes of a record, encoded again, without rows of dropped tables.

    Raises StoreError if the record does not fit the tables.
    """
    by_number = {table.number: table for table in relations.tables.values()}
    changes: list[tuple[TableState, Encoded]] = []
    try:
        if record.kind == WORDS:
            return _words_of(record.payload, by_number)
        for part in parts_of(record.payload):
            table = by_number.get(part.number)
            if table is None:
                continue
            rows = pa.Table.from_batches([part.rows])
            changes.append((table, table.encoder.encode(rows, 0)))
    except (FreshviewsError, pa.ArrowException, ValueError, struct.error) as error:
        raise StoreError(f"record {record.sequence} of the log cannot be read back: {error}") from error
    return changes
