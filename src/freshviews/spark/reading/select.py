"""Evaluates a SELECT over the views of a checkpoint at one committed version.

DuckDB evaluates the SELECT, or Spark if the caller asks for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from freshviews.catalog.catalog import Catalog
from freshviews.errors import SqlError
from freshviews.records import dataclass
from freshviews.spark.reading.contents import catalog, contents, latest
from freshviews.spark.settings import need_spark
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.store import Store

if TYPE_CHECKING:
    from freshviews.asking import Asked, Limits, Names, Reading, Reads, SelectProcesses, UnknownRelation

_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(\w+)", re.DOTALL)
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")

Read = Callable[[Store, Manifest, str], pa.Table]


def select(store: Store, sql: str, manifest: Manifest | None = None, *, on_spark: bool = False) -> pa.Table:
    """Return the result of a SELECT at a version; None: the last one. Only the views that it names are loaded.

    Raises StoreError if there is no version yet, SqlError if the SELECT is refused, NoDuckDB, or NoSpark for
    ``on_spark``, if the package is not installed.
    """
    if not on_spark:
        from freshviews.asking import question_of

        question_of(sql)
        return selected(store, manifest or latest(store), sql)
    found = _FIRST_WORD.match(sql)
    word = found.group(1).upper() if found is not None else ""
    if word not in _QUERIES:
        raise SqlError(f"a SELECT over the views is accepted, not {word or 'an empty text'}")
    need_spark()
    manifest = manifest or latest(store)
    from freshviews.spark.reading.spark_select import select_on_spark

    return select_on_spark(store, manifest, sql)


def selected(
    store: Store,
    manifest: Manifest,
    sql: str,
    read: Read = contents,
    limits: Limits | None = None,
    parameters: Sequence[object] = (),
    processes: SelectProcesses | None = None,
) -> pa.Table:
    """The result of a SELECT at a version, without Spark. ``read`` gives the contents of a view; ``limits``: what the
    SELECT may take. ``parameters``: the values of its ``?``. ``processes``: where it is computed; None: in this one."""
    from freshviews.asking import Limits, bound, question_of, relations_of, run, translated

    views = _Views(store, manifest, read)
    if processes is not None:
        return processes.answer(sql, parameters, views, limits or Limits())[0]
    question = question_of(sql)
    values, kinds = bound(question, parameters)
    translation = translated(question, relations_of(question, views.catalog), kinds)
    rows = {name: read(store, manifest, view).select(columns) for name, view, columns in translation.reads}
    return run(translation, rows, values, limits)


@dataclass(frozen=True)
class _Views:
    """The views of a version, as a SELECT in another process reads them."""

    store: Store
    manifest: Manifest
    content: Read

    @property
    def catalog(self) -> Catalog:
        return Catalog(views=catalog(self.manifest))

    def relations(self, names: Names) -> Asked | UnknownRelation:
        from freshviews.asking import relations_named

        return relations_named(names, self.catalog)

    def read(self, names: Names, asked: Asked, reads: Reads) -> Reading:
        from freshviews.asking import Reading

        key = self.manifest.version, self.manifest.time
        tables = {name: (key, self.content(self.store, self.manifest, view)) for name, view, _ in reads}
        return Reading(self.manifest.version, tables)
