"""Implements ``freshviews run``, which runs a script of streaming SQL on Spark."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import freshviews
from freshviews.cells import describe, plan_cells
from freshviews.cli.progress import Progress
from freshviews.cli.source import ReadError, Source
from freshviews.cli.stopping import Stopping
from freshviews.cli.streaming_script import checkpoint_of, definition_in, definition_of, message_with_place
from freshviews.errors import FreshviewsError, SourceError, SqlError
from freshviews.printable import say
from freshviews.spark.definition import Definition, catalog_of, declared_rows
from freshviews.spark.java import java_process
from freshviews.spark.phases import Phases
from freshviews.spark.reading.contents import status
from freshviews.spark.reading.disk import on_disk
from freshviews.spark.settings import need_spark, packages_with, settings_of
from freshviews.spark.state.checkpoint import check_store
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.store import Store
from freshviews.sql.statements.streaming import plain

if TYPE_CHECKING:
    from freshviews.spark.running_query import Query

METRICS_HOST = "127.0.0.1"
"""The default address of metrics: only this machine can reach it."""


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
    """Run a script until it is stopped or, with ``once``, until all current input is read. Returns the exit code.

    ``packages`` and ``conf``: packages and settings of Spark, from the command line. ``metrics_port``: the port of
    metrics while the script runs; None for no metrics.
    """
    definition = definition_of(name)
    settings = packages_with({**definition.settings, **settings_of(conf)}, packages)
    if not definition.tables:
        raise ReadError(f"{name}: the script has no streaming table; write CREATE STREAMING TABLE name (...) USING ...")
    store = checkpoint_of(name, checkpoint)
    check_store(store)
    need_spark()
    from freshviews.spark.pipeline import pipeline_alone
    from freshviews.spark.session import SPARK_ERRORS, reason, start_session

    phases = Phases()
    resume = _resume(name, once, master, checkpoint, packages, conf, metrics_port, metrics_host)
    served: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if metrics_port is not None:
        served = _metrics(definition, store, phases, metrics_host, metrics_port)
    progress = Progress(definition, as_json, phases)
    spark = None

    def at_once() -> str:
        # The version in progress has no manifest, so it does not count.
        progress.close()
        made = Manifests(store).versions()[-1:]
        return f"stopped immediately at version {made[0] if made else 0}; resume with: {resume}"

    with served, Stopping(at_once) as stopping, progress:
        try:
            progress.stage("starting Spark")
            start = time.monotonic()
            spark = start_session(master, settings, quiet=True)
            stopping.install()
            made = Manifests(store).versions()[-1:]
            begins = f"going on from version {made[0]}" if made else f"making {', '.join(progress.views)}"
            progress.stage(started_in(start, begins))
            pipeline = pipeline_alone(spark, definition, store.address, cells)
            query = pipeline.start(once=once, listener=progress.version, phases=phases)
            stopping.finishes = True
            progress.started()
            refilled = query.refilling
            added = [name for name in query.filling if name not in refilled]
            if added:
                names = ", ".join(added)
                say(f"{names}: backfill from stored rows is running; the stream continues", to=sys.stderr)
            if refilled:
                names = ", ".join(refilled)
                message = f"{names}: backfill with the new SELECT is running; the old SELECT is maintained until then"
                say(message, to=sys.stderr)
            return _wait(query, progress, stopping, resume)
        except KeyboardInterrupt:  # Spark's own handler raised it before ours was installed again
            stopping.end()
        except Exception as error:
            gone = java_is_gone(0.5)
            refused = isinstance(error, SPARK_ERRORS)
            if not gone and not refused and not isinstance(error, (FreshviewsError, OSError)):
                raise
            progress.close()
            if gone:
                message = _java_ended(store, resume)
            elif refused:
                message = f"Spark cannot run {name}: {reason(error)}{definition.remedy(reason(error))}"
            elif isinstance(error, SourceError):
                message = f"{name}: {error}"
            else:
                message = _message(error, store, resume)
            say(message, to=sys.stderr)
            return 1
        finally:
            progress.close()
            if spark is not None:
                end_session(spark)


def explain_cells(source: Source, name: str, cells: int) -> str:
    """The text of how this many cells would share the rows of a script. Samples its sources if it has any."""
    try:
        if plain(source.text) == source.text:
            catalog = catalog_of(source.text)
            declared = declared_rows(catalog)
            return describe(plan_cells(catalog, cells, declared), catalog, declared)
    except SqlError as error:
        raise ReadError(message_with_place(source, error)) from error
    definition = definition_in(source, name)
    need_spark()
    from freshviews.spark.driver.explain import explain_cells as explained
    from freshviews.spark.session import start_session

    spark = start_session("local[*]", definition.settings, quiet=True)
    try:
        return explained(spark, definition, cells)
    finally:
        end_session(spark)


@contextlib.contextmanager
def _metrics(definition: Definition, store: Store, phases: Phases, host: str, port: int) -> Iterator[None]:
    """Serve metrics within the context. Raises ServerError for a port in use, ReadError without the library."""
    if importlib.util.find_spec("prometheus_client") is None:
        raise ReadError("--metrics-port needs prometheus_client: pip install 'freshviews[spark]'")
    from freshviews.cli.metrics import PAGE, Numbers, Texts, metrics_page
    from freshviews.cli.serving.server import HttpServer

    started = time.time()
    sinks = {view.name: view.provider for view in definition.views if view.provider is not None}

    def numbers() -> Numbers:
        try:
            found = status(store, definition)
            # In other stores each scrape would cost a request per thousand objects.
            disk = on_disk(store) if store.is_local else {}
        except (FreshviewsError, OSError):
            found, disk = None, {}
        return Numbers(freshviews.__version__, started, phases.seconds, sinks, found, disk)

    server = HttpServer(host, port, metrics_page(Texts(numbers).text), option="metrics-")
    server.start()
    say(f"metrics: {server.address}{PAGE}", to=sys.stderr)
    try:
        yield
    finally:
        server.close()


def _wait(query: Query, progress: Progress, stopping: Stopping, resume: str) -> int:
    """Wait until the query ends or a stop is requested; returns the exit code."""
    while not stopping.asked:
        if query.awaitTermination(0.5):
            return 0
    query.stop()
    progress.close()
    failed = query.exception()
    if failed is not None:
        raise failed
    say(f"stopped at version {query.version}; resume with: {resume}", to=sys.stderr)
    return 0


def started_in(start: float, then: str) -> str:
    """The stage after Spark has started, which began to at the time ``start``."""
    return f"Spark has started in {time.monotonic() - start:.0f} s; {then}"


def java_is_gone(seconds: float) -> bool:
    """True if Spark's Java process has ended, or ends within ``seconds``."""
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

    message = "Spark's Java process was killed or ran out of memory; nothing is lost"
    note_error(store, FreshviewsError(message))
    return f"{message}; resume with: {resume}"


def end_session(spark: Any) -> None:
    """Stop Spark, even if its Java process is dead."""
    if not java_is_gone(0):
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
