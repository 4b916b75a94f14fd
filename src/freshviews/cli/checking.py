"""Finds what ``freshviews check`` prints about the cells, sources and sinks of a script.

It prints how many cells share each view, whether Spark or its workers read each table, and which sources and sinks can
be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from freshviews.cells import Location, locations, plan_cells
from freshviews.cli.pipeline import end_session
from freshviews.cli.source import ReadError, Source
from freshviews.cli.streaming_script import definition_in, message_with_place
from freshviews.errors import SqlError
from freshviews.spark.connectors.by_arrow import read_by_spark
from freshviews.spark.definition import catalog_of, declared_rows
from freshviews.spark.settings import need_spark, packages_with, settings_of
from freshviews.spark.state.checkpoint import check_store
from freshviews.spark.state.stores.addresses import store_of
from freshviews.sql.statements.streaming import plain

if TYPE_CHECKING:
    from freshviews.spark.io.reach import Tried


def cell_locations(source: Source, name: str, cells: int, *, folders: bool = True) -> list[Location]:
    """The cells of each view and table, if there are this many, by declared sizes; empty for one cell. ``folders``: see
    ``definition_in``. Raises what a run with as many cells raises: PlanError or ReadError."""
    try:
        text = plain(source.text)
        catalog = catalog_of(text)
    except SqlError as error:
        raise ReadError(message_with_place(source, error)) from error
    if text != source.text:
        definition = definition_in(source, name, folders=folders)
        need_spark()
        from freshviews.spark.layout.one_cell import check_cells

        catalog = catalog_of(definition.script)
        check_cells(definition, catalog, cells)
    sizes = declared_rows(catalog)
    plan = plan_cells(catalog, cells, sizes)
    return locations(plan, catalog, sizes) if cells > 1 else []


def readers(source: Source, name: str) -> list[tuple[str, str | None]]:
    """The streaming tables of a script, each with the reason for which Spark reads its rows, None if workers read its
    files by Arrow. Empty if the options of the script cannot be read here, as without a variable that they name."""
    try:
        tables = () if plain(source.text) == source.text else definition_in(source, name, folders=False).tables
    except (SqlError, ReadError):
        return []
    return [(table.name, read_by_spark(table)) for table in tables if table.provider is not None]


def try_places(
    source: Source, name: str, checkpoint: str | None, packages: str | None, conf: Sequence[str]
) -> Iterator[Tried]:
    """Try each place that a script reads or writes, and the checkpoint if one is given; yields the results. Starts
    Spark if a place needs it. Raises ReadError, and the error of a session that does not start."""
    definition = definition_in(source, name, folders=False)
    settings = packages_with({**definition.settings, **settings_of(conf)}, packages)
    need_spark()
    from freshviews.spark.io.reach import attempt
    from freshviews.spark.io.reach import tried as each
    from freshviews.spark.session import start_session

    sessions: list[Any] = []

    def session() -> Any:
        if not sessions:
            sessions.append(start_session(None, settings, quiet=True))
        return sessions[0]

    try:
        yield from each(session, definition)
        if checkpoint is not None:
            yield attempt("the checkpoint", checkpoint, lambda: check_store(store_of(checkpoint)))
    finally:
        for one in sessions:
            end_session(one)
