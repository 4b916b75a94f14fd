"""``freshviews run``, ``status`` and ``query``: a script of streaming SQL on Spark."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from freshviews.cli.report import error_text
from freshviews.cli.script import ReadError, ScriptError, Source, read
from freshviews.errors import FreshviewsError, SqlError
from freshviews.spark.checkpoint import checkpoint_path
from freshviews.spark.definition import Definition
from freshviews.spark.manifest import Manifest
from freshviews.spark.reading import latest, status
from freshviews.spark.script import read_script


def definition_of(name: str) -> Definition:
    """The pipeline of a script. Raises ReadError with the place in the file of what is wrong."""
    source = read(name)
    folder = Path.cwd() if name == "-" else Path(name).absolute().parent
    try:
        return read_script(source.text, folder)
    except SqlError as error:
        raise ReadError(_placed(source, error)) from error


def _placed(source: Source, error: SqlError) -> str:
    message = str(error).removeprefix(f"line {error.line}, column {error.column}: ")
    return error_text(source, ScriptError(message, error.line, error.column))


def checkpoint_of(name: str, given: str | None) -> Path:
    """The checkpoint's folder: as given, or beside the script."""
    return checkpoint_path(given) if given is not None else Path(name).absolute().with_suffix(".checkpoint")


def run_script(name: str, once: bool, master: str | None, checkpoint: str | None, as_json: bool) -> int:
    """Run a script until it is stopped, or until what is there is in; the exit code comes back."""
    definition = definition_of(name)
    root = checkpoint_of(name, checkpoint)
    _need_spark()
    from freshviews.spark.pipeline import Pipeline
    from freshviews.spark.session import start_session

    spark = start_session(master, quiet=True)
    told = _Told(list(definition.views), as_json)
    resume = _resume(name, once, master, checkpoint)
    try:
        with told:
            query = Pipeline.of(spark, definition, root).start(once=once, listener=told.version)
            return _wait(query, told, resume)
    except (FreshviewsError, OSError) as error:
        print(str(error), file=sys.stderr)
        return 1
    finally:
        spark.stop()


def _need_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise ReadError("this needs pyspark: pip install 'freshviews[spark]' (and [java], where there is no Java)")


def _wait(query: Any, told: _Told, resume: str) -> int:
    asked = 0

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            # Whatever is being made has no manifest yet, so nothing of it counts.
            told.__exit__()
            print(f"stopped at once at version {query.version}; go on with: {resume}", file=sys.stderr, flush=True)
            _end()

    old = [signal.signal(one, interrupted) for one in (signal.SIGINT, signal.SIGTERM)]
    try:
        while not asked:
            if query.awaitTermination(0.5):
                return 0
        print("finishing the micro-batch; once more stops at once", file=sys.stderr, flush=True)
        query.stop()
        told.__exit__()
        print(f"stopped at version {query.version}; go on with: {resume}", file=sys.stderr, flush=True)
        return 0
    finally:
        for one, handler in zip((signal.SIGINT, signal.SIGTERM), old, strict=True):
            signal.signal(one, handler)


def _end() -> None:
    os._exit(130)


def _resume(name: str, once: bool, master: str | None, checkpoint: str | None) -> str:
    words = ["freshviews run", name]
    words += ["--once"] if once else []
    words += [f"--master {master}"] if master else []
    words += [f"--checkpoint {checkpoint}"] if checkpoint else []
    return " ".join(words)


class _Told:
    """What is shown while it runs: a live table on a terminal, else a line per version."""

    def __init__(self, views: list[Any], as_json: bool) -> None:
        self._views = [view.name for view in views]
        self._json = as_json
        self._live: Live | None = None
        self._begun = time.time()
        if sys.stdout.isatty() and not as_json:
            self._live = Live(console=Console(), refresh_per_second=4, transient=False)

    def __enter__(self) -> _Told:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def version(self, manifest: Manifest) -> None:
        rows = sum(manifest.rows.values())
        lag = time.time() - manifest.time
        rate = rows / manifest.seconds if manifest.seconds else 0.0
        bad = sum(manifest.totals.get("bad", {}).values())
        if self._json:
            told = {
                "version": manifest.version,
                "batch": manifest.batch,
                "rows": manifest.rows,
                "changed": manifest.changed,
                "bytes": manifest.bytes,
                "seconds": round(manifest.seconds, 3),
                "bad": manifest.totals.get("bad", {}),
            }
            print(json.dumps(told), flush=True)
        elif self._live is not None:
            table = Table("view", "changes out", "in all", "state", box=None, pad_edge=False)
            for name in self._views:
                total = manifest.totals.get("changed", {}).get(name, 0)
                changed = manifest.changed.get(name, 0)
                table.add_row(name, f"{changed:,}", f"{total:,}", _size(manifest.bytes.get(name, 0)))
            total_in = sum(manifest.totals.get("rows", {}).values())
            table.title = (
                f"version {manifest.version}: {rows:,} rows in, {total_in:,} in all, {rate:,.0f} rows/s, "
                f"lag {lag:.1f} s" + (f", {bad:,} bad rows set aside" if bad else "")
            )
            self._live.update(table)
        else:
            changed_text = ", ".join(f"{name} {manifest.changed.get(name, 0)}" for name in self._views)
            aside = f"; {bad} bad rows set aside" if bad else ""
            print(
                f"version {manifest.version}: {rows} rows in {manifest.seconds:.2f} s; changes: {changed_text}{aside}",
                flush=True,
            )


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def show_status(name: str, checkpoint: str | None, as_json: bool) -> None:
    """Print how the pipeline of a script stands."""
    found = status(checkpoint_of(name, checkpoint))
    if as_json:
        print(json.dumps(asdict(found)))
        return
    state = "running" if found.running else "not running"
    print(f"version {found.version} ({state}), made {found.lag:.0f} s ago, delivered up to {found.delivered}")
    for table, numbers in found.tables.items():
        aside = f", {numbers['bad']:,} set aside" if numbers["bad"] else ""
        print(f"table {table}: {numbers['rows']:,} rows in{aside}")
    for view, numbers in found.views.items():
        print(f"view {view}: {numbers['changed']:,} changes out, {_size(numbers['bytes'])}")
    if found.error:
        print(f"last error: {found.error}")


def query_script(name: str, sql: str, checkpoint: str | None, as_json: bool) -> None:
    """Print the result of a SELECT over the views at the last committed version. Spark evaluates it."""
    root = checkpoint_of(name, checkpoint)
    latest(root)
    _need_spark()
    from freshviews.spark.select import select

    found = select(root, sql)
    if as_json:
        for row in found.to_pylist():
            print(json.dumps(row, default=str, ensure_ascii=False))
        return
    table = Table(*found.schema.names, box=None, pad_edge=False, header_style="bold")
    for row in found.to_pylist():
        table.add_row(*("NULL" if value is None else str(value) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 1000).print(table)
