"""Defines the class ``Database``. Its methods create tables and views, change rows, read views, and answer SELECTs."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import RLock, get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pyarrow as pa
from sqlglot import exp

from freshviews import arguments
from freshviews.catalog.catalog import Catalog, Statement, ViewDefs, near, with_function
from freshviews.catalog.clock import CLOCK
from freshviews.catalog.definitions import PlainView, TableDef
from freshviews.catalog.functions import FunctionDef
from freshviews.catalog.nesting import room
from freshviews.catalog.row_keys import row_keys
from freshviews.display.explanation import Explanation
from freshviews.display.grid import Grid, Shown
from freshviews.display.statistics import Stats
from freshviews.engine.asked import AskedDatabase, AskedRows, answered, question_in
from freshviews.engine.change import Change
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.frame_types import quoted, table_statement
from freshviews.engine.codes.inputs import ArrowStream, Keys, Rows, accepted, frame_of
from freshviews.engine.codes.marks import keep_strings
from freshviews.engine.commit.batch import Batch, Parts
from freshviews.engine.commit.by_key import BY_KEY, ByKey, deleted, updated, upserted
from freshviews.engine.commit.collection import Collection
from freshviews.engine.commit.commit import (
    Broken,
    General,
    Refused,
    RunViews,
    Way,
    commit,
    compile_for,
    report_views,
    run_views,
)
from freshviews.engine.commit.data.script import Doors, run_script
from freshviews.engine.commit.direct import FEW, SMALL, Direct, direct_of
from freshviews.engine.commit.followed import Followed
from freshviews.engine.commit.free_memory import VARIABLE, FreeMemory, Held, held_by, lacks_memory, rows_by_table
from freshviews.engine.commit.in_order import CommitPiece, in_order, net_change
from freshviews.engine.commit.keyed import check_by_key, signed
from freshviews.engine.commit.notices import Notices
from freshviews.engine.commit.queues import Queues, hand_out, wait_for_room
from freshviews.engine.commit.threads import MANY, Threads
from freshviews.engine.draft import Draft
from freshviews.engine.durable.children import call_in_children
from freshviews.engine.durable.database_image import read_database, write_database
from freshviews.engine.durable.durability import snapshot_records, write_state
from freshviews.engine.durable.recovery import Recovery, recover
from freshviews.engine.handles import ROWS, Table, View, check_rows
from freshviews.engine.interrupts import Step, Uninterrupted, after_commit
from freshviews.engine.measured.listing import drawing_of, listing
from freshviews.engine.measured.questions import explained_query
from freshviews.engine.measured.questions import shown as shown_relations
from freshviews.engine.measured.replanning import (
    STRATEGY_GAIN,
    advised,
    better_for,
    cheaper_strategy,
    naming,
    statement_of,
)
from freshviews.engine.measured.samples import Measurements
from freshviews.engine.own_functions import Function, State, defined, defined_aggregate
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.tables.clock import later, of_clock, time_of
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.watermark import all_moved, watermark_time
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import (
    ArgumentError,
    CatalogError,
    EvaluationError,
    FreshviewsError,
    InterruptedAfterCommit,
    SqlError,
    StoreError,
    shown,
)
from freshviews.expr.zones import is_time_zone
from freshviews.kernel.machine.beside import (
    FEW_ROWS,
    LITTLE,
    TakenRows,
    cancel_orders,
    may_stand_in,
    take_in,
    work_for,
)
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.kernel.memory.collection import no_collection
from freshviews.progress import Progress, Reporter
from freshviews.sql.statements.parameters import parameters_of
from freshviews.sql.statements.sql_script import statements_of
from freshviews.sql.statements.units import units_of
from freshviews.sql.text.parse import Node, SqlText
from freshviews.store.crash_points import reach
from freshviews.store.directory import Directory, not_opened
from freshviews.store.log import LogUncertain
from freshviews.store.record import SCRIPT
from freshviews.tracebacks import end_here, ends_at_the_call
from freshviews.types.dictionary import Dictionary

if TYPE_CHECKING:
    from freshviews.asking import Answer, Parameters, SelectProcesses
    from freshviews.wire import FlightServer, ServedDatabase

_LOGGER = logging.getLogger("freshviews")

SNAPSHOT_BYTES = 64 << 20

SYNC_SECONDS = 1.0
"""Seconds after which versions are synced where ``sync="interval"`` names none."""
_LONGEST_INTERVAL = 3600.0

_REFUSED = "the batch is refused and the state is as before"

_FORMS = frozenset((list, pa.RecordBatch, *BY_KEY))
"""Types of rows that need no ``accepted`` before the direct way."""


class Database(Shown):
    """Tables, and SQL views over them that every batch keeps exact.

    A batch is one version: it is in whole, for all tables and views, or refused with the state as before. Every method
    may be called from any thread; one at a time runs. Ctrl-C stops a change and nothing of it is applied, or raises
    InterruptedAfterCommit. A directory belongs to the process that opened it: every call in a forked child is refused.
    Reading or changing a closed database raises FreshviewsError.

    Parameters
    ----------
    path
        Directory that keeps the database: opening it again gives exactly the committed versions. None, the default:
        the database is in memory.
    sync
        ``"commit"``: a version is on the disk before it counts, so nothing that was committed is lost.
        ``"interval"``: it is handed to the operating system before it counts, and is on the disk ``sync_seconds``
        later, and the time that syncing takes; ``sync``, ``snapshot``, ``close`` and the end of the interpreter do not
        wait for that. A killed process loses nothing. A lost machine loses at most the versions of its last
        ``sync_seconds``, the last ones, each whole; subscribers and readers may have seen them. Where syncing fails,
        ``sync``, ``close`` and the next commit raise StoreError, and nothing more is taken until the directory is
        opened again, in both modes.
    sync_seconds
        Seconds between syncs for ``sync="interval"``: more than 0, at most 3600, by default 1.
    snapshot_bytes
        Bytes by which the log grows until a snapshot is written, by default 64 MiB.
    threads
        Most threads of a commit, 1 or more; by default one for each core that the process may use. Views that do not
        depend on each other take a large batch at the same time, and threads share the rows of one view where its
        triggers allow that. Contents, changes and errors are those of one thread; rows without ORDER BY may come in
        another order.
    spare_memory
        Bytes that stay free on the machine and in each control group of the process, beside what tables take when they
        grow (a third of what the database holds). By default FRESHVIEWS_SPARE_MEMORY, else a twentieth of memory, at
        most 2 GB and no more than the database holds. Rows and views for which too little is left are refused with
        OutOfMemory, which says what holds memory; batches that add no row on balance are taken, and rows in the place
        of deleted ones. It is an estimate: a first batch or view that is larger than all that is left may end the
        process. 0: rows are taken until memory runs out. Only Linux says how much is left.
    progress
        What reports calls that take long. None, the default: a call that waits for the compiler for more than a second
        says so in one line, on standard error if that is a terminal, or in the notebook. True: loads of more than 1,000
        rows and backfills have such a line, too. A callable: it is called with a ``Progress`` in the place of a line,
        at the begin and the end of each phase and at most ten times a second; it must not use the database, and after
        an error it is not called again. False: nothing. FRESHVIEWS_PROGRESS=0 or =1 is the default of all databases
        with None. Besides, the logger ``freshviews`` has a record at INFO of what takes more than a second.
    clock
        What sets the clock that views read. ``"advance"``, the default: calls of ``advance`` alone. ``"auto"``: each
        version of rows, too, to the time of the machine in UTC, but not ``apply_in_order``. Reading never sets it: call
        ``advance`` before a read that must not be older. Small batches go the general way once a view reads the clock.
    timezone
        The time zone in which SQL reads and prints TIMESTAMP_LTZ, such as ``"Europe/Berlin"``, as by SET TIME ZONE.
        None, the default: that of the directory; of a new database ``"UTC"``.

    Attributes
    ----------
    recovery
        The ``Recovery`` of a durable database: what opening it found. None in memory.

    Raises
    ------
    StoreError
        The directory is open elsewhere, corrupt, incomplete, of another format, or has another time zone.
    ArgumentError
        A parameter is of a wrong type or out of range, or the time zone is unknown.

    Examples
    --------
    The examples of all methods go on from here.

    >>> import freshviews as fv
    >>> db = fv.Database()
    >>> db.execute('''CREATE TABLE items (part STRING, qty INT);
    ...     CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part''')
    >>> db.insert("items", [("bolt", 3), ("nut", 5)])
    1
    >>> db.view("by_part")["bolt"]
    ('bolt', 3)
    """

    @ends_at_the_call
    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        sync: Literal["commit", "interval"] = "commit",
        sync_seconds: float | None = None,
        snapshot_bytes: int = SNAPSHOT_BYTES,
        threads: int | None = None,
        spare_memory: int | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        clock: Literal["advance", "auto"] = "advance",
        timezone: str | None = None,
    ) -> None:
        arguments.optional(arguments.path, "Database(path)", path)
        if progress not in (None, True, False) and not callable(progress):
            raise ArgumentError(f"progress must be None, True, False or a callable, not {shown(progress)}")
        if clock not in ("advance", "auto"):
            raise ArgumentError(f"clock must be 'advance' or 'auto', not {shown(clock)}")
        arguments.count("Database(snapshot_bytes)", snapshot_bytes)
        seconds = _sync_seconds(sync, sync_seconds)
        self._threads = Threads(_thread_count(threads))
        self._keeps_time = clock == "auto"
        self._lock = RLock()
        self._step = Step()
        self._defining = self._closing = False
        self._dictionary = Dictionary()
        self._asked_rows = AskedRows()
        self._relations = Relations()
        self._scripts: list[str] = []
        self._versions = np.zeros(1, np.int64)
        # Indexing a memoryview gives an int of Python.
        self._version = memoryview(self._versions.data)
        self._direct: dict[str, Direct | None] = {}
        self._compiled: set[str] = set()
        """Tables, by name, for which ``compile_for`` was called."""
        self._notices = Notices()
        self._queues = Queues(partial(self._version.__getitem__, 0))
        self._collection = Collection(self._dictionary)
        self._taken = TakenRows(reporter=Reporter(progress), version=self._version)
        self._memory = FreeMemory(_spared(spare_memory))
        self._closed = False
        self._unusable: str | None = None
        self._directory: Directory | None = None
        self.recovery: Recovery | None = None
        if path is not None:
            directory = Directory(path, snapshot_bytes, seconds)
            work_for(self._taken)
            try:
                found = recover(directory, self._dictionary, self._taken)
            except OSError as error:
                directory.close()
                raise not_opened(directory.path, error) from error
            except BaseException:
                directory.close()
                raise
            self._directory = directory
            call_in_children(self._leave_to_parent)
            self._relations, self._scripts = found.relations, found.scripts
            self._versions[0], self.recovery = found.report.version, found.report
        if timezone is not None:
            self._set_time_zone(timezone)

    def _set_time_zone(self, zone: str) -> None:
        """Give a new database a time zone; close one that has another zone."""
        known = self._relations.timezone
        try:
            if not isinstance(zone, str) or not is_time_zone(zone):
                raise ArgumentError(f"timezone must be a name such as 'Europe/Berlin' or '+02:00', not {shown(zone)}")
            if zone != known and self._relations.catalog.names:
                raise StoreError(f"{self._place} has the time zone {known}, not {zone}; open it without timezone")
            self._execute(f"SET TIME ZONE '{zone}'", (), answered)
        except BaseException:
            self.close()
            raise

    # Definitions

    @ends_at_the_call
    def execute(self, sql: str, *parameters: object, **named: object) -> Any:
        """Execute a script: definitions, statements that change rows, and questions.

        A script that does nothing but define is executed whole, or on an error not at all. Else its statements run in
        order: INSERT, DELETE, UPDATE, MERGE and TRUNCATE are each a version, BEGIN ... COMMIT is one version, and
        definitions that follow each other are one step. After an error what came before stays, and the error says so.

        A view over tables that have rows is backfilled before this returns, and a table with rows that gets columns
        stores them again.

        Parameters
        ----------
        sql
            Statements of docs/sql.md and docs/data.md, separated by semicolons.
        parameters, named
            Values for each ``?``, in order, or for each ``:name``; or one list, tuple or dict of them. Definitions have
            none. For many rows use ``insert``, ``upsert``, ``update`` and ``delete``.

        Returns
        -------
        RowCounts | Answer | Explanation | None
            What the last statement returns: how many rows were inserted, deleted and updated; the rows of SELECT, SHOW
            and DESCRIBE; an EXPLAIN; None of a definition.

        Raises
        ------
        SqlError
            The script is wrong or not supported; it has the line and column.
        ArgumentError
            The parameters are many rows, or some are given by position and some by name.
        BatchError
            Rows do not fit a table, or break a rule of it.
        CatalogError
            A table or view is unknown, exists already, or is still needed.
        PlanError
            The strategy that a view names cannot maintain it.
        EvaluationError
            A view, or an expression of a statement, cannot be computed for a row.
        NoDuckDB
            A SELECT is executed, by itself or inside a statement, and DuckDB is not installed.
        OutOfMemory
            Too little memory is left for the view.

        Examples
        --------
        >>> db.execute("CREATE MATERIALIZED VIEW total AS SELECT SUM(qty) AS qty FROM items")
        >>> db.view("total").to_arrow()["qty"].to_pylist()
        [8]
        >>> db.execute("INSERT INTO items VALUES (?, ?), ('nut', 1)", "bolt", 2)
        2 rows inserted, version 2
        >>> db.execute("UPDATE items SET qty = qty + :more WHERE part = 'nut'", more=10).updated
        2
        >>> db.execute("SELECT * FROM by_part ORDER BY part").fetchall()
        [('bolt', 5), ('nut', 26)]
        """
        _check_text("a script of SQL", sql)
        return self._execute(sql, parameters_of("Database.execute", parameters, named), answered)

    def _execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any], ask: Callable[..., Answer]) -> Any:
        """``ask``: ``answered``, or with limits, for the SELECTs of the script."""
        with Uninterrupted(), room(), no_collection():
            units = units_of(sql)
        if self._queues.waited and any(unit.changes_rows for unit in units):
            wait_for_room(self._queues.waited, [*self._relations.views.values()], self._lock)
        with self._lock:
            self._check_usable()
            return run_script(sql, units, values, self._doors(ask))

    def _doors(self, ask: Callable[..., Answer]) -> Doors:
        return Doors(
            catalog=lambda: self._relations.catalog,
            table=self._table,
            dictionary=self._dictionary,
            version=lambda: self.version,
            define=self._define,
            whole=partial(self._whole, unchanged=True),
            commit=self._commit_parts,
            answer=lambda text, query, values: ask(self._asked, question_in(text, query, True), values).to_arrow(),
            create=self.create_table,
            ask=partial(self._asked_in_script, ask),
        )

    def _asked_in_script(
        self, ask: Callable[..., Answer], text: SqlText, node: Node, parameters: Parameters
    ) -> Answer | Explanation:
        """The answer to a SELECT, SHOW, DESCRIBE or EXPLAIN."""
        if isinstance(node, exp.Query):
            return ask(self._asked, question_in(text, node), parameters)
        catalog = self._relations.catalog
        if node.name.upper() == "EXPLAIN":
            return explained_query(text, node, catalog, lambda name: self.view(name).explain())
        from freshviews.asking import Answer

        return Answer(shown_relations(text, node, catalog), self.version)

    def _define(self, script: str, nodes: Sequence[Node], logged: str) -> None:
        """Execute the definitions of a script, and log their text."""
        with self._whole(), no_collection():
            statements = statements_of(script, nodes, self._relations.catalog)

        def keep(chosen: Sequence[str]) -> None:
            if statements:
                text = "\n;".join((logged, *chosen))
                self._log_script(text)
                self._scripts.append(text)

        self._run(statements, keep, measured=True)

    @overload
    def function(
        self,
        name: str | None = None,
        function: None = None,
        *,
        takes: Sequence[str] = (),
        returns: str,
        arrow: bool = False,
        nulls: bool = False,
    ) -> Callable[[Function], Function]: ...
    @overload
    def function(
        self,
        name: str | None,
        function: Function,
        *,
        takes: Sequence[str] = (),
        returns: str,
        arrow: bool = False,
        nulls: bool = False,
    ) -> Function: ...
    @ends_at_the_call
    def function(
        self,
        name: str | None = None,
        function: Callable[..., Any] | None = None,
        *,
        takes: Sequence[str] = (),
        returns: str = "",
        arrow: bool = False,
        nulls: bool = False,
    ) -> Any:
        """Let SQL call a Python function: in views, statements and SELECTs of this database.

        The function must be deterministic: it is computed once for distinct arguments, and again whenever the engine
        needs the value. A durable database keeps no Python, so before it is opened again its functions are registered
        by ``freshviews.register_function``; ``CREATE FUNCTION ... USING python 'module:function'`` is kept.

        Parameters
        ----------
        name, function
            Name of the function in SQL, and the function. Without ``function`` the call is a decorator, and without
            ``name`` the decorated function's name counts.
        takes, returns
            SQL types of the arguments and of the result. Arguments are cast to them, as those of an SQL function.
        arrow
            True: the function gets Arrow arrays of distinct arguments, and returns an array or a list of as many
            values. After an error it is called for each row, so that the error names the row.
        nulls
            True: the function gets NULL as None. False, the default: it is not called, and the result is NULL.

        Returns
        -------
        function
            The function itself, or the decorator.

        Raises
        ------
        ArgumentError
            A name or type is none of SQL, or the function cannot be called.
        CatalogError
            SQL has a function with this name, or a view calls another function with it.

        Examples
        --------
        >>> @db.function(takes=["STRING", "INT"], returns="STRING")
        ... def stars(part, qty):
        ...     return part + "*" * qty
        >>> db.execute("CREATE MATERIALIZED VIEW starred AS SELECT stars(part, qty) AS text FROM items")
        >>> sorted(db.view("starred"))
        [('bolt***',), ('nut*****',)]
        """
        options = {"takes": takes, "returns": returns, "arrow": arrow, "nulls": nulls}
        return defined("Database.function", name, function, options, self._keep_function)

    @overload
    def aggregate(
        self, name: str | None = None, *, takes: Sequence[str] = (), returns: str, nulls: bool = False
    ) -> Callable[[State], State]: ...
    @overload
    def aggregate(
        self,
        name: str,
        *,
        takes: Sequence[str] = (),
        returns: str,
        zero: Callable[[], Any],
        add: Callable[..., Any],
        output: Callable[[Any], Any],
        remove: Callable[..., Any] | None = None,
        nulls: bool = False,
    ) -> None: ...
    @ends_at_the_call
    def aggregate(
        self,
        name: str | None = None,
        *,
        takes: Sequence[str] = (),
        returns: str = "",
        zero: Callable[[], Any] | None = None,
        add: Callable[..., Any] | None = None,
        output: Callable[[Any], Any] | None = None,
        remove: Callable[..., Any] | None = None,
        nulls: bool = False,
    ) -> Any:
        """Let views of this database call an aggregate of plain Python.

        The values of a group are added one by one to a state, and the result is made of the state. A group that changes
        is folded again as a whole, its values in ascending order. With ``remove`` only the values that come and go are
        added and removed, in any order: the state must then be the same as if the others alone had been added.

        All functions must be deterministic, and must not call the database. A durable database keeps no Python, so
        before it is opened again its aggregates are registered by ``freshviews.register_aggregate``; ``CREATE AGGREGATE
        FUNCTION ... USING python 'module:class'`` is kept.

        Parameters
        ----------
        name
            Name of the aggregate in SQL.
        takes, returns
            SQL types of the arguments and of the result. Arguments are cast to them.
        zero, add, output, remove
            Functions: ``zero()`` makes a new state, which is not None; ``add(state, *values)`` and ``remove(state,
            *values)`` return the next state, which may be the same object; ``output(state)`` returns the result, and
            leaves the state as it is. Without them the call decorates a class, whose objects are the states, with the
            methods ``add(self, *values)``, ``output(self)`` and perhaps ``remove(self, *values)``.
        nulls
            True: NULL is a value, None. False, the default: a row in which an argument is NULL is passed over. A group
            without values has the result NULL.

        Returns
        -------
        decorator
            Of a class, if no functions are given; else None.

        Raises
        ------
        ArgumentError
            A name or type is none of SQL, or a function of the aggregate is missing.
        CatalogError
            SQL has a function with this name, or a view calls another one with it.

        Examples
        --------
        >>> @db.aggregate(takes=["INT"], returns="INT")
        ... class squares:
        ...     def __init__(self):
        ...         self.total = 0
        ...     def add(self, qty):
        ...         self.total += qty * qty
        ...     def remove(self, qty):
        ...         self.total -= qty * qty
        ...     def output(self):
        ...         return self.total
        >>> db.execute("CREATE MATERIALIZED VIEW s AS SELECT squares(qty) AS total FROM items")
        >>> list(db.view("s"))
        [(34,)]
        """
        functions = {"zero": zero, "add": add, "output": output, "remove": remove}
        options = (takes, returns, nulls)
        return defined_aggregate("Database.aggregate", name, functions, options, self._keep_function)

    def _keep_function(self, made: FunctionDef) -> None:
        with self._lock:
            self._check_usable()
            if self._defining:
                self._step.refuse()
            catalog = self._relations.catalog
            callers = catalog.callers_of(made.name)
            if callers and catalog.functions.get(made.name.lower()) != made:
                message = f"{', '.join(callers)} call another function {made.name}; DROP them first, or rename it"
                raise CatalogError(message)
            self._relations = replace(self._relations, functions=with_function(catalog.functions, made))

    @ends_at_the_call
    def rule(self, text: str, properties: Mapping[str, str] | None = None) -> None:
        """Define views by rules of docs/rules.md: all rules of a text, or on an error none.

        Parameters
        ----------
        text
            Rules, as ``tri(a, b, c) <- r(a, b), s(b, c), t(c, a).``
        properties
            Properties of each view by name, as ``{"freshviews.strategy": "trie_join"}``. Default: none.

        Raises
        ------
        RuleError
            A rule is wrong; it has the line and column.
        CatalogError, PlanError, EvaluationError
            As ``execute``.

        Examples
        --------
        >>> db.rule("few(p) <- items(p, q), q < 4.")
        >>> list(db.view("few"))
        [('bolt',)]
        """
        _check_text("a text of rules", text)
        arguments.optional(arguments.pairs, "Database.rule(properties)", properties)
        with self._lock:
            self._check_usable()
            from freshviews.rules import script_of  # Imported here: SQL does not need its parser.

            script = script_of(text, self._relations.catalog, properties)
            try:
                self.execute(script.text)
            except SqlError as error:
                raise script.in_rules(error) from None

    @ends_at_the_call
    def define(self, statements: Sequence[Statement]) -> None:
        """Execute parsed statements; only in memory, as a durable database has its definitions as SQL.

        Parameters
        ----------
        statements
            A list of statements of ``freshviews.sql.parse_script``.

        Raises
        ------
        FreshviewsError
            The database is durable; else as ``execute``.

        Examples
        --------
        >>> from freshviews.sql import Catalog, parse_script
        >>> db.define(parse_script("CREATE TABLE orders (o_id INT)", Catalog()))
        >>> db.tables
        ('items', 'orders')
        """
        _check_statements("Database.define", statements)
        with self._lock:
            self._check_usable()
            if self._directory is not None:
                raise FreshviewsError(
                    f"{self._directory.path}: a durable database stores its definitions as SQL; use Database.execute"
                )
            catalog = self._relations.catalog
            for statement in statements:
                if isinstance(statement, TableDef | ViewDefs | PlainView):
                    name = statement.view.name if isinstance(statement, ViewDefs) else statement.name
                    if catalog.named(name) is not None:
                        raise CatalogError(f"{name} exists already")
                catalog = catalog.after(statement)
            self._run(statements, lambda chosen: None, measured=False)

    @ends_at_the_call
    def create_table(self, name: str, frame: ArrowStream, key: str | Sequence[str] = ()) -> int:
        """Create a table with the columns of a frame, and insert its rows: both, or on an error none.

        A column gets the type that Spark gives it: int64 is BIGINT, float64 DOUBLE, text STRING, a timestamp of any
        unit and zone TIMESTAMP. A durable database logs a CREATE TABLE, then the rows; a process that is killed between
        them leaves an empty table.

        Parameters
        ----------
        name
            Name of the new table.
        frame
            A pandas or polars DataFrame, a pyarrow Table, RecordBatch or RecordBatchReader, a DuckDB relation, or
            another object with Arrow's PyCapsule interface, such as a ``View``.
        key
            Column of the PRIMARY KEY, or several. Default: no key.

        Returns
        -------
        int
            The version that the rows make.

        Raises
        ------
        ArgumentError
            ``frame`` has no types, as a list of tuples, or a column has none of SQL, or the frame lacks the key.
        CatalogError
            There is such a table or view.
        SqlError
            A name cannot be one of SQL.
        BatchError
            A row does not fit, as a NULL in the key, or another row with its key.
        OutOfMemory
            Too little memory is left.
        StoreError
            A durable database cannot write its log.

        Examples
        --------
        >>> import pyarrow as pa
        >>> db.create_table("prices", pa.table({"part": ["bolt", "nut"], "price": [2.5, 1.0]}), key="part")
        2
        >>> db.table("prices")
        table prices at version 2: 2 rows, ...
        part             price
        STRING NOT NULL  DOUBLE
        bolt             2.5
        nut              1.0
        """
        _check_name("table", name)
        keys = (key,) if isinstance(key, str) else key
        arguments.texts("Database.create_table(key)", keys)
        rows = frame_of(frame, name)
        statement = table_statement(name, rows.schema, keys)
        with self._lock:
            if name.lower() in map(str.lower, (*self.tables, *self.views, *self.plain_views)):
                raise CatalogError(f"table {name} exists already; DROP the table, or insert the rows into it")
            try:
                self.execute(statement)
            except InterruptedAfterCommit:
                self.execute(f"DROP TABLE {quoted(name)}")
                raise KeyboardInterrupt from None
            try:
                return self.insert(name, rows)
            except InterruptedAfterCommit:
                raise
            except BaseException:
                with suppress(FreshviewsError):  # An unusable log is reported by the error itself.
                    self.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
                raise

    @ends_at_the_call
    def replan(self, view: str, strategies: bool = False) -> bool:
        """Choose the join tree of a view again, by the updates that its tables have had.

        The view is then backfilled before this returns; its readers and subscribers continue. The counts of updates
        become its property ``'freshviews.updates'``, also where the view named others. Nothing is done where no other
        tree is cheaper, the view names its join tree, or a table declares its updates or is trusted (docs/crown.md).
        Counts start at 0 when a database is opened from a snapshot. ``stats`` and ``View.explain`` say when replanning
        pays.

        Parameters
        ----------
        view
            Name of a maintained view.
        strategies
            True: choose among all strategies instead, the one with the fewest steps for an update, computed from the
            rows of the tables (docs/explain.md); it becomes the property ``'freshviews.strategy'``. Another strategy
            may have another bound for the worst update, and another space. Default: False.

        Returns
        -------
        bool
            True if the view has another join tree, or strategy, now.

        Raises
        ------
        CatalogError
            There is no such view.

        Examples
        --------
        >>> db.replan("by_part")
        False
        """
        arguments.flag("Database.replan(strategies)", strategies)
        with self._lock:
            state = self.view(view).state
            if strategies:
                return self._replan_strategy(state)
            updates = better_for(state.definition, self._relations, 1.0, state.maintained.sizes())
            if updates is not None:
                self.execute(statement_of(state.name, updates))
            return updates is not None

    def _replan_strategy(self, state: ViewState) -> bool:
        measured = self._measurements(state)
        comparisons = state.maintained.compare(measured.degrees, measured.rates)
        cheaper = cheaper_strategy(state.maintained.plans, comparisons, STRATEGY_GAIN)
        if cheaper is not None:
            self.execute(naming(state.name, cheaper[0]))
        return cheaper is not None

    def _advised(self, state: ViewState) -> str | None:
        return advised(state, self._relations)

    def _at(self) -> int:
        return self.version

    def _is_held(self) -> bool:
        """Whether this thread holds the version."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def _inner(self, state: ViewState) -> list[ViewState]:
        """The internal views of a view, each after its inputs."""
        prefix = f"{state.name.lower()}#"
        return [view for name, view in self._relations.views.items() if name.startswith(prefix)]

    def _derived_key(self, state: ViewState) -> tuple[str, ...]:
        """Columns that determine the rows of a view: its groups, or by the keys of its tables; () if none do."""
        keys = (state.maintained.group_columns, *row_keys(state.definition, self._relations.catalog))
        return next(filter(None, keys), ())

    def _measurements(self, state: ViewState) -> Measurements:
        return Measurements(state.definition, self._relations, self._dictionary)

    def _run(
        self, statements: Iterable[Statement], keep: Callable[[Sequence[str]], None], measured: bool
    ) -> None:
        """Execute statements. ``keep`` is called when they have worked, just before they take effect, with the
        statements that repeat choices by ``measured`` updates."""
        work_for(self._taken)
        everything = self._directory is not None
        if self._defining or self._step.entered or self._collection.paused:
            self._step.refuse()
        self._defining, done = True, False
        whole = partial(Uninterrupted, self._step, unchanged=True)
        draft = Draft(
            self._relations, self._dictionary, whole, everything, measured, self._memory, self._threads.count
        )
        try:
            draft.run(statements)
            with Uninterrupted(self._step):
                keep(draft.chosen)
                self._relations = draft.finish()
                done = True
                self._memory.forget()
                self._collection.restart()
                self._share_seconds()
                self._direct.clear()
                self._compiled.clear()
        except BaseException as error:
            if done and isinstance(error, KeyboardInterrupt):
                raise after_commit(error, self.version, "the definitions are in effect") from None
            draft.abandon()
            raise
        finally:
            self._defining, self._taken.reporter.subject = False, ""
            if self._closing:
                self.close()

    def _whole(self, unchanged: bool = False) -> Uninterrupted:
        """A step that must be whole; ``unchanged`` as of ``Uninterrupted``. Raises FreshviewsError if it begins during
        another change."""
        if self._defining:
            self._step.refuse()
        return Uninterrupted(self._step, unchanged)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the base tables, in order of creation."""
        with self._lock:
            self._check_usable()
            return tuple(t.name for t in self._relations.tables.values() if not t.definition.internal)

    @property
    def plain_views(self) -> tuple[str, ...]:
        """Names of the views that are not materialised, in order of creation."""
        with self._lock:
            return tuple(view.name for view in self._relations.plain.values())

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the maintained views, in order of creation."""
        with self._lock:
            self._check_usable()
            return tuple(v.name for v in self._relations.views.values() if not v.definition.internal)

    @ends_at_the_call
    def view(self, name: str) -> View:
        """Find a maintained view, to read and to subscribe to.

        Parameters
        ----------
        name
            Name of the view, in any case.

        Returns
        -------
        View
            It follows the view through later versions.

        Raises
        ------
        CatalogError
            The name is unknown, or that of a table or of a view that is not materialised.

        Examples
        --------
        >>> db.view("by_part").to_arrow().to_pydict()
        {'part': ['bolt', 'nut'], 'qty': [3, 5]}
        """
        with self._lock:
            self._check_usable()
            _check_name("view", name)
            state = self._relations.views.get(name.lower())
            if state is None or state.definition.internal:
                if name.lower() in self._relations.tables:
                    raise CatalogError(f"{name} is a table, not a view; read the table with Database.table")
                if name.lower() in self._relations.plain:
                    raise CatalogError(
                        f"view {name} is not materialised, so it has no rows to read; write CREATE OR REPLACE "
                        "MATERIALIZED VIEW, or read a materialised view that selects from it"
                    )
                raise CatalogError(f"unknown view {name}{near(name, self.views)}")
            inner, key = partial(self._inner, state), partial(self._derived_key, state)
            advised = partial(self._advised, state)
            at, held, measure = self._at, self._is_held, self._measurements
            return View(state, self._guard, at, held, self._queues, advised, measure, inner, key)

    @ends_at_the_call
    def table(self, name: str) -> Table:
        """Find a stored base table, to read.

        Parameters
        ----------
        name
            Name of the table, in any case.

        Returns
        -------
        Table
            It follows the table through later versions.

        Raises
        ------
        CatalogError
            The name is unknown or that of a view, or the table is trusted: its rows are not stored.

        Examples
        --------
        >>> list(db.table("items"))
        [('bolt', 3), ('nut', 5)]
        """
        with self._lock:
            self._check_usable()
            state = self._table(name)
            if not state.is_stored:
                raise CatalogError(
                    f"table {state.name}: a trusted table does not store its rows, so they cannot be read"
                )
            return Table(state, self._guard, self._at, self._is_held)

    @ends_at_the_call
    def sql(self, query: str, parameters: Parameters = None) -> Answer:
        """Answer a SELECT over tables and views, at one version.

        DuckDB computes it from the rows that are there (``pip install 'freshviews[sql]'``), with the meaning of
        Spark's SQL; docs/asking.md has the differences. Only the relations and columns that it names are read, and
        what was read is kept until a version changes it. Others wait while they are read, not while it runs. Ctrl-C
        stops it.

        Parameters
        ----------
        query
            A SELECT, WITH or VALUES, in Spark's SQL.
        parameters
            A list of values for each ``?``, or a dict of values for each ``:name``. Default: none.

        Returns
        -------
        Answer
            Its rows: as Arrow, pandas, polars, or tuples of Python values.

        Raises
        ------
        SqlError
            The SELECT is wrong or not supported, or a value cannot be computed; it has the line and column where
            they are known.
        CatalogError
            A table or view is unknown, or the rows of a trusted table are not stored.
        ArgumentError
            A parameter is not a value of SQL.
        NoDuckDB
            DuckDB is not installed.
        OutOfMemory
            It needs more memory than it may take.

        Examples
        --------
        >>> db.sql("SELECT part, qty FROM items WHERE qty > ?", [3]).fetchall()
        [('nut', 5)]
        >>> db.sql("SELECT MAX(v.qty) AS most FROM by_part v JOIN items i USING (part)").to_arrow().to_pydict()
        {'most': [5]}
        """
        _check_text("a SELECT", query)
        return answered(self._asked, query, parameters)

    @ends_at_the_call
    def serve(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        token: str | Literal[False] | None = None,
        writable: bool = False,
    ) -> FlightServer:
        """Serve tables and views by Arrow Flight SQL, in threads of this process, until the server is closed.

        Clients are ADBC, polars, JDBC and others (docs/connect.md). Each statement is ``sql`` or ``execute``
        here, at one version; SELECTs run in other processes, with limits of time and memory. It needs
        ``pip install 'freshviews[flight,sql]'``.

        Parameters
        ----------
        port
            Port to listen at; 0, the default, for a free one.
        host
            Address to listen at, by default of this machine alone. Nothing is encrypted.
        token
            What clients must show: 16 ASCII characters or more. Default: FRESHVIEWS_TOKEN of the environment, else a
            random one. False: nothing, so every user of the machine is let in; only on an address of the machine.
        writable
            True: clients may execute all that ``execute`` does. Default: False, only SELECT.

        Returns
        -------
        FlightServer
            Its ``uri``, ``token`` and ``close()``; a context manager. Close it before the database.

        Raises
        ------
        ArgumentError
            An argument is wrong, the port cannot be taken, or a package is missing.

        Examples
        --------
        >>> with db.serve() as server:
        ...     server
        server of Arrow Flight SQL at grpc://127.0.0.1:..., read only
        """
        from freshviews.wire import FlightServer, read_token

        arguments.flag("Database.serve(writable)", writable)
        self._check_usable()
        from freshviews.asking import SelectProcesses

        reading, writing = SelectProcesses(), SelectProcesses(1)

        def close() -> None:
            reading.close()
            writing.close()

        try:
            served = self._served(writable, (reading, writing))
            server = FlightServer(served, host, port, read_token() if token is None else token, close)
            reading.start()
            if writable:
                writing.start()
        except BaseException:
            close()
            raise
        return server

    def _served(
        self, is_writable: bool, processes: tuple[SelectProcesses, SelectProcesses] | None = None
    ) -> ServedDatabase:
        """``processes``: for clients that are not trusted, those that answer SELECTs, and one for the SELECTs inside
        other statements: these have the lock, for which those may wait."""
        from freshviews.asking import Limits
        from freshviews.wire import LOCKED_SECONDS, RESULT_BYTES, SELECT_SECONDS, ServedDatabase

        ask, inside = self.sql, answered
        if processes is not None:
            limits, locked = Limits(SELECT_SECONDS, RESULT_BYTES), Limits(LOCKED_SECONDS, RESULT_BYTES)
            ask = partial(answered, self._asked, limits=limits, processes=processes[0])
            inside = partial(answered, limits=locked, processes=processes[1])

        def execute(sql: str, parameters: Parameters) -> object:
            return self._execute(sql, parameters_of("execute", (parameters,) if parameters else (), {}), inside)

        def catalog() -> Catalog:
            with self._lock:
                self._check_usable()
                return self._relations.catalog

        return ServedDatabase(catalog, ask, execute, self.insert, lambda: self.version, is_writable)

    @property
    def _asked(self) -> AskedDatabase:
        """The relations as a SELECT reads them; not kept, as it refers to this database."""
        return AskedDatabase(self._asked_rows, self._lock, self._captured)

    def _captured(self) -> tuple[Relations, int]:
        self._check_usable()
        work_for(self._taken)
        return self._relations, self.version

    # Batches

    def insert(self, table: str, rows: Rows) -> int:
        """Insert rows into a table, as one version.

        Parameters
        ----------
        table
            Name of a base table, in any case.
        rows
            Any iterable of tuples in the order of the columns, or of objects by name: dicts, instances of dataclasses,
            pydantic models; or one such object, a pyarrow Table, RecordBatch or RecordBatchReader, or a pandas or
            polars DataFrame, by name. A column that is left out has its DEFAULT, or is NULL; a NULL that is given stays
            NULL.

        Returns
        -------
        int
            The version that the rows make.

        Raises
        ------
        BatchError
            Rows do not fit the table; it has the table, row, column, value and rule.
        EvaluationError
            A view cannot be computed for a row.
        CatalogError
            The table is unknown.
        OutOfMemory
            Too little memory is left.
        StoreError
            A durable database cannot write its log.
        SubscriberError
            A subscriber raised; the version is committed all the same.
        QueueFull
            An iterator of ``View.changes`` with ``full="wait"`` did not take changes in time.

        Examples
        --------
        >>> db.insert("items", [{"qty": 4, "part": "bolt"}])
        2
        >>> db.view("by_part")["bolt"]
        ('bolt', 7)
        """
        try:
            return self._apply(table, rows, 1)
        except FreshviewsError as error:  # Written out: a call of a wrapper is a cost of each row.
            end_here(error)
            raise

    def delete(self, table: str, rows: Rows | None = None, *, keys: Keys | None = None) -> int:
        """Delete rows from a table, as one version.

        Parameters
        ----------
        table, rows
            As of ``insert``. Rows are given whole; each deletes one row that equals it.
        keys
            Instead of rows, a list of keys of the PRIMARY KEY: values, or tuples in its order, or dicts; or a table of
            its columns, as ``insert`` takes rows. A key that no row has is ignored.

        Returns
        -------
        int
            The version that the deletes make.

        Raises
        ------
        BatchError
            A row is not there, or is still referenced; else as ``insert``.
        CatalogError
            With keys: as ``upsert``.
        ArgumentError
            Rows and keys are given, or one key that is not in a list.

        Examples
        --------
        >>> db.delete("items", [("nut", 5)])
        2
        >>> list(db.view("by_part"))
        [('bolt', 3)]
        >>> db.execute("CREATE TABLE parts (part STRING PRIMARY KEY, price INT)")
        >>> _ = db.insert("parts", [("bolt", 30), ("nut", 20)])
        >>> _ = db.delete("parts", keys=["nut"])
        >>> list(db.table("parts"))
        [('bolt', 30)]
        """
        try:
            if keys is None and rows is not None:
                return self._apply(table, rows, -1)
            return self._apply(table, deleted(table, rows, keys), -1)
        except FreshviewsError as error:
            end_here(error)
            raise

    def upsert(self, table: str, rows: Rows) -> int:
        """Insert rows, each in the place of the row that has its PRIMARY KEY, if there is one, as one version.

        Parameters
        ----------
        table
            Name of a base table with a PRIMARY KEY, in any case.
        rows
            As of ``insert``. Rows are whole: a column that is left out has its DEFAULT, or is NULL, whatever it was in
            the replaced row; ``update`` changes some columns. Of several rows with one key the last one counts.

        Returns
        -------
        int
            The version that the rows make.

        Raises
        ------
        CatalogError
            The table is unknown, has no PRIMARY KEY, has a window, or is trusted: then its rows are not stored.
        BatchError
            Rows do not fit the table; else as ``insert``.

        Examples
        --------
        >>> db.execute("CREATE TABLE parts (part STRING PRIMARY KEY, price INT)")
        >>> _ = db.upsert("parts", [("bolt", 30), ("nut", 20)])
        >>> _ = db.upsert("parts", {"part": "bolt", "price": 31})
        >>> list(db.table("parts"))
        [('nut', 20), ('bolt', 31)]
        """
        try:
            return self._apply(table, upserted(rows, table), 1)
        except FreshviewsError as error:
            end_here(error)
            raise

    def update(self, table: str, rows: Rows) -> int:
        """Change columns of the rows that have given PRIMARY KEYs, as one version.

        Parameters
        ----------
        table
            Name of a base table with a PRIMARY KEY, in any case.
        rows
            One object by name, or any iterable of them, or a frame, as of ``insert``: the columns of the key, and those
            that change, which may differ from object to object. Changes of one key are made in their order.

        Returns
        -------
        int
            The version that the changes make.

        Raises
        ------
        BatchError
            No row has a key, or an object does not have all columns of the key; else as ``insert``.
        CatalogError
            As ``upsert``.

        Examples
        --------
        >>> db.execute("CREATE TABLE parts (part STRING PRIMARY KEY, price INT, stock INT)")
        >>> _ = db.insert("parts", [("bolt", 30, 5), ("nut", 20, 8)])
        >>> _ = db.update("parts", {"part": "bolt", "stock": 4})
        >>> db.table("parts")["bolt"]
        ('bolt', 30, 4)
        """
        try:
            return self._apply(table, updated(rows, table), 1)
        except FreshviewsError as error:
            end_here(error)
            raise

    def apply(self, table: str, changes: Rows) -> int:
        """Insert and delete rows of a table, as one version. Rules hold for the net effect.

        Parameters
        ----------
        table
            Name of a base table, in any case.
        changes
            Rows as of ``insert``, with a signed BIGINT column ``_multiplicity``, which is last in tuples: how often a
            row is inserted, or deleted if negative. Zero is allowed and means nothing.

        Returns
        -------
        int
            The version that the changes make.

        Raises
        ------
        BatchError
            As ``insert``, whose other errors are raised, too.

        Examples
        --------
        >>> db.apply("items", [("bolt", 4, 1), ("nut", 5, -1)])
        2
        >>> list(db.view("by_part"))
        [('bolt', 7)]
        """
        try:
            return self._apply(table, changes, 0)
        except FreshviewsError as error:
            end_here(error)
            raise

    @ends_at_the_call
    def advance(self, time: datetime | None = None) -> int:
        """Set the clock that ``now()`` and ``current_date`` of views read, as one version.

        Rows enter and leave views as the clock passes them. The time never goes back; a durable database logs it.
        Nothing else sets it, unless the database is one with ``clock="auto"``. Before the first call it is NULL, and
        no row passes a condition on it.

        Parameters
        ----------
        time
            The new time, as a value of a TIMESTAMP column; one with a zone is converted to UTC. Default: the time of
            the machine in UTC, or the time of the clock if that is later.

        Returns
        -------
        int
            The version that the new time makes; the last version if the clock has this time already.

        Raises
        ------
        ArgumentError
            The time is earlier than the clock, or is none.
        CatalogError
            No view has ever read the clock.
        EvaluationError, OutOfMemory, StoreError, SubscriberError, QueueFull
            As ``insert``.

        Examples
        --------
        >>> import datetime as dt
        >>> db.execute('''CREATE TABLE logins (name STRING, at TIMESTAMP);
        ...               CREATE MATERIALIZED VIEW active AS
        ...               SELECT name FROM logins WHERE at > now() - INTERVAL '1' HOUR''')
        >>> db.insert("logins", [("ada", dt.datetime(2026, 1, 1, 12))])
        2
        >>> db.advance(dt.datetime(2026, 1, 1, 12, 30))
        3
        >>> list(db.view("active"))
        [('ada',)]
        >>> db.advance(dt.datetime(2026, 1, 1, 13))
        4
        >>> list(db.view("active"))
        []
        """
        self._check_usable()
        self._wait_for_room(self._clock_table())
        with self._making_version(1, (CLOCK.name,), lambda: (self._clock_table(),)):
            self._check_usable()
            table = self._clock_table()
            batch = later(table, time)
            if batch is not None:
                self._commit(((table, batch),), len(batch.batch), looked=True, timed=True)
            return self.version

    def _clock_table(self) -> TableState:
        table = self._relations.tables.get(CLOCK.name)
        if table is None:
            raise CatalogError("no view reads the clock; create a view with now() in WHERE, then advance the clock")
        return table

    @property
    def clock(self) -> datetime | None:
        """The time of the last ``advance``; None before the first one."""
        with self._lock:
            self._check_usable()
            made: datetime | None = time_of(self._relations.tables.get(CLOCK.name))
            return made

    @ends_at_the_call
    def apply_in_order(
        self, table: str, changes: Rows, view: str, rows: int = ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Apply changes update by update, and iterate over what each changes in a view, in order.

        Nothing is applied before it is asked for: several updates become a version together, as many as make a few
        batches of changes, then these are returned. No more is held than that and the change of one update. Where one
        is refused, so are those of its version and all after it.

        Parameters
        ----------
        table, changes
            As of ``apply``.
        view
            Name of a maintained view.
        rows
            Most rows of a record batch, by default 65,536.

        Returns
        -------
        Iterator[pyarrow.RecordBatch]
            The columns of the view, ``_multiplicity``, and ``_update``, the 0-based position of the
            update in ``changes``.

        Raises
        ------
        BatchError, EvaluationError, CatalogError
            As ``insert``, when rows are encoded or when they are applied; CatalogError also for a table with a
            watermark.

        Examples
        --------
        >>> changes = db.apply_in_order("items", [("bolt", 4, 1), ("nut", 5, -1)], "by_part")
        >>> [update for batch in changes for update in batch["_update"].to_pylist()]
        [0, 0, 1]
        """
        check_rows("Database.apply_in_order", rows)
        state, target, encoded, commit_piece = self._pieces_of(table, changes, view)
        return in_order(encoded, commit_piece, state, target, self._relations.downstream[target], rows)

    @ends_at_the_call
    def apply_net(self, table: str, changes: Rows, view: str, rows: int = ROWS) -> Iterator[pa.RecordBatch]:
        """Apply the net effect of changes, and iterate over what it changes in a view.

        What is deleted goes first. Nothing is applied before it is asked for, and several versions are made, as by
        ``apply_in_order``, so that the change is never held whole. Where no row of a table is there more than once, and
        the result is enumerated and has all columns that the tables have in it, each row of the change comes once.
        Elsewhere a row may go in one record batch and come in a later one; the sum is the change.

        Parameters
        ----------
        table, changes
            As of ``apply``.
        view
            Name of a maintained view.
        rows
            Most rows of a record batch, by default 65,536.

        Returns
        -------
        Iterator[pyarrow.RecordBatch]
            The columns of the view, and ``_multiplicity``.

        Raises
        ------
        CatalogError
            The table has a window; else as ``apply_in_order``.

        Examples
        --------
        >>> changes = db.apply_net("items", [("bolt", 4, 1), ("bolt", 4, -1)], "by_part")
        >>> sum(batch.num_rows for batch in changes)
        0
        """
        check_rows("Database.apply_net", rows)
        state, target, encoded, commit_piece = self._pieces_of(table, changes, view)
        if target.has_window:
            raise CatalogError(
                f"Database.apply_net accepts no changes of table {target.name}, which has a window; use Database.apply"
            )
        return net_change(encoded, commit_piece, state, target, self._relations.downstream[target], rows)

    def _pieces_of(self, table: str, changes: Any, view: str) -> tuple[ViewState, TableState, Encoded, CommitPiece]:
        state = self.view(view).state
        target, encoded = self._encode_whole(table, changes, 0)
        if target.watermark is not None:
            what = f"table {target.name} has a watermark, which moves once per version"
            raise CatalogError(f"{what}, but these changes need several versions; use Database.apply")
        with self._lock, self._whole(unchanged=True):
            # Pieces may add rows that later pieces delete, so a refusal is for all of them.
            if not self._memory.is_enough(len(encoded.batch)):
                self._refuse_growth(len(encoded.batch), partial(_added, ((target, encoded),)))

        def commit_piece(piece: Encoded, most: int) -> tuple[CodeBatch, Codes]:
            if self._queues.waited:
                self._wait_for_room(target)
            with self._guard(state):
                followed = Followed(state, most)
                self._commit_parts(((target, (piece,)),), followed.run_views, replayed=True)
                return followed.change, followed.numbers

        return state, target, encoded, commit_piece

    def batch(self, *, replayed: bool = False) -> Batch:
        """Begin a batch over several tables, which becomes one version where its block ends.

        An exception inside the block leaves nothing behind.

        Parameters
        ----------
        replayed
            True: its rows were taken before, as those of a log; whether memory is left for them is not asked.

        Returns
        -------
        Batch
            A context manager.

        Examples
        --------
        >>> with db.batch() as batch:
        ...     batch.insert("items", [("bolt", 4)])
        >>> batch.version
        2
        """
        arguments.flag("Database.batch(replayed)", replayed)
        self._check_usable()
        return Batch(partial(self._encode_whole, replayed=replayed), partial(self._commit_parts, replayed=replayed))

    def _apply(self, name: str, rows: Any, sign: int) -> int:
        """Make a version of rows in any form that ``insert`` takes, or of changes by key."""
        if self._queues.waited and isinstance(name, str):
            self._wait_for_room(self._relations.tables.get(name.lower()))
        if type(rows) not in _FORMS:
            _check_name("table", name)
            rows = accepted(rows, name, self._taken.reporter)
        if type(rows) is not pa.Table:
            try:
                version = self._directly(name, rows, sign)
            except TypeError:
                _check_name("table", name)
                raise
            if version is not None:
                return version
        if type(name) is not str:
            _check_name("table", name)
        by_key = isinstance(rows, BY_KEY)
        if type(rows) is pa.RecordBatch:
            rows = accepted(rows, name)
        with self._making_version(len(rows), (name,), lambda: (self._table(name),)):
            table = self._table(name)
            if by_key:
                check_by_key(table)
            grows = sign > 0 and not table.has_window and not by_key
            if grows and not self._memory.is_enough(len(rows)):
                # Before strings of the rows enter the dictionary.
                self._refuse_growth(len(rows), lambda: {table.name: len(rows)})
            encoded = self._encoded(table, rows, sign, whole=table.follows_time)
            if by_key:
                encoded = signed(table, (encoded,))
            return self._commit(((table, encoded),), len(rows), looked=grows)

    def _encoded(self, table: TableState, rows: Any, sign: int, *, whole: bool) -> Encoded:
        """Encode rows, or changes by key, and report many. ``whole``: every column, also those that nothing reads."""
        many = len(rows) > FEW_ROWS
        with self._taken.reporter.rows("encode", table.name, len(rows)) if many else nullcontext():
            if isinstance(rows, BY_KEY):
                return rows.encode(table)
            return (table.encoder.whole() if whole else table.encoder).encode(rows, sign)

    @contextmanager
    def _making_version(
        self, rows: int, names: Sequence[str], tables: Callable[[], Sequence[TableState]]
    ) -> Iterator[None]:
        """A block that makes a version of ``rows`` rows of ``tables``, with ``names`` as the user wrote them. It runs
        uninterrupted, with the lock held; then subscribers are called.

        Before it, the functions that the batch calls are compiled, unless they run as plain Python; Ctrl-C ends that
        wait. Raises InterruptedAfterCommit for Ctrl-C after the version.
        """
        version = 0
        try:
            with self._lock, take_in(self._taken, rows) as waits:
                clock = self._moved_clock if self._keeps_time else None
                names = names if clock is None else (*names, CLOCK.name)
                if (waits or not self._compiled.issuperset(names)) and not may_stand_in():
                    found = tables() if clock is None else (*tables(), clock)
                    compile_for(found, self._relations)
                    self._compiled.update(names, [table.name for table in found])
                with self._whole(unchanged=True):
                    yield
                    version = self.version
                if self._notices.waiting:
                    self._notices.deliver()
        except KeyboardInterrupt as error:
            if version:
                raise after_commit(error, version) from None
            raise

    def _wait_for_room(self, *tables: TableState | None) -> None:
        """Before a commit to tables: wait for room in the queues of iterators over their views."""
        downstream = self._relations.downstream
        clock = self._moved_clock if self._keeps_time else None
        changed = [table for table in (*tables, clock) if table is not None]
        views = {view for table in changed for view in downstream.get(table, ())}
        wait_for_room(self._queues.waited, views, self._lock)

    @property
    def _moved_clock(self) -> TableState | None:
        """The table of the clock, if there is one, of a database whose versions of rows set it."""
        return self._relations.tables.get(CLOCK.name)

    def _directly(self, name: str, rows: list[Any] | pa.RecordBatch | ByKey, sign: int) -> int | None:
        """Make a version of a few rows the direct way; None if the general way must take or refuse them."""
        count = rows.num_rows if isinstance(rows, pa.RecordBatch) else len(rows)
        if count > (FEW if type(rows) is list else SMALL):
            return None
        with self._lock:
            direct = self._direct[name] if name in self._direct else self._direct_way(name)
            if (
                direct is None
                or self._closed
                or self._unusable is not None
                or self._step.entered
                or self._defining
                or self._collection.paused  # In a signal handler, while rows of another batch are in a plan.
                or (sign >= 0 and not self._memory.is_enough(count) and self._lacks(count))
            ):
                return None
            version = None
            try:
                if self._directory is None and direct.one_call and not direct.is_read and self._dictionary.mark is None:
                    version = self._at_once(direct, rows, sign)
                else:
                    with self._whole(unchanged=True):
                        version = self._make(direct) if direct.put(rows, sign) else None
                if version is not None:
                    self._taken.rows += count
                if self._notices.waiting:
                    self._notices.deliver()
            except Refused:
                if direct.outdated:
                    direct.share_seconds()
                    del self._direct[name]
            except KeyboardInterrupt as error:
                if version is not None:
                    raise after_commit(error, version) from None
                raise
            return version

    def _direct_way(self, name: str) -> Direct | None:
        """Find the direct way into a table, for this call and those after it."""
        work_for(self._taken)
        # A signal during a read of a dict of Numba becomes a KeyError.
        with self._whole(unchanged=True):
            table = self._table(name)
            is_timed = self._keeps_time and self._moved_clock is not None
            direct = None if is_timed else direct_of(table, self._relations, self._versions)
        if direct is not None and not direct.compiled:
            return None  # The next batch asks again.
        self._direct[name] = direct
        return direct

    def _lacks(self, rows: int) -> bool:
        """Whether memory is lacking for ``rows`` more."""
        with self._whole():
            return self._memory.lacking(rows, self._held) is not None

    def _at_once(self, direct: Direct, rows: list[Any] | pa.RecordBatch | ByKey, sign: int) -> int | None:
        """Make a version in one call of compiled code, which no signal interrupts. Returns None, as ``put``, or raises
        Refused if no version is made."""
        collection, before = self._collection, None
        collection.paused = True
        try:
            if not direct.put(rows, sign):
                return None
            before = self._version[0]
            version = direct.commit()
            if version is None:
                with self._whole():
                    version = self._make(direct)  # Raises the reason.
        except KeyboardInterrupt as error:
            if before is not None and self._version[0] > before:
                raise after_commit(error, self._version[0]) from None
            raise
        finally:
            collection.paused = False
            if self._closing:
                self.close()
        if direct.strings and not self._closed and collection.is_due(direct.deleted):
            with self._whole():
                collection.step(self._relations, 0)
        return version

    def _share_seconds(self) -> None:
        """Add the seconds of the direct ways to their tables and views."""
        for direct in self._direct.values():
            if direct is not None:
                direct.share_seconds()

    def _encode_whole(
        self, name: str, rows: Any, sign: int, before: int = 0, *, replayed: bool = False
    ) -> tuple[TableState, Encoded]:
        """Encode rows with all columns, because views may be created before the commit. ``before``: the rows of the
        open batch."""
        by_key = isinstance(rows, BY_KEY)
        if type(rows) is not list and not by_key:
            _check_name("table", name)
            rows = accepted(rows, name, self._taken.reporter)
        with self._lock, take_in(self._taken, len(rows)), self._whole(unchanged=True):
            table = self._table(name)
            if by_key:
                check_by_key(table)
            if sign >= 0 and not replayed and not self._memory.is_enough(len(rows)):
                reason = self._memory.lacking_in_batch(len(rows), before, self._held)
                if reason is not None:
                    raise lacks_memory(reason, "nothing of the batch is taken")
            encoded = replace(self._encoded(table, rows, sign, whole=True), columns=table.definition.columns)
            keep_strings(encoded.batch, self._dictionary)
            return table, encoded

    def _commit_parts(self, parts: Parts, run: RunViews | None = None, replayed: bool = False) -> int:
        rows = sum(len(encoded.batch) for _, pieces in parts for encoded in pieces)
        if self._queues.waited and run is None:
            self._wait_for_room(*(table for table, _ in parts))
        names = [table.name for table, _ in parts]
        with self._making_version(rows, names, lambda: [table for table, _ in parts if not table.closed]):
            self._check_usable()
            for table, _ in parts:
                if table.closed:
                    raise CatalogError(f"table {table.name} was dropped while the batch was open")
            changes = [(table, signed(table, pieces)) for table, pieces in parts]
            return self._commit(changes, rows, run, looked=replayed, timed=replayed)

    def _commit(
        self, changes: Changes, rows: int, run: RunViews | None = None, *, looked: bool = False, timed: bool = False
    ) -> int:
        """Make a version of encoded changes of ``rows`` rows. Runs uninterrupted, with the lock held. ``looked``: free
        memory was checked, or must not be. ``timed``: the clock was set, or must not be."""
        clock = self._moved_clock if self._keeps_time and not timed else None
        moved = None if clock is None else later(clock, None)
        if clock is not None and moved is not None:
            changes = ((clock, moved), *changes)
        moves: list[Callable[[], None]] = []
        general = self._threads.general if run is None and rows > MANY else General
        run = run or (self._threads.run_views if rows > MANY else run_views)
        if rows > FEW_ROWS and self._taken.reporter.shows_rows:
            run = partial(report_views, run, self._taken.reporter, rows)
        for table, _ in changes:
            if table.follows_time:
                changes, moves = all_moved(changes, checked=timed)
                rows = sum(len(encoded.batch) for _, encoded in changes)
                break
        if not looked and not self._memory.is_enough(rows):
            self._refuse_growth(rows, partial(_added, changes))
        try:
            try:
                return self._make(general(changes, self._relations, run, self._version, moves))
            except Refused:  # A view failed in a thread: run again in one thread for its error.
                return self._make(General(changes, self._relations, run_views, self._version, moves))
        except EvaluationError as error:
            # An error that has a row is the error of that row.
            if error.row is not None or all(table.name != CLOCK.name for table, _ in changes):
                raise
            raise of_clock(error, changes) from None

    def _make(self, way: Way) -> int:
        """Make a version by the steps of ``commit``, then note the changes for subscribers, free strings, write a
        snapshot if it is time; returns the version. Runs uninterrupted, with the lock held. Raises Refused."""
        try:
            reported = commit(way, self._directory)
        except Broken as error:
            self._unusable = f"{error}; open the database again"
            raise FreshviewsError(self._unusable) from error
        except LogUncertain as error:
            self._unusable = str(error)
            raise
        version: int = way.version[0]
        for view, batch in reported:
            if view.decoder.strings:
                keep_strings(batch, self._dictionary)
            change = Change(view.name, version, batch, view.decoder)
            hand_out(view, change, self._notices.waiting)
        self._collection.step(self._relations, way.deleted)
        if self._directory is not None:
            reach("version visible")
            if self._directory.snapshot_due:
                self._snapshot_if_possible()
        return version

    def _refuse_growth(self, rows: int, added: Callable[[], Mapping[str, int]]) -> None:
        """Raise OutOfMemory if ``rows`` more do not fit. ``added``: rows on balance, by table."""
        reason = self._memory.lacking(rows, self._held)
        if reason is not None and self._memory.exceeds(added(), rows_by_table(self._relations.tables.values())):
            # Only the dictionary has the strings of a refused batch.
            self._collection.step(self._relations, 0)
            raise lacks_memory(reason, _REFUSED)

    def _held(self) -> Held:
        """The tables and views of the database, by name."""
        return held_by([*self._relations.tables.values(), *self._relations.views.values()], self._dictionary)

    @contextmanager
    def at_one_version(self) -> Iterator[int]:
        """Hold the version: within this block no other thread makes one, so several views are read at one version.

        Other threads wait meanwhile.

        Yields
        ------
        int
            The number of the version.

        Examples
        --------
        >>> with db.at_one_version() as version:
        ...     version, len(db.view("by_part")), len(db.table("items"))
        (1, 2, 2)
        """
        with self._lock:
            self._check_usable()
            yield self.version

    @property
    def version(self) -> int:
        """The number of batches committed so far."""
        return self._version[0]

    # Durability

    @ends_at_the_call
    def snapshot(self) -> None:
        """Write a snapshot now, so that the log before it is not needed to open the database.

        It has the rows of the stored tables, and images of the views, by which the database opens without filling them
        again. Rows of trusted tables are not stored, so the views that read them live on in these images alone, which
        only a freshviews that plans the views in the same way can read.

        Raises
        ------
        StoreError
            The snapshot cannot be written, or the database is in memory.

        Examples
        --------
        >>> with fv.Database("shop") as shop:
        ...     shop.execute("CREATE TABLE items (part STRING, qty INT)")
        ...     shop.snapshot()
        """
        with self._lock:
            self._check_usable()
            if self._directory is None:
                raise StoreError("the database is only in memory; open a durable database with Database(path)")
            with self._whole(unchanged=True):
                self._write_snapshot(self._directory)

    @ends_at_the_call
    def sync(self) -> None:
        """Bring all versions to the disk now; only a database with ``sync="interval"`` needs such a call.

        Commits of other threads go on meanwhile.

        Raises
        ------
        StoreError
            Syncing fails, as it may have since the last call, or the database is in memory.

        Examples
        --------
        >>> with fv.Database("shop", sync="interval") as shop:
        ...     shop.execute("CREATE TABLE items (part STRING, qty INT)")
        ...     shop.sync()
        """
        with self._lock:
            self._check_usable()
            if self._directory is None:
                raise StoreError("the database is only in memory; open a durable database with Database(path)")
            self._directory.check_there()
        try:
            # Without the lock: other threads commit meanwhile.
            with Uninterrupted():
                self._directory.sync()
        except LogUncertain as error:
            self._unusable = str(error)
            raise

    @ends_at_the_call
    def write_image(self, folder: str | os.PathLike[str], *, sync: bool = True) -> None:
        """Write all of the database into a folder that is not there yet, whole or not at all.

        It holds strings, stored tables and views as they lie in memory, for ``from_image``; the definitions are left to
        the caller.

        Parameters
        ----------
        folder
            Path of the new folder.
        sync
            True, the default: it is on the disk before this returns.

        Raises
        ------
        StoreError
            The folder exists, or cannot be written.

        Examples
        --------
        >>> db.write_image("image")
        """
        arguments.path("Database.write_image(folder)", folder)
        arguments.flag("Database.write_image(sync)", sync)
        with self._lock:
            self._check_usable()
            with self._whole(unchanged=True):
                write_database(Path(folder), self._relations, self._dictionary, sync)

    @classmethod
    @ends_at_the_call
    def from_image(
        cls,
        folder: str | os.PathLike[str],
        statements: Sequence[Statement],
        *,
        verify: bool = False,
        threads: int | None = None,
    ) -> Database:
        """Make a database in memory that goes on from an image of ``write_image``. Its version is 0.

        The files are mapped, and read as they are touched; they may be deleted, but must not change. Stored rows whose
        layout is another one than today's are read at once. What the image lacks is new: tables are empty, views are
        backfilled, as are views with another definition or with other programs than those of the freshviews that wrote
        it.

        Parameters
        ----------
        folder
            Path of the image.
        statements
            Statements of ``freshviews.sql.parse_script`` that would ``define`` the database.
        verify
            True: read large arrays at once and check their sums. Default: False.
        threads
            As of ``Database``.

        Returns
        -------
        Database

        Raises
        ------
        StoreError
            A file is missing or damaged, a table is not what it was, or a view to be backfilled reads a trusted table
            that has had rows.

        Examples
        --------
        >>> from freshviews.sql import Catalog, parse_script
        >>> db.write_image("image")
        >>> script = parse_script("CREATE TABLE items (part STRING, qty INT)", Catalog())
        >>> len(fv.Database.from_image("image", script).table("items"))
        2
        """
        arguments.path("Database.from_image(folder)", folder)
        arguments.flag("Database.from_image(verify)", verify)
        _check_statements("Database.from_image", statements)
        made = cls(threads=threads)
        made._taken.rows = LITTLE + 1
        made._relations = read_database(Path(folder), statements, made._dictionary, verify)
        return made

    def _write_snapshot(self, directory: Directory) -> None:
        records = snapshot_records(self._scripts, self._relations)
        write = partial(write_state, relations=self._relations, dictionary=self._dictionary)
        directory.write_snapshot(self.version, records, write)

    def _snapshot_if_possible(self) -> None:
        """Write a snapshot after a commit; if that fails, the log only stays longer."""
        assert self._directory is not None
        INTERRUPTION.unchanged = get_ident()
        try:
            self._write_snapshot(self._directory)
        except (Exception, KeyboardInterrupt) as error:
            self._directory.postpone_snapshot()
            _LOGGER.warning("no snapshot was written: %s", error or "interrupted")
        finally:
            INTERRUPTION.unchanged = 0

    def _log_script(self, script: str) -> None:
        if self._directory is None:
            return
        try:
            self._directory.append(SCRIPT, self.version, script.encode())
        except LogUncertain as error:
            self._unusable = str(error)
            raise

    # State

    @ends_at_the_call
    def stats(self) -> Stats:
        """Count rows, memory, updates and seconds of tables and views.

        Returns
        -------
        Stats
            A dict, printed as a table, of ``version``; ``strings``, the number of strings, and ``string_bytes``, their
            memory; ``bytes``, the memory of all tables, views and strings; and ``tables`` and ``views``, by name a
            dict of:

            - ``rows``: None where they are not stored; equal rows of a table count once, or as often as they came.
            - ``bytes``, ``updates`` (rows that came in, those of a backfill too) and ``seconds`` (spent on
              them).
            - of tables with a watermark ``watermark``, a datetime or None, and ``late``, the number of late rows
              dropped since the database was opened.
            - of views ``strategy``, and ``double_sums``: how sums of doubles are stored, ``narrow``, ``real``, or both,
              None where there are none (docs/rings.md).
            - of views ``replan``: the ``'freshviews.updates'`` by which ``replan`` would at least halve the cost of
              updates; None where it would not or fewer than 10,000 updates have come.

        Examples
        --------
        >>> db.stats()["views"]["by_part"]["rows"]
        2
        """
        with self._lock:
            self._check_usable()
            self._share_seconds()
            tables = {t.name: t.stats() for t in self._relations.tables.values()}
            for t in self._relations.tables.values():
                if t.watermark is not None:
                    tables[t.name] |= {"watermark": watermark_time(t), "late": t.late}
            views = {
                v.name: {**v.stats(), "replan": advised(v, self._relations)} for v in self._relations.views.values()
            }
            strings = self._dictionary.bytes
            return Stats(
                version=self.version,
                strings=self._dictionary.strings(),
                string_bytes=strings,
                bytes=strings + sum(one["bytes"] for one in (*tables.values(), *views.values())),
                tables=tables,
                views=views,
            )

    @property
    def stored_rows(self) -> int:
        """Rows of the stored tables, or of the views where no table is stored: what an image's size goes by."""
        with self._lock:
            self._check_usable()
            stored = [table.stored for table in self._relations.tables.values() if table.stored is not None]
            if stored:
                return sum(table.rows for table in stored)
            sizes = [view.maintained.sizes() for view in self._relations.views.values()]
            return sum(rows for found in sizes for rows, _ in found.values())

    @ends_at_the_call
    def bytes_of(self, name: str) -> int:
        """Count the bytes that a table or view keeps, internal views included; unlike ``stats`` it looks at no row.

        Parameters
        ----------
        name
            Name of a table or maintained view, in any case.

        Returns
        -------
        int
            The number of bytes.

        Raises
        ------
        CatalogError
            There is no such table or view.

        Examples
        --------
        >>> db.bytes_of("items") > 0
        True
        """
        with self._lock:
            self._check_usable()
            _check_name("table or view", name)
            wanted = name.lower()
            held = self._relations.views.items()
            views = sum(v.maintained.bytes() for key, v in held if key == wanted or key.startswith(f"{wanted}#"))
            table = self._relations.tables.get(wanted)
            if table is None and wanted not in self._relations.views:
                raise CatalogError(f"unknown table or view {name}{near(name, (*self.tables, *self.views))}")
            return views + (0 if table is None else table.bytes)

    def _leave_to_parent(self) -> None:
        """In a forked child: refuse every call from now on. Only the parent may write the directory."""
        assert self._directory is not None
        # A thread of the parent, which does not run here, may hold the lock.
        self._lock._at_fork_reinit()  # type: ignore[attr-defined]
        self._directory.leave()
        # A step of such a thread never ends here.
        self._step.entered = self._defining = self._collection.paused = False
        self._unusable = (
            f"{self._directory.path} is open in process {os.getppid()}, and this is a child forked from it; use the "
            "database in that process, or open it after the fork, in one process"
        )

    def close(self) -> None:
        """Give memory and files back; a second call does nothing. Readers that are open keep the rows of their version.

        Raises
        ------
        StoreError
            The last versions could not be brought to the disk, if no call has said so.

        Examples
        --------
        >>> db.close()
        >>> db
        Database in memory, version 1, closed
        """
        with self._lock:
            if self._collection.paused or self._defining:
                # In a signal handler, during a step that needs the memory: that step closes at its end.
                self._closing = True
                return
            with self._whole():
                self._close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._relations.close()
        cancel_orders(self._taken)
        if self._directory is not None:
            try:
                self._directory.close()
            except LogUncertain:
                if self._unusable is None:
                    raise

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _place(self) -> str:
        return "in memory" if self._directory is None else str(self._directory.path)

    def _grid(self) -> Grid:
        caption = f"Database {self._place}, version {self.version:,}"
        with self._lock:
            if self._closed:
                return Grid(f"{caption}, closed")
            return listing(caption, self._relations, self._dictionary.bytes)

    def _repr_html_(self) -> str:
        with self._lock:
            drawing = "" if self._closed else drawing_of(self._relations)
            return f"<div>{super()._repr_html_()}{drawing}</div>"

    def _check_usable(self) -> None:
        if self._closed:
            raise FreshviewsError("the database is closed")
        if self._unusable is not None:
            raise FreshviewsError(self._unusable)

    def _table(self, name: str) -> TableState:
        """A table of an open database, by its name in any case. Raises CatalogError."""
        if self._closed or self._unusable is not None:
            self._check_usable()
        table = self._relations.tables.get(name.lower()) if isinstance(name, str) else None
        if table is None or table.definition.internal:
            _check_name("table", name)
            if name.lower() in self._relations.views or name.lower() in self._relations.plain:
                raise CatalogError(
                    f"{name} is a view, not a table; change only tables, and read the view with Database.view"
                )
            raise CatalogError(f"unknown table {name}{near(name, self.tables)}")
        return table

    @contextmanager
    def _guard(self, state: Relation) -> Iterator[RLock]:
        with self._lock:
            self._check_usable()
            if state.closed:
                raise CatalogError(f"{state.name} was dropped")
            work_for(self._taken)
            yield self._lock


def _sync_seconds(sync: str, seconds: float | None) -> float:
    """The interval of syncing in seconds, 0 for none. Raises ArgumentError."""
    if sync not in ("commit", "interval"):
        raise ArgumentError(f"sync must be 'commit' or 'interval', not {shown(sync)}")
    if sync == "commit":
        if seconds is not None:
            raise ArgumentError("sync_seconds needs sync='interval'; with sync='commit' every commit is synced")
        return 0.0
    if seconds is None:
        return SYNC_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_INTERVAL:
        raise ArgumentError(f"sync_seconds must be more than 0 and at most {_LONGEST_INTERVAL:g}, not {shown(seconds)}")
    return float(seconds)


def _thread_count(threads: int | None) -> int:
    """The number of threads, by default of the cores that the process may use. Raises ArgumentError."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ArgumentError(f"threads must be a whole number of 1 or more, not {shown(threads)}")
    return threads


def _added(changes: Changes) -> dict[str, int]:
    """Rows inserted minus rows deleted, by table."""
    return {table.name: int(np.sign(encoded.batch.multiplicities).sum()) for table, encoded in changes}


def _spared(spared: int | None) -> int | None:
    """Bytes that stay free. Raises ArgumentError."""
    if spared is None:
        text = os.environ.get(VARIABLE)
        if text is not None and not text.isdecimal():
            raise ArgumentError(f"{VARIABLE} must be a whole number of bytes of 0 or more, not {shown(text)}")
        return None if text is None else int(text)
    if isinstance(spared, bool) or not isinstance(spared, int) or spared < 0:
        raise ArgumentError(f"spare_memory must be a whole number of bytes of 0 or more, not {shown(spared)}")
    return spared


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str):
        raise CatalogError(f"the name of a {kind} must be a str, not {shown(name)}")


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise SqlError(f"{what} must be a str, not {type(text).__name__}")


def _check_statements(method: str, statements: object) -> None:
    if isinstance(statements, str) or not isinstance(statements, Sequence):
        raise SqlError(
            f"{method} takes a list of parsed statements, not {type(statements).__name__}; "
            "Database.execute takes the text of a script"
        )
    for one in statements:
        if not isinstance(one, Statement):
            raise SqlError(f"{method} takes statements as returned by freshviews.sql.parse_script, not {shown(one)}")
