"""Finds the materialized views of a project that freshviews can maintain, and defines them in one SQL script."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from freshviews.errors import FreshviewsError, PlanError, SqlError
from freshviews.plan.planner import plan_block
from freshviews.query.sharing import with_shared_sums
from freshviews.records import dataclass
from freshviews.spark.declarative.graph import (
    MATERIALIZED_VIEW,
    STREAMING_TABLE,
    Dataset,
    Graph,
)
from freshviews.spark.definition import Definition, TableSpec, ViewSpec
from freshviews.spark.io.columns import sql_type
from freshviews.spark.session import SPARK_ERRORS
from freshviews.sql import Catalog, ViewDefs, parse_script
from freshviews.sql.statements.relations import Relation, Renamed, relations_of, renamed

_MEANINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""Settings that change what a query means, and the values under which it means what docs/sql.md says."""

Open = Callable[[], DataFrame]


@dataclass(frozen=True)
class Views:
    """The views that are maintained. ``names``: by key, the name in the script. ``frames``: by table of the script, how
    its DataFrame is made once Spark has updated what it reads. ``refused``: by key, the place and the reason."""

    definition: Definition
    names: Mapping[str, str]
    frames: Mapping[str, Open]
    streams: tuple[Dataset, ...]
    refused: Mapping[str, str]


@dataclass(frozen=True)
class _Input:
    """A table of the script, and how its rows are read."""

    spec: TableSpec
    open: Open
    stream: Dataset | None
    left_out: Mapping[str, str]
    """Columns with a type that no table has, by name."""


@dataclass
class _Script:
    """The script of some views. ``inputs``: by name. ``plain``: the statements of plain views, by name."""

    catalog: Catalog = field(default_factory=Catalog)
    inputs: dict[str, _Input] = field(default_factory=dict)
    plain: dict[str, str] = field(default_factory=dict)

    def copy(self) -> _Script:
        return _Script(self.catalog, {**self.inputs}, {**self.plain})


