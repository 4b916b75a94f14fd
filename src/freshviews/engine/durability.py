"""What goes into the log and into snapshots."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from freshviews.engine.base_check import Changes
from freshviews.engine.encoding import Encoded
from freshviews.engine.relations import Relations, TableState
from freshviews.errors import FreshviewsError, StoreError
from freshviews.store.payload import Part, parts_of, parts_to_bytes
from freshviews.store.record import SCRIPT, TABLE, UNSTORED, Record

ROWS = 1 << 16
"""Rows of a table in one record of a snapshot."""


def batch_payload(changes: Changes) -> tuple[bytes, int]:
    """The payload and flags of the record of a batch. Every column must have been encoded."""
    parts = [
        Part(table.number, table.name, table.decoder.change(encoded.batch))
        for table, encoded in changes
        if len(encoded.batch)
    ]
    unstored = any(table.stored is None and len(encoded.batch) for table, encoded in changes)
    return parts_to_bytes(parts), UNSTORED if unstored else 0


def snapshot_records(scripts: list[str], relations: Relations) -> Iterator[tuple[int, bytes]]:
    """Kinds and payloads of a snapshot of now."""
    for script in scripts:
        yield SCRIPT, script.encode()
    for table in relations.tables.values():
        if table.stored is not None:
            for batch in table.stored.batches(ROWS):
                rows = table.decoder.change(batch)
                yield TABLE, parts_to_bytes([Part(table.number, table.name, rows)])


def has_unstored_rows(relations: Relations) -> bool:
    """Whether some trusted table has had rows: the log is then needed beside a snapshot."""
    return any(table.stored is None and table.written for table in relations.tables.values())


def changes_of(record: Record, relations: Relations, only_unstored: bool) -> list[tuple[TableState, Encoded]]:
    """The changes a record holds, encoded again; rows of tables dropped since are left out.

    Raises StoreError where the record does not fit the tables.
    """
    by_number = {table.number: table for table in relations.tables.values()}
    changes: list[tuple[TableState, Encoded]] = []
    try:
        for part in parts_of(record.payload):
            table = by_number.get(part.number)
            if table is None or (only_unstored and table.stored is not None):
                continue
            rows = pa.Table.from_batches([part.rows])
            changes.append((table, table.encoder.encode(rows, 0)))
    except (FreshviewsError, pa.ArrowException, ValueError) as error:
        raise StoreError(f"record {record.sequence} of the log cannot be read back: {error}") from error
    return changes
