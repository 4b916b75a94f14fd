"""Defines the Spark data source ``freshviews``, which reads views of a checkpoint. Call ``register(spark)`` first.

::

    spark.read.format("freshviews").option("checkpoint", "ckpt").option("view", "by_part").load()
    spark.read.format("freshviews").options(checkpoint="ckpt", view="by_part", changes="true", after="7").load()
    spark.readStream.format("freshviews").options(checkpoint="ckpt", view="by_part", changes="true").load()

The first form reads the contents, the second the changes after a version, the third all changes as a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from freshviews import arguments
from freshviews.errors import FreshviewsError
from freshviews.records import dataclass
from freshviews.spark.reading import contents as reading
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from freshviews.types.columns import MULTIPLICITY

VERSION = "_version"


def register(spark: SparkSession) -> None:
    """Register the format ``freshviews`` in a session, as a Pipeline does, too.

    The first form of a read is the contents at the last committed version, or at ``option("version", n)`` if that state
    is still stored. Changes have the columns ``_multiplicity`` and ``_version``. Without ``after``, only the last
    change is read.

    Parameters
    ----------
    spark
        The session.

    Raises
    ------
    ArgumentError
        ``spark`` is no session.

    Examples
    --------
    >>> from freshviews.spark import register
    >>> register(spark)
    >>> rows = spark.read.format("freshviews").options(checkpoint="ckpt", view="by_part").load()
    """
    arguments.of(SparkSession, "spark", spark)
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
        place = _Place(address, view, to_arrow_schema(schema))
        if self._has_changes():
            return _ChangesOf(place, self._number("after", lambda: version - 1), version)
        return _Contents(place, version)

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        address, view = self._place()
        if VERSION not in schema.fieldNames():
            raise FreshviewsError("a stream reads only changes; add option('changes', 'true')")
        return _Changes(_Place(address, view, to_arrow_schema(schema)))

    def _columns(self) -> pa.Schema:
        """Spark asks for the schema without telling whether it reads a stream, so an option decides."""
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
            raise FreshviewsError(f"option {option} must be the number of a version, not {given!r}")
        return int(given)

    def _place(self) -> tuple[str, str]:
        for name in ("checkpoint", "view"):
            if name not in self.options:
                raise FreshviewsError(f"format('freshviews') needs option('{name}', ...)")
        return store_of(self.options["checkpoint"]).address, self.options["view"]


@dataclass(frozen=True)
class _Place:
    """A view of a checkpoint, and the columns that Spark expects."""

    address: str
    view: str
    columns: pa.Schema

    def fitting(self, rows: pa.Table, version: int) -> Iterator[pa.RecordBatch]:
        """Rows of a version, with the types that Spark expects. Raises FreshviewsError if they have other columns.
        """
        if rows.schema.names == self.columns.names:
            with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                yield from rows.cast(self.columns).to_batches()
                return
        raise FreshviewsError(
            f"view {self.view} has other columns at version {version} than at the start of this read; read versions "
            "with the same columns, or restart the stream with a new checkpointLocation"
        )


def _with_changes(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(MULTIPLICITY, pa.int64())).append(pa.field(VERSION, pa.int64()))


@dataclass
class _Range(InputPartition):
    """Versions after ``start`` up to ``end``; ``whole``: the contents at ``end`` instead."""

    start: int
    end: int
    whole: bool


class _Contents(DataSourceReader):
    def __init__(self, place: _Place, version: int) -> None:
        self._place = place
        self._version = version

    def partitions(self) -> Sequence[InputPartition]:
        return [_Range(0, self._version, True)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        store = store_of(self._place.address)
        manifest = Manifests(store).read(partition.end)
        yield from self._place.fitting(reading.contents(store, manifest, self._place.view), partition.end)


class _Changes(DataSourceStreamReader):
    def __init__(self, place: _Place) -> None:
        self._place = place

    def initialOffset(self) -> dict[str, int]:
        return {"version": 0}

    def latestOffset(self) -> dict[str, int]:
        return {"version": reading.latest(store_of(self._place.address)).version}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        manifests = Manifests(store_of(self._place.address))
        kept = manifests.versions()
        first, last = start["version"], end["version"]
        if first == last:
            return []
        if first == 0 and (not kept or kept[0] > 1 or self._was_refilled(manifests, last)):
            return [_Range(0, last, True)]
        return [_Range(first, last, False)]

    def _was_refilled(self, manifests: Manifests, last: int) -> bool:
        """True if some version up to this one changed the view's SELECT, and so perhaps its columns."""
        view = self._place.view.lower()
        return any(
            view in (name.lower() for name in manifests.read(version).refilled) for version in range(2, last + 1)
        )

    def commit(self, end: dict[str, int]) -> None:
        """Versions are collected by the pipeline, not by readers."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        if partition.whole:
            store = store_of(self._place.address)
            found = reading.contents(store, Manifests(store).read(partition.end), self._place.view)
            ones = pa.array([1] * found.num_rows, pa.int64())
            yield from _versioned(self._place, found.append_column(MULTIPLICITY, ones), partition.end)
            return
        yield from _changes(self._place, partition)


@dataclass
class _ChangesOf(DataSourceReader):
    """The changes of a view by the versions after one, up to another."""

    place: _Place
    start: int
    end: int

    def partitions(self) -> Sequence[InputPartition]:
        return [_Range(self.start, self.end, False)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        yield from _changes(self.place, partition)


def _changes(place: _Place, of: _Range) -> Iterator[pa.RecordBatch]:
    """The changes of the versions of a range. Raises StoreError if one is no longer kept."""
    store, view = store_of(place.address), place.view
    for version in range(of.start + 1, of.end + 1):
        manifest = Manifests(store).read(version)
        if view.lower() not in (name.lower() for name in manifest.views):
            continue
        name, _ = reading.view_schema(manifest, view)
        change = reading.changes(store, manifest, name)
        if change is not None:
            yield from _versioned(place, change, version)


def _versioned(place: _Place, change: pa.Table, version: int) -> Iterator[pa.RecordBatch]:
    numbers = pa.array([version] * change.num_rows, pa.int64())
    yield from place.fitting(change.append_column(VERSION, numbers), version)
