"""``freshviews run``, ``status`` and ``query``: a script of streaming SQL on Spark."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from freshviews.cells import describe, plan_cells
from freshviews.cli.progress import Progress, duration, size
from freshviews.cli.report import error_text
from freshviews.cli.script import ReadError, ScriptError, Source, read
from freshviews.cli.stopping import Stopping
from freshviews.errors import FreshviewsError, SqlError
from freshviews.spark.definition import Definition, catalog_of, declared_rows
from freshviews.spark.java import java_process
from freshviews.spark.phases import Phases
from freshviews.spark.reading.contents import latest, status
from freshviews.spark.reading.select import select
from freshviews.spark.script import read_script
from freshviews.spark.settings import need_spark, packages_with, settings_of
from freshviews.spark.state.checkpoint import check_store
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store
from freshviews.sql.statements.streaming import plain

if TYPE_CHECKING:
    from freshviews.spark.running_query import Query

METRICS_HOST = "127.0.0.1"
"""Where metrics are served unless the command line says otherwise: for this machine alone."""


def definition_of(name: str) -> Definition:
    """The pipeline of a script. Raises ReadError with the place in the file."""
    source = read(name)
    folder = Path.cwd() if name == "-" else Path(name).absolute().parent
    try:
        return read_script(source.text, folder)
    except SqlError as error:
        raise ReadError(_placed(source, error)) from error


def _placed(source: Source, error: SqlError) -> str:
    message = str(error).removeprefix(f"line {error.line}, column {error.column}: ")
    return error_text(source, ScriptError(message, error.line, error.column))


def checkpoint_of(name: str, given: str | None) -> Store:
    """The checkpoint's store: at the address given, or in a folder beside the script. Raises AddressError."""
    return store_of(given if given is not None else Path(name).absolute().with_suffix(".checkpoint"))


def run_script(
    name: str,
    once: bool,
    master: str | None,
    checkpoint: str | None,
    as_json: bool,
    cells: int | None = None,
    packages: str | None = None,
    conf: Sequence[str] = (),
    metrics_port: int | None = None,
    metrics_host: str = METRICS_HOST,
) -> int:
    """Run a script until it is stopped, or, with ``once``, until all current input is taken. Returns the exit code.

    ``packages`` and ``conf``: what Spark loads, and its settings, as the command line gives them. ``metrics_port``:
    where metrics are served while it runs; None: nowhere.
    """
    definition = definition_of(name)
    settings = packages_with({**definition.settings, **settings_of(conf)}, packages)
    if not definition.tables:
        raise ReadError(f"{name}: there is no streaming table; CREATE STREAMING TABLE name (...) USING ... makes one")
    store = checkpoint_of(name, checkpoint)
    check_store(store)
    need_spark()
    from freshviews.spark.pipeline import Pipeline
    from freshviews.spark.session import SPARK_ERRORS, reason, start_session

    phases = Phases()
    resume = _resume(name, once, master, checkpoint, packages, conf, metrics_port, metrics_host)
    served: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if metrics_port is not None:
        served = _metrics(definition, store, phases, metrics_host, metrics_port)
    progress = Progress(definition, as_json)
    spark = None

    def at_once() -> str:
        # The version in progress has no manifest yet, so nothing of it counts.
        progress.close()
        made = Manifests(store).versions()[-1:]
        return f"stopped at once at version {made[0] if made else 0}; resume with: {resume}"

    with served, Stopping(at_once) as stopping, progress:
        try:
            spark = start_session(master, settings, quiet=True)
            stopping.install()
            if stopping.asked:
                return 0
            pipeline = Pipeline.of(spark, definition, store.address, cells=cells)
            query = pipeline.start(once=once, listener=progress.version, phases=phases)
            if query.filling:
                names = ", ".join(query.filling)
                print(f"{names}: backfill from the stored rows is running, the stream continues", file=sys.stderr)
            return _wait(query, progress, stopping, resume)
        except Exception as error:
            gone = _java_is_gone(0.5)
            refused = isinstance(error, SPARK_ERRORS)
            if not gone and not refused and not isinstance(error, (FreshviewsError, OSError)):
                raise
            progress.close()
            if gone:
                message = _java_ended(store, resume)
            elif refused:
                message = f"Spark cannot run {name}: {reason(error)}"
            else:
                message = _message(error, store, resume)
            print(message, file=sys.stderr)
            return 1
        finally:
            progress.close()
            if spark is not None:
                _end_session(spark)


def explain_cells(name: str, cells: int) -> str:
    """Print how this many cells would share the rows of a script. Samples its sources if it has any."""
    source = read(name)
    try:
        streaming = plain(source.text) != source.text
        if not streaming:
            catalog = catalog_of(source.text)
            declared = declared_rows(catalog)
            return describe(plan_cells(catalog, cells, declared), catalog, declared)
    except SqlError as error:
        raise ReadError(_placed(source, error)) from error
    definition = definition_of(name)
    need_spark()
    from freshviews.spark.explain import explain_cells as explained
    from freshviews.spark.session import start_session

    spark = start_session("local[*]", definition.settings, quiet=True)
    try:
        return explained(spark, definition, cells)
    finally:
        _end_session(spark)


