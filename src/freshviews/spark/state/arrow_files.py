"""Immutable Arrow files under fresh names, for state and changes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from freshviews.engine.codes.encoding import MULTIPLICITY
from freshviews.store.files import sync_directory

# Compressing integers takes less time than writing them uncompressed.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)


class ArrowWriter:
    """A new file, written batch by batch; ``name`` is relative to the root."""

    def __init__(self, root: Path, folder: str, stem: str, schema: pa.Schema) -> None:
        self.name = f"{folder}/{stem}-{uuid.uuid4().hex}.arrow"
        self._path = root / self.name
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("wb")
        self._writer = pa.ipc.new_file(self._file, schema, options=_OPTIONS)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write_batch(batch)

    def finish(self) -> str:
        """Sync the finished file and return its name."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        sync_directory(self._path.parent)
        return self.name

    def discard(self) -> None:
        """Delete the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def write_arrow(root: Path, folder: str, stem: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> str:
    """Write a new file and sync it; return its name relative to ``root``."""
    writer = ArrowWriter(root, folder, stem, schema)
    for batch in batches:
        writer.write(batch)
    return writer.finish()


def write_bytes(root: Path, folder: str, stem: str, suffix: str, data: bytes) -> str:
    """As ``write_arrow``, for bytes."""
    name = f"{folder}/{stem}-{uuid.uuid4().hex}{suffix}"
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)
    return name


def read_arrow(root: Path, name: str) -> pa.Table:
    """The file's rows, memory-mapped."""
    with pa.memory_map(str(root / name)) as source:
        return pa.ipc.open_file(source).read_all()


def read_all(root: Path, names: Iterable[str]) -> pa.Table | None:
    """The rows of several files as one table; None if no file is given."""
    tables = [read_arrow(root, name) for name in names]
    # Files with the same columns may differ in their nullability.
    return pa.concat_tables(tables, promote_options="default") if tables else None


def read_change(root: Path, names: Sequence[str]) -> pa.Table | None:
    """The change of a view from the files of its cells; rows that one cell inserts and another deletes cancel."""
    rows = read_all(root, names)
    if rows is None or len(names) < 2:
        return rows
    signs = rows.column(MULTIPLICITY)
    return rows if pc.min(signs).as_py() > 0 or pc.max(signs).as_py() < 0 else net(rows)


def net(rows: pa.Table) -> pa.Table:
    """A change with each row once, with the sum of its ``_multiplicity``; rows whose sum is 0 are left out."""
    columns = [name for name in rows.schema.names if name != MULTIPLICITY]
    summed = rows.group_by(columns, use_threads=False).aggregate([(MULTIPLICITY, "sum")])
    summed = summed.rename_columns([*columns, MULTIPLICITY]).select(rows.schema.names).cast(rows.schema)
    return summed.filter(pc.not_equal(summed.column(MULTIPLICITY), 0))
