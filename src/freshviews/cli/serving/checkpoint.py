"""Answers clients of Arrow Flight SQL from the last version of a checkpoint's views. Clients can only read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from freshviews.asking import Limits, SelectProcesses
from freshviews.cli.serving.versions import TRIES, Gone, Refused, Versions
from freshviews.errors import FreshviewsError
from freshviews.spark.reading.contents import view_schema
from freshviews.spark.reading.select import selected
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.store import Store
from freshviews.wire import RESULT_BYTES, SELECT_SECONDS, RefusedStatement, Relation, Rows


class ServedCheckpoint:
    """``versions``: those of the checkpoint, which may begin again as another one. ``processes``: answer SELECTs."""

    is_writable = False
    how_to_write = "it has the views of a checkpoint; change the sources of its pipeline instead"

    def __init__(self, versions: Callable[[], Versions], processes: SelectProcesses) -> None:
        self._versions = versions
        self._processes = processes

    def relations(self) -> Sequence[Relation]:
        """The views of the last version."""
        try:
            manifest = self._versions().at(None)
        except Refused as error:
            raise FreshviewsError(str(error)) from None
        return [Relation(name, False, view_schema(manifest, name)[1]) for name in manifest.views]

    def select(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Answer a SELECT over the views of one version, as ``Database.sql``."""
        versions = self._versions()
        for _ in range(TRIES - 1):
            try:
                return self._selected(versions, sql, parameters)
            except Gone:
                continue  # The pipeline has deleted the version meanwhile; there is a newer one.
            except Refused as error:
                raise FreshviewsError(str(error)) from None
        try:
            return self._selected(versions, sql, parameters)
        except Refused as error:
            raise FreshviewsError(str(error)) from None

    def update(self, sql: str, many: Sequence[Sequence[object]]) -> int:
        raise RefusedStatement(f"the server is read only; {self.how_to_write}")

    def _selected(self, versions: Versions, sql: str, parameters: Sequence[object]) -> Rows:
        manifest = versions.at(None)

        def read(store: Store, manifest: Manifest, view: str) -> pa.Table:
            return versions.rows(manifest.version, view)[2]

        limits = Limits(SELECT_SECONDS, RESULT_BYTES)
        table = selected(versions.store, manifest, sql, read, limits, parameters, self._processes)
        return Rows(table, manifest.version)
