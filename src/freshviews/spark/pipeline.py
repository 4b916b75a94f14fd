"""Defines ``Pipeline``: tables whose rows come from Spark, and views over these tables that Spark's workers maintain.

The tables and views come from calls or from a script. ``start`` begins the streaming query that maintains the views.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, overload

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from freshviews import arguments
from freshviews.errors import SourceError, SqlError, short
from freshviews.spark.connectors.declarations import connector_of, lacking
from freshviews.spark.connectors.message_format import MessageError
from freshviews.spark.definition import Definition, TableSpec, ViewSpec, catalog_of, form_of, tables_of, with_key
from freshviews.spark.driver.run import Listener, Run, note_error
from freshviews.spark.io.columns import sql_type
from freshviews.spark.io.envelope_keys import routable
from freshviews.spark.io.sinks import Receiver
from freshviews.spark.io.sources import Source, given_sources, one_frame, open_sources
from freshviews.spark.phases import Phases
from freshviews.spark.reading.data_source import register
from freshviews.spark.running_query import Query
from freshviews.spark.script import read_script
from freshviews.spark.state.checkpoint import check_store
from freshviews.spark.state.probe import announce
from freshviews.spark.state.runs import Held, note_start
from freshviews.spark.state.stores.addresses import store_of
from freshviews.stream import own_columns
from freshviews.stream.formats import check_format


class Pipeline:
    """Views over change streams, kept fresh on Spark (docs/pipeline.md).

    Each method raises ArgumentError for an argument of a wrong type, and SqlError where a name is not allowed.

    Parameters
    ----------
    spark
        The session.
    checkpoint
        Address of a store that the driver and all workers see (docs/checkpoints.md).
    cells
        Number of engines among which the rows are split (docs/cells.md). None, the default: as the checkpoint has them,
        at first one per core. Another number than it has splits all rows anew at the start.

    Examples
    --------
    The examples of all methods go on from here.

    >>> from freshviews.spark import Pipeline, start_session
    >>> spark = start_session("local[1]")
    >>> items = spark.createDataFrame([("bolt", 3, "insert"), ("nut", 5, "insert")], "part STRING, qty INT, op STRING")
    >>> p = Pipeline(spark, checkpoint="ckpt")
    >>> p = p.table("items", items, changes="op")
    >>> p = p.view("by_part", "SELECT part, SUM(qty) AS qty FROM items GROUP BY part")
    >>> query = p.start()
    >>> query.version
    1
    """

    def __init__(self, spark: SparkSession, checkpoint: str | os.PathLike[str], *, cells: int | None = None) -> None:
        arguments.of(SparkSession, "the session of a pipeline", spark)
        arguments.path("checkpoint", checkpoint)
        arguments.optional(partial(arguments.count, least=1), "cells", cells)
        self._begin(spark, checkpoint, cells)
        register(spark)

    def _begin(self, spark: SparkSession, checkpoint: str | os.PathLike[str], cells: int | None) -> None:
        self._spark = spark
        self._cells = cells
        self._store = store_of(checkpoint)
        self._definition = Definition()
        self._frames: dict[str, DataFrame] = {}
        self._receivers: dict[str, Receiver] = {}

    @classmethod
    def from_script(
        cls,
        spark: SparkSession,
        path: str | os.PathLike[str],
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        cells: int | None = None,
    ) -> Pipeline:
        """Make the pipeline of a file of SQL.

        Parameters
        ----------
        spark
            The session.
        path
            Path of the file (docs/pipeline.md).
        checkpoint
            As of ``Pipeline``. None, the default: the file's name with ``.checkpoint`` in place of its suffix.
        cells
            As of ``Pipeline``.

        Returns
        -------
        Pipeline

        Raises
        ------
        SourceError
            The file cannot be read.
        SqlError
            The script is wrong; it has the line and column.

        Examples
        --------
        >>> shop = Pipeline.from_script(spark, "shop.sql")
        """
        arguments.path("the path of a script", path)
        file = Path(path)
        try:
            script = file.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise SourceError(
                f"{file} cannot be read: {error.strerror}; make the file readable, or name another file with SQL"
            ) from None
        except UnicodeDecodeError as error:
            raise SourceError(f"{file}: byte {error.start} is not UTF-8 text; name a file with SQL") from None
        definition = read_script(script, file.absolute().parent)
        where = checkpoint if checkpoint is not None else default_checkpoint(file)
        return cls.of(spark, definition, where, cells=cells)

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        definition: Definition,
        checkpoint: str | os.PathLike[str],
        *,
        frames: Mapping[str, DataFrame] | None = None,
        cells: int | None = None,
    ) -> Pipeline:
        """Make the pipeline of a definition.

        Parameters
        ----------
        spark
            The session.
        definition
            Tables and views, as ``freshviews.spark.script.read_script`` reads them.
        checkpoint
            As of ``Pipeline``.
        frames
            By table without a source, the DataFrame of its rows. Default: none.
        cells
            As of ``Pipeline``.

        Returns
        -------
        Pipeline

        Examples
        --------
        >>> from pathlib import Path
        >>> from freshviews.spark.script import read_script
        >>> shop = Pipeline.of(spark, read_script(Path("shop.sql").read_text(), Path.cwd()), "shop.checkpoint")
        """
        arguments.of(Definition, "definition", definition)
        arguments.optional(partial(arguments.values_of, DataFrame), "frames", frames)
        made = cls(spark, checkpoint, cells=cells)
        made._definition = definition
        made._frames = dict(frames or {})
        return made

    def table(
        self,
        name: str,
        frame: DataFrame,
        *,
        changes: str | None = None,
        primary_key: Sequence[str] = (),
        bad_rows: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Pipeline:
        """Add a table. Its rows come from a streaming DataFrame, or once from a batch DataFrame.

        Parameters
        ----------
        name
            Name of the table.
        frame
            DataFrame of its columns, and of those of the change format.
        changes
            Name of the change format or of the op column (docs/changes.md). None, the default: detected from the
            columns.
        primary_key
            Columns of the PRIMARY KEY; by default none.
        bad_rows
            Folder for bad rows. None, the default: a bad row is an error.
        options
            Options of the format, by name: op, order, column, timestamps, decimals. Default: none.

        Returns
        -------
        Pipeline
            The pipeline itself.

        Raises
        ------
        SourceError
            A column has a type that tables do not support.
        FormatError
            The change format is unknown, or does not fit the table.

        Examples
        --------
        >>> prices = spark.createDataFrame([("bolt", 30)], "part STRING, price INT")
        >>> p = p.table("prices", prices, changes="upsert", primary_key=["part"])
        """
        arguments.text("the name of a table", name)
        arguments.of(DataFrame, f"table {name}: frame", frame)
        arguments.texts(f"table {name}: primary_key", primary_key)
        _check_input(f"table {name}", changes, bad_rows, options)
        form = form_of(changes, dict(options or {}), tuple(frame.columns))
        own = {column.lower() for column in own_columns(form)}
        kinds = {f.name: sql_type(f.dataType) for f in frame.schema if f.name.lower() not in own}
        wrong = [column for column, kind in kinds.items() if kind is None]
        if wrong:
            raise SourceError(
                f"table {name}: column {wrong[0]} is {frame.schema[wrong[0]].dataType.simpleString()}, a type that no "
                "table column can have; drop or cast the column"
            )
        columns = [f"`{column}` {kind}" for column, kind in kinds.items()]
        if primary_key:
            columns.append(f"PRIMARY KEY ({', '.join(f'`{key}`' for key in primary_key)})")
        sql = f"CREATE TABLE {name} ({', '.join(columns)})"
        name = _table_in(sql)
        self._define(
            self._definition.with_table(TableSpec(name, sql, None, {}, changes, dict(options or {}), bad_rows))
        )
        check_format(form, tables_of(sql)[name])
        self._frames[name] = frame
        return self

    def table_of(
        self,
        sql: str,
        frame: DataFrame | None = None,
        *,
        changes: str | None = None,
        bad_rows: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Pipeline:
        """Add a table by its CREATE TABLE statement: types, NOT NULL and keys as declared.

        Parameters
        ----------
        sql
            One ``CREATE TABLE name (...)``.
        frame
            As of ``table``. None, the default: its rows come by ``advance`` alone.
        changes, bad_rows, options
            As of ``table``.

        Returns
        -------
        Pipeline
            The pipeline itself.

        Raises
        ------
        FormatError
            The change format is unknown.

        Examples
        --------
        >>> p = p.table_of("CREATE TABLE orders (o_id BIGINT PRIMARY KEY, qty INT NOT NULL)", changes="op")
        """
        arguments.text("the CREATE TABLE of a table", sql)
        name = _table_in(sql)
        arguments.optional(partial(arguments.of, DataFrame), f"table {name}: frame", frame)
        _check_input(f"table {name}", changes, bad_rows, options)
        spec = TableSpec(name, sql, None, {}, changes, dict(options or {}), bad_rows)
        self._define(self._definition.with_table(spec))
        if frame is not None:
            self._frames[name] = frame
        return self

    @overload
    def view(self, name: str) -> DataFrame: ...

    @overload
    def view(
        self,
        name: str,
        sql: str,
        *,
        sink: Receiver | None = None,
        format: str | None = None,
        path: str | os.PathLike[str] | None = None,
        output: str = "changes",
        options: Mapping[str, str] | None = None,
    ) -> Pipeline: ...

    def view(
        self,
        name: str,
        sql: str | None = None,
        *,
        sink: Receiver | None = None,
        format: str | None = None,
        path: str | os.PathLike[str] | None = None,
        output: str = "changes",
        options: Mapping[str, str] | None = None,
    ) -> Pipeline | DataFrame:
        """Add a view of a SELECT; without one, read the contents of a view at the last committed version.

        Without ``sink`` and ``format`` the view is maintained and can be read, and nothing is delivered.

        Parameters
        ----------
        name
            Name of the view.
        sql
            Its SELECT. None, the default: read.
        sink
            Function that is called with a DataFrame and the version. Default: none.
        format
            Format of the output that gets the changes, such as ``"parquet"`` or ``"kafka"``. Default: none.
        path
            Path of that output. Default: as ``options`` say.
        output
            ``"changes"``, the default, or ``"complete"``; for messages changes or ``"upsert"``, for a table (``jdbc``,
            ``delta``, ``iceberg``) all three.
        options
            Options of the output, by name. Default: none.

        Returns
        -------
        Pipeline | DataFrame
            The pipeline itself; without ``sql`` a DataFrame.

        Raises
        ------
        SqlError
            The SELECT is wrong, the output does not fit the format, or an option is missing.

        Examples
        --------
        >>> p = p.view("total", "SELECT SUM(qty) AS qty FROM items", format="parquet", path="totals")
        >>> p.view("by_part").orderBy("part").collect()
        [Row(part='bolt', qty=3), Row(part='nut', qty=5)]
        """
        arguments.text("the name of a view", name)
        if sql is None:
            return self._read(name, {})
        arguments.text(f"view {name}: sql", sql)
        arguments.optional(arguments.function, f"view {name}: sink", sink)
        arguments.optional(arguments.text, f"view {name}: format", format)
        arguments.optional(arguments.path, f"view {name}: path", path)
        arguments.text(f"view {name}: output", output)
        arguments.optional(arguments.pairs, f"view {name}: options", options)
        connector = connector_of(format)
        if output not in connector.outputs:
            raise SqlError(f"view {name}: output must be {' or '.join(map(repr, connector.outputs))}, not {output!r}")
        held = dict(options or {})
        if path is not None:
            is_place = "://" not in str(path) and not connector.named
            held["path"] = str(Path(path).absolute()) if is_place else str(path)
        missing = lacking(held, connector.writing)
        if missing is not None:
            raise SqlError(f"view {name}: {format} needs the option {' or '.join(missing)}")
        body = re.sub(r";\s*$", "", sql)
        made = ViewSpec(name, f"CREATE MATERIALIZED VIEW {name} AS {body}", format, held, output)
        try:
            made = with_key(made, catalog_of(self._definition.with_view(made).script))
        except MessageError as error:
            raise SqlError(f"view {name}: {error}") from None
        self._define(self._definition.with_view(made))
        if sink is not None:
            self._receivers[name] = sink
        return self

    def changes(self, name: str, *, after: int | None = None) -> DataFrame:
        """Read the change of a view by the last committed version, or by all versions after one.

        Parameters
        ----------
        name
            Name of the view.
        after
            Version after which changes are read. None, the default: the change of the last version alone.

        Returns
        -------
        DataFrame
            The columns of the view, ``_multiplicity`` and ``_version``.

        Examples
        --------
        >>> p.changes("by_part", after=0).orderBy("part").collect()
        [Row(part='bolt', qty=3, _multiplicity=1, _version=1), Row(part='nut', qty=5, _multiplicity=1, _version=1)]
        """
        arguments.text("the name of a view", name)
        arguments.optional(arguments.count, f"view {name}: after", after)
        return self._read(name, {"changes": "true"} | ({} if after is None else {"after": str(after)}))

    def advance(
        self,
        frames: Mapping[str, DataFrame] | None = None,
        *,
        deletes: Mapping[str, DataFrame] | None = None,
        call: str = "",
    ) -> int:
        """Take batch DataFrames of changes as one version, and deliver it to the sinks.

        Tables of streams stay as they are; ``start`` continues them.

        Parameters
        ----------
        frames
            By table, a DataFrame in its change format. Default: none, for a version of views that are new.
        deletes
            By table, the PRIMARY KEYs of rows to delete, before the changes of ``frames``; other columns are ignored,
            and keys without a row have no effect. Default: none.
        call
            Name of the call, such as the day of a nightly job: if a version has the rows of a call of this name,
            nothing is read, and that version is returned. Default: no name.

        Returns
        -------
        int
            The number of the version.

        Raises
        ------
        SourceError, CheckpointError, PipelineError, StoreError
            As ``start``.

        Examples
        --------
        >>> p.advance({"items": spark.createDataFrame([("bolt", 4, "insert")], "part STRING, qty INT, op STRING")})
        2
        """
        for argument, frames_by_table in (("frames", frames), ("deletes", deletes)):
            arguments.optional(partial(arguments.values_of, DataFrame), argument, frames_by_table)
        arguments.of(str, "call", call)
        with self._holding() as held:
            given = given_sources(self._definition, frames or {}, deletes or {})
            run = Run(self._spark, self._store, self._definition, self._receivers, None, self._cells, Phases())
            run.warm()
            version = run.advance(given, call)
            held.close()
        return version

    def _read(self, name: str, options: Mapping[str, str]) -> DataFrame:
        place = {"checkpoint": self._store.address, "view": name, **options}
        return self._spark.read.format("freshviews").options(**place).load()

    @contextmanager
    def _holding(self) -> Iterator[Held]:
        """Lock the checkpoint; an error in the block releases it."""
        check_store(self._store)
        held = Held(self._store)
        try:
            announce(self._store)
            note_error(self._store, None)
            yield held
        except BaseException as error:
            self._definition.hide_secrets(error)
            note_error(self._store, error)
            held.close()
            raise

    def start(
        self,
        *,
        once: bool = False,
        trigger: Mapping[str, Any] | None = None,
        listener: Listener | None = None,
        phases: Phases | None = None,
    ) -> Query:
        """Start the pipeline. It runs until it is stopped; without streaming tables it has ended when this returns.

        Parameters
        ----------
        once
            True: end when all current input is taken. Default: False.
        trigger
            Trigger as of a DataStreamWriter, such as ``{"processingTime": "10 seconds"}``. Default: as soon as
            possible.
        listener
            Function that is called with the manifest of each version. Default: none.
        phases
            Gets the seconds of each phase (``freshviews.spark.phases``). Default: none.

        Returns
        -------
        Query

        Raises
        ------
        SourceError
            A source cannot be read, or lacks columns.
        CheckpointError
            The checkpoint cannot be written or continued.
        PipelineError
            The input at the start cannot be applied.
        StoreError
            Another process runs the checkpoint.

        Examples
        --------
        >>> query = p.start(once=True)
        >>> query.isActive
        False
        """
        arguments.flag("once", once)
        arguments.optional(partial(arguments.of, Mapping), "trigger", trigger)
        arguments.optional(arguments.function, "listener", listener)
        arguments.optional(partial(arguments.of, Phases), "phases", phases)
        with self._holding() as held:
            note_start(self._store)
            return self._start(held, once, trigger, listener, phases or Phases())

    def _start(
        self,
        held: Held,
        once: bool,
        trigger: Mapping[str, Any] | None,
        listener: Listener | None,
        phases: Phases,
    ) -> Query:
        run = Run(self._spark, self._store, self._definition, self._receivers, listener, self._cells, phases)
        run.warm()
        sources = open_sources(self._spark, self._definition, self._frames)
        streaming = [source for source in sources if source.is_streaming]
        static = [source for source in sources if not source.is_streaming]
        ends = once or bool({"once", "availableNow"} & set(trigger or ()))
        polled = [] if ends else [source for source in static if source.spec.poll is not None]
        run.begin(streaming, static, goes_on=bool(streaming or polled) and not ends)
        if not streaming and not polled:
            held.close()
            return Query(run, None, held)
        try:
            query = self._stream(run, streaming, once, trigger) if streaming else None
        except BaseException:
            run.release()
            raise
        return Query(run, query, held, polled)

    def _stream(
        self, run: Run, streaming: Sequence[Source], once: bool, trigger: Mapping[str, Any] | None
    ) -> StreamingQuery:
        """Start Spark's query over the streaming tables."""
        streaming = routable(streaming, run.layout.cells)
        frame, slots = one_frame(streaming)

        def each(rows: DataFrame, batch: int) -> None:
            run.micro_batch(rows, slots, batch, streaming)

        writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", f"file:{run.spark_files.folder}")
        if once:
            writer = writer.trigger(availableNow=True)
        elif trigger:
            writer = writer.trigger(**trigger)
        query: StreamingQuery = writer.start()
        return query

    def _define(self, definition: Definition) -> None:
        catalog_of(definition.script)
        self._definition = definition


