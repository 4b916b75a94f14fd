"""Makes Spark's own Java classes parse, resolve and run a project of declarative pipelines.

Python calls these classes in the Java process of its Spark session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from py4j.java_gateway import java_import
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.pipelines.output import MaterializedView, Output, Sink, Table, TemporaryView
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from freshviews.records import dataclass
from freshviews.spark.declarative.registry import Definitions, PythonFlow
from freshviews.spark.declarative.spec import ProjectError, ProjectSpec
from freshviews.spark.session import SPARK_ERRORS, reason

STREAMING_TABLE, MATERIALIZED_VIEW, TEMPORARY_VIEW, VIEW = (
    *("streaming table", "materialized view", "temporary view", "view"),
)
_AT = re.compile(r"; line (\d+) pos (\d+)$")
_SYNTAX = re.compile(r"\s*(.+) \(line (\d+), pos (\d+)\)\s+== SQL ==\n(.*)", re.DOTALL)
_STATEMENTS = "CREATE STREAMING TABLE, CREATE FLOW, CREATE [MATERIALIZED | TEMPORARY] VIEW and SET"
_BLANK = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_ROOM = "org.apache.spark.sql.pipelines.graph."


@dataclass(frozen=True)
class Place:
    """The place of a query. ``start``: the offset of the statement in ``text``, the file."""

    file: str
    line: int
    text: str = ""
    start: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def of(self, message: str) -> str:
        """The place that a message of Spark has at its end, counted from the semicolon before: ``line 2 pos 7``."""
        found = _AT.search(message)
        if found is None or not self.text:
            return str(self)
        ends = [0, *(one.end() for one in re.finditer(";", self.text[: self.start]))]
        begin = max((end for end in ends if _BLANK.fullmatch(self.text, end, self.start)), default=self.start)
        before = self.text[begin:].split("\n")[: int(found[1]) - 1]
        return self.at_offset(begin + sum(len(line) + 1 for line in before) + int(found[2]))

    def at(self, query: str, offset: int) -> str:
        """The place of an offset in a query that is a part of the statement."""
        begin = self.text.find(query, self.start)
        if begin < 0:
            return str(self)
        return self.at_offset(begin + offset)

    def at_offset(self, offset: int) -> str:
        """The place of an offset in the file."""
        before = self.text[:offset]
        return f"{self.file}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


@dataclass(frozen=True)
class Dataset:
    """A table or view of a project, resolved. ``key``: its full name in lower case. ``query``: its SQL, or None;
    ``frame``: the DataFrame of a function, or None. ``inputs``: the keys of the datasets that it reads. ``context``:
    the catalog and the schema in which its names are read. ``settings``: those of Spark, of its queries alone."""

    key: str
    parts: tuple[str, ...]
    kind: str
    schema: T.StructType
    place: Place
    query: str | None
    frame: DataFrame | None
    inputs: frozenset[str]
    context: tuple[str, str]
    settings: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def quoted(self) -> str:
        return ".".join(f"`{part.replace('`', '``')}`" for part in self.parts)


@dataclass(frozen=True)
class Outlet:
    """A streaming table or a sink of a project. ``path``: the option of a sink. ``flows``: the names of its flows."""

    parts: tuple[str, ...]
    place: Place
    format: str
    is_sink: bool
    path: str | None
    flows: tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """The keys of the tables to update, and of those to reset and recompute; None: all of them."""

    refreshed: frozenset[str] | None
    reset: frozenset[str] | None

    def has(self, key: str) -> bool:
        return any(keys is None or key in keys for keys in (self.refreshed, self.reset))

    def resets(self, key: str) -> bool:
        return self.reset is None or key in self.reset


class Graph:
    """The resolved graph of a project. ``datasets``: by key, in an order in which each comes after those it reads."""

    def __init__(self, spark: SparkSession, spec: ProjectSpec, definitions: Definitions) -> None:
        self._spark, self._spec, self._definitions = spark, spec, definitions
        jvm = spark._jvm
        assert jvm is not None
        self._jvm: Any = jvm
        java_import(jvm, _ROOM + "*")
        self._catalog = spec.catalog or spark.catalog.currentCatalog()
        self._database = spec.database or spark.catalog.currentDatabase()
        self._python: dict[str, PythonFlow] = {}
        made = self._made()
        every = (made.tables(), made.views(), made.sinks(), made.flows())
        self._elements = [one for group in every for one in _items(group)]
        try:
            self._java = made.toDataflowGraph().resolve()
            self._refuse_unresolved()
            self._java.validate()
        except SPARK_ERRORS as error:
            raise ProjectError(self._with_places(reason(error))) from None
        self.datasets: dict[str, Dataset] = {}
        self.streamed: set[str] = set()
        """The keys of the datasets that streaming tables and sinks read."""
        # Spark resolves flows in parallel, in any order.
        for flow in sorted(_items(self._java.flows()), key=lambda flow: _key(flow.identifier())):
            self._add(flow)
        self.datasets = _in_order(self.datasets)

    def _made(self) -> Any:
        """A GraphRegistrationContext with all definitions."""
        # Static settings are those of the session, and a flow may not set them.
        conf = self._map({n: v for n, v in self._spec.configuration.items() if not self._is_static(n)})
        made = self._jvm.GraphRegistrationContext(self._catalog, self._database, conf)
        for file, text in self._definitions.sql.items():
            try:
                self._jvm.SqlGraphRegistrationContext(made).processSqlFile(text, file, self._spark._jsparkSession)
            except SPARK_ERRORS as error:
                raise ProjectError(_of_file(Place(file, 1, text), error)) from None
        for output in self._definitions.outputs:
            self._from_python(output, made)
        for flow in self._definitions.flows:
            self._from_python(flow, made)
        return made

    def _is_static(self, name: str) -> bool:
        return bool(self._module("SQLConf", "org.apache.spark.sql.internal.").isStaticConfigKey(name))

    def _from_python(self, element: Output | PythonFlow, made: Any) -> None:
        flow = element.flow if isinstance(element, PythonFlow) else element
        try:
            if isinstance(element, PythonFlow):
                self._register_flow(element, made)
            else:
                self._register_output(element, made)
        except SPARK_ERRORS as error:
            raise ProjectError(f"{self._definitions.place(flow)}: {flow.name}: {reason(error)}") from None

    def _register_output(self, output: Output, made: Any) -> None:
        raw = self._identifier(output.name)
        names, origin = self._module("GraphIdentifierManager"), self._origin(output)
        if isinstance(output, Table):
            schema = output.schema
            if isinstance(schema, T.StructType):
                schema = self._jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
            elif schema is not None:
                schema = self._jvm.org.apache.spark.sql.types.StructType.fromDDL(schema)
            table = self._jvm.Table(
                names.parseAndQualifyTableIdentifier(raw, *self._where()).identifier(),
                self._option(schema),
                self._option(None if output.partition_cols is None else self._seq(output.partition_cols)),
                self._option(None if output.cluster_by is None else self._seq(output.cluster_by)),
                self._option(None),
                self._map(output.table_properties),
                self._option(output.comment),
                origin,
                not isinstance(output, MaterializedView),
                self._option(output.format),
            )
            made.registerTable(table)
        elif isinstance(output, TemporaryView):
            identifier = names.parseAndValidateTemporaryViewIdentifier(raw)
            nothing = self._option(None)
            made.registerView(
                self._jvm.TemporaryView(identifier, self._map({}), nothing, self._option(output.comment), origin)
            )
        elif isinstance(output, Sink):
            identifier = names.parseAndValidateSinkIdentifier(raw)
            made.registerSink(self._jvm.SinkImpl(identifier, output.format, self._map(output.options), origin))

    def _register_flow(self, one: PythonFlow, made: Any) -> None:
        flow, names = one.flow, self._module("GraphIdentifierManager")
        target, raw = self._identifier(flow.target), self._identifier(flow.name)
        known = [*_items(made.getViews()), *_items(made.getSinks())]
        if not any(other.identifier().equals(target) for other in known):
            target = names.parseAndQualifyTableIdentifier(target, *self._where()).identifier()
        if flow.name == flow.target:
            identifier = target
        else:
            identifier = names.parseAndQualifyFlowIdentifier(raw, *self._where()).identifier()
        self._python[_key(identifier)] = one
        if one.frame is not None:
            plan = one.frame._jdf.queryExecution().logical()
        else:
            plan = self._parser().parsePlan(one.sql)
        made.registerFlow(
            self._jvm.UnresolvedFlow(
                identifier,
                target,
                self._module("FlowAnalysis").createFlowFunctionFromLogicalPlan(plan),
                self._jvm.QueryContext(*self._where()),
                self._map(flow.spark_conf),
                False,
                self._origin(flow),
            )
        )

    def _with_places(self, message: str) -> str:
        """A message of Spark after the places of the definitions that it names, or after the specification."""
        found = {}
        for one in self._elements:
            names = (one.identifier().quotedString(), one.identifier().unquotedString())
            if any(re.search(rf"(?<![\w`.]){re.escape(name)}(?![\w`])", message) for name in names):
                found[str(self._place(one))] = True
        return f"{', '.join(sorted(found)) or self._spec.file}: {message}"

    def _refuse_unresolved(self) -> None:
        """Raise ProjectError for the first flow that has an error of its own."""
        for flow in _items(self._java.resolutionFailedFlows()):
            for error in _items(flow.failure()):
                if error.getClass().getSimpleName() != "UnresolvedDatasetException":
                    message = " ".join(str(error.getMessage()).split(";\n")[0].split("\n\n")[0].split())
                    place, name = self._place(flow), flow.identifier().unquotedString()
                    raise ProjectError(f"{place.of(message)}: {name}: {_AT.sub('', message)}")

    def _add(self, flow: Any) -> None:
        """Add the dataset of a flow; a sink is none."""
        identifier, place, context = flow.destinationIdentifier(), self._place(flow), flow.queryContext()
        kind, parts = self._kind(identifier), parts_of(identifier)
        inputs = frozenset(map(_key, _items(flow.inputs().toSeq())))
        if kind in (None, STREAMING_TABLE):
            self.streamed |= inputs
        if kind is None:
            return
        key, python = ".".join(parts).lower(), self._python.get(_key(flow.identifier()))
        before = self.datasets.get(key)
        self.datasets[key] = Dataset(
            key,
            parts,
            kind,
            T.StructType.fromJson(json.loads(self._schema(identifier, flow).json())),
            place,
            python.sql if python else self._query_in(_value(flow.origin().sqlText())),
            python.frame if python else None,
            inputs | (before.inputs if before else frozenset()),
            (_value(context.currentCatalog()) or self._catalog, _value(context.currentDatabase()) or self._database),
            {pair._1(): pair._2() for pair in _items(flow.sqlConf().toSeq())},
        )

    def _schema(self, identifier: Any, flow: Any) -> Any:
        table = self._java.table()
        declared = _value(table.apply(identifier).specifiedSchema()) if table.contains(identifier) else None
        return flow.schema() if declared is None else declared

    def _kind(self, identifier: Any) -> str | None:
        table = self._java.table()
        if table.contains(identifier):
            return STREAMING_TABLE if table.apply(identifier).isStreamingTable() else MATERIALIZED_VIEW
        view = self._java.view()
        if view.contains(identifier):
            kind = view.apply(identifier).getClass().getSimpleName()
            return TEMPORARY_VIEW if kind == "TemporaryView" else VIEW
        return None

    def _query_in(self, statement: str | None) -> str | None:
        """The query of a CREATE statement."""
        if statement is None:
            return None
        plan = self._parser().parsePlan(statement)
        kind = plan.getClass().getSimpleName()
        if kind == "CreateMaterializedViewAsSelect":
            return str(plan.originalText())
        return _value(plan.originalText()) if kind in ("CreateViewCommand", "CreateView") else None

    def _place(self, element: Any) -> Place:
        origin = element.origin()
        file, line = _value(origin.filePath()) or str(self._spec.file), _value(origin.line()) or 1
        return Place(file, line, self._definitions.sql.get(file, ""), _value(origin.startPosition()) or 0)

    def selection(self, refresh: Sequence[str], full: Sequence[str], full_all: bool) -> Selection:
        """The tables that the options ``--refresh``, ``--full-refresh`` and ``--full-refresh-all`` choose. Raises
        ProjectError."""
        if full_all:
            if refresh or full:
                other = "--refresh" if refresh else "--full-refresh"
                raise ProjectError(f"--full-refresh-all resets every table; leave {other} out")
            return Selection(frozenset(), None)
        if not refresh and not full:
            return Selection(None, frozenset())
        chosen = [frozenset(map(self._named, names)) for names in (refresh, full)]
        for key in chosen[0] & chosen[1]:
            raise ProjectError(f"{key} is in --refresh and in --full-refresh; name the table in one of the two")
        return Selection(*chosen)

    def _named(self, name: str) -> str:
        """The key of a table named on the command line."""
        tables = [one for one in self.datasets.values() if one.kind in (STREAMING_TABLE, MATERIALIZED_VIEW)]
        try:
            raw = self._identifier(name)
            known = self._module("GraphIdentifierManager").parseAndQualifyTableIdentifier(raw, *self._where())
            key = _key(known.identifier())
        except SPARK_ERRORS as error:
            raise ProjectError(f"{name}: {reason(error)}") from None
        if all(one.key != key for one in tables):
            raise ProjectError(f"the project has no table {name}; it has {', '.join(one.name for one in tables)}")
        return key

    def outlets(self) -> list[Outlet]:
        """The streaming tables and sinks, with their flows."""
        found = []
        usual = str(self._spark.conf.get("spark.sql.sources.default"))
        tables = [(one, False) for one in _items(self._java.tables()) if one.isStreamingTable()]
        for one, sink in [*tables, *((one, True) for one in _items(self._java.sinks()))]:
            identifier = one.identifier()
            flows = [flow for flow in _items(self._java.flows()) if flow.destinationIdentifier().equals(identifier)]
            path = _value(one.options().get("path")) if sink else None
            form = one.format() if sink else _value(one.format())
            names = tuple(sorted(flow.identifier().table() for flow in flows))
            found.append(Outlet(parts_of(identifier), self._place(one), form or usual, sink, path, names))
        return found

    def last_version(self, outlet: Outlet, flow: str) -> int:
        """The last version that Spark has planned of a flow since it was reset; -1 if there is none."""
        place = "/".join([self._spec.storage, "_checkpoints", *outlet.parts, flow])
        return self.last_number(f"{place}/{self.last_number(place)}/offsets")

    def last_number(self, folder: str) -> int:
        """The highest number that is the name of a file in a folder, up to a dot; -1 if there is none."""
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        files = path.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf())
        there = files.listStatus(path) if files.exists(path) else ()
        names = [status.getPath().getName().partition(".")[0] for status in there]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def generations(self, datasets: Iterable[Dataset]) -> list[str]:
        """The checkpoints by which Spark has written streaming tables: others where a table was reset."""
        found = []
        for one in datasets:
            checkpoints = "/".join([self._spec.storage, "_checkpoints", *one.parts, "*", "*"])
            path = self._jvm.org.apache.hadoop.fs.Path(checkpoints)
            files = path.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf())
            last: dict[str, int] = {}
            for status in files.globStatus(path) or ():
                flow, number = status.getPath().getParent().getName(), status.getPath().getName()
                if number.isdigit():
                    last[flow] = max(int(number), last.get(flow, 0))
            found.append(f"{one.key} {sorted(last.items())}")
        return found

    def run(self, keep: Collection[str], chosen: Selection, *, sinks: bool) -> None:
        """Let Spark update the part of the graph that ``keep`` names. ``sinks``: those too, if everything is updated.
        Raises ProjectError."""
        everything = None in (chosen.refreshed, chosen.reset)
        part = self._part(keep, sinks and everything)
        if part is None or not (everything or {*(chosen.refreshed or ()), *(chosen.reset or ())} & {*keep}):
            return
        refresh, reset = self._filter(chosen.refreshed, keep), self._filter(chosen.reset, keep)
        ensure_callback_server_started(self._spark.sparkContext._gateway)
        events = _Events()
        try:
            update = self._jvm.PipelineUpdateContextImpl(part, events, refresh, reset, self._spec.storage)
            update.pipelineExecution().runPipeline()
        except SPARK_ERRORS as error:
            raise ProjectError(self._with_places(events.failed or reason(error))) from None
        if events.failed:
            raise ProjectError(self._with_places(events.failed))

    def materialize(self, dataset: Dataset) -> None:
        """Create or alter the table of a dataset as Spark does, and empty it. Raises ProjectError."""
        some = self._filter([dataset.key], [dataset.key])
        try:
            update = self._jvm.PipelineUpdateContextImpl(
                self._java, _Events(), some, self._module("NoTables"), self._spec.storage
            )
            self._module("DatasetManager").materializeDatasets(self._java, update)
        except SPARK_ERRORS as error:
            raise ProjectError(f"{dataset.place}: {dataset.name}: {reason(error)}") from None

    def _part(self, keep: Collection[str], sinks: bool) -> Any:
        """The unresolved graph of some datasets; None if it has no table and no sink."""
        raw = self._made().toDataflowGraph()
        kept = {*keep}
        tables = [one for one in _items(raw.tables()) if _key(one.identifier()) in kept]
        views = [one for one in _items(raw.views()) if _key(one.identifier()) in kept]
        outlets = _items(raw.sinks()) if sinks else []
        if not tables and not outlets and not any(len(parts_of(one.identifier())) > 1 for one in views):
            return None
        names = {_key(one.identifier()) for one in (*tables, *views, *outlets)}
        flows = [one for one in _items(raw.flows()) if _key(one.destinationIdentifier()) in names]
        return self._jvm.DataflowGraph(*map(self._seq, (flows, tables, outlets, views)))

    def _filter(self, keys: Collection[str] | None, keep: Collection[str]) -> Any:
        """The TableFilter of some tables; None: of all."""
        if keys is None:
            return self._module("AllTables")
        wanted = {*keys} & {*keep}
        found = [one.identifier() for one in _items(self._java.tables()) if _key(one.identifier()) in wanted]
        return self._jvm.SomeTables(self._seq(found).toSet()) if found else self._module("NoTables")

    def _identifier(self, name: str) -> Any:
        return self._module("GraphIdentifierManager").parseTableIdentifier(name, self._spark._jsparkSession)

    def _where(self) -> tuple[Any, Any]:
        return self._option(self._catalog), self._option(self._database)

    def _origin(self, element: Any) -> Any:
        file, _, line = self._definitions.place(element).rpartition(":")
        nothing = self._option(None)
        return self._jvm.QueryOrigin(
            nothing, self._option(file), nothing, self._option(int(line)), nothing, nothing, nothing
        )

    def _parser(self) -> Any:
        return self._spark._jsparkSession.sessionState().sqlParser()

    def _module(self, name: str, room: str = _ROOM) -> Any:
        """A Scala object."""
        return self._jvm.java.lang.Class.forName(f"{room}{name}$").getField("MODULE$").get(None)

    def _option(self, value: Any) -> Any:
        return self._jvm.scala.Option.apply(value)

    def _map(self, values: Mapping[str, str]) -> Any:
        held = self._jvm.java.util.HashMap()
        for name, value in values.items():
            held.put(name, value)
        return self._jvm.PythonUtils.toScalaMap(held)

    def _seq(self, values: Iterable[Any]) -> Any:
        held = self._jvm.java.util.ArrayList()
        for value in values:
            held.add(value)
        return self._jvm.PythonUtils.toSeq(held)


class _Events:
    """Gets the events of a run of Spark. ``failed``: the cause, if the run fails; a flow that fails is tried again."""

    def __init__(self) -> None:
        self.failed = ""
        self._last = ""

    def apply(self, event: Any) -> None:
        error = _value(event.error())
        if error is not None:
            causes = [str(error.getMessage())]
            while (error := error.getCause()) is not None:
                causes.append(str(error.getMessage()))
            self._last = self._last or " ".join(f"{event.message()} {causes[-1]}".split())
        if event.details().toString().startswith("RunProgress(FAILED"):
            self.failed = self._last or str(event.message())

    def toString(self) -> str:
        return "the events of a run"

    class Java:
        implements = ["scala.Function1"]  # noqa: RUF012


def _of_file(place: Place, error: Exception) -> str:
    """The message of an error in a file of SQL, with its place."""
    java = getattr(error, "java_exception", None)
    found = _SYNTAX.match(str(error) if java is None else str(java.getMessage()))
    if found is None:
        message = reason(error)
        remedy = f"; {_STATEMENTS} are accepted" if "Unsupported plan" in message else ""
        return f"{place.file}: {message}{remedy}"
    # Spark counts from the statement, whose lines it shows.
    before = found[4].split("\n")[: int(found[2])]
    begin = place.text.find("\n".join(before))
    offset = begin + sum(len(line) + 1 for line in before[:-1]) + int(found[3])
    return f"{place.at_offset(offset) if begin >= 0 else place.file}: {found[1]}"


def _in_order(datasets: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Each dataset after those that it reads, else by their keys."""
    found: dict[str, Dataset] = {}
    due = sorted(datasets)
    while due:
        ready = [key for key in due if not any(other in due for other in datasets[key].inputs)]
        found |= {key: datasets[key] for key in ready}
        due = [key for key in due if key not in found]
    return found


def parts_of(identifier: Any) -> tuple[str, ...]:
    """The parts of a TableIdentifier."""
    given = (_value(identifier.catalog()), _value(identifier.database()), str(identifier.table()))
    return tuple(part for part in given if part is not None)


def _key(identifier: Any) -> str:
    return ".".join(parts_of(identifier)).lower()


def _items(found: Any) -> list[Any]:
    """The values of a Scala sequence."""
    return [found.apply(i) for i in range(found.size())]


def _value(option: Any) -> Any:
    return option.get() if option.isDefined() else None
