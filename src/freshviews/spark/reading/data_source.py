"""The Spark data source ``freshviews``: views of a checkpoint.

::

    spark.read.format("freshviews").option("checkpoint", "ckpt").option("view", "by_part").load()
    spark.read.format("freshviews").options(checkpoint="ckpt", view="by_part", changes="true", after="7").load()
    spark.readStream.format("freshviews").options(checkpoint="ckpt", view="by_part", changes="true").load()

Call ``register(spark)`` first; a Pipeline does that too. The first form reads the contents at the last committed
version, or at ``option("version", n)`` if its state is still stored. The second reads the view's changes by the
versions after one, up to the last or to ``version``, with ``_multiplicity`` and ``_version``; without ``after``, the
change of that version alone. The third reads all changes; their sum is the contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from freshviews.errors import FreshviewsError
from freshviews.spark.reading import contents as reading
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from freshviews.types.columns import MULTIPLICITY

VERSION = "_version"


def register(spark: SparkSession) -> None:
    """Register the format ``freshviews`` in a session."""
    spark.dataSource.register(ViewSource)


class ViewSource(DataSource):
    """A view of a checkpoint."""

    @classmethod
    def name(cls) -> str:
        return "freshviews"

    def schema(self) -> T.StructType:
        return from_arrow_schema(self._columns())

    def reader(self, schema: T.StructType) -> DataSourceReader:
        address, view = self._place()
        version = self._number("version", lambda: reading.latest(store_of(address)).version)
        if self._has_changes():
            return _ChangesOf(address, view, self._number("after", lambda: version - 1), version)
        return _Contents(address, view, version)

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        address, view = self._place()
        if VERSION not in schema.fieldNames():
            raise FreshviewsError(
                "a stream is one of changes, which have two more columns; add option('changes', 'true')"
            )
        return _Changes(address, view)

    def _columns(self) -> pa.Schema:
        """Spark asks for the schema without saying whether it reads a stream, so an option says so."""
        address, view = self._place()
        schema = reading.view_schema(reading.latest(store_of(address)), view)[1]
        return _with_changes(schema) if self._has_changes() else schema

    def _has_changes(self) -> bool:
        return str(self.options.get("changes", "false")).lower() == "true"

    def _number(self, option: str, otherwise: Callable[[], int]) -> int:
        """The version that an option names."""
        given = self.options.get(option)
        if given is None:
            return otherwise()
        if not given.strip().isdigit():
            raise FreshviewsError(f"option {option} is the number of a version, not {given!r}")
        return int(given)

    def _place(self) -> tuple[str, str]:
        for name in ("checkpoint", "view"):
            if name not in self.options:
                raise FreshviewsError(f"the format freshviews needs option('{name}', ...)")
        return store_of(self.options["checkpoint"]).address, self.options["view"]


def _with_changes(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(MULTIPLICITY, pa.int64())).append(pa.field(VERSION, pa.int64()))


@dataclass
class _Range(InputPartition):
    """Versions after ``start`` up to ``end``; ``whole``: the contents at ``end`` instead."""

    start: int
    end: int
    whole: bool


class _Contents(DataSourceReader):
    def __init__(self, address: str, view: str, version: int) -> None:
        self._address = address
        self._view = view
        self._version = version

    def partitions(self) -> Sequence[InputPartition]:
        return [_Range(0, self._version, True)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        manifest = Manifests(store_of(self._address)).read(partition.end)
        yield from reading.contents(store_of(self._address), manifest, self._view).to_batches()


class _Changes(DataSourceStreamReader):
    def __init__(self, address: str, view: str) -> None:
        self._address = address
        self._view = view

    def initialOffset(self) -> dict[str, int]:
        return {"version": 0}

    def latestOffset(self) -> dict[str, int]:
        return {"version": reading.latest(store_of(self._address)).version}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        manifests = Manifests(store_of(self._address))
        kept = manifests.versions()
        first, last = start["version"], end["version"]
        if first == last:
            return []
        if first == 0 and (not kept or kept[0] > 1):
            return [_Range(0, last, True)]
        return [_Range(first, last, False)]

    def commit(self, end: dict[str, int]) -> None:
        """Versions are collected by the pipeline, not by readers."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        if partition.whole:
            manifest = Manifests(store_of(self._address)).read(partition.end)
            found = reading.contents(store_of(self._address), manifest, self._view)
            yield from _versioned(found, [1] * found.num_rows, partition.end)
            return
        yield from _changes(self._address, self._view, partition)


@dataclass
class _ChangesOf(DataSourceReader):
    """The changes of a view by the versions after one, up to another."""

    address: str
    view: str
    start: int
    end: int

    def partitions(self) -> Sequence[InputPartition]:
        return [_Range(self.start, self.end, False)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        yield from _changes(self.address, self.view, partition)


def _changes(address: str, view: str, of: _Range) -> Iterator[pa.RecordBatch]:
    """The changes of the versions of a range. Raises StoreError where one is not kept any more."""
    store = store_of(address)
    for version in range(of.start + 1, of.end + 1):
        manifest = Manifests(store).read(version)
        if view.lower() not in (name.lower() for name in manifest.views):
            continue
        name, _ = reading.view_schema(manifest, view)
        change = reading.changes(store, manifest, name)
        if change is not None:
            yield from _versioned(change.drop_columns([MULTIPLICITY]), change.column(MULTIPLICITY), version)


def _versioned(rows: pa.Table, signs: object, version: int) -> Iterator[pa.RecordBatch]:
    whole = rows.append_column(MULTIPLICITY, pa.chunked_array([signs]) if isinstance(signs, list) else signs)
    whole = whole.append_column(VERSION, pa.array([version] * whole.num_rows, pa.int64()))
    fields = [pa.field(field.name, field.type) for field in whole.schema]
    yield from whole.cast(pa.schema(fields)).to_batches()