class _Refused(Exception):
    """A view cannot be maintained, at a place, for a reason."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(why)
        self.place = place


def maintained(graph: Graph, spark: SparkSession) -> Views:
    """The views of a project that can be maintained, and why the others cannot.

    In the script, a streaming table is a table, and a temporary view is a plain view. Any other input, such as a file,
    is a table too. Each run compares the contents of such a table with its contents in the last run.
    """
    return _Planner(graph, spark).views()


class _Planner:
    def __init__(self, graph: Graph, spark: SparkSession) -> None:
        self._datasets, self._spark = graph.datasets, spark
        self._streamed = self._above(graph.streamed)
        self._settings = {name: str(spark.conf.get(name, value)) for name, value in _MEANINGS.items()}
        self._script = _Script()
        self._names: dict[str, str] = {}
        self._kept: dict[str, ViewSpec] = {}
        self._refused: dict[str, str] = {}

    def views(self) -> Views:
        for one in self._datasets.values():
            if one.kind != MATERIALIZED_VIEW:
                continue
            script = self._script.copy()
            try:
                self._kept[one.key] = self._view(one, script)
                self._script = script
            except _Refused as refused:
                self._refused[one.key] = f"{refused.place}: materialized view {one.name}: {refused}"
        inputs = self._script.inputs
        definition = Definition(tuple(one.spec for one in inputs.values()), tuple(self._kept.values()))
        streams = (one.stream for one in inputs.values() if one.stream is not None)
        return Views(
            definition,
            {key: view.name for key, view in self._kept.items()},
            {name: one.open for name, one in inputs.items()},
            tuple(sorted(streams, key=lambda one: one.key)),
            self._refused,
        )

    def _above(self, keys: set[str]) -> set[str]:
        """The datasets from which those with these keys are made, and these."""
        found, due = set(keys), list(keys)
        while due:
            one = self._datasets.get(due.pop())
            due += [key for key in (one.inputs if one else ()) if key not in found]
            found |= {*due}
        return found

    def _view(self, one: Dataset, script: _Script) -> ViewSpec:
        if one.key in self._streamed:
            raise _Refused(
                str(one.place),
                "a stream reads this view, but Spark runs streams before it updates views; in the query of the stream, "
                "read the streaming tables in place of the view",
            )
        name = self._name(one.key, one.name)
        head = f"CREATE MATERIALIZED VIEW `{name}` AS\n"
        used: list[str] = []
        query = self._query(one, script, used)
        self._take(one, head, query, script)
        return ViewSpec(name, ";\n".join([*(script.plain[view] for view in used), head + query.text]))

    def _query(self, one: Dataset, script: _Script, used: list[str]) -> Renamed:
        """The query of a dataset over the names of the script. Adds the plain views that it reads to ``used``."""
        for setting, value in {**self._settings, **one.settings}.items():
            usual = _MEANINGS.get(setting, "" if setting.startswith("spark.sql.legacy.") else value)
            if value.lower() != usual.lower():
                message = f"{setting} is {value}, which changes what its SQL means; leave the setting out"
                raise _Refused(str(one.place), message)
        if one.query is None:
            return Renamed(f"SELECT * FROM `{self._frame_of(one, script)}`", ())
        try:
            relations = relations_of(one.query)
        except SqlError as error:
            raise _Refused(*_located(one, one.query, error, lambda offset: offset)) from None
        return renamed(one.query, {relation: self._relation(one, relation, script, used) for relation in relations})

    def _take(self, one: Dataset, head: str, query: Renamed, script: _Script) -> None:
        """Add a view to the catalog of the script. Raises _Refused."""
        try:
            for made in parse_script(head + query.text, script.catalog):
                script.catalog = script.catalog.after(made)
                for view in made.views if isinstance(made, ViewDefs) else ():
                    found = {name: script.catalog.relation(name) for name in view.inputs}
                    inputs = {name: relation for name, relation in found.items() if relation is not None}
                    for block in view.blocks:
                        plan_block(view, with_shared_sums(block), inputs)
        except SqlError as error:
            place, why = _located(one, head + query.text, error, lambda offset: query.original(offset - len(head)))
            missing = [
                f"; column {column} of {table} is {kind}, a type that no table of freshviews has"
                for table, each in script.inputs.items()
                for column, kind in each.left_out.items()
                if re.search(rf"\b{re.escape(column)}\b", why, re.IGNORECASE)
            ]
            raise _Refused(place, why + "".join(missing)) from None
        except PlanError as error:
            raise _Refused(str(one.place), str(error)) from None

    def _relation(self, reader: Dataset, relation: Relation, script: _Script, used: list[str]) -> str:
        """The name in the script of a relation of a query."""
        parts = relation.parts
        catalog, database = reader.context
        full = (catalog, database, *parts)[-3:] if len(parts) < 3 else parts
        full = (catalog, *parts) if len(parts) == 2 else full
        one = self._datasets.get(".".join(parts).lower()) or self._datasets.get(".".join(full).lower())
        if one is None or not parts:
            where = ".".join(f"`{part}`" for part in full) if len(parts) == 1 else relation.text
            frame = self._external(reader, where)
            key = relation.text.lower() if len(parts) != 1 else ".".join(full).lower()
            return self._input(
                reader, key, parts[-1] if parts else relation.text, frame.schema, lambda: frame, script
            )
        if one.key in self._kept:
            return self._kept[one.key].name
        if one.kind == STREAMING_TABLE:
            return self._input(
                reader, one.key, one.name, one.schema, lambda: self._spark.readStream.table(one.quoted), script, one
            )
        if one.kind == MATERIALIZED_VIEW:
            return self._input(reader, one.key, one.name, one.schema, lambda: self._spark.table(one.quoted), script)
        name = self._name(one.key, one.name)
        if name not in script.plain:
            query = self._query(one, script, used)
            head = f"CREATE VIEW IF NOT EXISTS `{name}` AS\n"
            self._take(one, head, query, script)
            script.plain[name] = head + query.text
        if name not in used:
            used.append(name)
        return name

    def _external(self, reader: Dataset, where: str) -> DataFrame:
        try:
            return self._spark.sql(f"SELECT * FROM {where}")
        except SPARK_ERRORS as error:
            raise _Refused(str(reader.place), f"{where} cannot be read: {str(error).splitlines()[0]}") from None

    def _frame_of(self, one: Dataset, script: _Script) -> str:
        frame = one.frame
        assert frame is not None
        if frame.isStreaming:
            raise _Refused(
                str(one.place), "its function returns a stream; write spark.read in place of spark.readStream"
            )
        return self._input(one, f"{one.key} source", f"{one.name}_source", frame.schema, lambda: frame, script)

    def _input(
        self,
        reader: Dataset,
        key: str,
        name: str,
        schema: T.StructType,
        make: Open,
        script: _Script,
        stream: Dataset | None = None,
    ) -> str:
        """Add a table that a dataset reads to the script; returns its name."""
        name = self._name(key, name)
        if name in script.inputs:
            return name
        kinds = {one.name: sql_type(one.dataType) for one in schema.fields}
        columns = [column for column, kind in kinds.items() if kind is not None]
        listed = ", ".join(f"`{column}` {kinds[column]}" for column in columns)
        statement = f"CREATE TABLE `{name}` ({listed})"
        try:
            for made in parse_script(statement, script.catalog):
                script.catalog = script.catalog.after(made)
        except FreshviewsError as error:
            raise _Refused(str(reader.place), f"this view reads {name}, which cannot be a table: {error}") from None
        left_out = {one.name: one.dataType.simpleString() for one in schema.fields if kinds[one.name] is None}
        spec = TableSpec(name, statement, None, {}, "append" if stream is not None else "snapshot")
        chosen = [f"`{column}`" for column in columns]
        script.inputs[name] = _Input(spec, lambda: make().select(*chosen), stream, left_out)
        return name

    def _name(self, key: str, wanted: str) -> str:
        """A name of its own in the script for a dataset, or for what is read from outside."""
        if key not in self._names:
            taken = {*self._names.values()}
            plain = re.sub(r"\W", "_", wanted.lower()) or "_"
            longer = re.sub(r"\W", "_", key)
            names = (f"t_{one}" if one[0].isdigit() else one for one in (plain, longer))
            free = [one for one in names if one not in taken]
            self._names[key] = free[0] if free else f"{longer}_{len(taken)}"
        return self._names[key]


def _located(one: Dataset, text: str, error: SqlError, original: Callable[[int], int]) -> tuple[str, str]:
    """The place in its file of an error in the text of a statement, and the message."""
    message = str(error).removeprefix(f"line {error.line}, column {error.column}: ")
    if not error.line or one.query is None:
        return str(one.place), message
    lines = text.split("\n")
    offset = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
    return one.place.at(one.query, original(offset)), message


def ancestors(datasets: Mapping[str, Dataset], key: str) -> set[str]:
    """The keys of the datasets that one reads, directly or not."""
    found: set[str] = set()
    due = [*datasets[key].inputs]
    while due:
        each = due.pop()
        if each not in found and each in datasets:
            found.add(each)
            due += datasets[each].inputs
    return found
