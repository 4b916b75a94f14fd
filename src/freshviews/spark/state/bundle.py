"""Writes rows of several tables into one new object of a store, as Arrow streams, and reads them again.

The streams of one table are a *section* of the object. ``changes/7-0-5f.arrow@0+1200,4800+640`` names a section of two
streams, each by its start and its length in bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from freshviews.errors import StoreError
from freshviews.spark.state.stores.store import Data, Store, Writer, read_ranges
from freshviews.types.columns import MULTIPLICITY

# Compressing integers takes less time than writing them uncompressed.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)


class Bundle:
    """A new object in a folder of a store, made when the first rows are added; its sections grow in any order."""

    def __init__(self, store: Store, folder: str, stem: str = "") -> None:
        self._store = store
        self._object = f"{folder}/{stem}{uuid.uuid4().hex}.arrow"
        self._writer: Writer | None = None
        self._size = 0
        self._ranges: dict[str, list[str]] = {}

    def add(self, section: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Append rows to a section."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=_OPTIONS) as stream:
            for batch in batches:
                stream.write_batch(batch)
        data = sink.getvalue()
        if self._writer is None:
            self._writer = self._store.writer(self._object)
        self._writer.write(data)
        self._ranges.setdefault(section, []).append(f"{self._size}+{data.size}")
        self._size += data.size

    def finish(self) -> dict[str, str]:
        """Begin to make it durable; return the name of each section. Without sections there is no object."""
        if self._writer is not None:
            self._writer.finish()
        return {section: f"{self._object}@{','.join(ranges)}" for section, ranges in self._ranges.items()}

    def wait(self) -> None:
        """Wait until it is durable. Raises OSError."""
        if self._writer is not None:
            self._writer.wait()

    def discard(self) -> None:
        """Discard it."""
        if self._writer is not None:
            self._writer.discard()


def object_of(name: str) -> str:
    """The object that a section is in; any other name is one of an object."""
    return name.partition("@")[0]


def _ranges_of(name: str) -> Iterable[tuple[str, int, int]]:
    whole, _, ranges = name.partition("@")
    for one in ranges.split(","):
        start, _, length = one.partition("+")
        yield whole, int(start), int(length)


def read_all(store: Store, names: Iterable[str]) -> pa.Table | None:
    """The rows of several sections as one table; None if none is given."""
    ranges = [one for name in names for one in _ranges_of(name)]
    found = zip(ranges, read_ranges(store, ranges), strict=True)
    tables = [_rows_of(store, name, data) for (name, _, _), data in found]
    # Sections with the same columns may differ in their nullability.
    return pa.concat_tables(tables, promote_options="default") if tables else None


def _rows_of(store: Store, name: str, data: Data) -> pa.Table:
    try:
        rows = pa.ipc.open_stream(data).read_all()
        rows.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{store.address}/{name} is corrupt: {error}; restore it from a copy") from None
    return rows


def read_change(store: Store, names: Sequence[str]) -> pa.Table | None:
    """The change of a view from the sections of its cells; rows that one cell inserts and another deletes cancel."""
    rows = read_all(store, names)
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
