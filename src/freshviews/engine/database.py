"""The database: the face of the engine."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from freshviews.catalog.catalog import Statement, ViewDefs, near
from freshviews.catalog.definitions import PlainView, TableDef
from freshviews.engine.change import Change
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.inputs import accepted
from freshviews.engine.codes.marks import held, mark_columns
from freshviews.engine.commit.batch import Batch
from freshviews.engine.commit.collection import Collection, deleted_rows
from freshviews.engine.commit.commit import Broken, Log, MemoryRanOut, ViewChanges, commit, ran_out
from freshviews.engine.commit.direct import FEW, SMALL, Direct, direct_of
from freshviews.engine.commit.followed import Followed
from freshviews.engine.commit.in_order import CommitPiece, in_order, net_change
from freshviews.engine.commit.interrupts import Uninterrupted
from freshviews.engine.commit.notices import Notices
from freshviews.engine.draft import Draft
from freshviews.engine.durable.children import call_in_children
from freshviews.engine.durable.database_image import read_database, write_database
from freshviews.engine.durable.durability import batch_payload, snapshot_records, write_state
from freshviews.engine.durable.recovery import Recovery, recover
from freshviews.engine.handles import ROWS, Table, View
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.replanning import advised, better_for, statement_of
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.window import all_windowed
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import CatalogError, FreshviewsError, SqlError, StoreError
from freshviews.rules import script_of
from freshviews.sql.statements.script import parse_script
from freshviews.store.crash_points import reach
from freshviews.store.directory import Directory
from freshviews.store.log import LogUncertain
from freshviews.store.record import BATCH, SCRIPT
from freshviews.types.dictionary import Dictionary

_LOGGER = logging.getLogger("freshviews")

SNAPSHOT_BYTES = 64 << 20

MakeVersion = Callable[[Changes, Relations, Log | None], ViewChanges]
"""Applies a batch everywhere; ``commit``, or the method of ``Followed``."""


class Database:
    """Tables, and SQL views over them that every batch keeps exact.

    ``Database()`` lives in memory; ``Database(path)`` keeps a directory: a batch is in the log, synced, before
    it counts, and opening the directory again gives exactly the committed versions. Every method may be
    called from any thread; one at a time runs. Ctrl-C takes effect before a commit or after it. A directory belongs to
    the process that opened it: every call in a forked child is refused.

    A batch is one version: it is in whole, for all tables and views, or refused with the state as before.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, snapshot_bytes: int = SNAPSHOT_BYTES) -> None:
        """Open or make a database. ``snapshot_bytes``: growth of the log after which a snapshot is written.

        Raises StoreError where the directory is open elsewhere, corrupt, incomplete, or of another format.
        """
        self._lock = RLock()
        self._dictionary = Dictionary()
        self._relations = Relations()
        self._scripts: list[str] = []
        self._versions = np.zeros(1, np.int64)
        self._direct: dict[str, Direct | None] = {}
        self._notices = Notices()
        self._collection = Collection(self._dictionary)
        self._closed = False
        self._unusable: str | None = None
        self._directory: Directory | None = None
        self.recovery: Recovery | None = None
        """What opening a durable database found; None in memory."""
        if path is not None:
            directory = Directory(path, snapshot_bytes)
            try:
                found = recover(directory, self._dictionary)
            except BaseException:
                directory.close()
                raise
            self._directory = directory
            call_in_children(self._leave_to_parent)
            self._relations, self._scripts = found.relations, found.scripts
            self._versions[0], self.recovery = found.report.version, found.report

    # Definitions

    def execute(self, sql: str) -> None:
        """Execute a script of CREATE and DROP statements: all of it, or on an error none of it.

        A view over tables that have rows is backfilled before this returns. Raises SqlError with line
        and column, CatalogError, PlanError, and EvaluationError where a view cannot be computed.
        """
        with self._lock:
            self._check_usable()
            with Uninterrupted():
                statements = parse_script(sql, self._relations.catalog)

            def keep(chosen: Sequence[str]) -> None:
                if statements:
                    script = "\n;".join((sql, *chosen))
                    self._log(SCRIPT, self.version, script.encode())
                    self._scripts.append(script)

            self._run(statements, keep, measured=True)

    def rule(self, text: str, properties: Mapping[str, str] | None = None) -> None:
        """Define views by rules, as ``tri(a, b, c) <- r(a, b), s(b, c), t(c, a).``; see docs/rules.md.

        ``properties`` are those of each view, as ``{"freshviews.strategy": "trie_join"}``. All rules of a text are
        taken, or on an error none. Raises RuleError with line and column, CatalogError, PlanError, EvaluationError.
        """
        with self._lock:
            self._check_usable()
            script = script_of(text, self._relations.catalog, properties)
            try:
                self.execute(script.text)
            except SqlError as error:
                raise script.in_rules(error) from None

    def define(self, statements: Sequence[Statement]) -> None:
        """As ``execute``, for statements that were parsed (see ``freshviews.sql.parse_script``) or made.

        Only for a database in memory: a durable one has its definitions as SQL. Raises FreshviewsError.
        """
        with self._lock:
            self._check_usable()
            if self._directory is not None:
                raise FreshviewsError(f"{self._directory.path} keeps its definitions as SQL; use execute")
            catalog = self._relations.catalog
            for statement in statements:
                if isinstance(statement, TableDef | ViewDefs | PlainView):
                    name = statement.view.name if isinstance(statement, ViewDefs) else statement.name
                    if catalog.named(name) is not None:
                        raise CatalogError(f"{name} exists already")
                catalog = catalog.after(statement)
            self._run(statements, lambda chosen: None, measured=False)

    def replan(self, view: str) -> bool:
        """Choose the join tree of a view again, by the updates that its tables have had; True if it is another one.

        The view is then backfilled before this returns; its readers and subscribers continue. The counts of updates
        become its property ``'freshviews.updates'``, also where the view named others. Returns False, with nothing
        done, where no other tree is cheaper, the view names its join tree, or a table declares its updates or is
        trusted (see docs/crown.md). Counts start at 0 when a database is opened from a snapshot. ``stats`` and
        ``explain`` say when replanning pays. Raises CatalogError where there is no such view.
        """
        with self._lock:
            state = self.view(view).state
            updates = better_for(state.definition, self._relations, 1.0, state.maintained.sizes())
            if updates is not None:
                self.execute(statement_of(state.name, updates))
            return updates is not None

    def _advised(self, state: ViewState) -> str | None:
        return advised(state, self._relations)

    def _run(
        self, statements: Iterable[Statement], keep: Callable[[Sequence[str]], None], measured: bool
    ) -> None:
        """Execute statements; ``keep`` is called when they are known to be good, just before they count, with those
        that say what was chosen by what was ``measured``."""
        everything = self._directory is not None
        draft = Draft(self._relations, self._dictionary, Uninterrupted, everything, measured)
        try:
            draft.run(statements)
            with Uninterrupted():
                keep(draft.chosen)
                self._relations = draft.finish()
                self._collection.restart()
                self._share_seconds()
                self._direct.clear()
        except BaseException:
            draft.abandon()
            raise

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the base tables, in order of creation."""
        with self._lock:
            self._check_usable()
            return tuple(table.name for table in self._relations.tables.values())

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

    def view(self, name: str) -> View:
        """A view, to read and to subscribe to. CatalogError where there is none of that name."""
        with self._lock:
            self._check_usable()
            if not isinstance(name, str):
                raise CatalogError(f"a view is given by its name, not by {name!r}")
            state = self._relations.views.get(name.lower())
            if state is None or state.definition.internal:
                if name.lower() in self._relations.tables:
                    raise CatalogError(f"{name} is a table, not a view")
                if name.lower() in self._relations.plain:
                    raise CatalogError(
                        f"view {name} is not materialised, so it has no rows to read; CREATE OR REPLACE MATERIALIZED "
                        "VIEW, or read a materialised view that selects from it"
                    )
                raise CatalogError(f"unknown view {name}{near(name, self.views)}")
            return View(state, self._guard, partial(self._advised, state))

    def table(self, name: str) -> Table:
        """A stored base table, to read. CatalogError where it is unknown or trusted, thus not stored."""
        with self._lock:
            self._check_usable()
            state = self._table(name)
            if not state.is_stored:
                raise CatalogError(f"table {state.name} is trusted: its rows are not stored, so none can be read")
            return Table(state, self._guard)

    # Batches

    def insert(self, table: str, rows: Any) -> int:
        """Insert rows; the version that this makes comes back.

        Rows are tuples in the order of the columns, dicts by name (what is left out is NULL), a pyarrow
        Table, RecordBatch or RecordBatchReader, or a pandas or polars DataFrame, by name. BatchError names
        table, row, column, value and rule of what is wrong; EvaluationError says what a view cannot compute.
        """
        return self._apply(table, rows, 1)

    def delete(self, table: str, rows: Any) -> int:
        """Delete rows, given whole, each once; the version that this makes comes back. Errors as ``insert``."""
        return self._apply(table, rows, -1)

    def apply(self, table: str, changes: Any) -> int:
        """Insert and delete: rows with a signed BIGINT column ``_multiplicity``, last in tuples.

        Zero is allowed and means nothing. The rules hold for the net effect. Errors as ``insert``.
        """
        return self._apply(table, changes, 0)

    def apply_in_order(
        self, table: str, changes: Any, view: str, rows: int = ROWS
    ) -> Iterator[pa.RecordBatch]:
        """As ``apply``, update by update: an iterator of what each changes in a view, in order.

        Record batches of at most ``rows`` rows have the view's columns, ``_multiplicity``, and ``_update``: the
        position of the update in ``changes``. Nothing is applied before it is asked for: several updates become a
        version together, as many as make a few batches of changes, then these are returned. No more is held than
        that and the change of one update. Where one is refused, so are those of its version and all after it. Errors
        as ``insert``.
        """
        if rows < 1:
            raise ValueError("apply_in_order needs rows of 1 or more")
        state, target, encoded, commit_piece = self._pieces_of(table, changes, view)
        return in_order(encoded, commit_piece, state, target, self._relations.downstream[target], rows)

    def apply_net(self, table: str, changes: Any, view: str, rows: int = ROWS) -> Iterator[pa.RecordBatch]:
        """As ``apply``, of the net effect of the changes: an iterator of what that changes in a view.

        Record batches of at most ``rows`` rows have the view's columns and ``_multiplicity``. What is deleted goes
        first. Nothing is applied before it is asked for, and several versions are made, as by ``apply_in_order``, so
        that the change is never held whole. Where no row of a table is there more than once, and the result is
        enumerated and has all columns that the tables have in it, each row of the change comes once. Elsewhere a row
        may go in one record batch and come in a later one; the sum is the change. Errors as ``insert``.
        """
        if rows < 1:
            raise ValueError("apply_net needs rows of 1 or more")
        state, target, encoded, commit_piece = self._pieces_of(table, changes, view)
        if target.has_window:
            raise CatalogError(f"table {target.name} has a window: what leaves it follows from the order of updates")
        return net_change(encoded, commit_piece, state, target, self._relations.downstream[target], rows)

    def _pieces_of(self, table: str, changes: Any, view: str) -> tuple[ViewState, TableState, Encoded, CommitPiece]:
        state = self.view(view).state
        target, encoded = self._encode_whole(table, changes, 0)

        def commit_piece(piece: Encoded, most: int) -> tuple[CodeBatch, Codes]:
            with self._guard(state):
                followed = Followed(state, most)
                self._commit_parts(((target, piece),), followed.commit)
                return followed.change, followed.numbers

        return state, target, encoded, commit_piece

    def batch(self) -> Batch:
        """Several tables, one version: ``with db.batch() as batch: batch.insert(...); batch.delete(...)``.

        The batch is committed where the block ends; an exception inside leaves nothing behind.
        """
        self._check_usable()
        return Batch(self._encode_whole, self._commit_parts)

    def _apply(self, name: str, rows: Any, sign: int) -> int:
        if sign and (type(rows) is list or type(rows) is pa.RecordBatch):
            version = self._directly(name, rows, sign)
            if version is not None:
                return version
        if type(rows) is not list:
            rows = accepted(rows, name)
        with self._lock:
            with Uninterrupted():
                table = self._table(name)
                encoder = table.encoder.whole() if table.has_window else table.encoder
                version = self._commit(((table, encoder.encode(rows, sign)),))
            if self._notices.waiting:
                self._notices.deliver()
            return version

    def _directly(self, name: str, rows: list[Any] | pa.RecordBatch, sign: int) -> int | None:
        """Make a version of a few rows the direct way; None where the general way must take them, or refuse them."""
        if len(rows) > (FEW if type(rows) is list else SMALL):
            return None
        with self._lock:
            if self._closed or self._unusable is not None:
                return None
            direct = self._direct.get(name) or self._direct_way(name)
            if direct is None:
                return None
            if self._directory is None and direct.one_call and not direct.noted:
                # A signal comes before the one call or after it.
                if not direct.put(rows, sign):
                    return None
                try:
                    version = direct.commit()
                except MemoryRanOut as error:
                    self._fill_after(direct, error)
            else:
                with Uninterrupted():
                    version = self._commit_noted(direct) if direct.put(rows, sign) else None
            if self._notices.waiting:
                self._notices.deliver()
            return version

    def _direct_way(self, name: str) -> Direct | None:
        """Find the direct way into a table, for this call and those after it."""
        if name not in self._direct:
            self._direct[name] = direct_of(self._table(name), self._relations, self._versions)
        return self._direct[name]

    def _commit_noted(self, direct: Direct) -> int | None:
        """As ``_commit``, the direct way; None where the batch is refused."""
        log = None if self._directory is None else partial(self._log_batch, ((direct.table, Encoded(direct.batch())),))
        if self._dictionary.mark is not None:
            mark_columns(direct.batch(), direct.table.decoder.strings, self._dictionary)
        try:
            reported = direct.commit_noted(log)
        except MemoryRanOut as error:
            self._fill_after(direct, error)
        return None if reported is None else self._announce(reported, direct.deleted)

    def _fill_after(self, direct: Direct, error: MemoryRanOut) -> NoReturn:
        """After memory ran out on the direct way: fill the views again, and raise the error for the batch."""
        try:
            raise ran_out(direct.views, self._relations) from error
        except Broken as broken:
            self._give_up(broken)

    def _give_up(self, error: Broken) -> NoReturn:
        """The state could not be put back: refuse every call from now on."""
        self._unusable = f"{error}; open the database again"
        raise FreshviewsError(self._unusable) from error

    def _share_seconds(self) -> None:
        """Count what the direct ways took among the seconds of their tables and views."""
        for direct in self._direct.values():
            if direct is not None:
                direct.share_seconds()

    def _encode_whole(self, name: str, rows: Any, sign: int) -> tuple[TableState, Encoded]:
        """Encode rows with all their columns, as views may be created before they are committed."""
        if type(rows) is not list:
            rows = accepted(rows, name)
        with self._lock, Uninterrupted():
            table = self._table(name)
            encoded = table.encoder.whole().encode(rows, sign)
            held(encoded.batch, self._dictionary)
            return table, encoded

    def _commit_parts(self, changes: Changes, make: MakeVersion = commit) -> int:
        with self._lock:
            with Uninterrupted():
                self._check_usable()
                for table, _ in changes:
                    if table.closed:
                        raise CatalogError(f"table {table.name} was dropped while the batch was open")
                version = self._commit(changes, make)
            self._notices.deliver()
            return version

    def _commit(self, changes: Changes, make: MakeVersion = commit) -> int:
        """Make a version of encoded changes. Runs uninterrupted, with the lock held."""
        moves: Sequence[Callable[[], None]] = ()
        for table, _ in changes:
            if table.has_window:
                changes, moves = all_windowed(changes)
                break
        write_log = None if self._directory is None else partial(self._log_batch, changes)
        try:
            reported = make(changes, self._relations, write_log)
        except Broken as error:
            self._give_up(error)
        for move in moves:
            move()
        self._versions += 1
        return self._announce(reported, deleted_rows(changes))

    def _announce(self, reported: ViewChanges, deleted: int) -> int:
        """After a version: note the changes for subscribers, free strings, write a snapshot if it is time; returns the
        version. ``deleted``: the number of rows that it deleted."""
        version = self.version
        for view, batch in reported:
            if view.decoder.strings:
                held(batch, self._dictionary)
            change = Change(view.name, version, batch, view.decoder)
            for subscription in view.subscriptions:
                self._notices.add(subscription, change)
        self._collection.step(self._relations, deleted)
        if self._directory is not None:
            reach("version visible")
            if self._directory.snapshot_due:
                self._snapshot_if_possible()
        return version

    def _log_batch(self, changes: Changes) -> None:
        reach("batch applied")
        self._log(BATCH, self.version + 1, batch_payload(changes))

    @property
    def version(self) -> int:
        """The number of batches committed so far."""
        return int(self._versions[0])

    # Durability

    def snapshot(self) -> None:
        """Write a snapshot now, so that the log before it is not needed to open the database.

        It has the rows of the stored tables, and images of the views, by which the database opens without
        filling them again. Rows of trusted tables are not stored, so the views that read them live on in these
        images alone, which only a freshviews that plans the views in the same way can read. Raises
        StoreError where it cannot be written or the database lives in memory.
        """
        with self._lock:
            self._check_usable()
            if self._directory is None:
                raise StoreError("the database lives in memory; Database(path) makes one that is kept")
            with Uninterrupted():
                self._write_snapshot(self._directory)

    def write_image(self, folder: str | os.PathLike[str], *, sync: bool = True) -> None:
        """Write all of the database into a folder that is not there yet, whole or not at all.

        It holds strings, stored tables and views as they lie in memory, for ``from_image``; the definitions are
        left to the caller. ``sync``: it is on the disk before this returns. Raises StoreError.
        """
        with self._lock:
            self._check_usable()
            with Uninterrupted():
                write_database(Path(folder), self._relations, self._dictionary, sync)

    @classmethod
    def from_image(
        cls, folder: str | os.PathLike[str], statements: Sequence[Statement], *, verify: bool = False
    ) -> Database:
        """A database in memory that goes on from an image; ``statements`` are what would ``define`` it.

        The files are mapped, and read as they are touched; they may be deleted, but must not change. What the image
        lacks is new: tables are empty, views are backfilled, as are views with another definition or with other
        programs than those of the freshviews that wrote it. ``verify``: read large arrays at once and check their
        sums. The version is 0. Raises StoreError where a file is missing or
        damaged, a table is not what it was, or a view to be backfilled reads a trusted table that has had rows.
        """
        made = cls()
        made._relations = read_database(Path(folder), statements, made._dictionary, verify)
        return made

    def _write_snapshot(self, directory: Directory) -> None:
        records = snapshot_records(self._scripts, self._relations)
        write = partial(write_state, relations=self._relations, dictionary=self._dictionary)
        directory.write_snapshot(self.version, records, write)

    def _snapshot_if_possible(self) -> None:
        """The batch is committed; that no snapshot could be written only makes the log longer."""
        assert self._directory is not None
        try:
            self._write_snapshot(self._directory)
        except Exception as error:
            self._directory.postpone_snapshot()
            _LOGGER.warning("no snapshot was written: %s", error)

    def _log(self, kind: int, version: int, payload: bytes) -> None:
        if self._directory is None:
            return
        try:
            self._directory.append(kind, version, payload)
        except LogUncertain as error:
            self._unusable = str(error)
            raise

    # State

    def stats(self) -> dict[str, Any]:
        """What there is and what it cost: ``version``, ``strings``, and per table and view a dict.

        ``rows`` (None where they are not stored; equal rows of a table count once, or as often as they came),
        ``bytes``, ``updates`` (rows that came in), ``seconds``
        (spent on them); of views also ``strategy`` and ``replan``: the ``'freshviews.updates'`` by which ``replan``
        would at least halve the cost of updates, None where it would not or fewer than 10,000 updates have come.
        """
        with self._lock:
            self._check_usable()
            self._share_seconds()
            return {
                "version": self.version,
                "strings": self._dictionary.strings(),
                "tables": {t.name: t.stats() for t in self._relations.tables.values()},
                "views": {
                    v.name: {**v.stats(), "replan": advised(v, self._relations)}
                    for v in self._relations.views.values()
                },
            }

    @property
    def stored_rows(self) -> int:
        """Rows of the stored tables as they lie there, and of the views where none is stored: what an image's
        size goes by."""
        with self._lock:
            self._check_usable()
            stored = [table.stored for table in self._relations.tables.values() if table.stored is not None]
            if stored:
                return sum(table.rows for table in stored)
            sizes = [view.maintained.sizes() for view in self._relations.views.values()]
            return sum(rows for found in sizes for rows, _ in found.values())

    def bytes_of(self, name: str) -> int:
        """Bytes that a table or view keeps, internal views included; unlike ``stats`` it looks at no row."""
        with self._lock:
            self._check_usable()
            wanted = name.lower()
            held = self._relations.views.items()
            views = sum(v.maintained.bytes() for key, v in held if key == wanted or key.startswith(f"{wanted}#"))
            table = self._relations.tables.get(wanted)
            return views + (table.stored.bytes if table is not None and table.stored is not None else 0)

    def _leave_to_parent(self) -> None:
        """In a forked child: refuse every call from now on. Only the parent may write the directory."""
        assert self._directory is not None
        # A thread of the parent that does not run here may hold the lock.
        self._lock._at_fork_reinit()  # type: ignore[attr-defined]
        self._directory.leave()
        self._unusable = (
            f"{self._directory.path} is open in process {os.getppid()}, and this is a child forked from it; use the "
            "database in that process, or open it after the fork, in one process"
        )

    def close(self) -> None:
        """Give memory and files back. Readers that are open keep the rows of their version."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._relations.close()
            if self._directory is not None:
                self._directory.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        place = "in memory" if self._directory is None else str(self._directory.path)
        return f"<Database {place}, version {self.version}{', closed' if self._closed else ''}>"

    def _check_usable(self) -> None:
        if self._closed:
            raise FreshviewsError("the database is closed")
        if self._unusable is not None:
            raise FreshviewsError(self._unusable)

    def _table(self, name: str) -> TableState:
        """A table of an open database, by its name in any case. Raises CatalogError."""
        if self._closed or self._unusable is not None:
            self._check_usable()
        table = self._relations.tables.get(name.lower())
        if table is None:
            if name.lower() in self._relations.views or name.lower() in self._relations.plain:
                raise CatalogError(f"{name} is a view; rows go into and come from base tables")
            raise CatalogError(f"unknown table {name}{near(name, self.tables)}")
        return table

    @contextmanager
    def _guard(self, state: Relation) -> Iterator[RLock]:
        with self._lock:
            self._check_usable()
            if state.closed:
                raise CatalogError(f"{state.name} was dropped")
            yield self._lock
