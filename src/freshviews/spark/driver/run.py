"""Runs a pipeline: makes a version of each micro-batch, commits the version, and delivers it to the sinks.

1. Each row goes to the cells that need it. Python workers run the cells, and write files under fresh names.
2. If several cells share a group, a second engine, called the *merge*, combines the changes of this group.
3. The driver writes one manifest that names all files. This commits the version.
4. Sinks get the version, and the delivery is recorded.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from threading import Event, Lock, Thread, get_ident
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from freshviews.catalog.clock import is_clock
from freshviews.errors import SourceError
from freshviews.secrets import masked
from freshviews.spark.crash_points import reach
from freshviews.spark.definition import Definition
from freshviews.spark.driver.homes import homes_of
from freshviews.spark.driver.polling import referring
from freshviews.spark.driver.progress import Recent, count_rows
from freshviews.spark.driver.replaced_views import TakenBack, rows_taken_back, taken_back
from freshviews.spark.driver.stages import Results, can_go_on, touch_workers
from freshviews.spark.driver.stored_rows import as_columns_of, backfill, defined, stored_rows, stored_source
from freshviews.spark.driver.version import Input, PipelineError, ReadByWorkers, load_cells, make
from freshviews.spark.driver.view_backfill import Filling
from freshviews.spark.driver.windows import through_windows, windows_without_cells
from freshviews.spark.io.arrow_files import files_for_workers, opened_by_spark
from freshviews.spark.io.delivery import Deliveries, Sinks
from freshviews.spark.io.envelope_keys import routable
from freshviews.spark.io.polled import take
from freshviews.spark.io.replaced_sinks import check_replaced
from freshviews.spark.io.sinks import Receiver, check_new
from freshviews.spark.io.sources import Source, feed_of, needs_order, one_frame, reads_text
from freshviews.spark.layout.cell_count import first_layout
from freshviews.spark.layout.layout import MERGE, Layout, layout_of, next_layout
from freshviews.spark.layout.one_cell import check_cells
from freshviews.spark.phases import Phases
from freshviews.spark.reading.arrival import arrived, paths_of_batch
from freshviews.spark.state import checkpoint
from freshviews.spark.state.bundle import read_change
from freshviews.spark.state.calls import note_call, version_of
from freshviews.spark.state.cell import EMPTY
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.probe import NotSeen
from freshviews.spark.state.spark_files import SparkFiles
from freshviews.spark.state.stores.store import Store, requests
from freshviews.spark.worker.rows import Slots
from freshviews.stream import Snapshots

_LOGGER = logging.getLogger("freshviews")

TOUCH_EVERY = 30.0
"""Seconds without a version after which the workers get a task, so that Spark does not end them."""
CLOCK_EVERY = 30.0
"""Seconds without a version after which one without rows moves the clock, if a view reads it."""
COLLECT_EVERY = 50
"""Versions between two collections of unneeded files."""

_NOTHING = Manifest(0, -1, None, 0.0, {}, {})
"""The state before the first version."""

Listener = Callable[[Manifest], object]
"""Called with the manifest of every delivered version."""


class Stopped(Exception):
    """The micro-batch came after a stop was requested; the next run reads it."""


class Run:
    """The versions of one pipeline while its process runs.

    Only then does the next micro-batch begin. So after a crash at most the last version is undelivered, except to a
    sink that is behind.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        definition: Definition,
        receivers: Mapping[str, Receiver],
        listener: Listener | None,
        cells: int | None,
        phases: Phases,
    ) -> None:
        self.spark = spark
        self.store = store
        self.spark_files = SparkFiles(store)
        self.definition = definition
        self.manifests = Manifests(store)
        self.latest = self.manifests.latest()
        self.error: BaseException | None = None
        self.stopping = False
        self.goes_on = False
        self.working = Lock()
        self._maker: int | None = None
        """The thread that has the lock to make a version."""
        self._listener = listener
        self._deliveries = Deliveries(Sinks(spark, store, self.manifests, receivers))
        self._cells = cells
        self._phases = phases
        self.recent = Recent(phases)
        self._homes = homes_of(spark, store.address)
        self._ended = Event()
        self._layout: Layout | None = None
        self._receivers = receivers
        self._wanted: Definition | None = None
        self._replaced: tuple[str, ...] = ()
        self._filling: Filling | None = None
        self._warming: Thread | None = None
        self._unseen: NotSeen | None = None
        self._by_spark: str | None = None
        """The reason for which Spark reads all files."""

    @property
    def layout(self) -> Layout:
        """The cells; available after ``begin``."""
        assert self._layout is not None
        return self._layout

    def begin(self, streaming: Sequence[Source], static: Sequence[Source], goes_on: bool) -> None:
        """Deliver a version that a crash left undelivered, and make a version of new batch sources and views.

        ``goes_on``: the run does not end by itself, so ``fill`` backfills new views, and the run continues while a sink
        refuses a version. Raises CheckpointError if the checkpoint cannot be continued.
        """
        self.goes_on = self._deliveries.patient = goes_on
        try:
            self._begin(streaming, static)
        except BaseException:
            self._deliveries.stop()
            raise
        if goes_on:
            InheritableThread(target=self._keep_workers, daemon=True).start()

    def _keep_workers(self) -> None:
        """Give the workers a task now and then while no version is made, until the run ends."""
        before = None
        while not self._ended.wait(TOUCH_EVERY):
            if self.latest is before and self.working.acquire(blocking=False):
                try:
                    touch_workers(self.spark, self._homes.partitions(self.layout.cells))
                except (PySparkException, Py4JError, AttributeError):
                    return  # Spark is gone; the run reports that
                finally:
                    self.working.release()
            before = self.latest

    def _begin(self, streaming: Sequence[Source], static: Sequence[Source]) -> None:
        before = self.latest
        self.spark_files.restore(before.spark if before is not None else ())
        check_new(self.definition, before.views if before is not None else ())
        if before is None:
            self._layout = first_layout(self.spark, self.definition, [*streaming, *static], self._cells)
            rows, positions = self._take_sources(_NOTHING, static)
            self._load(_NOTHING, rows, positions=positions)
            return
        checkpoint.check_query(self.spark_files.folder, before)
        base = self._resume(before, [source.table.name for source in streaming], self._deliveries.patient)
        due = [
            source
            for source in static
            if source.spec.poll is not None
            or isinstance(source.form, Snapshots)
            or source.table.name not in base.loaded
        ]
        for source in static:
            if source not in due:
                _LOGGER.warning(
                    "the DataFrame of table %s was read by an earlier start, and start reads a DataFrame only once; "
                    "give further rows to Pipeline.advance",
                    source.table.name,
                )
        due, positions = self._take_sources(base, due)
        if due or self.layout.reads_clock:
            self._load(base, due, positions=positions)

    def advance(self, given: Sequence[Source], call: str) -> int:
        """Make a version of given rows, deliver it, and return its number. A version that already has the rows of this
        ``call`` is returned unchanged."""
        before = self.latest
        known = version_of(self.store, call, before) if call else None
        check_new(self.definition, before.views if before is not None else ())
        base = _NOTHING
        if before is None:
            self._layout = first_layout(self.spark, self.definition, given, self._cells)
        else:
            base = self._resume(before, before.sources or (), False)
        if known is not None:
            return known
        self._load(base, given, call)
        assert self.latest is not None
        note_call(self.store, self.latest)
        return self.latest.version

    def _resume(self, before: Manifest, streaming: Sequence[str], aside: bool) -> Manifest:
        """Deliver a version that a crash left undelivered, and continue from it; before that, record its call."""
        note_call(self.store, before)
        found = checkpoint.difference(before, self.definition, streaming)
        check_replaced(self.definition, before, found.views, self._receivers, bool(found.tables))
        is_due = self._deliveries.version < before.version
        held = self.definition.over(before.views, before.script, before.aggregates)
        with self._phases.timed("sinks"):
            self._deliveries.resume(held, before, lambda: self.stopping)
        if is_due and self._listener is not None:
            self._listener(before)
        old = layout_of(before)
        cells = old.cells if self._cells is None else self._cells
        check_cells(self.definition, self.definition.catalog, cells)
        if found.tables or cells != old.cells:
            return self._split_anew(before, old, cells, found.tables, found.views)
        return self._continue(before, held if aside else None, found.views)

    def warm(self) -> None:
        """Load the cells of the last version into workers, in the background, while Spark prepares its first
        micro-batch.

        Errors are ignored here, except that a worker writes elsewhere; they are reported when the cells are needed.
        """
        latest = self.latest
        if latest is None:
            return
        layout = layout_of(latest)

        def load() -> None:
            # AttributeError: PySpark's, of a session that a run without input has ended meanwhile.
            with contextlib.suppress(PySparkException, Py4JError, AttributeError):
                try:
                    load_cells(self.spark, self.store, layout, latest, self._homes)
                except NotSeen as error:
                    self._unseen = error

        self._warming = InheritableThread(target=load, daemon=True)
        self._warming.start()

    def _take_sources(
        self, base: Manifest, sources: Sequence[Source]
    ) -> tuple[list[Source], dict[str, dict[str, Any]]]:
        """Sources with the rows for the version after ``base``, and the positions of polled ones, which are left out if
        they have no new rows."""
        rows: list[Source] = []
        positions: dict[str, dict[str, Any]] = {}
        for source in self._children_first(sources):
            name = source.table.name
            if source.spec.poll is None:
                rows.append(source)
                continue
            found = take(self.store, source, base.polled.get(name), name in base.loaded)
            if found is not None:
                rows.append(found.source)
                positions[name] = found.position
        return rows, positions

    def _children_first(self, sources: Sequence[Source]) -> list[Source]:
        """Sources in the order in which they are read. A script declares a table after those that it refers to; it is
        read before them, so the rows that its rows refer to are there."""
        names = [table.name for table in self.definition.tables]
        return sorted(sources, key=lambda source: names.index(source.table.name), reverse=True)

    def poll(self, sources: Sequence[Source]) -> dict[str, SourceError]:
        """Make a version of the new rows of polled tables, if there are any, and return the errors of unreadable ones.
        Tables that refer to these are left to the next poll. Raises Stopped after a stop."""
        assert self.latest is not None
        failed: dict[str, SourceError] = {}
        rows: list[Source] = []
        positions: dict[str, dict[str, Any]] = {}
        # No other thread moves the positions, so a database that answers late stops no micro-batch.
        for source in self._children_first(sources):
            try:
                found, position = self._take_sources(self.latest, [source])
            except SourceError as error:
                failed[source.table.name] = error
                continue
            rows += found
            positions |= position
        # The rows that its rows refer to may be missing.
        left = referring(sources, failed)
        rows = [source for source in rows if source.table.name not in left]
        positions = {name: one for name, one in positions.items() if name not in left}
        if rows:
            with self._base_of_next() as latest:
                self._load(latest, rows, whole=False, positions=positions)
        return failed

    def _load(
        self,
        base: Manifest,
        sources: Sequence[Source],
        call: str | None = None,
        *,
        whole: bool = True,
        positions: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    ) -> None:
        """Make the version after ``base`` with the rows of batch sources, which are not read again, or of a ``call``.
        ``positions``: those of tables that are polled. ``whole``: every cell runs.
        """
        given = None
        if sources:
            sources = routable(sources, self.layout.cells)
            frame, slots = one_frame(sources)
            given = self.input_of(frame, sources, slots)
        loaded = {*base.loaded, *(source.table.name for source in sources if call is None)}
        # After rows that were taken in another way, a position does not identify new rows.
        taken = {source.table.name for source in sources}
        polled = {name: one for name, one in base.polled.items() if name not in taken} | dict(positions)
        base = replace(base, loaded=sorted(loaded), arrived=None, call=call or "", polled=polled)
        self._make(base, given, whole=(whole and call is None) or base.version == 0)

    def _continue(self, before: Manifest, held: Definition | None, replaced: tuple[str, ...]) -> Manifest:
        """Continue from the cells of a version; added, dropped or ``replaced`` views make a version of their own. If
        there is a definition ``held`` of the views that the version has, it continues with that one until ``fill``."""
        old = layout_of(before)
        views = {view.name: view.sql for view in self.definition.views}
        tables = self.definition.table_statements
        readable = can_go_on(self.store, old, before.cells.get(MERGE, EMPTY))
        added = self.definition.added(before.views)
        if held is not None and (added or replaced) and before.views and tables == before.tables and readable:
            self._wanted, self.definition, self._replaced = self.definition, held, replaced
            self._layout = old
            return before
        if views == before.views and tables == before.tables and not replaced and readable:
            self._layout = old
            return before
        self._layout = next_layout(old, self.definition, before, replaced)
        given = backfill(old.roles, self._layout, lambda table: stored_rows(self.spark, self.store, old, before, table))
        rebuild = self._rebuilds(old, replaced) or not readable
        rows = rows_taken_back(self.store, before, replaced)
        back = taken_back(self.store, rows, (), old.catalog, self._layout.catalog)
        base = self._without_dropped(before, old, replaced)
        self._make(base, given, whole=True, rebuild=rebuild, back=back)
        assert self.latest is not None
        return self.latest

    def _rebuilds(self, old: Layout, replaced: Collection[str]) -> bool:
        """True if the merge of the layout cannot continue from that of an older one. With the same statements, the
        cells of a replaced view may give it other rows."""
        return bool(replaced) or self.layout.merge_statements != old.merge_statements

    def _split_anew(
        self, before: Manifest, old: Layout, cells: int, changed: Sequence[str], replaced: Sequence[str]
    ) -> Manifest:
        """Continue with another number of cells, other columns of tables, or other SELECTs of views: all stored rows go
        to their cells, and the views are rebuilt. Only views that are ``replaced`` have a change: their new rows minus
        their old ones."""
        trusted = [table.name for table in old.catalog.tables.values() if table.trusted]
        if trusted:
            raise checkpoint.CheckpointError(
                f"{self.store.address}: columns, SELECTs and the number of cells ({old.cells}) cannot change, "
                f"because table {trusted[0]} is trusted; leave all of these as they were, or begin with a new "
                "checkpoint"
            )
        _LOGGER.info("all stored rows are routed anew, to %d cells", cells)
        catalog = self.definition.catalog
        known = (role.table for role in old.roles if not is_clock(role.table))
        tables = dict.fromkeys(table for table in known if catalog.table(table) is not None)
        stored = {name: stored_rows(self.spark, self.store, old, before, name).persist() for name in tables}
        rows = {name.lower(): as_columns_of(defined(catalog, name), frame) for name, frame in stored.items()}
        try:
            sources = [stored_source(catalog, name, rows[name.lower()]) for name in tables]
            self._layout = first_layout(self.spark, self.definition, sources, cells)
            without = [role for role in self._layout.roles if role.table.lower() not in rows]
            given = backfill(without, self._layout, lambda table: rows[table.lower()])
            had = rows_taken_back(self.store, before, replaced)
            back = taken_back(self.store, had, (), old.catalog, catalog)
            base = windows_without_cells(self._without_dropped(before, old, replaced), old, self._layout, changed)
            base = replace(base, contents={})
            self._make(base, given, whole=True, rebuild=True, back=back)
        finally:
            for frame in stored.values():
                frame.unpersist()
        assert self.latest is not None
        return self.latest

    @property
    def fills(self) -> tuple[str, ...]:
        """The views to backfill while the stream continues."""
        wanted, replaced = self._wanted, self._replaced
        return () if wanted is None or self.latest is None else (*wanted.added(self.latest.views), *replaced)

    @property
    def refills(self) -> tuple[str, ...]:
        """The views among them that exist with another SELECT; they continue with it until then."""
        return self._replaced

    def fill(self) -> None:
        """Backfill the new views and those with another SELECT, and continue with them. Raises PipelineError, and
        Stopped after a stop."""
        wanted, old, replaced = self._wanted, self.layout, self._replaced
        assert wanted is not None
        with self._base_of_next() as at:
            new = next_layout(old, wanted, at, replaced)
            filling = self._filling = Filling(self.spark, self.store, old, new, at, self.fills, replaced)
            _LOGGER.info("%s: backfill as of version %d; the stream continues", ", ".join(self.fills), at.version)
        rows = rows_taken_back(self.store, at, replaced)
        filling.run()
        with self._base_of_next() as latest:
            later = map(self.manifests.read, range(at.version + 1, latest.version + 1))
            back = taken_back(self.store, rows, later, old.catalog, new.catalog)
            self._layout, self.definition, self._wanted, self._filling, self._replaced = new, wanted, None, None, ()
            base = self._without_dropped(filling.finished(latest), old, replaced)
            rebuild = self._rebuilds(old, replaced)
            self._make(base, filling.missed(latest), whole=True, rebuild=rebuild, back=back)

    @contextlib.contextmanager
    def _base_of_next(self) -> Iterator[Manifest]:
        """The last version, as the base of the next one; no other thread makes one meanwhile. After an error in the
        block no thread makes another one, which would skip a version that a sink does not have. Raises Stopped then,
        and after a stop."""
        with self.working:
            if self.stopping or self.error is not None:
                raise Stopped
            assert self.latest is not None
            self._maker = get_ident()
            try:
                yield self.latest
            except Stopped:
                raise
            except BaseException as error:
                self.error = error
                raise
            finally:
                self._maker = None

    def is_made_here(self) -> bool:
        """True if this thread makes a version: a listener or a sink runs within it."""
        return self._maker == get_ident()

    def keep_time(self) -> None:
        """Make versions without rows while none is made from rows, until the run ends, so that rows leave views that
        read the clock. Raises PipelineError, and Stopped after a stop."""
        before = self.latest
        while not self._ended.wait(CLOCK_EVERY):
            if self.latest is before and self.layout.reads_clock:
                with self._base_of_next() as base:
                    self._make(replace(base, arrived=None, call=""), None)
            before = self.latest

    def stop(self) -> None:
        """Finish the current version and make no other."""
        self.stopping = True
        self._ended.set()
        with self.working:
            if self._filling is not None:
                self._filling.cancel()
        self._deliveries.stop()

    def release(self) -> None:
        """Stop all threads of the run: another run may follow."""
        self._ended.set()
        self._deliveries.stop()

    def fail(self, error: BaseException) -> None:
        """End with an error; only the first error is kept."""
        if self.error is None or self.error is error:
            self.error = error
            self.definition.hide_secrets(error)
            note_error(self.store, error)
        self._ended.set()
        self._deliveries.stop()

    def _without_dropped(self, before: Manifest, old: Layout, replaced: Collection[str]) -> Manifest:
        """A version of the layout ``old`` without the views and tables that were dropped, and those that are replaced.
        """
        layout = self.layout
        reported = {*layout.cell_views, *layout.merge_views, *(role.name for role in layout.roles)}
        reported |= set(layout.windowed.values())
        reported -= {name for view in replaced for one in (old, layout) for name in one.held(view)}
        sizes = {cell: {n: size for n, size in held.items() if n in reported} for cell, held in before.sizes.items()}
        kept = layout.outputs.keys() - set(replaced)
        contents = {view: files for view, files in before.contents.items() if view in kept}
        views = {view: sql for view, sql in before.views.items() if view not in replaced}
        stored = {view: count for view, count in before.stored.items() if view in kept}
        loaded = [name for name in before.loaded if layout.catalog.table(name) is not None]
        polled = {name: one for name, one in before.polled.items() if layout.catalog.table(name) is not None}
        known = replace(before, sizes=sizes, contents=contents, loaded=loaded, polled=polled, arrived=None, call="")
        return replace(known, views=views, stored=stored)

    def input_of(self, frame: DataFrame, sources: Sequence[Source], slots: Sequence[Slots]) -> Input:
        """The rows of sources, with their feeds."""
        roles = [self.layout.plan.roles_of(source.table.name) for source in sources]
        feeds = [
            tuple(feed_of(source, names, role.name, self.layout.counted(role)) for role in own)
            for source, names, own in zip(sources, slots, roles, strict=True)
        ]
        windowed = {
            number: feed_of(source, names, source.table.name, frozenset([self.layout.cells]))
            for number, (source, names) in enumerate(zip(sources, slots, strict=True))
            if source.table.name in self.layout.windowed
        }
        return Input(frame, feeds, roles, any(map(needs_order, sources)), any(map(reads_text, sources)), windowed)

    def micro_batch(self, frame: DataFrame, slots: Sequence[Slots], batch: int, streaming: Sequence[Source]) -> None:
        """Called by foreachBatch. A micro-batch that is committed already is ignored. Rows that workers read by
        themselves are not read from ``frame``."""
        try:
            with self._base_of_next() as before:
                reach("batch begun")
                given = self.input_of(frame, streaming, slots)
                given = replace(given, read=self._read_by_workers(given, batch, streaming))
                self._micro_batch(before, given, batch, streaming)
                if self.latest is not before:
                    self._note_reading(given)
        except Stopped:
            raise
        except BaseException as error:
            self.fail(error)
            raise

    def _read_by_workers(self, given: Input, batch: int, streaming: Sequence[Source]) -> ReadByWorkers | None:
        """The files of a micro-batch, if workers may read them."""
        if self._by_spark is None:
            zone = str(self.spark.conf.get("spark.sql.session.timeZone"))
            reasons = map(partial(opened_by_spark, zone), streaming, given.roles)
            self._by_spark = "windows of several cells" if given.windowed else next(filter(None, reasons), None)
        if self._by_spark is not None:
            return None
        count = len(streaming)
        listed = [paths_of_batch(self.spark_files.folder, batch, number, count) for number in range(count)]
        files = files_for_workers(listed, streaming, given.roles)
        return None if files is None else ReadByWorkers(files)

    def _note_reading(self, given: Input) -> None:
        """Report the rows that workers have read to Spark; if they could not, Spark reads all files from now on."""
        made, read = self.latest, given.read
        if read is not None and read.refused is not None:
            self._by_spark = read.refused
            _LOGGER.info("Spark reads all files from now on: %s", read.refused)
        elif read is not None and made is not None and made.query is not None:
            sources = [feed.source for own in given.feeds for feed in own]
            count_rows(self.spark, made.query, [made.rows.get(sources[files.first], 0) for files in read.files])

    def _micro_batch(self, before: Manifest, given: Input, batch: int, streaming: Sequence[Source]) -> None:
        query = checkpoint.spark_query(self.spark_files.folder)
        if before.query is not None and query != before.query:
            checkpoint.check_query(self.spark_files.folder, before)
        if batch == before.batch:
            return
        if batch != before.batch + 1:
            raise checkpoint.CheckpointError(
                f"{self.store.address}: micro-batch {batch} does not follow micro-batch {before.batch} of version "
                f"{before.version}; the folders of the checkpoint are of different times: restore all of them from one "
                "backup, or begin with a new checkpoint"
            )
        names = [source.table.name for source in streaming]
        base = replace(
            before,
            batch=batch,
            query=query,
            sources=names,
            arrived=arrived(self.spark_files.folder, batch),
            call="",
        )
        self._make(base, given, saved=requests().submit(self.spark_files.save, before.spark))

    def _make(
        self,
        base: Manifest,
        given: Input | None,
        *,
        whole: bool = False,
        rebuild: bool = False,
        saved: Future[list[str]] | None = None,
        back: TakenBack | None = None,
    ) -> None:
        """Make and deliver the version after ``base``, which holds the fields of the version that are known already.

        ``back``: the deleted rows of views that have another SELECT in this version. ``saved``: the objects with
        Spark's files, which are written meanwhile.
        """
        if self._warming is not None:
            self._warming.join()
            self._warming = None
            if self._unseen is not None:
                raise PipelineError(f"version {base.version + 1} cannot be made: {self._unseen}")
        specs = {table.name: table for table in self.definition.tables}
        still = {name: one for name, one in base.polled.items() if name not in specs or specs[name].poll is not None}
        base = replace(base, polled=still)
        try:
            before: Results = ()
            if given is not None and given.windowed:
                before, given = through_windows(
                    self.spark, self.store, self.layout, base, given, self._phases, self._homes
                )
            manifest = make(
                self.spark,
                self.store,
                self.layout,
                self.definition,
                base,
                given,
                self._phases,
                self._homes,
                before=before,
                whole=whole,
                rebuild=rebuild,
                log_only=self._filling is not None,
            )
            manifest = self._take_back_replaced(manifest, back or TakenBack())
            with self._phases.timed("manifest"):
                if saved is not None:
                    manifest = replace(manifest, spark=saved.result())
                self.manifests.commit(manifest)
        except ConnectionError:
            raise  # Spark's Java process is gone; the disk works
        except OSError as error:
            reason = checkpoint.cannot_write(self.store, error)
            raise PipelineError(f"version {base.version + 1} cannot be made: {reason}") from error
        self.latest = manifest
        self._deliver(manifest)
        if manifest.version % COLLECT_EVERY == 0:
            with self._phases.timed("collect"):
                held = self._filling.since if self._filling is not None else None
                checkpoint.collect(self.store, self.manifests, needed_from=self._deliveries.oldest, held=held)
        self.recent.add(manifest, of_batch=saved is not None)

    def _take_back_replaced(self, made: Manifest, back: TakenBack) -> Manifest:
        """A version whose changes of replaced views delete their old rows."""
        changes = {view: [name, *made.changes.get(view, ())] for view, name in back.changes.items()}
        changed = dict(made.changed)
        for view, names in changes.items():
            rows = read_change(self.store, names)
            changed[view] = 0 if rows is None else rows.num_rows
        return replace(
            made,
            changes={**made.changes, **changes},
            changed={view: count for view, count in changed.items() if count},
            refilled=list(back.views),
            gone={view: [name] for view, name in back.gone.items()},
        )

    def _deliver(self, manifest: Manifest) -> None:
        with self._phases.timed("sinks"):
            self._deliveries.deliver(self.definition, manifest, lambda: self.stopping)
        if self._listener is not None:
            self._listener(manifest)


def note_error(store: Store, error: BaseException | None) -> None:
    """Record the error that ended a run for ``status``; None clears it."""
    # On a full disk this fails too; the user must see the first error.
    with contextlib.suppress(OSError):
        store.write("error", b"" if error is None else masked(f"{error}").encode())
