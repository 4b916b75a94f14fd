"""Prints the progress of a pipeline: live lines on a terminal, else a line or a JSON object per version.

Until rows arrive, it prints the stage of a run, such as ``reading items``. A project (``cli.project``) has only stages.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from freshviews.cli.units import duration, size
from freshviews.kernel.machine.cache import COMPILED, cache_folder
from freshviews.printable import cell, printable, say
from freshviews.spark.definition import Definition
from freshviews.spark.phases import Phases
from freshviews.spark.state.manifest import Manifest

_CURSOR = b"\x1b[?25h"
_LOOK = 1.0
"""Seconds between two counts of compiled functions."""


class Stages:
    """Shows what a run does. ``close`` ends the live line; it may be called twice, and by a signal handler. ``stays``:
    the line stays on the terminal then."""

    def __init__(self, as_json: bool, stays: bool = False) -> None:
        self._stage = ""
        self._begun = time.time()
        self._watching: Watching | None = None
        self._out = sys.stdout
        self._live: Live | None = None
        if sys.stdout.isatty() and not as_json:
            screen = self._screen
            self._live = Live(console=Console(), refresh_per_second=2, get_renderable=screen, transient=not stays)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self._watching is not None:
            self._watching.end()
        live, self._live = self._live, None
        if live is not None:
            live.stop()
            os.write(self._out.fileno(), _CURSOR)

    def stage(self, text: str) -> None:
        """Say what the run does from now on, until the next version or stage."""
        self._stage, self._begun = text, time.time()
        if self._watching is None:
            # On a terminal the first line has their number.
            self._watching = Watching(self._note_compiling if self._live is None else None)
        if self._live is None:
            say(text, to=sys.stderr)
        else:
            self._live.refresh()

    def _note_compiling(self) -> None:
        say("compiling the functions of the views, once per machine", to=sys.stderr)

    def _staged(self) -> str:
        """The stage, how many functions are compiled, and the seconds."""
        if not self._stage:
            return ""
        compiled = self._watching.functions if self._watching is not None else 0
        note = f", {compiled} functions compiled, once per machine" if compiled else ""
        return f"{self._stage}{note}, {time.time() - self._begun:.0f} s"

    def _screen(self) -> RenderableType:
        return _line(self._staged())


class Progress(Stages):
    """Shows every version, too, on a terminal as a live table. ``phases``: the seconds of the run by phase."""

    def __init__(self, definition: Definition, as_json: bool, phases: Phases) -> None:
        self._tables = tables_by_view(definition)
        self._json = as_json
        self._latest: Manifest | None = None
        self._phases = phases
        self._compiled = 0.0
        """Seconds of compiling in the versions before."""
        self._reading = f"reading {', '.join(table.name for table in definition.tables)}"
        self._headline = ""
        self._aside = contextlib.ExitStack()
        super().__init__(as_json, stays=True)  # Asks for the first screen.

    def __enter__(self) -> Self:
        super().__enter__()
        if self._json:
            # The output of a console sink is not JSON.
            self._aside.enter_context(contextlib.redirect_stdout(sys.stderr))
        return self

    def close(self) -> None:
        super().close()
        self._aside.close()

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self._tables)

    def started(self) -> None:
        """Say that rows are read, unless a version has said so."""
        if self._latest is None:
            self.stage(self._reading)

    def version(self, manifest: Manifest) -> None:
        """Show a version that was delivered."""
        is_first = self._latest is None
        self._latest = manifest
        self._stage = ""
        compiled = self._phases.seconds["compile"]
        seconds, self._compiled = compiled - self._compiled, compiled
        self._headline = headline(manifest, seconds)
        if self._json:
            print(json.dumps(as_json(manifest)), file=self._out, flush=True)
        elif self._live is None:
            changed = ", ".join(f"{name} {manifest.changed.get(name, 0):,}" for name in self._tables)
            changes = f"; changes: {changed}" if manifest.rows or manifest.changed else ""
            print(printable(f"{self._headline}{changes}"), flush=True)
        else:
            self._live.refresh()
        if is_first and not manifest.rows:
            self.stage(self._reading)

    def _screen(self) -> RenderableType:
        """A line with the stage or the version, and below it a line per view."""
        latest, stage = self._latest, self._staged()
        if latest is None:
            return _line(stage)
        shown = f"{self._headline}; {time.time() - latest.time:.0f} s ago"
        table = Table(box=None, pad_edge=False)
        table.add_column("view")
        for name in ("rows in", "in all", "changes out", "in all", "rows/s", "lag", "state"):
            table.add_column(name, justify="right")
        for name, tables in self._tables.items():
            rows = sum(latest.rows.get(one, 0) for one in tables)
            table.add_row(
                Text(cell(name)),
                f"{rows:,}",
                f"{sum(latest.totals.get('rows', {}).get(one, 0) for one in tables):,}",
                f"{latest.changed.get(name, 0):,}",
                f"{latest.totals.get('changed', {}).get(name, 0):,}",
                _rate(rows, latest.seconds),
                duration(latest.lag),
                size(latest.bytes.get(name, 0)) if name in latest.views else "backfilling",
            )
        return Group(_line(f"{shown}; {stage}" if stage else shown), table)


def _line(text: str) -> Text:
    return Text(cell(text), no_wrap=True, overflow="ellipsis")


def as_json(manifest: Manifest) -> dict[str, object]:
    """A version as a JSON object."""
    return {
        "version": manifest.version,
        "batch": manifest.batch,
        "rows": manifest.rows,
        "changed": manifest.changed,
        "bytes": manifest.bytes,
        "seconds": round(manifest.seconds, 3),
        "rows_per_second": round(_per_second(sum(manifest.rows.values()), manifest.seconds), 1),
        "lag": round(manifest.lag, 3),
        "bad": manifest.totals.get("bad", {}),
        "refilled": manifest.refilled,
        "cellsLoaded": manifest.cells_loaded,
        "cellsMoved": manifest.cells_moved,
    }


def tables_by_view(definition: Definition) -> dict[str, list[str]]:
    """The base tables that each view depends on."""
    catalog = definition.catalog

    def below(name: str) -> list[str]:
        table, view = catalog.table(name), catalog.view(name)
        if table is not None:
            return [table.name]
        return [] if view is None else list(dict.fromkeys(one for read in view.inputs for one in below(read)))

    return {view.name: below(view.name) for view in definition.views}


def headline(manifest: Manifest, compiling: float) -> str:
    """The rows and seconds of a version; ``compiling``: seconds of it that went into compiling."""
    rows = sum(manifest.rows.values())
    bad = sum(manifest.totals.get("bad", {}).values())
    took = f"{manifest.seconds:.2f} s"
    if compiling >= 1:
        took += f" ({compiling:.0f} s compiling)"
    if rows:
        lag = f"{_rate(rows, manifest.seconds)} rows/s, lag {duration(manifest.lag)}"
        said = f"{rows:,} rows in {took}, {lag}"
    elif manifest.version == 1:
        said = f"the views are made in {took}; no rows yet"
    else:
        said = f"no rows, {took}"
    return (
        f"version {manifest.version}: {said}"
        + (f"; {bad:,} bad rows set aside" if bad else "")
        + (f"; refilled: {', '.join(manifest.refilled)}" if manifest.refilled else "")
    )


def _rate(rows: int, seconds: float) -> str:
    """Rows per second, with a digit after the point where they are few."""
    found = _per_second(rows, seconds)
    return f"{found:,.0f}" if found >= 10 or not rows else f"{found:.1f}"


def _per_second(rows: int, seconds: float) -> float:
    return rows / seconds if seconds else 0.0


class Watching:
    """Counts the ``functions`` that are compiled on this machine from now on, until ``end``; ``found`` is set after the
    first one, when ``first`` has been called. Workers on other machines have other caches."""

    def __init__(self, first: Callable[[], None] | None = None) -> None:
        self.functions = 0
        self.found = Event()
        self._first = first
        self._folder = cache_folder()
        self._before = self._count()
        self._ended = Event()
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK):
            self.functions = self._count() - self._before
            if self.functions > 0 and not self.found.is_set():
                if self._first is not None:
                    self._first()
                self.found.set()

    def _count(self) -> int:
        with contextlib.suppress(OSError):
            return sum(name.endswith(COMPILED) for name in os.listdir(self._folder))
        return 0

    def end(self) -> None:
        """Count no more."""
        self._ended.set()