@contextlib.contextmanager
def _metrics(definition: Definition, store: Store, phases: Phases, host: str, port: int) -> Iterator[None]:
    """Serve metrics within a block. Raises MetricsError if the port cannot be taken, ReadError without the library."""
    if importlib.util.find_spec("prometheus_client") is None:
        raise ReadError("--metrics-port needs prometheus_client: pip install 'freshviews[spark]'")
    from freshviews.cli.metrics import Numbers, Texts
    from freshviews.cli.metrics_server import MetricsServer

    started = time.time()
    try:
        release = version("freshviews")
    except PackageNotFoundError:
        release = ""
    sinks = {view.name: view.provider for view in definition.views if view.provider is not None}

    def numbers() -> Numbers:
        try:
            found = status(store, definition)
        except (FreshviewsError, OSError):
            found = None
        return Numbers(release, started, phases.seconds, sinks, found)

    server = MetricsServer(host, port, Texts(numbers).text)
    server.start()
    print(f"metrics: {server.address}", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        server.close()


def _wait(query: Query, progress: Progress, stopping: Stopping, resume: str) -> int:
    """Wait until the query ends or a stop is requested."""
    while not stopping.asked:
        if query.awaitTermination(0.5):
            return 0
    query.stop()
    progress.close()
    failed = query.exception()
    if failed is not None:
        raise failed
    print(f"stopped at version {query.version}; resume with: {resume}", file=sys.stderr, flush=True)
    return 0


def _java_is_gone(seconds: float) -> bool:
    """True if Spark's Java process has ended, or ends within some seconds."""
    process = java_process()
    if process is None:
        return False
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _java_ended(store: Store, resume: str) -> str:
    from freshviews.spark.driver.run import note_error

    message = "Spark's Java process has ended, killed or out of memory; nothing is lost"
    note_error(store, FreshviewsError(message))
    return f"{message}; resume with: {resume}"


def _end_session(spark: Any) -> None:
    """Stop Spark, even if its Java process is dead."""
    if not _java_is_gone(0):
        with contextlib.suppress(Exception):
            spark.stop()


def _message(error: Exception, store: Store, resume: str) -> str:
    """The message of an error, with the remedy if a disk is full."""
    if os.strerror(errno.ENOSPC) in str(error) and "start again" not in str(error):
        safe = f"every committed version is safe in {store.address}"
        return f"{error}; {safe}: free some space, then resume with: {resume}"
    return str(error)


def _resume(
    name: str,
    once: bool,
    master: str | None,
    checkpoint: str | None,
    packages: str | None,
    conf: Sequence[str],
    metrics_port: int | None,
    metrics_host: str,
) -> str:
    words = ["freshviews run", name]
    words += ["--once"] if once else []
    words += [f"--master {master}"] if master else []
    words += [f"--checkpoint {checkpoint}"] if checkpoint else []
    words += [f"--packages {shlex.quote(packages)}"] if packages else []
    words += [f"--conf {shlex.quote(one)}" for one in conf]
    words += [f"--metrics-port {metrics_port}"] if metrics_port is not None else []
    words += [f"--metrics-host {metrics_host}"] if metrics_port is not None and metrics_host != METRICS_HOST else []
    return " ".join(words)


def show_status(name: str, checkpoint: str | None, as_json: bool) -> None:
    """Print the status of a script's pipeline."""
    found = status(checkpoint_of(name, checkpoint), _definition_if_fine(name))
    if as_json:
        print(json.dumps(asdict(found)))
        return
    state = {True: "running", False: "not running", None: "whether it runs is not known there"}[found.running]
    print(f"version {found.version} ({state}), made {duration(found.age)} ago, delivered up to {found.delivered}")
    print(f"lag {duration(found.lag)} from the newest input to its version; {_behind(found.waiting)}")
    for table, numbers in found.tables.items():
        aside = f", {numbers['bad']:,} set aside" if numbers["bad"] else ""
        print(f"table {table}: {numbers['rows']:,} rows in, {size(numbers['bytes'])}{aside}")
    for view, numbers in found.views.items():
        rows = f"{numbers['rows']:,} rows, " if "rows" in numbers else ""
        print(f"view {view}: {rows}{numbers['changed']:,} changes out, {size(numbers['bytes'])}")
    for view in found.filling:
        absent = found.running is False
        print(f"view {view}: {'not there yet; run the script to have it filled' if absent else 'being filled'}")
    for view, numbers in found.sinks.items():
        if numbers["backlog"] or numbers["failures"]:
            print(f"sink of {view}: refused {numbers['failures']:,} times, versions that wait: {numbers['backlog']}")
    if found.error:
        print(f"last error: {found.error}")


def _behind(waiting: dict[str, int]) -> str:
    if not waiting:
        return "what waits is not known"
    files = ", ".join(f"{count:,} of {table}" for table, count in waiting.items() if count)
    return f"files that wait: {files}" if files else "no files wait"


def _definition_if_fine(name: str) -> Definition | None:
    """The script, if it can be read: it only says where waiting files are, and the checkpoint has the rest."""
    try:
        return definition_of(name)
    except FreshviewsError:
        return None


def query_script(name: str, sql: str, checkpoint: str | None, as_json: bool) -> None:
    """Print the result of a SELECT over the views at the last committed version."""
    store = checkpoint_of(name, checkpoint)
    latest(store)
    found = select(store, sql)
    if as_json:
        for row in found.to_pylist():
            print(json.dumps(row, default=str, ensure_ascii=False))
        return
    table = Table(*found.schema.names, box=None, pad_edge=False, header_style="bold")
    for row in found.to_pylist():
        table.add_row(*("NULL" if value is None else str(value) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 1000).print(table)
