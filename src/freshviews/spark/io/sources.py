"""Opens the sources of tables as DataFrames, and makes one DataFrame of the rows of all of them.

So a single shuffle of Spark sends the rows of all tables to the cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from freshviews.catalog.catalog import column_named, unknown
from freshviews.catalog.definitions import TableDef
from freshviews.catalog.window import window_of
from freshviews.errors import SourceError
from freshviews.records import dataclass
from freshviews.spark.connectors.declarations import (
    connector_of,
    is_folder,
    remedy,
    value_of,
    with_driver,
    with_given,
    with_timeouts,
)
from freshviews.spark.connectors.message_format import OP, expected, message_format, reads_headers
from freshviews.spark.connectors.polls import AWAY, LOGIN
from freshviews.spark.connectors.secrets import without_secrets
from freshviews.spark.definition import Definition, TableSpec, form_of
from freshviews.spark.io.columns import default_expression, default_text, spark_type, with_defaults
from freshviews.spark.io.java_errors import cause
from freshviews.spark.io.messages import rows_of
from freshviews.spark.io.places import place_columns
from freshviews.spark.worker.intake import Feed
from freshviews.spark.worker.rows import CORRUPT, PLACE, READABLE, TABLE, Slots, slots_of
from freshviews.stream import (
    REMOVES,
    ChangeFormat,
    DebeziumJson,
    DeltaFeed,
    Multiplicities,
    OpColumn,
    Snapshots,
    Upserts,
    deletes_keys,
    looks_up,
    own_columns,
)

PLACED = ("_from_time", "_from", "_from_at")
"""The first of PLACE, kept in the frame because the columns from which the others are made are not."""


_FILLED = ("json", "orc", "parquet")
"""Formats in which Spark finds columns by name, and whose readers apply DEFAULTs."""


@dataclass(frozen=True)
class Source:
    """A table's rows. ``columns``: those that the change format needs, by name with their Spark types. ``absent``: the
    constants of the DEFAULTs of missing columns, as expressions. ``readable``: the reason given for a row that cannot
    be read."""

    table: TableDef
    spec: TableSpec
    form: ChangeFormat
    frame: DataFrame
    columns: dict[str, str]
    from_files: bool
    readable: str = READABLE
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_streaming(self) -> bool:
        return bool(self.frame.isStreaming)


def open_source(spark: SparkSession, spec: TableSpec, table: TableDef) -> Source:
    """Open the source of a table of a script. Raises SourceError."""
    form = form_of(spec.changes, spec.form_options, ())
    provider = spec.provider or "parquet"
    batch = isinstance(form, Snapshots) or connector_of(provider).tables
    try:
        reader: Any = spark.read if batch else spark.readStream
        reader = reader.format(provider).options(**_reader_options(spec))
        schema = _schema(spark, spec, table, form)
        if schema is not None:
            reader = reader.schema(schema)
        frame = reader.load()
        connector = connector_of(provider)
        if connector.at is not None:
            placed = (F.lit(0).cast("bigint"), *place_columns(connector.place, connector.at))
            frame = frame.withColumns(dict(zip(PLACED, placed, strict=True)))
        elif spec.message is not None and connector.files:
            frame = frame.withColumns(dict(zip(PLACED, _file_places(), strict=True)))
        if spec.message is None:
            return source_of(frame, spec, table, connector.files)
        message = message_format(spec.message, table, form)
        kept = [name for name in PLACED if name in frame.columns]
        texts = {column.name: text for column in table.columns if (text := default_text(column)) is not None}
        found = source_of(rows_of(frame, message, kept, texts), spec, table)
        return replace(found, readable=expected(message))
    except (PySparkException, Py4JError) as error:
        reason = cause(error)
        reason = without_secrets(reason + remedy(reason, [provider]), spec.options)
        raise SourceError(f"table {table.name}: {provider} cannot be read: {reason}") from error


def can_be_opened(session: Callable[[], SparkSession], spec: TableSpec, table: TableDef) -> None:
    """Open a source without reading it. Raises SourceError."""
    open_source(session(), spec, table)


def files_can_be_read(session: Callable[[], SparkSession], spec: TableSpec, table: TableDef) -> None:
    """Read the first byte of a file of a folder; for a place other than a local folder, Spark opens the source. Raises
    OSError, SourceError."""
    path = value_of(spec.options, "path")
    if not is_folder(path):
        can_be_opened(session, spec, table)
        return
    found = Path(path)
    if found.is_dir():
        found = next((one for one in sorted(found.iterdir()) if one.is_file()), found)
    if not found.is_dir():
        with found.open("rb") as file:
            file.read(1)


def open_sources(spark: SparkSession, definition: Definition, frames: Mapping[str, DataFrame]) -> list[Source]:
    """Open all sources, sorted by name, so that Spark's checkpoint does not depend on the order of the script. Raises
    SourceError."""
    tables = definition.catalog.tables
    found = []
    for spec in sorted(definition.tables, key=lambda spec: spec.name.lower()):
        table = tables[spec.name]
        if spec.name in frames:
            found.append(source_of(frames[spec.name], spec, table))
        elif spec.provider is not None:
            found.append(open_source(spark, spec, table))
    return found


def given_sources(
    definition: Definition, frames: Mapping[str, DataFrame], deletes: Mapping[str, DataFrame]
) -> list[Source]:
    """Batch DataFrames as the sources of tables, sorted by name. ``deletes``: of keys to delete, which come before the
    changes of ``frames``. Raises SourceError."""
    tables = definition.catalog.tables
    changes, keys = _by_table(definition, frames), _by_table(definition, deletes)
    found = []
    for spec in sorted(definition.tables, key=lambda spec: spec.name.lower()):
        frame = changes.get(spec.name)
        if frame is not None and spec.message is not None:
            raise SourceError(
                f"table {spec.name} reads messages of {spec.provider}, but a DataFrame of changes has columns; declare "
                "a table without USING for the DataFrame"
            )
        if spec.name in keys:
            frame, spec = _with_deletes(frame, keys[spec.name], spec, tables[spec.name])
        if frame is not None:
            found.append(source_of(frame, spec, tables[spec.name]))
    return found


def _by_table(definition: Definition, frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """DataFrames by the names of their tables as these are defined. Raises SourceError."""
    names = {spec.name.lower(): spec.name for spec in definition.tables}
    given: dict[str, str] = {}
    for name, frame in frames.items():
        if name.lower() not in names:
            raise SourceError(unknown("table", name, names.values()))
        if frame.isStreaming:
            raise SourceError(
                f"table {names[name.lower()]}: a streaming DataFrame has no end; give it to Pipeline.table, and call "
                "start"
            )
        first = given.setdefault(name.lower(), name)
        if first != name:
            raise SourceError(
                f"table {names[name.lower()]}: {first} and {name} name the same table; give the union of both "
                "DataFrames under one name"
            )
    return {names[name.lower()]: frame for name, frame in frames.items()}


def _with_deletes(
    frame: DataFrame | None, keys: DataFrame, spec: TableSpec, table: TableDef
) -> tuple[DataFrame, TableSpec]:
    """The keys to delete of a table, with the later changes, and the format of both. Raises SourceError.
    """
    who = f"table {table.name}: keys to delete"
    if not table.has_primary_key:
        raise SourceError(f"{who} need a PRIMARY KEY, but the table has none; give whole rows, with an op column")
    if table.trusted:
        raise SourceError(f"{who} need stored rows, but the table is trusted; give whole rows, with an op column")
    form = Upserts(_free(table)) if frame is None else form_of(spec.changes, spec.form_options, tuple(frame.columns))
    if not isinstance(form, Upserts | OpColumn):
        raise SourceError(
            f"{who} need changes 'upsert' or an op column; pass changes of another format in a separate call"
        )
    if isinstance(form, Upserts) and form.order is not None:
        raise SourceError(
            f"{who} are applied before the DataFrame's rows and ignore {form.order}; pass the keys in a separate call, "
            f"or as rows with {form.order} and an op column"
        )
    op = form.column or _free(table)
    needed = table.keys[0]
    there = {name.lower(): name for name in keys.columns}
    lacking = next((name for name in needed if name.lower() not in there), None)
    if lacking is not None:
        raise SourceError(f"{who} need the column {lacking}; the DataFrame has {', '.join(keys.columns)}")
    deleted = keys.select(*(F.col(f"`{there[name.lower()]}`").alias(name) for name in needed))
    deleted = deleted.withColumn(op, F.lit(REMOVES))
    if frame is None:
        return deleted, replace(spec, changes="upsert", form_options={"op": op}, message=None)
    if isinstance(form, Upserts) and form.column is None:
        frame = frame.withColumn(op, F.lit("upsert"))
        spec = replace(spec, form_options={**spec.form_options, "op": op})
    # Rows of one partition after the other: the keys come first.
    return deleted.unionByName(frame, allowMissingColumns=True), spec


def _free(table: TableDef) -> str:
    """A name for a column of words that no column of the table has."""
    taken = {column.name.lower() for column in table.columns}
    return next(name for name in (f"{OP}{'_' * n}" for n in count()) if name not in taken)


def batch_frame(spark: SparkSession, source: Source, files: Sequence[str] | None = None) -> DataFrame | None:
    """The present rows of the files of a streaming source, or of some files; None if there are none."""
    options = _reader_options(source.spec)
    if files is not None:
        options = {name: value for name, value in options.items() if name.lower() != "path"}
    reader = spark.read.format(str(source.spec.provider)).options(**options).schema(source.frame.schema)
    try:
        return reader.load() if files is None else reader.load(list(files))
    except PySparkException:
        return None


def source_of(frame: DataFrame, spec: TableSpec, table: TableDef, from_files: bool = False) -> Source:
    """A DataFrame as the source of a table. Raises SourceError if a column without a DEFAULT is missing; rows that
    delete their key need only the key."""
    form = form_of(spec.changes, spec.form_options, tuple(frame.columns) if spec.changes is None else ())
    there = {name.lower(): name for name in frame.columns}
    wanted = [] if isinstance(form, DebeziumJson) else [column.name for column in table.columns]
    optional = {"_commit_version", "_commit_timestamp"} if isinstance(form, DeltaFeed) else set()
    wanted += [name for name in own_columns(form) if name.lower() not in optional or name.lower() in there]
    if isinstance(form, Upserts) and form.order is not None:
        wanted.append(form.order)
    if CORRUPT in there:
        wanted.append(CORRUPT)
    columns: dict[str, str] = {}
    absent: dict[str, str] = {}
    deleting = deletes_keys(form, table)
    keys = {name.lower() for name in table.keys[0]} if table.has_primary_key else set()
    for name in dict.fromkeys(name.lower() for name in wanted):
        if name not in there:
            column = column_named(table.columns, name)
            if deleting and column is not None and column.default is None and name not in keys:
                continue  # Rows that delete their key do not need it, and a worker refuses others.
            if column is None or column.default is None:
                have = ", ".join(frame.columns)
                advice = "" if column is None else "; with a DEFAULT, the source may lack the column"
                message = f"table {table.name}: the source has no column {name}; its columns are {have}{advice}"
                raise SourceError(message)
            columns[column.name], absent[column.name] = spark_type(column.type), default_expression(column)
            continue
        kind = frame.schema[there[name]].dataType
        columns[there[name]] = "timestamp_ntz" if isinstance(kind, T.TimestampType) else kind.simpleString()
    return Source(table, spec, form, frame, columns, from_files, absent=absent)


def one_frame(sources: Sequence[Source]) -> tuple[DataFrame, list[Slots]]:
    """The rows of several sources as one DataFrame, and the slots of each."""
    slots = slots_of([source.columns for source in sources])
    kinds = {slot: s.columns[name] for s, names in zip(sources, slots, strict=True) for name, slot in names.items()}
    frames = []
    for number, (source, names) in enumerate(zip(sources, slots, strict=True)):
        places = [column.alias(name) for name, column in zip(PLACE[:-1], places_of(source), strict=True)]
        held = {slot: name for name, slot in names.items()}
        filled = [
            F.expr(_expression(source, held.get(slot))).cast(kind).alias(slot)
            for slot, kind in sorted(kinds.items())
        ]
        frames.append(source.frame.select(F.lit(number).alias(TABLE), *places, *filled))
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole, slots


def _expression(source: Source, column: str | None) -> str:
    """A column of a source in SQL; NULL if the source lacks it."""
    return "NULL" if column is None else source.absent.get(column, f"`{column}`")


def feed_of(source: Source, slots: Slots, table: str, counted: frozenset[int]) -> Feed:
    """How workers convert the rows of a source for the table of a cell."""
    return Feed(
        table,
        source.table.name,
        slots,
        source.spec.changes,
        source.spec.form_options,
        source.spec.bad_rows is not None,
        isinstance(source.form, Snapshots),
        counted,
        source.readable,
    )


def needs_order(source: Source) -> bool:
    """True if the order of a table's rows within a micro-batch matters."""
    return looks_up(source.form, source.table) or window_of(source.table) is not None


