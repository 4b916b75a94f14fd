"""The views of a checkpoint as a server of Arrow Flight SQL sees them: read only, at the last version."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache

from freshviews.asking import bound, question_of, relations_of, run, translated
from freshviews.catalog.catalog import Catalog
from freshviews.catalog.kept_rings import aggregates_in
from freshviews.cli.serving.versions import TRIES, Gone, Refused, Versions
from freshviews.errors import FreshviewsError
from freshviews.spark.definition import views_of
from freshviews.spark.reading.contents import view_schema
from freshviews.wire import SELECT_SECONDS, RefusedStatement, Relation, Rows


class ServedCheckpoint:
    """``versions``: those of the checkpoint, which may begin again as another one."""

    is_writable = False

    def __init__(self, versions: Callable[[], Versions]) -> None:
        self._versions = versions

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
                return _selected(versions, sql, parameters)
            except Gone:
                continue  # The pipeline has deleted the version meanwhile; there is a newer one.
            except Refused as error:
                raise FreshviewsError(str(error)) from None
        try:
            return _selected(versions, sql, parameters)
        except Refused as error:
            raise FreshviewsError(str(error)) from None

    def update(self, sql: str, many: Sequence[Sequence[object]]) -> int:
        raise RefusedStatement("a checkpoint is read only; the rows come from the sources of its pipeline")


def _selected(versions: Versions, sql: str, parameters: Sequence[object]) -> Rows:
    manifest = versions.at(None)
    question = question_of(sql)
    values, kinds = bound(question, parameters)
    catalog = _catalog(manifest.script, json.dumps(manifest.rings))
    translation = translated(question, relations_of(question, catalog), kinds)
    tables = {}
    for name, relation, columns in translation.reads:
        tables[name] = versions.rows(manifest.version, relation)[2].select(list(columns))
    return Rows(run(translation, tables, values, SELECT_SECONDS), manifest.version)


@lru_cache(16)
def _catalog(script: str, rings: str) -> Catalog:
    """The views of a version alone: the rows of its tables are not stored."""
    return Catalog(views=views_of(script, aggregates_in(json.loads(rings))))
