"""Defines a pipeline as data: each table with the source of its rows, and each view with its sink."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from types import MappingProxyType

from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.catalog.functions import unchecked
from freshviews.catalog.rings import RingAggregate, known_as
from freshviews.catalog.row_keys import row_keys
from freshviews.catalog.watermark import LATE, watermark_of
from freshviews.errors import FreshviewsError, SqlError, UnsupportedSql
from freshviews.records import dataclass
from freshviews.secrets import masked
from freshviews.spark.connectors.declarations import UPSERT, connector_of, remedy
from freshviews.spark.connectors.message_format import Written, split_options, written_as
from freshviews.spark.connectors.polls import Poll
from freshviews.spark.connectors.secrets import without_secrets
from freshviews.sql import AlterView, Catalog, ViewDefs, parse_script
from freshviews.stream import ChangeFormat, Upserts, format_for
from freshviews.stream.formats import DebeziumJson, FormatError
from freshviews.types import BINARY, TIMESTAMP_LTZ

ROWS = "freshviews.rows"
"""The property of a table that declares its expected rows."""


@dataclass(frozen=True)
class TableSpec:
    """A table. ``sql`` creates it. ``changes`` names its change format; None: detected from the columns.

    ``message``: options about the places of its columns in messages; None: the source has columns of these names.
    ``poll``: how it is polled; None: read once, or as Spark's source defines.
    """

    name: str
    sql: str
    provider: str | None = None
    options: dict[str, str] = field(default_factory=dict, repr=False)
    changes: str | None = None
    form_options: dict[str, str] = field(default_factory=dict)
    bad_rows: str | None = None
    message: dict[str, str] | None = None
    poll: Poll | None = None


@dataclass(frozen=True)
class ViewSpec:
    """A view. ``sql`` creates it. Without a provider it is maintained and not delivered. ``written``: its key, and how
    its rows become messages, where its sink takes messages or the new row of each key."""

    name: str
    sql: str
    provider: str | None = None
    options: dict[str, str] = field(default_factory=dict, repr=False)
    output: str = "changes"
    written: Written | None = None

    @property
    def folder(self) -> str | None:
        """The folder of its sink; None if it has none."""
        path = self.options.get("path")
        return None if path is None or self.provider is None else os.path.normpath(path)


@dataclass(frozen=True)
class Alteration:
    """An ALTER TABLE of a script. ``views``: the number of materialised views before it. These views and ``plain``, the
    statements of the plain views before it, read the columns that the table has before it."""

    table: str
    sql: str
    views: int
    plain: tuple[str, ...] = ()


@dataclass(frozen=True)
class Definition:
    """Tables and views of a pipeline, in order of creation, and settings of Spark that its script asks for."""

    tables: tuple[TableSpec, ...] = ()
    views: tuple[ViewSpec, ...] = ()
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    alterations: tuple[Alteration, ...] = ()
    held: str = ""
    """The script of a checkpoint, if the views are those that the checkpoint holds."""
    rings: Mapping[str, RingAggregate] = field(default_factory=dict)
    """The rings of a checkpoint, of its script."""

    def hide_secrets(self, error: BaseException) -> None:
        """Remove secrets of options and settings from the message of one of our errors. Causes that contain one are cut
        off, since a traceback shows them."""
        if isinstance(error, FreshviewsError):
            message = self._without_secrets(str(error))
            if message != str(error):
                error.args = (message, *error.args[1:])
            below = error.__cause__ or error.__context__
            while below is not None:
                if self._has_secrets(below):
                    error.__cause__ = None
                    break
                below = below.__cause__ or below.__context__

    def _without_secrets(self, message: str) -> str:
        of_tables = [table.options for table in self.tables]
        for options in (*of_tables, *(view.options for view in self.views), self.settings):
            message = without_secrets(message, options)
        return message

    def _has_secrets(self, error: BaseException) -> bool:
        try:
            text = str(error)
        except Exception:  # the text of Java's errors is in Java, which may have ended
            return True
        return masked(self._without_secrets(text)) != text

    @property
    def catalog(self) -> Catalog:
        """The catalog of its script. Raises SqlError with line and column."""
        return catalog_of(self.script, self.rings)

    @property
    def script(self) -> str:
        """Plain SQL that creates tables and views."""
        if self.held:
            return self.held
        statements = [table.sql for table in self.tables]
        for number, view in enumerate((*self.views, None)):
            for one in self.alterations:
                if one.views == number:
                    statements += [*one.plain, one.sql]
            if view is not None:
                statements.append(view.sql)
        return ";\n".join(statements)

    @property
    def table_statements(self) -> dict[str, str]:
        """By table, the statements that lead to its last form."""
        made: dict[str, str] = {}
        for table in self.tables:
            altered = [one.sql for one in self.alterations if one.table == table.name]
            made[table.name] = ";\n".join((table.sql, *altered))
        return made

    @property
    def providers(self) -> list[str | None]:
        """The sources and sinks of Spark that it names."""
        return [*(table.provider for table in self.tables), *(view.provider for view in self.views)]

    def remedy(self, message: str) -> str:
        """The remedy, if a message of Spark reports a missing source or sink; otherwise empty."""
        return remedy(message, self.providers)

    def added(self, known: Collection[str]) -> tuple[str, ...]:
        """The names of the views that are not known."""
        return tuple(view.name for view in self.views if view.name not in known)

    def without(self, names: Collection[str]) -> Definition:
        """The definition without some views."""
        kept = [view.name not in names for view in self.views]
        views = tuple(view for view, stays in zip(self.views, kept, strict=True) if stays)
        moved = tuple(replace(one, views=sum(kept[: one.views])) for one in self.alterations)
        return replace(self, views=views, alterations=moved)

    def over(self, views: Mapping[str, str], script: str, rings: Mapping[str, RingAggregate]) -> Definition:
        """The definition of the views that a checkpoint holds, by name the SQL of each; ``script`` creates them and
        their tables, with the ``rings`` of the checkpoint. A view has the sink that it has here; one that is not here
        has none."""
        here = {view.name: view for view in self.views}
        specs = tuple(
            replace(here[name], sql=sql) if name in here else ViewSpec(name, sql) for name, sql in views.items()
        )
        return replace(self, views=specs, held=script, rings=rings)

    def with_table(self, table: TableSpec) -> Definition:
        return replace(self, tables=(*self.tables, table))

    def with_view(self, view: ViewSpec) -> Definition:
        """Add a view. Raises SqlError if another view writes to the same folder: file names have only the version."""
        for other in self.views:
            if None not in (view.folder, other.folder) and view.folder == other.folder:
                raise SqlError(
                    f"views {other.name} and {view.name} both write to {view.folder}; give each a folder of its own"
                )
        return replace(self, views=(*self.views, view))


def catalog_of(script: str, rings: Mapping[str, RingAggregate] | None = None) -> Catalog:
    """The catalog of a plain script. ``rings``: those of the checkpoint that holds it, by lower-case name. Raises
    SqlError with line and column."""
    catalog = Catalog()
    with known_as(rings or {}), unchecked(rings is not None):
        for statement in parse_script(script, catalog):
            catalog = catalog.after(statement)
    relations: list[TableDef | ViewDef] = [*catalog.tables.values(), *catalog.views.values()]
    for relation in relations:
        refused = (one for one in relation.columns if one.type.is_interval or one.type in (TIMESTAMP_LTZ, BINARY))
        column = next(refused, None)
        if column is not None:
            kind = f"{'an' if column.type.is_interval else 'a'} {column.type}"
            what = f"{relation.name.split('#')[0]}.{column.name}, {kind}, as a column of a pipeline"
            raise UnsupportedSql(f"{what} is not supported; store a STRING or a number, and CAST it where it is used")
    for table in catalog.tables.values():
        watermark = watermark_of(table)
        if watermark is not None and watermark.drops:
            what = f"'{LATE}' = 'drop' of table {table.name} in a pipeline"
            raise UnsupportedSql(f"{what} is not supported; write OPTIONS (bad_rows 'folder') to set late rows aside")
    for view in catalog.views.values():
        for name in view.functions:
            if name not in catalog.functions:
                raise SqlError(
                    f"view {view.name.split('#')[0]}: function {name} is registered only in this process, so workers "
                    f"cannot import {name}; write CREATE FUNCTION ... USING python 'module:function' in the script, "
                    "or for an aggregate CREATE AGGREGATE FUNCTION ... USING python 'module:class'"
                )
    return catalog


def declared_rows(catalog: Catalog) -> dict[str, float]:
    """The expected rows of the tables that declare them."""
    found = {table.name: dict(table.properties).get(ROWS) for table in catalog.tables.values()}
    return {name: float(rows) for name, rows in found.items() if rows is not None}


def tables_of(script: str) -> dict[str, TableDef]:
    """Tables of a plain script by name."""
    return {table.name: table for table in catalog_of(script).tables.values()}


def views_of(script: str, rings: Mapping[str, RingAggregate] = MappingProxyType({})) -> dict[str, ViewDef]:
    """Views of a plain script by name, internal ones left out."""
    found: dict[str, ViewDef] = {}
    with known_as(rings), unchecked():
        for statement in parse_script(script, Catalog()):
            if isinstance(statement, ViewDefs | AlterView):
                found[statement.view.name] = statement.view
    return found


def with_key(spec: ViewSpec, catalog: Catalog) -> ViewSpec:
    """The view with its key and how its rows become messages, if its sink asks for that. Raises MessageError."""
    view, connector = catalog.view(spec.name), connector_of(spec.provider)
    if view is None or not (connector.messages or (connector.keeps and spec.output == UPSERT)):
        return spec
    own, options = split_options(spec.options)
    columns = [column.name for column in view.columns]
    written = written_as(own, columns, row_keys(view, catalog), spec.output == UPSERT)
    return replace(spec, options=options, written=written)


def form_of(changes: str | None, options: dict[str, str], columns: tuple[str, ...]) -> ChangeFormat:
    """The change format, with the options op, order, timestamps, decimals and column. Raises FormatError."""
    form = format_for(changes, columns)
    if isinstance(form, Upserts):
        known = {"op", "order"}
        form = replace(form, column=options.get("op"), order=options.get("order"))
    elif isinstance(form, DebeziumJson):
        known = {"column", "timestamps", "decimals"}
        form = replace(form, **{name: value for name, value in options.items() if name in known})  # type: ignore[arg-type]
    else:
        known = set()
    unknown = sorted(set(options) - known)
    if unknown:
        raise FormatError(f"the change format {changes or '(detected)'} has no option {unknown[0]}")
    return form
