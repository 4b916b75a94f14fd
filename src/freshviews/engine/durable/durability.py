"""The payloads of the log and of snapshots."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.relations import Relations
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.window import held_of
from freshviews.errors import FreshviewsError, StoreError
from freshviews.store.crash_points import reach
from freshviews.store.payload import PayloadPart, parts_of, parts_to_bytes
from freshviews.store.record import BATCH, IMAGES, SCRIPT, TABLE, WORDS, Record
from freshviews.store.strings import write_strings
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import NULL

ROWS = 1 << 16
"""Rows of a table in one record of a snapshot."""

STRINGS = "strings"
"""Name of the file of strings beside the images."""

FEW = 128
"""Most rows of a batch that are logged as words: to begin a stream of Arrow costs as much as some 300 rows of words."""
_WORDS = struct.Struct("<QII")


def are_words(rows: int) -> bool:
    """Whether a batch of one table with ``rows`` rows is logged as words."""
    return 0 < rows <= FEW


def batch_payload(changes: Changes) -> tuple[int, bytes]:
    """The kind and the payload of the record of a batch. Every column must have been encoded."""
    if len(changes) == 1 and are_words(len(changes[0][1].batch)):
        table, batch = changes[0][0], changes[0][1].batch
        columns = [batch.columns[column.name].tolist() for column in table.definition.columns]
        return WORDS, words_payload(table, columns, batch.multiplicities.tolist())
    parts = [
        PayloadPart(table.number, table.name, table.decoder.change(encoded.batch))
        for table, encoded in changes
        if len(encoded.batch)
    ]
    return BATCH, parts_to_bytes(parts)


def words_payload(table: TableState, columns: Sequence[list[int]], multiplicities: list[int]) -> bytes:
    """The payload of a record of WORDS, from the codes of each column of the table.

    It has the table's number, the rows and the columns; then the codes of each column and the multiplicities, in
    little-endian byte order, lengths in bytes in place of the codes of strings; then these strings as UTF-8."""
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
    return b"".join((head, struct.pack(f"<{len(words)}q", *words), *texts))


def _words_of(payload: bytes, tables: Mapping[int, TableState]) -> list[tuple[TableState, Encoded]]:
    """The changes in a payload of words. ValueError where they do not fit the table."""
    number, rows, width = _WORDS.unpack_from(payload)
    table = tables.get(number)
    if table is None:
        return []
    columns = table.definition.columns
    if len(columns) != width:
        raise ValueError(f"table {table.name} has {len(columns)} columns, and the record {width}")
    at = _WORDS.size + 8 * rows * (width + 1)
    words = np.frombuffer(payload[_WORDS.size : at], "<i8").reshape(width + 1, rows).astype(np.int64)
    found: dict[str, Codes] = {}
    for column, codes in zip(columns, words, strict=False):
        if column.type.name == "STRING":
            for row, length in enumerate(codes.tolist()):
                if length != NULL:
                    codes[row] = table.decoder.dictionary.encode(payload[at : at + length].decode())
                    at += length
        found[column.name] = codes
    return [(table, Encoded(CodeBatch(table.name, found, words[width])))]


def snapshot_records(scripts: list[str], relations: Relations) -> Iterator[tuple[int, bytes]]:
    """Kinds and payloads of a snapshot of now."""
    for script in scripts:
        yield SCRIPT, script.encode()
    unstored = [table.number for table in relations.tables.values() if table.stored is None and table.written]
    yield IMAGES, json.dumps({"views": _image_names(relations), "unstored": unstored}).encode()
    for table in relations.tables.values():
        for batch in _rows_of(table):
            rows = table.decoder.change(batch)
            yield TABLE, parts_to_bytes([PayloadPart(table.number, table.name, rows)])


def _rows_of(table: TableState) -> Iterator[CodeBatch]:
    """The rows of a table for a snapshot: the stored ones, or those of the window, in order."""
    if not table.has_window:
        yield from table.stored.batches(ROWS) if table.stored is not None else ()
        return
    held = held_of(table)
    for start in range(0, len(held.rows), ROWS):
        rows = held.rows[start : start + ROWS]
        columns = {name: rows[:, i] for i, name in enumerate(held.columns)}
        yield CodeBatch(table.name, columns, np.ones(len(rows), np.int64))


def write_state(folder: Path, relations: Relations, dictionary: Dictionary) -> None:
    """Write the strings and the image of every view into the folder of a snapshot of now."""
    write_strings(folder / STRINGS, dictionary, 0)
    reach("strings written")
    names = _image_names(relations)
    for view in relations.views.values():
        view.maintained.write_image(folder / names[view.name])
        reach("image written")


def _image_names(relations: Relations) -> dict[str, str]:
    """The file of each view's image."""
    return {view.name: f"view-{i}" for i, view in enumerate(relations.views.values(), 1)}


def changes_of(record: Record, relations: Relations) -> list[tuple[TableState, Encoded]]:
    """The changes a record holds, encoded again; rows of tables dropped since are left out.

    Raises StoreError where the record does not fit the tables.
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