def reads_text(source: Source) -> bool:
    """True if rows are parsed from text files."""
    return connector_of(source.spec.provider).text or source.spec.message is not None


def places_of(source: Source) -> list[Column]:
    """The ``PLACED`` columns of the rows of a source."""
    if PLACED[0] in source.frame.columns:
        return [*map(F.col, PLACED)]
    if not source.from_files:
        return [F.lit(0).cast("bigint"), F.lit(None).cast("string"), F.lit(0).cast("bigint")]
    return _file_places()


def _file_places() -> list[Column]:
    return [
        F.unix_micros(F.col("_metadata.file_modification_time")),
        F.col("_metadata.file_path"),
        F.col("_metadata.file_block_start"),
    ]


def _reader_options(spec: TableSpec) -> dict[str, str]:
    connector = connector_of(spec.provider)
    options = with_given(connector, spec.options)
    if connector.tables:
        options = with_driver(options)
    if spec.poll is not None:
        options = with_timeouts(options, LOGIN, AWAY)
    given = {name.lower() for name in options}
    if spec.message is not None and reads_headers(spec.message):
        options["includeHeaders"] = "true"
    if connector.text and "mode" not in given:
        options["mode"] = "PERMISSIVE"
        options["columnNameOfCorruptRecord"] = CORRUPT
    if spec.provider == "csv" and "enforceschema" not in given and _has_header(spec):
        # By name: a file with other columns, or another order, is an error instead of being misread.
        options["enforceSchema"] = "false"
    return options


