"""Immutable Arrow files under fresh names: what state and changes are kept in."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from freshviews.engine.encoding import MULTIPLICITY
from freshviews.store.files import sync_directory


def write_arrow(root: Path, folder: str, stem: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> str:
    """Write a file that was not there before and sync it; its name relative to ``root`` comes back."""
    name = f"{folder}/{stem}-{uuid.uuid4().hex}.arrow"
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        with pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)
    return name


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
    """The rows of several files as one table; None where no file is named."""
    tables = [read_arrow(root, name) for name in names]
    # Files of the same columns may differ in whether these can be NULL.
    return pa.concat_tables(tables, promote_options="default") if tables else None


def read_change(root: Path, names: Sequence[str]) -> pa.Table | None:
    """The change of a view from the files of its cells, without rows that come in one cell and go in another."""
    rows = read_all(root, names)
    if rows is None or len(names) < 2:
        return rows
    signs = rows.column(MULTIPLICITY)
    return rows if pc.min(signs).as_py() > 0 or pc.max(signs).as_py() < 0 else net(rows)


def net(rows: pa.Table) -> pa.Table:
    """A change with each row once, with the sum of its ``_multiplicity``; those that come and go are left out."""
    columns = [name for name in rows.schema.names if name != MULTIPLICITY]
    summed = rows.group_by(columns, use_threads=False).aggregate([(MULTIPLICITY, "sum")])
    summed = summed.rename_columns([*columns, MULTIPLICITY]).select(rows.schema.names).cast(rows.schema)
    return summed.filter(pc.not_equal(summed.column(MULTIPLICITY), 0))