def _check_input(what: str, changes: object, bad_rows: object, options: object) -> None:
    arguments.optional(arguments.text, f"{what}: changes", changes)
    arguments.optional(arguments.path, f"{what}: bad_rows", bad_rows)
    arguments.optional(arguments.pairs, f"{what}: options", options)


def _table_in(sql: str) -> str:
    """The name of the one table that a statement creates."""
    names = list(tables_of(sql))
    if len(names) != 1:
        raise SqlError(f"one CREATE TABLE name (...) is expected, not {len(names)}: {short(sql)}")
    return names[0]


def pipeline_alone(spark: SparkSession, definition: Definition, checkpoint: str, cells: int | None) -> Pipeline:
    """The pipeline of a definition in a session that nobody else uses: the format ``freshviews``, which takes Spark two
    seconds to register, is registered only if the definition names it."""
    if any((provider or "").lower() == "freshviews" for provider in definition.providers):
        return Pipeline.of(spark, definition, checkpoint, cells=cells)
    made = Pipeline.__new__(Pipeline)
    made._begin(spark, checkpoint, cells)
    made._definition = definition
    return made


def default_checkpoint(file: Path) -> Path:
    """``shop.sql`` has its checkpoint in ``shop.checkpoint`` beside it."""
    return file.absolute().with_suffix(".checkpoint")