def _has_header(spec: TableSpec) -> bool:
    return any(name.lower() == "header" and value.lower() == "true" for name, value in spec.options.items())


def _schema(spark: SparkSession, spec: TableSpec, table: TableDef, form: ChangeFormat) -> T.StructType | None:
    """The schema to read with; None if the source has its own."""
    connector = connector_of(spec.provider)
    if not connector.files or spec.provider == "text":
        return None
    if not connector.text:
        # Files of deletes may have the columns of the key alone.
        every = deletes_keys(form, table) and spec.provider in _FILLED
        found = _schema_of_files(spark, spec, table, every)
        if found is not None:
            widened = _widened(found, table)
            return with_defaults(widened, table, every) if spec.provider in _FILLED else widened
    declared = {column.name: spark_type(column.type) for column in table.columns}
    if isinstance(form, DebeziumJson):
        declared = {form.column: "string"}
    else:
        for name in own_columns(form):
            declared[name] = "bigint" if isinstance(form, Multiplicities) or name == "_commit_version" else "string"
        if isinstance(form, Upserts) and form.order is not None:
            declared.setdefault(form.order, "string")
    if spec.provider == "csv" and _has_header(spec):
        header = _schema_of_files(spark, spec, table)
        if header is not None:
            kinds = {name.lower(): kind for name, kind in declared.items()}
            declared = {name: kinds.get(name.lower(), "string") for name in header.names}
    if isinstance(form, DeltaFeed):
        # Read only columns that exist: a missing one would be read as a NULL commit version.
        files = _schema_of_files(spark, spec, table)
        there = {name.lower() for name in files.names} if files is not None else set()
        declared = {n: kind for n, kind in declared.items() if not n.startswith("_commit_") or n.lower() in there}
    fields = ", ".join(f"`{name}` {kind}" for name, kind in declared.items())
    if connector.text:
        fields += f", `{CORRUPT}` string"
    schema = T.StructType.fromDDL(fields)
    filled = spec.provider in _FILLED and not isinstance(form, DebeziumJson)
    return with_defaults(schema, table) if filled else schema


def _schema_of_files(
    spark: SparkSession, spec: TableSpec, table: TableDef, every: bool = False
) -> T.StructType | None:
    """The schema of the existing files; None if there are none. It is that of the newest file if files are CSV, or if
    another file lacks a column of the table; with ``every``, extended by the columns of the others."""
    reader = spark.read.format(str(spec.provider)).options(**spec.options)
    try:
        found = reader.load().schema
        there = {name.lower() for name in found.names}
        if spec.provider != "csv" and all(column.name.lower() in there for column in table.columns):
            return found
        chosen = {"path", "pathglobfilter", "recursivefilelookup"}
        where = {name: value for name, value in spec.options.items() if name.lower() in chosen}
        files = spark.read.format("binaryFile").options(**where).load().select("path", "modificationTime")
        newest = files.orderBy(F.desc("modificationTime")).first()
        if newest is None:
            return found
        how = {name: value for name, value in spec.options.items() if name.lower() not in chosen}
        latest = spark.read.format(str(spec.provider)).options(**how).load(newest["path"]).schema
        if set(latest.names) == set(found.names):
            return found
        kept = {name.lower() for name in latest.names}
        rest = [one for one in found.fields if every and one.name.lower() not in kept]
        return T.StructType([*latest.fields, *rest])
    except PySparkException as error:
        if error.getCondition() in ("UNABLE_TO_INFER_SCHEMA", "PATH_NOT_FOUND"):
            return None
        raise


def _widened(found: T.StructType, table: TableDef) -> T.StructType:
    """The schema of files with the types of the table, where these are wider: later files may have them."""
    wanted = {column.name.lower(): spark_type(column.type) for column in table.columns}
    ranks = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
    fields = []
    for one in found.fields:
        kinds = next((kinds for kinds in ranks if one.dataType.simpleString() in kinds), ())
        kind = wanted.get(one.name.lower())
        wider = kind in kinds and kinds.index(kind) > kinds.index(one.dataType.simpleString())
        fields.append(T.StructField(one.name, T._parse_datatype_string(kind) if wider else one.dataType))
    return T.StructType(fields)
